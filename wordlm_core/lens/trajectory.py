"""Trajectory: how words moved during training, on one map for all steps and models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from wordlm_core.checkpoint import Checkpoint, step_number
from wordlm_core.errors import CheckpointError, ConfigError
from wordlm_core.models.base import require_finite


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
class Basis:
    """The axes that all tables share; it depends on the checkpoints alone, on no word.

    Attributes:
        mean: Centre of all lexical rows of all tables.
        basis: The axes, unit length; coords are basis @ (row - mean).
        explained: Share of the variance of all rows together along each axis.
        kept: One entry a checkpoint and step.
    """

    mean: Float[np.ndarray, " d_model"]
    basis: Float[np.ndarray, "axis d_model"]
    explained: Float[np.ndarray, " axis"]
    kept: tuple[Kept, ...]


@dataclass(frozen=True)
class Trajectory(Basis):
    """Word paths on one common basis.

    Attributes:
        paths: Every word in every checkpoint.
    """

    unit: ClassVar[str] = "units of the embedding"

    paths: tuple[WordPath, ...]


def trajectory(
    checkpoints: Sequence[Checkpoint], words: Sequence[str], *, axes: int = 2
) -> Trajectory:
    """Return the paths of words on the first principal axes of all chosen tables together.

    Between independently trained models, compare shapes, not places: they share no
    coordinates. See `fit` for the basis and `project` for the paths; other words on the same
    checkpoints need no new fit.

    Args:
        checkpoints: One or more, of equal d_model.
        words: Typed words, each looked up in every checkpoint's vocabulary.
        axes: 2 or 3.

    Raises:
        ConfigError: No checkpoint, different widths, or fewer dimensions than axes.
        CheckpointError: One stores no embeddings, or its vocabulary holds no words.
        TextError: A word is not in a vocabulary.
    """
    return follow(fit(checkpoints, axes=axes), checkpoints, words)


def follow(basis: Basis, checkpoints: Sequence[Checkpoint], words: Sequence[str]) -> Trajectory:
    """Return `trajectory` on axes fitted before, which other words do not change.

    Args:
        basis: Of `fit`, on these checkpoints.
        checkpoints: The same, in the same order.
        words: Typed words, each looked up in every checkpoint's vocabulary.

    Raises:
        TextError: A word is not in a vocabulary.
    """
    return Trajectory(
        mean=basis.mean,
        basis=basis.basis,
        explained=basis.explained,
        kept=basis.kept,
        paths=project(basis, checkpoints, words),
    )


def fit(checkpoints: Sequence[Checkpoint], *, axes: int = 2) -> Basis:
    """Return the first principal axes of all tables together.

    ONE basis is fitted on every lexical row (no special) of every checkpoint and stored
    step, so movement on the map is movement of the embedding, never of the axes. The sign
    of an axis is fixed: its largest-magnitude loading is positive. Left out: everything
    across the axes; `kept` says how much that is at each step. A small share means that
    words near each other on the map can be far apart in the embedding.

    Args:
        checkpoints: One or more, of equal d_model.
        axes: 2 or 3.

    Returns:
        `kept` is each table's own variance (about its own centre) along the axes over all
        of it, 0 to 1; 0 for a table without any.

    Raises:
        ConfigError: No checkpoint, different widths, or fewer dimensions than axes.
        CheckpointError: One stores no embeddings, or its vocabulary holds no words.

    Source:
        Pearson 1901; computed from the pooled covariance in float64.
    """
    _check(checkpoints, axes)
    tables = [
        _moments(i, checkpoint, label)
        for i, checkpoint in enumerate(checkpoints)
        for label in checkpoint.steps
    ]
    mean, covariance = _pool(tables)
    values, vectors = np.linalg.eigh(require_finite(covariance))
    values, basis = np.maximum(values[::-1][:axes], 0), vectors[:, ::-1][:, :axes].T
    loadings = np.take_along_axis(basis, np.abs(basis).argmax(axis=1)[:, None], axis=1)
    basis = basis * np.where(loadings < 0, -1.0, 1.0)
    total = np.trace(covariance)
    return Basis(
        mean=mean,
        basis=basis,
        explained=values / total if total > 0 else np.zeros(axes),
        kept=tuple(
            Kept(
                checkpoint=checkpoints[table.index].name,
                index=table.index,
                label=table.label,
                step=step_number(table.label),
                share=_share(table.scatter, basis),
            )
            for table in tables
        ),
    )


def project(
    basis: Basis, checkpoints: Sequence[Checkpoint], words: Sequence[str]
) -> tuple[WordPath, ...]:
    """Return the paths of words through every stored step, on axes fitted before.

    Args:
        basis: Of `fit`, on these checkpoints.
        checkpoints: The same, in the same order.
        words: Typed words, each looked up in every checkpoint's vocabulary.

    Raises:
        ConfigError: The axes belong to embeddings of another width.
        TextError: A word is not in a vocabulary.
    """
    width = len(basis.mean)
    if any(checkpoint.model.config.d_model != width for checkpoint in checkpoints):
        raise ConfigError(f"the axes belong to embeddings of width {width}")
    paths: list[WordPath] = []
    for i, checkpoint in enumerate(checkpoints):
        word_ids = [checkpoint.vocabulary.word_id(word) for word in words]
        rows = {label: checkpoint.embedding_at(label)[word_ids] for label in checkpoint.steps}
        paths += [
            WordPath(
                checkpoint=checkpoint.name,
                index=i,
                word=checkpoint.vocabulary.itos[word_id],
                points=tuple(
                    PathPoint(
                        label=label,
                        step=step_number(label),
                        coords=tuple((basis.basis @ (of_words[k] - basis.mean)).tolist()),
                    )
                    for label, of_words in rows.items()
                ),
            )
            for k, word_id in enumerate(word_ids)
        ]
    return tuple(paths)


@dataclass(frozen=True)
class _Table:
    """What the fit needs of one embedding table.

    Attributes:
        index: Place of its checkpoint among those given.
        label: Step label.
        rows: Number of lexical rows.
        mean: Their mean.
        scatter: Sum of outer products of the centred rows.
    """

    index: int
    label: str
    rows: int
    mean: Float[np.ndarray, " d_model"]
    scatter: Float[np.ndarray, "d_model d_model"]


def _check(checkpoints: Sequence[Checkpoint], axes: int) -> None:
    if not checkpoints:
        raise ConfigError("a map needs at least one checkpoint")
    widths = [(c.name, c.model.config.d_model) for c in checkpoints]
    d_model = widths[0][1]
    if any(width != d_model for _, width in widths):
        listed = ", ".join(f"{name} has {width}" for name, width in widths)
        raise ConfigError(f"embeddings of different widths share no map: {listed}")
    if axes not in (2, 3) or axes > d_model:
        raise ConfigError(f"a map has 2 or 3 axes and at most d_model = {d_model}, not {axes}")
    for checkpoint in checkpoints:
        if not checkpoint.steps:
            raise CheckpointError(f"{checkpoint.name} stores no embeddings over training")
        if not checkpoint.vocabulary.itos[checkpoint.vocabulary.lexical]:
            raise CheckpointError(f"the vocabulary of {checkpoint.name} holds no words")


def _moments(index: int, checkpoint: Checkpoint, label: str) -> _Table:
    lexical = checkpoint.embedding_at(label)[checkpoint.vocabulary.lexical]
    mean = lexical.mean(axis=0)
    centred = lexical - mean
    return _Table(index, label, len(lexical), mean, centred.T @ centred)


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


def _share(
    scatter: Float[np.ndarray, "d_model d_model"], basis: Float[np.ndarray, "axis d_model"]
) -> float:
    total = np.trace(scatter)
    return float(np.einsum("ad,de,ae->", basis, scatter, basis) / total) if total > 0 else 0.0
