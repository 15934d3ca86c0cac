"""Training: one step of a microgpt taken apart, and what happens when a part is left out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from wordlm_core.corpora import Corpus
from wordlm_core.errors import ConfigError
from wordlm_core.gpt_trainer import BETA1, BETA2, Adam, loss_of
from wordlm_core.items import prepare_items
from wordlm_core.lens._common import require_microgpt
from wordlm_core.models import microgpt
from wordlm_core.models.base import LanguageModel, count_parameters, log_softmax
from wordlm_core.vocabulary import Probe, Vocabulary

RATE = 0.01
MOST_STEPS, MOST_NAMES = 200, 40
MOST_WORK = 40_000_000  # parameters x steps of `zeroing`: about two seconds
_EVERY = 5
_WHY = "a training step is taken apart for microgpt alone"


@dataclass(frozen=True)
class Prediction:
    """What the model is asked at one position, and what it answers.

    Attributes:
        position: 0 and up.
        read: The token that stands there.
        target: The token that comes next.
        likeliest: The token that the model finds likeliest.
        prob: The probability of the target.
        loss: -ln(prob), in nats.
    """

    position: int
    read: str
    target: str
    likeliest: str
    prob: float
    loss: float


@dataclass(frozen=True)
class Matrix:
    """The gradient of one matrix, seen from afar.

    Attributes:
        name: State name.
        shape: Rows and columns.
        weight_norm: Length of all its weights as one vector, before the step.
        norm: Length of its gradient.
        reached: How many of its entries have a gradient that is not 0.
    """

    name: str
    shape: tuple[int, ...]
    weight_norm: float
    norm: float
    reached: int


@dataclass(frozen=True)
class Parameter:
    """One number of the model, on its way through the step.

    Attributes:
        matrix: State name.
        row: Row in it.
        column: Column in it.
        token: What the row stands for in wte and lm_head, else None.
        before: Its value.
        gradient: What a small increase of it does to the loss, per unit.
        mean: Adam's m after the step, a running mean of the gradients.
        square: Adam's v after the step, a running mean of their squares.
        mean_hat: m / (1 - beta1^number): corrected for starting at 0.
        square_hat: v / (1 - beta2^number).
        update: What is added to it, -rate mean_hat / (sqrt(square_hat) + epsilon).
        after: Its new value.
    """

    matrix: str
    row: int
    column: int
    token: str | None
    before: float
    gradient: float
    mean: float
    square: float
    mean_hat: float
    square_hat: float
    update: float
    after: float


@dataclass(frozen=True)
class TrainingStep:
    """One step of training on one text: forward, loss, backward, Adam, and forward again.

    Attributes:
        number: Which step of this Adam it is, from 1.
        rate: Learning rate.
        forward: Every prediction before the step.
        loss: Their mean loss.
        uniform: ln(vocab_size), the loss of a model that finds all tokens equally likely.
        earlier: The mean loss of each text before, when its own step began.
        matrices: The gradient of `loss` by every matrix, in state order.
        row: The row of wte that belongs to the first token after `<BOS>`.
        largest: Of every matrix the entry with the largest gradient, in state order.
        forward_after: Every prediction after the step.
        loss_after: Their mean loss.
    """

    unit: ClassVar[str] = "nats"

    number: int
    rate: float
    forward: tuple[Prediction, ...]
    loss: float
    uniform: float
    earlier: tuple[float, ...]
    matrices: tuple[Matrix, ...]
    row: tuple[Parameter, ...]
    largest: tuple[Parameter, ...]
    forward_after: tuple[Prediction, ...]
    loss_after: float


def training_step(
    model: LanguageModel,
    vocabulary: Vocabulary,
    probe: Probe,
    *,
    earlier: Sequence[str] = (),
    rate: float = RATE,
) -> TrainingStep:
    """Take one training step on one text, on a copy of the model, and keep every number.

    An intervention: `loss_after` is measured on the moved weights. It speaks of this text
    alone; on others the step can do harm. Adam begins without a memory (a checkpoint does not
    keep it), so its first step moves every number that has a gradient by nearly `rate`,
    however small the gradient; and the rate stays, where the trainer's falls to 0.

    Args:
        model: A microgpt; it is not changed.
        vocabulary: Its vocabulary.
        probe: The text; the token that ends a document follows it.
        earlier: Texts to take a step on first, one after the other, with the same Adam.
        rate: Learning rate, above 0 and at most 1.

    Raises:
        CheckpointError: The model is no microgpt.
        ConfigError: The rate is out of range, or the step would come after `MOST_STEPS` others.
        TextError: An earlier text cannot be read.
    """
    pupil = _Pupil(model, rate)
    if len(earlier) > MOST_STEPS:
        raise ConfigError(f"at most {MOST_STEPS} steps can come before this one: start again")
    losses: list[float] = []
    for text in earlier:
        read = vocabulary.probe(text, pupil.config.context_length)
        losses.append(pupil.read(document(read, vocabulary)))
        pupil.move()
    ids = document(probe, vocabulary)
    forward = _predictions(pupil.network, vocabulary, ids)
    loss = pupil.read(ids)
    before = pupil.flat.copy()
    matrices = _matrices(pupil)
    pupil.move()
    after = _predictions(pupil.network, vocabulary, ids)
    first = next(int(token_id) for token_id in ids if token_id != vocabulary.bos_id)
    width = pupil.config.d_model
    largest = {name: int(np.abs(g).argmax()) for name, g in pupil.of_weights.weights.items()}
    chosen = [*(("wte", first * width + column) for column in range(width)), *largest.items()]
    moved = _parameters(pupil, before, vocabulary, chosen)
    return TrainingStep(
        number=pupil.number,
        rate=rate,
        forward=forward,
        loss=loss,
        uniform=math.log(len(vocabulary)),
        earlier=tuple(losses),
        matrices=matrices,
        row=moved[:width],
        largest=moved[width:],
        forward_after=after,
        loss_after=float(loss_of(pupil.network, ids).mean()),
    )


@dataclass(frozen=True)
class Zeroing:
    """The same training twice: the gradient zeroed before every step, and never.

    Losses are means over the items, each item's own mean counting the same.

    Attributes:
        steps: How many steps were taken when a loss was measured, from 0 to all.
        zeroed: The losses as they should be.
        kept: The losses where each new gradient is added to all earlier ones.
        zeroed_norms: Length of the gradient that Adam was given at each step.
        kept_norms: The same without zeroing.
        floor: `Items.floor` of the list.
    """

    unit: ClassVar[str] = "nats"

    steps: tuple[int, ...]
    zeroed: Float[np.ndarray, " measured"]
    kept: Float[np.ndarray, " measured"]
    zeroed_norms: Float[np.ndarray, " steps"]
    kept_norms: Float[np.ndarray, " steps"]
    floor: float


def zeroing(
    model: LanguageModel,
    vocabulary: Vocabulary,
    *,
    names: Sequence[str],
    steps: int = 50,
    rate: float = RATE,
) -> Zeroing:
    """Train copies of the model on a short list, with and without zeroing the gradient.

    An intervention on the training itself: weights, items, order, Adam and rate are the same.
    What it leaves out: on a longer list or at another rate the harm can be larger or smaller.

    Args:
        model: A microgpt; it is not changed.
        vocabulary: Its vocabulary.
        names: 1 to `MOST_NAMES` items, read in turn.
        steps: 1 to `MOST_STEPS`.
        rate: Learning rate, above 0 and at most 1.

    Raises:
        CheckpointError: The model is no microgpt.
        ConfigError: The rate, or the number of steps or items, is out of range, or the model is
            so large that it would take more than `MOST_WORK`.
        CorpusError: There is no item.
        TextError: An item cannot be read.
    """
    if not 1 <= steps <= MOST_STEPS:
        raise ConfigError(f"the number of steps must be 1 to {MOST_STEPS}, not {steps}")
    if len(names) > MOST_NAMES:
        raise ConfigError(f"a short list has up to {MOST_NAMES} items, not {len(names)}")
    numbers = count_parameters(model.weights)
    if numbers * steps > MOST_WORK:
        raise ConfigError(
            f"{steps} steps of {numbers:,} numbers each are more than is trained here: choose a "
            f"model of up to {MOST_WORK // steps:,}"
        )
    context = model.config.context_length
    items = prepare_items(
        Corpus("a typed list", tuple(names), "unknown", "typed"),
        tokens=vocabulary.tokenizer,
        context_length=context,
        vocabulary=vocabulary,
    )
    documents = [items.vocabulary.document(document) for document in items.documents]
    measured = (*range(0, steps, _EVERY), steps)
    zeroed = _train(_Pupil(model, rate), documents, measured, zero=True)
    kept = _train(_Pupil(model, rate), documents, measured, zero=False)
    return Zeroing(measured, zeroed[0], kept[0], zeroed[1], kept[1], items.floor(context))


def document(probe: Probe, vocabulary: Vocabulary) -> Int[np.ndarray, " pos"]:
    """Return a text as training reads it: from its beginning to the token that ends it."""
    return np.array([*probe.cut_off, *probe.ids, vocabulary.end_id])


# -- parts


class _Pupil:
    """A copy of a model that can be trained: its weights, a gradient and an Adam."""

    def __init__(self, model: LanguageModel, rate: float) -> None:
        if not 0 < rate <= 1:  # NaN is neither
            raise ConfigError(f"the learning rate must be above 0 and at most 1, not {rate}")
        self.config, self.rate, self.number = require_microgpt(model, _WHY).config, rate, 0
        weights = [model.weights[name].ravel() for name in self.config.shapes]
        self.flat = np.concatenate(weights).astype(np.float64)
        self.network = microgpt.as_network(self.config, self.flat)
        self.gradient = np.zeros_like(self.flat)
        self.of_weights = microgpt.as_network(self.config, self.gradient)
        self.adam = Adam(self.flat)

    def read(self, ids: Int[np.ndarray, " pos"]) -> float:
        """Return the mean loss of a document; its gradient takes the place of the last one."""
        return float(loss_of(self.network, ids, self.of_weights).mean())

    def move(self) -> None:
        """Let Adam take a step against the gradient."""
        self.number += 1
        self.adam.step(self.gradient, self.rate, self.number)


def _train(
    pupil: _Pupil,
    documents: Sequence[Int[np.ndarray, " _"]],
    measured: Sequence[int],
    *,
    zero: bool,
) -> tuple[Float[np.ndarray, " measured"], Float[np.ndarray, " steps"]]:
    def loss() -> float:
        return float(np.mean([loss_of(pupil.network, ids).mean() for ids in documents]))

    losses, norms = [loss()], []
    before = np.zeros_like(pupil.gradient)
    for step in range(measured[-1]):
        pupil.read(documents[step % len(documents)])  # overwrites, which is to zero and add
        if not zero:
            pupil.gradient += before
            before[:] = pupil.gradient
        norms.append(float(np.linalg.norm(pupil.gradient)))
        pupil.move()
        if pupil.number in measured:
            losses.append(loss())
    return np.array(losses), np.array(norms)


def _predictions(
    network: microgpt.Network, vocabulary: Vocabulary, ids: Int[np.ndarray, " pos"]
) -> tuple[Prediction, ...]:
    count = min(network.config.context_length, len(ids) - 1)
    run = microgpt.forward(network, ids[:count])
    logs = log_softmax(run.out @ network.weights["lm_head"].T)
    return tuple(
        Prediction(
            position=i,
            read=vocabulary.itos[ids[i]],
            target=vocabulary.itos[ids[i + 1]],
            likeliest=vocabulary.itos[logs[i].argmax()],
            prob=math.exp(logs[i, ids[i + 1]]),
            loss=-float(logs[i, ids[i + 1]]),
        )
        for i in range(count)
    )


def _matrices(pupil: _Pupil) -> tuple[Matrix, ...]:
    return tuple(
        Matrix(
            name=name,
            shape=gradient.shape,
            weight_norm=float(np.linalg.norm(pupil.network.weights[name])),
            norm=float(np.linalg.norm(gradient)),
            reached=int(np.count_nonzero(gradient)),
        )
        for name, gradient in pupil.of_weights.weights.items()
    )


def _parameters(
    pupil: _Pupil,
    before: Float[np.ndarray, " n"],
    vocabulary: Vocabulary,
    chosen: Sequence[tuple[str, int]],
) -> tuple[Parameter, ...]:
    """Return the chosen numbers: each a matrix, and the place in it counted row by row."""
    adam, shapes = pupil.adam, pupil.config.shapes
    columns = {
        "before": before,
        "gradient": pupil.gradient,
        "mean": adam.mean,
        "square": adam.square,
        "mean_hat": adam.mean / (1 - BETA1**pupil.number),
        "square_hat": adam.square / (1 - BETA2**pupil.number),
        "update": pupil.flat - before,
        "after": pupil.flat,
    }
    starts = dict(zip(shapes, np.cumsum([0, *map(math.prod, shapes.values())]), strict=False))

    def parameter(name: str, place: int) -> Parameter:
        row, column = divmod(place, shapes[name][1])
        token = vocabulary.itos[row] if name in ("wte", "lm_head") else None
        at = int(starts[name]) + place
        values = {key: float(array[at]) for key, array in columns.items()}
        return Parameter(name, row, column, token, **values)

    return tuple(parameter(name, place) for name, place in chosen)
