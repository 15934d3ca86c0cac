"""Which next tokens the parts of a model promote and push down."""

import math
from collections.abc import Sequence
from typing import Any

from app.figures.base import (
    MUTED,
    TEXT,
    Figure,
    caption,
    colour_of,
    escape,
    margins,
    measure_axis,
    slot_of,
    token_axis,
)
from wordlm_core.lens.logits import LogitView, Push

_ACROSS = 5
_PITCH = 23


def attention_pushes(of: LogitView, kind: str, count: int = 6) -> Figure:
    """Draw what all heads together move, then each head alone, on one scale."""
    assert of.attention is not None
    parts = [("all heads" if len(of.heads) > 1 else "attention", of.attention)]
    if len(of.heads) > 1:
        parts += [(f"head {head.head}", head.push) for head in of.heads]
    return _panels(parts, kind, count)


def mlp_pushes(of: LogitView, kind: str, count: int = 6) -> Figure:
    """Draw what the hidden units together move."""
    return _panels([("all hidden units", of.mlp)], kind, count)


# -- parts


def _panels(parts: Sequence[tuple[str, Push]], kind: str, count: int) -> Figure:
    """Draw a panel a part: the promoted tokens on top, the pushed-down ones below."""
    shifts = [[*push.promoted[:count], *push.pushed_down[:count][::-1]] for _, push in parts]
    moved = [shift.logit for rows in shifts for shift in rows]
    low, high = min(0.0, *moved), max(0.0, *moved)
    room = (high - low or 1.0) * 0.55  # for the numbers at the bars' ends
    across = min(len(parts), _ACROSS)
    down = math.ceil(len(parts) / across)
    layout: dict[str, Any] = {
        "height": down * (_PITCH * 2 * count + 60) + 30,
        "margin": margins(t=30, left=84, bottom=44),
        "annotations": [],
        "showlegend": False,
    }
    data: list[dict[str, Any]] = []
    for index, ((name, _), rows) in enumerate(zip(parts, shifts, strict=True)):
        suffix = "" if index == 0 else str(index + 1)
        line, column = divmod(index, across)
        x = slot_of(column, across, gap=0.085)
        y = slot_of(down - 1 - line, down, gap=0.16)
        layout[f"xaxis{suffix}"] = measure_axis("logits", [low - room, high + room]) | {
            "domain": x,
            "anchor": f"y{suffix}",
            "nticks": 3,
            "zeroline": True,
            "zerolinecolor": TEXT,
        }
        axis = token_axis([shift.token for shift in rows], "", size=14, reverse=True)
        layout[f"yaxis{suffix}"] = axis | {"domain": y, "anchor": f"x{suffix}"}
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": [shift.logit for shift in rows],
                "y": list(range(len(rows))),
                "xaxis": f"x{suffix}",
                "yaxis": f"y{suffix}",
                "marker": {
                    "color": [colour_of(kind) if shift.logit > 0 else MUTED for shift in rows]
                },
                "text": [f"{shift.logit:+.1f}" for shift in rows],
                "textposition": "outside",
                "textfont": {"size": 12, "color": TEXT},
                "cliponaxis": False,
                "customdata": [escape(shift.token) for shift in rows],
                "hovertemplate": "<b>%{customdata}</b> %{x:+.3f}<extra></extra>",
            }
        )
        title = caption(f"<b>{name}</b>", sum(x) / 2, y[1], bold=False)
        layout["annotations"].append(title | {"font": {"size": 15, "color": TEXT}, "yshift": 2})
    said = "; ".join(
        f"{name} lifts {push.promoted[0].token} most and presses {push.pushed_down[0].token} down"
        for name, push in parts
    )
    return Figure({"data": data, "layout": layout}, f"Differences of logits: {said}.")
