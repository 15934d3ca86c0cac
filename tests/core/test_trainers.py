"""What every training has in common: settings as JSON, the right trainer, states that are kept."""

import argparse
import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from tests import tiny
from wordlm_core import checkpoint, commands, models, options, trainers, training
from wordlm_core.__main__ import main
from wordlm_core.corpora import Corpus, stories
from wordlm_core.errors import ConfigError, CorpusError
from wordlm_core.gpt_trainer import GPTTrainer
from wordlm_core.items import Items
from wordlm_core.trainer import Trainer
from wordlm_core.training import Progress, TrainConfig, Training, drive, resume_path
from wordlm_core.windows import Dataset

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Corpus("tales", stories.load(documents=120).documents, "CC0-1.0", "made here")
NAMES = Corpus("tiny", tiny.ITEMS, "MIT", "made up")
SMALL = {"steps": 24, "d_model": 8, "hidden": 8, "context_length": 12}


def config(family: str, **changes) -> TrainConfig:
    batch = {} if family == "microgpt" else {"batch": 16}
    return TrainConfig.of(family, **{**SMALL, **batch, **changes})


# -- the trainer that fits


@pytest.mark.parametrize("family", list(models.families()))
def test_a_family_says_what_it_reads_and_gets_its_trainer(family):
    data = trainers.prepared(config(family), CORPUS)
    kinds = {"windows": (Dataset, Trainer), "items": (Items, GPTTrainer)}
    reads, trains = kinds[models.family(family).READS]
    made = trainers.build(config(family), data)
    assert isinstance(data, reads)
    assert isinstance(made, trains)
    assert isinstance(made, Training)
    assert (made.step, made.config) == (0, config(family))


def test_the_settings_of_reading_are_passed_on():
    words = config("microgpt", tokens="word", max_vocab=30)
    assert len(trainers.prepared(words, CORPUS).vocabulary) == 30
    data = trainers.prepared(config("mlp", max_vocab=50), CORPUS)
    assert len(data.vocabulary) == 50
    assert data.splits["train"].context_length == 12
    with pytest.raises(CorpusError, match="no document fell into"):
        trainers.prepared(config("mlp"), NAMES)


@pytest.mark.parametrize("family", ["mlp", "microgpt"])
def test_building_leaves_torchs_own_stream_alone(family):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    made = trainers.build(config(family), trainers.prepared(config(family), CORPUS))
    made.one_step()
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("family", ["mlp", "microgpt"])
def test_a_step_alone_is_the_step_of_a_training(family):
    data = trainers.prepared(config(family), CORPUS)
    alone, whole = (trainers.build(config(family), data) for _ in range(2))
    losses = [alone.one_step() for _ in range(3)]
    assert losses == [whole.advance().train_loss for _ in range(3)]
    assert alone.step == whole.step == 3


# -- settings as JSON


ODD = [
    TrainConfig(),
    TrainConfig.of("mlp", seed=0, lr=1e-5),
    TrainConfig.of("microgpt"),
    TrainConfig.of("microgpt", n_layer=3, positions=False, tokens="word", hidden=7),
    TrainConfig(hidden=None, bfloat16_head=True, weight_decay=0.0),
]


@pytest.mark.parametrize("each", ODD, ids=str)
def test_settings_survive_a_border(each):
    assert TrainConfig.from_json(json.loads(json.dumps(each.to_json()))) == each


def test_what_is_left_out_is_the_familys_own():
    for family in models.families():
        assert TrainConfig.from_json({"family": family}) == TrainConfig.of(family)
    assert TrainConfig.from_json({"family": "mlp", "lr": 1}).lr == 1.0
    assert type(TrainConfig.from_json({"family": "mlp", "lr": 1}).lr) is float


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (None, "a record that names the family"),
        ([], "a record that names the family"),
        ({}, "a record that names the family"),
        ({"family": 3}, "a record that names the family"),
        ({"family": "rnn"}, "unknown family 'rnn'"),
        ({"family": "x" * 10_000}, "unknown family"),
        ({"family": "mlp", "rate": 0.1}, "there is no setting 'rate'"),
        ({"family": "mlp", "to_json": 1}, "there is no setting 'to_json'"),
        ({"family": "mlp", 3: 1}, "there is no setting '3'"),
        ({"family": "mlp", "steps": "10"}, "'steps' cannot be '10'"),
        ({"family": "mlp", "steps": 10.0}, "'steps' cannot be 10.0"),
        ({"family": "mlp", "steps": True}, "'steps' cannot be True"),
        ({"family": "mlp", "steps": None}, "'steps' cannot be NoneType"),
        ({"family": "mlp", "steps": [1] * 1000}, "'steps' cannot be list"),
        ({"family": "mlp", "steps": 10**5000}, "'steps' is too large"),
        ({"family": "mlp", "lr": 10**400}, "'lr' cannot be int"),
        ({"family": "mlp", "lr": True}, "'lr' cannot be True"),
        ({"family": "mlp", "lr": "fast"}, "'lr' cannot be 'fast'"),
        ({"family": "mlp", "lr": math.nan}, "learning rate must be above 0"),
        ({"family": "mlp", "lr": math.inf}, "learning rate must be above 0"),
        ({"family": "mlp", "weight_decay": math.nan}, "weight decay must be 0 or more"),
        ({"family": "mlp", "hidden": False}, "'hidden' cannot be False"),
        ({"family": "mlp", "positions": 1}, "'positions' cannot be int"),
        ({"family": "mlp", "steps": 0}, "steps must be 1"),
        ({"family": "mlp", "seed": -1}, "seed must be 0"),
        ({"family": "mlp", "n_layer": 2}, "word models read words"),
    ],
)
def test_settings_that_cannot_be_are_one_sentence(record, message):
    with pytest.raises(ConfigError, match=message) as refused:
        TrainConfig.from_json(record)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200


def test_any_command_can_take_the_options_of_a_training():
    parser = argparse.ArgumentParser()
    for part in (options.corpus, options.sizes, options.one_training):
        part(parser)
    line = "--family attention --corpus stories --profile smoke --heads 4 --lr 0.01 --no-positions"
    made = commands.one_config(parser.parse_args(line.split()))
    wanted = TrainConfig.of("attention", n_head=4, lr=0.01, positions=False, max_vocab=1500)
    assert made == wanted


# -- what is kept while it trains


@pytest.mark.parametrize("family", ["mlp", "microgpt"])
def test_it_is_told_after_every_writing_of_the_state(family, tmp_path):
    made = trainers.build(config(family), trainers.prepared(config(family), CORPUS))
    state, found = tmp_path / "state.npz", []

    def kept() -> None:
        _, record = checkpoint.read_arrays(state)
        found.append(made.step)
        assert record["owner"]["config"] == made.config.to_json()
        assert made.checkpoint(test=False).metadata["training"]["steps_done"] == made.step

    assert not made.run(should_stop=lambda: made.step == 10, save_to=state, kept=kept)
    evaluated = [1, 3, 6, 9] if family == "mlp" else []
    assert found == [*evaluated, 10]
    assert not made.run(should_stop=lambda: True, kept=kept)  # nothing is written, nothing told
    assert found == [*evaluated, 10]


class Clock:
    """Half a second passes at every look."""

    now = 0.0

    def monotonic(self) -> float:
        self.now += 0.5
        return self.now


class Steps:
    """A training of nothing but steps."""

    config = dataclasses.replace(TrainConfig.of("microgpt"), steps=300)
    step = 0

    def advance(self) -> Progress:
        self.step += 1
        return Progress(self.step, 300, 1.0, None, 0, 0.0)

    def save(self, path: Path) -> None:
        pass

    def one_step(self) -> float:
        raise NotImplementedError

    seconds_evaluating = run = checkpoint = one_step


def test_the_first_states_are_kept_soon_and_the_later_ones_every_half_minute(monkeypatch, tmp_path):
    monkeypatch.setattr(training, "time", Clock())
    made, kept = Steps(), []
    drive(made, lambda _: None, lambda: False, tmp_path / "s", lambda: kept.append(made.step))
    pauses = np.diff([0, *kept])
    assert pauses[0] <= 3
    assert all(now <= 2 * before + 2 for before, now in pairwise(pauses))
    assert max(pauses) <= 61
    assert list(pauses[-2:]) == [61, 61]


# -- killed, and taken up again


KILLED = {
    "mlp": "--family mlp --width 16 --hidden 64 --context 12 --batch 256",
    "attention": "--family attention --width 16 --hidden 64 --context 12 --batch 256",
    "multihead": "--family attention --heads 4 --width 16 --hidden 64 --context 12 --batch 256",
    "microgpt": "--family microgpt --width 64 --layers 6 --context 64",
}


def steps_kept(state: Path) -> int:
    if not state.exists():
        return 0
    arrays, record = checkpoint.read_arrays(state)
    return len(arrays["losses"]) if "losses" in arrays else record["step"]


# One of each trainer always; the other kinds with the chaos tests.
ALWAYS = ("mlp", "microgpt")


@pytest.mark.parametrize(
    "kind",
    [k if k in ALWAYS else pytest.param(k, marks=pytest.mark.chaos) for k in KILLED],
)
def test_a_killed_training_goes_on_to_the_weights_of_one_go(kind, tmp_path):
    corpus = tmp_path / "tales.jsonl"
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in CORPUS.documents))
    train = ["train", *KILLED[kind].split(), "--corpus", str(corpus), "--steps", "200", "--out"]
    killed, whole = tmp_path / "killed.npz", tmp_path / "whole.npz"
    state = resume_path(killed)
    command = [sys.executable, "-m", "wordlm_core", *train, str(killed)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as run:
        while steps_kept(state) < 25:
            assert run.poll() is None, "it ended before it could be killed"
            time.sleep(0.005)
        run.kill()
    assert run.returncode == -signal.SIGKILL
    assert not killed.exists()
    assert 25 <= steps_kept(state) < 200
    assert main([*train, str(killed), "--resume"]) == 0
    assert main([*train, str(whole)]) == 0
    ours, wanted = checkpoint.load(killed), checkpoint.load(whole)
    assert ours.sha256 == wanted.sha256
    assert ours.metadata["loss_history"] == wanted.metadata["loss_history"]
    assert ours.steps == wanted.steps
    assert [path.name for path in tmp_path.glob("*.resume*")] == []
