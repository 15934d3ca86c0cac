"""The microgpt map in a real browser: write, lock, reveal; whatever one clicks right after."""

import csv
import re

import pytest
from playwright.sync_api import expect

from app.map_sheet import SECTIONS
from app.warmups import CARDS
from tests.ui.browsing import bottom_of_the_first_figure, figure, parameters, settled, visit

pytestmark = pytest.mark.browser
SENTENCE = "It  walks <b>back</b> from $x$ to $y$ and *multiplies*."


def sheet(page):
    return page.get_by_role("table", name="Your seven sentences")


def rows(page) -> list[list[str]]:
    found = sheet(page).locator("tbody tr").all()
    return [row.locator("td").all_text_contents() for row in found]


def test_write_lock_reveal_revise(page, server, tmp_path):
    visit(page, f"{server}/microgpt_map")
    chart = figure(page, "map_clicked")
    chart.locator(".annotation-text", has_text="backward").wait_for()
    box = chart.locator(".annotation-text", has_text="backward").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.get_by_role("heading", name="Autograd")).to_be_visible()
    expect(page).to_have_url(re.compile("part=2"))
    expect(page.get_by_text("A model sentence", exact=True)).to_have_count(0)
    before = page.get_by_label("Before", exact=True)
    before.press_sequentially(SENTENCE, delay=5)
    page.get_by_role("button", name="Lock").click()  # straight from the line
    expect(page.locator(".wl-quote").first).to_have_text(SENTENCE, use_inner_text=True)
    expect(before).to_have_count(0)
    page.get_by_text("A model sentence", exact=True).click()
    expect(page.get_by_text(SECTIONS[1].model)).to_be_visible()
    after = page.get_by_label("After", exact=True)
    after.press_sequentially("It adds up, too.", delay=5)
    page.wait_for_timeout(400)  # as long as a hand needs from the keys to the button
    with page.expect_download() as download:  # straight from the line
        page.get_by_role("button", name="Sheet as CSV").click()
    download.value.save_as(tmp_path / "sheet.csv")
    with (tmp_path / "sheet.csv").open(encoding="utf-8", newline="") as file:
        saved = list(csv.DictReader(file))[1]
    assert (saved["before"], saved["after"]) == (SENTENCE, "It adds up, too.")
    settled(page)
    assert rows(page)[1] == ["2 · Autograd", SENTENCE, "It adds up, too."]
    assert "back" not in str(parameters(page))


def test_leaving_right_after_typing_loses_nothing(page, server):
    visit(page, f"{server}/microgpt_map")
    page.get_by_label("Before", exact=True).press_sequentially("Not sent yet", delay=5)
    page.get_by_test_id("stSidebar").get_by_role("link", name="Attention").click()
    expect(page.get_by_role("heading", name="Attention", exact=True)).to_be_visible()
    settled(page)
    page.get_by_test_id("stSidebar").get_by_role("link", name="microgpt map").click()
    expect(page.get_by_label("Before", exact=True)).to_have_value("Not sent yet")
    page.get_by_label("Before", exact=True).press("End")
    page.keyboard.type(", now more", delay=5)
    page.get_by_role("radio", name="3 · Parameters").click()
    expect(page.get_by_role("heading", name="Parameters")).to_be_visible()
    expect(sheet(page).locator("tbody tr").first).to_contain_text("Not sent yet, now more")


def test_a_card_is_predicted_then_seen_by_keyboard(page, server):
    visit(page, f"{server}/microgpt_map?card=8+%C2%B7+a+sum")
    lines = page.locator("code").filter(has_text="sum(wi")
    expect(lines).to_be_visible(timeout=20_000)  # the first code on a page loads a library
    page.get_by_role("link", name="Down to the Python warm-ups").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Python warm-ups")).to_be_in_viewport()
    page.get_by_label("What does it print?").press_sequentially(CARDS[7].output, delay=5)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text=f"Right: {CARDS[7].why}")).to_be_visible()
    expect(page.get_by_label("What does it print?")).to_have_count(0)


def test_it_fits_a_projector_and_a_phone(page, server):
    visit(page, f"{server}/microgpt_map")
    assert bottom_of_the_first_figure(page) <= 768
    assert page.evaluate("document.documentElement.scrollWidth") <= 1366
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, f"{server}/microgpt_map")
    assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth") <= 390
    ends = figure(page, "map_clicked").bounding_box()
    for word in figure(page, "map_clicked").locator(".annotation-text").all():
        box = word.bounding_box()
        assert ends["x"] <= box["x"]
        assert box["x"] + box["width"] <= ends["x"] + ends["width"]
