"""What the prediction depended on: KL by position, probabilities, attention against effect."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from app.figures.base import (
    CELLS_UP_TO,
    MARK,
    MUTED,
    PAPER,
    TEXT,
    Figure,
    caption,
    colour_of,
    escape,
    frame_of,
    label_width,
    margins,
    measure_axis,
    nats,
    percent,
    row_pitch,
    shorten,
    slot_of,
    tick_size,
    token_axis,
)
from wordlm_core.lens.ablation import AblationResult, Effect
from wordlm_core.lens.survey import Agreement


@dataclass(frozen=True)
class Panel:
    """One model's ablation, for `kl_bars`.

    Attributes:
        name: Of the model.
        kind: Of the model.
        result: Its positions are those of the first panel.
        unseen: How many of the first positions its window does not hold.
    """

    name: str
    kind: str
    result: AblationResult
    unseen: int = 0


def effect_at(result: AblationResult, position: int) -> Effect:
    """Return the effect of the token at a position."""
    return next(effect for effect in result.effects if effect.position == position)


def kl_bars(panels: Sequence[Panel], position: int) -> Figure:
    """Draw KL by position, one panel a model, on one scale; a click's index is the effect's.

    An infinite KL is drawn to the end of the scale and labelled. What stands before a
    model's window is hatched: it cannot be seen, so its KL is 0 exactly.
    """
    tokens = panels[0].result.tokens
    finite = [e.kl for panel in panels for e in panel.result.effects if math.isfinite(e.kl)]
    end = max([*finite, 1e-3]) * 1.22
    first, n = panels[0].result.effects[0].position, len(tokens)
    pitch = row_pitch(n - first)
    layout: dict[str, Any] = {
        "height": round(pitch * (n - first) + 96),
        "margin": margins(t=44, left=label_width(tokens, tick_size(pitch)) + 4),
        "barmode": "overlay",
        "bargap": 0.28,
        "shapes": [],
        "annotations": [],
    }
    axis = token_axis(tokens, "", size=tick_size(pitch), reverse=True)
    layout["yaxis"] = axis | {"range": [n - 0.5, first - 0.5], "ticklabelstandoff": 6}
    data: list[dict[str, Any]] = []
    for index, panel in enumerate(panels):
        suffix = "" if index == 0 else str(index + 1)
        slot = slot_of(index, len(panels), gap=0.06)
        layout[f"xaxis{suffix}"] = measure_axis("KL in nats", [0.0, end]) | {"domain": slot}
        traces = [_row_buttons(panel, end), _effect_bars(panel, end)]
        if panel.unseen > first:
            traces.append(_curtain(panel.unseen - first, first, end))
            middle = (first + panel.unseen - 1) / 2
            layout["annotations"].append(_cannot_see(slot[1], middle))
        data += [trace | {"xaxis": f"x{suffix}"} for trace in traces]
        layout["annotations"].append(
            caption(_panel_title(panel), slot[0], 1.0, bold=False)
            | {"xanchor": "left", "align": "left"}
            | {"font": {"size": 15, "color": colour_of(panel.kind)}}
        )
    layout["shapes"].append(
        frame_of(0.0, 1.0, position - 0.5, position + 0.5) | {"xref": "paper", "x0": 0, "x1": 1}
    )
    return Figure({"data": data, "layout": layout}, "; ".join(map(_panel_in_words, panels)) + ".")


def changes(effect: Effect, kind: str) -> Figure:
    """Draw the probabilities that changed most, before and after."""
    rows = effect.changes
    where = np.arange(len(rows))
    before = np.array([change.before for change in rows])
    after = np.array([change.after for change in rows])
    end = max(float(before.max()), float(after.max()), 1e-6) * 1.25
    bar = {"type": "bar", "orientation": "h", "cliponaxis": False, "textposition": "outside"}
    hover = "<b>%{customdata}</b> %{x:.2%}"
    names = [escape(change.token) for change in rows]
    data = [
        bar
        | {
            "name": name,
            "x": values,
            "y": where + shift,
            "width": 0.38,
            "marker": {"color": colour},
            "text": [percent(value) for value in values],
            "textfont": {"size": 13, "color": TEXT},
            "customdata": names,
            "hovertemplate": f"{hover} {name}<extra></extra>",
        }
        for name, values, shift, colour in (
            ("before", before, -0.2, MUTED),
            ("after", after, 0.2, colour_of(kind)),
        )
    ]
    axis = token_axis([change.token for change in rows], "", size=15, reverse=True)
    layout = {
        "height": 36 * len(rows) + 60,
        "margin": margins(t=8, left=label_width([change.token for change in rows], 15) + 4),
        "bargap": 0.2,
        "xaxis": measure_axis("probability of the next token", [0.0, end]) | {"tickformat": ".0%"},
        "yaxis": axis | {"ticklabelstandoff": 6},
        "showlegend": True,
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 0.02, "yanchor": "bottom"},
    }
    moved = ", ".join(f"{c.token} {percent(c.before)} to {percent(c.after)}" for c in rows[:3])
    return Figure(
        {"data": data, "layout": layout},
        f"Next-token probabilities before and after position {effect.position} went: {moved}.",
    )


def effect_scatter(result: AblationResult, kind: str, position: int) -> Figure:
    """Draw each position's attention against its effect, with the telling corners named.

    The dotted lines are an equal share of attention and the mean effect: right of one and
    under the other stands what was looked at but did not matter. Attention is the mean over
    layers and heads. An infinite KL stands at the top.
    """
    x, y = _looked(result), np.array([effect.kl for effect in result.effects])
    ceiling = max(float(y[np.isfinite(y)].max(initial=0)), 1e-3)
    y = np.where(np.isfinite(y), y, ceiling * 1.1)
    share, mean = 1 / len(result.tokens), float(y.mean())
    ends = [max(float(x.max()), share) * 1.18, ceiling * 1.35]
    chosen = np.array([effect.position == position for effect in result.effects])
    labels = [f"{effect.position} · {shorten(effect.token)}" for effect in result.effects]
    far = 1 if len(labels) <= CELLS_UP_TO else 3
    tell = chosen | (x > far * share) | (y > far * mean)
    data = {
        "type": "scatter",
        "mode": "markers+text",
        "x": x,
        "y": y,
        "text": [label if show else "" for label, show in zip(labels, tell, strict=True)],
        "customdata": labels,
        "textposition": "top center",
        "textfont": {"size": 13, "color": TEXT},
        "cliponaxis": False,
        "marker": {
            "size": np.where(chosen, 18, 12),
            "opacity": 1,
            "color": [MARK if pick else colour_of(kind) for pick in chosen],
            "line": {"width": 1, "color": PAPER},
        },
        "hovertemplate": "<b>%{customdata}</b><br>attention %{x:.3f}<br>KL %{y:.4f} nats"
        "<extra></extra>",
    }
    layout = {
        "height": 400,
        "margin": margins(t=14, left=64),
        "xaxis": measure_axis("attention from the last position", [0.0, ends[0]]),
        "yaxis": measure_axis("KL in nats", [-0.13 * ends[1], ends[1]]),
        "shapes": [
            _dotted({"x0": share, "x1": share, "y0": 0, "y1": 1, "yref": "paper"}),
            _dotted({"y0": mean, "y1": mean, "x0": 0, "x1": 1, "xref": "paper"}),
        ],
        "annotations": [
            _corner("mattered but was<br>not looked at", 0.01, 0.99),
            _corner("looked at but<br>did not matter", 0.99, 0.0),
        ],
    }
    return Figure(
        {"data": [data], "layout": layout},
        f"Attention against effect for {len(labels)} positions. Rank correlation: "
        + ("none" if result.rank_correlation is None else f"{result.rank_correlation:.2f}")
        + ".",
    )


def survey_histogram(of: Agreement, here: float | None, kind: str) -> Figure:
    """Draw how well attention ranks effects in many windows, with one text's own value marked."""
    counts, edges = np.histogram(of.correlations, bins=40, range=(-1, 1))
    median = float(np.median(of.correlations))
    marks = [(median, "median", MUTED, "dash")]
    if here is not None:
        marks.append((here, "this sentence", MARK, "solid"))
    top = max(int(counts.max()), 1)
    data = {
        "type": "bar",
        "x": (edges[:-1] + edges[1:]) / 2,
        "y": counts,
        "width": 0.046,
        "marker": {"color": colour_of(kind)},
        "customdata": np.stack([edges[:-1], edges[1:]], axis=1).round(2).tolist(),
        "hovertemplate": "%{customdata[0]} to %{customdata[1]}: %{y} windows<extra></extra>",
    }
    layout = {
        "height": 300,
        "margin": margins(t=48, left=56),
        "showlegend": False,
        "xaxis": measure_axis("rank correlation of attention with KL", [-1.02, 1.02]),
        "yaxis": measure_axis("windows", [0.0, top * 1.06]),
        "shapes": [
            _dotted({"x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper"})
            | {"line": {"dash": dash, "width": 3, "color": colour}}
            for x, _, colour, dash in marks
        ],
        "annotations": [
            caption(f"{name} {x:.2f}", 0.0, 1.0 + 0.085 * row, bold=False)
            | {"x": x, "xref": "x", "xanchor": "right" if x > 0.5 else "center"}
            | {"font": {"size": 14, "color": TEXT if colour == MUTED else colour}}
            for row, (x, name, colour, _) in enumerate(marks)
        ],
    }
    said = "" if here is None else f" This sentence: {here:.2f}."
    return Figure(
        {"data": [data], "layout": layout},
        f"Rank correlation of attention with KL in {of.windows} windows, median "
        f"{median:.2f}.{said}",
    )


# -- parts


def _row_buttons(panel: Panel, end: float) -> dict[str, Any]:
    effects = panel.result.effects
    return {
        "type": "bar",
        "orientation": "h",
        "x": [end] * len(effects),
        "y": [effect.position for effect in effects],
        "width": 1,
        "marker": {"opacity": 0},
        "selected": {"marker": {"opacity": 0}},
        "unselected": {"marker": {"opacity": 0}},
        "text": [
            f"{escape(panel.name)}<br>{e.position} · {escape(e.token)}: KL {nats(e.kl)} nats"
            + (", before its window" if e.position < panel.unseen else "")
            for e in effects
        ],
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }


def _curtain(count: int, first: int, end: float) -> dict[str, Any]:
    """Return hatching over the rows that a model's window does not hold."""
    return {
        "type": "bar",
        "orientation": "h",
        "x": [end] * count,
        "y": list(range(first, first + count)),
        "width": 1,
        "marker": {
            "color": "rgba(0,0,0,0)",
            "pattern": {
                "shape": "/",
                "fgcolor": MUTED,
                "fgopacity": 0.45,
                "size": 9,
                "solidity": 0.2,
            },
        },
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _cannot_see(x: float, y: float) -> dict[str, Any]:
    return {
        "text": "<b>cannot see</b>",
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "y",
        "xanchor": "right",
        "showarrow": False,
        "bgcolor": PAPER,
        "borderpad": 2,
        "font": {"size": 14, "color": TEXT},
    }


def _effect_bars(panel: Panel, end: float) -> dict[str, Any]:
    kl = np.array([effect.kl for effect in panel.result.effects])
    return {
        "type": "bar",
        "orientation": "h",
        "x": np.where(np.isfinite(kl), kl, end),
        "y": [effect.position for effect in panel.result.effects],
        "marker": {"color": colour_of(panel.kind)},
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
        "text": [nats(value) for value in kl],
        "textposition": "outside",
        "textfont": {"size": 13, "color": TEXT},
        "cliponaxis": False,
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _panel_title(panel: Panel) -> str:
    first = panel.result.prediction[0]
    return f"<b>{escape(panel.name)}</b><br>“{escape(shorten(first.token))}” {percent(first.prob)}"


def _panel_in_words(panel: Panel) -> str:
    most = max(panel.result.effects, key=lambda effect: effect.kl)
    return (
        f"{panel.name}: of {len(panel.result.effects)} positions, {most.position} "
        f"({most.token}) matters most, KL {nats(most.kl)} nats"
    )


def _looked(result: AblationResult) -> Float[np.ndarray, " effects"]:
    return np.array(
        [0.0 if e.attention is None else float(e.attention.mean()) for e in result.effects]
    )


def _dotted(ends: dict[str, Any]) -> dict[str, Any]:
    return {"type": "line", "line": {"dash": "dot", "width": 1.5, "color": MUTED}, **ends}


def _corner(text: str, x: float, y: float) -> dict[str, Any]:
    return {
        "text": f"<i>{text}</i>",
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left" if x < 0.5 else "right",
        "yanchor": "top" if y > 0.5 else "bottom",
        "align": "left" if x < 0.5 else "right",
        "showarrow": False,
        "font": {"size": 14, "color": MARK},
    }
