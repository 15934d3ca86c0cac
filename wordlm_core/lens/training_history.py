"""Training looked back on: the loss of every step, one text through it, the letters' rows."""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from wordlm_core.checkpoint import Checkpoint, finite_numbers, step_number
from wordlm_core.errors import CheckpointError, ConfigError
from wordlm_core.gpt_trainer import loss_of
from wordlm_core.lens._common import require_microgpt
from wordlm_core.lens.training_step import document
from wordlm_core.lens.trajectory import Trajectory, trajectory
from wordlm_core.vocabulary import Probe, Vocabulary

AVERAGE_OVER, LAST = 50, 100
_MOST_TOKENS = 60  # on a map
_MOST_POSITIONS, _MOST_CELLS = 32, 200_000  # of attention through training
_VOWELS = frozenset("aeiou")
_WHY = "training is looked back on for microgpt alone"


@dataclass(frozen=True)
class Curve:
    """The loss of every step of a training.

    Attributes:
        losses: Each step's mean loss on its own item, before the step.
        average: Mean of the last `AVERAGE_OVER` losses up to each step, or of all so far.
        last: Mean of the last `LAST` losses, or of all.
        uniform: ln(vocab_size).
        floor: `Items.floor` of the training list, or None where the file does not hold it.
    """

    unit: ClassVar[str] = "nats"

    losses: Float[np.ndarray, " step"]
    average: Float[np.ndarray, " step"]
    last: float
    uniform: float
    floor: float | None


def moving_average(losses: Float[np.ndarray, " steps"]) -> Float[np.ndarray, " steps"]:
    """Return the mean of the last `AVERAGE_OVER` losses up to each step, or of all so far."""
    ends = np.arange(1, len(losses) + 1)
    starts = np.maximum(0, ends - AVERAGE_OVER)
    sums = np.concatenate([[0.0], losses.cumsum()])
    return (sums[ends] - sums[starts]) / (ends - starts)


def curve(checkpoint: Checkpoint) -> Curve:
    """Return the loss curve that a checkpoint's file holds.

    Each loss is of another item, so two neighbouring points differ by the items more than by
    what was learned between them; the average shows that. They are losses on training items.

    Raises:
        CheckpointError: It stores no loss of every step.
    """
    losses = checkpoint.losses()
    if not len(losses):
        raise CheckpointError(
            f"{checkpoint.name} does not hold the loss of every step: train it anew "
            "to see its curve"
        )
    floor = finite_numbers([checkpoint.section("corpus").get("floor")])
    return Curve(
        losses=losses,
        average=moving_average(losses),
        last=float(losses[-LAST:].mean()),
        uniform=math.log(len(checkpoint.vocabulary)),
        floor=None if floor is None else float(floor[0]),
    )


@dataclass(frozen=True)
class Through:
    """One text in the models of a training.

    Attributes:
        tokens: The text's first positions.
        steps: Training steps, rising.
        losses: Mean loss of the text at each of them, its end included.
        attention: Of one layer; rows are queries.
    """

    unit: ClassVar[str] = "share of the query's attention; nats"

    tokens: tuple[str, ...]
    steps: tuple[int, ...]
    losses: Float[np.ndarray, " step"]
    attention: Float[np.ndarray, "step head query key"]


def through_training(
    checkpoint: Checkpoint, vocabulary: Vocabulary, probe: Probe, *, layer: int = 0
) -> Through:
    """Return a text's attention and loss at every step whose whole weights are stored.

    Descriptive: it shows when a head began to look somewhere, not what for. Of a long text
    the first positions are read, which nothing after them can change; where heads and
    positions are many, evenly spaced steps are kept.

    Args:
        checkpoint: Of a microgpt.
        vocabulary: Its vocabulary.
        probe: The text.
        layer: 0 and up.

    Raises:
        CheckpointError: It is no microgpt, or stores whole weights at no step.
        ConfigError: There is no such layer.
    """
    config = require_microgpt(checkpoint.model, _WHY).config
    if not 0 <= layer < config.n_layer:
        raise ConfigError(f"there is no layer {layer}: the model has {config.n_layer}")
    if not checkpoint.whole_steps:
        raise CheckpointError(f"{checkpoint.name} stores whole weights at no step of its training")
    ids = document(probe, vocabulary)[: _MOST_POSITIONS + 1]
    length = min(len(ids) - 1, config.context_length)
    most = max(2, _MOST_CELLS // (config.n_head * length**2))
    labels = _evenly(checkpoint.whole_steps, most)
    losses: list[float] = []
    attention: list[Float[np.ndarray, "head query key"]] = []
    for label in labels:
        model = require_microgpt(checkpoint.model_at(label), _WHY)
        losses.append(float(loss_of(model.network, ids).mean()))
        attention.append(model.forward(ids[:length]).layers[layer].attention)
    return Through(
        tokens=tuple(vocabulary.itos[i] for i in ids[:length]),
        steps=tuple(map(step_number, labels)),
        losses=np.array(losses),
        attention=np.stack(attention),
    )


@dataclass(frozen=True)
class LettersMap:
    """The rows of wte through training, on one basis for all steps.

    Attributes:
        trajectory: One path a token, in the order of `vowels`.
        vowels: Whether the token is a, e, i, o or u, with or without an accent.
    """

    trajectory: Trajectory
    vowels: tuple[bool, ...]


def letters_map(checkpoint: Checkpoint) -> LettersMap:
    """Return the map of a vocabulary's tokens through every stored step.

    See `trajectory` for the basis and for what a map of two axes leaves out. Of many tokens
    the most frequent are drawn; the special ones are not.

    Raises:
        CheckpointError: It stores no embeddings over training.
    """
    vocabulary = checkpoint.vocabulary
    counts = vocabulary.counts
    lexical = sorted(vocabulary.itos[vocabulary.lexical], key=lambda t: -counts.get(t, 0))
    tokens = sorted(lexical[:_MOST_TOKENS], key=vocabulary.stoi.__getitem__)
    return LettersMap(
        trajectory([checkpoint], tokens),
        tuple(unicodedata.normalize("NFD", token)[0].lower() in _VOWELS for token in tokens),
    )


# -- parts


def _evenly(labels: Sequence[str], most: int) -> list[str]:
    """Return at most so many labels, the first and the last among them."""
    spaced = np.linspace(0, len(labels) - 1, min(most, len(labels)))
    places: list[int] = spaced.round().astype(int).tolist()
    return [labels[place] for place in places]
