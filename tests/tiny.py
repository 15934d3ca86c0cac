"""Tiny checkpoints of every family, built in memory with seeded random weights."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from wordlm_core import models
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.corpora import Corpus
from wordlm_core.items import prepare_items
from wordlm_core.models.base import LanguageModel
from wordlm_core.text import SPECIALS, UNK
from wordlm_core.vocabulary import CharVocabulary, WordVocabulary

WORDS = (
    *("the", "cat", "saw", "dog", "and", "bird", "a", "was", "happy", "ran"),
    *("away", "to", "park", "she", "he", "it", "big", "red", "ball", "."),
)
VOCABULARY = WordVocabulary(
    (*SPECIALS, *WORDS), {word: 100 - 4 * i for i, word in enumerate(WORDS)} | {UNK: 7}
)
ITEMS = ("anna", "emma", "eva", "adam", "nina", "ivan", "vera", "dara")
LETTERS = CharVocabulary.build(ITEMS)
CONTEXT, WIDTH, HIDDEN = 10, 8, 16
VALUE_OUTPUT = ("_v", "_o", "wv", "wo")
STEPS = ("step_0", "step_10", "selected_step_20")

# Name of a case: family, heads, and what differs from the family's `config_for`.
CASES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "mlp": ("mlp", 0, {}),
    "attention": ("attention", 1, {}),
    "multihead": ("attention", 4, {}),
    "uneven": ("attention", 2, {"d_k": 6, "d_v": 10}),
    "no_positions": ("attention", 2, {"positions": False}),
    "microgpt": ("microgpt", 2, {}),
    "deep_microgpt": ("microgpt", 4, {"n_layer": 2}),
    "microgpt_no_positions": ("microgpt", 1, {"positions": False}),
}
WORD_MODELS = [case for case, (family, _, _) in CASES.items() if family != "microgpt"]
WITH_ATTENTION = [case for case, (_, heads, _) in CASES.items() if heads]


def config_of(case: str, **changes: Any) -> Any:
    family, heads, own = CASES[case]
    config = models.family(family).config_for(
        vocab_size=len(VOCABULARY),
        context_length=CONTEXT,
        d_model=WIDTH,
        hidden=HIDDEN,
        n_head=heads,
        n_layer=1,
        positions=True,
    )
    return dataclasses.replace(config, **{**own, **changes})


def weights_of(shapes: Mapping[str, tuple[int, ...]], seed: int) -> dict[str, np.ndarray]:
    """Return weights at which heads, neurons and predictions differ but none saturates.

    The PAD row is not zero, so that a forgotten mask shows.
    """
    rng = np.random.default_rng(seed)
    scales = {"token_embedding": 1.0, "position_embedding": 1.0, "vocab_head": 0.6}
    scales |= {"wte": 1.0, "wpe": 1.0, "lm_head": 0.6}
    return {
        name: rng.normal(0, scales.get(name.split(".")[0], 0.35), shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def louder(model: LanguageModel, factor: float) -> LanguageModel:
    """Return a model whose heads write `factor` squared as much."""
    weights = {
        name: array * (factor if name.removesuffix(".weight")[-2:].lower() in VALUE_OUTPUT else 1)
        for name, array in model.weights.items()
    }
    return type(model)(model.config, weights)


def make_model(case: str, seed: int = 0, **changes: Any) -> LanguageModel:
    config = config_of(case, **changes)
    return models.family(CASES[case][0]).build(config, weights_of(config.shapes, seed))


def char_checkpoint(seed: int = 0, **changes: Any) -> Checkpoint:
    """Return a microgpt that reads characters, with whole weights at all of `STEPS`."""
    sizes = {"vocab_size": len(LETTERS), "context_length": 8, "n_layer": 1, **changes}
    config = config_of("microgpt", **sizes)
    stored = {label: weights_of(config.shapes, seed + i) for i, label in enumerate(STEPS)}
    model = models.family("microgpt").build(config, stored[STEPS[-1]])
    metadata = {
        "seed": seed,
        "corpus": {"name": "tiny", "items": len(ITEMS)},
        "training": {"steps": 20, "lr": 0.01},
        "loss_history": [3.0 - step / 20 for step in range(20)],
    }
    made = Checkpoint.from_training(model, LETTERS, metadata, stored)
    corpus = Corpus("tiny", ITEMS, "MIT", "made up")
    hashes = prepare_items(corpus, context_length=8).hashes()
    return dataclasses.replace(made, name="char", seen_items=hashes)


def make_checkpoint(case: str, seed: int = 0, **changes: Any) -> Checkpoint:
    """Return a checkpoint with embeddings at all of `STEPS` and whole weights at two."""
    config = config_of(case, **changes)
    stored = {label: weights_of(config.shapes, seed + i) for i, label in enumerate(STEPS)}
    model = models.family(CASES[case][0]).build(config, stored[STEPS[-1]])
    made = Checkpoint.from_training(model, VOCABULARY, {"seed": seed}, stored)
    whole = {label: made.snapshots[label] for label in STEPS[:1]}
    return dataclasses.replace(made, name=case, snapshots=whole)
