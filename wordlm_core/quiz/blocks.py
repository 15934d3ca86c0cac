"""Questions about what surrounds attention: MLP, residual stream, rmsnorm."""

import math

import numpy as np

from wordlm_core.models import microgpt
from wordlm_core.models.microgpt import MicroGPTModel, rmsnorm
from wordlm_core.quiz.question import (
    Choice,
    Draw,
    Number,
    Numbers,
    Points,
    Posed,
    Template,
    listed,
    order,
    said,
)

TOPIC = "MLP, residual, norm"
ALOUD = "The way of one row through a layer: norm, attention, addition, norm, MLP, addition."
_PAIRS = ((3, 4), (6, 8), (1, 7), (1, 2), (2, 5), (5, 12), (2, 6))
_UNITS = 6
_WITHOUT = (
    "the row after the MLP equals the row before it",
    "the row after the MLP is all zeros",
    "all logits become equal",
)


def hidden_units(draw: Draw) -> Posed:
    """Ask how wide the MLP is inside."""
    config = draw.context.config
    wide = draw.run(draw.item()).layers[0].hidden.shape[-1]
    return Posed(
        f"In this model, mlp_fc1 turns {config.d_model} numbers into "
        f"{config.hidden / config.d_model:g} times as many. How many numbers go through the ReLU "
        "at each position?",
        Number(wide),
        f"{config.hidden / config.d_model:g} x {config.d_model} = {wide}.",
    )


def shape_of_fc2(draw: Draw) -> Posed:
    """Ask for the shape of the MLP's second matrix."""
    config = draw.context.config
    shape = draw.context.model.weights["layer0.mlp_fc2"].shape
    return Posed(
        f"A matrix is stored as outputs x inputs. Width {config.d_model}, {config.hidden} hidden "
        "units: what is the shape of mlp_fc2?",
        Numbers(shape),
        f"It brings {shape[1]} numbers back to {shape[0]}: {shape[0]} x {shape[1]}.",
    )


def norm_of_two(draw: Draw) -> Posed:
    """Ask for the rmsnorm of a pair."""
    first, second = draw.rng.sample(draw.rng.choice(_PAIRS), 2)
    second *= draw.rng.choice((1, -1))
    _, normed = rmsnorm(np.array([float(first), float(second)]))
    mean = (first**2 + second**2) / 2
    return Posed(
        f"What is the rmsnorm of [{first}, {second}]?",
        Numbers(tuple(normed.tolist()), 2),
        f"The mean square is ({first**2} + {second**2}) / 2 = {mean:g}, its root "
        f"{said(math.sqrt(mean), 3)}; divided by that: {listed(normed.tolist(), 4)}.",
    )


def size_after_norm(draw: Draw) -> Posed:
    """Ask how large a row is after rmsnorm."""
    item = draw.item()
    place = draw.place(item)
    of = draw.run(item).layers[-1]
    before, after = (
        float(np.sqrt(np.mean(row[place] ** 2))) for row in (of.contextual, of.mlp_normed)
    )
    return Posed(
        f"At position {place} of “{item.text}” the row before the MLP's rmsnorm has a root mean "
        f"square of {said(before)}. What is it after?",
        Number(after, 2),
        f"{said(after)}, whatever it was before: that is what rmsnorm is for.",
    )


def norm_of_a_larger_row(draw: Draw) -> Posed:
    """Ask what rmsnorm makes of a multiple of a row."""
    item = draw.item()
    factor = draw.rng.choice((3, 5, 10))
    row = draw.run(item).layers[0].contextual[draw.place(item)]
    normed, larger = rmsnorm(row)[1], rmsnorm(factor * row)[1]
    ways = {
        "practically the same numbers": normed,
        f"numbers {factor} times as large": factor * normed,
        f"numbers {factor} times as small": normed / factor,
    }
    right = int(np.argmin([np.abs(larger - way).max() for way in ways.values()]))
    return Posed(
        f"Every number of a row of the residual stream is multiplied by {factor}. What does "
        "rmsnorm give now?",
        draw.shuffled(tuple(ways), right),
        f"Before: {listed(normed[:3].tolist())}; now: {listed(larger[:3].tolist())}. The row is "
        "divided by its own size.",
    )


def relu_zeros(draw: Draw) -> Posed:
    """Ask what the ReLU leaves."""
    item = draw.item()
    place = draw.place(item)
    layer = draw.rng.randrange(draw.context.config.n_layer)
    of = draw.run(item).layers[layer]
    before = draw.context.model.network.blocks[layer].fc1 @ of.mlp_normed[place]
    # What would be shown as 0.00 has no sign to go by.
    clear = [i for i, value in enumerate(before) if abs(value) > 0.01] or [0]
    draw.rng.shuffle(clear)
    active = [i for i in clear if before[i] > 0][: draw.rng.randint(1, _UNITS - 1)]
    silent = [i for i in clear if i not in active]
    units = sorted([*active, *silent][:_UNITS])
    zeros = int((of.hidden[place, units] == 0).sum())
    return Posed(
        f"Before the ReLU, hidden units {', '.join(map(str, units))} of layer {layer} have at "
        f"position {place} of “{item.text}” the values {listed(before[units].tolist())}. How many "
        "of these are 0 after it?",
        Number(zeros),
        f"After it: {listed(of.hidden[place, units].tolist())}. What is negative becomes 0.",
    )


def after_the_mlp(draw: Draw) -> Posed:
    """Ask what a residual addition gives."""
    item = draw.item()
    place = draw.place(item)
    of = draw.run(item).layers[-1]
    column = draw.rng.randrange(draw.context.config.d_model)
    before, after = float(of.contextual[place, column]), float(of.out[place, column])
    update = draw.context.model.network.blocks[-1].fc2[column] @ of.hidden[place]
    return Posed(
        f"Component {column} of the residual stream at position {place} of “{item.text}” is "
        f"{said(before, 3)} before the MLP. mlp_fc2 gives {said(update, 3)} there. What is it "
        "after the MLP?",
        Number(after, 3),
        f"{said(before, 3)} + {said(update, 3)} = {said(after, 3)}: a block adds to the stream.",
    )


def larger_half(draw: Draw) -> Posed:
    """Ask which part of a layer holds more parameters."""
    weights, config = draw.context.model.weights, draw.context.config
    parts = ("attn_", "mlp_")
    attention, mlp = (
        sum(a.size for name, a in weights.items() if name.startswith(f"layer0.{part}"))
        for part in parts
    )
    return Posed(
        f"Width {config.d_model}, {config.hidden} hidden units. Which part of a layer holds more "
        "numbers?",
        Choice(("its attention", "its MLP", "both the same"), order(attention, mlp)),
        f"Attention: 4 x {config.d_model} x {config.d_model} = {attention:,}. MLP: 2 x "
        f"{config.d_model} x {config.hidden} = {mlp:,}.",
    )


def without_fc2(draw: Draw) -> Posed:
    """Ask what is left without the MLP's output."""
    context, item = draw.context, draw.item()
    name = f"layer{context.config.n_layer - 1}.mlp_fc2"
    weights = {**context.model.weights, name: np.zeros_like(context.model.weights[name])}
    without = MicroGPTModel(context.config, weights)
    of = microgpt.forward(without.network, item.ids[:-1]).layers[-1]
    logits = of.out @ without.weights["lm_head"].T
    happened = (
        np.allclose(of.out, of.contextual),
        not of.out.any(),
        bool(np.ptp(logits, axis=1).max() < 1e-9),
    )
    largest = float(np.abs(of.out).max())
    return Posed(
        f"All numbers of {name} are set to 0. What follows, for “{item.text}”?",
        draw.shuffled(_WITHOUT, happened.index(True)),
        f"The rows still hold numbers up to {said(largest)}, exactly those from before the MLP: "
        "the residual stream goes past it, and it adds 0.",
    )


def why_residual(draw: Draw) -> Posed:
    """Ask what the residual stream is good for."""
    layers = draw.context.config.n_layer
    return Posed(
        "Why does each block add its result to the residual stream instead of replacing it?",
        Points(
            (
                "What was there, such as which token this is, stays and need not be copied by "
                "every block.",
                "The gradient reaches the embeddings along the additions directly, however many "
                f"layers (here: {layers}) lie between.",
                "A block that has nothing to say can add almost 0, so it starts out harmless.",
            )
        ),
    )


def why_relu(draw: Draw) -> Posed:
    """Ask why there is a bend between two matrices."""
    config = draw.context.config
    return Posed(
        "What would be lost if the ReLU between mlp_fc1 and mlp_fc2 were left out?",
        Points(
            (
                "Two matrices in a row are one matrix: mlp_fc2 times mlp_fc1, "
                f"{config.d_model} x {config.d_model}, could do the same.",
                f"So the {config.hidden} hidden units would be of no use: the result would be a "
                "weighted sum of the inputs, always.",
                "With the ReLU a unit is silent for some inputs and speaks for others, so the MLP "
                "can treat cases differently.",
            )
        ),
    )


QUESTIONS = (
    Template(TOPIC, "trace", hidden_units),
    Template(TOPIC, "trace", shape_of_fc2),
    Template(TOPIC, "trace", norm_of_two),
    Template(TOPIC, "trace", size_after_norm),
    Template(TOPIC, "trace", relu_zeros),
    Template(TOPIC, "trace", after_the_mlp),
    Template(TOPIC, "predict", norm_of_a_larger_row),
    Template(TOPIC, "predict", larger_half),
    Template(TOPIC, "predict", without_fc2),
    Template(TOPIC, "explain", why_residual),
    Template(TOPIC, "explain", why_relu),
)
