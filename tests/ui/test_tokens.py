"""Tokens: two names side by side, what is refused, what is beyond the context."""

import csv
import io
import json
import math
import re

import pytest

from app import exports_gpt, figures, tokens_page
from app.figures.base import MARK
from tests import tiny
from tests.ui.test_pages import EMPTY, TEXTS, html, is_fine, offered, open_page, said, specs
from wordlm_core import checkpoint
from wordlm_core.lens import tokens

CONTEXT = 8


def typed(text: str, **parameters: str):
    """Return the page with a name in the shared box.

    Typed, because a test comes by way of a page of word models, where the box holds a sentence.
    """
    at = open_page("tokens", **parameters)
    return at.text_input("text").set_value(text).run()


def words(at) -> str:
    return re.sub(r"<[^>]+>", "", html(at)).replace("&lt;", "<").replace("&gt;", ">")


def tables(at, label: str) -> list[list[list[str]]]:
    """Return the cells of every table of that name."""
    found = [
        e.proto.body
        for e in at.get("html")
        if f'<table class="wl-table" aria-label="{label}"' in e.proto.body
    ]
    return [
        [
            [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
            for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table)[1:]
        ]
        for table in found
    ]


def predictions(at) -> list[list[list[str]]]:
    return tables(at, "What is predicted from what")


def chips(at) -> list[list[tuple[str, str, str]]]:
    """Return position, token and id of the tokens of every text on the page."""
    lists = [e.proto.body for e in at.get("html") if 'class="wl-chips"' in e.proto.body]
    each = r"<small>(.*?)</small><b>(.*?)</b><span>(.*?)</span>"
    return [re.findall(each, body)[1:] for body in lists]


def test_both_names_stand_side_by_side_with_ids_pairs_and_losses(artifacts):
    at = typed("emma", own_name="nina")
    assert is_fine(at)
    loaded = tiny.char_checkpoint()
    for name, shown, drawn in zip(("emma", "nina"), predictions(at), chips(at), strict=False):
        table = tokens.read(loaded.vocabulary, name, CONTEXT)
        losses = tokens.losses(loaded.model, table)
        assert [(label, number) for _, label, number in drawn] == [
            (token.label.replace("<", "&lt;").replace(">", "&gt;"), str(token.id))
            for token in table.tokens
        ]
        for row, pair, loss in zip(shown, table.pairs, losses, strict=False):
            assert row[0] == str(pair.position)
            assert row[3:] == [f"{math.exp(-loss):.4f}", f"{loss:.3f}"]
        assert shown[-1] == ["mean", "", "", "", f"{losses.mean():.3f}"]
        assert f"loss {losses.mean():.3f} nats, their mean" in words(at)
    assert f"ln {len(loaded.vocabulary)} = {math.log(len(loaded.vocabulary)):.3f}" in words(at)


def test_the_training_step_is_the_one_that_is_chosen(artifacts):
    at = typed("emma")
    at.select_slider("step").set_value(0).run()
    loaded = tiny.char_checkpoint()
    table = tokens.read(loaded.vocabulary, "emma", CONTEXT)
    expected = tokens.losses(loaded.model_at("step_0"), table).mean()
    assert predictions(at)[0][-1][-1] == f"{expected:.3f}"


def test_the_first_view_asks_for_the_own_name(artifacts):
    at = open_page("tokens")
    assert is_fine(at)
    assert len(predictions(at)) == 1
    assert "Type your name above" in words(at)


def test_beyond_the_context_nothing_is_trained_and_it_is_said(artifacts):
    at = typed("adamadama")
    rows = predictions(at)[0]
    assert [row[3] == "not trained" for row in rows] == [False] * 8 + [True] * 2 + [False]
    assert "from position 8 on nothing is read, so a and the end are never predicted" in words(at)
    at.text_input("text").set_value("adamadam").run()
    assert "so the end is never predicted" in words(at)
    assert "8 tokens between <BOS> and <BOS>: 8 of 9 predictions, as there are 8 positions" in (
        words(at)
    )
    at.text_input("text").set_value("adamada").run()
    assert "never predicted" not in words(at)
    assert "7 tokens between <BOS> and <BOS>: 8 predictions, loss" in words(at)


@pytest.mark.parametrize("name", ["adamada", "adamadam", "adamadama"])
def test_which_end_is_cut_off_here_and_by_a_probe(artifacts, name):
    read = tiny.LETTERS.probe(name, CONTEXT)
    here, there = [tuple(["<BOS>", *name][:CONTEXT]), read.tokens]
    said_so = "keep the last 8 tokens instead: there the beginning is cut off" in words(typed(name))
    assert said_so == (here != there)


def test_one_token_is_one(artifacts):
    assert "1 token between <BOS> and <BOS>: 2 predictions, loss" in words(typed("a"))


def test_what_stands_in_a_name_is_a_character_throughout(artifacts):
    at = typed("Emma", own_name="-")
    shown = re.sub(r"<style>.*?</style>", "", html(at), flags=re.DOTALL)
    assert not re.search(r"\bsigns?\b", shown, re.IGNORECASE)
    assert "character" in shown


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "mary-jane",
            "Refused: y (character 4), - (character 5), j (character 6) are not in the list",
        ),
        ("Emma", "Refused: E (character 1) is not in the list; e is"),
        ("a-d", "Refused: - (character 2) is not in the list"),
        ("em ma", "Refused: \u2423 (character 3) is not in the list"),
        ("<b>a</b>", "Refused: < (character 1), b (character 2), > (character 3) and 4 more"),
    ],
)
def test_a_refused_name_names_the_character_and_its_place(artifacts, name, sentence):
    at = typed(name, own_name="anna")
    assert is_fine(at)
    assert sentence in words(at).replace("wl-token", "")
    assert len(predictions(at)) == 1  # of the other name
    assert "no id" in html(at)


def test_why_it_is_refused_and_what_would_have_to_change(artifacts):
    at = open_page("tokens")
    at.button_group("refused").set_value(1).run()
    loaded = tiny.char_checkpoint()
    size, width = len(loaded.vocabulary), loaded.model.config.d_model
    old = sum(array.size for array in loaded.model.weights.values())
    text = words(at)
    assert f"Train anew with E in the list: {size} tokens become {size + 1}" in text
    assert f"{old:,} parameters become {old + 2 * width:,}" in text
    assert "no row to look up" in text
    # A word model beside it: it has <UNK>.
    assert (
        "attention_seed11 cuts it into words and punctuation marks, in lower case: 1 of them is"
        in text
    )
    assert [label for _, label, _ in chips(at)[-1]] == ["&lt;BOS&gt;", "&lt;UNK&gt;", "&lt;EOS&gt;"]


def test_a_list_with_the_character_reads_it(open_folder, tmp_path):
    signs = tiny.CharVocabulary.build(("mary-jane", "Emma"))
    made = tiny.char_checkpoint(vocab_size=len(signs))
    object.__setattr__(made, "vocabulary", signs)
    checkpoint.save(made, tmp_path / "artifacts/own.npz")
    open_folder(tmp_path / "artifacts")
    at = typed("mary")
    assert is_fine(at)
    assert "holds every character of mary-jane" in words(at)


def test_the_bars_are_the_counts_and_mark_what_was_typed(artifacts):
    at = typed("emma", own_name="Nina")
    bars = specs(at)[0]["data"][0]
    counts = tiny.LETTERS.counts
    assert bars["y"] == [counts.get(token, 0) for token in tiny.LETTERS.itos]
    marked = {tiny.LETTERS.itos[i] for i, c in enumerate(bars["marker"]["color"]) if c == MARK}
    assert marked == {*"emma", *"ina", "<BOS>"}
    rows = tables(at, "The vocabulary")[0]
    assert [row[0] for row in rows] == [str(i) for i in range(len(tiny.LETTERS))]
    assert rows[0][2:] == [str(counts["a"]), f"{counts['a'] / sum(counts.values()):.2%}"]


@pytest.mark.parametrize("key", ["text", "own_name"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_any_text_in_either_box(artifacts, key, text):
    at = open_page("tokens")
    if text is not None:
        at.text_input(key).set_value(text).run()
    assert is_fine(at)
    assert specs(at)
    assert "<script>" not in html(at)


@pytest.mark.parametrize("text", EMPTY.values(), ids=EMPTY)
def test_an_empty_name_gives_a_hint(artifacts, text):
    at = typed(text or " ")
    at.text_input("text").set_value(text).run()
    assert [e.message for e in at.exception] == []
    assert "type at least one character" in said(at)
    assert not specs(at)
    at.text_input("text").set_value("emma").run()
    at.text_input("own_name").set_value(text).run()
    assert is_fine(at)


def test_a_preset_fills_the_box(artifacts):
    at = open_page("tokens")
    offered(at, "preset", 1)
    assert is_fine(at)
    assert at.text_input("text").value in ("anna", tokens_page.TOO_LONG)


def test_the_long_preset_is_longer_than_the_usual_context():
    assert len(tokens_page.TOO_LONG) == 17


def test_the_files(artifacts):
    loaded = tiny.char_checkpoint()
    table = tokens.read(loaded.vocabulary, "adamadama", CONTEXT)
    losses = tokens.losses(loaded.model, table)
    rows = list(csv.DictReader(io.StringIO(exports_gpt.tokens_csv(table, losses))))
    assert [row["input"] for row in rows] == ["<BOS>", *"adamadama"]
    assert [float(row["loss"]) for row in rows[:8]] == losses.tolist()
    assert {(row["prob"], row["loss"]) for row in rows[8:]} == {("", "")}
    assert json.loads(exports_gpt.tokens_json(table, losses))["loss"] == pytest.approx(
        losses.mean()
    )


def test_the_code_gives_the_numbers_on_screen(artifacts, monkeypatch, capsys):
    at = typed("emma")
    monkeypatch.chdir(artifacts.parent)
    exec(at.code[-1].value, {})
    printed = capsys.readouterr().out.splitlines()[1:-1]
    assert [f"{float(line.split()[-1]):.3f}" for line in printed] == [
        row[-1] for row in predictions(at)[0][:-1]
    ]


def test_bars_of_a_vocabulary_without_counts():
    drawn = figures.token_bars(tokens.alphabet(tiny.CharVocabulary(tiny.LETTERS.itos, {})), set())
    assert set(drawn.spec["data"][0]["y"]) == {0}
    assert "no count" in drawn.spec["data"][0]["hovertext"][0]
