"""Small boxes with numbers to change: dot product, linear, softmax, rmsnorm.

Each shows its formula with the live numbers in it. The numbers come from the functions that
the models use.
"""

import math
import re
from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st
from jaxtyping import Float

from app import layout, state
from app.controls import choose
from app.layout import Bar, Cell
from wordlm_core.errors import TextError
from wordlm_core.models.base import softmax
from wordlm_core.models.microgpt import RMS_EPSILON, rmsnorm

LARGEST, LONGEST = 1e6, 200
_SHIFTS = [str(shift) for shift in range(-10, 11)]
_SCALES = ("0.1", "0.2", "0.5", "1", "2", "5", "10")
_TIMES, _MINUS = "\u00d7", "\u2212"
_BETWEEN = re.compile(r"[\s,;]+")
_BRACKETS = str.maketrans("", "", "[]()")


def box() -> None:
    """Pick one of the boxes and draw it; numbers that cannot be used get a sentence."""
    names = list(_BOXES)
    chosen = choose(st.segmented_control, "Box", "box", names)
    try:
        _BOXES[names[chosen]]()
    except TextError as error:
        layout.refuse(error)


def numbers(what: str, typed: str, least: int, most: int) -> Float[np.ndarray, " n"]:
    """Return the numbers of a text, separated by commas or blanks.

    Args:
        what: Names them in errors.
        typed: The text.
        least: Fewest.
        most: Most.

    Raises:
        TextError: Something is no number, too large, or there are too few or too many.
    """
    pieces = [piece for piece in _BETWEEN.split(_plain(typed)) if piece]
    if not least <= len(pieces) <= most:
        wanted = f"{least} to {most} numbers" if least < most else f"{least} numbers"
        raise TextError(f"{what} takes {wanted} with commas between them, not {len(pieces)}")
    return np.array([_number(what, piece) for piece in pieces])


def matrix(what: str, typed: str, most: int) -> Float[np.ndarray, "rows columns"]:
    """Return the numbers of a text, row by row.

    Args:
        what: Names it in errors.
        typed: The text; a semicolon or the end of a line ends a row.
        most: Most rows, and most numbers in one.

    Raises:
        TextError: A row is not as long as the first, or has something that is no number.
    """
    lines = [line for line in re.split(r"[\n;]", typed) if line.strip()]
    if not 1 <= len(lines) <= most:
        raise TextError(f"{what} takes 1 to {most} rows with ; between them, not {len(lines)}")
    rows = [numbers(f"row {i} of {what}", line, 1, most) for i, line in enumerate(lines)]
    for index, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise TextError(
                f"row {index} of {what} has {len(row)} numbers and row 0 has {len(rows[0])}: "
                "all rows are equally long"
            )
    return np.stack(rows)


def short(value: float) -> str:
    """Return a number with up to four places; a very large or small one in powers of ten."""
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.4g}"
    return f"{value:.4f}".rstrip("0").rstrip(".") if value else "0"


# -- the boxes


def _dot_box() -> None:
    left, right = layout.columns(1, 1)
    with left:
        a = numbers("the first vector", _typed("First vector a", "dot_a", "1, 2, -1"), 1, 4)
    with right:
        b = numbers("the second vector", _typed("Second vector b", "dot_b", "0.5, 1, 2"), 1, 4)
    if len(a) != len(b):
        raise TextError(
            f"a has {len(a)} numbers and b {len(b)}: a dot product pairs them off, so there have "
            "to be equally many"
        )
    products = a * b
    _formula(f"a · b = {_sum_of(a, b)}\n      = {_sum(products)} = {short(products.sum())}")
    rows: list[list[Cell]] = [
        [str(i), short(x), short(y), short(product)]
        for i, (x, y, product) in enumerate(zip(a, b, products, strict=True))
    ]
    rows.append(["sum", "", "", short(products.sum())])
    layout.table(("place", "a", "b", f"a {_TIMES} b"), rows, strong=len(a), label="A dot product")
    layout.help_line(
        "Large where both point the same way, 0 at a right angle, negative where they point "
        "apart. A score of attention is the dot product of a query and a key."
    )


def _linear_box() -> None:
    left, right = layout.columns(1, 1)
    with left:
        typed = _typed("Matrix W: a ; ends a row", "linear_w", "1, 0, 2; 0, 3, -1")
        w = matrix("the matrix", typed, 4)
    with right:
        x = numbers("the vector", _typed("Vector x", "linear_x", "1, 2, 3"), 1, 4)
    if w.shape[1] != len(x):
        raise TextError(
            f"W has {w.shape[1]} columns and x has {len(x)} numbers: a row of W pairs off with x"
        )
    y = w @ x
    lines = [f"y{i} = {_sum_of(row, x)} = {short(y[i])}" for i, row in enumerate(w)]
    _formula("\n".join(["y = W x", *lines]))
    layout.answer(f"{len(x)} numbers in, ", (f"[{_list(y)}]", "number"), " out.")
    layout.help_line(
        "Each row of W asks one question: its dot product with x is one number of the answer. So "
        "W has as many rows as come out and as many columns as go in."
    )


def _logits_box() -> None:
    left, right = layout.columns(1, 1)
    with left:
        z = numbers("the logits", _typed("Logits z", "logits", "2, 1, 0.5, -1"), 3, 5)
    with right:
        shift = float(_SHIFTS[_slider("Shift: added to each", "shift", _SHIFTS, "0")])
        scale = float(_SCALES[_slider("Scale: times each", "scale", _SCALES, "1")])
    moved = z * scale + shift
    plain, probs = softmax(z), softmax(moved)
    powers = " + ".join(f"e^{_factor(value)}" for value in moved)
    _formula(
        f"z {_TIMES} {short(scale)} + {_factor(shift)} = [{_list(moved)}]\n"
        f"p0 = e^{_factor(moved[0])} / ({powers}) = {short(probs[0])}"
    )
    rows: list[list[Cell]] = [
        [str(i), short(z[i]), short(moved[i]), f"{plain[i]:.4f}", Bar(f"{p:.4f}", float(p))]
        for i, p in enumerate(probs)
    ]
    heads = ("token", "logit", "after scale, shift", "probability before", "probability")
    layout.table(heads, rows, label="Softmax of the logits")
    layout.help_line(
        "The shift changes nothing: e^(z + c) is e^z times e^c, and e^c stands above and below "
        f"the line. The scale is 1/temperature, here {short(scale)} = 1/{short(1 / scale)}: "
        "larger makes the likeliest likelier, smaller evens all out."
    )


def _norm_box() -> None:
    x = numbers("the vector", _typed("Vector x", "norm_x", "3, 4"), 1, 6)
    scale, normed = rmsnorm(x)
    squares = " + ".join(f"{_factor(value)}²" for value in x)
    mean_square = float(np.mean(x * x))
    _formula(
        f"mean square = ({squares}) / {len(x)} = {short(mean_square)}\n"
        f"scale = 1 / √({short(mean_square)} + {RMS_EPSILON:.5f}) = {short(scale[0])}\n"
        f"rmsnorm(x) = x {_TIMES} {short(scale[0])} = [{_list(normed)}]"
    )
    layout.answer(f"[{_list(x)}] becomes ", (f"[{_list(normed)}]", "number"), ".")
    layout.help_line(
        "The direction stays, and the mean square becomes 1 whatever it was. The 0.00001 keeps a "
        "vector of zeros from a division by 0. Nothing here is learned."
    )


_BOXES: dict[str, Callable[[], None]] = {
    "dot product": _dot_box,
    "linear": _linear_box,
    "softmax": _logits_box,
    "rmsnorm": _norm_box,
}


# -- parts


def _typed(title: str, key: str, start: str) -> str:
    typed = st.text_input(
        title,
        start,
        max_chars=LONGEST,
        key=key,
        bind="query-params",
        persist_state="session",
        live="200ms",
    )
    state.remember_text(key, typed or "")
    return (typed or "")[:LONGEST]


def _slider(title: str, key: str, labels: Sequence[str], default: str) -> int:
    return choose(st.select_slider, title, key, labels, labels.index(default))


def _formula(text: str) -> None:
    st.code(text, language=None, wrap_lines=True)


def _plain(typed: str) -> str:
    return typed.translate(_BRACKETS).replace(_MINUS, "-")


def _number(what: str, piece: str) -> float:
    try:
        value = float(piece)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise TextError(f"“{piece[:20]}” in {what} is no number: write 0.5 or -2")
    if abs(value) > LARGEST:
        raise TextError(f"“{piece[:20]}” in {what} is too large: {LARGEST:,.0f} is the most")
    return value


def _list(values: Float[np.ndarray, " n"]) -> str:
    return ", ".join(map(short, values))


def _factor(value: float) -> str:
    return f"({short(value)})" if value < 0 else short(value)


def _sum_of(a: Float[np.ndarray, " n"], b: Float[np.ndarray, " n"]) -> str:
    return " + ".join(f"{_factor(x)}{_TIMES}{_factor(y)}" for x, y in zip(a, b, strict=True))


def _sum(values: Float[np.ndarray, " n"]) -> str:
    return " + ".join(map(_factor, values))
