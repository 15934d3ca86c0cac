"""Neighbours: what is near what in the embedding table, and since which step."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from wordlm_core.checkpoint import Checkpoint, step_number
from wordlm_core.errors import TextError
from wordlm_core.lens._common import largest
from wordlm_core.vocabulary import Vocabulary

# Shorter rows have no direction worth the name: those never trained, or padding.
_TINY = 1e-12


@dataclass(frozen=True)
class Neighbour:
    """A token and the cosine of its row with the vector asked for."""

    token: str
    id: int
    cosine: float


@dataclass(frozen=True)
class Neighbours:
    """The nearest tokens of one word, by cosine falling."""

    unit: ClassVar[str] = "cosine"

    word: str
    items: tuple[Neighbour, ...]


@dataclass(frozen=True)
class HistoryStep:
    """The nearest tokens at one stored step.

    Attributes:
        label: The step's label.
        step: Its number.
        items: Nearest tokens, by cosine falling.
        joined: Tokens that were not among them at the stored step before.
        left: Tokens that were, and no longer are. Both are empty at the first step.
    """

    label: str
    step: int
    items: tuple[Neighbour, ...]
    joined: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True)
class NeighbourHistory:
    """The nearest tokens of one word at every stored step, in step order."""

    unit: ClassVar[str] = "cosine"

    word: str
    steps: tuple[HistoryStep, ...]


@dataclass(frozen=True)
class Similarity:
    """How alike the lookup rows of a few words are, each with each.

    Attributes:
        tokens: The words, in the order given.
        cosines: Row i, column j: the cosine of words i and j.
    """

    unit: ClassVar[str] = "cosine"

    tokens: tuple[str, ...]
    cosines: Float[np.ndarray, "word word"]


def nearest(
    table: Float[np.ndarray, "vocab d_model"], vocabulary: Vocabulary, word_id: int, top: int = 8
) -> Neighbours:
    """Return the tokens whose lookup rows point most nearly the same way as a word's.

    Cosine ignores length, and near in this table means used alike in this training, not
    alike in meaning. Specials, the word itself and rows without a direction are left out.

    Args:
        table: Token embeddings.
        vocabulary: Labels of its rows.
        word_id: The row asked for.
        top: At most so many (>= 1).

    Raises:
        TextError: The word's own row has no direction.
    """
    word = vocabulary.itos[word_id]
    if np.linalg.norm(table[word_id].astype(np.float64)) < _TINY:
        raise TextError(f"the row of {word!r} is zero, so nothing is near it")
    items = nearest_to(table[word_id], table, vocabulary, top, exclude=(word_id,))
    return Neighbours(word=word, items=items)


def nearest_to(
    vector: Float[np.ndarray, " d_model"],
    table: Float[np.ndarray, "vocab d_model"],
    vocabulary: Vocabulary,
    top: int = 8,
    exclude: Iterable[int] = (),
) -> tuple[Neighbour, ...]:
    """Return the tokens whose rows have the largest cosine with any vector.

    Empty for a vector without a direction. Specials, the ids in `exclude` and rows without
    a direction are left out.
    """
    rows, target = table.astype(np.float64), vector.astype(np.float64)
    lengths, length = np.linalg.norm(rows, axis=1), np.linalg.norm(target)
    allowed = np.zeros(len(table), dtype=bool)
    allowed[vocabulary.lexical] = lengths[vocabulary.lexical] >= _TINY
    allowed[list(exclude)] = False
    ids = np.flatnonzero(allowed)
    if length < _TINY or not len(ids):
        return ()
    cosines = np.clip(rows[ids] @ target / (lengths[ids] * length), -1, 1)
    return tuple(
        Neighbour(vocabulary.itos[ids[i]], int(ids[i]), float(cosines[i]))
        for i in largest(cosines, top)
    )


def cosine(first: Float[np.ndarray, " d_model"], second: Float[np.ndarray, " d_model"]) -> float:
    """Return the cosine of two vectors; 0 where one has no direction, exactly 1 for equals."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    if np.array_equal(a, b):
        return 1.0 if np.linalg.norm(a) >= _TINY else 0.0
    scale = np.linalg.norm(a) * np.linalg.norm(b)
    return float(np.clip(a @ b / scale, -1, 1)) if scale >= _TINY**2 else 0.0


def similarity(
    table: Float[np.ndarray, "vocab d_model"], vocabulary: Vocabulary, word_ids: Sequence[int]
) -> Similarity:
    """Return the cosines of a few words' lookup rows, each with each.

    Symmetric, 1 on the diagonal; 0 where a row has no direction. It ignores length.
    """
    rows = [table[word_id] for word_id in word_ids]
    cosines = np.array([[cosine(a, b) for b in rows] for a in rows])
    return Similarity(tuple(vocabulary.itos[word_id] for word_id in word_ids), cosines)


def history(checkpoint: Checkpoint, word_id: int, top: int = 8) -> NeighbourHistory:
    """Return a word's nearest tokens at every stored step: who joined, who left, and when.

    A change shows at the first stored step after it happened. A step at which the word's
    row has no direction has no neighbours.

    Args:
        checkpoint: With stored embeddings; without any, the history is empty.
        word_id: The row asked for.
        top: Neighbours a step (>= 1).
    """
    steps: list[HistoryStep] = []
    for label in checkpoint.steps:
        table = checkpoint.embedding_at(label)
        items = nearest_to(table[word_id], table, checkpoint.vocabulary, top, exclude=(word_id,))
        now = [item.token for item in items]
        before = [item.token for item in steps[-1].items] if steps else now
        steps.append(
            HistoryStep(
                label=label,
                step=step_number(label),
                items=items,
                joined=tuple(token for token in now if token not in before),
                left=tuple(token for token in before if token not in now),
            )
        )
    return NeighbourHistory(checkpoint.vocabulary.itos[word_id], tuple(steps))
