"""Autograd in a real browser: type, step by keyboard and by button, open the link elsewhere."""

import re

import pytest
from playwright.sync_api import expect

from tests.ui.browsing import (
    bottom_of_the_first_figure,
    figure,
    new_page,
    parameters,
    settled,
    visit,
)

pytestmark = pytest.mark.browser


def boxes(page, size: str) -> list[str]:
    return figure(page, f"graph_{size}").locator(".textpoint text").all_text_contents()


def test_an_expression_is_typed_and_taken_back_step_by_step(page, server, browser):
    visit(page, f"{server}/autograd")
    answer = page.get_by_role("status")
    expect(answer.first).to_have_text("Result 16; a.grad = 0, b.grad = 0, c.grad = 0")
    assert bottom_of_the_first_figure(page) <= 768
    page.get_by_role("textbox", name="Expression over").fill("a*b + c*2")
    expect(answer.first).to_contain_text("Result 14")
    page.get_by_label("b", exact=True).fill("4")
    page.get_by_label("b", exact=True).press("Enter")
    expect(answer.first).to_contain_text("Result 28")
    settled(page)
    page.get_by_role("button", name="To the end").click()
    expect(answer.first).to_have_text("Result 28; a.grad = 4, b.grad = 2, c.grad = 2")
    slider = page.get_by_role("slider", name="Backward step")
    slider.focus()
    page.keyboard.press("Home")
    expect(answer.nth(1)).to_have_text("Forward only: every grad is still 0.")
    settled(page)
    page.get_by_role("slider", name="Backward step").focus()
    page.keyboard.press("ArrowRight")
    expect(answer.nth(1)).to_have_text("f passes on to d: its grad += 1 \u00d7 1, from 0 to 1")
    page.get_by_role("button", name="Next").click()
    expect(answer.nth(1)).to_have_text("f passes on to e: its grad += 1 \u00d7 1, from 0 to 1")
    expect(page).to_have_url(re.compile("backward_step=2"))
    settled(page)
    assert parameters(page)["expression"] == ["a*b + c*2"]
    drawn = boxes(page, "short")
    assert "f = d + edata 28grad 1" in drawn
    assert "adata 2grad 0" in drawn
    other = new_page(browser)
    visit(other, page.url)
    expect(other.get_by_role("status").first).to_have_text(
        "Result 28; a.grad = 0, b.grad = 0, c.grad = 0"
    )
    assert boxes(other, "short") == drawn
    other.context.close()


def test_a_long_graph_scrolls_on_a_phone_and_the_page_does_not(page, server):
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, f"{server}/autograd?expression=-log(exp(a)/(exp(a) %2B exp(b)))")
    drawn = figure(page, "graph_medium")
    assert drawn.bounding_box()["width"] >= 1000
    assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth") <= 390
    assert len(boxes(page, "medium")) == 10
