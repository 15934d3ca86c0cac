"""Runs in a real browser: every state, one real job through cancel and resume, a sweep of two."""

import contextlib
import secrets
import time

import pytest
from playwright.sync_api import Page, expect

from app.jobs.progress import Writer
from app.jobs.record import Job, owner_of
from app.jobs.store import PROGRESS, Store
from app.jobs.work import Source, Work
from tests.jobs.conftest import trainers_of
from tests.ui.browsing import figure, new_page, settled, visit
from tests.ui.conftest import serving, watching
from wordlm_core.training import Progress, TrainConfig

pytestmark = pytest.mark.browser
WHILE_BUSY = 90_000  # a job is polite: whatever else the machine does comes first
HOSTILE = "<b>x</b> $x$ *a* :red[hi] 😀 and more, up to 60 characters!"
NAMES = [f"{a}{b}{c}" for a in "bdklmnprst" for b in "aeiou" for c in ("na", "lo", "mi", "ra")]
FACTS = {"parameters": 4192, "vocab_size": 27, "uniform": 3.296, "floor": None, "floor_of": ""}
STEPS = 60
REASON = "the loss is not finite at step 31"
SAID = {
    "queued": "It waits: place {place} in the queue.",
    "running": "It trains.",
    "stopping": "It was told to stop and ends within seconds.",
    "interrupted": "Its process ended at step 30. It goes on by itself from what was stored.",
    "finished": f"It trained all of its {STEPS} steps",
    "failed": "The loss is not finite at step 31.",
    "cancelled": "It was ended at step 30. Resume goes on from what was stored.",
}


def submit(store: Store, person: str, name: str, steps: int = STEPS, **settings) -> Job:
    config = TrainConfig.of("microgpt", steps=steps, **settings)
    work = Work("train", config, Source("own", label="names.txt"))
    return store.submit(work, person, name=name, documents=NAMES, facts=FACTS)


def begin(store: Store, job: Job, steps: int) -> None:
    """Be the process that trains, for whoever holds the claim."""
    store.begin(job.id)
    writer = Writer(store.folder(job.id) / PROGRESS)
    for step in range(1, steps + 1):
        measured = 3.0 if step == steps else None  # what is measured is written at once
        writer.report(Progress(step, STEPS, 3.3 * 0.98**step, measured, 8 * step, 0.01 * step))
    writer.close()


def sign_in(page: Page, server: str, person: str) -> None:
    cookie = {"name": "wordlm_person", "value": person, "url": server}
    page.context.add_cookies([cookie])  # pyright: ignore[reportArgumentType]


def sent_by(page: Page) -> list[object]:
    """Return the list of what the pages opened from now on ask the server for."""
    frames: list[object] = []

    def note(sent: object) -> None:
        frames.append(sent)

    page.on("websocket", lambda socket: socket.on("framesent", note))
    return frames


def row(page: Page, name: str):
    return page.get_by_role("table", name="Runs").locator("tr").filter(has_text=name)


@pytest.fixture(scope="module")
def still(folder, tmp_path_factory):
    """A server on which no engine can start, a person, and a run of theirs in every state."""
    store, me = Store(tmp_path_factory.mktemp("still")), secrets.token_hex(16)
    submit(store, "f" * 32, "of another")
    jobs = {"queued": submit(store, me, "queued one")}
    with contextlib.ExitStack() as held:
        for state in ("running", "stopping"):
            jobs[state] = submit(store, me, HOSTILE if state == "running" else "stopping one")
            held.enter_context(store.claim(jobs[state].id))  # a lock that the server sees
            begin(store, jobs[state], 30)
        store.cancel(jobs["stopping"].id, me)
        for state in ("interrupted", "finished", "failed", "cancelled"):
            jobs[state] = submit(store, me, f"{state} one")
            with store.claim(jobs[state].id):
                begin(store, jobs[state], STEPS if state == "finished" else 30)
                if state != "interrupted":
                    store.end(jobs[state].id, state, REASON if state == "failed" else "")
        with serving(folder, store.root, WORDLM_SCHEDULER="tcp://127.0.0.1:9") as url:
            yield url, me, store, jobs


@pytest.fixture
def seen(browser, still):
    """The page of the person of `still`."""
    with watching(browser, still[0]) as opened:
        sign_in(opened, still[0], still[1])
        yield opened


def test_every_state_is_seen(seen, still):
    url, _, store, jobs = still
    place = store.place(jobs["queued"].id)
    assert place > 1
    for state, job in jobs.items():
        visit(seen, f"{url}/runs?run={job.id}")
        assert store.job(job.id).state == state
        expect(seen.locator(".wl-answer")).to_have_text(job.name)
        expect(seen.get_by_text(SAID[state].format(place=place))).to_be_visible()
        badge = f"queued, place {place}" if state == "queued" else state
        expect(seen.locator(".stMarkdownBadge").filter(has_text=badge).first).to_be_visible()
        expect(row(seen, job.name)).to_contain_text(state)
    expect(row(seen, "queued one")).to_contain_text(f"queued,\xa0place\xa0{place}")


def test_what_is_typed_and_picked_is_not_disturbed(seen, still):
    url, _, _, jobs = still
    frames = sent_by(seen)
    visit(seen, f"{url}/runs?run={jobs['running'].id}")
    seen.get_by_role("button", name="Lay over it").click()
    box = seen.get_by_test_id("stMultiSelect").locator("input")
    box.fill("finished o")
    before = len(frames)
    seen.wait_for_timeout(4_500)
    assert 1 <= len(frames) - before <= 4  # every two seconds, and not faster
    expect(box).to_have_value("finished o")
    box.press("Enter")
    expect(figure(seen, "run_curves").locator(".legendtext")).to_have_text(
        [
            "train loss, each step",
            "train loss, mean of the last 50",
            "validation loss",
            jobs["finished"].label,
        ]
    )


def test_a_run_is_cancelled_resumed_finished_opened_and_deleted(page, server, served_runs):
    store, me = Store(served_runs), secrets.token_hex(16)
    sign_in(page, server, me)
    frames = sent_by(page)
    job = submit(store, me, HOSTILE, 8_000)
    visit(page, f"{server}/runs?run={job.id}")
    expect(row(page, HOSTILE)).to_have_count(1)
    expect(page.get_by_text("It trains.")).to_be_visible(timeout=WHILE_BUSY)
    figure(page, "run_curves")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("It was ended at step")).to_be_visible(timeout=WHILE_BUSY)
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("It trained all of its 8,000 steps")).to_be_visible(timeout=WHILE_BUSY)
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    settled(page)
    if all(other.is_final for other in store.jobs()):
        before = len(frames)
        page.wait_for_timeout(4_500)
        assert len(frames) == before
    page.locator(".st-key-open_in").get_by_role("link", name="Generate").click()
    expect(page.locator("h1.wl-title")).to_have_text("Generate")
    settled(page)
    expect(page.get_by_label("Checkpoint", exact=True)).to_have_value(job.label)
    visit(page, f"{server}/runs?run={job.id}")
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_text(HOSTILE)).to_have_count(0)
    settled(page)


@pytest.mark.chaos
def test_a_sweep_of_two_people_runs_to_the_end_though_a_worker_dies(browser, folder, tmp_path):
    """Six runs, started from the page in two browsers; the worker of one is killed."""
    store = Store(tmp_path / "runs")
    with serving(folder, store.root, WORDLM_JOB_WORKERS="2") as url:
        people = [new_page(browser) for _ in range(2)]
        for rate in (0.01, 0.02, 0.005):
            for number, person in enumerate(people):
                start(person, url, f"sweep {number} at {rate}", rate)
        jobs = store.jobs()
        assert len(jobs) == 6
        assert len({job.owner for job in jobs}) == 2
        victim = kill_one_worker(store)
        for number, person in enumerate(people):
            mine = owner_of(code_of(person))
            assert sum(job.owner == mine for job in jobs) == 3
            visit(person, f"{url}/runs?list=mine")
            for rate in (0.01, 0.02, 0.005):
                done = row(person, f"sweep {number} at {rate}")
                expect(done).to_contain_text("finished", timeout=2 * WHILE_BUSY)
        ended = {job.id: job for job in store.jobs()}
        assert {job.state for job in ended.values()} == {"finished"}
        assert ended[victim].interruptions == 1
        for job in ended.values():
            assert store.progress(job.id).step == job.steps
            assert store.checkpoints(job)
        for person in people:
            person.context.close()


def start(page: Page, url: str, name: str, rate: float) -> None:
    """Start a run of one's own settings from the page, when its text has been checked."""
    asked = {
        "new_model": "microgpt",
        "new_size": "own settings",
        "new_microgpt_steps": "6000",
        "new_microgpt_width": "64",
        "new_microgpt_lr": f"{rate}",
        "new_name": name,
    }
    visit(page, f"{url}/new_run?" + "&".join(f"{key}={value}" for key, value in asked.items()))
    page.get_by_role("button", name="Start").click(timeout=WHILE_BUSY)
    expect(page.locator("h1.wl-title")).to_have_text("Runs", timeout=WHILE_BUSY)
    settled(page)
    expect(page.locator(".wl-answer")).to_have_text(name)


def code_of(page: Page) -> str:
    return next(each["value"] for each in page.context.cookies() if each["name"] == "wordlm_person")


def kill_one_worker(store: Store) -> str:
    """Kill the worker of a run that trains; return which run that was."""
    end = time.monotonic() + WHILE_BUSY / 1000
    while time.monotonic() < end:
        for job in store.jobs():
            trainers = trainers_of(job.id) if job.state == "running" else []
            if trainers and 200 < store.progress(job.id).step < 4_000:
                trainers[0].parent().kill()
                return job.id
        time.sleep(0.1)
    raise AssertionError("nothing trains")
