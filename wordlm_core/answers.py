"""Lens results as JSON-ready data: what the commands print and the pages let people download.

Tokens are the vocabulary's; typed text never comes back. NaN and infinity have no place in
JSON, so an infinite KL is null and said beside it.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from wordlm_core.lens.ablation import AblationResult, Effect
from wordlm_core.lens.attention import AttentionResult
from wordlm_core.lens.neighbours import Neighbours
from wordlm_core.lens.sampling import Distribution
from wordlm_core.lens.trajectory import Trajectory
from wordlm_core.vocabulary import Probe

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
