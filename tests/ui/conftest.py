"""A folder of tiny checkpoints of every kind, for the app to open. Nothing is trained."""

import json
from pathlib import Path
from typing import Any

import pytest

from app import settings, state
from tests import tiny
from wordlm_core import checkpoint, models
from wordlm_core.__main__ import build_parser
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.text import SPECIALS
from wordlm_core.vocabulary import WordVocabulary

KINDS = ("attention", "mlp", "multihead")
CONTEXT = 16
WORDS = (
    *("the", "cat", "saw", "dog", "and", "bird", "a", "red", "ball", "lily", "had", "tom"),
    *("took", ".", ",", "!", '"', "don't", "1", "2", "10", "3"),
)
VOCABULARY = WordVocabulary((*SPECIALS, *WORDS), dict.fromkeys(WORDS, 5) | {"<UNK>": 3})


def make(kind: str) -> Checkpoint:
    """Return a checkpoint with whole weights at three steps."""
    config = tiny.config_of(kind, vocab_size=len(VOCABULARY), context_length=CONTEXT)
    labels = ("step_0", "step_5", "selected_step_10")
    stored = {label: tiny.weights_of(config.shapes, seed) for seed, label in enumerate(labels)}
    model = models.family(tiny.CASES[kind][0]).build(config, stored[labels[-1]])
    trace = [{"step": step, "validation_loss": 4.0 / step} for step in (1, 5, 10)]
    metadata = {"seed": 11, "metrics": {"test_loss": 3.25}, "trace": trace}
    return Checkpoint.from_training(model, VOCABULARY, metadata, stored)


def printed_by(*arguments: str) -> Any:
    """Return the JSON document of a command, its defaults filled in by the real parser."""
    args = build_parser().parse_args(arguments)
    return json.loads(json.dumps(args.run(args)))


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """A folder named `artifacts` with one checkpoint of each kind."""
    made = tmp_path_factory.mktemp("lab") / "artifacts"
    for kind in KINDS:
        checkpoint.save(make(kind), made / f"{kind}_seed11.npz")
    checkpoint.save(tiny.char_checkpoint(), made / "microgpt_seed42.npz")
    return made


@pytest.fixture
def open_folder(monkeypatch):
    """Point the app of this process at a folder; what it read before is forgotten."""

    def point(where: Path) -> Path:
        monkeypatch.setenv("WORDLM_ARTIFACTS", str(where))
        settings.current.cache_clear()
        state._read_library.clear()
        return where

    yield point
    settings.current.cache_clear()


@pytest.fixture
def artifacts(folder, open_folder) -> Path:
    """The tiny checkpoints, open in the app of this process."""
    return open_folder(folder)
