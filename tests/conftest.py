"""Tiny checkpoints of every family, built in memory with seeded random weights."""

from collections.abc import Mapping

import numpy as np
import pytest

from wordlm_core import models
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.models.base import LanguageModel
from wordlm_core.text import SPECIALS, UNK
from wordlm_core.vocabulary import Vocabulary

WORDS = "the cat saw dog and bird a was happy ran away to park she he it big red ball .".split()
CONTEXT, WIDTH, HIDDEN = 10, 8, 16

# Name of a case: family, heads, and what differs from `config_for`'s choice.
CASES: dict[str, tuple[str, int, Mapping[str, object]]] = {
    "mlp": ("mlp", 0, {}),
    "attention": ("attention", 1, {}),
    "multihead": ("attention", 4, {}),
    "uneven": ("attention", 2, {"d_k": 6, "d_v": 10}),
    "no_positions": ("attention", 2, {"positions": False}),
}
WITH_ATTENTION = [name for name in CASES if name != "mlp"]


def make_vocabulary() -> Vocabulary:
    counts = {word: 100 - 4 * i for i, word in enumerate(WORDS)} | {UNK: 7}
    return Vocabulary((*SPECIALS, *WORDS), counts)


def random_weights(shapes: Mapping[str, tuple[int, ...]], seed: int) -> dict[str, np.ndarray]:
    """Return weights large enough that heads, neurons and predictions differ clearly.

    The PAD row is not zero, so that a forgotten mask shows.
    """
    rng = np.random.default_rng(seed)
    return {
        name: rng.normal(0, 1.0 if "embedding" in name else 0.6, shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def make_checkpoint(case: str, seed: int = 0, **sizes: int) -> Checkpoint:
    """Return a checkpoint with embeddings at steps 0, 10 and 20, and whole weights at 0."""
    family, heads, changes = CASES[case]
    module = models.family(family)
    vocabulary = make_vocabulary()
    options = {
        "vocab_size": len(vocabulary),
        "context_length": CONTEXT,
        "d_model": WIDTH,
        "hidden": HIDDEN,
        "n_head": heads,
        "positions": True,
    }
    config = module.config_for(**{**options, **changes, **sizes})
    for name in ("d_k", "d_v"):
        if name in changes:
            object.__setattr__(config, name, changes[name])
    stored = {
        label: random_weights(config.shapes, seed + i)
        for i, label in enumerate(("step_0", "step_10", "selected_step_20"))
    }
    model = module.build(config, stored["selected_step_20"])
    made = Checkpoint.from_training(model, vocabulary, {"seed": seed}, stored)
    made.snapshots.pop("step_10")
    object.__setattr__(made, "name", case)
    return made


@pytest.fixture(scope="session")
def checkpoints() -> dict[str, Checkpoint]:
    return {case: make_checkpoint(case) for case in CASES}


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    return make_vocabulary()


@pytest.fixture(params=list(CASES))
def checkpoint(request, checkpoints) -> Checkpoint:
    """Every family in turn."""
    return checkpoints[request.param]


@pytest.fixture
def model(checkpoint) -> LanguageModel:
    return checkpoint.model
