"""A thread of the page server that sees to it that an engine is there while there is work.

It computes nothing: every two seconds it looks whether a run is open. It must be this thread
that starts the engine and outlives it: Linux sends the parent's death signal when the thread
that started a process ends, not when the server does.
"""

import logging
import os
import subprocess
import sys
import threading
import time

from app import settings
from app.jobs import engine
from app.jobs.store import Store
from app.jobs.uploads import tidy

_LOOK_SECONDS, _TIDY_SECONDS = 2.0, 3_600.0
_log = logging.getLogger("wordlm.jobs")


class Keeper:
    """Starts the engine of a folder of runs when it is needed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name="jobs", daemon=True)
        self._woken, self._closed = threading.Event(), False

    def start(self) -> None:
        """Begin to look; what was left unfinished when the server ended goes on now."""
        self._thread.start()

    def wake(self) -> None:
        """Look now: a job has just been taken."""
        self._woken.set()

    def close(self) -> None:
        """Look no longer; the engine ends, and its jobs go on when there is another."""
        self._closed = True
        self._woken.set()
        self._thread.join()
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def _keep(self) -> None:
        tidied = time.monotonic()
        while not self._closed:
            try:
                self._look()
                if time.monotonic() - tidied > _TIDY_SECONDS:
                    tidy(self._store)
                    tidied = time.monotonic()
            except Exception:
                _log.exception("looking after the jobs")  # the next look may do better
            self._woken.wait(_LOOK_SECONDS)
            self._woken.clear()

    def _look(self) -> None:
        alive = self._process is not None and self._process.poll() is None
        if alive or not any(job.is_open for job in self._store.jobs()):
            return
        if engine.is_working(self._store.root):
            return  # another server's, or a `worker` that stays
        command = [sys.executable, "-m", "app.jobs.engine", "--parent", str(os.getpid())]
        self._process = subprocess.Popen(
            command,
            cwd=settings.ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "WORDLM_RUNS": str(self._store.root)},
            stdin=subprocess.DEVNULL,
        )
