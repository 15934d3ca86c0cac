"""Loss curves of experiments over each other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from app.figures.base import (
    MARK,
    MODEL_COLOUR,
    MUTED,
    TEXT,
    Figure,
    escape,
    legend_below,
    margins,
    measure_axis,
    packed,
    shorten,
)
from wordlm_core.lens.training_history import AVERAGE_OVER

# A run's look: colour and dash, which also tell it apart where colours cannot.
RUN_LOOKS = (
    ("number", MARK, "solid"),
    ("attention", MODEL_COLOUR["attention"], "longdash"),
    ("mlp", MODEL_COLOUR["mlp"], "dashdot"),
    ("multihead", MODEL_COLOUR["multihead"], "dot"),
    ("ink", TEXT, "solid"),
    ("microgpt", MODEL_COLOUR["microgpt"], "longdashdot"),
)
_POINTS = 400
_ROOM = 0.35  # of nats over the uniform line, before a curve leaves the zoom
_SMALLEST = 1e-3  # of nats, on a scale that has no zero
_BASE, _ROW = 380, 22


@dataclass(frozen=True)
class Overlaid:
    """One curve.

    Attributes:
        name: Of the run.
        average: The moving average of its losses.
        vocab_size: Tokens, `<BOS>` included.
        look: Index into `RUN_LOOKS`; None for the baseline.
    """

    name: str
    average: Float[np.ndarray, " steps"]
    vocab_size: int
    look: int | None = None


def overlaid(curves: Sequence[Overlaid], marked: int, *, fit: bool = False) -> Figure:
    """Draw moving averages over each other: the first is the baseline, one is marked.

    Args:
        curves: The baseline, then the runs.
        marked: Index of the curve that is looked at.
        fit: Whether every curve is seen in full, on a log scale where one is far above guessing;
            otherwise the scale holds what lies below the loss of guessing and a little more.
    """
    uniform = math.log(curves[marked].vocab_size)
    longest = max(len(curve.average) for curve in curves)
    scale, logarithmic = _scale(curves, fit=fit)
    order = [i for i in range(len(curves)) if i != marked] + [marked]  # the marked one on top
    legend = _ROW * len(curves)
    layout = {
        "height": _BASE + legend,
        "margin": margins(t=12, left=64, bottom=58 + legend),
        "xaxis": measure_axis("training step", [0.0, longest * 1.01]),
        "yaxis": scale,
        "shapes": [_level(uniform, longest)],
        "annotations": [
            _guessing(
                curves[marked].vocab_size,
                longest,
                math.log10(uniform) if logarithmic else uniform,  # as Plotly has it
            )
        ],
        "legend": legend_below(15),
        "hovermode": "closest",
    }
    said = "; ".join(f"{curve.name} ends at {curve.average[-1]:.3g}" for curve in curves)
    return Figure(
        {"data": [_line(curves[i], i, chosen=i == marked) for i in order], "layout": layout},
        f"Loss over training steps, mean of the last {AVERAGE_OVER}: {said}.",
    )


def off_the_top(curves: Sequence[Overlaid]) -> list[str]:
    """Return the names of the curves that leave the scale that does not fit them all."""
    return [curve.name for curve in curves if curve.average.max() > _top(curves)]


# -- parts


def _scale(curves: Sequence[Overlaid], *, fit: bool) -> tuple[dict[str, Any], bool]:
    """Return the axis of the loss, and whether it is logarithmic."""
    title = "loss (nats a token), moving average"
    top = _top(curves)
    lowest = min(float(curve.average.min()) for curve in curves)
    highest = max(float(curve.average.max()) for curve in curves)
    if not fit:
        return measure_axis(title, [lowest - 0.12, top]), False
    if highest <= 2 * top:
        return measure_axis(title, [lowest - 0.12, max(highest + 0.12, top)]), False
    ends = [math.log10(max(lowest, _SMALLEST)) - 0.05, math.log10(highest) + 0.05]
    more = {"type": "log", "exponentformat": "power"}
    return measure_axis(f"{title}, log scale", ends) | more, True


def _top(curves: Sequence[Overlaid]) -> float:
    return max(math.log(curve.vocab_size) for curve in curves) + _ROOM


def _line(curve: Overlaid, index: int, *, chosen: bool) -> dict[str, Any]:
    steps = len(curve.average)
    places = np.unique(np.linspace(0, steps - 1, min(_POINTS, steps)).round().astype(int))
    _, colour, dash = ("", MUTED, "dash") if curve.look is None else RUN_LOOKS[curve.look]
    name = escape(shorten(curve.name))
    return {
        "type": "scatter",
        "mode": "lines" if steps > 1 else "markers",
        "name": name,
        "x": packed(places + 1.0),
        "y": packed(curve.average[places]),
        "line": {"color": colour, "width": 4 if chosen else 2.2, "dash": dash},
        "marker": {"color": colour},
        "legendrank": index,
        "showlegend": True,
        "hovertemplate": f"{name}<br>step %{{x:,}}: %{{y:.3f}}<extra></extra>",
    }


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
