"""Quick experiments: the settings as JSON, their limits, and what a run gives back."""

import json
import math
import time
from dataclasses import replace

import numpy as np
import pytest

from wordlm_core import experiment
from wordlm_core.corpora import Corpus
from wordlm_core.errors import ConfigError, CorpusError
from wordlm_core.experiment import MAX_VOCAB, OWN, PRESETS, SAMPLES, SEEDS, Draw, Experiment, Result
from wordlm_core.gpt_trainer import MEAN_OVER, GPTTrainer
from wordlm_core.items import prepare_items
from wordlm_core.lens import sampling
from wordlm_core.models.microgpt import MicroGPTModel
from wordlm_core.training import TrainConfig

NAMES = (
    *("oranel", "tivo", "masu", "belinara", "kex", "junoth"),
    *("arvela", "pilo", "sumari", "denk", "oluvia", "tamberlin"),
)
LIST = Corpus("own list", NAMES, "unknown", "invented")
SMALL = Experiment(data=OWN, steps=60, d_model=8, n_head=2, context=12)
EACH_PRESET = pytest.mark.parametrize("preset", PRESETS, ids=lambda p: p.experiment.label)


def through_json(record):
    return json.loads(json.dumps(record, allow_nan=False))


# -- settings


@EACH_PRESET
def test_a_preset_asks_a_question_and_survives_json(preset):
    assert preset.question.endswith("?")
    read = Experiment.from_json(through_json(preset.experiment.to_json()))
    assert read == preset.experiment
    assert hash(read) == hash(preset.experiment)


def test_what_is_left_out_is_at_its_default():
    assert Experiment.from_json({}) == Experiment()
    assert Experiment.from_json({"lr": 1}) == Experiment(lr=1.0)


@pytest.mark.parametrize(
    "record",
    [
        *(None, [], "steps", {"stepz": 3}, {"steps": 1.5}, {"steps": True}, {"steps": "10"}),
        *({"positions": 1}, {"lr": "0.01"}, {"label": None}, {"draws": 3}, {"draws": [1, 2]}),
        *({"draws": [[1.0]]}, {"draws": [[1.0, 2.5]]}, {"draws": [[True, 1]]}, {"draws": []}),
        *({"__class__": "x"}, {"__doc__": "x"}, {"to_json": 1}, {"training": None}),
        *({"lr": 10**400}, {"draws": [[10**400, None]]}),
    ],
    ids=lambda record: str(record)[:40],
)
def test_a_record_of_another_shape_is_refused(record):
    with pytest.raises(ConfigError):
        Experiment.from_json(record)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"steps": 0}, "steps must be 1 to 20,000"),
        ({"steps": 20_001}, "steps must be 1 to 20,000"),
        ({"d_model": 65}, "width must be 1 to 64"),
        ({"n_layer": 5}, "layers must be 1 to 4"),
        ({"n_layer": 0}, "layers must be 1 to 4"),
        ({"n_head": 0}, "heads must be"),
        ({"n_head": 5}, "5 heads do not divide a width of 16"),
        ({"context": 65}, "context must be 1 to 64"),
        ({"lr": 0.0}, "learning rate must be above 0"),
        ({"lr": -1.0}, "learning rate must be above 0"),
        ({"lr": math.nan}, "learning rate must be above 0"),
        ({"lr": 1e7}, "at most 1,000,000"),
        ({"seed": -1}, "seed must be"),
        ({"data": "/etc/passwd"}, "the data are names, words, stories, own"),
        ({"draws": (Draw(-1.0),)}, "temperature must be 0 to 10"),
        ({"draws": (Draw(math.nan),)}, "temperature must be 0 to 10"),
        ({"draws": (Draw(1.0, 0),)}, "top-k must be 1 or more"),
        ({"draws": (Draw(),) * 7}, "ways to sample must be 1 to 6"),
        ({"label": "x" * 81}, "label has at most 80"),
    ],
    ids=str,
)
def test_a_setting_out_of_range_is_refused_in_one_sentence(setting, told):
    with pytest.raises(ConfigError, match=told):
        Experiment(**setting)


def test_one_setting_is_compared_on_the_same_list_and_other_data_with_the_names():
    assert Experiment(data="words", lr=0.1, seed=3).baseline() == Experiment(
        "baseline", "words", seed=3
    )
    assert Experiment(data="words", seed=3).baseline() == Experiment("baseline", seed=3)
    assert Experiment(draws=(Draw(2.0), Draw(1.0, 3))).baseline() == Experiment("baseline")


@EACH_PRESET
def test_a_preset_changes_one_setting(preset):
    tried, baseline = preset.experiment, preset.experiment.baseline()
    fields = [f for f in baseline.__dataclass_fields__ if f != "label"]
    assert len([f for f in fields if getattr(tried, f) != getattr(baseline, f)]) == 1


# -- parameters and time


def test_the_default_has_4192_parameters_by_hand():
    by_hand = 27 * 16 + 16 * 16 + 27 * 16 + 4 * 16 * 16 + 2 * 64 * 16
    assert experiment.estimate(Experiment(), 27)[0] == by_hand == 4192


@pytest.mark.parametrize(
    ("setting", "count"),
    [({"n_layer": 2}, 7264), ({"d_model": 32}, 14528), ({"positions": False}, 4192)],
    ids=str,
)
def test_parameters_of_the_presets_by_hand(setting, count):
    assert experiment.estimate(Experiment(**setting), 27)[0] == count


def test_what_takes_too_long_is_refused_with_its_size():
    large = Experiment(steps=20_000, d_model=64, n_layer=4, context=64)
    with pytest.raises(ConfigError, match=r"20,000 steps with 3 seeds take about \d+ seconds"):
        experiment.run(large, LIST)
    experiment.require_quick(Experiment(steps=20_000), 27)


def test_more_different_characters_than_there_is_memory_for_are_refused_beforehand():
    experiment.require_quick(Experiment(d_model=64, steps=100), MAX_VOCAB)
    with pytest.raises(ConfigError, match=r"10,000 different characters, .* room for 9,999"):
        experiment.require_quick(Experiment(d_model=4, steps=1), MAX_VOCAB + 1)


def test_the_baseline_of_the_largest_vocabulary_is_a_quick_run_too():
    experiment.require_quick(Experiment(data=OWN).baseline(), MAX_VOCAB)


@pytest.mark.parametrize(
    "settings",
    [{"d_model": 32, "context": 1}, {"d_model": 8, "draws": (Draw(1.0), Draw(2.0))}],
    ids=["mostly first weights", "mostly samples"],
)
def test_the_estimate_counts_what_is_not_training(settings):
    characters = "".join(map(chr, range(0x4E00, 0x4E00 + MAX_VOCAB - 1)))
    own = experiment.own_list([characters[i : i + 15] for i in range(0, len(characters), 15)])
    tried = Experiment(data=OWN, steps=1, **settings)
    started = time.process_time()
    experiment.run(tried, own)
    assert time.process_time() - started < 2 * experiment.estimate(tried, MAX_VOCAB)[1] + 0.2


# -- a run


def test_a_run_is_the_trainer_s_training_and_the_lens_s_samples():
    reports = []
    result = experiment.run(SMALL, LIST, reports.append)
    config = TrainConfig.of(
        "microgpt", steps=60, d_model=8, n_head=2, context_length=12, n_layer=1, seed=42
    )
    items = prepare_items(LIST, context_length=12)
    trainer = GPTTrainer(config, items)
    trainer.run()
    assert result.losses.tolist() == trainer.losses
    assert result.seed_losses[0] == np.mean(trainer.losses)
    assert [report.step for report in reports] == list(range(1, 60 * SEEDS + 1))
    assert {report.steps for report in reports} == {60 * SEEDS}
    drawn = sampling.generate(
        MicroGPTModel(trainer.model_config, trainer.network.weights),
        items.vocabulary,
        None,
        temperature=0.5,
        seed=0,
        max_tokens=12,
        samples=SAMPLES,
    )
    assert [each.text for each in result.samples[0]] == [each.text for each in drawn]
    assert result.parameters == sum(w.size for w in trainer.network.weights.values())
    assert (result.vocab_size, result.stopped) == (len(items.vocabulary), None)
    assert result.seconds > 0


def test_each_seed_is_a_training_of_its_own_and_the_loss_is_their_mean():
    result = experiment.run(SMALL, LIST)
    alone = [experiment.run(replace(SMALL, seed=seed), LIST) for seed in (42, 43, 44)]
    assert SMALL.seeds == (42, 43, 44)
    assert result.seed_losses == tuple(each.seed_losses[0] for each in alone)
    assert len(set(result.seed_losses)) == 3
    assert result.loss == pytest.approx(sum(result.seed_losses) / 3)


def test_the_loss_of_a_seed_is_the_mean_of_its_last_200():
    result = experiment.run(Experiment(data=OWN, steps=250, d_model=4, n_head=1), LIST)
    assert result.seed_losses[0] == pytest.approx(result.losses[50:].mean())
    assert MEAN_OVER == 200


def test_the_average_is_of_the_last_50_or_of_all_so_far():
    average = experiment.run(SMALL, LIST).average
    losses = experiment.run(SMALL, LIST).losses
    assert average[0] == losses[0]
    assert average[20] == pytest.approx(losses[:21].mean())
    assert average[59] == pytest.approx(losses[10:].mean())


def test_new_and_seen_are_told_apart():
    """One item trained by heart is drawn again; what is drawn at T 10 is hardly it."""
    tried = Experiment(data=OWN, steps=300, d_model=8, n_head=1, draws=(Draw(0.0), Draw(10.0)))
    result = experiment.run(tried, experiment.own_list(["abc"]))
    assert set(result.samples[0]) == {("abc", True)}
    assert {each.text == "abc" for each in result.samples[1]} >= {False}
    assert all(each.seen == (each.text == "abc") for each in result.samples[1])


def test_all_draws_come_from_one_training():
    many = Experiment(**(vars(SMALL) | {"draws": (Draw(0.1), Draw(1.0), Draw(1.0, 1))}))
    result, one = experiment.run(many, LIST), experiment.run(SMALL, LIST)
    assert result.losses.tolist() == one.losses.tolist()
    assert [len(drawn) for drawn in result.samples] == [SAMPLES] * 3
    assert len({each.text for each in result.samples[2]}) == 1  # top-k 1 leaves no choice
    assert len({each.text for each in result.samples[1]}) > 1


def test_a_result_survives_json():
    result = experiment.run(SMALL, LIST)
    read = Result.from_json(through_json(result.to_json()))
    assert read.losses.tolist() == result.losses.tolist()
    assert not read.losses.flags.writeable
    for name in ("parameters", "vocab_size", "loss", "seed_losses", "seconds", "samples"):
        assert getattr(read, name) == getattr(result, name)
    assert (read.stopped, read.audit) == (result.stopped, result.audit)


@pytest.mark.parametrize("rate", [1e6, 1e4])
def test_a_training_that_diverges_says_why_and_keeps_its_curve(rate):
    result = experiment.run(Experiment(data=OWN, lr=rate), LIST)
    assert "with seed 42 " in result.stopped
    assert "learning rate" in result.stopped
    assert (result.loss, result.finals, result.seed_losses) == (None, None, (None,))
    assert result.samples == ()
    assert 1 <= len(result.losses) < 1000
    read = Result.from_json(through_json(result.to_json()))
    assert read.losses.tolist() == result.losses.tolist()


def test_a_training_that_diverges_with_a_later_seed_keeps_what_the_first_made():
    """At the edge of what can be stored it depends on the seed: the first such pair is taken."""
    edges = (replace(SMALL, lr=4773.0, seed=seed) for seed in range(4, 40))
    results = ((edge, experiment.run(edge, LIST)) for edge in edges)
    edge, result = next(pair for pair in results if pair[1].seed_losses[1:] == (None,))
    assert f"with seed {edge.seed + 1} " in result.stopped
    assert result.seed_losses[0] == np.mean(result.losses)
    assert (result.loss, result.finals) == (None, None)
    assert len(result.losses) == SMALL.steps
    assert len(result.samples[0]) == SAMPLES


# -- lists


def test_the_audit_counts_repeats_and_what_is_longer_than_the_context():
    own = experiment.own_list(["ann", "bo", "ann", "x" * 12, "y" * 11])
    found = experiment.look(own, 12)
    assert found["vocab_size"] == len(set("annboxy")) + 1
    assert found["audit"]["repeats"] == 1
    assert found["audit"]["longer_than_context"] == 1
    result = experiment.run(Experiment(data=OWN, steps=5, context=12), own)
    assert (result.audit, result.vocab_size) == (found["audit"], found["vocab_size"])


@pytest.mark.parametrize(
    "items",
    [["a"], ["a", "b", "c"], ["äöü ß", "名前", "😀"], ["<b>", "=1+1", "a b"], ["z" * 300] * 3],
    ids=["one character", "one character each", "other scripts", "signs", "longer than context"],
)
def test_any_list_of_items_can_be_trained_on(items):
    result = experiment.run(Experiment(data=OWN, steps=30), experiment.own_list(items))
    assert len(result.losses) == 30
    assert result.vocab_size == len(set("".join(items))) + 1
    assert math.isfinite(result.loss)


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ([], "the list is empty"),
        (["a"] * 200_001, "200,001 items and 200,001 characters"),
        (["x" * 900] * 2_300, "2,300 items and 2,070,000 characters"),
        (["ann", "x" * 1_001], "item 2 has 1,001 characters"),
    ],
    ids=["empty", "too many", "too much", "too long"],
)
def test_a_list_that_cannot_be_used_is_refused(items, told):
    with pytest.raises(CorpusError, match=told):
        experiment.own_list(items)


def test_200_000_items_are_trained_on():
    items = [f"{NAMES[i % 12]}{i}" for i in range(200_000)]
    items = [item[:10] for item in items]
    result = experiment.run(Experiment(data=OWN, steps=20), experiment.own_list(items))
    assert result.audit["items"] == 200_000
    assert len(result.losses) == 20


def test_named_data_come_from_the_corpus_and_never_from_a_path():
    assert experiment.corpus_of(Experiment(), ["mine"]).name == "names"
    assert experiment.corpus_of(SMALL, ["mine"]).documents == ("mine",)
    with pytest.raises(CorpusError, match="the list is empty"):
        experiment.corpus_of(SMALL, None)
