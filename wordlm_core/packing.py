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
from wordlm_core.checkpoint import Checkpoint, as_stored
from wordlm_core.errors import ConfigError
from wordlm_core.models.base import Weights

_FLOAT32_BITS, _FLOAT16_BITS = 24, 11


def round_to_bits(
    values: Float[np.ndarray, "*shape"], significant_bits: int
) -> Float[np.ndarray, "*shape"]:
    """Return `values` as float32, rounded to nearest at so many significant bits.

    The relative error is at most 2**-significant_bits; exponents are not touched.
    """
    spare = _FLOAT32_BITS - significant_bits
    narrow = np.ascontiguousarray(values, dtype=np.float32)
    if spare == 0:
        return narrow
    whole = narrow.view(np.uint32)
    half, mask = np.uint32(1 << (spare - 1)), np.uint32(0xFFFFFFFF << spare & 0xFFFFFFFF)
    return ((whole + half) & mask).view(np.float32)


def pack(
    checkpoint: Checkpoint,
    *,
    significant_bits: int = 12,
    history_bits: int = 8,
    snapshots: Sequence[str] = (),
) -> Checkpoint:
    """Return a copy with rounded weights and only some whole-weight snapshots.

    Args:
        checkpoint: What to shrink.
        significant_bits: For the selected weights, 8 to 24 (24 keeps float32 as it is).
        history_bits: For the embeddings and snapshots of other steps, 8 to 11 (float16).
        snapshots: Step labels or numbers whose whole weights stay; embeddings all stay.

    Raises:
        ConfigError: Bits out of range.
        CheckpointError: A step has no whole weights to keep.
    """
    if not (8 <= significant_bits <= _FLOAT32_BITS and 8 <= history_bits <= _FLOAT16_BITS):
        raise ConfigError(
            f"significant bits must be 8 to {_FLOAT32_BITS}, and 8 to {_FLOAT16_BITS} for the "
            f"history; not {significant_bits} and {history_bits}"
        )
    model = checkpoint.model
    weights = {k: round_to_bits(v, significant_bits) for k, v in model.weights.items()}
    # The selected step's embedding must stay equal to the weights it belongs to.
    embeddings: dict[str, np.ndarray] = {
        label: weights[model.embedding_name]
        if label == checkpoint.selected_label
        else as_stored(label, round_to_bits(array, history_bits))
        for label, array in checkpoint.embeddings.items()
    }
    kept: dict[str, Weights] = {}
    for step in snapshots:
        checkpoint.model_at(step)  # refuses a step that has no whole weights
        label = checkpoint.resolve_step(step)
        if label is not None and label in checkpoint.snapshots:
            kept[label] = {
                k: as_stored(label, round_to_bits(v, history_bits))
                for k, v in checkpoint.snapshots[label].items()
            }
    packed: dict[str, Any] = {
        "significant_bits": significant_bits,
        "history_bits": history_bits,
        "snapshots": list(kept),
    }
    return replace(
        checkpoint,
        model=models.family(model.family).build(model.config, weights),
        metadata={**checkpoint.metadata, "packed": packed},
        embeddings=embeddings,
        snapshots=kept,
    )
