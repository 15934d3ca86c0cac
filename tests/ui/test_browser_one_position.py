"""One position in a real browser: predict, then walk by keyboard, button and click."""

import re

import pytest
from playwright.sync_api import expect

from tests import tiny
from tests.ui.browsing import bottom_of_the_first_figure, figure, settled, type_probe, visit
from wordlm_core.lens import position

pytestmark = pytest.mark.browser


def walked(text: str, at: int) -> position.Walk:
    loaded = tiny.char_checkpoint()
    probe = loaded.vocabulary.probe(text, loaded.model.config.context_length)
    return position.walk(loaded.model, probe, at, end_id=loaded.vocabulary.end_id)


def said(page, text: str):
    return page.get_by_role("status").filter(has_text=text)


def test_lengths_are_checked_straight_from_the_box_and_kept(page, server):
    visit(page, f"{server}/one_position")
    lengths = position.lengths(tiny.char_checkpoint().model.config, 2)
    for each in lengths[:-1]:
        page.get_by_label(each.name, exact=True).fill(str(each.length))
    page.get_by_label(lengths[-1].name, exact=True).fill("5")
    page.get_by_role("button", name="Check").click()  # straight from the box
    expect(said(page, "9 of 10 right")).to_be_visible()
    expect(page.get_by_text(f"Logits, not 5: {lengths[-1].why}")).to_be_visible()

    page.get_by_test_id("stSidebar").get_by_role("link", name="Attention").click()
    expect(page.get_by_role("heading", name="Attention", exact=True)).to_be_visible()
    settled(page)
    page.get_by_test_id("stSidebar").get_by_role("link", name="One position").click()
    expect(said(page, "9 of 10 right")).to_be_visible()
    expect(page.get_by_label("Logits", exact=True)).to_have_value("5")


def test_the_walk_goes_by_keyboard_button_and_click(page, server):
    visit(page, f"{server}/one_position")
    type_probe(page, "anna")
    expect(page).to_have_url(re.compile("text=anna"))
    slider = page.get_by_role("slider", name="Step of the walk")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(said(page, "2 · position embedding: how many numbers?")).to_be_visible()
    page.get_by_role("button", name="Skip").click()
    expect(page.get_by_text("position 2 of emma: skipped.")).to_be_visible()
    expect(said(page, "2 · position embedding: 8 numbers")).to_be_visible()
    page.get_by_role("button", name="Next").focus()
    page.keyboard.press("Enter")
    expect(said(page, "3 · sum: 8 numbers")).to_be_visible()
    settled(page)
    box = (
        figure(page, "walk_strip_clicked").locator(".textpoint text", has_text="10").bounding_box()
    )
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(said(page, "10 · scores: 2 heads, 3 numbers each")).to_be_visible()
    expect(page.locator("code").filter(has_text="attn_logits = [")).to_be_visible()
    cells = figure(page, "walk_vector").locator(".heatmap-label text")
    expected = [f"{value:.2f}" for value in walked("anna", 2).find("scores", 0).values.ravel()]
    expect(cells).to_have_count(6)
    assert sorted(cells.all_text_contents()) == sorted(expected)

    page.get_by_role("slider", name=re.compile("^Position")).focus()
    page.keyboard.press("ArrowRight")
    expect(said(page, "10 · scores: 2 heads, 4 numbers each")).to_be_visible()
    expect(said(page, "changes nothing at position 3: the largest change is 0.")).to_be_visible()
    expect(page).to_have_url(re.compile("position=3"))


def test_no_line_is_cut_off_or_below_the_fold(page, server):
    longest = {"scores": 10, "head outputs": 12, "rmsnorm before attention": 5, "loss": 24}
    assert all(walked("emma", 2).steps[n - 1].name == name for name, n in longest.items())
    for number in longest.values():
        visit(page, f"{server}/one_position?walk={number}")
        step = walked("emma", 2).steps[number - 1]
        code = page.get_by_test_id("stCode").filter(has_text=step.code.splitlines()[-1]).first
        why = page.get_by_text(step.why).first
        vector = figure(page, "walk_vector").bounding_box()
        assert code.bounding_box()["y"] < why.bounding_box()["y"] < vector["y"]
        assert why.bounding_box()["y"] + why.bounding_box()["height"] <= 768
        assert code.locator("pre").evaluate("e => e.scrollWidth - e.clientWidth") <= 0


def test_it_fits_a_projector_and_a_phone(page, server):
    visit(page, f"{server}/one_position")
    assert bottom_of_the_first_figure(page) <= 768
    vector = figure(page, "walk_vector").bounding_box()
    assert vector["y"] + vector["height"] <= 768
    assert page.get_by_role("button", name="Check").bounding_box()["y"] + 40 <= 768
    assert page.evaluate("document.documentElement.scrollWidth") <= 1366
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, f"{server}/one_position")
    assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth") <= 390
    expect(figure(page, "walk_vector").locator(".heatmap-label text").first).to_be_visible()
