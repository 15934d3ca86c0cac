"""What a figure draws is what the lens computed, position by position."""

import base64
import dataclasses
import json
import math

import numpy as np
import plotly.io
import pytest

from app import figures
from app.figures import Panel
from tests import tiny
from wordlm_core.lens import ablation, attention

REPEATED = "the cat saw the dog and the bird"


@pytest.fixture
def attended(checkpoints):
    model = checkpoints["multihead"].model
    return attention.attend(model, tiny.VOCABULARY.probe(REPEATED, tiny.CONTEXT))


@pytest.fixture
def panels(checkpoints):
    probe = tiny.VOCABULARY.probe(REPEATED, tiny.CONTEXT)
    return [
        Panel(kind, kind, ablation.ablate(checkpoints[kind].model, tiny.VOCABULARY, probe))
        for kind in ("attention", "mlp", "multihead")
    ]


def unpack(array: dict) -> np.ndarray:
    shape = [int(n) for n in array["shape"].split(",")]
    return np.frombuffer(base64.b64decode(array["bdata"]), f"<{array['dtype']}").reshape(shape)


def labelled(result, tokens):
    """Return an attention result with other labels."""
    return dataclasses.replace(result, tokens=tuple(tokens))


def test_a_heatmap_draws_the_weights_and_leaves_the_future_blank(attended):
    heat, _ = figures.attention_heatmap(attended, 0, 2, 5).spec["data"]
    z, weights = unpack(heat["z"]), attended.weights[0, 2].astype("<f4")
    past = np.tri(len(weights), dtype=bool)
    np.testing.assert_array_equal(z[past], weights[past])
    assert np.isnan(z[~past]).all()
    assert (heat["zmin"], heat["zmax"]) == (0, 1)


def test_the_first_token_is_top_left_and_the_axes_say_who_looks_at_whom(attended):
    layout = figures.attention_heatmap(attended, 0, 0, 5).spec["layout"]
    n = len(attended.tokens)
    assert layout["xaxis"]["range"] == [-0.5, n - 0.5]
    assert layout["yaxis"]["range"] == [n - 0.5, -0.5]
    assert layout["xaxis"]["title"]["text"] == "key (source)"
    assert layout["yaxis"]["title"]["text"] == "query (receiver)"
    frame = layout["shapes"][0]
    assert (frame["y0"], frame["y1"]) == (4.5, 5.5)


@pytest.mark.parametrize("axis", ["xaxis", "yaxis"])
def test_equal_and_number_like_tokens_keep_their_places(attended, axis):
    tokens = ["1", "2", "10", "3", "1e1", "2020", "<UNK>", "a&b", "the"]
    shown = figures.attention_heatmap(labelled(attended, tokens), 0, 0, 5).spec["layout"][axis]
    assert shown["type"] == "linear"
    assert shown["tickvals"] == list(range(9))
    assert shown["ticktext"][:6] == tokens[:6]
    assert shown["ticktext"][6:] == ["&lt;UNK&gt;", "a&amp;b", "the"]


def test_every_cell_can_be_clicked_and_says_its_positions(attended):
    _, buttons = figures.attention_heatmap(attended, 0, 0, 5).spec["data"]
    n = len(attended.tokens)
    assert [(y, x) for y, x in zip(buttons["y"], buttons["x"], strict=True)] == [
        (query, key) for query in range(n) for key in range(n)
    ]
    assert "query <b>4 · the</b> looks at key <b>1 · the</b>" in buttons["text"][4 * n + 1]
    assert f"{attended.weights[0, 0, 4, 1]:.4f}" in buttons["text"][4 * n + 1]
    assert "masked" in buttons["text"][1]


def test_a_full_window_has_a_tick_and_a_button_for_each_token(attended):
    n = 64
    weights = np.tril(np.ones((1, 4, n, n), np.float32)) / np.arange(1, n + 1)[:, None]
    wide = dataclasses.replace(attended, weights=weights.astype(np.float32), tokens=("the",) * n)
    spec = figures.attention_heatmap(wide, 0, 0, n - 1).spec
    assert len(spec["layout"]["xaxis"]["tickvals"]) == n
    assert spec["data"][1]["y"] == list(range(n))
    assert unpack(spec["data"][0]["customdata"])[3, 2].tolist() == [3, 2]
    sent = len(json.dumps(spec)) + len(json.dumps(figures.attention_grid(wide, 0, 0, 5).spec))
    assert len(json.dumps(spec)) < 40_000
    assert sent < 75_000


def test_a_query_beyond_a_shorter_text_frames_its_last_row(attended):
    shape = figures.attention_heatmap(attended, 0, 0, 99).spec["layout"]["shapes"][0]
    assert shape["y1"] == len(attended.tokens) - 0.5


def test_a_long_token_is_shortened_with_dots(attended):
    tokens = ["w" * 40, *attended.tokens[1:]]
    axis = figures.attention_heatmap(labelled(attended, tokens), 0, 0, 1).spec["layout"]["xaxis"]
    assert axis["ticktext"][0].endswith("w…")
    assert len(axis["ticktext"][0]) <= 24


def test_the_grid_draws_every_head_on_one_scale(attended):
    spec = figures.attention_grid(attended, 0, 1, 5).spec
    heats = [trace for trace in spec["data"] if trace["type"] == "heatmap"]
    assert len(heats) == 4
    for head, heat in enumerate(heats):
        shades, past = unpack(heat["z"]), np.tri(len(attended.tokens), dtype=bool)
        drawn = (shades[past] - 1) / (heat["zmax"] - 1)
        assert np.abs(drawn - attended.weights[0, head][past]).max() <= 0.5 / 254
        assert not shades[~past].any()  # 0 is the one shade that is drawn as nothing
        assert (heat["zmin"], heat["zmax"]) == (0, 255)
    clicked = [trace["customdata"] for trace in spec["data"] if trace["type"] == "scatter"]
    assert clicked == [[0], [1], [2], [3]]


def test_kl_bars_stand_at_their_positions_on_one_scale(panels):
    spec = figures.kl_bars(panels, 3).spec
    bars = [trace for trace in spec["data"] if trace.get("hoverinfo") == "skip"]
    for panel, trace in zip(panels, bars, strict=True):
        assert trace["y"] == [effect.position for effect in panel.result.effects]
        assert trace["x"].tolist() == [effect.kl for effect in panel.result.effects]
    ends = {tuple(spec["layout"][f"xaxis{n}"]["range"]) for n in ("", "2", "3")}
    assert len(ends) == 1
    assert spec["layout"]["yaxis"]["ticktext"][1:] == REPEATED.split()


def test_an_infinite_kl_reaches_the_end_and_says_so(panels):
    result = panels[0].result
    effects = (dataclasses.replace(result.effects[0], kl=math.inf), *result.effects[1:])
    endless = Panel("one", "attention", dataclasses.replace(result, effects=effects))
    spec = figures.kl_bars([endless], 1).spec
    assert spec["data"][1]["text"][0] == "infinite"
    assert spec["data"][1]["x"][0] == spec["layout"]["xaxis"]["range"][1]
    scatter = figures.effect_scatter(endless.result, "attention", 1).spec
    assert np.isfinite(scatter["data"][0]["y"]).all()


def test_changes_draw_before_and_after(panels):
    effect = panels[0].result.effects[2]
    before, after = figures.changes(effect, "attention").spec["data"]
    assert before["x"].tolist() == [change.before for change in effect.changes]
    assert after["x"].tolist() == [change.after for change in effect.changes]


def test_the_scatter_draws_attention_against_kl_and_names_its_corners(panels):
    result = panels[2].result
    spec = figures.effect_scatter(result, "multihead", 3).spec
    points = spec["data"][0]
    assert points["y"].tolist() == [effect.kl for effect in result.effects]
    looked = [effect.attention.mean() for effect in result.effects]
    np.testing.assert_allclose(points["x"], looked, rtol=1e-6)
    named = " ".join(note["text"] for note in spec["layout"]["annotations"])
    assert "looked at but<br>did not matter" in named
    assert "mattered but was<br>not looked at" in named


def test_next_words_are_drawn_a_panel_a_model(panels):
    words = figures.next_words(panels).spec
    assert [trace["marker"]["color"] for trace in words["data"]] == [
        "#000001",
        "#000002",
        "#000003",
    ]
    assert words["data"][0]["x"] == [entry.prob for entry in panels[1].result.prediction[:5]]


def test_learning_curves_show_every_seed_and_their_mean():
    traces = {
        "mlp": [
            [{"step": s, "validation_loss": loss} for s, loss in ((1, 8.0), (750, a), (1500, b))]
            for a, b in ((4.0, 3.0), (5.0, 4.0))
        ]
    }
    spec = figures.learning_curves(traces).spec
    assert [trace["y"].tolist() for trace in spec["data"]] == [
        [8.0, 4.0, 3.0],
        [8.0, 5.0, 4.0],
        [8.0, 4.5, 3.5],
    ]
    low, high = spec["layout"]["yaxis"]["range"]
    assert low < 3.0
    assert 5.0 < high < 8.0


def test_seeds_are_dots_with_a_line_at_the_mean():
    spec = figures.seeds({"mlp": [3.0, 5.0], "attention": [2.0]}, "test perplexity").spec
    assert spec["data"][0]["x"].tolist() == [3.0, 5.0]
    assert [shape["x0"] for shape in spec["layout"]["shapes"]] == [4.0, 2.0]


def test_every_figure_is_drawn_as_it_is_and_described(attended, panels):
    drawn = [
        figures.attention_heatmap(attended, 0, 0, 5),
        figures.attention_grid(attended, 0, 0, 5),
        figures.kl_bars(panels, 3),
        figures.changes(panels[0].result.effects[0], "mlp"),
        figures.effect_scatter(panels[0].result, "attention", 3),
        figures.next_words(panels),
    ]
    for figure in drawn:
        assert figures.drawable(figure).to_dict() is figure.spec
        assert len(figure.alt) > 30
        text = plotly.io.to_json(figure.spec, validate=False)
        assert "NaN" not in text
        assert json.loads(text)["data"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (1e-5, "<0.001"), (0.0126, "0.013"), (1.674, "1.67"), (math.inf, "infinite")],
)
def test_kl_for_people(value, shown):
    assert figures.nats(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.42, "42%"), (0.0975, "9.8%"), (0.0001, "0%"), (1.0, "100%")]
)
def test_probabilities_for_people(value, shown):
    assert figures.percent(value) == shown


@pytest.mark.parametrize("image", ["png", "svg"])
def test_the_toolbar_saves_the_figure(image):
    config = figures.toolbar("attention", image)
    assert config["toImageButtonOptions"]["format"] == image
    assert "toImage" not in config["modeBarButtonsToRemove"]
