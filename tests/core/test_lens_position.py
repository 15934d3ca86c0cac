"""One position: every number against the fast forward pass and against the lines that are shown."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from tests import tiny
from wordlm_core import answers
from wordlm_core.errors import CheckpointError, ConfigError, TextError
from wordlm_core.lens import position
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
    return loaded, probe, [position.walk(loaded.model, probe, p) for p in range(len(probe.ids))]


# -- the numbers


def lists(array: np.ndarray) -> list:
    return np.asarray(array, dtype=np.float64).tolist()


def program(loaded) -> dict:
    """Return the names that the shown lines use, all of them plain Python numbers and lists."""
    weights, config = loaded.model.weights, loaded.model.config
    layers = range(config.n_layer)
    names = {
        short: [lists(weights[f"layer{i}.{long}"]) for i in layers]
        for short, long in (
            *((f"w{letter}", f"attn_w{letter}") for letter in "qkvo"),
            ("fc1", "mlp_fc1"),
            ("fc2", "mlp_fc2"),
        )
    }
    names |= {name: lists(weights[name]) for name in ("wte", "wpe", "lm_head")}
    names |= {"d_head": config.d_head, "d_model": config.d_model}
    names |= {"keys": [[] for _ in layers], "values": [[] for _ in layers]}
    exec(position.HELPERS, names)
    return names


@pytest.mark.parametrize("size", SIZES)
def test_the_lines_that_are_shown_compute_the_numbers_that_are_shown(size):
    loaded, probe, walked = walks(size)
    names = program(loaded)
    for p, walk in enumerate(walked):
        names |= {"token": int(probe.ids[p]), "place": p, "target": walk.target}
        for step in walk.steps:
            exec(step.code, names)
            numbers = np.array(eval(step.symbol, names), dtype=np.float64)
            assert numbers.ravel() == pytest.approx(step.values.ravel(), abs=1e-12, rel=0)
            if step.aside is not None:
                name, number = step.aside
                expected = (
                    names["scale"] if name == "scale" else sum(unit > 0 for unit in names["r"])
                )
                assert number == pytest.approx(expected, abs=1e-12)


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
    for p, walk in enumerate(walked):
        last = p + 1 == len(walked)
        assert len(walk.steps) == 4 + 16 * loaded.model.n_layer + 3 + (not last)
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
    assert np.array_equal(walked[1].find("sum").values, walked[1].find("token embedding").values)


def test_the_prediction_and_its_loss():
    loaded, probe, walked = walks("one layer")
    logits = loaded.model.trace(probe.ids).logits
    for p, walk in enumerate(walked):
        powers = [math.exp(logit) for logit in logits[p]]
        assert walk.probs == pytest.approx(np.array(powers) / sum(powers), abs=1e-12)
        assert list(walk.likeliest) == sorted(range(len(powers)), key=lambda i: -powers[i])[:5]
        if p + 1 < len(probe.ids):
            assert walk.target == probe.ids[p + 1]
            assert walk.loss == pytest.approx(-math.log(walk.probs[walk.target]), abs=1e-12)
        else:
            assert walk.target is None
            assert walk.loss is None


def test_a_position_may_be_counted_from_the_end():
    loaded, probe = opened()
    assert position.walk(loaded.model, probe, -1).position == len(TEXT)
    with pytest.raises(TextError, match="no position 9"):
        position.walk(loaded.model, probe, 9)


@pytest.mark.parametrize("case", ["mlp", "attention", "multihead"])
def test_other_families_are_refused(case):
    loaded = tiny.make_checkpoint(case)
    probe = loaded.vocabulary.probe("the cat", tiny.CONTEXT)
    for refused in (
        lambda: position.walk(loaded.model, probe, 1),
        lambda: position.swap(loaded.model, probe, 1, place=0, replacement=4),
        lambda: position.without_wo(loaded.model, probe, 1),
    ):
        with pytest.raises(CheckpointError, match="choose a microgpt checkpoint"):
            refused()


def test_weights_that_overflow_are_refused():
    loaded, probe = opened()
    large = {name: array * 1e200 for name, array in loaded.model.weights.items()}
    model = MicroGPTModel(loaded.model.config, large)
    with pytest.raises(CheckpointError, match="too large"):
        position.walk(model, probe, 1)


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


# -- interventions


@pytest.mark.parametrize("size", SIZES)
def test_a_later_token_changes_nothing_at_all_and_an_earlier_one_does(size):
    loaded, probe = opened(size)
    for p in range(len(probe.ids)):
        for place in range(len(probe.ids)):
            new = (int(probe.ids[place]) + 1) % len(loaded.vocabulary)
            found = position.swap(loaded.model, probe, p, place=place, replacement=new)
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
    found = position.swap(loaded.model, probe, 3, place=1, replacement=2)
    other = probe.ids.copy()
    other[1] = 2
    before = position.walk(loaded.model, probe, 3)
    after = position.walk(loaded.model, replace(probe, ids=other), 3)
    names = [step.name for step in before.steps if step.name != "loss"]
    assert len(found.changes) == len(names)
    expected = np.abs(before.find("scores", 0).values - after.find("scores", 0).values).max()
    assert found.changes[names.index("scores")] == expected
    p, q = before.probs, after.probs
    assert found.kl == pytest.approx(float((p * np.log(p / q)).sum()), abs=1e-12)
    assert (found.before, found.after) == (probe.ids[1], 2)


def test_a_token_in_place_of_itself_changes_nothing():
    loaded, probe = opened()
    same = position.swap(loaded.model, probe, 3, place=1, replacement=int(probe.ids[1]))
    assert set(same.changes) == {0.0}
    assert same.kl == 0


def test_a_swap_that_cannot_be_is_refused():
    loaded, probe = opened()
    with pytest.raises(ConfigError, match="no token 99"):
        position.swap(loaded.model, probe, 1, place=1, replacement=99)
    with pytest.raises(TextError, match="no position 50"):
        position.swap(loaded.model, probe, 1, place=50, replacement=1)


@pytest.mark.parametrize("size", SIZES)
def test_without_wo_is_a_model_whose_wo_is_the_identity(size):
    loaded, probe = opened(size)
    model = loaded.model
    for layer in range(model.n_layer):
        name = f"layer{layer}.attn_wo"
        other = MicroGPTModel(model.config, {**model.weights, name: np.eye(model.config.d_model)})
        for p in range(len(probe.ids)):
            found = position.without_wo(model, probe, p, layer=layer)
            walked = position.walk(model, probe, p)
            assert found.mixed.sum(axis=0) == pytest.approx(walked.find("W_O", layer).values)
            side_by_side = walked.find("heads side by side", layer).values
            assert np.array_equal(found.apart.sum(axis=0), side_by_side)
            assert np.count_nonzero(found.apart) <= model.config.d_model
            expected = position.walk(other, probe, p).probs
            assert found.probs_identity == pytest.approx(expected, abs=1e-12)
            assert found.probs == pytest.approx(walked.probs, abs=1e-12)
            kl = float((found.probs * np.log(found.probs / expected)).sum())
            assert found.kl == pytest.approx(kl, abs=1e-10)


def test_a_wo_that_is_the_identity_writes_nowhere_else():
    loaded, probe = opened()
    model = loaded.model
    same = MicroGPTModel(
        model.config, {**model.weights, "layer0.attn_wo": np.eye(model.config.d_model)}
    )
    found = position.without_wo(same, probe, 2)
    assert found.elsewhere == 0
    assert found.kl == 0
    assert 0 < position.without_wo(model, probe, 2).elsewhere < 1
    silent = MicroGPTModel(
        model.config, {**model.weights, "layer0.attn_wo": np.zeros((tiny.WIDTH, tiny.WIDTH))}
    )
    assert position.without_wo(silent, probe, 2).elsewhere is None
    with pytest.raises(ConfigError, match="no layer 1"):
        position.without_wo(model, probe, 2, layer=1)


# -- the example for the hand

KEYS = [[1, 0], [0, 1], [-1, 0]]
VALUES = [[10, 0], [0, 10], [5, 5]]


def test_the_hand_example_by_hand():
    found = position.hand_attention([1, 0], KEYS, VALUES)
    assert found.dots.tolist() == [1, 0, -1]
    assert found.scaled == pytest.approx([0.70711, 0, -0.70711], abs=5e-6)
    # e^0.7071 = 2.0281, e^0 = 1, e^-0.7071 = 0.4931: together 3.5212; the largest is taken off.
    assert found.powers == pytest.approx([1, 0.49307, 0.24312], abs=5e-6)
    assert found.weights == pytest.approx([0.57598, 0.28400, 0.14003], abs=5e-6)
    assert found.output == pytest.approx([6.45990, 3.54010], abs=2e-5)
    assert found.parts.sum(axis=0) == pytest.approx(found.output)


def test_one_key_takes_all():
    found = position.hand_attention([3], [[2]], [[7, 8, 9]])
    assert found.weights.tolist() == [1]
    assert found.output.tolist() == [7, 8, 9]


@pytest.mark.parametrize(
    ("query", "keys", "values", "sentence"),
    [
        ([], KEYS, VALUES, "the query can have 1 to 4 numbers, not 0"),
        ([1] * 5, KEYS, VALUES, "the query can have 1 to 4 numbers, not 5"),
        ([1, 0], [], [], "the example can have 1 to 4 keys, not 0"),
        ([1, 0], KEYS * 2, VALUES * 2, "the example can have 1 to 4 keys, not 6"),
        ([1, 0], KEYS, VALUES[:2], "there are 3 keys, 2 values"),
        ([1, 0, 0], KEYS, VALUES, "key 0 has 2 numbers and the query 3"),
        ([1, 0], KEYS, [[1], [2], [3, 4]], "value 2 is not as long as value 0"),
        ([1, 0], KEYS, [[], [], []], "value 0 can have 1 to 4 numbers, not 0"),
        ([1, 1001], KEYS, VALUES, "between -1,000 and 1,000"),
        ([1, math.nan], KEYS, VALUES, "between -1,000 and 1,000"),
        ([1, math.inf], KEYS, VALUES, "between -1,000 and 1,000"),
    ],
)
def test_bad_examples_are_refused_in_one_sentence(query, keys, values, sentence):
    with pytest.raises(TextError, match=sentence):
        position.hand_attention(query, keys, values)


def test_large_numbers_do_not_overflow():
    found = position.hand_attention([1000] * 4, [[1000] * 4, [-1000] * 4], [[1], [2]])
    assert found.weights.tolist() == [1, 0]
    assert found.output.tolist() == [1]


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
    assert end["target"] is None
    assert end["loss"] is None
