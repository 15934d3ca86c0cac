"""What a worker does for one job: start the process that trains, wait, and see that it ends."""

import logging
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
_log = logging.getLogger("wordlm.jobs")


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
        except JobError:
            return "deleted"
        if found.is_final:
            return found.state
        try:
            if found.state == "interrupted":
                time.sleep(PAUSE_SECONDS)
                store.requeue(job)
            elif found.state == "queued":
                starts += 1
                if starts > _MAX_STARTS + found.interruptions:
                    store.refuse(job, "its process did not start: see its log")
                else:
                    _train(store, found)
            else:
                time.sleep(1.0)  # a process that an earlier worker has started is still at it
        except (JobError, OSError) as error:
            _log.warning("run %s: %s", job, error)  # a busy lock, a full disk: they may pass
            time.sleep(1.0)


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
            _wait(store, job, process)
        finally:
            process.kill()


def _wait(store: Store, job: Job, process: "subprocess.Popen[bytes]") -> None:
    """Return when the process has ended, or is to be: it did not answer, or takes too long."""
    minutes = store.limits.minutes
    left = minutes * 60 - job.running_seconds(of_this_attempt=True) + _GRACE_SECONDS
    marked_at, too_late = None, time.monotonic() + left
    while process.poll() is None:
        time.sleep(_LOOK_SECONDS)
        now = time.monotonic()
        if now > too_late:
            store.end(job.id, "failed", f"it took more than {minutes:,} minutes and did not stop")
            return
        if store.is_marked(job.id):
            marked_at = marked_at or now
            if now - marked_at > ANSWER_SECONDS:
                return
