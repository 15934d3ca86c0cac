"""Runs in a real browser with real jobs: seen live, cancelled, resumed, opened in a lens."""

import secrets

import pytest
from playwright.sync_api import Page, expect

from app.jobs.record import Job
from app.jobs.store import Store
from app.jobs.work import Source, Work
from tests.ui.browsing import figure, settled, visit
from wordlm_core.training import TrainConfig

pytestmark = pytest.mark.browser
WHILE_BUSY = 90_000  # a job is polite: whatever else the machine does comes first
HOSTILE = "<b>x</b> $x$ *a* :red[hi] 😀 and more, up to 60 characters!"
NAMES = [f"{a}{b}{c}" for a in "bdklmnprst" for b in "aeiou" for c in ("na", "lo", "mi", "ra")]


@pytest.fixture
def me(page, server) -> str:
    """The code that the browser keeps."""
    code = secrets.token_hex(16)
    cookie = {"name": "wordlm_person", "value": code, "url": server}
    page.context.add_cookies([cookie])  # pyright: ignore[reportArgumentType]
    return code


def submit(runs, person: str, steps: int, name: str, **settings) -> Job:
    config = TrainConfig.of("microgpt", steps=steps, **settings)
    work = Work("train", config, Source("own", label="names.txt"))
    return Store(runs).submit(work, person, name=name, documents=NAMES)


def sent_while(page: Page, milliseconds: int) -> int:
    """Return how often the page asks the server for something by itself."""
    frames: list[object] = []

    def note(sent: object) -> None:
        frames.append(sent)

    page.on("websocket", lambda socket: socket.on("framesent", note))
    page.reload()
    settled(page)
    page.wait_for_timeout(3_000)  # what a page asks for as it comes up
    before = len(frames)
    page.wait_for_timeout(milliseconds)
    return len(frames) - before


def test_a_run_is_seen_from_the_queue_to_its_end_without_a_touch(page, server, served_runs, me):
    job = submit(served_runs, me, 6_000, HOSTILE)
    visit(page, f"{server}/runs?run={job.id}")
    row = page.get_by_role("table", name="Runs").locator("tr").filter(has_text=HOSTILE)
    expect(row).to_have_count(1)
    expect(page.locator(".wl-answer")).to_have_text(HOSTILE)
    expect(page.get_by_text("It trains.")).to_be_visible(timeout=WHILE_BUSY)
    figure(page, "run_curves")
    expect(page.get_by_text("It trained all of its 6,000 steps")).to_be_visible(timeout=WHILE_BUSY)
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    expect(page.get_by_role("button", name="Delete", exact=True)).to_be_visible()
    figure(page, "run_curves")
    if all(other.is_final for other in Store(served_runs).jobs()):
        assert sent_while(page, 5_000) == 0
    page.locator(".st-key-open_in").get_by_role("link", name="Generate").click()
    expect(page.locator("h1.wl-title")).to_have_text("Generate")
    settled(page)
    expect(page.get_by_label("Checkpoint", exact=True)).to_have_value(job.label)


def test_cancel_resume_cancel_delete(page, server, served_runs, me):
    job = submit(served_runs, me, 20_000, "to be cancelled", d_model=32)
    visit(page, f"{server}/runs?run={job.id}")
    expect(page.get_by_text("It trains.")).to_be_visible(timeout=WHILE_BUSY)
    assert 1 <= sent_while(page, 6_000) <= 4  # every two seconds, and not faster
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("It was ended at step")).to_be_visible(timeout=WHILE_BUSY)
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("It was ended at step")).to_be_visible(timeout=WHILE_BUSY)
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_text("to be cancelled")).to_have_count(0)
    settled(page)


def test_what_is_typed_and_picked_is_not_disturbed(page, server, served_runs, me):
    first = submit(served_runs, me, 50, "the first")
    job = submit(served_runs, me, 20_000, "goes on", d_model=32)
    visit(page, f"{server}/runs?run={job.id}")
    expect(page.get_by_text("It trains.")).to_be_visible(timeout=WHILE_BUSY)
    page.get_by_role("button", name="Lay over it").click()
    box = page.get_by_test_id("stMultiSelect").locator("input")
    box.fill("the fi")
    page.wait_for_timeout(5_000)
    expect(box).to_have_value("the fi")
    box.press("Enter")
    expect(figure(page, "run_curves").locator(".legendtext")).to_have_text(
        ["train loss, each step", "train loss, mean of the last 50", first.label]
    )
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("It was ended at step")).to_be_visible(timeout=WHILE_BUSY)
