"""The card of Check yourself: one question at a time, its feedback, the score.

Answers stay in the session of the browser tab: they are on no disk and in no link.
"""

import html
import random
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from app import controls, layout, scorecard, state, words
from app.layout import Bar
from app.scorecard import Card, Given
from wordlm_core import quiz
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.errors import TextError
from wordlm_core.quiz.question import HIGHEST_MARK, Choice, Points, Question

LONGEST, LONGEST_TEXT, LONGEST_NAME = 120, 2000, 60
EVERY, MIXED = "all", "ten, mixed"
_KINDS = {"trace": "compute it", "predict": "predict, it is really done", "explain": "explain why"}
_RUBRIC = ("0 · not yet", "1 · a part", "2 · most", "3 · all of it")
_HOW_TO_MARK = (
    "Mark yourself: how many of these three points are in your answer, in words that somebody "
    "else could follow?"
)
_ALOUD = (
    "Say it to somebody beside you, without notes, and mark it: 3 is all of it, clear, and with an "
    "example of your own."
)
_READ = (
    "Enter checks it. All of these can be read: 15, 1,234 or 1234, 0.25 or 0,25, 3/4, 25%; a shape "
    "as 3x5 or (3, 5); a list with blanks."
)
_SEEDS, _FEW = 10_000, 10
_GIVEN, _ALOUD_MARKS, _TURN = "quiz_given", "quiz_aloud", "question"


# -- which question


def topic() -> str:
    """Pick a topic, all of them, or a few questions from all."""
    labels = [EVERY, MIXED, *quiz.TOPICS]
    return labels[controls.choose(st.pills, "Topic", "topic", labels, wrap=True)]


def picked(everything: Sequence[Question], topic: str, number: int) -> list[Question]:
    """Return the questions of a topic, or ten of all topics that the set's number decides."""
    if topic != MIXED:
        return [question for question in everything if topic in (EVERY, question.topic)]
    few = random.Random(number).sample(range(len(everything)), min(_FEW, len(everything)))
    return [everything[index] for index in sorted(few)]


def seed() -> int:
    """Pick a set by its number, or go on to another one."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        value = controls.seed_box("Set", "set")
        st.button(
            "Another set",
            key="another_set",
            icon=":material/refresh:",
            help="Other items, positions and sizes. The same number gives the same set; answers "
            "to other sets are kept, and the card holds the set that is open.",
            on_click=_another,
            args=(value,),
        )
    return value


def questions(of: Checkpoint, number: int) -> tuple[Question, ...]:
    """Return the set of all topics, made once for all who ask for it."""
    return state.tables(compared(of), quiz.questions, seed=number)


def compared(of: Checkpoint) -> list[Checkpoint]:
    """Return the checkpoint, and the others of its family that it may be compared with."""
    known = state.library().checkpoints.values()
    return [of, *(o for o in known if o is not of and o.model.family == of.model.family)]


def missing(of: Checkpoint) -> None:
    """Say which questions do not apply to the model."""
    reasons = sorted(set(quiz.left_out(compared(of)).values()))
    if reasons:
        layout.help_line(f"Some questions do not apply to this model: {'; '.join(reasons)}.")


def turn(asked: Sequence[Question], given: dict[str, Given]) -> Question:
    """Pick one question of those asked; show how far one is."""
    labels = [str(number) for number in range(1, len(asked) + 1)]
    last = len(labels) - 1
    here = int(state.value(_TURN, 0))
    if here > last:  # another topic has fewer
        here = 0
        state.put(_TURN, here)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        _step("Previous", ":material/arrow_back:", here - 1, disabled=here == 0)
        _step("Next", ":material/arrow_forward:", here + 1, disabled=here == last)
        chosen = controls.choose(st.select_slider, "Question", _TURN, labels)
    marks = "".join(_dot(each, given, each is asked[chosen]) for each in asked)
    done = sum(each.key in given for each in asked)
    st.html(
        f'<p class="wl-dots" role="img" aria-label="{done} of {len(asked)} answered">{marks}</p>'
    )
    return asked[chosen]


# -- one question


def ask(question: Question, place: str) -> None:
    """Put a question; take the first answer that can be read, and say whether and why."""
    st.html(
        f'<p class="wl-kind">{html.escape(question.topic)} · {_KINDS[question.kind]}</p>'
        f'<p class="wl-ask">{html.escape(question.text)}</p>'
    )
    given = answers(place).get(question.key)
    if given is not None:
        _feedback(question, given, place)
    elif isinstance(question.expected, Points):
        _write(question, place)
    else:
        _try(question, place)


def aloud(topic: str, place: str) -> None:
    """Ask for an explanation aloud, and let the person mark it."""
    layout.section("Explain aloud", f"{quiz.ALOUD[topic]} {_ALOUD}")
    _marks(f"Your mark for {topic}", f"aloud_{place}_{topic}", _mark_aloud, (topic, place))


def place_of(of: Checkpoint, number: int) -> str:
    """Return where the answers to a set are kept."""
    return f"{of.sha256[:12]}_{number}"


def answers(place: str) -> dict[str, Given]:
    """Return what was answered in a set, by the questions' keys."""
    return {key: given for (at, key), given in _all(_GIVEN).items() if at == place}


def aloud_marks(place: str) -> dict[str, int]:
    """Return the marks for explaining aloud, by topic."""
    kept = _all(_ALOUD_MARKS).items()
    return {topic: mark for (at, topic), mark in kept if at == place and mark is not None}


# -- the score


def card(of: Checkpoint, number: int, asked: Sequence[Question]) -> Card:
    """Show the score by topic and return it as a card, named by the person."""
    place = place_of(of, number)
    found = Card("", state.today(), number, of.name, asked, answers(place), aloud_marks(place))
    layout.section("Your score", "First answers count. Marks are your own.")
    rows = [
        [topic, Bar(right, score.share), marks]
        for (topic, right, marks), score in zip(scorecard.rows(found), found.scores, strict=True)
    ]
    heads = ("topic", "right of answered (bar: of all)", "own marks")
    layout.table(heads, rows, label="Score by topic")
    layout.help_line(f"{found.total}.")
    name = st.text_input(
        "Name on the card",
        max_chars=LONGEST_NAME,
        key="quiz_name",
        persist_state="session",
        live="200ms",
        placeholder="Your name or a nickname; it may stay empty",
    )
    named = Card(
        (name or "")[:LONGEST_NAME],
        found.date,
        number,
        of.name,
        asked,
        found.given,
        found.aloud,
    )
    with st.container(horizontal=True, gap="small"):
        _file("Score card to print", "html", "text/html", lambda: scorecard.page(named))
        _file("Score card as Markdown", "md", "text/markdown", lambda: scorecard.markdown(named))
    layout.help_line(
        "Answers and name stay in this browser tab. They are gone when it is closed or loaded "
        "anew, so download the card."
    )
    return named


def quoted(of: Checkpoint, number: int, question: Question) -> dict[str, object]:
    """Return what the lines of "Show the code" need to put the same question."""
    return {"paths": words.paths(compared(of)), "seed": number, "key": question.key}


# -- parts


def _another(value: int) -> None:
    state.put("set", (value + 1) % _SEEDS)
    state.put(_TURN, 0)


def _step(title: str, icon: str, to: int, *, disabled: bool) -> None:
    st.button(
        title,
        key=f"turn_{title}",
        icon=icon,
        disabled=disabled,
        on_click=_go,
        args=(to,),
        wrap=True,
    )


def _go(to: int) -> None:
    state.put(_TURN, to)


def _dot(question: Question, given: dict[str, Given], here: bool) -> str:
    of = given.get(question.key)
    looks = {None: "written", True: "right", False: "wrong"}
    look = "open" if of is None else looks[of.right]
    sign = {"open": "·", "written": "✎", "right": "✓", "wrong": "✗"}[look]
    return f'<span class="wl-dot-{look}{" wl-dot-here" if here else ""}">{sign}</span>'


def _try(question: Question, place: str) -> None:
    key, expected = _key(question, place), question.expected
    with st.form(f"form_{key}", border=False):
        if isinstance(expected, Choice):
            st.radio(
                "Your prediction",
                range(len(expected.options)),
                index=None,
                format_func=[layout.plain(option) for option in expected.options].__getitem__,
                key=key,
                persist_state="session",
            )
        else:
            st.text_input(
                "Your answer",
                max_chars=LONGEST,
                key=key,
                persist_state="session",
                placeholder=expected.hint[:1].upper() + expected.hint[1:],
                help=_READ,
            )
        checked = st.form_submit_button(
            "Check",
            key=f"check_{key}",
            icon=":material/check:",
            type="primary",
            on_click=_take,
            args=(question, place),
        )
    if checked:  # and still here: the answer was not taken
        layout.note(_judged(question, place)[1])


def _write(question: Question, place: str) -> None:
    key = _key(question, place)
    st.text_area(
        "Your explanation",
        height=120,
        max_chars=LONGEST_TEXT,
        key=key,
        persist_state="session",
        placeholder="Two or three sentences of your own",
    )
    asked = st.button(
        "See a model answer",
        key=f"see_{key}",
        icon=":material/visibility:",
        on_click=_take,
        args=(question, place),
    )
    if asked:
        layout.note(_judged(question, place)[1])


def _take(question: Question, place: str) -> None:
    """Keep an answer that can be read (a callback)."""
    right, refusal = _judged(question, place)
    if not refusal:
        judged = None if isinstance(question.expected, Points) else right
        _keep(_GIVEN, place, question.key, Given(_typed(question, place), judged))


def _judged(question: Question, place: str) -> tuple[bool, str]:
    """Return whether what stands in the box is right, or why it cannot be read."""
    try:
        return question.accepts(_typed(question, place)), ""
    except TextError as error:
        return False, f"{str(error)[:1].upper()}{str(error)[1:]}."


def _typed(question: Question, place: str) -> str:
    value, expected = state.value(_key(question, place), None), question.expected
    if isinstance(expected, Choice):
        return "" if value is None else expected.options[value]
    return (value or "")[: LONGEST_TEXT if isinstance(expected, Points) else LONGEST]


def _feedback(question: Question, given: Given, place: str) -> None:
    st.html(f'<p class="wl-quote">{html.escape(given.answer)}</p>')
    if isinstance(question.expected, Points):
        layout.subtitle("A model answer")
        points = "".join(f"<li>{html.escape(point)}</li>" for point in question.expected.points)
        st.html(f'<ul class="wl-points">{points}</ul>')
        layout.help_line(_HOW_TO_MARK)
        _marks("Your mark", f"mark_{_key(question, place)}", _mark, (question, place))
        return
    verdict = "Right" if given.right else "Not so"
    layout.answer((verdict, "number"), ": ", (question.expected.shown, "token"))
    layout.answer(question.why)


def _marks(title: str, key: str, act: Callable[..., None], about: tuple[object, ...]) -> None:
    """Pick a mark of 0 to 3; `act` gets the widget's key and `about`."""
    st.segmented_control(
        title,
        range(HIGHEST_MARK + 1),
        format_func=_RUBRIC.__getitem__,
        key=key,
        persist_state="session",
        on_change=act,
        args=(key, *about),
    )


def _mark(key: str, question: Question, place: str) -> None:
    given = answers(place)[question.key]
    _keep(_GIVEN, place, question.key, Given(given.answer, None, state.value(key, None)))


def _mark_aloud(key: str, topic: str, place: str) -> None:
    _keep(_ALOUD_MARKS, place, topic, state.value(key, None))


def _keep(name: str, place: str, key: str, value: object) -> None:
    state.put(name, _all(name) | {(place, key): value})


def _file(label: str, ending: str, mime: str, make: Callable[[], str]) -> None:
    st.download_button(
        label,
        make,
        f"score_card.{ending}",
        mime,
        key=f"score_{ending}",
        on_click="ignore",
        icon=":material/download:",
    )


def _key(question: Question, place: str) -> str:
    return f"answer_{place}_{question.key}"


def _all(name: str) -> dict[tuple[str, str], Any]:
    return state.value(name, {})
