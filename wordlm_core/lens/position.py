"""One position: the forward pass of one token of microgpt, step by step.

The steps carry the lines of a plain Python program that computes them, number by number. The
lines are no decoration: with `HELPERS` before them they run, and the tests run them.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from wordlm_core.errors import CheckpointError, ConfigError, TextError
from wordlm_core.lens._common import largest, position_in
from wordlm_core.lens.ablation import kl_divergence
from wordlm_core.models import base, microgpt
from wordlm_core.models.base import LanguageModel
from wordlm_core.models.microgpt import Block, Forward, LayerPass, MicroGPTConfig, MicroGPTModel
from wordlm_core.vocabulary import Probe

Numbers = Sequence[int | float]

LIKELIEST = 5
HAND_KEYS, HAND_WIDTH, _HAND_LIMIT = 4, 4, 1000

HELPERS = """
from math import exp, log


def dot(a, b):
    return sum(m * n for m, n in zip(a, b))


def linear(x, matrix):
    return [dot(row, x) for row in matrix]


def add(a, b):
    return [m + n for m, n in zip(a, b)]


def softmax(row):
    powers = [exp(n - max(row)) for n in row]
    return [power / sum(powers) for power in powers]


heads = [slice(i, i + d_head) for i in range(0, d_model, d_head)]
"""


@dataclass(frozen=True)
class Step:
    """One step of the forward pass at a position.

    Attributes:
        name: In words; unique within its layer.
        symbol: The Python expression that holds the numbers once the line has run.
        layer: Of the model, or None before the first and after the last one.
        code: The line or lines that compute it.
        why: What the step is good for, in one sentence.
        axes: Names of the axes of `values`.
        values: The numbers, read-only; the last axis is the vector.
        aside: Another number of the step, with its name: the scale of an rmsnorm, or how many
            units a relu leaves on.
        reads: Indices of the earlier steps whose numbers it uses.
    """

    name: str
    symbol: str
    layer: int | None
    code: str
    why: str
    axes: tuple[str, ...]
    values: Float[np.ndarray, "..."]
    aside: tuple[str, float] | None
    reads: tuple[int, ...]


@dataclass(frozen=True)
class Walk:
    """The forward pass of one position.

    Attributes:
        tokens: Of the whole text.
        position: Where the walk is.
        steps: In the order of the code.
        probs: Probability of each next token; the index is the token's id.
        likeliest: Ids of the likeliest next tokens, by probability falling.
        target: Id of the token that follows in the text, or None at its end.
        loss: Minus the log of the target's probability, in nats; None without a target.
    """

    unit: ClassVar[str] = "nats"

    tokens: tuple[str, ...]
    position: int
    steps: tuple[Step, ...]
    probs: Float[np.ndarray, " vocab"]
    likeliest: tuple[int, ...]
    target: int | None
    loss: float | None

    def find(self, name: str, layer: int | None = None) -> Step:
        """Return a step by its name and layer.

        Raises:
            ConfigError: There is none.
        """
        for step in self.steps:
            if (step.name, step.layer) == (name, layer):
                return step
        raise ConfigError(f"there is no step {name!r} in layer {layer}")


@dataclass(frozen=True)
class Length:
    """How many numbers a vector has, and why."""

    name: str
    length: int
    why: str


@dataclass(frozen=True)
class Swap:
    """What another token at one place changed at a position: an intervention.

    Attributes:
        place: Where the token was changed.
        before: Id that stood there.
        after: Id that stands there now.
        changes: Largest absolute change of each step's numbers, aligned with the steps of
            `walk`, the loss left out: it compares with the next token, which the model does
            not see.
        probs_before: Of the next tokens.
        probs_after: The same after the change.
        kl: KL(before || after) in nats.
    """

    unit: ClassVar[str] = "nats"

    place: int
    before: int
    after: int
    changes: tuple[float, ...]
    probs_before: Float[np.ndarray, " vocab"]
    probs_after: Float[np.ndarray, " vocab"]
    kl: float


@dataclass(frozen=True)
class Mixing:
    """What W_O does at a position, by putting the identity in its place: an intervention.

    Attributes:
        layer: Whose W_O.
        apart: What each head adds to the residual stream under the identity: its own slots.
        mixed: What each head adds through the real W_O; the sum over heads is the update.
        elsewhere: Share of the squared length of `mixed` outside the heads' own slots, or
            None where all is zero.
        probs: Of the next tokens, with the real W_O.
        probs_identity: The same with the identity.
        kl: KL(real || identity) in nats.
    """

    unit: ClassVar[str] = "nats"

    layer: int
    apart: Float[np.ndarray, "head d_model"]
    mixed: Float[np.ndarray, "head d_model"]
    elsewhere: float | None
    probs: Float[np.ndarray, " vocab"]
    probs_identity: Float[np.ndarray, " vocab"]
    kl: float


@dataclass(frozen=True)
class HandAttention:
    """One query over a few keys, small enough to check by hand.

    Attributes:
        query: q.
        keys: One row a key.
        values: One row a key.
        dots: q.k.
        scaled: q.k / sqrt(width).
        powers: e to the (scaled - largest scaled): what the softmax adds up.
        weights: Softmax of `scaled`.
        parts: Each value times its weight.
        output: The sum of the parts.
    """

    query: Float[np.ndarray, " width"]
    keys: Float[np.ndarray, "key width"]
    values: Float[np.ndarray, "key value"]
    dots: Float[np.ndarray, " key"]
    scaled: Float[np.ndarray, " key"]
    powers: Float[np.ndarray, " key"]
    weights: Float[np.ndarray, " key"]
    parts: Float[np.ndarray, "key value"]
    output: Float[np.ndarray, " value"]


@base.quiet_overflow
def walk(model: LanguageModel, probe: Probe, position: int) -> Walk:
    """Return every vector of the forward pass at one position, in the order of the code.

    The numbers are those of the whole text's forward pass; only the KV cache reaches beyond
    the position, to the ones before it. They say what is computed, not what the prediction
    depends on: `swap` and `without_wo` change something and compute again.

    Args:
        model: A microgpt.
        probe: The text.
        position: From the left, or from the end where negative.

    Raises:
        CheckpointError: Another family, or numbers that overflow.
        TextError: There is no such position.
    """
    model = _require_microgpt(model)
    position = position_in(probe, position)
    run = model.forward(probe.ids)
    logits = model.weights["lm_head"] @ run.out[position]
    probs = _frozen(base.softmax(logits))
    likeliest = tuple(int(i) for i in largest(probs, LIKELIEST))
    target = int(probe.ids[position + 1]) if position + 1 < len(probe.ids) else None
    loss = None if target is None else float(-base.log_softmax(logits)[target])
    numbers = [
        *_numbers_before(model, run, position),
        *(
            each
            for layer, block in zip(run.layers, model.network.blocks, strict=True)
            for each in _numbers_of_layer(layer, block, position)
        ),
        (logits, None),
        (probs, None),
        (probs[list(likeliest)], None),
        *([] if loss is None else [(np.array([loss]), None)]),
    ]
    steps = _steps(_lines(model.config, loss is not None), numbers)
    return Walk(probe.tokens, position, steps, probs, likeliest, target, loss)


def lengths(config: MicroGPTConfig, position: int) -> tuple[Length, ...]:
    """Return how long the vectors at a position are, by rule, without running the model.

    Args:
        config: Sizes.
        position: From the left.
    """
    width, d_head, seen = config.d_model, config.d_head, position + 1
    back = f"the cache holds a key for each of the positions 0 to {position}"
    return (
        Length("Token embedding", width, f"a row of wte is as wide as the model: {width}."),
        Length("Query q", width, f"W_Q is {width} x {width}: {width} numbers in, {width} out."),
        Length(
            "One head's part of q",
            d_head,
            f"{config.n_head} heads share the {width} numbers: {width} / {config.n_head}.",
        ),
        Length("Keys in the cache", seen, f"{back}, its own among them."),
        Length("Scores of one head", seen, f"q meets every key once, and {back}."),
        Length("Attention of one head", seen, "softmax gives one share for each score."),
        Length(
            "Output of one head",
            d_head,
            f"a weighted sum of values is as long as one value: {d_head}, however many.",
        ),
        Length(
            "Heads side by side",
            width,
            f"{config.n_head} heads of {d_head} numbers each are joined to {width} again.",
        ),
        Length("Hidden units", config.hidden, f"fc1 has {config.hidden} rows, one for each unit."),
        Length(
            "Logits",
            config.vocab_size,
            f"lm_head has a row for each of the {config.vocab_size} tokens, <BOS> among them.",
        ),
    )


def swap(
    model: LanguageModel, probe: Probe, position: int, *, place: int, replacement: int
) -> Swap:
    """Return what changes at a position when another token stands at a place.

    An intervention: the whole model is computed again. A place after the position changes
    nothing, exactly: keys and values of later positions never enter.

    Args:
        model: A microgpt.
        probe: The text.
        position: Where to look.
        place: Where to change the token.
        replacement: Id of the new token.

    Raises:
        CheckpointError: Another family, or numbers that overflow.
        ConfigError: There is no such id.
        TextError: There is no such position or place.
    """
    model = _require_microgpt(model)
    place = position_in(probe, place)
    if not 0 <= replacement < model.config.vocab_size:
        raise ConfigError(
            f"there is no token {replacement}: ids go from 0 to {model.config.vocab_size - 1}"
        )
    ids = probe.ids.copy()
    ids[place] = replacement
    before = walk(model, probe, position)
    after = walk(model, replace(probe, ids=ids), position)
    return Swap(
        place,
        int(probe.ids[place]),
        replacement,
        tuple(
            float(np.abs(old.values - new.values).max())
            for old, new in zip(before.steps, after.steps, strict=True)
            if old.name != _LOSS.name
        ),
        before.probs,
        after.probs,
        float(kl_divergence(before.find("logits").values, after.find("logits").values)),
    )


@base.quiet_overflow
def without_wo(model: LanguageModel, probe: Probe, position: int, *, layer: int = 0) -> Mixing:
    """Return what a layer's heads write with and without W_O, and what that does.

    Without it (the identity in its place, in this layer alone, at every position) a head can
    write into its own slots of the residual stream only. The KL says what the trained
    model loses; a model trained without W_O from the start would adapt.

    Args:
        model: A microgpt.
        probe: The text.
        position: Where to look.
        layer: 0 and up.

    Raises:
        CheckpointError: Another family, or numbers that overflow.
        ConfigError: There is no such layer.
        TextError: There is no such position.
    """
    model = _require_microgpt(model)
    position = position_in(probe, position)
    config, weights, blocks = model.network
    if not 0 <= layer < config.n_layer:
        raise ConfigError(f"there is no layer {layer}: the model has {config.n_layer}")
    identity = blocks[layer]._replace(wo=np.eye(config.d_model))
    replaced = (*blocks[:layer], identity, *blocks[layer + 1 :])
    run = model.forward(probe.ids)
    other = microgpt.forward(microgpt.Network(config, weights, replaced), probe.ids)
    logits = weights["lm_head"] @ run.out[position]
    logits_identity = weights["lm_head"] @ other.out[position]
    slots = np.repeat(np.eye(config.n_head), config.d_head, axis=1)
    apart = slots * run.layers[layer].mixed[position]
    mixed = apart @ blocks[layer].wo.T
    total = float((mixed**2).sum())
    return Mixing(
        layer,
        _frozen(apart),
        _frozen(mixed),
        float((mixed**2 * (1 - slots)).sum()) / total if total else None,
        _frozen(base.softmax(logits)),
        _frozen(base.softmax(logits_identity)),
        float(kl_divergence(logits, logits_identity)),
    )


def hand_attention(
    query: Numbers, keys: Sequence[Numbers], values: Sequence[Numbers]
) -> HandAttention:
    """Return attention of one query over a few keys, every number of the formula kept.

    Args:
        query: 1 to 4 numbers.
        keys: 1 to 4 keys, as wide as the query.
        values: One for each key, 1 to 4 numbers each.

    Raises:
        TextError: What is wrong, and what is expected.
    """
    _check_count(len(query), "the query", "numbers")
    _check_count(len(keys), "the example", "keys", HAND_KEYS)
    if len(values) != len(keys):
        raise TextError(
            f"each key needs one value: there are {len(keys)} keys, {len(values)} values"
        )
    for number, key in enumerate(keys):
        if len(key) != len(query):
            raise TextError(
                f"key {number} has {len(key)} numbers and the query {len(query)}: q·k needs "
                "equally many"
            )
    for number, value in enumerate(values):
        _check_count(len(value), f"value {number}", "numbers")
        if len(value) != len(values[0]):
            raise TextError(f"value {number} is not as long as value 0: a sum needs equal lengths")
    q, k, v = (_hand_numbers(each) for each in (query, keys, values))
    dots = k @ q
    scaled = dots / math.sqrt(len(q))
    weights = base.softmax(scaled)
    parts = weights[:, None] * v
    powers = np.exp(scaled - base.peak(scaled))
    return HandAttention(q, k, v, dots, scaled, powers, weights, parts, parts.sum(axis=0))


# -- the lines of the program, in order


@dataclass(frozen=True)
class _Line:
    """What a step is, its numbers apart; `{i}` stands for the layer.

    `reads` are symbols: the latest steps that set them are meant.
    """

    name: str
    symbol: str
    code: str
    why: str
    axes: tuple[str, ...]
    reads: tuple[str, ...] = ()
    aside: str = ""


_RMSNORM = "scale = (dot(x, x) / len(x) + 1e-5) ** -0.5\n{out} = [scale * n for n in x]"
_CACHE = "keys[{i}], values[{i}]"
_EMBEDDING = _Line(
    "token embedding",
    "t",
    "t = wte[token]",
    "Looks up the row of the token: the same row wherever the token stands.",
    ("d_model",),
)
_POSITION = _Line(
    "position embedding",
    "p",
    "p = wpe[place]",
    "Looks up the row of the place, because attention alone cannot tell one order from another.",
    ("d_model",),
)
_NO_POSITION = _Line(
    "position embedding",
    "p",
    "p = [0.0] * len(t)",
    "Left out: this model was trained without positions, so its wpe is never added.",
    ("d_model",),
)
_BEFORE = (
    _Line(
        "sum",
        "x",
        "x = add(t, p)",
        "Puts what the token is and where it stands into one vector.",
        ("d_model",),
        ("t", "p"),
    ),
    _Line(
        "rmsnorm",
        "x",
        _RMSNORM.replace("{out}", "x"),
        "Scales the vector so that the mean of its squares is 1: a size the layers can count on.",
        ("d_model",),
        ("x",),
        "scale",
    ),
)
_LAYER = (
    _Line(
        "rmsnorm before attention",
        "h",
        _RMSNORM.replace("{out}", "h"),
        "Hands attention a scaled copy; x itself stays as it is and is added to later.",
        ("d_model",),
        ("x",),
        "scale",
    ),
    _Line(
        "query",
        "q",
        "q = linear(h, wq[{i}])",
        "What this position asks of itself and of those before it; each head owns a part.",
        ("head", "d_head"),
        ("h",),
    ),
    _Line(
        "key",
        "k",
        "k = linear(h, wk[{i}])",
        "What this position can be found by when a query asks.",
        ("head", "d_head"),
        ("h",),
    ),
    _Line(
        "value",
        "v",
        "v = linear(h, wv[{i}])",
        "What this position hands over to those that look at it.",
        ("head", "d_head"),
        ("h",),
    ),
    _Line(
        "KV cache",
        _CACHE,
        "keys[{i}].append(k)\nvalues[{i}].append(v)",
        "Adds its key and value to those of earlier positions, which never have to be computed "
        "again.",
        ("key or value", "position", "d_model"),
        ("k", "v"),
    ),
    _Line(
        "scores",
        "scores",
        "scores = [[dot(q[s], k[s]) / d_head**0.5 for k in keys[{i}]] for s in heads]",
        "Compares the query with every key in the cache, head by head; the root keeps the size "
        "of the scores apart from the width of a head.",
        ("head", "position"),
        ("q", _CACHE),
    ),
    _Line(
        "attention",
        "shares",
        "shares = [softmax(row) for row in scores]",
        "Turns each head's scores into shares that add up to 1.",
        ("head", "position"),
        ("scores",),
    ),
    _Line(
        "head outputs",
        "mixes",
        "columns = [list(zip(*[v[s] for v in values[{i}]])) for s in heads]\n"
        "mixes = [[dot(a, column) for column in part] for a, part in zip(shares, columns)]",
        "Mixes the values by these shares: here, and only here, does something of other "
        "positions come in.",
        ("head", "d_head"),
        ("shares", _CACHE),
    ),
    _Line(
        "heads side by side",
        "c",
        "c = sum(mixes, [])",
        "Joins the heads' outputs to one vector; each head still has its own slots.",
        ("d_model",),
        ("mixes",),
    ),
    _Line(
        "W_O",
        "o",
        "o = linear(c, wo[{i}])",
        "Lets every head write into every slot of x, and not just into its own.",
        ("d_model",),
        ("c",),
    ),
    _Line(
        "residual after attention",
        "x",
        "x = add(x, o)",
        "Adds what attention found to what was there: nothing is overwritten.",
        ("d_model",),
        ("x", "o"),
    ),
    _Line(
        "rmsnorm before the MLP",
        "h",
        _RMSNORM.replace("{out}", "h"),
        "Hands the MLP a scaled copy, as before.",
        ("d_model",),
        ("x",),
        "scale",
    ),
    _Line(
        "fc1",
        "u",
        "u = linear(h, fc1[{i}])",
        "Each hidden unit measures how far the vector goes in its own direction.",
        ("hidden",),
        ("h",),
    ),
    _Line(
        "relu",
        "r",
        "r = [max(0.0, n) for n in u]",
        "Sets what is below 0 to 0, so that each unit is on or off: without it fc1 and fc2 would "
        "be one matrix.",
        ("hidden",),
        ("u",),
        "units on",
    ),
    _Line(
        "fc2",
        "m",
        "m = linear(r, fc2[{i}])",
        "Each unit that is on writes its own direction, as strongly as it is on.",
        ("d_model",),
        ("r",),
    ),
    _Line(
        "residual after the MLP",
        "x",
        "x = add(x, m)",
        "Adds what the MLP made of it; this x is what comes next.",
        ("d_model",),
        ("x", "m"),
    ),
)
_AFTER = (
    _Line(
        "logits",
        "logits",
        "logits = linear(x, lm_head)",
        "One number for each token that could come next: the larger, the likelier.",
        ("vocab",),
        ("x",),
    ),
    _Line(
        "probabilities",
        "probs",
        "probs = softmax(logits)",
        "Turns the logits into probabilities, which add up to 1.",
        ("vocab",),
        ("logits",),
    ),
    _Line(
        "likeliest next tokens",
        "top",
        f"top = sorted(probs, reverse=True)[:{LIKELIEST}]",
        "The prediction of this position: the next token is drawn by these probabilities.",
        ("rank",),
        ("probs",),
    ),
)
_LOSS = _Line(
    "loss",
    "[loss]",
    "loss = -log(probs[target])",
    "How surprised the model is by the token that does follow: 0 if it was sure of it.",
    ("loss",),
    ("probs",),
)


def _lines(config: MicroGPTConfig, target: bool) -> Iterator[tuple[_Line, int | None]]:
    """Yield every line with its layer."""
    for line in (_EMBEDDING, _POSITION if config.positions else _NO_POSITION, *_BEFORE):
        yield line, None
    for layer in range(config.n_layer):
        for line in _LAYER:
            yield line, layer
    for line in (*_AFTER, *([_LOSS] if target else [])):
        yield line, None


# -- the numbers, from the fast forward pass

_Numbers = tuple[np.ndarray, float | None]


def _numbers_before(model: MicroGPTModel, run: Forward, position: int) -> list[_Numbers]:
    place = model.weights["wpe"][position]
    return [
        (run.embed[position], None),
        (place if model.config.positions else np.zeros_like(place), None),
        (run.summed[position], None),
        (run.layers[0].stream[position], float(run.scale[position, 0])),
    ]


def _numbers_of_layer(layer: LayerPass, block: Block, position: int) -> list[_Numbers]:
    seen = slice(0, position + 1)
    side_by_side = layer.mixed[position]
    n_head = layer.queries.shape[0]
    hidden = layer.hidden[position]
    numbers: list[_Numbers] = [
        (layer.normed[position], float(layer.scale[position, 0])),
        *((each[:, position], None) for each in (layer.queries, layer.keys, layer.values)),
        (np.stack([_joined(layer.keys[:, seen]), _joined(layer.values[:, seen])]), None),
        (layer.scores[:, position, seen], None),
        (layer.attention[:, position, seen], None),
        (side_by_side.reshape(n_head, -1), None),
        (side_by_side, None),
        (block.wo @ side_by_side, None),
        (layer.contextual[position], None),
        (layer.mlp_normed[position], float(layer.mlp_scale[position, 0])),
        (block.fc1 @ layer.mlp_normed[position], None),
        (hidden, float(np.count_nonzero(hidden))),
        (block.fc2 @ hidden, None),
        (layer.out[position], None),
    ]
    return numbers


def _joined(by_head: Float[np.ndarray, "head pos d_head"]) -> Float[np.ndarray, "pos d_model"]:
    return by_head.swapaxes(0, 1).reshape(by_head.shape[1], -1)


def _steps(
    lines: Iterator[tuple[_Line, int | None]], numbers: Sequence[_Numbers]
) -> tuple[Step, ...]:
    steps: list[Step] = []
    latest: dict[str, int] = {}
    for (line, layer), (values, aside) in zip(lines, numbers, strict=True):
        symbol = _filled(line.symbol, layer)
        step = Step(
            name=line.name,
            symbol=symbol,
            layer=layer,
            code=_filled(line.code, layer),
            why=line.why,
            axes=line.axes,
            values=_frozen(values),
            aside=None if aside is None else (line.aside, aside),
            reads=tuple(latest[_filled(read, layer)] for read in line.reads),
        )
        latest[symbol] = len(steps)
        steps.append(step)
    return tuple(steps)


def _filled(template: str, layer: int | None) -> str:
    return template.replace("{i}", str(layer))


# -- parts


def _require_microgpt(model: LanguageModel) -> MicroGPTModel:
    if not isinstance(model, MicroGPTModel):
        raise CheckpointError(
            "the walk follows the code of microgpt: choose a microgpt checkpoint for it"
        )
    return model


def _frozen(values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Return a read-only copy: results are shared, and a view would keep the whole pass."""
    own = np.array(values)
    own.setflags(write=False)
    return own


def _check_count(count: int, what: str, of: str, most: int = HAND_WIDTH) -> None:
    if not 1 <= count <= most:
        raise TextError(f"{what} can have 1 to {most} {of}, not {count}")


def _hand_numbers(rows: Sequence[Any]) -> Float[np.ndarray, "..."]:
    numbers = np.array(rows, dtype=np.float64)
    if not (np.abs(numbers) <= _HAND_LIMIT).all():  # NaN is not, either
        raise TextError(
            f"the numbers have to lie between -{_HAND_LIMIT:,} and {_HAND_LIMIT:,} here"
        )
    return numbers
