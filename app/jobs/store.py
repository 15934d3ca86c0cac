"""The run folders: the truth about every job. No engine, no streamlit.

A run is a folder `<root>/<id>/` that holds its record `job.json` (written aside and replaced),
`progress.jsonl` (one line a report), `checkpoint.npz` (the latest, also while it trains),
`state.resume.npz` and `log.txt`; `corpus.jsonl` where a person brought the text. Whatever
dies, unfinished jobs are found here and go on from their last checkpoint.

Two locks of the operating system guard it: `record.lock` for a moment around every change, and
`writer.lock`, which whoever trains holds until its end. The system drops it with the process,
so a record that says "running" while nobody holds the lock is of a job that died: whoever reads
it first says so. No heartbeats, no clocks to compare.
"""

import json
import logging
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from app.jobs import bounds
from app.jobs.bounds import Limits
from app.jobs.progress import Curve, Reader
from app.jobs.record import (
    FINAL,
    NEXT,
    WAITING,
    WRITING,
    Event,
    Job,
    JobError,
    label_of,
    last_served,
    owner_of,
)
from app.jobs.work import Work
from wordlm_core.checkpoint import RESUME_SUFFIX
from wordlm_core.errors import CorpusError, WordLMError
from wordlm_core.files import printable, replacing

MAX_INTERRUPTIONS = 5
CHECKPOINT, STATE, CORPUS, LOG, PROGRESS, RESULT = (
    "checkpoint.npz",
    "state.resume.npz",
    "corpus.jsonl",
    "log.txt",
    "progress.jsonl",
    "result.json",
)
_RECORD, _MARK, _RESERVE = "job.json", "cancel", "reserve"
_RESERVED_BYTES = 65_536
_CACHED_SECONDS, _LOCK_SECONDS, _DOUBLE_CLICK_SECONDS = 0.5, 20.0, 4.0
_LOG_BYTES = 4_000
_MAX_READERS, _MAX_HISTORY = 200, 200
_WRITER = "writer.lock"
_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
_log = logging.getLogger("wordlm.jobs")


class Store:
    """All runs of a folder; every process that shares the folder has one of its own."""

    def __init__(self, root: Path, limits: Limits | None = None) -> None:
        self.root, self.limits = root, limits or Limits()
        self._lock = threading.Lock()
        self._records: dict[str, tuple[tuple[int, int], Job]] = {}
        self._listed: tuple[float, tuple[Job, ...]] = (-1.0, ())
        self._readers: dict[str, Reader] = {}

    # -- what there is

    def jobs(self) -> tuple[Job, ...]:
        """Return every run, the newest first."""
        with self._lock:
            if time.monotonic() - self._listed[0] > _CACHED_SECONDS:
                found = [self._mended(job) for job in self._read_all()]
                found.sort(key=lambda job: (job.created, job.id), reverse=True)
                self._listed = (time.monotonic(), tuple(found))
            return self._listed[1]

    def visible(self, person: str, *, instructor: bool = False) -> tuple[Job, ...]:
        """Return the runs that a person may open: their own and those that are not private."""
        me = owner_of(person)
        return tuple(job for job in self.jobs() if instructor or job.owner == me or not job.private)

    def job(self, run: str) -> Job:
        """Return one run as it is now.

        Raises:
            JobError: There is none of that name.
        """
        return self._mended(self._require(run))

    def folder(self, run: str) -> Path:
        """Return a run's folder.

        Raises:
            JobError: That is no name of a run.
        """
        if not _is_id(run):
            raise JobError(f"there is no run {printable(run)[:40]!r}")
        return self.root / run

    def progress(self, run: str) -> Curve:
        """Return how far a run is; what was read before is not read again."""
        job = self.job(run)
        with self._lock:
            reader = self._readers.get(run)
            if reader is None:
                while len(self._readers) >= _MAX_READERS:
                    self._readers.pop(next(iter(self._readers)))
                reader = self._readers[run] = Reader(self.folder(run) / PROGRESS, job.steps)
        return reader.curve()

    def log(self, run: str) -> str:
        """Return the last lines that a run's process wrote."""
        with suppress(FileNotFoundError), (self.folder(run) / LOG).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LOG_BYTES))
            return file.read().decode(errors="replace")
        return ""

    def checkpoints(self, job: Job) -> tuple[tuple[str, Path], ...]:
        """Return label and file of every checkpoint that a run has written by now."""
        folder = self.folder(job.id)
        if job.work.kind != "benchmark":
            path = folder / CHECKPOINT
            return ((job.label, path),) if path.exists() else ()
        files = sorted(folder.glob("*_seed*.npz"))
        whole = [path for path in files if not path.name.endswith(RESUME_SUFFIX)]
        return tuple((f"{job.label} {path.stem}", path) for path in whole)

    def place(self, run: str) -> int:
        """Return a run's place in the queue, from 1; 0 where it does not wait."""
        return next((i for i, job in enumerate(self.queue(), 1) if job.id == run), 0)

    def queue(self) -> list[Job]:
        """Return who waits, in the order of their turns.

        Everybody's first waiting job comes before anybody's second; a person whose job runs has
        had that turn. Of one turn, who was served longest ago comes first.
        """
        jobs = sorted(self.jobs(), key=lambda job: (job.queued, job.id))
        served = last_served(jobs)
        rounds = {job.owner: 1 for job in jobs if job.state in WRITING}
        order: list[tuple[int, float, float, Job]] = []
        for job in (job for job in jobs if job.state in WAITING):
            turn = rounds.get(job.owner, 0)
            rounds[job.owner] = turn + 1
            order.append((turn, served.get(job.owner, 0.0), job.queued, job))
        return [job for *_, job in sorted(order, key=lambda entry: entry[:3])]

    # -- what people ask for

    def submit(
        self,
        work: Work,
        person: str,
        *,
        name: str = "",
        private: bool = False,
        documents: Sequence[str] | None = None,
        facts: dict[str, Any] | None = None,
    ) -> Job:
        """Take a job into the queue; the same asked for twice in a moment is one job.

        Args:
            work: What is to be done.
            person: Whose it is.
            name: A label.
            private: Whether others only see that it waits or runs.
            documents: The texts, where the corpus is a person's own.
            facts: Of these settings and this corpus, where somebody has just found them out.

        Raises:
            WordLMError: It cannot be trained, or there is no room; the sentence says which.
        """
        bounds.require_sizes(work, self.limits)
        now = time.time()
        job = Job(
            id=f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{secrets.token_hex(3)}",
            name=label_of(name, work),
            work=work,
            owner=owner_of(person),
            private=private,
            created=now,
            queued=now,
            history=(Event("queued", now),),
        )
        with self._guarding_all():
            same = self._just_asked(job)
            if same is not None:
                return same
            self._require_room(job.owner)
            job = self._create(job, documents, facts)
        self._forget_list()
        return job

    def cancel(self, run: str, person: str, *, instructor: bool = False) -> Job:
        """End a job, or take it out of the queue; one that is cancelled already stays so.

        Raises:
            JobError: It is somebody else's, or has come to its end.
        """
        with self._guarding(run):
            job = self._own(run, person, "cancel", instructor=instructor)
            if job.state in ("finished", "failed"):
                raise JobError(f"this run {_PAST[job.state]}: there is nothing to cancel")
            if job.state == "running":
                (self.folder(run) / _MARK).touch()
                return self._change(job, "stopping")
            if job.state in WAITING:
                return self._change(job, "cancelled")
            return job

    def resume(self, run: str, person: str, *, instructor: bool = False) -> Job:
        """Queue a cancelled or failed job again, as a new attempt from its last checkpoint.

        Raises:
            JobError: It is somebody else's, not at such an end, or the queue is full.
        """
        with self._guarding_all(), self._guarding(run):
            job = self._own(run, person, "resume", instructor=instructor)
            if job.state not in ("cancelled", "failed"):
                raise JobError(
                    f"this run {_PAST[job.state]}: only a cancelled or failed one resumes"
                )
            self._require_room(job.owner)
            (self.folder(run) / _MARK).unlink(missing_ok=True)
            again = replace(job, attempt=job.attempt + 1, interruptions=0, queued=time.time())
            return self._change(again, "queued")

    def delete(self, run: str, person: str, *, instructor: bool = False) -> None:
        """Remove a run that has come to its end, with all its files.

        Raises:
            JobError: It is somebody else's, or still open.
        """
        with self._guarding(run):
            job = self._own(run, person, "delete", instructor=instructor)
            if job.is_open:
                raise JobError("this run is not over: cancel it first")
            self._remove(run)
        self._forget_list()

    def share(self, run: str, person: str, *, private: bool, instructor: bool = False) -> Job:
        """Let others open a run, or no longer.

        Raises:
            JobError: It is somebody else's.
        """
        with self._guarding(run):
            job = self._own(run, person, "share", instructor=instructor)
            return self._write(replace(job, private=private))

    def clear(self) -> None:
        """Remove what the rule no longer keeps: runs that ended too many days ago."""
        before = time.time() - self.limits.days * 86_400
        for job in self.jobs():
            if job.is_final and (job.ended or job.created) < before:
                with suppress(JobError), self._guarding(job.id):
                    if self.job(job.id).is_final:
                        self._remove(job.id)
        self._forget_list()

    # -- what the engine and the trainer ask for

    def requeue(self, run: str) -> None:
        """Put an interrupted job back into the queue."""
        self._step(run, "queued", only="interrupted")

    def refuse(self, run: str, reason: str) -> None:
        """End a queued job that cannot even be started."""
        self._step(run, "failed", reason, only="queued")

    def is_marked(self, run: str) -> bool:
        """Return whether somebody wants the job to stop."""
        return (self.folder(run) / _MARK).exists()

    @contextmanager
    def claim(self, run: str, *, patience: float = 3.0) -> Generator[None]:
        """Become the only one who writes a run, until the block or the process ends.

        Raises:
            JobError: Somebody else is, or the run is gone.
        """
        writer = FileLock(self.folder(run) / _WRITER)
        self._require(run)
        try:
            writer.acquire(timeout=patience)
        except Timeout as error:
            raise JobError(f"the run {run} is being trained by another process") from error
        try:
            yield
        finally:
            writer.release()

    def begin(self, run: str) -> Job | None:
        """Turn queued into running, for who holds the claim; None where it is not queued."""
        return self._step(run, "running", only="queued")

    def note(self, run: str, facts: dict[str, Any]) -> None:
        """Keep what the training found out at its start."""
        with self._guarding(run):
            self._write(replace(self._require(run), facts=facts))

    def end(self, run: str, state: str, reason: str = "") -> None:
        """Come to an end; a job that was told to stop is cancelled, whatever it came to."""
        if self._step(run, state, reason, only="running") is None:
            self._step(run, "cancelled", only="stopping")

    # -- parts

    def _read_all(self) -> list[Job]:
        try:
            with os.scandir(self.root) as entries:
                names = [entry.name for entry in entries if _is_id(entry.name)]
        except FileNotFoundError:
            return []
        for gone in set(self._records) - set(names):
            self._records.pop(gone, None)
        return [job for job in map(self._read, names) if job is not None]

    def _read(self, run: str) -> Job | None:
        if not _is_id(run):
            return None
        path = self.root / run / _RECORD
        try:
            found = path.stat()
            stamp = (found.st_mtime_ns, found.st_ino)
            known = self._records.get(run)
            if known is not None and known[0] == stamp:
                return known[1]
            job = Job.from_json(json.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            _log.warning("the record of run %s cannot be read: %s", run, error)
            return None
        self._records[run] = (stamp, job)
        return job

    def _mended(self, job: Job) -> Job:
        """Return the job; one that is said to run while nobody does is first put right."""
        if job.state not in WRITING or _is_held(self.root / job.id / _WRITER):
            return job
        try:
            with self._guarding(job.id):
                again = self._read(job.id)
                if again is None or again.state not in WRITING:
                    return again or job
                with FileLock(self.root / job.id / _WRITER, timeout=0):
                    return self._died(again)
        except (Timeout, JobError):
            return job  # somebody was quicker, or the disk is full: the next look decides

    def _died(self, job: Job) -> Job:
        if job.state == "stopping":
            return self._change(job, "cancelled", "its process ended before it could answer")
        if job.interruptions + 1 >= MAX_INTERRUPTIONS:
            reason = f"its process ended {MAX_INTERRUPTIONS} times without a word: see its log"
            return self._change(job, "failed", reason)
        counted = replace(job, interruptions=job.interruptions + 1)
        return self._change(counted, "interrupted", "its process ended without a word")

    def _step(self, run: str, state: str, reason: str = "", *, only: str) -> Job | None:
        with self._guarding(run):
            job = self._require(run)
            return self._change(job, state, reason) if job.state == only else None

    def _change(self, job: Job, state: str, reason: str = "") -> Job:
        """Write a change of state; the caller holds the record's lock."""
        if state not in NEXT[job.state]:
            raise JobError(f"a run that {_PAST[job.state]} cannot become {state}")
        now = time.time()
        changed = replace(
            job,
            state=state,
            reason=reason,
            started=now if state == "running" else job.started,
            ended=now if state in FINAL else None,
            history=(*job.history[-_MAX_HISTORY:], Event(state, now, reason)),
        )
        return self._write(changed)

    def _write(self, job: Job) -> Job:
        text = json.dumps(job.to_json(), ensure_ascii=False, allow_nan=False).encode()
        path = self.root / job.id / _RECORD
        try:
            _put(path, text)
        except JobError:
            # On a full disk the record must still say so: this is what the reserve is for.
            (self.root / job.id / _RESERVE).unlink(missing_ok=True)
            _put(path, text)
        self._records.pop(job.id, None)
        self._forget_list()
        if job.is_final:
            (self.root / job.id / _RESERVE).unlink(missing_ok=True)
        return job

    def _require_room(self, owner: str) -> None:
        bounds.require_place(owner, self._read_all(), self.limits)
        if bounds.has_room(self.root, self.limits):
            return
        self.clear()
        if not bounds.has_room(self.root, self.limits):
            raise JobError(
                f"there is no room on the disk: all runs together may take "
                f"{self.limits.megabytes:,} MB; delete some first"
            )

    def _create(
        self, job: Job, documents: Sequence[str] | None, facts: dict[str, Any] | None
    ) -> Job:
        folder = self.root / job.id
        try:
            folder.mkdir(parents=True)
            if job.work.source.is_own:
                self._keep_corpus(folder / CORPUS, documents or ())
            if facts is None:
                facts = bounds.require_trainable(job.work, folder / CORPUS, self.limits)
            else:
                bounds.require_facts(job.work, facts, self.limits)
            with replacing(folder / _RESERVE, JobError) as file:
                file.write(bytes(_RESERVED_BYTES))
            return self._write(replace(job, facts=facts))
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise JobError(f"the run could not be written: {error.strerror or error}") from error
        except WordLMError:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _keep_corpus(self, path: Path, documents: Sequence[str]) -> None:
        if not documents:
            raise CorpusError("the text holds no document")
        lines = (json.dumps({"text": each}, ensure_ascii=False) + "\n" for each in documents)
        data = "".join(lines).encode()
        limit = self.limits.corpus_megabytes
        if len(data) > limit * 2**20 * 1.5:
            raise CorpusError(f"the text is too long: the limit is {limit} MB")
        with replacing(path, JobError) as file:
            file.write(data)

    def _just_asked(self, job: Job) -> Job | None:
        """Return the job that a second click would ask for again."""
        for other in self._read_all():
            if (other.owner, other.name, other.work) == (job.owner, job.name, job.work) and (
                other.is_open and job.created - other.created < _DOUBLE_CLICK_SECONDS
            ):
                return other
        return None

    def _require(self, run: str) -> Job:
        found = self._read(run)
        if found is None:
            raise JobError(f"there is no run {printable(run)[:40]!r}: it may have been deleted")
        return found

    def _own(self, run: str, person: str, verb: str, *, instructor: bool) -> Job:
        found = self._require(run)
        if not instructor and found.owner != owner_of(person):
            raise JobError(
                f"this run is somebody else's: only they or the instructor may {verb} it"
            )
        if found.state in WRITING and not _is_held(self.root / run / _WRITER):
            return self._died(found)
        return found

    def _remove(self, run: str) -> None:
        folder = self.folder(run)
        doomed = self.root / f".{run}.deleted"
        folder.rename(doomed)  # in one move, so that nobody sees half a run
        shutil.rmtree(doomed, ignore_errors=True)
        self._records.pop(run, None)
        self._readers.pop(run, None)

    def _forget_list(self) -> None:
        self._listed = (-1.0, self._listed[1])

    @contextmanager
    def _guarding(self, run: str) -> Generator[None]:
        self._require(run)
        with _locked(self.folder(run) / "record.lock"):
            yield

    @contextmanager
    def _guarding_all(self) -> Generator[None]:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise JobError(f"the folder of the runs cannot be made: {error.strerror}") from error
        with _locked(self.root / "store.lock"):
            yield


_PAST = {
    "queued": "is waiting in the queue",
    "running": "is running",
    "stopping": "is stopping",
    "interrupted": "was interrupted and goes on by itself",
    "cancelled": "is cancelled",
    "failed": "has failed",
    "finished": "has finished",
}


def _is_id(run: str) -> bool:
    return _ID.fullmatch(run) is not None


def _put(path: Path, data: bytes) -> None:
    with replacing(path, JobError) as file:
        file.write(data)


@contextmanager
def _locked(path: Path) -> Generator[None]:
    try:
        with FileLock(path, timeout=_LOCK_SECONDS):
            yield
    except Timeout as error:
        raise JobError("the runs are busy: try again in a moment") from error
    except FileNotFoundError as error:
        raise JobError("there is no such run: it may have been deleted") from error


def _is_held(path: Path) -> bool:
    """Return whether a process holds the lock of a file; it is free where the file is not."""
    if not path.exists():
        return False
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True
