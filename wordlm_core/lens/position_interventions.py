"""Interventions at one position: another token somewhere, or the identity in place of W_O."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from wordlm_core.errors import ConfigError
from wordlm_core.lens._common import frozen, position_in, require_microgpt
from wordlm_core.lens.ablation import kl_divergence
from wordlm_core.lens.position import WALKED, vectors
from wordlm_core.models import base, microgpt
from wordlm_core.models.base import LanguageModel
from wordlm_core.vocabulary import Probe


@dataclass(frozen=True)
class Swap:
    """What another token at one place changed at a position: an intervention.

    Attributes:
        place: Where the token was changed.
        before: Id that stood there.
        after: Id that stands there now.
        changes: Largest absolute change of each step's numbers, aligned with `vectors`. The
            loss is none of them: it compares with the next token, which the model does not see.
        probs_before: Of the next tokens.
        probs_after: The same after the change.
        kl: KL(before || after) in nats.
    """

    unit: ClassVar[str] = "nats"

    place: int
    before: int
    after: int
    changes: tuple[float, ...]
    probs_before: Float[np.ndarray, " vocab"]
    probs_after: Float[np.ndarray, " vocab"]
    kl: float


@dataclass(frozen=True)
class Mixing:
    """What W_O does at a position, by putting the identity in its place: an intervention.

    Attributes:
        layer: Whose W_O.
        apart: What each head adds to the residual stream under the identity: its own slots.
        mixed: What each head adds through the real W_O; the sum over heads is the update.
        elsewhere: Share of the squared length of `mixed` outside the heads' own slots, or
            None where all is zero.
        probs: Of the next tokens, with the real W_O.
        probs_identity: The same with the identity.
        kl: KL(real || identity) in nats.
    """

    unit: ClassVar[str] = "nats"

    layer: int
    apart: Float[np.ndarray, "head d_model"]
    mixed: Float[np.ndarray, "head d_model"]
    elsewhere: float | None
    probs: Float[np.ndarray, " vocab"]
    probs_identity: Float[np.ndarray, " vocab"]
    kl: float


def swap(
    model: LanguageModel, probe: Probe, position: int, *, place: int, replacement: int
) -> Swap:
    """Return what changes at a position when another token stands at a place.

    An intervention: the whole model is computed again. A place after the position changes
    nothing, exactly: keys and values of later positions never enter.

    Args:
        model: A microgpt.
        probe: The text.
        position: Where to look.
        place: Where to change the token.
        replacement: Id of the new token.

    Raises:
        CheckpointError: Another family, or numbers that overflow.
        ConfigError: There is no such id.
        TextError: There is no such position or place.
    """
    model = require_microgpt(model, WALKED)
    place = position_in(probe, place)
    if not 0 <= replacement < model.config.vocab_size:
        raise ConfigError(
            f"there is no token {replacement}: ids go from 0 to {model.config.vocab_size - 1}"
        )
    ids = probe.ids.copy()
    ids[place] = replacement
    before = vectors(model, probe, position)
    after = vectors(model, replace(probe, ids=ids), position)
    logits_before, probs_before, _ = (step.values for step in before[-3:])
    logits_after, probs_after, _ = (step.values for step in after[-3:])
    return Swap(
        place,
        int(probe.ids[place]),
        replacement,
        tuple(
            float(np.abs(old.values - new.values).max())
            for old, new in zip(before, after, strict=True)
        ),
        probs_before,
        probs_after,
        float(kl_divergence(logits_before, logits_after)),
    )


@base.quiet_overflow
def without_wo(model: LanguageModel, probe: Probe, position: int, *, layer: int = 0) -> Mixing:
    """Return what a layer's heads write with and without W_O, and what that does.

    Without it (the identity in its place, in this layer alone, at every position) a head can
    write into its own slots of the residual stream only. The KL says what the trained
    model loses; a model trained without W_O from the start would adapt.

    Args:
        model: A microgpt.
        probe: The text.
        position: Where to look.
        layer: 0 and up.

    Raises:
        CheckpointError: Another family, or numbers that overflow.
        ConfigError: There is no such layer.
        TextError: There is no such position.
    """
    model = require_microgpt(model, WALKED)
    position = position_in(probe, position)
    config, weights, blocks = model.network
    if not 0 <= layer < config.n_layer:
        raise ConfigError(f"there is no layer {layer}: the model has {config.n_layer}")
    identity = blocks[layer]._replace(wo=np.eye(config.d_model))
    replaced = (*blocks[:layer], identity, *blocks[layer + 1 :])
    run = model.forward(probe.ids)
    other = microgpt.forward(microgpt.Network(config, weights, replaced), probe.ids)
    logits = weights["lm_head"] @ run.out[position]
    logits_identity = weights["lm_head"] @ other.out[position]
    slots = np.repeat(np.eye(config.n_head), config.d_head, axis=1)
    apart = slots * run.layers[layer].mixed[position]
    mixed = apart @ blocks[layer].wo.T
    total = float((mixed**2).sum())
    return Mixing(
        layer,
        frozen(apart),
        frozen(mixed),
        float((mixed**2 * (1 - slots)).sum()) / total if total else None,
        frozen(base.softmax(logits)),
        frozen(base.softmax(logits_identity)),
        float(kl_divergence(logits, logits_identity)),
    )
