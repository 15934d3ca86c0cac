"""Parameters in a real browser: fill in, check, pick a matrix by a click, change a small box."""

import re

import pytest
from playwright.sync_api import expect

from tests import tiny
from tests.ui.browsing import figure, parameters, settled, visit
from wordlm_core.lens.parameters import inventory

pytestmark = pytest.mark.browser


def test_fill_in_and_check_by_keyboard(page, server):
    visit(page, f"{server}/parameters")
    check = page.get_by_role("button", name="Check", exact=True)
    place = check.bounding_box()
    assert place["y"] + place["height"] <= 768
    wte, wpe, *_ = inventory(tiny.char_checkpoint().model)
    table = page.get_by_role("table", name="Every matrix with its count")
    expect(table).to_have_count(0)
    page.get_by_label(f"Shape of {wte.name}").fill("{} x {}".format(*wte.shape))
    page.keyboard.press("Tab")
    page.keyboard.type(str(wte.count))
    page.keyboard.press("Tab")
    page.keyboard.type("3 x 5")
    page.keyboard.press("Enter")
    score = page.get_by_role("status").filter(has_text="2 of 19 right")
    expect(score).to_be_visible()
    beside, place = score.bounding_box(), check.bounding_box()
    assert place["y"] - 10 <= beside["y"] <= place["y"] + place["height"]
    assert place["y"] + place["height"] <= 768
    expect(page.get_by_text("Not 3 rows: they are one for each position")).to_be_visible()
    expect(page.get_by_label(f"Shape of {wpe.name}")).to_have_value("3 x 5")
    expect(table).to_have_count(0)
    check.click()
    expect(table.locator("tr").last).to_contain_text("all parameters")


def test_pick_a_matrix_and_change_a_box(page, server):
    visit(page, f"{server}/parameters")
    title = figure(page, "mosaic_after_clicked").locator(".annotation-text", has_text="lm_head")
    title.wait_for()
    title.scroll_into_view_if_needed()
    spot = title.bounding_box()
    page.mouse.click(spot["x"] + 6, spot["y"] + spot["height"] + 14)
    expect(page.get_by_role("heading", name="lm_head, after")).to_be_visible()
    expect(page).to_have_url(re.compile("matrix=lm_head"))
    slider = page.get_by_role("slider", name="Training step")
    slider.focus()
    page.keyboard.press("Home")
    expect(page.get_by_role("heading", name="lm_head, after, at step 0")).to_be_visible()
    ticks = figure(page, "matrix_after").locator(".ytick text")
    expect(ticks).to_have_text([*tiny.LETTERS.itos])

    page.get_by_role("radio", name="rmsnorm").click()
    expect(page.get_by_role("status").filter(has_text="0.8485, 1.1314")).to_be_visible()
    page.get_by_label("Vector x").fill("1e400")
    expect(page.get_by_text("“1e400” in the vector is too large")).to_be_visible()
    page.get_by_label("Vector x").fill("5, 5, 5")
    expect(page.get_by_role("status").filter(has_text="becomes [1, 1, 1]")).to_be_visible()
    settled(page)
    assert parameters(page)["norm_x"] == ["5, 5, 5"]

    assert page.evaluate("document.documentElement.scrollWidth") <= 1366
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, f"{server}/parameters")
    assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth") <= 390
    width = figure(page, "matrix_before").bounding_box()
    assert width["x"] + width["width"] <= 390
