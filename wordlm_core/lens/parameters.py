"""Parameters: every matrix of a microgpt, its size, and how far training moved it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from wordlm_core.checkpoint import Checkpoint, step_number
from wordlm_core.errors import CheckpointError
from wordlm_core.lens._common import require_microgpt
from wordlm_core.models.base import LanguageModel

# What rows and columns of a matrix stand for, and what it does; by the end of its name.
_MEANINGS = {
    "wte": ("vocabulary", "width", "one row for each token"),
    "wpe": ("context", "width", "one row for each position"),
    "lm_head": ("vocabulary", "width", "one logit for each token"),
    "attn_wq": ("width", "width", "what a position looks for"),
    "attn_wk": ("width", "width", "what a position is found by"),
    "attn_wv": ("width", "width", "what a position hands over"),
    "attn_wo": ("width", "width", "mixes what the heads bring"),
    "mlp_fc1": ("hidden", "width", "detects: from narrow to wide"),
    "mlp_fc2": ("width", "hidden", "writes back: from wide to narrow"),
}


@dataclass(frozen=True)
class Matrix:
    """One matrix of a model.

    Attributes:
        name: Its state name.
        shape: Rows (outputs) and columns (inputs).
        count: Rows times columns.
        rows: Which size the rows are: `vocabulary`, `context`, `width` or `hidden`.
        columns: Which size the columns are.
        does: What it is for, in a few words.
    """

    name: str
    shape: tuple[int, int]
    count: int
    rows: str
    columns: str
    does: str


@dataclass(frozen=True)
class Statistics:
    """Numbers about the entries of one matrix; `norm` is the root of their summed squares."""

    mean: float
    deviation: float
    norm: float


@dataclass(frozen=True)
class Change:
    """One matrix before training and at a later step.

    Attributes:
        name: Its state name.
        before: At the first stored step.
        after: At the later one.
        moved: Norm of the difference over the norm before; None where that was 0.
    """

    unit: ClassVar[str] = "share of the norm before"

    name: str
    before: Statistics
    after: Statistics
    moved: float | None


@dataclass(frozen=True)
class Journey:
    """How far every matrix has moved from the first stored step, over training.

    Attributes:
        steps: Numbers of the stored steps.
        names: State names.
        moved: Relative L2 distance from the first step; not finite where a norm was 0.
    """

    unit: ClassVar[str] = Change.unit

    steps: tuple[int, ...]
    names: tuple[str, ...]
    moved: Float[np.ndarray, "name step"]


def inventory(model: LanguageModel) -> tuple[Matrix, ...]:
    """Return every matrix of a microgpt in the order in which they are drawn.

    The counts add up to the number of parameters; there are no others: no biases, and no
    scale in rmsnorm.

    Raises:
        CheckpointError: It is no microgpt.
    """
    model = require_microgpt(model, "the matrices are told apart by microgpt's names")
    return tuple(
        Matrix(name, (rows, columns), rows * columns, *_MEANINGS[name.split(".")[-1]])
        for name, (rows, columns) in model.config.shapes.items()
    )


def changes(checkpoint: Checkpoint, step: str | None) -> tuple[Change, ...]:
    """Return what training did to each matrix up to a step, in numbers.

    A distance says that a matrix moved, not what the movement is good for.

    Args:
        checkpoint: One with whole weights at more than one step.
        step: A label with whole weights; None is the selected one.

    Raises:
        CheckpointError: There are no earlier weights to compare with.
    """
    before, after = start(checkpoint).weights, checkpoint.model_at(step).weights
    return tuple(
        Change(name, _statistics(old), _statistics(after[name]), _moved(old, after[name]))
        for name, old in before.items()
    )


def journey(checkpoint: Checkpoint) -> Journey:
    """Return how far each matrix has moved at every step with whole weights.

    Raises:
        CheckpointError: There are no earlier weights to compare with.
    """
    before = start(checkpoint).weights
    labels = checkpoint.whole_steps
    models = [checkpoint.model_at(label).weights for label in labels]
    moved = [[_moved(old, each[name]) for each in models] for name, old in before.items()]
    steps = tuple(step_number(label) for label in labels)
    return Journey(steps, tuple(before), np.array(moved, dtype=np.float64))


def start(checkpoint: Checkpoint) -> LanguageModel:
    """Return the model at the first step with whole weights.

    Raises:
        CheckpointError: It is the only one, so that there is nothing before it.
    """
    labels = checkpoint.whole_steps
    if len(labels) < 2:
        raise CheckpointError(
            f"{checkpoint.name} holds whole weights of one step alone, so there is no before "
            "to compare them with: a checkpoint of python -m wordlm_core train has both"
        )
    return checkpoint.model_at(labels[0])


def _statistics(matrix: Float[np.ndarray, "rows columns"]) -> Statistics:
    return Statistics(float(matrix.mean()), float(matrix.std()), float(np.linalg.norm(matrix)))


def _moved(
    before: Float[np.ndarray, "rows columns"], after: Float[np.ndarray, "rows columns"]
) -> float | None:
    length = float(np.linalg.norm(before))
    return float(np.linalg.norm(after - before)) / length if length > 0 else None
