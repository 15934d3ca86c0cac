"""Questions about embeddings: rows of tokens, rows of positions, and their sum."""

import math

import numpy as np

from wordlm_core.quiz.question import (
    Choice,
    Context,
    Draw,
    Number,
    Numbers,
    Points,
    Posed,
    Template,
    listed,
    needs_room_for,
    said,
)

TOPIC = "embeddings"
ALOUD = "What a row of wte is, what a row of wpe adds to it, and what would be lost without it."
_SAME = ("they are equal", "they differ")
_WIDER = (2, 3, 4)


def shape_of_wte(draw: Draw) -> Posed:
    """Ask for the shape of the token table."""
    config = draw.context.config
    shape = draw.context.model.weights["wte"].shape
    return Posed(
        f"This model has {config.vocab_size:,} tokens and a width (d_model) of {config.d_model}. "
        "What is the shape of its token table wte?",
        Numbers(shape),
        f"A row for each token, as wide as the model: {shape[0]:,} x {shape[1]}.",
    )


def numbers_in_tables(draw: Draw) -> Posed:
    """Ask how many numbers both tables hold."""
    context = draw.context
    config, weights = context.config, context.model.weights
    tokens, places = weights["wte"].size, weights["wpe"].size
    return Posed(
        f"{config.vocab_size:,} tokens, {config.context_length} positions, width "
        f"{config.d_model}: how many numbers do wte and wpe hold together?",
        Number(tokens + places),
        f"wte {config.vocab_size:,} x {config.d_model} = {tokens:,}, wpe "
        f"{config.context_length} x {config.d_model} = {places:,}, together {tokens + places:,}.",
    )


def width_and_wte(draw: Draw) -> Posed:
    """Ask for the size of the token table at another width."""
    context = draw.context
    factor = draw.rng.choice(_WIDER)
    now, then = context.config.d_model, factor * context.config.d_model
    size = math.prod(context.resized(d_model=then).shapes["wte"])
    return Posed(
        f"At width {now}, wte holds {context.model.weights['wte'].size:,} numbers. How many does "
        f"it hold at width {then}?",
        Number(size),
        f"{factor} times as many, {size:,}: the width is the length of each row.",
    )


def sum_of_rows(draw: Draw) -> Posed:
    """Ask what a token's row and its place's give together."""
    context, item = draw.context, draw.item()
    place = draw.place(item)
    run = draw.run(item)
    column = draw.rng.randrange(context.config.d_model)
    row, token = run.embed[place, column], context.token(item.ids[place])
    position = context.model.weights["wpe"][place, column]
    value = run.summed[place, column]
    added = context.config.positions
    built = "with positions" if added else "without positions: wpe is stored, but not used"
    return Posed(
        f"This model was built {built}. At position {place} of “{item.text}” it reads {token}. "
        f"Component {column} of that token's row in wte is {said(row, 3)}; of row {place} in wpe "
        f"it is {said(position, 3)}. What is component {column} of the row that goes "
        "into the first rmsnorm there?",
        Number(float(value), 3),
        f"{said(row, 3)} + {said(position, 3)} = {said(value, 3)}: rows are added, not put side by "
        "side."
        if added
        else f"{said(value, 3)}, the token's number alone: nothing says where it stands.",
    )


def dot_of_rows(draw: Draw) -> Posed:
    """Ask for a dot product of the beginnings of two rows."""
    context = draw.context
    first, second = draw.rng.sample(context.lexical, 2)
    wide = min(3, context.config.d_model)
    left, right = (np.round(context.model.weights["wte"][i, :wide], 1) for i in (first, second))
    value = float(left @ right)
    products = " + ".join(f"{said(a, 1)} x {said(b, 1)}" for a, b in zip(left, right, strict=True))
    return Posed(
        f"The rows of {context.token(first)} and {context.token(second)} in wte begin with "
        f"({listed(left.tolist(), 1)}) and ({listed(right.tolist(), 1)}). What is the dot product "
        "of these beginnings?",
        Number(value, 2),
        f"{products} = {said(value, 2)}.",
    )


def one_hot(draw: Draw) -> Posed:
    """Ask what a one-hot vector takes out of the table."""
    context = draw.context
    table = context.model.weights["wte"]
    token_id = draw.rng.choice(context.lexical)
    product = np.eye(len(table))[token_id] @ table
    ways = {
        f"row {token_id} of wte": table[token_id],
        "the sum of all rows of wte": table.sum(axis=0),
        "the mean of all rows of wte": table.mean(axis=0),
    }
    right = [np.allclose(product, way) for way in ways.values()].index(True)
    return Posed(
        f"A vector of {len(table):,} numbers is 1 at {token_id} (the id of "
        f"{context.token(token_id)}) and 0 elsewhere. What is that vector times wte?",
        draw.shuffled(tuple(ways), right),
        f"Every row but one is multiplied by 0: what is left is {list(ways)[right]}, which begins "
        f"with {listed(product[:3].tolist())}. Looking the row up gives the same, only quicker.",
    )


def same_token_twice(draw: Draw) -> Posed:
    """Ask whether a token that stands at two places goes in as the same row."""
    context, rng = draw.context, draw.rng
    twice, between = rng.sample(context.lexical, 2)
    item = context.item((twice, between, twice))
    run = draw.run(item)
    right = 0 if np.allclose(run.summed[1], run.summed[3]) else 1
    added = "with" if context.config.positions else "without"
    return Posed(
        f"In “{item.text}”, {context.token(twice)} stands at positions 1 and 3. This model was "
        f"built {added} position embeddings. Are the two rows that go into its first "
        "rmsnorm at these positions equal?",
        Choice(_SAME, right),
        f"The rows begin with {listed(run.summed[1, :3].tolist())} and "
        f"{listed(run.summed[3, :3].tolist())}: {_SAME[right]}. The token's row is the same; "
        + ("row 1 and row 3 of wpe are not." if right else "no row of wpe is added."),
    )


def swapped_tokens(draw: Draw) -> Posed:
    """Ask whether the order of earlier tokens matters to the last prediction."""
    context = draw.context
    first, second = draw.rng.sample(context.lexical, 2)
    last = draw.rng.choice(context.lexical)
    texts = [context.item(ids) for ids in ((first, second, last), (second, first, last))]
    logits = context.model.last_logits(np.stack([each.ids[:-1] for each in texts]))
    apart = float(np.abs(logits[0] - logits[1]).max())
    config = context.config
    layers = "1 layer" if config.n_layer == 1 else f"{config.n_layer} layers"
    added = "with" if config.positions else "without"
    return Posed(
        f"This model has {layers} and was built {added} position embeddings. It reads "
        f"“{texts[0].text}”, then “{texts[1].text}”. What happens to its logits after the "
        f"last {context.unit}?",
        Choice(_SAME, 1 if apart > 1e-9 else 0),
        f"The largest difference of any logit is {said(apart, 4)}. " + _order_matters(context),
    )


def why_a_row(draw: Draw) -> Posed:
    """Ask why an id is looked up."""
    context = draw.context
    first, second = sorted(draw.rng.sample(context.lexical, 2))
    return Posed(
        f"{context.token(first)} has the id {first} and {context.token(second)} the id {second}. "
        "Why does the model look up a row for each instead of computing with the ids?",
        Points(
            (
                "An id is only a place in a list: that one is larger than the other means nothing.",
                f"A row has {context.config.d_model} numbers, so tokens can be alike in one "
                "respect and different in another.",
                "The rows are trained: what behaves alike can come to lie close together.",
            )
        ),
    )


# -- parts


def _order_matters(context: Context) -> str:
    if context.config.positions:
        return "A row of wpe tells each place from the others."
    if context.config.n_layer == 1:
        return "One layer of attention without positions sums over a set: order is lost."
    return (
        "Without positions the first layer sums over a set, but each position sees a different "
        "set: the causal mask lets the second layer see an order."
    )


QUESTIONS = (
    Template(TOPIC, "trace", shape_of_wte),
    Template(TOPIC, "trace", numbers_in_tables),
    Template(
        TOPIC, "trace", width_and_wte, needs_room_for(d_model=lambda of: max(_WIDER) * of.d_model)
    ),
    Template(TOPIC, "trace", sum_of_rows),
    Template(TOPIC, "trace", dot_of_rows),
    Template(TOPIC, "predict", one_hot),
    Template(TOPIC, "predict", same_token_twice),
    Template(TOPIC, "predict", swapped_tokens),
    Template(TOPIC, "explain", why_a_row),
)
