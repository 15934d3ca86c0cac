"""Corpus receipt: counts by hand, and files that hold them."""

import numpy as np
import pytest

from tests import tiny
from wordlm_core.checkpoint import write_arrays
from wordlm_core.errors import CheckpointError, ConfigError
from wordlm_core.lens import receipt
from wordlm_core.lens.receipt import NGrams
from wordlm_core.text import BOS_ID, EOS_ID, SPECIALS
from wordlm_core.vocabulary import WordVocabulary
from wordlm_core.windows import build_windows

STORIES = ["the cat ran", "the cat ran away", "the dog ran", "cat"]
THE, CAT, DOG, RAN, AWAY = (tiny.VOCABULARY.stoi[w] for w in ("the", "cat", "dog", "ran", "away"))


def documents() -> list[np.ndarray]:
    return [np.array([BOS_ID, *tiny.VOCABULARY.encode(story.split()), EOS_ID]) for story in STORIES]


@pytest.fixture
def all_of_them() -> NGrams:
    return receipt.count(documents(), tiny.VOCABULARY, least=1)


def test_counts_by_hand(all_of_them):
    assert all_of_them.bigrams.tolist() == [
        [BOS_ID, THE, 3],
        [BOS_ID, CAT, 1],
        [THE, CAT, 2],
        [THE, DOG, 1],
        [CAT, EOS_ID, 1],
        [CAT, RAN, 2],
        [DOG, RAN, 1],
        [RAN, EOS_ID, 2],
        [RAN, AWAY, 1],
        [AWAY, EOS_ID, 1],
    ]
    assert all_of_them.trigrams.tolist() == [
        [BOS_ID, THE, CAT, 2],
        [BOS_ID, THE, DOG, 1],
        [BOS_ID, CAT, EOS_ID, 1],
        [THE, CAT, RAN, 2],
        [THE, DOG, RAN, 1],
        [CAT, RAN, EOS_ID, 1],
        [CAT, RAN, AWAY, 1],
        [DOG, RAN, EOS_ID, 1],
        [RAN, AWAY, EOS_ID, 1],
    ]
    assert all_of_them.total_tokens == 3 + 4 + 3 + 1 + 2 * len(STORIES)
    assert all_of_them.bigrams.dtype == np.int32


@pytest.mark.parametrize("context", [1, 2, 5])
def test_a_splits_windows_give_the_same_counts(all_of_them, context):
    windows = build_windows([tiny.VOCABULARY.encode(s.split()) for s in STORIES], context)
    again = receipt.count(windows.documents(), tiny.VOCABULARY, least=1)
    np.testing.assert_array_equal(again.bigrams, all_of_them.bigrams)
    np.testing.assert_array_equal(again.trigrams, all_of_them.trigrams)


def test_rare_ones_are_left_out():
    grams = receipt.count(documents(), tiny.VOCABULARY)
    assert grams.bigrams[:, -1].min() == 2
    assert grams.trigrams.tolist() == [[BOS_ID, THE, CAT, 2], [THE, CAT, RAN, 2]]
    none = receipt.count([], tiny.VOCABULARY)
    assert (none.bigrams.shape, none.trigrams.shape) == ((0, 3), (0, 4))


def test_receipt_by_hand(all_of_them, vocabulary):
    found = receipt.receipt(all_of_them, vocabulary, np.array([BOS_ID, THE, CAT, RAN]))
    assert found.after_one.context == ("ran",)
    assert found.after_one.total == 3
    rows = [(f.token, f.count, f.share) for f in found.after_one.items]
    assert rows == [("<EOS>", 2, pytest.approx(2 / 3)), ("away", 1, pytest.approx(1 / 3))]
    assert found.after_two.context == ("cat", "ran")
    assert [(f.token, f.count) for f in found.after_two.items] == [("<EOS>", 1), ("away", 1)]
    assert found.last_count == vocabulary.counts["ran"]
    assert found.least == 1


def test_receipt_of_a_short_text_and_of_one_never_seen(all_of_them, vocabulary):
    short = receipt.receipt(all_of_them, vocabulary, np.array([THE]))
    assert short.after_two is None
    assert [(f.token, f.count) for f in short.after_one.items] == [("cat", 2), ("dog", 1)]
    bird, saw = vocabulary.stoi["bird"], vocabulary.stoi["saw"]
    unseen = receipt.receipt(all_of_them, vocabulary, np.array([saw, bird]))
    assert (unseen.after_one.total, unseen.after_one.items) == (0, ())
    assert (unseen.after_two.total, unseen.after_two.items) == (0, ())


def test_a_list_is_cut_but_its_total_is_not(all_of_them, vocabulary):
    found = receipt.receipt(all_of_them, vocabulary, np.array([THE]), top=1)
    assert [f.token for f in found.after_one.items] == ["cat"]
    assert found.after_one.total == 3
    with pytest.raises(ConfigError, match="not 0"):
        receipt.receipt(all_of_them, vocabulary, np.array([THE]), top=0)


def test_counts_of_another_vocabulary_are_refused(all_of_them):
    other = WordVocabulary((*SPECIALS, *reversed(tiny.WORDS)), {})
    with pytest.raises(CheckpointError, match="another vocabulary"):
        receipt.receipt(all_of_them, other, np.array([THE]))


def test_saved_counts_are_read_again(all_of_them, tmp_path):
    receipt.save(all_of_them, tmp_path / "ngrams.npz")
    again = receipt.load(tmp_path / "ngrams.npz")
    np.testing.assert_array_equal(again.bigrams, all_of_them.bigrams)
    np.testing.assert_array_equal(again.trigrams, all_of_them.trigrams)
    assert (again.least, again.total_tokens) == (all_of_them.least, all_of_them.total_tokens)
    assert again.vocabulary_sha256 == tiny.VOCABULARY.sha256


@pytest.mark.parametrize(
    ("arrays", "metadata", "message"),
    [
        ({"bigrams": np.zeros((2, 4), np.int32)}, {}, "bigrams is no table of 3 columns"),
        ({"bigrams": np.zeros((2, 3), np.float32)}, {}, "bigrams is no table"),
        ({"trigrams": np.zeros(4, np.int32)}, {}, "trigrams is no table of 4 columns"),
        ({}, {"least": None}, "do not say their least"),
        ({}, {"vocabulary_sha256": 5}, "do not say their vocabulary_sha256"),
    ],
)
def test_a_file_that_holds_no_counts(tmp_path, arrays, metadata, message):
    good = {"bigrams": np.zeros((0, 3), np.int32), "trigrams": np.zeros((0, 4), np.int32)}
    said = {"least": 2, "total_tokens": 9, "vocabulary_sha256": "x"}
    write_arrays(tmp_path / "x.npz", good | arrays, said | metadata)
    with pytest.raises(CheckpointError, match=rf"^x\.npz: .*{message}"):
        receipt.load(tmp_path / "x.npz")
    (tmp_path / "y.npz").write_text("no archive")
    with pytest.raises(CheckpointError, match=r"^y\.npz: it is damaged"):
        receipt.load(tmp_path / "y.npz")
