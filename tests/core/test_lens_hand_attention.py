"""Attention by hand: known numbers, and what it refuses."""

import math

import numpy as np
import pytest

from wordlm_core.errors import TextError
from wordlm_core.lens.hand_attention import hand_attention

KEYS = [[1, 0], [0, 1], [-1, 0]]
VALUES = [[10, 0], [0, 10], [5, 5]]


def test_the_hand_example_by_hand():
    found = hand_attention([1, 0], KEYS, VALUES)
    assert found.dots.tolist() == [1, 0, -1]
    assert found.scaled == pytest.approx([0.70711, 0, -0.70711], abs=5e-6)
    # e^0.7071 = 2.0281, e^0 = 1, e^-0.7071 = 0.4931: together 3.5212; the largest is taken off.
    assert found.powers == pytest.approx([1, 0.49307, 0.24312], abs=5e-6)
    assert found.weights == pytest.approx([0.57598, 0.28400, 0.14003], abs=5e-6)
    assert found.output == pytest.approx([6.45990, 3.54010], abs=2e-5)
    assert found.parts.sum(axis=0) == pytest.approx(found.output)


def test_one_key_takes_all():
    found = hand_attention([3], [[2]], [[7, 8, 9]])
    assert found.weights.tolist() == [1]
    assert found.output.tolist() == [7, 8, 9]


@pytest.mark.parametrize(
    ("query", "keys", "values", "sentence"),
    [
        ([], KEYS, VALUES, "the query can have 1 to 4 numbers, not 0"),
        ([1] * 5, KEYS, VALUES, "the query can have 1 to 4 numbers, not 5"),
        ([1, 0], [], [], "the example can have 1 to 4 keys, not 0"),
        ([1, 0], KEYS * 2, VALUES * 2, "the example can have 1 to 4 keys, not 6"),
        ([1, 0], KEYS, VALUES[:2], "there are 3 keys, 2 values"),
        ([1, 0, 0], KEYS, VALUES, "key 0 has 2 numbers and the query 3"),
        ([1, 0], KEYS, [[1], [2], [3, 4]], "value 2 is not as long as value 0"),
        ([1, 0], KEYS, [[], [], []], "value 0 can have 1 to 4 numbers, not 0"),
        ([1, 1001], KEYS, VALUES, "between -1,000 and 1,000"),
        ([1, math.nan], KEYS, VALUES, "between -1,000 and 1,000"),
        ([1, math.inf], KEYS, VALUES, "between -1,000 and 1,000"),
    ],
)
def test_bad_examples_are_refused_in_one_sentence(query, keys, values, sentence):
    with pytest.raises(TextError, match=sentence):
        hand_attention(query, keys, values)


def test_large_numbers_do_not_overflow():
    found = hand_attention([1000] * 4, [[1000] * 4, [-1000] * 4], [[1], [2]])
    assert found.weights.tolist() == [1, 0]
    assert found.output.tolist() == [1]


def test_arrays_are_read_like_lists():
    keys, values = (list(np.array(rows, dtype=float)) for rows in (KEYS, VALUES))
    found = hand_attention(np.array([1.0, 0.0]), keys, values)
    assert np.array_equal(found.output, hand_attention([1, 0], KEYS, VALUES).output)
    with pytest.raises(TextError, match="key 2 has 1 numbers and the query 2"):
        hand_attention(np.array([1.0, 0.0]), [*keys[:2], np.ones(1)], values)
