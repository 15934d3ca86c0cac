"""Attention by hand: one query, a few keys and values, every number of the formula."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from wordlm_core.errors import TextError
from wordlm_core.models import base

Numbers = Sequence[int | float] | Float[np.ndarray, " _"]

KEYS, WIDTH, LIMIT = 4, 4, 1000


@dataclass(frozen=True)
class HandAttention:
    """One query over a few keys, small enough to check by hand.

    Attributes:
        query: q.
        keys: One row a key.
        values: One row a key.
        dots: q.k.
        scaled: q.k / sqrt(width).
        powers: e to the (scaled - largest scaled): what the softmax adds up.
        weights: Softmax of `scaled`.
        parts: Each value times its weight.
        output: The sum of the parts.
    """

    query: Float[np.ndarray, " width"]
    keys: Float[np.ndarray, "key width"]
    values: Float[np.ndarray, "key value"]
    dots: Float[np.ndarray, " key"]
    scaled: Float[np.ndarray, " key"]
    powers: Float[np.ndarray, " key"]
    weights: Float[np.ndarray, " key"]
    parts: Float[np.ndarray, "key value"]
    output: Float[np.ndarray, " value"]


def hand_attention(
    query: Numbers, keys: Sequence[Numbers], values: Sequence[Numbers]
) -> HandAttention:
    """Return attention of one query over a few keys, every number of the formula kept.

    Args:
        query: 1 to 4 numbers.
        keys: 1 to 4 keys, as wide as the query.
        values: One for each key, 1 to 4 numbers each.

    Raises:
        TextError: What is wrong, and what is expected.
    """
    _check_count(len(query), "the query", "numbers")
    _check_count(len(keys), "the example", "keys", KEYS)
    if len(values) != len(keys):
        raise TextError(
            f"each key needs one value: there are {len(keys)} keys, {len(values)} values"
        )
    for number, key in enumerate(keys):
        if len(key) != len(query):
            raise TextError(
                f"key {number} has {len(key)} numbers and the query {len(query)}: q·k needs "
                "equally many"
            )
    for number, value in enumerate(values):
        _check_count(len(value), f"value {number}", "numbers")
        if len(value) != len(values[0]):
            raise TextError(f"value {number} is not as long as value 0: a sum needs equal lengths")
    q, k, v = (_checked(each) for each in (query, keys, values))
    dots = k @ q
    scaled = dots / math.sqrt(len(q))
    weights = base.softmax(scaled)
    parts = weights[:, None] * v
    powers = np.exp(scaled - base.peak(scaled))
    return HandAttention(q, k, v, dots, scaled, powers, weights, parts, parts.sum(axis=0))


# -- parts


def _check_count(count: int, what: str, of: str, most: int = WIDTH) -> None:
    if not 1 <= count <= most:
        raise TextError(f"{what} can have 1 to {most} {of}, not {count}")


def _checked(rows: Any) -> Float[np.ndarray, "..."]:
    numbers = np.array(rows, dtype=np.float64)
    if not (np.abs(numbers) <= LIMIT).all():  # NaN is not, either
        raise TextError(f"the numbers have to lie between -{LIMIT:,} and {LIMIT:,} here")
    return numbers
