"""Interventions at one position: each against a second walk of a changed text or model."""

from dataclasses import replace

import numpy as np
import pytest

from tests import tiny
from wordlm_core.errors import CheckpointError, ConfigError, TextError
from wordlm_core.lens import position
from wordlm_core.lens import position_interventions as interventions
from wordlm_core.models.microgpt import MicroGPTModel

SIZES = {
    "one layer": {},
    "two layers": {"n_layer": 2},
    "no positions": {"positions": False},
    "one head": {"n_head": 1},
}


def opened(size: str = "one layer"):
    """Return a checkpoint, and a text as it reads it."""
    loaded = tiny.char_checkpoint(**SIZES[size])
    return loaded, loaded.vocabulary.probe("anna", loaded.model.config.context_length)


def walked(model: MicroGPTModel, probe, p: int) -> position.Walk:
    return position.walk(model, probe, p, end_id=tiny.LETTERS.end_id)


@pytest.mark.parametrize("case", ["mlp", "attention", "multihead"])
def test_other_families_are_refused(case):
    loaded = tiny.make_checkpoint(case)
    probe = loaded.vocabulary.probe("the cat", tiny.CONTEXT)
    for refused in (
        lambda: interventions.swap(loaded.model, probe, 1, place=0, replacement=4),
        lambda: interventions.without_wo(loaded.model, probe, 1),
    ):
        with pytest.raises(CheckpointError, match="choose a microgpt checkpoint"):
            refused()


@pytest.mark.parametrize("size", SIZES)
def test_a_later_token_changes_nothing_at_all_and_an_earlier_one_does(size):
    loaded, probe = opened(size)
    for p in range(len(probe.ids)):
        for place in range(len(probe.ids)):
            new = (int(probe.ids[place]) + 1) % len(loaded.vocabulary)
            found = interventions.swap(loaded.model, probe, p, place=place, replacement=new)
            if place > p:
                assert set(found.changes) == {0.0}
                assert found.kl == 0
                assert np.array_equal(found.probs_before, found.probs_after)
            else:
                assert max(found.changes) > 0
                assert found.kl > 0
                embedding_moved = found.changes[0] > 0
                assert embedding_moved == (place == p)


def test_a_swap_is_the_difference_of_two_walks():
    loaded, probe = opened()
    found = interventions.swap(loaded.model, probe, 3, place=1, replacement=2)
    other = probe.ids.copy()
    other[1] = 2
    before = walked(loaded.model, probe, 3)
    after = walked(loaded.model, replace(probe, ids=other), 3)
    names = [step.name for step in before.steps if step.name != "loss"]
    assert len(found.changes) == len(names)
    expected = np.abs(before.find("scores", 0).values - after.find("scores", 0).values).max()
    assert found.changes[names.index("scores")] == expected
    p, q = before.probs, after.probs
    assert found.kl == pytest.approx(float((p * np.log(p / q)).sum()), abs=1e-12)
    assert (found.before, found.after) == (probe.ids[1], 2)


def test_a_token_in_place_of_itself_changes_nothing():
    loaded, probe = opened()
    same = interventions.swap(loaded.model, probe, 3, place=1, replacement=int(probe.ids[1]))
    assert set(same.changes) == {0.0}
    assert same.kl == 0


def test_a_swap_that_cannot_be_is_refused():
    loaded, probe = opened()
    with pytest.raises(ConfigError, match="no token 99"):
        interventions.swap(loaded.model, probe, 1, place=1, replacement=99)
    with pytest.raises(TextError, match="no position 50"):
        interventions.swap(loaded.model, probe, 1, place=50, replacement=1)


@pytest.mark.parametrize("size", SIZES)
def test_without_wo_is_a_model_whose_wo_is_the_identity(size):
    loaded, probe = opened(size)
    model = loaded.model
    for layer in range(model.n_layer):
        name = f"layer{layer}.attn_wo"
        other = MicroGPTModel(model.config, {**model.weights, name: np.eye(model.config.d_model)})
        for p in range(len(probe.ids)):
            found = interventions.without_wo(model, probe, p, layer=layer)
            walk = walked(model, probe, p)
            assert found.mixed.sum(axis=0) == pytest.approx(walk.find("W_O", layer).values)
            side_by_side = walk.find("heads side by side", layer).values
            assert np.array_equal(found.apart.sum(axis=0), side_by_side)
            assert np.count_nonzero(found.apart) <= model.config.d_model
            expected = walked(other, probe, p).probs
            assert found.probs_identity == pytest.approx(expected, abs=1e-12)
            assert found.probs == pytest.approx(walk.probs, abs=1e-12)
            kl = float((found.probs * np.log(found.probs / expected)).sum())
            assert found.kl == pytest.approx(kl, abs=1e-10)


def test_a_wo_that_is_the_identity_writes_nowhere_else():
    loaded, probe = opened()
    model = loaded.model
    same = MicroGPTModel(
        model.config, {**model.weights, "layer0.attn_wo": np.eye(model.config.d_model)}
    )
    found = interventions.without_wo(same, probe, 2)
    assert found.elsewhere == 0
    assert found.kl == 0
    assert 0 < interventions.without_wo(model, probe, 2).elsewhere < 1
    silent = MicroGPTModel(
        model.config, {**model.weights, "layer0.attn_wo": np.zeros((tiny.WIDTH, tiny.WIDTH))}
    )
    assert interventions.without_wo(silent, probe, 2).elsewhere is None
    with pytest.raises(ConfigError, match="no layer 1"):
        interventions.without_wo(model, probe, 2, layer=1)
