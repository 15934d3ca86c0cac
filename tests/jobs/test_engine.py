"""The queue with real processes: they run, in turn, are cancelled, and a loss that diverges.

Every test here runs on the embedded cluster and, with the chaos tests, on a scheduler with two
machines. What is killed on the way stands in `test_chaos.py`.
"""

import itertools
import json
import os
import signal
import time

import numpy as np
import psutil

from app.jobs import child, engine
from app.jobs.record import Job
from app.jobs.store import Store
from tests.jobs.conftest import (
    ANN,
    BOB,
    Queue,
    children_of,
    endless,
    gpt,
    mlp,
    states,
    trainers_of,
    wait_for,
)
from wordlm_core import checkpoint


def test_jobs_run_to_the_end_in_turn_and_open_as_checkpoints(store, queue):
    """A queues four, then B and C one each: they start after at most one of A's."""
    first = [store.submit(gpt(seed=seed), ANN) for seed in range(4)]
    others = [store.submit(mlp(), BOB), store.submit(gpt(), "c" * 32)]
    assert [job.owner for job in store.queue()[:3]] == [first[0].owner, *(o.owner for o in others)]
    with queue.on(store.root, workers=2):
        wait_for(lambda: all(job.is_final for job in store.jobs()), 120)
    done = [store.job(job.id) for job in (*first, *others)]
    begun = sorted(done, key=lambda job: job.started)
    assert {job.owner for job in begun[:3]} == {first[0].owner, *(o.owner for o in others)}
    for one, two in itertools.pairwise(sorted(done[:4], key=lambda job: job.started)):
        assert one.ended <= two.started, "two jobs of one person ran at once"
    for job in done:
        assert states(job) == ["queued", "running", "finished"]
        [(label, path)] = store.checkpoints(job)
        assert label == job.label
        opened = checkpoint.load(path)
        assert opened.section("training")["steps_done"] == job.steps
        curve = store.progress(job.id)
        assert curve.step == curve.steps == job.steps
        assert np.allclose(curve.losses, opened.losses(), atol=2e-5)
        assert not list(store.folder(job.id).glob("*.resume.npz"))


def test_a_running_job_is_cancelled_within_two_seconds_and_goes_on_when_asked(store, queue):
    job = store.submit(endless(), ANN)
    with queue.on(store.root):
        wait_for(lambda: store.progress(job.id).step > 3, 60)
        asked = time.monotonic()
        assert store.cancel(job.id, ANN).state == "stopping"
        wait_for(lambda: store.job(job.id).state == "cancelled", 5)
        assert time.monotonic() - asked < 2.0
        wait_for(lambda: not trainers_of(job.id), 2)  # the processor is free
        reached = checkpoint.load(store.checkpoints(store.job(job.id))[0][1])
        assert reached.section("training")["steps_done"] > 3

        assert store.resume(job.id, ANN).attempt == 2
        wait_for(lambda: store.job(job.id).state == "running", 30)
        wait_for(lambda: store.progress(job.id).step > reached.section("training")["steps_done"])
        [child] = trainers_of(job.id)
        os.kill(child.pid, signal.SIGSTOP)  # it cannot answer: it is ended
        asked = time.monotonic()
        store.cancel(job.id, ANN)
        wait_for(lambda: store.job(job.id).state == "cancelled", 5)
        assert 1.0 < time.monotonic() - asked < 2.5
    assert states(store.job(job.id)) == ["queued", "running", "stopping", "cancelled"] * 2


def test_a_loss_that_is_not_finite_fails_with_the_step_and_keeps_what_was_finite(store):
    diverging = store.submit(mlp(400, lr=1e6), ANN)
    exploding = store.submit(gpt(400, lr=1e5), BOB)
    with Queue("embedded").on(store.root, workers=2):
        wait_for(lambda: all(job.is_final for job in store.jobs()), 90)
    for job in (store.job(diverging.id), store.job(exploding.id)):
        assert job.state == "failed"
        assert "at step" in job.reason
        assert "learning rate" in job.reason
        [(_, path)] = store.checkpoints(job)
        assert all(np.isfinite(w).all() for w in checkpoint.load(path).model.weights.values())
        assert store.progress(job.id).step < 400


def test_an_engine_without_work_has_no_workers_and_stands_alone(store):
    job, queue = store.submit(gpt(), ANN), Queue("embedded")
    with queue.on(store.root) as machines, queue.machine(store.root):
        wait_for(lambda: store.job(job.id).is_final, 60)
        assert engine.is_working(store.root)
        wait_for(lambda: not children_of(machines.app.pid, "spawn_main"), 30)
        mine = psutil.Process(machines.app.pid)
        used = sum(mine.cpu_times()[:2])
        time.sleep(3)
        assert sum(mine.cpu_times()[:2]) - used < 0.15
    assert not engine.is_working(store.root)
    assert states(store.job(job.id)) == ["queued", "running", "finished"]


def test_a_task_that_comes_back_too_early_is_given_again_and_not_in_a_hurry(store):
    """The log cannot be written for a while: nobody spins, and then the job runs."""
    job = store.submit(gpt(), ANN)
    log = store.folder(job.id) / "log.txt"
    log.mkdir()
    with Queue("embedded").on(store.root) as machines:
        wait_for(lambda: children_of(machines.app.pid, "spawn_main"), 30)
        mine = psutil.Process(machines.app.pid)
        used = sum(mine.cpu_times()[:2])
        time.sleep(3)
        assert sum(mine.cpu_times()[:2]) - used < 1.0
        log.rmdir()
        wait_for(lambda: store.job(job.id).is_final, 60)
    assert store.job(job.id).state in ("finished", "failed")


def test_a_cancel_after_the_last_step_keeps_what_was_trained(store, monkeypatch):
    """The process is at its test; resumed, it is at its end and does not begin anew."""
    job = store.submit(mlp(200), ANN)
    end = Store.end

    def cancelled_first(self: Store, run: str, state: str, reason: str = "") -> Job:
        self.cancel(run, ANN)
        return end(self, run, state, reason)

    with monkeypatch.context() as late:
        late.setattr(Store, "end", cancelled_first)
        late.setattr(child, "die_with", lambda parent: None)
        late.setattr(child, "is_orphan", lambda parent: False)
        late.setattr(os, "nice", lambda by: 0)
        child.main(store.root, job.id, 0)
    assert store.job(job.id).state == "cancelled"
    store.resume(job.id, ANN)
    with Queue("embedded").on(store.root):
        wait_for(lambda: store.job(job.id).is_final, 60)
    assert store.job(job.id).state == "finished"
    told = (store.folder(job.id) / "progress.jsonl").read_text()
    steps = [json.loads(line)["step"] for line in told.splitlines()]
    assert steps == sorted(set(steps)), "it trained steps again"
