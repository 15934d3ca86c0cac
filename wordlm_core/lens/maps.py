"""Maps: what stands around the paths of a trajectory, and maps that cannot be compared."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from wordlm_core.checkpoint import Checkpoint, step_number
from wordlm_core.lens.trajectory import Trajectory, fit, trajectory

_LOW, _HIGH = 1, 99


@dataclass(frozen=True)
class CloudStep:
    """Where a fixed sample of all words stands at one stored step.

    Attributes:
        checkpoint: Name of the checkpoint; a label.
        index: Its place among the checkpoints given.
        label: Step label.
        step: Step number.
        points: One row a sampled word, the same words at each step.
    """

    checkpoint: str
    index: int
    label: str
    step: int
    points: Float[np.ndarray, "word axis"]


@dataclass(frozen=True)
class Cloud:
    """All lexical rows on the axes of a trajectory.

    Attributes:
        low: The 1st percentile along each axis, over all rows of all tables.
        high: The 99th percentile.
        steps: The sample at each checkpoint and step, in their order.
    """

    unit: ClassVar[str] = "units of the embedding"

    low: Float[np.ndarray, " axis"]
    high: Float[np.ndarray, " axis"]
    steps: tuple[CloudStep, ...]


@dataclass(frozen=True)
class Jumps:
    """How far words travel between the panels of `refitted`, on average over words and jumps.

    Attributes:
        apart: Measured from panel to panel, each on its own axes.
        common: Between the same steps, on one common basis.
    """

    unit: ClassVar[str] = "units of the embedding, along the axes"

    apart: float
    common: float


def cloud(checkpoints: Sequence[Checkpoint], *, axes: int = 2, sample: int = 100) -> Cloud:
    """Return where all words stand on the basis of `trajectory`: a map's ends, and a sample.

    The ends count every lexical row; the sample is every k-th by id, and ids fall with
    frequency, so it reaches from common to rare words. Left out of the sample: most words.

    Args:
        checkpoints: One or more, of equal d_model.
        axes: 2 or 3.
        sample: About so many words a checkpoint (>= 1).

    Raises:
        ConfigError: No checkpoint, different widths, or fewer dimensions than axes.
        CheckpointError: One stores no embeddings, or its vocabulary holds no words.
    """
    on = fit(checkpoints, axes=axes)
    coords: list[Float[np.ndarray, "row axis"]] = []
    steps: list[CloudStep] = []
    for index, checkpoint in enumerate(checkpoints):
        for label in checkpoint.steps:
            rows = checkpoint.embedding_at(label)[checkpoint.vocabulary.lexical]
            placed = (rows - on.mean) @ on.basis.T
            coords.append(placed)
            points = placed[:: max(1, len(placed) // sample)]
            steps.append(CloudStep(checkpoint.name, index, label, step_number(label), points))
    low, high = np.percentile(np.concatenate(coords), [_LOW, _HIGH], axis=0)
    return Cloud(low, high, tuple(steps))


def refitted(
    checkpoint: Checkpoint, words: Sequence[str], *, panels: int = 4
) -> tuple[Trajectory, ...]:
    """Return the same words on a basis fitted to each step alone: a picture that misleads.

    Each step's axes are its own, so a difference between two of these maps mixes movement
    of the words with movement of the axes. Kept to show that; compare with `trajectory`.

    Args:
        checkpoint: With stored embeddings.
        words: Typed words.
        panels: At most so many steps (>= 1), evenly picked from first to last.

    Returns:
        One trajectory a picked step, its paths of one point.

    Raises:
        TextError: A word is not in the vocabulary.
    """
    count = len(checkpoint.steps)
    picked = np.unique(np.linspace(0, count - 1, min(panels, count)).round().astype(int))
    labels = [checkpoint.steps[i] for i in picked.tolist()]
    alone = [replace(checkpoint, embeddings={at: checkpoint.embeddings[at]}) for at in labels]
    return tuple(trajectory([each], words) for each in alone)


def jumps(panels: Sequence[Trajectory], common: Trajectory, index: int = 0) -> Jumps:
    """Return how far words seem to travel between panels, and how far on a common basis.

    The difference is the movement of the axes. Both leave out movement across the axes.

    Args:
        panels: What `refitted` returned for one checkpoint of `common`.
        common: The same words on one basis of as many axes.
        index: The place of that checkpoint in it.

    Returns:
        Means over words and pairs of neighbouring panels, >= 0; 0 for a single panel.
    """
    labels = [panel.kept[0].label for panel in panels]
    apart = [[path.points[0].coords for path in panel.paths] for panel in panels]
    paths = [path for path in common.paths if path.index == index]
    there = [{point.label: point.coords for point in path.points} for path in paths]
    together = [[points[label] for points in there] for label in labels]
    return Jumps(apart=_mean_jump(apart), common=_mean_jump(together))


def _mean_jump(places: Sequence[Sequence[tuple[float, ...]]]) -> float:
    """Return the mean distance between the same words in neighbouring panels."""
    if len(places) < 2:
        return 0.0
    return float(np.linalg.norm(np.diff(np.array(places), axis=0), axis=-1).mean())
