"""The loss of runs while they train: each step, moving average, validation, lines to compare."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from app.figures.base import (
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
from app.figures.experiments import RUN_LOOKS
from wordlm_core.lens.training_history import AVERAGE_OVER

_BASE, _ROW = 400, 21
_OWN_ROWS = 3  # of the legend: what the shown run's lines are
# In Experiments the fifth look is solid like the first; here it lies over a solid line.
_DASHES = {4: "12px,3px,3px,3px,3px,3px"}
_TALLEST = 1.6  # times the uniform line: what lies above it is off the top


@dataclass(frozen=True)
class RunCurve:
    """One run's losses in nats a token, few enough points to be drawn; NaN breaks a line.

    Attributes:
        name: Of the run.
        steps: Where the next two are.
        losses: Of single steps.
        average: The moving average of the losses.
        validation_steps: Where validation was measured.
        validation: Its losses.
        look: Index into `RUN_LOOKS`; None for a stored curve, the ghost.
    """

    name: str
    steps: Float[np.ndarray, " n"]
    losses: Float[np.ndarray, " n"]
    average: Float[np.ndarray, " n"]
    validation_steps: Float[np.ndarray, " m"]
    validation: Float[np.ndarray, " m"]
    look: int | None = 0

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to draw."""
        return not (np.isfinite(self.average).any() or np.isfinite(self.validation).any())


@dataclass(frozen=True)
class Level:
    """A loss to compare with, over all steps: its name, its height in nats, its dash."""

    name: str
    value: float
    dash: str


def run_curves(curves: Sequence[RunCurve], levels: Sequence[Level]) -> Figure:
    """Draw the first run in full, the others as their average and validation.

    Args:
        curves: The run that is shown, then those laid over it.
        levels: Lines that belong to the run that is shown.
    """
    shown, *others = curves
    laid = [line for curve in others for line in _in_short(curve)]
    named = [line | {"legendrank": rank} for rank, line in enumerate(_in_full(shown) + laid)]
    data = named[_OWN_ROWS:] + named[:_OWN_ROWS]  # the one that is shown lies on top
    end = _end(curves)
    rows = _OWN_ROWS + len(others)
    layout = {
        "height": _BASE + _ROW * len(others),
        "margin": margins(t=12, left=64, bottom=58 + _ROW * rows),
        "xaxis": measure_axis("step", [0.0, 1.01 * end]),
        "yaxis": measure_axis("loss (nats a token)", _ends(curves, levels)),
        "shapes": [_across(level, end) for level in levels],
        "annotations": [_named(level, end, left=level != levels[0]) for level in levels],
        "legend": legend_below(14),
        "hovermode": "closest",
    }
    said = [_said(curve) for curve in curves]
    said += [f"{level.name} {level.value:.3f}" for level in levels]
    return Figure({"data": data, "layout": layout}, f"Loss over training steps. {'; '.join(said)}.")


def above_the_scale(curves: Sequence[RunCurve], levels: Sequence[Level]) -> list[str]:
    """Return the names of the runs of which a part is above what the picture shows."""
    ends = _ends(curves, levels)
    return [each.name for each in curves if ends and _highest(each) > ends[1]]


# -- parts


def _in_full(curve: RunCurve) -> list[dict[str, Any]]:
    _, colour, dash = _look(curve)
    steps = packed(curve.steps)
    return [
        _trace("train loss, each step", colour)
        | {"x": steps, "y": packed(curve.losses), "opacity": 0.35}
        | {"line": {"color": colour, "width": 1.2}, "hoverinfo": "skip", "hovertemplate": None},
        _trace(f"train loss, mean of the last {AVERAGE_OVER}", colour)
        | {"x": steps, "y": packed(curve.average)}
        | {"line": {"color": colour, "width": 4, "dash": dash}},
        _validation(curve, colour) | {"name": "validation loss", "showlegend": True},
    ]


def _in_short(curve: RunCurve) -> list[dict[str, Any]]:
    """Return a run's average and validation; the legend names it once."""
    name, (_, colour, dash) = escape(shorten(curve.name)), _look(curve)
    found: list[dict[str, Any]] = []
    if np.isfinite(curve.average).any():
        found.append(
            _trace(name, colour)
            | {"x": packed(curve.steps), "y": packed(curve.average)}
            | {"line": {"color": colour, "width": 2.4, "dash": dash}}
        )
    if np.isfinite(curve.validation).any() or not found:
        points = _validation(curve, colour) | {"name": name, "showlegend": not found}
        found.append(points | {"mode": "markers"} if found else points)
    return found


def _validation(curve: RunCurve, colour: str) -> dict[str, Any]:
    dash = "dot" if curve.look == 0 else _look(curve)[2]
    return _trace("", colour) | {
        "mode": "lines+markers",
        "x": packed(curve.validation_steps),
        "y": packed(curve.validation),
        "line": {"color": colour, "width": 1.4, "dash": dash},
        "marker": {"color": colour, "size": 8 if curve.look == 0 else 6, "symbol": "diamond"},
        "hovertemplate": "%{fullData.name}<br>validation at step %{x:,}: %{y:.3f}<extra></extra>",
    }


def _trace(name: str, colour: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "marker": {"color": colour},
        "showlegend": True,
        "hovertemplate": "%{fullData.name}<br>step %{x:,}: %{y:.3f}<extra></extra>",
    }


def _look(curve: RunCurve) -> tuple[str, str, str]:
    if curve.look is None:
        return "ghost", MUTED, "dash"
    name, colour, dash = RUN_LOOKS[curve.look]
    return name, colour, _DASHES.get(curve.look, dash)


def _end(curves: Sequence[RunCurve]) -> float:
    """Return the last step that any curve has come to."""
    steps = np.concatenate(
        [[1.0], *(c.steps for c in curves), *(c.validation_steps for c in curves)]
    )
    return float(np.nanmax(steps))


def _ends(curves: Sequence[RunCurve], levels: Sequence[Level]) -> list[float] | None:
    """Return the ends of the loss axis: all of the averages, but nothing far above guessing."""
    seen = [c.average for c in curves] + [c.validation for c in curves]
    lines = [level.value for level in levels]
    values = np.concatenate([lines, *seen])
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    low, high = float(values.min()), float(values.max())
    if lines:
        high = min(high, _TALLEST * max(lines))
    room = 0.06 * (high - low) + 1e-2
    return [low - 2 * room, high + 2 * room]  # the lines' names stand outside of the curves


def _highest(curve: RunCurve) -> float:
    values = np.concatenate([curve.average, curve.validation])
    values = values[np.isfinite(values)]
    return float(values.max()) if len(values) else 0.0


def _across(level: Level, end: float) -> dict[str, Any]:
    line = {"color": TEXT, "width": 1.6, "dash": level.dash}
    return {"type": "line", "x0": 0, "x1": end, "y0": level.value, "y1": level.value, "line": line}


def _named(level: Level, end: float, *, left: bool) -> dict[str, Any]:
    """Return a line's name: of the highest above it, of the others below."""
    return {
        "text": f"{level.name} {level.value:.2f}",
        "x": 0.01 * end if left else end,
        "y": level.value,
        "xanchor": "left" if left else "right",
        "yanchor": "top" if left else "bottom",
        "yshift": -2 if left else 2,
        "showarrow": False,
        "font": {"size": 14, "color": TEXT},
    }


def _said(curve: RunCurve) -> str:
    found = [
        f"{what} {values[np.isfinite(values)][-1]:.3f}"
        for what, values in (("training", curve.average), ("validation", curve.validation))
        if np.isfinite(values).any()
    ]
    return f"{curve.name}: {', '.join(found) or 'no loss yet'}"
