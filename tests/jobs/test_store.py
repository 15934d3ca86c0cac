"""The run folders: states that never flip, two writers, bounds, names, and who may do what."""

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from app.jobs import folders
from app.jobs.bounds import Limits
from app.jobs.record import FINAL, NEXT, Event, Job, JobError, owner_of
from app.jobs.store import MAX_INTERRUPTIONS, Store
from app.jobs.work import OWN, Source, Work
from tests.jobs.conftest import ANN, BOB, FACTS, ROOT, gpt, mlp, states
from wordlm_core.errors import ConfigError, CorpusError, WordLMError
from wordlm_core.experiment import PRESETS
from wordlm_core.training import TrainConfig

LATER = time.time() + 15 * 86_400
HOLD = """
import sys, time
from pathlib import Path
from app.jobs.store import Store
store = Store(Path(sys.argv[1]))
with store.claim(sys.argv[2]):
    store.begin(sys.argv[2])
    print("running", flush=True)
    time.sleep(60)
"""


def quick(store: Store, person: str = ANN, **more) -> Job:
    """Submit what has been looked at already."""
    work = more.pop("work", None) or gpt(seed=more.pop("seed", 1))
    return store.submit(work, person, facts=FACTS, **more)


def start(store: Store, job: Job) -> "subprocess.Popen[str]":
    """Let another process claim a job and sit on it."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store.root), job.id],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "running\n"
    return process


def end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


def test_a_record_survives_the_file(store):
    presets = [preset.experiment for preset in PRESETS if preset.experiment.data != OWN]
    works = [
        gpt(),
        mlp(),
        Work("benchmark", TrainConfig.of("attention", steps=10), Source("stories"), (11, 29)),
        Work.of_experiment(presets[0], Source(presets[0].data)),
    ]
    for work in works:
        job = quick(store, work=work, name="a")
        assert Store(store.root).job(job.id) == job
        assert Job.from_json(json.loads(json.dumps(job.to_json()))) == job
        assert Work.from_json(work.to_json()) == work


@pytest.mark.parametrize(
    "broken", ["", "{}", "[]", '{"id": 3}', "\\u0000", '{"state": "won"}', "[" * 5000]
)
def test_a_record_that_is_none_hides_one_run_and_no_other(store, broken):
    good, bad = quick(store), quick(store, BOB)
    (store.folder(bad.id) / "job.json").write_text(broken)
    fresh = Store(store.root)
    assert [job.id for job in fresh.jobs()] == [good.id]
    with pytest.raises(JobError, match="there is no run"):
        fresh.job(bad.id)


@pytest.mark.parametrize(
    "change",
    [
        *({"created": None}, {"queued": "x"}, {"started": "x"}, {"state": ["queued"]}),
        *({"private": 0}, {"attempt": True}, {"facts": []}, {"history": [1]}, {"id": "x"}),
        *({"history": [["queued", 1e300, ""]]}, {"history": [["zzz", 1.0, ""]]}),
        *({"created": float("nan")}, {"queued": float("inf")}, {"started": -1}),
        *({"facts": FACTS | {"parameters": bad}} for bad in (None, "x", float("nan"), 10**30)),
        {"facts": FACTS | {"floor": 10**400}},
        *({"history": [["queued", "x", ""]]}, {"history": []}, {"work": {}}, {"owner": None}),
    ],
)
def test_a_record_of_other_types_hides_one_run_and_no_other(store, change):
    good, bad = quick(store), quick(store, BOB)
    record = {**bad.to_json(), **change}
    (store.folder(bad.id) / "job.json").write_text(json.dumps(record))
    fresh = Store(store.root)
    assert [job.id for job in fresh.jobs()] == [job.id for job in fresh.queue()] == [good.id]


def test_a_curve_that_cannot_be_read_is_empty_and_breaks_nobody(store):
    job = quick(store)
    (store.folder(job.id) / "progress.jsonl").mkdir()
    (store.folder(job.id) / "log.txt").mkdir()
    assert store.progress(job.id).step == 0
    assert store.log(job.id) == ""


def test_the_instructors_cancel_says_whose_it_was(store):
    waiting, running = quick(store), quick(store, BOB)
    assert store.cancel(waiting.id, "teacher", instructor=True).reason == "by the instructor"
    with store.claim(running.id):
        store.begin(running.id)
        store.cancel(running.id, "teacher", instructor=True)
        assert store.end(running.id, "cancelled").reason == "by the instructor"


def test_a_lock_that_cannot_be_opened_breaks_nobody(store):
    job, other = quick(store), quick(store, BOB)
    end(start(store, job))
    (store.folder(job.id) / "writer.lock").unlink()
    (store.folder(job.id) / "writer.lock").mkdir()
    assert {each.id for each in Store(store.root).jobs()} == {job.id, other.id}


def test_every_way_through_the_states(store):
    """From each state, what is allowed is done and all else is refused, on the record itself."""
    for state, allowed in NEXT.items():
        for wanted in NEXT:
            job = Job.from_json(quick(store, seed=7).to_json() | {"state": state})
            if wanted in allowed:
                assert store._change(job, wanted).state == wanted
            else:
                with pytest.raises(JobError):
                    store._change(job, wanted)


def test_the_writer_died_and_the_first_look_says_so(store):
    job = quick(store)
    process = start(store, job)
    assert store.job(job.id).state == "running"
    with pytest.raises(JobError, match="another process"), store.claim(job.id, patience=0.1):
        pass
    end(process)
    assert Store(store.root).job(job.id).state == "interrupted"
    store.requeue(job.id)
    assert states(store.job(job.id)) == ["queued", "running", "interrupted", "queued"]


def test_one_that_dies_again_and_again_fails_with_the_reason(store):
    job = quick(store)
    for _ in range(MAX_INTERRUPTIONS):
        with store.claim(job.id):
            assert store.begin(job.id) is not None
        found = store.job(job.id)  # nobody holds it: it died
        store.requeue(job.id)
    assert (found.state, found.interruptions) == ("failed", MAX_INTERRUPTIONS - 1)
    assert "5 times" in found.reason
    assert store.resume(job.id, ANN).interruptions == 0


def test_cancel_fifty_times_in_a_row(store):
    job = quick(store)
    process = start(store, job)
    try:
        for _ in range(50):
            assert store.cancel(job.id, ANN).state == "stopping"
        assert states(store.job(job.id)) == ["queued", "running", "stopping"]
    finally:
        end(process)
    for _ in range(50):
        assert store.cancel(job.id, ANN).state == "cancelled"
    assert states(store.job(job.id)) == ["queued", "running", "stopping", "cancelled"]


def test_cancel_while_queued_and_while_it_starts(store):
    job = quick(store)
    assert store.cancel(job.id, ANN).state == "cancelled"
    with store.claim(job.id):
        assert store.begin(job.id) is None  # a process on its way finds nothing to do
        store.end(job.id, "finished")
    assert store.job(job.id).state == "cancelled"


def test_cancel_in_the_last_step_is_cancelled_and_never_flips(store):
    job = quick(store)
    with store.claim(job.id):
        store.begin(job.id)
        store.cancel(job.id, ANN)
        store.end(job.id, "finished")
    assert store.job(job.id).state == "cancelled"
    late = quick(store, seed=2)
    with store.claim(late.id):
        store.begin(late.id)
        store.end(late.id, "finished")
        with pytest.raises(JobError, match="has finished"):
            store.cancel(late.id, ANN)
    assert store.job(late.id).state == "finished"
    with pytest.raises(JobError, match="only a cancelled or failed"):
        store.resume(late.id, ANN)


def test_many_at_once_cancel_and_resume_one_job(store):
    """Eight threads with stores of their own; every change is one that is allowed."""
    job = quick(store)
    errors: list[Exception] = []

    def act(store: Store) -> None:
        for _ in range(15):
            for what in (store.cancel, store.resume):
                try:
                    what(job.id, ANN)
                except JobError:
                    pass  # another one was quicker
                except Exception as error:
                    errors.append(error)

    threads = [threading.Thread(target=act, args=(Store(store.root),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    seen = states(Store(store.root).job(job.id))
    assert all(after in NEXT[before] for before, after in itertools.pairwise(seen))


def test_a_mark_that_was_left_alone_still_ends_the_run(store):
    """Killed between the mark and the record: the run is cancelled, not started again."""
    job = quick(store)
    with store.claim(job.id):
        store.begin(job.id)
        (store.folder(job.id) / "cancel").touch()
        assert store.end(job.id, "cancelled").state == "cancelled"
    other = quick(store, BOB)
    process = start(store, other)
    (store.folder(other.id) / "cancel").touch()
    end(process)
    assert states(store.job(other.id)) == ["queued", "running", "stopping", "cancelled"]


def test_what_was_submitted_is_in_the_next_list(store):
    """Also while another thread is just listing what was there before."""
    stop = threading.Event()

    def list_on() -> None:
        while not stop.is_set():
            store.jobs()

    thread = threading.Thread(target=list_on)
    thread.start()
    try:
        for seed in range(8):
            job = quick(store, f"{seed}" * 32)
            assert job.id in {each.id for each in store.jobs()}
    finally:
        stop.set()
        thread.join()


def test_two_texts_of_one_name_are_two_runs(store):
    work = Work("train", TrainConfig.of("microgpt", steps=10), Source(OWN, label="corpus.txt"))
    one, same, two = (
        store.submit(work, ANN, documents=texts, facts=FACTS)
        for texts in (["anna"], ["anna"], ["otto"])
    )
    assert one.id == same.id != two.id


def test_a_long_check_of_one_holds_up_nobody_else(store, monkeypatch):
    inside, go_on = threading.Event(), threading.Event()

    def check(*_: object) -> dict[str, object]:
        inside.set()
        assert go_on.wait(10)
        return dict(FACTS)

    monkeypatch.setattr("app.jobs.bounds.require_trainable", check)
    thread = threading.Thread(target=lambda: store.submit(gpt(), ANN))
    thread.start()
    assert inside.wait(10)
    began = time.monotonic()
    quick(Store(store.root), BOB)
    assert time.monotonic() - began < 2
    go_on.set()
    thread.join()
    assert len(store.jobs()) == 2


def test_what_kills_and_damage_leave_is_swept_after_a_day(store):
    job = quick(store)
    for name in (f".{job.id}.new", f".{job.id}.deleted", "20200101-000000-abcdef"):
        (store.root / name).mkdir()
        (store.root / name / "corpus.jsonl").write_text("private")
    store.clear()
    assert len([path for path in store.root.iterdir() if path.is_dir()]) == 4
    for path in store.root.iterdir():
        os.utime(path, (0, 0))
    store.clear()
    assert [path.name for path in store.root.iterdir() if path.is_dir()] == [job.id]


def test_open_jobs_count_with_what_they_will_write_and_one_person_has_a_part(tmp_path):
    store = Store(tmp_path, Limits(megabytes=40))
    large = FACTS | {"parameters": 500_000}

    def fill(person: str) -> None:
        for seed in range(9):
            store.submit(mlp(seed=seed), person.format(seed), facts=large)

    with pytest.raises(JobError, match="your runs take more than 10 MB"):
        fill(ANN)
    with pytest.raises(JobError, match="no room on the disk"):
        fill("person {}")


def test_running_time_leaves_the_waiting_out(store):
    job = quick(store)
    at = [("queued", 0.0), ("running", 10.0), ("interrupted", 14.0), ("queued", 20.0)]
    at += [("running", 30.0), ("stopping", 35.0), ("cancelled", 36.0)]
    history = tuple(Event(state, when) for state, when in at)
    job = replace(job, history=history, queued=20.0)
    assert job.running_seconds() == 10.0
    assert job.running_seconds(of_this_attempt=True) == 6.0


def test_a_double_click_is_one_job_and_equal_names_are_two_runs(store):
    first, second = (quick(store, name="mine") for _ in range(2))
    assert first.id == second.id
    other = quick(store, BOB, name="mine")
    assert other.id != first.id
    assert {job.name for job in store.jobs()} == {"mine"}
    assert len({job.label for job in store.jobs()}) == 2
    store.cancel(first.id, ANN)
    assert quick(store, name="mine").id != first.id


def test_two_threads_that_click_at_once_make_one_job(store):
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda: made.append(quick(Store(store.root)).id)) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 6
    assert len(set(made)) == 1


@pytest.mark.parametrize(
    "name",
    [
        *("../../x", "a/b", "/tmp/x", "...", "", "x" * 300, "🦉", "$(touch x)", "<b>x</b>", "v1.2"),
        *("a.npz", "x\0y", "a\nb", "CON", "  spaces  "),
    ],
)
def test_a_name_is_a_label_and_never_a_path(store, name):
    job = quick(store, name=name)
    assert os.listdir(store.root.parent) == ["runs"]
    assert folders._ID.fullmatch(job.id)
    assert 1 <= len(job.name) <= 60
    assert job.name.isprintable()
    assert Store(store.root).job(job.id).name == job.name


@pytest.mark.parametrize("run", ["../x", "/etc", "", ".", "..", "x" * 300, "a\0b", "20261201"])
def test_an_address_is_no_path(store, run):
    quick(store)
    for act in (store.job, store.folder, store.progress, store.log):
        with pytest.raises(JobError):
            act(run)
    with pytest.raises(JobError):
        store.delete(run, "", instructor=True)


def test_somebody_else_may_look_and_nothing_more(store):
    job = quick(store)
    for act in (store.cancel, store.resume, store.delete):
        with pytest.raises(JobError, match="somebody else's"):
            act(job.id, BOB)
    with pytest.raises(JobError, match="somebody else's"):
        store.share(job.id, BOB, private=True)
    assert store.cancel(job.id, BOB, instructor=True).state == "cancelled"
    assert store.visible(BOB) == (store.job(job.id),)
    store.share(job.id, ANN, private=True)
    assert store.visible(BOB) == ()
    assert len(store.visible(ANN)) == len(store.visible(BOB, instructor=True)) == 1
    store.delete(job.id, ANN)
    assert store.jobs() == ()
    assert not list(store.root.glob(f"*{job.id}*"))


def test_a_persons_code_is_nowhere_in_the_folder(store):
    job = quick(store, name="x")
    assert job.owner == owner_of(ANN) != ANN
    for path in store.folder(job.id).iterdir():
        assert ANN.encode() not in path.read_bytes()


def test_an_open_run_is_not_deleted(store):
    job = quick(store)
    with pytest.raises(JobError, match="cancel it first"):
        store.delete(job.id, ANN)


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda: gpt(20_001), "20,001 steps are too many"),
        (lambda: gpt(0), "steps"),
        (lambda: gpt(d_model=17), "17"),
        (lambda: mlp(hidden=16_384, d_model=512), "16,384|parameters"),
        (lambda: mlp(context_length=500), "longest training document"),
        (
            lambda: Work("train", TrainConfig.of("mlp", steps=10), Source("stories", documents=2)),
            "split",
        ),
        (lambda: Work("train", TrainConfig.of("mlp", steps=10), Source("nowhere")), "no corpus"),
        (lambda: mlp(batch=65_536, context_length=64, d_model=512), "too much memory"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_it_waits(store, work, said):
    with pytest.raises(WordLMError, match=said):
        store.submit(work(), ANN)
    assert store.jobs() == ()


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        ([], "no document"),
        (["  "], "holds|document"),
        (["one word"] * 3, "split"),
        (["a b c"] * 200, "split"),
        ([f"a b c {i}" for i in range(200)], "context of 64 needs"),
    ],
)
def test_a_text_that_is_too_short_is_refused_with_what_is_needed(store, documents, said):
    work = Work("train", TrainConfig.of("attention", steps=10), Source(OWN, label="mine.txt"))
    with pytest.raises(CorpusError, match=said):
        store.submit(work, ANN, documents=documents)
    assert store.jobs() == ()
    assert not list(store.root.glob("2*"))


def test_too_long_a_text_is_refused(tmp_path):
    store = Store(tmp_path, Limits(corpus_megabytes=1))
    work = Work("train", TrainConfig.of("microgpt", steps=10), Source(OWN, label="mine.txt"))
    with pytest.raises(CorpusError, match="limit is 1 MB"):
        store.submit(work, ANN, documents=["x" * 1000] * 2000)


def test_a_model_that_is_too_large_is_refused(tmp_path):
    store = Store(tmp_path, Limits(parameters=4_000))
    with pytest.raises(ConfigError, match="4,192 parameters; the limit is 4,000"):
        store.submit(gpt(), ANN)


def test_the_queue_is_bounded_for_all_and_for_each(tmp_path):
    store = Store(tmp_path, Limits(waiting=5, waiting_each=3))
    for seed in range(3):
        quick(store, seed=seed)
    with pytest.raises(JobError, match="3 jobs of yours"):
        quick(store, seed=9)
    for seed in range(2):
        quick(store, BOB, seed=seed)
    with pytest.raises(JobError, match="the queue is full: 5"):
        quick(store, "c", seed=9)
    assert [store.place(job.id) for job in store.queue()] == [1, 2, 3, 4, 5]


def test_the_disk_is_bounded(tmp_path, monkeypatch):
    store = Store(tmp_path, Limits(megabytes=1))
    old = quick(store)
    store.cancel(old.id, ANN)
    (store.folder(old.id) / "checkpoint.npz").write_bytes(bytes(2_000_000))
    with pytest.raises(JobError, match="no room on the disk"):
        quick(store, seed=2)
    monkeypatch.setattr(time, "time", lambda: LATER)
    assert quick(store, seed=2)  # the old one is cleared away by rule
    assert [job.id for job in store.jobs()] != [old.id]
    assert len(store.jobs()) == 1


def test_only_what_ended_long_ago_is_cleared(store, monkeypatch):
    waiting, over = quick(store), quick(store, BOB)
    store.cancel(over.id, BOB)
    store.clear()
    assert len(store.jobs()) == 2
    monkeypatch.setattr(time, "time", lambda: LATER)
    store.clear()
    assert [job.id for job in store.jobs()] == [waiting.id]


def test_final_states_are_final():
    assert all(NEXT[state] in ((), ("queued",)) for state in FINAL)
