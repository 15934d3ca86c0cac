"""Tiny checkpoints of every family, built in memory with seeded random weights."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from wordlm_core import models
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.models.base import LanguageModel
from wordlm_core.text import SPECIALS, UNK
from wordlm_core.vocabulary import Vocabulary

WORDS = (
    *("the", "cat", "saw", "dog", "and", "bird", "a", "was", "happy", "ran"),
    *("away", "to", "park", "she", "he", "it", "big", "red", "ball", "."),
)
VOCABULARY = Vocabulary(
    (*SPECIALS, *WORDS), {word: 100 - 4 * i for i, word in enumerate(WORDS)} | {UNK: 7}
)
CONTEXT, WIDTH, HIDDEN = 10, 8, 16
STEPS = ("step_0", "step_10", "selected_step_20")

# Name of a case: family, heads, and what differs from the family's `config_for`.
CASES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "mlp": ("mlp", 0, {}),
    "attention": ("attention", 1, {}),
    "multihead": ("attention", 4, {}),
    "uneven": ("attention", 2, {"d_k": 6, "d_v": 10}),
    "no_positions": ("attention", 2, {"positions": False}),
}
WITH_ATTENTION = [case for case, (_, heads, _) in CASES.items() if heads]


def config_of(case: str, **changes: Any) -> Any:
    family, heads, own = CASES[case]
    config = models.family(family).config_for(
        vocab_size=len(VOCABULARY),
        context_length=CONTEXT,
        d_model=WIDTH,
        hidden=HIDDEN,
        n_head=heads,
        positions=True,
    )
    return dataclasses.replace(config, **{**own, **changes})


def weights_of(shapes: Mapping[str, tuple[int, ...]], seed: int) -> dict[str, np.ndarray]:
    """Return weights at which heads, neurons and predictions differ but none saturates.

    The PAD row is not zero, so that a forgotten mask shows.
    """
    rng = np.random.default_rng(seed)
    scales = {"token_embedding": 1.0, "position_embedding": 1.0, "vocab_head": 0.6}
    return {
        name: rng.normal(0, scales.get(name.split(".")[0], 0.35), shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def make_model(case: str, seed: int = 0, **changes: Any) -> LanguageModel:
    config = config_of(case, **changes)
    return models.family(CASES[case][0]).build(config, weights_of(config.shapes, seed))


def make_checkpoint(case: str, seed: int = 0, **changes: Any) -> Checkpoint:
    """Return a checkpoint with embeddings at all of `STEPS` and whole weights at two."""
    config = config_of(case, **changes)
    stored = {label: weights_of(config.shapes, seed + i) for i, label in enumerate(STEPS)}
    model = models.family(CASES[case][0]).build(config, stored[STEPS[-1]])
    made = Checkpoint.from_training(model, VOCABULARY, {"seed": seed}, stored)
    whole = {label: made.snapshots[label] for label in STEPS[:1]}
    return dataclasses.replace(made, name=case, snapshots=whole)
