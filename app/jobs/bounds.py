"""How much jobs may take: of the queue, of steps, sizes, time and disk."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.jobs.folders import bytes_of
from app.jobs.record import WAITING, Job, JobError
from app.jobs.work import Work
from wordlm_core import models, planning, trainers
from wordlm_core.benchmark import HEADS
from wordlm_core.errors import ConfigError
from wordlm_core.gpt_trainer import SNAPSHOTS
from wordlm_core.training import EVALUATIONS, MAX_HISTORY_BYTES, TrainConfig, model_config

PART_OF_ONE = 0.25  # of the disk that all jobs may have
_MEGABYTE = 2**20
_FREE_BYTES = 100 * _MEGABYTE
_LEAST_VOCAB = 30
_TRAININGS = 10  # of the longest kind, that one job may hold
_STEP_NUMBERS = 100_000_000  # 400 MB of activations


@dataclass(frozen=True)
class Limits:
    """What jobs may take.

    Attributes:
        waiting: Jobs in the queue.
        waiting_each: Jobs of one person in the queue.
        steps: Of one training.
        parameters: Of one model.
        minutes: Of one attempt.
        megabytes: Of all runs and uploads together.
        days: Until a run that ended is cleared away.
        corpus_megabytes: Of an own corpus.
    """

    waiting: int = 60
    waiting_each: int = 10
    steps: int = 20_000
    parameters: int = 5_000_000
    minutes: int = 60
    megabytes: int = 4_000
    days: int = 14
    corpus_megabytes: int = 20


def require_sizes(work: Work, limits: Limits) -> None:
    """Refuse what would take too long or too much, as far as the settings alone say so.

    Raises:
        ConfigError: Too many steps, too large a step, or sizes that do not go together.
    """
    steps = work.config.steps
    if work.steps > _TRAININGS * limits.steps:
        raise ConfigError(f"{work.steps:,} steps in all are too many: take fewer seeds or steps")
    if steps > limits.steps:
        raise ConfigError(f"{steps:,} steps are too many: a training has at most {limits.steps:,}")
    model_config(work.config, _LEAST_VOCAB)  # the heads divide the width
    _require_step(work.config, _LEAST_VOCAB)


def require_trainable(work: Work, own: Path, limits: Limits) -> dict[str, Any]:
    """Refuse a corpus that cannot be trained on; return the facts of the training.

    Raises:
        CorpusError: It is empty, or shorter than a window.
        ConfigError: The model would be too large.
    """
    data = trainers.prepared(work.config, work.source.load(own))
    found = planning.facts(work.config, data).to_json()
    require_facts(work, found, limits)
    return found


def require_facts(work: Work, facts: dict[str, Any], limits: Limits) -> None:
    """Refuse a model that is too large.

    Raises:
        ConfigError: It is.
    """
    _require_step(work.config, facts["vocab_size"])
    if facts["parameters"] > limits.parameters:
        raise ConfigError(
            f"the model has {facts['parameters']:,} parameters; the limit is "
            f"{limits.parameters:,}: make it narrower, or its vocabulary smaller"
        )


def require_place(owner: str, jobs: Sequence[Job], limits: Limits) -> None:
    """Refuse a job that the queue has no place for.

    Raises:
        JobError: The queue is full, or the person's part of it.
    """
    waiting = [job for job in jobs if job.state in WAITING]
    if len(waiting) >= limits.waiting:
        raise JobError(
            f"the queue is full: {len(waiting)} jobs are waiting; try again when some are done"
        )
    own = sum(job.owner == owner for job in waiting)
    if own >= limits.waiting_each:
        raise JobError(f"{own} jobs of yours are waiting already: cancel one, or wait")


def has_room(root: Path, limits: Limits) -> bool:
    """Return whether jobs and uploads are within their part of the disk, which is not full."""
    free = shutil.disk_usage(_existing(root)).free
    return free >= _FREE_BYTES and bytes_of(root) <= limits.megabytes * _MEGABYTE


def lacking(root: Path, owner: str, jobs: Sequence[Job], limits: Limits) -> str:
    """Return what stands against another job of a person, in a sentence, or an empty text.

    Jobs that are open count with what they will have written at their end.
    """
    if shutil.disk_usage(_existing(root)).free < _FREE_BYTES:
        return "the disk of the runs is nearly full: delete some first"
    known = {job.id for job in jobs}
    here = {entry.name: bytes_of(entry) for entry in root.iterdir()} if root.is_dir() else {}
    sizes = {
        job.id: max(here.get(job.id, 0), expected_bytes(job) if job.is_open else 0) for job in jobs
    }
    used = sum(size for name, size in here.items() if name not in known) + sum(sizes.values())
    if used > limits.megabytes * _MEGABYTE:
        return (
            f"there is no room on the disk: all runs together may take {limits.megabytes:,} MB; "
            "delete some first"
        )
    own = sum(sizes[job.id] for job in jobs if job.owner == owner)
    if own > limits.megabytes * _MEGABYTE * PART_OF_ONE:
        part = limits.megabytes * PART_OF_ONE
        return f"your runs take more than {part:,.0f} MB, a person's part: delete some first"
    return ""


def require_disk(root: Path, owner: str, jobs: Sequence[Job], limits: Limits) -> None:
    """Refuse a job that there is no room for.

    Raises:
        JobError: There is none.
    """
    said = lacking(root, owner, jobs, limits)
    if said:
        raise JobError(said)


def expected_bytes(job: Job) -> int:
    """Return about how many bytes a job's files have at its end."""
    numbers = int(job.facts.get("parameters", 0))
    items = models.family(job.work.config.family).READS == "items"
    history = min(MAX_HISTORY_BYTES, 2 * numbers * (SNAPSHOTS if items else EVALUATIONS + 1))
    # The state for resuming holds weights, two moments and the best; both files the history.
    return (6 * 4 * numbers + 2 * history) * max(1, len(job.work.seeds) * len(HEADS))


def _require_step(config: TrainConfig, vocab_size: int) -> None:
    context, heads = config.context_length, config.n_head * config.n_layer
    widest = max(context * max(context * heads, config.d_model), config.hidden or 0, vocab_size)
    if config.batch * widest > _STEP_NUMBERS:
        raise ConfigError(
            f"a step of {config.batch:,} windows of {context:,} tokens takes too much memory: "
            "make the batch or the context smaller"
        )


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)
