"""What a worker does for one job: start the process that trains, wait, and see that it ends."""

import os
import subprocess
import sys
import time

from app import settings
from app.jobs.record import Job, JobError
from app.jobs.store import LOG, Store

ANSWER_SECONDS = 1.5
PAUSE_SECONDS = 2.5
_LOOK_SECONDS = 0.05
_GRACE_SECONDS = 60.0
_MAX_STARTS = 3


def run(job: str) -> str:
    """See one job through; return the state in which it ended, or `deleted`.

    A process that dies without a word leaves the job interrupted; after a moment it is queued
    and started again, from its last checkpoint. The folder is that of this machine's settings:
    workers may see the same files under another name.
    """
    store = Store(settings.current().runs_folder, settings.current().limits)
    starts = 0
    while True:
        try:
            found = store.job(job)
            if found.is_final:
                return found.state
            if found.state == "interrupted":
                time.sleep(PAUSE_SECONDS)
                store.requeue(job)
            elif found.state == "queued":
                starts += 1
                if starts > _MAX_STARTS + found.interruptions:
                    store.refuse(job, "its process did not start: see its log")
                _train(store, found)
            else:
                time.sleep(1.0)  # a process that an earlier worker has started is still at it
        except JobError:
            return "deleted"


def _train(store: Store, job: Job) -> None:
    """Run the process of one attempt to its end, or end it."""
    folder = store.folder(job.id)
    command = [sys.executable, "-m", "app.jobs.child", str(store.root), job.id, str(os.getpid())]
    with (folder / LOG).open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=settings.ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    with process:
        try:
            _wait(store, job.id, process)
        finally:
            process.kill()


def _wait(store: Store, job: str, process: "subprocess.Popen[bytes]") -> None:
    """Return when the process has ended, or has left a cancel mark unanswered for too long."""
    marked_at: float | None = None
    too_late = time.monotonic() + store.limits.minutes * 60 + _GRACE_SECONDS
    while process.poll() is None and time.monotonic() < too_late:
        time.sleep(_LOOK_SECONDS)
        if not store.is_marked(job):
            continue
        marked_at = marked_at or time.monotonic()
        if time.monotonic() - marked_at > ANSWER_SECONDS:
            return
