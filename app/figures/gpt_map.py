"""The steps of microgpt as a tower of boxes, with the way back that trains it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.figures.base import GRID, MARK, MUTED, SEQUENTIAL, TEXT, Figure, buttons, margins

_TOKENS, _AUTOGRAD, _PARAMETERS, _ONE_POSITION, _TRAINING, _EXPERIMENTS, _ALL = range(7)
_MAIN, _SIDE = (9.0, 61.0), (70.0, 100.0)  # left and right ends, in percent of the width
_BOX, _GAP, _RING = 44, 14, 24  # pixels: height of a box, between two, of a + sign
_SKIP_X, _RADIUS = 3.5, 3.6


@dataclass(frozen=True)
class _Box:
    """One step: its name, what it does (for the hover), and the section that explains it."""

    name: str
    does: str
    part: int


_TOWER = (
    _Box("token", "a letter as its id, at a place of the name", _TOKENS),
    _Box("wte + wpe", "the row of the token plus the row of the place", _PARAMETERS),
    _Box("rmsnorm", "scaled to a length that training can count on", _ONE_POSITION),
    _Box("rmsnorm, attention", "mixes in what earlier places offer", _ONE_POSITION),
    _Box("+", "added to what came in: nothing is overwritten", _ONE_POSITION),
    _Box("rmsnorm, MLP", "works on this place alone", _ONE_POSITION),
    _Box("+", "added again", _ONE_POSITION),
    _Box("lm_head", "one more matrix: a logit for each token", _PARAMETERS),
    _Box("softmax", "logits become probabilities", _ONE_POSITION),
    _Box("sampling", "the next token is drawn, and fed back in", _EXPERIMENTS),
)
_SKIPS = ((2, 4), (4, 6))  # from under the first row to the side of the second
_WAY_BACK = (
    _Box("loss", "minus the log of the right token's probability", _TRAINING),
    _Box("backward", "every parameter's gradient", _AUTOGRAD),
    _Box("Adam", "moves every parameter a little", _TRAINING),
)
_BESIDE = (8, 5, 1)  # the step of the tower that each stands beside


def gpt_map(part: int, titles: Sequence[str]) -> Figure:
    """Draw the steps from a token to the next one; a click's `customdata` is a section.

    Args:
        part: The section whose boxes are marked; the last one is the whole.
        titles: Of the seven sections.
    """
    tops = _tops()
    steps = [
        *((box, _MAIN, top) for box, top in zip(_TOWER, tops, strict=True)),
        *((box, _SIDE, tops[row]) for box, row in zip(_WAY_BACK, _BESIDE, strict=True)),
    ]
    shapes: list[dict[str, Any]] = [_skip(*rows, tops) for rows in _SKIPS]
    words: list[dict[str, Any]] = _arrows(tops)
    for box, ends, top in steps:
        marked = part in (box.part, _ALL)
        shapes.append(_frame(box, ends, top, marked))
        words += _words(box, ends, top, f"{box.part + 1} · {titles[box.part]}", marked)
    end = tops[-1] + _BOX + 4
    layout = {
        "height": round(end) + 4,
        "margin": margins(t=2, left=2, bottom=2, right=2),
        "xaxis": {"range": [0, 101], "visible": False, "fixedrange": True},
        "yaxis": {"range": [end, -4], "visible": False, "fixedrange": True},
        "shapes": shapes,
        "annotations": words,
        "hovermode": "closest",
        "showlegend": False,
    }
    return Figure({"data": [_buttons(steps, titles)], "layout": layout}, _told(part, titles))


# -- parts


def _height(box: _Box) -> int:
    return _RING if box.name == "+" else _BOX


def _tops() -> list[float]:
    tops, y = [], 0.0
    for box in _TOWER:
        tops.append(y)
        y += _height(box) + _GAP
    return tops


def _middle(ends: tuple[float, float]) -> float:
    return (ends[0] + ends[1]) / 2


def _frame(box: _Box, ends: tuple[float, float], top: float, marked: bool) -> dict[str, Any]:
    line = {"color": MARK if marked else GRID, "width": 3 if marked else 1.5}
    look = {"line": line, "fillcolor": SEQUENTIAL[1], "y0": top, "y1": top + _height(box)}
    if box.name != "+":
        return {"type": "rect", "x0": ends[0], "x1": ends[1], **look}
    centre = _middle(ends)
    return {"type": "circle", "x0": centre - _RADIUS, "x1": centre + _RADIUS, **look}


def _words(
    box: _Box, ends: tuple[float, float], top: float, page: str, marked: bool
) -> list[dict[str, Any]]:
    """Return a box's name and the page that explains it."""
    if box.name == "+":
        return [_text("<b>+</b>", _middle(ends), top + _RING / 2, 17, TEXT)]
    return [
        _text(f"<b>{box.name}</b>", _middle(ends), top + 15, 16, TEXT),
        _text(page, _middle(ends), top + 33, 13, MARK if marked else TEXT),
    ]


def _text(text: str, x: float, y: float, size: int, colour: str) -> dict[str, Any]:
    font = {"size": size, "color": colour}
    return {"text": text, "x": x, "y": y, "showarrow": False, "font": font}


def _arrow(x: float, y: float, from_x: float, from_y: float, colour: str) -> dict[str, Any]:
    """Return an arrow to (x, y)."""
    return {
        **{"x": x, "y": y, "ax": from_x, "ay": from_y, "axref": "x", "ayref": "y", "text": ""},
        **{"showarrow": True, "arrowhead": 2, "arrowsize": 1.1, "arrowwidth": 1.8},
        "arrowcolor": colour,
    }


def _arrows(tops: Sequence[float]) -> list[dict[str, Any]]:
    """Return the arrows down the tower, along the skips' ends, and up the way back."""
    x, side = _middle(_MAIN), _middle(_SIDE)
    rows = range(len(_TOWER) - 1)
    down = [_arrow(x, tops[i + 1], x, tops[i] + _height(_TOWER[i]), TEXT) for i in rows]
    ends = [tops[end] + _RING / 2 for _, end in _SKIPS]
    skips = [_arrow(x - _RADIUS, y, _SKIP_X, y, TEXT) for y in ends]
    loss, backward, adam = (tops[row] for row in _BESIDE)
    back = [
        _arrow(_SIDE[0], loss + _BOX / 2, _MAIN[1], loss + _BOX / 2, MUTED),
        _arrow(side, backward + _BOX, side, loss, MUTED),
        _arrow(side, adam + _BOX, side, backward, MUTED),
        _arrow(_MAIN[1], adam + _BOX / 2, _SIDE[0], adam + _BOX / 2, MUTED),
    ]
    return [*down, *skips, *back]


def _skip(start: int, end: int, tops: Sequence[float]) -> dict[str, Any]:
    """Return the line around two steps: from under one row of the tower to the side of a +."""
    first = tops[start] + _height(_TOWER[start]) + _GAP / 3
    x, last = _middle(_MAIN), tops[end] + _RING / 2
    path = f"M {x} {first} L {_SKIP_X} {first} L {_SKIP_X} {last}"
    return {"type": "path", "path": path, "line": {"color": TEXT, "width": 1.8}, "layer": "below"}


def _buttons(
    steps: Sequence[tuple[_Box, tuple[float, float], float]], titles: Sequence[str]
) -> Any:
    spots = [
        (ends[0] + (ends[1] - ends[0]) * share, top + _height(box) / 2, box)
        for box, ends, top in steps
        for share in (0.1, 0.3, 0.5, 0.7, 0.9)
    ]
    texts = [f"<b>{box.name}</b>: {box.does}<br>{titles[box.part]}" for _, _, box in spots]
    xs, ys = [x for x, _, _ in spots], [y for _, y, _ in spots]
    return buttons(xs, ys, texts, [box.part for _, _, box in spots])


def _told(part: int, titles: Sequence[str]) -> str:
    way = ", ".join(box.name for box in _TOWER)
    back = ", ".join(box.name for box in _WAY_BACK)
    return (
        f"The way of a token through microgpt: {way}; and the way back that trains it: {back}. "
        f"Marked: {titles[part]}."
    )
