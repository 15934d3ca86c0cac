"""Training of a microgpt: its loss curve, its letters on a map, its heads, zeroing left out."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from app.figures.base import (
    MARK,
    MUTED,
    PAPER,
    SEQUENTIAL,
    TEXT,
    Figure,
    caption,
    colour_of,
    escape,
    label_width,
    margins,
    measure_axis,
    packed,
    shorten,
    slot_of,
    token_axis,
)
from app.figures.frames import playing
from wordlm_core.lens.training_history import AVERAGE_OVER, LAST, Curve, LettersMap, Through
from wordlm_core.lens.training_step import Zeroing

_MICROGPT = colour_of("microgpt")
_MOST_POINTS = 5_000
_MS_A_STEP = 130
_PANELS = 4
_SHADES = [[i / 9, colour] for i, colour in enumerate(SEQUENTIAL)]
_HOVER = "%{y:.3f}<extra>%{fullData.name}</extra>"


def training_curve(curve: Curve, through: Through, text: str) -> Figure:
    """Draw every step's loss, the average, and the lines to compare them with.

    Args:
        curve: Losses of the training.
        through: One text's loss at the stored steps.
        text: That text.
    """
    count = len(curve.losses)
    every = math.ceil(count / _MOST_POINTS)
    x = {"x0": 1, "dx": every}
    data = [
        _line(f"item of the step{f' (every {every})' if every > 1 else ''}", MUTED, width=1)
        | x
        | {"y": packed(curve.losses[::every]), "opacity": 0.55},
        _line(f"mean of {AVERAGE_OVER}", _MICROGPT, width=4)
        | x
        | {"y": packed(curve.average[::every])},
        _line(escape(shorten(text)), MARK, width=2)
        | {"x": list(through.steps), "y": packed(through.losses), "mode": "lines+markers"},
    ]
    levels = [("guessing evenly: ln V", curve.uniform, 0, "dash")]
    levels.append((f"mean of the last {LAST}", curve.last, max(0, count - LAST), "solid"))
    if curve.floor is not None:
        levels.append(("knowing the list by heart", curve.floor, 0, "dot"))
    names = [_level(name, value, count, above=name == levels[0][0]) for name, value, _, _ in levels]
    top = max(float(curve.losses.max()), float(through.losses.max()), curve.uniform)
    layout = {
        "height": 380,
        "margin": margins(t=52, left=64),
        "xaxis": measure_axis("training step", [0.0, 1.01 * count]),
        "yaxis": measure_axis("loss (nats a token)", [0.0, 1.04 * top]),
        "shapes": [_across(value, start, count, dash) for _, value, start, dash in levels],
        "annotations": names,
        "hovermode": "x unified",
        "legend": _legend(),
    }
    said = "; ".join(f"{name} {value:.2f}" for name, value, _, _ in levels)
    return Figure(
        {"data": data, "layout": layout},
        f"Loss of {count:,} training steps, average at the end {curve.average[-1]:.2f}; {said}.",
    )


def letters_map(result: LettersMap) -> Figure:
    """Draw the rows of wte as letters that move through training, vowels in another colour."""
    paths = result.trajectory.paths
    steps = [point.step for point in paths[0].points]
    coords = np.array([[point.coords for point in path.points] for path in paths])
    vowels = np.array(result.vowels)
    groups = [
        (name, colour, np.flatnonzero(chosen))
        for name, colour, chosen in (
            ("vowels", MARK, vowels),
            ("others", _MICROGPT, ~vowels),
        )
        if chosen.any()
    ]

    def places(step: int) -> list[dict[str, Any]]:
        return [{"type": "scatter", **_rounded(coords[members, step])} for _, _, members in groups]

    data = [
        place
        | {
            "mode": "markers+text",
            "name": name,
            "text": [escape(shorten(paths[i].word)) for i in members],
            "textfont": {"size": 16, "color": PAPER},
            "marker": {"size": 25, "color": colour},
            "cliponaxis": False,
            "hovertemplate": "%{text}<extra></extra>",
        }
        for place, (name, colour, members) in zip(places(-1), groups, strict=True)
    ]
    frames = [
        {"name": str(step), "traces": list(range(len(groups))), "data": places(index)}
        for index, step in enumerate(steps)
    ]
    explained = result.trajectory.explained
    axes = [
        measure_axis(f"PC {axis + 1} ({explained[axis]:.0%} of variance)", _ends(coords[..., axis]))
        for axis in range(2)
    ]
    layout = {
        "height": 480,
        "margin": margins(t=34, left=58, bottom=128),
        "xaxis": axes[0],
        "yaxis": axes[1],
        "legend": _legend(),
        **playing(steps, milliseconds=_MS_A_STEP, redraw=False),
    }
    return Figure(
        {"data": data, "layout": layout, "frames": frames},
        f"{len(paths)} tokens on one map of two axes, from step {steps[0]} to {steps[-1]}; "
        f"the axes hold {explained.sum():.0%} of the variance of all steps together.",
    )


def heads_through(through: Through) -> Figure:
    """Draw all heads of a layer side by side, moving through training on one scale."""
    n_head, n = through.attention.shape[1:3]
    rows = math.ceil(n_head / _PANELS)
    size = max(9, 15 - n // 3)
    wide = label_width(through.tokens, size)
    layout: dict[str, Any] = {"height": 250 * rows + 150, "annotations": []}
    layout["margin"] = margins(t=26, left=wide + 26, bottom=138)
    data: list[dict[str, Any]] = []
    for head in range(n_head):
        row, column = divmod(head, _PANELS)
        suffix = "" if head == 0 else str(head + 1)
        x = slot_of(column, min(n_head, _PANELS), gap=0.05)
        y = slot_of(rows - 1 - row, rows, gap=0.2)
        keys = token_axis(through.tokens, "key (source)", size=size)
        queries = token_axis(through.tokens, "query (receiver)", size=size, reverse=True)
        if column:
            queries["title"] = {"text": ""}
        layout[f"xaxis{suffix}"] = keys | {"domain": x, "anchor": f"y{suffix}"}
        layout[f"yaxis{suffix}"] = queries | {"domain": y, "anchor": f"x{suffix}"}
        layout["annotations"].append(caption(f"head {head}", sum(x) / 2, y[1], bold=False))
        data.append(
            {
                "type": "heatmap",
                "z": _percents(through.attention[-1, head]),
                "zmin": 0,
                "zmax": 100,
                "xgap": 1,
                "ygap": 1,
                "colorscale": _SHADES,
                "showscale": False,
                "hovertemplate": f"head {head}: query %{{y}} looks at key %{{x}}<br>%{{z}}%"
                "<extra></extra>",
                "xaxis": f"x{suffix}",
                "yaxis": f"y{suffix}",
            }
        )
    frames = [
        {
            "name": str(step),
            "traces": list(range(n_head)),
            "data": [{"type": "heatmap", "z": _percents(head)} for head in heads],
        }
        for step, heads in zip(through.steps, through.attention, strict=True)
    ]
    layout |= playing(through.steps, milliseconds=_MS_A_STEP, redraw=True)
    last = through.attention[-1, :, -1]
    said = (
        f"head {head} {through.tokens[int(weights.argmax())]} ({weights.max():.0%})"
        for head, weights in enumerate(last)
    )
    return Figure(
        {"data": data, "layout": layout, "frames": frames},
        f"Attention of {n_head} head(s) from step {through.steps[0]} to {through.steps[-1]}. At "
        f"the end the last position looks most at: {', '.join(said)}.",
    )


def zeroing_losses(result: Zeroing) -> Figure:
    """Draw the loss of a short list while the gradient is zeroed, and while it is not."""
    steps = result.steps[-1]
    data = [
        _line(name, colour, width=4) | {"x": list(result.steps), "y": packed(values)}
        for name, colour, values in _both(result.zeroed, result.kept)
    ]
    top = max(float(result.zeroed.max()), float(result.kept.max()))
    layout = {
        "height": 300,
        "margin": margins(t=52, left=64),
        "xaxis": measure_axis("step", [0.0, float(steps)]),
        "yaxis": measure_axis("mean loss of the list (nats)", [0.0, 1.05 * top]),
        "shapes": [_across(result.floor, 0, steps, "dot")],
        "annotations": [_level("list known by heart", result.floor, steps, above=True)],
        "hovermode": "x unified",
        "legend": _legend(),
    }
    return Figure(
        {"data": data, "layout": layout},
        f"Loss over {steps} steps: zeroed it ends at {result.zeroed[-1]:.2f}, not zeroed at "
        f"{result.kept[-1]:.2f}.",
    )


def zeroing_norms(result: Zeroing) -> Figure:
    """Draw the length of the gradient that Adam was given at each step, both ways."""
    data = [
        _line(name, colour, width=4) | {"x0": 1, "dx": 1, "y": packed(values)}
        for name, colour, values in _both(result.zeroed_norms, result.kept_norms)
    ]
    layout = {
        "height": 300,
        "margin": margins(t=52, left=64),
        "xaxis": measure_axis("step", [0.0, float(len(result.kept_norms))]),
        "yaxis": measure_axis("length of the gradient", None) | {"rangemode": "tozero"},
        "hovermode": "x unified",
        "legend": _legend(),
    }
    return Figure(
        {"data": data, "layout": layout},
        f"Length of the gradient at the last step: zeroed {result.zeroed_norms[-1]:.1f}, not "
        f"zeroed {result.kept_norms[-1]:.1f}.",
    )


# -- parts


def _both(
    zeroed: Float[np.ndarray, " n"], kept: Float[np.ndarray, " n"]
) -> Sequence[tuple[str, str, Float[np.ndarray, " n"]]]:
    return ("zeroed", _MICROGPT, zeroed), ("not zeroed", MARK, kept)


def _line(name: str, colour: str, *, width: int) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "line": {"color": colour, "width": width},
        "marker": {"color": colour, "size": 5},
        "hovertemplate": _HOVER,
    }


def _across(value: float, start: int, end: int, dash: str) -> dict[str, Any]:
    line = {"color": TEXT, "width": 2, "dash": dash}
    return {"type": "line", "x0": start, "x1": end, "y0": value, "y1": value, "line": line}


def _level(name: str, value: float, end: int, *, above: bool) -> dict[str, Any]:
    """Return a line's name, on its right end or under it."""
    return {
        "text": f"{name} {value:.2f}",
        "x": end,
        "y": value,
        "xanchor": "right",
        "yanchor": "bottom" if above else "top",
        "yshift": 2 if above else -2,
        "showarrow": False,
        "bgcolor": PAPER,
        "font": {"size": 14, "color": TEXT},
    }


def _legend() -> dict[str, Any]:
    return {
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "y": 1,
        "yanchor": "bottom",
        "font": {"size": 14, "color": TEXT},
    }


def _rounded(points: Float[np.ndarray, "token axis"]) -> dict[str, list[float]]:
    """Return coordinates with as many digits as a screen shows."""
    x, y = points.round(2).T.tolist()
    return {"x": x, "y": y}


def _ends(values: Float[np.ndarray, "token step"]) -> list[float]:
    low, high = float(values.min()), float(values.max())
    room = 0.08 * (high - low) + 1e-3
    return [low - room, high + room]


def _percents(weights: Float[np.ndarray, "query key"]) -> dict[str, str]:
    """Return weights in whole percents, a byte each: a hundred frames stay small."""
    return packed(np.rint(100 * weights), "u1")
