"""What every figure is made of: the figure itself, colours, axes, labels.

Colours are Streamlit's stand-ins: the browser swaps them for the ones that the light or the
dark theme in `.streamlit/config.toml` declares, so a figure is readable in both and the server
need not know which one is on.
"""

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from plotly.basedatatypes import BaseFigure

from wordlm_core.text import visible

MARK, MUTED = "#000004", "#000005"
MODEL_COLOUR = {
    "mlp": "#000001",
    "attention": "#000002",
    "multihead": "#000003",
    "microgpt": "#000006",
}
MODEL_NAME = {
    "mlp": ("MLP", "fixed window"),
    "attention": ("Attention", "one head"),
    "multihead": ("Attention", "several heads"),
    "microgpt": ("microgpt",),
}
DASH = {"mlp": "dot", "attention": "solid", "multihead": "dash", "microgpt": "solid"}
TEXT, GRID, PAPER = "#000037", "#000039", "#000038"
SEQUENTIAL = [f"#0000{n}" for n in range(11, 21)]
DIVERGING = [f"#0000{n}" for n in range(21, 31)]

CELLS_UP_TO = 24
ROUNDING = 1e-12
_LABEL_LENGTH = 24
_BUTTONS = [
    *("zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d", "resetScale2d"),
    *("zoom3d", "pan3d", "orbitRotation", "tableRotation"),
    *("resetCameraDefault3d", "resetCameraLastSave3d"),
]


@dataclass(frozen=True)
class Figure:
    """A drawing and what it shows, in words.

    Attributes:
        spec: Plotly's `data` and `layout`.
        alt: For people who cannot see it.
    """

    spec: dict[str, Any]
    alt: str


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
    return ", ".join(MODEL_NAME.get(kind, (kind,)))


def escape(text: str) -> str:
    """Return `text` so that Plotly draws it letter for letter."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def shorten(label: str) -> str:
    """Return a label that can be seen and is not longer than an axis can take."""
    label = visible(label)
    return label if len(label) <= _LABEL_LENGTH else label[: _LABEL_LENGTH - 1] + "…"


def model_label(kind: str, layers: int = 1) -> str:
    """Return a kind of model as markup on two lines, for the head of a panel."""
    family, *variant = MODEL_NAME.get(kind, (escape(kind),))
    if layers > 1:
        variant.append(f"{layers} layers")
    return "<br>".join([f"<b>{family}</b>", *variant])


def nats(value: float) -> str:
    """Return a KL for people; what float64 cannot tell from 0 is 0."""
    if not math.isfinite(value):
        return "infinite"
    if value >= 0.995:
        return f"{value:.2f}"
    return "0" if value < ROUNDING else f"{value:.3f}" if value >= 0.0005 else "<0.001"


def shift(value: float) -> str:
    """Return a difference of logits for people, with its sign and two digits that count."""
    digits = 1 if abs(value) >= 0.95 else 2 if abs(value) >= 0.095 else 3
    return f"{value:+.{digits}f}"


def percent(value: float) -> str:
    """Return a probability for people."""
    return f"{value:.0%}" if value >= 0.0995 else f"{value:.1%}" if value >= 0.0005 else "0%"


# -- parts


def colour_of(kind: str) -> str:
    """Return a kind of model's colour."""
    return MODEL_COLOUR.get(kind, MUTED)


def token_axis(
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
        "ticktext": [escape(shorten(label)) for label in labels],
        "ticks": "",
        "tickfont": {"size": size, "color": TEXT},
        "title": {"text": title, "font": {"size": 15, "color": TEXT}, "standoff": 8},
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "automargin": False,
    }


def measure_axis(title: str, ends: list[float] | None) -> dict[str, Any]:
    """Return an axis of numbers with grid lines; None leaves its ends to Plotly."""
    axis: dict[str, Any] = {
        "title": {"text": title, "font": {"size": 15, "color": TEXT}, "standoff": 8},
        "tickfont": {"size": 14, "color": TEXT},
        "nticks": 5,
        "gridcolor": GRID,
        "showgrid": True,
        "zeroline": False,
        "fixedrange": True,
        "automargin": False,
    }
    return axis if ends is None else axis | {"range": ends}


def slot_of(index: int, count: int, *, gap: float = 0.08) -> list[float]:
    """Return the share of the paper of one of `count` panels side by side."""
    width = (1 - gap * (count - 1)) / count
    start = index * (width + gap)
    return [max(0.0, start), min(1.0, start + width)]


def margins(*, t: int, left: int, bottom: int = 52, right: int = 12) -> dict[str, Any]:
    """Return fixed margins: measuring them would draw every figure twice in the browser."""
    return {"l": left, "r": right, "t": t, "b": bottom, "pad": 4, "autoexpand": False}


def label_width(labels: Sequence[str], size: int) -> int:
    """Return about how many pixels the longest label needs."""
    return 14 + math.ceil(0.56 * size * max(len(shorten(label)) for label in labels))


def legend_below(size: int) -> dict[str, Any]:
    """Return a legend below the picture: one entry a row, on a phone as on a projector."""
    return {
        "x": 0,
        "xanchor": "left",
        "yref": "container",
        "y": 0,
        "yanchor": "bottom",
        "traceorder": "normal",
        "itemwidth": 45,
        "itemclick": False,
        "itemdoubleclick": False,
        "font": {"size": size, "color": TEXT},
    }


def frame_of(x0: float, x1: float, y0: float, y1: float) -> dict[str, Any]:
    """Return a rectangle that marks what is chosen."""
    line = {"color": MARK, "width": 3}
    return {"type": "rect", "x0": x0, "x1": x1, "y0": y0, "y1": y1, "line": line}


def caption(text: str, x: float, y: float, *, bold: bool) -> dict[str, Any]:
    """Return a panel's title, standing on a point of the paper; `text` is drawn as markup."""
    return {
        "text": f"<b>{text}</b>" if bold else text,
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "center",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 14, "color": MARK if bold else TEXT},
    }


def scale_bar(title: str) -> dict[str, Any]:
    """Return the colour bar of a share from 0 to 1."""
    return {
        "title": {"text": title, "side": "right", "font": {"size": 14, "color": TEXT}},
        "thickness": 10,
        "outlinewidth": 0,
        "tickvals": [0, 0.25, 0.5, 0.75, 1],
        "tickfont": {"size": 14, "color": TEXT},
        "xpad": 6,
        "len": 1,
    }


def buttons(x: Any, y: Any, text: list[str], data: Any) -> dict[str, Any]:
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


def packed(values: np.ndarray, dtype: str = "f4") -> dict[str, str]:
    """Return an array as Plotly's typed array: a quarter of the text of its numbers, or less.

    Args:
        values: One to three dimensions.
        dtype: `f4`, or `u1` for whole numbers of 0 to 255.
    """
    data = np.ascontiguousarray(values, dtype=f"<{dtype}")
    return {
        "dtype": dtype,
        "bdata": base64.b64encode(data.tobytes()).decode(),
        "shape": ", ".join(map(str, data.shape)),
    }


def row_pitch(n: int) -> float:
    """Return the height of a token's row in pixels: large on a projector, never unreadable."""
    return min(27.0, max(14.0, 370 / n))


def tick_size(pitch: float) -> int:
    """Return the size of a label that fits a row of that height."""
    return max(10, min(16, round(pitch) - 4))
