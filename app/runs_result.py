"""What a benchmark or an experiment came to, as it stands in the run's folder."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from app import experiment_runs, layout, summary
from app.jobs.record import Job
from app.jobs.store import RESULT
from app.state import store
from wordlm_core.errors import CheckpointError
from wordlm_core.experiment import SAMPLES, Result

_BENCHMARK = "benchmark.json"


def result(job: Job) -> None:
    """Show the result of a run that has one and is finished."""
    if job.state != "finished" or job.work.kind == "train":
        return
    try:
        if job.work.kind == "benchmark":
            _benchmark(_benchmark_of(*_stamped(job, _BENCHMARK)))
        else:
            _experiment(job, _experiment_of(*_stamped(job, RESULT)))
    except CheckpointError as error:
        layout.refuse(error)


# -- parts


def _benchmark(measured: Any) -> None:
    layout.section("What was measured", summary.claim_scope(measured))
    layout.answer(*summary.conclusion(measured))
    layout.table(summary.RESULT_HEADS, summary.results(measured), label="Results")


def _experiment(job: Job, found: Result) -> None:
    layout.section("What came out")
    finals = ["diverged" if loss is None else f"{loss:.3f}" for loss in found.seed_losses]
    rows = [
        ["loss, last 200 steps, mean of the seeds", experiment_runs.loss_of(found)],
        ["with each seed", ", ".join(finals)],
        ["parameters", f"{found.parameters:,}"],
        ["tokens in the vocabulary", f"{found.vocab_size:,}"],
        ["seconds", f"{found.seconds:.1f}"],
    ]
    tried = job.work.experiment
    for draw, drawn in zip(tried.draws if tried else (), found.samples, strict=False):
        new = sum(not each.seen for each in drawn)
        texts = " ".join(each.text or "(empty)" for each in drawn[:8])
        rows.append([f"{experiment_runs.draw_name(draw)}: {new} of {SAMPLES} are new", texts])
    layout.table(("result", "value"), rows, words=(0, 1), label="Result")
    if found.stopped:
        layout.note(f"It stopped: {found.stopped}.")


def _stamped(job: Job, name: str) -> tuple[Path, int]:
    path = store().folder(job.id) / name
    try:
        return path, path.stat().st_mtime_ns
    except OSError as error:
        raise CheckpointError("the run has finished, but its result is not there") from error


@lru_cache(maxsize=8)
def _benchmark_of(path: Path, _changed: int) -> Any:
    measured = _read(path)
    summary.require_complete(measured)
    return measured


@lru_cache(maxsize=8)
def _experiment_of(path: Path, _changed: int) -> Result:
    try:
        return Result.from_json(_read(path))
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError("the run's result is not as it should be") from error


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError("the run's result is not readable") from error
