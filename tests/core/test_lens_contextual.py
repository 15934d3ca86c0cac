"""Contextual: one lookup row, two contextual rows."""

import numpy as np
import pytest

from tests import tiny
from tests.core import oracle
from wordlm_core.errors import CheckpointError, TextError
from wordlm_core.lens.contextual import compare
from wordlm_core.text import FIRST_LEXICAL_ID


@pytest.fixture
def texts(vocabulary):
    return [
        vocabulary.probe(text, tiny.CONTEXT) for text in ("the big dog ran", "she saw a red dog")
    ]


def test_rows_equal_the_oracle(attention_model, vocabulary, texts):
    a, b = texts
    pair = compare(attention_model, vocabulary, a, 3, b, -1)
    assert (pair.token, pair.position_a, pair.position_b) == ("dog", 3, 5)
    rows = [
        oracle.forward(attention_model, probe.ids).contextual[position]
        for probe, position in ((a, 3), (b, 5))
    ]
    assert pair.contextual_cosine == pytest.approx(oracle.cosine(*rows), abs=1e-9)
    assert pair.contextual_l2 == pytest.approx(np.sqrt(sum((rows[0] - rows[1]) ** 2)), rel=1e-9)
    table = attention_model.weights[attention_model.embedding_name]
    dog = vocabulary.stoi["dog"]
    others = [i for i in range(FIRST_LEXICAL_ID, len(vocabulary)) if i != dog]
    lists = (pair.neighbours_a, pair.neighbours_b, pair.lookup_neighbours)
    for found, vector in zip(lists, (*rows, table[dog]), strict=True):
        expected = oracle.nearest(vector, table, others)[:8]
        assert [item.id for item in found] == [i for i, _ in expected]
        assert [n.cosine for n in found] == pytest.approx([c for _, c in expected], abs=1e-9)


def test_the_lookup_row_is_the_same_and_the_contextual_row_is_not(
    attention_model, vocabulary, texts
):
    pair = compare(attention_model, vocabulary, texts[0], 3, texts[1], 5)
    assert pair.lookup_equal
    assert pair.lookup_cosine == 1
    assert pair.contextual_cosine < 1 - 1e-4
    assert pair.contextual_l2 > 1e-2


def test_the_same_place_twice_differs_in_nothing(attention_model, vocabulary, texts):
    pair = compare(attention_model, vocabulary, texts[0], 3, texts[0], 3)
    assert (pair.contextual_cosine, pair.contextual_l2) == (1, 0)
    assert pair.neighbours_a == pair.neighbours_b


def test_a_word_may_be_compared_with_itself_further_on(attention_model, vocabulary, probe):
    pair = compare(attention_model, vocabulary, probe, 1, probe, 4)
    assert (pair.token, pair.lookup_cosine) == ("the", 1)
    assert pair.contextual_l2 > 0


def test_different_words_are_refused(attention_model, vocabulary, texts):
    with pytest.raises(TextError, match="the words differ: 'ran' in the first text, 'dog' in the"):
        compare(attention_model, vocabulary, texts[0], -1, texts[1], -1)
    with pytest.raises(TextError, match="no position 7"):
        compare(attention_model, vocabulary, texts[0], 7, texts[1], -1)


def test_the_mlp_is_refused_in_a_sentence(mlp, vocabulary, texts):
    with pytest.raises(CheckpointError, match="the MLP has no attention: a word has no row"):
        compare(mlp, vocabulary, texts[0], 3, texts[1], 5)


def test_position_and_attention_make_up_the_difference(attention_model, vocabulary, texts):
    a, b = texts
    pair = compare(attention_model, vocabulary, a, 3, b, 5)
    first, second = (attention_model.trace(probe.ids) for probe in (a, b))
    moved = first.residual[3] - second.residual[5]
    added = first.head_updates[-1, :, 3].sum(0) - second.head_updates[-1, :, 5].sum(0)
    change = first.contextual[3] - second.contextual[5]
    np.testing.assert_allclose(moved + added, change, atol=1e-12)
    assert pair.position_l2 == pytest.approx(np.linalg.norm(moved))
    assert pair.attention_l2 == pytest.approx(np.linalg.norm(added))
    assert pair.attention_share == pytest.approx(added @ change / (change @ change))
    assert 1 - pair.attention_share == pytest.approx(moved @ change / (change @ change))
    np.testing.assert_array_equal(pair.rows[0], first.embed[3])
    np.testing.assert_array_equal(pair.rows[1:], [first.contextual[3], second.contextual[5]])


def test_in_the_same_slot_all_of_it_is_attention(attention_model, vocabulary):
    a, b = (vocabulary.probe(text, tiny.CONTEXT) for text in ("the big dog", "she saw dog"))
    pair = compare(attention_model, vocabulary, a, -1, b, -1)
    alone = attention_model.n_layer == 1  # an earlier layer has read the context already
    assert ((pair.position_l2, pair.residual_cosine) == (0, 1)) == alone
    assert (pair.attention_share == pytest.approx(1)) == alone


def test_no_difference_has_no_shares(attention_model, vocabulary, texts):
    assert compare(attention_model, vocabulary, texts[0], 3, texts[0], 3).attention_share is None


@pytest.mark.parametrize("factor", [1e12, 1e45])
def test_rows_of_any_length_have_a_cosine(attention_model, vocabulary, texts, factor):
    """The square of a long row's length may overflow where the cosine does not."""
    a, b = texts
    long = tiny.louder(attention_model, factor)
    pair = compare(long, vocabulary, a, 3, b, -1)
    rows = [
        oracle.forward(long, probe.ids).contextual[position] for probe, position in ((a, 3), (b, 5))
    ]
    scaled = [row / abs(row).max() for row in rows]
    assert pair.contextual_cosine == pytest.approx(oracle.cosine(*scaled), abs=1e-9)
    assert np.isfinite(pair.contextual_l2)


def test_rows_that_overflow_are_refused(attention_model, vocabulary, texts):
    a, b = texts
    with pytest.raises(CheckpointError, match="numbers overflow"):
        compare(tiny.louder(attention_model, 1e200), vocabulary, a, 3, b, -1)
