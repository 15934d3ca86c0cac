"""Lists of items: as they are, repeats counted, anything a character."""

import hashlib
import time

import numpy as np
import pytest

from tests import tiny
from wordlm_core.corpora import Corpus
from wordlm_core.errors import ConfigError, CorpusError
from wordlm_core.items import item_hash, prepare_items


def corpus(*documents: str) -> Corpus:
    return Corpus("mine", documents, "unknown", "typed")


def test_items_are_kept_as_they_are():
    data = prepare_items(corpus("Zoë", "mary-jane", " x ", "", "Zoë", "   "), context_length=8)
    assert data.documents == ("Zoë", "mary-jane", "x", "Zoë")
    assert data.vocabulary.itos == (
        "-",
        "Z",
        "a",
        "e",
        "j",
        "m",
        "n",
        "o",
        "r",
        "x",
        "y",
        "ë",
        "<BOS>",
    )
    assert data.audit == {
        "items": 4,
        "repeats": 1,
        "tokens": 16,
        "longest": 9,
        "longer_than_context": 1,
    }


def test_bos_stands_at_both_ends():
    data = prepare_items(corpus(*tiny.ITEMS))
    bos = data.vocabulary.bos_id
    assert bos == len(data.vocabulary) - 1
    inside = [data.vocabulary.stoi[c] for c in "eva"]
    assert data.vocabulary.document("eva").tolist() == [bos, *inside, bos]


def test_words_begin_and_end_like_the_word_models():
    data = prepare_items(corpus("The cat!", "the dog", "..."), tokens="word", min_freq=1)
    assert data.vocabulary.itos[:4] == ("<PAD>", "<BOS>", "<EOS>", "<UNK>")
    assert data.vocabulary.document("the bird")[[0, 2, 3]].tolist() == [1, 3, 2]


@pytest.mark.parametrize("documents", [(), ("", "  ")])
def test_an_empty_list_is_one_sentence(documents):
    with pytest.raises(CorpusError, match="mine holds 0 items"):
        prepare_items(corpus(*documents))
    with pytest.raises(CorpusError, match="mine holds 0 items"):
        prepare_items(corpus("\u0301"), tokens="word")  # an accent alone is no token


def test_an_unknown_kind_of_tokens():
    with pytest.raises(ConfigError, match="tokens are char or word, not 'bytes'"):
        prepare_items(corpus("a"), tokens="bytes")


def test_hashes_are_the_first_bytes_of_sha256():
    data = prepare_items(corpus("b", "a", "b"))
    expected = sorted(int.from_bytes(hashlib.sha256(x.encode()).digest()[:8], "big") for x in "ab")
    assert data.hashes().tolist() == expected
    assert data.hashes().dtype == np.uint64
    assert item_hash("a") in expected


def test_two_hundred_thousand_items_are_ready_in_seconds():
    many = tuple(f"item {i:x}" for i in range(200_000))
    started = time.perf_counter()
    data = prepare_items(corpus(*many))
    assert len(data.hashes()) == data.audit["items"] == 200_000
    assert time.perf_counter() - started < 30  # 0.5 s alone; it must not be quadratic
