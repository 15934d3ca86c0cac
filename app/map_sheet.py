"""The seven sections of microgpt, and a person's sheet about them as a file. No Streamlit."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from app.exports import csv_text, json_text, markdown_line, markdown_quote
from app.warmups import Card


@dataclass(frozen=True)
class Section:
    """A section of the walk through microgpt, which the page of the same title is about.

    Attributes:
        title: Of the page.
        ask: What to answer in one sentence.
        model: One good answer among many.
    """

    title: str
    ask: str
    model: str


SECTIONS = (
    Section(
        "Tokens",
        "How does a name become numbers, and what is <BOS> for?",
        "Each letter that occurs has a number, its id, and one id more, <BOS>, stands before and "
        "after every name, so that beginning and stopping can be learned like any letter.",
    ),
    Section(
        "Autograd",
        "How can the program know which way to change each number?",
        "Every operation remembers its inputs and its local derivatives, so that one walk back "
        "from the loss, multiplying along each path and adding where paths meet, gives every "
        "parameter its gradient.",
    ),
    Section(
        "Parameters",
        "What does the model hold before it has read a single name?",
        "Nine matrices with 4,192 random numbers: a row for each token, a row for each place, "
        "four matrices of attention, two of the MLP, and one that turns the result into logits.",
    ),
    Section(
        "One position",
        "What happens to one letter on its way to the next prediction?",
        "The rows of its token and of its place are added, attention adds what earlier positions "
        "have to offer, the MLP adds what it makes of that, lm_head gives each token a logit, and "
        "softmax makes the logits probabilities.",
    ),
    Section(
        "Training",
        "What does one step of training do?",
        "It reads one name, takes as loss how unlikely the model found each letter that came, and "
        "moves every parameter a little against its gradient, by a step that Adam has scaled.",
    ),
    Section(
        "Experiments",
        "How does the model make up a name, and how would you find out what a part is good for?",
        "A token is drawn by its probability and fed back in until <BOS> comes; and to learn what "
        "a part does, you predict, change that part alone, run, compare.",
    ),
    Section(
        "Check yourself",
        "All together: what is a GPT?",
        "A GPT is a function with trained numbers that turns the tokens so far into probabilities "
        "of the next one; all the rest trains it, draws from it, or makes it fast.",
    ),
)


@dataclass(frozen=True)
class Entry:
    """What a person wrote about one section; `after` is empty while `before` is not locked."""

    section: Section
    before: str
    locked: bool
    after: str


@dataclass(frozen=True)
class Seen:
    """A card whose output a person has seen, and the prediction that stood before it."""

    card: Card
    guess: str


def markdown(entries: Sequence[Entry]) -> str:
    """Return the sheet for people; what was typed is drawn letter for letter."""
    return "\n\n".join(["# microgpt in seven sentences", *map(_part, entries)]) + "\n"


def sheet_csv(entries: Sequence[Entry]) -> str:
    """Return one row a section."""
    heads = ("section", "question", "before", "locked", "after")
    rows = [(e.section.title, e.section.ask, e.before, e.locked, e.after) for e in entries]
    return csv_text(heads, rows, typed=("before", "after"))


def everything(entries: Sequence[Entry], seen: Sequence[Seen]) -> str:
    """Return the sheet and the warm-ups that were seen, as JSON."""
    cards = [
        {
            **asdict(each.card),
            "prediction": each.guess,
            "output": each.card.output,
            "right": each.card.is_right(each.guess),
        }
        for each in seen
    ]
    written = [
        {
            "section": entry.section.title,
            "question": entry.section.ask,
            "before": entry.before,
            "locked": entry.locked,
            "after": entry.after,
        }
        for entry in entries
    ]
    return json_text({"sheet": written, "warm_ups": cards})


# -- parts


def _part(entry: Entry) -> str:
    before = "Before" if entry.locked else "Before (not locked)"
    told = [f"## {entry.section.title}", markdown_line(entry.section.ask)]
    told += [f"**{before}**", _quoted(entry.before), "**After**", _quoted(entry.after)]
    if entry.locked:
        told += ["**A model sentence**", _quoted(entry.section.model)]
    return "\n\n".join(told)


def _quoted(text: str) -> str:
    return "\n".join(markdown_quote(text))
