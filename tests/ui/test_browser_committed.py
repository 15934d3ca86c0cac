"""Each page of the walk through microgpt in a real browser, on the committed checkpoint."""

import pytest
from playwright.sync_api import expect

from tests.ui.browsing import new_page, type_probe, visit

pytestmark = pytest.mark.browser


@pytest.fixture
def walk(browser, real_server):
    """Open a page of the walk; it must be on the committed checkpoint."""
    opened = new_page(browser)

    def to(address: str):
        visit(opened, f"{real_server}/{address}")
        return opened

    yield to
    opened.context.close()


def answer(page, text: str) -> None:
    expect(page.get_by_role("status").filter(has_text=text).first).to_be_visible()


def test_the_map_keeps_a_sentence(walk):
    page = walk("microgpt_map")
    page.get_by_label("Before", exact=True).fill("Letters become numbers.")
    page.get_by_role("button", name="Lock").click()
    expect(page.locator(".wl-quote").first).to_have_text("Letters become numbers.")


def test_tokens_count_the_predictions_of_a_name(walk):
    page = walk("tokens")
    answer(page, "5 predictions, loss 2.726 nats")
    type_probe(page, "mary-jane")
    answer(page, "- (character 5)")


def test_autograd_gives_the_gradients(walk):
    page = walk("autograd")
    page.get_by_role("button", name="To the end").click()
    answer(page, "Result 16; a.grad = -24, b.grad = 16, c.grad = 8")


def test_parameters_add_up(walk):
    page = walk("parameters")
    page.get_by_role("button", name="Show the table").click()
    table = page.get_by_role("table", name="Every matrix with its count")
    expect(table.locator("tr").last).to_contain_text("4,192")


def test_one_position_is_walked_by_keyboard(walk):
    page = walk("one_position")
    page.get_by_role("button", name="Skip").click()
    slider = page.get_by_role("slider", name="Step of the walk")
    slider.focus()
    slider.press("ArrowRight")
    answer(page, "2 · position embedding: 16 numbers")


def test_one_training_step_lowers_the_loss(walk):
    page = walk("training")
    for stage in ("Forward", "Loss", "Backward", "Adam"):
        page.get_by_role("button", name=stage, exact=True).click()
    answer(page, "3.036")


def test_an_experiment_is_committed_and_run(walk):
    page = walk("experiments")
    page.get_by_role("radio", name="stays the same").click()
    expect(page.get_by_label("By how many nats")).to_have_count(0)  # the same has no size
    page.get_by_label("Parameters, by hand").fill("4192")
    page.get_by_label("Because").fill("only the sampling differs")
    page.get_by_role("button", name="Lock my prediction").click()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("You counted 4,192 parameters: right.")).to_be_visible(timeout=30_000)


def test_a_question_is_answered(walk):
    page = walk("check_yourself")
    # The set's number and the model decide the first question: how many ids a name has.
    asked = page.locator(".wl-ask").inner_text()
    name = asked.split("“")[1].split("”")[0]
    box = page.get_by_role("textbox", name="Your answer")
    box.fill(str(len(name) + 2))
    box.press("Enter")
    answer(page, "Right")
