"""Sampling: the distribution under the sliders, and what is drawn from it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import tiny
from tests.core import oracle
from wordlm_core.errors import CheckpointError, ConfigError
from wordlm_core.lens import sampling
from wordlm_core.lens.sampling import distribution_after, generate, next_distribution
from wordlm_core.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID

NEVER = (PAD_ID, BOS_ID, UNK_ID)
SIZE = len(tiny.VOCABULARY)


def logits_for(**probs: float) -> np.ndarray:
    """Logits with the given probabilities and nothing elsewhere."""
    logits = np.full(SIZE, -1e9)
    for token, prob in probs.items():
        logits[tiny.VOCABULARY.stoi[token]] = math.log(prob)
    return logits


def shown(logits, vocabulary, **settings) -> dict[str, float]:
    result = next_distribution(logits, vocabulary, **settings)
    return {item.token: item.prob for item in result.ranked(SIZE)}


FOUR = logits_for(the=0.4, cat=0.3, saw=0.2, dog=0.1)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {"the": 0.4, "cat": 0.3, "saw": 0.2, "dog": 0.1}),
        ({"temperature": 0.5}, {"the": 16 / 30, "cat": 9 / 30, "saw": 4 / 30, "dog": 1 / 30}),
        ({"temperature": 0.0}, {"the": 1.0}),
        ({"top_k": 2}, {"the": 4 / 7, "cat": 3 / 7}),
        ({"top_k": 10_000}, {"the": 0.4, "cat": 0.3, "saw": 0.2, "dog": 0.1}),
        ({"top_p": 0.65}, {"the": 4 / 7, "cat": 3 / 7}),
        ({"top_p": 0.75}, {"the": 4 / 9, "cat": 3 / 9, "saw": 2 / 9}),
        ({"top_p": 0.01}, {"the": 1.0}),
        ({"top_p": 1.0}, {"the": 0.4, "cat": 0.3, "saw": 0.2, "dog": 0.1}),
        # Top-p sees what top-k left: "the" alone has 4/7 of it.
        ({"top_k": 2, "top_p": 0.5}, {"the": 1.0}),
        ({"top_k": 1, "temperature": 3.0}, {"the": 1.0}),
    ],
)
def test_known_values(vocabulary, settings, expected):
    found = shown(FOUR, vocabulary, **settings)
    assert list(found) == list(expected)
    assert found == pytest.approx(expected)


def test_entropy_is_of_what_is_left(vocabulary):
    for settings, probs in (
        ({}, (0.4, 0.3, 0.2, 0.1)),
        ({"top_k": 2}, (4 / 7, 3 / 7)),
        ({"temperature": 0.0}, (1.0,)),
    ):
        result = next_distribution(FOUR, vocabulary, **settings)
        entropy = -sum(p * math.log(p) for p in probs)
        assert result.entropy == pytest.approx(entropy)
        assert result.effective == pytest.approx(math.exp(entropy))
    even = next_distribution(np.zeros(SIZE), vocabulary)
    assert even.effective == pytest.approx(SIZE - len(NEVER))


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.05, 0.5, 1.0, 2.5]),
    st.sampled_from([None, 1, 3, 7, 100]),
    st.sampled_from([None, 0.1, 0.5, 0.9, 1.0]),
)
def test_any_settings_equal_the_oracle(seed, temperature, top_k, top_p):
    logits = np.random.default_rng(seed).normal(0, 2, SIZE).astype(np.float32)
    settings = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    result = next_distribution(logits, tiny.VOCABULARY, **settings)
    expected = oracle.next_probs(logits, never=NEVER, **settings)
    np.testing.assert_allclose(result.probs, expected, atol=1e-9)
    assert result.probs.sum() == pytest.approx(1)


@pytest.mark.parametrize("temperature", [0.01, 1e-3, 1e-300, 5e-324])
@pytest.mark.parametrize("scale", [1.0, 1e4, 1e30])
def test_towards_zero_temperature_the_likeliest_takes_all(vocabulary, temperature, scale):
    result = next_distribution(FOUR * scale, vocabulary, temperature=temperature)
    assert np.isfinite(result.probs).all()
    greedy = next_distribution(FOUR * scale, vocabulary, temperature=0.0)
    np.testing.assert_allclose(result.probs, greedy.probs, atol=1e-9)
    assert result.entropy == pytest.approx(0, abs=1e-9)


def test_a_high_temperature_makes_all_alike(vocabulary):
    result = next_distribution(FOUR * 1e-9, vocabulary, temperature=1e12)
    assert result.probs[4:] == pytest.approx(1 / (SIZE - len(NEVER)))


def test_ties_are_cut_in_vocabulary_order(vocabulary):
    even = np.zeros(SIZE)
    assert list(shown(even, vocabulary, top_k=3)) == ["<EOS>", "the", "cat"]
    assert list(shown(even, vocabulary, temperature=0.0)) == ["<EOS>"]


def test_a_share_of_one_keeps_even_what_rounding_hides(vocabulary):
    logits = logits_for(the=1.0, cat=1e-30, saw=1e-40)
    assert list(shown(logits, vocabulary, top_p=1.0)) == ["the", "cat", "saw"]
    assert list(shown(logits, vocabulary, top_p=0.9999)) == ["the"]


def test_pad_bos_and_unk_are_never_drawn_however_likely(vocabulary):
    logits = FOUR.copy()
    logits[list(NEVER)] = 1e6
    for settings in ({}, {"temperature": 0.0}, {"top_k": 50}, {"top_p": 1.0}):
        result = next_distribution(logits, vocabulary, **settings)
        assert not result.probs[list(NEVER)].any()
        assert result.probs.sum() == pytest.approx(1)


def test_ranked_leaves_out_what_cannot_be_drawn(vocabulary):
    result = next_distribution(FOUR, vocabulary, top_k=2)
    assert [item.token for item in result.ranked(10)] == ["the", "cat"]
    assert [item.token for item in result.ranked(1)] == ["the"]


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": -0.1},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"top_k": 0},
        {"top_k": -3},
        {"top_p": 0.0},
        {"top_p": 1.01},
        {"top_p": math.nan},
    ],
)
def test_settings_out_of_range(model, vocabulary, settings):
    with pytest.raises(ConfigError):
        next_distribution(FOUR, vocabulary, **settings)
    with pytest.raises(ConfigError):
        generate(model, vocabulary, None, **settings)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.filterwarnings("error")
def test_logits_that_overflow_are_refused_at_any_temperature(vocabulary, temperature, bad):
    logits = FOUR.copy()
    logits[7] = bad
    for broken in (logits, np.full(SIZE, -math.inf)):
        with pytest.raises(CheckpointError, match="numbers overflow"):
            next_distribution(broken, vocabulary, temperature=temperature)


@pytest.mark.parametrize("temperature", [0.0, 1e-300, 1.0, 1e300])
@pytest.mark.filterwarnings("error")
def test_a_logit_of_minus_infinity_is_a_token_that_is_never_drawn(vocabulary, temperature):
    logits = FOUR.copy()
    logits[7] = -math.inf
    result = next_distribution(logits, vocabulary, temperature=temperature)
    assert result.probs[7] == 0
    assert result.probs.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "settings",
    [{"seed": -1}, {"max_tokens": 0}, {"samples": 0}, {"max_tokens": 1001, "samples": 100}],
)
def test_counts_out_of_range(model, vocabulary, settings):
    with pytest.raises(ConfigError):
        generate(model, vocabulary, None, **settings)


def test_logits_are_not_changed(vocabulary):
    logits = FOUR.copy()
    next_distribution(logits, vocabulary, temperature=0.3, top_k=2)
    np.testing.assert_array_equal(logits, FOUR)


# -- drawing


def greedy(model, ids, steps) -> list[int]:
    """Slide the window and take the likeliest, computed by the oracle."""
    ids, new = list(ids), []
    for _ in range(steps):
        logits = oracle.last_logits(model, ids[-tiny.CONTEXT :])
        best = max((i for i in range(SIZE) if i not in NEVER), key=lambda i: logits[i])
        if best == EOS_ID:
            break
        ids.append(best)
        new.append(best)
    return new


def test_temperature_zero_is_greedy_and_slides_past_the_context(word_model, vocabulary, probe):
    model = word_model
    expected = greedy(model, probe.ids, 25)
    for seed in (0, 1, 2):
        (sample,) = generate(model, vocabulary, probe, temperature=0.0, seed=seed, max_tokens=25)
        assert list(sample.ids) == expected
    (begun,) = generate(model, vocabulary, None, temperature=0.0, max_tokens=25)
    assert list(begun.ids) == greedy(model, [BOS_ID], 25)


def test_a_sample_is_the_new_words_alone(model, vocabulary, probe):
    for sample in generate(model, vocabulary, probe, seed=3, max_tokens=12, samples=20):
        assert sample.tokens == tuple(vocabulary.itos[i] for i in sample.ids)
        assert sample.text == " ".join(sample.tokens)
        assert len(sample.ids) <= 12
        assert not {PAD_ID, BOS_ID, EOS_ID, UNK_ID} & set(sample.ids)


def test_a_seed_decides_the_samples_whatever_their_number(model, vocabulary, probe):
    def draw(seed: int, samples: int, max_tokens: int = 12):
        return generate(model, vocabulary, probe, seed=seed, max_tokens=max_tokens, samples=samples)

    assert draw(5, 8) == draw(5, 8)
    assert draw(5, 8)[:3] == draw(5, 3)
    assert draw(5, 8) != draw(6, 8)
    assert len({sample.ids for sample in draw(5, 8)}) > 1
    for long, short in zip(draw(5, 8), draw(5, 8, max_tokens=4), strict=True):
        assert long.ids[:4] == short.ids


def test_side_by_side_gives_what_one_by_one_gives(word_model, vocabulary, probe, monkeypatch):
    """Drawn anew by the plain definition: own stream, own distribution, inverse of its sum."""
    model = word_model
    settings = {"temperature": 1.5, "top_k": 9, "top_p": 0.8}
    together = generate(model, vocabulary, probe, seed=4, max_tokens=6, samples=5, **settings)
    monkeypatch.setattr(sampling, "texts_at_once", lambda *_: 2)
    parts = generate(model, vocabulary, probe, seed=4, max_tokens=6, samples=5, **settings)
    assert parts == together
    streams = np.random.default_rng(4).spawn(5)
    for stream, sample in zip(streams, together, strict=True):
        ids = [int(i) for i in probe.ids]
        for expected in (*sample.ids, EOS_ID)[:6]:
            logits = oracle.last_logits(model, ids[-tiny.CONTEXT :])
            probs = oracle.next_probs(logits, never=NEVER, **settings)
            ids.append(int(stream.choice(SIZE, p=np.array(probs) / sum(probs))))
            assert ids[-1] == expected


def test_a_sample_ends_before_eos(checkpoints, vocabulary):
    model = checkpoints["mlp"].model
    weights = dict(model.weights)
    bias = weights["vocab_head.bias"].copy()
    bias[EOS_ID] = 1e4
    weights["vocab_head.bias"] = bias
    eager = type(model)(model.config, weights)
    assert [s.text for s in generate(eager, vocabulary, None, samples=3)] == ["", "", ""]
    bias[EOS_ID] = -1e4
    endless = type(model)(model.config, weights)
    assert {len(s.ids) for s in generate(endless, vocabulary, None, samples=3)} == {40}


def test_draws_follow_the_distribution(checkpoints, vocabulary, probe):
    model, drawn = checkpoints["multihead"].model, 4000
    probs = next_distribution(
        model.last_logits(probe.ids[None])[0], vocabulary, temperature=2.0, top_k=5
    ).probs
    samples = generate(
        model, vocabulary, probe, temperature=2.0, top_k=5, max_tokens=1, samples=drawn
    )
    counts = np.bincount([s.ids[0] if s.ids else EOS_ID for s in samples], minlength=SIZE)
    assert set(np.flatnonzero(counts)) == set(np.flatnonzero(probs))
    spread = np.sqrt(probs * (1 - probs) / drawn)
    assert (abs(counts / drawn - probs) <= 4 * spread).all()


def test_every_word_of_a_sample_comes_from_the_distribution_after_what_stands_before(
    word_model, vocabulary, probe
):
    model = word_model
    settings = {"temperature": 0.8, "top_k": 6}
    for number, sample in enumerate(
        generate(model, vocabulary, probe, seed=5, max_tokens=14, samples=3, **settings)
    ):
        generator = np.random.default_rng(5).spawn(3)[number]
        drawn = [*sample.ids, *([EOS_ID] if sample.ended else [])]
        assert sample.ended == (len(sample.ids) < 14)
        for word, token_id in enumerate(drawn):
            after = distribution_after(model, vocabulary, probe, drawn[:word], **settings)
            assert generator.choice(len(after.probs), p=after.probs) == token_id


@pytest.mark.parametrize(
    ("settings", "cut"),
    [({}, 0), ({"temperature": 0.0}, 0), ({"top_k": 3}, 1), ({"top_k": 3, "top_p": 0.5}, 2)],
)
def test_what_was_cut_off_is_counted(vocabulary, settings, cut):
    assert next_distribution(FOUR, vocabulary, **settings).cut == cut
