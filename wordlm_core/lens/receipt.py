"""Corpus receipt: what the training corpus says after the same last words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Int

from wordlm_core.checkpoint import naming, read_arrays, write_arrays
from wordlm_core.errors import CheckpointError
from wordlm_core.lens._common import check_length
from wordlm_core.text import BOS_ID
from wordlm_core.vocabulary import Vocabulary


@dataclass(frozen=True)
class NGrams:
    """Pairs and triples of neighbouring ids of a training split, each seen often enough.

    Attributes:
        bigrams: Rows (a, b, count), sorted by a, b.
        trigrams: Rows (a, b, c, count), sorted by a, b, c.
        least: Rarer ones are left out.
        total_tokens: Tokens that were counted, `<BOS>` and `<EOS>` among them.
        vocabulary_sha256: Of the vocabulary that the ids belong to.
    """

    bigrams: Int[np.ndarray, "pairs 3"]
    trigrams: Int[np.ndarray, "triples 4"]
    least: int
    total_tokens: int
    vocabulary_sha256: str


@dataclass(frozen=True)
class Follower:
    """A token, how often it followed, and its share of all followers counted."""

    token: str
    count: int
    share: float


@dataclass(frozen=True)
class Followers:
    """What followed the same last words in training.

    Attributes:
        context: The words that were followed.
        total: How often they were, counting only followers seen `least` times or more.
        items: The commonest followers, by count falling.
    """

    context: tuple[str, ...]
    total: int
    items: tuple[Follower, ...]


@dataclass(frozen=True)
class Receipt:
    """What the corpus says where a model predicts.

    Attributes:
        after_one: Followers of the last token.
        after_two: Followers of the last two; None for a text of one token.
        last_count: How often the last token stands in the training split.
        least: Followers seen less often are not counted.
    """

    unit: ClassVar[str] = "times in the training split"

    after_one: Followers
    after_two: Followers | None
    last_count: int
    least: int


def count(
    documents: Iterable[Int[np.ndarray, " _"]], vocabulary: Vocabulary, *, least: int = 2
) -> NGrams:
    """Count the pairs and triples inside documents; none crosses from one into the next.

    Args:
        documents: Ids of each, from `<BOS>` to `<EOS>`.
        vocabulary: The ids' own.
        least: Leave out what is seen less often.
    """
    ids = np.concatenate([np.empty(0, np.int64), *documents])
    return NGrams(
        bigrams=_count(ids, 2, len(vocabulary), least),
        trigrams=_count(ids, 3, len(vocabulary), least),
        least=least,
        total_tokens=len(ids),
        vocabulary_sha256=vocabulary.sha256,
    )


def receipt(
    ngrams: NGrams, vocabulary: Vocabulary, ids: Int[np.ndarray, " pos"], top: int = 8
) -> Receipt:
    """Return what followed a text's last token, and its last two, in the training split.

    Counts are of exact neighbours: the corpus knows nothing of words further back, and
    shares of a small total say little. `<UNK>` stands for many words at once.

    Args:
        ngrams: Of the split the model was trained on.
        vocabulary: The model's.
        ids: The text, `<BOS>` included.
        top: Followers a list (>= 1).

    Raises:
        CheckpointError: The counts belong to another vocabulary.
    """
    if ngrams.vocabulary_sha256 != vocabulary.sha256:
        raise CheckpointError("the corpus counts belong to another vocabulary than the model's")
    last = [int(i) for i in ids[-2:]]
    return Receipt(
        after_one=_followers(ngrams.bigrams, vocabulary, last[-1:], top),
        after_two=_followers(ngrams.trigrams, vocabulary, last, top) if len(last) == 2 else None,
        last_count=vocabulary.counts.get(vocabulary.itos[last[-1]], 0),
        least=ngrams.least,
    )


def save(ngrams: NGrams, path: Path) -> None:
    """Write the counts as an .npz file."""
    arrays = {"bigrams": ngrams.bigrams, "trigrams": ngrams.trigrams}
    metadata = {
        "least": ngrams.least,
        "total_tokens": ngrams.total_tokens,
        "vocabulary_sha256": ngrams.vocabulary_sha256,
    }
    write_arrays(path, arrays, metadata, compress=True)


def load(path: Path) -> NGrams:
    """Read what `save` wrote.

    Raises:
        CheckpointError: Unreadable, or no such counts; the file is named.
    """
    with naming(path):
        arrays, metadata = read_arrays(path)
        return NGrams(
            bigrams=_table(arrays, "bigrams", 3),
            trigrams=_table(arrays, "trigrams", 4),
            least=_entry(metadata, "least", int),
            total_tokens=_entry(metadata, "total_tokens", int),
            vocabulary_sha256=_entry(metadata, "vocabulary_sha256", str),
        )


def _count(
    ids: Int[np.ndarray, " flat"], length: int, vocab_size: int, least: int
) -> Int[np.ndarray, "rows columns"]:
    """Return the sorted rows of ids and count of all runs of `length` ids in a document."""
    columns = [ids[i : len(ids) - length + 1 + i] for i in range(length)]
    inside = np.all([column != BOS_ID for column in columns[1:]], axis=0)
    shape = (vocab_size,) * length
    codes = np.ravel_multi_index([column[inside] for column in columns], shape)
    found, counts = np.unique(codes, return_counts=True)
    kept = counts >= least
    rows = [*np.unravel_index(found[kept], shape), counts[kept]]
    return np.stack(rows, axis=1).astype(np.int32)


def _followers(
    rows: Int[np.ndarray, "rows columns"], vocabulary: Vocabulary, context: list[int], top: int
) -> Followers:
    for column, token_id in enumerate(context):  # sorted, so equal beginnings stand together
        start, end = np.searchsorted(rows[:, column], [token_id, token_id + 1])
        rows = rows[start:end]
    followers, counts = rows[:, -2], rows[:, -1]
    total = int(counts.sum())
    best = np.argsort(-counts, kind="stable")[: check_length(top)]
    return Followers(
        context=tuple(vocabulary.itos[i] for i in context),
        total=total,
        items=tuple(
            Follower(vocabulary.itos[followers[i]], int(counts[i]), int(counts[i]) / total)
            for i in best
        ),
    )


def _table(arrays: Mapping[str, np.ndarray], name: str, columns: int) -> np.ndarray:
    table = arrays.get(name)
    if table is None or table.dtype.kind != "i" or table.ndim != 2 or table.shape[1] != columns:
        raise CheckpointError(f"{name} is no table of {columns} columns of whole numbers")
    return table


def _entry(metadata: Mapping[str, Any], key: str, kind: type) -> Any:
    value = metadata.get(key)
    if not isinstance(value, kind):
        raise CheckpointError(f"the counts do not say their {key}")
    return value
