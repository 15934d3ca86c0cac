"""Splits, duplicates, order, windows and what is too short to train on."""

import hashlib
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordlm_core.corpora import Corpus, stories
from wordlm_core.errors import ConfigError, CorpusError
from wordlm_core.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID, normalise, tokenise
from wordlm_core.vocabulary import WordVocabulary
from wordlm_core.windows import SPLITS, Dataset, Windows, build_windows, prepare, split_of


def corpus(documents: list[str]) -> Corpus:
    return Corpus("test", tuple(documents), "CC0-1.0", "a test")


def prepared(documents: list[str], context_length: int = 4, **options: int) -> Dataset:
    sizes = {"max_vocab": 500, "min_freq": 1} | options
    return prepare(corpus(documents), context_length=context_length, **sizes)


def numbered(count: int, words: int = 6) -> list[str]:
    return [" ".join(f"w {i} {'x ' * words}".split()[:words]) for i in range(count)]


# -- the split


def split_by_hand(text: str, seed: int = 31415) -> str:
    leading = int(hashlib.sha256(f"{seed}\x00{text}".encode()).hexdigest()[:16], 16)
    if leading < 0.8 * 2**64:
        return "train"
    return "validation" if leading < 0.9 * 2**64 else "test"


def test_the_split_is_the_hash_of_seed_and_text() -> None:
    texts = [f"story number {i}" for i in range(3000)] + ["", "caf\u00e9", "\u732b"]
    assert [split_of(text) for text in texts] == [split_by_hand(text) for text in texts]
    assert [split_of(text, 7) for text in texts] == [split_by_hand(text, 7) for text in texts]
    counts = Counter(map(split_of, texts))
    for split, share in (("train", 0.8), ("validation", 0.1), ("test", 0.1)):
        assert abs(counts[split] / len(texts) - share) < 0.03


def test_a_document_stays_in_its_split_whatever_else_there_is() -> None:
    few, many = prepared(numbered(60)), prepared(numbered(200))
    for split in SPLITS:
        texts = [_text(few, row) for row in few.splits[split].documents()]
        assert set(texts) <= {_text(many, row) for row in many.splits[split].documents()}


def _text(data: Dataset, ids: np.ndarray) -> str:
    return " ".join(data.vocabulary.itos[i] for i in ids[1:-1])


def test_documents_are_normalised_unique_and_ordered_by_hash() -> None:
    documents = [*numbered(80), "W 3 X X X X", "  w  3 x x x x\n", "", " \t", "w 5 x x x x"]
    everything = WordVocabulary.build(map(str.split, numbered(80)), min_freq=1, max_vocab=500)
    data = prepare(
        corpus(documents), context_length=4, max_vocab=5, min_freq=1, vocabulary=everything
    )
    for split in SPLITS:
        texts = [_text(data, row) for row in data.splits[split].documents()]
        wanted = [text for text in numbered(80) if split_by_hand(text) == split]
        assert texts == sorted(wanted, key=lambda t: hashlib.sha256(t.encode()).hexdigest())
    assert data.audit["documents"] == 85
    assert data.audit["duplicates_removed"] == 3
    assert data.audit["blank_removed"] == 2


def test_the_vocabulary_is_of_the_training_documents_alone() -> None:
    documents = numbered(100)
    data = prepared(documents)
    training = [text for text in documents if split_by_hand(text) == "train"]
    counts = Counter(token for text in training for token in text.split())
    assert set(data.vocabulary.itos[4:]) == set(counts)
    assert list(data.vocabulary.itos[4:]) == sorted(counts, key=lambda t: (-counts[t], t))


def test_the_audit_counts_what_is_there() -> None:
    data = prepared(list(stories.load(documents=120).documents), 16, max_vocab=60, min_freq=2)
    vocabulary, audit = data.vocabulary, data.audit
    assert audit["vocab_size"] == len(vocabulary) == 60
    total = 0
    for split in SPLITS:
        texts = {normalise(text) for text in data.corpus.documents}
        mine = [tokenise(text) for text in texts if split_by_hand(text) == split]
        tokens = [token for document in mine for token in document]
        found = audit["splits"][split]
        assert found["documents"] == len(mine)
        assert found["tokens"] == len(tokens)
        assert found["targets"] == len(tokens) + len(mine) == len(data.splits[split])
        unknown = sum(token not in vocabulary.stoi for token in tokens)
        assert found["unknown_share"] == unknown / len(tokens) > 0
        total += found["documents"]
    assert total == audit["documents"] - audit["duplicates_removed"]


def test_a_given_vocabulary_is_used_as_it_is() -> None:
    vocabulary = WordVocabulary.build([["w", "x"]], min_freq=1, max_vocab=9)
    data = prepare(
        corpus(numbered(60)), context_length=64, max_vocab=5, min_freq=9, vocabulary=vocabulary
    )
    assert data.vocabulary is vocabulary
    assert UNK_ID in data.splits["train"].ids


# -- the windows


def naive(documents: list[list[int]], context: int) -> tuple[list[list[int]], list[int]]:
    contexts, targets = [], []
    for document in documents:
        row = [BOS_ID, *document, EOS_ID]
        for at in range(1, len(row)):
            before = row[max(0, at - context) : at]
            contexts.append([PAD_ID] * (context - len(before)) + before)
            targets.append(row[at])
    return contexts, targets


@given(
    documents=st.lists(st.lists(st.integers(3, 9), max_size=7), min_size=1, max_size=5),
    context=st.integers(1, 9),
)
def test_windows_equal_a_naive_construction(documents: list[list[int]], context: int) -> None:
    windows = build_windows(documents, context)
    contexts, targets = naive(documents, context)
    assert len(windows) == len(targets)
    assert windows.contexts().tolist() == contexts
    assert windows.targets().tolist() == targets
    assert [row[1:-1].tolist() for row in windows.documents()] == documents


def test_any_selection_of_windows_is_aligned() -> None:
    windows = build_windows([[5, 6, 7], [8], [9, 4, 4, 4]], 3)
    contexts, targets = naive([[5, 6, 7], [8], [9, 4, 4, 4]], 3)
    for which in (slice(2, 6), slice(100, 200), np.array([7, 0, 7, 3])):
        assert windows.contexts(which).tolist() == np.array(contexts)[which].tolist()
        assert windows.targets(which).tolist() == np.array(targets)[which].tolist()


def test_all_windows_are_one_array_that_nobody_can_change() -> None:
    documents = [[4] * 200] * 500
    tracemalloc.start()
    windows = build_windows(documents, 64)
    batch = windows.contexts(slice(0, 10))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    targets = 500 * 201
    assert len(windows) == targets
    assert windows.ids.size == 500 * (202 + 63)
    assert peak < 4 * targets * 8  # a copy of all windows would be 64 times the targets
    for array in (windows.ids, windows.ends):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    batch[:] = 0  # a batch is the reader's own
    assert windows.ids.max() == 4


def test_a_context_must_be_positive() -> None:
    for context in (0, -3):
        with pytest.raises(ConfigError, match="context must be 1 token or more"):
            build_windows([[4]], context)


def test_no_documents_give_no_windows() -> None:
    windows = build_windows([], 5)
    assert isinstance(windows, Windows)
    assert len(windows) == 0


# -- too short


@pytest.mark.parametrize("documents", [[], [""], ["  ", "\n"], ["word"], ["a b c"] * 50])
def test_too_few_documents_name_the_number_needed(documents: list[str]) -> None:
    with pytest.raises(CorpusError, match=r"no document fell into .* from about 100 on") as caught:
        prepared(documents)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("words", [1, 5, 14])
def test_documents_shorter_than_the_context_name_the_length_needed(words: int) -> None:
    documents = [" ".join([f"{i}", *["word"] * (words - 1)]) for i in range(150)]
    with pytest.raises(CorpusError, match=rf"has {words} tokens.*16 needs one of at least 15"):
        prepared(documents, 16)


@pytest.mark.parametrize("words", [15, 17])
def test_one_document_that_fills_the_context_is_enough(words: int) -> None:
    documents = numbered(60, 5)
    long = next(
        text
        for i in range(100)
        if split_by_hand(text := " ".join([f"{i}", *["word"] * (words - 1)])) == "train"
    )
    data = prepared([*documents, long], 16)
    full = data.splits["train"].contexts()
    assert (full != PAD_ID).all(axis=1).any()
