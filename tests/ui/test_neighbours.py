"""Neighbours: lists, matrix and ranks are the lens's, for whatever is typed."""

import csv
import dataclasses
import io
import json
import re

import numpy as np
import plotly.io
import pytest

from app import exports, figures, words
from app.figures import Near
from tests.ui.conftest import KINDS, VOCABULARY, make, printed_by
from tests.ui.test_embeddings import chart
from tests.ui.test_figures import unpack
from tests.ui.test_pages import html, is_fine, offered, open_page, said, specs
from wordlm_core import checkpoint
from wordlm_core.lens import neighbours
from wordlm_core.text import SPECIALS

NAMES = [f"{kind}_seed11" for kind in KINDS]


@pytest.fixture(scope="module")
def loaded(folder):
    return checkpoint.load(folder / "multihead_seed11.npz")


def neighbours_page(word: str = "cat", **parameters):
    return open_page("neighbours", checkpoint=NAMES[2], near=word, **parameters)


def plain(at) -> str:
    return re.sub(r"<[^>]+>", "", html(at))


def near(kind: str) -> neighbours.Neighbours:
    table = make(kind).embedding_at(None)
    return neighbours.nearest(table, VOCABULARY, VOCABULARY.stoi["cat"])


def life(history: neighbours.NeighbourHistory, token: str) -> list[int | None]:
    lists = [[item.token for item in step.items] for step in history.steps]
    return [items.index(token) if token in items else None for items in lists]


# -- figures


def test_bars_are_the_cosines_with_numbers_on_one_scale():
    panels = [Near(kind, kind, near(kind)) for kind in KINDS]
    drawn = [figures.neighbour_bars(panel, panels).spec for panel in panels]
    for panel, spec in zip(panels, drawn, strict=True):
        bars, items = spec["data"][0], panel.result.items
        assert bars["x"] == [item.cosine for item in items]
        assert bars["y"] == list(range(len(items)))
        assert bars["text"] == [f"{item.cosine:.2f}" for item in items]
        assert spec["layout"]["yaxis"]["ticktext"] == [item.token for item in items]
        assert spec["layout"]["yaxis"]["type"] == "linear"
    assert len({tuple(spec["layout"]["xaxis"]["range"]) for spec in drawn}) == 1


def test_negative_cosines_stay_on_the_scale():
    item = neighbours.Neighbour("far", 9, -0.8)
    panel = Near("one", "mlp", neighbours.Neighbours("cat", (item,)))
    low, high = figures.neighbour_bars(panel, [panel]).spec["layout"]["xaxis"]["range"]
    assert low < -0.8
    assert high > 0


def test_the_matrix_is_the_lens_with_text_only_on_ticks(loaded):
    ids = [VOCABULARY.stoi[word] for word in ("1", "10", "2", "cat")]
    result = neighbours.similarity(loaded.embedding_at(None), VOCABULARY, ids)
    spec = figures.similarity_matrix(result).spec
    heat = spec["data"][0]
    np.testing.assert_allclose(unpack(heat["z"]), result.cosines, atol=1e-6)
    assert heat["text"][0] == [f"{cosine:.2f}" for cosine in result.cosines[0]]
    assert (heat["zmin"], heat["zmax"]) == (-1, 1)
    for axis in ("xaxis", "yaxis"):
        assert spec["layout"][axis]["ticktext"] == ["1", "10", "2", "cat"]
        assert spec["layout"][axis]["tickvals"] == [0, 1, 2, 3]
        assert spec["layout"][axis]["type"] == "linear"


def test_a_single_word_has_a_matrix(loaded):
    result = neighbours.similarity(loaded.embedding_at(None), VOCABULARY, [9])
    assert unpack(figures.similarity_matrix(result).spec["data"][0]["z"]).tolist() == [[1.0]]


def test_the_biography_draws_every_rank_and_names_the_end(loaded):
    history = neighbours.history(loaded, VOCABULARY.stoi["cat"], 4)
    spec = figures.biography(history, "multihead", loaded.steps[1]).spec
    lines = {trace["name"]: trace for trace in spec["data"]}
    seen = {item.token for step in history.steps for item in step.items}
    assert set(lines) == seen
    for token, line in lines.items():
        assert line["y"] == life(history, token)
        assert line["x"] == [0, 1, 2]
    final = [item.token for item in history.steps[-1].items]
    assert {token for token, line in lines.items() if line["line"]["color"] == "#000003"} == set(
        final
    )
    notes = [note["text"] for note in spec["layout"]["annotations"]]
    for item in history.steps[-1].items:
        assert f"<b>{item.token}</b> {item.cosine:.2f}" in notes
    assert set(notes) >= seen - set(final)
    assert spec["layout"]["xaxis"]["ticktext"] == ["step 0", "5", "10"]
    assert [shape["x0"] for shape in spec["layout"]["shapes"]] == [1]


def test_a_step_without_neighbours_is_a_gap(loaded):
    history = neighbours.history(loaded, VOCABULARY.stoi["cat"], 4)
    empty = dataclasses.replace(history.steps[0], items=())
    history = dataclasses.replace(history, steps=(empty, *history.steps[1:]))
    spec = figures.biography(history, "multihead", None).spec
    assert {trace["y"][0] for trace in spec["data"]} == {None}
    assert spec["layout"]["shapes"] == []


def test_every_figure_is_described_and_plain_json(loaded):
    panel = Near("one", "mlp", near("mlp"))
    history = neighbours.history(loaded, VOCABULARY.stoi["cat"])
    alike = neighbours.similarity(loaded.embedding_at(None), VOCABULARY, [4, 9])
    for figure in (
        figures.neighbour_bars(panel, [panel]),
        figures.biography(history, "mlp", None),
        figures.similarity_matrix(alike),
    ):
        assert len(figure.alt) > 30
        assert "NaN" not in plotly.io.to_json(figure.spec, validate=False)


# -- the page


def test_all_models_stand_side_by_side_at_the_same_step(artifacts):
    at = neighbours_page(step="5")
    assert is_fine(at)
    for index, name in enumerate((NAMES[2], NAMES[0], NAMES[1])):
        table = checkpoint.load(artifacts / f"{name}.npz").embedding_at("step_5")
        items = neighbours.nearest(table, VOCABULARY, VOCABULARY.stoi["cat"]).items
        shown = chart(at, f"near_{index}_clicked")["data"][0]
        assert shown["x"] == [item.cosine for item in items]
        assert shown["customdata"] == [item.token for item in items]
        if index == 0:
            said_first = f"Nearest to cat: {items[0].token} {items[0].cosine:.2f}"
            assert said_first in plain(at)


def test_the_word_itself_and_specials_are_in_no_list(artifacts):
    at = neighbours_page()
    for index in range(3):
        listed = chart(at, f"near_{index}_clicked")["data"][0]["customdata"]
        assert not {"cat", *SPECIALS} & set(listed)
    names = {trace["name"] for trace in chart(at, "ranks")["data"]}
    assert not {"cat", *(figures.escape(token) for token in SPECIALS)} & names


@pytest.mark.parametrize("typed", [" Cat ", "CAT", "cat"])
def test_a_word_is_read_as_in_training(artifacts, typed):
    at = neighbours_page(typed)
    assert is_fine(at)
    assert "Nearest to cat:" in plain(at)


def test_near_spellings_can_be_clicked(artifacts):
    at = neighbours_page("dogg")
    is_fine(at)
    assert "near it: dog" in said(at)
    assert not specs(at)
    assert at.button("spelling_0").label == "dog"
    offered(at, "spelling", 0)
    assert at.text_input("near").value == "dog"
    assert is_fine(at)
    assert "Nearest to dog:" in plain(at)


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("", "One word is needed here"),
        ("   ", "One word is needed here"),
        ("the cat", "One word is needed here, not 2"),
        ("<UNK>", "stands for every unknown word"),
        ("<PAD>", "stands for every unknown word"),
        ("кот", "stands for every unknown word"),
        ("quagga", "is not in this vocabulary"),
        ("<b>x</b>", "One word is needed here"),
        ("*a*", "One word is needed here"),
        ("w" * 60, "is not in this vocabulary"),
    ],
)
def test_what_is_not_one_word_gives_a_sentence_and_no_stale_figure(artifacts, typed, reason):
    at = neighbours_page()
    assert specs(at)
    at.text_input("near").set_value(typed).run()
    is_fine(at)
    assert reason in said(at)
    assert not specs(at)


def test_no_word_for_the_matrix_leaves_the_rest(artifacts):
    at = neighbours_page(words="zebra")
    is_fine(at)
    assert "Type at least one word" in said(at)
    assert "matrix" not in " ".join(element.proto.id for element in at.get("plotly_chart"))


def test_a_stored_step_follows_to_a_page_that_has_it(artifacts):
    at = neighbours_page(step="5")
    at.switch_page("../pages/20_attention.py").run()
    assert at.select_slider("step").value == 1
    at.switch_page("../pages/50_neighbours.py").run()
    assert at.text_input("near").value == "cat"
    assert at.select_slider("step").value == 1


def test_a_step_with_embeddings_alone_is_not_taken_for_another_one(open_folder, tmp_path):
    made = make("attention")
    whole = {label: kept for label, kept in made.snapshots.items() if label != "step_5"}
    partial = dataclasses.replace(made, snapshots=whole)
    checkpoint.save(partial, tmp_path / "artifacts/attention_seed11.npz")
    open_folder(tmp_path / "artifacts")
    at = open_page("neighbours", near="cat", step="5")
    assert is_fine(at)
    at.switch_page("../pages/20_attention.py").run()
    assert "step 5 is not here: reset" in html(at)
    assert at.select_slider("step").value == 1


def test_the_biography_says_who_was_there_and_who_came(artifacts):
    at = neighbours_page()
    history = neighbours.history(make("multihead"), VOCABULARY.stoi["cat"])
    start = {item.token for item in history.steps[0].items}
    stayed = sum(item.token in start for item in history.steps[-1].items)
    assert f"{stayed} of the 8 nearest at step 10 were near it at step 0" in plain(at)
    assert ", ".join(history.steps[1].joined) in plain(at)
    assert ", ".join(history.steps[1].left) in plain(at)


@pytest.mark.parametrize(("presets", "first"), [(words.WORDS, "red"), (("quagga",), "the")])
def test_the_first_view_is_never_empty(artifacts, monkeypatch, presets, first):
    monkeypatch.setattr(words, "WORDS", presets)
    monkeypatch.setattr(words, "GROUPS", {"any": presets})
    at = open_page("neighbours")
    assert is_fine(at)
    assert at.text_input("near").value == first
    assert len(specs(at)) == 5


def test_downloads_hold_the_lists_and_what_the_command_line_prints(loaded):
    lists = [Near(kind, kind, near(kind)) for kind in KINDS]
    history = neighbours.history(loaded, VOCABULARY.stoi["cat"])
    rows = list(csv.DictReader(io.StringIO(exports.neighbours_csv(lists, history))))
    shown = [float(row["cosine"]) for row in rows if row["step"] == "shown"]
    assert shown == [item.cosine for panel in lists for item in panel.result.items]
    then = [row["neighbour"] for row in rows if row["step"] == "5"]
    assert then == [item.token for item in history.steps[1].items]
    result = neighbours.nearest(loaded.embedding_at(None), VOCABULARY, VOCABULARY.stoi["cat"])
    printed = printed_by("neighbours", str(loaded.path), "--word", "cat")
    assert json.loads(exports.neighbours_json(result)) == printed
