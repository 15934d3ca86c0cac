"""Sampling: what temperature, top-k and top-p do to the next-token distribution."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from wordlm_core.checkpoint import Checkpoint
from wordlm_core.errors import ConfigError
from wordlm_core.lens._common import TokenProb, texts_at_once, top_probs
from wordlm_core.models.base import LanguageModel, check_sizes, peak, softmax
from wordlm_core.text import BOS
from wordlm_core.vocabulary import Probe, Vocabulary

MAX_TOKENS, MAX_SAMPLES, MAX_DRAWS = 10_000, 10_000, 100_000
Probabilities = Callable[[Int[np.ndarray, "text pos"]], Float[np.ndarray, "text vocab"]]


@dataclass(frozen=True)
class Distribution:
    """What the next token is drawn from.

    Attributes:
        vocabulary: Labels of `probs`.
        probs: Probability of each token; sums to 1, exact zeros where it was cut.
        entropy: In nats, of `probs`.
        effective: exp(entropy): as uncertain as a fair draw among so many tokens.
        cut: How many tokens that temperature alone would leave top-k and top-p took away.
    """

    unit: ClassVar[str] = "probability"

    vocabulary: Vocabulary
    probs: Float[np.ndarray, " vocab"]
    entropy: float
    effective: float
    cut: int

    def ranked(self, limit: int) -> tuple[TokenProb, ...]:
        """Return the likeliest tokens that can be drawn at all, by probability falling."""
        return tuple(
            item for item in top_probs(self.probs, self.vocabulary, limit) if item.prob > 0
        )


@dataclass(frozen=True)
class Sample:
    """One drawn continuation, without the text it continues.

    Attributes:
        text: The new tokens as one text: words with blanks between them, or characters.
        tokens: The new tokens; the one that ends a document is not among them.
        ids: Their ids.
        ended: Whether that one was drawn after them; else the sample was cut at its length.
    """

    text: str
    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    ended: bool


def next_distribution(
    logits: Float[np.ndarray, " vocab"],
    vocabulary: Vocabulary,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Distribution:
    """Return the distribution that the next token is drawn from.

    softmax(logits / temperature) over all tokens that can be drawn (of a word vocabulary, all
    but `<PAD>`, `<BOS>` and `<UNK>`); then the `top_k` likeliest are kept; then, of these, the
    fewest whose share reaches `top_p`; what is left is scaled to sum to 1. It says nothing
    about how good the cut-off tokens were.

    Args:
        logits: Of one position.
        vocabulary: Their labels.
        temperature: >= 0; 0 puts everything on the likeliest token (the first of equals).
        top_k: >= 1, or None for all; more than there are means all.
        top_p: Above 0, up to 1, or None for all.

    Raises:
        ConfigError: A setting is out of its range.
        CheckpointError: The logits hold +inf, NaN or nothing finite.

    Source:
        Top-p: Holtzman et al. 2020, arXiv:1904.09751.
    """
    _check(temperature, top_k, top_p)
    can_be_drawn = _drawable(logits[None], vocabulary)
    (probs,) = _probabilities(can_be_drawn, temperature, top_k, top_p)
    (alone,) = _probabilities(can_be_drawn, temperature, None, None)
    kept = probs[probs > 0]
    entropy = max(0.0, float(-(kept * np.log(kept)).sum()))
    return Distribution(
        vocabulary, probs, entropy, math.exp(entropy), int(np.count_nonzero(alone) - len(kept))
    )


def distribution_after(  # noqa: PLR0913 (one keyword a control)
    model: LanguageModel,
    vocabulary: Vocabulary,
    probe: Probe,
    drawn: Sequence[int] = (),
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Distribution:
    """Return what the next token is drawn from after a text and what was drawn so far.

    With the ids of a sample up to some word as `drawn`, this is what `generate` drew that
    sample's next word from.

    Args:
        model: Any family.
        vocabulary: The model's.
        probe: The text.
        drawn: Ids that were appended to it; past the context the window slides.
        temperature: See `next_distribution`, like `top_k` and `top_p`.
        top_k: Keep the likeliest so many.
        top_p: Keep the fewest that reach this share.

    Raises:
        ConfigError: A setting is out of its range.
    """
    ids = np.array([*probe.ids.tolist(), *drawn])[-model.config.context_length :]
    return next_distribution(
        model.last_logits(ids[None])[0],
        vocabulary,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
    )


def generate(  # noqa: PLR0913 (one keyword a control)
    model: LanguageModel,
    vocabulary: Vocabulary,
    probe: Probe | None,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    max_tokens: int = 40,
    samples: int = 1,
) -> tuple[Sample, ...]:
    """Draw continuations of a text.

    A word model slides past its context: it reads the last `context_length` ids. A sample
    ends before the token that ends a document or after `max_tokens`. Each sample has a
    generator of its own, spawned from the seed: sample i depends on the seed and on i, not on
    how many are drawn.

    microgpt does not slide: a sample ends where the context is full. As in the original, all
    samples are drawn one after the other from one `random.Random(seed)`, so sample i does not
    depend on how many are drawn after it.

    Args:
        model: Any family.
        vocabulary: The model's.
        probe: The text to continue, or None to begin a document.
        temperature: See `next_distribution`, like `top_k` and `top_p`.
        top_k: Keep the likeliest so many.
        top_p: Keep the fewest that reach this share.
        seed: >= 0.
        max_tokens: Longest sample.
        samples: How many; times `max_tokens` at most 100,000.

    Raises:
        ConfigError: A setting is out of its range.
        CheckpointError: The model's numbers overflow.
    """
    _check(temperature, top_k, top_p)
    check_sizes(max_tokens=(max_tokens, MAX_TOKENS), samples=(samples, MAX_SAMPLES))
    check_sizes(samples_times_max_tokens=(samples * max_tokens, MAX_DRAWS))
    if seed < 0:
        raise ConfigError(f"the seed must be 0 or more, not {seed}")
    start = [vocabulary.bos_id] if probe is None else [int(i) for i in probe.ids]
    context_length = model.config.context_length

    def probabilities(texts: Int[np.ndarray, "text pos"]) -> Float[np.ndarray, "text vocab"]:
        logits = _drawable(model.last_logits(texts), vocabulary)
        return _probabilities(logits, temperature, top_k, top_p)

    plan = _Plan(probabilities, start, vocabulary.end_id, context_length, max_tokens)
    if not model.slides:
        stream = random.Random(seed)
        return tuple(_sample(_draw_one(plan, stream), vocabulary) for _ in range(samples))
    generators = np.random.default_rng(seed).spawn(samples)
    size = texts_at_once(model, context_length)
    drawn: list[list[int]] = []
    for first in range(0, samples, size):
        drawn += _draw_together(plan, generators[first : first + size])
    return tuple(_sample(ids, vocabulary) for ids in drawn)


def seen_in_training(checkpoint: Checkpoint, probe: Probe | None, sample: Sample) -> bool | None:
    """Return whether a text and its continuation together stand in the training list.

    None where the file keeps no list, the sample was cut at its length, or the text's
    beginning was cut off.
    """
    if not sample.ended or (probe is not None and probe.dropped):
        return None
    return checkpoint.has_seen(whole_text(checkpoint.vocabulary, probe, sample))


def whole_text(vocabulary: Vocabulary, probe: Probe | None, sample: Sample) -> str:
    """Return a text and its continuation as one item."""
    begun = () if probe is None else probe.tokens[probe.tokens[:1] == (BOS,) :]
    return vocabulary.joined([*begun, *sample.tokens])


@dataclass(frozen=True)
class _Plan:
    """What a draw goes by."""

    probabilities: Probabilities
    start: list[int]
    end_id: int
    context_length: int
    max_tokens: int


def _draw_one(plan: _Plan, stream: random.Random) -> list[int]:
    """Return one continuation that ends where the context is full."""
    ids: list[int] = []
    room = min(plan.max_tokens, plan.context_length + 1 - len(plan.start))
    while len(ids) < room and plan.end_id not in ids[-1:]:
        (probs,) = plan.probabilities(np.array([plan.start + ids]))
        ids += stream.choices(range(len(probs)), weights=probs.tolist())
    return ids


def _draw_together(plan: _Plan, generators: Sequence[np.random.Generator]) -> list[list[int]]:
    """Return one continuation a generator, all drawn side by side, past the context."""
    drawn: list[list[int]] = [[] for _ in generators]
    running = list(range(len(generators)))
    for _ in range(plan.max_tokens):
        texts = [(plan.start + drawn[i])[-plan.context_length :] for i in running]
        shares = np.cumsum(plan.probabilities(np.array(texts)), axis=1)
        shares /= shares[:, -1:]
        points = np.array([generators[i].random() for i in running])
        for i, token_id in zip(running, (shares <= points[:, None]).sum(axis=1), strict=True):
            drawn[i].append(int(token_id))
        running = [i for i in running if drawn[i][-1] != plan.end_id]
        if not running:
            break
    return drawn


def _check(temperature: float, top_k: int | None, top_p: float | None) -> None:
    if not (math.isfinite(temperature) and temperature >= 0):
        raise ConfigError(f"the temperature must be 0 or more, not {temperature}")
    if top_k is not None and top_k < 1:
        raise ConfigError(f"top-k must be 1 or more, not {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ConfigError(f"top-p must be above 0 and at most 1, not {top_p}")


def _drawable(
    logits: Float[np.ndarray, "text vocab"], vocabulary: Vocabulary
) -> Float[np.ndarray, "text vocab"]:
    """Return logits with -inf at what a sample cannot hold."""
    drawable = logits.astype(np.float64)
    drawable[:, vocabulary.never_drawn] = -np.inf
    return drawable


def _probabilities(
    logits: Float[np.ndarray, "text vocab"],
    temperature: float,
    top_k: int | None,
    top_p: float | None,
) -> Float[np.ndarray, "text vocab"]:
    """Return `next_distribution` of each row of what can be drawn."""
    # The largest becomes 0 before the division, so that a tiny temperature overflows to
    # -inf (probability 0) and never to inf - inf.
    below = logits - peak(logits)
    if temperature == 0:
        return (np.arange(below.shape[1]) == below.argmax(axis=1)[:, None]).astype(np.float64)
    with np.errstate(over="ignore"):
        probs = softmax(below / temperature)
    vocab_size = probs.shape[1]
    cut = 0 if top_k is None else max(0, vocab_size - top_k)
    ranked = np.partition(probs, cut, axis=1)[:, cut:] if cut else probs
    if top_p is None or top_p >= 1:
        return _keep(probs, ranked.min(axis=1), vocab_size - cut) if cut else probs
    ranked = np.sort(ranked, axis=1)[:, ::-1]
    reached = np.cumsum(ranked, axis=1)
    counts = 1 + (reached / reached[:, -1:] < top_p).sum(axis=1)
    return _keep(probs, ranked[np.arange(len(ranked)), counts - 1], counts)


def _keep(
    probs: Float[np.ndarray, "text vocab"],
    least: Float[np.ndarray, " text"],
    counts: Int[np.ndarray, " text"] | int,
) -> Float[np.ndarray, "text vocab"]:
    """Return each row with all but its `counts` largest at 0, scaled.

    `least` is the smallest that stays; of those equal to it, the first do.
    """
    above, equal = probs > least[:, None], probs == least[:, None]
    room = counts - above.sum(axis=1)
    kept = np.where(above | (equal & (equal.cumsum(axis=1) <= room[:, None])), probs, 0.0)
    return kept / kept.sum(axis=1, keepdims=True)


def _sample(ids: list[int], vocabulary: Vocabulary) -> Sample:
    ended = ids[-1] == vocabulary.end_id
    words = tuple(ids[:-1] if ended else ids)
    tokens = tuple(vocabulary.itos[i] for i in words)
    return Sample(text=vocabulary.joined(tokens), tokens=tokens, ids=words, ended=ended)
