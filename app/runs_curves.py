"""The curves of runs and of stored checkpoints, thinned to be drawn, and as files. No Streamlit."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from jaxtyping import Float

from app import runs_told
from app.exports import csv_text, json_text
from app.figures import Level, RunCurve
from app.jobs.progress import Curve
from app.jobs.record import Job
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.lens.training_history import moving_average

POINTS = 400
_CSV_HEADS = ("run", "step", "train_loss", "moving_average", "validation_loss")


def of_run(job: Job, curve: Curve, look: int) -> RunCurve:
    """Return a run's curve; each training of a run of several begins a line of its own."""
    one = one_training(job)
    parts = range(0, max(1, len(curve.losses)), one)
    each = max(2, POINTS // len(parts))
    drawn = [_drawn(curve.losses, start, start + one, each) for start in parts]
    steps, losses, average = (_broken([part[i] for part in drawn]) for i in range(3))
    points = [np.array(found, dtype=float).reshape(-1, 2) for found in _by_training(curve, one)]
    return RunCurve(
        name=job.label,
        steps=steps,
        losses=losses,
        average=average,
        validation_steps=_broken([found[:, 0] for found in points]),
        validation=_broken([found[:, 1] for found in points]),
        look=look,
    )


def of_stored(loaded: Checkpoint) -> RunCurve:
    """Return the curve that a checkpoint's file tells: the ghost of an earlier training."""
    losses, trace = loaded.losses(), loaded.trace()
    steps, kept, average = _drawn(losses, 0, len(losses), POINTS)
    return RunCurve(
        name=loaded.name,
        steps=steps,
        losses=kept,
        average=average,
        validation_steps=np.array([entry["step"] for entry in trace], dtype=float),
        validation=np.array([entry["validation_loss"] for entry in trace], dtype=float),
        look=None,
    )


def has_curve(loaded: Checkpoint) -> bool:
    """Return whether a checkpoint's file tells how its training went."""
    return bool(len(loaded.losses()) or loaded.trace())


def levels(job: Job) -> list[Level]:
    """Return the lines to compare a run's loss with."""
    return [Level(*line) for line in runs_told.lines(job)]


def one_training(job: Job) -> int:
    """Return the steps of one training: a benchmark and an experiment are several in a row."""
    if job.work.kind == "experiment" and job.work.experiment is not None:
        return job.work.experiment.steps
    return job.work.config.steps


def curves_csv(shown: Sequence[tuple[Job, Curve]]) -> str:
    """Return one row a run and step at which a loss is known, none left out."""
    rows: list[tuple[object, ...]] = []
    for job, curve in shown:
        one, validation = one_training(job), dict(curve.validation)
        known = np.flatnonzero(np.isfinite(curve.losses))
        average = dict[int, float]()
        for start in range(0, len(curve.losses), one):
            places = known[(known >= start) & (known < start + one)]
            means = moving_average(curve.losses[places])
            average |= dict(zip(places.tolist(), means.tolist(), strict=True))
        for step in sorted({*(place + 1 for place in average), *validation}):
            at = step - 1
            trained = float(curve.losses[at]) if at in average else ""
            rows.append((job.label, step, trained, average.get(at, ""), validation.get(step, "")))
    return csv_text(_CSV_HEADS, rows, typed=("run",))


def run_json(job: Job, curve: Curve) -> str:
    """Return a run's record and its curve; whose it is stays out."""
    record: dict[str, Any] = {
        "id": job.id,
        "name": job.name,
        "state": job.state,
        "reason": job.reason,
        "attempt": job.attempt,
        "interruptions": job.interruptions,
        "created": job.created,
        "started": job.started,
        "ended": job.ended,
        "work": job.work.to_json(),
        "facts": job.facts,
        "history": [asdict(event) for event in job.history],
    }
    told = {
        "step": curve.step,
        "steps": job.steps,
        "tokens": curve.tokens,
        "seconds": curve.seconds,
        "losses": [loss if math.isfinite(loss) else None for loss in curve.losses.tolist()],
        "validation": [
            {"step": step, "loss": loss if math.isfinite(loss) else None}
            for step, loss in curve.validation
        ],
    }
    return json_text({"run": record, "curve": told})


# -- parts


def _drawn(
    losses: Float[np.ndarray, " steps"], start: int, end: int, points: int
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return steps, losses and moving average of one training at the points that are drawn."""
    piece = losses[start:end]
    known = np.flatnonzero(np.isfinite(piece))
    kept = piece[known]
    average = moving_average(kept)
    at = np.unique(
        np.linspace(0, max(0, len(kept) - 1), min(points, len(kept))).round().astype(int)
    )
    return (known[at] + start + 1).astype(float), kept[at], average[at]


def _by_training(curve: Curve, one: int) -> list[list[tuple[int, float]]]:
    """Return the validation points of each training of a run."""
    found: dict[int, list[tuple[int, float]]] = {}
    for step, loss in curve.validation:
        if math.isfinite(loss):
            found.setdefault(max(0, step - 1) // one, []).append((step, loss))
    return list(found.values())


def _broken(parts: Sequence[np.ndarray]) -> Float[np.ndarray, " all"]:
    """Return the parts in a row with a NaN between two: a line ends there."""
    found: list[np.ndarray] = []
    for part in parts:
        if len(part):
            found += [np.array([np.nan]), part] if found else [part]
    return np.concatenate(found) if found else np.zeros(0)
