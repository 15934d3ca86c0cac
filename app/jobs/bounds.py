"""How much jobs may take: of the queue, of steps, sizes, time and disk."""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.jobs.record import WAITING, Job, JobError
from app.jobs.work import Work
from wordlm_core import planning, trainers
from wordlm_core.errors import ConfigError
from wordlm_core.training import TrainConfig, model_config

_FREE_BYTES = 100 * 2**20
_LEAST_VOCAB = 30
_STEP_NUMBERS = 100_000_000  # 400 MB of activations


@dataclass(frozen=True)
class Limits:
    """What jobs may take.

    Attributes:
        waiting: Jobs in the queue.
        waiting_each: Jobs of one person in the queue.
        steps: Of one job in all.
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
    if work.steps > limits.steps:
        raise ConfigError(f"{work.steps:,} steps are too many: a job has at most {limits.steps:,}")
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
    """Return whether the runs are within their part of the disk, and the disk is not full."""
    free = shutil.disk_usage(_existing(root)).free
    return free >= _FREE_BYTES and _bytes_of(root) <= limits.megabytes * 2**20


def _require_step(config: TrainConfig, vocab_size: int) -> None:
    context, heads = config.context_length, config.n_head * config.n_layer
    widest = max(context * max(context * heads, config.d_model), config.hidden or 0, vocab_size)
    if config.batch * widest > _STEP_NUMBERS:
        raise ConfigError(
            f"a step of {config.batch:,} windows of {context:,} tokens takes too much memory: "
            "make the batch or the context smaller"
        )


def _bytes_of(root: Path) -> int:
    total = 0
    for folder, _, files in os.walk(root):
        for file in files:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(folder, file)).st_size
    return total


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)
