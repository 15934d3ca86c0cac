"""One position of microgpt: its steps as a strip, its vectors as cells, what they look back at."""

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from jaxtyping import Float

from app.figures.base import (
    DIVERGING,
    GRID,
    MARK,
    SEQUENTIAL,
    TEXT,
    Figure,
    buttons,
    caption,
    colour_of,
    escape,
    label_width,
    margins,
    packed,
    percent,
    shorten,
    slot_of,
    token_axis,
)
from wordlm_core.lens.position import Step, Walk
from wordlm_core.lens.position_interventions import Mixing, Swap

VECTOR_SHOWN = 128  # of one vector; what is beyond is left out and said so
_ACROSS, _WORDS_ACROSS, _LETTERS = 16, 6, 5  # cells a row, for short names and for longer ones
_SCALE = [[index / (len(DIVERGING) - 1), colour] for index, colour in enumerate(DIVERGING)]
_GROWTH = [[index / (len(SEQUENTIAL) - 1), colour] for index, colour in enumerate(SEQUENTIAL)]
_WRITTEN = 24  # steps in a row whose changes have room to be written
_PANELS = 4


def walk_strip(walk: Walk, chosen: int) -> Figure:
    """Draw every step as a box, one row a layer; a click's `customdata` is the step.

    The chosen one is filled, those it reads are outlined.
    """
    places = _places(walk.steps)
    wide, rows = (1 + max(ends) for ends in zip(*places, strict=True))
    reads = walk.steps[chosen].reads
    xs, ys = [x for x, _ in places], [y for _, y in places]
    colours = [MARK if index == chosen else TEXT for index in range(len(places))]
    numbers: dict[str, Any] = {
        "type": "scatter",
        "mode": "text",
        "x": xs,
        "y": ys,
        "text": [
            f"<b>{index + 1}</b>" if index == chosen else str(index + 1)
            for index in range(len(places))
        ],
        "textfont": {"size": 13, "color": colours},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    names = [
        f"<b>{index + 1} · {step.name}</b>{_in_layer(step, rows)}<br>{_lines(step.code)}"
        for index, step in enumerate(walk.steps)
    ]
    layout = {
        "height": 32 * rows + 26,
        "margin": margins(t=22, left=2, bottom=2, right=2),
        "xaxis": _hidden([-0.5, wide - 0.5]),
        "yaxis": _hidden([rows - 0.5, -0.5]),
        "shapes": [
            _box(place, index == chosen, index in reads) for index, place in enumerate(places)
        ],
        "annotations": [
            caption(part, (columns[0] + columns[-1] + 1) / 2 / wide, 1.0, bold=False)
            for part, columns in _parts(walk.steps, places)
        ],
        "hovermode": "closest",
    }
    step = walk.steps[chosen]
    return Figure(
        {"data": [numbers, buttons(xs, ys, names, list(range(len(places))))], "layout": layout},
        f"The {len(places)} steps of position {walk.position} in the order of the code. Step "
        f"{chosen + 1}, {step.name}, is marked"
        + (f"; it reads {', '.join(str(i + 1) for i in reads)}." if reads else "."),
    )


def step_cells(walk: Walk, step: Step, labels: Sequence[str], itos: Sequence[str]) -> Figure:
    """Draw the numbers of a step: wrapped cells for a vector, a row a head, or the cache.

    Args:
        walk: What the step is one of.
        step: Which.
        labels: The text's tokens as they can be seen.
        itos: The vocabulary's.
    """
    if step.axes[0] == "key or value":
        return kv_cache(step.values, labels)
    if step.values.ndim == 1:
        ids = {"vocab": range(len(itos)), "rank": walk.likeliest}.get(step.axes[0], ())
        return _cells(
            step, [itos[i] for i in ids], percent if step.unit == "probability" else number
        )
    columns = step.values.shape[1]
    if step.axes[1] == "position":
        return _heads(step, labels[:columns], "position that is looked at")
    return _heads(step, [str(slot) for slot in range(columns)], "slot of the head")


def head_bars(attention: Float[np.ndarray, "head position"], labels: Sequence[str]) -> Figure:
    """Draw where each head looks: a panel a head, a bar a position."""
    n_head, seen = attention.shape
    columns = min(_PANELS, n_head)
    rows = math.ceil(n_head / columns)
    names = [f"{position} · {label}" for position, label in enumerate(labels[:seen])]
    left = label_width(names, 14)
    pitch = 26 if seen > 3 else 34
    data: list[dict[str, Any]] = []
    titles: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"height": rows * (pitch * seen + 30) + 30, "showlegend": False}
    layout["margin"] = margins(t=26, left=left, bottom=4, right=4)
    for head in range(n_head):
        row, column = divmod(head, columns)
        suffix = "" if head == 0 else str(head + 1)
        x, y = slot_of(column, columns, gap=0.03), slot_of(rows - 1 - row, rows, gap=0.16 / rows)
        layout[f"xaxis{suffix}"] = _hidden([0.0, 1.4]) | {"domain": x, "anchor": f"y{suffix}"}
        axis = token_axis(names, "", size=14, reverse=True) | {"domain": y, "anchor": f"x{suffix}"}
        layout[f"yaxis{suffix}"] = axis | {"showticklabels": column == 0}
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": packed(attention[head]),
                "y": list(range(seen)),
                "text": [f"{share:.2f}" for share in attention[head]],
                "textposition": "outside",
                "textfont": {"size": 13, "color": TEXT},
                "cliponaxis": False,
                "marker": {"color": colour_of("microgpt")},
                "customdata": [escape(name) for name in names],
                "hovertemplate": f"head {head} looks at %{{customdata}}: %{{x:.4f}}<extra></extra>",
                "xaxis": f"x{suffix}",
                "yaxis": f"y{suffix}",
            }
        )
        titles.append(caption(f"head {head}", sum(x) / 2, y[1], bold=False))
    layout["annotations"] = titles
    most = ", ".join(
        f"head {head} at {names[int(np.argmax(row))]} ({row.max():.2f})"
        for head, row in enumerate(attention)
    )
    return Figure({"data": data, "layout": layout}, f"Where each head looks most: {most}.")


def kv_cache(held: Float[np.ndarray, "two position d_model"], labels: Sequence[str]) -> Figure:
    """Draw keys and values of the positions so far; the rows of later tokens are still empty."""
    _, seen, width = held.shape
    total = len(labels)
    limit = _limit(held)
    names = [f"{position} · {label}" for position, label in enumerate(labels)]
    layout: dict[str, Any] = {
        "height": 26 * total + 34,
        "margin": margins(t=26, left=label_width(names, 14), bottom=4, right=4),
        "annotations": [],
    }
    data: list[dict[str, Any]] = []
    for index, what in enumerate(("keys", "values")):
        suffix = "" if index == 0 else "2"
        slot = slot_of(index, 2, gap=0.04)
        layout[f"xaxis{suffix}"] = _hidden([-0.5, width - 0.5]) | {"domain": slot}
        axis = token_axis(names, "", size=14, reverse=True) | {"anchor": f"x{suffix}"}
        layout[f"yaxis{suffix}"] = axis | {"showticklabels": index == 0}
        rows = np.full((total, width), np.nan)
        rows[:seen] = held[index]
        data.append(
            {
                **_heat(rows, limit),
                "customdata": [[escape(name)] * width for name in names],
                "hovertemplate": f"{what} of %{{customdata}}, number %{{x}}: %{{z:.4f}}"
                "<extra></extra>",
                "xaxis": f"x{suffix}",
                "yaxis": f"y{suffix}",
            }
        )
        layout["annotations"].append(caption(what, sum(slot) / 2, 1.0, bold=False))
    line = {"color": MARK, "width": 2}
    layout["shapes"] = [
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": seen - 0.5, "y1": seen - 0.5}
        | {"line": line}
    ]
    return Figure(
        {"data": data, "layout": layout},
        f"The cache after position {seen - 1}: {counted(seen, 'key')} and "
        f"{counted(seen, 'value')} of {counted(width, 'number')}; {total - seen} of "
        f"{counted(total, 'row')} still empty.",
    )


def swap_changes(walk: Walk, swaps: Sequence[tuple[str, Swap]]) -> Figure:
    """Draw the largest change of every step: one row a swap; an exact 0 is written as 0."""
    changes = np.array([swap.changes for _, swap in swaps])
    count = changes.shape[1]
    names = [f"{index + 1} · {step.name}" for index, step in enumerate(walk.steps[:count])]
    crowded = count > _WRITTEN
    texts = [["0" if change == 0 else f"{change:.2g}" for change in row] for row in changes]
    heat: dict[str, Any] = {
        "type": "heatmap",
        "z": packed(changes),
        "zmin": 0,
        "zmax": float(changes.max()) or 1.0,
        "colorscale": _GROWTH,
        "showscale": False,
        "xgap": 1,
        "ygap": 3,
        "customdata": [[escape(name) for name in names]] * len(swaps),
        "hovertemplate": "%{y}<br>step %{customdata}: largest change %{z:.4g}<extra></extra>",
        "text": texts,
        "texttemplate": "" if crowded else "%{text}",
        "textfont": {"size": 12},
    }
    rows = [label for label, _ in swaps]
    steps = token_axis(names, "", size=11 if crowded else 13)
    layout = {
        "height": 44 * len(swaps) + 126,
        "margin": margins(t=4, left=label_width(rows, 14), bottom=118, right=4),
        "xaxis": steps | {"tickangle": -40},
        "yaxis": token_axis(rows, "", size=14, reverse=True),
    }
    told = "; ".join(f"{label}: largest change {max(swap.changes):.3g}" for label, swap in swaps)
    return Figure({"data": [heat], "layout": layout}, f"The largest change of each step. {told}.")


def head_writes(of: Mixing) -> Figure:
    """Draw what each head adds to the stream: with the identity, and with the real W_O."""
    n_head, width = of.mixed.shape
    limit = _limit(np.stack([of.apart, of.mixed]))
    heads = [f"head {head}" for head in range(n_head)]
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "height": 34 * n_head + 60,
        "margin": margins(t=26, left=label_width(heads, 14), bottom=30, right=4),
        "annotations": [],
    }
    panels = ((of.apart, "identity in place of W_O"), (of.mixed, "the real W_O"))
    for index, (rows, title) in enumerate(panels):
        suffix = "" if index == 0 else "2"
        slot = slot_of(index, 2, gap=0.03)
        layout[f"xaxis{suffix}"] = _slots(width) | {"domain": slot}
        axis = token_axis(heads, "", size=14, reverse=True) | {"anchor": f"x{suffix}"}
        layout[f"yaxis{suffix}"] = axis | {"showticklabels": index == 0}
        written = width <= _ACROSS
        data.append(
            {
                **_heat(rows, limit),
                "text": [[_short(value) for value in row] for row in rows.tolist()],
                "texttemplate": "%{text}" if written else "",
                "textfont": {"size": 11},
                "hovertemplate": f"{title}: head %{{y}} adds %{{z:.4f}} to slot %{{x}}"
                "<extra></extra>",
                "xaxis": f"x{suffix}",
                "yaxis": f"y{suffix}",
            }
        )
        layout["annotations"].append(caption(title, sum(slot) / 2, 1.0, bold=False))
    share = "" if of.elsewhere is None else f" {of.elsewhere:.0%} of it lies outside their own."
    return Figure(
        {"data": data, "layout": layout},
        f"What {counted(n_head, 'head')} can add to {width} slots of the stream. With the identity "
        f"each writes into its own {width // n_head} slots only; with W_O into all.{share}",
    )


def counted(count: int, noun: str) -> str:
    """Return a number with what it counts: `1 key`, `3 keys`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def number(value: float) -> str:
    """Return a number of a vector for a cell: two places, none where it is large."""
    text = f"{value:.2f}" if abs(value) < 99.995 else f"{value:.0f}"
    return text.removeprefix("-") if float(text) == 0 else text


# -- cells


def _cells(step: Step, names: Sequence[str], written: Callable[[float], str]) -> Figure:
    """Draw one vector, wrapped; each cell with its name, where it has one, and its number."""
    values = step.values[:VECTOR_SHOWN]
    shown = [escape(shorten(name)) for name in names[: len(values)]]
    short = all(len(shorten(name)) <= _LETTERS for name in names[: len(values)])
    rows = math.ceil(len(values) / (_ACROSS if short else _WORDS_ACROSS))
    across = math.ceil(len(values) / rows)
    texts = [written(value) for value in values.tolist()]
    hovers = [f"number {i}: {value:.6g}" for i, value in enumerate(values.tolist())]
    if names:
        texts = [f"<b>{name}</b><br>{text}" for name, text in zip(shown, texts, strict=True)]
        hovers = [f"{name}: {value:.6g}" for name, value in zip(shown, values, strict=True)]
    layout = {
        "height": (46 if names else 34) * rows + 8,
        "margin": margins(t=4, left=40 if rows > 1 and not names else 4, bottom=4, right=4),
        "xaxis": _hidden([-0.5, across - 0.5]),
        "yaxis": _hidden([rows - 0.5, -0.5]),
    }
    if rows > 1 and not names:
        starts = [str(row * across) for row in range(rows)]
        layout["yaxis"] = token_axis(starts, "", size=13, reverse=True)
    heat = {
        **_heat(_wrapped(values, across), _limit(values)),
        "text": _folded(texts, across),
        "texttemplate": "%{text}",
        "textfont": {"size": 14 if names else 13},
        "customdata": _folded(hovers, across),
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    told = f"{step.name}: {counted(len(step.values), 'number')}"
    told += f" from {values.min():.3g} to {values.max():.3g}"
    if names:
        best = int(np.argmax(values))
        told += f"; the largest is that of {names[best]}"
    return Figure({"data": [heat], "layout": layout}, told + ".")


def _heads(step: Step, columns: Sequence[str], title: str) -> Figure:
    """Draw one row a head."""
    n_head = step.values.shape[0]
    heads = [f"head {head}" for head in range(n_head)]
    axis = token_axis(columns, title, size=14)
    axis["title"]["standoff"] = 2
    layout = {
        "height": 32 * n_head + 54,
        "margin": margins(t=4, left=label_width(heads, 14), bottom=50, right=4),
        "xaxis": axis,
        "yaxis": token_axis(heads, "", size=14, reverse=True),
    }
    heat = {
        **_heat(step.values, _limit(step.values)),
        "text": [[number(value) for value in row] for row in step.values.tolist()],
        "texttemplate": "%{text}",
        "textfont": {"size": 13},
        "customdata": [[escape(name) for name in columns]] * n_head,
        "hovertemplate": "head %{y}, %{customdata}: %{z:.6f}<extra></extra>",
    }
    if len(columns) > _ACROSS:
        heat["texttemplate"] = ""
        layout["xaxis"]["ticktext"] = [
            text if index % 4 == 0 else "" for index, text in enumerate(axis["ticktext"])
        ]
    return Figure(
        {"data": [heat], "layout": layout},
        f"{step.name}: {counted(n_head, 'head')} with {counted(len(columns), 'number')} each, from "
        f"{step.values.min():.3g} to {step.values.max():.3g}.",
    )


def _heat(rows: Float[np.ndarray, "row column"], limit: float) -> dict[str, Any]:
    return {
        "type": "heatmap",
        "z": packed(rows),
        "zmin": -limit,
        "zmax": limit,
        "colorscale": _SCALE,
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
        "hoverongaps": False,
    }


def _limit(values: Float[np.ndarray, "..."]) -> float:
    """Return where colours are full, above and below 0."""
    return float(np.abs(values).max()) or 1.0


def _wrapped(values: Float[np.ndarray, " n"], across: int) -> Float[np.ndarray, "row column"]:
    rows = math.ceil(len(values) / across)
    padded = np.full(rows * across, np.nan)
    padded[: len(values)] = values
    return padded.reshape(rows, across)


def _folded(texts: Sequence[str], across: int) -> list[list[str]]:
    padded = [*texts, *[""] * (-len(texts) % across)]
    return [padded[start : start + across] for start in range(0, len(padded), across)]


def _short(value: float) -> str:
    """Return a number for a narrow cell: no 0 before the point, nothing for an exact 0."""
    return "" if value == 0 else number(value).replace("0.", ".", 1)


# -- axes and boxes


def _places(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """Return column and row of each step: what is before and after the layers joins their rows."""
    layers = [step.layer for step in steps]
    before, each = layers.index(0), layers.count(0)
    last = max(layer for layer in layers if layer is not None)

    def place(index: int) -> tuple[int, int]:
        layer = layers[index]
        if layer is not None:
            return index - each * layer, layer
        return (index, 0) if index < before else (index - each * last, last)

    return [place(index) for index in range(len(layers))]


def _parts(steps: Sequence[Step], places: Sequence[tuple[int, int]]) -> list[tuple[str, list[int]]]:
    """Return the parts of the model with the columns of each, from the left."""
    columns = sorted({(column, step.part) for step, (column, _) in zip(steps, places, strict=True)})
    return [
        (part, [column for column, _ in group])
        for part, group in groupby(columns, key=lambda column: column[1])
    ]


def _box(place: tuple[int, int], chosen: bool, read: bool) -> dict[str, Any]:
    x, y = place
    line = {"color": MARK if chosen or read else GRID, "width": 3 if chosen else 2 if read else 1}
    ends = {"x0": x - 0.45, "x1": x + 0.45, "y0": y - 0.42, "y1": y + 0.42}
    dash = {"dash": "dot"} if read else {}
    fill = SEQUENTIAL[3] if chosen else SEQUENTIAL[0]
    return {"type": "rect", "layer": "below", "line": line | dash, "fillcolor": fill, **ends}


def _lines(code: str) -> str:
    """Return lines of code as markup that keeps them apart and indented."""
    return escape(code).replace("    ", "\u00a0" * 4).replace("\n", "<br>")


def _in_layer(step: Step, rows: int) -> str:
    return "" if step.layer is None or rows == 1 else f", layer {step.layer}"


def _hidden(ends: list[float]) -> dict[str, Any]:
    return {"range": ends, "visible": False, "fixedrange": True}


def _slots(width: int) -> dict[str, Any]:
    """Return the axis of the stream's slots: every fourth is named."""
    axis = token_axis([str(slot) for slot in range(width)], "", size=12)
    names = [text if slot % 4 == 0 else "" for slot, text in enumerate(axis["ticktext"])]
    return axis | {"ticktext": names}
