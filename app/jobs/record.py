"""A run's record: what is to be done, whose it is, and every state it has been in."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from app.jobs.work import Work
from wordlm_core.errors import ConfigError, WordLMError

FINAL = ("finished", "failed", "cancelled")
WRITING = ("running", "stopping")
WAITING = ("queued", "interrupted")
# What may follow a state. Nothing leaves a final one but an explicit resume.
NEXT = {
    "queued": ("running", "cancelled", "failed"),
    "running": ("stopping", "finished", "failed", "interrupted"),
    "stopping": ("cancelled",),
    "interrupted": ("queued", "cancelled"),
    "cancelled": ("queued",),
    "failed": ("queued",),
    "finished": (),
}
MAX_NAME = 60


class JobError(WordLMError):
    """A job cannot be taken, found or changed."""


@dataclass(frozen=True)
class Event:
    """A change of state: what it became, when (seconds since 1970) and why."""

    state: str
    at: float
    reason: str = ""


@dataclass(frozen=True)
class Job:
    """A run's record.

    Attributes:
        id: Name of its folder, made by the store.
        name: What its owner calls it; only ever a label.
        work: What is to be done.
        owner: `owner_of` the person.
        private: Only the owner sees what it is and opens it.
        state: One of `NEXT`.
        reason: Why it is in that state, where that needs one.
        attempt: From 1; an explicit resume begins the next.
        interruptions: Of this attempt.
        created: Seconds since 1970.
        queued: When this attempt was asked for.
        started: When it last began to run.
        ended: When it came to its end.
        facts: What the training found out at its start (`planning.Facts`), or empty.
        history: Every change of state.
    """

    id: str
    name: str
    work: Work
    owner: str
    private: bool
    created: float
    queued: float
    state: str = "queued"
    reason: str = ""
    attempt: int = 1
    interruptions: int = 0
    started: float | None = None
    ended: float | None = None
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    history: tuple[Event, ...] = ()

    @property
    def label(self) -> str:
        """Return a name that no other run has."""
        return f"{self.name} ({self.id[-6:]})"

    @property
    def is_final(self) -> bool:
        """Return whether it has come to its end; only an explicit resume leads on."""
        return self.state in FINAL

    @property
    def is_open(self) -> bool:
        """Return whether it waits, runs or will run again by itself."""
        return not self.is_final

    @property
    def steps(self) -> int:
        """Return how many steps there are in all."""
        return self.work.steps

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "work": self.work.to_json(),
            "facts": self.facts,
            "history": [[each.state, each.at, each.reason] for each in self.history],
        }

    @classmethod
    def from_json(cls, data: Any) -> "Job":
        """Read a record.

        Raises:
            ConfigError: It is not one.
        """
        try:
            plain = {name: data[name] for name in _PLAIN}
            history = tuple(Event(str(s), float(at), str(why)) for s, at, why in data["history"])
            work, facts = Work.from_json(data["work"]), data["facts"]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ConfigError("this is not the record of a job") from error
        typed = all(type(plain[name]) in types for name, types in _PLAIN.items())
        if not (typed and history and _are_facts(facts)):
            raise ConfigError("this is not the record of a job")
        times = [*(plain[name] for name in _TIMES), *(each.at for each in history)]
        known = {plain["state"], *(each.state for each in history)} <= set(NEXT)
        if not (known and all(map(_is_time, times))):
            raise ConfigError("this is not the record of a job")
        return cls(**plain, work=work, facts=facts, history=history)

    def running_seconds(self, *, of_this_attempt: bool = False) -> float:
        """Return how long it has run, without the waiting; until now where it runs."""
        ends = [*(each.at for each in self.history[1:]), time.time()]
        since = self.queued if of_this_attempt else 0.0
        spells = zip(self.history, ends, strict=True)
        return sum(
            max(0.0, end - event.at)
            for event, end in spells
            if event.state in WRITING and event.at >= since
        )


_TIMES = ("created", "queued", "started", "ended")
_END_OF_TIME = 1e11  # seconds since 1970: beyond it is no date that can be shown
_MOST = 1e12
_NUMBERS = ("parameters", "vocab_size", "uniform", "floor")
_NUMBER, _MAYBE = (int, float), (int, float, type(None))
_PLAIN: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("id", "name", "owner", "state", "reason"), (str,)),
    **dict.fromkeys(("attempt", "interruptions"), (int,)),
    **dict.fromkeys(("created", "queued"), _NUMBER),
    **dict.fromkeys(("started", "ended"), _MAYBE),
    "private": (bool,),
}


def _is_time(value: int | float | None) -> bool:
    return value is None or 0 <= value <= _END_OF_TIME


def _are_facts(facts: Any) -> bool:
    """Return whether a value holds what `planning.Facts` does, as far as it holds it."""
    if not isinstance(facts, dict):
        return False
    numbers = {name: facts[name] for name in _NUMBERS if name in facts}
    if numbers.get("floor", 0) is None:  # nobody knows it
        del numbers["floor"]
    return all(type(each) in (int, float) and abs(each) < _MOST for each in numbers.values())


def owner_of(person: str) -> str:
    """Return what stands for a person in records: their code itself never reaches a file."""
    return hashlib.sha256(person.encode()).hexdigest()[:16]


def label_of(name: str, work: Work) -> str:
    """Return a run's name as a label, or one made from what it does."""
    kept = " ".join("".join(c if c.isprintable() else " " for c in name).split())[:MAX_NAME]
    if kept:
        return kept
    if work.kind == "train":
        return f"{work.config.family}, {work.config.steps:,} steps"
    return work.experiment.label or work.kind if work.experiment else work.kind


def last_served(jobs: Sequence[Job]) -> dict[str, float]:
    """Return when each person's job last began to run."""
    served: dict[str, float] = {}
    for job in jobs:
        if job.started is not None:
            served[job.owner] = max(job.started, served.get(job.owner, 0.0))
    return served
