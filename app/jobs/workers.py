"""`python -m app.jobs worker`: this machine works on the queue until it is stopped.

Without a scheduler's address it is the engine itself, with its own workers. With one it joins:
Dask workers that end with this process and are started again when the scheduler comes back;
and it stands by as the engine, in case the app's is not there.
"""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from filelock import Timeout

from app import settings
from app.jobs.engine import Engine, stop_signals
from app.jobs.store import Store

_LOOK_SECONDS = 1.0
_log = logging.getLogger("wordlm.jobs")


def work(count: int | None) -> dict[str, Any]:
    """Work until SIGINT or SIGTERM; return what is left open."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s")
    ours = settings.current()
    store, size = Store(ours.runs_folder, ours.limits), count or ours.job_workers
    stopped = stop_signals(signal.SIGINT, signal.SIGTERM)
    hands = _Hands(ours.scheduler, size) if ours.scheduler else None
    if hands is not None:
        hands.start()
    engine = Engine(store, ours.scheduler, size)
    _log.info("working on the runs in %s%s", store.root.name, hands or "")
    while not stopped.is_set():
        with contextlib.suppress(Timeout):  # another engine is at it: stand by
            engine.run(stopped.is_set)
        stopped.wait(_LOOK_SECONDS)
    if hands is not None:
        hands.close()
    return {"open": sum(job.is_open for job in store.jobs())}


class _Hands(threading.Thread):
    """Keeps a process of Dask workers joined to a scheduler. The thread outlives the process."""

    def __init__(self, scheduler: str, count: int) -> None:
        super().__init__(name="workers", daemon=True)
        self._scheduler, self._count = scheduler, count
        self._closing = threading.Event()

    def __str__(self) -> str:
        return f", with {self._count} workers of {self._scheduler}"

    def run(self) -> None:
        """Start the workers, and start them again whenever they have lost their scheduler."""
        while not self._closing.is_set():
            started = time.monotonic()
            with subprocess.Popen(self._command(), cwd=settings.ROOT) as process:
                while process.poll() is None and not self._closing.wait(_LOOK_SECONDS):
                    pass
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
                process.kill()
            if not self._closing.is_set():
                _log.info("the workers have ended after %.0f s", time.monotonic() - started)
                self._closing.wait(_LOOK_SECONDS)

    def close(self) -> None:
        """End the workers and what they run."""
        self._closing.set()
        self.join()

    def _command(self) -> list[str]:
        parent = str(os.getpid())
        return [
            *(sys.executable, "-m", "app.jobs.dask_worker", parent, self._scheduler),
            *("--nworkers", str(self._count), "--nthreads", "1", "--memory-limit", "0"),
            *("--no-dashboard", "--death-timeout", "30"),
        ]
