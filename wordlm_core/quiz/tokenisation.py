"""Questions about tokens: ids, the ends of a document, inputs and targets."""

from wordlm_core.errors import TextError
from wordlm_core.gpt_trainer import loss_of
from wordlm_core.quiz.question import (
    Context,
    Draw,
    Number,
    Numbers,
    Points,
    Posed,
    Template,
    Word,
)
from wordlm_core.text import visible
from wordlm_core.vocabulary import Vocabulary

TOPIC = "tokenisation"
ALOUD = "How a name becomes numbers and back, and what the token at both ends is for."
_LISTED = 60
_STRANGE = ("7", "é", "ß", "Ж", "狗", "quagga", "zyzzyva")
_UNKNOWN_ENDS = (
    "it is refused in a sentence that names the strange part",
    "the strange part becomes the token <UNK>",
    "the strange part is left out",
)
_LEFT_AS_IT_IS = -1


def document_length(draw: Draw) -> Posed:
    """Ask for the length of a document."""
    context, item = draw.context, draw.item()
    inside = len(item.ids) - 2
    end = context.token(context.vocabulary.end_id)
    return Posed(
        f"In a training document, “{item.text}” stands between {context.begin} and {end}. How "
        "many ids does the document have, both ends included?",
        Number(len(item.ids)),
        f"{inside} {context.unit}s, and one id more at each end: {inside} + 2 = {len(item.ids)}.",
    )


def document_ids(draw: Draw) -> Posed:
    """Ask for the ids of a document."""
    context, item = draw.context, draw.item()
    ids = item.ids.tolist()
    pairs = ", ".join(f"{context.token(i)} is {i}" for i in ids)
    return Posed(
        f"Tokens in the order of their ids, from 0 on: {_tokens(context)}. Write the ids of the "
        f"training document “{item.text}”, both ends included.",
        Numbers(tuple(ids)),
        f"An id is a place in that list: {pairs}.",
    )


def text_of_ids(draw: Draw) -> Posed:
    """Ask for the text that ids stand for."""
    context, item = draw.context, draw.item()
    ids = item.ids.tolist()
    return Posed(
        f"Tokens in the order of their ids, from 0 on: {_tokens(context)}. Which item is the "
        f"document {', '.join(map(str, ids))}?",
        Word(item.raw),
        f"Without the ends, {', '.join(map(str, ids[1:-1]))} are the places of {item.text}.",
    )


def size_of_vocabulary(draw: Draw) -> Posed:
    """Ask how many tokens there are."""
    context = draw.context
    kept, size = len(context.lexical), len(context.vocabulary)
    special = size - kept
    return Posed(
        f"The vocabulary of this model holds {kept:,} {context.unit}s and {special} special "
        f"token{'s' if special > 1 else ''}. How many logits does each position give?",
        Number(context.model.last_logits(draw.item().ids[None, :-1]).shape[1]),
        f"One for each token: {kept:,} + {special} = {size:,}. Stopping is a token to "
        "predict, too.",
    )


def target_at(draw: Draw) -> Posed:
    """Ask what a position is trained to predict."""
    context, item = draw.context, draw.item()
    place = draw.place(item)
    target = context.vocabulary.itos[item.ids[place + 1]]
    return Posed(
        f"The model is trained on “{item.text}”. Position 0 reads {context.begin}. Which token "
        f"is the target of position {place}?",
        Word(target),
        f"Position {place} reads {context.token(item.ids[place])}, and its target is what comes "
        f"next: {context.token(item.ids[place + 1])}.",
    )


def predictions_of(draw: Draw) -> Posed:
    """Ask how many predictions a document trains."""
    context, item = draw.context, draw.item()
    count = len(loss_of(context.model.network, item.ids))
    return Posed(
        f"How many predictions are judged in one training step on “{item.text}”?",
        Number(count),
        f"{len(item.ids)} ids make {count} pairs of a token and the next one: every position that "
        "has a next token is judged, not the last one alone.",
    )


def predictions_of_a_long_one(draw: Draw) -> Posed:
    """Ask how many predictions a document trains that is longer than the context."""
    context = draw.context
    window = context.config.context_length
    length = window + draw.rng.randint(3, 9)
    item = context.item(draw.rng.choices(context.lexical, k=length))
    count = len(loss_of(context.model.network, item.ids))
    return Posed(
        f"The context is {window} positions. How many predictions are judged in a training step "
        f"on an item of {length} {context.unit}s?",
        Number(count),
        f"{count}: there are {window} positions, so what comes after is not trained on.",
    )


def unknown_character(draw: Draw) -> Posed:
    """Ask what something does that the vocabulary lacks."""
    context, item = draw.context, draw.item()
    strange = _stranger(context.vocabulary)
    typed = f"{item.raw} {strange}" if context.unit == "word" else item.raw + strange
    right, why = _read(context.vocabulary, typed)
    return Posed(
        f"Somebody types “{item.text}” followed by “{strange}”, which is not in the model's "
        "vocabulary. What happens?",
        draw.shuffled(_UNKNOWN_ENDS, right),
        why,
    )


def both_ends(draw: Draw) -> Posed:
    """Ask why a document has an end and a beginning."""
    context = draw.context
    inside = len(draw.item().ids) - 2
    return Posed(
        f"Why does a training document begin with {context.begin}, and why is there a token "
        "behind its end?",
        Points(
            (
                f"The first {context.unit} must be predicted from something: {context.begin} is "
                "what the model reads before it.",
                "The token behind the end is a target like any other, so that the model learns "
                "where items stop, and a sample can end by itself.",
                f"So an item of {inside} {context.unit}s gives {inside + 1} predictions, and "
                "sampling starts from a token that the model knows.",
            )
        ),
    )


# -- parts


def _few_tokens(context: Context) -> str:
    size = len(context.vocabulary)
    return "" if size <= _LISTED else f"{size:,} tokens are too many to list"


def _tokens(context: Context) -> str:
    return " ".join(map(context.token, range(len(context.vocabulary))))


def _stranger(vocabulary: Vocabulary) -> str:
    """Return something that the vocabulary cannot read as it is, or nothing."""
    return next((each for each in _STRANGE if _read(vocabulary, each)[0] != _LEFT_AS_IT_IS), "")


def _needs_stranger(context: Context) -> str:
    return "" if _stranger(context.vocabulary) else "its vocabulary holds all that could be strange"


def _read(vocabulary: Vocabulary, typed: str) -> tuple[int, str]:
    """Return what really happens to a text, and how it is said."""
    try:
        probe = vocabulary.probe(typed, len(typed) + 1)
    except TextError as error:
        return 0, f"The vocabulary has no token for what is unknown, so it says: {error}."
    happened = 1 if probe.unknown else _LEFT_AS_IT_IS
    return happened, f"It is read as {' '.join(map(visible, probe.tokens))}."


QUESTIONS = (
    Template(TOPIC, "trace", document_length),
    Template(TOPIC, "trace", document_ids, _few_tokens),
    Template(TOPIC, "trace", text_of_ids, _few_tokens),
    Template(TOPIC, "trace", size_of_vocabulary),
    Template(TOPIC, "trace", target_at),
    Template(TOPIC, "trace", predictions_of),
    Template(TOPIC, "trace", predictions_of_a_long_one),
    Template(TOPIC, "predict", unknown_character, _needs_stranger),
    Template(TOPIC, "explain", both_ends),
)
