"""microgpt against its scalar original: losses, gradients, weights, samples, letter by letter."""

import json
import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests import tiny
from wordlm_core import checkpoint, scalar_gpt
from wordlm_core.corpora import Corpus, reading
from wordlm_core.errors import CheckpointError, ConfigError
from wordlm_core.gpt_trainer import GPTTrainer, loss_of
from wordlm_core.items import Items, prepare_items
from wordlm_core.lens.attention import attend
from wordlm_core.lens.sampling import generate
from wordlm_core.models import microgpt
from wordlm_core.models.base import count_parameters
from wordlm_core.training import TrainConfig

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = json.loads(
    Path(__file__).with_name("microgpt_reference.json").read_text(encoding="utf-8")
)
# The course's list of names is not ours to ship: WORDLM_NAMES says where it is.
NAMES = os.environ.get("WORDLM_NAMES", "")
# Name of a case: heads, width, layers, context, positions.
SIZES = {
    "plain": (2, 8, 1, 6, True),
    "deep": (1, 4, 3, 8, True),
    "no_positions": (4, 8, 2, 5, False),
}
STEPS = 8


def items() -> Items:
    return prepare_items(Corpus("tiny", tiny.ITEMS, "MIT", "made up"), context_length=6)


@cache
def both(case: str, *, steps: int = STEPS, stop_after: int | None = None):
    """Train the same model twice: number by number, and vectorised."""
    heads, width, layers, context, positions = SIZES[case]
    settings = scalar_gpt.Settings(layers, heads, width, context, positions, lr=0.02)
    slow = scalar_gpt.train(tiny.ITEMS, settings, steps=steps, seed=7, stop_after=stop_after)
    config = TrainConfig.of(
        "microgpt",
        steps=steps,
        seed=7,
        n_head=heads,
        d_model=width,
        n_layer=layers,
        context_length=context,
        positions=positions,
        lr=0.02,
    )
    fast = GPTTrainer(config, items())
    for _ in range(stop_after or steps):
        fast.one_step()
    return settings, slow, fast


@pytest.mark.parametrize("case", SIZES)
def test_the_first_gradient_of_every_parameter_is_the_scalar_one(case):
    _, slow, fast = both(case, stop_after=1)
    assert list(slow.gradients) == list(fast.gradient.weights)
    for name, gradient in slow.gradients.items():
        np.testing.assert_allclose(fast.gradient.weights[name], gradient, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("case", SIZES)
def test_every_loss_and_the_last_weights_are_the_scalar_ones(case):
    _, slow, fast = both(case)
    np.testing.assert_allclose(fast.losses, slow.losses, rtol=1e-11)
    for name, matrix in slow.weights.items():
        np.testing.assert_allclose(fast.network.weights[name], matrix, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_samples_are_the_scalar_ones_letter_by_letter(temperature):
    settings, slow, fast = both("plain")
    expected = scalar_gpt.sample(
        slow.weights, slow.itos, settings, temperature=temperature, seed=3, samples=6
    )
    made = fast.checkpoint()
    assert made.vocabulary.itos == slow.itos
    drawn = generate(made.model, made.vocabulary, None, temperature=temperature, seed=3, samples=6)
    assert [sample.text for sample in drawn] == expected
    assert len({*expected}) > 3


def test_a_gradient_equals_finite_differences():
    """Independent of the scalar original: the loss is moved a little, weight by weight."""
    _, _, fast = both("deep", stop_after=5)
    ids = fast.data.vocabulary.document("vera")
    loss_of(fast.network, ids, fast.gradient)
    rng = np.random.default_rng(2)
    for name, weights in fast.network.weights.items():
        flat, gradient = weights.reshape(-1), fast.gradient.weights[name].reshape(-1).copy()
        for i in rng.choice(flat.size, min(6, flat.size), replace=False):
            losses = []
            for nudge in (1e-6, -2e-6):
                flat[i] += nudge
                losses.append(loss_of(fast.network, ids).mean())
            flat[i] += 1e-6
            assert (losses[0] - losses[1]) / 2e-6 == pytest.approx(gradient[i], rel=1e-4, abs=1e-8)


def agrees_with_the_reference(made: checkpoint.Checkpoint) -> None:
    np.testing.assert_allclose(
        made.metadata["loss_history"], REFERENCE["loss_history"], rtol=0, atol=1e-6
    )
    assert count_parameters(made.model.weights) == REFERENCE["parameters"] == 4192
    drawn = generate(made.model, made.vocabulary, None, temperature=0.5, seed=0, samples=10)
    assert [sample.text for sample in drawn] == REFERENCE["samples"]
    attention = attend(made.model, made.vocabulary.probe("isabella", 16)).weights[0]
    for head, rows in enumerate(REFERENCE["attention"]):
        for query, row in enumerate(rows):
            np.testing.assert_allclose(attention[head, query, : query + 1], row, atol=1e-6)


def test_the_committed_checkpoint_agrees_with_the_reference():
    agrees_with_the_reference(checkpoint.load(ROOT / "artifacts/microgpt_seed42.npz"))


@pytest.mark.skipif(not Path(NAMES).is_file(), reason="WORDLM_NAMES names no list of names")
def test_a_new_training_agrees_with_the_reference():
    corpus = Corpus("names.txt", tuple(reading.read_path(Path(NAMES))), "MIT", "the course")
    trainer = GPTTrainer(TrainConfig.of("microgpt"), prepare_items(corpus))
    assert trainer.run()
    agrees_with_the_reference(trainer.checkpoint())


# -- the model


def test_the_original_has_4192_parameters_and_its_shapes_in_order():
    config = microgpt.config_for(
        vocab_size=27, context_length=16, d_model=16, hidden=None, n_head=4, n_layer=1,
        positions=True,
    )  # fmt: skip
    assert sum(np.prod(shape) for shape in config.shapes.values()) == 4192
    assert list(config.shapes) == [
        *("wte", "wpe", "lm_head", "layer0.attn_wq", "layer0.attn_wk", "layer0.attn_wv"),
        *("layer0.attn_wo", "layer0.mlp_fc1", "layer0.mlp_fc2"),
    ]


def test_one_vector_holds_all_weights_as_views():
    config = tiny.config_of("deep_microgpt")
    flat = np.arange(sum(np.prod(shape) for shape in config.shapes.values()), dtype=float)
    network = microgpt.as_network(config, flat)
    joined = np.concatenate([array.ravel() for array in network.weights.values()])
    np.testing.assert_array_equal(joined, flat)
    for i, block in enumerate(network.blocks):
        stacked = np.concatenate([network.weights[f"layer{i}.attn_w{name}"] for name in "qkv"])
        np.testing.assert_array_equal(block.qkv, stacked)
    flat[:] = 0
    assert not any(part.any() for block in network.blocks for part in block)


def test_positions_are_stored_and_counted_but_not_added():
    with_them, without = (
        microgpt.build(config, tiny.weights_of(config.shapes, 0))
        for config in (tiny.config_of("microgpt"), tiny.config_of("microgpt", positions=False))
    )
    assert count_parameters(with_them.weights) == count_parameters(without.weights)
    ids = np.array([5, 6, 7])
    assert not np.allclose(with_them.last_logits(ids[None]), without.last_logits(ids[None]))
    changed = {**without.weights, "wpe": without.weights["wpe"] * 100}
    same = microgpt.build(without.config, changed)
    np.testing.assert_array_equal(same.last_logits(ids[None]), without.last_logits(ids[None]))


def test_rmsnorm_by_hand():
    scale, normed = microgpt.rmsnorm(np.array([[3.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_allclose(normed, [[0.8485, 1.1314], [0, 0]], atol=5e-5)
    np.testing.assert_allclose(scale[0], (12.5 + 1e-5) ** -0.5)


def test_a_row_whose_square_overflows_is_refused():
    with pytest.raises(CheckpointError, match="overflow"), np.errstate(over="ignore"):
        microgpt.rmsnorm(np.array([[1e200, 1.0]]))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"n_head": 3}, "3 heads do not divide a width of 8"),
        ({"n_layer": 0}, "layers must be 1 to 64"),
        ({"context_length": 4096}, "context x context x heads"),
        ({"d_model": 4096, "hidden": 16_384}, "parameters must be 1 to 8,000,000"),
    ],
)
def test_sizes_that_cannot_be(sizes, message):
    with pytest.raises(ConfigError, match=message):
        tiny.config_of("microgpt", **sizes)


def test_a_file_tells_its_heads_and_whether_positions_are_added(tmp_path):
    for changes in ({}, {"positions": False}, {"n_layer": 2, "n_head": 4}):
        made = tiny.char_checkpoint(**changes)
        checkpoint.save(made, tmp_path / "x.npz")
        loaded = checkpoint.load(tmp_path / "x.npz")
        assert loaded.model.config == made.model.config
        assert loaded.vocabulary == made.vocabulary
        assert loaded.sha256 == made.sha256
        assert loaded.whole_steps == tiny.STEPS
        ids = made.vocabulary.probe("anna", 8).ids[None]
        for step in tiny.STEPS:
            np.testing.assert_allclose(
                loaded.model_at(step).last_logits(ids), made.model_at(step).last_logits(ids)
            )


def test_a_file_of_bare_arrays_is_known_by_its_names(tmp_path):
    made = tiny.char_checkpoint()
    checkpoint.write_arrays(
        tmp_path / "bare.npz",
        {f"state__{name}": array for name, array in made.model.weights.items()},
        {"vocabulary": made.vocabulary.to_json(), "model_config": {"n_head": 2}},
    )
    loaded = checkpoint.load(tmp_path / "bare.npz")
    assert (loaded.model.kind, loaded.model.n_head) == ("microgpt", 2)


# -- samples


def test_greedy_at_zero_and_no_end_beyond_the_context():
    made = tiny.char_checkpoint()
    model, vocabulary = made.model, made.vocabulary
    for start in (None, vocabulary.probe("ann", 8)):
        samples = generate(model, vocabulary, start, temperature=0.0, max_tokens=99, samples=3)
        ids = [vocabulary.bos_id] if start is None else start.ids.tolist()
        room, expected = 9 - len(ids), []
        while len(expected) < room:
            expected.append(int(model.trace(np.array(ids + expected)).logits[-1].argmax()))
            if expected[-1] == vocabulary.bos_id:
                break
        for sample in samples:
            assert [*sample.ids, *([vocabulary.bos_id] if sample.ended else [])] == expected
            assert sample.text == "".join(sample.tokens)


def test_earlier_samples_do_not_depend_on_how_many_follow():
    made = tiny.char_checkpoint()
    few, many = (
        generate(made.model, made.vocabulary, None, seed=5, samples=count) for count in (3, 12)
    )
    assert many[:3] == few
    assert few != generate(made.model, made.vocabulary, None, seed=6, samples=3)


def test_top_k_one_is_greedy_and_max_tokens_cuts():
    made = tiny.char_checkpoint()
    greedy = generate(made.model, made.vocabulary, None, temperature=0.0)
    assert generate(made.model, made.vocabulary, None, top_k=1, seed=9) == greedy
    cut = generate(made.model, made.vocabulary, None, max_tokens=2, samples=8, temperature=3.0)
    assert max(len(sample.ids) for sample in cut) == 2


def test_a_full_context_leaves_room_for_one_prediction():
    made = tiny.char_checkpoint()
    full = made.vocabulary.probe("annannannann", 8)
    (sample,) = generate(made.model, made.vocabulary, full, seed=1)
    assert len(sample.ids) + sample.ended == 1
