"""Every family: equal to the oracle, causal, reproducible, and strict about its input."""

import hashlib

import numpy as np
import pytest
import torch

from tests import tiny
from tests.core import oracle
from wordlm_core import checkpoint as files
from wordlm_core import models
from wordlm_core.errors import CheckpointError, ConfigError, TextError
from wordlm_core.lens.ablation import ablate, knock_out
from wordlm_core.models import attention, mlp
from wordlm_core.models.base import log_softmax, softmax
from wordlm_core.text import PAD_ID

CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def test_every_family_is_tested_here():
    assert {family for family, _, _ in tiny.CASES.values()} == set(models.families())


# -- equality with the oracle


def test_trace_equals_the_oracle(model, any_probe):
    trace, expected = model.trace(any_probe.ids), oracle.forward(model, any_probe.ids)
    np.testing.assert_allclose(trace.logits, expected.logits, **CLOSE)
    np.testing.assert_allclose(trace.hidden, expected.hidden, **CLOSE)
    if model.n_head:
        np.testing.assert_allclose(trace.contextual, expected.contextual, **CLOSE)
        np.testing.assert_allclose(trace.attention, expected.attention, **CLOSE)
        np.testing.assert_allclose(trace.head_updates, expected.head_updates, **CLOSE)


def test_last_logits_equal_the_last_row_of_the_trace_in_any_batch(model, probe):
    rng = np.random.default_rng(1)
    batch = np.stack([probe.ids, *rng.integers(3, len(tiny.VOCABULARY), (6, len(probe.ids)))])
    for row, ids in zip(model.last_logits(batch), batch, strict=True):
        np.testing.assert_allclose(row, model.trace(ids).logits[-1], **CLOSE)
        np.testing.assert_allclose(row, oracle.last_logits(model, ids), **CLOSE)


@pytest.mark.parametrize("case", tiny.WORD_MODELS)
def test_training_forward_over_full_windows_equals_the_trace(case, checkpoints, any_probe):
    """Training sees the padding and masks it; inference leaves it out."""
    model = checkpoints[case].model
    padded = np.full((1, model.config.context_length), PAD_ID)
    padded[0, -len(any_probe.ids) :] = any_probe.ids
    weights = {name: torch.from_numpy(array.copy()) for name, array in model.weights.items()}
    module = models.family(model.family)
    hidden = module.training_hidden(model.config, weights, torch.from_numpy(padded))
    np.testing.assert_allclose(hidden[0], model.trace(any_probe.ids).hidden[-1], **CLOSE)


@pytest.mark.parametrize(
    ("case", "heads"),
    [
        *(("uneven", heads) for heads in ([(0, 0)], [(0, 1)], [(0, 0), (0, 1)])),
        *(("deep_microgpt", heads) for heads in ([(0, 2)], [(1, 0)], [(0, 1), (1, 3)])),
    ],
)
def test_heads_off_write_zero_and_leave_the_others_alone(checkpoints, probe, case, heads):
    model = checkpoints[case].model
    logits = model.last_logits(probe.ids[None], heads_off=heads)[0]
    np.testing.assert_allclose(logits, oracle.last_logits(model, probe.ids, heads), **CLOSE)
    assert not np.allclose(logits, model.last_logits(probe.ids[None])[0])
    inside = model.logits_without(model.trace(probe.ids), 3, [heads])[0]
    expected = oracle.forward(model, probe.ids, heads).logits[3]
    np.testing.assert_allclose(inside, expected, **CLOSE)


def test_all_heads_off_leaves_the_residual_alone(attention_model, probe):
    last = attention_model.n_layer - 1
    heads = [(last, head) for head in range(attention_model.n_head)]
    without = attention_model.last_logits(probe.ids[None], heads_off=heads)
    residual = attention_model.trace(probe.ids).residual
    np.testing.assert_allclose(without, attention_model.readout(residual[-1:]), **CLOSE)


def test_readout_of_contextual_rows_gives_the_logits(attention_model, probe):
    trace = attention_model.trace(probe.ids)
    np.testing.assert_allclose(attention_model.readout(trace.contextual), trace.logits, **CLOSE)


def test_last_attention_is_the_last_row_of_the_trace(attention_model, any_probe):
    last = attention_model.last_attention(any_probe.ids)
    trace = attention_model.trace(any_probe.ids)
    np.testing.assert_allclose(last, trace.attention[:, :, -1], **CLOSE)


def test_mlp_has_no_attention_and_nothing_to_read_out(mlp, probe):
    trace = mlp.trace(probe.ids)
    assert (mlp.n_layer, mlp.n_head, mlp.kind) == (0, 0, "mlp")
    assert trace.attention is None
    assert trace.contextual is None
    assert mlp.last_attention(probe.ids) is None
    with pytest.raises(CheckpointError, match="no residual stream"):
        mlp.readout(np.zeros((1, tiny.WIDTH), np.float32))


# -- shapes, causality, reproducibility


def test_shapes(model, probe):
    trace, n = model.trace(probe.ids), len(probe.ids)
    assert trace.embed.shape == (n, tiny.WIDTH)
    assert trace.hidden.shape == (n, tiny.HIDDEN)
    assert trace.logits.shape == (n, len(tiny.VOCABULARY))
    assert trace.logits.dtype == np.float64
    if model.n_head:
        layers, heads, config = model.n_layer, model.n_head, model.config
        keys, values = (getattr(config, name, config.d_model) for name in ("d_k", "d_v"))
        assert trace.attention.shape == (layers, heads, n, n)
        assert trace.queries.shape == (layers, heads, n, keys // heads)
        assert trace.values.shape == (layers, heads, n, values // heads)


def test_a_later_token_changes_no_earlier_logit(model, probe):
    before = model.trace(probe.ids).logits
    for position in range(1, len(probe.ids)):
        ids = probe.ids.copy()
        ids[position] = 9
        after = model.trace(ids).logits
        np.testing.assert_array_equal(after[:position], before[:position])
        assert not np.array_equal(after[position], before[position])


def test_looking_again_gives_the_same_bits(model, probe):
    """No dropout, no state: a model can be looked at any number of times."""
    first = model.trace(probe.ids)
    for _ in range(4):
        again = model.trace(probe.ids)
        np.testing.assert_array_equal(again.logits, first.logits)
        np.testing.assert_array_equal(again.attention, first.attention)


def test_lenses_cannot_change_a_shared_model(attention_model, vocabulary, probe):
    def digest() -> str:
        arrays = attention_model.weights.values()
        return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()

    before = digest()
    ablate(attention_model, vocabulary, probe)
    knock_out(attention_model, vocabulary, probe)
    assert digest() == before
    for array in attention_model.weights.values():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_save_and_load_give_equal_logits(checkpoint, probe, tmp_path):
    files.save(checkpoint, tmp_path / "x.npz")
    loaded = files.load(tmp_path / "x.npz")
    assert loaded.sha256 == checkpoint.sha256
    for step in (None, tiny.STEPS[0]):
        saved, own = loaded.model_at(step), checkpoint.model_at(step)
        np.testing.assert_array_equal(
            saved.last_logits(probe.ids[None]), own.last_logits(probe.ids[None])
        )


@pytest.mark.parametrize("case", tiny.WORD_MODELS)
def test_a_seed_decides_the_initial_weights(case):
    config, module = tiny.config_of(case), models.family(tiny.CASES[case][0])

    def draw(seed: int) -> dict[str, np.ndarray]:
        torch.manual_seed(seed)
        return {name: t.numpy() for name, t in module.initial_weights(config).items()}

    first, again, other = draw(11), draw(11), draw(12)
    assert [(name, array.shape) for name, array in first.items()] == list(config.shapes.items())
    assert not first["token_embedding.weight"][PAD_ID].any()
    for name, array in first.items():
        np.testing.assert_array_equal(array, again[name])
        assert not np.array_equal(array, other[name])
    module.build(config, first)


def test_parameter_counts_of_the_design():
    sizes = {"vocab_size": 4000, "context_length": 64, "d_model": 64, "hidden": 256}
    counts = [
        sum(np.prod(shape) for shape in config.shapes.values())
        for config in (
            attention.config_for(**sizes, n_head=1, positions=True),
            attention.config_for(**sizes, n_head=4, positions=True),
            attention.config_for(**sizes, n_head=1, positions=False),
            mlp.config_for(**sizes),
        )
    ]
    assert counts == [1_321_120, 1_321_120, 1_317_024, 2_332_832]


# -- bad input


@pytest.mark.parametrize("length", [0, tiny.CONTEXT + 1, 10 * tiny.CONTEXT])
def test_a_text_of_no_length_or_too_long_is_refused(model, length):
    ids = np.full(length, 5)
    with pytest.raises(TextError, match=f"1 to {tiny.CONTEXT} tokens at once, not {length}"):
        model.trace(ids)
    with pytest.raises(TextError, match="tokens at once"):
        model.last_logits(ids[None])


def test_heads_must_divide_the_widths():
    with pytest.raises(ConfigError, match="3 heads do not divide"):
        tiny.config_of("attention", n_head=3)


def grown(model, factor):
    module = models.family(model.family)
    return module.build(
        model.config, {name: array * factor for name, array in model.weights.items()}
    )


def test_weights_ten_thousand_times_too_large_still_give_probabilities(model, probe):
    trace = grown(model, 1e4).trace(probe.ids)
    for rows in (softmax(trace.logits), np.exp(log_softmax(trace.logits)), trace.attention):
        if rows is not None:
            assert np.isfinite(rows).all()
            np.testing.assert_allclose(rows.sum(axis=-1), 1, rtol=1e-9)


def test_the_largest_weights_a_file_can_hold_give_finite_answers(model, probe, vocabulary):
    largest = np.finfo(np.float32).max
    huge = {name: np.sign(array) * largest for name, array in model.weights.items()}
    big = models.family(model.family).build(model.config, huge)
    assert np.isfinite(big.trace(probe.ids).logits).all()
    result = ablate(big, vocabulary, probe)
    assert np.isfinite([effect.kl for effect in result.effects]).all()
    assert sum(item.prob for item in result.prediction) == pytest.approx(1)


def test_numbers_beyond_float64_are_refused_in_a_sentence(model, probe, vocabulary):
    with pytest.raises(CheckpointError, match="numbers overflow"):
        ablate(grown(model, 1e200), vocabulary, probe)


SIZES = {"vocab_size": 100, "context_length": 64, "d_model": 64, "hidden": 64, "n_head": 1}
SIZES |= {"d_k": 64, "d_v": 64}


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"context_length": 4096}, "context x context x heads is 16,777,216"),
        ({"context_length": 1024, "n_head": 64}, "context x context x heads"),
        ({"context_length": 2048, "d_model": 512}, "context x context x width"),
        ({"context_length": 128, "d_model": 2112, "n_head": 64}, "context x heads x width"),
        ({"context_length": 2048, "d_model": 8, "hidden": 16_384}, "context x hidden"),
        ({"context_length": 512, "vocab_size": 50_000, "hidden": 8}, "context x vocabulary"),
        ({"d_model": 4096, "hidden": 4096}, "parameters must be 1 to 8,000,000"),
    ],
)
def test_a_model_that_would_cost_too_much_is_refused_by_its_sizes(sizes, message):
    with pytest.raises(ConfigError, match=message):
        attention.AttentionConfig(**{**SIZES, **sizes})


def test_an_mlp_that_would_cost_too_much_is_refused_too():
    with pytest.raises(ConfigError, match="context x context x width"):
        mlp.config_for(vocab_size=100, context_length=4096, d_model=64, hidden=16)


@pytest.mark.parametrize(
    "sizes",
    [
        {"context_length": 512, "d_model": 128, "hidden": 512, "vocab_size": 4000, "n_head": 8},
        {"context_length": 64, "d_model": 16, "hidden": 16, "vocab_size": 200_000},
    ],
)
def test_a_large_model_within_reason_is_accepted(sizes):
    assert attention.AttentionConfig(**{**SIZES, **sizes})


# -- softmax


def test_softmax_against_the_plain_definition():
    logits = np.array([[1.0, 2.0, 3.0], [1000.0, -1000.0, 999.0]])
    for row, expected in zip(softmax(logits), map(oracle.softmax, logits), strict=True):
        np.testing.assert_allclose(row, expected, atol=1e-12)
    np.testing.assert_allclose(np.exp(log_softmax(logits)), softmax(logits), atol=1e-12)
    assert log_softmax(np.array([0.0, -np.inf]))[1] == -np.inf


@pytest.mark.parametrize("row", [[np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf]])
def test_softmax_never_returns_nan(row):
    for function in (softmax, log_softmax):
        with pytest.raises(CheckpointError, match="overflow"):
            function(np.array(row))
