"""The Parameters page: shapes and counts to fill in, their table, what training moved."""

import html
from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import controls, figures, layout, parameter_sheet, state
from app.layout import Bar, Cell, Part
from app.parameter_sheet import LONGEST, Row, Sheet
from wordlm_core.checkpoint import Checkpoint, step_number
from wordlm_core.lens import parameters
from wordlm_core.lens.parameters import Change, Journey, Matrix, Statistics
from wordlm_core.models.base import LanguageModel
from wordlm_core.text import visible

_CHECKS, _SHOWN = "shape_checks", "shapes_shown"
_REVEALING = 2  # checks after which the table opens, whatever is right
_NAME, _SHAPE, _COUNT, _GAP = 250, 130, 100, 12  # pixels; what is said of an answer has the rest
_TOTAL = "fill_total"
_STATISTICS = ("mean", "deviation", "norm")
_TOTAL_OF = "all parameters"


def fill_in(of: LanguageModel) -> None:
    """Let a person fill in shape and count of each matrix, and check the answers.

    A model with several layers is asked for its first one. The table of all matrices opens
    when all is right, after a second check, or when it is asked for.
    """
    matrices = parameters.inventory(of)
    # The boxes of a form reach the server with its button: what is checked is what they hold.
    sheet = _filled(matrices)
    checks = state.value(_CHECKS, 0)
    with st.form("shapes", border=False), st.container(gap="xxsmall", key="shapes_grid"):
        for row in sheet.rows:
            _ask(row, checked=checks > 0)
        with _line():
            _name(_TOTAL_OF, "the sum over every layer", _NAME + _SHAPE + _GAP)
            _box(_TOTAL_OF, _TOTAL, "sum", _COUNT)
            if checks:
                _verdict([sheet.wrong_total] if sheet.wrong_total else [])
        with _line():
            empty = _check_button(matrices) and not checks
            st.form_submit_button(
                "Show the table",
                icon=":material/visibility:",
                on_click=state.put,
                args=(_SHOWN, True),
            )
            if checks:
                layout.answer((f"{sheet.right} of {sheet.asked}", "number"), " right")
            elif empty:
                layout.note("There is nothing to check yet: one answer is enough.")
    all_right = checks > 0 and sheet.right == sheet.asked
    if all_right or checks >= _REVEALING or state.value(_SHOWN, False):
        inventory(matrices)


def sizes(of: LanguageModel) -> None:
    """Say what the shapes follow from."""
    config = of.config
    parts: list[Part] = [
        (f"{config.vocab_size:,}", "number"),
        " tokens, ",
        (f"{config.context_length:,}", "number"),
        " positions, width ",
        (f"{config.d_model:,}", "number"),
        ", ",
        (f"{config.hidden:,}", "number"),
        " hidden units, ",
        (f"{config.n_layer}", "number"),
        " layer" if config.n_layer == 1 else " layers: fill in layer0",
    ]
    layout.answer(*parts)
    layout.help_line("Rows are what comes out, columns what goes in. There are no biases.")


def inventory(matrices: Sequence[Matrix]) -> None:
    """Draw every matrix with its shape, its count and a bar, and the sum."""
    total = sum(matrix.count for matrix in matrices)
    largest = max(matrix.count for matrix in matrices)
    rows: list[list[Cell]] = [
        [m.name, _shape(m), Bar(f"{m.count:,}", m.count / largest)] for m in matrices
    ]
    rows.append(["all parameters", "", f"{total:,}"])
    layout.table(
        ("matrix", "shape", "count"),
        rows,
        strong=len(matrices),
        words=(0, 1),
        label="Every matrix with its count",
    )


def has_before(of: Checkpoint) -> bool:
    """Return whether there are earlier weights to compare with; without them, say so."""
    if len(of.whole_steps) > 1:
        return True
    layout.note(
        f"{of.name} holds the weights of one step alone, so there is no before to compare with."
    )
    return False


def one_matrix(of: Checkpoint) -> int:
    """Pick a matrix; a click into the mosaic does the same."""
    names = [matrix.name for matrix in _matrices(of)]
    return controls.choose(st.pills, "Matrix", "matrix", names, wrap=True)


def mosaics(of: Checkpoint, step: str | None, chosen: int, places: Sequence[Any]) -> None:
    """Draw every parameter before training and at a step, in two places, on one scale."""
    matrices, limit = _matrices(of), figures.colour_limit(of.model.weights)
    sides = zip(places, _sides(of, step), ("before", "after"), strict=True)
    for place, (when, weights), name in sides:
        with place:
            layout.subtitle(f"All {sum(m.count for m in matrices):,}, {when}")
            drawn = figures.mosaic(weights, matrices, limit, chosen)
            layout.plot(drawn, f"mosaic_{name}", click=("customdata", "matrix"), name=f"all_{name}")


def pictures(of: Checkpoint, step: str | None, chosen: int) -> None:
    """Draw one matrix before training and at a step, on the same scale of colours."""
    matrix, limit = _matrices(of)[chosen], figures.colour_limit(of.model.weights)
    labels = [visible(token) for token in of.vocabulary.itos]
    sides = zip(layout.columns(1, 1), _sides(of, step), ("before", "after"), strict=True)
    for place, (when, weights), name in sides:
        with place:
            layout.subtitle(f"{matrix.name}, {when}")
            drawn = figures.matrix_heatmap(weights[matrix.name], matrix, labels, limit, when)
            layout.plot(drawn, f"matrix_{name}", name=f"{matrix.name}_{name}")
    if max(matrix.shape) > figures.MATRIX_SHOWN:
        layout.note(f"Drawn up to row and column {figures.MATRIX_SHOWN}; the rest is left out.")


def way(of: Checkpoint, step: str | None, chosen: int) -> None:
    """Draw how far each matrix has moved over training; what was measured serves all sessions."""
    layout.subtitle("How far each matrix has moved from its first weights")
    moved = state.tables([of], _journey)
    layout.plot(figures.movement(moved, chosen, _number(of, step)), "moved", name="moved")


def numbers(found: Sequence[Change], chosen: int) -> None:
    """Draw the statistics of every matrix before and after, one marked."""
    heads = ("matrix", *(f"{what} {when}" for what in _STATISTICS for when in ("before", "after")))
    most = max((change.moved or 0.0 for change in found), default=0.0) or 1.0
    rows: list[list[Cell]] = [
        [
            change.name,
            *(f"{getattr(side, what):.3f}" for what in _STATISTICS for side in _of_both(change)),
            "" if change.moved is None else Bar(f"{change.moved:.2f}", change.moved / most),
        ]
        for change in found
    ]
    with layout.folded("Mean, deviation and norm of each matrix", ":material/table:"):
        layout.table(
            (*heads, "moved"), rows, strong=chosen, label="Each matrix before and after training"
        )


# -- the form


def _filled(matrices: Sequence[Matrix]) -> Sheet:
    """Return what the boxes hold, checked; of several layers, the first is asked for."""
    asked = [m for m in matrices if not m.name.startswith("layer") or _in_first_layer(m)]
    answers = {m.name: (_typed(f"shape_{m.name}"), _typed(f"count_{m.name}")) for m in asked}
    return parameter_sheet.check(matrices, answers, _typed(_TOTAL))


def _check_button(matrices: Sequence[Matrix]) -> bool:
    """Draw the form's first button, which the Enter key presses; return whether it was."""
    return st.form_submit_button(
        "Check", icon=":material/check:", type="primary", on_click=_check, args=(matrices,)
    )


def _check(matrices: Sequence[Matrix]) -> None:
    """Count a check, unless there is nothing to check."""
    if _filled(matrices).filled:
        state.put(_CHECKS, state.value(_CHECKS, 0) + 1)


def _line() -> Any:
    return st.container(horizontal=True, vertical_alignment="center", gap=_GAP)


def _ask(row: Row, *, checked: bool) -> None:
    name = row.matrix.name
    with _line():
        _name(name, row.matrix.does, _NAME)
        _box(f"Shape of {name}", f"shape_{name}", "rows x columns", _SHAPE)
        _box(f"Count of {name}", f"count_{name}", "count", _COUNT)
        if checked:
            _verdict(row.wrong)


def _name(name: str, does: str, width: int) -> None:
    named = f"<b>{html.escape(name)}</b><br><small>{html.escape(does)}</small>"
    st.html(f'<p class="wl-named">{named}</p>', width=width)


def _box(title: str, key: str, hint: str, width: int) -> None:
    st.text_input(
        title,
        max_chars=LONGEST,
        key=key,
        persist_state="session",
        placeholder=hint,
        label_visibility="collapsed",
        width=width,
    )


def _verdict(wrong: Sequence[str]) -> None:
    if wrong:
        layout.note(" ".join(wrong))
    else:
        st.html('<p class="wl-right">Right.</p>')


def _typed(key: str) -> str:
    return (state.value(key, "") or "")[:LONGEST]


def _in_first_layer(matrix: Matrix) -> bool:
    return matrix.name.startswith("layer0.")


# -- parts


def _journey(of: Sequence[Checkpoint]) -> Journey:
    return parameters.journey(of[0])


def _matrices(of: Checkpoint) -> tuple[Matrix, ...]:
    return parameters.inventory(of.model)


def _sides(of: Checkpoint, step: str | None) -> list[tuple[str, figures.Weights]]:
    """Return the first weights and those at a step, each with the step in words."""
    first = step_number(of.whole_steps[0])
    return [
        (f"before, at step {first:,}", parameters.start(of).weights),
        (f"after, at step {_number(of, step):,}", of.model_at(step).weights),
    ]


def _number(of: Checkpoint, step: str | None) -> int:
    return step_number(step or of.whole_steps[-1])


def _shape(matrix: Matrix) -> str:
    rows, columns = matrix.shape
    return f"{rows:,}\u00a0x\u00a0{columns:,}"


def _of_both(change: Change) -> tuple[Statistics, Statistics]:
    return change.before, change.after
