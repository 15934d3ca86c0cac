"""Attention heatmaps: one head large, all heads small."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from app.figures.base import (
    CELLS_UP_TO,
    MARK,
    SEQUENTIAL,
    Figure,
    buttons,
    caption,
    escape,
    frame_of,
    label_width,
    margins,
    packed,
    row_pitch,
    scale_bar,
    slot_of,
    tick_size,
    token_axis,
)
from wordlm_core.lens.attention import AttentionResult

# More of the scale for small weights: most are. The colour bar shows it.
_STOPS = (0, 0.03, 0.08, 0.15, 0.23, 0.33, 0.45, 0.6, 0.78, 1)
_ATTENTION_SCALE = [[stop, colour] for stop, colour in zip(_STOPS, SEQUENTIAL, strict=True)]
# A small picture has no numbers to read: 255 shades do, a quarter of the bytes, 0 is no cell.
_GREYS = 254
_SMALL_SCALE = [
    [0, "rgba(0,0,0,0)"],
    [0.5 / (1 + _GREYS), "rgba(0,0,0,0)"],
    *(
        [(1 + stop * _GREYS) / (1 + _GREYS), colour]
        for stop, colour in zip(_STOPS, SEQUENTIAL, strict=True)
    ),
]
_NUMBERS_UP_TO = 13


def attention_heatmap(
    result: AttentionResult, layer: int, head: int, query: int, *, colour_bar: bool = True
) -> Figure:
    """Draw one head: receivers are rows, sources columns, the chosen row is framed.

    Cells after the query are blank: the mask hides them. Every cell up to 24 tokens, and the
    diagonal beyond, can be clicked; the point's y is the query.
    """
    tokens, weights = result.tokens, result.weights[layer, head]
    n = len(tokens)
    query = min(query, n - 1)  # a second model may read fewer tokens
    shown = np.where(np.tri(n, dtype=bool), weights, np.nan)
    heat: dict[str, Any] = {
        "type": "heatmap",
        "z": packed(shown),
        "zmin": 0,
        "zmax": 1,
        "xgap": 1 if n <= CELLS_UP_TO else 0,
        "ygap": 1 if n <= CELLS_UP_TO else 0,
        "colorscale": _ATTENTION_SCALE,
        "showscale": colour_bar,
        "colorbar": scale_bar("share of attention"),
        "hovertemplate": "query %{customdata[0]} · %{y} looks at key %{customdata[1]} · %{x}"
        "<br>%{z:.4f}<extra></extra>",
        "hoverongaps": False,
    }
    if n <= _NUMBERS_UP_TO:
        heat |= {"text": _numbers(shown), "texttemplate": "%{text}", "textfont": {"size": 13}}
    if n > CELLS_UP_TO:
        heat["customdata"] = packed(np.indices((n, n)).transpose(1, 2, 0), "u1")
    pitch = row_pitch(n)
    size = tick_size(pitch)
    wide = label_width(tokens, size)
    below = round(wide if n > CELLS_UP_TO else 0.7 * (wide + size)) + 34
    layout = {
        "height": round(pitch * n) + below + 8,
        "margin": margins(t=8, left=wide + 28, bottom=below, right=76 if colour_bar else 12),
        "xaxis": _slanted(token_axis(tokens, "key (source)", size=size)),
        "yaxis": token_axis(tokens, "query (receiver)", size=size, reverse=True),
        "shapes": [frame_of(-0.5, n - 0.5, query - 0.5, query + 0.5)],
    }
    strongest = int(np.argmax(weights[query]))
    return Figure(
        {"data": [heat, _cell_buttons(tokens, weights)], "layout": layout},
        f"Attention of layer {layer}, head {head}: {n} queries as rows, {n} keys as columns. "
        f"Query {query}, {tokens[query]}, looks most at key {strongest}, {tokens[strongest]}: "
        f"{weights[query, strongest]:.2f}.",
    )


def attention_grid(result: AttentionResult, layer: int, head: int, query: int) -> Figure:
    """Draw all heads of a layer small, on one colour scale; a click's customdata is the head."""
    weights = result.weights[layer]
    n_head, n = weights.shape[:2]
    columns = min(n_head, 4)
    rows = math.ceil(n_head / columns)
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"height": 86 * rows + 24, "shapes": []}
    layout["margin"] = margins(t=22, left=8, bottom=6, right=8)
    titles: list[dict[str, Any]] = []
    mask = np.tri(n, dtype=bool)
    for index in range(n_head):
        row, column = divmod(index, columns)
        suffix = "" if index == 0 else str(index + 1)
        x, y = slot_of(column, columns), slot_of(rows - 1 - row, rows, gap=0.22)
        layout[f"xaxis{suffix}"] = _bare(n, x) | {"anchor": f"y{suffix}"}
        layout[f"yaxis{suffix}"] = _bare(n, y, reverse=True) | {"anchor": f"x{suffix}"}
        axes = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
        data.append(
            {
                "type": "heatmap",
                "z": packed(np.where(mask, np.rint(1 + weights[index] * _GREYS), 0), "u1"),
                "zmin": 0,
                "zmax": 1 + _GREYS,
                "colorscale": _SMALL_SCALE,
                "showscale": False,
                "hoverinfo": "skip",
                **axes,
            }
        )
        best = int(np.argmax(weights[index, query]))
        note = f"head {index}: position {query} looks most at {best} · {result.tokens[best]}"
        data.append(buttons([(n - 1) / 2], [(n - 1) / 2], [escape(note)], [index]) | axes)
        titles.append(caption(f"head {index}", sum(x) / 2, y[1], bold=index == head))
        if index == head:
            frame = frame_of(-0.5, n - 0.5, -0.5, n - 0.5)
            layout["shapes"].append(frame | {"xref": f"x{suffix}", "yref": f"y{suffix}"})
    layout["annotations"] = titles
    return Figure(
        {"data": data, "layout": layout},
        f"All {n_head} heads of layer {layer} as small heatmaps on one scale from 0 to 1; "
        f"head {head} is chosen.",
    )


# -- parts


def _cell_buttons(tokens: Sequence[str], weights: Float[np.ndarray, "query key"]) -> dict[str, Any]:
    n = len(tokens)
    labels = [f"{position} · {escape(token)}" for position, token in enumerate(tokens)]
    if n > CELLS_UP_TO:
        where = list(range(n))
        text = [f"query {label}: click for its numbers" for label in labels]
        seen = {"marker": {"symbol": "circle", "size": 7, "opacity": 0.6, "color": MARK}}
        return buttons(where, where, text, where) | seen
    query, key = (axis.ravel() for axis in np.indices((n, n)))
    text = [
        f"query <b>{labels[q]}</b> looks at key <b>{labels[k]}</b><br>"
        + (f"{weights[q, k]:.4f}" if k <= q else "masked: it comes later")
        for q, k in zip(query.tolist(), key.tolist(), strict=True)
    ]
    return buttons(key, query, text, query)


def _slanted(axis: dict[str, Any]) -> dict[str, Any]:
    """Return a horizontal token axis whose labels do not run into each other."""
    crowded = len(axis["tickvals"]) > CELLS_UP_TO
    font = axis["tickfont"] | ({"size": 9} if crowded else {})
    return axis | {"tickangle": -90 if crowded else -45, "tickfont": font}


def _bare(n: int, domain: list[float], *, reverse: bool = False) -> dict[str, Any]:
    ends = [n - 0.5, -0.5] if reverse else [-0.5, n - 0.5]
    return {
        "domain": domain,
        "range": ends,
        "ticks": "",
        "showticklabels": False,
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
    }


def _numbers(weights: Float[np.ndarray, "query key"]) -> list[list[str]]:
    return [
        [f"{w:.2f}".removeprefix("0") if math.isfinite(w) else "" for w in row]
        for row in weights.tolist()
    ]
