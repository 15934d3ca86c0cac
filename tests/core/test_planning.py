"""Plans: facts against independent counts, time against the training itself."""

import json
import math
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests import tiny
from wordlm_core import corpora, trainer, trainers
from wordlm_core.corpora import Corpus, stories
from wordlm_core.errors import ConfigError, CorpusError
from wordlm_core.planning import Facts, Plan, facts, plan
from wordlm_core.text import tokenise
from wordlm_core.training import TrainConfig, evaluated_steps

CORPUS = stories.load(documents=150)
NAMES = Corpus("tiny", tiny.ITEMS, "MIT", "made up")
SMALL = {"steps": 24, "d_model": 8, "hidden": 8, "context_length": 12}
MOMENT = 0.01  # seconds of measuring


def config(family: str, **changes) -> TrainConfig:
    batch = {} if family == "microgpt" else {"batch": 16}
    return TrainConfig.of(family, **{**SMALL, **batch, **changes})


def known(cfg: TrainConfig, corpus: Corpus) -> Facts:
    return facts(cfg, trainers.prepared(cfg, corpus))


# -- facts


@pytest.mark.parametrize("family", ["mlp", "attention", "microgpt"])
def test_sizes_are_those_of_the_model_that_comes_out(family):
    cfg = config(family, steps=1)
    data = trainers.prepared(cfg, CORPUS)
    made = trainers.build(cfg, data)
    made.run()
    weights = made.checkpoint().model.weights
    found = facts(cfg, data)
    assert found.parameters == sum(array.size for array in weights.values())
    assert found.vocab_size == len(made.checkpoint().vocabulary)
    assert found.uniform == pytest.approx(-math.log(1 / found.vocab_size))


def test_the_floor_of_stories_is_the_grammars_on_those_held_out():
    cfg = config("mlp", max_vocab=200)
    data = trainers.prepared(cfg, CORPUS)
    found = facts(cfg, data)
    assert found.floor_of == "grammar"
    read = {tuple(ids[1:-1].tolist()) for ids in data.splits["validation"].documents()}
    encode, itos = data.vocabulary.encode, data.vocabulary.itos
    held_out = [text for text in CORPUS.documents if tuple(encode(tokenise(text))) in read]
    assert len(held_out) == len(read) > 5
    assert found.floor == pytest.approx(stories.mean_entropy(held_out, set(itos)))
    assert found.floor < known(config("mlp"), CORPUS).floor  # more of the words are one <UNK>
    assert 0.4 < known(config("mlp"), CORPUS).floor < 0.6


def test_nobody_knows_the_floor_of_a_text_of_ones_own():
    own = replace(CORPUS, name="tales.txt")
    assert (known(config("mlp"), own).floor, known(config("mlp"), own).floor_of) == (None, "")
    called_the_same = replace(
        CORPUS, documents=tuple(f"my own tale {text}" for text in CORPUS.documents)
    )
    assert known(config("mlp"), called_the_same).floor is None


def test_the_floor_of_a_list_is_knowing_it_by_heart():
    cfg = config("microgpt")
    data = trainers.prepared(cfg, NAMES)
    assert (facts(cfg, data).floor, facts(cfg, data).floor_of) == (data.floor(12), "by heart")


# -- the plan


@pytest.mark.parametrize("family", ["mlp", "attention", "microgpt"])
def test_a_plan_survives_a_border_and_adds_up(family):
    cfg = config(family)
    made = plan(cfg, CORPUS, budget=MOMENT)
    assert Plan.from_json(json.loads(json.dumps(made.to_json(), allow_nan=False))) == made
    assert made.facts == known(cfg, CORPUS)
    assert made.audit == trainers.prepared(cfg, CORPUS).audit
    assert 3 <= made.measured_steps <= cfg.steps
    assert made.seconds == pytest.approx(
        cfg.steps * made.seconds_per_step + made.seconds_evaluating
    )
    assert made.seconds_per_step > 0
    assert (made.seconds_evaluating > 0) == (family != "microgpt")


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("family", ["mlp", "microgpt"])
def test_the_shortest_training_has_a_plan(family, steps):
    assert plan(config(family, steps=steps), CORPUS, budget=MOMENT).measured_steps >= 3


def test_a_larger_budget_measures_more_but_never_more_than_the_training_has():
    cfg = config("microgpt", steps=2000)
    few, more = (plan(cfg, NAMES, budget=budget).measured_steps for budget in (0.0, 0.05))
    assert few == 3
    assert more > 10
    assert plan(config("microgpt", steps=20), NAMES, budget=5.0).measured_steps == 20


@pytest.mark.parametrize("steps", [1, 5, 8, 9, 24, 100])
def test_all_that_is_evaluated_is_in_the_plan_and_nothing_else(steps, monkeypatch):
    """With a clock on which a window takes a millisecond, whatever it is read for."""
    read, measure = [], trainer.mean_loss

    class Clock:
        @staticmethod
        def perf_counter() -> float:
            return sum(read) / 1000

    def counted(model, windows, *, limit=None):
        read.append(min(len(windows), limit or len(windows)))
        return measure(model, windows, limit=limit)

    monkeypatch.setattr(trainer, "mean_loss", counted)
    cfg = config("mlp", steps=steps)
    made = trainers.build(cfg, trainers.prepared(cfg, CORPUS))
    made.run()
    made.checkpoint()
    really = sum(read)
    monkeypatch.setattr(trainer, "time", Clock)
    assert made.seconds_evaluating(0.5) == pytest.approx(really / 1000)


def test_evaluated_steps_by_hand():
    assert evaluated_steps(1) == {1}
    assert evaluated_steps(5) == {1, 2, 3, 4, 5}
    assert evaluated_steps(24) == {1, 3, 6, 9, 12, 15, 18, 21, 24}
    assert evaluated_steps(100) == {1, *range(12, 100, 12), 100}


@pytest.mark.parametrize("family", ["mlp", "attention", "microgpt"])
def test_a_training_after_a_plan_is_the_training_without_one(family):
    cfg = config(family)

    def trained() -> str:
        made = trainers.build(cfg, trainers.prepared(cfg, CORPUS))
        made.run()
        return made.checkpoint().sha256

    without = trained()
    torch.manual_seed(3)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    plan(cfg, CORPUS, budget=MOMENT)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002
    assert trained() == without


@pytest.mark.parametrize("family", ["mlp", "microgpt"])
def test_a_learning_rate_far_too_high_can_be_planned(family):
    assert plan(config(family, lr=1e6, steps=200), CORPUS, budget=0.1).seconds > 0


# -- what is shown of the corpus


def test_the_unknown_share_is_that_of_the_texts():
    cfg = config("mlp", max_vocab=100)
    made = plan(cfg, CORPUS, budget=MOMENT)
    vocabulary = trainers.prepared(cfg, CORPUS).vocabulary
    counts = Counter(token for text in set(CORPUS.documents) for token in tokenise(text))
    unknown = sum(count for token, count in counts.items() if token not in vocabulary.stoi)
    assert made.unknown_share == pytest.approx(unknown / counts.total())
    words = plan(config("microgpt", tokens="word", max_vocab=100), CORPUS, budget=MOMENT)
    assert 0 < words.unknown_share < 0.5
    assert plan(config("microgpt"), CORPUS, budget=MOMENT).unknown_share is None


def test_the_preview_is_what_the_model_reads():
    blank = replace(CORPUS, name="x", documents=("", " \n", *CORPUS.documents))
    made = plan(config("mlp", max_vocab=100), blank, budget=MOMENT)
    assert len(made.preview) == 5
    assert max(map(len, made.preview)) == 40
    assert "<UNK>" in made.preview[0]
    for shown, text in zip(made.preview, CORPUS.documents, strict=False):
        pairs = zip(shown, tokenise(text), strict=False)
        assert all(token in (typed, "<UNK>") for token, typed in pairs)
    letters = plan(config("microgpt"), NAMES, budget=MOMENT).preview
    assert letters == tuple(map(tuple, tiny.ITEMS[:5]))


def test_one_enormous_document_is_not_read_to_its_end_for_a_preview():
    huge = replace(NAMES, documents=("ab" * 500_000, "b"))
    cfg = config("microgpt", steps=1)
    assert [len(shown) for shown in plan(cfg, huge, budget=0.0).preview] == [40, 1]


@pytest.mark.parametrize(
    ("cfg", "corpus", "error", "message"),
    [
        (config("mlp"), NAMES, CorpusError, "no document fell into"),
        (config("mlp"), replace(NAMES, documents=()), CorpusError, "only 0 different"),
        (config("microgpt"), replace(NAMES, documents=(" ",)), CorpusError, "0 items"),
        (config("mlp", context_length=900), CORPUS, CorpusError, "choose a shorter context"),
        (config("attention", n_head=3), CORPUS, ConfigError, "3 heads do not divide"),
        (config("microgpt", batch=4), NAMES, ConfigError, "one document a step"),
        (config("mlp", max_vocab=3), CORPUS, ConfigError, "max-vocab must be"),
        (config("mlp", d_model=10**6), CORPUS, ConfigError, "d model must be"),
    ],
)
def test_what_cannot_be_trained_has_no_plan(cfg, corpus, error, message):
    with pytest.raises(error, match=message) as refused:
        plan(cfg, corpus, budget=MOMENT)
    assert "\n" not in str(refused.value)


# -- against the clock and against the truth: on an idle machine within 10%, so a factor of 2


LONG = {
    "mlp": {"steps": 200},
    "attention": {"steps": 400},
    "multihead": {"steps": 300, "n_head": 4},
    "microgpt": {"steps": 20_000},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LONG)
def test_a_training_takes_about_as_long_as_planned(kind, tmp_path):
    family = "attention" if kind == "multihead" else kind
    cfg = TrainConfig.of(family, **LONG[kind])
    corpus = stories.load(profile="classroom")
    if family == "microgpt":  # short items, such as it is made for
        words = {word for text in corpus.documents for word in tokenise(text) if word.isalpha()}
        corpus = Corpus("words", tuple(sorted(words)), "CC0-1.0", "made here")
    made = plan(cfg, corpus)
    training = trainers.build(cfg, trainers.prepared(cfg, corpus))
    started = time.perf_counter()
    training.run(save_to=tmp_path / "state.npz")
    training.checkpoint()
    took = time.perf_counter() - started
    assert took / 2 < made.seconds < took * 2


@pytest.mark.slow
def test_no_model_goes_below_the_grammar_on_stories_it_has_not_seen():
    corpus = corpora.load("stories", profile="classroom")
    cfg = TrainConfig.of("attention", steps=800, n_head=4)
    data = trainers.prepared(cfg, corpus)
    training = trainers.build(cfg, data)
    training.run()
    metrics = training.checkpoint().metadata["metrics"]
    floor = facts(cfg, data).floor
    assert floor - 0.01 < metrics["validation_loss"] < floor + 1.0
    assert floor - 0.02 < metrics["test_loss"]


@pytest.mark.slow
def test_a_training_loss_does_go_below_it_where_stories_are_learned_by_heart():
    cfg = TrainConfig.of("mlp", steps=400, context_length=16, lr=3e-3, batch=256)
    data = trainers.prepared(cfg, CORPUS)
    training = trainers.build(cfg, data)
    training.run()
    made = training.checkpoint().metadata
    assert np.mean(made["loss_history"][-20:]) < facts(cfg, data).floor
    assert made["metrics"]["validation_loss"] > facts(cfg, data).floor
