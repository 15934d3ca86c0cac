"""The Autograd page: the graph, the backward steps, what calls add up to, bad input, files."""

import csv
import io
import json
import re
from itertools import combinations, pairwise

import pytest

from app import exports_gpt, figures
from app.autograd_page import PRESETS
from tests.ui.test_pages import button_group, html, is_fine, offered, open_page, said, specs
from wordlm_core.lens.expression import evaluate

LETTERS = {"a": 2.0, "b": -3.0, "c": 10.0}
LARGE = (
    "relu(a*b+c)*exp(-a/2)+(b-c)**2/(1+exp(a*c-20))",
    "relu(relu(relu(relu(a*b+c)+a)+b)+c)*a",
    "a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a",
    "(a+b)*(b+c)*(c+a)*(a-b)*(b-c)*(c-a)",
    "exp(a)*exp(a)",
    "7",
)
EACH_GRAPH = pytest.mark.parametrize("text", [*PRESETS, *LARGE])


def plain(at) -> str:
    return re.sub(r"<[^>]+>", "", html(at))


def table_rows(at, label: str) -> list[list[str]]:
    found = re.search(rf'aria-label="{label}">(.*?)</table>', html(at), re.S)
    assert found
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", found[1])[1:]
    return [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in rows]


def autograd_page(**parameters: str):
    return open_page("autograd", **parameters)


# -- the page


def to_the_end(at):
    next(button for button in at.button if button.label == "To the end").click().run()
    return at


def numeric_check(at) -> list[list[str]]:
    return table_rows(at, "The result after a small change of each letter")


def test_the_first_view_is_forward_only_and_tells_no_grad(artifacts):
    at = autograd_page()
    assert is_fine(at)
    assert at.select_slider("backward_step").value == 0
    assert "Result 16; a.grad = 0, b.grad = 0, c.grad = 0" in plain(at)
    assert [row[3] for row in table_rows(at, "Every node of the graph")] == ["0"] * 6
    assert [row[3] for row in numeric_check(at)] == ["not yet"] * 3
    assert "-24" not in plain(at)


def test_the_last_step_is_the_example_of_the_course(artifacts):
    at = to_the_end(autograd_page())
    assert is_fine(at)
    assert at.select_slider("backward_step").value == 5
    assert "Result 16; a.grad = -24, b.grad = 16, c.grad = 8" in plain(at)
    assert table_rows(at, "Every node of the graph") == [
        ["a", "", "2", "-24"],
        ["b", "", "-3", "16"],
        ["d", "a * b", "-6", "8"],
        ["c", "", "10", "8"],
        ["e", "d + c", "4", "8"],
        ["f", "e ** 2", "16", "1"],
    ]
    assert numeric_check(at) == [
        ["a + 0.001", "15.976009", "-0.023991", "-0.024000"],
        ["b + 0.001", "16.016004", "+0.016004", "+0.016000"],
        ["c + 0.001", "16.008001", "+0.008001", "+0.008000"],
    ]
    assert "An intervention" in html(at)


def test_each_step_says_what_is_passed_and_marks_who_received(artifacts):
    at = autograd_page()
    result = evaluate(PRESETS[0], LETTERS)
    for step in range(6):
        at.select_slider("backward_step").set_value(step).run()
        grads = [figures.short_number(grad) for grad in result.grads_at(step)]
        assert [row[3] for row in table_rows(at, "Every node of the graph")] == grads
        marked = re.findall(r'<tr class="wl-strong"><td class="wl-left">([^<]+)', html(at))
        if step == 0:
            assert "Forward only: every grad is still 0." in plain(at)
            assert marked == []
        else:
            each = result.passes[step - 1]
            assert marked == [result.nodes[each.child].name]
            product = f"its grad += {each.local_grad:g} \u00d7 {each.upstream:g}"
            assert f"{product}, from {each.before:g} to {each.after:g}" in plain(at)
            formula = result.nodes[each.node].formula
            rule = {"e ** 2": "n * x ** (n - 1)", "d + c": "A sum", "a * b": "In a product"}
            assert re.search(rf"= {re.escape(formula)}\. .*{re.escape(rule[formula])}", plain(at))


def test_buttons_move_the_step(artifacts):
    at = autograd_page(backward_step="2")
    assert at.select_slider("backward_step").value == 2

    def press(label: str) -> int:
        next(button for button in at.button if button.label == label).click().run()
        return at.select_slider("backward_step").value

    assert press("Next ▶") == 3
    assert press("◀ Back") == 2
    assert press("To the end") == 5
    assert {button.label for button in at.button if button.disabled} == {"Next ▶", "To the end"}
    assert press("Forward only") == 0
    assert {button.label for button in at.button if button.disabled} == {"Forward only", "◀ Back"}


def test_calls_without_zeroing_add_up_and_the_sentence_says_by_how_much(artifacts):
    at = autograd_page()
    assert "After" not in plain(to_the_end(at))
    button_group(at, "calls", 1)
    assert at.select_slider("backward_step").value == 5
    assert "Result 16; a.grad = -24, b.grad = 16, c.grad = 8" in plain(at)
    assert "in place of" not in plain(at)
    to_the_end(at)
    assert at.select_slider("backward_step").value == 10
    assert "Result 16; a.grad = -96, b.grad = 64, c.grad = 24" in plain(at)
    assert "a has -96 in place of -24; b has 64 in place of 16; c has 24 in place of 8" in plain(at)


def test_an_accumulated_grad_fails_the_numeric_check(artifacts):
    at = to_the_end(autograd_page(calls="2"))
    assert numeric_check(at) == [
        ["a + 0.001", "15.976009", "-0.023991", "-0.096000", "\u2260 not the slope"],
        ["b + 0.001", "16.016004", "+0.016004", "+0.064000", "\u2260 not the slope"],
        ["c + 0.001", "16.008001", "+0.008001", "+0.024000", "\u2260 not the slope"],
    ]
    assert "a, b, c: accumulated over 2 calls, not the slope" in plain(at)
    at.select_slider("backward_step").set_value(7).run()
    assert [row[3] for row in numeric_check(at)] == ["not yet"] * 3
    at.select_slider("backward_step").set_value(5).run()
    assert [row[3:] for row in numeric_check(at)] == [["-0.024000"], ["+0.016000"], ["+0.008000"]]
    assert "accumulated" not in plain(at)


def test_a_grad_of_zero_stays_the_slope(artifacts):
    at = to_the_end(autograd_page(expression="relu(a*b) + c", calls="2"))
    assert [row[4] for row in numeric_check(at)] == ["", "", "\u2260 not the slope"]
    assert "c: accumulated over 2 calls" in plain(at)


def test_a_preset_and_a_number_change_the_graph(artifacts):
    at = autograd_page()
    offered(at, "formula", 2)
    to_the_end(at)
    assert at.text_input("expression").value == "relu(a*b) + c"
    assert "Result 10; a.grad = 0, b.grad = 0, c.grad = 1" in plain(at)
    at.number_input("b").set_value(1.5).run()
    assert "Result 13; a.grad = 1.5, b.grad = 2, c.grad = 1" in plain(at)
    assert at.select_slider("backward_step").value == 5
    offered(at, "formula", 1)
    assert at.select_slider("backward_step").value == 0  # another graph to predict
    offered(at, "formula", 2)
    link = next(code.value for code in at.code if "expression=" in code.value)
    assert "b=1.5" in link
    assert "expression=relu%28a%2Ab%29+%2B+c" in link


@pytest.mark.parametrize("text", PRESETS)
def test_a_link_opens_the_same_view(artifacts, text):
    at = autograd_page(expression=text, a="0.5", b="2", c="3", calls="3", backward_step="1")
    assert is_fine(at)
    result = evaluate(text, {"a": 0.5, "b": 2, "c": 3}, 3)
    shown = [row[3] for row in table_rows(at, "Every node of the graph")]
    assert shown == [figures.short_number(grad) for grad in result.grads_at(1)]


@pytest.mark.parametrize("wrong", ["zzz", "nan", "inf", "1e99", ""])
def test_a_link_with_a_number_that_is_none_falls_back(artifacts, wrong):
    at = autograd_page(a=wrong, backward_step="99", calls="7")
    assert is_fine(at)
    assert "Result 16; a.grad = 0" in plain(at)
    assert plain(at).count("which is not here") == 2


def test_values_are_there_when_one_comes_back(artifacts):
    at = autograd_page()
    at.text_input("expression").set_value("a*b*c").run()
    at.number_input("a").set_value(4.0).run()
    at.switch_page("../pages/10_overview.py").run()
    at.switch_page("../pages/83_autograd.py").run()
    assert at.text_input("expression").value == "a*b*c"
    assert at.number_input("a").value == 4
    assert "Result -120" in plain(at)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Type an expression such as (a*b + c)**2"),
        ("   ", "Type an expression such as"),
        ("a +", "cannot be read at place"),
        ("<b>a</b>", "“<” at place 1 has no meaning here"),
        ("__import__('os')", "“__import__” at place 1"),
        ("log(b)", "Log needs a number above 0, not -3 (at place 1)"),
        ("10**10**10", "exponent at place 5"),
        ("(" * 5_000, "up to 120 characters"),
    ],
)
def test_what_cannot_be_computed_is_a_sentence_and_no_stale_figure(artifacts, text, sentence):
    at = autograd_page()
    at.text_input("expression").set_value(text).run()
    is_fine(at)
    assert sentence in said(at)
    assert specs(at) == []


def test_an_expression_without_operations_has_no_steps(artifacts):
    at = autograd_page(expression="a", calls="2")
    assert is_fine(at)
    assert "nothing is passed back" in plain(at)
    assert "Not in the expression, so without any effect: b, c." in plain(at)
    assert not at.select_slider
    assert "No letter in the expression" in plain(autograd_page(expression="7"))


def test_the_code_gives_the_numbers_on_screen(artifacts, capsys):
    at = autograd_page(expression="a/b + c**2", calls="2", a="1.5")
    exec(at.code[-1].value, {})
    first, *rest = capsys.readouterr().out.splitlines()
    result = evaluate("a/b + c**2", LETTERS | {"a": 1.5}, 2)
    assert [float(n) for n in first.split()] == [result.result.data, *result.grads.values()]
    nodes, checks = rest[: len(result.nodes)], rest[len(result.nodes) :]
    for line, node in zip(nodes, result.nodes, strict=True):
        assert f"{node.data} {node.grad} {node.local_grads}" in line
    assert checks == [f"{n.letter} {n.after} {n.change}" for n in result.nudges]


# -- the files


def test_the_files_hold_every_node_and_pass():
    result = evaluate(PRESETS[0], LETTERS, 2)
    rows = list(csv.DictReader(io.StringIO(exports_gpt.expression_csv(result))))
    assert [row["name"] for row in rows] == ["a", "b", "d", "c", "e", "f"]
    assert [float(row["grad"]) for row in rows] == [node.grad for node in result.nodes]
    assert (rows[2]["children"], rows[2]["local_grads"]) == ("0 1", "-3.0 2.0")
    data = json.loads(exports_gpt.expression_json(result))
    assert (data["result"], data["calls"]) == (16, 2)
    assert data["grads"] == {"a": -96, "b": 64, "c": 24}
    assert len(data["passes"]) == 10
    assert data["nudges"][0]["after"] == 15.976009


# -- the figure


@EACH_GRAPH
def test_boxes_and_labels_lie_apart_and_lines_run_between_boxes(text):
    result = evaluate(text, LETTERS)
    spec = figures.expression_graph(result, 0).spec
    lines, _, boxes = spec["data"]
    at = list(zip(boxes["x"], boxes["y"], strict=True))
    assert len(at) == len(result.nodes)
    for (x, y), (other_x, other_y) in combinations(at, 2):
        assert x != other_x or abs(y - other_y) >= 1
    bottom, top = spec["layout"]["yaxis"]["range"]
    assert all(top + 0.45 <= y <= bottom - 0.45 for _, y in at)
    # Two labels before the same column of boxes are at least a line of text (18 px of 92) apart.
    labels = spec["layout"]["annotations"]
    assert len(labels) == len(result.passes)
    for label, other in combinations(labels, 2):
        same_gap = int(label["x"] + 0.66) == int(other["x"] + 0.66)
        assert not same_gap or abs(label["y"] - other["y"]) > 0.19
    # Where a line crosses a column it is level, and clear of every box there.
    corners = list(zip(lines["x"], lines["y"], strict=True))
    for (x0, y0), (x1, y1) in pairwise(corners):
        if x0 is not None and x1 is not None and round(x0) == round(x1):
            assert y0 == y1
            assert all(abs(y - y0) >= 0.7 for x, y in at if x == round(x0))


@EACH_GRAPH
def test_every_operation_stands_right_of_what_it_is_made_of(text):
    result = evaluate(text, LETTERS)
    x = figures.expression_graph(result, 0).spec["data"][2]["x"]
    for node in result.nodes:
        assert all(x[child] < x[node.id] for child in node.children)
    assert max(x) + 1 == figures.graph_columns(result)


@pytest.mark.parametrize("calls", [1, 2])
def test_the_line_of_each_step_is_marked_and_ends_at_who_receives(calls):
    result = evaluate("a*a + b", LETTERS, calls)
    for step, each in enumerate(result.passes, 1):
        spec = figures.expression_graph(result, step).spec
        _, taken, boxes = spec["data"]
        half = 0.33
        assert taken["x"][0] == pytest.approx(boxes["x"][each.node] - half)
        assert taken["x"][-2] == pytest.approx(boxes["x"][each.child] + half)
        assert taken["y"][-2] == boxes["y"][each.child]
        arrow, *labels = spec["layout"]["annotations"]
        assert (arrow["x"], arrow["y"]) == (taken["x"][-2], taken["y"][-2])
        marked = [label["text"] for label in labels if label["font"]["color"] == figures.MARK]
        assert marked == [f"\u00d7{each.local_grad:g}"]
        inked = [i for i, c in enumerate(boxes["textfont"]["color"]) if c == figures.MARK]
        assert inked == [each.child]
        assert f"grad {figures.short_number(each.after)}" in boxes["text"][each.child]


def test_the_figure_is_told_in_words():
    result = evaluate(PRESETS[0], LETTERS)
    assert "before any backward pass" in figures.expression_graph(result, 0).alt
    told = figures.expression_graph(result, 1).alt
    assert "the last backward pass went from f to e" in told
    assert "e = d + c: data 4, grad 8" in told


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (16.0, "16"),
        (-0.0067153, "-0.00672"),
        (15.976009, "15.98"),
        (1234.5, "1234"),
        (123456.0, "123456"),
        (1.5e9, "1.5e+09"),
        (0.0, "0"),
    ],
)
def test_numbers_in_boxes_are_short(value, shown):
    assert figures.short_number(value) == shown
