"""The graph of an expression: a box for each Value, with data and grad, and its backward pass."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from app.figures.base import MARK, MUTED, PAPER, SEQUENTIAL, TEXT, Figure, escape, margins
from wordlm_core.lens.expression import LETTERS, ExpressionResult, Node, Pass

# In columns and rows. An edge that goes past a column needs a lane there, half as high as a box.
_HALF_WIDTH, _HALF_HEIGHT, _LANE, _PORT = 0.33, 0.41, 0.5, 0.2
_ROUND_X, _ROUND_Y = 0.035, 0.08
_ROW = 92
# A label stands on its line, near the box that it belongs to: so far along, and, on a steep
# line, no further than this above or below the line's end.
_LABEL_AT, _LABEL_OFF = 0.55, 0.18
_FEWEST_COLUMNS = 4
_SWEEPS = 4

Point = tuple[float, float]


def expression_graph(result: ExpressionResult, step: int) -> Figure:
    """Draw the graph from left to right, with the grads as they are after `step` passes.

    The number on an edge is the local gradient: what the grad of the box at its right is
    multiplied by on the way to the box at its left. The edge that the last pass took is
    marked, with an arrow to the box that received.

    Args:
        result: The expression, forward and backward.
        step: 0 is forward only; up to the number of passes.
    """
    boxes, edges, height = _arrange(result)
    grads = result.grads_at(step)
    now = result.passes[step - 1] if step else None
    taken = edges[(step - 1) % len(edges)] if step else None
    x, y = (list(axis) for axis in zip(*boxes, strict=True))
    spare = max(0, _FEWEST_COLUMNS - 1 - max(x)) / 2
    ends = [-_HALF_WIDTH - 0.03 - spare, max(x) + _HALF_WIDTH + 0.03 + spare]
    hidden = {"visible": False, "fixedrange": True}
    layout = {
        "height": round(_ROW * height) + 8,
        "margin": margins(t=4, left=4, bottom=4, right=4),
        "showlegend": False,
        "xaxis": hidden | {"range": ends},
        "yaxis": hidden | {"range": [height / 2, -height / 2]},
        "shapes": [_frame(node, at, now) for node, at in zip(result.nodes, boxes, strict=True)],
        "annotations": [
            *([] if taken is None else [_arrow(taken)]),
            *(_label(edge, marked=edge is taken) for edge in edges),
        ],
    }
    data = [
        _lines([edge for edge in edges if edge is not taken], MUTED, 2),
        _lines([] if taken is None else [taken], MARK, 4),
        _texts(result, grads, now) | {"x": x, "y": y},
    ]
    return Figure({"data": data, "layout": layout}, _in_words(result, grads, now))


def graph_columns(result: ExpressionResult) -> int:
    """Return how many columns of boxes the graph has."""
    return 1 + max(_columns(result.nodes))


def short_number(value: float) -> str:
    """Return a number for a box: up to four digits, whole parts in full up to a million."""
    if 1e3 <= abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.4g}" if abs(value) >= 1 else f"{value:.3g}"


# -- where everything stands


@dataclass(frozen=True)
class _Edge:
    """A line from the left side of a node to the right side of its child."""

    local_grad: float
    points: tuple[Point, ...]


@dataclass(eq=False)
class _Stop:
    """A place in a column: a box, or a lane for edges that go past."""

    column: int
    size: float
    left: "list[_Stop]" = field(default_factory=list["_Stop"])
    right: "list[_Stop]" = field(default_factory=list["_Stop"])
    y: float = 0.0


def _arrange(result: ExpressionResult) -> tuple[list[Point], list[_Edge], float]:
    """Return the middle of each box, the edges in the order of a backward call, the height."""
    columns = _columns(result.nodes)
    boxes = [_Stop(column, 1.0) for column in columns]
    table: list[list[_Stop]] = [[] for _ in range(1 + max(columns))]
    for box in boxes:
        table[box.column].append(box)
    first_call = [each for each in result.passes if each.call == 1]
    lanes: dict[tuple[int, int], _Stop] = {}  # one for all that leaves a child past a column
    routes: list[list[_Stop]] = []
    for each in first_call:
        route = [boxes[each.node]]
        for column in range(columns[each.node] - 1, columns[each.child], -1):
            if (each.child, column) not in lanes:
                lanes[each.child, column] = _Stop(column, _LANE)
                table[column].append(lanes[each.child, column])
            route.append(lanes[each.child, column])
        route.append(boxes[each.child])
        for right, left in pairwise(route):
            right.left.append(left)
            left.right.append(right)
        routes.append(route)
    _settle(table)
    edges = [
        _Edge(each.local_grad, _points(route, routes))
        for each, route in zip(first_call, routes, strict=True)
    ]
    height = max(sum(stop.size for stop in column) for column in table)
    return [(float(box.column), box.y) for box in boxes], edges, height


def _columns(nodes: tuple[Node, ...]) -> list[int]:
    """Return each node's column: one after its last child; a leaf stands before its first use."""
    columns: list[int] = []
    for node in nodes:
        columns.append(1 + max((columns[child] for child in node.children), default=-1))
    for leaf in nodes:
        uses = [columns[node.id] for node in nodes if leaf.id in node.children]
        if uses and not leaf.children:
            columns[leaf.id] = min(uses) - 1
    return columns


def _settle(table: list[list[_Stop]]) -> None:
    """Order each column so that what belongs together stands at about the same height."""
    for column in table:
        _stack(column)
    for _ in range(_SWEEPS):
        for column in table[1:]:
            column.sort(key=lambda stop: _mean_height(stop.left, stop))
            _stack(column)
        for column in table[-2::-1]:
            column.sort(key=lambda stop: _mean_height(stop.right, stop))
            _stack(column)


def _stack(column: list[_Stop]) -> None:
    """Put the stops of a column below each other, around the middle."""
    top = -sum(stop.size for stop in column) / 2
    for stop in column:
        stop.y = top + stop.size / 2
        top += stop.size


def _mean_height(neighbours: list[_Stop], stop: _Stop) -> float:
    if not neighbours:
        return stop.y
    return sum(other.y for other in neighbours) / len(neighbours)


def _points(route: list[_Stop], routes: list[list[_Stop]]) -> tuple[Point, ...]:
    """Return a route's corners; the edges into one node end one below the other."""
    parent, *lanes, child = route
    into = sorted((other for other in routes if other[0] is parent), key=lambda r: r[1].y)
    place = next(index for index, other in enumerate(into) if other is route)
    port = parent.y + 2 * _PORT * (place - (len(into) - 1) / 2)
    points = [(parent.column - _HALF_WIDTH, port)]
    for lane in lanes:
        points += [(lane.column + _HALF_WIDTH, lane.y), (lane.column - _HALF_WIDTH, lane.y)]
    return (*points, (child.column + _HALF_WIDTH, child.y))


# -- how it looks


def _title(node: Node) -> str:
    return f"{node.name} = {node.formula}" if node.formula else node.name


def _texts(result: ExpressionResult, grads: tuple[float, ...], now: Pass | None) -> dict[str, Any]:
    rows = list(zip(result.nodes, grads, strict=True))
    return {
        "type": "scatter",
        "mode": "text",
        "text": [
            f"<b>{escape(_title(node))}</b><br>data {short_number(node.data)}"
            f"<br>grad {short_number(grad)}"
            for node, grad in rows
        ],
        "textfont": {
            "size": 16,
            "color": [MARK if now and node.id == now.child else TEXT for node in result.nodes],
        },
        "customdata": [
            f"<b>{escape(_title(node))}</b><br>data {node.data!r}<br>grad {grad!r}"
            for node, grad in rows
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
        "cliponaxis": False,
        "showlegend": False,
    }


def _lines(edges: list[_Edge], colour: str, width: int) -> dict[str, Any]:
    """Return edges as one trace; None lifts the pen between two."""
    corners = [corner for edge in edges for corner in (*edge.points, (None, None))]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [x for x, _ in corners],
        "y": [y for _, y in corners],
        "line": {"color": colour, "width": width},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _label(edge: _Edge, *, marked: bool) -> dict[str, Any]:
    (x0, y0), (x1, y1) = edge.points[:2]
    steep = (1 - _LABEL_AT) * abs(y1 - y0) > _LABEL_OFF
    share = _LABEL_OFF / abs(y1 - y0) if steep else 1 - _LABEL_AT
    digits = 3 if abs(edge.local_grad) >= 0.1 else 2
    return {
        "text": f"\u00d7{edge.local_grad:.{digits}g}",
        "x": x0 + share * (x1 - x0),
        "y": y0 + share * (y1 - y0),
        "xanchor": "right" if steep else "center",
        "showarrow": False,
        "font": {"size": 14, "color": MARK if marked else TEXT},
        "bgcolor": PAPER,
        "borderpad": 0,
    }


def _arrow(edge: _Edge) -> dict[str, Any]:
    (tail_x, tail_y), (x, y) = edge.points[-2:]
    return {
        "text": "",
        "x": x,
        "y": y,
        "ax": tail_x,
        "ay": tail_y,
        "axref": "x",
        "ayref": "y",
        "showarrow": True,
        "arrowhead": 2,
        "arrowsize": 1,
        "arrowwidth": 4,
        "arrowcolor": MARK,
    }


def _frame(node: Node, at: Point, now: Pass | None) -> dict[str, Any]:
    """Return a box with round corners: a, b and c are filled, the two of the last pass marked."""
    marked = now is not None and node.id in (now.node, now.child)
    (x, y), w, h = at, _HALF_WIDTH, _HALF_HEIGHT
    left, right, top, bottom = x - w, x + w, y - h, y + h
    rx, ry = _ROUND_X, _ROUND_Y
    return {
        "type": "path",
        "path": (
            f"M{left + rx:.3f},{top:.3f} L{right - rx:.3f},{top:.3f} "
            f"Q{right:.3f},{top:.3f} {right:.3f},{top + ry:.3f} "
            f"L{right:.3f},{bottom - ry:.3f} "
            f"Q{right:.3f},{bottom:.3f} {right - rx:.3f},{bottom:.3f} "
            f"L{left + rx:.3f},{bottom:.3f} "
            f"Q{left:.3f},{bottom:.3f} {left:.3f},{bottom - ry:.3f} "
            f"L{left:.3f},{top + ry:.3f} "
            f"Q{left:.3f},{top:.3f} {left + rx:.3f},{top:.3f} Z"
        ),
        "line": {"color": MARK if marked else MUTED, "width": 3 if marked else 1.5},
        "fillcolor": SEQUENTIAL[1] if node.name in LETTERS else PAPER,
        "layer": "below",
    }


def _in_words(result: ExpressionResult, grads: tuple[float, ...], now: Pass | None) -> str:
    boxes = "; ".join(
        f"{_title(node)}: data {short_number(node.data)}, grad {short_number(grad)}"
        for node, grad in zip(result.nodes, grads, strict=True)
    )
    if now is None:
        return f"The graph of the expression before any backward pass. {boxes}."
    passed = f"{result.nodes[now.node].name} to {result.nodes[now.child].name}"
    return f"The graph of the expression; the last backward pass went from {passed}. {boxes}."
