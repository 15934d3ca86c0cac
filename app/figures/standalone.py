"""Figures as an HTML page of its own, which needs neither the app nor a network."""

import html
import re
import tomllib
from collections.abc import Sequence
from functools import lru_cache

import plotly.io
from plotly.offline import get_plotlyjs

from app import settings
from app.figures.base import (
    DIVERGING,
    GRID,
    MARK,
    MODEL_COLOUR,
    MUTED,
    PAPER,
    SEQUENTIAL,
    TEXT,
    Figure,
    toolbar,
)

_STAND_IN = re.compile(r"#0000\d\d")
# What Streamlit adds to a figure in the browser.
_TEMPLATE = {
    "layout": {
        "paper_bgcolor": PAPER,
        "plot_bgcolor": PAPER,
        "font": {"color": TEXT, "family": "sans-serif"},
        "hoverlabel": {"bgcolor": PAPER, "font": {"color": TEXT}},
    }
}
_STYLE = f"""
body {{ background: {PAPER}; color: {TEXT}; font: 1rem/1.5 sans-serif; }}
body {{ max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-family: serif; margin: 0; }}
figure {{ margin: 2rem 0; }}
"""


def standalone(title: str, question: str, drawn: Sequence[Figure]) -> str:
    """Return a page with figures in the colours of the light theme, each with its words."""
    heading = html.escape(title)
    body = "\n".join(_figure(number, each) for number, each in enumerate(drawn))
    page = (
        f"<title>{heading} · WordLM Lab</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{heading}</h1>\n<p>{html.escape(question)}</p>\n{body}\n</body>\n</html>\n"
    )
    colours = _colours()
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<script>{get_plotlyjs()}</script>\n"
        + _STAND_IN.sub(lambda found: colours.get(found[0], found[0]), page)
    )


# -- parts


def _figure(number: int, figure: Figure) -> str:
    name = f"figure_{number + 1}"
    spec = figure.spec | {"layout": {"template": _TEMPLATE, **figure.spec["layout"]}}
    drawing = plotly.io.to_html(
        spec,
        config=toolbar(name, "svg"),
        auto_play=False,
        include_plotlyjs=False,
        full_html=False,
        validate=False,
        div_id=name,
    )
    return f"<figure>\n{drawing}\n<figcaption>{html.escape(figure.alt)}</figcaption>\n</figure>"


@lru_cache(maxsize=1)
def _colours() -> dict[str, str]:
    """Return the light theme's colour for each of Streamlit's stand-ins."""
    with (settings.ROOT / ".streamlit/config.toml").open("rb") as file:
        light = tomllib.load(file)["theme"]["light"]
    return dict(
        zip(
            (*MODEL_COLOUR.values(), MARK, MUTED, *SEQUENTIAL, *DIVERGING, TEXT, PAPER, GRID),
            (
                *light["chartCategoricalColors"],
                *light["chartSequentialColors"],
                *light["chartDivergingColors"],
                *(light[name] for name in ("textColor", "backgroundColor", "borderColor")),
            ),
            strict=True,
        )
    )
