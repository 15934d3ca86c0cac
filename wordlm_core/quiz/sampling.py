"""Questions about sampling: softmax, temperature, top-k, seeds."""

import numpy as np
from jaxtyping import Float

from wordlm_core.lens import sampling
from wordlm_core.lens.sampling import Distribution
from wordlm_core.models.microgpt import MicroGPTModel
from wordlm_core.quiz.question import (
    Choice,
    Context,
    Draw,
    Number,
    Points,
    Posed,
    Template,
    order,
    said,
)

TOPIC = "sampling"
ALOUD = "How a name is drawn token by token, and what temperature and top-k change in that."
_TEMPERATURES = (0.25, 0.5, 1.0, 2.0, 4.0)
_LONGEST = 64
_SHIFT_ENDS = ("all stay the same", "the likeliest gains", "they become more equal")


def two_likeliest(draw: Draw) -> Posed:
    """Ask for a softmax of two."""
    context = draw.context
    start, logits = _after(draw)
    kept = _shaped(context, logits, top_k=2)
    high, low = np.argsort(-kept.probs, kind="stable")[:2]
    prob = float(kept.probs[high])
    first, second = float(logits[high]), float(logits[low])
    return Posed(
        f"{start} the two largest logits are {said(first)} ({context.token(high)}) and "
        f"{said(second)} ({context.token(low)}). With top-k 2, how likely is "
        f"{context.token(high)}?",
        Number(prob, 2),
        f"1 / (1 + exp({said(second)} - {said(first)})) = {said(prob, 3)}.",
    )


def kept_by_top_k(draw: Draw) -> Posed:
    """Ask how many tokens can be drawn."""
    context = draw.context
    start, logits = _after(draw)
    most = draw.rng.randint(2, min(10, len(context.lexical)))
    temperature = draw.rng.choice(_TEMPERATURES[1:])
    count = int(np.count_nonzero(_shaped(context, logits, temperature, most).probs))
    return Posed(
        f"{start} a token is drawn with temperature {temperature:g} and top-k {most}. How many "
        "different tokens can be drawn?",
        Number(count),
        f"{count}: the likeliest {most} are kept, and temperature changes their shares, not "
        "their order.",
    )


def greedy(draw: Draw) -> Posed:
    """Ask for a probability at temperature 0."""
    start, logits = _after(draw)
    best = _shaped(draw.context, logits).ranked(1)[0]
    prob = float(_shaped(draw.context, logits, 0.0).probs.max())
    return Posed(
        f"{start} the likeliest token has a probability of {said(best.prob, 3)} at temperature "
        "1. How likely is it at temperature 0?",
        Number(prob, 2),
        f"{said(prob)}: temperature 0 always takes the likeliest one.",
    )


def two_in_a_row(draw: Draw) -> Posed:
    """Ask how likely a beginning is."""
    context = draw.context
    start = np.array([context.vocabulary.bos_id])
    first_logits = context.model.last_logits(start[None])[0]
    first = draw.rng.choice(np.argsort(-first_logits)[:5].tolist())
    after = _shaped(context, context.model.last_logits(np.array([[*start, first]]))[0])
    second = int(after.probs.argmax())
    before = float(_shaped(context, first_logits).probs[first])
    then = float(after.probs[second])
    return Posed(
        f"The model begins with {context.token(first)} with probability {before:.3g}; after that, "
        f"{context.token(second)} comes with probability {then:.3g}. How likely is a sample that "
        f"begins with both, {context.token(first)} and then {context.token(second)}?",
        Number(before * then, 3),
        f"One after the other: {before:.3g} x {then:.3g} = {said(before * then, 4)}.",
    )


def effective_tokens(draw: Draw) -> Posed:
    """Ask what an entropy means."""
    start, logits = _after(draw)
    of = _shaped(draw.context, logits, draw.rng.choice((0.5, 1.0, 2.0)))
    return Posed(
        f"{start} the distribution to draw from has an entropy of {said(of.entropy)} nats. It is "
        "as uncertain as a fair draw among how many tokens?",
        Number(of.effective, 1),
        f"exp({said(of.entropy)}) = {said(of.effective)}: a fair draw among n has entropy ln n.",
    )


def longest_sample(draw: Draw) -> Posed:
    """Ask where a sample ends that does not stop."""
    context = draw.context
    window = context.config.context_length
    head = np.zeros_like(context.model.weights["lm_head"])
    endless = MicroGPTModel(context.config, {**context.model.weights, "lm_head": head})
    (drawn,) = sampling.generate(
        endless, context.vocabulary, None, temperature=0.0, max_tokens=2 * window
    )
    return Posed(
        f"The context is {window} positions, and {context.begin} takes the first. If a model "
        f"never draws {context.begin}, how many {context.unit}s long does its sample get?",
        Number(len(drawn.ids)),
        f"{len(drawn.ids)}: {context.begin} and {window - 1} {context.unit}s fill the context, "
        "and the last position predicts one more. microgpt does not slide.",
    )


def higher_entropy(draw: Draw) -> Posed:
    """Ask what temperature does."""
    start, logits = _after(draw)
    first, second = draw.rng.sample(_TEMPERATURES, 2)
    entropies = [_shaped(draw.context, logits, each).entropy for each in (first, second)]
    options = (f"temperature {first:g}", f"temperature {second:g}", "both have the same")
    return Posed(
        f"{start} a token is drawn. Which temperature gives the distribution with more entropy?",
        Choice(options, order(*entropies)),
        f"{said(entropies[0])} nats at {first:g}, {said(entropies[1])} nats at {second:g}: a "
        "higher temperature makes shares more equal.",
    )


def shifted_logits(draw: Draw) -> Posed:
    """Ask what adding to all logits does."""
    start, logits = _after(draw)
    shift = draw.rng.choice((-5, -2, 3, 10))
    old, new = (_shaped(draw.context, each).probs.max() for each in (logits, logits + shift))
    right = (2, 1, 0)[order(old, new, 1e-9)]
    return Posed(
        f"{start} {shift:+d} is added to every logit. What happens to the probabilities?",
        draw.shuffled(_SHIFT_ENDS, right),
        f"The likeliest had {said(old, 4)} and has {said(new, 4)}: numerator and denominator "
        f"are both multiplied by exp({shift}).",
    )


def multiplied_logits(draw: Draw) -> Posed:
    """Ask which temperature a factor is."""
    start, logits = _after(draw)
    factor = draw.rng.choice((2, 4))
    probs = _shaped(draw.context, factor * logits).probs
    ways = {f"temperature {t:g}": t for t in (1 / factor, 1.0, float(factor))}
    apart = [
        np.abs(_shaped(draw.context, logits, each).probs - probs).max() for each in ways.values()
    ]
    right = int(np.argmin(apart))
    return Posed(
        f"{start} every logit is multiplied by {factor}. Which temperature gives the same "
        "probabilities without that?",
        draw.shuffled(tuple(ways), right),
        f"{list(ways)[right]}: logits are divided by it, and the largest probability is "
        f"{said(float(probs.max()), 3)} either way.",
    )


def same_seed(draw: Draw) -> Posed:
    """Ask what a seed does."""
    context, rng = draw.context, draw.rng
    seeds = [rng.randrange(100)] * 2 if rng.random() < 0.5 else rng.sample(range(100), 2)
    drawn = [[each.ids for each in _samples(context, seed)] for seed in seeds]
    right = 0 if drawn[0] == drawn[1] else 1
    shown = [context.item(ids[0]).text for ids in drawn]
    return Posed(
        f"Five samples are drawn at temperature 1 with seed {seeds[0]}, and again with seed "
        f"{seeds[1]}. What comes out?",
        Choice(("the same five, in the same order", "different samples"), right),
        f"The first of each: “{shown[0]}” and “{shown[1]}”. Chance in a program is a list of "
        "numbers that the seed fixes.",
    )


def unlikely_token(draw: Draw) -> Posed:
    """Ask why the likeliest token is not always drawn."""
    start, logits = _after(draw)
    best = _shaped(draw.context, logits).ranked(1)[0]
    return Posed(
        f"{start} the likeliest token has a probability of {said(best.prob)}, and something else "
        "is drawn. Is that a mistake? Explain.",
        Points(
            (
                "No: a token is drawn at random, each with its own probability.",
                f"The likeliest one comes in about {said(100 * best.prob, 0)} of 100 draws, and "
                "in the others something else does.",
                "Always taking the likeliest gives the same item every time; lower temperature or "
                "top-k make the unlikely rarer.",
            )
        ),
    )


# -- parts


def _after(draw: Draw) -> tuple[str, Float[np.ndarray, " vocab"]]:
    """Return the words for a beginning, and the logits of what comes next."""
    ids = draw.prefix()
    begun = draw.context.item(ids[1:].tolist())
    return f"After “{begun.text}”,", draw.context.model.last_logits(ids[None])[0]


def _shaped(
    context: Context,
    logits: Float[np.ndarray, " vocab"],
    temperature: float = 1.0,
    top_k: int | None = None,
) -> Distribution:
    return sampling.next_distribution(
        logits, context.vocabulary, temperature=temperature, top_k=top_k
    )


def _samples(context: Context, seed: int) -> tuple[sampling.Sample, ...]:
    most = min(_LONGEST, context.config.context_length)
    return sampling.generate(
        context.model, context.vocabulary, None, seed=seed, max_tokens=most, samples=5
    )


def _can_be_filled(context: Context) -> str:
    if context.unit == "word":
        return "its samples end with another token than the one that begins them"
    return "" if context.config.context_length <= _LONGEST else "its context takes long to fill"


QUESTIONS = (
    Template(TOPIC, "trace", two_likeliest),
    Template(TOPIC, "trace", kept_by_top_k),
    Template(TOPIC, "trace", greedy),
    Template(TOPIC, "trace", two_in_a_row),
    Template(TOPIC, "trace", effective_tokens),
    Template(TOPIC, "trace", longest_sample, _can_be_filled),
    Template(TOPIC, "predict", higher_entropy),
    Template(TOPIC, "predict", shifted_logits),
    Template(TOPIC, "predict", multiplied_logits),
    Template(TOPIC, "predict", same_seed),
    Template(TOPIC, "explain", unlikely_token),
)
