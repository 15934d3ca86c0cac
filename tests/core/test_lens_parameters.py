"""Parameters: the inventory adds up, and movement is measured as it is defined."""

import dataclasses
import math

import numpy as np
import pytest

from tests import tiny
from wordlm_core import answers
from wordlm_core.errors import CheckpointError
from wordlm_core.lens import parameters
from wordlm_core.models import microgpt


def model_of(**sizes):
    config = microgpt.MicroGPTConfig(
        **{"vocab_size": 27, "context_length": 16, "d_model": 16, "hidden": 64, "n_head": 4}
        | {"n_layer": 1}
        | sizes
    )
    return microgpt.build(config, {n: np.zeros(shape) for n, shape in config.shapes.items()})


def test_the_default_adds_up_to_4192():
    rows = parameters.inventory(model_of())
    assert [(row.name.split(".")[-1], row.shape, row.count) for row in rows] == [
        ("wte", (27, 16), 432),
        ("wpe", (16, 16), 256),
        ("lm_head", (27, 16), 432),
        ("attn_wq", (16, 16), 256),
        ("attn_wk", (16, 16), 256),
        ("attn_wv", (16, 16), 256),
        ("attn_wo", (16, 16), 256),
        ("mlp_fc1", (64, 16), 1024),
        ("mlp_fc2", (16, 64), 1024),
    ]
    assert sum(row.count for row in rows) == 4192


@pytest.mark.parametrize("sizes", [{"n_layer": 3}, {"d_model": 8, "hidden": 40}, {"vocab_size": 5}])
def test_rows_and_columns_are_the_sizes_that_they_are_said_to_be(sizes):
    model = model_of(**sizes)
    of = {
        "vocabulary": model.config.vocab_size,
        "context": model.config.context_length,
        "width": model.config.d_model,
        "hidden": model.config.hidden,
    }
    rows = parameters.inventory(model)
    assert [row.name for row in rows] == list(model.weights)
    for row in rows:
        assert (of[row.rows], of[row.columns]) == row.shape == model.weights[row.name].shape
        assert row.count == model.weights[row.name].size


def test_a_word_model_has_other_matrices():
    with pytest.raises(CheckpointError, match="microgpt"):
        parameters.inventory(tiny.make_model("attention"))


@pytest.mark.parametrize("step", [*tiny.STEPS, None])
def test_changes_are_those_of_the_weights(step):
    loaded = tiny.char_checkpoint()
    first, now = loaded.model_at("step_0").weights, loaded.model_at(step).weights
    for change in parameters.changes(loaded, step):
        old, new = first[change.name].ravel().tolist(), now[change.name].ravel().tolist()
        for found, numbers in ((change.before, old), (change.after, new)):
            mean = math.fsum(numbers) / len(numbers)
            assert found.mean == pytest.approx(mean)
            spread = math.fsum((n - mean) ** 2 for n in numbers) / len(numbers)
            assert found.deviation == pytest.approx(math.sqrt(spread))
            assert found.norm == pytest.approx(math.hypot(*numbers))
        assert change.moved == pytest.approx(math.dist(old, new) / math.hypot(*old))


def test_the_journey_starts_at_zero_and_ends_at_the_changes():
    loaded = tiny.char_checkpoint()
    way = parameters.journey(loaded)
    assert way.steps == (0, 10, 20)
    assert (way.moved[:, 0] == 0).all()
    for column, label in enumerate(loaded.whole_steps):
        found = parameters.changes(loaded, label)
        assert tuple(change.name for change in found) == way.names
        assert way.moved[:, column].tolist() == [change.moved for change in found]


def test_a_matrix_of_zeros_has_no_relative_distance():
    loaded = tiny.char_checkpoint()
    start = {name: np.zeros_like(array) for name, array in loaded.snapshots["step_0"].items()}
    snapshots = {**loaded.snapshots, "step_0": start}
    still = dataclasses.replace(loaded, snapshots=snapshots)
    moved = {change.name: change.moved for change in parameters.changes(still, None)}
    assert moved.pop("wte") is not None
    assert set(moved.values()) == {None}
    assert np.isnan(parameters.journey(still).moved[1:]).all()


def test_one_step_alone_has_no_before():
    loaded = dataclasses.replace(tiny.char_checkpoint(), snapshots={})
    for measure in (parameters.journey, lambda each: parameters.changes(each, None)):
        with pytest.raises(CheckpointError, match="no before"):
            measure(loaded)


def test_as_json():
    loaded = tiny.char_checkpoint()
    rows, changes = parameters.inventory(loaded.model), parameters.changes(loaded, None)
    answer = answers.of_parameters(rows, changes)
    assert answer["parameters"] == sum(array.size for array in loaded.model.weights.values())
    assert answer["matrices"][0]["shape"] == list(rows[0].shape)
    assert answer["changes"][0]["after"]["norm"] == changes[0].after.norm
