"""The pool of ready processes, with real ones: killed, cancelled, replaced, orphaned."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from app import settings, state
from app.jobs import pool as pool_module
from app.jobs.pool import Pool, QuickError, Ticket
from wordlm_core import experiment, planning
from wordlm_core.corpora import stories
from wordlm_core.errors import ConfigError
from wordlm_core.experiment import OWN, SEEDS, Experiment, Result
from wordlm_core.planning import Plan
from wordlm_core.training import TrainConfig

ROOT = Path(__file__).resolve().parents[2]
NAMES = [
    *("oranel", "tivo", "masu", "belinara", "kex", "junoth"),
    *("arvela", "pilo", "sumari", "denk", "oluvia", "tamberlin"),
]
SHORT, LONG = 40, 20_000


def asked(steps: int = SHORT, **settings) -> dict:
    tried = Experiment(data=OWN, steps=steps, d_model=8, n_head=1, **settings)
    return {"task": "run", "experiment": tried.to_json(), "documents": NAMES}


def until(condition, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def trains(ticket: Ticket) -> bool:
    return ticket.progress is not None


@pytest.fixture(autouse=True, scope="module")
def _no_other_pool():
    """The app's own may have been started by the tests of pages."""
    state.quick_pool.clear()


@pytest.fixture
def pool():
    made = Pool(2)
    yield made
    made.close()


@pytest.fixture
def single():
    made = Pool(1)
    yield made
    made.close()


# -- what comes back


def test_a_request_gives_the_result_that_running_it_here_gives(pool):
    ticket = pool.submit("ann", "run", asked())
    assert ticket.wait(10.0)
    assert (ticket.state, ticket.place) == ("finished", 0)
    read = Result.from_json(ticket.result())
    tried = Experiment(data=OWN, steps=SHORT, d_model=8, n_head=1)
    here = experiment.run(tried, experiment.own_list(NAMES))
    assert read.losses.tolist() == here.losses.tolist()
    assert (read.samples, read.audit) == (here.samples, here.audit)


def test_the_same_request_of_another_person_is_answered_from_memory(pool):
    first = pool.submit("ann", "run", asked())
    assert first.wait(10.0)
    second = pool.submit("bob", "run", asked())
    assert second.state == "finished"
    assert second.result() == first.result()
    other_list = asked() | {"documents": NAMES[:5]}
    assert pool.submit("bob", "run", other_list).state != "finished"


def test_a_look_counts_without_training(pool):
    ticket = pool.submit("ann", "run", asked() | {"task": "look"})
    assert ticket.wait(10.0)
    assert ticket.result() == experiment.look(experiment.own_list(NAMES), 16)


def test_progress_is_reported_about_ten_times_a_second(single):
    ticket = single.submit("ann", "run", asked(LONG))
    until(lambda: trains(ticket))
    heard, end = set(), time.monotonic() + 1.0
    while time.monotonic() < end:
        heard.add(ticket.progress)
        time.sleep(0.002)
    assert 2 <= len(heard) <= 12
    assert all(0 < step <= steps == LONG * SEEDS for step, steps, _ in heard)


def test_a_result_is_not_there_before_the_end(single):
    ticket = single.submit("ann", "run", asked(LONG))
    with pytest.raises(QuickError, match="still"):
        ticket.result()
    assert not ticket.wait(0.0)


GARBAGE = {
    "no task": {"experiment": {}},
    "no experiment": {"task": "run"},
    "empty": {},
    "another type": asked() | {"experiment": {"steps": "many"}},
    "no such setting": asked() | {"experiment": {"rm": "-rf"}},
    "a number in the list": asked() | {"documents": ["a", 3]},
    "no list": asked() | {"documents": "abc"},
    "an empty list": asked() | {"documents": []},
    "too much work": {
        "task": "run",
        "experiment": {"data": OWN, "steps": LONG, "d_model": 64, "n_layer": 4, "context": 64},
        "documents": NAMES,
    },
}


def assert_refused(single: Pool, lane: str, requests: dict[str, dict], seconds: float) -> None:
    """See each request refused in a sentence, by one process that outlives them all."""
    pids = set()
    for name, request in requests.items():
        ticket = single.submit("ann", lane, request)
        assert ticket.wait(seconds)
        assert ticket.state == "failed", name
        with pytest.raises(QuickError) as refused:
            ticket.result()
        assert "\n" not in str(refused.value)
        assert "ended" not in str(refused.value), name
        pids |= set(children())
    assert len(pids) == 1


def test_garbage_is_one_sentence_and_the_process_goes_on(single):
    assert_refused(single, "run", GARBAGE, 10.0)
    after = single.submit("ann", "run", asked())
    assert after.wait(10.0)
    assert after.state == "finished"


def test_lines_that_are_no_json_are_refused_by_the_process():
    lines = ["nonsense", "[1, 2]", "[" * 100_000, "", json.dumps(asked(5))]
    worker = subprocess.run(
        [sys.executable, "-m", "app.jobs.quick", str(os.getpid())],
        cwd=ROOT,
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    answers = [json.loads(line) for line in worker.stdout.splitlines()]
    ends = [set(answer) for answer in answers if "progress" not in answer]  # of a slow machine
    assert ends == [{"error"}] * 4 + [{"result"}]
    assert worker.stderr == ""


# -- plans


SIZES = {"steps": 50, "d_model": 8, "hidden": 8, "context_length": 12, "batch": 16}


def planned(family: str = "mlp", *, path: Path | None = None, **changes) -> dict:
    sizes = {**SIZES, "batch": 1} if family == "microgpt" else SIZES
    source = {"corpus": "stories", "profile": None, "documents": 120}
    if path is not None:
        source = {"corpus": OWN, "label": "tales.txt"}
    config = TrainConfig.of(family, **sizes).to_json()
    return {
        "task": "plan",
        "config": config,
        "source": source,
        "path": path and str(path),
        **changes,
    }


@pytest.fixture
def tales(tmp_path) -> Path:
    path = tmp_path / "corpus.jsonl"
    texts = stories.load(documents=120).documents
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


@pytest.mark.parametrize("family", ["attention", "microgpt"])
def test_a_plan_is_that_of_the_training_and_reports_nothing_before(single, family):
    ticket = single.submit("ann", "plan", planned(family))
    assert ticket.wait(30.0)
    read = Plan.from_json(ticket.result())
    config, corpus = TrainConfig.from_json(planned(family)["config"]), stories.load(documents=120)
    wanted = planning.plan(config, corpus, budget=0.0)
    for name in ("facts", "audit", "preview", "unknown_share"):
        assert getattr(read, name) == getattr(wanted, name)
    assert read.seconds > 0
    assert ticket.progress is None


def test_a_text_of_ones_own_is_planned_by_its_file_and_read_anew_when_that_changes(single, tales):
    first = single.submit("ann", "plan", planned(path=tales))
    assert first.wait(30.0)
    assert first.result()["facts"]["floor"] is None
    assert first.result()["audit"]["documents"] == 120
    tales.write_text("".join(tales.read_text().splitlines(keepends=True)[:110]))
    second = single.submit("ann", "plan", planned("attention", path=tales))
    assert second.wait(30.0)
    assert second.result()["audit"]["documents"] == 110
    assert len(set(children())) == 1


def test_a_plan_of_what_cannot_be_is_one_sentence_and_the_process_goes_on(single, tales):
    wrong = {
        "no config": planned(config=None),
        "a setting of another type": planned(config={"family": "mlp", "steps": True}),
        "no such family": planned(config={"family": "rnn"}),
        "no source": planned(source=None),
        "a source that is no record": planned(source=["stories"]),
        "no such corpus": planned(source={"corpus": "/etc/passwd"}),
        "no such profile": planned(source={"corpus": "stories", "profile": "huge"}),
        "no document": planned(source={"corpus": "stories", "documents": 0}),
        "something else": planned(source={"corpus": "stories", "shell": "rm"}),
        "an own one without its file": planned(path=tales) | {"path": None},
        "a named one with a file": planned() | {"path": str(tales)},
        "a file that is no text": planned(path=tales) | {"path": 3},
        "a file that is not there": planned(path=tales.with_name("none.jsonl")),
        "a file that cannot be": planned(path=tales) | {"path": "a\0b"},
        "too few documents": planned(source={"corpus": "stories", "documents": 2}),
        "heads": planned(
            config=TrainConfig.of("attention", **{**SIZES, "d_model": 10, "n_head": 4}).to_json()
        ),
    }
    assert_refused(single, "plan", wrong, 30.0)


# -- people and the queue


def test_two_people_run_at_once(pool):
    tickets = [pool.submit(person, "run", asked(LONG, seed=i)) for i, person in enumerate("ab")]
    until(lambda: all(map(trains, tickets)))
    assert [ticket.state for ticket in tickets] == ["running", "running"]
    assert len(set(pool.processes())) == 2


def test_a_person_has_one_running_and_a_newer_one_takes_the_place_of_the_waiting(pool):
    running = pool.submit("ann", "run", asked(LONG))
    until(lambda: running.state == "running")
    second = pool.submit("ann", "run", asked(seed=2))
    assert (second.state, second.place) == ("queued", 1)
    third = pool.submit("ann", "run", asked(seed=3))
    assert second.state == "cancelled"
    with pytest.raises(QuickError, match="a newer experiment took its place"):
        second.result()
    time.sleep(0.2)  # a process is free, and still the person's second one waits
    assert (third.state, third.place) == ("queued", 1)
    bob = pool.submit("bob", "run", asked(seed=4))
    assert bob.wait(10.0)
    assert third.state == "queued"
    running.cancel()
    assert third.wait(10.0)
    assert third.state == "finished"


def test_what_a_person_asks_for_at_once_holds_one_process_and_the_next_person_has_the_other(pool):
    long_run = pool.submit("ann", "run", asked(LONG))
    until(lambda: long_run.state == "running")
    baseline = pool.submit("ann", "baseline", asked(LONG, seed=2))
    look = pool.submit("ann", "look", asked() | {"task": "look"})
    assert [each.place for each in (long_run, baseline, look)] == [0, 1, 2]
    bob = pool.submit("bob", "run", asked(seed=3))
    assert bob.wait(10.0)
    assert bob.state == "finished"
    assert [each.state for each in (long_run, baseline, look)] == ["running", "queued", "queued"]
    newer = pool.submit("ann", "baseline", asked(seed=4))
    assert (baseline.state, newer.place, look.place) == ("cancelled", 1, 2)
    long_run.cancel()
    assert newer.wait(10.0)
    assert look.wait(10.0)
    assert (newer.state, look.state) == ("finished", "finished")


def test_the_same_click_twice_is_one_run(single):
    first = single.submit("ann", "run", asked(LONG))
    assert single.submit("ann", "run", asked(LONG)) is first
    until(lambda: first.state == "running")
    assert single.submit("ann", "run", asked(LONG)) is first


def test_a_class_with_the_same_preset_costs_one_run(single):
    blocker = single.submit("first", "run", asked(LONG))
    until(lambda: blocker.state == "running")
    tickets = [single.submit(f"person {i}", "run", asked()) for i in range(20)]
    assert [ticket.place for ticket in tickets] == list(range(1, 21))
    blocker.cancel()
    assert all(ticket.wait(10.0) for ticket in tickets)
    assert len({ticket.result()["seconds"] for ticket in tickets}) == 1


def test_the_queue_is_bounded():
    pool = Pool(1, longest=2)
    try:
        running = pool.submit("ann", "run", asked(LONG))
        until(lambda: running.state == "running")
        waiting = [pool.submit(person, "run", asked(seed=5)) for person in "bc"]
        with pytest.raises(QuickError, match="2 experiments are waiting already"):
            pool.submit("d", "run", asked(seed=6))
        assert pool.submit("c", "run", asked(seed=7)).place == 2  # one's own place can be used
        assert [ticket.state for ticket in waiting] == ["queued", "cancelled"]
    finally:
        pool.close()
    assert running.state == "cancelled"


# -- ends


def test_cancelling_ends_the_process_and_the_next_one_runs(single):
    ticket = single.submit("ann", "run", asked(LONG))
    until(lambda: trains(ticket))
    (pid,) = single.processes()
    ticket.cancel()
    assert ticket.state == "cancelled"
    until(lambda: not is_running(pid), 2.0)
    after = single.submit("ann", "run", asked())
    assert after.wait(10.0)
    assert after.state == "finished"
    ticket.cancel()
    assert ticket.state == "cancelled"


def test_a_process_killed_in_its_run_is_replaced_and_the_run_still_ends(single):
    ticket = single.submit("ann", "run", asked(1_500))
    until(lambda: trains(ticket))
    (first,) = single.processes()
    os.kill(first, signal.SIGKILL)
    assert ticket.wait(20.0)
    assert ticket.state == "finished"
    assert len(ticket.result()["losses"]) == 1_500


def test_a_run_whose_process_dies_twice_has_failed(single):
    ticket = single.submit("ann", "run", asked(LONG))
    killed = set()
    while not ticket.over:
        for pid in set(single.processes()) - killed:
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
        time.sleep(0.01)
    assert (ticket.state, len(killed)) == ("failed", 2)
    with pytest.raises(QuickError, match="ended twice before its result"):
        ticket.result()
    after = single.submit("ann", "run", asked())
    assert after.wait(10.0)
    assert after.state == "finished"


@pytest.mark.parametrize(
    "said",
    [
        *("nonsense", "[1, 2]", "3", "{}", '{"progress": 3}', '{"progress": [1, 2]}'),
        *('{"progress": ["1", 2, 0.5]}', '{"result": [1]}', '{"error": 1}', '{"hello": {}}'),
    ],
)
def test_what_is_no_answer_is_like_an_end(single, said, monkeypatch, tmp_path):
    """A process that says something else is ended, and another one tried."""
    script = tmp_path / "app/jobs/quick.py"
    script.parent.mkdir(parents=True)
    script.write_text(f"print({said!r}, flush=True)\nimport time; time.sleep(60)\n")
    monkeypatch.setattr(pool_module, "ROOT", tmp_path)
    ticket = single.submit("ann", "run", asked())
    assert ticket.wait(10.0)
    with pytest.raises(QuickError, match="ended twice before its result"):
        ticket.result()
    monkeypatch.undo()
    after = single.submit("ann", "run", asked())
    assert after.wait(10.0)
    assert after.state == "finished"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_mistake_in_a_thread_fails_its_request_alone_and_is_not_hidden(single, monkeypatch):
    blocker = single.submit("ann", "run", asked(LONG))
    until(lambda: trains(blocker))
    waiting = single.submit("bob", "run", asked())
    raised = []
    monkeypatch.setattr(threading, "excepthook", lambda told: raised.append(told.exc_type))
    with monkeypatch.context() as broken:
        broken.setattr(pool_module, "_record", _mistaken)
        assert blocker.wait(10.0)
    assert blocker.state == "failed"
    with pytest.raises(QuickError, match="a mistake in the app ended it"):
        blocker.result()
    assert waiting.wait(10.0)  # by another thread, although nobody asked for anything since
    assert waiting.state == "finished"
    again = single.submit("ann", "run", asked(seed=2))
    assert again.wait(10.0)
    assert again.state == "finished"
    assert raised == [ZeroDivisionError]


def _mistaken(line: str) -> dict:
    raise ZeroDivisionError(line)


def test_an_idle_process_that_died_is_replaced(single):
    first = single.submit("ann", "run", asked())
    until(lambda: first.over)
    for pid in children():
        os.kill(pid, signal.SIGKILL)
    second = single.submit("ann", "run", asked(seed=9))
    assert second.wait(10.0)
    assert second.state == "finished"


def test_a_run_has_a_time_limit():
    pool = Pool(1, limit=1.0)
    try:
        ticket = pool.submit("ann", "run", asked(LONG))
        assert ticket.wait(10.0)
        with pytest.raises(QuickError, match="more than 1 seconds"):
            ticket.result()
        after = pool.submit("ann", "run", asked())
        assert after.wait(10.0)
        assert after.state == "finished"
    finally:
        pool.close()


def test_idle_processes_are_ended_and_started_anew():
    pool = Pool(1, idle=0.2)
    try:
        first = pool.submit("ann", "run", asked())
        assert first.wait(10.0)
        until(lambda: not children())
        second = pool.submit("ann", "run", asked(seed=3))
        assert second.wait(10.0)
        assert second.state == "finished"
    finally:
        pool.close()


def test_nothing_starts_before_the_first_request_and_nothing_stays_after_the_end():
    pool = Pool(2)
    assert children() == []
    ticket = pool.submit("ann", "run", asked())
    assert ticket.wait(10.0)
    assert len(children()) == 1
    pool.close()
    assert children() == []
    assert not [thread for thread in threading.enumerate() if thread.name == "quick"]


PARENT = """
import sys, time, json
from app.jobs.pool import Pool
pool = Pool(1)
ticket = pool.submit("ann", "run", json.loads(sys.argv[1]))
while ticket.progress is None:
    time.sleep(0.01)
print(pool.processes()[0], flush=True)
time.sleep(60)
"""


def test_a_process_dies_with_its_parent():
    command = [sys.executable, "-c", PARENT, json.dumps(asked(LONG))]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.kill()
    until(lambda: not is_running(pid), 3.0)


def test_a_process_is_polite(single):
    ticket = single.submit("ann", "run", asked(LONG))
    until(lambda: trains(ticket))
    (pid,) = single.processes()
    assert os.getpriority(os.PRIO_PROCESS, pid) >= os.getpriority(os.PRIO_PROCESS, 0) + 1
    environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    assert b"OMP_NUM_THREADS=1" in environment
    maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    assert "/torch/" not in maps


def children() -> list[int]:
    """Return the ids of this process's quick workers."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and is_running(int(folder.name)):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"app.jobs.quick" in words and str(os.getpid()).encode() in words:
                found.append(int(folder.name))
    return found


# -- the setting


@pytest.mark.parametrize("value", ["0", "9", "many", "1.5"])
def test_the_number_of_processes_is_refused_by_name(value):
    with pytest.raises(ConfigError, match="WORDLM_QUICK_WORKERS must be"):
        settings.read({"WORDLM_QUICK_WORKERS": value})
    assert settings.read({"WORDLM_QUICK_WORKERS": "3"}).quick_workers == 3
