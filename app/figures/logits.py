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
    shift,
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
        deep = of.heads[-1].layer > 0
        parts += [
            (f"layer {each.layer}, head {each.head}" if deep else f"head {each.head}", each.push)
            for each in of.heads
        ]
    return _panels(parts, kind, count)


def mlp_pushes(of: LogitView, kind: str, count: int = 6) -> Figure:
    """Draw what the hidden units together move."""
    return _panels([("all hidden units", of.mlp)], kind, count)


# -- parts


def _panels(parts: Sequence[tuple[str, Push]], kind: str, count: int) -> Figure:
    """Draw a panel a part: the promoted tokens on top, the pushed-down ones below."""
    shifts = [[*push.promoted[:count], *push.pushed_down[:count][::-1]] for _, push in parts]
    moved = [each.logit for rows in shifts for each in rows]
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
        axis = token_axis([each.token for each in rows], "", size=14, reverse=True)
        layout[f"yaxis{suffix}"] = axis | {"domain": y, "anchor": f"x{suffix}"}
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": [each.logit for each in rows],
                "y": list(range(len(rows))),
                "xaxis": f"x{suffix}",
                "yaxis": f"y{suffix}",
                "marker": {
                    "color": [colour_of(kind) if each.logit > 0 else MUTED for each in rows]
                },
                "text": [shift(each.logit) for each in rows],
                "textposition": "outside",
                "textfont": {"size": 12, "color": TEXT},
                "cliponaxis": False,
                "customdata": [escape(each.token) for each in rows],
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
