"""Commit, then run: a prediction is locked before its experiment can be run, and compared after.

What a person writes and runs stays in the session of the browser tab; the running itself is done
by the server's pool of processes.
"""

import html
import time
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from app import experiment_runs, experiment_start, layout, state
from app.experiment_choice import Asked
from app.experiment_runs import DIRECTIONS, SAME, Prediction, Run
from app.experiment_start import WAIT_SECONDS, Start
from app.figures import RUN_LOOKS
from app.jobs.pool import QuickError, Ticket
from wordlm_core.errors import TextError
from wordlm_core.experiment import Experiment, Result

MOST_RUNS, MOST_DRAWN = 30, len(RUN_LOOKS)
SHOWN, DRAWN = "run_shown", "runs_drawn"
_LONGEST, _FEWEST_LETTERS = 400, 6
_DRAWN_AT_FIRST = 5
_RUNS, _LOCKS, _PENDING, _LAST = "_runs", "_locks", "_pending_run", "_last_compared"


@dataclass
class _Pending:
    """A run that was asked for and has not come back."""

    asked: Asked
    prediction: Prediction
    baseline: Result
    ticket: Ticket | None = None
    since: float = field(default_factory=time.monotonic)


def collect() -> None:
    """Take in the result of a run that was asked for; a short one is waited for."""
    pending: _Pending | None = state.value(_PENDING, None)
    if pending is None:
        return
    try:
        if pending.ticket is None:
            pending.ticket = experiment_start.ask(
                "run", pending.asked.tried, pending.asked.documents
            )
        if not pending.ticket.wait(pending.since + WAIT_SECONDS - time.monotonic()):
            return
        _keep(pending, Result.from_json(pending.ticket.result()))
    except QuickError as error:
        layout.refuse(error)
    state.put(_PENDING, None)


def commit(asked: Asked | None, known: Start | None) -> Run | None:
    """Lock a prediction, run, and hold it against the result; return the run if it is done."""
    pending: _Pending | None = state.value(_PENDING, None)
    if pending is not None and pending.ticket is not None:
        layout.subtitle(f"Running: {pending.asked.tried.label}")
        experiment_start.watch(pending.ticket)
        st.button("Cancel", key="cancel_run", on_click=pending.ticket.cancel)
        return None
    if asked is None:
        return None
    done = next((run for run in runs() if (run.experiment, run.listed) == asked.key), None)
    if done is not None and done is not state.value(_LAST, None):
        state.put(SHOWN, runs().index(done))  # it is explained below
        _draw(done.number)
    state.put(_LAST, done)
    if done is not None:
        _compare(done)
    elif len(runs()) >= MOST_RUNS:
        layout.note(f"{MOST_RUNS} runs are kept: download them, then remove one to go on.")
    elif known is not None:
        locked = _locks().get(asked.key)
        if locked is None:
            _form(asked)
        else:
            _ready(asked, locked, known.baseline)
    return done


def runs() -> list[Run]:
    """Return the runs of this session, in their order."""
    return state.value(_RUNS, [])


def drawn() -> list[Run]:
    """Return the runs that are in the picture: the latest, until a person chooses."""
    numbers = state.value(DRAWN, None)
    if numbers is None:
        return runs()[-_DRAWN_AT_FIRST:]
    return [run for run in runs() if run.number in numbers][:MOST_DRAWN]


def remove(gone: Run) -> None:
    """Take a run out of the table and of the picture."""
    state.put(DRAWN, [run.number for run in drawn() if run is not gone])
    state.put(_RUNS, [run for run in runs() if run is not gone])
    state.put(SHOWN, max(0, len(runs()) - 1))


# -- predict, run, compare


def _locks() -> dict[tuple[Experiment, str], Prediction]:
    return state.value(_LOCKS, {})


def _form(asked: Asked) -> None:
    direction: int | None = st.segmented_control(
        "Your prediction: against the baseline, the loss",
        range(len(DIRECTIONS)),
        format_func=DIRECTIONS.__getitem__,
        key="guess_direction",
        persist_state="session",
    )
    places = st.columns(2)
    if direction != SAME:
        _line(places[0], "By how many nats", "guess_size", "0.05")
    _line(places[1], "Parameters, by hand", "guess_count", "A whole number")
    _line(st, "Because", "guess_because", "Your hypothesis, in a sentence")
    clicked = st.button(
        "Lock my prediction",
        key="lock_prediction",
        icon=":material/lock:",
        help="A locked prediction stays as it is. Then the experiment can be run.",
        on_click=_lock,
        args=(asked.key,),
    )
    if clicked:
        try:
            _typed_prediction()
        except TextError as error:
            layout.refuse(error)


def _line(place: Any, title: str, key: str, hint: str) -> None:
    place.text_input(
        title,
        max_chars=_LONGEST,
        key=key,
        persist_state="session",
        live="200ms",
        placeholder=hint,
    )


def _typed_prediction() -> Prediction:
    """Return what the form holds.

    Raises:
        TextError: Something is missing, is no number or is no hypothesis.
    """
    direction = state.value("guess_direction", None)
    if direction is None:
        raise TextError("predict first: say whether the loss goes down, stays or goes up")
    size = 0.0 if direction == SAME else experiment_runs.parse_size(_typed("guess_size"))
    count = experiment_runs.parse_count(_typed("guess_count"))
    because = _typed("guess_because")
    if sum(map(str.isalnum, because)) < _FEWEST_LETTERS:
        raise TextError("say in a few words why you expect that: a guess alone teaches little")
    return Prediction(direction, size, count, because)


def _typed(key: str) -> str:
    return (state.value(key, "") or "")[:_LONGEST]


def _lock(key: tuple[Experiment, str]) -> None:
    try:
        prediction = _typed_prediction()
    except TextError:  # the form says it, under the button
        return
    state.put(_LOCKS, _locks() | {key: prediction})
    state.put("guess_direction", None)
    for name in ("guess_size", "guess_count", "guess_because"):
        state.put(name, "")


def _ready(asked: Asked, locked: Prediction, baseline: Result) -> None:
    layout.subtitle("Your prediction, locked")
    _quote(locked)
    st.button(
        "Run",
        key="run_experiment",
        type="primary",
        icon=":material/play_arrow:",
        on_click=_run,
        args=(_Pending(asked, locked, baseline),),
    )


def _quote(locked: Prediction) -> None:
    said = f"The loss {experiment_runs.predicted(locked)}; {locked.count:,} parameters."
    because = html.escape(locked.because)
    st.html(f'<p class="wl-quote">{html.escape(said)}\n{because}</p>')


def _run(pending: _Pending) -> None:
    pending.since = time.monotonic()
    state.put(_PENDING, pending)


def _keep(pending: _Pending, result: Result) -> None:
    finished, asked = runs(), pending.asked
    number = finished[-1].number + 1 if finished else 1
    run = Run(number, asked.tried, asked.listed, pending.prediction, result, pending.baseline)
    state.put(_RUNS, [*finished, run])
    state.put(_LOCKS, {key: held for key, held in _locks().items() if key != asked.key})
    state.put(SHOWN, len(finished))
    _draw(number)


def _draw(number: int) -> None:
    """Put a run into the picture, in place of the earliest where there is no room."""
    kept = [run.number for run in drawn() if run.number != number]
    state.put(DRAWN, [*kept[1 - _DRAWN_AT_FIRST :], number])


def _compare(run: Run) -> None:
    layout.subtitle(f"Run {run.number}: your prediction against the result")
    _quote(run.prediction)
    layout.answer("The loss ", (experiment_runs.happened(run), "number"), ".")
    for sentence in experiment_runs.verdict(run):
        layout.help_line(sentence)
    layout.help_line("Explain it below, or choose another experiment above.")
