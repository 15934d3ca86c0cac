"""Start of a new run: its name, the button, the queue before it."""

import json
from dataclasses import asdict
from typing import Any

import streamlit as st

from app import layout, new_run_plan, new_run_told, settings, state
from app.jobs.record import WAITING, WRITING, JobError, owner_of
from app.new_run_choice import Asked
from app.new_run_plan import Estimate
from wordlm_core.errors import WordLMError

_RUNS = settings.ROOT / "pages" / "91_runs.py"
_NAME, _PRIVATE, _WANTED = "new_name", "new_private", "_new_wanted"


def start(asked: Asked | None, found: Estimate) -> None:
    """Name the run and start it; the page of the runs opens at it."""
    # The store would else find out by itself what the plan tells, in the thread of the page.
    ready = asked is not None and bool(found.plans) and not found.refused
    name, private = _label(asked), _private(asked)
    checking = asked is not None and not found.plans and not found.refused
    st.button(
        "Checking the text" if checking else "Start",
        key="start_run",
        type="primary",
        icon=":material/play_arrow:",
        disabled=not ready,
        width="stretch",
        on_click=state.put,
        args=(_WANTED, True),
    )
    layout.help_line(_queue())
    wanted = bool(state.value(_WANTED, False))
    if wanted and checking:  # a number was typed, and Start clicked before its text was checked
        layout.note("It starts as soon as the text is checked.")
        return
    state.put(_WANTED, False)
    if not (wanted and ready and asked is not None):
        return
    try:
        upload = asked.upload
        job = state.store().submit(
            asked.work,
            state.person(),
            name=name,
            private=private,
            documents=None if upload is None else state.uploads().documents(upload),
            facts=_facts(asked, found),
        )
    except WordLMError as error:
        layout.refuse(error)
        return
    state.wake(now=True)
    st.switch_page(str(_RUNS), query_params={"run": job.id})


def code(asked: Asked | None) -> None:
    """Show the lines that do the same elsewhere."""
    if asked is not None:
        layout.code(*new_run_told.code(asked.work))


def data(asked: Asked | None, found: Estimate) -> str:
    """Return what is asked for and what was measured, as JSON."""
    if asked is None:
        raise JobError("there is nothing to download: the settings are not complete")
    told = {
        "work": asked.work.to_json(),
        "plans": [asdict(plan) for plan in found.plans],
        "seconds": new_run_plan.seconds(asked, found.plans) if found.plans else None,
    }
    return json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False)


# -- parts


def _facts(asked: Asked, found: Estimate) -> dict[str, Any]:
    """Return what was found out of these settings, so that the store need not do it again."""
    measured = dict(zip(asked.trainings, found.plans, strict=True))
    return measured[asked.work.config].facts.to_json()


def _label(asked: Asked | None) -> str:
    otherwise = "" if asked is None else new_run_told.name(asked.work, asked.size)
    typed = st.text_input(
        "Name",
        max_chars=new_run_told.LONGEST_NAME,
        key=_NAME,
        bind="query-params",
        persist_state="session",
        placeholder=otherwise or None,
    )
    state.remember_text(_NAME, typed or "")
    return (typed or "").strip() or otherwise


def _private(asked: Asked | None) -> bool:
    """Ask who may open the run; of a private text it is private at first."""
    own = asked is not None and asked.upload is not None and asked.upload.private
    key = f"{_PRIVATE}_own" if own else _PRIVATE
    private = st.toggle(
        "Only I may open it",
        own,
        key=key,
        bind="query-params",
        persist_state="session",
        help="Others then see that a job waits or runs, and nothing of it.",
    )
    state.remember_text(key, str(private).lower())
    return private


def _queue() -> str:
    jobs = state.store().jobs()
    waiting = sum(job.state in WAITING for job in jobs)
    running = sum(job.state in WRITING for job in jobs)
    me = owner_of(state.person())
    mine = sum(job.owner == me and job.is_open for job in jobs)
    if not running + waiting:
        return "Nothing runs or waits: it begins at once."
    return f"{running} running, {waiting} waiting; you have {mine} open. One a person runs at once."
