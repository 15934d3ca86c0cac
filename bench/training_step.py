"""Targets a second of one training step, against the plain formulation and the head's bound.

Plain: project keys and values for all 64 positions, torch's own embedding and cross-entropy.
Ours: only the last query's path, W_K and W_V applied to one vector a head, and the two written-
out backward passes of `models/_torch_ops.py`. Bound: the vocabulary head's three matrix products
alone, which no formulation avoids. All in float32, measured alternately in one run.
"""

import math
import statistics
import time
from collections.abc import Callable

import torch
from torch.nn import functional as F  # noqa: N812 (torch's own name for it)

from wordlm_core.models import attention
from wordlm_core.models._torch_ops import head_loss

BATCH, VOCAB, CONTEXT, WIDTH, HIDDEN, ROUNDS = 512, 4000, 64, 64, 256, 15

Weights = dict[str, torch.Tensor]


def plain_loss(
    config: attention.AttentionConfig, w: Weights, ids: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    """Return the loss with every key and value projected."""
    x = (
        F.embedding(ids, w["token_embedding.weight"], padding_idx=0)
        + w["position_embedding.weight"]
    )
    heads = config.n_head
    query = F.linear(x[:, -1:], w["W_Q.weight"]).unflatten(-1, (heads, -1)).transpose(1, 2)
    key = F.linear(x, w["W_K.weight"]).unflatten(-1, (heads, -1)).transpose(1, 2)
    value = F.linear(x, w["W_V.weight"]).unflatten(-1, (heads, -1)).transpose(1, 2)
    scores = query @ key.transpose(-1, -2) / math.sqrt(key.shape[-1])
    scores = scores.masked_fill((ids == 0)[:, None, None], -math.inf)
    joined = (scores.softmax(-1) @ value).transpose(1, 2).flatten(2)[:, 0]
    contextual = x[:, -1] + F.linear(joined, w["W_O.weight"])
    hidden = F.linear(contextual, w["hidden_layer.weight"], w["hidden_layer.bias"]).relu()
    logits = F.linear(hidden, w["vocab_head.weight"], w["vocab_head.bias"])
    return F.cross_entropy(logits, targets)


def our_loss(
    config: attention.AttentionConfig,
    w: Weights,
    ids: torch.Tensor,
    targets: torch.Tensor,
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """Return the loss as the trainer computes it."""
    hidden = attention.training_hidden(config, w, ids)
    return head_loss(hidden, w["vocab_head.weight"], w["vocab_head.bias"], targets, dtype)


def seconds(step: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def main() -> None:
    """Print the table for one and four heads."""
    torch.set_num_threads(1)
    for heads in (1, 4):
        measure(heads)


def measure(heads: int) -> None:
    """Time all variants alternately and print medians and ratios."""
    torch.manual_seed(0)
    config = attention.config_for(
        vocab_size=VOCAB, context_length=CONTEXT, d_model=WIDTH, hidden=HIDDEN, n_head=heads,
        positions=True,
    )  # fmt: skip
    w = {k: v.requires_grad_() for k, v in attention.initial_weights(config).items()}
    optimiser = torch.optim.AdamW(w.values(), lr=1e-4, fused=True)
    ids = torch.randint(4, VOCAB, (BATCH, CONTEXT))
    for row, padding in enumerate(torch.randint(0, CONTEXT - 1, (BATCH // 4,)).tolist()):
        ids[row, :padding] = 0
    targets = torch.randint(4, VOCAB, (BATCH,))

    def step(loss: Callable[[], torch.Tensor]) -> Callable[[], None]:
        def run() -> None:
            optimiser.zero_grad()
            loss().backward()
            torch.nn.utils.clip_grad_norm_(w.values(), 1.0)
            optimiser.step()

        return run

    hidden, grad = torch.randn(BATCH, HIDDEN), torch.randn(BATCH, VOCAB)
    head = w["vocab_head.weight"].detach()
    variants = {
        "plain": step(lambda: plain_loss(config, w, ids, targets)),
        "ours": step(lambda: our_loss(config, w, ids, targets)),
        "ours, bfloat16 head": step(lambda: our_loss(config, w, ids, targets, torch.bfloat16)),
        "bound: the head's products": lambda: (hidden @ head.T, grad @ head, grad.T @ hidden),
    }
    with torch.no_grad():
        gap = abs(plain_loss(config, w, ids, targets) - our_loss(config, w, ids, targets)).item()
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(ROUNDS + 2):
        for name, run in variants.items():
            times[name].append(seconds(run))
    median = {name: statistics.median(values[2:]) for name, values in times.items()}
    print(f"{heads} head(s), B={BATCH} V={VOCAB} T={CONTEXT} d={WIDTH} h={HIDDEN}, 1 thread")
    for name, value in median.items():
        ratio = median["plain"] / value
        print(f"  {name:28} {value * 1e3:7.1f} ms  {BATCH / value:9,.0f}/s  {ratio:5.2f}x plain")
    bound = median["bound: the head's products"]
    print(f"  ours reaches {bound / median['ours']:.0%} of the bound; |loss difference| {gap:.1e}")


if __name__ == "__main__":
    main()
