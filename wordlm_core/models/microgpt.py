"""microgpt: the GPT that Andrej Karpathy wrote in one file, vectorised, any size.

    x      = rmsnorm(wte[id] + wpe[position])
    x      = x + attn_wo(attention(rmsnorm(x)))            for each layer
    x      = x + mlp_fc2(relu(mlp_fc1(rmsnorm(x))))
    logits = lm_head(x)

No biases, no learned scale in rmsnorm, positions counted from the start of the text. Every
position is trained to predict the next token. `scalar_gpt` says the same number by number; the
tests hold this file to it.

Forward and backward are written out here, once, for training and lenses alike: at this size
the cost of a step is the number of array operations, not their arithmetic.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from wordlm_core.errors import ConfigError
from wordlm_core.models import base
from wordlm_core.models.base import HeadSet, Trace, Weights
from wordlm_core.vocabulary import MAX_VOCAB_SIZE

KINDS = ("microgpt",)
READS = "items"
DEFAULTS: Mapping[str, Any] = {
    "steps": 1000,
    "seed": 42,
    "n_head": 4,
    "d_model": 16,
    "hidden": None,  # four times the width
    "context_length": 16,
    "lr": 0.01,
    "weight_decay": 0.0,
    "batch": 1,
    "tokens": "char",
}
MAX_LAYERS = 64
RMS_EPSILON = 1e-5
_INIT_DEVIATION = 0.08
_AFTER_QKV = ("attn_wo", "mlp_fc1", "mlp_fc2")


@dataclass(frozen=True)
class MicroGPTConfig:
    """Sizes of a microgpt.

    Attributes:
        vocab_size: Rows of `wte`.
        context_length: Rows of `wpe`: the longest text.
        d_model: Width of the residual stream.
        hidden: Width of the MLP; four times `d_model` in the original.
        n_head: Heads a layer; divides `d_model`.
        n_layer: Layers.
        positions: Whether `wpe` is added. It is stored and counted either way.
    """

    vocab_size: int
    context_length: int
    d_model: int
    hidden: int
    n_head: int
    n_layer: int
    positions: bool = True

    def __post_init__(self) -> None:
        """Refuse sizes out of range and heads that do not divide the width."""
        base.check_sizes(
            vocab_size=(self.vocab_size, MAX_VOCAB_SIZE),
            context_length=(self.context_length, base.MAX_CONTEXT),
            width=(self.d_model, base.MAX_WIDTH),
            hidden=(self.hidden, base.MAX_HIDDEN),
            heads=(self.n_head, base.MAX_HEADS),
            layers=(self.n_layer, MAX_LAYERS),
        )
        if self.d_model % self.n_head:
            raise ConfigError(f"{self.n_head} heads do not divide a width of {self.d_model}")
        base.check_budget(self, n_head=self.n_head * self.n_layer)

    @property
    def d_head(self) -> int:
        """Return the width of one head."""
        return self.d_model // self.n_head

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every weight, in the order in which they are drawn."""
        width = self.d_model
        shapes: dict[str, tuple[int, ...]] = {
            "wte": (self.vocab_size, width),
            "wpe": (self.context_length, width),
            "lm_head": (self.vocab_size, width),
        }
        for i in range(self.n_layer):
            shapes |= {f"layer{i}.attn_w{name}": (width, width) for name in "qkvo"}
            shapes |= {
                f"layer{i}.mlp_fc1": (self.hidden, width),
                f"layer{i}.mlp_fc2": (width, self.hidden),
            }
        return shapes


class Block(NamedTuple):
    """The matrices of one layer, those of queries, keys and values in one."""

    qkv: Float[np.ndarray, "three_d_model d_model"]
    wo: Float[np.ndarray, "d_model d_model"]
    fc1: Float[np.ndarray, "hidden d_model"]
    fc2: Float[np.ndarray, "d_model hidden"]


class Network(NamedTuple):
    """Sizes and weights, as `forward` and `backward` read them.

    Attributes:
        config: Sizes.
        weights: By state name; `wte`, `wpe` and `lm_head` are read.
        blocks: The layers' matrices.
    """

    config: MicroGPTConfig
    weights: Weights
    blocks: tuple[Block, ...]


class LayerPass(NamedTuple):
    """What one layer computed, in the order of computation; axes as in `base`.

    Attributes:
        stream: Residual stream that comes in.
        scale: What rmsnorm multiplies it by.
        normed: rmsnorm(stream), which attention reads.
        queries: By head.
        keys: By head.
        values: By head.
        scores: q.k / sqrt(d_head), before the mask.
        attention: After mask and softmax.
        mixed: Weighted sums of values, heads side by side.
        contextual: stream + attn_wo(mixed).
        mlp_scale: What the second rmsnorm multiplies by.
        mlp_normed: rmsnorm(contextual), which the MLP reads.
        hidden: relu(mlp_fc1(mlp_normed)).
        out: contextual + mlp_fc2(hidden).
    """

    stream: Float[np.ndarray, "*batch pos d_model"]
    scale: Float[np.ndarray, "*batch pos 1"]
    normed: Float[np.ndarray, "*batch pos d_model"]
    queries: Float[np.ndarray, "*batch head pos d_head"]
    keys: Float[np.ndarray, "*batch head pos d_head"]
    values: Float[np.ndarray, "*batch head pos d_head"]
    scores: Float[np.ndarray, "*batch head query key"]
    attention: Float[np.ndarray, "*batch head query key"]
    mixed: Float[np.ndarray, "*batch pos d_model"]
    contextual: Float[np.ndarray, "*batch pos d_model"]
    mlp_scale: Float[np.ndarray, "*batch pos 1"]
    mlp_normed: Float[np.ndarray, "*batch pos d_model"]
    hidden: Float[np.ndarray, "*batch pos hidden"]
    out: Float[np.ndarray, "*batch pos d_model"]


class Forward(NamedTuple):
    """One forward pass, everything kept.

    Attributes:
        embed: Rows of `wte`.
        summed: Rows of `wte` plus rows of `wpe`, where positions are added.
        scale: What the first rmsnorm multiplies `summed` by.
        layers: One entry a layer.
    """

    embed: Float[np.ndarray, "*batch pos d_model"]
    summed: Float[np.ndarray, "*batch pos d_model"]
    scale: Float[np.ndarray, "*batch pos 1"]
    layers: tuple[LayerPass, ...]

    @property
    def out(self) -> Float[np.ndarray, "*batch pos d_model"]:
        """Return the rows that `lm_head` reads."""
        return self.layers[-1].out


class MicroGPTModel:
    """A microgpt with read-only weights."""

    family: ClassVar[str] = "microgpt"
    embedding_name: ClassVar[str] = "wte"
    slides: ClassVar[bool] = False
    trained_on: ClassVar[Literal["last", "every"]] = "every"
    kind = "microgpt"

    def __init__(self, config: MicroGPTConfig, weights: Mapping[str, np.ndarray]) -> None:
        base.check_shapes(weights, config.shapes)
        self.config = config
        self.weights: Weights = base.freeze(weights)
        stacked = [
            Block(
                np.concatenate([self.weights[f"layer{i}.attn_w{name}"] for name in "qkv"]),
                *(self.weights[f"layer{i}.{name}"] for name in _AFTER_QKV),
            )
            for i in range(config.n_layer)
        ]
        self.network = Network(config, self.weights, tuple(stacked))

    @property
    def n_head(self) -> int:
        """Return the number of heads a layer."""
        return self.config.n_head

    @property
    def n_layer(self) -> int:
        """Return the number of layers."""
        return self.config.n_layer

    @classmethod
    def from_weights(
        cls, weights: Weights, *, n_head: int, positions: bool = True, **_: Any
    ) -> "MicroGPTModel":
        """Infer the sizes from the arrays and build the model.

        Args:
            weights: Arrays by state name.
            n_head: Heads a layer; the arrays cannot tell.
            positions: Whether `wpe` is added; the arrays cannot tell.
        """
        vocab_size, d_model = base.matrix(weights, "wte").shape
        config = MicroGPTConfig(
            vocab_size=vocab_size,
            context_length=base.matrix(weights, "wpe").shape[0],
            d_model=d_model,
            hidden=base.matrix(weights, "layer0.mlp_fc1").shape[0],
            n_head=n_head,
            n_layer=sum(1 for name in weights if name.endswith(".attn_wq")),
            positions=positions,
        )
        return cls(config, weights)

    def forward(self, ids: Int[np.ndarray, "*batch pos"], *, heads_off: HeadSet = ()) -> Forward:
        """Run texts of equal length and keep everything; see the module's `forward`."""
        base.check_probe(ids, self.config.context_length)
        return forward(self.network, ids, heads_off)

    @base.quiet_overflow
    def trace(self, ids: Int[np.ndarray, " pos"]) -> Trace:
        """Run one probe and keep what every lens reads."""
        run = self.forward(ids)
        layers, last = run.layers, run.layers[-1]
        return Trace(
            ids=ids,
            embed=run.embed,
            residual=last.stream,
            queries=np.stack([layer.queries for layer in layers]),
            keys=np.stack([layer.keys for layer in layers]),
            values=np.stack([layer.values for layer in layers]),
            scores=np.stack([layer.scores for layer in layers]),
            attention=np.stack([layer.attention for layer in layers]),
            head_updates=np.stack(
                [
                    (layer.attention @ layer.values) @ self._output_by_head(block)
                    for layer, block in zip(layers, self.network.blocks, strict=True)
                ]
            ),
            contextual=last.contextual,
            hidden=last.hidden,
            logits=run.out @ self.weights["lm_head"].T,
        )

    @base.quiet_overflow
    def last_logits(
        self, ids: Int[np.ndarray, "batch pos"], *, heads_off: HeadSet = ()
    ) -> Float[np.ndarray, "batch vocab"]:
        """Return next-token logits after each text; heads in `heads_off` write zero."""
        return self.forward(ids, heads_off=heads_off).out[:, -1] @ self.weights["lm_head"].T

    @base.quiet_overflow
    def last_attention(
        self, ids: Int[np.ndarray, " pos"]
    ) -> Float[np.ndarray, "layer head key"] | None:
        """Return the last query's row of `trace(ids).attention`."""
        return np.stack([layer.attention[:, -1] for layer in self.forward(ids).layers])

    @base.quiet_overflow
    def readout(
        self, contextual: Float[np.ndarray, "batch d_model"]
    ) -> Float[np.ndarray, "batch vocab"]:
        """Return the logits that the last MLP and the head make of residual rows."""
        block = self.network.blocks[-1]
        _, normed = rmsnorm(contextual)
        hidden = np.maximum(normed @ block.fc1.T, 0)
        return (contextual + hidden @ block.fc2.T) @ self.weights["lm_head"].T

    @base.quiet_overflow
    def hidden_readout(self) -> Float[np.ndarray, "vocab hidden"]:
        """Return what each hidden unit of the last layer adds to the logits, per activation."""
        return self.weights["lm_head"] @ self.network.blocks[-1].fc2

    @base.quiet_overflow
    def logits_without(
        self, trace: Trace, position: int, sets: Sequence[HeadSet]
    ) -> Float[np.ndarray, "sets vocab"]:
        """Return the logits at a position with each set of heads writing zero."""
        rows = [self.forward(trace.ids, heads_off=off).out[position] for off in sets]
        return np.stack(rows) @ self.weights["lm_head"].T

    def numbers_of(self, length: int) -> int:
        """Return about how many numbers one text of this length holds in a forward."""
        config = self.config
        per_layer = 10 * config.d_model + 2 * config.hidden + 3 * config.n_head * length
        return length * config.n_layer * per_layer

    def _output_by_head(self, block: Block) -> Float[np.ndarray, "head d_head d_model"]:
        return block.wo.T.reshape(self.config.n_head, self.config.d_head, -1)


def rmsnorm(
    x: Float[np.ndarray, "*batch width"],
) -> tuple[Float[np.ndarray, "*batch 1"], Float[np.ndarray, "*batch width"]]:
    """Return 1 / sqrt(mean(x^2) + 1e-5) of each row, and the row times it.

    Raises:
        CheckpointError: The square of a row overflows.

    Source:
        Zhang and Sennrich 2019, arXiv:1910.07467, without the learned gain.
    """
    # Where the square overflows, the row would turn to zeros without a word.
    square = base.require_finite(np.vecdot(x, x)[..., None])
    scale = (square / x.shape[-1] + RMS_EPSILON) ** -0.5
    return scale, x * scale


def forward(
    network: Network, ids: Int[np.ndarray, "*batch pos"], heads_off: HeadSet = ()
) -> Forward:
    """Run texts of equal length through all layers, up to the head.

    Args:
        network: Sizes and weights.
        ids: Token ids.
        heads_off: (layer, head) pairs whose mix is set to zero.
    """
    config, weights, blocks = network
    length = ids.shape[-1]
    embed = weights["wte"][ids]
    summed = embed + weights["wpe"][:length] if config.positions else embed
    scale, stream = rmsnorm(summed)
    layers: list[LayerPass] = []
    for i, block in enumerate(blocks):
        off = [head for layer, head in heads_off if layer == i]
        layers.append(_layer(config, block, stream, off))
        stream = layers[-1].out
    return Forward(embed, summed, scale, tuple(layers))


def _layer(
    config: MicroGPTConfig,
    block: Block,
    stream: Float[np.ndarray, "*batch pos d_model"],
    off: Sequence[int],
) -> LayerPass:
    length = stream.shape[-2]
    scale, normed = rmsnorm(stream)
    apart = (normed @ block.qkv.T).reshape(*stream.shape[:-1], 3, config.n_head, config.d_head)
    queries, keys, values = np.moveaxis(np.moveaxis(apart, -3, 0), -2, -3)
    scores = queries @ keys.swapaxes(-1, -2) / math.sqrt(config.d_head)
    attention = base.softmax(scores + future(length))
    by_head = attention @ values
    if off:
        by_head[..., off, :, :] = 0
    mixed = by_head.swapaxes(-2, -3).reshape(stream.shape)
    contextual = stream + mixed @ block.wo.T
    mlp_scale, mlp_normed = rmsnorm(contextual)
    hidden = np.maximum(mlp_normed @ block.fc1.T, 0)
    return LayerPass(
        stream,
        scale,
        normed,
        queries,
        keys,
        values,
        scores,
        attention,
        mixed,
        contextual,
        mlp_scale,
        mlp_normed,
        hidden,
        contextual + hidden @ block.fc2.T,
    )


def future(length: int) -> Float[np.ndarray, "query key"]:
    """Return 0 where a query may look and -inf at the keys after it."""
    return _mask(1 << (length - 1).bit_length())[:length, :length]


@cache  # one a power of two: together less than two of the largest
def _mask(size: int) -> Float[np.ndarray, "query key"]:
    mask = np.triu(np.full((size, size), -np.inf), k=1)
    mask.setflags(write=False)
    return mask


# -- training


def as_network(config: MicroGPTConfig, flat: Float[np.ndarray, " parameters"]) -> Network:
    """Return one vector of numbers as weights: every matrix is a view of it, in state order.

    An optimiser then works on all weights at once, in place.
    """
    weights: dict[str, np.ndarray] = {}
    qkv: list[np.ndarray] = []
    start = 0
    for name, shape in config.shapes.items():
        end = start + math.prod(shape)
        weights[name] = flat[start:end].reshape(shape)
        if name.endswith(".attn_wq"):  # wk and wv follow it, so the three are one matrix
            stacked = flat[start : start + 3 * (end - start)].reshape(-1, config.d_model)
            qkv.append(stacked)
        start = end
    blocks = [
        Block(stacked, *(weights[f"layer{i}.{name}"] for name in _AFTER_QKV))
        for i, stacked in enumerate(qkv)
    ]
    return Network(config, weights, tuple(blocks))


def backward(
    network: Network,
    run: Forward,
    ids: Int[np.ndarray, " pos"],
    of_logits: Float[np.ndarray, "pos vocab"],
    into: Network,
) -> None:
    """Write the gradients of all weights, given those of the logits.

    Args:
        network: Sizes and weights.
        run: Their `forward`.
        ids: The text of that run.
        of_logits: Gradient of the loss by the logits.
        into: Arrays shaped like the weights, whose content is overwritten.
    """
    config, weights, blocks = network
    np.matmul(of_logits.T, run.out, out=into.weights["lm_head"])
    grad = of_logits @ weights["lm_head"]
    layers = zip(run.layers, blocks, into.blocks, strict=True)
    for layer, block, own in reversed(list(layers)):
        grad = _layer_backward(config, block, layer, grad, own)
    grad = _rmsnorm_backward(run.scale, run.layers[0].stream, grad)
    of_wte, of_wpe = into.weights["wte"], into.weights["wpe"]
    of_wte.fill(0)
    np.add.at(of_wte, ids, grad)
    of_wpe.fill(0)
    if config.positions:
        of_wpe[: len(ids)] = grad


def _layer_backward(
    config: MicroGPTConfig,
    block: Block,
    layer: LayerPass,
    grad: Float[np.ndarray, "pos d_model"],
    into: Block,
) -> Float[np.ndarray, "pos d_model"]:
    np.matmul(grad.T, layer.hidden, out=into.fc2)
    of_hidden = (grad @ block.fc2) * (layer.hidden > 0)
    np.matmul(of_hidden.T, layer.mlp_normed, out=into.fc1)
    grad = grad + _rmsnorm_backward(layer.mlp_scale, layer.mlp_normed, of_hidden @ block.fc1)
    np.matmul(grad.T, layer.mixed, out=into.wo)
    length = len(grad)
    of_mixed = (grad @ block.wo).reshape(length, config.n_head, config.d_head).swapaxes(0, 1)
    through = of_mixed @ layer.values.swapaxes(1, 2)
    # Softmax: d scores = a * (d a - sum(a * d a)); masked keys have a = 0.
    through -= np.vecdot(through, layer.attention)[..., None]
    through *= layer.attention
    through /= math.sqrt(config.d_head)
    of_qkv = np.empty((length, 3, config.n_head, config.d_head))
    of_qkv[:, 0] = (through @ layer.keys).swapaxes(0, 1)
    of_qkv[:, 1] = (through.swapaxes(1, 2) @ layer.queries).swapaxes(0, 1)
    of_qkv[:, 2] = (layer.attention.swapaxes(1, 2) @ of_mixed).swapaxes(0, 1)
    flat = of_qkv.reshape(length, -1)
    np.matmul(flat.T, layer.normed, out=into.qkv)
    return grad + _rmsnorm_backward(layer.scale, layer.normed, flat @ block.qkv)


def _rmsnorm_backward(
    scale: Float[np.ndarray, "pos 1"],
    normed: Float[np.ndarray, "pos d_model"],
    grad: Float[np.ndarray, "pos d_model"],
) -> Float[np.ndarray, "pos d_model"]:
    along = np.vecdot(grad, normed)[:, None] / normed.shape[1]
    return scale * (grad - normed * along)


def initial_weights(config: MicroGPTConfig, rng: random.Random) -> dict[str, np.ndarray]:
    """Draw every weight from N(0, 0.08), in state order, row by row."""
    return {
        name: np.array([rng.gauss(0, _INIT_DEVIATION) for _ in range(math.prod(shape))]).reshape(
            shape
        )
        for name, shape in config.shapes.items()
    }


def config_for(  # noqa: PLR0913 (one keyword a size)
    *,
    vocab_size: int,
    context_length: int,
    d_model: int,
    hidden: int | None,
    n_head: int,
    n_layer: int,
    positions: bool,
) -> MicroGPTConfig:
    """Return the config for training options; without `hidden`, four times the width."""
    return MicroGPTConfig(
        vocab_size=vocab_size,
        context_length=context_length,
        d_model=d_model,
        hidden=4 * d_model if hidden is None else hidden,
        n_head=n_head,
        n_layer=n_layer,
        positions=positions,
    )


def build(config: MicroGPTConfig, weights: Mapping[str, np.ndarray]) -> MicroGPTModel:
    """Return the model of a config."""
    return MicroGPTModel(config, weights)


MODEL = MicroGPTModel
