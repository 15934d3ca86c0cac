"""Lens results as JSON-ready data: what the commands print and the pages let people download.

Tokens are the vocabulary's; typed text never comes back. NaN and infinity have no place in
JSON, so an infinite KL is null and said beside it.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from jaxtyping import Float

from wordlm_core.lens.ablation import AblationResult, Effect
from wordlm_core.lens.attention import AttentionResult
from wordlm_core.lens.expression import ExpressionResult
from wordlm_core.lens.neighbours import Neighbours
from wordlm_core.lens.parameters import Change, Matrix
from wordlm_core.lens.position import Walk
from wordlm_core.lens.sampling import Distribution
from wordlm_core.lens.tokens import TokenTable
from wordlm_core.lens.training_step import TrainingStep
from wordlm_core.lens.trajectory import Trajectory
from wordlm_core.quiz.question import Question
from wordlm_core.vocabulary import Probe, Vocabulary

Answer = dict[str, Any]


def of_probe(probe: Probe) -> Answer:
    """Return a text's tokens, the positions of unknown ones, and how many were cut off."""
    return {
        "tokens": list(probe.tokens),
        "unknown": list(probe.unknown),
        "dropped": probe.dropped,
    }


def of_attention(result: AttentionResult, probe: Probe) -> Answer:
    """Return the weights by layer, head, query and key."""
    return {**of_probe(probe), "attention": result.weights.tolist()}


def of_ablation(result: AblationResult, probe: Probe) -> Answer:
    """Return the prediction and the effect of every position."""
    return {
        **of_probe(probe),
        "prediction": rows(result.prediction),
        "ablations": [_effect(effect) for effect in result.effects],
        "rank_correlation": result.rank_correlation,
    }


def of_kl(kl: float) -> Answer:
    """Return a KL, null where it is infinite."""
    infinite = not np.isfinite(kl)
    return {"kl": None if infinite else kl, "kl_infinite": infinite}


def of_neighbours(result: Neighbours) -> Answer:
    """Return a word and its neighbours, nearest first."""
    items = [{"token": item.token, "cosine": item.cosine} for item in result.items]
    return {"word": result.word, "neighbours": items}


def of_distribution(result: Distribution, probe: Probe, limit: int) -> Answer:
    """Return the likeliest next tokens, with the entropy of all."""
    return {
        **of_probe(probe),
        "entropy": result.entropy,
        "effective": result.effective,
        "distribution": rows(result.ranked(limit)),
    }


def of_trajectory(result: Trajectory) -> Answer:
    """Return the basis and the paths, with z where there are three axes."""
    return {
        "mean": result.mean.tolist(),
        "basis": result.basis.tolist(),
        "explained": result.explained.tolist(),
        "paths": [
            {
                "checkpoint": path.checkpoint,
                "word": path.word,
                "points": [
                    {"step": point.label, **dict(zip("xyz", point.coords, strict=False))}
                    for point in path.points
                ],
            }
            for path in result.paths
        ],
        "kept": rows(result.kept),
    }


def of_expression(result: ExpressionResult) -> Answer:
    """Return an expression's result, gradients, graph, backward passes and nudges."""
    return {
        "result": result.result.data,
        "letters": dict(result.letters),
        "calls": result.calls,
        "grads": dict(result.grads),
        "nodes": rows(result.nodes),
        "passes": rows(result.passes),
        "nudges": rows(result.nudges),
    }


def of_walk(result: Walk, vocabulary: Vocabulary) -> Answer:
    """Return the forward pass of one position, step by step, and its prediction."""
    return {
        "tokens": list(result.tokens),
        "position": result.position,
        "steps": [
            {
                "name": step.name,
                "layer": step.layer,
                "code": step.code,
                "why": step.why,
                "axes": list(step.axes),
                "shape": list(step.values.shape),
                "values": step.values.tolist(),
                "aside": None if step.aside is None else dict([step.aside]),
                "reads": list(step.reads),
            }
            for step in result.steps
        ],
        "next": [
            {"token": vocabulary.itos[i], "prob": float(result.probs[i])} for i in result.likeliest
        ],
        "target": vocabulary.itos[result.target],
        "at_end": result.at_end,
        "loss": result.loss,
    }


def of_tokens(result: TokenTable, losses: Float[np.ndarray, " targets"]) -> Answer:
    """Return a text's ids, what is predicted from what, and how well a model does it.

    Args:
        result: The text.
        losses: Of its trained predictions, in nats; empty where it cannot be read.
    """
    scored = [float(loss) for loss in losses]
    beyond = [None] * (len(result.pairs) - len(scored))
    return {
        "tokens": [token.label for token in result.tokens],
        "ids": [token.id for token in result.tokens],
        "pairs": [
            {
                "position": pair.position,
                "input": pair.input.label,
                "target": pair.target.label,
                "trained": pair.trained,
                "prob": None if loss is None else math.exp(-loss),
                "loss": loss,
            }
            for pair, loss in zip(result.pairs, [*scored, *beyond], strict=True)
        ],
        "loss": sum(scored) / len(scored) if scored else None,
        "strange": rows(result.strange),
    }


def of_parameters(matrices: Sequence[Matrix], changes: Sequence[Change]) -> Answer:
    """Return every matrix, their sum, and what training did to each."""
    return {
        "matrices": rows(matrices),
        "parameters": sum(matrix.count for matrix in matrices),
        "changes": rows(changes),
    }


def of_training_step(result: TrainingStep) -> Answer:
    """Return one step: predictions, loss, gradients, Adam, and predictions and loss after it."""
    return {
        **plain(asdict(result)),
        "fell_by": result.loss - result.loss_after,
    }


def of_quiz(questions: Sequence[Question]) -> Answer:
    """Return questions with their answers, for those who ask them."""
    return {
        "questions": [
            {
                "key": question.key,
                "topic": question.topic,
                "kind": question.kind,
                "text": question.text,
                "answer": question.expected.shown,
                "why": question.why,
                "expected": plain(asdict(question.expected)),
            }
            for question in questions
        ]
    }


def rows(items: Sequence[Any]) -> list[Answer]:
    """Return dataclasses as records."""
    return [plain(asdict(item)) for item in items]


def plain(value: Any) -> Any:
    """Return nested data with arrays as lists and NumPy's numbers as Python's."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value


def _effect(effect: Effect) -> Answer:
    return {
        "position": effect.position,
        "token": effect.token,
        "replacement": effect.replacement,
        "attention": None if effect.attention is None else effect.attention.tolist(),
        **of_kl(effect.kl),
        "changes": rows(effect.changes),
    }
