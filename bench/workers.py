"""One sweep of small jobs on 1, 2 and 4 workers: how long it takes, side by side in one run.

Twelve people start one job each, so nobody waits for a turn. The time counts from the first
start to the last end; workers are ready before it. Numbers are of this machine and its cores.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from app.jobs.store import Store
from app.jobs.work import Source, Work
from wordlm_core.training import TrainConfig

ROOT = Path(__file__).resolve().parents[1]
JOBS = 12
FACTS = {"parameters": 1, "vocab_size": 100, "uniform": 4.6, "floor": None, "floor_of": ""}


def sweep(workers: int, steps: int) -> tuple[float, float]:
    """Run all jobs; return the seconds from the first start to the last end, and of training."""
    sizes = {"d_model": 32, "hidden": 64, "context_length": 16, "batch": 128}
    source = Source("stories", documents=300)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "runs")
        for seed in range(JOBS):
            config = TrainConfig.of("attention", steps=steps, seed=seed, **sizes)
            store.submit(Work("train", config, source), f"person {seed}", facts=FACTS)
        command = [sys.executable, "-m", "app.jobs", "worker", "--workers", str(workers)]
        environment = {**os.environ, "WORDLM_RUNS": str(store.root), "OMP_NUM_THREADS": "1"}
        with subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            while any(job.is_open for job in store.jobs()):
                time.sleep(0.2)
            process.terminate()
        jobs = store.jobs()
        assert {job.state for job in jobs} == {"finished"}, [job.reason for job in jobs]
        ended = max(job.ended or 0.0 for job in jobs)
        training = sum(store.progress(job.id).seconds for job in jobs)
        return ended - min(job.started or ended for job in jobs), training


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    steps = parser.parse_args().steps
    print(f"{JOBS} jobs of {steps} steps, {os.cpu_count()} cores")
    first = None
    for workers in (1, 2, 4):
        seconds, training = sweep(workers, steps)
        first = first or seconds
        print(
            f"{workers} worker{'s' if workers > 1 else ' '}  {seconds:6.1f} s  "
            f"{first / seconds:4.2f}x  ({training:.1f} s of training in all)"
        )


if __name__ == "__main__":
    main()
