"""The microgpt trainer: resume, divergence, what a checkpoint holds, evaluation."""

import dataclasses

import numpy as np
import pytest

from tests import tiny
from wordlm_core import checkpoint, training
from wordlm_core.corpora import Corpus
from wordlm_core.errors import CheckpointError, ConfigError, CorpusError
from wordlm_core.gpt_trainer import Adam, GPTTrainer, loss_of, mean_loss
from wordlm_core.items import prepare_items
from wordlm_core.models.base import log_softmax
from wordlm_core.training import NonFiniteLossError, TrainConfig

CORPUS = Corpus("tiny", tiny.ITEMS, "MIT", "made up")
STORIES = Corpus("tales", ("The cat ran.", "The dog ran away!", "A cat saw the dog."), "MIT", "x")
SMALL = {"steps": 200, "d_model": 8, "n_head": 2, "context_length": 8, "seed": 3}


def trainer(**changes) -> GPTTrainer:
    return GPTTrainer(TrainConfig.of("microgpt", **{**SMALL, **changes}), prepare_items(CORPUS))


def test_the_loss_falls_and_the_seed_decides_everything():
    first, again, other = trainer(), trainer(), trainer(seed=4)
    assert all(each.run() for each in (first, again, other))
    assert first.losses == again.losses != other.losses
    assert np.mean(first.losses[-20:]) < np.mean(first.losses[:20]) - 0.5
    assert first.checkpoint().sha256 == again.checkpoint().sha256


def test_a_hundred_and_a_hundred_are_two_hundred_bit_by_bit(tmp_path):
    whole = trainer()
    whole.run()
    state = tmp_path / "state.npz"
    half = trainer()
    assert not half.run(should_stop=lambda: half.step == 100, save_to=state)
    resumed = GPTTrainer(half.config, half.data, resume=state)
    assert resumed.step == 100
    reported = []
    resumed.run(report=lambda progress: reported.append(progress.step))
    assert reported[0] == 101
    assert resumed.losses == whole.losses
    assert resumed.checkpoint().sha256 == whole.checkpoint().sha256
    assert resumed.checkpoint().steps == whole.checkpoint().steps


def test_a_state_of_another_training_is_refused(tmp_path):
    state = tmp_path / "state.npz"
    trainer().save(state)
    other = TrainConfig.of("microgpt", **{**SMALL, "lr": 0.5})
    with pytest.raises(CheckpointError, match="other settings"):
        GPTTrainer(other, prepare_items(CORPUS), resume=state)
    arrays, record = checkpoint.read_arrays(state)
    checkpoint.write_arrays(state, {"weights": arrays["weights"]}, record)
    with pytest.raises(CheckpointError, match="is incomplete"):
        GPTTrainer(TrainConfig.of("microgpt", **SMALL), prepare_items(CORPUS), resume=state)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("weights", np.array(0.5)),
        ("mean", np.zeros(3)),
        ("losses", np.array(1.0)),
        ("losses", np.zeros((2, 2))),
        ("losses", np.zeros(201)),
        ("stored__0", None),
    ],
)
def test_a_state_whose_arrays_do_not_fit_is_incomplete(tmp_path, name, array):
    state = tmp_path / "state.npz"
    trainer().save(state)
    arrays, record = checkpoint.read_arrays(state)
    changed = {key: value for key, value in {**arrays, name: array}.items() if value is not None}
    checkpoint.write_arrays(state, changed, record)
    with pytest.raises(CheckpointError, match="is incomplete"):
        GPTTrainer(TrainConfig.of("microgpt", **SMALL), prepare_items(CORPUS), resume=state)


def test_a_checkpoint_holds_the_curve_a_hundred_steps_and_the_list_as_hashes(tmp_path):
    trained = trainer()
    trained.run()
    checkpoint.save(trained.checkpoint(), tmp_path / "run.npz")
    loaded = checkpoint.load(tmp_path / "run.npz")
    assert loaded.metadata["loss_history"] == trained.losses
    assert len(loaded.whole_steps) == 101
    assert (loaded.steps[0], loaded.steps[-1]) == ("step_0", "selected_step_200")
    assert loaded.has_seen("anna") is True
    assert loaded.has_seen("zora") is False
    assert dataclasses.replace(loaded, seen_items=None).has_seen("anna") is None
    text = (tmp_path / "run.npz").read_bytes()
    assert b"anna" not in text
    metadata = loaded.metadata
    assert metadata["corpus"]["items"] == len(tiny.ITEMS)
    assert metadata["metrics"]["train_loss_last_200"] == pytest.approx(np.mean(trained.losses))


def test_a_history_too_large_is_thinned(monkeypatch):
    parameters = sum(array.size for array in trainer().network.weights.values())
    monkeypatch.setattr(training, "MAX_HISTORY_BYTES", 2 * parameters * 30)
    thin = trainer()
    thin.run()
    assert 20 <= len(thin.checkpoint().steps) <= 31


def test_a_learning_rate_far_too_high_stops_with_a_reason_and_keeps_the_curve(tmp_path):
    wild = trainer(lr=1e6)
    with pytest.raises(NonFiniteLossError, match=r"rate 1e\+06 is probably too high"):
        wild.run()
    assert 1 <= wild.step < 200
    kept = wild.checkpoint()
    assert kept.metadata["loss_history"] == wild.losses
    assert kept.selected_step < wild.step
    checkpoint.save(kept, tmp_path / "wild.npz")
    assert checkpoint.load(tmp_path / "wild.npz").selected_step == kept.selected_step


@pytest.mark.parametrize("lr", [0.1, 1.0, 30.0])
def test_a_high_learning_rate_ends_with_finite_numbers_or_a_reason(lr):
    each = trainer(lr=lr)
    try:
        each.run()
    except NonFiniteLossError:
        assert each.step < 200
    assert np.isfinite(each.losses).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 10, "n_head": 4}, "4 heads do not divide a width of 10"),
        ({"steps": 0}, "steps must be 1"),
        ({"lr": 0.0}, "learning rate must be above 0"),
        ({"lr": float("nan")}, "learning rate must be above 0"),
        ({"batch": 8}, "reads one document a step"),
        ({"weight_decay": 0.1}, "without weight decay"),
    ],
)
def test_settings_that_cannot_be(changes, message):
    with pytest.raises(ConfigError, match=message):
        trainer(**changes)


def test_one_character_and_items_longer_than_the_context_train():
    corpus = Corpus("odd", ("a", "b", "abcabcabcabcabc"), "MIT", "x")
    data = prepare_items(corpus, context_length=4)
    assert data.audit["longer_than_context"] == 1
    each = GPTTrainer(TrainConfig.of("microgpt", **{**SMALL, "context_length": 4}), data)
    assert each.run()
    assert len(loss_of(each.network, data.vocabulary.document("abcabcabcabcabc"))) == 4
    assert len(loss_of(each.network, data.vocabulary.document("a"))) == 2


def test_it_reads_words_too():
    data = prepare_items(STORIES, tokens="word", context_length=8, min_freq=1)
    each = GPTTrainer(TrainConfig.of("microgpt", **{**SMALL, "tokens": "word"}), data)
    assert each.run()
    made = each.checkpoint()
    assert made.vocabulary.tokenizer == "word"
    assert np.mean(each.losses[-20:]) < 1


def test_adam_by_hand():
    weights = np.array([1.0, -2.0])
    adam = Adam(weights)
    adam.step(np.array([0.5, -4.0]), 0.1, 1)
    # The first step is lr * sign(gradient), whatever the gradient's size.
    np.testing.assert_allclose(weights, [0.9, -1.9], atol=1e-8)
    adam.step(np.array([0.5, 0.0]), 0.1, 2)
    mean = (0.85 * 0.15 * -4.0) / (1 - 0.85**2)
    square = (0.99 * 0.01 * 16.0) / (1 - 0.99**2)
    assert weights[1] == pytest.approx(-1.9 - 0.1 * mean / (square**0.5 + 1e-8))


def test_evaluation_is_the_mean_over_every_prediction():
    each = trainer()
    each.run()
    made = each.checkpoint()
    loss, targets = mean_loss(made, made.model, CORPUS)
    total = 0.0
    for document in tiny.ITEMS:
        ids = np.array([made.vocabulary.stoi[c] for c in ["<BOS>", *document, "<BOS>"]])
        logs = log_softmax(made.model.trace(ids[:-1]).logits)
        total -= sum(logs[i, target] for i, target in enumerate(ids[1:]))
    assert targets == sum(len(document) + 1 for document in tiny.ITEMS)
    assert loss == pytest.approx(total / targets)
    with pytest.raises(CorpusError, match=r"tales cannot be read by this model: 'T' \(character 1"):
        mean_loss(made, made.model, STORIES)
