"""A store in a folder of its own, small jobs, and an engine as a process that can be killed."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from app.jobs import engine
from app.jobs.record import Job
from app.jobs.store import Store
from app.jobs.work import Source, Work
from wordlm_core.training import TrainConfig

ROOT = Path(__file__).resolve().parents[2]
ANN, BOB = "a" * 32, "b" * 32
FACTS = {"parameters": 4192, "vocab_size": 27, "uniform": 3.3, "floor": None, "floor_of": ""}


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "runs")


def gpt(steps: int = 50, **settings) -> Work:
    """A training of a few milliseconds a step at most."""
    return Work("train", TrainConfig.of("microgpt", steps=steps, **settings), Source("names"))


def endless(**settings) -> Work:
    """A training that lasts longer than any test."""
    return gpt(20_000, d_model=64, n_layer=4, context_length=32, **settings)


def mlp(steps: int = 200, **settings) -> Work:
    """A small word model on stories of our own."""
    sizes = {"d_model": 16, "hidden": 32, "context_length": 8, "batch": 64, **settings}
    config = TrainConfig.of("mlp", steps=steps, **sizes)
    return Work("train", config, Source("stories", documents=200))


def wait_for(what: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until something holds; fail loudly where it does not."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, f"not within {seconds} s"
        time.sleep(0.02)


def states(job: Job) -> list[str]:
    return [each.state for each in job.history]


@dataclass
class Machines:
    """The processes of a queue that tests may kill.

    Attributes:
        app: What hands the jobs out: with the embedded cluster it also has the workers.
        scheduler: Dask's, of several machines.
        workers: One `python -m app.jobs worker` a machine.
    """

    app: "subprocess.Popen[bytes]"
    scheduler: "subprocess.Popen[bytes] | None" = None
    workers: list["subprocess.Popen[bytes]"] = field(default_factory=list)


Started = Generator["subprocess.Popen[bytes]"]


class Queue:
    """An embedded cluster, or a scheduler with workers of their own on loopback."""

    def __init__(self, kind: str, **environment: str) -> None:
        self.kind, self.environment, self.port = kind, environment, free_port()
        self.protocol = "tcp"

    @contextlib.contextmanager
    def on(self, root: Path, workers: int = 1) -> Generator[Machines]:
        """Work on a folder of runs until the block ends."""
        with contextlib.ExitStack() as stack:
            if self.kind == "embedded":
                yield Machines(stack.enter_context(self.machine(root, workers)))
                return
            scheduler = stack.enter_context(self.scheduler(root))
            joined = [stack.enter_context(self.machine(root)) for _ in range(workers)]
            wait_for(lambda: engine.is_working(root), 30)  # one of them stands in for an app
            yield Machines(joined[0], scheduler, joined)

    def machine(self, root: Path, workers: int = 1) -> Started:
        """Start `python -m app.jobs worker`."""
        scheduler = "" if self.kind == "embedded" else f"{self.protocol}://127.0.0.1:{self.port}"
        return self._start(
            root,
            *("-m", "app.jobs", "worker", "--workers", str(workers)),
            WORDLM_SCHEDULER=scheduler,
        )

    def scheduler(self, root: Path) -> Started:
        """Start Dask's own scheduler."""
        address = f"{self.protocol}://127.0.0.1:{self.port}"
        return self._start(
            root,
            *("-m", "distributed.cli.dask_scheduler", "--host", address, "--no-dashboard"),
            DASK_DISTRIBUTED__SCHEDULER__WORKER_SATURATION="1.0",
            DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="1000",
        )

    @contextlib.contextmanager
    def _start(self, root: Path, *arguments: str, **environment: str) -> Started:
        ours = {**os.environ, "WORDLM_RUNS": str(root), "OMP_NUM_THREADS": "1"}
        with (root.parent / "processes.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=ROOT,
                env={**ours, **self.environment, **environment},
                stdout=log,
                stderr=log,
            )
        with process:
            try:
                yield process
            finally:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(15)
                process.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(params=["embedded", pytest.param("external", marks=pytest.mark.chaos)])
def queue(request) -> Queue:
    """Each test of the queue runs on one machine's cluster and on several machines'."""
    return Queue(request.param)


def children_of(pid: int, what: str) -> list[psutil.Process]:
    """Return the processes below one whose command line holds a text."""
    found = []
    with contextlib.suppress(psutil.NoSuchProcess):
        for each in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if what in " ".join(each.cmdline()):
                    found.append(each)
    return found


def trainers_of(run: str) -> list[psutil.Process]:
    """Return every process on this machine that trains a run."""
    found = []
    for each in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if re.search(rf"app\.jobs\.child .*{run}", " ".join(each.cmdline())):
                found.append(each)
    return found
