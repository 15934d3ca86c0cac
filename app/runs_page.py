"""What the Runs page shows of a run and of the queue; one fragment draws anew what changes."""

import time
from collections.abc import Callable, Sequence

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
from app.jobs.record import FINAL, Job, JobError
from app.jobs.store import CHECKPOINT, Store
from app.runs_choice import Shown

_POLL_SECONDS = 2.0
_SUBMIT = (
    "python -m app.jobs submit --family attention --corpus stories --steps 400 --name first\n"
    "python -m app.jobs list"
)
_HERE = "python -m wordlm_core train --family attention --corpus stories --steps 400 --out a.npz"


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
    store = state.store()

    def csv() -> str:
        return runs_curves.curves_csv(
            [(job, store.progress(job.id)) for job in _drawn(shown, store)]
        )

    def data() -> str:
        job = store.job(shown.job.id)
        return runs_curves.run_json(job, store.progress(job.id))

    return csv, data


def quoted(shown: Shown) -> dict[str, str]:
    """Return what the lines of "Show the code" need to open the same run."""
    store = state.store()
    stored = store.checkpoints(shown.job)
    path = stored[0][1] if stored else store.folder(shown.job.id) / CHECKPOINT
    folder = settings.current().runs.name
    return {"run": shown.job.id, "path": f"{folder}/{path.relative_to(store.root)}"}


# -- what is drawn anew


def _look(shown: Shown, before: tuple[object, ...]) -> None:
    if _fixed(shown) != before:
        st.rerun()  # other buttons, links or results: the whole page once
    job = state.store().job(shown.job.id)
    status, picture = layout.columns(2, 3)
    with status, st.container(gap="xsmall"):
        _status(job)
    with picture:
        _picture(job, shown)
    runs_result.result(job)
    _table(shown)


def _fixed(shown: Shown) -> tuple[object, ...]:
    """Return what the page around the fragment was drawn from; None where the run is gone."""
    store = state.store()
    polls = any(each.state not in FINAL for each in store.jobs())
    try:
        job = store.job(shown.job.id)
    except JobError:
        return (None, polls)
    return job.state, job.private, job.attempt, len(store.checkpoints(job)), polls


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


def _picture(job: Job, shown: Shown) -> None:
    curves = _curves(job, shown)
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


def _curves(job: Job, shown: Shown) -> list[RunCurve]:
    store = state.store()
    found = [runs_curves.of_run(job, store.progress(job.id), 0)]
    for look, over in enumerate(_drawn(shown, store)[1:], 1):
        found.append(runs_curves.of_run(over, store.progress(over.id), look))
    if shown.ghost is not None:
        found.append(runs_curves.of_stored(shown.ghost))
    return found


def _drawn(shown: Shown, store: Store) -> list[Job]:
    """Return the runs of the picture that are still there."""
    there = {each.id for each in store.jobs()}
    return [shown.job, *(each for each in shown.over if each.id in there)]


def _table(shown: Shown) -> None:
    store, now, owner = state.store(), time.time(), runs_choice.owner()
    jobs = runs_choice.listed(shown)
    layout.section("Queue and history", _summary(store.jobs()))
    places = {job.id: place for place, job in enumerate(store.queue(), 1)}
    open_to = {each.id for each in store.visible(state.person(), instructor=state.is_instructor())}
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
    running = sum(job.state in ("running", "stopping") for job in jobs)
    waiting = sum(job.state in ("queued", "interrupted") for job in jobs)
    return f"{running} running, {waiting} waiting, {len(jobs) - running - waiting} ended."
