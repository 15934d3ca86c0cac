"""Kills, races and full disks, with real processes: `make chaos`."""

import contextlib
import itertools
import json
import os
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from app.jobs.record import JobError
from app.jobs.store import Store
from bench import beside_jobs
from tests.jobs.conftest import (
    ANN,
    BOB,
    ROOT,
    Queue,
    endless,
    free_port,
    gpt,
    mlp,
    states,
    trainers_of,
    wait_for,
)
from wordlm_core import checkpoint

pytestmark = pytest.mark.chaos

WRITE = """
import sys, time
from pathlib import Path
from app.jobs.progress import Writer
from app.jobs.store import Store
from wordlm_core.training import Progress
root, run, until = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
store = Store(root)
with store.claim(run):
    store.begin(run)
    writer = Writer(root / run / "progress.jsonl")
    step = 0
    while time.time() < until and step < 20_000:
        step += 1
        writer.report(Progress(step, 20_000, step / 8, 1.0, step, step / 100))
        if step % 50 == 0:
            store.note(run, {"parameters": step})
        time.sleep(0.003)
    store.note(run, {"parameters": step})
    writer.close()
    store.end(run, "finished")
"""


def weights_of(store: Store, run: str) -> dict[str, np.ndarray]:
    [(_, path)] = store.checkpoints(store.job(run))
    return dict(checkpoint.load(path).model.weights)


def assert_equal_weights(store: Store, run: str, other: str) -> None:
    one, two = weights_of(store, run), weights_of(store, other)
    for name, weights in two.items():
        assert np.allclose(one[name], weights, atol=1e-6, rtol=0), name


@pytest.mark.parametrize("victim", ["child", "worker"])
def test_a_killed_worker_leaves_the_job_interrupted_and_it_goes_on(store, queue, victim):
    job, whole = store.submit(mlp(3000), ANN), store.submit(mlp(3000), BOB)
    with queue.on(store.root, workers=2):
        wait_for(lambda: store.progress(job.id).step > 400, 90)
        [child] = trainers_of(job.id)
        before = time.monotonic()
        (child if victim == "child" else child.parent()).kill()
        wait_for(lambda: not child.is_running(), 5)  # it died with its parent
        wait_for(lambda: "interrupted" in states(store.job(job.id)), 10)
        assert time.monotonic() - before < 10
        wait_for(lambda: store.job(job.id).is_final and store.job(whole.id).is_final, 90)
    wanted = ["queued", "running", "interrupted", "queued", "running", "finished"]
    assert states(store.job(job.id)) == wanted
    assert_equal_weights(store, job.id, whole.id)


@pytest.mark.parametrize("victim", ["app", "scheduler"])
def test_a_killed_app_or_scheduler_loses_nothing(store, queue, victim):
    if victim == "scheduler" and queue.kind == "embedded":
        victim = "app"  # they are one process
    job, whole = store.submit(mlp(3000), ANN), store.submit(mlp(3000), BOB)
    with queue.on(store.root, workers=2) as machines:
        wait_for(lambda: store.progress(job.id).step > 400, 90)
        getattr(machines, victim).kill()
        if queue.kind == "embedded":
            wait_for(lambda: not trainers_of(job.id) and not trainers_of(whole.id), 10)
            with queue.machine(store.root, 2):
                wait_for(lambda: all(each.is_final for each in store.jobs()), 90)
        elif victim == "scheduler":
            machines.scheduler.wait()
            with queue.scheduler(store.root):
                wait_for(lambda: all(each.is_final for each in store.jobs()), 150)
        else:  # the machine that handed the jobs out is gone: another one takes over
            wait_for(lambda: all(each.is_final for each in store.jobs()), 150)
    assert {store.job(each.id).state for each in (job, whole)} == {"finished"}
    assert_equal_weights(store, job.id, whole.id)


def test_killed_again_and_again_at_any_moment(store):
    """Also in the middle of a save: the earlier checkpoint loads, and nothing stray stays."""
    draw = random.Random(1)
    job, whole = store.submit(mlp(4000), ANN), store.submit(mlp(4000), BOB)
    with Queue("embedded").on(store.root, workers=2):
        for _ in range(8):
            before = store.progress(job.id).step
            wait_for(lambda before=before: store.progress(job.id).step > before, 60)
            time.sleep(draw.uniform(0, 0.8))
            for child in trainers_of(job.id):
                child.kill()
            for _, path in store.checkpoints(store.job(job.id)):
                checkpoint.load(path)
            wait_for(lambda: store.job(job.id).state != "running" or trainers_of(job.id), 10)
            if store.job(job.id).state == "failed":
                assert "5 times" in store.job(job.id).reason
                store.resume(job.id, ANN)
            if store.job(job.id).state == "finished":
                break
        wait_for(lambda: all(each.is_final for each in store.jobs()), 120)
    assert store.job(job.id).state == "finished"
    assert_equal_weights(store, job.id, whole.id)
    assert not [path for path in store.folder(job.id).iterdir() if "tmp" in path.name]


def test_a_sweep_by_two_people_runs_to_the_end_with_a_worker_killed(store, queue):
    sweep = [store.submit(mlp(600, d_model=d), ANN, name="a sweep") for d in (8, 16, 24)]
    sweep += [store.submit(gpt(300, d_model=d), BOB, name="a sweep") for d in (8, 16, 32)]
    with queue.on(store.root, workers=2):
        wait_for(lambda: any(job.state == "running" for job in store.jobs()), 60)
        running = next(job for job in store.jobs() if job.state == "running")
        for child in trainers_of(running.id):
            child.parent().kill()
        wait_for(lambda: all(job.is_final for job in store.jobs()), 180)
    assert [job.state for job in store.jobs()] == ["finished"] * 6
    spans = sorted((job.started, job.ended) for job in store.jobs() if job.owner == sweep[0].owner)
    assert all(one[1] <= two[0] for one, two in itertools.pairwise(spans))


def test_the_app_is_killed_and_started_again(store):
    """With it die engine, workers and trainers; nobody has to open a page for them to go on."""
    job = store.submit(endless(), ANN)
    ours = {**os.environ, "WORDLM_RUNS": str(store.root)}
    command = [sys.executable, "-m", "app", "--server.port", str(free_port())]
    for _ in range(2):
        app = subprocess.Popen(command, cwd=ROOT, env=ours, stdout=subprocess.DEVNULL)
        wait_for(lambda: store.job(job.id).state == "running", 60)
        seen = store.progress(job.id).step
        wait_for(lambda seen=seen: store.progress(job.id).step > seen + 5, 60)
        app.kill()
        app.wait()
        wait_for(lambda: not trainers_of(job.id), 5)
        wait_for(lambda: store.job(job.id).state == "interrupted", 10)
    assert store.cancel(job.id, ANN).state == "cancelled"


def test_fifty_cancels_at_every_moment_of_a_life(store):
    """Queued, starting, running, in the last step: never a state without a name, never a flip."""
    draw = random.Random(2)
    ends: list[str] = []
    with Queue("embedded").on(store.root, workers=2):
        for turn in range(50):
            person = ANN if turn % 2 else BOB
            job = store.submit(gpt(draw.choice((1, 60, 400)), seed=turn), person)
            time.sleep(draw.uniform(0, 1.2))
            with contextlib.suppress(JobError):  # it has finished already
                store.cancel(job.id, person)
            wait_for(lambda job=job: store.job(job.id).is_final, 10)
            ends.append(store.job(job.id).state)
        time.sleep(3)
    now = {job.id: job.state for job in Store(store.root).jobs()}
    assert list(now.values()) == ends[::-1]
    assert set(ends) <= {"cancelled", "finished"}
    assert "cancelled" in ends


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 8 MB, where this user may make one."""
    where = tmp_path / "disk"
    where.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(where)], check=False
    )
    if made.returncode:
        pytest.skip("only root can mount a small disk")
    yield where
    subprocess.run(["umount", "--lazy", str(where)], check=True)


def test_a_full_disk_fails_with_the_reason_and_the_earlier_checkpoint_loads(
    small_disk, monkeypatch
):
    monkeypatch.setattr("app.jobs.bounds._FREE_BYTES", 0)
    store = Store(small_disk / "runs")
    job = store.submit(mlp(4_000, d_model=64, hidden=64), ANN)
    with Queue("embedded").on(store.root):
        wait_for(lambda: store.checkpoints(store.job(job.id)), 60)
        hog = small_disk / "hog"
        free = os.statvfs(small_disk)
        hog.write_bytes(bytes(max(0, free.f_bavail * free.f_frsize - 40_000)))
        wait_for(lambda: store.job(job.id).is_final, 60)
    ended = store.job(job.id)
    assert ended.state == "failed"
    assert "No space left" in ended.reason
    checkpoint.load(store.checkpoints(ended)[0][1])
    hog.unlink()
    store.resume(job.id, ANN)
    assert not list(store.folder(job.id).glob("*.tmp"))


def poll(store: Store, runs: list[str], until: float, errors: list[Exception]) -> None:
    """Do what a page does, and see that the steps only grow."""
    last = dict.fromkeys(runs, 0)
    while time.time() < until:
        try:
            assert len(store.jobs()) == len(runs)
            for run in runs:
                curve = store.progress(run)
                assert curve.step >= last[run]
                assert np.array_equal(curve.losses, np.arange(1, curve.step + 1) / 8)
                last[run] = curve.step
        except Exception as error:
            errors.append(error)
        time.sleep(0.2)


def test_fifty_pollers_and_four_writers_for_a_minute(store):
    """No error, no lost line, no torn line."""
    runs = [store.submit(gpt(20_000, seed=seed), f"{seed}" * 32).id for seed in range(4)]
    until, errors = time.time() + 60, []
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITE, str(store.root), run, str(until)], cwd=ROOT)
        for run in runs
    ]
    stores = [Store(store.root) for _ in range(3)]
    pollers = [
        threading.Thread(target=poll, args=(stores[i % 3], runs, until, errors)) for i in range(50)
    ]
    for thread in pollers:
        thread.start()
    for thread in pollers:
        thread.join()
    assert errors == []
    for run, writer in zip(runs, writers, strict=True):
        assert writer.wait(30) == 0
        done = store.job(run)
        assert states(done) == ["queued", "running", "finished"]
        lines = (store.folder(run) / "progress.jsonl").read_bytes().splitlines()
        steps = [json.loads(line)["step"] for line in lines]
        assert steps == list(range(1, len(lines) + 1))
        assert len(steps) == done.facts["parameters"] > 1000


def test_an_encrypted_link_lets_nobody_in_without_a_certificate(store, tmp_path):
    ours, theirs = certificates(tmp_path / "ours"), certificates(tmp_path / "theirs")
    queue = Queue("external", **ours)
    queue.protocol = "tls"
    with queue.scheduler(store.root), queue.machine(store.root):
        job = store.submit(gpt(), ANN)
        wait_for(lambda: store.job(job.id).is_final, 90)
        assert store.job(job.id).state == "finished"
        knock = (
            "from distributed import Client; import sys;"
            f"Client('tls://127.0.0.1:{queue.port}', timeout='4s'); print('in')"
        )
        asked = {
            "nobody": os.environ,
            "somebody else": {**os.environ, **theirs},
            "we": {**os.environ, **ours},
        }
        inside = {
            who: subprocess.run(
                [sys.executable, "-c", knock], env=environment, capture_output=True, check=False
            ).stdout
            for who, environment in asked.items()
        }
    assert inside == {"nobody": b"", "somebody else": b"", "we": b"in\n"}


def certificates(folder) -> dict[str, str]:
    """Make an authority and one certificate, as docs/jobs.md says; return Dask's settings."""
    folder.mkdir()
    subprocess.run(["bash", str(ROOT / "docs/make_certificates.sh"), str(folder)], check=True)
    key = f"{folder}/lab.key"
    of = {
        f"DASK_DISTRIBUTED__COMM__TLS__{role}__{what}": value
        for role in ("SCHEDULER", "WORKER", "CLIENT")
        for what, value in (("CERT", f"{folder}/lab.crt"), ("KEY", key))
    }
    return {
        **of,
        "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": f"{folder}/ca.crt",
        "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true",
    }


def test_two_trainings_do_not_double_what_a_class_waits():
    alone, beside = beside_jobs.measure(30, rounds=5, repeats=1, think=3.0)
    assert beside < 2 * alone, f"p95 of a rerun: {alone:.0f} ms, beside two jobs {beside:.0f} ms"
