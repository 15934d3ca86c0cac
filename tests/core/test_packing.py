"""Rounding weights for shipping."""

import numpy as np
import pytest

from wordlm_core import checkpoint
from wordlm_core.errors import CheckpointError, ConfigError
from wordlm_core.packing import pack, round_to_bits


@pytest.mark.parametrize("bits", [8, 12, 24])
def test_rounding_is_to_nearest_and_keeps_what_fits(bits):
    values = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    rounded = round_to_bits(values, bits)
    # Independent: scale each number to [0.5, 1), round on that grid, scale back.
    mantissa, exponent = np.frexp(values.astype(np.float64))
    expected = np.ldexp(np.round(mantissa * 2**bits) / 2**bits, exponent)
    assert np.allclose(rounded, expected, rtol=2.0 ** -(bits + 1), atol=0)
    assert np.abs(rounded / values - 1).max() <= 2.0**-bits
    assert np.array_equal(round_to_bits(rounded, bits), rounded)


def test_packed_copy_is_smaller_and_nearly_the_same(checkpoints, tmp_path):
    whole = checkpoints["multihead"]
    packed = pack(whole, snapshots=whole.whole_steps[:1])
    checkpoint.save(whole, tmp_path / "whole.npz")
    checkpoint.save(packed, tmp_path / "packed.npz")
    again = checkpoint.load(tmp_path / "packed.npz")
    assert (tmp_path / "packed.npz").stat().st_size < (tmp_path / "whole.npz").stat().st_size
    assert packed.sha256 != whole.sha256
    assert again.sha256 == packed.sha256
    assert again.steps == whole.steps
    assert again.whole_steps == (whole.whole_steps[0], whole.selected_label)
    assert again.metadata["packed"]["significant_bits"] == 12
    ids = np.array([[1, 4, 5]])
    assert np.allclose(again.model.last_logits(ids), whole.model.last_logits(ids), atol=0.02)
    selected = again.embeddings[again.selected_label]
    assert np.array_equal(selected, again.model.weights["token_embedding.weight"])


def test_unknown_steps_and_bits_are_refused(checkpoints):
    with pytest.raises(CheckpointError, match="is not stored"):
        pack(checkpoints["mlp"], snapshots=["12345"])
    with pytest.raises(ConfigError, match="8 to 24"):
        pack(checkpoints["mlp"], significant_bits=4)
