"""The person's cookie in a real browser: kept, shared by tabs, brought to another device."""

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.ui.browsing import new_page, settled, visit

pytestmark = pytest.mark.browser
CODE = re.compile("[0-9a-f]{32}")
BLOCKED = "Your browser keeps no cookie"
# A browser that keeps no cookies of scripts.
REFUSE = """Object.defineProperty(document, "cookie", { get: () => "", set: () => {} })"""


def cookie(context: BrowserContext) -> dict:
    found = [each for each in context.cookies() if each["name"] == "wordlm_person"]
    return found[0] if found else {}


def kept(page: Page) -> str:
    """Return the code once the browser keeps one and the page has heard of it."""
    for _ in range(50):
        if cookie(page.context):
            break
        page.wait_for_timeout(100)
    page.wait_for_timeout(600)
    settled(page)
    return cookie(page.context)["value"]


def recovery_link(page: Page) -> str:
    page.get_by_role("button", name="My runs on another device").click()
    code = page.get_by_test_id("stPopoverBody").locator("code")
    expect(code).to_contain_text("me=")
    found = code.text_content()
    page.keyboard.press("Escape")
    return found


def test_a_code_is_kept_where_it_is_needed_and_nowhere_shown(page, server):
    visit(page, f"{server}/attention")
    page.wait_for_timeout(500)
    assert cookie(page.context) == {}
    visit(page, f"{server}/runs")
    code = kept(page)
    found = cookie(page.context)
    assert CODE.fullmatch(code)
    assert (found["path"], found["sameSite"], found["secure"]) == ("/", "Lax", False)
    assert code not in page.url
    assert code not in page.content()
    assert code in recovery_link(page)
    page.reload()
    settled(page)
    assert kept(page) == code


def test_the_link_brings_the_person_to_another_device_and_leaves_no_trace(page, server, browser):
    visit(page, f"{server}/runs")
    code = kept(page)
    link = recovery_link(page)
    other = new_page(browser)
    visit(other, f"{server}/runs")
    assert kept(other) != code
    before = other.evaluate("history.length")
    other.goto(link)
    settled(other)
    assert kept(other) == code
    assert "me=" not in other.url
    assert other.evaluate("history.length") == before + 1
    assert recovery_link(other) == link
    other.go_back()
    settled(other)
    assert "me=" not in other.url
    other.go_forward()
    settled(other)
    assert "me=" not in other.url
    other.context.close()


def test_two_tabs_opened_at_once_are_one_person(browser, server):
    context = browser.new_context()
    tabs = [context.new_page() for _ in range(3)]
    for tab in tabs:
        tab.set_default_timeout(20_000)
        tab.goto(f"{server}/runs", wait_until="commit")
    for tab in tabs:
        settled(tab)
    code = kept(tabs[0])
    assert [code in recovery_link(tab) for tab in tabs] == [True] * 3
    context.close()


def test_an_odd_cookie_is_replaced(page, server):
    page.context.add_cookies([{"name": "wordlm_person", "value": "../../odd", "url": server}])
    visit(page, f"{server}/runs")
    assert CODE.fullmatch(kept(page))


def test_a_browser_that_keeps_nothing_is_told_so(page, server):
    page.add_init_script(REFUSE)
    visit(page, f"{server}/runs")
    expect(page.get_by_text(BLOCKED)).to_be_visible()
    link = recovery_link(page)
    page.goto(link)
    settled(page)
    assert "me=" not in page.url
    expect(page.get_by_text(BLOCKED)).to_be_visible()
    assert recovery_link(page) == link
