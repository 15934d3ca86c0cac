"""Words on a map: trails through training, the share the map keeps, panels that mislead."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from app.figures.base import (
    GRID,
    MUTED,
    PAPER,
    TEXT,
    Figure,
    caption,
    colour_of,
    escape,
    margins,
    measure_axis,
    percent,
    shorten,
    slot_of,
)
from app.figures.frames import playing
from wordlm_core.lens.maps import Cloud
from wordlm_core.lens.trajectory import PathPoint, Trajectory, WordPath

_Trace = dict[str, Any]
_MS_A_STEP = 700
_ROOM = 0.1  # beside the ends of the map, for labels
# Two checkpoints of one kind have one colour: what tells them apart.
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_HEADS = ("circle", "diamond", "cross", "x")


def trails(result: Trajectory, cloud: Cloud, kinds: Sequence[str]) -> Figure:
    """Draw every word's way through training, with a play button and a step slider.

    The browser moves the words and the cloud from frame to frame; trails and axes stay. On
    two axes each checkpoint has a panel, on three all are in one space; either way on one
    basis and between the same ends, which are a little beyond the cloud's percentiles.

    Args:
        result: Paths on 2 or 3 axes.
        cloud: All words on the same axes.
        kinds: The kind of model of each checkpoint.
    """
    solid = len(result.basis) == 3
    steps = sorted({entry.step for entry in result.kept})
    ways = [trace for index, kind in enumerate(kinds) for trace in _ways(result, index, kind)]
    movers = _movers(result, cloud, kinds, steps[-1])
    moving = list(range(len(ways), len(ways) + len(movers)))
    frames: list[dict[str, Any]] = [
        {
            "name": str(step),
            "traces": moving,
            "data": [_place(trace) for trace in _movers(result, cloud, kinds, step)],
        }
        for step in steps
    ]
    layout: dict[str, Any] = {
        "height": 500 if solid else 460,
        "margin": margins(t=30, left=58, bottom=128),
        "showlegend": True,
        "legend": {
            "orientation": "h",
            "x": 0 if solid else 0.95,
            "xanchor": "left" if solid else "right",
            "y": 1,
            "yanchor": "bottom",
            "font": {"size": 14, "color": TEXT},
            "itemclick": False,
            "itemdoubleclick": False,
        },
        **playing(steps, milliseconds=_MS_A_STEP, redraw=solid),
        **(_scene(result, cloud) if solid else _panels(result, cloud, kinds)),
    }
    data = [*ways, *movers]
    if solid:
        data = [_in_space(trace) for trace in data]
        for frame in frames:
            frame["data"] = [_in_space(trace) for trace in frame["data"]]
    return Figure(
        {"data": data, "layout": layout, "frames": frames}, _in_words(result, kinds, steps)
    )


def kept(result: Trajectory, kinds: Sequence[str]) -> Figure:
    """Draw the share of each table's variance that the axes keep, out of all of it."""
    data: list[_Trace] = []
    for index, kind in enumerate(kinds):
        mine = [entry for entry in result.kept if entry.index == index]
        colour = colour_of(kind)
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": [entry.step for entry in mine],
                "y": [entry.share for entry in mine],
                "fill": "none" if index else "tozeroy",
                "marker": {"size": 6, "color": colour},
                "line": {"color": colour, "width": 3, "dash": _DASHES[index % len(_DASHES)]},
                "cliponaxis": False,
                "hovertemplate": "step %{x}: %{y:.2%}<extra>"
                + escape(mine[0].checkpoint)
                + "</extra>",
                "showlegend": False,
            }
        )
    share = kept_in_words(result)
    top = min(0.75, max(entry.share for entry in result.kept))
    layout = {
        "height": 200,
        "margin": margins(t=8, left=62, bottom=48),
        "xaxis": measure_axis("training step", None),
        "yaxis": measure_axis("share of variance", [0.0, 1.0]) | {"tickformat": ".0%", "nticks": 3},
        "annotations": [
            caption(f"kept: {share}", 0.5, top + 0.02, bold=True),
            caption("hidden: all of this", 0.5, (1 + top) / 2, bold=False),
        ],
    }
    return Figure(
        {"data": data, "layout": layout},
        f"Share of variance that the map keeps at each step: {share}.",
    )


def kept_in_words(result: Trajectory) -> str:
    """Return the share that the axes keep, from the least to the most over steps and models."""
    shares = [entry.share for entry in result.kept]
    ends = (percent(min(shares)), percent(max(shares)))
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def outside(result: Trajectory, cloud: Cloud) -> list[str]:
    """Return the words that stand beyond the ends of the map at one step or more."""
    ends = [_map_axis(result, cloud, axis)["range"] for axis in range(len(result.basis))]
    low, high = np.array(ends).T
    found = [
        path.word
        for path in result.paths
        for coords in (np.array([point.coords for point in path.points]),)
        if ((coords < low) | (coords > high)).any()
    ]
    return list(dict.fromkeys(found))


def refitted(panels: Sequence[Trajectory], kind: str) -> Figure:
    """Draw the same words at a few steps, each panel on axes of its own: it misleads."""
    data: list[_Trace] = []
    layout: dict[str, Any] = {"height": 320, "margin": margins(t=28, left=10, bottom=10)}
    layout["annotations"] = []
    for index, panel in enumerate(panels):
        suffix = "" if index == 0 else str(index + 1)
        points = [path.points[0].coords for path in panel.paths]
        domain = slot_of(index, len(panels), gap=0.03)
        look = {"showticklabels": False, "gridcolor": GRID, "zeroline": False}
        look |= {"showline": True, "mirror": True, "linecolor": MUTED, "fixedrange": True}
        across, up = (_widened(np.array(along), 0.25) for along in zip(*points, strict=True))
        layout[f"xaxis{suffix}"] = look | {"domain": domain, "range": across}
        layout[f"yaxis{suffix}"] = look | {"anchor": f"x{suffix}", "range": up}
        head = _marks(points, [path.word for path in panel.paths], colour_of(kind))
        data.append(head | {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}", "hoverinfo": "skip"})
        title = f"step {panel.kept[0].step:,}: its own axes"
        layout["annotations"].append(caption(title, sum(domain) / 2, 1.0, bold=False))
    return Figure(
        {"data": data, "layout": layout},
        f"{len(panels)} panels of the same words, each on axes fitted to that step alone: "
        "places in different panels cannot be compared.",
    )


# -- parts


def _movers(result: Trajectory, cloud: Cloud, kinds: Sequence[str], step: int) -> list[_Trace]:
    """Return what moves: the clouds and the models' words, as they stand at a step."""
    traces: list[_Trace] = []
    for index in range(len(kinds)):
        table = [entry for entry in cloud.steps if entry.index == index]
        traces.append(
            _columns(_latest(table, step).points.tolist())
            | {
                "type": "scatter",
                "mode": "markers",
                "marker": {"size": 4, "color": MUTED, "opacity": 0.4},
                "hoverinfo": "skip",
                "showlegend": False,
                **_axes_of(index),
            }
        )
    named = len(kinds) > 1 and len(result.basis) == 3
    heads = [_heads(result, index, kind, step) for index, kind in enumerate(kinds)]
    return [*traces, *(head | {"showlegend": named} for head in heads)]


def _ways(result: Trajectory, index: int, kind: str) -> list[_Trace]:
    """Return a model's lines, and the marks at their starts and ends."""
    paths = [path for path in result.paths if path.index == index]
    colour = colour_of(kind)
    texts = [[_said(path, point) for point in path.points] for path in paths]
    common = {
        "type": "scatter",
        "hovertemplate": f"%{{text}}<extra>{_name(paths)}</extra>",
        **_axes_of(index),
    }
    line = common | {
        "mode": "lines+markers",
        "opacity": 0.6,
        "line": {"color": colour, "width": 2, "dash": _DASHES[index % len(_DASHES)]},
        "marker": {"size": 4, "color": colour},
        "text": [text for each in texts for text in (*each, "")],
        "showlegend": False,
    }
    gap = (None,) * len(result.basis)
    steps = [row for path in paths for row in (*(point.coords for point in path.points), gap)]
    traces = [_columns(steps) | line]
    for name, symbol, size, end in (
        ("start", "circle-open", 10, 0),
        ("end", "square-open", 17, -1),
    ):
        mark = common | {
            "mode": "markers",
            "name": name,
            "marker": {"size": size, "symbol": symbol, "color": colour, "line": {"width": 2}},
            "text": [each[end] for each in texts],
            "showlegend": index == 0,
        }
        traces.append(_columns([path.points[end].coords for path in paths]) | mark)
    return traces


def _heads(result: Trajectory, index: int, kind: str, step: int) -> _Trace:
    paths = [path for path in result.paths if path.index == index]
    now = [_latest(path.points, step) for path in paths]
    symbol = _HEADS[index % len(_HEADS)]
    points = [point.coords for point in now]
    return _marks(points, [path.word for path in paths], colour_of(kind), symbol) | {
        "name": _name(paths),
        "customdata": [_said(path, p) for path, p in zip(paths, now, strict=True)],
        "hovertemplate": f"%{{customdata}}<extra>{_name(paths)}</extra>",
        **_axes_of(index),
    }


def _name(paths: Sequence[WordPath]) -> str:
    return escape(shorten(paths[0].checkpoint))


def _marks(
    points: Sequence[Sequence[float]],
    words: Sequence[str],
    colour: str,
    symbol: str = "circle",
) -> _Trace:
    return _columns(points) | {
        "type": "scatter",
        "mode": "markers+text",
        "text": [escape(shorten(word)) for word in words],
        "textposition": "top center",
        "textfont": {"size": 16, "color": TEXT},
        "marker": {
            "size": 13,
            "symbol": symbol,
            "color": colour,
            "line": {"color": PAPER, "width": 1},
        },
        "cliponaxis": False,
        "showlegend": False,
    }


def _latest(entries: Sequence[Any], step: int) -> Any:
    """Return the last entry that is not after `step`, or the first."""
    return next((entry for entry in reversed(entries) if entry.step <= step), entries[0])


def _said(path: WordPath, point: PathPoint) -> str:
    return f"<b>{escape(path.word)}</b> at step {point.step:,}"


def _columns(rows: Iterable[Sequence[float | None]]) -> _Trace:
    """Return coordinates by axis, with as many digits as a screen shows."""
    rounded = [[None if value is None else round(value, 3) for value in row] for row in rows]
    return dict(zip("xyz", map(list, zip(*rounded, strict=True)), strict=False))


def _place(trace: _Trace) -> _Trace:
    """Return what a frame changes of a trace."""
    return {key: trace[key] for key in ("type", "x", "y", "z", "customdata") if key in trace}


def _axes_of(index: int) -> dict[str, str]:
    return {"xaxis": f"x{index + 1}", "yaxis": f"y{index + 1}"} if index else {}


def _in_space(trace: _Trace) -> _Trace:
    """Return a flat trace in three dimensions, where a size of markers looks double."""
    flat = {k: v for k, v in trace.items() if k not in ("cliponaxis", "xaxis", "yaxis")}
    if "marker" in flat:
        flat["marker"] = flat["marker"] | {"size": flat["marker"]["size"] / 2}
    return flat | {"type": "scatter3d"}


def _panels(result: Trajectory, cloud: Cloud, kinds: Sequence[str]) -> dict[str, Any]:
    """Return one pair of axes a checkpoint, all with the same ends."""
    layout: dict[str, Any] = {"annotations": []}
    for index, kind in enumerate(kinds):
        suffix = str(index + 1) if index else ""
        domain = slot_of(index, len(kinds), gap=0.02)
        up = _map_axis(result, cloud, 1) | {"anchor": f"x{suffix}"}
        if index:
            up |= {"showticklabels": False, "title": {"text": ""}}
        layout[f"xaxis{suffix}"] = _map_axis(result, cloud, 0) | {"domain": domain}
        layout[f"yaxis{suffix}"] = up
        name = next(entry.checkpoint for entry in result.kept if entry.index == index)
        title = caption(escape(shorten(name)), domain[0], 1.0, bold=True)
        font = {"size": 15, "color": colour_of(kind)}
        layout["annotations"].append(title | {"xanchor": "left", "font": font})
    return layout


def _scene(result: Trajectory, cloud: Cloud) -> dict[str, Any]:
    scene: dict[str, Any] = {"aspectmode": "cube", "dragmode": "turntable"}
    scene["camera"] = {
        "eye": {"x": 1.3, "y": 1.3, "z": 0.5},
        "center": {"x": 0, "y": 0, "z": -0.2},
    }
    for axis, name in enumerate("xyz"):
        flat = _map_axis(result, cloud, axis)
        scene[f"{name}axis"] = {
            "title": {"text": flat["title"]["text"], "font": flat["title"]["font"]},
            "range": flat["range"],
            "nticks": 5,
            "tickfont": {"size": 12, "color": TEXT},
            "gridcolor": GRID,
            "showbackground": False,
            "zeroline": False,
        }
    return {"scene": scene}


def _map_axis(result: Trajectory, cloud: Cloud, axis: int) -> dict[str, Any]:
    title = f"PC {axis + 1} ({result.explained[axis]:.1%} of variance)"
    return measure_axis(title, _widened(np.array([cloud.low[axis], cloud.high[axis]]), _ROOM))


def _widened(values: Float[np.ndarray, " n"], share: float) -> list[float]:
    low, high = float(values.min()), float(values.max())
    room = share * (high - low) + 1e-3
    return [low - room, high + room]


def _in_words(result: Trajectory, kinds: Sequence[str], steps: Sequence[int]) -> str:
    words = ", ".join(dict.fromkeys(path.word for path in result.paths))
    return (
        f"The ways of {words} from step {steps[0]} to {steps[-1]} in {len(kinds)} model(s) on "
        f"one common map of {len(result.basis)} axes, which keeps {kept_in_words(result)} of "
        "the variance."
    )
