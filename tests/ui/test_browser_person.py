"""The person's cookie in a real browser: kept, shared by tabs, brought to another device."""

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.ui.browsing import new_page, settled, visit

pytestmark = pytest.mark.browser
CODE = re.compile("[0-9a-f]{32}")
BLOCKED = "Your browser keeps no cookie"
ASKED = "This browser already belongs to somebody with 0 runs."
# A browser that keeps no cookies of scripts.
REFUSE = """Object.defineProperty(document, "cookie", { get: () => "", set: () => {} })"""


def cookie(context: BrowserContext) -> dict:
    found = [each for each in context.cookies() if each["name"] == "wordlm_person"]
    return found[0] if found else {}


def kept(page: Page) -> str:
    """Return the code once the browser keeps one."""
    for _ in range(100):
        if CODE.fullmatch(cookie(page.context).get("value", "")):
            break
        page.wait_for_timeout(50)
    return cookie(page.context)["value"]


def recovery_link(page: Page) -> str:
    page.get_by_role("button", name="My runs on another device").click()
    code = page.get_by_test_id("stPopoverBody").locator("code")
    expect(code).to_contain_text("me=")
    found = code.text_content()
    page.keyboard.press("Escape")
    return found


def test_a_code_is_kept_where_it_is_needed_and_nowhere_shown(page, server):
    page.context.add_cookies([{"name": "wordlm_person", "value": "../../odd", "url": server}])
    visit(page, f"{server}/attention")
    assert cookie(page.context)["value"] == "../../odd"  # this page needs none
    visit(page, f"{server}/runs")
    code = kept(page)
    found = cookie(page.context)
    assert (found["path"], found["sameSite"], found["secure"]) == ("/", "Lax", False)
    assert code not in page.url
    assert code not in page.content()
    assert code in recovery_link(page)
    page.reload()
    settled(page)
    assert kept(page) == code
    assert code in recovery_link(page)


def test_the_link_brings_the_person_to_another_device_and_leaves_no_trace(page, server, browser):
    visit(page, f"{server}/runs")
    code, link = kept(page), recovery_link(page)
    other = new_page(browser)
    visit(other, f"{server}/attention")
    before = other.evaluate("history.length")
    other.goto(link)  # nobody is known there yet
    settled(other)
    assert kept(other) == code
    assert "me=" not in other.url
    assert other.evaluate("history.length") == before + 1
    assert recovery_link(other) == link
    for step in (other.go_back, other.go_forward):
        step()
        settled(other)
        assert "me=" not in other.url
    other.context.close()


def test_a_browser_that_is_somebodys_is_asked_before_it_is_somebody_elses(page, server, browser):
    visit(page, f"{server}/runs")
    code, link = kept(page), recovery_link(page)
    other = new_page(browser)
    other.context.add_cookies([{"name": "wordlm_person", "value": "a" * 32, "url": server}])
    other.goto(link)
    expect(other.get_by_text(ASKED)).to_be_visible()
    assert "me=" not in other.url
    assert kept(other) == "a" * 32
    other.get_by_role("button", name="Stay").click()
    settled(other)
    assert kept(other) == "a" * 32
    assert "a" * 32 in recovery_link(other)
    other.goto(link)
    other.get_by_role("button", name="Switch").click()
    settled(other)
    assert kept(other) == code
    assert recovery_link(other) == link
    other.context.close()


def test_two_tabs_opened_at_once_are_one_person(browser, server):
    context = browser.new_context()
    tabs = [context.new_page() for _ in range(2)]
    for tab in tabs:
        tab.set_default_timeout(20_000)
        tab.goto(f"{server}/runs", wait_until="commit")
    for tab in tabs:
        settled(tab)
    code = kept(tabs[0])
    tabs[0].wait_for_timeout(600)  # until the later one was told, too
    for tab in tabs:
        settled(tab)
    assert [code in recovery_link(tab) for tab in tabs] == [True] * 2
    context.close()


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
