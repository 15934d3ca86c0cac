"""Numbers as people type them: one reader for all pages."""

import contextlib
import math
import random

import pytest

from wordlm_core import typed
from wordlm_core.errors import TextError


@pytest.mark.parametrize(
    ("given", "value"),
    [
        *(("27", 27), ("27.0", 27), (" 27 ", 27), ("+27", 27), ("-3", -3), ("\u22123", -3)),
        *(("0.25", 0.25), ("0,25", 0.25), (".25", 0.25), (",25", 0.25), ("0,250", 0.25)),
        *(("1,767", 1.767), ("-1,767", -1.767), ("= 3.3", 3.3), ("\u2248 3,30", 3.3)),
        *(("3/4", 0.75), ("-1/3", -1 / 3), ("1,5/2", 0.75), ("25%", 0.25), ("12,5 %", 0.125)),
        *(("1e-3", 1e-3), ("1,234,567", 1234567), ("1,234.5", 1234.5), ("1.234,5", 1234.5)),
        *(("4 192", 4192), ("4_192", 4192), ("4'192", 4192), ("4\u202f192", 4192)),
        ("4.192", 4.192),
    ],
)
def test_a_number_is_read_leniently(given, value):
    assert typed.number(given) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        *(("4192", 4192), ("4,192", 4192), ("4 192", 4192), ("4'192", 4192), ("4\u2019192", 4192)),
        *(("4_192", 4192), ("4\u00a0192", 4192), ("4,192.0", 4192), ("1,234,567", 1234567)),
        *(("27.0", 27), ("27,0", 27), ("27.", 27), (" 27 ", 27), ("54/2", 27), ("0", 0)),
        *(("-6", -6), ("\u22126", -6), ("1e3", 1000)),
    ],
)
def test_a_whole_number_may_be_grouped(given, value):
    found = typed.whole(given)
    assert found == value
    assert type(found) is int
    if value >= 0:
        assert typed.count(given) == value
    else:
        with pytest.raises(TextError, match="below 0"):
            typed.count(given)


@pytest.mark.parametrize("given", ["4.192", "-4.192", "1.000", "27.000"])
def test_a_point_before_three_digits_can_be_read_in_two_ways(given):
    """It would be four thousand to one person, and four and a bit to another."""
    with pytest.raises(TextError, match="two ways") as refused:
        typed.whole(given)
    assert given.replace(".", ",") in str(refused.value)
    assert typed.whole(given.replace(".", ",")) == int(given.replace(".", ""))


@pytest.mark.parametrize(
    "given",
    [
        *("4.5", "0,192", "41,92", "1/3", "4,19", "1,2,3", "27x16", "4192 about", "many", "٤"),
        *("2.5e-3", "-0.5", "1,234.5"),
    ],
)
def test_what_is_no_whole_number_is_refused_by_its_name(given):
    with pytest.raises(TextError, match="is no whole number") as refused:
        typed.whole(given)
    assert f"“{given}”" in str(refused.value)


@pytest.mark.parametrize(
    "given",
    [
        *("", " ", "emma", "1/0", "3/4/5", "1..2", "4,19,2", "1e999", "--3", "nan", "inf", "%"),
        *("0x10", "9" * 400, "1/", "=", "٣", "२", "²", "1 2 3"),
    ],
)
def test_what_is_no_number_is_refused_in_a_sentence(given):
    for read in (typed.number, typed.whole, typed.count):
        with pytest.raises(TextError):
            read(given)


@pytest.mark.parametrize("given", ["9" * 20, "1e15", "1e300"])
def test_what_a_float_would_round_is_too_large(given):
    with pytest.raises(TextError, match="too large"):
        typed.whole(given)


@pytest.mark.parametrize(
    "given",
    [
        *("27x16", "27 x 16", "(27, 16)", "[27,16]", "27 by 16", "27\u00d716", "27*16", "27 16"),
        *("27; 16", "{27, 16}", "27X16", "(27, 16,)", "27 BY 16", "27.0 x 16"),
    ],
)
def test_a_shape_is_read_leniently(given):
    assert typed.shape(given) == typed.wholes(given) == typed.numbers(given) == (27, 16)


def test_thousands_in_a_shape_are_told_from_its_commas():
    assert typed.shape("10,000 x 64") == typed.shape("10 000 by 64") == (10_000, 64)
    assert typed.shape("10,64") == (10, 64)


@pytest.mark.parametrize("given", ["", "27x", "27 by", "a x b", "()", "27xx16", "2.5x16", "-27x16"])
def test_what_is_no_shape_is_refused_in_a_sentence(given):
    with pytest.raises(TextError):
        typed.shape(given)


def test_a_list_may_hold_decimals():
    assert typed.numbers("(0.6, -0.8)") == typed.numbers("0.6 -0.8") == (0.6, -0.8)
    assert typed.numbers("0,6; -0,8") == (0.6, -0.8)


def test_random_text_is_read_or_refused():
    rng = random.Random(0)
    for _ in range(2000):
        text = "".join(rng.choices("0123456789.,/-+eE%x*() '_\u00d7=", k=rng.randint(1, 9)))
        for read in (typed.number, typed.whole, typed.count, typed.numbers, typed.shape):
            with contextlib.suppress(TextError):
                found = read(text)
                assert all(map(math.isfinite, found if isinstance(found, tuple) else (found,)))
