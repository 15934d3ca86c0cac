"""Attention: where each position looks."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float

from wordlm_core.errors import CheckpointError, ConfigError, TextError
from wordlm_core.models.base import LanguageModel, Trace
from wordlm_core.vocabulary import Probe


@dataclass(frozen=True)
class AttentionResult:
    """Attention of every head over one probe.

    Attributes:
        tokens: Labels of both axes, by position.
        weights: Share of its attention that each query (row, receiver) gives to each key
            (column, source). Rows sum to 1; keys after the query are 0.
        trace: The forward pass they come from, for `row_steps`.
    """

    unit: ClassVar[str] = "share of the query's attention"

    tokens: tuple[str, ...]
    weights: Float[np.ndarray, "layer head query key"]
    trace: Trace


@dataclass(frozen=True)
class RowSteps:
    """One query's row of one head, step by step, in the order of computation.

    Attributes:
        query_vector: q of the receiver.
        keys: k of every position.
        dots: q.k.
        scaled: q.k / sqrt(d_head).
        masked: Keys after the query, which the softmax does not see.
        weights: Softmax of `scaled` over the keys that are not masked.
        values: v of every position.
        mix: Weighted sum of the values.
        update: W_O applied to this head's mix: what it adds to the residual stream.
    """

    query_vector: Float[np.ndarray, " d_head"]
    keys: Float[np.ndarray, "key d_head"]
    dots: Float[np.ndarray, " key"]
    scaled: Float[np.ndarray, " key"]
    masked: Bool[np.ndarray, " key"]
    weights: Float[np.ndarray, " key"]
    values: Float[np.ndarray, "key d_value"]
    mix: Float[np.ndarray, " d_value"]
    update: Float[np.ndarray, " d_model"]


def attend(model: LanguageModel, probe: Probe) -> AttentionResult:
    """Return the attention of every layer and head for a typed text.

    A weight says how much of a source's value vector enters the mix, not how much the
    prediction depends on it: a value can be short, or W_O and the layers after it can
    ignore it. Ablation measures that.

    Args:
        model: Any family with attention.
        probe: The text; padding is no part of it.

    Raises:
        CheckpointError: The model has no attention.

    Source:
        Vaswani et al. 2017, arXiv:1706.03762.
    """
    require_attention(model, "its window is read as one long vector")
    trace = model.trace(probe.ids)
    assert trace.attention is not None  # n_head > 0
    return AttentionResult(tokens=probe.tokens, weights=trace.attention, trace=trace)


def row_steps(trace: Trace, layer: int, head: int, query: int) -> RowSteps:
    """Return how one row of an attention picture comes about, in numbers.

    Args:
        trace: Of a model with attention.
        layer: 0 and up.
        head: 0 and up.
        query: Position of the receiver.

    Raises:
        CheckpointError: The trace has no attention.
        ConfigError: There is no such layer or head.
        TextError: There is no such position.
    """
    if trace.attention is None:
        raise CheckpointError("the MLP has no attention, so it has no query, key or value")
    assert trace.queries is not None
    assert trace.keys is not None
    assert trace.values is not None
    assert trace.head_updates is not None
    n_layer, n_head, length, _ = trace.attention.shape
    if not (0 <= layer < n_layer and 0 <= head < n_head):
        raise ConfigError(
            f"there is no layer {layer}, head {head}: the model has {n_layer} x {n_head}"
        )
    if not 0 <= query < length:
        raise TextError(f"there is no position {query}: the text has {length}")
    query_vector, keys = trace.queries[layer, head, query], trace.keys[layer, head]
    values, weights = trace.values[layer, head], trace.attention[layer, head, query]
    dots = keys @ query_vector
    return RowSteps(
        query_vector=query_vector,
        keys=keys,
        dots=dots,
        scaled=dots / dots.dtype.type(math.sqrt(len(query_vector))),
        masked=np.arange(length) > query,
        weights=weights,
        values=values,
        mix=weights @ values,
        update=trace.head_updates[layer, head, query],
    )


def require_attention(model: LanguageModel, reason: str) -> None:
    """Refuse a model without attention; `reason` ends the sentence.

    Raises:
        CheckpointError: The model has no attention.
    """
    if model.n_head == 0:
        raise CheckpointError(f"the MLP has no attention: {reason}")
