"""What a job will be like: measured by the pool's process while the page goes on."""

import html
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import streamlit as st

from app import layout, new_run_told, settings, state
from app.jobs import bounds
from app.jobs.pool import QuickError, Ticket
from app.new_run_choice import Asked
from app.runs_told import FLOOR, FLOORS, GUESSING, ago, lasting
from wordlm_core.errors import ConfigError, WordLMError
from wordlm_core.planning import Plan
from wordlm_core.text import UNK, visible

_POLL_SECONDS, _WAIT_SECONDS, _AGAIN_SECONDS = 2.0, 0.3, 4.0
_TICKETS = "_new_run_plans"


@dataclass(frozen=True)
class Estimate:
    """What is known of a job before it starts.

    Attributes:
        plans: One for each of its kinds of model; empty while they are measured.
        at: When the oldest of them was measured, in seconds since 1970.
        refused: Why it cannot be trained, in a sentence that was said; else empty.
    """

    plans: tuple[Plan, ...] = ()
    at: float = 0.0
    refused: str = ""


def estimate(asked: Asked | None) -> Estimate:
    """Show what a job takes and how good it can get; a note while that is measured."""
    if asked is None:
        return Estimate(refused="settings")
    try:
        bounds.require_sizes(asked.work, settings.current().limits)
        tickets = _ask(asked)
        plans = _answers(tickets)
        if plans is None:
            _not_yet(asked, tickets)
            return Estimate()
        for plan in plans:
            bounds.require_facts(asked.work, plan.facts.to_json(), settings.current().limits)
        found = Estimate(plans, min(state.answered_at(ticket.key) for ticket in tickets))
        _card(asked, found)
        _require_time(asked, plans)
    except WordLMError as error:
        layout.refuse(error)
        return Estimate(refused=str(error))
    return found


def seconds(asked: Asked, plans: Sequence[Plan]) -> float:
    """Return how long all trainings of a job take."""
    return asked.runs_each * sum(plan.seconds for plan in plans)


def preview(asked: Asked | None, found: Estimate) -> None:
    """Show how the first documents are read, and what the text counts."""
    if asked is None or not found.plans:
        return
    plan = found.plans[0]
    layout.section("How the text is read", _counts(plan))
    st.html("".join(map(_document, plan.preview)))
    splits: dict[str, Any] = plan.audit.get("splits", {})
    if splits:
        rows = [
            [name, f"{s['documents']:,}", f"{s['targets']:,}", f"{100 * s['unknown_share']:.2f}%"]
            for name, s in splits.items()
        ]
        heads = ("split", "documents", "targets", f"read as {UNK}")
        layout.table(heads, rows, label="Splits of the text")


@st.fragment(run_every=_POLL_SECONDS)
def watch(tickets: Sequence[Ticket]) -> None:
    """Say how far the measuring is; draw the page anew at its end."""
    if all(ticket.over for ticket in tickets):
        st.rerun()
    done = sum(ticket.over for ticket in tickets)
    place = next((ticket.place for ticket in tickets if not ticket.over), 0)
    queue = f", place {place} in the queue" if place > 1 else ""
    told = f"Checking the text, and measuring how long it takes here{queue}"
    st.progress(done / len(tickets), told)


@st.fragment(run_every=_AGAIN_SECONDS)
def ask_again(since: float) -> None:
    """Say that nothing was measured; draw the page anew after a moment, which asks again."""
    if time.monotonic() - since >= _AGAIN_SECONDS / 2:
        st.rerun()
    layout.help_line("Too much is asked for at once: this page asks again in a moment.")


# -- parts


def _ask(asked: Asked) -> list[Ticket]:
    """Hand the measurements to the pool, and take back those that nobody waits for.

    Returns:
        One for each kind of model; none where too many people are asking.
    """
    path = None if asked.upload is None else str(asked.upload.path)
    requests = [
        {
            "task": "plan",
            "config": training.to_json(),
            "source": asdict(asked.work.source),
            "path": path,
        }
        for training in asked.trainings
    ]
    pool, person = state.plan_pool(), state.person()
    try:
        tickets = [pool.submit(person, f"plan {i}", each) for i, each in enumerate(requests)]
    except QuickError:
        tickets = []
    for ticket in tickets:
        if not ticket.over:  # else the pool answers from memory
            state.answered_at.clear(ticket.key)
    for older in state.value(_TICKETS, []):
        if older.state == "queued" and older not in tickets:
            older.cancel()
    state.put(_TICKETS, tickets)
    return tickets


def _answers(tickets: Sequence[Ticket]) -> tuple[Plan, ...] | None:
    """Return the plans, or None where one of them is missing."""
    if not tickets:
        return None
    for ticket in tickets:
        if not ticket.wait(_WAIT_SECONDS) or ticket.state == "cancelled":
            return None
    return tuple(Plan.from_json(ticket.result()) for ticket in tickets)


def _not_yet(asked: Asked, tickets: Sequence[Ticket]) -> None:
    """Say what is asked for, and wait for its measuring."""
    layout.answer(*_headline(asked))
    if tickets and not all(ticket.over for ticket in tickets):
        watch(tickets)
    else:  # another tab of the same person took the place, or the pool is full
        ask_again(time.monotonic())


def _headline(asked: Asked) -> list[Any]:
    corpus = asked.work.source.label or asked.work.source.corpus
    work = asked.work
    if work.kind == "benchmark":
        what: list[Any] = [f"{asked.runs_each * len(asked.trainings)} models"]
    elif work.experiment is not None:
        what = [(work.experiment.label or "microgpt", "microgpt"), f", {asked.runs_each} seeds,"]
    else:
        many = work.config.family == "attention" and work.config.n_head > 1
        look = "multihead" if many else work.config.family
        what = [(new_run_told.model(work.config), look)]
    return [*what, " on ", (corpus, "token")]


def _card(asked: Asked, found: Estimate) -> None:
    plans = found.plans
    took, facts = seconds(asked, plans), plans[0].facts
    layout.answer(*_headline(asked), ": about ", (lasting(max(1.0, took)), "number"))
    rows = [
        ["parameters", " / ".join(f"{plan.facts.parameters:,}" for plan in plans)],
        ["predictions to train on", _to_be_seen(asked, plans[0])],
        [GUESSING, f"{facts.uniform:.2f} nats: ln {facts.vocab_size:,}"],
    ]
    if facts.floor is not None:
        rows.append([FLOORS.get(facts.floor_of, FLOOR), f"{facts.floor:.2f} nats"])
    layout.table(("", ""), rows, words=(0, 1), label="Estimate")
    steps = " + ".join(f"{plan.measured_steps:,}" for plan in plans)
    layout.help_line(
        f"Measured {ago(time.time() - found.at)} on this machine: {steps} steps. It takes a few "
        "seconds more to start."
    )


def _to_be_seen(asked: Asked, plan: Plan) -> str:
    """Return how many predictions a model is trained on, in words."""
    config = asked.work.config
    splits = plan.audit.get("splits")
    if splits is not None:
        seen, there = config.steps * config.batch, splits["train"]["targets"]
        return f"{seen:,}: {seen / max(1, there):.1f} times through the text"
    items = plan.audit["items"]
    mean = min(config.context_length, plan.audit["tokens"] / items + 1)
    return f"about {config.steps * mean:,.0f}: {config.steps / items:.1f} times through the list"


def _require_time(asked: Asked, plans: Sequence[Plan]) -> None:
    took, minutes = seconds(asked, plans), settings.current().limits.minutes
    if took > 60 * minutes:
        raise ConfigError(
            f"it takes about {lasting(took)}, and a job has {minutes:,} minutes: take fewer "
            "steps or a smaller model"
        )


def _counts(plan: Plan) -> str:
    audit = plan.audit
    told = [f"{audit.get('documents', audit.get('items', 0)):,} documents"]
    told += [f"{audit[key]:,} {word}" for key, word in _REMARKS.items() if audit.get(key)]
    told.append(f"a vocabulary of {plan.facts.vocab_size:,}")
    if plan.unknown_share is not None:
        share = 100 * plan.unknown_share
        told.append(f"{share:.{2 if share and math.log10(share) < 1 else 1}f}% read as {UNK}")
    return f"{'; '.join(told)}. The first ones, as the model reads them; unknown ones are marked."


_REMARKS = {
    "duplicates_removed": "doubles left out",
    "blank_removed": "empty ones left out",
    "repeats": "repeats",
    "longer_than_context": "longer than the context, so cut",
}


def _document(tokens: Sequence[str]) -> str:
    looks = ["drawn" if token == UNK else "token" for token in tokens]
    drawn = [
        f'<span class="wl-{look}">{html.escape(visible(token))}</span>'
        for look, token in zip(looks, tokens, strict=True)
    ]
    return f'<p class="wl-order">{" ".join(drawn)}</p>'
