"""Embeddings: the map draws what the lens computes, and nothing moves when a word is added."""

import csv
import io
import json
import re

import numpy as np
import plotly.io
import pytest

from app import exports, figures, words
from tests.ui.conftest import KINDS, VOCABULARY, make, printed_by
from tests.ui.test_pages import button_group, html, is_fine, offered, open_page, pick, said, specs
from wordlm_core import checkpoint
from wordlm_core.lens import maps
from wordlm_core.lens.trajectory import trajectory

WORDS = ("cat", "dog", "bird")
NAMES = [f"{kind}_seed11" for kind in KINDS]


@pytest.fixture(scope="module")
def loaded(folder):
    return [checkpoint.load(folder / f"{name}.npz") for name in NAMES]


def embeddings_page(typed: str = ", ".join(WORDS), **parameters):
    return open_page("embeddings", checkpoint=NAMES[0], words=typed, **parameters)


def chart(at, key: str) -> dict:
    return next(
        json.loads(element.proto.spec)
        for element in at.get("plotly_chart")
        if element.proto.id.endswith(f"-{key}")
    )


def traces_named(spec: dict, word: str) -> list[dict]:
    return [trace for trace in spec["data"] if word in trace.get("text", [])]


@pytest.mark.parametrize("axes", [2, 3])
def test_trails_heads_and_frames_are_the_lens_coordinates(loaded, axes):
    chosen = loaded[:2]
    result, around = trajectory(chosen, WORDS, axes=axes), maps.cloud(chosen, axes=axes)
    spec = figures.trails(result, around, KINDS[:2]).spec
    names = "xyz"[:axes]
    for index in range(2):
        paths = [path for path in result.paths if path.index == index]
        line, start, end = spec["data"][3 * index : 3 * index + 3]
        for axis, name in enumerate(names):
            drawn = [value for value in line[name] if value is not None]
            along = [point.coords[axis] for path in paths for point in path.points]
            assert drawn == pytest.approx(along, abs=6e-4)
            assert line[name].count(None) == len(WORDS)
            for mark, at in ((start, 0), (end, -1)):
                places = [path.points[at].coords[axis] for path in paths]
                assert mark[name] == pytest.approx(places, abs=6e-4)
    for number, frame in enumerate(spec["frames"]):
        assert frame["name"] == str(result.paths[0].points[number].step)
        moved = dict(zip(frame["traces"], frame["data"], strict=True))
        for index in range(2):
            paths = [path for path in result.paths if path.index == index]
            for axis, name in enumerate(names):
                places = [path.points[number].coords[axis] for path in paths]
                assert moved[8 + index][name] == pytest.approx(places, abs=6e-4)
                cloud = around.steps[3 * index + number].points[:, axis]
                assert moved[6 + index][name] == pytest.approx(cloud.tolist(), abs=6e-4)
    assert spec["data"][8]["x"] == spec["frames"][-1]["data"][2]["x"]
    assert {trace["type"] for trace in spec["data"]} == {"scatter3d" if axes == 3 else "scatter"}


def test_every_panel_has_the_same_ends_and_says_its_share(loaded):
    result, around = trajectory(loaded, WORDS), maps.cloud(loaded)
    layout = figures.trails(result, around, KINDS).spec["layout"]
    for axis, letter in enumerate("xy"):
        ends = {tuple(layout[f"{letter}axis{n}"]["range"]) for n in ("", "2", "3")}
        assert len(ends) == 1
        low, high = ends.pop()
        assert low < around.low[axis] < around.high[axis] < high
        title = f"PC {axis + 1} ({result.explained[axis]:.1%} of variance)"
        assert layout[f"{letter}axis"]["title"]["text"] == title


def test_models_of_other_steps_stand_at_their_latest_one():
    early, late = make("attention"), make("mlp")
    shifted = {"step_0": "step_0", "step_5": "step_7", "selected_step_10": "selected_step_10"}
    tables = {shifted[label]: table for label, table in late.embeddings.items()}
    late = late.__class__(**{**vars(late), "embeddings": tables})
    result = trajectory([early, late], WORDS)
    around = maps.cloud([early, late])
    frames = figures.trails(result, around, ["attention", "mlp"]).spec["frames"]
    assert [frame["name"] for frame in frames] == ["0", "5", "7", "10"]
    assert frames[0]["data"][3]["x"] == frames[1]["data"][3]["x"]
    assert frames[1]["data"][2]["x"] == frames[2]["data"][2]["x"]


def test_the_gauge_draws_the_kept_shares_out_of_all(loaded):
    result = trajectory(loaded, WORDS)
    spec = figures.kept(result, KINDS).spec
    shares = [entry.share for entry in result.kept]
    assert [y for trace in spec["data"] for y in trace["y"]] == shares
    assert spec["layout"]["yaxis"]["range"] == [0, 1]
    assert figures.kept_in_words(result) in spec["layout"]["annotations"][0]["text"]


def test_refitted_panels_draw_each_step_on_its_own_axes(loaded):
    panels = maps.refitted(loaded[0], WORDS)
    spec = figures.refitted(panels, "attention").spec
    for panel, trace in zip(panels, spec["data"], strict=True):
        xs = [path.points[0].coords[0] for path in panel.paths]
        assert trace["x"] == pytest.approx(xs, abs=6e-4)
    assert len({tuple(spec["layout"][f"xaxis{n}"]["range"]) for n in ("", "2", "3")}) == 3


def test_words_beyond_the_edge_are_found(loaded):
    result, around = trajectory(loaded, WORDS), maps.cloud(loaded)
    tight = maps.Cloud(around.low * 0, around.high * 0 + 1e-9, around.steps)
    wide = maps.Cloud(around.low - 100, around.high + 100, around.steps)
    assert figures.outside(result, tight) == list(WORDS)
    assert figures.outside(result, wide) == []


def test_every_figure_is_described_and_plain_json(loaded):
    result, around = trajectory(loaded, WORDS), maps.cloud(loaded)
    for figure in (
        figures.trails(result, around, KINDS),
        figures.kept(result, KINDS),
        figures.refitted(maps.refitted(loaded[0], WORDS), "attention"),
    ):
        assert len(figure.alt) > 30
        assert "NaN" not in plotly.io.to_json(figure.spec, validate=False)


def test_nothing_moves_when_a_word_is_added(artifacts):
    before = chart(embeddings_page("cat, dog"), "trails")
    after = chart(embeddings_page("cat, dog, lily"), "trails")
    for axis in ("xaxis", "yaxis"):
        assert after["layout"][axis]["range"] == before["layout"][axis]["range"]
        assert after["layout"][axis]["title"] == before["layout"][axis]["title"]
    for old, new in zip(before["frames"], after["frames"], strict=True):
        assert new["data"][0] == old["data"][0]
        assert new["data"][1]["x"][:2] == old["data"][1]["x"]
        assert new["data"][1]["y"][:2] == old["data"][1]["y"]


def test_several_checkpoints_share_the_map_and_the_link(artifacts):
    at = embeddings_page(also=NAMES[2])
    assert is_fine(at)
    assert at.multiselect("also").value == [NAMES[2]]
    assert "microgpt_seed42" not in at.multiselect("also").options  # it reads characters
    layout = chart(at, "trails")["layout"]
    assert [note["text"] for note in layout["annotations"]] == [
        f"<b>{name}</b>" for name in (NAMES[0], NAMES[2])
    ]
    at.multiselect("also").set_value([NAMES[1], NAMES[2]]).run()
    link = next(code.value for code in at.code if "checkpoint=" in code.value)
    assert f"also={NAMES[1]}&also={NAMES[2]}" in link
    pick(at, NAMES[1])
    assert is_fine(at)
    assert at.multiselect("also").value == [NAMES[2]]


def test_a_bad_name_in_the_link_is_left_out(artifacts):
    at = embeddings_page(also="nope", map="9-D")
    assert is_fine(at)
    assert at.multiselect("also").value == []
    assert "which is not here" in html(at)


@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("apart", [False, True])
def test_every_kind_of_map_has_the_loud_sentence_or_the_reason(artifacts, dimension, apart):
    at = embeddings_page(also=NAMES[1])
    button_group(at, "map", dimension)
    at.toggle("separate").set_value(apart).run()
    assert is_fine(at)
    text = re.sub(r"<[^>]+>", "", html(at))
    if apart:
        assert "axes turn, flip and swap between panels" in text
        assert text.count("the words seem to travel") == 2
    else:
        assert f"These {('two', 'three')[dimension]} axes keep only" in text
        assert "For distances use Neighbours" in text


def test_unknown_words_are_named_with_near_spellings_and_the_rest_is_drawn(artifacts):
    at = embeddings_page("cat, dogg, <b>x</b>, <UNK>, quagga")
    assert is_fine(at)
    assert "“dogg” (near it: dog)" in html(at)
    for strange in ("&lt;b&gt;x&lt;/b&gt;", "&lt;UNK&gt;", "quagga"):
        assert f"“{strange}”" in html(at)
    assert traces_named(chart(at, "trails"), "cat")[-1]["text"] == ["cat"]


@pytest.mark.parametrize("typed", ["", "   ", ",", " , ,", "zebra quagga", "<PAD>", "кот", "🐈"])
def test_no_known_word_gives_a_hint_and_no_stale_figure(artifacts, typed):
    at = embeddings_page()
    assert specs(at)
    at.text_input("words").set_value(typed).run()
    is_fine(at)
    assert "Type at least one word" in said(at)
    assert not specs(at)


@pytest.mark.parametrize("typed", ["CAT  Dog,cat", "Cat,,dog,", "cat dog DOG"])
def test_each_word_is_drawn_once_however_it_is_typed(artifacts, typed):
    at = embeddings_page(typed)
    assert traces_named(chart(at, "trails"), "dog")[-1]["text"] == ["cat", "dog"]


def test_number_like_and_quoted_words_keep_their_letters(artifacts):
    at = embeddings_page("1, 10, don\u2019t, !")
    assert traces_named(chart(at, "trails"), "10")[-1]["text"] == ["1", "10", "don't", "!"]


def test_many_words_are_cut_and_said_so(artifacts):
    typed = " ".join(VOCABULARY.itos[4:])
    at = embeddings_page(typed)
    assert is_fine(at)
    assert f"The first {words.AT_ONCE} are shown" in html(at)
    at.text_input("words").set_value("zebra " * 60).run()
    assert "Type at least one word" in said(at)


def test_a_group_fills_the_box_and_values_follow_to_neighbours(artifacts):
    at = open_page("embeddings")
    first = at.text_input("words").value
    offered(at, "group", 1)
    assert at.text_input("words").value != first
    chosen = at.text_input("words").value
    at.switch_page("../pages/50_neighbours.py").run()
    assert at.text_input("words").value == chosen


def test_downloads_hold_what_the_command_line_prints(folder):
    paths = [str(folder / f"{name}.npz") for name in NAMES[:2]]
    chosen = [checkpoint.load(folder / f"{name}.npz") for name in NAMES[:2]]
    result = trajectory(chosen, WORDS)
    printed = printed_by("trajectory", *paths, "--words", ",".join(WORDS))
    ours = json.loads(exports.trajectory_json(result))
    assert {key: ours[key] for key in printed} == printed
    rows = list(csv.DictReader(io.StringIO(exports.trajectory_csv(result))))
    assert len(rows) == 2 * len(WORDS) * 3
    last = result.paths[-1].points[-1]
    assert (float(rows[-1]["x"]), float(rows[-1]["y"])) == last.coords
    assert np.isfinite([float(row["x"]) for row in rows]).all()
