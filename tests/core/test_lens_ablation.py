"""Ablation, head knock-out and shuffle against direct computations."""

import decimal
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import tiny
from tests.core import oracle
from wordlm_core.errors import CheckpointError, ConfigError, TextError
from wordlm_core.lens import ablation
from wordlm_core.lens.ablation import ablate, kl_divergence, knock_out, shuffle, spearman
from wordlm_core.models.attention import AttentionModel
from wordlm_core.models.mlp import MLPConfig, MLPModel
from wordlm_core.text import SPECIALS, UNK_ID
from wordlm_core.vocabulary import Probe, WordVocabulary

CLOSE = {"rel": 1e-9, "abs": 1e-9}

# -- KL


def logits_of(*probs: float) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.array(probs))


@pytest.mark.parametrize(
    ("p", "q", "expected"),
    [
        ((0.5, 0.5, 0.0), (0.5, 0.5, 0.0), 0.0),
        ((0.75, 0.25), (0.5, 0.5), 0.75 * math.log(1.5) - 0.25 * math.log(2)),
        ((0.5, 0.5), (0.75, 0.25), 0.5 * math.log(4 / 3)),
        ((1.0, 0.0), (0.5, 0.5), math.log(2)),
        ((0.5, 0.5), (1.0, 0.0), math.inf),
        ((0.5, 0.5, 0.0), (0.25, 0.25, 0.5), math.log(2)),
    ],
)
def test_kl_known_values(p, q, expected):
    assert float(kl_divergence(logits_of(*p), logits_of(*q))) == pytest.approx(expected)


def test_kl_where_float32_probabilities_underflow():
    a, b = (np.array(row, np.float32) for row in ([200, 0, -200], [-200, 0, 200]))
    assert float(kl_divergence(a, a)) == 0
    assert float(kl_divergence(a, b)) == pytest.approx(400)
    assert float(kl_divergence(a * 1e30, b * 1e30)) == pytest.approx(4e32)


def test_kl_is_of_the_first_from_the_second():
    p, q = logits_of(0.9, 0.1), logits_of(0.6, 0.4)
    assert float(kl_divergence(p, q)) != pytest.approx(float(kl_divergence(q, p)))


def test_kl_over_leading_axes():
    rng = np.random.default_rng(0)
    before, after = rng.normal(size=(2, 3, 7)), rng.normal(size=(2, 3, 7))
    expected = [
        [oracle.kl(*pair) for pair in zip(*rows, strict=True)]
        for rows in zip(before, after, strict=True)
    ]
    np.testing.assert_allclose(kl_divergence(before, after), expected, rtol=1e-10)
    against_one = [[oracle.kl(before[0, 0], row) for row in rows] for rows in after]
    np.testing.assert_allclose(kl_divergence(before[0, 0], after), against_one, rtol=1e-10)


def test_kl_of_near_twins_is_not_negative():
    """The sum of tiny terms of both signs rounds to either side of 0."""
    rng = np.random.default_rng(0)
    before = rng.normal(size=(500, 40))
    after = before + 1e-10 * rng.normal(size=before.shape)
    values = kl_divergence(before, after)
    assert (values >= 0).all()
    assert (values < 1e-12).all()


def exact_kl(before: np.ndarray, after: np.ndarray) -> float:
    """KL of the logits as they are, in decimals of 60 digits."""
    with decimal.localcontext(prec=60):
        rows = [[decimal.Decimal(float(x)) for x in row] for row in (before, after)]
        wholes = [sum(x.exp() for x in row) for row in rows]
        (p, log_p), (_, log_q) = (
            ([x.exp() / whole for x in row], [x - whole.ln() for x in row])
            for row, whole in zip(rows, wholes, strict=True)
        )
        return float(sum(share * (a - b) for share, a, b in zip(p, log_p, log_q, strict=True)))


@pytest.mark.parametrize("size", [1e-12, 1e-9, 1e-6, 1e-3, 0.009, 0.011, 0.1, 1.0, 30.0])
def test_kl_is_right_to_many_digits_at_any_size(size):
    rng = np.random.default_rng(1)
    before = rng.normal(0, 3, 40)
    after = before + size * rng.normal(size=40)
    close = pytest.approx(exact_kl(before, after), rel=1e-2 if size < 1e-10 else 1e-5, abs=0)
    assert float(kl_divergence(before, after)) == close


@given(
    st.lists(st.tuples(*[st.floats(-1e6, 1e6, width=32)] * 2), min_size=1, max_size=8),
    st.floats(-100, 100),
)
def test_kl_is_never_negative_nor_nan_and_ignores_a_common_shift(pairs, shift):
    p, q = np.array(pairs).T
    value = float(kl_divergence(p, q))
    assert value >= 0
    assert float(kl_divergence(p, p)) == 0
    assert float(kl_divergence(p, q + shift)) == pytest.approx(value, rel=1e-6, abs=1e-6)


# -- ablation against the oracle


def without(ids: np.ndarray, position: int, stand_in: int | None) -> list[int]:
    changed = [int(i) for i in ids]
    if stand_in is None:
        del changed[position]
    else:
        changed[position] = stand_in
    return changed


@pytest.mark.parametrize("how", [{}, {"replacement": "dog"}, {"delete": True}])
@pytest.mark.parametrize("which", ["probe", "cropped"])
def test_every_effect_equals_the_oracle(model, vocabulary, request, how, which):
    probe: Probe = request.getfixturevalue(which)
    stand_in = None if "delete" in how else vocabulary.stoi[how.get("replacement", "<UNK>")]
    result = ablate(model, vocabulary, probe, **how)
    before = oracle.last_logits(model, probe.ids)
    p = np.array(oracle.softmax(before))
    top = np.argsort(-p)[:8]
    assert [item.token for item in result.prediction] == [vocabulary.itos[i] for i in top]
    assert [item.prob for item in result.prediction] == pytest.approx(list(p[top]), **CLOSE)
    attention = oracle.forward(model, probe.ids).attention
    for effect in result.effects:
        after = oracle.last_logits(model, without(probe.ids, effect.position, stand_in))
        assert effect.kl == pytest.approx(oracle.kl(before, after), **CLOSE)
        assert effect.token == probe.tokens[effect.position]
        assert effect.replacement == (None if stand_in is None else vocabulary.itos[stand_in])
        q = np.array(oracle.softmax(after))
        for change in effect.changes:
            i = vocabulary.stoi[change.token]
            expected = pytest.approx((p[i], q[i], q[i] - p[i]), **CLOSE)
            assert (change.before, change.after, change.delta) == expected
        largest = sorted(abs(q - p), reverse=True)[:8]
        shown = [abs(change.delta) for change in effect.changes]
        assert shown == sorted(shown, reverse=True)
        if effect.token != effect.replacement:
            assert shown == pytest.approx(largest, **CLOSE)
        if attention is None:
            assert effect.attention is None
        else:
            expected = attention[:, :, -1, effect.position]
            np.testing.assert_allclose(effect.attention, expected, rtol=1e-9, atol=1e-9)


def test_effects_are_the_positions_that_are_not_bos(model, vocabulary, probe, cropped):
    for text, first in ((probe, 1), (cropped, 0)):
        result = ablate(model, vocabulary, text)
        assert result.tokens == text.tokens
        assert [e.position for e in result.effects] == list(range(first, len(text.ids)))


def test_a_repeated_word_is_changed_at_its_own_position_only(model, vocabulary):
    probe = vocabulary.probe("the cat the", tiny.CONTEXT)
    effects = ablate(model, vocabulary, probe).effects
    assert [(e.position, e.token) for e in effects] == [(1, "the"), (2, "cat"), (3, "the")]
    ids = probe.ids.copy()
    ids[3] = UNK_ID
    expected = oracle.kl(*(oracle.last_logits(model, i) for i in (probe.ids, ids)))
    assert effects[2].kl == pytest.approx(expected, **CLOSE)
    assert effects[2].kl != pytest.approx(effects[0].kl)


def test_replacing_a_token_by_itself_is_zero_exactly(model, vocabulary, probe):
    result = ablate(model, vocabulary, probe, replacement="the")
    for effect in result.effects:
        if effect.token == "the":
            assert effect.kl == 0
            assert all(c.delta == 0 and c.before == c.after for c in effect.changes)
            assert [c.token for c in effect.changes] == [t.token for t in result.prediction]
        else:
            assert effect.kl > 0
    assert ablate(model, vocabulary, probe).effects[-1].kl == 0  # zebra is <UNK> already


class Jittery(AttentionModel):
    """Equal texts of a batch differ in the last bits, as with some BLAS kernels."""

    def last_logits(self, ids, *, heads_off=()):
        logits = super().last_logits(ids, heads_off=heads_off)
        return logits + np.arange(len(logits), dtype=np.float32)[:, None] * logits * 1e-6


def test_a_no_op_is_zero_even_if_equal_rows_of_a_batch_are_not(checkpoints, vocabulary, probe):
    source = checkpoints["attention"].model
    result = ablate(Jittery(source.config, source.weights), vocabulary, probe, replacement="the")
    for effect in result.effects:
        assert (effect.kl == 0) == (effect.token == "the")


def test_lists_have_the_length_asked_for(model, vocabulary, probe):
    for top, length in ((3, 3), (1000, len(vocabulary))):
        result = ablate(model, vocabulary, probe, top=top)
        assert len(result.prediction) == length
        assert {len(effect.changes) for effect in result.effects} == {length}
    with pytest.raises(ConfigError, match="1 or more, not 0"):
        ablate(model, vocabulary, probe, top=0)


def test_a_case_by_hand():
    """Hidden unit = sum of the words' values; it pushes one token's logit."""
    vocabulary = WordVocabulary((*SPECIALS, "one", "two"), {})
    config = MLPConfig(vocab_size=6, context_length=3, d_model=1, hidden=1)
    weights = {name: np.zeros(shape) for name, shape in config.shapes.items()}
    weights["token_embedding.weight"][4:, 0] = [1, 2]
    weights["hidden_layer.weight"][:] = 1
    weights["vocab_head.weight"][5] = 1
    result = ablate(MLPModel(config, weights), vocabulary, vocabulary.probe("one two", 3))

    def two_after(total: float) -> float:
        return math.exp(total) / (math.exp(total) + 5)

    def kl(a: float, b: float) -> float:
        p, q = two_after(a), two_after(b)
        return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))

    assert result.prediction[0].token == "two"
    assert result.prediction[0].prob == pytest.approx(two_after(3))
    assert [e.kl for e in result.effects] == pytest.approx([kl(3, 2), kl(3, 1)])
    first = result.effects[0].changes[0]
    assert first.token == "two"
    assert first.delta == pytest.approx(two_after(2) - two_after(3))


# -- kinds of removal


def test_deleting_moves_the_rest_together_and_brings_nothing_back(model, vocabulary, cropped):
    result = ablate(model, vocabulary, cropped, delete=True)
    assert result.replacement is None
    shorter = vocabulary.probe("saw the dog and bird ran to the park", tiny.CONTEXT).ids[1:]
    expected = oracle.kl(*(oracle.last_logits(model, i) for i in (cropped.ids, shorter)))
    assert result.effects[4].kl == pytest.approx(expected, **CLOSE)


def test_deleting_the_only_token_is_refused(model, vocabulary):
    with pytest.raises(TextError, match="leave nothing"):
        ablate(model, vocabulary, vocabulary.probe("dog", 1), delete=True)
    assert len(ablate(model, vocabulary, vocabulary.probe("dog", 2), delete=True).effects) == 1


def test_how_often_training_saw_the_replacement(model, vocabulary, probe):
    assert ablate(model, vocabulary, probe).replacement_count == 7
    assert ablate(model, vocabulary, probe, replacement="CAT ").replacement_count == 96
    assert ablate(model, vocabulary, probe, delete=True).replacement_count is None
    uncounted = WordVocabulary(vocabulary.itos, {})
    assert ablate(model, uncounted, probe).replacement_count is None


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"replacement": "zebra"}, "not in this vocabulary"),
        ({"replacement": "two words"}, "one word is needed"),
        ({"replacement": ""}, "one word is needed"),
        ({"replacement": "<PAD>"}, "<PAD> cannot take a token's place"),
        ({"replacement": "<eos>"}, "<EOS> cannot take a token's place"),
        ({"replacement": "cat", "delete": True}, "not both"),
    ],
)
def test_a_replacement_that_is_none(model, vocabulary, probe, how, message):
    with pytest.raises(TextError, match=message):
        ablate(model, vocabulary, probe, **how)


@pytest.mark.parametrize("typed", ["<UNK>", " <unk> "])
def test_unk_may_be_asked_for_by_name(model, vocabulary, probe, typed):
    asked, default = (ablate(model, vocabulary, probe, replacement=r) for r in (typed, None))
    assert asked.replacement == "<UNK>"
    assert [e.kl for e in asked.effects] == [e.kl for e in default.effects]


class Cutting(MLPModel):
    """Gives the last token no mass at all after a text without id 5."""

    def last_logits(self, ids, *, heads_off=()):
        logits = super().last_logits(ids, heads_off=heads_off)
        logits[~(ids == 5).any(axis=1), -1] = -np.inf
        return logits


def test_an_infinite_effect_is_infinite(mlp, vocabulary):
    model, probe = Cutting(mlp.config, mlp.weights), vocabulary.probe("the cat", tiny.CONTEXT)
    first, second = ablate(model, vocabulary, probe, top=len(vocabulary)).effects
    assert math.isfinite(first.kl)
    assert second.kl == math.inf
    (change,) = (change for change in second.changes if change.token == vocabulary.itos[-1])
    assert change.before > 0
    assert change.after == 0


# -- the cost


class Counting(AttentionModel):
    """Counts its forwards."""

    forwards = 0

    def last_logits(self, ids, *, heads_off=()):
        self.forwards += 1
        return super().last_logits(ids, heads_off=heads_off)

    def trace(self, ids):
        raise AssertionError("a trace computes the logits of every position")


def test_all_positions_share_one_forward(checkpoints, vocabulary, probe):
    source = checkpoints["multihead"].model
    model = Counting(source.config, source.weights)
    ablate(model, vocabulary, probe)
    assert model.forwards == 1


@pytest.mark.parametrize("how", [{}, {"delete": True}])
def test_a_text_too_large_for_one_forward_takes_several_and_says_the_same(
    model, vocabulary, probe, monkeypatch, how
):
    whole = ablate(model, vocabulary, probe, **how)
    monkeypatch.setattr(ablation, "texts_at_once", lambda *_: 3)
    parts = ablate(model, vocabulary, probe, **how)
    assert parts.prediction == whole.prediction
    assert [e.position for e in parts.effects] == [e.position for e in whole.effects]
    for part, effect in zip(parts.effects, whole.effects, strict=True):
        assert part.kl == pytest.approx(effect.kl, **CLOSE)
        assert [c.token for c in part.changes] == [c.token for c in effect.changes]


def test_memory_stays_bounded_whatever_a_model_asks_for():
    """At once, 512 texts would need 600 MB for their embeddings alone."""
    model = tiny.make_model("attention", context_length=512, d_model=128, hidden=8, d_k=8, d_v=8)
    ids = np.full(512, 5)
    ids[::2] = 6
    tokens = tuple(tiny.VOCABULARY.itos[i] for i in ids)
    tracemalloc.start()
    ablate(model, tiny.VOCABULARY, Probe(tokens, tokens, ids, (), 0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400e6


# -- rank correlation


def test_rank_correlation_is_of_mean_attention_with_kl(attention_model, vocabulary, probe):
    result = ablate(attention_model, vocabulary, probe)
    attention = [effect.attention.mean() for effect in result.effects]
    expected = oracle.spearman(attention, [effect.kl for effect in result.effects])
    assert result.rank_correlation == pytest.approx(expected)


def test_near_ties_are_ranked_as_float64_ranks_them(vocabulary):
    """Keys that differ in the eighth digit: float32 would tie them or swap them."""
    model = tiny.make_model("attention")
    weights = {name: array.copy() for name, array in model.weights.items()}
    table = weights["token_embedding.weight"]
    for i in range(6, 10):
        table[i] = table[5] + (i - 5) * 1e-9 * table[i]
    weights["position_embedding.weight"][:] *= 1e-9
    close = AttentionModel(model.config, weights)
    probe = vocabulary.probe("cat saw dog and bird", tiny.CONTEXT)
    result = ablate(close, vocabulary, probe, replacement="park")
    before = oracle.last_logits(close, probe.ids)
    kl = [
        oracle.kl(before, oracle.last_logits(close, without(probe.ids, i, vocabulary.stoi["park"])))
        for i in range(1, 6)
    ]
    attention = oracle.forward(close, probe.ids).attention.mean(axis=(0, 1))[-1, 1:]
    assert np.ptp(attention) < 1e-7
    assert len(set(attention.astype(np.float32))) < 5
    assert result.rank_correlation == pytest.approx(oracle.spearman(attention, kl))


def test_effects_far_below_rounding_are_ranked_by_size_not_by_chance(vocabulary):
    """The head looks at two words alone; the others get 1e-10 of its attention, or 1e-13."""
    model = tiny.make_model("attention")
    weights = {name: array.copy() for name, array in model.weights.items()}
    weights["W_Q.weight"] *= 8
    sharp = AttentionModel(model.config, weights)
    probe = vocabulary.probe("she saw a big red ball", tiny.CONTEXT)
    result = ablate(sharp, vocabulary, probe)
    before, *after = (
        sharp.last_logits(ids[None])[0]
        for ids in (probe.ids, *(np.array(without(probe.ids, i, UNK_ID)) for i in range(1, 7)))
    )
    expected = [exact_kl(before, row) for row in after]
    assert sum(0 < kl < 1e-16 for kl in expected) == 3
    assert [e.kl for e in result.effects] == pytest.approx(expected, rel=1e-2, abs=0)
    attention = [effect.attention.mean() for effect in result.effects]
    assert result.rank_correlation == pytest.approx(oracle.spearman(attention, expected))


def test_rank_correlation_needs_attention_and_three_positions(
    mlp, attention_model, vocabulary, probe
):
    assert ablate(mlp, vocabulary, probe).rank_correlation is None
    for text, missing in (("cat", True), ("the cat", True), ("the cat ran", False)):
        short = vocabulary.probe(text, tiny.CONTEXT)
        assert (ablate(attention_model, vocabulary, short).rank_correlation is None) == missing
    same = vocabulary.probe("cat cat cat", tiny.CONTEXT)
    constant = ablate(attention_model, vocabulary, same, replacement="cat")
    assert constant.rank_correlation is None


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        ([1, 2, 3], [5, math.inf, math.inf], math.sqrt(3) / 2),
        ([1, 2, 3, 4], [1, 3, 2, 4], 0.8),
        ([1, 2, 3], [7, 7, 7], None),
        ([1, 2], [1, 2], None),
    ],
)
def test_spearman_known_values(first, second, expected):
    found = spearman(np.array(first, float), np.array(second, float))
    assert found is None if expected is None else found == pytest.approx(expected)


# -- heads and order


def test_knock_out_equals_the_oracle(attention_model, vocabulary, probe):
    effects = knock_out(attention_model, vocabulary, probe)
    heads = list(np.ndindex(attention_model.n_layer, attention_model.n_head))
    assert [(e.layer, e.head) for e in effects] == heads
    before = oracle.last_logits(attention_model, probe.ids)
    for effect in effects:
        after = oracle.last_logits(attention_model, probe.ids, [(effect.layer, effect.head)])
        assert effect.kl == pytest.approx(oracle.kl(before, after), **CLOSE)
        delta = np.array(oracle.softmax(after)) - oracle.softmax(before)
        shown = [abs(change.delta) for change in effect.changes]
        assert shown == pytest.approx(sorted(abs(delta), reverse=True)[:8], **CLOSE)


def test_knock_out_needs_heads(mlp, vocabulary, probe):
    with pytest.raises(CheckpointError, match="no head to switch off"):
        knock_out(mlp, vocabulary, probe)


@pytest.mark.parametrize("seed", range(8))
def test_shuffle_keeps_bos_and_the_last_word(model, vocabulary, seed):
    probe = vocabulary.probe("the cat saw dog", tiny.CONTEXT)
    result = shuffle(model, vocabulary, probe, seed)
    assert (result.order[0], result.order[-1]) == (0, 4)
    assert sorted(result.order) == [0, 1, 2, 3, 4]
    assert result.order != (0, 1, 2, 3, 4)
    assert result.tokens == tuple(probe.tokens[i] for i in result.order)
    assert result == shuffle(model, vocabulary, probe, seed)
    before, after = (
        oracle.last_logits(model, ids) for ids in (probe.ids, probe.ids[list(result.order)])
    )
    assert result.kl == pytest.approx(oracle.kl(before, after), **CLOSE)
    for shown, logits in ((result.prediction_before, before), (result.prediction_after, after)):
        expected = sorted(oracle.softmax(logits), reverse=True)[:8]
        assert [item.prob for item in shown] == pytest.approx(expected, **CLOSE)


def test_without_positions_order_says_nothing(checkpoints, vocabulary, cropped):
    """One layer that reads a bag of words must predict the same; positions make it see order."""
    assert shuffle(checkpoints["no_positions"].model, vocabulary, cropped, 3).kl < 1e-9
    for case in ("mlp", "attention", "multihead"):
        assert shuffle(checkpoints[case].model, vocabulary, cropped, 3).kl > 1e-3


def test_shuffle_needs_something_to_shuffle(model, vocabulary):
    with pytest.raises(TextError, match="three words"):
        shuffle(model, vocabulary, vocabulary.probe("the cat", tiny.CONTEXT), 0)
    with pytest.raises(ConfigError, match="seed must be 0 or more"):
        shuffle(model, vocabulary, vocabulary.probe("the cat ran", tiny.CONTEXT), -1)


def test_units_are_said():
    for result in (ablation.AblationResult, ablation.HeadEffect, ablation.ShuffleResult):
        assert result.unit == "nats"


def test_a_short_window_is_lined_up_with_the_whole_text(vocabulary, probe):
    model = tiny.make_model("mlp", context_length=4)
    short = probe.last(4)
    result = ablate(model, vocabulary, short)
    wide = ablation.widen(result, probe)
    assert wide.tokens == probe.tokens
    assert [e.position for e in wide.effects] == list(range(1, len(probe.tokens)))
    assert [e.token for e in wide.effects] == list(probe.tokens[1:])
    outside = wide.effects[: len(probe.tokens) - 1 - 4]
    assert {e.kl for e in outside} == {0.0}
    assert [e.kl for e in wide.effects[-4:]] == [e.kl for e in result.effects]
    # The same by computation: what stands out there never reaches the model.
    changed = probe.ids.copy()
    changed[1] = UNK_ID
    before, after = model.last_logits(np.stack([probe.ids[-4:], changed[-4:]]))
    assert kl_divergence(before, after) == 0


def test_a_text_that_fits_is_left_as_it_is(model, vocabulary, probe):
    result = ablate(model, vocabulary, probe)
    wide = ablation.widen(result, probe)
    assert [(e.position, e.kl) for e in wide.effects] == [
        (e.position, e.kl) for e in result.effects
    ]
