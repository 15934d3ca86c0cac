"""Experiments in a real browser: commit, run, compare, explain, hand in."""

import csv
import re

import pytest
from playwright.sync_api import Page, expect

from tests.ui.browsing import bottom_of_the_first_figure, figure, parameters, settled, visit

pytestmark = pytest.mark.browser
WHILE_BUSY = 60_000  # a run is polite: whatever else the machine does comes first
BECAUSE = "=SUM it  <b>wider</b> is $x$ *better* $y$"


def choose(page: Page, name: str) -> None:
    page.get_by_label("Experiment", exact=True).click()
    page.get_by_role("option", name=name, exact=True).click()
    settled(page)


def commit(page: Page, direction: str, size: str, count: str, because: str) -> None:
    page.get_by_role("radio", name=direction).click()
    page.get_by_label("By how many nats").fill(size)
    page.get_by_label("Parameters, by hand").fill(count)
    page.get_by_label("Because").press_sequentially(because, delay=5)
    page.get_by_role("button", name="Lock my prediction").click()  # straight from the box


def test_commit_run_compare_explain_hand_in(page, server, tmp_path):
    visit(page, f"{server}/experiments?experiment=width+32")
    expect(page.get_by_text("Changed: width 16 → 32.")).to_be_visible()
    page.get_by_role("button", name="Lock my prediction").click()
    expect(page.get_by_text("Predict first: say whether the loss")).to_be_visible()
    commit(page, "goes down", "0.5", "14,528", BECAUSE)
    run = page.get_by_role("button", name="Run", exact=True)
    expect(page.locator(".wl-quote")).to_contain_text(BECAUSE, use_inner_text=True)
    expect(page.get_by_label("Because")).to_have_count(0)
    run.click()
    result = page.get_by_text("Run 1: your prediction against the result")
    expect(result).to_be_visible(timeout=WHILE_BUSY)
    expect(page.get_by_text("You counted 14,528 parameters: right.")).to_be_visible()
    names = figure(page, "curves").locator(".legendtext")
    expect(names).to_have_text(["baseline", "1 · width 32"])
    table = page.get_by_role("table", name="All runs")
    expect(table.locator("tbody tr")).to_have_count(1)
    for key in ("runs_table", "run_samples"):
        expect(page.locator(f".st-key-{key} .wl-scroll")).to_have_css("max-height", "none")
    expect(page.get_by_label("Runs in the picture")).to_be_visible()
    page.get_by_role("radio", name="fit all").click()
    expect(names).to_have_count(2)
    settled(page)
    page.get_by_label("Name on the report").fill("Ann")
    page.get_by_label("How do you explain it?").fill("Not much: the list is small.")
    with page.expect_download() as download:  # straight from the box, with a finger's slowness
        page.get_by_role("button", name="Data as CSV").click(delay=150)
    download.value.save_as(tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open(encoding="utf-8", newline="") as file:
        (saved,) = csv.DictReader(file)
    assert saved["hypothesis"] == f"'{BECAUSE}"
    assert saved["explanation"] == "Not much: the list is small."
    with page.expect_download() as download:
        page.get_by_role("button", name="Report as Markdown").click()
    download.value.save_as(tmp_path / "report.md")
    handed_in = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "Name: Ann. Date: 20" in handed_in
    assert f"```text\n{BECAUSE}\n```" in handed_in
    settled(page)
    assert not {"SUM", "Ann"} & set(re.findall(r"\w+", str(parameters(page))))


def test_a_long_run_goes_on_while_one_is_on_another_page(page, server):
    visit(page, f"{server}/experiments?experiment=own+settings&steps=7000&run_seed=5")
    commit(page, "goes down", "0.3", "4192", "longer is better")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text(re.compile("Step [0-9,]+ of 21,000"))).to_be_visible(timeout=WHILE_BUSY)
    page.get_by_test_id("stSidebar").get_by_role("link", name="Attention").click()
    expect(page.get_by_role("heading", name="Attention", exact=True)).to_be_visible()
    settled(page)
    page.get_by_test_id("stSidebar").get_by_role("link", name="Experiments").click()
    expect(page.get_by_text("your prediction against the result")).to_be_visible(timeout=WHILE_BUSY)
    expect(page.get_by_text("Running:")).to_have_count(0)
    expect(page.get_by_role("table", name="All runs")).to_contain_text("longer is better")


def test_it_fits_a_projector_and_a_phone(page, server):
    visit(page, f"{server}/experiments")
    assert bottom_of_the_first_figure(page) <= 768
    lock = page.get_by_role("button", name="Lock my prediction").bounding_box()
    assert lock["y"] + lock["height"] <= 768
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, f"{server}/experiments?experiment=own+settings")
    assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth") <= 390


def test_an_own_list_is_typed_and_a_file_is_sent(page, server):
    visit(page, f"{server}/experiments")
    choose(page, "own list")
    expect(page.get_by_text("The list is empty: give one item a line.")).to_be_visible()
    page.get_by_label("Your list, one item a line").fill("oak\nbirch\n<b>elm</b>")
    page.get_by_label("Your list, one item a line").blur()
    expect(page.get_by_text("3 items;")).to_be_visible()
    files = page.locator("input[type=file]")
    sent = {"name": "trees.txt", "mimeType": "text/plain", "buffer": b"ash\r\nyew\r\nash\r\n"}
    files.set_input_files(sent)
    expect(page.get_by_text("The file trees.txt is read")).to_be_visible()
    expect(page.get_by_text("1 repeats")).to_be_visible()
    page.get_by_role("button", name="Take the file away").click()
    expect(page.get_by_text("3 items;")).to_be_visible()
