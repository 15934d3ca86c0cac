"""The Autograd page: its controls, and what a backward step does in words and numbers."""

import math
from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import controls, figures, layout, state
from app.figures import short_number
from app.layout import Cell, Part
from wordlm_core.lens.expression import (
    LETTERS,
    MAX_LENGTH,
    NUDGE,
    ExpressionResult,
    Nudge,
    Pass,
)

PRESETS = (
    "(a*b + c)**2",
    "a*a",
    "relu(a*b) + c",
    "-log(exp(a)/(exp(a) + exp(b)))",
    "a/b + c**2",
    "(a - b)**2 + log(c)",
)
_STARTS = {"a": 2.0, "b": -3.0, "c": 10.0}
_LARGEST = 1e6
_STEP = "backward_step"
_TIMES = "\u00d7"
# The most columns of boxes that fit beside the table, into a page, and into twice its width.
_WIDTHS = {"short": 4, "medium": 7, "long": 11}
_RULES = {
    "+": "A sum hands its grad on as it is: the local gradient is 1.",
    "*": "In a product, the local gradient of one factor is the other factor.",
    "neg": "A minus sign turns the grad around: the local gradient is -1.",
    "log": "The local gradient of log(x) is 1/x.",
    "exp": "exp is its own slope: the local gradient is the result itself.",
    "relu": "relu hands its grad on where its input is above 0, and blocks it elsewhere.",
    "**": "The local gradient of x ** n is n * x ** (n - 1); of n ** x, n ** x * log(n).",
}


# -- controls


def expression() -> str:
    """Read the expression, which answers while it is being typed, or a preset."""
    typed = st.text_input(
        "Expression over a, b and c",
        PRESETS[0],
        max_chars=MAX_LENGTH + 1,  # so that what is too long is refused, not cut off
        key="expression",
        bind="query-params",
        persist_state="session",
        live="200ms",
        help="Numbers, a, b, c, + - * / **, brackets, log(x), exp(x), relu(x)",
    )
    state.remember_text("expression", typed or "")
    controls.offer("Try one of these", "formula", PRESETS, _begin, lit=typed)
    return typed or ""


def letters() -> dict[str, float]:
    """Read the numbers for a, b and c."""
    with st.container(horizontal=True, gap="small"):
        return {letter: _number(letter) for letter in LETTERS}


def calls() -> int:
    """Pick how often `backward` is called without zeroing."""
    title = "Calls of backward() without zeroing in between"
    return 1 + controls.choose(st.segmented_control, title, "calls", ("1", "2", "3"))


def backward_step(result: ExpressionResult) -> int:
    """Pick how many backward passes have been made; none by default, so that one can predict."""
    if not result.passes:
        return 0
    labels = ["0 · forward only"]
    labels += [f"{n} · {_route(result, each)}" for n, each in enumerate(result.passes, 1)]
    meaning = "One edge a step, from the result back to a, b and c. The arrow keys move it."
    title, last = "Backward step", len(labels) - 1
    step = controls.choose(st.select_slider, title, _STEP, labels, help=meaning)
    with st.container(horizontal=True, gap="xsmall", key="offer_steps"):
        for label, target in (
            ("Forward only", 0),
            ("◀ Back", step - 1),
            ("Next ▶", step + 1),
            ("To the end", last),
        ):
            here = target == step or not 0 <= target <= last
            st.button(label, disabled=here, on_click=state.put, args=(_STEP, target))
    return step


def places(result: ExpressionResult) -> Sequence[Any]:
    """Return where the graph and its table go: side by side, or a long graph over its table."""
    if figures.graph_columns(result) <= _WIDTHS["short"]:
        return layout.columns(5, 3)
    return st.container(), st.container()


def graph_key(result: ExpressionResult) -> str:
    """Return the figure's key, by which the style sheet gives it the width that its boxes need."""
    columns = figures.graph_columns(result)
    size = next((name for name, most in _WIDTHS.items() if columns <= most), "longest")
    return f"graph_{size}"


# -- what is said


def outcome(result: ExpressionResult, step: int) -> None:
    """Say the result and what the grads of its letters are at this step."""
    parts: list[Part] = ["Result ", (short_number(result.result.data), "number")]
    for node, grad in zip(result.nodes, result.grads_at(step), strict=True):
        if node.name in LETTERS:
            joint = "; " if len(parts) == 2 else ", "
            parts += [f"{joint}{node.name}.grad = ", (short_number(grad), "number")]
    layout.answer(*parts)


def passed(result: ExpressionResult, step: int) -> None:
    """Say what the last pass did, and why its local gradient is what it is."""
    if not result.passes:
        layout.answer("There is no operation, so nothing is passed back.")
        return
    if step == 0:
        layout.answer("Forward only: every grad is still 0.")
        layout.help_line(
            "Each node noted its children and, for each of them, one local gradient: the number on "
            "the edge. What will the grads of the letters be? Write them down, then take the steps."
        )
        return
    each = result.passes[step - 1]
    node, child = result.nodes[each.node], result.nodes[each.child]
    layout.answer(
        (node.name, "token"),
        " passes on to ",
        (child.name, "token"),
        ": its grad += ",
        f"{short_number(each.local_grad)} {_TIMES} {short_number(each.upstream)}",
        f", from {short_number(each.before)} to ",
        (short_number(each.after), "number"),
    )
    layout.help_line(
        f"Local gradient {_TIMES} grad of {node.name} = {node.formula}. "
        + _RULES["**" if "**" in node.operation else node.operation]
    )


def gradients(result: ExpressionResult, step: int) -> None:
    """Draw every node with its numbers at this step."""
    grads = result.grads_at(step)
    rows: list[list[Cell]] = [
        [node.name, node.formula, short_number(node.data), short_number(grad)]
        for node, grad in zip(result.nodes, grads, strict=True)
    ]
    strong = result.passes[step - 1].child if step else None
    heads = ("node", "made by", "data", "grad")
    layout.table(heads, rows, strong=strong, words=(0, 1), label="Every node of the graph")
    used = {node.name for node in result.nodes}
    unused = [letter for letter in LETTERS if letter not in used]
    if unused:
        layout.help_line(f"Not in the expression, so without any effect: {', '.join(unused)}.")


def repeated(result: ExpressionResult, step: int) -> None:
    """Say what calls without zeroing have added up to, once more than one is over."""
    calls, grads = result.calls_over(step), _letter_grads(result, step)
    if calls < 2:
        return
    # A nudge's expectation is the gradient of one call.
    found = [
        f"{n.letter} has {short_number(grads[n.letter])} in place of "
        f"{short_number(n.expected / NUDGE)}"
        for n in result.nudges
    ]
    layout.note(
        f"After {calls} calls: {'; '.join(found)}. A node just before the result has "
        f"{calls} times its gradient; further back it is more, because inner nodes pass on "
        "what they have added up. In training every step builds a new graph: there a forgotten "
        "zero_grad adds exactly the gradient of one more step."
    )


def nudged(result: ExpressionResult, step: int) -> None:
    """Draw what really happens when a letter is moved a little, beside what its grad promises."""
    if not result.nudges:
        layout.help_line("No letter in the expression: nothing to move.")
        return
    calls, grads = result.calls_over(step), _letter_grads(result, step)
    off = {n.letter for n in result.nudges if calls and _differs(n, grads[n.letter])}
    rows: list[list[Cell]] = [
        [
            f"{n.letter} + {NUDGE:g}",
            "no value there" if n.after is None else f"{n.after:.6f}",
            "" if n.change is None else f"{n.change:+.6f}",
            f"{grads[n.letter] * NUDGE:+.6f}" if calls else "not yet",
            "\u2260 not the slope" if n.letter in off else "",
        ]
        for n in result.nudges
    ]
    heads = ("moved", "result becomes", "it moved by", f"grad {_TIMES} {NUDGE:g}", "")
    columns = len(heads) if off else len(heads) - 1
    layout.table(
        heads[:columns],
        [row[:columns] for row in rows],
        label="The result after a small change of each letter",
    )
    if off:
        layout.note(
            f"{', '.join(sorted(off))}: accumulated over {calls} calls, not the slope, so what "
            "the grad promises is not what happens."
        )
    if not calls:
        layout.help_line("There is a grad to check at the end of a call of backward.")


# -- parts


def _letter_grads(result: ExpressionResult, step: int) -> dict[str, float]:
    """Return the grads of the letters that occur, after `step` passes."""
    named = zip(result.nodes, result.grads_at(step), strict=True)
    return {node.name: grad for node, grad in named if node.name in LETTERS}


def _differs(nudge: Nudge, grad: float) -> bool:
    """Return whether a grad is not that of one call."""
    return not math.isclose(grad * NUDGE, nudge.expected, rel_tol=1e-9)


def _begin(text: str) -> None:
    """Put another expression into the box, and go back to where its grads can be predicted."""
    state.put("expression", text)
    state.put(_STEP, 0)


def _number(letter: str) -> float:
    value = st.number_input(
        letter,
        -_LARGEST,
        _LARGEST,
        _STARTS[letter],
        0.5,
        format="%g",
        key=letter,
        bind="query-params",
        persist_state="session",
    )
    state.remember_text(letter, str(value))
    return value


def _route(result: ExpressionResult, each: Pass) -> str:
    call = f"call {each.call}, " if result.calls > 1 else ""
    return f"{call}{result.nodes[each.node].name} → {result.nodes[each.child].name}"
