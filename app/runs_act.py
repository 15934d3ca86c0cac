"""What a person can do with a run: end it, go on, delete, share, open its model in a lens."""

import re
import zipfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import streamlit as st

from app import access, layout, lenses, person, runs_choice, runs_told, state
from app.jobs.record import Job
from wordlm_core.errors import WordLMError

NEW_RUN = ("90_new_run.py", "New run", ":material/add_circle:")
_CANCELS = ("queued", "running", "interrupted")
_RESUMES = ("cancelled", "failed")
_STORED = re.compile(r"embedding__(selected_)?step_(\d{1,9})\.npy")
_REFUSED = "_run_refused"


def row(job: Job | None) -> None:
    """Offer what can be done: with the run that is shown, and as the person one is."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="run_actions"):
        if job is not None:
            _act(job)
            _model(job)
            layout.page_link(*NEW_RUN)
        person.recovery()
        access.gate()
    error = state.value(_REFUSED, None)
    if error is not None:
        layout.refuse(error)
        state.put(_REFUSED, None)


def open_in(job: Job) -> None:
    """Link to the lenses, on the model as it was stored last; an experiment stores none."""
    stored = {} if job.work.kind == "experiment" else dict(state.store().checkpoints(job))
    if not stored:
        return
    label = state.value(_model_key(job), None)
    label = label if label in stored else next(iter(stored))
    step = stored_step(stored[label])
    known = "" if step is None else f", stored at step {step:,}"
    layout.help_line(f"Open its model{known}, in:" if job.is_final else f"So far{known}, open in:")
    lenses.links(label, job.work.config.family)


def stored_step(path: Path) -> int | None:
    """Return the step of the model that a checkpoint opens at, or None where it does not say."""
    try:
        return _step_of(path, path.stat().st_mtime_ns)
    except OSError:
        return None


# -- parts


def _act(job: Job) -> None:
    """Offer what can be done with a run in its state to whom it belongs."""
    if not runs_choice.may_change(job):
        return
    if job.state in _CANCELS:
        _button("Cancel", "cancel_run", ":material/stop_circle:", _cancel, job)
    if job.state in _RESUMES:
        _button("Resume", "resume_run", ":material/play_arrow:", _resume, job)
    if job.is_final:
        with st.popover("Delete", icon=":material/delete:"):
            layout.note(runs_told.lost(job))
            _button("Delete for good", "delete_run", ":material/delete_forever:", _delete, job)
    shared = f"shared_{job.id}"
    state.put(shared, not job.private)
    st.toggle(
        "Others may see it",
        key=shared,
        on_change=_share,
        args=(job.id, shared),
        help="Whether others see its curve and open its model. The queue shows every run.",
    )


def _model(job: Job) -> None:
    """Pick one of the models of a run that trains several."""
    labels = [label for label, _ in state.store().checkpoints(job)]
    if len(labels) < 2:
        return
    key = _model_key(job)
    if state.value(key, labels[0]) not in labels:
        state.put(key, labels[0])
    st.selectbox("Model to open", labels, key=key, label_visibility="collapsed", width=320)


def _model_key(job: Job) -> str:
    return f"model_of_{job.id}"


@lru_cache(maxsize=64)
def _step_of(path: Path, _changed: int) -> int | None:
    """Read the names of a checkpoint's arrays, not the arrays."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = [match for name in archive.namelist() if (match := _STORED.fullmatch(name))]
    except zipfile.BadZipFile:
        return None
    chosen = [match for match in found if match[1]] or found
    return max((int(match[2]) for match in chosen), default=None)


def _button(label: str, key: str, icon: str, act: Callable[[str], Any], job: Job) -> None:
    st.button(label, key=key, icon=icon, on_click=_try, args=(act, job.id))


def _try(act: Callable[[str], Any], job_id: str) -> None:
    """Do what was clicked; what the store refuses is said when the page is drawn."""
    try:
        act(job_id)
    except WordLMError as error:
        state.put(_REFUSED, error)


def _cancel(job_id: str) -> None:
    state.store().cancel(job_id, state.person(), instructor=state.is_instructor())


def _resume(job_id: str) -> None:
    state.store().resume(job_id, state.person(), instructor=state.is_instructor())


def _delete(job_id: str) -> None:
    state.store().delete(job_id, state.person(), instructor=state.is_instructor())
    state.forget(runs_choice.RUN)  # else the page says that what was asked for is not here


def _share(job_id: str, key: str) -> None:
    private = not state.value(key, False)

    def share(of: str) -> None:
        state.store().share(of, state.person(), private=private, instructor=state.is_instructor())

    _try(share, job_id)
