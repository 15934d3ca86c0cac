"""Vocabulary: build order, ids, and probes."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordlm_core.errors import CheckpointError, ConfigError, TextError
from wordlm_core.text import BOS, BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK, UNK_ID
from wordlm_core.vocabulary import CharVocabulary, Vocabulary, WordVocabulary

DOCUMENTS = [["b", "a", "b", "c"], ["a", "c", "d", UNK], ["b", "."]]


def build(min_freq: int = 1, max_vocab: int = 100) -> Vocabulary:
    return WordVocabulary.build(DOCUMENTS, min_freq=min_freq, max_vocab=max_vocab)


# -- building


def test_frequent_first_then_by_token():
    built = build()
    assert built.itos == (*SPECIALS, "b", "a", "c", ".", "d")
    assert built.counts == {"b": 3, "a": 2, "c": 2, ".": 1, "d": 1, UNK: 1}


def test_unk_counts_what_is_left_out():
    assert build(min_freq=2).itos[4:] == ("b", "a", "c")
    assert build(min_freq=2).counts[UNK] == 3
    cut = build(max_vocab=6)
    assert cut.itos[4:] == ("b", "a")
    assert cut.counts[UNK] == 5
    assert sum(cut.counts.values()) == sum(map(len, DOCUMENTS))


def test_with_every_word_kept_unk_was_never_seen():
    built = WordVocabulary.build([["a", "b"]], min_freq=1, max_vocab=100)
    assert built.counts[UNK] == 0


def test_build_does_not_depend_on_the_order_of_documents():
    shuffled = WordVocabulary.build(DOCUMENTS[::-1], min_freq=1, max_vocab=100)
    assert shuffled.itos == build().itos
    assert shuffled.sha256 == build().sha256


@pytest.mark.parametrize("sizes", [{"min_freq": 0}, {"max_vocab": 4}, {"max_vocab": 10**9}])
def test_build_sizes_out_of_range(sizes):
    with pytest.raises(ConfigError):
        build(**sizes)


# -- reading and writing


def test_json_keeps_order_and_counts():
    built = build()
    again = Vocabulary.from_json(json.loads(json.dumps(built.to_json())), "here")
    assert (again.itos, again.counts, again.sha256) == (built.itos, built.counts, built.sha256)


def test_hash_tells_orders_apart():
    other = WordVocabulary((*SPECIALS, "a", "b"), {})
    assert other.sha256 != WordVocabulary((*SPECIALS, "b", "a"), {}).sha256
    assert other.sha256 == WordVocabulary((*SPECIALS, "a", "b"), {"a": 5}).sha256


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "here has no list of tokens"),
        ([], "here has no list of tokens"),
        ({"itos": "abc"}, "no list of tokens"),
        ({"itos": [1, 2]}, "no list of tokens"),
        ({"itos": ["a", "b"]}, "must begin with <PAD>"),
        ({"itos": []}, "not nothing"),
        ({"itos": [*SPECIALS, "a", "a"]}, "names a token twice"),
        ({"itos": [*SPECIALS], "counts": [1]}, "'counts' in here"),
        ({"itos": [*SPECIALS], "counts": {"a": -1}}, "'counts' in here"),
        ({"itos": [*SPECIALS], "counts": {"a": True}}, "'counts' in here"),
        ({"itos": [*SPECIALS, "\ud800"]}, "here holds half a surrogate pair"),
        ({"itos": [*SPECIALS], "counts": {"\udfff": 1}}, "here holds half a surrogate pair"),
    ],
)
def test_json_that_is_no_vocabulary(data, message):
    with pytest.raises(CheckpointError, match=message):
        Vocabulary.from_json(data, "here")


def test_ids_and_tokens_go_both_ways(vocabulary):
    assert [vocabulary.stoi[token] for token in SPECIALS] == [PAD_ID, BOS_ID, EOS_ID, UNK_ID]
    assert all(vocabulary.stoi[token] == i for i, token in enumerate(vocabulary.itos))
    assert len(vocabulary) == len(vocabulary.itos)
    assert vocabulary.encode(["cat", "zebra", "."]) == [5, UNK_ID, len(vocabulary) - 1]


# -- probes


def test_a_probe_begins_with_bos_and_marks_the_unknown(vocabulary):
    probe = vocabulary.probe("The zebra saw \u043c\u0438\u0440 <PAD>!", 20)
    assert probe.tokens == ("<BOS>", "the", UNK, "saw", UNK, UNK, UNK)
    assert probe.typed == ("<BOS>", "the", "zebra", "saw", "\u043c\u0438\u0440", "<pad>", "!")
    assert probe.ids.tolist() == [BOS_ID, 4, UNK_ID, 6, UNK_ID, UNK_ID, UNK_ID]
    assert probe.unknown == (2, 4, 5, 6)
    assert probe.dropped == 0
    assert not probe.ids.flags.writeable


@pytest.mark.parametrize("words", [3, 4, 5, 40])
def test_of_a_long_text_the_last_tokens_are_kept(vocabulary, words):
    """BOS counts as a token: a text of exactly the context length loses it."""
    text = [vocabulary.itos[4 + i % 5] for i in range(words)]
    probe = vocabulary.probe(" ".join(text), 4)
    assert probe.tokens == ("<BOS>", *text)[-4:]
    assert probe.dropped == max(0, words + 1 - 4)
    assert len(probe.typed) == len(probe.ids) == min(4, words + 1)


def test_unknown_positions_are_of_the_kept_tokens(vocabulary):
    probe = vocabulary.probe("zebra the zebra cat", 2)
    assert (probe.tokens, probe.unknown, probe.dropped) == ((UNK, "cat"), (0,), 3)


@pytest.mark.parametrize("text", ["", "   ", "\n", "\u00a0\t", "\u0301"])
def test_a_text_of_nothing_is_a_sentence(vocabulary, text):
    with pytest.raises(TextError, match="type at least one word"):
        vocabulary.probe(text, 8)


@given(st.text(max_size=80), st.integers(1, 12))
def test_any_text_gives_a_probe_or_a_sentence(text, context):
    vocabulary = build()
    try:
        probe = vocabulary.probe(text, context)
    except TextError:
        return
    assert 1 <= len(probe.ids) <= context
    assert len(probe.tokens) == len(probe.typed) == len(probe.ids)
    assert PAD_ID not in probe.ids
    assert EOS_ID not in probe.ids
    assert (np.flatnonzero(probe.ids == BOS_ID) == np.arange(probe.dropped == 0)).all()
    assert [probe.tokens[i] for i in probe.unknown] == [UNK] * probe.tokens.count(UNK)


def test_curly_and_straight_apostrophes_read_the_same():
    vocabulary = WordVocabulary((*SPECIALS, "don't", "she's"), {})
    for text in ("don\u2019t she\u2018s", "DON'T she's"):
        assert vocabulary.probe(text, 8).ids.tolist() == [BOS_ID, 4, 5]


# -- single words


@pytest.mark.parametrize("typed", ["cat", "Cat", " CAT ", "c\u00e1t", "\uff43\uff41\uff54"])
def test_a_word_is_found_in_its_normal_form(vocabulary, typed):
    assert vocabulary.itos[vocabulary.word_id(typed)] == "cat"


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("happpy", "'happpy' is not in this vocabulary; near it: happy"),
        ("qqqqqq", "'qqqqqq' is not in this vocabulary$"),
        ("", "one word is needed here, not 0"),
        ("the cat", "one word is needed here, not 2"),
        ("<UNK>", "reads as <UNK>, whose row stands for every unknown word"),
        ("\u043c\u0438\u0440", "reads as <UNK>"),
        ("x" * 5000, f"^'{'x' * 40}...' is not in this vocabulary$"),
    ],
)
def test_a_word_that_is_none(vocabulary, typed, message):
    with pytest.raises(TextError, match=message):
        vocabulary.word_id(typed)


def test_near_spellings_are_words_best_first(vocabulary):
    assert vocabulary.near("Brd")[0] == "bird"
    assert not set(vocabulary.near("<UNK>")) & set(SPECIALS)
    assert len(vocabulary.near("a", limit=2)) <= 2


def test_the_last_tokens_are_a_text_of_their_own():
    words = WordVocabulary((*SPECIALS, "the", "cat"), {})
    whole = words.probe("the cat zebra the", 10)
    last = whole.last(2)
    assert last.tokens == (UNK, "the")
    assert last.typed == ("zebra", "the")
    assert last.ids.tolist() == whole.ids[-2:].tolist()
    assert (last.unknown, last.dropped) == ((0,), 3)
    assert whole.last(99).tokens == whole.tokens


# -- characters


LETTERS = CharVocabulary.build(["Zoë", "mary-jane", "a b"])


def test_characters_are_sorted_and_bos_is_last():
    assert LETTERS.itos == (*sorted(set("Zoëmary-janea b")), BOS)
    assert LETTERS.counts["a"] == 3
    assert (LETTERS.bos_id, LETTERS.end_id, LETTERS.unknown_id) == (13, 13, None)
    assert LETTERS.never_drawn == ()
    assert LETTERS.itos[LETTERS.lexical] == LETTERS.itos[:-1]


def test_a_probe_of_characters_is_letter_by_letter():
    probe = LETTERS.probe("  Zoë ", 8)
    assert probe.tokens == (BOS, "Z", "o", "ë")
    assert probe.ids.tolist() == [13, *(LETTERS.stoi[c] for c in "Zoë")]
    assert (probe.unknown, probe.dropped) == ((), 0)
    cut = LETTERS.probe("mary-jane", 4)
    assert (cut.tokens, cut.dropped) == (tuple("jane"), 6)
    assert LETTERS.joined(cut.tokens) == "jane"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "maryx",
            r"'x' \(character 5\) is none of the 13 characters that this model knows: ␣-Z",
        ),
        ("E", r"'E' \(character 1\) is none .*; it does know 'e'$"),
        ("a\tb", r"'⇥' \(character 2\) is none"),
        ("<BOS>", r"'<' \(character 1\) is none"),
        ("a\U0001f600", r"\(character 2\) is none"),
        ("", "type at least one character"),
        (" \n", "type at least one character"),
    ],
)
def test_a_character_outside_is_named_with_its_place(text, message):
    with pytest.raises(TextError, match=message):
        LETTERS.probe(text, 8)


def test_one_character_has_a_row():
    assert LETTERS.itos[LETTERS.word_id("a")] == "a"
    assert LETTERS.itos[LETTERS.word_id(" a ")] == "a"
    assert LETTERS.itos[LETTERS.word_id(" ")] == " "
    for typed in ("", "ab", "  "):
        with pytest.raises(TextError, match="one character is needed here"):
            LETTERS.word_id(typed)
    assert LETTERS.knows("a")
    assert not LETTERS.knows("q")
    assert LETTERS.near("A") == ["a"]
    assert LETTERS.near("q") == []


def test_characters_come_back_from_json():
    again = Vocabulary.from_json(LETTERS.to_json(), "here")
    assert again == LETTERS
    assert isinstance(again, CharVocabulary)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"tokenizer": "char", "itos": ["a", "b"]}, "ends with <BOS>"),
        ({"tokenizer": "char", "itos": ["ab", "<BOS>"]}, "holds single ones"),
        ({"tokenizer": "char", "itos": ["a", "a", "<BOS>"]}, "names a token twice"),
        ({"tokenizer": "bytes", "itos": ["a", "<BOS>"]}, "has the tokenizer 'bytes'; this version"),
        ({"tokenizer": 3, "itos": ["a", "<BOS>"]}, "has the tokenizer '3'"),
    ],
)
def test_a_list_of_characters_that_is_none(data, message):
    with pytest.raises(CheckpointError, match=message):
        Vocabulary.from_json(data, "the file")
