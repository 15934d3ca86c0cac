"""Text to tokens: the rules, and that no input escapes them."""

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wordlm_core.text import SPECIALS, UNK, normalise, pieces, tokenise


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The cat  saw\tthe\n DOG.", ["the", "cat", "saw", "the", "dog", "."]),
        ("", []),
        (" \n\t\u00a0\u3000", []),
        # Apostrophes and quotes: what a phone types equals what a keyboard types.
        ("don't", ["don't"]),
        ("don\u2019t", ["don't"]),
        ("don\u02bct", ["don't"]),
        ("\u201cHi,\u201d she said", ['"', "hi", ",", '"', "she", "said"]),
        ("\u2018hi\u2019", ["'", "hi", "'"]),
        ("dogs' 'tis rock'n'roll", ["dogs", "'", "'", "tis", "rock'n", "'", "roll"]),
        ("a\u00b4b", ["a'b"]),
        # Dashes, the ellipsis, widths, ligatures.
        ("well\u2014no\u2026", ["well", "\u2014", "no", ".", ".", "."]),
        ("\uff24\uff2f\uff27 \ufb01n", ["dog", "fin"]),
        # Digits stay together, and a number is cut where letters begin.
        ("1 2 10 3", ["1", "2", "10", "3"]),
        ("2020-01 1e1", ["2020", "-", "01", "1", "e", "1"]),
        ("x\u00b2", ["x", "2"]),
        # Accents are folded away, composed or not; what is left decides.
        ("caf\u00e9 cafe\u0301 na\u00efve's", ["cafe", "cafe", "naive's"]),
        ("\u0130stanbul", ["istanbul"]),
        # Another script is one <UNK> a word, vowel signs included.
        ("\u043f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440!", [UNK, UNK, "!"]),
        ("\u4f60\u597d", [UNK]),
        ("\u0939\u093f\u0928\u094d\u0926\u0940 word", [UNK, "word"]),
        ("stra\u00dfe", [UNK]),
        # What the rule has no place for is one <UNK> a run, and swallows no word.
        ("snake_case", ["snake", UNK, "case"]),
        ("_abc__1", [UNK, "abc", UNK, "1"]),
        ("\u0663\u0664cat", [UNK, "cat"]),
        # Emoji are marks of their own.
        ("\U0001f642\U0001f642 ok", ["\U0001f642", "\U0001f642", "ok"]),
        # Typed specials are nobody's token.
        ("<PAD> <bos><Eos>", [UNK, UNK, UNK]),
        ("<UNK>", [UNK]),
        ("<b>dog</b>", ["<", "b", ">", "dog", "<", "/", "b", ">"]),
        ("< PAD >", ["<", "pad", ">"]),
    ],
)
def test_tokens_of_known_texts(text, tokens):
    assert tokenise(text) == tokens


@pytest.mark.parametrize("special", SPECIALS)
@pytest.mark.parametrize("change", [str, str.lower, str.title])
def test_no_special_can_be_typed(special, change):
    assert tokenise(f"a {change(special)} b") == ["a", UNK, "b"]


def test_pieces_keep_what_was_typed_beside_the_token():
    hindi, korean = "\u0939\u093f\u0928\u094d\u0926\u0940", "\ud55c\uad6d\uc5b4"
    assert pieces(f"Cafe\u0301, {hindi} {korean} <PAD> \u041c\u0438\u0440 __") == [
        ("cafe", "caf\u00e9"),
        (",", ","),
        (UNK, hindi),
        (UNK, korean),
        (UNK, "<pad>"),
        (UNK, "\u043c\u0438\u0440"),
        (UNK, "__"),
    ]


def test_normalise_known_values():
    assert normalise("  The\u00a0CAT\r\n\u2019s ") == "the cat 's"
    assert normalise("\u201c\uff21\u201d") == '"a"'


ANY_TEXT = st.text(max_size=60)
# Characters where rules meet: quotes, marks, digits and letters of many scripts, specials.
TRICKY = st.text(
    st.sampled_from(
        "aZ09_'\u2019\u00b4\u0301\u00e9\u0130\u00df\u0663\u0966\u0430\u4e2d\u0939\u093f"
        "<>PADUNK \n\t.,\U0001f642\u200d\u00bd\u2167\ufb01\ufeff"
    ),
    max_size=30,
)


@given(ANY_TEXT | TRICKY)
@example("\u0130")
@example("\u00b4")
@example("J\u030c")  # has no composed capital, but a composed small letter
def test_normalise_is_idempotent(text):
    once = normalise(text)
    assert normalise(once) == once
    assert once == once.strip()


@given(ANY_TEXT | TRICKY)
def test_tokens_have_one_of_four_forms_and_depend_on_the_normal_form_alone(text):
    tokens = tokenise(text)
    for token in tokens:
        assert token == UNK or re.fullmatch(r"[a-z]+(?:'[a-z]+)?|[0-9]+|[^\w\s]", token)
    assert tokenise(normalise(text)) == tokens


@given(ANY_TEXT | TRICKY)
def test_nothing_but_blanks_and_accents_is_dropped_without_a_trace(text):
    decomposed = unicodedata.normalize("NFD", normalise(text))
    kept = "".join(c for c in decomposed if not unicodedata.category(c).startswith("M"))
    typed = unicodedata.normalize("NFD", "".join(form for _, form in pieces(text)))
    assert "".join(c for c in typed if unicodedata.category(c)[0] != "M") == "".join(kept.split())


ODD = st.text(st.sampled_from("_\u0660\u0663\u0966\u096f\u17e0"), min_size=1, max_size=8)


@given(ODD, st.sampled_from(["", "cat", "7", "."]), st.sampled_from(["", "dog", "42", "!"]))
def test_a_run_of_odd_characters_is_one_unk(run, before, after):
    assert tokenise(before + run + after) == [*tokenise(before), UNK, *tokenise(after)]
