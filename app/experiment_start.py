"""What an experiment starts from: its list is looked at and its baseline trained, by the pool."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from app import controls, experiment_runs, layout, state
from app.experiment_choice import Asked
from app.jobs.pool import Ticket
from wordlm_core import experiment
from wordlm_core.errors import WordLMError
from wordlm_core.experiment import DATA, OWN, SEEDS, Experiment, Result

WAIT_SECONDS = 2.5
_POLL_SECONDS = 2.0
_BASELINE = "_baseline_asked"
_AS_A_JOB = ("Start one as a job, which may take longer", ":material/add_circle:")


@dataclass(frozen=True)
class Start:
    """What is known before the run: the list, and what came of the baseline."""

    vocab_size: int
    audit: dict[str, int]
    baseline: Result


def start(asked: Asked | None) -> Start | None:
    """Say what is changed and what the list holds; train the baseline if nobody has yet."""
    if asked is None:
        return None
    tried, baseline = asked.tried, asked.tried.baseline()
    _leave_another(baseline, asked.listed)
    only_list = Experiment(data=tried.data, context=tried.context)
    try:
        seen = _answer(ask("look", only_list, asked.documents), "Reading the list")
        if seen is None:
            return None
        experiment.require_quick(tried, seen["vocab_size"])
        layout.help_line(f"{_changed(tried, baseline)} {_list_line(tried, seen)}")
        ticket = ask("baseline", baseline, asked.documents)
        state.put(_BASELINE, (baseline, asked.listed, ticket))  # here: a rerun may cut in below
        found = _answer(ticket, "Training the baseline")
    except WordLMError as error:
        layout.refuse(error)
        layout.page_link("90_new_run.py", *_AS_A_JOB, {"new_what": "an experiment"})
        return None
    if found is None:
        return None
    state.put(_BASELINE, None)
    return Start(**seen, baseline=Result.from_json(found))


def ask(lane: str, tried: Experiment, documents: Sequence[str]) -> Ticket:
    """Hand an experiment to the pool.

    Args:
        lane: `look` (only counts what is in the list), `baseline` or `run`.
        tried: The settings.
        documents: A person's own items.

    Raises:
        QuickError: Too many are waiting.
    """
    request = {
        "task": "look" if lane == "look" else "run",
        "experiment": replace(tried, label="").to_json(),
        "documents": list(documents) if tried.data == OWN else [],
    }
    return state.quick_pool().submit(state.person(), lane, request)


@st.fragment(run_every=_POLL_SECONDS)
def watch(ticket: Ticket) -> None:
    """Show how far a run is; draw the page anew at its end."""
    if ticket.over:
        st.rerun()
    place = ticket.place
    if place:
        st.progress(0.0, f"Waiting for a free process: place {place} in the queue")
    elif ticket.progress is None:
        st.progress(0.0, "Starting")
    else:
        step, steps, loss = ticket.progress
        of = f"{steps:,} (with {SEEDS} seeds)"
        st.progress(step / steps, f"Step {step:,} of {of}, loss {loss:.3g}")


# -- parts


def _answer(ticket: Ticket, doing: str) -> dict[str, Any] | None:
    """Return what the pool says, or None while it is at it: the page then looks again."""
    if ticket.wait(WAIT_SECONDS):
        return ticket.result()
    layout.subtitle(doing)
    watch(ticket)
    return None


def _leave_another(baseline: Experiment, listed: str) -> None:
    """End the training of a baseline that nobody waits for: it holds the person's one place."""
    last: tuple[Experiment, str, Ticket] | None = state.value(_BASELINE, None)
    if last is not None and last[:2] != (baseline, listed):
        last[2].cancel()


def _changed(tried: Experiment, baseline: Experiment) -> str:
    found = experiment_runs.changes(tried, baseline)
    if tried.data != baseline.data:
        other = "Losses of two lists compare only roughly: one may be easier to predict."
    else:
        seeds = experiment_runs.seeds_said(tried)
        other = f"Same seeds ({seeds}), same orders of the items as the baseline."
    if not found and tried.draws == baseline.draws:
        return "Nothing is changed: this is the baseline itself."
    if not found:
        return f"The training is the baseline's: only the sampling differs. {other}"
    several = "" if len(found) == 1 else " Several at once: an effect has no single cause."
    unused = "" if tried.positions else f" {experiment_runs.NO_POSITIONS}"
    return f"Changed: {', '.join(found)}.{several}{unused} {other}"


def _list_line(tried: Experiment, seen: dict[str, Any]) -> str:
    counts = seen["audit"]
    remarks = [
        f"{counts['items']:,} items",
        f"{seen['vocab_size'] - 1:,} different characters and <BOS>: V = {seen['vocab_size']:,}",
        f"context {tried.context}",
    ]
    if counts["repeats"]:
        remarks.append(f"{counts['repeats']:,} repeats")
    if counts["longer_than_context"]:
        remarks.append(f"{counts['longer_than_context']:,} longer than the context, so cut")
    _, seconds = experiment.estimate(tried, seen["vocab_size"])
    remarks.append(f"about {math.ceil(seconds)} s for all {SEEDS} seeds")
    return f"{'; '.join(remarks)}.{_other_list(tried, counts['items'])}"


def _other_list(tried: Experiment, items: int) -> str:
    """Return a sentence where the other pages' model learned from another list of names."""
    loaded = state.library().checkpoints.values()
    if tried.data != DATA[0] or not any(each.model.family == "microgpt" for each in loaded):
        return ""
    opened = controls.best_checkpoint("microgpt")
    there = opened.section("corpus").get("items")
    if not isinstance(there, int) or there == items:
        return ""
    return (
        f" These are census names, another list than the {there:,} names that {opened.name} of "
        "the other pages read."
    )
