"""How often each token of a vocabulary stands in the training list."""

from collections.abc import Collection, Sequence
from typing import Any

from app.figures.base import (
    MARK,
    MUTED,
    TEXT,
    Figure,
    escape,
    margins,
    measure_axis,
    token_axis,
)
from wordlm_core.lens.tokens import Sign


def sign_bars(signs: Sequence[Sign], used: Collection[int]) -> Figure:
    """Draw a bar a token, in the order of the ids.

    Args:
        signs: Rows of the vocabulary, from id 0 on.
        used: Ids that are marked: those of the typed texts.
    """
    labels = [sign.label for sign in signs]
    counts = [sign.count or 0 for sign in signs]
    bars: dict[str, Any] = {
        "type": "bar",
        "x": list(range(len(signs))),
        "y": counts,
        "marker": {"color": [MARK if sign.id in used else MUTED for sign in signs]},
        "hovertext": [_told(sign) for sign in signs],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "showlegend": False,
    }
    axis = token_axis(labels, "token, in the order of the ids", size=14)
    layout = {
        "height": 270,
        "margin": margins(t=8, left=74),
        "xaxis": axis | {"tickangle": 0 if max(map(len, labels[:-1]), default=1) == 1 else -60},
        "yaxis": measure_axis("count in training", None) | {"rangemode": "tozero"},
        "bargap": 0.15,
        "font": {"color": TEXT},
    }
    most = max(signs, key=lambda sign: sign.count or 0)
    marked = ", ".join(sign.label for sign in signs if sign.id in used)
    return Figure(
        {"data": [bars], "layout": layout},
        f"Counts of {len(signs)} tokens in the training list. Most frequent: {most.label}. "
        f"Marked, as they stand in the typed texts: {marked or 'none'}.",
    )


def _told(sign: Sign) -> str:
    name = f"<b>{escape(sign.label)}</b>, id {sign.id}"
    if sign.count is None or sign.share is None:
        return f"{name}: no count, as no text holds it"
    return f"{name}: {sign.count:,} times, {sign.share:.2%}"
