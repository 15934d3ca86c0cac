"""What a person answered, its score by topic, and the score card as a file. No Streamlit.

The card is a page of its own: it needs neither the app nor a network, and prints in black on
white. Whatever was typed stands in it letter for letter.
"""

import html
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from app.exports import csv_text, json_text, markdown_line, markdown_quote
from wordlm_core import quiz
from wordlm_core.quiz.question import HIGHEST_MARK, Question

_STYLE = """
body { font: 1rem/1.45 Georgia, serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  color: #111; background: #fff; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.15rem; margin: 1.4rem 0 .3rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .15rem .5rem;
  border-bottom: 1px solid #bbb; } td + td, th + th { text-align: right; }
article { border-left: 3px solid #999; padding-left: .7rem; margin: .8rem 0; }
p { margin: .2rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.small { color: #444; font-size: .9rem; }
@page { margin: 15mm; }
@media print { body { margin: 0; max-width: none; font-size: 10.5pt; }
  article, tr { break-inside: avoid; } h2 { break-after: avoid; } }
"""


@dataclass(frozen=True)
class Given:
    """What a person answered.

    Attributes:
        answer: Letter for letter.
        right: Whether it is; None where the person marks it.
        mark: 0 to 3, that the person gave.
    """

    answer: str
    right: bool | None = None
    mark: int | None = None


@dataclass(frozen=True)
class Score:
    """What came together in one topic.

    Attributes:
        topic: Its name.
        asked: Questions that are right or wrong.
        answered: Those that have an answer.
        right: Those that have the right one.
        marks: What the person gave: for explanations, and for explaining aloud.
        aloud: The mark for explaining aloud, if it was given.
    """

    topic: str
    asked: int
    answered: int
    right: int
    marks: tuple[int, ...]
    aloud: int | None

    @property
    def share(self) -> float:
        """Return the share of all the topic's questions that was answered right."""
        return self.right / self.asked if self.asked else 0.0


@dataclass(frozen=True)
class Card:
    """A score card.

    Attributes:
        name: As the person wants to be called, or nothing.
        date: As it is to be written.
        seed: Of the set.
        checkpoint: The model's name.
        questions: The set.
        given: Answers by the questions' keys.
        aloud: Marks for explaining aloud by topic.
    """

    name: str
    date: str
    seed: int
    checkpoint: str
    questions: Sequence[Question]
    given: Mapping[str, Given]
    aloud: Mapping[str, int]

    @property
    def scores(self) -> list[Score]:
        """Return the score of each topic."""
        return [self._score(topic) for topic in quiz.TOPICS]

    @property
    def answered(self) -> list[tuple[Question, Given]]:
        """Return the questions that have an answer, in order."""
        return [(q, self.given[q.key]) for q in self.questions if q.key in self.given]

    @property
    def total(self) -> str:
        """Return the whole score in words."""
        scores = self.scores
        right, answered, asked = (
            sum(getattr(score, name) for score in scores) for name in ("right", "answered", "asked")
        )
        return f"{right} right of {answered} answered; {asked} can be right or wrong"

    def _score(self, topic: str) -> Score:
        of_topic = [q for q in self.questions if q.topic == topic]
        found = [self.given[q.key] for q in of_topic if q.key in self.given]
        judged = [each for each in found if each.right is not None]
        aloud = self.aloud.get(topic)
        marks = [each.mark for each in found] + [aloud]
        return Score(
            topic,
            sum(q.kind != "explain" for q in of_topic),
            len(judged),
            sum(each.right is True for each in judged),
            tuple(mark for mark in marks if mark is not None),
            aloud,
        )


def rows(card: Card) -> list[list[str]]:
    """Return a row a topic: name, right of answered, own marks."""
    return [
        [
            score.topic,
            f"{score.right} of {score.answered}",
            f"{sum(score.marks)} of {HIGHEST_MARK * len(score.marks)}" if score.marks else "none",
        ]
        for score in card.scores
    ]


def page(card: Card) -> str:
    """Return the score card as a page to print."""
    table = "".join(
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows(card)
    )
    asked = "".join(_article(question, given) for question, given in card.answered)
    who = f"<p>{html.escape(card.name)}</p>" if card.name.strip() else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>Score card · WordLM Lab</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>microgpt: check yourself</h1>{who}<p class='small'>{html.escape(_about(card))}</p>"
        "<h2>Score</h2><table><thead><tr><th>topic</th><th>right of answered</th>"
        f"<th>own marks</th></tr></thead><tbody>{table}</tbody></table>"
        f"<p>{html.escape(card.total)}.</p><h2>Answers</h2>{asked or '<p>None yet.</p>'}"
        "\n</body>\n</html>\n"
    )


def markdown(card: Card) -> str:
    """Return the score card as Markdown."""
    lines = ["# microgpt: check yourself", ""]
    if card.name.strip():
        lines += [markdown_line(card.name.strip()), ""]
    lines += [markdown_line(_about(card)), "", "| topic | right of answered | own marks |"]
    lines += [
        "|---|---:|---:|",
        *(f"| {' | '.join(map(markdown_line, row))} |" for row in rows(card)),
    ]
    lines += ["", f"{markdown_line(card.total)}.", "", "## Answers", ""]
    for question, given in card.answered:
        lines += [f"**{markdown_line(question.text)}**", "", *markdown_quote(given.answer), ""]
        lines += ["\\\n".join(map(markdown_line, _verdict(question, given))), ""]
    return "\n".join(lines)


def as_csv(card: Card) -> str:
    """Return a row a question of the set; right answers stand only where one was given."""
    heads = ("topic", "kind", "question", "answer", "right", "mark", "right_answer")
    return csv_text(heads, map(_row, _pairs(card)), typed=("answer", "right_answer"))


def as_json(card: Card) -> str:
    """Return the card as JSON; right answers stand only where one was given."""
    asked = [
        {
            "key": question.key,
            "topic": question.topic,
            "kind": question.kind,
            "question": question.text,
            **(
                {}
                if given is None
                else {**asdict(given), "right_answer": question.expected.shown, "why": question.why}
            ),
        }
        for question, given in _pairs(card)
    ]
    return json_text(
        {
            "name": card.name,
            "date": card.date,
            "seed": card.seed,
            "checkpoint": card.checkpoint,
            "scores": [asdict(score) for score in card.scores],
            "questions": asked,
        }
    )


# -- parts


def _pairs(card: Card) -> list[tuple[Question, Given | None]]:
    return [(question, card.given.get(question.key)) for question in card.questions]


def _row(pair: tuple[Question, Given | None]) -> list[object]:
    question, given = pair
    about: list[object] = [question.topic, question.kind, question.text]
    if given is None:
        return [*about, "", "", "", ""]
    return [*about, given.answer, given.right, given.mark, question.expected.shown]


def _about(card: Card) -> str:
    return f"{card.date}, checkpoint {card.checkpoint}, set {card.seed}"


def _verdict(question: Question, given: Given) -> list[str]:
    if given.right is None:
        mark = "not marked" if given.mark is None else f"{given.mark} of {HIGHEST_MARK}"
        return [f"Own mark: {mark}.", f"Model answer: {question.expected.shown}"]
    if given.right:
        return ["Right.", question.why]
    return [f"Not so: {question.expected.shown}.", question.why]


def _article(question: Question, given: Given) -> str:
    parts = [f"<b>{html.escape(question.text)}</b>", html.escape(given.answer)]
    parts += map(html.escape, _verdict(question, given))
    said = "".join(f"<p>{part}</p>" for part in parts)
    return f"<article><p class='small'>{html.escape(question.topic)}</p>{said}</article>"
