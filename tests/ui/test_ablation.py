"""Ablation beside a short window, a model without positions and a survey of many windows."""

import dataclasses
import re
import shutil

import numpy as np
import pytest

from app import figures
from tests import tiny
from tests.ui.conftest import CONTEXT, VOCABULARY, make
from tests.ui.test_pages import button_group, html, open_page, specs
from wordlm_core import checkpoint, models
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.lens import ablation, survey

TEXT = "the cat saw the dog and the bird"
SHORT = 4


def odd_one(case: str, name: str, **changes) -> Checkpoint:
    """Return a checkpoint that differs from the others of the folder."""
    sizes = {"vocab_size": len(VOCABULARY), "context_length": CONTEXT} | changes
    config = tiny.config_of(case, **sizes)
    stored = {"selected_step_10": tiny.weights_of(config.shapes, 7)}
    model = models.family(tiny.CASES[case][0]).build(config, stored["selected_step_10"])
    made = Checkpoint.from_training(model, VOCABULARY, {"seed": 11}, stored)
    return dataclasses.replace(made, name=name)


@pytest.fixture
def complete(folder, open_folder, tmp_path):
    """The tiny checkpoints, one of a short window, one without positions, and a survey."""
    shutil.copytree(folder, tmp_path / "artifacts")
    for case, name, changes in (
        ("mlp", "short", {"context_length": SHORT}),
        ("no_positions", "blind", {}),
    ):
        checkpoint.save(odd_one(case, name, **changes), tmp_path / f"artifacts/{name}.npz")
    surveyed = checkpoint.load(tmp_path / "artifacts/attention_seed11.npz")
    rng = np.random.default_rng(0)
    kl, attention = rng.random((20, CONTEXT)), rng.random((20, 1, CONTEXT))
    taken = survey.Survey(
        kl.astype(np.float32), attention.astype(np.float32), "attention", surveyed.sha256
    )
    survey.save({"attention_seed11": taken}, {"name": "tiny"}, tmp_path / "artifacts/survey.npz")
    return open_folder(tmp_path / "artifacts")


def ablation_page(**parameters: str):
    return open_page("ablation", **{"checkpoint": "attention_seed11", "text": TEXT} | parameters)


def plain(at) -> str:
    return re.sub(r"<[^>]+>", "", html(at))


@pytest.mark.parametrize("choice", range(3))
def test_what_a_short_window_does_not_hold_reads_0_and_is_labelled(complete, choice):
    at = ablation_page()
    button_group(at, "by", choice)
    assert [e.message for e in at.exception] == []
    chart = specs(at)[0]
    notes = [note["text"] for note in chart["layout"]["annotations"]]
    assert sum("cannot see" in note for note in notes) == 1
    assert sum(f"MLP, last {SHORT}" in note for note in notes) == 1
    hits, bars, curtain = chart["data"][-3:]
    positions = len(VOCABULARY.probe(TEXT, CONTEXT).tokens)
    outside = list(range(1, positions - SHORT))
    assert curtain["y"] == outside
    assert curtain["marker"]["pattern"]["shape"]
    assert bars["y"] == hits["y"] == list(range(1, positions))
    assert all(x == 0 for x in bars["x"][: len(outside)])
    assert bars["text"][0] == "0"
    assert any(x > 0 for x in bars["x"][len(outside) :])


def test_a_short_text_hides_nothing(complete):
    chart = specs(ablation_page(text="the cat"))[0]
    assert not [n for n in chart["layout"]["annotations"] if "cannot see" in n["text"]]


def test_the_short_model_itself_can_be_opened(complete):
    at = ablation_page(checkpoint="short")
    assert [e.message for e in at.exception] == []
    assert "reads 4 tokens at once" in html(at)


def test_other_pages_do_not_take_the_odd_ones_for_their_kind(complete):
    at = open_page("", text=TEXT)
    titles = [note["text"] for note in specs(at)[0]["layout"]["annotations"]]
    assert len(titles) == 3


def test_without_positions_a_shuffle_changes_nothing_and_the_reason_is_given(complete):
    at = ablation_page()
    row = re.search(r"<td[^>]*>2 heads, no positions</td>(.*?)</tr>", html(at))
    assert row
    assert row[1].endswith("<td>0</td>")
    assert "a sum has no order" in plain(at)
    assert ">one head</td>" in html(at)


def test_without_such_a_model_there_is_a_sentence(artifacts):
    text = plain(ablation_page())
    assert "no model without positions" in text
    assert "No survey of these weights" in text


def test_the_survey_marks_this_sentence_among_many(complete):
    at = ablation_page()
    spec = specs(at)[-1]
    assert sum(spec["data"][0]["y"]) == 20
    loaded = make("attention")
    result = ablation.ablate(loaded.model, VOCABULARY, VOCABULARY.probe(TEXT, CONTEXT))
    assert result.rank_correlation is not None
    assert spec["layout"]["shapes"][1]["x0"] == pytest.approx(result.rank_correlation)
    assert "In 20 held-out windows" in plain(at)
    assert f"This sentence: {result.rank_correlation:.2f}" in plain(at)


def test_the_histogram_draws_the_agreement():
    rng = np.random.default_rng(1)
    taken = survey.Survey(rng.random((30, 9)), rng.random((30, 2, 9)), "multihead", "")
    of = survey.agreement(taken)
    spec = figures.survey_histogram(of, None, "multihead").spec
    counts, _ = np.histogram(of.correlations, bins=40, range=(-1, 1))
    np.testing.assert_array_equal(spec["data"][0]["y"], counts)
    assert [shape["x0"] for shape in spec["layout"]["shapes"]] == [of.median]
