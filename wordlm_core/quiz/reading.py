"""How a typed answer is read: leniently, by rules that can be said.

    27   27.0   +27               a number
    0,25   3,3   0.25             a single comma is a decimal comma, but:
    4,192   4 192   4_192         where a whole number is asked for, commas, blanks and low lines
                                  between groups of three are thousands: this is four thousand
    1,234,567   1,234.5   1.234,5 so are they where there are several, or a point as well: of two
                                  different signs the last one is the decimal sign
    3/4   25%   1e-3              fractions, percent, powers of ten
    27x16   27 by 16   (27, 16)   a shape or a list: x, by, commas, semicolons and blanks part
                                  its numbers, so decimals there have a point

Whatever else is typed is refused with a sentence, and counts neither as right nor as wrong.
"""

import math
import re

from wordlm_core.errors import TextError

MAX_LENGTH = 200
# A longer minus, as word processors type it, and blanks that do not break.
_SIGNS = str.maketrans("\u2212\u2013\u00a0\u202f\u2009", "--   ")
_LEADING = re.compile(r"^[=~\u2248\s]+")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:([, _'\u2019])\d{3})(?:\1\d{3})*(?:\.\d+)?")
_POINT_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:\.\d{3})+,\d+")
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+")
_PLAIN = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
_BETWEEN = re.compile(r"\s*[xX\u00d7*;,]\s*|\s+by\s+|\s+")


def number(text: str, *, whole: bool = False) -> float:
    """Read one number.

    Args:
        text: As typed.
        whole: A whole number is asked for, so that 4,192 is four thousand.

    Raises:
        TextError: There is none, or it is not finite.
    """
    typed = _tidy(text)
    above, slash, below = typed.partition("/")
    if slash:
        divisor = _decimal(below, whole=whole)
        if divisor == 0:
            raise TextError("nothing can be divided by 0")
        return _finite(_decimal(above, whole=whole) / divisor)
    if typed.endswith("%"):
        return _decimal(typed[:-1], whole=whole) / 100
    return _decimal(typed, whole=whole)


def numbers(text: str) -> tuple[float, ...]:
    """Read a shape or a list.

    Raises:
        TextError: It holds something that is no number, or nothing.
    """
    inside = _tidy(text).strip("()[]{} ,;")
    return tuple(_decimal(part, whole=False) for part in _BETWEEN.split(inside))


def _tidy(text: str) -> str:
    typed = _LEADING.sub("", text.translate(_SIGNS)).strip()
    if not typed:
        raise TextError("there is no answer yet: type one")
    if len(typed) > MAX_LENGTH:
        raise TextError(f"an answer has at most {MAX_LENGTH} characters")
    return typed


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
        raise TextError(
            "this cannot be read as a number: write it like 27, 4,192, 0.25 or 3/4, and a shape "
            "like 27 x 16"
        )
    return _finite(float(typed))


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise TextError("this number is too large")
    return value
