"""Documents to training windows.

A window is the `context_length` ids before a target, left-padded with `<PAD>`. Documents run
from `<BOS>` to `<EOS>` and a window never crosses from one into the next. All windows of a
split are views of one id array: between documents it holds `context_length - 1` PADs, so a
slice that ends before any target is already padded.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy.lib.stride_tricks import sliding_window_view

from wordlm_core.corpora import Corpus
from wordlm_core.errors import ConfigError, CorpusError
from wordlm_core.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID, normalise, tokenise
from wordlm_core.vocabulary import WordVocabulary

SPLIT_SEED = 31415
SPLITS = ("train", "validation", "test")
_TRAIN_SHARE, _VALIDATION_END = 0.80, 0.90


@dataclass(frozen=True)
class Windows:
    """All windows of one split.

    Attributes:
        ids: The documents' ids with PADs between them, shape (flat,).
        ends: Index in `ids` of each target, shape (targets,).
        context_length: Ids in a window.
    """

    ids: Int[np.ndarray, " flat"]
    ends: Int[np.ndarray, " targets"]
    context_length: int

    def __len__(self) -> int:
        """Return the number of targets."""
        return len(self.ends)

    def contexts(self, which: Any = slice(None)) -> Int[np.ndarray, "batch context"]:
        """Return the windows of the targets `which` (an index array or a slice)."""
        views = sliding_window_view(self.ids, self.context_length)
        return views[self.ends[which] - self.context_length]

    def targets(self, which: Any = slice(None)) -> Int[np.ndarray, " batch"]:
        """Return the ids to predict, aligned with `contexts`."""
        return self.ids[self.ends[which]]

    def documents(self) -> Iterator[Int[np.ndarray, " tokens"]]:
        """Yield each document's ids, from `<BOS>` to `<EOS>`."""
        starts = np.flatnonzero(self.ids == BOS_ID)
        ends = np.flatnonzero(self.ids == EOS_ID)
        for start, end in zip(starts, ends, strict=True):
            yield self.ids[start : end + 1]


@dataclass(frozen=True)
class Dataset:
    """A corpus made ready for a word model: vocabulary, splits and how they came about."""

    corpus: Corpus
    vocabulary: WordVocabulary
    splits: dict[str, Windows]
    audit: dict[str, Any]


def split_of(normalised: str, seed: int = SPLIT_SEED) -> str:
    """Return the split of a document, from a hash of its text alone.

    A document lands in the same split whatever else the corpus holds.
    """
    digest = hashlib.sha256(f"{seed}\0{normalised}".encode()).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    if share < _TRAIN_SHARE:
        return "train"
    return "validation" if share < _VALIDATION_END else "test"


def build_windows(documents: Sequence[Sequence[int]], context_length: int) -> Windows:
    """Lay documents (ids without BOS and EOS) out as one padded array.

    Raises:
        ConfigError: `context_length` is not positive.
    """
    if context_length < 1:
        raise ConfigError(f"the context must be 1 token or more, not {context_length}")
    pad = context_length - 1
    flat = np.full(sum(len(d) + 2 + pad for d in documents), PAD_ID, dtype=np.int64)
    ends = np.empty(sum(len(d) + 1 for d in documents), dtype=np.int64)
    at = done = 0
    for document in documents:
        start, targets = at + pad, len(document) + 1
        flat[start] = BOS_ID
        flat[start + 1 : start + targets] = document
        flat[start + targets] = EOS_ID
        ends[done : done + targets] = np.arange(start + 1, start + 1 + targets)
        at, done = start + targets + 1, done + targets
    flat.setflags(write=False)
    ends.setflags(write=False)
    return Windows(flat, ends, context_length)


def prepare(
    corpus: Corpus,
    *,
    context_length: int,
    max_vocab: int,
    min_freq: int,
    vocabulary: WordVocabulary | None = None,
    needed: Sequence[str] = SPLITS,
) -> Dataset:
    """Split a corpus, build its vocabulary from the training documents, make windows.

    Args:
        corpus: The documents.
        context_length: Ids in a window.
        max_vocab: Vocabulary limit, specials included.
        min_freq: Least count of a kept token.
        vocabulary: Use this one instead of building one (to evaluate a saved model).
        needed: Splits that must hold a document.

    Raises:
        CorpusError: A split has no document, or no training document fills a context.
    """
    normal = [normalise(document) for document in corpus.documents]
    unique = dict.fromkeys(text for text in normal if text)
    tokens: dict[str, list[list[str]]] = {split: [] for split in SPLITS}
    for text in sorted(unique, key=lambda text: hashlib.sha256(text.encode()).hexdigest()):
        tokens[split_of(text)].append(tokenise(text))
    _require_splits(tokens, needed)
    if vocabulary is None:
        _require_context(tokens["train"], context_length)
        vocabulary = WordVocabulary.build(tokens["train"], min_freq=min_freq, max_vocab=max_vocab)
    ids = {split: [vocabulary.encode(d) for d in tokens[split]] for split in SPLITS}
    audit = {
        "documents": len(corpus.documents),
        "duplicates_removed": sum(1 for text in normal if text) - len(unique),
        "blank_removed": sum(1 for text in normal if not text),
        "vocab_size": len(vocabulary),
        "splits": {split: _audit_split(ids[split]) for split in SPLITS},
    }
    splits = {split: build_windows(ids[split], context_length) for split in SPLITS}
    return Dataset(corpus, vocabulary, splits, audit)


def _require_splits(tokens: dict[str, list[list[str]]], needed: Sequence[str]) -> None:
    empty = [split for split in needed if not tokens[split]]
    if empty:
        have = sum(map(len, tokens.values()))
        raise CorpusError(
            f"no document fell into the {' and '.join(empty)} split, for there are only {have} "
            "different ones: from about 100 on, every split gets its share"
        )


def _require_context(training: list[list[str]], context_length: int) -> None:
    # With shorter documents some positions of the window would hold nothing but padding.
    longest = max(map(len, training))
    if longest + 1 < context_length:
        raise CorpusError(
            f"the longest training document has {longest} tokens, but a context of "
            f"{context_length} needs one of at least {context_length - 1}: choose a shorter "
            "context or a longer text"
        )


def _audit_split(documents: list[list[int]]) -> dict[str, Any]:
    counts: Counter[int] = Counter()
    for document in documents:
        counts.update(document)
    tokens = counts.total()
    return {
        "documents": len(documents),
        "tokens": tokens,
        "targets": tokens + len(documents),
        "unknown_share": counts[UNK_ID] / tokens if tokens else 0.0,
    }
