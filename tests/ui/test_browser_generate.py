"""Generate and Context in a real browser: keyboard, clicks, the address."""

import re

import pytest
from playwright.sync_api import expect

from tests.ui.browsing import (
    bottom_of_the_first_figure,
    click_row,
    figure,
    new_page,
    parameters,
    settled,
    ticks,
    type_probe,
    visit,
)
from tests.ui.conftest import CONTEXT, make
from wordlm_core.lens import sampling
from wordlm_core.text import EOS

pytestmark = pytest.mark.browser
TEXT = "the cat saw the dog"


def likeliest(text: str, count: int = 12) -> list[str]:
    loaded = make("attention")
    probe = loaded.vocabulary.probe(text, CONTEXT)
    of = sampling.distribution_after(loaded.model, loaded.vocabulary, probe)
    return [entry.token for entry in of.ranked(count)]


def test_a_click_on_a_bar_forces_that_word_again_and_again(page, server):
    visit(page, f"{server}/generate?checkpoint=attention_seed11")
    type_probe(page, TEXT)
    expect(page).to_have_url(re.compile("text=the"))
    settled(page)
    box, text = page.get_by_label("Probe sentence"), TEXT
    for _ in range(2):
        words = likeliest(text)
        row = next(i for i, word in enumerate(words) if i > 0 and word != EOS)
        expect(figure(page, "next_clicked").locator(".ytick text").first).to_have_text(words[0])
        click_row(page, "next_clicked", row, of=len(words) + 1)
        text = f"{text} {words[row]}"
        expect(box).to_have_value(text)
        settled(page)
    expect(page).to_have_url(re.compile("text="))
    assert parameters(page)["text"] == [text]


def test_a_button_forces_a_word_by_keyboard(page, server):
    visit(page, f"{server}/generate?checkpoint=attention_seed11")
    type_probe(page, TEXT)
    expect(page).to_have_url(re.compile("text=the"))
    settled(page)
    word = next(word for word in likeliest(TEXT) if word != EOS)
    expect(figure(page, "next_clicked").locator(".ytick text").first).to_have_text(
        likeliest(TEXT)[0]
    )
    button = page.locator(".st-key-offer_force").get_by_role("button", name=word, exact=True)
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Probe sentence")).to_have_value(f"{TEXT} {word}")


def test_temperature_goes_to_greedy_by_keyboard_and_into_the_link(
    page,
    server,
    browser,
):
    visit(page, f"{server}/generate?checkpoint=attention_seed11")
    slider = page.get_by_role("slider", name="Temperature")
    slider.focus()
    page.keyboard.press("Home")
    answer = page.get_by_role("status").filter(has_text="Greedy")
    expect(answer).to_be_visible()
    expect(page).to_have_url(re.compile("temperature=0"))
    settled(page)
    drawn = page.locator(".wl-table").first.text_content()
    other = new_page(browser)
    visit(other, page.url)
    expect(other.get_by_role("status").filter(has_text="Greedy")).to_be_visible()
    assert other.locator(".wl-table").first.text_content() == drawn
    other.context.close()


def test_one_occurrence_of_a_word_is_picked_in_each_text(page, server):
    visit(page, f"{server}/context?checkpoint=attention_seed11")
    type_probe(page, "the cat saw the dog and the bird")
    page.get_by_label("Second sentence").fill("a dog and the dog")
    page.get_by_role("radio", name="5 · dog").click()
    expect(page.get_by_role("status").filter(has_text="One lookup row for dog")).to_be_visible()
    page.locator(".st-key-word_b").get_by_role("radio", name="2 · dog").click()
    expect(page).to_have_url(re.compile("word_b="))
    settled(page)
    assert parameters(page)["word_b"] == ["2 · dog"]
    assert ticks(page, "rows", "y") == [
        "lookup, first text",
        "lookup, second text",
        "contextual, first",
        "contextual, second",
    ]


def test_the_logit_view_follows_the_position(page, server):
    visit(page, f"{server}/logits?checkpoint=multihead_seed11")
    type_probe(page, "the cat saw the dog")
    expect(page.get_by_role("status").filter(has_text="After 5 · dog")).to_be_visible()
    page.get_by_role("slider", name="Position").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("status").filter(has_text="After 4 · the")).to_be_visible()
    expect(page).to_have_url(re.compile("position=4"))


@pytest.mark.parametrize("address", ["generate", "context", "logits"])
def test_they_fit_a_projector_and_a_phone(page, server, address):
    visit(page, f"{server}/{address}")
    bottom = bottom_of_the_first_figure(page)
    assert bottom <= 768 or address == "logits"  # its figure is as tall as its lists
    assert page.evaluate("document.documentElement.scrollWidth") <= 1366
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, f"{server}/{address}")
    assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth") <= 390
