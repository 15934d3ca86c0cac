"""Vectors that people type: read, and written back short."""

import math
import re
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from wordlm_core.errors import TextError

LARGEST = 1_000_000
TIMES = "\u00d7"
_MINUS = "\u2212"
_BETWEEN = re.compile(r"[\s,;]+")
_BRACKETS = str.maketrans("", "", "[]()")


def numbers(
    what: str, typed: str, least: int, most: int, largest: int = LARGEST
) -> Float[np.ndarray, " n"]:
    """Return the numbers of a text, separated by commas or blanks; brackets are passed over.

    Args:
        what: Names them in errors.
        typed: The text.
        least: Fewest.
        most: Most.
        largest: Of a number, above and below 0.

    Raises:
        TextError: Something is no number, too large, or there are too few or too many.
    """
    plain = typed.translate(_BRACKETS).replace(_MINUS, "-")
    pieces = [piece for piece in _BETWEEN.split(plain) if piece]
    if not least <= len(pieces) <= most:
        wanted = f"{least} to {most} numbers" if least < most else f"{least} numbers"
        raise TextError(f"{what}: {wanted} with commas between them, not {len(pieces)}")
    return np.array([_number(what, piece, largest) for piece in pieces])


def vectors(
    what: str, typed: str, most: int, largest: int = LARGEST
) -> list[Float[np.ndarray, " _"]]:
    """Return the vectors of a text, which need not be equally long.

    Args:
        what: Names them in errors.
        typed: The text; a semicolon or the end of a line ends a vector.
        most: Most vectors, and most numbers in one.
        largest: Of a number, above and below 0.

    Raises:
        TextError: There are none or too many, or one of them cannot be read.
    """
    lines = [line for line in re.split(r"[\n;]", typed) if line.strip()]
    if not 1 <= len(lines) <= most:
        raise TextError(f"{what}: 1 to {most} rows with ; between them, not {len(lines)}")
    return [numbers(f"row {i} of {what}", line, 1, most, largest) for i, line in enumerate(lines)]


def matrix(what: str, typed: str, most: int) -> Float[np.ndarray, "rows columns"]:
    """Return the numbers of a text, row by row.

    Args:
        what: Names it in errors.
        typed: The text; a semicolon or the end of a line ends a row.
        most: Most rows, and most numbers in one.

    Raises:
        TextError: A row is not as long as the first, or has something that is no number.
    """
    rows = vectors(what, typed, most)
    for index, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise TextError(
                f"row {index} of {what} has {len(row)} numbers and row 0 has {len(rows[0])}: "
                "all rows are equally long"
            )
    return np.stack(rows)


def short(value: float, places: int = 4) -> str:
    """Return a number with a few places at most; a very large or small one in powers of ten."""
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.{places}g}"
    return f"{value:.{places}f}".rstrip("0").rstrip(".") if value else "0"


def factor(value: float) -> str:
    """Return a number that can stand behind a sign: a negative one in brackets."""
    return f"({short(value)})" if value < 0 else short(value)


def listed(values: Iterable[float], places: int = 4) -> str:
    """Return numbers in square brackets."""
    return "[" + ", ".join(short(value, places) for value in values) + "]"


def sum_of(values: Iterable[float]) -> str:
    """Return numbers as a sum."""
    return " + ".join(map(factor, values))


def sum_of_products(a: Float[np.ndarray, " n"], b: Float[np.ndarray, " n"]) -> str:
    """Return a dot product as the sum that it is."""
    return " + ".join(f"{factor(x)}{TIMES}{factor(y)}" for x, y in zip(a, b, strict=True))


def _number(what: str, piece: str, largest: int) -> float:
    try:
        value = float(piece)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise TextError(f"“{piece[:20]}” in {what} is no number: write 0.5 or -2")
    if abs(value) > largest:
        raise TextError(f"“{piece[:20]}” in {what} is too large: {largest:,} is the most")
    return value
