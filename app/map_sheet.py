"""The seven sections of microgpt, and a person's sheet about them as a file. No Streamlit."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from app.exports import csv_text, json_text
from app.warmups import Card

# What Markdown would read as something else than itself: anywhere, and at a line's beginning.
_SIGN = re.compile(r"[\\`*_\[\]<>#$~|&]|^[-+=]")
_ENUMERATION = re.compile(r"^(\d+)([.)])")


@dataclass(frozen=True)
class Section:
    """A part of microgpt, which the page of the same title is about.

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
        "have to offer, the MLP adds what it makes of that, and lm_head gives each token a logit.",
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
        "Softmax makes the logits probabilities, a token is drawn and fed back in until <BOS> "
        "comes; and to learn what a part does, you predict, change that part alone, run, compare.",
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
    return csv_text(heads, rows)


def cards_csv(seen: Sequence[Seen]) -> str:
    """Return one row a warm-up whose output was seen."""
    heads = ("topic", "snippet", "prediction", "output", "right")
    rows = [(s.card.topic, s.card.snippet, s.guess, s.card.output, _right(s)) for s in seen]
    return csv_text(heads, rows)


def everything(entries: Sequence[Entry], seen: Sequence[Seen]) -> str:
    """Return the sheet and the warm-ups that were seen, as JSON."""
    cards = [
        {**asdict(s.card), "prediction": s.guess, "output": s.card.output, "right": _right(s)}
        for s in seen
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


def _right(seen: Seen) -> bool:
    return seen.card.is_right(seen.guess)


def _part(entry: Entry) -> str:
    before = "Before" if entry.locked else "Before (not locked)"
    told = [f"## {entry.section.title}", _escaped(entry.section.ask)]
    told += [f"**{before}**", _quoted(entry.before), "**After**", _quoted(entry.after)]
    if entry.locked:
        told += ["**A model sentence**", _quoted(entry.section.model)]
    return "\n\n".join(told)


def _quoted(text: str) -> str:
    """Return text as a quotation, line by line, with every sign that means something escaped."""
    if not text.strip():
        return "> *nothing yet*"
    lines = [_escaped(line) for line in text.split("\n")]
    breaks = ["\\" if here and after else "" for here, after in pairwise([*lines, ""])]
    return "\n".join(f"> {line}{end}" for line, end in zip(lines, breaks, strict=True))


def _escaped(line: str) -> str:
    shown = line.strip()
    inside = _SIGN.sub(r"\\\g<0>", shown)
    indent = "&nbsp;" * (len(line) - len(line.lstrip())) if shown else ""
    return indent + _ENUMERATION.sub(r"\1\\\2", inside)
