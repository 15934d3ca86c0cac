"""Smaller copies of checkpoints, for shipping with the repository.

Trained weights are noise to a compressor: float32 shrinks by about 8%. Rounding them to fewer
significant bits leaves zeros behind the ones that matter, which do compress.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from wordlm_core import models
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.errors import ConfigError

_FLOAT32_BITS = 24


def round_to_bits(
    values: Float[np.ndarray, "*shape"], significant_bits: int
) -> Float[np.ndarray, "*shape"]:
    """Return float32 `values` rounded to nearest at so many significant bits.

    The relative error is at most 2**-significant_bits; exponents are not touched.
    """
    spare = _FLOAT32_BITS - significant_bits
    if spare == 0:
        return values
    whole = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    half, mask = np.uint32(1 << (spare - 1)), np.uint32(0xFFFFFFFF << spare & 0xFFFFFFFF)
    return ((whole + half) & mask).view(np.float32).reshape(values.shape)


def pack(
    checkpoint: Checkpoint, *, significant_bits: int = 12, snapshots: Sequence[str] = ()
) -> Checkpoint:
    """Return a copy with rounded weights and only some whole-weight snapshots.

    Args:
        checkpoint: What to shrink.
        significant_bits: 8 to 24 (24 keeps float32 as it is).
        snapshots: Step labels or numbers whose whole weights stay; embeddings all stay.

    Raises:
        ConfigError: Bits out of range.
        CheckpointError: A step has no whole weights to keep.
    """
    if not 8 <= significant_bits <= _FLOAT32_BITS:
        raise ConfigError(f"significant bits must be 8 to 24, not {significant_bits}")
    model = checkpoint.model
    weights = {
        name: round_to_bits(array, significant_bits) for name, array in model.weights.items()
    }
    kept = {}
    for step in snapshots:
        label = checkpoint.resolve_step(step)
        checkpoint.model_at(label)  # refuses a step that has no whole weights
        if label in checkpoint.snapshots:
            kept[label] = checkpoint.snapshots[label]
    packed: dict[str, Any] = {"significant_bits": significant_bits, "snapshots": list(kept)}
    return replace(
        checkpoint,
        model=models.family(model.family).build(model.config, weights),
        metadata={**checkpoint.metadata, "packed": packed},
        embeddings=_embeddings(checkpoint, weights["token_embedding.weight"]),
        snapshots=kept,
    )


def _embeddings(
    checkpoint: Checkpoint, selected: Float[np.ndarray, "vocab d_model"]
) -> dict[str, np.ndarray]:
    # The selected step's embedding must stay equal to the weights it belongs to.
    label = checkpoint.selected_label
    return {k: selected if k == label else v for k, v in checkpoint.embeddings.items()}
