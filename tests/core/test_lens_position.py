"""One position: every number against the fast forward pass and against the lines that are shown."""

import itertools
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from tests import tiny
from wordlm_core import answers
from wordlm_core.errors import CheckpointError, TextError
from wordlm_core.lens import position, tokens
from wordlm_core.models.microgpt import MicroGPTModel

SIZES = {
    "one layer": {},
    "two layers": {"n_layer": 2},
    "no positions": {"positions": False},
    "one head": {"n_head": 1},
}
TEXT = "anna"


def opened(size: str = "one layer"):
    """Return a checkpoint, its vocabulary and a text as it reads it."""
    loaded = tiny.char_checkpoint(**SIZES[size])
    return loaded, loaded.vocabulary.probe(TEXT, loaded.model.config.context_length)


def walks(size: str):
    loaded, probe = opened(size)
    return loaded, probe, [walked_to(loaded, probe, p) for p in range(len(probe.ids))]


def walked_to(loaded, probe, p: int) -> position.Walk:
    return position.walk(loaded.model, probe, p, end_id=loaded.vocabulary.end_id)


# -- the numbers


def lists(array: np.ndarray) -> list:
    return np.asarray(array, dtype=np.float64).tolist()


def program(loaded) -> dict:
    """Return the names that the shown lines use, all of them plain Python numbers and lists."""
    weights, config = loaded.model.weights, loaded.model.config
    layers = range(config.n_layer)
    names = {
        name: [lists(weights[f"layer{i}.{name}"]) for i in layers]
        for name in ("attn_wq", "attn_wk", "attn_wv", "attn_wo", "mlp_fc1", "mlp_fc2")
    }
    names |= {name: lists(weights[name]) for name in ("wte", "wpe", "lm_head")}
    names |= {"head_dim": config.d_head, "n_embd": config.d_model}
    names |= {"keys": [[] for _ in layers], "values": [[] for _ in layers]}
    exec(position.HELPERS, names)
    return names


@pytest.mark.parametrize("size", SIZES)
def test_the_lines_that_are_shown_compute_the_numbers_that_are_shown(size):
    loaded, probe, walked = walks(size)
    names = program(loaded)
    for p, walk in enumerate(walked):
        names |= {"token_id": int(probe.ids[p]), "pos_id": p, "target_id": walk.target}
        for step in walk.steps:
            exec(step.code, names)
            numbers = np.array(eval(step.symbol, names), dtype=np.float64)
            assert numbers.ravel() == pytest.approx(step.values.ravel(), abs=1e-12, rel=0)
            if step.aside is not None:
                name, number = step.aside
                expected = (
                    names["scale"] if name == "scale" else sum(unit > 0 for unit in names["x"])
                )
                assert number == pytest.approx(expected, abs=1e-12)


def test_the_lines_use_the_names_of_a_one_file_microgpt_and_are_short():
    _, _, walked = walks("two layers")
    code = "\n".join(step.code for step in walked[2].steps)
    for name in (
        *("tok_emb", "pos_emb", "wte", "wpe", "x_residual", "q", "k", "v", "keys", "values"),
        *("attn_wq", "attn_wk", "attn_wv", "attn_wo", "mlp_fc1", "mlp_fc2", "lm_head"),
        *("attn_logits", "attn_weights", "head_out", "x_attn", "logits", "probs"),
    ):
        assert re.search(rf"\b{name}\b", code), name
    assert max(map(len, f"{code}\n{position.HELPERS}".splitlines())) <= 64


@pytest.mark.parametrize("size", SIZES)
def test_they_are_those_of_the_whole_forward_pass(size):
    loaded, probe, walked = walks(size)
    run, trace = loaded.model.forward(probe.ids), loaded.model.trace(probe.ids)
    for p, walk in enumerate(walked):
        expected = {
            ("token embedding", None): trace.embed[p],
            ("sum", None): run.summed[p],
            ("rmsnorm", None): run.layers[0].stream[p],
            ("logits", None): trace.logits[p],
        }
        for i, layer in enumerate(run.layers):
            expected |= {
                ("rmsnorm before attention", i): layer.normed[p],
                ("query", i): trace.queries[i, :, p],
                ("key", i): trace.keys[i, :, p],
                ("value", i): trace.values[i, :, p],
                ("scores", i): trace.scores[i, :, p, : p + 1],
                ("attention", i): trace.attention[i, :, p, : p + 1],
                ("head outputs", i): layer.mixed[p].reshape(layer.queries.shape[0], -1),
                ("heads side by side", i): layer.mixed[p],
                ("W_O", i): trace.head_updates[i, :, p].sum(axis=0),
                ("residual after attention", i): layer.contextual[p],
                ("rmsnorm before the MLP", i): layer.mlp_normed[p],
                ("relu", i): layer.hidden[p],
                ("residual after the MLP", i): layer.out[p],
            }
        for (name, layer), values in expected.items():
            found = walk.find(name, layer)
            assert found.values.shape == values.shape, name
            np.testing.assert_allclose(found.values, values, atol=1e-12, rtol=0, err_msg=name)


@pytest.mark.parametrize("size", SIZES)
def test_the_steps_are_in_the_order_of_the_code_and_read_earlier_ones_only(size):
    loaded, _, walked = walks(size)
    for walk in walked:
        assert len(walk.steps) == 4 + 16 * loaded.model.n_layer + 4
        for index, step in enumerate(walk.steps):
            assert all(earlier < index for earlier in step.reads)
            assert len(step.axes) == step.values.ndim
            assert step.why.endswith(".")
            assert step.why.count(". ") == 0
            assert not step.values.flags.writeable
        names = [(step.name, step.layer) for step in walk.steps]
        assert len(set(names)) == len(names)


def test_a_residual_add_reads_the_stream_that_came_in():
    _, _, walked = walks("two layers")
    steps = walked[2].steps
    for index, step in enumerate(steps):
        if step.name.startswith("residual"):
            stream, update = step.reads
            added = steps[stream].values + steps[update].values
            assert step.values == pytest.approx(added, abs=1e-12, rel=0)
            assert steps[stream].symbol == "x"
            assert "rmsnorm" in steps[stream + 1].name
            assert steps[stream + 1].code.startswith("x_residual = x\n")
            assert stream < update == index - 1


def test_the_cache_grows_by_one_position_and_keeps_what_it_holds():
    _, _, walked = walks("two layers")
    for p, walk in enumerate(walked):
        for layer in range(2):
            cache = walk.find("KV cache", layer).values
            assert cache.shape == (2, p + 1, tiny.WIDTH)
            if p:
                before = walked[p - 1].find("KV cache", layer).values
                assert np.array_equal(cache[:, :-1], before)
            assert np.array_equal(cache[0, -1], walk.find("key", layer).values.ravel())
            assert np.array_equal(cache[1, -1], walk.find("value", layer).values.ravel())


def test_without_positions_no_row_of_wpe_is_added_and_it_says_so():
    _, _, walked = walks("no positions")
    step = walked[1].find("position embedding")
    assert not step.values.any()
    assert "never added" in step.why
    assert "where it stands" in walks("one layer")[2][1].find("sum").why
    assert "where it stands" not in walked[1].find("sum").why
    assert np.array_equal(walked[1].find("sum").values, walked[1].find("token embedding").values)


def test_the_prediction_and_its_loss():
    loaded, probe, walked = walks("one layer")
    logits = loaded.model.trace(probe.ids).logits
    for p, walk in enumerate(walked):
        powers = [math.exp(logit) for logit in logits[p]]
        assert walk.probs == pytest.approx(np.array(powers) / sum(powers), abs=1e-12)
        assert list(walk.likeliest) == sorted(range(len(powers)), key=lambda i: -powers[i])[:5]
        assert walk.at_end == (p + 1 == len(probe.ids))
        expected = loaded.vocabulary.end_id if walk.at_end else probe.ids[p + 1]
        assert walk.target == expected
        assert walk.loss == pytest.approx(-math.log(walk.probs[walk.target]), abs=1e-12)
        assert walk.find("loss").values == pytest.approx([walk.loss])


@pytest.mark.parametrize("size", SIZES)
def test_the_losses_of_a_text_are_those_that_training_lowers(size):
    loaded, _, walked = walks(size)
    table = tokens.read(loaded.vocabulary, TEXT, loaded.model.config.context_length)
    losses = [walk.loss for walk in walked]
    assert losses == pytest.approx(tokens.losses(loaded.model, table).tolist(), abs=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_the_vectors_are_the_walk_without_its_loss(size):
    loaded, probe, walked = walks(size)
    for p, walk in enumerate(walked):
        found = position.vectors(loaded.model, probe, p)
        assert [step.name for step in found] == [step.name for step in walk.steps[:-1]]
        for step, other in zip(found, walk.steps, strict=False):
            assert np.array_equal(step.values, other.values)


@pytest.mark.parametrize("size", SIZES)
def test_the_parts_follow_each_other_and_the_units_are_those_of_the_numbers(size):
    loaded, _, walked = walks(size)
    for step in walked[2].steps:
        assert (step.layer is None) == (step.part in ("in", "out"))
        if step.unit == "share":
            assert step.values.sum(axis=-1) == pytest.approx(1)
        if step.unit == "probability":
            assert ((step.values > 0) & (step.values < 1)).all()
    parts = [part for part, _ in itertools.groupby(step.part for step in walked[2].steps)]
    assert parts == ["in", *["attention", "MLP"] * loaded.model.n_layer, "out"]


def why_positions(size: str) -> str:
    _, _, walked = walks(size)
    return walked[1].find("position embedding").why


def test_what_positions_are_for_depends_on_the_layers():
    """One layer of attention cannot tell an order from another; the second can, a little."""
    moved = {}
    for n_layer in (1, 2):
        loaded = tiny.char_checkpoint(n_layer=n_layer, positions=False)
        ends = [
            walked_to(loaded, loaded.vocabulary.probe(text, 8), -1).probs
            for text in ("avne", "vane")
        ]
        moved[n_layer] = float(np.abs(ends[0] - ends[1]).max())
    assert moved[1] < 1e-12
    assert moved[2] > 1e-6
    assert "one layer of attention" in why_positions("one layer")
    assert "one layer of attention" not in why_positions("two layers")
    assert "later layers could tell" in why_positions("two layers")


def test_a_position_may_be_counted_from_the_end():
    loaded, probe = opened()
    assert walked_to(loaded, probe, -1).position == len(TEXT)
    with pytest.raises(TextError, match="no position 9"):
        walked_to(loaded, probe, 9)


@pytest.mark.parametrize("case", ["mlp", "attention", "multihead"])
def test_other_families_are_refused(case):
    loaded = tiny.make_checkpoint(case)
    probe = loaded.vocabulary.probe("the cat", tiny.CONTEXT)
    with pytest.raises(CheckpointError, match="the code of microgpt: choose a microgpt checkpoint"):
        walked_to(loaded, probe, 1)


def test_weights_that_overflow_are_refused():
    loaded, probe = opened()
    large = {name: array * 1e200 for name, array in loaded.model.weights.items()}
    model = MicroGPTModel(loaded.model.config, large)
    with pytest.raises(CheckpointError, match="too large"):
        position.walk(model, probe, 1, end_id=loaded.vocabulary.end_id)


# -- how long the vectors are


@pytest.mark.parametrize("size", SIZES)
def test_the_lengths_by_rule_are_those_of_the_walk(size):
    loaded, _, walked = walks(size)
    for p, walk in enumerate(walked):
        steps = [
            walk.find("token embedding").values,
            walk.find("query", 0).values.ravel(),
            walk.find("query", 0).values[0],
            walk.find("KV cache", 0).values[0],
            walk.find("scores", 0).values[0],
            walk.find("attention", 0).values[0],
            walk.find("head outputs", 0).values[0],
            walk.find("heads side by side", 0).values,
            walk.find("fc1", 0).values,
            walk.find("logits").values,
        ]
        found = position.lengths(loaded.model.config, p)
        assert [each.length for each in found] == [len(values) for values in steps]


def test_the_lengths_at_position_2_of_the_committed_sizes():
    config = replace(tiny.char_checkpoint().model.config, vocab_size=27, context_length=16)
    config = replace(config, d_model=16, hidden=64, n_head=4)
    found = [each.length for each in position.lengths(config, 2)]
    assert found == [16, 16, 4, 3, 3, 3, 4, 16, 64, 27]


# -- as JSON


def test_a_walk_as_json():
    loaded, _, walked = walks("two layers")
    told = json.loads(json.dumps(answers.of_walk(walked[2], loaded.vocabulary), allow_nan=False))
    assert told["tokens"] == ["<BOS>", *TEXT]
    assert told["position"] == 2
    assert told["target"] == TEXT[2]
    assert told["loss"] == walked[2].loss
    assert [step["name"] for step in told["steps"]] == [step.name for step in walked[2].steps]
    scores = next(step for step in told["steps"] if step["name"] == "scores")
    assert scores["shape"] == [tiny.char_checkpoint().model.n_head, 3]
    assert scores["values"] == walked[2].find("scores", 0).values.tolist()
    assert told["next"][0]["prob"] == max(walked[2].probs)
    assert told["next"][0]["token"] == loaded.vocabulary.itos[int(np.argmax(walked[2].probs))]
    end = answers.of_walk(walked[-1], loaded.vocabulary)
    assert (told["at_end"], end["at_end"]) == (False, True)
    assert end["target"] == "<BOS>"
    assert end["loss"] == walked[-1].loss
