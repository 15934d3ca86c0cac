"""A folder of tiny checkpoints of every kind, with random weights: nothing is trained."""

from pathlib import Path

import numpy as np
import pytest

from app import settings, state
from wordlm_core import checkpoint
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.models import attention, mlp
from wordlm_core.text import SPECIALS
from wordlm_core.vocabulary import Vocabulary

ROOT = Path(__file__).resolve().parents[2]
CONTEXT = 16
WORDS = "the cat saw dog and bird a red ball lily had tom took . , ! \" don't 1 2 10 3".split()


def tiny(kind: str, *, seed: int = 11, context: int = CONTEXT) -> Checkpoint:
    """Return a checkpoint with weights at two earlier steps."""
    vocabulary = Vocabulary(SPECIALS + tuple(WORDS), dict.fromkeys(WORDS, 5) | {"<UNK>": 3})
    sizes = {"vocab_size": len(vocabulary), "context_length": context, "d_model": 8, "hidden": 12}
    family = mlp if kind == "mlp" else attention
    heads = {} if kind == "mlp" else {"n_head": 4 if kind == "multihead" else 1, "positions": True}
    config = family.config_for(**sizes, **heads)
    rng = np.random.default_rng(seed)
    stored = {
        label: {
            name: rng.normal(0, 0.7, shape).astype(np.float32)
            for name, shape in config.shapes.items()
        }
        for label in ("step_0", "step_5", "selected_step_10")
    }
    model = family.build(config, stored["selected_step_10"])
    trace = [{"step": step, "validation_loss": 4.0 / step} for step in (1, 5, 10)]
    metadata = {"seed": seed, "metrics": {"test_loss": 3.25}, "trace": trace}
    return Checkpoint.from_training(model, vocabulary, metadata, stored)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder named `artifacts` with one checkpoint of each kind."""
    made = tmp_path_factory.mktemp("lab") / "artifacts"
    for kind in ("attention", "mlp", "multihead"):
        checkpoint.save(tiny(kind), made / f"{kind}_seed11.npz")
    return made


@pytest.fixture
def artifacts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the app of this process open the tiny checkpoints."""
    return open_folder(folder, monkeypatch)


def open_folder(where: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the app at a folder and forget what it read before."""
    monkeypatch.setenv("WORDLM_ARTIFACTS", str(where))
    settings.current.cache_clear()
    state._read_library.clear()
    return where
