"""What is near what: cosine bars a model, a matrix of a few words, ranks over training."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.figures.base import (
    DIVERGING,
    MARK,
    MUTED,
    TEXT,
    Figure,
    caption,
    colour_of,
    escape,
    label_width,
    margins,
    measure_axis,
    model_label,
    packed,
    row_pitch,
    shorten,
    token_axis,
)
from wordlm_core.lens.neighbours import HistoryStep, NeighbourHistory, Neighbours, Similarity

_STOPS = [n / (len(DIVERGING) - 1) for n in range(len(DIVERGING))]
_SCALE = [list(pair) for pair in zip(_STOPS, DIVERGING, strict=True)]
_NUMBERS_UP_TO = 14
_TICKS = 13


@dataclass(frozen=True)
class Near:
    """One model's nearest words, for `neighbour_bars`."""

    name: str
    kind: str
    result: Neighbours
    layers: int = 1


def neighbour_bars(panel: Near, beside: Sequence[Near]) -> Figure:
    """Draw one model's nearest words; a click's customdata is the word.

    Args:
        panel: The model.
        beside: All models that are drawn, for one scale of cosine and one height.
    """
    items = [item for each in beside for item in each.result.items]
    cosines = [item.cosine for item in items] or [0.0]
    names = [item.token for item in panel.result.items]
    count = max(len(each.result.items) for each in beside)
    room = 0.22 * (max(0.1, *cosines) - min(0.0, *cosines))  # for the numbers at the ends
    ends = [min(0.0, min(cosines) - room), max(0.1, max(cosines) + room)]
    axis = token_axis(names, "", size=16, reverse=True) | {"range": [count - 0.5, -0.5]}
    title = caption(model_label(panel.kind, panel.layers), 0.0, 1.0, bold=False)
    font = {"size": 16, "color": colour_of(panel.kind)}
    layout = {
        "height": 30 * count + 96,
        "margin": margins(t=46, left=label_width([item.token for item in items] or [""], 16) + 4),
        "xaxis": measure_axis("cosine", ends) | {"nticks": 4},
        "yaxis": axis | {"ticklabelstandoff": 6},
        "annotations": [title | {"xanchor": "left", "align": "left", "font": font}],
        "bargap": 0.22,
    }
    said = ", ".join(f"{item.token} {item.cosine:.2f}" for item in panel.result.items)
    return Figure(
        {"data": [_bars(panel)], "layout": layout},
        f"Nearest words of {panel.result.word} by cosine in {panel.name}: {said}.",
    )


def similarity_matrix(result: Similarity) -> Figure:
    """Draw the cosine of each word with each, on a scale from -1 to 1, with its number."""
    tokens, n = result.tokens, len(result.tokens)
    pitch = max(30.0, row_pitch(n))
    wide = label_width(tokens, 15)
    below = round(0.75 * wide) + 26
    heat: dict[str, Any] = {
        "type": "heatmap",
        "z": packed(result.cosines),
        "zmin": -1,
        "zmax": 1,
        "xgap": 1,
        "ygap": 1,
        "colorscale": _SCALE,
        "colorbar": {
            "title": {"text": "cosine", "side": "right", "font": {"size": 14, "color": TEXT}},
            "thickness": 10,
            "outlinewidth": 0,
            "tickvals": [-1, -0.5, 0, 0.5, 1],
            "tickfont": {"size": 13, "color": TEXT},
            "xpad": 6,
        },
        "customdata": [[f"{escape(a)} and {escape(b)}" for b in tokens] for a in tokens],
        "hovertemplate": "%{customdata}<br>cosine %{z:.4f}<extra></extra>",
    }
    if n <= _NUMBERS_UP_TO:
        numbers = [[f"{cosine:.2f}" for cosine in row] for row in result.cosines.tolist()]
        heat |= {"text": numbers, "texttemplate": "%{text}", "textfont": {"size": 14}}
    layout = {
        "height": round(pitch * n) + below + 10,
        "margin": margins(t=8, left=wide + 4, bottom=below, right=76),
        "xaxis": token_axis(tokens, "", size=15) | {"tickangle": -45},
        "yaxis": token_axis(tokens, "", size=15, reverse=True),
    }
    off = result.cosines - 2 * np.eye(n)
    a, b = divmod(int(off.argmax()), n)
    alike = (
        f" Most alike: {tokens[a]} and {tokens[b]}, {result.cosines[a, b]:.2f}." if n > 1 else ""
    )
    return Figure(
        {"data": [heat], "layout": layout}, f"Cosines of {n} words, each with each.{alike}"
    )


def biography(result: NeighbourHistory, kind: str, at: str | None) -> Figure:
    """Draw the rank of each near word over the stored steps: who stayed, came and left.

    Words of the last step are coloured and named at its end; those that left are grey and
    named where they were last seen. A gap means: not among the nearest at that step.

    Args:
        result: The nearest words at each step.
        kind: The kind of model.
        at: Label of a step to mark.
    """
    steps = result.steps
    final = [item.token for item in steps[-1].items]
    gone = list(dict.fromkeys(item.token for step in steps for item in step.items))
    gone = [token for token in gone if token not in final]
    depth = max(len(step.items) for step in steps)
    data = [_life(steps, token, MUTED, width=1.5) for token in gone]
    data += [_life(steps, token, colour_of(kind), width=3.0) for token in final]
    names = [_final(len(steps) - 1, rank, steps[-1]) for rank in range(len(final))]
    labels = [f"step {steps[0].step:,}", *(f"{entry.step:,}" for entry in steps[1:])]
    every = math.ceil(len(steps) / _TICKS)
    labels = [label if index % every == 0 else "" for index, label in enumerate(labels)]
    marks = [index for index, entry in enumerate(steps) if entry.label == at]
    right = label_width([f"{token} 0.00" for token in final] or [""], 14)
    layout = {
        "height": 36 * depth + 70,
        "margin": margins(t=8, left=48, bottom=54, right=right),
        "xaxis": token_axis(labels, "", size=14) | {"range": [-0.35, len(steps) - 0.85]},
        "yaxis": token_axis([str(n + 1) for n in range(depth)], "rank", size=14, reverse=True),
        "showlegend": False,
        "annotations": [*names, *(_last_seen(steps, token) for token in gone)],
        "shapes": [
            {
                "type": "line",
                "yref": "paper",
                "x0": index,
                "x1": index,
                "y0": 0,
                "y1": 1,
                "line": {"color": MARK, "width": 1.5, "dash": "dot"},
            }
            for index in marks
        ],
    }
    return Figure(
        {"data": data, "layout": layout},
        f"Ranks of the nearest words of {result.word} over {len(steps)} stored steps. At the "
        f"end: {', '.join(final)}. Left on the way: {', '.join(gone) or 'none'}.",
    )


# -- parts


def _bars(panel: Near) -> dict[str, Any]:
    items = panel.result.items
    look = {"marker": {"opacity": 1}}
    return {
        "type": "bar",
        "orientation": "h",
        "x": [item.cosine for item in items],
        "y": list(range(len(items))),
        "marker": {"color": colour_of(panel.kind)},
        "selected": look,
        "unselected": look,
        "customdata": [item.token for item in items],
        "text": [f"{item.cosine:.2f}" for item in items],
        "textposition": "outside",
        "textfont": {"size": 15, "color": TEXT},
        "cliponaxis": False,
        "hovertext": [f"{escape(item.token)}: cosine {item.cosine:.4f}" for item in items],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "showlegend": False,
    }


def _rank(step: HistoryStep, token: str) -> int | None:
    return next((rank for rank, item in enumerate(step.items) if item.token == token), None)


def _life(steps: Sequence[HistoryStep], token: str, colour: str, *, width: float) -> dict[str, Any]:
    ranks = [_rank(step, token) for step in steps]
    near = [
        None if rank is None else step.items[rank].cosine
        for step, rank in zip(steps, ranks, strict=True)
    ]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(range(len(steps))),
        "y": ranks,
        "customdata": near,
        "line": {"color": colour, "width": width},
        "marker": {"color": colour, "size": 4 + 2 * width},
        "hovertemplate": f"<b>{escape(token)}</b>, cosine %{{customdata:.3f}}<extra></extra>",
        "cliponaxis": False,
        "name": escape(token),
    }


def _final(x: int, rank: int, step: HistoryStep) -> dict[str, Any]:
    item = step.items[rank]
    return {
        "text": f"<b>{escape(shorten(item.token))}</b> {item.cosine:.2f}",
        "x": x,
        "y": rank,
        "xanchor": "left",
        "xshift": 10,
        "showarrow": False,
        "font": {"size": 14, "color": TEXT},
    }


def _last_seen(steps: Sequence[HistoryStep], token: str) -> dict[str, Any]:
    x = max(index for index, step in enumerate(steps) if _rank(step, token) is not None)
    return {
        "text": escape(shorten(token)),
        "x": x,
        "y": _rank(steps[x], token),
        "xanchor": "center",
        "yshift": 12,
        "showarrow": False,
        "font": {"size": 12, "color": TEXT},
    }
