"""The ranked lists that every lens shows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import tiny
from wordlm_core.errors import CheckpointError, ConfigError, TextError
from wordlm_core.lens._common import (
    frozen,
    largest,
    position_in,
    require_microgpt,
    texts_at_once,
    top_probs,
)


@given(
    st.integers(1, 1200),
    st.integers(1, 50),
    st.integers(0, 2**32 - 1),
    st.integers(1, 2000),
)
def test_largest_finds_what_sorting_finds(length, count, seed, distinct):
    """With ties: whichever index is shown, its value is the right one."""
    values = np.random.default_rng(seed).integers(0, distinct, (3, length)).astype(float)
    found = largest(values, count)
    assert found.shape == (3, min(count, length))
    assert all(len(set(row)) == len(row) for row in found.tolist())
    np.testing.assert_array_equal(
        np.take_along_axis(values, found, 1), -np.sort(-values, axis=1)[:, :count]
    )


def test_largest_orders_ties_by_index_and_takes_any_leading_axes():
    assert largest(np.array([1.0, 3.0, 2.0, 3.0]), 3).tolist() == [1, 3, 2]
    assert largest(np.zeros((2, 3, 500)), 4).shape == (2, 3, 4)
    with pytest.raises(ConfigError, match="1 or more, not -1"):
        largest(np.zeros(3), -1)


def test_top_probs_carry_their_labels(vocabulary):
    probs = np.zeros(len(vocabulary))
    probs[[5, 9]] = [0.25, 0.75]
    shown = top_probs(probs, vocabulary, 2)
    assert [(item.token, item.prob) for item in shown] == [("bird", 0.75), ("cat", 0.25)]


def test_memory_bounds_how_many_texts_go_at_once(model):
    assert texts_at_once(model, tiny.CONTEXT) > 1000
    wide = tiny.make_model("attention", vocab_size=200_000, d_model=4, hidden=4, d_k=4, d_v=4)
    assert 2 <= texts_at_once(wide, tiny.CONTEXT) <= 2**28 / (8 * 200_000)


def test_positions_count_from_either_end(probe):
    assert [position_in(probe, i) for i in (0, 8, -1, -9)] == [0, 8, 8, 0]
    for position in (9, -10):
        with pytest.raises(TextError, match=f"no position {position}: the text has 9 tokens"):
            position_in(probe, position)


@pytest.mark.parametrize("case", tiny.CASES)
def test_what_only_a_microgpt_answers_says_why(case):
    model = tiny.make_model(case)
    if model.family == "microgpt":
        assert require_microgpt(model, "unused") is model
    else:
        with pytest.raises(CheckpointError, match="it has layers: choose a microgpt checkpoint"):
            require_microgpt(model, "it has layers")


def test_a_frozen_array_is_a_copy_of_its_own():
    whole = np.zeros((3, 2))
    kept = frozen(whole[1])
    whole[1] = 1
    assert not kept.any()
    assert not kept.flags.writeable
    assert kept.base is None
