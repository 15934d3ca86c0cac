"""Questions about attention: queries, keys, scores, the mask, the cache."""

import math

import numpy as np

from wordlm_core.quiz.question import (
    Choice,
    Draw,
    Number,
    Numbers,
    Points,
    Posed,
    Template,
    said,
)

TOPIC = "attention"
ALOUD = "What query, key and value do, for one position and one head, down to the weighted sum."
_FUTURE = ("its logits stay the same", "its logits change")


def width_of_a_head(draw: Draw) -> Posed:
    """Ask how wide a head is."""
    config = draw.context.config
    width = draw.run(draw.item()).layers[0].queries.shape[-1]
    return Posed(
        f"Width {config.d_model}, {config.n_head} heads: how many numbers does one head's "
        "query have?",
        Number(width),
        f"The heads share the width: {config.d_model} / {config.n_head} = {width}.",
    )


def shape_of_scores(draw: Draw) -> Posed:
    """Ask for the shape of all scores of a layer."""
    config, item = draw.context.config, draw.item()
    shape = draw.run(item).layers[0].scores.shape
    length = len(item.ids) - 1
    return Posed(
        f"The model reads the {length} tokens {draw.context.begin} and “{item.text}” "
        f"({config.n_head} heads). What is the shape of all of a layer's scores, "
        "in the order heads, queries, keys?",
        Numbers(shape),
        f"Each head scores each query against each key: {' x '.join(map(str, shape))}.",
    )


def visible_keys(draw: Draw) -> Posed:
    """Ask how far a position sees."""
    item = draw.item()
    place = draw.place(item)
    layer, head = draw.head()
    weights = draw.run(item).layers[layer].attention[head, place]
    count = int(np.count_nonzero(weights))
    return Posed(
        f"Position 0 reads {draw.context.begin}, and “{item.text}” follows. To how many positions, "
        f"position 0 included, can the query at position {place} give any weight?",
        Number(count),
        f"To itself and to all before it, positions 0 to {place}: {count}. Of its {len(weights)} "
        f"weights, {len(weights) - count} are exactly 0.",
    )


def weights_of_a_head(draw: Draw) -> Posed:
    """Ask how many weights a causal triangle holds."""
    item = draw.item()
    layer, head = draw.head()
    weights = draw.run(item).layers[layer].attention[head]
    count, length = int(np.count_nonzero(weights)), len(weights)
    return Posed(
        f"A text of {length} tokens: how many of the {length} x {length} attention weights of one "
        "head are not 0?",
        Number(count),
        f"1 + 2 + ... + {length} = {count}: what lies right of the diagonal is the future.",
    )


def only_key(draw: Draw) -> Posed:
    """Ask what the first position attends to."""
    item = draw.item()
    layer, head = draw.head()
    weight = float(draw.run(item).layers[layer].attention[head, 0, 0])
    return Posed(
        f"What weight does position 0 give to itself in head {head} of layer {layer}?",
        Number(weight, 2),
        f"{said(weight)}: weights sum to 1, and it sees no other position, whatever its score.",
    )


def scaled_score(draw: Draw) -> Posed:
    """Ask for a score when the dot product is known."""
    item = draw.item()
    place = draw.place(item, 1)
    layer, head = draw.head()
    of = draw.run(item).layers[layer]
    key = draw.rng.randrange(place + 1)
    dot = float(of.queries[head, place] @ of.keys[head, key])
    score = float(of.scores[head, place, key])
    wide = draw.context.config.d_head
    return Posed(
        f"A head is {wide} wide. The query at position {place} of “{item.text}” and the key at "
        f"position {key} have the dot product {said(dot, 3)}. What is the score?",
        Number(score, 2),
        f"It is divided by the square root of {wide}, {said(math.sqrt(wide))}: {said(score, 3)}.",
    )


def weight_of_two(draw: Draw) -> Posed:
    """Ask for a weight when both scores are known."""
    item = draw.item()
    layer, head = draw.head()
    of = draw.run(item).layers[layer]
    first, second = of.scores[head, 1, :2].tolist()
    weight = float(of.attention[head, 1, 1])
    return Posed(
        f"Position 1 of “{item.text}” sees two keys. In head {head} of layer {layer} their scores "
        f"are {said(first)} (position 0) and {said(second)} (position 1). What weight does "
        "position 1 get?",
        Number(weight, 2),
        f"Softmax: exp({said(second)}) / (exp({said(first)}) + exp({said(second)})) = "
        f"{said(weight, 3)}. Only the difference of the scores counts.",
    )


def cached_numbers(draw: Draw) -> Posed:
    """Ask how many numbers the cache holds."""
    item, config = draw.item(), draw.context.config
    length = len(item.ids) - 1
    layers = draw.run(item).layers
    count = sum(layer.keys.size + layer.values.size for layer in layers)
    return Posed(
        f"A KV cache keeps the keys and values of what was read. Width {config.d_model}, "
        f"{config.n_head} heads, layers: {config.n_layer}. How many numbers does it hold after "
        f"{length} tokens?",
        Number(count),
        f"2 (a key, a value) x {config.n_layer} x {length} tokens x {config.d_model} = {count:,}. "
        "The number of heads does not matter: they share the width.",
    )


def attention_parameters(draw: Draw) -> Posed:
    """Ask how many parameters a layer's attention has."""
    weights = draw.context.model.weights
    count = sum(a.size for name, a in weights.items() if name.startswith("layer0.attn_"))
    wide = draw.context.config.d_model
    return Posed(
        f"Width {wide}, no biases. How many numbers do wq, wk, wv and wo of one layer hold?",
        Number(count),
        f"Four matrices of {wide} x {wide}: {count:,}.",
    )


def another_token(draw: Draw) -> Posed:
    """Ask which predictions a token takes part in."""
    context, item = draw.context, draw.item()
    place = draw.place(item, 1)
    later = draw.rng.random() < 0.5 and place + 1 < len(item.ids) - 1
    changed_at = draw.rng.randrange(place + 1, len(item.ids) - 1) if later else 1
    now = item.ids[changed_at]
    other = draw.rng.choice([i for i in context.lexical if i != now])
    changed = item.ids.copy()
    changed[changed_at] = other
    logits = [context.model.trace(ids[:-1]).logits[place] for ids in (item.ids, changed)]
    apart = float(np.abs(logits[0] - logits[1]).max())
    side = "after" if changed_at > place else "not after"
    return Posed(
        f"In “{item.text}”, {context.token(now)} at position {changed_at} is replaced by "
        f"{context.token(other)}. What happens to the prediction at position {place}?",
        Choice(_FUTURE, 1 if apart > 1e-9 else 0),
        f"The largest difference of any logit there is {said(apart, 4)}. Position {changed_at} is "
        f"{side} {place}, and a position sees itself and what is before it.",
    )


def no_future(draw: Draw) -> Posed:
    """Ask why the future is masked."""
    length = len(draw.item().ids) - 1
    return Posed(
        "In training the whole item is at hand. Why may a position not look at later ones?",
        Points(
            (
                "The next token is what it has to predict: if it could see it, it would copy it.",
                "Then the loss would be near 0 in training, and the model of no use, because in "
                "sampling the next token is not there yet.",
                f"With the mask, one pass over {length} tokens is {length} honest exercises, each "
                "with its own past.",
            )
        ),
    )


def output_matrix(draw: Draw) -> Posed:
    """Ask what wo is for."""
    config = draw.context.config
    return Posed(
        f"The {config.n_head} heads together give {config.d_model} numbers, as many as the "
        "residual stream has. Why does a matrix wo follow?",
        Points(
            (
                f"Side by side, each head fills its own {config.d_head} numbers: without wo it "
                "could only write into these.",
                "With wo, every head can write into every component of the stream, and the heads' "
                "results are mixed.",
                "It is trained: it learns what of a head's result is worth adding, and where.",
            )
        ),
    )


QUESTIONS = (
    Template(TOPIC, "trace", width_of_a_head),
    Template(TOPIC, "trace", shape_of_scores),
    Template(TOPIC, "trace", visible_keys),
    Template(TOPIC, "trace", weights_of_a_head),
    Template(TOPIC, "trace", only_key),
    Template(TOPIC, "trace", scaled_score),
    Template(TOPIC, "trace", weight_of_two),
    Template(TOPIC, "trace", cached_numbers),
    Template(TOPIC, "trace", attention_parameters),
    Template(TOPIC, "predict", another_token),
    Template(TOPIC, "explain", no_future),
    Template(TOPIC, "explain", output_matrix),
)
