"""How a typed number is read: leniently, by rules that can be said.

    27   27.0   +27               a number
    0,25   3,3   0.25             a single comma is a decimal comma, but:
    4,192   4 192   4'192         where a whole number is asked for, commas, blanks, apostrophes
                                  and low lines between groups of three are thousands: this is
                                  four thousand
    1,234,567   1,234.5   1.234,5 so are they where there are several, or a point as well: of two
                                  different signs the last one is the decimal sign
    3/4   25%   1e-3              fractions, percent, powers of ten
    27x16   27 by 16   (27, 16)   a shape or a list: x, by and semicolons part its numbers; where
                                  there are none of them, commas and blanks do, so that decimals
                                  there have a point

A point before three digits is thousands to one person and a decimal point to another: where a
whole number is asked for, 4.192 is refused. So is whatever else is no number of the kind that is
asked for: with a sentence, so that nobody's slip of the hand counts as a wrong answer.
"""

import math
import re

from wordlm_core.errors import TextError

MAX_LENGTH = 200
_SHOWN = 40
# Up to here a float holds every whole number.
_MOST = 10**15
# A longer minus, as word processors type it, and blanks that do not break.
_SIGNS = str.maketrans("\u2212\u2013\u00a0\u202f\u2009", "--   ")
_LEADING = re.compile(r"^[=~\u2248\s]+")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:([, _'\u2019])\d{3})(?:\1\d{3})*(?:\.\d+)?")
_POINT_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:\.\d{3})+,\d+")
_EITHER = re.compile(r"[-+]?[1-9]\d{0,2}\.\d{3}")
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+")
_PLAIN = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
_CROSSES = re.compile(r"\s*[xX\u00d7*;]\s*|\s+by\s+", re.IGNORECASE)
_BLANKS = re.compile(r"\s*,\s*|\s+")


def number(text: str) -> float:
    """Read one number.

    Raises:
        TextError: There is none, or it is not finite.
    """
    return _number(_tidy(text), whole=False)


def whole(text: str) -> int:
    """Read one whole number.

    Raises:
        TextError: There is none, or it may be meant in two ways.
    """
    return _whole(_tidy(text))


def count(text: str) -> int:
    """Read how many there are of something: a whole number, 0 or more.

    Raises:
        TextError: There is none, or it may be meant in two ways.
    """
    return _not_negative(whole(text))


def numbers(text: str) -> tuple[float, ...]:
    """Read a list of numbers.

    Raises:
        TextError: It holds something that is no number, or nothing.
    """
    return tuple(_number(part, whole=False) for part in _parts(text))


def wholes(text: str) -> tuple[int, ...]:
    """Read a list of whole numbers.

    Raises:
        TextError: It holds something that is no whole number, or nothing.
    """
    return tuple(map(_whole, _parts(text)))


def shape(text: str) -> tuple[int, ...]:
    """Read the sizes of an array: whole numbers, 0 or more.

    Raises:
        TextError: It holds something else, or nothing.
    """
    return tuple(map(_not_negative, wholes(text)))


# -- parts


def _tidy(text: str) -> str:
    typed = _LEADING.sub("", text.translate(_SIGNS)).strip()
    if not typed:
        raise TextError("there is no answer yet: type one")
    if len(typed) > MAX_LENGTH:
        raise TextError(f"an answer has at most {MAX_LENGTH} characters")
    return typed


def _parts(text: str) -> list[str]:
    inside = _tidy(text).strip("()[]{} ,;")
    return (_CROSSES if _CROSSES.search(inside) else _BLANKS).split(inside)


def _whole(typed: str) -> int:
    if _EITHER.fullmatch(typed):
        meant = f"{typed.replace('.', ',')} or {typed.replace('.', '')}"
        raise TextError(f"“{typed}” can be read in two ways: write {meant} if that is meant")
    value = _number(typed, whole=True)
    if not value.is_integer():
        raise _unreadable(typed, whole=True)
    if abs(value) >= _MOST:
        raise TextError("this number is too large")
    return int(value)


def _not_negative(value: int) -> int:
    if value < 0:
        raise TextError(f"{value:,} is below 0, and nothing here is that few")
    return value


def _number(typed: str, *, whole: bool) -> float:
    above, slash, below = typed.partition("/")
    if slash:
        divisor = _decimal(below, whole=whole)
        if divisor == 0:
            raise TextError("nothing can be divided by 0")
        return _finite(_decimal(above, whole=whole) / divisor)
    if typed.endswith("%"):
        return _decimal(typed[:-1], whole=whole) / 100
    return _decimal(typed, whole=whole)


def _decimal(text: str, *, whole: bool) -> float:
    typed = text.strip()
    thousands = _THOUSANDS.fullmatch(typed)
    if _DECIMAL_COMMA.fullmatch(typed) and not (whole and thousands):
        typed = typed.replace(",", ".")
    elif thousands:
        typed = re.sub(r"[, _'\u2019]", "", typed)
    elif _POINT_THOUSANDS.fullmatch(typed):
        typed = typed.replace(".", "").replace(",", ".")
    if not _PLAIN.fullmatch(typed):
        raise _unreadable(typed, whole=whole)
    return _finite(float(typed))


def _unreadable(typed: str, *, whole: bool) -> TextError:
    if not typed:
        return TextError("a number is missing: write a shape like 3 x 5, and a fraction like 3/4")
    shown = f"“{typed[:_SHOWN]}”"
    if whole:
        return TextError(f"{shown} is no whole number: write one like 15 or 1,234")
    return TextError(f"{shown} cannot be read as a number: write it like 12, 0.25, 3/4 or 25%")


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise TextError("this number is too large")
    return value
