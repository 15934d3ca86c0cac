"""Ablation: what the prediction depended on.

A position is replaced by `<UNK>` (default), by a chosen word, or deleted; a head's output is
set to zero; the earlier words are shuffled. Each time the whole model is computed again and
its next-word prediction compared with the one before by KL(before || after).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from wordlm_core.errors import ConfigError, TextError
from wordlm_core.lens._common import TokenProb, largest, texts_at_once, top_probs
from wordlm_core.lens.attention import require_attention
from wordlm_core.models.base import LanguageModel, log_softmax
from wordlm_core.text import BOS, PAD, SPECIALS, UNK, normalise
from wordlm_core.vocabulary import Probe, Vocabulary

# Log-ratios below this go through a series: their terms would cancel.
_NEAR = 1e-2


@dataclass(frozen=True)
class Change:
    """How the probability of one next token changed; `delta` = `after` - `before`."""

    token: str
    before: float
    after: float
    delta: float


@dataclass(frozen=True)
class Effect:
    """What taking one position away did to the prediction.

    Attributes:
        position: Index into the probe's tokens.
        token: What stands there; a label.
        replacement: What took its place, or None where it was deleted.
        attention: Weight from the last query to this position before the change, or None
            for a model without attention.
        kl: KL(before || after) in nats, >= 0; may be infinite.
        changes: The tokens whose probability changed most, by |delta| falling.
    """

    position: int
    token: str
    replacement: str | None
    attention: Float[np.ndarray, "layer head"] | None
    kl: float
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class AblationResult:
    """Every position taken away in turn.

    Attributes:
        tokens: The probe's tokens; positions index them.
        replacement: What took each place, or None for deletion.
        replacement_count: How often that stands in the training split; 0 means that it is
            noise, never learned. None where it is not known, or for deletion.
        prediction: The likeliest next tokens of the whole text, by probability falling.
        effects: One entry a position that is not `<BOS>`, in order.
        rank_correlation: Spearman's, of attention (mean over layers and heads) with KL over
            `effects`. None without attention, under 3 positions or where one is constant.
    """

    unit: ClassVar[str] = "nats"

    tokens: tuple[str, ...]
    replacement: str | None
    replacement_count: int | None
    prediction: tuple[TokenProb, ...]
    effects: tuple[Effect, ...]
    rank_correlation: float | None


@dataclass(frozen=True)
class HeadEffect:
    """What setting one head's output to zero did to the prediction; KL in nats."""

    unit: ClassVar[str] = "nats"

    layer: int
    head: int
    kl: float
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class ShuffleResult:
    """What another order of the earlier words did to the prediction.

    Attributes:
        order: The old position of each new one.
        tokens: The shuffled text.
        kl: KL(before || after) in nats.
        prediction_before: Likeliest next tokens, by probability falling.
        prediction_after: The same after the shuffle.
    """

    unit: ClassVar[str] = "nats"

    order: tuple[int, ...]
    tokens: tuple[str, ...]
    kl: float
    prediction_before: tuple[TokenProb, ...]
    prediction_after: tuple[TokenProb, ...]


def kl_divergence(
    before_logits: Float[np.ndarray, "*#batch vocab"],
    after_logits: Float[np.ndarray, "*#batch vocab"],
) -> Float[np.ndarray, "..."]:
    """Return KL(before || after) over the last axis; leading axes broadcast.

    Zero means equal predictions. It does not say which way a prediction moved, and it is
    not symmetric: it weighs by what was likely before.

    Args:
        before_logits: Logits of p; -inf means no mass.
        after_logits: Logits of q.

    Returns:
        Nats, >= 0 (rounding below 0 is clamped), float64. Infinite where q has no mass and
        p has; tokens without mass in p count 0.
    """
    log_p, log_q = log_softmax(before_logits), log_softmax(after_logits)
    return _kl(np.exp(log_p), log_p, np.exp(log_q), log_q)


def ablate(
    model: LanguageModel,
    vocabulary: Vocabulary,
    probe: Probe,
    *,
    replacement: str | None = None,
    delete: bool = False,
    top: int = 8,
) -> AblationResult:
    """Take every position away in turn and measure how far the prediction moves.

    Read an effect as "without this word, in this text". Two words that say the same cover
    for each other and both read low; `<UNK>` is itself a word with a meaning from training,
    and a deletion also moves the words before it by one slot. `<BOS>` stays.

    Args:
        model: Any family.
        vocabulary: The model's.
        probe: The text.
        replacement: A token, or None for `<UNK>`; a vocabulary without `<UNK>` then deletes.
            A position that already holds it reads 0 exactly.
        delete: Take the position out; the others close up and nothing that was cut off on
            the left comes back.
        top: Length of `prediction` and of each `changes` (>= 1).

    Raises:
        TextError: The replacement is no word of the vocabulary, or is given together with
            `delete`, or deleting would leave nothing.

    Source:
        Occlusion: Zeiler and Fergus 2014, arXiv:1311.2901. The KL direction is our choice.
    """
    stand_in = _stand_in(vocabulary, replacement, delete)
    positions = [i for i, token in enumerate(probe.tokens) if token not in (BOS, PAD)]
    prediction: tuple[TokenProb, ...] = ()
    kl: list[float] = []
    changes: list[tuple[Change, ...]] = []
    for before, after in _logits_without(model, probe.ids, positions, stand_in):
        prediction = prediction or _prediction(before, vocabulary, top)
        some_kl, some_changes = _compare(before, after, vocabulary, top)
        kl += some_kl.tolist()
        changes += some_changes
    attention = model.last_attention(probe.ids)
    shown = None if stand_in is None else vocabulary.itos[stand_in]
    effects = tuple(
        Effect(
            position=position,
            token=probe.tokens[position],
            replacement=shown,
            attention=None if attention is None else attention[:, :, position],
            kl=kl[i],
            changes=changes[i],
        )
        for i, position in enumerate(positions)
    )
    return AblationResult(
        tokens=probe.tokens,
        replacement=shown,
        replacement_count=None if shown is None else vocabulary.counts.get(shown),
        prediction=prediction,
        effects=effects,
        rank_correlation=None
        if attention is None
        else spearman(attention[:, :, positions].mean(axis=(0, 1)), np.array(kl)),
    )


def widen(result: AblationResult, probe: Probe) -> AblationResult:
    """Line up the ablation of a text's last tokens with the whole text.

    For a model with a short window: what stands before the window cannot reach it, so taking
    it away changes nothing, and its KL is 0 exactly. Deleting out there would not pull a
    cut-off token into the window either (see `ablate`).

    Args:
        result: Of the last tokens of `probe`.
        probe: The whole text.

    Returns:
        The result with the positions of `probe`; entries of what the window does not hold
        have no changes and no attention. The rank correlation stays that of the window.
    """
    before = len(probe.tokens) - len(result.tokens)
    unseen = tuple(
        Effect(position, token, result.replacement, None, 0.0, ())
        for position, token in enumerate(probe.tokens[:before])
        if token not in (BOS, PAD)
    )
    moved = (replace(effect, position=effect.position + before) for effect in result.effects)
    return replace(result, tokens=probe.tokens, effects=(*unseen, *moved))


def knock_out(
    model: LanguageModel, vocabulary: Vocabulary, probe: Probe, *, top: int = 8
) -> tuple[HeadEffect, ...]:
    """Set each head's output to zero in turn and measure how far the prediction moves.

    Heads that do the same work cover for each other, so effects do not add up. Zero is an
    output that training never saw.

    Raises:
        CheckpointError: The model has no attention.

    Source:
        Michel et al. 2019, arXiv:1905.10650; they measure by task score, we by KL in nats.
    """
    require_attention(model, "it has no head to switch off")
    heads = [(layer, head) for layer in range(model.n_layer) for head in range(model.n_head)]
    texts = probe.ids[None]
    before = model.last_logits(texts)[0]
    after = np.concatenate([model.last_logits(texts, heads_off=(which,)) for which in heads])
    kl, changes = _compare(before, after, vocabulary, top)
    return tuple(
        HeadEffect(layer=layer, head=head, kl=float(kl[i]), changes=changes[i])
        for i, (layer, head) in enumerate(heads)
    )


def shuffle(
    model: LanguageModel, vocabulary: Vocabulary, probe: Probe, seed: int, *, top: int = 8
) -> ShuffleResult:
    """Put the earlier words in another order, keep the last, and compare the predictions.

    A one-layer attention model without positions gives the same prediction (KL 0 to
    rounding). One order is one draw: another seed gives another KL.

    Args:
        model: Any family.
        vocabulary: The model's.
        probe: The text; `<BOS>` keeps its place.
        seed: Of the order, >= 0. The order it gives is never the old one.
        top: Length of both predictions.

    Raises:
        TextError: There are fewer than two earlier words.
        ConfigError: The seed is negative.
    """
    if seed < 0:
        raise ConfigError(f"the seed must be 0 or more, not {seed}")
    first = 1 if probe.tokens[0] == BOS else 0
    earlier = np.arange(first, len(probe.ids) - 1)
    if len(earlier) < 2:
        raise TextError("a shuffle needs three words: two to swap and the last, which stays")
    permuted = np.random.default_rng(seed).permutation(earlier)
    if (permuted == earlier).all():  # a draw that changes nothing would prove nothing
        permuted = permuted[::-1]
    order = np.concatenate([np.arange(first), permuted, [len(probe.ids) - 1]])
    logits = model.last_logits(np.stack([probe.ids, probe.ids[order]]))
    return ShuffleResult(
        order=tuple(int(i) for i in order),
        tokens=tuple(probe.tokens[i] for i in order),
        kl=float(kl_divergence(logits[0], logits[1])),
        prediction_before=_prediction(logits[0], vocabulary, top),
        prediction_after=_prediction(logits[1], vocabulary, top),
    )


def spearman(first: Float[np.ndarray, " n"], second: Float[np.ndarray, " n"]) -> float | None:
    """Return Spearman's rank correlation, -1 to 1; ties share their average rank.

    None where it has no meaning: under three pairs, or one side constant. Infinite values
    rank above all others.
    """
    if len(first) < 3:
        return None
    a, b = (ranks - ranks.mean() for ranks in (_ranks(first), _ranks(second)))
    scale = np.sqrt((a @ a) * (b @ b))
    return float(np.clip(a @ b / scale, -1, 1)) if scale > 0 else None


def _stand_in(vocabulary: Vocabulary, replacement: str | None, delete: bool) -> int | None:
    """Return the id that takes each place, or None for deletion."""
    if delete:
        if replacement is not None:
            raise TextError("a word is either replaced or deleted, not both")
        return None
    if replacement is None:
        return vocabulary.unknown_id
    typed = normalise(replacement).upper()
    if typed == UNK and vocabulary.unknown_id is not None:
        return vocabulary.unknown_id
    if typed in SPECIALS:
        raise TextError(f"{typed} cannot take a token's place here: choose another or delete")
    return vocabulary.word_id(replacement)


def _logits_without(
    model: LanguageModel,
    ids: Int[np.ndarray, " pos"],
    positions: list[int],
    stand_in: int | None,
) -> Iterator[tuple[Float[np.ndarray, " vocab"], Float[np.ndarray, "variants vocab"]]]:
    """Yield the logits of the whole text and of it without each position.

    One forward gives all of them, or, of a long text, so many at a time as memory allows.
    """
    size = texts_at_once(model, len(ids))
    if stand_in is None and len(ids) < 2:
        raise TextError("deleting the only token would leave nothing to read")
    for start in range(0, len(positions), size):
        some = positions[start : start + size]
        if stand_in is None:
            before = model.last_logits(ids[None])[0]
            yield before, model.last_logits(np.stack([np.delete(ids, i) for i in some]))
            continue
        texts = np.repeat(ids[None], 1 + len(some), axis=0)
        texts[np.arange(1, len(texts)), some] = stand_in
        logits = model.last_logits(texts)
        # Equal texts in one batch may still differ in the last bit; a no-op has to read 0.
        logits[(texts == ids).all(axis=1)] = logits[0]
        yield logits[0], logits[1:]


def _compare(
    before: Float[np.ndarray, " vocab"],
    after: Float[np.ndarray, "variants vocab"],
    vocabulary: Vocabulary,
    top: int,
) -> tuple[Float[np.ndarray, " variants"], list[tuple[Change, ...]]]:
    """Return KL and the largest changes of each variant."""
    log_p, log_q = log_softmax(before), log_softmax(after)
    p, q = np.exp(log_p), np.exp(log_q)
    size = q - p
    np.abs(size, out=size)
    size[~size.any(axis=1)] = p  # where nothing changed, the likeliest tokens are shown
    which = largest(size, top)
    old, new = p[which], np.take_along_axis(q, which, axis=1)
    columns = [column.tolist() for column in (which, old, new, new - old)]
    changes = [
        tuple(Change(vocabulary.itos[i], *numbers) for i, *numbers in zip(*row, strict=True))
        for row in zip(*columns, strict=True)
    ]
    return _kl(p, log_p, q, log_q), changes


def _kl(
    p: Float[np.ndarray, "*#batch vocab"],
    log_p: Float[np.ndarray, "*#batch vocab"],
    q: Float[np.ndarray, "*#batch vocab"],
    log_q: Float[np.ndarray, "*#batch vocab"],
) -> Float[np.ndarray, "..."]:
    """Return the sum of p log(p / q) + q - p, whose terms are all >= 0.

    q - p sums to 0. Without it, terms of both signs cancel, and what is left of a tiny KL is
    rounding: effects under 1e-15 would rank by chance.
    """
    # Where p has no mass the ratio stays 0: -inf minus -inf is never computed.
    ratio = np.zeros(np.broadcast_shapes(log_p.shape, log_q.shape))
    np.subtract(log_q, log_p, out=ratio, where=p > 0)
    terms = (q - p) - p * ratio
    near = (np.abs(ratio) < _NEAR) & (p > 0)
    x = ratio[near]  # exp(x) - 1 - x by its series
    series = 1 / 2 + x * (1 / 6 + x * (1 / 24 + x * (1 / 120 + x / 720)))
    terms[near] = np.broadcast_to(p, terms.shape)[near] * x * x * series
    return np.asarray(np.maximum(terms.sum(axis=-1), 0.0))


def _prediction(
    logits: Float[np.ndarray, " vocab"], vocabulary: Vocabulary, top: int
) -> tuple[TokenProb, ...]:
    return top_probs(np.exp(log_softmax(logits)), vocabulary, top)


def _ranks(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]
