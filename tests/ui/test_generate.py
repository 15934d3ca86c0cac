"""Generate: what the sliders do, the receipt, the samples, and what is drawn."""

import math
import re
import shutil

import numpy as np
import pytest

from app import figures
from tests import tiny
from tests.ui.conftest import CONTEXT, VOCABULARY, make
from tests.ui.test_pages import html, is_fine, offered, open_page, said, specs
from wordlm_core.lens import receipt, sampling
from wordlm_core.text import EOS

TEXT = "the cat saw the dog"
TEMPERATURE = {"greedy": 0, "half": 5, "three": 30}


def plain(at) -> str:
    return re.sub(r"<[^>]+>", "", html(at))


def distribution(**settings) -> sampling.Distribution:
    loaded = make("attention")
    probe = loaded.vocabulary.probe(TEXT, CONTEXT)
    return sampling.distribution_after(loaded.model, loaded.vocabulary, probe, **settings)


def generate_page(**parameters: str):
    return open_page("generate", checkpoint="attention_seed11", text=TEXT, **parameters)


@pytest.fixture
def with_counts(folder, open_folder, tmp_path):
    """The tiny checkpoints and the counts of a tiny corpus."""
    shutil.copytree(folder, tmp_path / "artifacts")
    texts = ["the cat saw the dog"] * 4 + ["the cat saw the bird"] * 2 + ["the dog and the cat"]
    ids = [[1, *VOCABULARY.encode(text.split()), 2] for text in texts]
    grams = receipt.count([np.array(each) for each in ids], VOCABULARY)
    receipt.save(grams, tmp_path / "artifacts/ngrams.npz")
    return open_folder(tmp_path / "artifacts")


# -- the page


def test_the_bars_are_the_distribution_at_the_settings_over_the_unscaled_one(artifacts):
    at = generate_page(temperature="0.5", top_k="4")
    hits, ghost, bars, _ = specs(at)[0]["data"]
    before, after = distribution(), distribution(temperature=0.5, top_k=4)
    tokens = [entry.token for entry in before.ranked(12)]
    ids = [VOCABULARY.stoi[token] for token in tokens]
    assert specs(at)[0]["layout"]["yaxis"]["ticktext"][:12] == [figures.escape(t) for t in tokens]
    assert ghost["x"][:12] == pytest.approx(before.probs[ids])
    assert bars["x"][:12] == pytest.approx(after.probs[ids])
    assert sum(ghost["x"]) == pytest.approx(1)
    assert sum(bars["x"]) == pytest.approx(1)
    assert len(hits["x"]) == 12
    assert f"entropy {after.entropy:.2f} nats" in plain(at).lower()
    assert f"entropy {before.entropy:.2f} nats" in plain(at)


def test_temperature_0_is_greedy_and_says_so(artifacts):
    at = generate_page(temperature="0")
    assert at.select_slider("temperature").value == 0
    best = distribution().ranked(1)[0].token
    assert f"Greedy: always {best}" in plain(at).replace("&lt;", "<").replace("&gt;", ">")
    assert "taken without a draw" in plain(at)
    assert "every sample is the same" in plain(at)
    assert "drawn at random" not in plain(at).replace("Nothing is drawn at random", "")
    bars = specs(at)[0]["data"][2]["x"]
    assert bars[0] == 1
    assert "cut off" not in specs(at)[0]["data"][3]["text"]
    assert all(math.isfinite(x) for x in bars)


@pytest.mark.parametrize("position", TEMPERATURE.values(), ids=TEMPERATURE)
def test_the_same_seed_draws_the_same_samples(artifacts, position):
    def rows() -> list[str]:
        at = generate_page(draw_seed="7", samples="5")
        at.select_slider("temperature").set_value(position).run()
        return re.findall(r'<td class="wl-left">([^<]*)</td>', html(at))[1::2]

    first = rows()
    assert first == rows()
    loaded = make("attention")
    expected = sampling.generate(
        loaded.model,
        VOCABULARY,
        VOCABULARY.probe(TEXT, CONTEXT),
        temperature=position / 10,
        seed=7,
        max_tokens=24,
        samples=5,
    )
    assert [row.rstrip(" ∎…") for row in first[:5]] == [
        sample.text.replace("'", "&#x27;").replace('"', "&quot;") for sample in expected
    ]


def test_a_forced_word_goes_behind_the_text(artifacts):
    at = generate_page()
    words = [e.token for e in distribution().ranked(12) if e.token != EOS]
    offered(at, "force", 1)
    assert at.text_input("text").value == f"{TEXT} {words[1]}"
    offered(at, "force", 0)
    assert at.text_input("text").value.startswith(f"{TEXT} {words[1]} ")


def test_each_word_of_a_sample_is_marked_in_what_it_was_drawn_from(artifacts):
    at = generate_page(draw_seed="3", samples="2", sample="sample 2")
    loaded = make("attention")
    probe = VOCABULARY.probe(TEXT, CONTEXT)
    drawn = sampling.generate(loaded.model, VOCABULARY, probe, seed=3, max_tokens=24, samples=2)[1]
    tokens = [*drawn.tokens, *([EOS] if drawn.ended else [])]
    for word in range(min(4, len(tokens))):
        at.select_slider("word_at").set_value(word).run()
        chart = specs(at)[-1]
        labels = chart["data"][3]["text"]
        marked = [i for i, label in enumerate(labels) if "drawn" in label]
        assert len(marked) == 1
        axis = chart["layout"]["yaxis"]["ticktext"]
        assert axis[marked[0]] == figures.escape(tokens[word])
        of_word = sampling.distribution_after(loaded.model, VOCABULARY, probe, drawn.ids[:word])
        shown = chart["data"][2]["x"][marked[0]]
        assert shown == pytest.approx(of_word.probs[VOCABULARY.stoi[tokens[word]]])
        assert "drawn at random" in plain(at)


def test_without_counts_there_is_a_sentence(artifacts):
    assert "no corpus counts" in plain(generate_page())


def test_the_receipt_stands_beside_the_model(with_counts):
    at = open_page("generate", checkpoint="attention_seed11", text="the cat saw the")
    text = plain(at)
    assert "after “saw the”" in text
    assert re.search(r"\d of 6 times", text)
    row = re.search(r"<tr><td class=\"wl-left\">dog</td>(.*?)</tr>", html(at))
    assert row
    assert "4 · 67%" in row[1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("the zebra", "The last word is not in the vocabulary"),
        ("the cat", "stands only 5 times in the training text"),
        ("lily had", "the corpus has no answer"),
    ],
)
def test_the_receipt_says_where_it_knows_little(with_counts, text, sentence):
    assert sentence in plain(open_page("generate", checkpoint="attention_seed11", text=text))


def test_counts_of_another_vocabulary_are_named(folder, open_folder, tmp_path):
    shutil.copytree(folder, tmp_path / "artifacts")
    grams = receipt.count([np.array([1, 5, 6, 2])], tiny.VOCABULARY)
    receipt.save(grams, tmp_path / "artifacts/ngrams.npz")
    open_folder(tmp_path / "artifacts")
    assert "belong to another vocabulary" in plain(generate_page())


def test_a_broken_file_of_counts_is_listed(folder, open_folder, tmp_path):
    shutil.copytree(folder, tmp_path / "artifacts")
    (tmp_path / "artifacts/ngrams.npz").write_bytes(b"no archive")
    open_folder(tmp_path / "artifacts")
    assert "ngrams.npz" in html(open_page())
    assert "no corpus counts" in plain(generate_page())


def test_a_link_with_settings_out_of_range_says_so(artifacts):
    at = generate_page(temperature="9", top_k="x", samples="99")
    assert [e.message for e in at.exception] == []
    for wrong in ("9", "x", "99"):
        assert f"&#x27;{wrong}&#x27;, which is not here" in html(at)


def test_a_full_window_slides(artifacts):
    at = open_page("generate", text=" ".join(["cat"] * 40), samples="20")
    assert [e.message for e in at.exception] == []
    assert said(at) == ""
    assert len(specs(at)) == 2


# -- the figure


def test_candidates_keep_their_order_and_name_the_drawn_one():
    before = distribution()
    after = distribution(top_k=2, temperature=0.5)
    drawn = before.ranked(20)[15].token
    of = figures.candidates_of(before, after, 5, drawn)
    assert of.tokens == (*(e.token for e in before.ranked(5)), drawn)
    assert of.drawn == 5
    assert of.after[2:] == (0, 0, 0, 0)
    count, rest_before, rest_after = of.others
    assert count == np.count_nonzero(before.probs) - 6
    assert rest_before == pytest.approx(1 - sum(of.before))
    assert rest_after == pytest.approx(0, abs=1e-12)
    chart = figures.next_bars(of, "attention")
    assert chart.spec["data"][3]["text"][2] == "cut off"
    assert chart.spec["data"][2]["marker"]["color"][5] == figures.MARK
    assert drawn.replace("<", "") in chart.alt.replace("<", "")


def test_a_model_of_characters_can_begin_from_nothing(artifacts, monkeypatch, capsys):
    at = open_page("generate", checkpoint="microgpt_seed42")
    offered(at, "preset", 0)
    assert at.text_input("text").value == ""
    assert is_fine(at)
    made = tiny.char_checkpoint()
    first = sampling.generate(made.model, made.vocabulary, None, seed=1, samples=3, max_tokens=24)
    for sample in first:
        assert f"<td>{sample.text}" in html(at).replace(' class="wl-left"', "")
    monkeypatch.chdir(artifacts.parent)
    exec(at.code[-1].value, {})
    assert str([sample.text for sample in first]) in capsys.readouterr().out


def test_a_whole_item_is_looked_up_in_the_training_list(artifacts):
    at = open_page("generate", checkpoint="microgpt_seed42", text="an")
    at.select_slider("samples").set_value(19).run()
    made = tiny.char_checkpoint()
    probe = made.vocabulary.probe("an", 8)
    drawn = sampling.generate(made.model, made.vocabulary, probe, seed=1, samples=20, max_tokens=24)
    words = {True: "in it", False: "new", None: "unfinished"}
    told = [words[sampling.seen_in_training(made, probe, sample)] for sample in drawn]
    shown = re.findall(r">(in it|new|unfinished)</td>", html(at))
    assert shown == told


def test_a_model_of_words_asks_for_a_word(artifacts):
    at = open_page("generate")
    at.text_input("text").set_value("").run()
    assert "type at least one word" in said(at)
