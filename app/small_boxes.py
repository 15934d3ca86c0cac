"""Small boxes with numbers to change: dot product, linear, softmax, rmsnorm.

Each shows its formula with the live numbers in it. The numbers come from the functions that
the models use.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from app import controls, layout
from app.controls import choose
from app.layout import Bar, Cell
from app.typed_vectors import (
    TIMES,
    factor,
    listed,
    matrix,
    numbers,
    short,
    sum_of,
    sum_of_products,
)
from wordlm_core.errors import TextError
from wordlm_core.models.base import softmax
from wordlm_core.models.microgpt import RMS_EPSILON, rmsnorm

LONGEST = 200
_CLOSE = 1e-4  # to 0 or 1: four places could say that it is there
_SHIFTS = [str(shift) for shift in range(-10, 11)]
_SCALES = ("0.1", "0.2", "0.5", "1", "2", "5", "10")


def box() -> None:
    """Pick one of the boxes and draw it; numbers that cannot be used get a sentence."""
    names = list(_BOXES)
    chosen = choose(st.segmented_control, "Box", "box", names)
    try:
        _BOXES[names[chosen]]()
    except TextError as error:
        layout.refuse(error)


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
    _formula(
        f"a · b = {sum_of_products(a, b)}\n      = {sum_of(products)} = {short(products.sum())}"
    )
    rows: list[list[Cell]] = [
        [str(i), short(x), short(y), short(product)]
        for i, (x, y, product) in enumerate(zip(a, b, products, strict=True))
    ]
    rows.append(["sum", "", "", short(products.sum())])
    layout.table(("place", "a", "b", f"a {TIMES} b"), rows, strong=len(a), label="A dot product")
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
    lines = [f"y{i} = {sum_of_products(row, x)} = {short(y[i])}" for i, row in enumerate(w)]
    _formula("\n".join(["y = W x", *lines]))
    layout.answer(f"{len(x)} numbers in, ", (listed(y), "number"), " out.")
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
    powers = " + ".join(f"e^{factor(value)}" for value in moved)
    _formula(
        f"z {TIMES} {short(scale)} + {factor(shift)} = {listed(moved)}\n"
        f"p0 = e^{factor(moved[0])} / ({powers}) = {_within_one(probs[0])}"
    )
    rows: list[list[Cell]] = [
        [
            *(str(i), short(z[i]), short(moved[i]), _within_one(plain[i])),
            Bar(_within_one(p), float(p)),
        ]
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
    squares = " + ".join(f"{factor(value)}²" for value in x)
    mean_square = float(np.mean(x * x))
    _formula(
        f"mean square = ({squares}) / {len(x)} = {short(mean_square)}\n"
        f"scale = 1 / √({short(mean_square)} + {RMS_EPSILON:.5f}) = {short(scale[0])}\n"
        f"rmsnorm(x) = x {TIMES} {short(scale[0])} = {listed(normed)}"
    )
    layout.answer(f"{listed(x)} becomes ", (listed(normed), "number"), ".")
    stays = "The vector stays 0: there is no direction to keep."
    if mean_square:
        reached = _within_one(float(np.mean(normed * normed)))
        stays = (
            f"The direction stays, and the mean square becomes {reached}: 1 but for the 0.00001, "
            "which counts only beside a mean square that is as small."
        )
    layout.help_line(
        f"{stays} The 0.00001 keeps a vector of zeros from a division by 0. Nothing here is "
        "learned."
    )


_BOXES: dict[str, Callable[[], None]] = {
    "dot product": _dot_box,
    "linear": _linear_box,
    "softmax": _logits_box,
    "rmsnorm": _norm_box,
}


# -- parts


def _typed(title: str, key: str, start: str) -> str:
    return controls.box(title, key, start, LONGEST)


def _slider(title: str, key: str, labels: Sequence[str], default: str) -> int:
    return choose(st.select_slider, title, key, labels, labels.index(default))


def _within_one(value: float) -> str:
    """Return a number from 0 to 1 in four places, or in as many as tell it from both ends."""
    rest = 1 - value
    if rest < _CLOSE:
        return f"{value:.{-math.floor(math.log10(rest))}f}" if rest > 0 else "nearly 1"
    if value < _CLOSE:
        return f"{value:.2g}" if value else "nearly 0"
    return f"{value:.4f}"


def _formula(text: str) -> None:
    st.code(text, language=None, wrap_lines=True)
