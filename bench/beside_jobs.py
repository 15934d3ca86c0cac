"""What two trainings cost the people who look: p95 of a rerun with them and without, in turn.

One server, 30 students on Attention with four seconds to think, each sentence a new one; then
the same with two jobs that train. Repeated; the ratio is of the medians.
"""

import argparse
import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from app.jobs.store import Store
from app.jobs.work import Source, Work
from bench import students
from wordlm_core.training import TrainConfig

ROOT = Path(__file__).resolve().parents[1]
FACTS = {"parameters": 1, "vocab_size": 100, "uniform": 4.6, "floor": None, "floor_of": ""}


def measure(count: int, rounds: int, repeats: int, think: float) -> tuple[float, float]:
    """Return the median p95 of a rerun in milliseconds, without jobs and with two."""
    alone: list[float] = []
    beside: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "runs")
        with serving(store.root) as port:
            asyncio.run(p95(port, 3, 2, 0.5))  # the server warms up
            for _ in range(repeats):
                alone.append(asyncio.run(p95(port, count, rounds, think)))
                jobs = [start(store, seed) for seed in (1, 2)]
                while any(store.progress(job).step < 5 for job in jobs):
                    time.sleep(0.2)
                beside.append(asyncio.run(p95(port, count, rounds, think)))
                assert all(store.job(job).state == "running" for job in jobs)
                for job in jobs:
                    store.cancel(job, "", instructor=True)
                while any(store.job(job).is_open for job in jobs):
                    time.sleep(0.2)
    return statistics.median(alone), statistics.median(beside)


async def p95(port: int, count: int, rounds: int, think: float) -> float:
    """Let a class type; return the p95 of a rerun."""
    found = await students.attend(
        port, "attention", "Probe sentence", students=count, rounds=rounds, think=think
    )
    return statistics.quantiles(found, n=100, method="inclusive")[94]


def start(store: Store, seed: int) -> str:
    """Queue a training that lasts longer than the measurement."""
    config = TrainConfig.of("attention", steps=20_000, seed=seed)
    work = Work("train", config, Source("stories"))
    return store.submit(work, f"person {seed} at {time.time()}", facts=FACTS).id


@contextmanager
def serving(runs: Path) -> Generator[int]:
    """Run the app on the committed checkpoints; give its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app/main.py", "--server.port", str(port)]
    environment = {**os.environ, "WORDLM_RUNS": str(runs), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            for _ in range(150):
                with suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2)
                    break
                time.sleep(0.2)
            yield port
        finally:
            process.terminate()


def main() -> None:
    """Print both numbers and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--students", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--think", type=float, default=4.0)
    args = parser.parse_args()
    alone, beside = measure(args.students, args.rounds, args.repeats, args.think)
    print(
        f"{args.students} students, p95 of a rerun: {alone:.0f} ms; beside two jobs {beside:.0f} ms"
    )
    print(f"{beside / alone:.2f}x")


if __name__ == "__main__":
    main()
