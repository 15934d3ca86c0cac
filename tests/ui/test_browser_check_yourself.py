"""Check yourself in a real browser: Enter checks, answers stay, the card is downloaded."""

import re

import pytest
from playwright.sync_api import expect

from tests.ui.browsing import parameters, settled, visit
from wordlm_core import checkpoint, quiz
from wordlm_core.quiz.question import Points

pytestmark = pytest.mark.browser
TYPED = "Because  <b>it</b> *must* be $x$."


@pytest.fixture(scope="module")
def asked(folder):
    return quiz.questions([checkpoint.load(folder / "microgpt_seed42.npz")], seed=7)


def test_an_answer_is_checked_by_keyboard(page, server, asked):
    first = asked[0]
    visit(page, f"{server}/check_yourself?set=7")
    expect(page.get_by_text(first.text)).to_be_visible()
    assert page.get_by_role("button", name="Check", exact=True).bounding_box()["y"] <= 768
    box = page.get_by_label("Your answer", exact=True)
    box.press_sequentially("seven", delay=5)
    page.keyboard.press("Enter")
    expect(page.get_by_text("“seven” is no whole number")).to_be_visible()
    box.fill(first.expected.shown)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Right: ")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text=first.why)).to_be_visible()
    expect(page.get_by_role("img", name=f"1 of {len(asked)} answered")).to_be_visible()
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text(asked[1].text)).to_be_visible()


def test_an_explanation_is_marked_and_printed(page, server, asked, tmp_path):
    visit(page, f"{server}/check_yourself?set=7&topic=training")
    of_topic = [question for question in asked if question.topic == "training"]
    explain = next(q for q in of_topic if isinstance(q.expected, Points))
    page.get_by_role("slider", name="Question").focus()
    for _ in range(of_topic.index(explain)):
        page.keyboard.press("ArrowRight")
    expect(page.get_by_text(explain.text)).to_be_visible()
    page.get_by_label("Your explanation").fill(TYPED)
    page.get_by_role("button", name="See a model answer").click()  # straight from the box
    expect(page.locator(".wl-quote")).to_have_text(TYPED, use_inner_text=True)
    expect(page.get_by_text(explain.expected.points[2])).to_be_visible()
    page.locator("[class*='st-key-mark_']").get_by_role("radio", name=re.compile("2 ·")).click()
    expect(page.get_by_role("table", name="Score by topic")).to_contain_text("2 of 3")

    page.get_by_test_id("stSidebar").get_by_role("link", name="Attention").click()
    expect(page.get_by_role("heading", name="Attention", exact=True)).to_be_visible()
    settled(page)
    page.get_by_test_id("stSidebar").get_by_role("link", name="Check yourself").click()
    expect(page.get_by_role("table", name="Score by topic")).to_contain_text("2 of 3")
    settled(page)
    assert "Because" not in str(parameters(page))
    with page.expect_download() as download:
        page.get_by_role("button", name="Score card to print").click()
    download.value.save_as(tmp_path / "card.html")
    page.goto((tmp_path / "card.html").as_uri())
    expect(page.get_by_text(TYPED)).to_be_visible()
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1366


def test_it_fits_a_phone(page, server, asked):
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, f"{server}/check_yourself?set=7")
    expect(page.get_by_text(asked[0].text)).to_be_visible()
    expect(page.get_by_role("img", name=f"0 of {len(asked)} answered")).to_be_visible()
    assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth") <= 390
