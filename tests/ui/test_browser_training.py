"""Training in a real browser: a step taken, and the heads scrubbed through training."""

import re

import pytest
from playwright.sync_api import expect

from tests import tiny
from tests.ui.browsing import figure, settled, type_probe, visit
from wordlm_core.lens import training_history, training_step

pytestmark = pytest.mark.browser
CHAR = tiny.char_checkpoint()
NAME = "nina"


def wait_for_cell(page, percent: int) -> None:
    """Wait until head 0 draws this much for the last query's look at `<BOS>`."""
    figure(page, "heads_through")
    page.wait_for_function(
        "percent => document.querySelector('.st-key-heads_through .js-plotly-plot')"
        ".calcdata[0][0].z.at(-1)[0] === percent",
        arg=percent,
    )


def test_a_step_is_taken_and_training_is_scrubbed(page, server):
    visit(page, f"{server}/training")
    type_probe(page, NAME)
    expect(page).to_have_url(re.compile("text=nina"))
    probe = tiny.LETTERS.probe(NAME, 8)
    step = training_step.training_step(CHAR.model_at("step_0"), tiny.LETTERS, probe)
    answer = page.locator(".wl-answer").first
    for name, said in (
        ("Forward", "Forward: "),
        ("Loss", f"{step.loss:.3f} nats"),
        ("Backward", "a slope of the loss for each"),
        ("Adam", f"costs {step.loss_after:.3f} nats"),
    ):
        button = page.get_by_role("button", name=name, exact=True)
        expect(button).to_be_enabled()
        button.focus()
        page.keyboard.press("Enter")
        expect(answer).to_contain_text(said)
        expect(button).to_be_disabled()
        table = page.locator(".st-key-predictions").bounding_box()
        assert max(button.bounding_box()["y"] + 40, table["y"] + table["height"]) <= 768
    page.get_by_role("button", name="Next step").click()
    expect(answer).to_contain_text("Step 2:")
    settled(page)

    through = training_history.through_training(CHAR, tiny.LETTERS, probe)
    drawn = figure(page, "heads_through")
    drawn.scroll_into_view_if_needed()
    expect(drawn.locator(".slider-rail-touch-rect")).to_have_count(1)
    wait_for_cell(page, round(100 * through.attention[-1, 0, -1, 0]))
    rail = drawn.locator(".slider-rail-touch-rect").bounding_box()
    page.mouse.click(rail["x"] + 6, rail["y"] + rail["height"] / 2)
    expect(drawn.locator(".slider-label").first).to_contain_text("at training step 0")
    wait_for_cell(page, round(100 * through.attention[0, 0, -1, 0]))
    drawn.get_by_text("Play").click()
    expect(drawn.locator(".slider-label").first).to_contain_text("at training step 20")
    expect(answer).to_contain_text("Step 2:")  # the server was not asked

    page.get_by_role("textbox", name="A short list").fill("nina vera")
    page.get_by_role("button", name="Run both").click()  # straight from the box
    result = training_step.zeroing(
        CHAR.model_at("step_0"), tiny.LETTERS, names=("nina", "vera"), rate=0.01
    )
    said = f"the list costs {result.zeroed[-1]:.2f} nats with zeroing"
    expect(page.get_by_role("status").filter(has_text=said)).to_be_visible()
    figure(page, "zeroing_norms")

    page.set_viewport_size({"width": 390, "height": 844})
    assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth") <= 390
