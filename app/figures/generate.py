"""What the next word is drawn from: before and after temperature, top-k and top-p."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.figures.base import (
    MARK,
    MUTED,
    TEXT,
    Figure,
    colour_of,
    escape,
    label_width,
    margins,
    measure_axis,
    percent,
    token_axis,
)
from wordlm_core.lens.sampling import Distribution

_PITCH = 26


@dataclass(frozen=True)
class Candidates:
    """The likeliest next tokens, in one order whatever the temperature.

    Temperature, top-k and top-p keep the order of the unscaled distribution, so that bars
    grow and shrink in their places.

    Attributes:
        tokens: By unscaled probability falling.
        before: Their probabilities at temperature 1 with nothing cut off.
        after: Their probabilities at the settings; 0 where cut off.
        cut: Whether top-k or top-p cut anything off.
        drawn: Index of the token that was drawn, or None.
        others: How many tokens are left, and their share before and after.
    """

    tokens: tuple[str, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    cut: bool
    drawn: int | None
    others: tuple[int, float, float]


def candidates_of(
    before: Distribution, after: Distribution, count: int = 12, drawn: str | None = None
) -> Candidates:
    """Return the `count` likeliest tokens, and the drawn one where it is not among them."""
    vocabulary = before.vocabulary
    tokens = [entry.token for entry in before.ranked(count)]
    if drawn is not None and drawn not in tokens:
        tokens.append(drawn)
    ids = [vocabulary.stoi[token] for token in tokens]
    left = int(np.count_nonzero(before.probs)) - len(ids)
    rest = [max(0.0, 1 - float(of.probs[ids].sum())) for of in (before, after)]
    return Candidates(
        tokens=tuple(tokens),
        before=tuple(before.probs[ids].tolist()),
        after=tuple(after.probs[ids].tolist()),
        cut=after.cut > 0,
        drawn=None if drawn is None else tokens.index(drawn),
        others=(left, rest[0], rest[1]),
    )


def next_bars(of: Candidates, kind: str) -> Figure:
    """Draw the candidates at the settings, with the unscaled distribution ghosted behind.

    The scale is always 0 to 100%, so that bars can be compared from setting to setting. A
    click's index is the candidate's. The last row is all other tokens together.
    """
    end = 1.1 if of.drawn is None else 1.3  # room for the mark behind a bar of 100%
    rest, rest_before, rest_after = of.others
    names = [*of.tokens, *([f"{rest:,} others"] if rest else [])]
    before = np.array([*of.before, *([rest_before] if rest else [])])
    after = np.array([*of.after, *([rest_after] if rest else [])])
    where = np.arange(len(names), dtype=float)
    colours = [colour_of(kind)] * len(of.tokens) + [MUTED] * (len(names) - len(of.tokens))
    if of.drawn is not None:
        colours[of.drawn] = MARK
    labels = [_label(of, i, p) for i, p in enumerate(after.tolist())]
    data = [
        _hits(of),
        _bars(before, where, 0.86, [MUTED] * len(names)) | {"opacity": 0.32, "name": "unscaled"},
        _bars(after, where, 0.5, colours),
        {
            "type": "scatter",
            "mode": "text",
            "x": np.maximum(before, after) + 0.008,
            "y": where,
            "text": labels,
            "textposition": "middle right",
            "textfont": {"size": 14, "color": TEXT},
            "cliponaxis": False,
            "hoverinfo": "skip",
            "showlegend": False,
        },
    ]
    axis = token_axis(names, "", size=16, reverse=True)
    layout = {
        "height": _PITCH * len(names) + 58,
        "margin": margins(t=6, left=label_width(names, 16) + 4, bottom=50, right=18),
        "barmode": "overlay",
        "showlegend": False,
        "xaxis": measure_axis("probability of the next token", [0.0, end])
        | {"tickformat": ".0%", "tickvals": [0, 0.25, 0.5, 0.75, 1]},
        "yaxis": axis | {"ticklabelstandoff": 6},
    }
    first = ", ".join(
        f"{token} {percent(b)} to {percent(a)}"
        for token, b, a in zip(of.tokens[:3], of.before, of.after, strict=False)
    )
    said = "" if of.drawn is None else f" Drawn: {of.tokens[of.drawn]}."
    return Figure(
        {"data": data, "layout": layout},
        f"Next-token probabilities, unscaled and at the settings: {first}; the {rest:,} "
        f"others {percent(rest_before)} to {percent(rest_after)}.{said}",
    )


# -- parts


def _label(of: Candidates, row: int, prob: float) -> str:
    cut = of.cut and row < len(of.tokens) and prob == 0
    return ("cut off" if cut else percent(prob)) + (" ← drawn" if row == of.drawn else "")


def _bars(values: np.ndarray, where: np.ndarray, width: float, colours: list[str]) -> Any:
    return {
        "type": "bar",
        "orientation": "h",
        "x": values,
        "y": where,
        "width": width,
        "marker": {"color": colours},
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _hits(of: Candidates) -> dict[str, Any]:
    """Return a bar over the whole width of each candidate, for hovering and clicking."""
    count = len(of.tokens)
    return _bars(np.full(count, 1.1), np.arange(count, dtype=float), 1.0, [MUTED] * count) | {
        "marker": {"opacity": 0},
        "selected": {"marker": {"opacity": 0}},
        "unselected": {"marker": {"opacity": 0}},
        "text": [
            f"<b>{escape(token)}</b>: {b:.4f} unscaled, {a:.4f} at these settings"
            for token, b, a in zip(of.tokens, of.before, of.after, strict=True)
        ],
        "textposition": "none",
        "hoverinfo": "text",
        "hovertemplate": "%{text}<extra></extra>",
    }
