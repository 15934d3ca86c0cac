"""Run folders as files: records, locks, and what is done to a whole folder in one move.

Two locks of the operating system guard a run: `record.lock` for a moment around every change,
and `writer.lock`, which whoever trains holds until its end. The system drops a lock with its
process.
"""

import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from app.jobs.record import Job, JobError
from wordlm_core.files import printable, replacing

RECORD, RESERVE = "job.json", "reserve"
_RESERVED_BYTES = 65_536
_LOCK_SECONDS, _STRAY_SECONDS = 20.0, 86_400
_WRITER = "writer.lock"
_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
# What a kill leaves of a folder that was being made or removed.
_STRAY = re.compile(rf"\.{_ID.pattern}\.(new|deleted)")
_log = logging.getLogger("wordlm.jobs")

Stamp = tuple[int, int]


class Folders:
    """All run folders below one root; each process has one of its own.

    Attributes:
        root: The folder.
        changes: How many changes this process has made.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.changes = root, 0
        self._records: dict[str, tuple[Stamp, Job | None]] = {}

    def path(self, run: str) -> Path:
        """Return a run's folder.

        Raises:
            JobError: That is no name of a run.
        """
        if not _ID.fullmatch(run):
            raise JobError(f"there is no run {printable(run)[:40]!r}")
        return self.root / run

    # -- records

    def read(self, run: str) -> Job | None:
        """Return a run's record; None where there is none, or nothing that can be read."""
        if not _ID.fullmatch(run):
            return None
        path = self.root / run / RECORD
        try:
            found = path.stat()
        except OSError:
            return None
        stamp = (found.st_mtime_ns, found.st_ino)
        known = self._records.get(run)
        if known is None or known[0] != stamp:
            known = self._records[run] = (stamp, _record(path, run))
        return known[1]

    def require(self, run: str) -> Job:
        """Return a run's record.

        Raises:
            JobError: There is none.
        """
        found = self.read(run)
        if found is None:
            raise JobError(f"there is no run {printable(run)[:40]!r}: it may have been deleted")
        return found

    def all(self) -> list[Job]:
        """Return every record that can be read.

        Raises:
            JobError: The folder cannot be read.
        """
        try:
            with os.scandir(self.root) as entries:
                names = [entry.name for entry in entries if _ID.fullmatch(entry.name)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise JobError(f"the folder of the runs cannot be read: {error.strerror}") from error
        for gone in set(self._records) - set(names):
            self._records.pop(gone, None)
        return [job for job in map(self.read, names) if job is not None]

    def write(self, job: Job) -> Job:
        """Write a record; the caller holds its lock.

        Raises:
            JobError: The disk refuses.
        """
        folder = self.root / job.id
        try:
            _put(folder / RECORD, job)
        except JobError:
            # On a full disk the record must still say so: this is what the reserve is for.
            (folder / RESERVE).unlink(missing_ok=True)
            _put(folder / RECORD, job)
        if job.is_final:
            (folder / RESERVE).unlink(missing_ok=True)
        self._records.pop(job.id, None)
        self.changes += 1
        return job

    # -- locks

    @contextmanager
    def guarding(self, run: str) -> Generator[None]:
        """Change a run's record alone.

        Raises:
            JobError: It is gone, or busy for too long.
        """
        self.require(run)
        with _locked(self.path(run) / "record.lock"):
            yield

    @contextmanager
    def guarding_all(self) -> Generator[None]:
        """Take in a run alone.

        Raises:
            JobError: The folder cannot be written, or is busy for too long.
        """
        self._make()
        with _locked(self.root / "store.lock"):
            yield

    @contextmanager
    def claim(self, run: str, patience: float) -> Generator[None]:
        """Become the only one who trains a run, until the block or the process ends.

        Raises:
            JobError: Somebody else does, or the run is gone.
        """
        self.require(run)
        writer = FileLock(self.path(run) / _WRITER)
        try:
            writer.acquire(timeout=patience)
        except Timeout as error:
            raise JobError(f"the run {run} is being trained by another process") from error
        try:
            yield
        finally:
            writer.release()

    def is_held(self, run: str) -> bool:
        """Return whether a process trains a run; also where that cannot be told."""
        path = self.root / run / _WRITER
        if not path.exists():
            return False
        try:
            with FileLock(path, timeout=0):
                return False
        except (Timeout, OSError):
            return True

    # -- whole folders

    def add(self, job: Job, fill: Callable[[Path], None], admit: Callable[[], Job | None]) -> Job:
        """Make a run's folder aside, and take it in with one move.

        Args:
            job: Its record.
            fill: Writes its other files, which may take its time.
            admit: Asked when all is written and nobody else takes in a run; another job that it
                returns takes the place of this one.

        Raises:
            WordLMError: What `fill` and `admit` raise; nothing stays of the folder.
            JobError: The disk refuses.
        """
        self._make()
        aside = self.root / f".{job.id}.new"
        try:
            aside.mkdir()
            fill(aside)
            with replacing(aside / RESERVE, JobError) as file:
                file.write(bytes(_RESERVED_BYTES))
            _put(aside / RECORD, job)
            with self.guarding_all():
                other = admit()
                if other is not None:
                    return other
                aside.rename(self.root / job.id)
        except OSError as error:
            raise JobError(f"the run could not be written: {error.strerror or error}") from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        self.changes += 1
        return job

    def remove(self, run: str) -> None:
        """Remove a run's folder; the caller holds its lock.

        Raises:
            JobError: The disk refuses.
        """
        doomed = self.root / f".{run}.deleted"
        try:
            self.path(run).rename(doomed)  # in one move, so that nobody sees half a run
        except OSError as error:
            raise JobError(f"the run could not be deleted: {error.strerror}") from error
        shutil.rmtree(doomed, ignore_errors=True)
        self._records.pop(run, None)
        self.changes += 1

    def sweep(self) -> None:
        """Remove what kills and damage left, when it is a day old."""
        with suppress(OSError), os.scandir(self.root) as entries:
            for entry in entries:
                damaged = _ID.fullmatch(entry.name) and self.read(entry.name) is None
                if not (damaged or _STRAY.fullmatch(entry.name)):
                    continue
                if time.time() - entry.stat().st_mtime > _STRAY_SECONDS:
                    shutil.rmtree(entry.path, ignore_errors=True)

    def _make(self) -> None:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise JobError(f"the folder of the runs cannot be made: {error.strerror}") from error


def bytes_of(folder: Path) -> int:
    """Return how many bytes the files below a folder have."""
    total = 0
    for where, _, files in os.walk(folder):
        for file in files:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(where, file)).st_size
    return total


def _record(path: Path, run: str) -> Job | None:
    try:
        job = Job.from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, RecursionError) as error:
        _log.warning("the record of run %s cannot be read: %s", run, error)
        return None
    return job if job.id == run else None


def _put(path: Path, job: Job) -> None:
    text = json.dumps(job.to_json(), ensure_ascii=False, allow_nan=False)
    with replacing(path, JobError) as file:
        file.write(text.encode())


@contextmanager
def _locked(path: Path) -> Generator[None]:
    lock = FileLock(path)
    try:
        lock.acquire(timeout=_LOCK_SECONDS)
    except Timeout as error:
        raise JobError("the runs are busy: try again in a moment") from error
    except FileNotFoundError as error:
        raise JobError("there is no such run: it may have been deleted") from error
    except OSError as error:
        raise JobError(f"the runs cannot be changed: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()
