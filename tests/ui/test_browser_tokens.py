"""Tokens in a real browser: two names, one of which cannot be read, and the link to the view."""

import re

import pytest
from playwright.sync_api import expect

from tests import tiny
from tests.ui.browsing import new_page, parameters, settled, type_probe, visit
from wordlm_core.lens import tokens

pytestmark = pytest.mark.browser


def test_two_names_one_refused_and_the_link_to_both(page, server, browser):
    visit(page, f"{server}/tokens")
    loaded = tiny.char_checkpoint()
    for label, name in (("Probe sentence", "adam"), ("Your name", "nina")):
        page.get_by_label(label).fill(name)
        table = tokens.read(loaded.vocabulary, name, 8)
        loss = tokens.losses(loaded.model, table).mean()
        answer = page.get_by_role("status").filter(has_text=f"loss {loss:.3f} nats")
        expect(answer.first).to_be_visible()
    lists = page.get_by_role("list", name="Tokens with ids")
    expect(lists.nth(1).locator("b")).to_have_text(["token", "<BOS>", *"nina", "<BOS>"])
    bottom = page.get_by_role("table", name="What is predicted from what").first.bounding_box()
    assert bottom["y"] + bottom["height"] <= 768
    type_probe(page, "Adam-eva")
    refused = page.get_by_role("status").filter(has_text="A (character 1)")
    expect(refused).to_contain_text("- (character 5) are not in the list; a is")
    expect(lists.first.locator(".wl-chip-strange b")).to_have_text(["A", "-"])
    expect(page).to_have_url(re.compile("own_name=nina"))
    settled(page)
    assert parameters(page)["text"] == ["Adam-eva"]
    other = new_page(browser)
    other.set_viewport_size({"width": 390, "height": 844})
    visit(other, page.url)
    expect(other.get_by_role("status").filter(has_text="A (character 1)")).to_be_visible()
    assert other.get_by_test_id("stMain").evaluate("e => e.scrollWidth") <= 390
    other.context.close()
