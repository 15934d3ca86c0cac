"""What the Runs page says of a run: its state, how far it is, its settings. No Streamlit."""

import datetime
import math
from dataclasses import asdict
from typing import Literal, NamedTuple

import numpy as np

from app.figures import model_name
from app.jobs.progress import Curve
from app.jobs.record import Job
from app.jobs.work import Work
from wordlm_core.lens.training_history import moving_average
from wordlm_core.planning import BY_HEART, GRAMMAR
from wordlm_core.training import TrainConfig

Colour = Literal["blue", "violet", "orange", "yellow", "green", "red", "gray"]

HEADS = (
    *("run", "whose", "what", "state", "step", "loss, nats a token"),
    *("sent", "took"),
)
PRIVATE = "private run"
# What a loss is compared with: one name for each line, wherever it is told or drawn.
GUESSING = "guessing evenly: ln V"
FLOORS = {GRAMMAR: "true floor of the grammar", BY_HEART: "list known by heart"}
FLOOR = "floor"  # of what has no name of its own
_SETTINGS = {
    "steps": "steps",
    "seed": "seed",
    "n_head": "heads",
    "n_layer": "layers",
    "d_model": "width",
    "hidden": "hidden width",
    "context_length": "context, tokens",
    "lr": "learning rate",
    "weight_decay": "weight decay",
    "batch": "windows a step",
    "positions": "position table",
    "tokens": "tokens are",
    "max_vocab": "most words",
    "min_freq": "a word stands at least",
}
_WORDS_ONLY = ("weight_decay", "batch", "max_vocab", "min_freq")
_BY_KIND = ("n_head", "hidden", "context_length", "seed")  # a benchmark's own in each of its runs
_ONLY_MICROGPT = ("n_layer", "tokens")


class _Again(NamedTuple):
    """What is said, by state, of a run that did not come to its end in one go."""

    queued: str
    interrupted: str
    cancelled: str


_GOES_ON = _Again(
    " It goes on where it was, near {step}.",
    " It goes on by itself from what was stored.",
    " Resume goes on from what was stored.",
)
_ANEW = _Again(
    " It begins anew: an experiment stores nothing on the way.",
    " It begins anew by itself: an experiment stores nothing on the way.",
    " Resume begins it anew: an experiment stores nothing on the way.",
)


class Look(NamedTuple):
    """How a state is shown: icon and colour of its badge, a sign in tables, what it means."""

    icon: str
    colour: Colour
    sign: str
    meaning: str


STATES = {
    "queued": Look(":material/hourglass_empty:", "blue", "…", "It waits for its turn."),
    "running": Look(":material/play_circle:", "violet", "▶", "It is training."),
    "stopping": Look(":material/stop_circle:", "orange", "■", "It was told to stop."),
    "interrupted": Look(
        ":material/pause_circle:", "yellow", "‖", "Its process ended: it goes on by itself."
    ),
    "finished": Look(":material/check_circle:", "green", "✓", "All of its steps are done."),
    "failed": Look(":material/error:", "red", "✗", "It ended before its last step."),
    "cancelled": Look(":material/cancel:", "gray", "⊘", "Somebody ended it."),
}


# -- one run


def what(work: Work) -> str:
    """Return what a run trains, and on what."""
    corpus = work.source.label or work.source.corpus
    if work.kind == "benchmark":
        return f"benchmark, {len(work.seeds)} seeds · {corpus}"
    if work.kind == "experiment" and work.experiment is not None:
        return f"experiment {work.experiment.label or 'microgpt'} · {corpus}"
    return f"{_model(work.config)} · {corpus}"


def whose(job: Job, owner: str) -> str:
    """Return `you`, or four signs that tell people apart."""
    return "you" if job.owner == owner else job.owner[:4]


def happening(job: Job, curve: Curve, place: int) -> str:
    """Return in a sentence what a run is at, or how it ended."""
    step = f"step {curve.step:,}"
    waits = f"place {place} in the queue" if place else "it is next"
    again = _ANEW if job.work.kind == "experiment" else _GOES_ON
    told = {
        "queued": f"It waits: {waits}.{again.queued.format(step=step) if curve.step else ''}",
        "running": f"It trains{f': {curve.note}' if curve.note else ''}.",
        "stopping": "It was told to stop and ends within seconds.",
        "interrupted": f"Its process ended at {step}.{again.interrupted}",
        "finished": f"It trained all of its {job.steps:,} steps{_in_time(job)}.",
        "failed": f"{_sentence(job.reason or 'no reason was noted')}",
        "cancelled": f"It was ended at {step}.{again.cancelled}",
    }
    return told[job.state]


def lost(job: Job) -> str:
    """Return what goes with a run that is deleted."""
    if job.work.kind == "experiment":
        return "Curve, result and log go for good."
    return "Curve, checkpoint and log go for good. Models that lenses opened, too."


def progress_line(job: Job, curve: Curve) -> str:
    """Return how far a run is, how long it still takes and how fast it is."""
    told = [f"step {curve.step:,} of {job.steps:,}"]
    if job.state == "running" and curve.remaining is not None:
        told.append(f"about {lasting(curve.remaining)} left")
    speed = curve.tokens_per_second
    if job.state != "running":
        speed = curve.tokens / curve.seconds if curve.seconds > 0 else None
    if speed:
        told.append(f"{speed:,.0f} tokens a second")
    return " · ".join(told)


def share_done(job: Job, curve: Curve) -> float:
    """Return how much of a run is done, 0 to 1."""
    return min(1.0, max(0.0, curve.step / job.steps)) if job.steps else 0.0


def numbers(job: Job, curve: Curve) -> list[list[str]]:
    """Return the losses that are known of a run, one row each."""
    rows: list[list[str]] = []
    last, best = last_loss(curve), best_validation(curve)
    if last is not None:
        rows.append(["train loss, mean of the last 50", f"{last:.3f}"])
    if curve.validation:
        step, loss = curve.validation[-1]
        rows.append([f"validation loss at step {step:,}", f"{loss:.3f}"])
    if best is not None and best[0] != curve.validation[-1][0]:
        rows.append([f"lowest validation loss, step {best[0]:,}", f"{best[1]:.3f}"])
    for name, value, _ in lines(job):
        rows.append([name, f"{value:.3f}"])
    return rows


def lines(job: Job) -> list[tuple[str, float, str]]:
    """Return what a run's loss is compared with: name, nats, dash of the line."""
    found: list[tuple[str, float, str]] = []
    uniform, floor = job.facts.get("uniform"), job.facts.get("floor")
    if isinstance(uniform, int | float) and math.isfinite(uniform):
        found.append((GUESSING, float(uniform), "dash"))
    if isinstance(floor, int | float) and math.isfinite(floor):
        name = FLOORS.get(str(job.facts.get("floor_of")), FLOOR)
        found.append((name, float(floor), "dot"))
    return found


def settings(job: Job) -> list[list[str]]:
    """Return a run's settings, and what was counted in its corpus."""
    source, work = job.work.source, job.work
    rows = [["trains", what(work)]]
    rows += [["licence of the text", source.licence]] if source.is_own else []
    rows += [["profile", source.profile]] if source.profile else []
    rows += [["documents, at most", f"{source.documents:,}"]] if source.documents else []
    seeds = work.seeds if work.experiment is None else work.experiment.seeds
    rows += [["seeds", ", ".join(map(str, seeds))]] if seeds else []
    rows += [
        [title, _said(value)]
        for name, value in asdict(work.config).items()
        if (title := _SETTINGS.get(name)) and value is not None and _counts(name, work)
    ]
    counted = (("parameters", "parameters"), ("vocab_size", "tokens in the vocabulary"))
    rows += [
        [title, f"{value:,}"]
        for name, title in counted
        if isinstance(value := job.facts.get(name), int)
    ]
    rows += [["attempt", str(job.attempt)]] if job.attempt > 1 else []
    return rows + ([["interruptions", str(job.interruptions)]] if job.interruptions else [])


def history(job: Job, behind: int) -> list[list[str]]:
    """Return a run's states with the time at which each began.

    Args:
        job: The run.
        behind: Minutes that the person's clock is behind UTC.
    """
    zone = datetime.timezone(datetime.timedelta(minutes=-behind))
    return [
        [
            f"{STATES[event.state].sign} {event.state}",
            datetime.datetime.fromtimestamp(event.at, zone).strftime("%Y-%m-%d %H:%M:%S"),
            event.reason,
        ]
        for event in job.history
    ]


def row(job: Job, curve: Curve, place: int, *, now: float, owner: str) -> list[str]:
    """Return a run's row of the table."""
    whole = (
        _state(job, place),
        f"{curve.step:,} / {job.steps:,}",
        _loss(curve),
        ago(now - job.created),
        _length(job),
    )
    return [job.name, whose(job, owner), what(job.work), *map(_unbroken, whole)]


def private_row(job: Job, place: int) -> list[str]:
    """Return the row of a run that others may not see."""
    return [PRIVATE, "", "", _unbroken(_state(job, place)), *([""] * (len(HEADS) - 4))]


# -- numbers in words


def best_validation(curve: Curve) -> tuple[int, float] | None:
    """Return step and loss of the lowest validation loss."""
    known = [point for point in curve.validation if math.isfinite(point[1])]
    return min(known, key=lambda point: point[1]) if known else None


def last_loss(curve: Curve) -> float | None:
    """Return the moving average of the train losses at their end."""
    known = curve.losses[np.isfinite(curve.losses)]
    return float(moving_average(known[-50:])[-1]) if len(known) else None


def lasting(seconds: float) -> str:
    """Return a length of time with the two units that count."""
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    if not minutes:
        return f"{whole} s"
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} days"


def ago(seconds: float) -> str:
    """Return how long ago something was, in one unit."""
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= (2 * size if unit == "days" else size):
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


# -- parts


def _model(config: TrainConfig) -> str:
    if config.family == "microgpt":
        layers = f", {config.n_layer} layers" if config.n_layer > 1 else ""
        return f"microgpt{layers}"
    if config.family == "attention" and config.n_head > 1:
        return f"Attention, {config.n_head} heads"
    return model_name(config.family)


def _state(job: Job, place: int) -> str:
    waiting = f", place {place}" if job.state == "queued" and place else ""
    return f"{STATES[job.state].sign} {job.state}{waiting}"


def _unbroken(text: str) -> str:
    """Return a cell that stays on one line."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _loss(curve: Curve) -> str:
    best, last = best_validation(curve), last_loss(curve)
    if best is not None:
        return f"{best[1]:.3f} validation"
    return "" if last is None else f"{last:.3f} train"


def _length(job: Job) -> str:
    if job.started is None:
        return ""
    return lasting(job.running_seconds())


def _in_time(job: Job) -> str:
    return "" if job.started is None else f" in {lasting(job.running_seconds())}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _counts(name: str, work: Work) -> bool:
    """Return whether a setting says something about this kind of run."""
    if work.kind == "benchmark" and name in _BY_KIND:
        return False
    if work.kind == "experiment" and name == "seed":
        return False
    gpt = work.config.family == "microgpt"
    return name not in (_WORDS_ONLY if gpt else _ONLY_MICROGPT)


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)
