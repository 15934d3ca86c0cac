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
from wordlm_core.lens.tokens import Row


def token_bars(rows: Sequence[Row], used: Collection[int]) -> Figure:
    """Draw a bar a token, in the order of the ids.

    Args:
        rows: Of the vocabulary, from id 0 on.
        used: Ids that are marked: those of the typed texts.
    """
    labels = [row.label for row in rows]
    counts = [row.count or 0 for row in rows]
    bars: dict[str, Any] = {
        "type": "bar",
        "x": list(range(len(rows))),
        "y": counts,
        "marker": {"color": [MARK if row.id in used else MUTED for row in rows]},
        "hovertext": [_told(row) for row in rows],
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
    most = max(rows, key=lambda row: row.count or 0)
    marked = ", ".join(row.label for row in rows if row.id in used)
    return Figure(
        {"data": [bars], "layout": layout},
        f"Counts of {len(rows)} tokens in the training list. Most frequent: {most.label}. "
        f"Marked, as they stand in the typed texts: {marked or 'none'}.",
    )


def _told(row: Row) -> str:
    name = f"<b>{escape(row.label)}</b>, id {row.id}"
    if row.count is None or row.share is None:
        return f"{name}: no count, as no text holds it"
    return f"{name}: {row.count:,} times, {row.share:.2%}"
