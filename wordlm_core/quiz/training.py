"""Questions about training: loss, gradients, Adam."""

import math
import random

import numpy as np

from wordlm_core.autograd import Value
from wordlm_core.gpt_trainer import Adam, loss_of
from wordlm_core.models import microgpt
from wordlm_core.models.base import log_softmax
from wordlm_core.quiz.question import (
    Choice,
    Draw,
    Number,
    Points,
    Posed,
    Template,
    listed,
    needs_room,
    order,
    said,
)

TOPIC = "training"
ALOUD = "One training step: forward, loss, backward, Adam, and what each leaves behind."
_NUDGE = 1e-4


def uniform_loss(draw: Draw) -> Posed:
    """Ask for the loss of one who knows nothing."""
    size = draw.rng.choice((draw.context.config.vocab_size, 2, 10, 50, 100))
    loss = -float(log_softmax(np.zeros(size))[0])
    return Posed(
        f"A model gives each of {size:,} tokens the same probability. What is its loss, in nats?",
        Number(loss, 2),
        f"-ln(1/{size:,}) = ln {size:,} = {said(loss, 3)}.",
    )


def loss_of_one(draw: Draw) -> Posed:
    """Ask for the loss of one prediction."""
    context, item = draw.context, draw.item()
    place = draw.place(item)
    loss = float(loss_of(context.model.network, item.ids)[place])
    prob = math.exp(-loss)
    return Posed(
        f"At position {place} of “{item.text}” the model gives the next token, "
        f"{context.token(item.ids[place + 1])}, a probability of {prob:.4g}. What is the loss "
        "there, in nats?",
        Number(loss, 2),
        f"-ln {prob:.4g} = {said(loss, 3)}. The other tokens' probabilities do not enter.",
    )


def mean_of_losses(draw: Draw) -> Posed:
    """Ask for the loss of a whole document."""
    item = draw.item()
    losses = loss_of(draw.context.model.network, item.ids)
    mean = float(losses.mean())
    return Posed(
        f"The losses of the {len(losses)} predictions of “{item.text}” are "
        f"{listed(losses.tolist())}. What is the loss of the training step on it?",
        Number(mean, 2),
        f"Their mean: {said(float(losses.sum()))} / {len(losses)} = {said(mean, 3)}.",
    )


def first_step_of_adam(draw: Draw) -> Posed:
    """Ask where Adam's first step ends."""
    rng = draw.rng
    weight = rng.choice((0.3, 0.4, -0.2, 0.5))
    gradient = rng.choice((0.02, 0.05, 0.2, 3.0, 5.0, 20.0)) * rng.choice((1, -1))
    lr = rng.choice((0.01, 0.02, 0.05))
    moved = np.array([weight])
    Adam(moved).step(np.array([gradient]), lr, 1)
    return Posed(
        f"A weight is {weight:g}, its first gradient {gradient:g}, the learning rate {lr:g}. "
        "Where is it after Adam's first step?",
        Number(float(moved[0]), 3),
        f"{said(float(moved[0]), 4)}: both means are corrected for their start, so the first step "
        f"is {lr:g} against the gradient's sign, however large the gradient. Plain descent would "
        f"give {said(weight - lr * gradient, 4)}.",
    )


def twice_backward(draw: Draw) -> Posed:
    """Ask for a gradient that was not set to zero."""
    rng = draw.rng
    first, second = rng.choice((2, 3, 4, 5)), rng.choice((-6, -4, -3, 7, 8))
    a, b = Value(first), Value(second)
    product = a * b
    product.backward()
    once = a.grad
    product.backward()
    return Posed(
        f"a = {first}, b = {second}, c = a * b. c.backward() is called twice, and nothing is set "
        "to 0 in between. What is a.grad?",
        Number(a.grad),
        f"dc/da is b, {once:g}, and a call adds to what is there: {once:g} + {once:g} = "
        f"{a.grad:g}.",
    )


def gradient_of_a_logit(draw: Draw) -> Posed:
    """Ask how the loss depends on the right token's logit."""
    context, item = draw.context, draw.item()
    place = draw.place(item)
    target = item.ids[place + 1]
    logits = context.model.trace(item.ids[:-1]).logits[place]
    prob = math.exp(log_softmax(logits)[target])
    nudges = np.eye(len(logits))[target] * _NUDGE
    ends = [-log_softmax(logits + sign * nudges)[target] for sign in (1, -1)]
    slope = float(ends[0] - ends[1]) / (2 * _NUDGE)
    return Posed(
        f"After position {place} of “{item.text}” the right token, {context.token(target)}, has a "
        f"probability of {said(prob, 3)}. What is the gradient of that prediction's loss with "
        "respect to that token's logit?",
        Number(slope, 2),
        f"p - 1 = {said(slope, 3)} (measured by moving the logit a little): the less likely it "
        "was, the harder it is pulled up.",
    )


def rows_with_gradient(draw: Draw) -> Posed:
    """Ask which rows of wte one document trains."""
    context, item = draw.context, draw.item()
    config = context.config
    flat = np.zeros(sum(math.prod(shape) for shape in config.shapes.values()))
    gradient = microgpt.as_network(config, flat)
    loss_of(context.model.network, item.ids, gradient)
    count = int(gradient.weights["wte"].any(axis=1).sum())
    return Posed(
        f"One training step on “{item.text}”: how many of the {config.vocab_size:,} rows of wte "
        "have a gradient that is not all 0?",
        Number(count),
        f"{count}: one for each different token that was read, {context.begin} included. Rows of "
        "tokens that were not read stay out of it.",
    )


def step_on_one_item(draw: Draw) -> Posed:
    """Ask what one step does to the loss it was made for."""
    context, item = draw.context, draw.item()
    seed, lr = draw.rng.randrange(1000), draw.rng.choice((0.001, 0.005, 0.01))
    config = context.config
    drawn = microgpt.initial_weights(config, random.Random(seed))
    flat = np.concatenate([array.ravel() for array in drawn.values()])
    network = microgpt.as_network(config, flat)
    slopes = np.zeros_like(flat)
    before = loss_of(network, item.ids, microgpt.as_network(config, slopes)).mean()
    Adam(flat).step(slopes, lr, 1)
    after = loss_of(network, item.ids).mean()
    return Posed(
        f"A fresh model of this size (seed {seed}) takes one step with learning rate {lr:g} on "
        f"“{item.text}”. What happens to its loss on that same item?",
        Choice(("it falls", "it rises", "it stays the same"), order(before, after)),
        f"It was {said(before, 3)} and is {said(after, 3)}.",
    )


def loss_before_training(draw: Draw) -> Posed:
    """Ask how well a random model predicts."""
    context = draw.context
    seed, size = draw.rng.randrange(1000), context.config.vocab_size
    fresh = context.fresh(seed)
    loss = float(np.mean([loss_of(fresh.network, item.ids).mean() for item in context.items]))
    ways = {
        "near 0": 0.0,
        f"near ln {size:,} = {said(math.log(size))}": math.log(size),
        f"near {size:,} / 2 = {size / 2:g}": size / 2,
    }
    right = int(np.argmin([abs(loss - value) for value in ways.values()]))
    return Posed(
        f"A model of this size with random weights (seed {seed}) has {size:,} tokens to choose "
        "from. Roughly where is its loss?",
        draw.shuffled(tuple(ways), right),
        f"At {said(loss, 3)}, measured on {len(context.items)} made-up items. Small random weights "
        "give nearly equal logits, so nearly equal probabilities.",
    )


def never_zero(draw: Draw) -> Posed:
    """Ask why even the best model has a loss."""
    context = draw.context
    return Posed(
        "Why can even a perfect model not reach a loss of 0 on its training list?",
        Points(
            (
                f"After the same beginning, different {context.unit}s follow in different items: "
                f"after {context.begin} alone, many are right.",
                "A loss of 0 would need a probability of 1 for what comes, every time.",
                "The best a model can do is to give each token the share with which it follows; "
                "what is left is the uncertainty of the list itself.",
            )
        ),
    )


def set_to_zero(draw: Draw) -> Posed:
    """Ask why gradients are cleared."""
    steps = draw.rng.choice((2, 3, 5))
    return Posed(
        "Why are all gradients set to 0 before the next backward pass?",
        Points(
            (
                "backward adds to the gradients (+=), because a number that is used twice gets a "
                "share from each use.",
                f"So without zeroing, after {steps} steps each gradient is the sum of {steps} "
                "different items' gradients, most of them computed at older weights.",
                "Steps then go on in old directions, and with growing numbers, instead of where "
                "the loss falls now.",
            )
        ),
    )


QUESTIONS = (
    Template(TOPIC, "trace", uniform_loss),
    Template(TOPIC, "trace", loss_of_one),
    Template(TOPIC, "trace", mean_of_losses),
    Template(TOPIC, "trace", first_step_of_adam),
    Template(TOPIC, "trace", twice_backward),
    Template(TOPIC, "trace", gradient_of_a_logit),
    Template(TOPIC, "trace", rows_with_gradient),
    Template(TOPIC, "predict", step_on_one_item, needs_room),
    Template(TOPIC, "predict", loss_before_training, needs_room),
    Template(TOPIC, "explain", never_zero),
    Template(TOPIC, "explain", set_to_zero),
)
