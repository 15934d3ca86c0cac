"""Trajectory: how words moved during training, on one map for all steps and models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from wordlm_core.checkpoint import Checkpoint, step_number
from wordlm_core.errors import CheckpointError, ConfigError
from wordlm_core.lens._common import special_ids


@dataclass(frozen=True)
class PathPoint:
    """Where a word stands at one stored step; one coordinate an axis."""

    label: str
    step: int
    coords: tuple[float, ...]


@dataclass(frozen=True)
class WordPath:
    """The way of one word through one checkpoint's steps, in step order.

    Attributes:
        checkpoint: Name of the checkpoint; a label.
        index: Its place among the checkpoints given.
        word: The word as the vocabulary has it.
        points: One a stored step.
    """

    checkpoint: str
    index: int
    word: str
    points: tuple[PathPoint, ...]


@dataclass(frozen=True)
class Kept:
    """How much of one table the map shows: the share of its variance along the axes."""

    checkpoint: str
    index: int
    label: str
    step: int
    share: float


@dataclass(frozen=True)
class Trajectory:
    """Word paths on one common basis.

    Attributes:
        mean: Centre of all lexical rows of all tables.
        basis: The axes, unit length; coords are basis @ (row - mean).
        explained: Share of the variance of all rows together along each axis.
        paths: Every word in every checkpoint.
        kept: One entry a checkpoint and step.
    """

    unit: ClassVar[str] = "units of the embedding"

    mean: Float[np.ndarray, " d_model"]
    basis: Float[np.ndarray, "axis d_model"]
    explained: Float[np.ndarray, " axis"]
    paths: tuple[WordPath, ...]
    kept: tuple[Kept, ...]


def trajectory(
    checkpoints: Sequence[Checkpoint], words: Sequence[str], *, axes: int = 2
) -> Trajectory:
    """Return the paths of words on the first principal axes of all chosen tables together.

    ONE basis is fitted on every lexical row (no special) of every checkpoint and stored
    step, so movement on the map is movement of the embedding, never of the axes. The sign
    of an axis is fixed: its largest-magnitude loading is positive. Left out: everything
    across the axes; `kept` says how much that is at each step. A small share means that
    words near each other on the map can be far apart in the embedding. Independently
    trained models share no coordinates: between them, compare shapes, not places.

    Args:
        checkpoints: One or more, of equal d_model.
        words: Typed words, each looked up in every checkpoint's vocabulary.
        axes: 2 or 3.

    Returns:
        `kept` is each table's own variance (about its own centre) along the axes over all
        of it, 0 to 1; 0 for a table without any.

    Raises:
        ConfigError: No checkpoint, different widths, or fewer dimensions than axes.
        CheckpointError: One stores no embeddings, or its vocabulary holds no words.
        TextError: A word is not in a vocabulary.

    Source:
        Pearson 1901; computed from the pooled covariance in float64.
    """
    _check(checkpoints, axes)
    tables = [_read(checkpoint, words) for checkpoint in checkpoints]
    mean, covariance = _pool([table for of_checkpoint in tables for table in of_checkpoint])
    values, vectors = np.linalg.eigh(covariance)
    values, basis = np.maximum(values[::-1][:axes], 0), vectors[:, ::-1][:, :axes].T
    loadings = np.take_along_axis(basis, np.abs(basis).argmax(axis=1)[:, None], axis=1)
    basis = basis * np.where(loadings < 0, -1.0, 1.0)
    total = np.trace(covariance)
    return Trajectory(
        mean=mean,
        basis=basis,
        explained=values / total if total > 0 else np.zeros(axes),
        paths=tuple(
            WordPath(
                checkpoint=checkpoint.name,
                index=i,
                word=checkpoint.vocabulary.itos[word_id],
                points=tuple(_point(table, table.words[k] - mean, basis) for table in tables[i]),
            )
            for i, checkpoint in enumerate(checkpoints)
            for k, word_id in enumerate(_word_ids(checkpoint, words))
        ),
        kept=tuple(
            Kept(checkpoint.name, i, table.label, table.step, _share(table.scatter, basis))
            for i, checkpoint in enumerate(checkpoints)
            for table in tables[i]
        ),
    )


@dataclass(frozen=True)
class _Table:
    """What is needed of one embedding table: its moments and the rows of the words.

    Attributes:
        label: Step label.
        step: Step number.
        rows: Number of lexical rows.
        mean: Their mean.
        scatter: Sum of outer products of the centred rows.
        words: Rows of the chosen words.
    """

    label: str
    step: int
    rows: int
    mean: Float[np.ndarray, " d_model"]
    scatter: Float[np.ndarray, "d_model d_model"]
    words: Float[np.ndarray, "word d_model"]


def _check(checkpoints: Sequence[Checkpoint], axes: int) -> None:
    if not checkpoints:
        raise ConfigError("a map needs at least one checkpoint")
    widths = {c.name: c.model.config.d_model for c in checkpoints}
    if len(set(widths.values())) > 1:
        listed = ", ".join(f"{name} has {width}" for name, width in widths.items())
        raise ConfigError(f"embeddings of different widths share no map: {listed}")
    d_model = checkpoints[0].model.config.d_model
    if axes not in (2, 3) or axes > d_model:
        raise ConfigError(f"a map has 2 or 3 axes and at most d_model = {d_model}, not {axes}")
    for checkpoint in checkpoints:
        if not checkpoint.steps:
            raise CheckpointError(f"{checkpoint.name} stores no embeddings over training")
        if len(checkpoint.vocabulary) <= len(special_ids(checkpoint.vocabulary)):
            raise CheckpointError(f"the vocabulary of {checkpoint.name} holds no words")


def _word_ids(checkpoint: Checkpoint, words: Sequence[str]) -> list[int]:
    return [checkpoint.vocabulary.word_id(word) for word in words]


def _read(checkpoint: Checkpoint, words: Sequence[str]) -> list[_Table]:
    word_ids, specials = _word_ids(checkpoint, words), special_ids(checkpoint.vocabulary)
    tables: list[_Table] = []
    for label in checkpoint.steps:
        table = checkpoint.embedding_at(label).astype(np.float64)
        lexical = np.delete(table, specials, axis=0)
        mean = lexical.mean(axis=0)
        centred = lexical - mean
        tables.append(
            _Table(
                label=label,
                step=step_number(label),
                rows=len(lexical),
                mean=mean,
                scatter=centred.T @ centred,
                words=table[word_ids],
            )
        )
    return tables


def _pool(
    tables: Sequence[_Table],
) -> tuple[Float[np.ndarray, " d_model"], Float[np.ndarray, "d_model d_model"]]:
    """Return mean and covariance of all rows of all tables, without stacking them."""
    rows = sum(table.rows for table in tables)
    mean = np.sum([table.rows * table.mean for table in tables], axis=0) / rows
    scatter = np.sum(
        [t.scatter + t.rows * np.outer(t.mean - mean, t.mean - mean) for t in tables], axis=0
    )
    return mean, scatter / rows


def _point(
    table: _Table, centred: Float[np.ndarray, " d_model"], basis: Float[np.ndarray, "axis d_model"]
) -> PathPoint:
    return PathPoint(table.label, table.step, tuple((basis @ centred).tolist()))


def _share(
    scatter: Float[np.ndarray, "d_model d_model"], basis: Float[np.ndarray, "axis d_model"]
) -> float:
    total = np.trace(scatter)
    return float(np.einsum("ad,de,ae->", basis, scatter, basis) / total) if total > 0 else 0.0
