"""The app in a real browser, on a server of its own with tiny checkpoints."""

import csv
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
from wordlm_core.lens import ablation, attention

pytestmark = pytest.mark.browser
REPEATED = "the cat saw the dog and the bird"
TOKENS = ["<BOS>", *REPEATED.split()]


def test_a_typed_sentence_with_repeated_words_is_drawn_position_by_position(page, server):
    visit(page, f"{server}/attention")
    type_probe(page, REPEATED)
    expect(page.locator(".wl-table td").nth(0)).to_have_text("0 · <BOS>")
    expect(figure(page, "heatmap_clicked").locator(".xtick text")).to_have_count(len(TOKENS))
    for axis in "xy":
        assert ticks(page, "heatmap_clicked", axis) == TOKENS
    assert parameters(page)["text"] == [REPEATED]


@pytest.mark.parametrize("text", ["1 2 10 3", "the <UNK> saw <b>x</b>", 'don\u2019t , ! "'])
def test_tokens_are_shown_as_they_are(page, server, text):
    visit(page, f"{server}/attention")
    type_probe(page, text)
    model = make("attention")
    tokens = list(model.vocabulary.probe(text, CONTEXT).tokens)
    expect(figure(page, "heatmap_clicked").locator(".xtick text")).to_have_count(len(tokens))
    assert ticks(page, "heatmap_clicked", "x") == tokens
    cells = page.locator(".wl-table td:first-child").all_text_contents()
    assert cells == [f"{position} · {token}" for position, token in enumerate(tokens)]


def test_a_click_into_the_heatmap_takes_that_row_apart(page, server):
    visit(page, f"{server}/attention")
    type_probe(page, REPEATED)
    expect(page.get_by_role("heading", name="How position 8 · bird shares")).to_be_visible()
    click_row(page, "heatmap_clicked", 4, of=len(TOKENS))
    expect(page.get_by_role("heading", name="How position 4 · the shares")).to_be_visible()
    assert parameters(page)["query"] == ["4 · the"]
    loaded = make("attention")
    probe = loaded.vocabulary.probe(REPEATED, CONTEXT)
    steps = attention.row_steps(loaded.model.trace(probe.ids), 0, 0, 4)
    shown = page.locator(".wl-table .wl-bar b").all_text_contents()
    assert shown == [f"{weight:.3f}" for weight in steps.weights]
    assert page.locator(".wl-table tbody tr").nth(8).text_content().count("masked") == 1


def test_the_step_slider_moves_by_keyboard(page, server):
    visit(page, f"{server}/attention")
    figure(page, "heatmap_clicked")
    before = page.locator(".wl-table .wl-bar b").all_text_contents()
    slider = page.get_by_role("slider", name="Training step")
    slider.focus()
    page.keyboard.press("Home")
    expect(page).to_have_url(re.compile("step=0"))
    expect(page.get_by_test_id("stSlider").first).to_contain_text("0")
    settled(page)
    assert page.locator(".wl-table .wl-bar b").all_text_contents() != before


def test_it_answers_while_one_types_and_loses_no_letter(page, server):
    visit(page, f"{server}/attention")
    page.get_by_role("slider", name="Query position").focus()
    page.keyboard.press("Home")
    expect(page.get_by_role("heading", name="How position 0")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("heading", name="How position 1 · lily")).to_be_visible()
    box = page.get_by_label("Probe sentence")
    box.fill("")
    expect(page.get_by_text("type at least one word")).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(0)
    box.press_sequentially(REPEATED, delay=60)
    expect(page.get_by_role("heading", name="How position 1 · the")).to_be_visible()
    expect(page.locator(".wl-table tbody tr")).to_have_count(len(TOKENS))
    expect(box).to_have_value(REPEATED)
    expect(box).to_be_focused()


@pytest.mark.parametrize("wait", [0, 150, 400])
def test_a_click_right_after_typing_loses_no_text(page, server, wait):
    visit(page, f"{server}/attention?checkpoint=multihead_seed11")
    type_probe(page, REPEATED)  # also a preset: its mark must not act like a click
    page.wait_for_timeout(wait)
    page.get_by_role("radio", name="head 2").click()
    expect(page.get_by_role("heading", name="How position 8 · bird shares")).to_be_visible()
    expect(page.get_by_role("radio", name="head 2")).to_have_attribute("aria-checked", "true")
    expect(page.get_by_label("Probe sentence")).to_have_value(REPEATED)


def test_the_overview_answers_a_typed_sentence(page, server):
    visit(page, server)
    before = figure(page, "next").locator(".ytick text").all_text_contents()
    type_probe(page, REPEATED)
    expect(page).to_have_url(re.compile("text=the"))
    settled(page)
    assert figure(page, "next").locator(".ytick text").all_text_contents() != before


def test_a_copied_link_shows_the_same_view_elsewhere(page, server, browser):
    visit(page, f"{server}/attention?checkpoint=multihead_seed11")
    type_probe(page, REPEATED)
    page.get_by_role("radio", name="head 2").click()
    slider = page.get_by_role("slider", name="Query position")
    expect(slider).to_be_visible()
    slider.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("heading", name="How position 7 · the shares")).to_be_visible()
    page.get_by_role("button", name="Link").click()
    code = page.get_by_test_id("stPopoverBody").locator("code")
    expect(code).to_contain_text("query=7")
    link = code.text_content()
    seen = page.locator(".wl-table").text_content()
    other = new_page(browser)
    visit(other, link)
    expect(other.get_by_role("heading", name="How position 7 · the shares")).to_be_visible()
    assert other.locator(".wl-table").text_content() == seen
    expect(other.get_by_label("Probe sentence")).to_have_value(REPEATED)
    other.context.close()


def test_the_csv_holds_what_the_lens_computes(page, server, tmp_path):
    visit(page, f"{server}/ablation?text={REPEATED.replace(' ', '+')}")
    figure(page, "kl_clicked")
    with page.expect_download() as download:
        page.get_by_role("button", name="Data as CSV").click()
    download.value.save_as(tmp_path / "ablation.csv")
    with (tmp_path / "ablation.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    loaded = make("attention")
    probe = loaded.vocabulary.probe(REPEATED, CONTEXT)
    result = ablation.ablate(loaded.model, loaded.vocabulary, probe)
    assert [int(row["position"]) for row in rows] == [e.position for e in result.effects]
    assert [row["token"] for row in rows] == [e.token for e in result.effects]
    assert [float(row["kl_nats"]) for row in rows] == pytest.approx(
        [e.kl for e in result.effects], rel=1e-5
    )


def test_the_html_draws_every_figure_without_a_network(page, server, browser, tmp_path):
    visit(page, f"{server}/ablation?text={REPEATED.replace(' ', '+')}")
    figure(page, "scatter")
    with page.expect_download() as download:
        page.get_by_role("button", name="Figures as HTML").click()
    download.value.save_as(tmp_path / "ablation.html")
    other = new_page(browser)
    asked = []
    other.on("request", lambda request: asked.append(request.url))
    other.goto((tmp_path / "ablation.html").as_uri())
    expect(other.locator("figure .main-svg").first).to_be_visible()
    expect(other.locator("figure:has(.main-svg)")).to_have_count(3)
    expect(other.locator("figure .ytick").get_by_text("bird").first).to_be_visible()
    assert asked == [(tmp_path / "ablation.html").as_uri()]
    other.context.close()


def test_a_chip_and_a_bar_choose_the_token_to_take_away(page, server):
    visit(page, f"{server}/ablation")
    type_probe(page, REPEATED)
    page.get_by_role("radio", name="4 · the").click()
    answer = page.get_by_role("status").filter(has_text="moves the prediction")
    expect(answer).to_contain_text("the (4)")
    expect(figure(page, "kl_clicked").locator(".ytick text")).to_have_count(len(TOKENS) - 1)
    click_row(page, "kl_clicked", 1, of=len(TOKENS) - 1)
    expect(answer).to_contain_text("cat (2)")


def test_values_follow_over_the_menu_and_back_goes_back(page, server):
    visit(page, f"{server}/attention")
    type_probe(page, REPEATED)
    expect(page).to_have_url(re.compile("text="))
    menu = page.get_by_test_id("stSidebarNav")
    menu.get_by_text("Ablation").click()
    expect(page.get_by_role("heading", name="Ablation", exact=True)).to_be_visible()
    expect(page.get_by_label("Probe sentence")).to_have_value(REPEATED)
    page.get_by_role("radio", name="2 · cat").click()
    expect(page).to_have_url(re.compile("token="))
    menu.get_by_text("Attention").click()
    expect(page.get_by_role("heading", name="Attention", exact=True)).to_be_visible()
    menu.get_by_text("Ablation").click()
    expect(page.get_by_role("heading", name="Ablation", exact=True)).to_be_visible()
    expect(page.get_by_role("radio", name="2 · cat")).to_have_attribute("aria-checked", "true")
    # A change of page can leave a second entry for the parameters that the page drops, so one
    # Back may show the same page once more; it must never take three.
    heading = page.get_by_role("heading", name="Attention", exact=True)
    for _ in range(2):
        page.go_back()
        settled(page)
        page.wait_for_timeout(500)
        if heading.is_visible():
            break
    expect(heading).to_be_visible()
    expect(page.get_by_label("Probe sentence")).to_have_value(REPEATED)


def test_two_sessions_do_not_see_each_other(page, server, browser):
    other = new_page(browser)
    visit(page, f"{server}/attention")
    visit(other, f"{server}/attention")
    type_probe(page, "the cat")
    type_probe(other, "a red ball")
    expect(page.locator(".wl-table tbody tr")).to_have_count(3)
    expect(other.locator(".wl-table tbody tr")).to_have_count(4)
    assert page.get_by_label("Probe sentence").input_value() == "the cat"
    assert other.get_by_label("Probe sentence").input_value() == "a red ball"
    other.context.close()


@pytest.mark.parametrize("address", ["", "attention", "ablation"])
def test_the_first_answer_fits_a_projector(page, server, address):
    visit(page, f"{server}/{address}")
    assert bottom_of_the_first_figure(page) <= 768
    assert page.evaluate("document.documentElement.scrollWidth") <= 1366


def test_it_fits_a_phone(page, server):
    page.set_viewport_size({"width": 390, "height": 844})
    for address in ("", "attention", "ablation"):
        visit(page, f"{server}/{address}")
        expect(page.locator(".js-plotly-plot").first).to_be_visible()
        assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth") <= 390
