"""One position: the forward pass of one token of microgpt, step by step.

The steps carry the lines of a plain Python program that computes them, number by number, under
the names that a one-file microgpt uses. The lines are no decoration: with `HELPERS` before them
they run, and the tests run them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from wordlm_core.errors import ConfigError
from wordlm_core.lens._common import frozen, largest, position_in, require_microgpt
from wordlm_core.models import base
from wordlm_core.models.base import LanguageModel
from wordlm_core.models.microgpt import Block, Forward, LayerPass, MicroGPTConfig, MicroGPTModel
from wordlm_core.vocabulary import Probe

LIKELIEST = 5
WALKED = "the walk follows the code of microgpt"

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


starts = range(0, n_embd, head_dim)
heads = [slice(h, h + head_dim) for h in starts]
"""


@dataclass(frozen=True)
class Step:
    """One step of the forward pass at a position.

    Attributes:
        name: In words; unique within its layer.
        symbol: The Python expression that holds the numbers once the line has run.
        part: Of the model: `in`, `attention`, `MLP` or `out`.
        layer: Of the model, or None before the first and after the last one.
        code: The line or lines that compute it.
        why: What the step is good for, in one sentence.
        axes: Names of the axes of `values`.
        values: The numbers, read-only; the last axis is the vector.
        unit: Of the numbers: `share`, `probability`, `nats`, or none.
        aside: Another number of the step, with its name: the scale of an rmsnorm, or how many
            units a relu leaves on.
        reads: Indices of the earlier steps whose numbers it uses.
    """

    name: str
    symbol: str
    part: str
    layer: int | None
    code: str
    why: str
    axes: tuple[str, ...]
    values: Float[np.ndarray, "..."]
    unit: str
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
        target: Id of the token that follows in the text; at its end, of the one that ends it.
        loss: Minus the log of the target's probability, in nats.
    """

    unit: ClassVar[str] = "nats"

    tokens: tuple[str, ...]
    position: int
    steps: tuple[Step, ...]
    probs: Float[np.ndarray, " vocab"]
    likeliest: tuple[int, ...]
    target: int
    loss: float

    @property
    def at_end(self) -> bool:
        """Return whether nothing follows in the text: the target is that it ends here."""
        return self.position + 1 == len(self.tokens)

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


def walk(model: LanguageModel, probe: Probe, position: int, *, end_id: int) -> Walk:
    """Return every vector of the forward pass at one position, in the order of the code.

    The numbers are those of the whole text's forward pass; only the KV cache reaches beyond
    the position, to the ones before it. They say what is computed, not what the prediction
    depends on: `position_interventions` changes something and computes again.

    Args:
        model: A microgpt.
        probe: The text.
        position: From the left, or from the end where negative.
        end_id: The vocabulary's; what the last position has to predict if the text ends there.

    Raises:
        CheckpointError: Another family, or numbers that overflow.
        TextError: There is no such position.
    """
    steps = vectors(model, probe, position)
    position = position_in(probe, position)
    *before, logits, probabilities, _ = steps
    target = int([*probe.ids, end_id][position + 1])
    loss = float(-base.log_softmax(logits.values)[target])
    last = _step(_LOSS, "out", None, (np.array([loss]), None), (len(before) + 1,))
    probs = probabilities.values
    likeliest = tuple(int(i) for i in largest(probs, LIKELIEST))
    return Walk(probe.tokens, position, (*steps, last), probs, likeliest, target, loss)


@base.quiet_overflow
def vectors(model: LanguageModel, probe: Probe, position: int) -> tuple[Step, ...]:
    """Return the walk without its loss: what there is before the next token is known.

    Args:
        model: A microgpt.
        probe: The text.
        position: From the left, or from the end where negative.

    Raises:
        CheckpointError: Another family, or numbers that overflow.
        TextError: There is no such position.
    """
    model = require_microgpt(model, WALKED)
    position = position_in(probe, position)
    run = model.forward(probe.ids)
    logits = model.weights["lm_head"] @ run.out[position]
    probs = base.softmax(logits)
    numbers = [
        *_numbers_before(model, run, position),
        *(
            each
            for layer, block in zip(run.layers, model.network.blocks, strict=True)
            for each in _numbers_of_layer(layer, block, position)
        ),
        (logits, None),
        (probs, None),
        (probs[largest(probs, LIKELIEST)], None),
    ]
    return _steps(_lines(model.config), numbers)


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


# -- the lines of the program, in order


@dataclass(frozen=True)
class _Line:
    """What a step is, its numbers apart; `{i}` stands for the layer.

    `reads` are symbols: the latest steps that set them are meant. Where the line `sets_aside`,
    the x before it goes on as `x_residual`.
    """

    name: str
    symbol: str
    code: str
    why: str
    axes: tuple[str, ...]
    reads: tuple[str, ...] = ()
    aside: str = ""
    unit: str = ""
    sets_aside: bool = False


_RMSNORM = "scale = (dot(x, x) / len(x) + 1e-5) ** -0.5\nx = [scale * n for n in x]"
_NORMED_COPY = f"x_residual = x\n{_RMSNORM}"
_CACHE = "keys[{i}], values[{i}]"
_EMBEDDING = _Line(
    "token embedding",
    "tok_emb",
    "tok_emb = wte[token_id]",
    "Looks up the row of the token: the same row wherever the token stands.",
    ("d_model",),
)
_POSITION = _Line(
    "position embedding",
    "pos_emb",
    "pos_emb = wpe[pos_id]",
    "Looks up the row of the place, because one layer of attention mixes what came before in "
    "whatever order it stood.",
    ("d_model",),
)
_POSITION_DEEP = replace(
    _POSITION,
    why="Looks up the row of the place, so that the first layer knows the order too: later "
    "layers could tell something of it from how much each position has seen.",
)
_NO_POSITION = replace(
    _POSITION,
    code="pos_emb = [0.0] * len(tok_emb)",
    why="Left out: this model was trained without positions, so its wpe is never added.",
)
_SUM = _Line(
    "sum",
    "x",
    "x = add(tok_emb, pos_emb)",
    "Puts what the token is and where it stands into one vector.",
    ("d_model",),
    ("tok_emb", "pos_emb"),
)
_NO_SUM = replace(_SUM, why="Adds zeros: without positions it holds what the token is alone.")
_FIRST_RMSNORM = _Line(
    "rmsnorm",
    "x",
    _RMSNORM,
    "Scales the vector so that the mean of its squares is 1: a size the layers can count on.",
    ("d_model",),
    ("x",),
    "scale",
)
_ATTENTION = (
    _Line(
        "rmsnorm before attention",
        "x",
        _NORMED_COPY,
        "Hands attention a scaled copy; what x was is set aside as x_residual and added back "
        "later.",
        ("d_model",),
        ("x",),
        "scale",
        sets_aside=True,
    ),
    _Line(
        "query",
        "q",
        "q = linear(x, attn_wq[{i}])",
        "What this position asks of itself and of those before it; each head owns a part.",
        ("head", "d_head"),
        ("x",),
    ),
    _Line(
        "key",
        "k",
        "k = linear(x, attn_wk[{i}])",
        "What this position can be found by when a query asks.",
        ("head", "d_head"),
        ("x",),
    ),
    _Line(
        "value",
        "v",
        "v = linear(x, attn_wv[{i}])",
        "What this position hands over to those that look at it.",
        ("head", "d_head"),
        ("x",),
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
        "attn_logits",
        "attn_logits = [\n"
        "    [dot(q[h], k[h]) / head_dim**0.5 for k in keys[{i}]]\n"
        "    for h in heads\n"
        "]",
        "Compares the query with every key in the cache, head by head; the root keeps the size "
        "of the scores apart from the width of a head.",
        ("head", "position"),
        ("q", _CACHE),
    ),
    _Line(
        "attention",
        "attn_weights",
        "attn_weights = [softmax(row) for row in attn_logits]",
        "Turns each head's scores into shares that add up to 1.",
        ("head", "position"),
        ("attn_logits",),
        unit="share",
    ),
    _Line(
        "head outputs",
        "head_out",
        "head_out = []\n"
        "for h, shares in zip(heads, attn_weights):\n"
        "    columns = zip(*[v[h] for v in values[{i}]])\n"
        "    head_out.append([dot(shares, c) for c in columns])",
        "Mixes the values by these shares: here, and only here, does something of other "
        "positions come in.",
        ("head", "d_head"),
        ("attn_weights", _CACHE),
    ),
    _Line(
        "heads side by side",
        "x_attn",
        "x_attn = sum(head_out, [])",
        "Joins the heads' outputs to one vector; each head still has its own slots.",
        ("d_model",),
        ("head_out",),
    ),
    _Line(
        "W_O",
        "x",
        "x = linear(x_attn, attn_wo[{i}])",
        "Lets every head write into every slot of x, and not just into its own.",
        ("d_model",),
        ("x_attn",),
    ),
    _Line(
        "residual after attention",
        "x",
        "x = add(x, x_residual)",
        "Adds what attention found to what was there: nothing is overwritten.",
        ("d_model",),
        ("x_residual", "x"),
    ),
)
_MLP = (
    _Line(
        "rmsnorm before the MLP",
        "x",
        _NORMED_COPY,
        "Hands the MLP a scaled copy, as before.",
        ("d_model",),
        ("x",),
        "scale",
        sets_aside=True,
    ),
    _Line(
        "fc1",
        "x",
        "x = linear(x, mlp_fc1[{i}])",
        "Each hidden unit measures how far the vector goes in its own direction.",
        ("hidden",),
        ("x",),
    ),
    _Line(
        "relu",
        "x",
        "x = [max(0.0, n) for n in x]",
        "Sets what is below 0 to 0, so that each unit is on or off: without it fc1 and fc2 would "
        "be one matrix.",
        ("hidden",),
        ("x",),
        "units on",
    ),
    _Line(
        "fc2",
        "x",
        "x = linear(x, mlp_fc2[{i}])",
        "Each unit that is on writes its own direction, as strongly as it is on.",
        ("d_model",),
        ("x",),
    ),
    _Line(
        "residual after the MLP",
        "x",
        "x = add(x, x_residual)",
        "Adds what the MLP made of it; this x is what comes next.",
        ("d_model",),
        ("x_residual", "x"),
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
        unit="probability",
    ),
    _Line(
        "likeliest next tokens",
        "top",
        f"top = sorted(probs, reverse=True)[:{LIKELIEST}]",
        "The prediction of this position: the next token is drawn by these probabilities.",
        ("rank",),
        ("probs",),
        unit="probability",
    ),
)
_LOSS = _Line(
    "loss",
    "[loss]",
    "loss = -log(probs[target_id])",
    "How surprised the model is by the token that follows: 0 if it was sure of it.",
    ("loss",),
    ("probs",),
    unit="nats",
)


_Placed = tuple[_Line, str, int | None]


def _lines(config: MicroGPTConfig) -> Iterator[_Placed]:
    """Yield every line up to the prediction with its part and layer."""
    if not config.positions:
        place, added = _NO_POSITION, _NO_SUM
    else:
        place, added = _POSITION if config.n_layer == 1 else _POSITION_DEEP, _SUM
    for line in (_EMBEDDING, place, added, _FIRST_RMSNORM):
        yield line, "in", None
    for layer in range(config.n_layer):
        for part, lines in (("attention", _ATTENTION), ("MLP", _MLP)):
            for line in lines:
                yield line, part, layer
    for line in _AFTER:
        yield line, "out", None


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


def _steps(lines: Iterator[_Placed], numbers: Sequence[_Numbers]) -> tuple[Step, ...]:
    steps: list[Step] = []
    latest: dict[str, int] = {}
    for (line, part, layer), found in zip(lines, numbers, strict=True):
        reads = tuple(latest[_filled(read, layer)] for read in line.reads)
        step = _step(line, part, layer, found, reads)
        if line.sets_aside:
            latest["x_residual"] = latest["x"]
        latest[step.symbol] = len(steps)
        steps.append(step)
    return tuple(steps)


def _step(
    line: _Line, part: str, layer: int | None, found: _Numbers, reads: tuple[int, ...]
) -> Step:
    values, aside = found
    return Step(
        name=line.name,
        symbol=_filled(line.symbol, layer),
        part=part,
        layer=layer,
        code=_filled(line.code, layer),
        why=line.why,
        axes=line.axes,
        values=frozen(values),
        unit=line.unit,
        aside=None if aside is None else (line.aside, aside),
        reads=reads,
    )


def _filled(template: str, layer: int | None) -> str:
    return template.replace("{i}", str(layer))
