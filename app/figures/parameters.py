"""The matrices of a model: all of them as one mosaic, one of them large, how far each moved."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from app.figures.base import (
    DIVERGING,
    MARK,
    MUTED,
    TEXT,
    Figure,
    buttons,
    escape,
    frame_of,
    margins,
    measure_axis,
    packed,
    row_pitch,
    tick_size,
    token_axis,
)
from wordlm_core.lens.parameters import Journey, Matrix

SHOWN = 128  # rows or columns of one matrix; what is beyond is left out and said so
_GAP, _TITLE, _EVERY = 3, 7, 4  # in cells: between matrices, for a name, between two hit points
_SCALE = [[index / (len(DIVERGING) - 1), colour] for index, colour in enumerate(DIVERGING)]
_WHAT = {"vocabulary": "token", "context": "position", "hidden": "hidden unit"}
_CROWDED = 32

Weights = Mapping[str, np.ndarray]
_Place = tuple[int, int, int, int]  # left, top, width, height in cells


def colour_limit(trained: Weights) -> float:
    """Return the number at which colours are full, for all matrices and steps of a model.

    99 of 100 trained weights are within it, so that a few large ones do not pale the rest.
    """
    every = np.concatenate([np.abs(matrix).ravel() for matrix in trained.values()])
    return float(np.quantile(every, 0.99)) or 1.0


def mosaic(weights: Weights, matrices: Sequence[Matrix], limit: float, chosen: int) -> Figure:
    """Draw every parameter as one cell; a click's `customdata` is the index of a matrix.

    Args:
        weights: By state name.
        matrices: In their order.
        limit: Where colours are full, above and below 0.
        chosen: The matrix that is marked.
    """
    places = _places([matrix.shape for matrix in matrices])
    width = max(left + across for left, _, across, _ in places)
    height = max(top + down for _, top, _, down in places)
    canvas = np.full((height, width), np.nan)
    titles: list[dict[str, Any]] = []
    for index, (matrix, (left, top, across, down)) in enumerate(zip(matrices, places, strict=True)):
        canvas[top : top + down, left : left + across] = weights[matrix.name][:down, :across]
        titles.append(_title(matrix.name, left, top, bold=index == chosen))
    left, top, across, down = places[chosen]
    edges = (left - 0.5, left + across - 0.5, top - 0.5, top + down - 0.5)
    layout = {
        "height": 400,
        "margin": margins(t=4, left=4, bottom=4, right=4),
        "xaxis": _hidden(-1, width),
        "yaxis": _hidden(height, -1),
        "shapes": [frame_of(*edges)],
        "annotations": titles,
        "hovermode": "closest",
    }
    cells = {"type": "heatmap", "z": packed(canvas), "hoverinfo": "skip", **_colours(limit)}
    names = ", ".join(matrix.name for matrix in matrices)
    return Figure(
        {"data": [cells | {"showscale": False}, _hits(matrices, places)], "layout": layout},
        f"Every parameter as a cell, matrix by matrix: {names}. Marked: {matrices[chosen].name}.",
    )


def matrix_heatmap(
    values: Float[np.ndarray, "rows columns"],
    of: Matrix,
    labels: Sequence[str],
    limit: float,
    when: str,
) -> Figure:
    """Draw one matrix; rows of tokens carry the tokens.

    Args:
        values: Its weights.
        of: What it is.
        labels: The vocabulary's tokens as they can be seen, for rows that are tokens.
        limit: Where colours are full, above and below 0.
        when: The step in words, for the description.
    """
    values = values[:SHOWN, :SHOWN]
    rows, columns = values.shape
    names = list(labels[:rows]) if of.rows == "vocabulary" else [str(i) for i in range(rows)]
    pitch = max(18.0, row_pitch(rows)) if rows <= _CROWDED else max(4.0, 420 / rows)
    down = token_axis(names, _WHAT.get(of.rows, "output"), size=tick_size(pitch), reverse=True)
    across = token_axis([str(i) for i in range(columns)], "", size=12)
    across["title"]["text"] = "hidden unit" if of.columns == "hidden" else "dimension of the input"
    if of.rows in ("vocabulary", "context"):
        across["title"]["text"] = "dimension of the stream"
    cells = {
        "type": "heatmap",
        "z": packed(values),
        "text": [[escape(name)] * columns for name in names],
        "hovertemplate": f"{_WHAT.get(of.rows, 'output')} <b>%{{text}}</b>, column %{{x}}: "
        "%{z:.4f}<extra></extra>",
        **_colours(limit),
    }
    layout = {
        "height": round(pitch * rows) + 62,
        "margin": margins(t=6, left=66, right=64),
        "xaxis": _thinned(across),
        "yaxis": _thinned(down),
    }
    return Figure(
        {"data": [cells], "layout": layout},
        f"{of.name} {when}, {of.shape[0]} x {of.shape[1]}: from {values.min():.2f} to "
        f"{values.max():.2f}, colours full at {limit:.2f} either side of 0.",
    )


def movement(of: Journey, chosen: int, step: int) -> Figure:
    """Draw how far each matrix has moved from its first weights; one is marked, and a step."""
    order = [*(i for i in range(len(of.names)) if i != chosen), chosen]
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": list(of.steps),
            "y": packed(of.moved[index]),
            "line": {
                "color": MARK if index == chosen else MUTED,
                "width": 4 if index == chosen else 1.5,
            },
            "hovertemplate": f"{escape(of.names[index])}, step %{{x}}: %{{y:.2f}}<extra></extra>",
            "showlegend": False,
        }
        for index in order
    ]
    layout = {
        "height": 270,
        "margin": margins(t=8, left=62),
        "xaxis": measure_axis("training step", None),
        "yaxis": measure_axis("moved, in norms before", None) | {"rangemode": "tozero"},
        "shapes": [
            {
                "type": "line",
                "yref": "paper",
                **{"x0": step, "x1": step, "y0": 0, "y1": 1},
                "line": {"color": MARK, "width": 1.5, "dash": "dot"},
            }
        ],
        "hovermode": "closest",
    }
    last = ", ".join(
        f"{name} {moved:.2f}" for name, moved in zip(of.names, of.moved[:, -1], strict=True)
    )
    return Figure(
        {"data": data, "layout": layout},
        f"Distance of each matrix from its first weights over training; at the end: {last}. "
        f"Marked: {of.names[chosen]}.",
    )


# -- parts


def _places(shapes: Sequence[tuple[int, int]]) -> list[_Place]:
    """Return where each matrix stands: tables on top, layers below, tall ones to the right."""
    sizes = [(min(columns, SHOWN), min(rows, SHOWN)) for rows, columns in shapes]
    tables, layers = sizes[:3], [sizes[i : i + 6] for i in range(3, len(sizes), 6)]
    placed: dict[tuple[int, int], _Place] = {}
    top = _row(placed, 0, tables, 0)
    for number, layer in enumerate(layers, 1):
        top = _row(placed, number, layer[:4], top)
        placed[number, 5] = (0, top + _TITLE, *layer[5])
        top += _TITLE + layer[5][1]
    side, top = max(left + across for left, _, across, _ in placed.values()) + _GAP, 0
    for number, layer in enumerate(layers, 1):
        placed[number, 4] = (side, top + _TITLE, *layer[4])
        top += _TITLE + layer[4][1]
    return [placed[key] for key in sorted(placed)]


def _row(
    placed: dict[tuple[int, int], _Place], number: int, sizes: Sequence[tuple[int, int]], top: int
) -> int:
    """Place matrices side by side; return where the next row begins."""
    left = 0
    for index, (across, down) in enumerate(sizes):
        placed[number, index] = (left, top + _TITLE, across, down)
        left += across + _GAP
    return top + _TITLE + max(down for _, down in sizes)


def _title(name: str, left: int, top: int, *, bold: bool) -> dict[str, Any]:
    text = escape(name.removeprefix("layer0.").split(".")[-1].split("_", 1)[-1])
    if name.startswith(("wte", "wpe", "lm_head")):
        text = escape(name)
    return {
        "text": f"<b>{text}</b>" if bold else text,
        **{"x": left - 0.5, "y": top - 0.5, "xanchor": "left", "yanchor": "bottom"},
        "showarrow": False,
        "font": {"size": 13, "color": MARK if bold else TEXT},
    }


def _hits(matrices: Sequence[Matrix], places: Sequence[_Place]) -> dict[str, Any]:
    spots = [
        (x, y, index)
        for index, (left, top, across, down) in enumerate(places)
        for x in range(left + 1, left + across, _EVERY)
        for y in range(top + 1, top + down, _EVERY)
    ]
    texts = [
        f"<b>{escape(m.name)}</b> {m.shape[0]} x {m.shape[1]} = {m.count:,}<br>{m.does}"
        for m in matrices
    ]
    xs, ys, indices = ([spot[axis] for spot in spots] for axis in range(3))
    return buttons(xs, ys, [texts[index] for index in indices], indices)


def _colours(limit: float) -> dict[str, Any]:
    return {
        **{"zmin": -limit, "zmax": limit, "colorscale": _SCALE},
        "colorbar": {
            "thickness": 10,
            "outlinewidth": 0,
            "tickvals": [-limit, 0, limit],
            "ticktext": [f"-{limit:.2f}", "0", f"{limit:.2f}"],
            "tickfont": {"size": 13, "color": TEXT},
            "xpad": 6,
            "len": 1,
        },
    }


def _thinned(axis: dict[str, Any]) -> dict[str, Any]:
    """Return an axis with a label every eighth place where there are many."""
    if len(axis["tickvals"]) <= _CROWDED:
        return axis
    kept = {key: axis[key][::8] for key in ("tickvals", "ticktext")}
    return axis | kept | {"tickfont": {"size": 12, "color": TEXT}}


def _hidden(first: int, last: int) -> dict[str, Any]:
    return {"range": [first, last], "visible": False, "fixedrange": True}
