"""One word in two texts: its rows number by number, and what is near each."""

from typing import Any

from app.figures.base import (
    MUTED,
    TEXT,
    Figure,
    caption,
    colour_of,
    label_width,
    margins,
    measure_axis,
    packed,
    slot_of,
    token_axis,
)
from wordlm_core.lens.contextual import ContextPair

_DIVERGING = [f"#0000{n}" for n in range(21, 31)]
_ROWS = ("lookup, first text", "lookup, second text", "contextual, first", "contextual, second")
_LISTS = ("lookup row", "contextual, first text", "contextual, second text")


def context_rows(pair: ContextPair) -> Figure:
    """Draw the word's rows as stripes, one cell a number: the lookup rows are equal."""
    rows = pair.rows[[0, 0, 1, 2]]
    end = max(float(abs(rows).max()), 1e-6)
    stripes: dict[str, Any] = {
        "type": "heatmap",
        "z": packed(rows),
        "zmin": -end,
        "zmax": end,
        "ygap": 5,
        "colorscale": [[i / 9, colour] for i, colour in enumerate(_DIVERGING)],
        "colorbar": {
            "thickness": 10,
            "outlinewidth": 0,
            "tickfont": {"size": 13, "color": TEXT},
            "nticks": 5,
            "len": 1,
        },
        "hovertemplate": "%{y}, number %{x}: %{z:.3f}<extra></extra>",
    }
    axis = token_axis(_ROWS, "", size=14, reverse=True)
    layout = {
        "height": 224,
        "margin": margins(t=6, left=label_width(_ROWS, 14), bottom=52, right=62),
        "xaxis": measure_axis("number of the row", [-0.5, rows.shape[1] - 0.5])
        | {"showgrid": False},
        "yaxis": axis,
    }
    return Figure(
        {"data": [stripes], "layout": layout},
        f"The rows of {pair.token} as stripes of {rows.shape[1]} numbers: the lookup row is the "
        f"same in both texts, the contextual rows have cosine {pair.contextual_cosine:.2f}.",
    )


def neighbour_lists(pair: ContextPair, kind: str) -> Figure:
    """Draw what is nearest to each row; words that the lookup row's list lacks stand out."""
    lists = (pair.lookup_neighbours, pair.neighbours_a, pair.neighbours_b)
    known = {item.id for item in pair.lookup_neighbours}
    count = max(map(len, lists))
    cosines = [item.cosine for items in lists for item in items] or [1.0]
    low, high = min(0.0, *cosines), max(0.0, *cosines)
    room = 0.25 * (high - low)
    ends = [low - room if low else 0.0, high + room]
    names = [[item.token for item in items] for items in lists]
    left = label_width(names[0] or [""], 16) + 4
    layout: dict[str, Any] = {
        "height": 29 * count + 84,
        "margin": margins(t=34, left=left, bottom=48),
        "annotations": [],
        "showlegend": False,
    }
    data: list[dict[str, Any]] = []
    for index, (items, title) in enumerate(zip(lists, _LISTS, strict=True)):
        suffix = "" if index == 0 else str(index + 1)
        slot = slot_of(index, len(lists), gap=0.13)
        layout[f"xaxis{suffix}"] = measure_axis("cosine", ends) | {
            "domain": slot,
            "anchor": f"y{suffix}",
            "nticks": 4,
        }
        axis = token_axis(names[index], "", size=16, reverse=True)
        layout[f"yaxis{suffix}"] = axis | {"anchor": f"x{suffix}", "ticklabelstandoff": 6}
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": [item.cosine for item in items],
                "y": list(range(len(items))),
                "xaxis": f"x{suffix}",
                "yaxis": f"y{suffix}",
                "marker": {
                    "color": [MUTED if item.id in known else colour_of(kind) for item in items]
                },
                "text": [f"{item.cosine:.2f}" for item in items],
                "textposition": "outside",
                "textfont": {"size": 14, "color": TEXT},
                "cliponaxis": False,
                "hoverinfo": "skip",
            }
        )
        bold = caption(f"<b>{title}</b>", slot[0], 1.0, bold=False)
        layout["annotations"].append(
            bold | {"xanchor": "left", "font": {"size": 15, "color": TEXT}, "yshift": 4}
        )
    said = "; ".join(
        f"{title}: {', '.join(near[:3])}" for title, near in zip(_LISTS, names, strict=True)
    )
    return Figure({"data": data, "layout": layout}, f"Nearest lookup rows. {said}.")
