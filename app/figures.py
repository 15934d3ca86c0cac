"""Every figure of the app, as plain Plotly dicts made from lens results. No Streamlit.

Positions are coordinates and token text is only ever tick or hover text, escaped, so that a
word that stands twice, a number or `<UNK>` is drawn as what it is.

Colours are Streamlit's stand-ins: the browser swaps them for the ones that the light or the
dark theme in `.streamlit/config.toml` declares, so a figure is readable in both and the server
need not know which one is on.
"""

import base64
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from plotly.basedatatypes import BaseFigure

from wordlm_core.lens.ablation import AblationResult, Effect
from wordlm_core.lens.attention import AttentionResult

MARK, MUTED = "#000004", "#000005"
_MODEL_COLOUR = {"mlp": "#000001", "attention": "#000002", "multihead": "#000003"}
_MODEL_NAME = {
    "mlp": ("MLP", "fixed window"),
    "attention": ("Attention", "one head"),
    "multihead": ("Attention", "several heads"),
}
_DASH = {"mlp": "dot", "attention": "solid", "multihead": "dash"}
_TEXT, _GRID, _PAPER = "#000037", "#000039", "#000038"
_SEQUENTIAL = [f"#0000{n}" for n in range(11, 21)]
# More of the scale for small weights: most are. The colour bar shows it.
_STOPS = (0, 0.03, 0.08, 0.15, 0.23, 0.33, 0.45, 0.6, 0.78, 1)
_ATTENTION_SCALE = [[stop, colour] for stop, colour in zip(_STOPS, _SEQUENTIAL, strict=True)]

_LABEL_LENGTH = 24
_NUMBERS_UP_TO = 13
_CELLS_UP_TO = 24
_BUTTONS = ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d", "resetScale2d"]


@dataclass(frozen=True)
class Figure:
    """A drawing and what it shows, in words.

    Attributes:
        spec: Plotly's `data` and `layout`.
        alt: For people who cannot see it.
    """

    spec: dict[str, Any]
    alt: str


@dataclass(frozen=True)
class Panel:
    """One model's ablation, for `kl_bars`."""

    name: str
    kind: str
    result: AblationResult


class _Plain(BaseFigure):
    """A figure that Streamlit takes as it is.

    It would check every property of a dict again, which costs 2 to 6 ms a figure, and send a
    template that is not used.
    """

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec

    def to_dict(self) -> dict[str, Any]:
        """Return the plain dict, which is all that Streamlit asks for."""
        return self._spec


def drawable(figure: Figure) -> BaseFigure:
    """Return what `st.plotly_chart` draws."""
    return _Plain(figure.spec)


def toolbar(name: str, image: str) -> dict[str, Any]:
    """Return Plotly's config: one button, which saves the figure as `png` or `svg`."""
    return {
        "displaylogo": False,
        "modeBarButtonsToRemove": _BUTTONS,
        "toImageButtonOptions": {"format": image, "filename": name, "scale": 3},
    }


def model_name(kind: str) -> str:
    """Return a kind of model in words."""
    return ", ".join(_MODEL_NAME.get(kind, (kind,)))


def escape(text: str) -> str:
    """Return `text` so that Plotly draws it letter for letter."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def nats(value: float) -> str:
    """Return a KL for people."""
    if not math.isfinite(value):
        return "infinite"
    if value >= 0.995:
        return f"{value:.2f}"
    return "0" if value == 0 else f"{value:.3f}" if value >= 0.0005 else "<0.001"


def percent(value: float) -> str:
    """Return a probability for people."""
    return f"{value:.0%}" if value >= 0.0995 else f"{value:.1%}" if value >= 0.0005 else "0%"


def effect_at(result: AblationResult, position: int) -> Effect:
    """Return the effect of the token at a position."""
    return next(effect for effect in result.effects if effect.position == position)


# -- attention


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
        "z": _packed(shown),
        "zmin": 0,
        "zmax": 1,
        "xgap": 1 if n <= _CELLS_UP_TO else 0,
        "ygap": 1 if n <= _CELLS_UP_TO else 0,
        "colorscale": _ATTENTION_SCALE,
        "showscale": colour_bar,
        "colorbar": _colour_bar("share of attention"),
        "hovertemplate": "query %{customdata[0]} · %{y} looks at key %{customdata[1]} · %{x}"
        "<br>%{z:.4f}<extra></extra>",
        "hoverongaps": False,
    }
    if n <= _NUMBERS_UP_TO:
        heat |= {"text": _numbers(shown), "texttemplate": "%{text}", "textfont": {"size": 13}}
    if n > _CELLS_UP_TO:
        heat["customdata"] = np.indices((n, n)).transpose(1, 2, 0).tolist()
    pitch = _pitch(n)
    size = _tick_size(pitch)
    wide = _width(tokens, size)
    below = round(wide if n > _CELLS_UP_TO else 0.7 * (wide + size)) + 34
    layout = {
        "height": round(pitch * n) + below + 8,
        "margin": _margin(t=8, left=wide + 28, bottom=below, right=76 if colour_bar else 12),
        "xaxis": _slanted(_tokens(tokens, "key (source)", size=size)),
        "yaxis": _tokens(tokens, "query (receiver)", size=size, reverse=True),
        "shapes": [_frame(-0.5, n - 0.5, query - 0.5, query + 0.5)],
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
    layout["margin"] = _margin(t=22, left=8, bottom=6, right=8)
    titles: list[dict[str, Any]] = []
    mask = np.tri(n, dtype=bool)
    for index in range(n_head):
        row, column = divmod(index, columns)
        suffix = "" if index == 0 else str(index + 1)
        x, y = _slot(column, columns), _slot(rows - 1 - row, rows, gap=0.22)
        layout[f"xaxis{suffix}"] = _bare(n, x) | {"anchor": f"y{suffix}"}
        layout[f"yaxis{suffix}"] = _bare(n, y, reverse=True) | {"anchor": f"x{suffix}"}
        axes = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
        data.append(
            {
                "type": "heatmap",
                "z": _packed(np.where(mask, weights[index], np.nan)),
                "zmin": 0,
                "zmax": 1,
                "colorscale": _ATTENTION_SCALE,
                "showscale": False,
                "hoverinfo": "skip",
                **axes,
            }
        )
        best = int(np.argmax(weights[index, query]))
        note = f"head {index}: position {query} looks most at {best} · {result.tokens[best]}"
        data.append(_button([(n - 1) / 2], [(n - 1) / 2], [escape(note)], [index]) | axes)
        titles.append(_caption(f"head {index}", sum(x) / 2, y[1], bold=index == head))
        if index == head:
            frame = _frame(-0.5, n - 0.5, -0.5, n - 0.5)
            layout["shapes"].append(frame | {"xref": f"x{suffix}", "yref": f"y{suffix}"})
    layout["annotations"] = titles
    return Figure(
        {"data": data, "layout": layout},
        f"All {n_head} heads of layer {layer} as small heatmaps on one scale from 0 to 1; "
        f"head {head} is chosen.",
    )


# -- ablation


def kl_bars(panels: Sequence[Panel], position: int) -> Figure:
    """Draw KL by position, one panel a model, on one scale; a click's index is the effect's.

    An infinite KL is drawn to the end of the scale and labelled.
    """
    tokens = panels[0].result.tokens
    finite = [e.kl for panel in panels for e in panel.result.effects if math.isfinite(e.kl)]
    end = max([*finite, 1e-3]) * 1.22
    first, n = panels[0].result.effects[0].position, len(tokens)
    pitch = _pitch(n - first)
    layout: dict[str, Any] = {
        "height": round(pitch * (n - first) + 96),
        "margin": _margin(t=44, left=_width(tokens, _tick_size(pitch)) + 4),
        "barmode": "overlay",
        "bargap": 0.28,
        "shapes": [],
        "annotations": [],
    }
    axis = _tokens(tokens, "", size=_tick_size(pitch), reverse=True)
    layout["yaxis"] = axis | {"range": [n - 0.5, first - 0.5], "ticklabelstandoff": 6}
    data: list[dict[str, Any]] = []
    for index, panel in enumerate(panels):
        suffix = "" if index == 0 else str(index + 1)
        slot = _slot(index, len(panels), gap=0.06)
        layout[f"xaxis{suffix}"] = _measure("KL in nats", [0.0, end]) | {"domain": slot}
        bars = _effect_bars(panel, end) | {"xaxis": f"x{suffix}"}
        data += [_row_buttons(panel, end) | {"xaxis": f"x{suffix}"}, bars]
        layout["annotations"].append(
            _caption(_panel_title(panel), slot[0], 1.0, bold=False)
            | {"xanchor": "left", "align": "left"}
            | {"font": {"size": 15, "color": _colour(panel.kind)}}
        )
    layout["shapes"].append(
        _frame(0.0, 1.0, position - 0.5, position + 0.5) | {"xref": "paper", "x0": 0, "x1": 1}
    )
    return Figure({"data": data, "layout": layout}, "; ".join(map(_panel_in_words, panels)) + ".")


def next_words(panels: Sequence[Panel], count: int = 5) -> Figure:
    """Draw each model's likeliest next words, one panel a model, on one scale."""
    panels = sorted(panels, key=lambda panel: list(_MODEL_COLOUR).index(panel.kind))
    shown = [panel.result.prediction[:count] for panel in panels]
    end = max(entry.prob for entries in shown for entry in entries) * 1.2
    data: list[dict[str, Any]] = []
    left = _width([entry.token for entry in shown[0]], 17) + 4
    margin = _margin(t=48, left=left, bottom=32)
    layout: dict[str, Any] = {"height": 32 * count + 80, "margin": margin}
    titles: list[dict[str, Any]] = []
    for index, (panel, entries) in enumerate(zip(panels, shown, strict=True)):
        suffix = "" if index == 0 else str(index + 1)
        slot = _slot(index, len(panels), gap=0.13)
        probs = [entry.prob for entry in entries]
        layout[f"xaxis{suffix}"] = _measure("", [0.0, end]) | {
            "domain": slot,
            "anchor": f"y{suffix}",
            "tickformat": ".0%",
        }
        names = _tokens([entry.token for entry in entries], "", size=17, reverse=True)
        layout[f"yaxis{suffix}"] = names | {"anchor": f"x{suffix}", "ticklabelstandoff": 6}
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": probs,
                "y": list(range(len(probs))),
                "xaxis": f"x{suffix}",
                "yaxis": f"y{suffix}",
                "marker": {"color": _colour(panel.kind)},
                "text": [percent(prob) for prob in probs],
                "textposition": "outside",
                "textfont": {"size": 15, "color": _TEXT},
                "cliponaxis": False,
                "hoverinfo": "skip",
                "showlegend": False,
            }
        )
        title = _caption(_two_lines(panel.kind), slot[0], 1.0, bold=False)
        font = {"size": 16, "color": _colour(panel.kind)}
        titles.append(title | {"xanchor": "left", "align": "left", "font": font, "yshift": 2})
    layout["annotations"] = titles
    said = (
        f"{model_name(panel.kind)}: {entries[0].token} {percent(entries[0].prob)}"
        for panel, entries in zip(panels, shown, strict=True)
    )
    return Figure({"data": data, "layout": layout}, f"Likeliest next words. {'; '.join(said)}.")


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
            "textfont": {"size": 13, "color": _TEXT},
            "customdata": names,
            "hovertemplate": f"{hover} {name}<extra></extra>",
        }
        for name, values, shift, colour in (
            ("before", before, -0.2, MUTED),
            ("after", after, 0.2, _colour(kind)),
        )
    ]
    axis = _tokens([change.token for change in rows], "", size=15, reverse=True)
    layout = {
        "height": 36 * len(rows) + 60,
        "margin": _margin(t=8, left=_width([change.token for change in rows], 15) + 4),
        "bargap": 0.2,
        "xaxis": _measure("probability of the next word", [0.0, end]) | {"tickformat": ".0%"},
        "yaxis": axis | {"ticklabelstandoff": 6},
        "showlegend": True,
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 0.02, "yanchor": "bottom"},
    }
    moved = ", ".join(f"{c.token} {percent(c.before)} to {percent(c.after)}" for c in rows[:3])
    return Figure(
        {"data": data, "layout": layout},
        f"Next-word probabilities before and after position {effect.position} went: {moved}.",
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
    labels = [f"{effect.position} · {_short(effect.token)}" for effect in result.effects]
    far = 1 if len(labels) <= _CELLS_UP_TO else 3
    tell = chosen | (x > far * share) | (y > far * mean)
    data = {
        "type": "scatter",
        "mode": "markers+text",
        "x": x,
        "y": y,
        "text": [label if show else "" for label, show in zip(labels, tell, strict=True)],
        "customdata": labels,
        "textposition": "top center",
        "textfont": {"size": 13, "color": _TEXT},
        "cliponaxis": False,
        "marker": {
            "size": np.where(chosen, 18, 12),
            "opacity": 1,
            "color": [MARK if pick else _colour(kind) for pick in chosen],
            "line": {"width": 1, "color": _PAPER},
        },
        "hovertemplate": "<b>%{customdata}</b><br>attention %{x:.3f}<br>KL %{y:.4f} nats"
        "<extra></extra>",
    }
    layout = {
        "height": 400,
        "margin": _margin(t=14, left=64),
        "xaxis": _measure("attention from the last position", [0.0, ends[0]]),
        "yaxis": _measure("KL in nats", [-0.13 * ends[1], ends[1]]),
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


# -- overview


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
        line = {"color": _colour(kind), "dash": _DASH.get(kind, "solid")}
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
        "margin": _margin(t=8, left=64),
        "xaxis": _measure("training step", None),
        "yaxis": _measure("validation loss (nats a token)", ends),
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
            "marker": {"size": 15, "opacity": 0.75, "color": _colour(kind)},
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
            "line": {"width": 4, "color": _colour(kind)},
        }
        for index, (kind, mean) in enumerate(zip(kinds, means, strict=True))
    ]
    names = [model_name(kind) for kind in kinds]
    layout = {
        "height": 62 * len(kinds) + 60,
        "margin": _margin(t=8, left=_width(names, 15) + 4),
        "xaxis": _measure(title, None),
        "yaxis": _tokens(names, "", size=15, reverse=True) | {"ticklabelstandoff": 6},
        "shapes": shapes,
    }
    said = ", ".join(f"{kind} {mean:.2f}" for kind, mean in zip(kinds, means, strict=True))
    return Figure({"data": data, "layout": layout}, f"{title}, a dot a seed. Means: {said}.")


# -- parts


def _colour(kind: str) -> str:
    return _MODEL_COLOUR.get(kind, MUTED)


def _tokens(
    labels: Sequence[str], title: str, *, size: int, reverse: bool = False
) -> dict[str, Any]:
    """Return an axis with one tick a position; equal or number-like labels stay apart."""
    n = len(labels)
    ends = [n - 0.5, -0.5] if reverse else [-0.5, n - 0.5]
    return {
        "type": "linear",
        "range": ends,
        "tickmode": "array",
        "tickvals": list(range(n)),
        "ticktext": [escape(_short(label)) for label in labels],
        "ticks": "",
        "tickfont": {"size": size, "color": _TEXT},
        "title": {"text": title, "font": {"size": 15, "color": _TEXT}, "standoff": 8},
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "automargin": False,
    }


def _slanted(axis: dict[str, Any]) -> dict[str, Any]:
    """Return a horizontal token axis whose labels do not run into each other."""
    crowded = len(axis["tickvals"]) > _CELLS_UP_TO
    font = axis["tickfont"] | ({"size": 9} if crowded else {})
    return axis | {"tickangle": -90 if crowded else -45, "tickfont": font}


def _measure(title: str, ends: list[float] | None) -> dict[str, Any]:
    axis: dict[str, Any] = {
        "title": {"text": title, "font": {"size": 15, "color": _TEXT}, "standoff": 8},
        "tickfont": {"size": 14, "color": _TEXT},
        "nticks": 5,
        "gridcolor": _GRID,
        "showgrid": True,
        "zeroline": False,
        "fixedrange": True,
        "automargin": False,
    }
    return axis if ends is None else axis | {"range": ends}


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


def _slot(index: int, count: int, *, gap: float = 0.08) -> list[float]:
    """Return the share of the paper of one of `count` panels side by side."""
    width = (1 - gap * (count - 1)) / count
    start = index * (width + gap)
    return [max(0.0, start), min(1.0, start + width)]


def _margin(*, t: int, left: int, bottom: int = 52, right: int = 12) -> dict[str, Any]:
    """Return fixed margins: measuring them would draw every figure twice in the browser."""
    return {"l": left, "r": right, "t": t, "b": bottom, "pad": 4, "autoexpand": False}


def _width(labels: Sequence[str], size: int) -> int:
    """Return about how many pixels the longest label needs."""
    return 14 + math.ceil(0.56 * size * max(len(_short(label)) for label in labels))


def _frame(x0: float, x1: float, y0: float, y1: float) -> dict[str, Any]:
    line = {"color": MARK, "width": 3}
    return {"type": "rect", "x0": x0, "x1": x1, "y0": y0, "y1": y1, "line": line}


def _dotted(ends: dict[str, Any]) -> dict[str, Any]:
    return {"type": "line", "line": {"dash": "dot", "width": 1.5, "color": MUTED}, **ends}


def _caption(text: str, x: float, y: float, *, bold: bool) -> dict[str, Any]:
    return {
        "text": f"<b>{text}</b>" if bold else text,
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "center",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 14, "color": MARK if bold else _TEXT},
    }


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


def _colour_bar(title: str) -> dict[str, Any]:
    return {
        "title": {"text": title, "side": "right", "font": {"size": 14, "color": _TEXT}},
        "thickness": 10,
        "outlinewidth": 0,
        "tickvals": [0, 0.25, 0.5, 0.75, 1],
        "tickfont": {"size": 14, "color": _TEXT},
        "xpad": 6,
        "len": 1,
    }


def _button(x: Any, y: Any, text: list[str], data: Any) -> dict[str, Any]:
    """Return markers that nobody sees but that can be hovered over and clicked."""
    look = {"marker": {"opacity": 0}}
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x,
        "y": y,
        "text": text,
        "customdata": data,
        "marker": {"symbol": "square", "size": 26, "opacity": 0},
        "selected": look,
        "unselected": look,
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }


def _cell_buttons(tokens: Sequence[str], weights: Float[np.ndarray, "query key"]) -> dict[str, Any]:
    n = len(tokens)
    labels = [f"{position} · {escape(token)}" for position, token in enumerate(tokens)]
    if n > _CELLS_UP_TO:
        where = list(range(n))
        text = [f"query {label}: click for its numbers" for label in labels]
        seen = {"marker": {"symbol": "circle", "size": 7, "opacity": 0.6, "color": MARK}}
        return _button(where, where, text, where) | seen
    query, key = (axis.ravel() for axis in np.indices((n, n)))
    text = [
        f"query <b>{labels[q]}</b> looks at key <b>{labels[k]}</b><br>"
        + (f"{weights[q, k]:.4f}" if k <= q else "masked: it comes later")
        for q, k in zip(query.tolist(), key.tolist(), strict=True)
    ]
    return _button(key, query, text, query)


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
            for e in effects
        ],
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }


def _effect_bars(panel: Panel, end: float) -> dict[str, Any]:
    kl = np.array([effect.kl for effect in panel.result.effects])
    return {
        "type": "bar",
        "orientation": "h",
        "x": np.where(np.isfinite(kl), kl, end),
        "y": [effect.position for effect in panel.result.effects],
        "marker": {"color": _colour(panel.kind)},
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
        "text": [nats(value) for value in kl],
        "textposition": "outside",
        "textfont": {"size": 13, "color": _TEXT},
        "cliponaxis": False,
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _two_lines(kind: str) -> str:
    family, *variant = _MODEL_NAME.get(kind, (escape(kind),))
    return "<br>".join([f"<b>{family}</b>", *variant])


def _panel_title(panel: Panel) -> str:
    first = panel.result.prediction[0]
    return f"<b>{escape(panel.name)}</b><br>“{escape(_short(first.token))}” {percent(first.prob)}"


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
        "font": {"size": 15, "color": _colour(kind)},
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


def _packed(values: Float[np.ndarray, "query key"]) -> dict[str, str]:
    """Return a matrix as Plotly's typed array: a quarter of the text of its numbers."""
    data = np.ascontiguousarray(values, dtype="<f4")
    return {
        "dtype": "f4",
        "bdata": base64.b64encode(data.tobytes()).decode(),
        "shape": ", ".join(map(str, data.shape)),
    }


def _numbers(weights: Float[np.ndarray, "query key"]) -> list[list[str]]:
    return [
        [f"{w:.2f}".removeprefix("0") if math.isfinite(w) else "" for w in row]
        for row in weights.tolist()
    ]


def _pitch(n: int) -> float:
    """Return the height of a token's row in pixels: large on a projector, never unreadable."""
    return min(27.0, max(14.0, 370 / n))


def _tick_size(pitch: float) -> int:
    return max(10, min(16, round(pitch) - 4))


def _short(label: str) -> str:
    return label if len(label) <= _LABEL_LENGTH else label[: _LABEL_LENGTH - 1] + "…"
