"""Sampling: what temperature, top-k and top-p do to the next-token distribution."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from wordlm_core.errors import ConfigError
from wordlm_core.lens._common import TokenProb, top_probs
from wordlm_core.models.base import LanguageModel, check_sizes, softmax
from wordlm_core.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from wordlm_core.vocabulary import Probe, Vocabulary

MAX_TOKENS, MAX_SAMPLES = 10_000, 10_000
_NEVER_DRAWN = [PAD_ID, BOS_ID, UNK_ID]


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
        text: The new words joined by blanks.
        tokens: The new tokens; `<EOS>` is not among them.
        ids: Their ids.
        ended: Whether `<EOS>` was drawn after them; else the sample was cut at its length.
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

    softmax(logits / temperature) over all tokens but `<PAD>`, `<BOS>` and `<UNK>`; then the
    `top_k` likeliest are kept; then, of these, the fewest whose share reaches `top_p`; what
    is left is scaled to sum to 1. It says nothing about how good the cut-off tokens were.

    Args:
        logits: Of one position.
        vocabulary: Their labels.
        temperature: >= 0; 0 puts everything on the likeliest token (the first of equals).
        top_k: >= 1, or None for all; more than there are means all.
        top_p: Above 0, up to 1, or None for all.

    Raises:
        ConfigError: A setting is out of its range.

    Source:
        Top-p: Holtzman et al. 2020, arXiv:1904.09751.
    """
    _check(temperature, top_k, top_p)
    open_logits = logits.astype(np.float64)
    open_logits[_NEVER_DRAWN] = -np.inf
    probs = _tempered(open_logits, temperature)
    left = np.count_nonzero(probs)
    count = len(probs) if top_k is None else min(top_k, len(probs))
    if top_p is not None and top_p < 1:
        reached = np.cumsum(np.sort(probs)[::-1][:count])
        count = 1 + int(np.count_nonzero(reached / reached[-1] < top_p))
    if count < len(probs):
        probs = _keep(probs, count)
    kept = probs[probs > 0]
    entropy = max(0.0, float(-(kept * np.log(kept)).sum()))
    return Distribution(vocabulary, probs, entropy, math.exp(entropy), int(left - len(kept)))


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
        model: Any word model.
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

    Past the context the window slides: the model reads the last `context_length` ids. A
    sample ends before `<EOS>` or after `max_tokens`. Sample i depends on the seed and on i,
    not on how many are drawn.

    Args:
        model: Any word model.
        vocabulary: The model's.
        probe: The text to continue, or None to begin a document.
        temperature: See `next_distribution`, like `top_k` and `top_p`.
        top_k: Keep the likeliest so many.
        top_p: Keep the fewest that reach this share.
        seed: >= 0.
        max_tokens: Longest sample.
        samples: How many.

    Raises:
        ConfigError: A setting is out of its range.
    """
    _check(temperature, top_k, top_p)
    check_sizes(max_tokens=(max_tokens, MAX_TOKENS), samples=(samples, MAX_SAMPLES))
    if seed < 0:
        raise ConfigError(f"the seed must be 0 or more, not {seed}")
    start = [BOS_ID] if probe is None else [int(i) for i in probe.ids]
    generators = np.random.default_rng(seed).spawn(samples)
    drawn: list[list[int]] = [[] for _ in generators]
    running = list(range(samples))
    for _ in range(max_tokens):
        texts = [(start + drawn[i])[-model.config.context_length :] for i in running]
        for i, logits in zip(running, model.last_logits(np.array(texts)), strict=True):
            probs = next_distribution(
                logits, vocabulary, temperature=temperature, top_k=top_k, top_p=top_p
            ).probs
            drawn[i].append(int(generators[i].choice(len(probs), p=probs)))
        running = [i for i in running if drawn[i][-1] != EOS_ID]
        if not running:
            break
    return tuple(_sample(ids, vocabulary) for ids in drawn)


def _check(temperature: float, top_k: int | None, top_p: float | None) -> None:
    if not (math.isfinite(temperature) and temperature >= 0):
        raise ConfigError(f"the temperature must be 0 or more, not {temperature}")
    if top_k is not None and top_k < 1:
        raise ConfigError(f"top-k must be 1 or more, not {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ConfigError(f"top-p must be above 0 and at most 1, not {top_p}")


def _tempered(
    logits: Float[np.ndarray, " vocab"], temperature: float
) -> Float[np.ndarray, " vocab"]:
    if temperature == 0:
        probs = np.zeros_like(logits)
        probs[logits.argmax()] = 1
        return probs
    # The largest becomes 0 before the division, so that a tiny temperature overflows to
    # -inf (probability 0) and never to inf - inf.
    with np.errstate(over="ignore"):
        return softmax((logits - logits.max()) / temperature)


def _keep(probs: Float[np.ndarray, " vocab"], count: int) -> Float[np.ndarray, " vocab"]:
    """Return `probs` with all but the `count` largest at 0 (of equals the first), scaled."""
    least = np.partition(probs, -count)[-count]
    kept = np.where(probs > least, probs, 0.0)
    kept[np.flatnonzero(probs == least)[: count - np.count_nonzero(kept)]] = least
    return kept / kept.sum()


def _sample(ids: list[int], vocabulary: Vocabulary) -> Sample:
    ended = ids[-1] == EOS_ID
    words = tuple(ids[:-1] if ended else ids)
    tokens = tuple(vocabulary.itos[i] for i in words)
    return Sample(text=" ".join(tokens), tokens=tokens, ids=words, ended=ended)
