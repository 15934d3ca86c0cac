"""A run's progress as a file: one JSON line a report, appended by whoever trains.

A line holds the losses of the steps since the last one. After a kill the run goes on from its
last checkpoint, so later lines may tell the same steps again: what comes later counts. A reader
takes whole lines only, from where it stopped the last time.
"""

import json
import math
import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from wordlm_core.training import Progress

_EVERY_SECONDS = 0.3
_SPEED_OVER = 20  # reports
_LONGEST_LINE = 2**20


@dataclass(frozen=True)
class Curve:
    """How far a run is.

    Attributes:
        steps: In all.
        step: Done.
        losses: Training loss of each step, NaN where it is not known; nats a token.
        validation: Step and validation loss.
        tokens: Seen in training.
        seconds: Of training, starts and waiting apart.
        at: Time of the last report, in seconds since 1970; 0 where there is none.
        tokens_per_second: Lately.
        remaining: Seconds until the last step at the speed of late, or None.
        note: What is being trained, of several.
    """

    steps: int
    step: int = 0
    losses: Float[np.ndarray, " step"] = field(default_factory=lambda: np.empty(0))
    validation: tuple[tuple[int, float], ...] = ()
    tokens: int = 0
    seconds: float = 0.0
    at: float = 0.0
    tokens_per_second: float | None = None
    remaining: float | None = None
    note: str = ""


@dataclass(frozen=True)
class _Said:
    """A line of the file."""

    step: int
    losses: Float[np.ndarray, " new"]
    validation: float | None
    tokens: int
    seconds: float
    at: float
    note: str

    @staticmethod
    def of(line: bytes) -> "_Said":
        record = json.loads(line)
        losses = [math.nan if loss is None else float(loss) for loss in record["losses"]]
        validation = record.get("validation")
        return _Said(
            int(record["step"]),
            np.array(losses),
            None if validation is None else float(validation),
            int(record["tokens"]),
            float(record["seconds"]),
            float(record["at"]),
            str(record.get("note", "")),
        )


class Writer:
    """Appends reports to a run's file; of a torn last line, the rest of a kill, nothing stays."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        os.ftruncate(self._file, _whole(self._file))
        self._losses: list[float | None] = []
        self._said_at = 0.0

    def report(self, progress: Progress, note: str = "") -> None:
        """Take a step's numbers; write where it is time, or where there is more to say."""
        loss = progress.train_loss
        self._losses.append(round(loss, 5) if math.isfinite(loss) else None)
        last = progress.step == progress.steps
        now = time.monotonic()
        if not last and progress.validation_loss is None and now - self._said_at < _EVERY_SECONDS:
            return
        self._said_at = now
        self._append(
            {
                "step": progress.step,
                "losses": self._losses,
                "validation": progress.validation_loss,
                "tokens": progress.tokens_seen,
                "seconds": round(progress.seconds, 3),
                "at": round(time.time(), 3),
                "note": note,
            }
        )
        self._losses = []

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _append(self, record: dict[str, Any]) -> None:
        line = json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        start = os.lseek(self._file, 0, os.SEEK_END)
        try:
            written = 0
            while written < len(line):  # a nearly full disk takes a part, and refuses the next
                written += os.write(self._file, line[written:])
        except OSError:
            os.ftruncate(self._file, start)
            raise


class Reader:
    """Reads one run's file, each line once; several threads may ask."""

    def __init__(self, path: Path, steps: int) -> None:
        self._path, self._steps = path, steps
        self._lock = threading.Lock()
        self._forget()

    def curve(self) -> Curve:
        """Return what the file says by now."""
        with self._lock:
            # Not there yet, or not to be read: that run has no curve, and no other suffers.
            with suppress(OSError), self._path.open("rb") as file:
                self._read_on(file)
            return self._curve()

    def _forget(self) -> None:
        self._offset, self._file_id = 0, -1
        self._losses = np.full(self._steps, math.nan)
        self._step = 0
        self._validation: dict[int, float] = {}
        self._recent: list[_Said] = []
        self._last = _Said(0, np.empty(0), None, 0, 0.0, 0.0, "")

    def _read_on(self, file: Any) -> None:
        found = os.fstat(file.fileno())
        if found.st_ino != self._file_id or found.st_size < self._offset:
            self._forget()
            self._file_id = found.st_ino
        file.seek(self._offset)
        new = file.read()
        whole = new.rfind(b"\n") + 1
        self._offset += whole
        for line in new[:whole].splitlines():
            self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            said = _Said.of(line)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return  # somebody wrote into the file; what the others say still holds
        before = said.step - len(said.losses)
        if not 0 <= before <= said.step <= self._steps:
            return
        if before < self._step:  # it went back to a checkpoint
            self._validation = {s: v for s, v in self._validation.items() if s <= said.step}
            self._recent = []
        self._losses[before : said.step] = said.losses
        self._step, self._last = said.step, said
        if said.validation is not None:
            self._validation[said.step] = said.validation
        self._recent = [*self._recent[-_SPEED_OVER:], said]

    def _curve(self) -> Curve:
        speed = remaining = None
        if len(self._recent) > 1:
            first, last = self._recent[0], self._recent[-1]
            seconds, done = last.at - first.at, last.step - first.step
            if seconds > 0 and done > 0:
                speed = max(0, last.tokens - first.tokens) / seconds
                remaining = (self._steps - last.step) * seconds / done
        losses = self._losses[: self._step].copy()
        losses.setflags(write=False)
        return Curve(
            steps=self._steps,
            step=self._step,
            losses=losses,
            validation=tuple(sorted(self._validation.items())),
            tokens=self._last.tokens,
            seconds=self._last.seconds,
            at=self._last.at,
            tokens_per_second=speed,
            remaining=remaining,
            note=self._last.note,
        )


def _whole(file: int) -> int:
    """Return where the last whole line of an open file ends."""
    size = os.fstat(file).st_size
    tail = os.pread(file, min(size, _LONGEST_LINE), max(0, size - _LONGEST_LINE))
    return size - len(tail) + tail.rfind(b"\n") + 1
