"""One position: lengths to predict, the walk, the interventions, the hand example."""

import csv
import io
import json
import re
import shutil

import numpy as np
import pytest

from app import exports_gpt, figures
from tests import tiny
from tests.ui.conftest import printed_by
from tests.ui.test_figures import unpack
from tests.ui.test_pages import html, is_fine, open_page, said, specs
from wordlm_core import checkpoint
from wordlm_core.lens import position, position_interventions, tokens
from wordlm_core.lens.hand_attention import hand_attention

TEXT = "anna"
LABELS = ["<BOS>", *TEXT]
STRIP, VECTOR, CACHE, BARS, CHANGES, WRITES = range(6)


def opened():
    loaded = tiny.char_checkpoint()
    return loaded, loaded.vocabulary.probe(TEXT, loaded.model.config.context_length)


def walked(at: int = 2) -> position.Walk:
    loaded, probe = opened()
    return position.walk(loaded.model, probe, at, end_id=tiny.LETTERS.end_id)


def the_page(**parameters: str):
    at = open_page("one_position", **parameters)
    return at.text_input("text").set_value(TEXT).run()


def plain(at) -> str:
    return re.sub(r"<[^>]+>", "", html(at)).replace("&lt;", "<").replace("&gt;", ">")


def press(at, label: str) -> None:
    next(button for button in at.button if button.label == label).click().run()


def check(at) -> None:
    press(at, "Check")


# -- predict first


def lengths() -> tuple[position.Length, ...]:
    return position.lengths(opened()[0].model.config, 2)


def test_nothing_is_given_away_before_a_check(artifacts):
    text = plain(the_page())
    assert "of 10 right" not in text
    assert not any(each.why in text for each in lengths())


def test_right_lengths_are_counted_and_stay_across_pages(artifacts):
    at = the_page()
    for number, each in enumerate(lengths()):
        at.text_input(f"length_{number}").set_value(f" {each.length}")
    check(at)
    assert "position 2 of emma: 10 of 10 right." in plain(at)
    assert "Still empty" not in plain(at)
    assert "length_0" not in [box.key for box in at.text_input]
    at.switch_page("../pages/20_attention.py").run()
    at.switch_page("../pages/85_one_position.py").run()
    assert "10 of 10 right" in plain(at)
    press(at, "Open the form")
    assert at.text_input("length_0").value == f" {lengths()[0].length}"
    assert "10 of 10 right" in plain(at)


def test_the_form_gives_way_to_one_line_when_it_is_skipped_and_can_be_opened_again(artifacts):
    at = the_page()
    assert "Always this one, whatever the walk shows" in plain(at)
    press(at, "Skip")
    assert is_fine(at)
    assert "Predict first, position 2 of emma: skipped." in plain(at)
    assert [box.key for box in at.text_input if box.key.startswith("length")] == []
    press(at, "Open the form")
    at.text_input("length_0").set_value("99")
    check(at)
    assert "0 of 10 right" in plain(at)
    assert at.text_input("length_0").value == "99"
    press(at, "Close")
    assert "position 2 of emma: 0 of 10 right." in plain(at)


@pytest.mark.parametrize("button", ["Check", "Skip"])
def test_the_walk_counts_its_numbers_only_after_the_form(artifacts, button):
    at = the_page(walk="4")
    for step in (3, 8, 9, 21):
        at.select_slider("walk").set_value(step).run()
        answer = re.search(rf"{step + 1} · [^:]*:(.*)", plain(at))
        assert answer
        assert "how many numbers?" in answer[1]
        assert not re.search(r"\d", answer[1])
    assert "3 keys and 3 values" not in plain(at)
    press(at, button)
    at.select_slider("walk").set_value(3).run()
    assert re.search(r"4 · rmsnorm: 8 numbers; scale \d\.\d{4}", plain(at))
    assert "3 keys and 3 values of 8 numbers" in plain(at)


def test_one_of_a_thing_is_not_called_several(artifacts):
    at = the_page(position="0", walk="9")
    press(at, "Skip")
    assert "9 · KV cache: 1 key and 1 value of 8 numbers" in plain(at)
    assert "After position 0: 1 key and 1 value of 8 numbers; 4 rows below" in plain(at)
    at.select_slider("walk").set_value(9).run()
    assert "2 heads, 1 number each" in plain(at)
    at.select_slider("position").set_value(len(TEXT) - 1).run()
    assert "1 row below the line is still empty" in plain(at)
    loaded, probe = opened()
    first = position.walk(loaded.model, probe, 0, end_id=tiny.LETTERS.end_id)
    cache = figures.kv_cache(first.find("KV cache", 0).values, LABELS)
    assert "1 key and 1 value of 8 numbers; 4 of 5 rows still empty" in cache.alt


def test_each_wrong_length_has_one_sentence_and_empty_ones_are_named(artifacts):
    at = the_page()
    at.text_input("length_0").set_value(str(lengths()[0].length))
    at.text_input("length_4").set_value("99")
    at.text_input("length_6").set_value("<b>x")
    check(at)
    assert "1 of 10 right" in plain(at)
    notes = re.findall(r'<p class="wl-note">(.*?)</p>', html(at))
    assert notes[0] == f"Scores of one head, not 99: {lengths()[4].why}"
    assert notes[1] == "Output of one head, not &lt;b&gt;x: it is not a whole number."
    assert len(notes) == 2
    assert "Still empty: Query q, One head's part of q," in plain(at).replace("&#x27;", "'")


@pytest.mark.parametrize(("typed", "right"), [("{}.0", 1), ("+{}", 1), ("{}.5", 0), ("1.00{}", 0)])
def test_a_length_is_read_like_every_whole_number(artifacts, typed, right):
    at = the_page()
    at.text_input("length_0").set_value(typed.format(lengths()[0].length))
    check(at)
    assert f"{right} of 10 right" in plain(at)
    assert ("it is not a whole number" in plain(at)) is not bool(right)


# -- the walk


def test_every_step_shows_its_numbers_its_line_and_why(artifacts):
    at = the_page()
    for step, now in enumerate(walked().steps):
        at.select_slider("walk").set_value(step).run()
        assert is_fine(at)
        is_shown(at, step, now)


def is_shown(at, step: int, now: position.Step) -> None:
    assert f"{step + 1} · {now.name}:" in plain(at)
    assert now.code in [block.value for block in at.code]
    assert now.why in plain(at).replace("&#x27;", "'")
    panels = specs(at)[VECTOR]["data"]
    drawn = np.concatenate([unpack(panel["z"]).ravel() for panel in panels])
    drawn = drawn[~np.isnan(drawn)]
    assert drawn == pytest.approx(now.values.ravel().astype(np.float32))
    if "cache" not in now.name.lower():
        written = [text for row in panels[0]["text"] for text in row if text]
        assert len(written) == now.values.size


def test_the_strip_marks_the_step_and_what_it_reads(artifacts):
    at = the_page(walk="10")
    boxes = specs(at)[STRIP]["layout"]["shapes"]
    widths = [box["line"]["width"] for box in boxes]
    assert widths.index(3) == 9
    assert [i for i, width in enumerate(widths) if width == 2] == list(walked().steps[9].reads)
    assert len(boxes) == len(walked().steps)


def test_the_buttons_go_on_and_back_and_stop_at_the_ends(artifacts):
    at = the_page()
    at.button("walk_back").click().run()
    assert at.select_slider("walk").value == 0
    for expected in (1, 2, 3):
        at.button("walk_next").click().run()
        assert at.select_slider("walk").value == expected
    at.button("walk_back").click().run()
    assert "3 · sum: " in plain(at)
    at.select_slider("walk").set_value(23).run()
    at.button("walk_next").click().run()
    assert at.select_slider("walk").value == 23
    assert is_fine(at)


def test_a_step_from_the_link_is_where_the_buttons_start(artifacts):
    at = the_page(walk="10")
    at.button("walk_next").click().run()
    assert at.select_slider("walk").value == 10


def test_the_loss_names_the_next_token_and_at_the_end_that_the_text_ends(artifacts):
    at = the_page(walk="24")
    walk = walked()
    assert f"The next token is {TEXT[2]}: -log {walk.probs[walk.target]:.4f}" in plain(at)
    at.select_slider("position").set_value(len(TEXT)).run()
    assert is_fine(at)
    loaded, _ = opened()
    table = tokens.read(loaded.vocabulary, TEXT, loaded.model.config.context_length)
    loss = tokens.losses(loaded.model, table)[-1]
    assert at.select_slider("walk").value == 23
    assert f"The next token is <BOS>, if the text ends here: -log {np.exp(-loss):.4f}" in plain(at)
    assert unpack(specs(at)[VECTOR]["data"][0]["z"]) == pytest.approx(loss)


def test_the_cache_and_the_bars_grow_with_the_position(artifacts):
    at = the_page()
    for at_position in range(len(LABELS)):
        at.select_slider("position").set_value(at_position).run()
        assert is_fine(at)
        has_grown(at, at_position)


def has_grown(at, at_position: int) -> None:
    walk = walked(at_position)
    held = walk.find("KV cache", 0).values
    for panel, expected in zip(specs(at)[CACHE]["data"], held, strict=True):
        drawn = unpack(panel["z"])
        assert len(drawn) == len(LABELS)
        assert drawn[: at_position + 1] == pytest.approx(expected.astype(np.float32))
        assert np.isnan(drawn[at_position + 1 :]).all()
    shares = walk.find("attention", 0).values
    bars = specs(at)[BARS]
    for panel, expected in zip(bars["data"], shares, strict=True):
        assert unpack(panel["x"]) == pytest.approx(expected.astype(np.float32))
    ticks = [f"{i} · {figures.escape(label)}" for i, label in enumerate(LABELS)]
    assert bars["layout"]["yaxis"]["ticktext"] == ticks[: at_position + 1]


@pytest.fixture
def with_others(folder, open_folder, tmp_path):
    """The tiny checkpoints, one of two layers and one without positions."""
    shutil.copytree(folder, tmp_path / "artifacts")
    deep = tiny.char_checkpoint(n_layer=2)
    checkpoint.save(deep, tmp_path / "artifacts/microgpt_deep.npz")
    blind = tiny.char_checkpoint(positions=False)
    checkpoint.save(blind, tmp_path / "artifacts/microgpt_blind.npz")
    return open_folder(tmp_path / "artifacts")


def test_a_second_layer_has_a_row_and_cache_of_its_own(with_others):
    at = the_page(checkpoint="microgpt_deep", walk="25", layer="layer 1")
    assert is_fine(at)
    assert "25 · KV cache, layer 1" in plain(at)
    deep = tiny.char_checkpoint(n_layer=2)
    walk = position.walk(deep.model, opened()[1], 2, end_id=tiny.LETTERS.end_id)
    assert unpack(specs(at)[CACHE]["data"][0]["z"])[:3] == pytest.approx(
        walk.find("KV cache", 1).values[0].astype(np.float32)
    )
    heights = {box["y0"] for box in specs(at)[STRIP]["layout"]["shapes"]}
    assert len(heights) == 2
    assert len(specs(at)[STRIP]["layout"]["shapes"]) == 40
    at.select_slider("walk").set_value(1).run()
    assert "later layers could tell something of it" in plain(at)


def test_without_positions_it_says_that_they_are_left_out(with_others):
    at = the_page(checkpoint="microgpt_blind", walk="2")
    assert "Left out: this model was trained without positions" in plain(at)
    assert not unpack(specs(at)[VECTOR]["data"][0]["z"]).any()
    at.button("walk_next").click().run()
    assert "where it stands" not in plain(at)


def test_another_training_step_has_other_numbers(artifacts):
    at = the_page()
    at.select_slider("step").set_value(0).run()
    assert is_fine(at)
    loaded, probe = opened()
    before = position.vectors(loaded.model_at("step_0"), probe, 2)[0].values
    drawn = unpack(specs(at)[VECTOR]["data"][0]["z"]).ravel()
    assert drawn == pytest.approx(before.astype(np.float32))
    assert drawn != pytest.approx(walked().steps[0].values.astype(np.float32))


def test_bad_text_gives_a_sentence(artifacts):
    at = the_page()
    for text in ("", "   ", "Ж", "x1"):
        at.text_input("text").set_value(text).run()
        assert [error.message for error in at.exception] == []
        assert said(at)
        assert not specs(at)
    at.text_input("text").set_value("a" * 50).run()
    assert is_fine(at)


# -- interventions


def test_a_later_token_changes_exactly_nothing_and_an_earlier_one_is_measured(artifacts):
    at = the_page()
    later, earlier = (unpack(specs(at)[CHANGES]["data"][0]["z"])[row] for row in (0, 1))
    assert not later.any()
    assert set(specs(at)[CHANGES]["data"][0]["text"][0]) == {"0"}
    loaded, probe = opened()
    new = loaded.vocabulary.itos[at.selectbox("new_token").value]
    swap = position_interventions.swap(
        loaded.model, probe, 2, place=1, replacement=loaded.vocabulary.stoi[new]
    )
    assert earlier == pytest.approx(np.array(swap.changes, dtype=np.float32))
    assert "changes nothing at position 2: the largest change is 0." in plain(at)
    assert f"moves the prediction by a KL of {figures.nats(swap.kl)} nats" in plain(at)


def test_the_ends_have_no_later_or_no_earlier_token(artifacts):
    at = the_page(position=str(len(TEXT)))
    assert f"Nothing stands after position {len(TEXT)}" in plain(at)
    assert len(specs(at)[CHANGES]["layout"]["yaxis"]["ticktext"]) == 1
    at = the_page(position="0")
    assert "Nothing stands before position 0" in plain(at)
    assert len(specs(at)[CHANGES]["layout"]["yaxis"]["ticktext"]) == 1


def test_the_same_token_is_no_change_and_says_so(artifacts):
    _, probe = opened()
    at = the_page()
    at.selectbox("new_token").set_value(int(probe.ids[1])).run()
    assert is_fine(at)
    assert "changes nothing: it is the same token" in plain(at)


def test_wo_is_shown_with_and_without(artifacts):
    at = the_page()
    loaded, probe = opened()
    found = position_interventions.without_wo(loaded.model, probe, 2)
    apart, mixed = (unpack(panel["z"]) for panel in specs(at)[WRITES]["data"])
    assert apart == pytest.approx(found.apart.astype(np.float32))
    assert mixed == pytest.approx(found.mixed.astype(np.float32))
    assert f"the prediction moves by a KL of {figures.nats(found.kl)} nats" in plain(at)
    assert f"{figures.percent(found.elsewhere)} of what they add" in plain(at)


# -- the hand example


def test_the_hand_example_shows_every_number(artifacts):
    text = html(the_page())
    for cell in (
        "1\u00d71 + 0\u00d70 = 1",
        "1\u00d7(-1) + 0\u00d70 = -1",
        "0.707",
        "-0.707",
        "0.493",
        "0.243",
    ):
        assert cell in text
    assert "0.576 \u00d7 [10, 0] = [5.76, 0]" in text
    assert "Output, the sum: [6.46, 3.54]" in plain(the_page())


def test_it_can_be_edited_and_linked(artifacts):
    at = the_page()
    at.text_input("hand_query").set_value("0 1").run()
    assert "Output, the sum: [2.52, 7.48]" not in plain(at)
    expected = hand_attention([0, 1], [[1, 0], [0, 1], [-1, 0]], [[10, 0], [0, 10], [5, 5]])
    x, y = (f"{round(float(value), 3):g}" for value in expected.output)
    assert f"Output, the sum: [{x}, {y}]" in plain(at)
    at = the_page(hand_keys="2", hand_query="3", hand_values="7, 8")
    assert "3\u00d72 = 6" in html(at)
    assert "Output, the sum: [7, 8]" in plain(at)


@pytest.mark.parametrize(
    ("box", "typed", "sentence"),
    [
        ("hand_query", "", "the query: 1 to 4 numbers with commas between them, not 0"),
        ("hand_query", "1, 0, 0", "Key 0 has 2 numbers and the query 3"),
        ("hand_keys", "", "the keys: 1 to 4 rows with ; between them, not 0"),
        ("hand_keys", "1, x", "“x” in row 0 of the keys is no number"),
        ("hand_keys", "<b>, 1", "“<b>” in row 0 of the keys is no number"),
        ("hand_keys", "1,0; 0,1", "each key needs one value: there are 2 keys, 3 values"),
        ("hand_values", "1; 2; 3, 4", "Value 2 is not as long as value 0"),
        ("hand_values", "nan; 1; 2", "“nan” in row 0 of the values is no number"),
        ("hand_values", "1; 5000; 2", "“5000” in row 1 of the values is too large: 1,000 is"),
    ],
)
def test_a_bad_example_has_a_sentence_and_the_rest_of_the_page_stays(
    artifacts, box, typed, sentence
):
    at = the_page()
    at.text_input(box).set_value(typed).run()
    assert is_fine(at)
    assert sentence.lower() in said(at).lower()
    assert len(specs(at)) == 6


def test_brackets_and_the_minus_of_a_book_are_read_here_too(artifacts):
    at = the_page(hand_query="[1, 0]", hand_keys="[1, 0]; [0, 1]; [\u22121, 0]")
    assert is_fine(at)
    assert said(at) == ""
    assert "1\u00d7(-1) + 0\u00d70 = -1" in html(at)


# -- files


def test_the_csv_has_a_row_a_number():
    walk = walked()
    rows = list(csv.DictReader(io.StringIO(exports_gpt.walk_csv(walk))))
    assert len(rows) == sum(step.values.size for step in walk.steps)
    scores = [row for row in rows if row["name"] == "scores"]
    expected = walk.find("scores", 0).values
    assert {row["axes"] for row in scores} == {"head x position"}
    for row in scores:
        assert float(row["value"]) == expected[int(row["index_0"]), int(row["index_1"])]
        assert row["index_2"] == ""
    assert {row["index_2"] for row in rows if row["name"] == "KV cache"} == {
        str(i) for i in range(tiny.WIDTH)
    }


def test_the_json_is_the_commands(folder):
    path = str(folder / "microgpt_seed42.npz")
    printed = printed_by("position", path, "--text", TEXT, "--position", "2")
    walk, vocabulary = walked(), opened()[0].vocabulary
    assert json.loads(exports_gpt.walk_json(walk, vocabulary)) == printed
    assert [each["token"] for each in printed["next"]] == [
        vocabulary.itos[i] for i in walk.likeliest
    ]


# -- the figures


@pytest.mark.parametrize("n_layer", [1, 2, 3])
def test_the_strip_has_a_row_a_layer_and_names_the_parts(n_layer):
    loaded = tiny.char_checkpoint(n_layer=n_layer)
    walk = position.walk(loaded.model, opened()[1], 2, end_id=tiny.LETTERS.end_id)
    layout = figures.walk_strip(walk, 0).spec["layout"]
    places = [
        ((box["x0"] + box["x1"]) / 2, (box["y0"] + box["y1"]) / 2) for box in layout["shapes"]
    ]
    assert len(set(places)) == len(places) == 4 + 16 * n_layer + 4
    for step, (x, y) in zip(walk.steps, places, strict=True):
        first = next(
            at[0] for other, at in zip(walk.steps, places, strict=True) if other.part == step.part
        )
        assert x >= first
        assert y == pytest.approx(
            step.layer if step.layer is not None else (n_layer - 1) * (step.part == "out")
        )
    assert [note["text"] for note in layout["annotations"]] == ["in", "attention", "MLP", "out"]
    middles = [note["x"] * 24 - 0.5 for note in layout["annotations"]]
    assert middles == pytest.approx([1.5, 9.0, 17.0, 21.5])


def test_only_probabilities_are_written_in_percent():
    walk = walked()
    for step in walk.steps:
        texts = (
            figures.step_cells(walk, step, LABELS, tiny.LETTERS.itos).spec["data"][0].get("text")
        )
        written = "%" in str(texts)
        assert written == (step.name in ("probabilities", "likeliest next tokens"))


def test_a_long_vector_is_cut_and_blank_cells_are_no_numbers():
    walk = walked()
    logits = walk.find("logits")
    names = [f"word{i}" for i in range(300)]
    longer = position.Step(
        **{**vars(logits), "values": np.linspace(-1, 1, 300), "axes": ("vocab",)}
    )
    chart = figures.step_cells(walk, longer, LABELS, names)
    drawn = unpack(chart.spec["data"][0]["z"])
    assert np.count_nonzero(~np.isnan(drawn)) == figures.VECTOR_SHOWN
    assert drawn.shape[1] <= 6
    assert chart.spec["data"][0]["zmin"] == -chart.spec["data"][0]["zmax"]


@pytest.mark.parametrize(
    ("value", "shown"), [(0.126, "0.13"), (-0.001, "0.00"), (-1.5, "-1.50"), (1234.5, "1234")]
)
def test_numbers_in_cells(value, shown):
    walk = walked()
    of = position.Step(**{**vars(walk.find("sum")), "values": np.array([value, 1.0])})
    chart = figures.step_cells(walk, of, LABELS, ["a"])
    assert chart.spec["data"][0]["text"][0][0] == shown
