"""What the pages of the microgpt group let people download."""

from collections.abc import Sequence
from dataclasses import astuple

import numpy as np
from jaxtyping import Float

from app.exports import csv_text, json_text
from wordlm_core import answers
from wordlm_core.lens.expression import ExpressionResult
from wordlm_core.lens.parameters import Change, Matrix
from wordlm_core.lens.position import Walk
from wordlm_core.lens.tokens import TokenTable
from wordlm_core.lens.training_step import TrainingStep
from wordlm_core.vocabulary import Vocabulary


def expression_csv(result: ExpressionResult) -> str:
    """Return one row a node; children and their local gradients are separated by blanks."""
    rows = (
        (
            node.id,
            node.name,
            node.formula,
            node.data,
            node.grad,
            " ".join(map(str, node.children)),
            " ".join(map(repr, node.local_grads)),
        )
        for node in result.nodes
    )
    heads = ("id", "name", "formula", "data", "grad", "children", "local_grads")
    return csv_text(heads, rows)


def expression_json(result: ExpressionResult) -> str:
    """Return what `autograd --json` prints."""
    return json_text(answers.of_expression(result))


def tokens_csv(table: TokenTable, losses: Float[np.ndarray, " targets"]) -> str:
    """Return one row a prediction; those beyond the context have no probability and no loss."""
    heads = ("position", "input", "input_id", "target", "target_id", "trained", "prob", "loss")
    pairs = answers.of_tokens(table, losses)["pairs"]
    rows = (
        (
            pair.position,
            pair.input.label,
            pair.input.id,
            pair.target.label,
            pair.target.id,
            pair.trained,
            scored["prob"],
            scored["loss"],
        )
        for pair, scored in zip(table.pairs, pairs, strict=True)
    )
    return csv_text(heads, rows)


def tokens_json(table: TokenTable, losses: Float[np.ndarray, " targets"]) -> str:
    """Return what `tokens --json` prints."""
    return json_text(answers.of_tokens(table, losses))


def parameters_csv(matrices: Sequence[Matrix], changes: Sequence[Change]) -> str:
    """Return one row a matrix; without earlier weights, its size alone."""
    found = {change.name: change for change in changes}
    heads = ("matrix", "rows", "columns", "count", "does")
    after = ("mean_before", "deviation_before", "norm_before")
    after += ("mean_after", "deviation_after", "norm_after", "moved")
    rows = (
        (m.name, *m.shape, m.count, m.does, *_moved(found[m.name] if found else None))
        for m in matrices
    )
    return csv_text((*heads, *after) if found else heads, rows)


def parameters_json(matrices: Sequence[Matrix], changes: Sequence[Change]) -> str:
    """Return what `parameters --json` prints."""
    return json_text(answers.of_parameters(matrices, changes))


def training_step_csv(result: TrainingStep) -> str:
    """Return one row a prediction, before the step and after it."""
    rows = (
        (was.position, was.read, was.target, was.prob, was.loss, now.prob, now.loss)
        for was, now in zip(result.forward, result.forward_after, strict=True)
    )
    heads = ("position", "read", "target", "prob_before", "loss_before", "prob_after", "loss_after")
    return csv_text(heads, rows)


def training_step_json(result: TrainingStep) -> str:
    """Return what `step --json` prints."""
    return json_text(answers.of_training_step(result))


def walk_csv(walk: Walk) -> str:
    """Return one row a number; a step has up to three indices, named by its axes."""
    heads = ("step", "name", "layer", "axes", "index_0", "index_1", "index_2", "value")
    rows = (
        (
            number,
            step.name,
            step.layer,
            " x ".join(step.axes),
            *(*index, "", "")[:3],
            float(value),
        )
        for number, step in enumerate(walk.steps, 1)
        for index, value in np.ndenumerate(step.values)
    )
    return csv_text(heads, rows)


def walk_json(walk: Walk, vocabulary: Vocabulary) -> str:
    """Return what `position --json` prints."""
    return json_text(answers.of_walk(walk, vocabulary))


def _moved(change: Change | None) -> tuple[float | None, ...]:
    if change is None:
        return ()
    return (*astuple(change.before), *astuple(change.after), change.moved)
