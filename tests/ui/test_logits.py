"""Logit view: what heads and neurons push, at any position of any model."""

import re

import pytest

from app import exports, figures
from tests.ui.conftest import CONTEXT, KINDS, VOCABULARY, make
from tests.ui.test_pages import html, open_page, specs
from wordlm_core.lens import logits

TEXT = "the cat saw the dog"


def logit_view(kind: str, position: int = -1) -> logits.LogitView:
    loaded = make(kind)
    probe = loaded.vocabulary.probe(TEXT, CONTEXT)
    return logits.logit_view(loaded.model, VOCABULARY, probe, position=position)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("position", [0, 2, 5])
def test_the_page_draws_the_lens_numbers(artifacts, kind, position):
    at = open_page("logits", checkpoint=f"{kind}_seed11", text=TEXT)
    at.select_slider("position").set_value(position).run()
    view = logit_view(kind, position)
    drawn = specs(at)
    mlp = drawn[-1]["data"][0]["x"]
    assert mlp[:6] == pytest.approx([shift.logit for shift in view.mlp.promoted[:6]])
    assert mlp[6:] == pytest.approx([s.logit for s in view.mlp.pushed_down[:6]][::-1])
    if view.attention is None:
        assert len(drawn) == 1
        assert "has no attention" in html(at)
    else:
        panels = [view.attention, *(head.push for head in view.heads if len(view.heads) > 1)]
        for trace, push in zip(drawn[0]["data"], panels, strict=True):
            assert trace["x"][:6] == pytest.approx([s.logit for s in push.promoted[:6]])
    first = re.search(r'<td class="wl-left">(\d+)</td>', html(at))
    assert first
    assert int(first[1]) == view.neurons[0].index


def test_every_head_has_a_panel_on_one_scale():
    view = logit_view("multihead")
    spec = figures.attention_pushes(view, "multihead").spec
    assert len(spec["data"]) == 5
    ends = {tuple(spec["layout"][f"xaxis{n}"]["range"]) for n in ("", "2", "3", "4", "5")}
    assert len(ends) == 1
    titles = [note["text"] for note in spec["layout"]["annotations"]]
    assert titles == ["<b>all heads</b>", *(f"<b>head {n}</b>" for n in range(4))]


def test_the_csv_names_every_part():
    parts = {row.split(",")[0] for row in exports.logits_csv(logit_view("multihead")).splitlines()}
    assert {"attention", "layer 0 head 3", "mlp"} < parts
