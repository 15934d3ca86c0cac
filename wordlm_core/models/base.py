"""What every model family shares: the trace, the interface, and the one softmax.

Axis names in shapes: `pos` token positions of a probe, `query`/`key` the same positions as
receiver and source, `layer`, `head`, `d_model`, `d_head`, `vocab`, `batch`.

Inference is NumPy on read-only arrays, so that a hundred readers can share one model and the
app never loads torch. Only `trainer` does; the families give it their differentiable forward
in `training_hidden`, which imports torch inside.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from wordlm_core.errors import CheckpointError, ConfigError, TextError

Weights = Mapping[str, np.ndarray]
HeadSet = Sequence[tuple[int, int]]

EMBEDDING = "token_embedding.weight"  # of the word models

MAX_CONTEXT, MAX_WIDTH, MAX_HIDDEN, MAX_HEADS = 4096, 4096, 16_384, 64
MAX_PARAMETERS = 8_000_000
# Most numbers in one array of a forward pass: 128 MB in float64.
_MAX_NUMBERS = 2**24

# For forwards: numbers that overflow are refused by the softmax, not warned of on the way.
quiet_overflow = np.errstate(over="ignore", invalid="ignore")


def log_softmax(logits: Float[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch n"]:
    """Return log-probabilities in float64 over the last axis; -inf logits stay -inf.

    The maximum is taken away first, so no finite logits overflow.

    Raises:
        CheckpointError: A row holds +inf, NaN or nothing finite.
    """
    logs = logits.astype(np.float64)
    logs -= peak(logs)
    logs -= np.log(np.exp(logs).sum(axis=-1, keepdims=True))
    return logs


def softmax(logits: Float[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch n"]:
    """Return probabilities over the last axis, in the dtype of `logits`.

    Rows sum to 1 to rounding.

    Raises:
        CheckpointError: A row holds +inf, NaN or nothing finite.
    """
    powers = np.exp(logits - peak(logits))
    return powers / powers.sum(axis=-1, keepdims=True)


def peak(logits: Float[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch 1"]:
    """Return the largest of each row, once every row has a softmax.

    Raises:
        CheckpointError: A row holds +inf, NaN or nothing finite.
    """
    return require_finite(logits.max(axis=-1, keepdims=True))


def require_finite(numbers: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Return a model's numbers, if they are all finite.

    Raises:
        CheckpointError: They are not.
    """
    if not np.isfinite(numbers).all():
        raise CheckpointError("the model's numbers overflow: its weights are too large")
    return numbers


@dataclass(frozen=True)
class Trace:
    """All that a lens reads from one forward pass over one probe.

    Float64: near-ties in a ranking must not hang on rounding. Fields that a family lacks are
    None.

    Attributes:
        ids: Token ids.
        embed: Lookup rows of the tokens, before any position is added.
        residual: Residual stream before attention (of the last layer): in one layer, lookup
            row plus position row, which microgpt normalises first.
        queries: Query vectors. None for the MLP, like all fields up to `contextual`.
        keys: Key vectors.
        values: Value vectors (their width may differ from `d_head`).
        scores: q.k / sqrt(d_head) before the mask and softmax; receivers are rows.
        attention: After mask and softmax: rows sum to 1, entries right of the diagonal are 0.
        head_updates: What each head adds to the residual stream, W_O already applied.
        contextual: Residual stream after attention and its residual add (of the last layer).
        hidden: The MLP's activations after its ReLU (of the last layer).
        logits: Next-token logits at every position.
    """

    ids: Int[np.ndarray, " pos"]
    embed: Float[np.ndarray, "pos d_model"]
    residual: Float[np.ndarray, "pos d_model"] | None
    queries: Float[np.ndarray, "layer head pos d_head"] | None
    keys: Float[np.ndarray, "layer head pos d_head"] | None
    values: Float[np.ndarray, "layer head pos d_value"] | None
    scores: Float[np.ndarray, "layer head query key"] | None
    attention: Float[np.ndarray, "layer head query key"] | None
    head_updates: Float[np.ndarray, "layer head pos d_model"] | None
    contextual: Float[np.ndarray, "pos d_model"] | None
    hidden: Float[np.ndarray, "pos hidden"]
    logits: Float[np.ndarray, "pos vocab"]


@runtime_checkable
class LanguageModel(Protocol):
    """The interface of a family.

    Attributes:
        family: Name for `--family`; the module's name.
        embedding_name: State name of the table whose rows are the lookup rows.
        slides: Whether generation goes on past the context, over the last tokens.
        trained_on: The positions of a text whose predictions were trained.
        config: Sizes, a frozen dataclass.
        weights: Read-only arrays by state name.
    """

    family: ClassVar[str]
    embedding_name: ClassVar[str]
    slides: ClassVar[bool]
    trained_on: ClassVar[Literal["last", "every"]]
    config: Any
    weights: Weights

    @property
    def kind(self) -> str:
        """Return the checkpoint's `kind`."""
        ...

    @property
    def n_layer(self) -> int:
        """Return the number of attention layers, 0 for the MLP."""
        ...

    @property
    def n_head(self) -> int:
        """Return heads a layer, 0 for the MLP."""
        ...

    def hidden_readout(self) -> Float[np.ndarray, "vocab hidden"]:
        """Return what each hidden unit adds directly to the logits, per activation."""
        ...

    @classmethod
    def from_weights(
        cls, weights: Weights, *, n_head: int, context_length: int | None, positions: bool
    ) -> "LanguageModel":
        """Infer the sizes from the arrays, check every shape, build the model.

        Args:
            weights: Arrays by state name.
            n_head: What a file says of heads, and so on; a family takes what it needs.
            context_length: Of the window.
            positions: Whether positions are added.
        """
        ...

    def trace(self, ids: Int[np.ndarray, " pos"]) -> Trace:
        """Run one probe and keep everything."""
        ...

    def last_logits(
        self, ids: Int[np.ndarray, "batch pos"], *, heads_off: HeadSet = ()
    ) -> Float[np.ndarray, "batch vocab"]:
        """Return next-token logits at the last position of each text, all in one forward."""
        ...

    def last_attention(
        self, ids: Int[np.ndarray, " pos"]
    ) -> Float[np.ndarray, "layer head key"] | None:
        """Return the last query's row of `trace(ids).attention`; None without attention."""
        ...

    def readout(
        self, contextual: Float[np.ndarray, "batch d_model"]
    ) -> Float[np.ndarray, "batch vocab"]:
        """Return the logits that the layers after attention make of residual rows.

        Raises:
            CheckpointError: The family has no residual stream.
        """
        ...

    def logits_without(
        self, trace: Trace, position: int, sets: Sequence[HeadSet]
    ) -> Float[np.ndarray, "sets vocab"]:
        """Return the logits at a position of a trace with each set of heads writing zero.

        Raises:
            CheckpointError: The family has no heads.
        """
        ...

    def numbers_of(self, length: int) -> int:
        """Return about how many numbers one text holds in `last_logits`, its logits apart."""
        ...


def freeze(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return float64 copies of `weights` that nobody can write to.

    Files and training hold float32; float64 costs a lens 15 to 40% more time and keeps its
    numbers equal to the formulas' to well under any digit that is shown.
    """
    frozen: dict[str, np.ndarray] = {}
    for name, array in weights.items():
        own = np.array(array, dtype=np.float64, order="C")
        own.setflags(write=False)
        frozen[name] = own
    return frozen


def count_parameters(weights: Weights) -> int:
    """Return the number of weights, every stored matrix counted."""
    return sum(array.size for array in weights.values())


def parameters_of(config: Any) -> int:
    """Return the number of weights of a model that is still to be built.

    Args:
        config: Sizes of a family: `shapes`.
    """
    return sum(math.prod(shape) for shape in config.shapes.values())


def check_shapes(weights: Weights, expected: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse missing or extra names and wrong shapes, naming both shapes.

    Raises:
        CheckpointError: The first difference found.
    """
    missing = [name for name in expected if name not in weights]
    if missing:
        raise CheckpointError(f"weights are missing: {', '.join(missing)}")
    extra = [name for name in weights if name not in expected]
    if extra:
        raise CheckpointError(f"unexpected weights: {', '.join(extra[:5])}")
    for name, shape in expected.items():
        if weights[name].shape != shape:
            raise CheckpointError(f"{name} has shape {weights[name].shape}, expected {shape}")


def matrix(weights: Weights, name: str) -> np.ndarray:
    """Return a two-dimensional weight by name, or refuse."""
    if name not in weights:
        raise CheckpointError(f"weights are missing: {name}")
    if weights[name].ndim != 2:
        raise CheckpointError(f"{name} has shape {weights[name].shape}, expected a matrix")
    return weights[name]


def check_sizes(**sizes: tuple[int, int]) -> None:
    """Refuse sizes outside 1..limit; each keyword gives (size, limit)."""
    for name, (size, limit) in sizes.items():
        if not 1 <= size <= limit:
            raise ConfigError(f"{name.replace('_', ' ')} must be 1 to {limit:,}, not {size:,}")


def check_budget(config: Any, *, n_head: int = 0) -> None:
    """Refuse a model that would be too large for a page: a small file can ask for much.

    Args:
        config: Sizes of a family: `shapes`, `context_length`, `d_model`, `hidden`,
            `vocab_size`.
        n_head: Heads of all layers together.

    Raises:
        ConfigError: Which product of sizes is beyond its limit.
    """
    check_sizes(parameters=(parameters_of(config), MAX_PARAMETERS))
    context, width = config.context_length, config.d_model
    products = {
        # A softmax makes several copies of the scores; an ablation is computed in parts.
        "context x context x heads": (context * context * n_head, _MAX_NUMBERS // 4),
        "context x context x width": (context * context * width, _MAX_NUMBERS * 4),
        "context x heads x width": (context * n_head * width, _MAX_NUMBERS),
        "context x hidden": (context * config.hidden, _MAX_NUMBERS),
        "context x vocabulary": (context * config.vocab_size, _MAX_NUMBERS),
    }
    for name, (size, limit) in products.items():
        if size > limit:
            raise ConfigError(f"too large to look into: {name} is {size:,}; the limit is {limit:,}")


def check_probe(ids: Int[np.ndarray, "*batch pos"], context_length: int) -> None:
    """Refuse an empty probe or one longer than the window.

    Raises:
        TextError: With both lengths.
    """
    if not 1 <= ids.shape[-1] <= context_length:
        raise TextError(
            f"the model reads 1 to {context_length} tokens at once, not {ids.shape[-1]}"
        )


def prefixes(ids: Int[np.ndarray, " pos"]) -> Iterator[Int[np.ndarray, " prefix"]]:
    """Yield the text up to and including each position."""
    for end in range(1, len(ids) + 1):
        yield ids[:end]
