"""The hands of the queue: hands jobs to Dask workers, in turn. The folders are the truth.

One engine works on a folder of runs at a time (a lock of the operating system says which). It
runs as a process of its own, so that its threads and memory are not the page server's: the
app starts one when there is work, `python -m app.jobs worker` is one that stays.

Without a scheduler's address it has a Dask `LocalCluster`, with one thread a worker, started at
the first job and closed when there is nothing to do. With one, the same code hands the jobs to
workers on any machines.

Dask gets, of every person, the first job that is not over; its priority is how long ago the
person was served. It keeps what no worker is free for in its own queue and takes it from there
by priority. A person's next job follows when the one before has ended: a dependency between
the two tasks would not do, because Dask gives a worker that becomes free to the dependents
of what it has just done before it looks at its queue, so one person would keep it for ever.
"""

import argparse
import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from app import settings
from app.jobs import task
from app.jobs.mortal import die_with
from app.jobs.record import WRITING, Job, last_served
from app.jobs.store import Store
from app.jobs.uploads import tidy

ENGINE_LOCK = "engine.lock"
_LOOK_SECONDS, _RETRY_SECONDS = 1.0, 2.0
_REST_SECONDS, _TIDY_SECONDS = 10.0, 3_600.0
_CONFIG = {
    # A worker is given one task and the next when that is done: the order stays ours to set.
    "distributed.scheduler.worker-saturation": 1.0,
    # How often a job may die is counted in its record.
    "distributed.scheduler.allowed-failures": 1_000,
    "distributed.comm.timeouts.connect": "5s",
    "logging.distributed": "error",
}
_log = logging.getLogger("wordlm.jobs")


class Engine:
    """Keeps Dask in step with a folder of runs."""

    def __init__(self, store: Store, scheduler: str, workers: int) -> None:
        """Start nothing yet.

        Args:
            store: The runs.
            scheduler: Address of a Dask scheduler, or empty for an embedded cluster.
            workers: Of the embedded cluster.
        """
        self._store, self._scheduler, self._workers = store, scheduler, workers
        self._client: Any = None
        self._cluster: Any = None
        self._given: dict[str, Any] = {}
        self._returned: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._ended = threading.Event()

    def run(self, should_stop: Callable[[], bool], *, idle: float | None = None) -> None:
        """Work until told to stop, or until there has been nothing to do for `idle` seconds.

        Raises:
            Timeout: Another engine works on this folder.
        """
        self._store.root.mkdir(parents=True, exist_ok=True)
        with FileLock(self._store.root / ENGINE_LOCK, timeout=0):
            try:
                self._work(should_stop, idle)
            finally:
                self.close()

    def close(self) -> None:
        """Let go of Dask: an embedded cluster ends, with all that it runs."""
        self._given = {}
        for part in (self._client, self._cluster):
            if part is not None:
                with contextlib.suppress(Exception):  # whatever it says, it is gone now
                    part.close()
        self._client = self._cluster = None

    def _work(self, should_stop: Callable[[], bool], idle: float | None) -> None:
        idle_since, tidied = time.monotonic(), -_TIDY_SECONDS
        while not should_stop():
            now = time.monotonic()
            if now - tidied > _TIDY_SECONDS:
                tidy(self._store)
                tidied = now
            if self._turn():
                idle_since = now
            elif idle is not None and now - idle_since > idle:
                return
            elif self._cluster is not None and now - idle_since > _REST_SECONDS:
                self.close()
            self._ended.wait(_LOOK_SECONDS)
            self._ended.clear()

    def _turn(self) -> bool:
        """Hand over what is to be done; return whether anything is."""
        try:
            waiting = [job for job in self._store.jobs() if job.is_open]
            if waiting:
                self._connect()
                self._hand_over(waiting)
            return bool(waiting)
        except Exception:
            # Whatever it is (the scheduler, the disk), the folders are there: try again.
            _log.exception("the jobs could not be handed over; the next try is soon")
            self.close()
            time.sleep(_RETRY_SECONDS)
            return True

    def _connect(self) -> None:
        if self._client is not None and self._client.status == "running":
            return
        self.close()
        import dask  # noqa: PLC0415 (only an engine that has work needs it)

        dask.config.set(_CONFIG)  # pyright: ignore[reportPrivateImportUsage]
        from distributed import Client, LocalCluster  # noqa: PLC0415 (it reads them)

        if self._scheduler:
            self._client = Client(self._scheduler, timeout="5s", set_as_default=False)
            return
        self._cluster = LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # Dask answers over HTTP somewhere: not outside
            scheduler_kwargs={"dashboard": False},
            memory_limit=0,
            silence_logs=logging.ERROR,
        )
        self._client = Client(self._cluster, set_as_default=False)

    def _hand_over(self, waiting: list[Job]) -> None:
        heads = {job.id: job for job in _heads(waiting)}
        for run, future in list(self._given.items()):
            if run not in heads:
                future.cancel()
            elif future.done():  # it came back, and the job is still open: not again at once
                self._returned[run] = self._returned.get(run, 0) + 1
                self._not_before[run] = time.monotonic() + _RETRY_SECONDS
            else:
                continue
            del self._given[run]
        if self._cluster is not None:
            size = min(self._workers, len(heads))
            if size > len(self._cluster.worker_spec):
                self._cluster.scale(size)
        served = last_served(self._store.jobs())
        for run, job in heads.items():
            if run not in self._given and time.monotonic() >= self._not_before.get(run, 0.0):
                self._given[run] = self._submit(job, -served.get(job.owner, 0.0))

    def _submit(self, job: Job, priority: float) -> Any:
        from dask._task_spec import Task  # noqa: PLC0415

        # Equal keys are one task, whoever submits it. Of one that came back while its job is
        # open Dask would hand out the old result, so the next try has another key.
        key = f"{job.id}.{job.attempt}.{self._returned.get(job.id, 0)}"
        # A producer of data is what Dask holds in its own queue while no worker is free.
        work = Task(key, task.run, job.id, _data_producer=True)
        [future] = self._client.get(
            {key: work}, [key], sync=False, priority=priority, fifo_timeout=0
        )
        future.add_done_callback(self._note_end)
        return future

    def _note_end(self, future: object) -> None:
        self._ended.set()


def stop_signals(*numbers: signal.Signals) -> threading.Event:
    """Return an event that these signals set, in place of what they do else."""
    stopped = threading.Event()

    def note(number: int, frame: object) -> None:
        stopped.set()

    for number in numbers:
        signal.signal(number, note)
    return stopped


def is_working(root: Path) -> bool:
    """Return whether an engine works on a folder of runs."""
    if not (root / ENGINE_LOCK).exists():
        return False
    try:
        with FileLock(root / ENGINE_LOCK, timeout=0):
            return False
    except Timeout:
        return True


def _heads(waiting: list[Job]) -> list[Job]:
    """Return each person's first job that is not over: the running one, else the oldest."""
    heads: dict[str, Job] = {}
    for job in sorted(waiting, key=lambda job: (job.state not in WRITING, job.queued, job.id)):
        heads.setdefault(job.owner, job)
    return list(heads.values())


def main(argv: list[str] | None = None) -> int:
    """Be the engine that an app has started; end with it, or when there is nothing to do."""
    parser = argparse.ArgumentParser(prog="python -m app.jobs.engine")
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--idle", type=float, default=60.0)
    args = parser.parse_args(argv)
    die_with(args.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the app, which ends us
    stopped = stop_signals(signal.SIGTERM)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    ours = settings.current()
    engine = Engine(Store(ours.runs_folder, ours.limits), ours.scheduler, ours.job_workers)
    try:
        engine.run(stopped.is_set, idle=args.idle)
    except Timeout:
        return 3  # another one is at it
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
