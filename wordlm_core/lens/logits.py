"""Logit view: which next tokens attention and the MLP promote and push down.

What attention does is a difference of two sets of logits, with its heads and without them;
what the last MLP adds directly to the logits is a sum over its hidden units.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from wordlm_core.lens._common import largest, position_in
from wordlm_core.models.base import LanguageModel, Trace, quiet_overflow, require_finite
from wordlm_core.vocabulary import Probe, Vocabulary


@dataclass(frozen=True)
class Shift:
    """A token and what was added to its logit, less the mean over the vocabulary."""

    token: str
    logit: float


@dataclass(frozen=True)
class Push:
    """The ends of a list of shifts.

    Attributes:
        promoted: The largest shifts, falling.
        pushed_down: The smallest shifts, rising.
    """

    promoted: tuple[Shift, ...]
    pushed_down: tuple[Shift, ...]


@dataclass(frozen=True)
class HeadPush:
    """What one head's update does to the logits while the others stay."""

    layer: int
    head: int
    push: Push


@dataclass(frozen=True)
class NeuronPush:
    """What one hidden unit adds to the logits: its activation times its column of W2."""

    index: int
    activation: float
    push: Push


@dataclass(frozen=True)
class LogitView:
    """Which tokens the parts of a model move, at one position.

    Attributes:
        tokens: The probe's tokens.
        position: Index into `tokens`; the token predicted is the one after it.
        attention: Of all heads together. None without attention.
        heads: Of each head alone. Empty without attention.
        mlp: Of all hidden units together.
        neurons: The strongest units: activation times the spread of the column.
    """

    unit: ClassVar[str] = "difference of logits, less its mean over the vocabulary"

    tokens: tuple[str, ...]
    position: int
    attention: Push | None
    heads: tuple[HeadPush, ...]
    mlp: Push
    neurons: tuple[NeuronPush, ...]


@quiet_overflow
def logit_view(
    model: LanguageModel, vocabulary: Vocabulary, probe: Probe, position: int = -1, top: int = 8
) -> LogitView:
    """Return which tokens the attention update and the MLP promote and push down.

    - attention: the logits less those with every head writing zero, in every layer.
    - a head: the logits less those with this head writing zero: leave one out.
    - the MLP (of the last layer): W2 h, the sum over hidden units i of h_i W2[:, i]. W2 is the
      vocabulary head of a word model; of microgpt it is lm_head mlp_fc2.

    Only differences between tokens count: a constant added to all logits changes no
    probability. So each shift is shown less its mean over the vocabulary: what is promoted
    gained more than tokens do on average. Left out: that mean; of a word model the bias b2,
    which does not depend on the text; of microgpt the residual stream's own way to the
    logits, past the MLP. The ReLU makes the parts interact, so heads do not add up to
    `attention`. Of a word model's window only the last slot was trained to predict; earlier
    positions show the same weights where nobody asked.

    Args:
        model: Any family.
        vocabulary: The model's.
        probe: The text.
        position: Whose next-token logits; negative counts from the end.
        top: Length of every list (>= 1).

    Raises:
        TextError: There is no such position.
        CheckpointError: The model's numbers overflow.

    Source:
        After the direct logit attribution of Elhage et al. 2021 ("A Mathematical Framework
        for Transformer Circuits"). Theirs is linear; here an MLP stands before the logits,
        so differences of whole forwards take its place.
    """
    position = position_in(probe, position)
    trace = model.trace(probe.ids)
    hidden, columns = trace.hidden[position], model.hidden_readout()
    strength = hidden * columns.std(axis=0)
    pushes = [_push(s, vocabulary, top) for s in _attention_shifts(model, trace, position)]
    return LogitView(
        tokens=probe.tokens,
        position=position,
        attention=pushes[0] if pushes else None,
        heads=tuple(
            HeadPush(layer=i // model.n_head, head=i % model.n_head, push=push)
            for i, push in enumerate(pushes[1:])
        ),
        mlp=_push(columns @ hidden, vocabulary, top),
        neurons=tuple(
            NeuronPush(
                index=int(i),
                activation=float(hidden[i]),
                push=_push(hidden[i] * columns[:, i], vocabulary, top),
            )
            for i in largest(strength, top)
            if strength[i] > 0
        ),
    )


def _attention_shifts(
    model: LanguageModel, trace: Trace, position: int
) -> Float[np.ndarray, "rows vocab"]:
    """Return the shift of all heads together, then of each; no rows without attention."""
    heads = [(layer, head) for layer in range(model.n_layer) for head in range(model.n_head)]
    if not heads:
        return np.empty((0, trace.logits.shape[1]), trace.logits.dtype)
    sets = [heads, *([head] for head in heads)]
    return trace.logits[position] - model.logits_without(trace, position, sets)


def _push(shifts: Float[np.ndarray, " vocab"], vocabulary: Vocabulary, top: int) -> Push:
    shifts = require_finite(shifts - shifts.mean())
    up, down = (
        tuple(Shift(vocabulary.itos[i], float(shifts[i])) for i in ids)
        for ids in (largest(shifts, top), largest(-shifts, top))
    )
    return Push(promoted=up, pushed_down=down)
