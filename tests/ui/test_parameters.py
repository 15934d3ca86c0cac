"""Parameters: the sheet filled in by hand, the table, the pictures, the small boxes."""

import base64
import csv
import io
import json
import re

import numpy as np
import pytest

from app import exports_gpt, figures, parameter_sheet, typed_vectors
from app.figures.base import MARK
from tests import tiny
from tests.ui.test_pages import html, is_fine, open_page, said, specs
from tests.ui.test_tokens import tables, words
from wordlm_core import checkpoint
from wordlm_core.lens import parameters
from wordlm_core.models import microgpt
from wordlm_core.models.base import softmax

MATRICES = parameters.inventory(tiny.char_checkpoint().model)
TOTAL = sum(matrix.count for matrix in MATRICES)
KEYS = [matrix.name for matrix in MATRICES]


def press(at, label: str):
    next(button for button in at.button if button.label == label).click()
    return at.run()


def fill(at, shapes, counts, total: str):
    for matrix, shape, count in zip(MATRICES, shapes, counts, strict=True):
        at.text_input(f"shape_{matrix.name}").set_value(shape)
        at.text_input(f"count_{matrix.name}").set_value(count)
    at.text_input("fill_total").set_value(total)
    return press(at, "Check")


def revealed(at) -> bool:
    return tables(at, "Every matrix with its count") != []


def unpacked(data: dict) -> np.ndarray:
    numbers = np.frombuffer(base64.b64decode(data["bdata"]), dtype=f"<{data['dtype']}")
    return numbers.reshape([int(n) for n in data["shape"].split(", ")])


# -- the sheet


def test_nothing_is_revealed_before_a_check_or_on_demand(artifacts):
    at = open_page("parameters")
    assert is_fine(at)
    assert tables(at, "Every matrix with its count") == []
    assert not re.search(r"\d of \d+ right|Right\.", words(at))
    press(at, "Show the table")
    rows = tables(at, "Every matrix with its count")[0]
    assert rows[-1] == ["all parameters", "", f"{TOTAL:,}"]
    assert [row[2] for row in rows[:-1]] == [f"{matrix.count:,}" for matrix in MATRICES]
    assert not re.search(r"\d of \d+ right|Right\.", words(at))


def test_right_answers_are_right_and_kept(artifacts):
    shapes = [f"{rows}x{columns}" for rows, columns in (m.shape for m in MATRICES)]
    at = fill(open_page("parameters"), shapes, [str(m.count) for m in MATRICES], f"{TOTAL:,}")
    assert f"{2 * len(MATRICES) + 1} of {2 * len(MATRICES) + 1} right" in words(at)
    assert words(at).count("Right.") == len(MATRICES) + 1
    assert [at.text_input(f"shape_{key}").value for key in KEYS] == shapes
    at.switch_page("../pages/82_tokens.py").run()
    at.switch_page("../pages/84_parameters.py").run()
    assert [at.text_input(f"shape_{key}").value for key in KEYS] == shapes
    assert tables(at, "Every matrix with its count")


def test_a_check_of_nothing_is_no_check(artifacts):
    at = open_page("parameters")
    for _ in range(3):
        press(at, "Check")
        assert is_fine(at)
        assert "There is nothing to check yet" in words(at)
        assert not re.search(r"\d of \d+ right|No shape yet", words(at))
        assert not revealed(at)
    at.text_input("fill_total").set_value("7")
    press(at, "Check")
    assert f"0 of {2 * len(MATRICES) + 1} right" in words(at)
    assert "There is nothing to check yet" not in words(at)


def test_a_wrong_answer_reveals_nothing_before_a_second_check(artifacts):
    at = open_page("parameters")
    at.text_input(f"shape_{KEYS[0]}").set_value("3 x 5")
    press(at, "Check")
    assert "Not 3 rows" in words(at)
    assert not revealed(at)
    press(at, "Check")
    assert revealed(at)


def test_each_wrong_answer_has_a_sentence(artifacts):
    shapes = ["9 by 8", "8 x 9", "", "<b>x</b>", "8,8", "8x8", "8x8", "8x16", "8 x 16"]
    counts = ["72", "17", "", "many", "64", "64", "63", "128", "24"]
    at = fill(open_page("parameters"), shapes, counts, "1")
    assert is_fine(at)
    text = words(at).replace("&lt;", "<").replace("&gt;", ">")
    assert "<b>x</b>" not in html(at)
    for sentence in (
        "Not 9 columns: they are as many as the model is wide.",
        "No shape yet. No count yet.",
        "is no shape: write rows x columns, such as 3 x 5.",
        "“many” is no whole number: write one like 15 or 1,234.",
        "Not 63: a matrix holds rows times columns.",
        "The other way round: its rows are as many as there are hidden units.",
        "24 is rows plus columns: a matrix holds rows times columns.",
        "Not 1: add up the counts of all matrices.",
    ):
        assert sentence in text
    assert [at.text_input(f"shape_{key}").value for key in KEYS] == shapes


def about(shape: str, count: str, total: str = "") -> tuple[tuple[str, ...], str]:
    """Return what is said of a shape and a count of 9 x 8, and of a total."""
    sheet = parameter_sheet.check(MATRICES, {MATRICES[0].name: (shape, count)}, total)
    return sheet.rows[0].wrong, sheet.wrong_total


@pytest.mark.parametrize("shape", ["9x8", "9 x 8", "9X8", "(9, 8)", " 9 * 8 ", "9 by 8", "9.0x8"])
@pytest.mark.parametrize("count", ["72", " 72 ", "72.0"])
def test_answers_are_read_as_everywhere(shape, count):
    assert about(shape, count)[0] == ()
    assert about(shape, count, f"{TOTAL:,}") == about(shape, count, f"{TOTAL}.0") == ((), "")


@pytest.mark.parametrize("typed", ["9", "9x", "x8", "9x8x1", "-9x8", "9.5x8", "a x b"])
def test_what_is_no_shape(typed):
    assert about(typed, "72")[0] == (
        f"“{typed}” is no shape: write rows x columns, such as 3 x 5.",
    )


@pytest.mark.parametrize("typed", ["7,2", "72.5", "9x8", "many"])
def test_what_is_no_count(typed):
    sentence = f"“{typed}” is no whole number: write one like 15 or 1,234."
    assert about("9x8", typed, typed) == ((sentence,), sentence)


def test_a_count_that_can_be_read_in_two_ways_is_not_judged():
    (said_of,), of_total = about("9x8", "1.152", "1.152")
    assert said_of == of_total
    assert said_of == "“1.152” can be read in two ways: write 1,152 or 1152 if that is meant."


def test_of_several_layers_the_first_is_asked_for_and_all_are_counted():
    model = tiny.char_checkpoint(n_layer=2).model
    matrices = parameters.inventory(model)
    asked = {m.name: ("", "") for m in matrices if not m.name.startswith("layer1")}
    one_layer = sum(m.count for m in matrices if m.name in asked)
    sheet = parameter_sheet.check(matrices, asked, str(one_layer))
    assert "counts one layer" in sheet.wrong_total
    every = str(sum(m.count for m in matrices))
    assert parameter_sheet.check(matrices, asked, every).right == 1


# -- the pictures


@pytest.mark.parametrize("step", range(3))
@pytest.mark.parametrize("chosen", [0, 1, 7, 8])
def test_before_and_after_hold_the_weights_on_one_scale(artifacts, step, chosen):
    at = open_page("parameters", matrix=KEYS[chosen])
    at.select_slider("step").set_value(step).run()
    loaded = tiny.char_checkpoint()
    heatmaps = [spec for spec in specs(at) if spec["data"][0]["type"] == "heatmap"]
    before, after, small, large = heatmaps[2], heatmaps[3], heatmaps[0], heatmaps[1]
    for label, large_one, mosaic in (
        ("step_0", before, small),
        (tiny.STEPS[step], after, large),
    ):
        weights = loaded.model_at(label).weights
        assert unpacked(large_one["data"][0]["z"]) == pytest.approx(weights[KEYS[chosen]], abs=1e-6)
        cells = unpacked(mosaic["data"][0]["z"])
        every = np.concatenate([array.ravel() for array in weights.values()])
        assert np.sort(cells[np.isfinite(cells)]) == pytest.approx(np.sort(every), abs=1e-6)
    scales = {(s["data"][0]["zmin"], s["data"][0]["zmax"]) for s in heatmaps}
    assert len(scales) == 1
    low, high = scales.pop()
    assert low == -high


def test_rows_of_tokens_carry_the_letters_and_axes_have_titles(artifacts):
    at = open_page("parameters", matrix="lm_head")
    chart = [spec for spec in specs(at) if spec["data"][0]["type"] == "heatmap"][-1]["layout"]
    labels = [*tiny.LETTERS.itos[:-1], "&lt;BOS&gt;"]
    assert chart["yaxis"]["ticktext"] == labels
    assert chart["yaxis"]["title"]["text"] == "token"
    assert chart["xaxis"]["title"]["text"] == "dimension of the stream"


def test_a_cell_of_the_mosaic_belongs_to_its_matrix():
    weights = {m.name: np.full(m.shape, float(i)) for i, m in enumerate(MATRICES)}
    drawn = figures.mosaic(weights, MATRICES, 1.0, 3).spec
    cells, hits = unpacked(drawn["data"][0]["z"]), drawn["data"][1]
    assert [cells[y, x] for x, y in zip(hits["x"], hits["y"], strict=True)] == hits["customdata"]
    assert set(hits["customdata"]) == set(range(len(MATRICES)))
    counts = [int((cells == index).sum()) for index in range(len(MATRICES))]
    assert counts == [m.count for m in MATRICES]  # none lies over another
    frame = drawn["layout"]["shapes"][0]
    inside = cells[int(frame["y0"] + 0.5) : int(frame["y1"] + 0.5)]
    inside = inside[:, int(frame["x0"] + 0.5) : int(frame["x1"] + 0.5)]
    assert set(inside.ravel()) == {3}


@pytest.mark.parametrize("sizes", [{"n_layer": 3}, {"vocab_size": 300}, {"hidden": 200}])
def test_other_sizes_are_drawn_too(sizes):
    config = tiny.config_of("microgpt", **sizes)
    weights = tiny.weights_of(config.shapes, 0)
    model = microgpt.build(config, weights)
    matrices = parameters.inventory(model)
    drawn = figures.mosaic(model.weights, matrices, 1.0, 0)
    cells = unpacked(drawn.spec["data"][0]["z"])
    cut = figures.MATRIX_SHOWN
    expected = sum(min(m.shape[0], cut) * min(m.shape[1], cut) for m in matrices)
    assert np.isfinite(cells).sum() == expected
    for index, matrix in enumerate(matrices):
        letters = [str(i) for i in range(config.vocab_size)]
        chart = figures.matrix_heatmap(weights[matrix.name], matrix, letters, 1.0, "now").spec
        assert chart["layout"]["height"] < 700, index


def test_the_curve_marks_the_matrix_and_the_step(artifacts):
    at = open_page("parameters", matrix="wpe", step="10")
    chart = specs(at)[-1]
    lines = chart["data"]
    assert [line["line"]["color"] == MARK for line in lines] == [False] * (len(KEYS) - 1) + [True]
    assert "wpe" in lines[-1]["hovertemplate"]
    way = parameters.journey(tiny.char_checkpoint())
    assert unpacked(lines[-1]["y"]) == pytest.approx(way.moved[1], abs=1e-5)
    assert chart["layout"]["shapes"][0]["x0"] == 10
    found = parameters.changes(tiny.char_checkpoint(), "step_10")[1]
    row = tables(at, "Each matrix before and after training")[0][1]
    assert row[-3:] == [f"{found.before.norm:.3f}", f"{found.after.norm:.3f}", f"{found.moved:.2f}"]


def test_a_file_with_one_step_says_that_there_is_no_before(open_folder, tmp_path):
    made = tiny.char_checkpoint()
    object.__setattr__(made, "snapshots", {})
    checkpoint.save(made, tmp_path / "artifacts/alone.npz")
    open_folder(tmp_path / "artifacts")
    at = open_page("parameters")
    assert is_fine(at)
    assert "no before to compare with" in words(at)
    assert specs(at) == []


def test_without_a_microgpt_there_is_a_sentence(open_folder, tmp_path):
    checkpoint.save(tiny.make_checkpoint("attention"), tmp_path / "artifacts/words.npz")
    open_folder(tmp_path / "artifacts")
    for address in ("parameters", "tokens"):
        at = open_page(address)
        assert [e.message for e in at.exception] == []
        assert "no microgpt to open yet" in said(at)


# -- the small boxes


def formula(at) -> str:
    return at.code[-2].value  # the last one is "Show the code"


def test_dot_product(artifacts):
    at = open_page("parameters", box="dot product", dot_a="1, 2, -3", dot_b="4 5 0.5")
    assert "1\u00d74 + 2\u00d75 + (-3)\u00d70.5" in formula(at)
    assert formula(at).endswith("= 12.5")
    rows = tables(at, "A dot product")[0]
    assert [row[3] for row in rows] == ["4", "10", "-1.5", "12.5"]


def test_linear(artifacts):
    at = open_page("parameters", box="linear", linear_w="1, 2; 3, 4; 0, -1", linear_x="10, 1")
    assert [line.split(" = ")[-1] for line in formula(at).splitlines()[1:]] == ["12", "34", "-1"]
    assert "2 numbers in, [12, 34, -1] out" in words(at)


@pytest.mark.parametrize("shift", ["-10", "0", "7"])
@pytest.mark.parametrize(("scale", "factor"), [("0.5", 0.5), ("1", 1), ("10", 10)])
def test_softmax_shift_changes_nothing_and_scale_does(artifacts, shift, scale, factor):
    at = open_page("parameters", box="softmax", logits="2, 1, -1", shift=shift, scale=scale)
    rows = tables(at, "Softmax of the logits")[0]
    powers = np.exp(np.array([2.0, 1.0, -1.0]) * factor)
    shown = [float(row[4]) for row in rows]
    assert shown == pytest.approx(powers / powers.sum(), rel=5e-2, abs=5e-5)
    assert all(0 < value < 1 for value in shown)
    assert [row[3] for row in rows] == [f"{p:.4f}" for p in softmax(np.array([2.0, 1.0, -1.0]))]
    assert f"= 1/{typed_vectors.short(1 / factor)}" in words(at)


def test_rmsnorm_of_3_and_4(artifacts):
    at = open_page("parameters", box="rmsnorm")
    assert "[3, 4] becomes [0.8485, 1.1314]" in words(at)
    assert "(3² + 4²) / 2 = 12.5" in formula(at)
    assert "12.5 + 0.00001" in formula(at)
    assert "the mean square becomes 0.9999992" in words(at)
    at.text_input("norm_x").set_value("0, 0").run()
    assert "[0, 0] becomes [0, 0]" in words(at)
    assert "The vector stays 0" in words(at)
    assert "mean square becomes" not in words(at)
    at.text_input("norm_x").set_value("0.001, 0.001").run()
    assert "the mean square becomes 0.0909" in words(at)


@pytest.mark.parametrize(
    ("logits", "shown"),
    [
        ("1, 0, -1", ["0.99995", "4.5e-05", "2.1e-09"]),
        ("9, 0, -9", ["nearly 1", "8.2e-40", "6.7e-79"]),
        ("200, 0, 0", ["nearly 1", "nearly 0", "nearly 0"]),
    ],
)
def test_a_probability_is_never_rounded_to_0_or_1(artifacts, logits, shown):
    at = open_page("parameters", box="softmax", logits=logits, scale="10")
    assert [row[4] for row in tables(at, "Softmax of the logits")[0]] == shown
    assert formula(at).endswith(f"= {shown[0]}")


@pytest.mark.parametrize("box", [("dot product", "dot_a"), ("linear", "linear_w"),
                                 ("linear", "linear_x"), ("softmax", "logits"),
                                 ("rmsnorm", "norm_x")])  # fmt: skip
@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("", "not 0"),
        ("1, b, 3", "is no number"),
        ("1, nan, 2", "is no number"),
        ("1e400, 1, 2", "is too large"),
        ("1, -inf, 2", "is too large"),
        (", ".join("1234567"), "not 7"),
        ("$x$ `y` <b>", "is no number"),
    ],
)
def test_bad_numbers_get_one_sentence(artifacts, box, typed, sentence):
    at = open_page("parameters", box=box[0])
    at.text_input(box[1]).set_value(typed).run()
    assert is_fine(at)
    assert len([*at.info, *at.warning, *at.error]) == 1
    assert sentence in said(at)


@pytest.mark.parametrize(
    ("box", "values", "sentence"),
    [
        ("dot product", {"dot_a": "1, 2"}, "A has 2 numbers and b 3"),
        ("linear", {"linear_x": "1, 2"}, "W has 3 columns and x has 2 numbers"),
        ("linear", {"linear_w": "1, 2; 3"}, "Row 1 of the matrix has 1 numbers and row 0 has 2"),
        ("linear", {"linear_w": "1;2;3;4;5"}, "1 to 4 rows"),
    ],
)
def test_numbers_that_do_not_fit_together(artifacts, box, values, sentence):
    at = open_page("parameters", box=box, **values)
    assert is_fine(at)
    assert sentence in said(at)


# -- files


def test_the_files():
    loaded = tiny.char_checkpoint()
    found = parameters.changes(loaded, None)
    rows = list(csv.DictReader(io.StringIO(exports_gpt.parameters_csv(MATRICES, found))))
    assert [int(row["count"]) for row in rows] == [m.count for m in MATRICES]
    assert [float(row["moved"]) for row in rows] == [change.moved for change in found]
    assert [float(row["norm_after"]) for row in rows] == [change.after.norm for change in found]
    alone = list(csv.DictReader(io.StringIO(exports_gpt.parameters_csv(MATRICES, ()))))
    assert list(alone[0]) == ["matrix", "rows", "columns", "count", "does"]
    assert json.loads(exports_gpt.parameters_json(MATRICES, found))["parameters"] == TOTAL


def test_the_code_gives_the_numbers_on_screen(artifacts, monkeypatch, capsys):
    at = open_page("parameters", step="10")
    monkeypatch.chdir(artifacts.parent)
    exec(at.code[-1].value, {})
    printed = capsys.readouterr().out
    assert f"\n{TOTAL}\n" in printed
    moved = [float(line.split()[-1]) for line in printed.splitlines()[len(MATRICES) + 1 :]]
    shown = [row[-1] for row in tables(at, "Each matrix before and after training")[0]]
    assert [f"{number:.2f}" for number in moved] == shown
    assert re.search(r"step_10", at.code[-1].value)
