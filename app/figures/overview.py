"""Next words side by side, learning curves, seeds."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.figures.ablation import Panel
from app.figures.base import (
    DASH,
    MODEL_COLOUR,
    TEXT,
    Figure,
    caption,
    colour_of,
    escape,
    label_width,
    margins,
    measure_axis,
    model_label,
    model_name,
    percent,
    slot_of,
    token_axis,
)


def next_words(panels: Sequence[Panel], count: int = 5) -> Figure:
    """Draw each model's likeliest next words, one panel a model, on one scale."""
    panels = sorted(panels, key=lambda panel: list(MODEL_COLOUR).index(panel.kind))
    shown = [panel.result.prediction[:count] for panel in panels]
    end = max(entry.prob for entries in shown for entry in entries) * 1.2
    data: list[dict[str, Any]] = []
    left = label_width([entry.token for entry in shown[0]], 17) + 4
    margin = margins(t=48, left=left, bottom=32)
    layout: dict[str, Any] = {"height": 32 * count + 80, "margin": margin}
    titles: list[dict[str, Any]] = []
    for index, (panel, entries) in enumerate(zip(panels, shown, strict=True)):
        suffix = "" if index == 0 else str(index + 1)
        slot = slot_of(index, len(panels), gap=0.13)
        probs = [entry.prob for entry in entries]
        layout[f"xaxis{suffix}"] = measure_axis("", [0.0, end]) | {
            "domain": slot,
            "anchor": f"y{suffix}",
            "tickformat": ".0%",
        }
        names = token_axis([entry.token for entry in entries], "", size=17, reverse=True)
        layout[f"yaxis{suffix}"] = names | {"anchor": f"x{suffix}", "ticklabelstandoff": 6}
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": probs,
                "y": list(range(len(probs))),
                "xaxis": f"x{suffix}",
                "yaxis": f"y{suffix}",
                "marker": {"color": colour_of(panel.kind)},
                "text": [percent(prob) for prob in probs],
                "textposition": "outside",
                "textfont": {"size": 15, "color": TEXT},
                "cliponaxis": False,
                "hoverinfo": "skip",
                "showlegend": False,
            }
        )
        title = caption(model_label(panel.kind), slot[0], 1.0, bold=False)
        font = {"size": 16, "color": colour_of(panel.kind)}
        titles.append(title | {"xanchor": "left", "align": "left", "font": font, "yshift": 2})
    layout["annotations"] = titles
    said = (
        f"{model_name(panel.kind)}: {entries[0].token} {percent(entries[0].prob)}"
        for panel, entries in zip(panels, shown, strict=True)
    )
    return Figure({"data": data, "layout": layout}, f"Likeliest next words. {'; '.join(said)}.")


def learning_curves(traces: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]]) -> Figure:
    """Draw validation loss over steps: every seed thin, the mean of a kind thick.

    The scale starts after step 1, whose loss is that of guessing and would flatten the rest.

    Args:
        traces: For each kind, the `trace` of every run.
    """
    data: list[dict[str, Any]] = []
    said: list[str] = []
    names: list[dict[str, Any]] = []
    for kind, runs in traces.items():
        line = {"color": colour_of(kind), "dash": DASH.get(kind, "solid")}
        curves = [_curve(run) for run in runs]
        if len(curves) > 1:
            data += [
                _line(x, y, model_name(kind), line | {"width": 1.2})
                | {"opacity": 0.45, "showlegend": False}
                for x, y in curves
            ]
        steps = curves[0][0]
        alike = [y for x, y in curves if np.array_equal(x, steps)]
        mean = np.mean(alike, axis=0)
        data.append(_line(steps, mean, model_name(kind), line | {"width": 3.5}))
        names.append(_at_the_end(steps, mean, kind))
        said.append(f"{kind} ends at {mean[-1]:.3f}")
    late = [y[x > 1] for x, y in map(_curve, itertools.chain.from_iterable(traces.values()))]
    ends = _room(np.concatenate(late))
    layout = {
        "height": 360,
        "margin": margins(t=8, left=64),
        "xaxis": measure_axis("training step", None),
        "yaxis": measure_axis("validation loss (nats a token)", ends),
        "annotations": names,
        "showlegend": False,
        "hovermode": "x unified",
    }
    return Figure({"data": data, "layout": layout}, f"Validation loss: {'; '.join(said)}.")


def seeds(values: Mapping[str, Sequence[float]], title: str) -> Figure:
    """Draw one dot a seed and a line at each kind's mean."""
    kinds = list(values)
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": np.asarray(list(values[kind]), dtype=float),
            "y": np.full(len(values[kind]), index, dtype=float),
            "marker": {"size": 15, "opacity": 0.75, "color": colour_of(kind)},
            "hovertemplate": "%{x:.2f}<extra></extra>",
            "showlegend": False,
        }
        for index, kind in enumerate(kinds)
    ]
    means = [float(np.mean(values[kind])) for kind in kinds]
    shapes = [
        {
            "type": "line",
            "x0": mean,
            "x1": mean,
            "y0": index - 0.3,
            "y1": index + 0.3,
            "line": {"width": 4, "color": colour_of(kind)},
        }
        for index, (kind, mean) in enumerate(zip(kinds, means, strict=True))
    ]
    names = [model_name(kind) for kind in kinds]
    layout = {
        "height": 62 * len(kinds) + 60,
        "margin": margins(t=8, left=label_width(names, 15) + 4),
        "xaxis": measure_axis(title, None),
        "yaxis": token_axis(names, "", size=15, reverse=True) | {"ticklabelstandoff": 6},
        "shapes": shapes,
    }
    said = ", ".join(f"{kind} {mean:.2f}" for kind, mean in zip(kinds, means, strict=True))
    return Figure({"data": data, "layout": layout}, f"{title}, a dot a seed. Means: {said}.")


# -- parts


def _curve(trace: Sequence[Mapping[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    points = [(entry["step"], entry["validation_loss"]) for entry in trace]
    steps, losses = zip(*points, strict=True)
    return np.asarray(steps), np.asarray(losses, dtype=float)


def _at_the_end(x: np.ndarray, y: np.ndarray, kind: str) -> dict[str, Any]:
    """Return a curve's name, standing on its last point."""
    return {
        "text": f"<b>{escape(model_name(kind))}</b>",
        "x": int(x[-1]),
        "y": float(y[-1]),
        "xanchor": "right",
        "yanchor": "bottom",
        "yshift": 6,
        "showarrow": False,
        "font": {"size": 15, "color": colour_of(kind)},
    }


def _room(values: np.ndarray) -> list[float] | None:
    """Return the ends of an axis with a little room around the values."""
    if not len(values):
        return None
    low, high = float(values.min()), float(values.max())
    room = 0.08 * (high - low) + 1e-3
    return [low - room, high + 2 * room]


def _line(x: np.ndarray, y: np.ndarray, name: str, line: dict[str, Any]) -> dict[str, Any]:
    hover = "%{y:.3f}<extra>" + name + "</extra>"
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": x,
        "y": y,
        "line": line,
        "hovertemplate": hover,
    }
