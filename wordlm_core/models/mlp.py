"""Fixed-window MLP: embed, concatenate the window, Linear, ReLU, Linear to the vocabulary.

After Bengio et al. 2003 (JMLR 3:1137-1155), without its direct connections. A text shorter
than the window is padded on the left with `<PAD>`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int

from wordlm_core.errors import CheckpointError
from wordlm_core.models import base
from wordlm_core.models.base import HeadSet, Trace, Weights
from wordlm_core.text import PAD_ID
from wordlm_core.vocabulary import MAX_VOCAB_SIZE

if TYPE_CHECKING:
    import torch

KINDS = ("mlp",)
READS = "windows"
DEFAULTS: Mapping[str, Any] = {"lr": 1e-3, "weight_decay": 1e-4}


@dataclass(frozen=True)
class MLPConfig:
    """Sizes of a fixed-window MLP."""

    vocab_size: int
    context_length: int
    d_model: int
    hidden: int

    def __post_init__(self) -> None:
        """Refuse sizes out of range."""
        base.check_sizes(
            vocab_size=(self.vocab_size, MAX_VOCAB_SIZE),
            context_length=(self.context_length, base.MAX_CONTEXT),
            d_model=(self.d_model, base.MAX_WIDTH),
            hidden=(self.hidden, base.MAX_HIDDEN),
        )
        base.check_budget(self)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every weight, in state order."""
        return {
            base.EMBEDDING: (self.vocab_size, self.d_model),
            "hidden_layer.weight": (self.hidden, self.context_length * self.d_model),
            "hidden_layer.bias": (self.hidden,),
            "vocab_head.weight": (self.vocab_size, self.hidden),
            "vocab_head.bias": (self.vocab_size,),
        }


class MLPModel:
    """A fixed-window MLP with read-only weights."""

    family: ClassVar[str] = "mlp"
    embedding_name: ClassVar[str] = base.EMBEDDING
    slides: ClassVar[bool] = True
    trained_on: ClassVar[Literal["last", "every"]] = "last"
    n_layer = 0
    n_head = 0
    kind = "mlp"

    def __init__(self, config: MLPConfig, weights: Mapping[str, np.ndarray]) -> None:
        base.check_shapes(weights, config.shapes)
        self.config = config
        self.weights: Weights = base.freeze(weights)

    @classmethod
    def from_weights(cls, weights: Weights, **_: Any) -> "MLPModel":
        """Infer the sizes from the arrays, which say all there is, and build the model."""
        vocab_size, d_model = base.matrix(weights, base.EMBEDDING).shape
        hidden, flat = base.matrix(weights, "hidden_layer.weight").shape
        if d_model == 0 or flat % d_model:
            raise CheckpointError(
                f"hidden_layer.weight reads {flat} numbers, which is no whole number of "
                f"{d_model}-wide embeddings"
            )
        return cls(MLPConfig(vocab_size, flat // d_model, d_model, hidden), weights)

    @base.quiet_overflow
    def trace(self, ids: Int[np.ndarray, " pos"]) -> Trace:
        """Run every prefix of `ids` as a window of its own."""
        base.check_probe(ids, self.config.context_length)
        embed = self.weights[base.EMBEDDING][ids]
        hidden = np.concatenate([self._hidden(prefix[None]) for prefix in base.prefixes(ids)])
        return Trace(
            ids=ids,
            embed=embed,
            residual=None,
            queries=None,
            keys=None,
            values=None,
            scores=None,
            attention=None,
            head_updates=None,
            contextual=None,
            hidden=hidden,
            logits=self._head(hidden),
        )

    @base.quiet_overflow
    def last_logits(
        self, ids: Int[np.ndarray, "batch pos"], *, heads_off: HeadSet = ()
    ) -> Float[np.ndarray, "batch vocab"]:
        """Return next-token logits after each text. There are no heads to switch off."""
        base.check_probe(ids, self.config.context_length)
        return self._head(self._hidden(ids))

    def last_attention(self, ids: Int[np.ndarray, " pos"]) -> None:
        """Return None: there is no attention."""

    def readout(
        self, contextual: Float[np.ndarray, "batch d_model"]
    ) -> Float[np.ndarray, "batch vocab"]:
        """Refuse: nothing here carries a position's row from layer to layer."""
        raise CheckpointError("the MLP has no residual stream to read out")

    def hidden_readout(self) -> Float[np.ndarray, "vocab hidden"]:
        """Return the head's matrix: what each hidden unit adds to the logits."""
        return self.weights["vocab_head.weight"]

    def logits_without(
        self, trace: Trace, position: int, sets: Sequence[HeadSet]
    ) -> Float[np.ndarray, "sets vocab"]:
        """Refuse: there are no heads."""
        raise CheckpointError("the MLP has no heads to switch off")

    def numbers_of(self, length: int) -> int:
        """Return about how many numbers one text of this length holds in a forward."""
        return 2 * length * self.config.d_model + 2 * self.config.hidden

    def _hidden(self, ids: Int[np.ndarray, "batch pos"]) -> Float[np.ndarray, "batch hidden"]:
        table, weights = self.weights[base.EMBEDDING], self.weights["hidden_layer.weight"]
        flat = table[ids].reshape(len(ids), -1)
        before = flat @ weights[:, -flat.shape[1] :].T + self.weights["hidden_layer.bias"]
        padding = self.config.context_length - ids.shape[1]
        # The PAD row is zero after our training, but a file may say otherwise.
        if padding and table[PAD_ID].any():
            before += weights[:, : -flat.shape[1]] @ np.tile(table[PAD_ID], padding)
        return np.maximum(before, 0)

    def _head(self, hidden: Float[np.ndarray, "batch hidden"]) -> Float[np.ndarray, "batch vocab"]:
        return hidden @ self.weights["vocab_head.weight"].T + self.weights["vocab_head.bias"]


def config_for(
    *, vocab_size: int, context_length: int, d_model: int, hidden: int, **_: Any
) -> MLPConfig:
    """Return the config for training options; those of other families are ignored."""
    return MLPConfig(vocab_size, context_length, d_model, hidden)


def build(config: MLPConfig, weights: Mapping[str, np.ndarray]) -> MLPModel:
    """Return the model of a config."""
    return MLPModel(config, weights)


def initial_weights(config: MLPConfig) -> "dict[str, torch.Tensor]":
    """Draw PyTorch's default initialisation, in state order, from the global generator."""
    from torch import nn  # noqa: PLC0415 (only training needs torch)

    modules = {
        "token_embedding": nn.Embedding(config.vocab_size, config.d_model, padding_idx=PAD_ID),
        "hidden_layer": nn.Linear(config.context_length * config.d_model, config.hidden),
        "vocab_head": nn.Linear(config.hidden, config.vocab_size),
    }
    return {f"{name}.{k}": v for name, m in modules.items() for k, v in m.state_dict().items()}


def training_hidden(
    config: MLPConfig, weights: "dict[str, torch.Tensor]", ids: "torch.Tensor"
) -> "torch.Tensor":
    """Return hidden activations (batch, hidden) of full windows (batch, context)."""
    from torch.nn import functional as F  # noqa: PLC0415, N812 (torch's own name for it)

    from wordlm_core.models._torch_ops import lookup  # noqa: PLC0415

    embedded = lookup(weights[base.EMBEDDING], ids)
    flat = embedded.flatten(1)
    return F.linear(flat, weights["hidden_layer.weight"], weights["hidden_layer.bias"]).relu()


MODEL = MLPModel
