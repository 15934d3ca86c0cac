"""What the browser tests do with a page: open it, wait for it, read and click its figures."""

import time
import urllib.request
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser, Page, expect

FLAGS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]
# Streamlit asks for these beside a deep link and does without them.
HARMLESS = ("_stcore/health", "_stcore/host-config")


def wait_for(address: str, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(address, timeout=1).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return


def describe(message) -> str:
    return f"{message.text} {message.location.get('url', '')}"


def new_page(browser: Browser) -> Page:
    opened = browser.new_context(viewport={"width": 1366, "height": 768}).new_page()
    opened.set_default_timeout(20_000)
    return opened


def visit(page: Page, address: str) -> None:
    page.goto(address)
    settled(page)


def settled(page: Page) -> None:
    """Wait until the script has run and its figures are drawn."""
    expect(page.locator("h1.wl-title")).to_be_visible(timeout=20_000)
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.get_by_test_id("stException")).to_have_count(0)


def figure(page: Page, key: str):
    drawn = page.locator(f".st-key-{key} .js-plotly-plot")
    expect(drawn).to_have_count(1, timeout=20_000)
    return drawn


def bottom_of_the_first_figure(page: Page) -> float:
    """Return where the topmost figure ends; figures do not mount in the order of the page."""
    figures = page.locator(".js-plotly-plot")
    expect(figures.first).to_be_visible(timeout=20_000)
    page.wait_for_timeout(1500)
    boxes = [drawn.bounding_box() for drawn in figures.all()]
    top = min((box for box in boxes if box), key=lambda box: box["y"])
    return top["y"] + top["height"]


def ticks(page: Page, key: str, axis: str) -> list[str]:
    return figure(page, key).locator(f".{axis}tick text").all_text_contents()


def click_row(page: Page, key: str, row: int, *, of: int) -> None:
    """Click into a row of the first panel of a figure, near its left end."""
    area = figure(page, key).locator(".nsewdrag").first
    height = area.bounding_box()["height"]
    area.click(position={"x": 15, "y": height * (row + 0.5) / of})


def type_probe(page: Page, text: str) -> None:
    page.get_by_label("Probe sentence").fill(text)


def parameters(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)
