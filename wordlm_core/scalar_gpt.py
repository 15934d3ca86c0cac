"""A GPT in which every number is a `Value`: slow, short, and nothing hidden.

This is the idea of Karpathy's microgpt in our own words, to be read and to be trusted: the fast
model of the same family is tested against it, so nothing here is shared with that one. Loops over
numbers take the place of matrices; there are no arrays.

A document is its characters with `<BOS>` at both ends. At each position the model reads one
token, looks back at the keys and values it kept from earlier positions, and predicts the next:

    x = rmsnorm(wte[token] + wpe[position])
    x = x + attn_wo(attention(rmsnorm(x)))          in every layer
    x = x + mlp_fc2(relu(mlp_fc1(rmsnorm(x))))      in every layer
    logits = lm_head(x)

Source:
    Karpathy, microgpt (2026): the order of random numbers, the sizes and the optimiser are
    kept, so that equal seeds give equal losses.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from wordlm_core.autograd import Value, zero_grad
from wordlm_core.errors import ConfigError, CorpusError, TextError

Vector = list[Value]
Matrix = list[Vector]
Weights = dict[str, list[list[float]]]

BOS = "<BOS>"
_BETA1, _BETA2, _EPSILON = 0.85, 0.99, 1e-8
_SPREAD, _NORM_EPSILON = 0.08, 1e-5


@dataclass(frozen=True)
class Settings:
    """The sizes of a model and how it is trained.

    Attributes:
        n_layer: Layers, 0 or more.
        n_head: Heads, a divisor of d_model.
        d_model: Width of the residual stream.
        context_length: Positions it can tell apart; of a longer document the start is read.
        positions: Whether wpe is added; it is drawn in any case.
        lr: Learning rate of the first step; it falls to 0 in a straight line.

    Raises:
        ConfigError: A size that no model can have.
    """

    n_layer: int = 1
    n_head: int = 4
    d_model: int = 16
    context_length: int = 16
    positions: bool = True
    lr: float = 0.01

    def __post_init__(self) -> None:
        if self.n_layer < 0 or min(self.n_head, self.d_model, self.context_length) < 1:
            raise ConfigError("heads, width and context have to be 1 or more, layers 0 or more")
        if self.d_model % self.n_head:
            raise ConfigError(f"width {self.d_model} cannot be shared by {self.n_head} heads")


@dataclass(frozen=True)
class Training:
    """What training gave.

    Attributes:
        itos: The characters in order, then `<BOS>`.
        losses: Loss of each step before its update, in nats a token.
        weights: After the last step, [out][in] or [row][column].
        gradients: Of the last step, in the same shape: what Adam was given.
    """

    itos: tuple[str, ...]
    losses: list[float]
    weights: Weights
    gradients: Weights


class Cache:
    """The keys and values that a text has left behind so far, by layer and position."""

    def __init__(self, n_layer: int) -> None:
        self.keys: list[list[Vector]] = [[] for _ in range(n_layer)]
        self.values: list[list[Vector]] = [[] for _ in range(n_layer)]


# -- the model


def linear(x: Vector, weight: Matrix) -> Vector:
    """Return one dot product of x with each row of the weight."""
    return [_dot(row, x) for row in weight]


def softmax(logits: Vector) -> Vector:
    """Return shares that add up to 1; the largest logit is taken off all, for exp's sake."""
    largest = max(logit.data for logit in logits)
    powers = [(logit - largest).exp() for logit in logits]
    total = sum(powers, Value(0))
    return [power / total for power in powers]


def rmsnorm(x: Vector) -> Vector:
    """Return x scaled so that the mean of its squares is 1."""
    scale = (_dot(x, x) / len(x) + _NORM_EPSILON) ** -0.5
    return [each * scale for each in x]


def attend(query: Vector, keys: Sequence[Vector], values: Sequence[Vector]) -> Vector:
    """Return one head's mix of the values, weighted by softmax(q.k / sqrt(d_head))."""
    scale = len(query) ** 0.5
    weights = softmax([_dot(query, key) / scale for key in keys])
    return [_dot(weights, column) for column in map(list, zip(*values, strict=True))]


class ScalarGPT:
    """The weights as Values, and the forward pass of one token at one position."""

    def __init__(self, weights: Weights, settings: Settings) -> None:
        self.settings = settings
        self.state = {
            name: [[Value(number) for number in row] for row in matrix]
            for name, matrix in weights.items()
        }

    def parameters(self) -> Vector:
        """Return every weight in the order in which it was drawn."""
        return [value for matrix in self.state.values() for row in matrix for value in row]

    def logits(self, token: int, position: int, cache: Cache) -> Vector:
        """Read one token; return the logits of the next, and leave key and value in the cache."""
        x = self.state["wte"][token]
        if self.settings.positions:
            x = _add(x, self.state["wpe"][position])
        x = rmsnorm(x)
        for layer in range(self.settings.n_layer):
            x = _add(x, self._attention(layer, rmsnorm(x), cache))
            hidden = linear(rmsnorm(x), self.state[f"layer{layer}.mlp_fc1"])
            hidden = [each.relu() for each in hidden]
            x = _add(x, linear(hidden, self.state[f"layer{layer}.mlp_fc2"]))
        return linear(x, self.state["lm_head"])

    def loss(self, ids: Sequence[int]) -> Value:
        """Return the mean of -log p(next token) over the positions that fit the context."""
        count = min(self.settings.context_length, len(ids) - 1)
        cache = Cache(self.settings.n_layer)
        surprises: Vector = []
        for position in range(count):
            probs = softmax(self.logits(ids[position], position, cache))
            surprises.append(-probs[ids[position + 1]].log())
        return sum(surprises, Value(0)) / count

    def numbers(self) -> Weights:
        """Return the weights as plain numbers."""
        return {
            name: [[value.data for value in row] for row in matrix]
            for name, matrix in self.state.items()
        }

    def gradients(self) -> Weights:
        """Return the gradients that stand on the weights now."""
        return {
            name: [[value.grad for value in row] for row in matrix]
            for name, matrix in self.state.items()
        }

    def _attention(self, layer: int, x: Vector, cache: Cache) -> Vector:
        query, key, value = (
            linear(x, self.state[f"layer{layer}.attn_{name}"]) for name in ("wq", "wk", "wv")
        )
        keys, values = cache.keys[layer], cache.values[layer]
        keys.append(key)
        values.append(value)
        width = self.settings.d_model // self.settings.n_head
        mixed: Vector = []
        for start in range(0, self.settings.d_model, width):
            part = slice(start, start + width)
            mixed += attend(query[part], [k[part] for k in keys], [v[part] for v in values])
        return linear(mixed, self.state[f"layer{layer}.attn_wo"])


# -- its life: drawn, trained, sampled


def vocabulary_of(documents: Sequence[str]) -> tuple[str, ...]:
    """Return the characters in order, then `<BOS>`.

    Raises:
        CorpusError: There is no character.
    """
    characters = sorted({character for document in documents for character in document})
    if not characters:
        raise CorpusError("there is no document with a character in it")
    return (*characters, BOS)


def encode(document: str, itos: Sequence[str]) -> list[int]:
    """Return the ids of a document, `<BOS>` at both ends.

    Raises:
        TextError: A character is not in the vocabulary.
    """
    stoi = {token: number for number, token in enumerate(itos)}
    for place, character in enumerate(document, 1):
        if character not in stoi:
            raise TextError(f"“{character}” at place {place} is not in the vocabulary")
    return [stoi[BOS], *(stoi[character] for character in document), stoi[BOS]]


def initial(vocab_size: int, settings: Settings, rng: random.Random) -> Weights:
    """Draw the weights from N(0, 0.08), matrix by matrix and row by row."""
    width, hidden = settings.d_model, 4 * settings.d_model
    shapes = {
        "wte": (vocab_size, width),
        "wpe": (settings.context_length, width),
        "lm_head": (vocab_size, width),
    }
    for layer in range(settings.n_layer):
        shapes |= {f"layer{layer}.attn_{name}": (width, width) for name in ("wq", "wk", "wv", "wo")}
        shapes[f"layer{layer}.mlp_fc1"] = (hidden, width)
        shapes[f"layer{layer}.mlp_fc2"] = (width, hidden)
    return {
        name: [[rng.gauss(0, _SPREAD) for _ in range(columns)] for _ in range(rows)]
        for name, (rows, columns) in shapes.items()
    }


def train(
    documents: Sequence[str],
    settings: Settings,
    *,
    steps: int,
    seed: int = 42,
    stop_after: int | None = None,
) -> Training:
    """Train on one document a step, with Adam and a learning rate that falls to 0.

    The same generator first shuffles the documents, then draws the weights.

    Args:
        documents: As they are: no lower-casing, repeats kept.
        settings: Sizes and learning rate.
        steps: How many the falling learning rate is planned for.
        seed: Of the shuffle and the weights.
        stop_after: End after so many steps of the plan; 1 gives the gradient of the first.

    Raises:
        ConfigError: No steps, or training has run away and a number is too large.
        CorpusError: There is no character in the documents.
    """
    last = steps if stop_after is None else min(stop_after, steps)
    if last < 1:
        raise ConfigError(f"training needs 1 step or more, not {last}")
    itos = vocabulary_of(documents)
    rng = random.Random(seed)
    shuffled = list(documents)
    rng.shuffle(shuffled)
    model = ScalarGPT(initial(len(itos), settings, rng), settings)
    parameters = model.parameters()
    adam = _Adam(parameters)
    losses: list[float] = []
    for step in range(last):
        zero_grad(parameters)
        loss = model.loss(encode(shuffled[step % len(shuffled)], itos))
        loss.backward()
        adam.step(settings.lr * (1 - step / steps))
        losses.append(loss.data)
    return Training(itos, losses, model.numbers(), model.gradients())


def sample(
    weights: Weights,
    itos: Sequence[str],
    settings: Settings,
    *,
    temperature: float,
    seed: int,
    samples: int,
) -> list[str]:
    """Draw new documents, each from `<BOS>` until `<BOS>` comes back or the context is full.

    Args:
        weights: As `train` returns them.
        itos: The vocabulary they belong to, `<BOS>` last.
        settings: Those they were trained with.
        temperature: What the logits are divided by, above 0.
        seed: Of one generator for all samples.
        samples: How many.

    Raises:
        ConfigError: A temperature of 0 or below.
    """
    if not temperature > 0:
        raise ConfigError(f"the temperature has to be above 0, not {temperature:g}")
    rng = random.Random(seed)
    model = ScalarGPT(weights, settings)
    return [_draw(model, itos, temperature, rng) for _ in range(samples)]


# -- parts


class _Adam:
    """Adam with bias correction: a step in the direction of a smoothed gradient."""

    def __init__(self, parameters: Vector) -> None:
        self.parameters = parameters
        self.mean = [0.0] * len(parameters)
        self.square = [0.0] * len(parameters)
        self.taken = 0

    def step(self, lr: float) -> None:
        self.taken += 1
        correct1, correct2 = 1 - _BETA1**self.taken, 1 - _BETA2**self.taken
        for i, parameter in enumerate(self.parameters):
            grad = parameter.grad
            self.mean[i] = _BETA1 * self.mean[i] + (1 - _BETA1) * grad
            self.square[i] = _BETA2 * self.square[i] + (1 - _BETA2) * grad**2
            size = (self.square[i] / correct2) ** 0.5 + _EPSILON
            parameter.data -= lr * (self.mean[i] / correct1) / size


def _dot(left: Vector, right: Vector) -> Value:
    return sum((a * b for a, b in zip(left, right, strict=True)), Value(0))


def _add(left: Vector, right: Vector) -> Vector:
    return [a + b for a, b in zip(left, right, strict=True)]


def _draw(model: ScalarGPT, itos: Sequence[str], temperature: float, rng: random.Random) -> str:
    bos = token = len(itos) - 1
    cache = Cache(model.settings.n_layer)
    drawn: list[str] = []
    for position in range(model.settings.context_length):
        logits = model.logits(token, position, cache)
        probs = softmax([logit / temperature for logit in logits])
        (token,) = rng.choices(range(len(itos)), weights=[prob.data for prob in probs])
        if token == bos:
            break
        drawn.append(itos[token])
    return "".join(drawn)
