"""Embeddings and Neighbours in a real browser: play, slide, click."""

import re

import pytest
from playwright.sync_api import expect

from tests.ui.browsing import click_row, figure, parameters, settled, ticks, visit
from tests.ui.conftest import VOCABULARY, make
from wordlm_core.lens import neighbours

pytestmark = pytest.mark.browser
PLACES = """() => [...document.querySelectorAll('.st-key-trails .textpoint')]
    .map(e => e.getBoundingClientRect()).map(r => [Math.round(r.x), Math.round(r.y)])"""


def places(page) -> list[list[int]]:
    """Return where the words stand on the screen."""
    return page.evaluate(PLACES)


def at_step(page, step: int) -> None:
    label = page.locator(".st-key-trails .slider-label").first
    expect(label).to_have_text(f"at training step {step}")


def nearest(kind: str, word: str) -> list[str]:
    table = make(kind).embedding_at(None)
    return [i.token for i in neighbours.nearest(table, VOCABULARY, VOCABULARY.stoi[word]).items]


def test_play_moves_the_words_without_the_server(page, server):
    visit(page, f"{server}/embeddings?words=cat,+dog,+bird&also=mlp_seed11")
    drawn = figure(page, "trails")
    expect(drawn.locator(".textpoint")).to_have_text(["cat", "dog", "bird"] * 2)
    at_step(page, 10)
    end, trails = places(page), drawn.locator(".js-line").first.get_attribute("d")
    sent: list[str] = []
    page.on("websocket", lambda _: sent.append("a new connection"))
    drawn.locator(".updatemenu-button").filter(has_text="Play").click()
    at_step(page, 5)
    page.wait_for_function("end => JSON.stringify((" + PLACES + ")()) !== end", arg=str(end))
    at_step(page, 10)
    page.wait_for_function(
        "end => JSON.stringify((" + PLACES + ")()) === JSON.stringify(end)", arg=end
    )
    assert drawn.locator(".js-line").first.get_attribute("d") == trails
    assert sent == []


def test_the_slider_is_dragged_to_the_start_and_words_stand_at_their_circles(page, server):
    visit(page, f"{server}/embeddings?words=cat,+dog")
    drawn = figure(page, "trails")
    at_step(page, 10)
    grip = drawn.locator(".slider-grip-rect").bounding_box()
    rail = drawn.locator(".slider-rail-rect").bounding_box()
    before = places(page)
    page.mouse.move(grip["x"] + grip["width"] / 2, grip["y"] + grip["height"] / 2)
    page.mouse.down()
    page.mouse.move(rail["x"] + 2, grip["y"] + grip["height"] / 2, steps=12)
    page.mouse.up()
    at_step(page, 0)
    assert places(page) != before
    circles = drawn.locator(".scatterlayer .trace").nth(1).locator(".point")
    heads = drawn.locator(".scatterlayer .trace").last.locator(".point")
    for index in range(2):
        mark, head = (each.nth(index).bounding_box() for each in (circles, heads))
        assert mark["x"] + mark["width"] / 2 == pytest.approx(head["x"] + head["width"] / 2, abs=2)
        assert mark["y"] + mark["height"] / 2 == pytest.approx(
            head["y"] + head["height"] / 2, abs=2
        )


def test_words_typed_reach_the_map_and_the_address(page, server):
    visit(page, f"{server}/embeddings")
    page.get_by_label("Words").fill("cat, dogg, 10")
    expect(page.get_by_text("“dogg” (near it: dog)")).to_be_visible()
    expect(figure(page, "trails").locator(".textpoint")).to_have_text(["cat", "10"])
    assert parameters(page)["words"] == ["cat, dogg, 10"]
    page.get_by_label("Words").fill("")
    expect(page.get_by_text("Type at least one word")).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(0)


def test_the_misleading_panels_say_so(page, server):
    visit(page, f"{server}/embeddings?words=cat,+dog")
    page.get_by_text("Separately fitted panels (misleading)").click()
    expect(page.get_by_text("axes turn, flip and swap between panels")).to_be_visible()
    expect(figure(page, "apart_0").locator(".textpoint")).to_have_text(["cat", "dog"] * 3)
    expect(page).to_have_url(re.compile("separate=true"))


def test_a_click_on_a_neighbour_goes_on_from_it(page, server):
    visit(page, f"{server}/neighbours?checkpoint=multihead_seed11&near=cat")
    first = nearest("multihead", "cat")
    expect(figure(page, "near_0_clicked").locator(".ytick text")).to_have_text(first)
    click_row(page, "near_0_clicked", 2, of=len(first))
    expect(page.get_by_label("Word", exact=True)).to_have_value(first[2])
    second = nearest("multihead", first[2])
    expect(figure(page, "near_0_clicked").locator(".ytick text")).to_have_text(second)
    assert parameters(page)["near"] == [first[2]]


def test_a_near_spelling_is_clicked(page, server):
    visit(page, f"{server}/neighbours?near=birdd")
    expect(page.get_by_text("near it: bird")).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(0)
    page.get_by_role("button", name="bird", exact=True).click()
    expect(page.get_by_label("Word", exact=True)).to_have_value("bird")
    expect(figure(page, "near_0_clicked")).to_be_visible()


def test_the_matrix_has_a_tick_for_each_word_as_typed(page, server):
    visit(page, f"{server}/neighbours?near=cat&words=1,+10,+2,+cat")
    expect(figure(page, "matrix").locator(".xtick text")).to_have_count(4)
    for axis in "xy":
        assert ticks(page, "matrix", axis) == ["1", "10", "2", "cat"]
    assert figure(page, "ranks").locator(".xtick text").all_text_contents() == ["step 0", "5", "10"]


@pytest.mark.parametrize(
    ("address", "key"), [("embeddings", "trails"), ("neighbours", "near_0_clicked")]
)
def test_it_fits_a_projector_and_a_phone(page, server, address, key):
    visit(page, f"{server}/{address}")
    first = figure(page, key)  # by key: charts do not mount in the order of the page
    expect(first).to_be_visible()
    box = first.bounding_box()
    assert box["y"] + box["height"] <= 768
    page.set_viewport_size({"width": 390, "height": 844})
    settled(page)
    assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth") <= 390


def test_the_map_in_space_is_one_drawing(page, server):
    visit(page, f"{server}/embeddings?words=cat,+dog&map=3-D&also=mlp_seed11")
    expect(figure(page, "trails").locator(".gl-container canvas")).to_have_count(1)
