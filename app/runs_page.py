"""What the Runs page shows of a run and of the queue; one fragment draws anew what changes."""

import time
from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from app import (
    figures,
    layout,
    runs_act,
    runs_choice,
    runs_curves,
    runs_result,
    runs_told,
    settings,
    state,
)
from app.figures import RunCurve
from app.jobs.record import FINAL, WAITING, WRITING, Job, JobError
from app.jobs.store import CHECKPOINT, RESULT
from app.runs_choice import Shown

_POLL_SECONDS = 2.0
_SUBMIT = (
    "python -m app.jobs submit --family attention --corpus stories --steps 400 --name first\n"
    "python -m app.jobs list"
)
_HERE = "python -m wordlm_core train --family attention --corpus stories --steps 400 --out a.npz"
_CODE = """
# The record, in a terminal: python -m app.jobs show {run}
from pathlib import Path
from wordlm_core import checkpoint

loaded = checkpoint.load(Path({path}))
print(loaded.model.kind, loaded.steps)
print(loaded.trace() or loaded.losses()[-5:])
"""
_CODE_OF_EXPERIMENT = """
# The record, in a terminal: python -m app.jobs show {run}
import json
from pathlib import Path
from wordlm_core.experiment import Result

result = Result.from_json(json.loads(Path({path}).read_text(encoding="utf-8")))
print(result.parameters, result.loss, result.samples[0][:5])
"""


def teach() -> None:
    """Say what a run is and how to start one, where there is none."""
    layout.answer("There is no run yet.")
    layout.help_line(
        "A run is one training, in a process of its own: start it, close the laptop, come back. It "
        "waits in a queue that everybody shares, shows its loss while it trains, and its model "
        "opens in every lens from its first checkpoint on."
    )
    layout.page_link(
        "90_new_run.py", "New run: choose a corpus and a model", ":material/add_circle:"
    )
    layout.section("From a terminal", "The same queue, and below it a training without one.")
    layout.command(_SUBMIT)
    layout.command(_HERE)


def live(shown: Shown) -> None:
    """Show how the run is and who waits; look again every two seconds while anything is open."""
    look = st.fragment(_look, run_every=_POLL_SECONDS) if shown.polls else _look
    look(shown, _fixed(shown))


def details(shown: Shown) -> None:
    """Show a run's settings, its states and its log."""
    job = shown.job
    layout.section("What was asked for, and what came of it")
    asked, states = layout.columns(1, 1)
    with asked:
        layout.table(("setting", "value"), runs_told.settings(job), words=(0, 1), label="Settings")
    with states:
        layout.table(
            ("state", "since", "why"),
            runs_told.history(job, st.context.timezone_offset or 0),
            words=(0, 1, 2),
            label="States",
        )
    log = state.store().log(job.id)
    if log and runs_choice.may_change(job):
        with layout.folded("The end of its log", ":material/terminal:"):
            st.code(log, language=None)


def files(shown: Shown) -> tuple[Callable[[], str], Callable[[], str]]:
    """Return what makes the CSV and the JSON, from the runs as they are at the click."""
    store, look = state.store(), runs_choice.open_to_me()

    def csv() -> str:
        drawn = _drawn(shown, look())
        return runs_curves.curves_csv([(job, store.progress(job.id)) for job in drawn])

    def data() -> str:
        job = _of(shown, look())
        return runs_curves.run_json(job, store.progress(job.id))

    return csv, data


def code(shown: Shown) -> tuple[str, dict[str, str]]:
    """Return the lines that open what the run has written, as a template with its values."""
    store, job = state.store(), shown.job
    is_experiment = job.work.kind == "experiment"
    stored = store.checkpoints(job)
    otherwise = store.folder(job.id) / (RESULT if is_experiment else CHECKPOINT)
    path = stored[0][1] if stored and not is_experiment else otherwise
    folder = settings.current().runs.name
    values = {"run": job.id, "path": f"{folder}/{path.relative_to(store.root)}"}
    return _CODE_OF_EXPERIMENT if is_experiment else _CODE, values


# -- what is drawn anew


def _look(shown: Shown, before: tuple[object, ...]) -> None:
    if _fixed(shown) != before:
        st.rerun()  # other buttons, links or results: the whole page once
    there = runs_choice.open_to_me()()
    try:
        job = _of(shown, there)
        status, picture = layout.columns(2, 3)
        with status, st.container(gap="xsmall"):
            _status(job)
        with picture:
            _picture(_drawn(shown, there), shown)
        runs_result.result(job)
        _table(shown, there)
    except JobError as error:  # a run was deleted between two looks: the next one knows
        layout.refuse(error)


def _fixed(shown: Shown) -> tuple[object, ...]:
    """Return what the page around the fragment was drawn from; None where the run is gone."""
    store, there = state.store(), runs_choice.open_to_me()()
    polls = any(each.state not in FINAL for each in store.jobs())
    over = tuple(each.id in there for each in shown.over)
    job = there.get(shown.job.id)
    if job is None:
        return (None, polls, over)
    return job.state, job.private, job.attempt, len(store.checkpoints(job)), polls, over


def _of(shown: Shown, there: Mapping[str, Job]) -> Job:
    """Return the run that is shown as it is now.

    Raises:
        JobError: It is gone, or no longer for this person.
    """
    job = there.get(shown.job.id)
    if job is None:
        raise JobError("this run is gone, or its owner no longer shows it")
    return job


def _drawn(shown: Shown, there: Mapping[str, Job]) -> list[Job]:
    """Return the runs of the picture that are still there, and for this person."""
    wanted = (shown.job, *shown.over)
    return [there[each.id] for each in wanted if each.id in there]


def _status(job: Job) -> None:
    store = state.store()
    curve, look = store.progress(job.id), runs_told.STATES[job.state]
    layout.answer((job.name, "token"))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        place = store.place(job.id)
        word = f"{job.state}, place {place}" if job.state == "queued" and place else job.state
        st.badge(word, icon=look.icon, color=look.colour, help=look.meaning)
        told = f"{runs_told.what(job.work)}; {runs_told.whose(job, runs_choice.owner())}"
        layout.help_line(f"{told}{', private' if job.private else ''}")
    layout.help_line(runs_told.happening(job, curve, place))
    st.progress(runs_told.share_done(job, curve), runs_told.progress_line(job, curve))
    rows = runs_told.numbers(job, curve)
    if rows:
        layout.table(("nats a token", ""), rows, label="Losses")
    runs_act.open_in(job)


def _picture(jobs: Sequence[Job], shown: Shown) -> None:
    job, curves = jobs[0], _curves(jobs, shown)
    if all(each.is_empty for each in curves):
        layout.note("No loss has been reported yet: the curve begins with the first steps.")
        return
    levels = runs_curves.levels(job)
    page = state.page()
    page.figures.clear()  # the one of two seconds ago
    layout.plot(figures.run_curves(curves, levels), "run_curves", name="runs")
    trainings = job.steps // runs_curves.one_training(job)
    if trainings > 1:
        layout.help_line(f"{trainings} trainings in a row: each begins a line of its own.")
    above = figures.above_the_scale(curves, levels)
    if above:
        layout.help_line(f"A part is off the top: {'; '.join(above)}.")


def _curves(jobs: Sequence[Job], shown: Shown) -> list[RunCurve]:
    store = state.store()
    found = [runs_curves.of_run(job, store.progress(job.id), look) for look, job in enumerate(jobs)]
    return [*found, *([] if shown.ghost is None else [runs_curves.of_stored(shown.ghost)])]


def _table(shown: Shown, open_to: Mapping[str, Job]) -> None:
    store, now, owner = state.store(), time.time(), runs_choice.owner()
    jobs = runs_choice.listed(shown)
    layout.section("Queue and history", _summary(store.jobs()))
    places = {job.id: place for place, job in enumerate(store.queue(), 1)}
    rows: list[list[str]] = []
    strong: int | None = None
    for index, job in enumerate(jobs[: shown.count]):
        place = places.get(job.id, 0)
        strong = index if job.id == shown.job.id else strong
        if job.id in open_to:
            rows.append(runs_told.row(job, store.progress(job.id), place, now=now, owner=owner))
        else:
            rows.append(runs_told.private_row(job, place))
    if not rows:
        layout.note("None of these runs is yours.")
        return
    hidden = [i for i, job in enumerate(jobs[: shown.count]) if job.id not in open_to]
    with st.container(key="queue_table"):
        layout.table(
            runs_told.HEADS, rows, strong=strong, faint=hidden, words=(0, 1, 2, 3), label="Runs"
        )


def _summary(jobs: Sequence[Job]) -> str:
    running = sum(job.state in WRITING for job in jobs)
    waiting = sum(job.state in WAITING for job in jobs)
    return f"{running} running, {waiting} waiting, {len(jobs) - running - waiting} ended."
