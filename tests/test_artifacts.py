"""The committed models: whole, small enough, and as good as their independent reference."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from wordlm_core import checkpoint
from wordlm_core.lens import attention, receipt, sampling
from wordlm_core.models.base import count_parameters

ARTIFACTS = Path(__file__).resolve().parent.parent / "artifacts"
FILES = sorted(p for p in ARTIFACTS.glob("*.npz") if p.name not in checkpoint.NOT_CHECKPOINTS)
WORD_MODELS = ("mlp_seed11", "attention_seed11", "multihead_seed11")
# An independent run of the same protocol: test loss of seed 11 and the step it selected.
REFERENCE = {"mlp": (3.898, 2250), "attention": (3.416, 5250), "multihead": (3.317, 5250)}


@pytest.fixture(scope="module")
def result():
    return json.loads((ARTIFACTS / "benchmark.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_checkpoint_loads_and_says_where_it_comes_from(path):
    loaded = checkpoint.load(path)
    corpus = loaded.metadata["corpus"]
    assert corpus["licence"] != "unknown"
    assert len(corpus["sha256"]) == 64
    assert loaded.metadata["training"]["seed"] == (42 if loaded.model.kind == "microgpt" else 11)
    assert loaded.selected_label in loaded.steps
    for label in loaded.whole_steps:
        logits = loaded.model_at(label).last_logits(np.array([[1, 5, 6]]))
        assert np.isfinite(logits).all()


@pytest.mark.parametrize("name", WORD_MODELS)
def test_embeddings_are_stored_over_the_whole_training(name):
    loaded = checkpoint.load(ARTIFACTS / f"{name}.npz")
    assert [checkpoint.step_number(label) for label in loaded.steps] == list(range(0, 6001, 750))
    assert len(loaded.whole_steps) >= 2


@pytest.mark.parametrize(
    ("name", "parameters", "loss"),
    [
        ("microgpt_seed42", 4192, 2.3050),  # the loss of the scalar original
        ("microgpt_no_positions_seed42", 4192, 2.334),
        ("microgpt_2_layers_seed42", 7264, 2.307),
    ],
)
def test_microgpt_can_be_scrubbed_through_its_training(name, parameters, loss):
    loaded = checkpoint.load(ARTIFACTS / f"{name}.npz")
    assert [checkpoint.step_number(label) for label in loaded.whole_steps] == list(
        range(0, 1001, 10)
    )
    assert count_parameters(loaded.model.weights) == parameters
    assert loaded.model.config.positions == ("no_positions" not in name)
    losses = loaded.metadata["loss_history"]
    assert len(losses) == 1000
    assert losses[0] == pytest.approx(math.log(27), abs=0.2)
    assert np.mean(losses[-200:]) == pytest.approx(loss, abs=6e-4)
    assert loaded.metadata["corpus"]["items"] == 32_033


def test_microgpt_knows_which_of_its_samples_are_in_its_list():
    loaded = checkpoint.load(ARTIFACTS / "microgpt_seed42.npz")
    drawn = sampling.generate(
        loaded.model, loaded.vocabulary, None, temperature=0.5, seed=0, samples=10
    )
    assert [sampling.seen_in_training(loaded, None, sample) for sample in drawn].count(True) == 3


def test_they_fit_their_budget():
    total = sum(path.stat().st_size for path in ARTIFACTS.iterdir())
    first = sum((ARTIFACTS / f"{name}.npz").stat().st_size for name in WORD_MODELS)
    assert first + (ARTIFACTS / "ngrams.npz").stat().st_size < 36e6
    assert (ARTIFACTS / "ngrams.npz").stat().st_size < 3e6
    assert total < 60e6


@pytest.mark.parametrize("kind", REFERENCE)
def test_seed_11_agrees_with_the_independent_run(result, kind):
    run = next(run for run in result["runs"][kind] if run["seed"] == 11)
    loss, step = REFERENCE[kind]
    assert abs(run["test_loss"] - loss) < 0.03
    assert run["selected_step"] == step
    assert result["corpus_audit"]["splits"]["test"]["targets"] == 127_810


def test_the_benchmark_holds_three_seeds_of_each_kind(result):
    for kind, runs in result["runs"].items():
        assert [run["seed"] for run in runs] == [11, 29, 47]
        losses = result["aggregate"][kind]["test_loss"]
        assert math.isclose(losses["mean"], sum(losses["values"]) / 3)
        assert losses["sample_std"] < 0.05


def test_one_vocabulary_for_all(result):
    own = checkpoint.read_vocabulary(ARTIFACTS / "vocab.json")
    assert len(own) == result["corpus_audit"]["vocab_size"] == 4000
    for name in WORD_MODELS:
        assert checkpoint.load(ARTIFACTS / f"{name}.npz").vocabulary.sha256 == own.sha256
    assert receipt.load(ARTIFACTS / "ngrams.npz").vocabulary_sha256 == own.sha256


def test_a_repeated_word_gets_attention_of_its_own_at_each_position():
    loaded = checkpoint.load(ARTIFACTS / "multihead_seed11.npz")
    probe = loaded.vocabulary.probe("the cat saw the dog and the bird", 64)
    weights = attention.attend(loaded.model, probe).weights
    places = [i for i, token in enumerate(probe.tokens) if token == "the"]
    assert places == [1, 4, 7]
    assert len({weights[0, 0, -1, place] for place in places}) == 3
