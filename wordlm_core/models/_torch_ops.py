"""Three operations of the training step, written out because their backward passes dominate it.

All give the gradients of the plain formulation to rounding; `tests/core/test_trainer.py`
holds them to it and `bench/` measures what they save.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int

from wordlm_core.text import PAD_ID


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(ids)
        ctx.rows = table.shape
        return table.index_select(0, ids.reshape(-1)).view(*ids.shape, table.shape[1])

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        (ids,) = ctx.saved_tensors
        grad = grads[0]
        rows = grad.new_zeros(ctx.rows)
        # torch's own embedding backward walks row by row; index_add is about 6x faster.
        rows.index_add_(0, ids.reshape(-1), grad.reshape(-1, grad.shape[-1]))
        rows[PAD_ID] = 0
        return rows, None


def lookup(
    table: Float[torch.Tensor, "vocab d_model"], ids: Int[torch.Tensor, "*where"]
) -> Float[torch.Tensor, "*where d_model"]:
    """Return embedding rows; the PAD row gets no gradient."""
    return _Lookup.apply(table, ids)  # pyright: ignore[reportReturnType]


class _AttendLast(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        embed: torch.Tensor,
        asked: torch.Tensor,
        added: torch.Tensor,
        masked: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = (asked @ embed.transpose(1, 2)).add_(added)
        attention = scores.masked_fill_(masked, -torch.inf).softmax(-1)
        ctx.save_for_backward(embed, asked, attention)
        return attention @ embed, attention

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        embed, asked, attention = ctx.saved_tensors
        of_mixed, of_attention = grads
        # Softmax: d scores = a * (d a - sum(a * d a)); masked keys have a = 0.
        through = (of_mixed @ embed.transpose(1, 2)).add_(of_attention)
        through = through.sub_((through * attention).sum(-1, keepdim=True)).mul_(attention)
        # Both paths into the embeddings in one product, so that the largest tensor of the
        # step, batch x context x d_model, is written once and never added to.
        left, right = torch.cat([attention, through], 1), torch.cat([of_mixed, asked], 1)
        return left.transpose(1, 2) @ right, through @ embed, through, None


def attend_last(
    embed: Float[torch.Tensor, "batch key d_model"],
    asked: Float[torch.Tensor, "batch head d_model"],
    added: Float[torch.Tensor, "batch head key"],
    masked: Bool[torch.Tensor, "batch 1 key"],
) -> tuple[Float[torch.Tensor, "batch head d_model"], Float[torch.Tensor, "batch head key"]]:
    """Return what the last query mixes from the embeddings, and its attention.

    Args:
        embed: Key vectors before any projection.
        asked: W_K^T q of each head, already divided by sqrt(d_head).
        added: Added to the scores (the positions' part).
        masked: Keys that no query may see.
    """
    return _AttendLast.apply(embed, asked, added, masked)  # pyright: ignore[reportReturnType]


class _HeadLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        targets: torch.Tensor,
        dtype: torch.dtype,
    ) -> torch.Tensor:
        narrow, narrow_weight = hidden.to(dtype), weight.to(dtype)
        work = (narrow @ narrow_weight.T).float().add_(bias)
        picked = work.gather(1, targets[:, None])
        top = work.amax(1, keepdim=True)
        work.sub_(top).exp_()
        total = work.sum(1, keepdim=True)
        loss = (total.log() + top - picked).mean()
        # The gradient of the logits is (probs - one_hot) / batch; it overwrites them, so a
        # batch x vocab matrix is written once, not five times.
        work.div_(total * len(targets))
        work.scatter_add_(1, targets[:, None], torch.full_like(top, -1 / len(targets)))
        grad = work.to(dtype)
        ctx.save_for_backward(
            (grad @ narrow_weight).float(), (grad.T @ narrow).float(), work.sum(0)
        )
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        hidden, weight, bias = ctx.saved_tensors
        return hidden * grads[0], weight * grads[0], bias * grads[0], None, None


def head_loss(
    hidden: Float[torch.Tensor, "batch hidden"],
    weight: Float[torch.Tensor, "vocab hidden"],
    bias: Float[torch.Tensor, " vocab"],
    targets: Int[torch.Tensor, " batch"],
    dtype: torch.dtype = torch.float32,
) -> Float[torch.Tensor, ""]:
    """Return the mean cross-entropy of a linear vocabulary head, in nats a token.

    Args:
        hidden: Activations that the head reads.
        weight: The head's matrix.
        bias: The head's bias.
        targets: Next-token ids.
        dtype: Precision of the three matrix products; bfloat16 is about twice as fast where
            the CPU has it. Sums and the softmax stay float32.
    """
    return _HeadLoss.apply(hidden, weight, bias, targets, dtype)  # pyright: ignore[reportReturnType]
