"""Typed vectors: one way to read and to write them, for every box."""

import numpy as np
import pytest

from app.typed_vectors import (
    factor,
    listed,
    matrix,
    numbers,
    short,
    sum_of,
    sum_of_products,
    vectors,
)
from wordlm_core.errors import TextError


@pytest.mark.parametrize(
    "typed", ["1, -2, 0.5", "1 -2 .5", "[1; -2; 5e-1]", "(1,\u22122,0.5)", " 1\t-2\n0.5, "]
)
def test_commas_blanks_and_brackets_are_all_the_same(typed):
    assert numbers("a", typed, 1, 4).tolist() == [1, -2, 0.5]


def test_vectors_end_with_a_semicolon_or_a_line_and_may_differ_in_length():
    assert [row.tolist() for row in vectors("a", "1, 0; -1 .5 2;\n3", 4)] == [
        [1, 0],
        [-1, 0.5, 2],
        [3],
    ]
    assert matrix("a", "[1, 2]; [3, 4]", 4).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(TextError, match="row 1 of a has 1 numbers and row 0 has 2"):
        matrix("a", "1, 2; 3", 4)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("", "^a: 1 to 4 rows with ; between them, not 0$"),
        (";;", "^a: 1 to 4 rows with ; between them, not 0$"),
        ("1;2;3;4;5", "^a: 1 to 4 rows with ; between them, not 5$"),
        ("1 2 3 4 5", "^row 0 of a: 1 to 4 numbers with commas between them, not 5$"),
        ("1; ,", "^row 1 of a: 1 to 4 numbers"),
        ("1, 2a", "“2a” in row 0 of a is no number"),
        ("1; nan", "“nan” in row 1 of a is no number"),
        ("1; -inf", "“-inf” in row 1 of a is too large: 50 is the most"),
        ("51", "“51” in row 0 of a is too large: 50 is the most"),
        ("1" * 30 + "x", "“1{20}” in row 0 of a is no number"),
    ],
)
def test_what_cannot_be_read_gets_one_sentence(typed, sentence):
    with pytest.raises(TextError, match=sentence):
        vectors("a", typed, 4, largest=50)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.848528, "0.8485"), (-0.0, "0"), (12.0, "12"), (1e-5, "1e-05"), (123456.5, "123456.5"),
     (1e6, "1e+06"), (-2.5, "-2.5"), (100.0, "100")],
)  # fmt: skip
def test_numbers_are_short(value, shown):
    assert short(value) == shown


def test_formulas_have_brackets_around_what_is_negative():
    a, b = np.array([1.0, -2.0]), np.array([-0.25, 3.0])
    assert sum_of_products(a, b) == "1\u00d7(-0.25) + (-2)\u00d73"
    assert sum_of(a) == "1 + (-2)"
    assert factor(-0.5) == "(-0.5)"
    assert listed([0.12345, -1.0]) == "[0.1235, -1]"
    assert listed([0.12345, -1.0], 3) == "[0.123, -1]"
