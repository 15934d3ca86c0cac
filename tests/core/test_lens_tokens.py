"""Tokens: ids and pairs of a text, what is refused, losses against an independent count."""

import math

import numpy as np
import pytest

from tests import tiny
from wordlm_core import answers
from wordlm_core.errors import CheckpointError, TextError
from wordlm_core.lens import tokens, training_step
from wordlm_core.text import UNK_ID
from wordlm_core.vocabulary import CharVocabulary

LETTERS = CharVocabulary.build(("emma", "mary", "jane"))
BOS = LETTERS.bos_id


def read(text: str, context_length: int = 16, vocabulary=LETTERS) -> tokens.TokenTable:
    return tokens.read(vocabulary, text, context_length)


def test_a_name_stands_between_two_bos_and_each_id_is_the_target_of_the_one_before():
    table = read("emma")
    inside = [sorted("aejmnry").index(letter) for letter in "emma"]
    assert [token.id for token in table.tokens] == [7, *inside, 7]
    assert [token.label for token in table.tokens] == ["<BOS>", *"emma", "<BOS>"]
    assert [token.position for token in table.tokens] == list(range(6))
    assert [(p.input.label, p.target.label) for p in table.pairs] == [
        ("<BOS>", "e"), ("e", "m"), ("m", "m"), ("m", "a"), ("a", "<BOS>"),
    ]  # fmt: skip
    assert table.trained == table.pairs
    assert table.cut_off == table.strange == ()


@pytest.mark.parametrize("letters", [14, 15, 16, 17, 40])
def test_what_is_beyond_the_context_is_not_trained(letters):
    table = read("m" * letters)
    assert len(table.pairs) == letters + 1
    assert len(table.trained) == min(16, letters + 1)
    assert [pair.trained for pair in table.pairs] == [i < 16 for i in range(letters + 1)]
    assert table.trained + table.cut_off == table.pairs
    # Up to 15 letters the end is learned; from 16 on it is not.
    assert (table.trained[-1].target.id == BOS) == (letters <= 15)


def test_every_strange_character_is_named_with_its_place():
    table = read(" mary-Jane ")
    assert [(each.place, each.label, each.known_as) for each in table.strange] == [
        (5, "-", None),
        (6, "J", "j"),
    ]
    assert table.pairs == ()
    assert [token.label for token in table.tokens] == ["<BOS>", *"mary-Jane", "<BOS>"]
    strange = [token.position for token in table.tokens if token.id is None]
    assert strange == [each.place for each in table.strange]


def test_white_space_and_typed_specials_are_characters_like_any_other():
    assert [each.label for each in read("m\ta y").strange] == ["\u21e5", "\u2423"]
    assert [each.label for each in read("<BOS>").strange] == ["<", "B", "O", "S", ">"]
    with pytest.raises(TextError, match="nothing to read"):
        read(" \n")


def test_a_word_vocabulary_refuses_nothing():
    table = read("The zebra saw", vocabulary=tiny.VOCABULARY)
    assert table.strange == ()
    assert [token.id for token in table.tokens][2] == UNK_ID
    assert [token.label for token in table.tokens] == ["<BOS>", "the", "<UNK>", "saw", "<EOS>"]


@pytest.mark.parametrize("text", ["emma", "a", "adamadam"])
def test_the_losses_are_those_of_the_trace(text):
    loaded = tiny.char_checkpoint()
    table = tokens.read(loaded.vocabulary, text, loaded.model.config.context_length)
    found = tokens.losses(loaded.model, table)
    inputs = np.array([pair.input.id for pair in table.trained])
    logits = loaded.model.trace(inputs).logits
    expected = [
        math.log(sum(math.exp(logit) for logit in row)) - row[pair.target.id]
        for row, pair in zip(logits, table.trained, strict=True)
    ]
    assert found == pytest.approx(expected, abs=1e-12)


def test_nothing_is_computed_of_a_refused_text_or_by_a_word_model():
    loaded = tiny.char_checkpoint()
    assert len(tokens.losses(loaded.model, tokens.read(loaded.vocabulary, "Zoë", 8))) == 0
    with pytest.raises(CheckpointError, match="microgpt"):
        tokens.losses(tiny.make_model("attention"), read("the cat", vocabulary=tiny.VOCABULARY))


def test_the_alphabet_has_every_row_and_its_shares_add_up():
    rows = tokens.alphabet(LETTERS)
    assert [row.label for row in rows] == [*"aejmnry", "<BOS>"]
    assert [row.id for row in rows] == list(range(8))
    assert [row.count for row in rows] == [3, 2, 1, 3, 1, 1, 1, None]
    assert sum(row.share or 0 for row in rows) == pytest.approx(1)
    uncounted = tokens.alphabet(CharVocabulary(LETTERS.itos, {}))
    assert {(row.count, row.share) for row in uncounted} == {(None, None)}


def test_as_json():
    loaded = tiny.char_checkpoint()
    table = tokens.read(loaded.vocabulary, "adamadama", 8)
    answer = answers.of_tokens(table, tokens.losses(loaded.model, table))
    scored = [pair for pair in answer["pairs"] if pair["trained"]]
    assert len(scored) == 8
    assert answer["loss"] == pytest.approx(sum(pair["loss"] for pair in scored) / 8)
    assert all(math.log(pair["prob"]) == pytest.approx(-pair["loss"]) for pair in scored)
    assert [pair["loss"] for pair in answer["pairs"][8:]] == [None, None]
    refused = tokens.read(loaded.vocabulary, "a-d", 8)
    answer = answers.of_tokens(refused, tokens.losses(loaded.model, refused))
    assert (answer["pairs"], answer["loss"]) == ([], None)
    assert answer["strange"] == [{"place": 2, "label": "-", "known_as": None}]
    assert answer["ids"][2] is None


@pytest.mark.parametrize("text", ["anna", "annaninaivanvera" * 3])
def test_a_training_step_reads_the_same_beginning_of_a_text(text):
    """A window shows the end of a long text; training reads its beginning, `<BOS>` first."""
    made = tiny.char_checkpoint()
    table = tokens.read(made.vocabulary, text, made.model.config.context_length)
    probe = made.vocabulary.probe(text, made.model.config.context_length)
    step = training_step.training_step(made.model, made.vocabulary, probe)
    losses = tokens.losses(made.model, table)
    assert [entry.loss for entry in step.forward] == pytest.approx(losses.tolist())
    assert step.loss == pytest.approx(losses.mean())
