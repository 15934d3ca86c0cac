"""Loss curves of experiments over each other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from app.figures.base import (
    MARK,
    MUTED,
    TEXT,
    Figure,
    colour_of,
    escape,
    margins,
    measure_axis,
    packed,
    shorten,
)
from wordlm_core.lens.training_history import AVERAGE_OVER

_POINTS = 400
_ROOM = 0.35  # of nats over the uniform line, before a curve leaves the picture


@dataclass(frozen=True)
class Overlaid:
    """One curve: its name, the moving average of its losses, the size of its vocabulary."""

    name: str
    average: Float[np.ndarray, " steps"]
    vocab_size: int


def overlaid(curves: Sequence[Overlaid], marked: int) -> Figure:
    """Draw moving averages over each other: the first is the baseline, one is marked.

    The scale holds what lies below the loss of guessing and a little more; a training that
    diverges leaves it at the top.

    Args:
        curves: The baseline, then the runs.
        marked: Index of the curve that is looked at.
    """
    uniform = math.log(curves[marked].vocab_size)
    top = max(uniform, *(math.log(curve.vocab_size) for curve in curves)) + _ROOM
    lowest = min(float(curve.average.min()) for curve in curves)
    longest = max(len(curve.average) for curve in curves)
    order = [i for i in range(len(curves)) if i != marked] + [marked]  # the marked one on top
    layout = {
        "height": 380,
        "margin": margins(t=34, left=64),
        "xaxis": measure_axis("training step", [0.0, longest * 1.01]),
        "yaxis": measure_axis("loss (nats a token), moving average", [lowest - 0.12, top]),
        "shapes": [_level(uniform, longest)],
        "annotations": [_guessing(curves[marked].vocab_size, longest, uniform)],
        "legend": {
            "orientation": "h",
            "x": 1,
            "xanchor": "right",
            "y": 1.01,
            "yanchor": "bottom",
            "font": {"size": 15, "color": TEXT},
        },
        "hovermode": "closest",
    }
    said = "; ".join(f"{curve.name} ends at {curve.average[-1]:.3g}" for curve in curves)
    return Figure(
        {"data": [_line(curves[i], i, marked) for i in order], "layout": layout},
        f"Loss over training steps, mean of the last {AVERAGE_OVER}: {said}.",
    )


# -- parts


def _line(curve: Overlaid, index: int, marked: int) -> dict[str, Any]:
    steps = len(curve.average)
    places = np.unique(np.linspace(0, steps - 1, min(_POINTS, steps)).round().astype(int))
    width, opacity = (3.5, 1.0) if index == marked else (2.5, 0.9) if index == 0 else (1.8, 0.45)
    line = {"color": _colour(index, marked), "width": width, "dash": "solid" if index else "dash"}
    name = escape(shorten(curve.name))
    return {
        "type": "scatter",
        "mode": "lines" if steps > 1 else "markers",
        "name": name,
        "x": packed(places + 1.0),
        "y": packed(curve.average[places]),
        "line": line,
        "opacity": opacity,
        "showlegend": index in (0, marked),
        "hovertemplate": f"{name}<br>step %{{x:,}}: %{{y:.3f}}<extra></extra>",
    }


def _colour(index: int, marked: int) -> str:
    if index == 0:
        return MUTED
    return MARK if index == marked else colour_of("microgpt")


def _guessing(vocab_size: int, x: int, y: float) -> dict[str, Any]:
    return {
        "text": f"guessing: ln {vocab_size}",
        "x": x,
        "y": y,
        "xanchor": "right",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 15, "color": TEXT},
    }


def _level(value: float, end: int) -> dict[str, Any]:
    line = {"color": MUTED, "width": 1.5, "dash": "dot"}
    return {"type": "line", "x0": 0, "x1": end, "y0": value, "y1": value, "line": line}
