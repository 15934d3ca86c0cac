"""The run folders: the truth about every job. No engine, no streamlit.

A run is a folder `<root>/<id>/` that holds its record `job.json` (written aside and replaced),
`progress.jsonl` (one line a report), `checkpoint.npz` (the latest, also while it trains),
`state.resume.npz` and `log.txt`; `corpus.jsonl` where a person brought the text. Whatever
dies, unfinished jobs are found here and go on from their last checkpoint.

Whoever trains holds a lock of the operating system, which drops it with the process. So a
record that says "running" while nobody holds the lock is of a job that died: whoever reads it
first says so. No heartbeats, no clocks to compare.
"""

import hashlib
import json
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.jobs import bounds
from app.jobs.bounds import Limits
from app.jobs.folders import Folders
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
from wordlm_core.errors import CorpusError
from wordlm_core.files import replacing

MAX_INTERRUPTIONS = 5
CHECKPOINT, STATE, CORPUS, LOG, PROGRESS, RESULT = (
    "checkpoint.npz",
    "state.resume.npz",
    "corpus.jsonl",
    "log.txt",
    "progress.jsonl",
    "result.json",
)
_MARK = "cancel"
_CACHED_SECONDS, _DOUBLE_CLICK_SECONDS = 0.5, 4.0
_LOG_BYTES, _MAX_READERS, _MAX_HISTORY = 4_000, 64, 200


class Store:
    """All runs of a folder; every process that shares the folder has one of its own."""

    def __init__(self, root: Path, limits: Limits | None = None) -> None:
        self.root, self.limits = root, limits or Limits()
        self._folders = Folders(root)
        self._lock = threading.Lock()
        self._listed: tuple[float, int, tuple[Job, ...]] = (-1.0, -1, ())
        self._readers: OrderedDict[str, Reader] = OrderedDict()

    # -- what there is

    def jobs(self) -> tuple[Job, ...]:
        """Return every run, the newest first.

        Raises:
            JobError: The folder cannot be read.
        """
        with self._lock:
            at, changes, found = self._listed
            if time.monotonic() - at > _CACHED_SECONDS or changes != self._folders.changes:
                changes = self._folders.changes  # before: a change meanwhile asks for another look
                mended = [self._mended(job) for job in self._folders.all()]
                mended.sort(key=lambda job: (job.created, job.id), reverse=True)
                found = tuple(mended)
                self._listed = (time.monotonic(), changes, found)
            return found

    def visible(self, person: str, *, instructor: bool = False) -> tuple[Job, ...]:
        """Return the runs that a person may open: their own and those that are not private."""
        me = owner_of(person)
        return tuple(job for job in self.jobs() if instructor or job.owner == me or not job.private)

    def job(self, run: str) -> Job:
        """Return one run as it is now.

        Raises:
            JobError: There is none of that name.
        """
        return self._mended(self._folders.require(run))

    def folder(self, run: str) -> Path:
        """Return a run's folder.

        Raises:
            JobError: That is no name of a run.
        """
        return self._folders.path(run)

    def progress(self, run: str) -> Curve:
        """Return how far a run is; what was read before is not read again."""
        job = self.job(run)
        with self._lock:
            reader = self._readers.pop(run, None) or Reader(self.folder(run) / PROGRESS, job.steps)
            self._readers[run] = reader
            while len(self._readers) > _MAX_READERS:
                self._readers.popitem(last=False)
        return reader.curve()

    def log(self, run: str) -> str:
        """Return the last lines that a run's process wrote."""
        with suppress(OSError), (self.folder(run) / LOG).open("rb") as file:
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
        if work.source.is_own:
            digest = hashlib.sha256("\0".join(documents or ()).encode()).hexdigest()
            work = replace(work, source=replace(work.source, sha256=digest))
        now = time.time()
        job = Job(
            id=f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{secrets.token_hex(3)}",
            name=label_of(name, work),
            work=work,
            owner=owner_of(person),
            private=private,
            created=now,
            queued=now,
            facts=facts or {},
            history=(Event("queued", now),),
        )
        same = self._just_asked(job)
        if same is not None:
            return same
        self._make_room(job.owner)

        def fill(folder: Path) -> None:
            if work.source.is_own:
                self._keep_corpus(folder / CORPUS, documents or ())
            if facts is None:
                job.facts.update(bounds.require_trainable(work, folder / CORPUS, self.limits))
            else:
                bounds.require_facts(work, facts, self.limits)

        def admit() -> Job | None:
            same = self._just_asked(job)
            if same is None:
                bounds.require_place(job.owner, self._folders.all(), self.limits)
            return same

        return self._folders.add(job, fill, admit)

    def cancel(self, run: str, person: str, *, instructor: bool = False) -> Job:
        """End a job, or take it out of the queue; one that is cancelled already stays so.

        Raises:
            JobError: It is somebody else's, or has come to its end.
        """
        with self._folders.guarding(run):
            job = self._own(run, person, "cancel", instructor=instructor)
            if job.state in ("finished", "failed"):
                raise JobError(f"this run {_PAST[job.state]}: there is nothing to cancel")
            by = "" if job.owner == owner_of(person) else "by the instructor"
            if job.state == "running":
                (self.folder(run) / _MARK).touch()
                return self._change(job, "stopping", by)
            if job.state in WAITING:
                return self._change(job, "cancelled", by)
            return job

    def resume(self, run: str, person: str, *, instructor: bool = False) -> Job:
        """Queue a cancelled or failed job again, as a new attempt from its last checkpoint.

        Raises:
            JobError: It is somebody else's, not at such an end, or the queue is full.
        """
        self._make_room(owner_of(person), apart=run)
        with self._folders.guarding_all(), self._folders.guarding(run):
            job = self._own(run, person, "resume", instructor=instructor)
            if job.state not in ("cancelled", "failed"):
                raise JobError(
                    f"this run {_PAST[job.state]}: only a cancelled or failed one resumes"
                )
            bounds.require_place(job.owner, self._folders.all(), self.limits)
            (self.folder(run) / _MARK).unlink(missing_ok=True)
            again = replace(job, attempt=job.attempt + 1, interruptions=0, queued=time.time())
            return self._change(again, "queued")

    def delete(self, run: str, person: str, *, instructor: bool = False) -> None:
        """Remove a run that has come to its end, with all its files.

        Raises:
            JobError: It is somebody else's, or still open.
        """
        with self._folders.guarding(run):
            job = self._own(run, person, "delete", instructor=instructor)
            if job.is_open:
                raise JobError("this run is not over: cancel it first")
            self._folders.remove(run)

    def share(self, run: str, person: str, *, private: bool, instructor: bool = False) -> Job:
        """Let others open a run, or no longer.

        Raises:
            JobError: It is somebody else's.
        """
        with self._folders.guarding(run):
            job = self._own(run, person, "share", instructor=instructor)
            return self._folders.write(replace(job, private=private))

    def clear(self, *, apart: str = "") -> None:
        """Remove what the rule no longer keeps: runs that ended too many days ago.

        Args:
            apart: A run that stays.
        """
        before = time.time() - self.limits.days * 86_400
        for job in self.jobs():
            if job.is_final and (job.ended or job.created) < before and job.id != apart:
                with suppress(JobError), self._folders.guarding(job.id):
                    if self._folders.require(job.id).is_final:
                        self._folders.remove(job.id)
        self._folders.sweep()

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
        """Become the only one who trains a run, until the block or the process ends.

        Raises:
            JobError: Somebody else does, or the run is gone.
        """
        with self._folders.claim(run, patience):
            yield

    def begin(self, run: str) -> Job | None:
        """Turn queued into running, for who holds the claim; None where it is not queued."""
        return self._step(run, "running", only="queued")

    def note(self, run: str, facts: dict[str, Any]) -> None:
        """Keep what the training found out at its start."""
        with self._folders.guarding(run):
            self._folders.write(replace(self._folders.require(run), facts=facts))

    def end(self, run: str, state: str, reason: str = "") -> Job:
        """Come to an end; a job that was told to stop is cancelled, whatever it came to."""
        with self._folders.guarding(run):
            job = self._folders.require(run)
            if job.state == "running" and state == "cancelled":
                job = self._change(job, "stopping")  # its mark was set, and the record not yet
            if job.state == "stopping":
                return self._change(job, "cancelled", job.reason)
            return self._change(job, state, reason) if job.state == "running" else job

    # -- parts

    def _mended(self, job: Job) -> Job:
        """Return the job; one that is said to run while nobody does is first put right."""
        if job.state not in WRITING or self._folders.is_held(job.id):
            return job
        try:
            with self._folders.guarding(job.id):
                again = self._folders.require(job.id)
                if again.state not in WRITING:
                    return again
                with self._folders.claim(job.id, 0.0):
                    return self._died(again)
        except JobError:
            return job  # somebody was quicker, or the disk is full: the next look decides

    def _died(self, job: Job) -> Job:
        if job.state == "running" and self.is_marked(job.id):
            job = self._change(job, "stopping")
        if job.state == "stopping":
            why = job.reason or "its process ended before it could answer"
            return self._change(job, "cancelled", why)
        if job.interruptions + 1 >= MAX_INTERRUPTIONS:
            reason = f"its process ended {MAX_INTERRUPTIONS} times without a word: see its log"
            return self._change(job, "failed", reason)
        counted = replace(job, interruptions=job.interruptions + 1)
        return self._change(counted, "interrupted", "its process ended without a word")

    def _step(self, run: str, state: str, reason: str = "", *, only: str) -> Job | None:
        with self._folders.guarding(run):
            job = self._folders.require(run)
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
        return self._folders.write(changed)

    def _make_room(self, owner: str, *, apart: str = "") -> None:
        """Clear what the rule allows where the disk is full.

        Raises:
            JobError: It stays full.
        """
        if bounds.lacking(self.root, owner, self._folders.all(), self.limits):
            self.clear(apart=apart)
            bounds.require_disk(self.root, owner, self._folders.all(), self.limits)

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
        asked = (job.owner, job.name, job.work, job.private)
        for other in self._folders.all():
            if (other.owner, other.name, other.work, other.private) == asked and (
                other.is_open and job.created - other.created < _DOUBLE_CLICK_SECONDS
            ):
                return other
        return None

    def _own(self, run: str, person: str, verb: str, *, instructor: bool) -> Job:
        found = self._folders.require(run)
        if not instructor and found.owner != owner_of(person):
            raise JobError(
                f"this run is somebody else's: only they or the instructor may {verb} it"
            )
        if found.state in WRITING and not self._folders.is_held(run):
            return self._died(found)
        return found


_PAST = {
    "queued": "is waiting in the queue",
    "running": "is running",
    "stopping": "is stopping",
    "interrupted": "was interrupted and goes on by itself",
    "cancelled": "is cancelled",
    "failed": "has failed",
    "finished": "has finished",
}
