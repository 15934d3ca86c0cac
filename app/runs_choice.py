"""The choices of the Runs page: the run that is shown, what is laid over it, what is listed.

They stand outside of what is drawn anew every two seconds, so nothing that a person is typing
or picking is disturbed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from app import controls, runs_curves, state
from app.figures import RUN_LOOKS
from app.jobs.record import FINAL, Job, owner_of
from wordlm_core.checkpoint import Checkpoint

MOST_OVER = len(RUN_LOOKS) - 1
LISTED = 50
RUN, _OVER, _COUNT = "run", "overlay", "_runs_listed"


@dataclass(frozen=True)
class Shown:
    """What a person chose to see.

    Attributes:
        job: The run.
        over: Runs that are laid over it.
        ghost: A stored checkpoint whose curve is laid over it.
        mine: Whether the table lists the person's own runs only.
        count: Rows of the table at most.
        polls: Whether something is open, so that there is something to wait for.
    """

    job: Job
    over: tuple[Job, ...]
    ghost: Checkpoint | None
    mine: bool
    count: int
    polls: bool


def choose() -> Shown | None:
    """Pick a run, what is laid over it and what the table lists; None where nobody has a run."""
    jobs = list(open_to_me()().values())
    if not jobs:
        return None
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="run_choice"):
        with st.container():  # what a link could not find is said under the box
            job = _run(jobs)
        with st.popover("Lay over it", icon=":material/stacked_line_chart:"):
            laid = _over([each for each in jobs if each.id != job.id])
            stored = _ghost()
        mine = controls.choose(st.segmented_control, "Table", "list", ("all", "mine"))
    polls = any(each.state not in FINAL for each in state.store().jobs())
    return Shown(job, laid, stored, mine == 1, state.value(_COUNT, LISTED), polls)


def open_to_me() -> Callable[[], dict[str, Job]]:
    """Return what finds the runs that this person may open, by id, whenever it is called.

    Also outside of the session: a download is made by another thread.
    """
    store, person, instructor = state.store(), state.person(), state.is_instructor()
    return lambda: {job.id: job for job in store.visible(person, instructor=instructor)}


def owner() -> str:
    """Return what runs of this person are known by."""
    return owner_of(state.person())


def may_change(job: Job) -> bool:
    """Return whether this person may end, delete or share a run."""
    return job.owner == owner() or state.is_instructor()


def listed(shown: Shown) -> list[Job]:
    """Return all runs that the table is about, whatever of them it shows."""
    return [job for job in state.store().jobs() if not shown.mine or job.owner == owner()]


def more(shown: Shown) -> None:
    """Offer the rows of the table that are not listed yet."""
    there = len(listed(shown))
    if there > shown.count:
        st.button(
            f"Show {min(LISTED, there - shown.count)} more of {there:,}",
            key="more_runs",
            on_click=state.put,
            args=(_COUNT, shown.count + LISTED),
        )


# -- parts


def _run(jobs: Sequence[Job]) -> Job:
    ids = [each.id for each in jobs]
    for asked in state.named(RUN) & set(ids):  # a link names a run by its id
        state.put(RUN, ids.index(asked))
    mine = [i for i, each in enumerate(jobs) if each.owner == owner()]
    labels = [each.label for each in jobs]
    default = mine[0] if mine else 0
    chosen = jobs[controls.choose(st.selectbox, "Run", RUN, labels, default, by_label=True)]
    state.remember_text(RUN, chosen.id)  # what a link to this view says
    return chosen


def _over(others: Sequence[Job]) -> tuple[Job, ...]:
    by_id = {each.id: each for each in others}
    labels = {each.id: each.label for each in others}
    if state.value(_OVER, None):
        state.put(_OVER, [each for each in state.value(_OVER, []) if each in by_id])
    chosen = st.multiselect(
        "Other runs",
        list(by_id),
        format_func=labels.__getitem__,
        key=_OVER,
        bind="query-params",
        persist_state="session",
        max_selections=MOST_OVER,
        select_all=False,
        placeholder=f"{MOST_OVER} at most",
    )
    state.remember_text(_OVER, [labels[each] for each in chosen])
    return tuple(by_id[each] for each in chosen)


def _ghost() -> Checkpoint | None:
    stored = [each for each in state.library().checkpoints.values() if runs_curves.has_curve(each)]
    names = ["none", *(each.name for each in stored)]
    chosen = controls.choose(st.selectbox, "Ghost of a stored curve", "ghost", names)
    return stored[chosen - 1] if chosen else None
