"""What a lens returns, said in words and numbers: a page's answers and tables."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app import figures, layout
from app.figures import Near
from app.layout import Bar, Cell, Part
from app.state import View
from wordlm_core.lens import sampling
from wordlm_core.lens.ablation import (
    AblationResult,
    Change,
    Effect,
    HeadEffect,
    ShuffleResult,
    TokenProb,
)
from wordlm_core.lens.attention import RowSteps
from wordlm_core.lens.contextual import ContextPair
from wordlm_core.lens.logits import LogitView
from wordlm_core.lens.maps import Jumps
from wordlm_core.lens.neighbours import NeighbourHistory
from wordlm_core.lens.receipt import Follower, Receipt
from wordlm_core.lens.sampling import Distribution, Sample
from wordlm_core.lens.survey import Agreement
from wordlm_core.lens.trajectory import Trajectory
from wordlm_core.text import UNK
from wordlm_core.vocabulary import Probe, Vocabulary

END = "∎"
_RARE = 20


@dataclass(frozen=True)
class Shuffled:
    """What a shuffle did in one model; `ordered` says whether it has positions at all."""

    name: str
    ordered: bool
    result: ShuffleResult


def row_steps(steps: RowSteps, tokens: Sequence[str], query: int) -> None:
    """Draw one attention row as it is computed: q.k, scale, mask, softmax, mix."""
    d_head = len(steps.query_vector)
    lengths = np.linalg.norm(steps.values, axis=1)
    layout.section(
        f"How position {query} · {tokens[query]} shares its attention",
        f"q·k, then ÷ √{d_head}, later positions masked, softmax over the rest: the share of each "
        "value v in the mix.",
    )
    rows: list[list[Cell]] = [
        [
            f"{key} · {token}",
            f"{steps.dots[key]:.2f}",
            "masked" if steps.masked[key] else f"{steps.scaled[key]:.2f}",
            Bar(f"{steps.weights[key]:.3f}", float(steps.weights[key])),
            "" if steps.masked[key] else f"{steps.weights[key] * lengths[key]:.2f}",
        ]
        for key, token in enumerate(tokens)
    ]
    layout.table(
        ["key (source)", "q·k", f"÷ √{d_head}, mask", "softmax", "· |v|"],
        rows,
        strong=int(steps.weights.argmax()),
        faint=range(query + 1, len(tokens)),
        label=f"Attention of query {query} step by step",
    )
    layout.help_line(
        f"Mixed, the values have length {np.linalg.norm(steps.mix):.2f}; W_O turns that into what "
        f"this head adds at the position, length {np.linalg.norm(steps.update):.2f}."
    )


def effect(of: Effect, result: AblationResult) -> None:
    """Say what taking one token away did."""
    parts: list[Part] = [(of.token, "token"), f" ({of.position}) "]
    if of.replacement is None:
        parts = ["Deleting ", *parts]
    else:
        parts = ["Replacing ", *parts, "by ", (of.replacement, "token"), " "]
    if not math.isfinite(of.kl):
        parts += [
            "moves the prediction ",
            ("infinitely far", "number"),
            ": what was possible before has no probability left.",
        ]
    elif of.kl == 0:
        parts += [("does not move", "number"), " the prediction at all: KL is 0."]
    else:
        parts += ["moves the prediction by ", (f"{figures.nats(of.kl)} nats", "number"), ": "]
        parts += _moves(of)
    layout.answer(*parts)


def correlation(result: AblationResult) -> None:
    """Say how well attention ranks the effects."""
    if result.rank_correlation is None:
        layout.help_line("Too few positions, or all alike: there is no rank correlation.")
    else:
        layout.answer("Rank correlation ", (f"{result.rank_correlation:.2f}", "number"))


def unknown_seen(vocabulary: Vocabulary, replacement: str | None) -> None:
    """Say what `<UNK>` meant in training, where it is the stand-in."""
    if replacement != UNK:
        return
    seen, total = vocabulary.counts.get(UNK, 0), sum(vocabulary.counts.values())
    if not total:
        layout.help_line("The file does not say how often <UNK> was seen in training.")
    elif not seen:
        layout.help_line("<UNK> was never seen in training: replacing by it is replacing by noise.")
    else:
        layout.help_line(
            f"In training <UNK> stood for {seen:,} of {total:,} tokens ({seen / total:.2%}): to "
            "the model it means some rare word."
        )


def heads_off(effects: Sequence[HeadEffect]) -> None:
    """Draw what switching each head off did to the prediction."""
    most = max((effect.kl for effect in effects if math.isfinite(effect.kl)), default=0.0)
    rows: list[list[Cell]] = [
        [
            f"head {effect.head}" if effects[-1].layer == 0 else f"{effect.layer}, {effect.head}",
            _change(effect.changes[0]),
            Bar(figures.nats(effect.kl), min(effect.kl, most) / most if most else 0.0),
        ]
        for effect in effects
    ]
    heads = ("head", "largest change", "KL in nats")
    layout.table(heads, rows, words=(0, 1), label="The prediction without each head")


def shuffled(results: Sequence[Shuffled]) -> None:
    """Draw the new order, and for each model what it did to the prediction."""
    layout.tokens_line(results[0].result.tokens)
    rows = [
        [
            each.name,
            _likeliest(each.result.prediction_before),
            _likeliest(each.result.prediction_after),
            figures.nats(each.result.kl),
        ]
        for each in results
    ]
    heads = ("model", "as typed", "shuffled", "KL in nats")
    layout.table(heads, rows, words=(0, 1, 2), label="The prediction before and after the shuffle")


def order_proof(results: Sequence[Shuffled]) -> None:
    """Say why a model without positions cannot notice a shuffle, beside one that shows it."""
    blind = [each.result.kl for each in results if not each.ordered]
    if not blind:
        layout.help_line(
            "There is no model without positions here to set beside them: train one with "
            "--no-positions."
        )
    elif blind[0] < figures.ROUNDING:
        left = (
            f" {blind[0]:.0e} is left: adding in another order rounds otherwise."
            if blind[0]
            else ""
        )
        layout.help_line(
            "Without positions attention is a weighted sum over a bag of tokens, and a sum has no "
            f"order: KL is 0 to the rounding of the computation.{left}"
        )
    else:
        layout.help_line("KL should be 0 without positions and is not: please report this.")


def survey(of: Agreement | None, here: float | None) -> None:
    """Say what many windows say about attention and effect, where one sentence cannot."""
    if of is None:
        layout.help_line(
            "No survey of these weights is here: python -m wordlm_core survey takes one over "
            "held-out text."
        )
        return
    own = "" if here is None else f" This sentence: {here:.2f}."
    layout.answer(
        f"In {of.windows} held-out windows the median rank correlation is ",
        (f"{of.median:.2f}", "number"),
        f".{own} The most looked-at word is the most important one in ",
        (figures.percent(of.top_matches), "number"),
        ".",
    )
    layout.help_line(
        f"The last word is the most important one in {figures.percent(of.last_first)} of them: it "
        "asks the question and reaches the prediction directly, whatever attention gives it. "
        "Windows are full, a short sentence has fewer words and scatters more."
    )


def openness(before: Distribution, after: Distribution, temperature: float) -> None:
    """Say how open the next word is at the settings, and how open it was."""
    first = after.ranked(1)[0]
    if temperature == 0:
        layout.answer(
            ("Greedy", "number"), ": always ", (first.token, "token"), ", the likeliest one."
        )
        layout.help_line(
            "Temperature 0 draws nothing at random: entropy 0, one choice. "
            f"Unscaled: {_open(before)}."
        )
        return
    layout.answer(
        "As open as a fair choice among ",
        (_effective(after), "number"),
        ": ",
        (first.token, "token"),
        f" leads with {figures.percent(first.prob)}.",
    )
    unscaled = f" Unscaled, in grey: {_open(before)}."
    same = np.array_equal(before.probs, after.probs)
    layout.help_line(f"{_open(after)}.".capitalize() + ("" if same else unscaled))


def receipt(found: Receipt, model: Distribution, rows: int = 8) -> None:
    """Set the model's probabilities beside what followed the same words in training."""
    two, one = found.after_two, found.after_one
    best = model.ranked(1)[0]
    parts: list[Part] = [
        "The model gives ",
        (best.token, "token"),
        f" {figures.percent(best.prob)}. In training ",
    ]
    if two is not None and two.total:
        seen = next((item.count for item in two.items if item.token == best.token), 0)
        parts += [
            *_chips(two.context),
            " was followed by it ",
            (f"{seen:,} of {two.total:,}", "number"),
            " times.",
        ]
    else:
        words = one.context if two is None else two.context
        parts += ["no word followed ", *_chips(words), " twice: the corpus has no answer."]
    layout.answer(*parts)
    layout.note(*_rarity(found, one.context[0]))
    followers = [one] if two is None else [two, one]
    counts = [{item.token: item for item in side.items} for side in followers]
    ranked = [entry.token for entry in model.ranked(3)]
    ranked += [
        item.token
        for side, most in zip(followers, (5, 3), strict=False)
        for item in side.items[:most]
    ]
    shown = list(dict.fromkeys(ranked))[:rows]
    layout.table(
        ["next word", "model", *(f"after “{' '.join(side.context)}”" for side in followers)],
        [
            [
                token,
                figures.percent(float(model.probs[model.vocabulary.stoi[token]])),
                *(_times(side.get(token)) for side in counts),
            ]
            for token in shown
        ],
        label="The model's probability beside the corpus counts",
    )
    layout.help_line(
        f"Counts in the training text; what was seen fewer than {found.least} times is not "
        "counted and shown as a dash."
    )


def samples(of: View, drawn: Sequence[Sample], chosen: int, temperature: float) -> None:
    """List drawn continuations, each as the tokens that were added, and what is new in them."""
    if temperature == 0:
        layout.help_line("Temperature 0 is greedy: every sample is the same, whatever the seed.")
    rows: list[list[Cell]] = [
        [str(n), f"{sample.text} {END}".strip() if sample.ended else f"{sample.text} …"]
        for n, sample in enumerate(drawn, 1)
    ]
    heads, columns = ("", "continuation"), (0, 1)
    if of.checkpoint.seen_items is not None:
        words = {True: "in it", False: "new", None: "unfinished"}
        heads, columns = ("", "continuation", "whole", "in the training list"), (0, 1, 2, 3)
        for row, sample in zip(rows, drawn, strict=True):
            seen = sampling.seen_in_training(of.checkpoint, of.probe, sample)
            row += [sampling.whole_text(of.vocabulary, of.probe, sample), words[seen]]
    strong = chosen if len(drawn) > 1 else None
    layout.table(heads, rows, strong=strong, words=columns, label="Samples")


def drawn(token: str, of: Distribution, temperature: float) -> None:
    """Say how a word of a sample came about."""
    if temperature == 0:
        layout.answer((token, "token"), ": the likeliest one, taken without a draw.")
        return
    prob = float(of.probs[of.vocabulary.stoi[token]])
    ahead = int(np.count_nonzero(of.probs > prob))
    likelier = "1 other was" if ahead == 1 else f"{ahead:,} others were"
    layout.answer(
        (token, "token"),
        " was ",
        ("drawn at random", "number"),
        f" with a chance of {figures.percent(prob)}: ",
        "the likeliest one." if ahead == 0 else f"{likelier} likelier.",
    )


def sample_so_far(probe: Probe, of: Sample, index: int, token: str) -> None:
    """Draw a sample's tokens behind the text they continue, up to the marked one."""
    tokens = [*probe.tokens, *of.tokens[:index], token]
    layout.tokens_line(tokens, faint=len(probe.tokens), strong=len(tokens) - 1)


def pushes(of: LogitView) -> None:
    """Say what attention and the MLP push most at the position."""
    place: list[Part] = [f"After {of.position} · ", (of.tokens[of.position], "token"), " "]
    sides = [("attention", of.attention), ("the MLP", of.mlp)]
    for name, push in sides:
        if push is None:
            continue
        up, down = push.promoted[0], push.pushed_down[0]
        place += [
            f"{name} lifts ",
            (up.token, "token"),
            f" most ({figures.shift(up.logit)}) and presses ",
            (down.token, "token"),
            f" down ({figures.shift(down.logit)})" + ("." if push is of.mlp else "; "),
        ]
    layout.answer(*place)


def neurons(of: LogitView, words: int = 4) -> None:
    """List the strongest hidden units and what each promotes and pushes down."""
    rows: list[list[Cell]] = [
        [
            str(neuron.index),
            f"{neuron.activation:.2f}",
            ", ".join(shift.token for shift in neuron.push.promoted[:words]),
            ", ".join(shift.token for shift in neuron.push.pushed_down[:words]),
        ]
        for neuron in of.neurons
    ]
    heads = ("neuron", "activation", "promotes", "pushes down")
    layout.table(heads, rows, words=(0, 2, 3), label="The strongest hidden units")


def ledger(pair: ContextPair) -> None:
    """Say what a context changed, and list the row as it is built up in both texts."""
    layout.answer(
        "One lookup row for ",
        (pair.token, "token"),
        ", two contextual rows: cosine ",
        (f"{pair.contextual_cosine:.2f}", "number"),
        ", distance ",
        (f"{pair.contextual_l2:.2f}", "number"),
        ".",
    )
    if pair.lookup_equal:
        same = f"identical, all {pair.rows.shape[1]} numbers"
    else:
        same = f"{pair.lookup_cosine:.3f}"
    rows: list[list[Cell]] = [
        ["lookup row", f"{pair.lookup_cosine:.3f}", "0.00", same],
        [
            "+ position row",
            f"{pair.residual_cosine:.3f}",
            f"{pair.position_l2:.2f}",
            "same slot" if pair.position_l2 == 0 else "another slot",
        ],
        [
            "+ attention: contextual",
            f"{pair.contextual_cosine:.3f}",
            f"{pair.contextual_l2:.2f}",
            "same text before it" if pair.contextual_l2 == 0 else "another text before it",
        ],
    ]
    layout.table(
        ("the row so far", "cosine", "distance", "first against second text"),
        rows,
        words=(0, 3),
        strong=2,
        label="The row in both texts, step by step",
    )


def shares(pair: ContextPair) -> None:
    """Say which part of the difference attention added, against position."""
    if pair.attention_share is None:
        layout.help_line("The same text before both: there is no difference to share out.")
        return
    layout.answer(
        "Attention brings ",
        (figures.percent(pair.attention_share), "number"),
        " of the difference, position ",
        (figures.percent(1 - pair.attention_share), "number"),
        ".",
    )
    layout.help_line(
        f"Alone, what attention adds differs by {pair.attention_l2:.2f} and the position rows by "
        f"{pair.position_l2:.2f}. Lengths of vectors do not add up; their shares along the "
        "difference do."
    )


def nearest(panels: Sequence[Near]) -> None:
    """Say what is nearest to a word in the first model."""
    first = panels[0].result
    parts: list[Part] = ["Nearest to ", (first.word, "token"), ": "]
    for item in first.items[:3]:
        parts += [(item.token, "token"), " ", (f"{item.cosine:.2f}", "number"), ", "]
    layout.answer(*parts, f"by cosine in {panels[0].name}.")


def arrivals(of: NeighbourHistory) -> None:
    """Say which of a word's last neighbours were there from the start, and who came last."""
    first, last = of.steps[0], of.steps[-1]
    start = {item.token for item in first.items}
    stayed = [item.token for item in last.items if item.token in start]
    parts: list[Part] = [
        (str(len(stayed)), "number"),
        f" of the {len(last.items)} nearest at step {last.step:,} were near it at step "
        f"{first.step:,} already",
    ]
    came = [(entry.step, token) for entry in of.steps for token in entry.joined]
    came = [pair for pair in came if pair[1] in {item.token for item in last.items}]
    if came:
        parts += ["; the latest to come is ", (came[-1][1], "token"), f" (step {came[-1][0]:,})"]
    layout.answer(*parts, ".")


def comings(of: NeighbourHistory) -> None:
    """List who came and who left at each stored step."""
    rows = [
        [f"{entry.step:,}", ", ".join(entry.joined) or "-", ", ".join(entry.left) or "-"]
        for entry in of.steps
    ]
    layout.table(
        ("step", "came", "left"), rows, words=(1, 2), label=f"Neighbours of {of.word} by step"
    )


def share_kept(of: Trajectory) -> None:
    """Say loudly how little of the embedding a map shows."""
    axes = {2: "two", 3: "three"}[len(of.basis)]
    layout.answer(
        f"These {axes} axes keep only ",
        (figures.kept_in_words(of), "number"),
        " of the variance: most distance is hidden. For distances use Neighbours.",
    )


def apparent(of: Jumps, name: str) -> None:
    """Say how far words seem to move where each panel has its own axes, and how far they do."""
    layout.answer(
        f"{name}: from panel to panel the words seem to travel ",
        (f"{of.apart:.1f}", "number"),
        " units. On one common map the same words travel ",
        (f"{of.common:.1f}", "number"),
        ".",
    )


def outside(words: Sequence[str]) -> None:
    """Name the words that leave the map."""
    if words:
        layout.note(f"Beyond the edge of the map at some step: {', '.join(words)}.")


def misleading() -> None:
    """Say why separately fitted panels mislead."""
    layout.help_line(
        "Each panel's axes are fitted to its own step, so axes turn, flip and swap between "
        "panels: a word that jumps may not have moved at all. Switch it off for the common map."
    )


# -- parts


def _open(of: Distribution) -> str:
    return f"entropy {of.entropy:.2f} nats, {_effective(of)}"


def _effective(of: Distribution) -> str:
    count = f"{of.effective:.1f}" if of.effective < 9.95 else f"{of.effective:,.0f}"
    unit = of.vocabulary.unit
    return f"1 {unit}" if count == "1.0" else f"{count} {unit}s"


def _chips(tokens: Sequence[str]) -> list[Part]:
    """Return a few tokens of a row as parts of an answer."""
    spaced: list[Part] = []
    for token in tokens:
        spaced += [(token, "token"), " "]
    return spaced[:-1]


def _rarity(found: Receipt, last: str) -> list[str]:
    if last == UNK:
        return [
            "The last word is not in the vocabulary. The model reads <UNK>, which stood "
            f"{found.last_count:,} times in training for many rare words at once: it knows that "
            "a rare word stands there, not which."
        ]
    if found.last_count < _RARE:
        return [
            f"“{last}” stands only {found.last_count:,} times in the training text: there was "
            "little to learn from, and shares of so few are mostly chance."
        ]
    return []


def _times(item: Follower | None) -> str:
    return "-" if item is None else f"{item.count:,} · {figures.percent(item.share)}"


def _likeliest(predicted: Sequence[TokenProb]) -> str:
    return f"{predicted[0].token} {figures.percent(predicted[0].prob)}"


def _moves(of: Effect) -> list[Part]:
    parts: list[Part] = []
    for change in of.changes[:2]:
        ends = _change(change).removeprefix(change.token)
        parts += [", " if parts else "", (change.token, "token"), ends]
    return [*parts, "."]


def _change(of: Change) -> str:
    return f"{of.token} {figures.percent(of.before)} → {figures.percent(of.after)}"
