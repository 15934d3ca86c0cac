"""Questions about experiments: what a change of one thing does. Each was, or is, really run."""

from collections.abc import Callable

import numpy as np

from wordlm_core.checkpoint import Checkpoint
from wordlm_core.models.base import MAX_HEADS
from wordlm_core.models.microgpt import MicroGPTConfig, MicroGPTModel
from wordlm_core.quiz.question import (
    Choice,
    Context,
    Draw,
    Number,
    Points,
    Posed,
    Template,
    needs_room,
    needs_room_for,
    needs_training,
    order,
    said,
)
from wordlm_core.training import NonFiniteLossError, perplexity

TOPIC = "experiments"
ALOUD = (
    "One experiment of yours: what you expected, what you changed, what came out, what it shows."
)
_LAST, _END = 200, 20
_NEITHER = "neither, beyond chance"
_BEYOND = " A difference of less than two standard errors counts as chance."
_HUGE = 1e6
_HUGE_ENDS = (
    "it stops: its numbers are no longer usable",
    "it ends with a lower loss than at 0.01",
    "it ends with a higher loss than at 0.01",
)
_LAYERS, _TOKENS = (1, 2, 3), (1, 10, 26)
_COUNTS = ("more parameters", "fewer parameters", "the same number of parameters")


def all_parameters(draw: Draw) -> Posed:
    """Ask how many parameters the model has."""
    context, config = draw.context, draw.context.config
    count = context.parameters()
    parts = ", ".join(f"{name} {a.size:,}" for name, a in context.model.weights.items())
    return Posed(
        f"Vocabulary {config.vocab_size:,}, context {config.context_length}, width "
        f"{config.d_model}, hidden units {config.hidden}, layers {config.n_layer}, heads "
        f"{config.n_head}, no biases. How many parameters is that?",
        Number(count),
        f"{parts}: together {count:,}.",
    )


def one_layer_more(draw: Draw) -> Posed:
    """Ask how many parameters layers add."""
    context = draw.context
    more = draw.rng.choice(_LAYERS)
    now, layers = context.parameters(), context.config.n_layer + more
    then = context.parameters(n_layer=layers)
    each = (then - now) // more
    return Posed(
        f"The model has {now:,} parameters with n_layer = {context.config.n_layer}, width "
        f"{context.config.d_model} and {context.config.hidden} hidden units. How many does it have "
        f"with n_layer = {layers}?",
        Number(then),
        f"A layer is 4 matrices of attention and 2 of the MLP, {each:,} numbers: {now:,} + {more} "
        f"x {each:,} = {then:,}. The tables stay.",
    )


def more_tokens(draw: Draw) -> Posed:
    """Ask how many parameters a larger vocabulary adds."""
    context = draw.context
    more = draw.rng.choice(_TOKENS)
    now = context.parameters()
    then = context.parameters(vocab_size=context.config.vocab_size + more)
    return Posed(
        f"The model has {now:,} parameters at width {context.config.d_model}. The list gets "
        f"{more} new {context.unit}{'s' if more > 1 else ''}. How many parameters does it "
        "have then?",
        Number(then),
        f"Each new token has a row in wte and one in lm_head: {now:,} + {more} x 2 x "
        f"{context.config.d_model} = {then:,}.",
    )


def perplexity_of_the_end(draw: Draw) -> Posed:
    """Ask for a perplexity."""
    last = draw.context.checkpoint.losses()[-min(_LAST, draw.rng.choice((50, 100, 200))) :]
    loss = float(np.mean(last))
    value = perplexity(loss)
    return Posed(
        f"Over its last {len(last)} training steps this model's mean loss was {said(loss)} nats. "
        "What perplexity is that?",
        Number(value, 1),
        f"exp({said(loss)}) = {said(value)}: as unsure as between about {said(value, 0)} equal "
        "tokens.",
    )


def double_width(draw: Draw) -> Posed:
    """Ask whether twice the width is twice the parameters."""
    context = draw.context
    wide = context.config.d_model
    now, then = context.parameters(), context.parameters(d_model=2 * wide)
    options = ("more than twice as many", "less than twice as many", "exactly twice as many")
    return Posed(
        f"Width {wide} gives {now:,} parameters. The width is doubled to {2 * wide}, the MLP with "
        "it. How many parameters is that?",
        Choice(options, order(then, 2 * now, 0.5)),
        f"{then:,}, {then / now:.2f} times as many: the tables double, but the layers' matrices "
        "grow on both sides, fourfold.",
    )


def other_heads(draw: Draw) -> Posed:
    """Ask what the number of heads does to the parameters."""
    context = draw.context
    wide = context.config.d_model
    heads = draw.rng.choice(_other_heads(context))
    now, then = context.parameters(), context.parameters(n_head=heads)
    return Posed(
        f"The width stays {wide}. With {heads} instead of {context.config.n_head} heads the model "
        "has ...",
        Choice(_COUNTS, order(then, now, 0.5)),
        f"{now:,} before, {then:,} after: heads share the width, so more heads are narrower ones.",
    )


def positions_switched(draw: Draw) -> Posed:
    """Ask what leaving positions out does to the parameters."""
    context = draw.context
    used, unused = context.parameters(positions=True), context.parameters(positions=False)
    return Posed(
        "In this microgpt, a model without positions still draws and stores wpe; it is only "
        "never added. Compared with one that uses it, it has ...",
        Choice(_COUNTS, order(unused, used, 0.5)),
        f"{used:,} with, {unused:,} without: so the two start from the same numbers, and the "
        "positions alone make the difference.",
    )


def loss_without_positions(draw: Draw) -> Posed:
    """Ask what positions were good for, by two trained models."""
    plain, without = _pair(draw.context, _only_positions_differ)
    change, chance = _paired(without, plain)
    options = ("the model without positions", "the model with positions", _NEITHER)
    return Posed(
        f"{plain.name} and {without.name} were trained alike, the second without position "
        f"embeddings. Which has the higher mean loss over the last {_LAST} steps?{_BEYOND}",
        Choice(options, order(change, 0.0, 2 * chance)),
        f"With positions {said(_end(plain), 4)}, without {said(_end(without), 4)} nats: on the "
        f"same items a difference of {said(change, 4)}, give or take {said(chance, 4)}, from one "
        "run of each.",
    )


def loss_with_more_layers(draw: Draw) -> Posed:
    """Ask what a second layer was good for, by two trained models."""
    few, many = _pair(draw.context, _only_layers_differ)
    change, chance = _paired(few, many)
    counts = [each.model.n_layer for each in (few, many)]
    options = (f"the one with n_layer = {counts[0]}", f"the one with n_layer = {counts[1]}")
    return Posed(
        f"{few.name} and {many.name} were trained alike, but for their layers. Which has the "
        f"higher mean loss over the last {_LAST} steps?{_BEYOND}",
        Choice((*options, _NEITHER), order(change, 0.0, 2 * chance)),
        f"{said(_end(few), 4)} with n_layer = {counts[0]}, {said(_end(many), 4)} with {counts[1]}: "
        f"on the same items a difference of {said(change, 4)} nats, give or take "
        f"{said(chance, 4)}, from one run of each. Deeper is not better by itself.",
    )


def learning_rates(draw: Draw) -> Posed:
    """Ask which of two learning rates gets further in a few steps, by training with both."""
    first, second = draw.rng.sample((0.0001, 0.001, 0.01), 2)
    seed = draw.rng.randrange(1000)
    ends = [_trained(draw.context, seed, lr) for lr in (first, second)]
    steps = len(ends[0])
    means = [float(np.mean(losses[-_END:])) for losses in ends]
    return Posed(
        f"Two fresh models with the same seed ({seed}) train for {steps} steps on items drawn from "
        f"this one, with learning rates {first:g} and {second:g}. Which has the higher loss at "
        "the end?",
        Choice((f"the one with {first:g}", f"the one with {second:g}", "neither"), order(*means)),
        f"Over the last {_END} steps: {said(means[0], 3)} with {first:g}, {said(means[1], 3)} with "
        f"{second:g}. With a small learning rate {steps} steps do not lead far.",
    )


def huge_learning_rate(draw: Draw) -> Posed:
    """Ask how a training ends whose learning rate is absurd, by running it."""
    seed = draw.rng.randrange(1000)
    usual = float(np.mean(_trained(draw.context, seed, 0.01)[-_END:]))
    try:
        end = float(np.mean(_trained(draw.context, seed, _HUGE)[-_END:]))
    except NonFiniteLossError as error:
        right, why = 0, f"It stops with a reason: {error}."
    else:
        right = 1 if end < usual else 2
        why = f"It ends at {said(end, 3)}."
    return Posed(
        "A fresh model is trained on items drawn from this one, with a learning rate of "
        f"{_HUGE:,.0f}. How does that end?",
        draw.shuffled(_HUGE_ENDS, right),
        f"{why} With 0.01 and the same seed the loss at the end is {said(usual, 3)}.",
    )


def same_run_again(draw: Draw) -> Posed:
    """Ask whether a training can be repeated, by repeating it."""
    rng = draw.rng
    first = rng.randrange(1000)
    second = first if rng.random() < 0.5 else first + 1
    curves = [_trained(draw.context, seed, 0.01) for seed in (first, second)]
    apart = max(abs(a - b) for a, b in zip(*curves, strict=True))
    return Posed(
        "A small model is trained twice on the same items with the same settings, with seed "
        f"{first} and then with seed {second}. Are the two loss curves the same?",
        Choice(("they are equal at every step", "they differ"), 0 if apart == 0 else 1),
        f"The largest difference at any step is {said(apart, 4)}. The seed fixes the order of the "
        "items and the first weights; the rest is arithmetic.",
    )


def one_change(draw: Draw) -> Posed:
    """Ask how to compare."""
    context = draw.context
    wide = context.config.d_model
    return Posed(
        f"You want to know what width {2 * wide} instead of {wide} does. What must stay the same "
        "in both runs, and what may you conclude from one run of each?",
        Points(
            (
                "Everything but the width stays: list, order of the items, steps, learning rate, "
                "seed.",
                "If two things change at once, the difference cannot be put down to either.",
                "One run of each is one draw: a small difference may be chance, so it takes more "
                "seeds before it is called an effect.",
            )
        ),
    )


def commit_first(draw: Draw) -> Posed:
    """Ask why a prediction is written down first."""
    lr = draw.rng.choice((0.001, 0.1))
    return Posed(
        f"Before you try a learning rate of {lr:g} you write down what you expect to change, and "
        "by how much. Why before?",
        Points(
            (
                "Afterwards every result looks as if one had expected it.",
                "A prediction with a size can turn out wrong, and then it shows what you had not "
                "understood.",
                "It also says beforehand what to measure, so that you do not pick what happens to "
                "fit.",
            )
        ),
    )


# -- parts

Pair = tuple[Checkpoint, Checkpoint]
Differs = Callable[[MicroGPTConfig, MicroGPTConfig], bool]


def _trained(context: Context, seed: int, lr: float) -> list[float]:
    trainer = context.training(seed=seed, lr=lr)
    trainer.run()
    return trainer.losses


def _end(of: Checkpoint) -> float:
    return float(np.mean(of.losses()[-_LAST:]))


def _paired(first: Checkpoint, second: Checkpoint) -> tuple[float, float]:
    """Return how much higher the first one's last losses are, and the standard error of that.

    Both read the same items in the same order, so only their differences scatter by chance.
    """
    differences = first.losses()[-_LAST:] - second.losses()[-_LAST:]
    return float(differences.mean()), float(differences.std(ddof=1) / len(differences) ** 0.5)


def _only_positions_differ(first: MicroGPTConfig, second: MicroGPTConfig) -> bool:
    plain = first.positions and not second.positions
    return plain and first.shapes == second.shapes and first.n_head == second.n_head


def _only_layers_differ(first: MicroGPTConfig, second: MicroGPTConfig) -> bool:
    def rest(of: MicroGPTConfig) -> tuple[object, ...]:
        return of.vocab_size, of.context_length, of.d_model, of.hidden, of.n_head, of.positions

    return first.n_layer < second.n_layer and rest(first) == rest(second)


def _pairs(context: Context, differs: Differs) -> list[Pair]:
    """Return the trained pairs, the loaded one among them, that differ in one thing only."""
    of = context.checkpoint
    known = [
        each
        for each in (of, *context.others)
        if isinstance(each.model, MicroGPTModel)
        and each.vocabulary.sha256 == of.vocabulary.sha256
        and _protocol(each) == _protocol(of)
        and len(each.losses()) >= _LAST
    ]
    return [
        (first, second)
        for first in known
        for second in known
        if of in (first, second) and differs(first.model.config, second.model.config)
    ]


def _protocol(of: Checkpoint) -> tuple[object, ...]:
    training = of.section("training")
    said_of = [training.get(name) for name in ("steps", "lr", "seed")]
    return *said_of, of.section("corpus").get("sha256")


def _pair(context: Context, differs: Differs) -> Pair:
    return _pairs(context, differs)[0]


def _needs_no_positions(context: Context) -> str:
    found = _pairs(context, _only_positions_differ)
    return "" if found else "there is no like model trained with or without positions"


def _needs_other_layers(context: Context) -> str:
    found = _pairs(context, _only_layers_differ)
    return "" if found else "there is no like model trained with another number of layers"


def _needs_history(context: Context) -> str:
    return (
        "" if len(context.checkpoint.losses()) else "its checkpoint keeps no loss of its training"
    )


def _needs_other_heads(context: Context) -> str:
    return "" if _other_heads(context) else "no other number of heads divides its width"


def _other_heads(context: Context) -> list[int]:
    config = context.config
    fitting = [n for n in range(1, MAX_HEADS + 1) if config.d_model % n == 0]
    return [n for n in fitting if n != config.n_head and context.fits(n_head=n)]


QUESTIONS = (
    Template(TOPIC, "trace", all_parameters, needs_room),
    Template(
        TOPIC, "trace", one_layer_more, needs_room_for(n_layer=lambda of: of.n_layer + max(_LAYERS))
    ),
    Template(
        TOPIC,
        "trace",
        more_tokens,
        needs_room_for(vocab_size=lambda of: of.vocab_size + max(_TOKENS)),
    ),
    Template(TOPIC, "trace", perplexity_of_the_end, _needs_history),
    Template(TOPIC, "predict", double_width, needs_room_for(d_model=lambda of: 2 * of.d_model)),
    Template(TOPIC, "predict", other_heads, _needs_other_heads),
    Template(TOPIC, "predict", positions_switched, needs_room),
    Template(TOPIC, "predict", loss_without_positions, _needs_no_positions),
    Template(TOPIC, "predict", loss_with_more_layers, _needs_other_layers),
    Template(TOPIC, "predict", learning_rates, needs_training),
    Template(TOPIC, "predict", huge_learning_rate, needs_training),
    Template(TOPIC, "predict", same_run_again, needs_training),
    Template(TOPIC, "explain", one_change),
    Template(TOPIC, "explain", commit_first),
)
