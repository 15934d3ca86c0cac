"""One layer of causal self-attention, any number of heads, before a small MLP.

    X          = embed + position               (absolute slots of the window)
    scores     = Q K^T / sqrt(d_head)           future and PAD keys masked
    contextual = X + W_O concat_h(softmax(scores_h) V_h)
    logits     = Linear(ReLU(Linear(contextual)))

After Vaswani et al. 2017 (arXiv:1706.03762), without LayerNorm. A text of n tokens fills the
last n slots of the window, so its last token always stands in the last slot. Only that slot
was ever supervised: the rows of earlier queries show the same weights at work in slots where
training never asked for a prediction.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int

from wordlm_core.errors import CheckpointError, ConfigError
from wordlm_core.models import base
from wordlm_core.models.base import HeadSet, Trace, Weights
from wordlm_core.text import PAD_ID
from wordlm_core.vocabulary import MAX_VOCAB_SIZE

if TYPE_CHECKING:
    import torch

KINDS = ("attention", "multihead")
READS = "windows"
DEFAULTS: Mapping[str, Any] = {"lr": 3e-3, "weight_decay": 1e-3}


@dataclass(frozen=True)
class AttentionConfig:
    """Sizes of a one-layer attention model.

    Attributes:
        vocab_size: Rows of the embedding table.
        context_length: Slots of the window.
        d_model: Width of the residual stream.
        hidden: Width of the MLP after attention.
        n_head: Heads; divides `d_k` and `d_v`.
        d_k: Width of queries and keys over all heads.
        d_v: Width of values over all heads.
        positions: Whether a position table is added to the embeddings.
    """

    vocab_size: int
    context_length: int
    d_model: int
    hidden: int
    n_head: int
    d_k: int
    d_v: int
    positions: bool = True

    def __post_init__(self) -> None:
        """Refuse sizes out of range and heads that do not divide the width."""
        base.check_sizes(
            vocab_size=(self.vocab_size, MAX_VOCAB_SIZE),
            context_length=(self.context_length, base.MAX_CONTEXT),
            d_model=(self.d_model, base.MAX_WIDTH),
            hidden=(self.hidden, base.MAX_HIDDEN),
            heads=(self.n_head, base.MAX_HEADS),
            d_k=(self.d_k, base.MAX_WIDTH),
            d_v=(self.d_v, base.MAX_WIDTH),
        )
        if self.d_k % self.n_head or self.d_v % self.n_head:
            raise ConfigError(
                f"{self.n_head} heads do not divide a query width of {self.d_k} and a value "
                f"width of {self.d_v}"
            )
        base.check_budget(self, n_head=self.n_head)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every weight, in state order."""
        position = {"position_embedding.weight": (self.context_length, self.d_model)}
        return {
            base.EMBEDDING: (self.vocab_size, self.d_model),
            **(position if self.positions else {}),
            "W_Q.weight": (self.d_k, self.d_model),
            "W_K.weight": (self.d_k, self.d_model),
            "W_V.weight": (self.d_v, self.d_model),
            "W_O.weight": (self.d_model, self.d_v),
            "hidden_layer.weight": (self.hidden, self.d_model),
            "hidden_layer.bias": (self.hidden,),
            "vocab_head.weight": (self.vocab_size, self.hidden),
            "vocab_head.bias": (self.vocab_size,),
        }


class AttentionModel:
    """A one-layer attention model with read-only weights."""

    family: ClassVar[str] = "attention"
    embedding_name: ClassVar[str] = base.EMBEDDING
    slides: ClassVar[bool] = True
    trained_on: ClassVar[Literal["last", "every"]] = "last"
    n_layer = 1

    def __init__(self, config: AttentionConfig, weights: Mapping[str, np.ndarray]) -> None:
        base.check_shapes(weights, config.shapes)
        self.config = config
        self.weights: Weights = base.freeze(weights)

    @property
    def kind(self) -> str:
        """Return `attention` for one head, `multihead` for several."""
        return "attention" if self.config.n_head == 1 else "multihead"

    @property
    def n_head(self) -> int:
        """Return the number of heads."""
        return self.config.n_head

    @classmethod
    def from_weights(
        cls, weights: Weights, *, n_head: int, context_length: int | None = None, **_: Any
    ) -> "AttentionModel":
        """Infer the sizes from the arrays and build the model.

        Args:
            weights: Arrays by state name.
            n_head: Heads; the arrays cannot tell.
            context_length: Needed only without a position table.
        """
        vocab_size, d_model = base.matrix(weights, base.EMBEDDING).shape
        positions = "position_embedding.weight" in weights
        if positions:
            context_length = base.matrix(weights, "position_embedding.weight").shape[0]
        if context_length is None:
            raise CheckpointError("no position table and no context_length: the window is unknown")
        config = AttentionConfig(
            vocab_size=vocab_size,
            context_length=context_length,
            d_model=d_model,
            hidden=base.matrix(weights, "hidden_layer.weight").shape[0],
            n_head=n_head,
            d_k=base.matrix(weights, "W_Q.weight").shape[0],
            d_v=base.matrix(weights, "W_V.weight").shape[0],
            positions=positions,
        )
        return cls(config, weights)

    @base.quiet_overflow
    def trace(self, ids: Int[np.ndarray, " pos"]) -> Trace:
        """Run one probe and keep everything."""
        base.check_probe(ids, self.config.context_length)
        embed = self.weights[base.EMBEDDING][ids]
        residual = self._add_positions(embed)
        queries, keys, values = (
            self._by_head(residual @ self.weights[f"{name}.weight"].T)
            for name in ("W_Q", "W_K", "W_V")
        )
        scores = queries @ keys.swapaxes(1, 2) / math.sqrt(queries.shape[-1])
        future = np.triu(np.ones(scores.shape[1:], dtype=bool), k=1)
        attention = base.softmax(np.where(future, -np.inf, scores).astype(scores.dtype))
        head_updates = (attention @ values) @ self._output_by_head()
        contextual = residual + head_updates.sum(axis=0)
        hidden = self._hidden(contextual)
        return Trace(
            ids=ids,
            embed=embed,
            residual=residual,
            queries=queries[None],
            keys=keys[None],
            values=values[None],
            scores=scores[None],
            attention=attention[None],
            head_updates=head_updates[None],
            contextual=contextual,
            hidden=hidden,
            logits=self._head(hidden),
        )

    @base.quiet_overflow
    def last_logits(
        self, ids: Int[np.ndarray, "batch pos"], *, heads_off: HeadSet = ()
    ) -> Float[np.ndarray, "batch vocab"]:
        """Return next-token logits after each text; heads in `heads_off` write zero.

        Only the last query is computed. q.(W_K x) = (W_K^T q).x, and W_V is applied after
        the mix, so nothing is projected for every key.
        """
        base.check_probe(ids, self.config.context_length)
        config = self.config
        residual = self._add_positions(self.weights[base.EMBEDDING][ids])
        mixed = self._attention_of_last(residual) @ residual
        value_weights = self.weights["W_V.weight"].reshape(config.n_head, -1, config.d_model)
        mixed_values = mixed.swapaxes(0, 1) @ value_weights.swapaxes(1, 2)
        updates = mixed_values @ self._output_by_head()
        kept = [head for head in range(config.n_head) if (0, head) not in heads_off]
        return self.readout(residual[:, -1] + updates[kept].sum(axis=0))

    def last_attention(
        self, ids: Int[np.ndarray, " pos"]
    ) -> Float[np.ndarray, "layer head key"] | None:
        """Return the last query's row of `trace(ids).attention`, at a fraction of the cost."""
        base.check_probe(ids, self.config.context_length)
        return self._attention_of_last(self._add_positions(self.weights[base.EMBEDDING][ids[None]]))

    def readout(
        self, contextual: Float[np.ndarray, "batch d_model"]
    ) -> Float[np.ndarray, "batch vocab"]:
        """Return the logits that the layers after attention make of residual rows."""
        return self._head(self._hidden(contextual))

    def hidden_readout(self) -> Float[np.ndarray, "vocab hidden"]:
        """Return the head's matrix: what each hidden unit adds to the logits."""
        return self.weights["vocab_head.weight"]

    def logits_without(
        self, trace: Trace, position: int, sets: Sequence[HeadSet]
    ) -> Float[np.ndarray, "sets vocab"]:
        """Return the logits at a position with each set of heads writing zero."""
        assert trace.contextual is not None
        assert trace.head_updates is not None
        updates = trace.head_updates[0, :, position]
        off = np.array([[(0, head) in each for head in range(self.n_head)] for each in sets])
        return self.readout(trace.contextual[position] - off @ updates)

    def numbers_of(self, length: int) -> int:
        """Return about how many numbers one text of this length holds in a forward."""
        config = self.config
        return 2 * length * config.d_model + 3 * length * config.n_head + 2 * config.hidden

    def _attention_of_last(
        self, residual: Float[np.ndarray, "batch pos d_model"]
    ) -> Float[np.ndarray, "batch head pos"]:
        config = self.config
        query = residual[:, -1] @ self.weights["W_Q.weight"].T
        query = query.reshape(len(residual), config.n_head, -1)
        key_weights = self.weights["W_K.weight"].reshape(config.n_head, -1, config.d_model)
        asked = (query.swapaxes(0, 1) @ key_weights).swapaxes(0, 1)
        return base.softmax(asked @ residual.swapaxes(1, 2) / math.sqrt(query.shape[-1]))

    def _add_positions(
        self, embed: Float[np.ndarray, "*batch pos d_model"]
    ) -> Float[np.ndarray, "*batch pos d_model"]:
        if not self.config.positions:
            return embed
        return embed + self.weights["position_embedding.weight"][-embed.shape[-2] :]

    def _by_head(
        self, vectors: Float[np.ndarray, "pos width"]
    ) -> Float[np.ndarray, "head pos d_head"]:
        return vectors.reshape(len(vectors), self.config.n_head, -1).swapaxes(0, 1)

    def _output_by_head(self) -> Float[np.ndarray, "head d_value d_model"]:
        d_model = self.config.d_model
        return self.weights["W_O.weight"].T.reshape(self.config.n_head, -1, d_model)

    def _hidden(
        self, contextual: Float[np.ndarray, "batch d_model"]
    ) -> Float[np.ndarray, "batch hidden"]:
        weights, bias = self.weights["hidden_layer.weight"], self.weights["hidden_layer.bias"]
        return np.maximum(contextual @ weights.T + bias, 0)

    def _head(self, hidden: Float[np.ndarray, "batch hidden"]) -> Float[np.ndarray, "batch vocab"]:
        return hidden @ self.weights["vocab_head.weight"].T + self.weights["vocab_head.bias"]


def config_for(
    *,
    vocab_size: int,
    context_length: int,
    d_model: int,
    hidden: int,
    n_head: int,
    positions: bool,
    **_: Any,
) -> AttentionConfig:
    """Return the config for training options; queries and values are `d_model` wide."""
    return AttentionConfig(
        vocab_size, context_length, d_model, hidden, n_head, d_model, d_model, positions
    )


def build(config: AttentionConfig, weights: Mapping[str, np.ndarray]) -> AttentionModel:
    """Return the model of a config."""
    return AttentionModel(config, weights)


def initial_weights(config: AttentionConfig) -> "dict[str, torch.Tensor]":
    """Draw PyTorch's default initialisation, in state order, from the global generator."""
    from torch import nn  # noqa: PLC0415 (only training needs torch)

    modules: dict[str, nn.Module] = {
        "token_embedding": nn.Embedding(config.vocab_size, config.d_model, padding_idx=PAD_ID)
    }
    if config.positions:
        modules["position_embedding"] = nn.Embedding(config.context_length, config.d_model)
    modules["W_Q"] = nn.Linear(config.d_model, config.d_k, bias=False)
    modules["W_K"] = nn.Linear(config.d_model, config.d_k, bias=False)
    modules["W_V"] = nn.Linear(config.d_model, config.d_v, bias=False)
    modules["W_O"] = nn.Linear(config.d_v, config.d_model, bias=False)
    modules["hidden_layer"] = nn.Linear(config.d_model, config.hidden)
    modules["vocab_head"] = nn.Linear(config.hidden, config.vocab_size)
    return {f"{name}.{k}": v for name, m in modules.items() for k, v in m.state_dict().items()}


def training_hidden(
    config: AttentionConfig, weights: "dict[str, torch.Tensor]", ids: "torch.Tensor"
) -> "torch.Tensor":
    """Return hidden activations (batch, hidden) of full windows (batch, context).

    The same rearrangement as `last_logits`: only the last query is supervised, so no key or
    value is projected. PAD keys are masked.
    """
    from torch.nn import functional as F  # noqa: PLC0415, N812 (torch's own name for it)

    from wordlm_core.models._torch_ops import attend_last, lookup  # noqa: PLC0415

    n_head, d_model = config.n_head, config.d_model
    table, positions = weights[base.EMBEDDING], weights.get("position_embedding.weight")
    embed, last = lookup(table, ids), lookup(table, ids[:, -1])
    if positions is None:
        positions = table.new_zeros(ids.shape[1], d_model)
    last = last + positions[-1]
    query = F.linear(last, weights["W_Q.weight"]).view(len(ids), n_head, -1)
    key_weights = weights["W_K.weight"].view(n_head, -1, d_model)
    asked = (query.transpose(0, 1) @ key_weights).transpose(0, 1) / math.sqrt(query.shape[-1])
    # Position rows are the same in every window: their part of the scores and of the mix is
    # a small product of its own, cheaper than adding them to batch x context vectors.
    masked = (ids == PAD_ID).unsqueeze(1)
    mixed, attention = attend_last(embed, asked, asked @ positions.T, masked)
    mixed = mixed + attention @ positions
    value_weights = weights["W_V.weight"].view(n_head, -1, d_model)
    values = mixed.transpose(0, 1) @ value_weights.transpose(1, 2)
    joined = values.transpose(0, 1).flatten(1)
    contextual = last + F.linear(joined, weights["W_O.weight"])
    return F.linear(contextual, weights["hidden_layer.weight"], weights["hidden_layer.bias"]).relu()


MODEL = AttentionModel
