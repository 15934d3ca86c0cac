"""Every page through AppTest: whatever is typed or asked for, there is a sentence, no traceback."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app import controls
from app.main import PAGES
from tests.ui.conftest import CONTEXT, KINDS, make
from wordlm_core import checkpoint
from wordlm_core.lens import attention

ROOT = Path(__file__).resolve().parents[2]
EXPLORE = [page for page in PAGES if page.group == "Explore"]
LENS_PAGES = [page for page in EXPLORE if page.kind]
GPT_PAGES = [page for page in PAGES if page.group == "microgpt"]
# The others ask for words.
TEXT_PAGES = [page for page in EXPLORE if page.address not in ("embeddings", "neighbours")]
NOTHING_FOR_THE_MLP = {"attention": "no attention to draw", "context": "no contextual row"}
TEXTS = {
    "default": None,
    "repeated": "the cat saw the dog and the bird",
    "unknown": "the zebra saw a quagga",
    "all unknown": "zebra quagga okapi",
    "one word": "cat",
    "exactly the window": " ".join(["cat"] * (CONTEXT - 1)),
    "one too many": " ".join(["cat"] * CONTEXT),
    "10,000 words": " ".join(["the cat saw"] * 3_334),
    "emoji": "the cat 🐈 saw 😀",
    "curly": "“don\u2019t” saw the cat",
    "digits": "1 2 10 3",
    "dates": "2020 2021 1e1",
    "special": "the <UNK> saw <PAD> <BOS>",
    "html": "<b>x</b> <script>alert(1)</script>",
    "markdown": "*a* `b` $x$ :red[hi] # _c_ [d](e)",
    "other scripts": "кот видел 狗",
}
EMPTY = {"empty": "", "blank": "   ", "newline": "\n", "tab": "\t"}


def open_page(address: str = "", **parameters: str) -> AppTest:
    """Return a page as it is first shown, with the address's parameters."""
    at = AppTest.from_file(str(ROOT / "app/main.py"), default_timeout=30)
    for key, value in parameters.items():
        at.query_params[key] = value
    if address:
        file = next(page.file for page in PAGES if page.address == address)
        at.switch_page(f"../pages/{file}")
    return at.run()


def pick(at: AppTest, name: str, key: str = "checkpoint") -> None:
    """Choose a checkpoint by its name."""
    box = at.selectbox(key)
    box.set_value(box.options.index(name)).run()


def html(at: AppTest) -> str:
    return "\n".join(element.proto.body for element in at.get("html"))


def specs(at: AppTest) -> list[dict]:
    return [json.loads(element.proto.spec) for element in at.get("plotly_chart")]


def said(at: AppTest) -> str:
    shown = " ".join(element.value for element in (*at.info, *at.warning, *at.error))
    return shown.replace("\\", "")


def is_fine(at: AppTest) -> bool:
    assert [error.message for error in at.exception] == []
    return any("What this does not show" in caption.value for caption in at.caption)


@pytest.mark.parametrize("page", TEXT_PAGES, ids=lambda page: page.title)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_any_text_gives_figures_and_the_caveat(artifacts, page, text):
    at = open_page(page.address)
    if text is not None:
        at.text_input("text").set_value(text).run()
    shown = is_fine(at)
    if page.address == "context" and "share no word" in said(at):
        assert not specs(at)
    else:
        assert shown
        assert specs(at)


@pytest.mark.parametrize("page", TEXT_PAGES, ids=lambda page: page.title)
@pytest.mark.parametrize("text", EMPTY.values(), ids=EMPTY)
def test_no_text_gives_a_hint_and_no_stale_figure(artifacts, page, text):
    at = open_page(page.address)
    at.text_input("text").set_value(text).run()
    is_fine(at)
    assert "type at least one word" in said(at)
    about_the_text = [chart for chart in at.get("plotly_chart") if "curves" not in chart.proto.id]
    assert not about_the_text


@pytest.mark.parametrize("page", LENS_PAGES, ids=lambda page: page.title)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", range(3))
def test_every_checkpoint_at_every_step(artifacts, page, kind, step):
    at = open_page(page.address)
    pick(at, f"{kind}_seed11")
    if page.address != "embeddings":  # which shows all steps
        at.select_slider("step").set_value(step).run()
    shown = is_fine(at)
    if kind == "mlp" and page.address in NOTHING_FOR_THE_MLP:
        assert NOTHING_FOR_THE_MLP[page.address] in said(at)
    else:
        assert shown


@pytest.mark.parametrize("page", LENS_PAGES, ids=lambda page: page.title)
@pytest.mark.parametrize("step", range(3))
def test_every_lens_opens_a_model_of_characters(artifacts, page, step):
    at = open_page(page.address, checkpoint="microgpt_seed42")
    if page.address != "embeddings":
        at.select_slider("step").set_value(step).run()
    assert is_fine(at)
    assert specs(at)


@pytest.mark.parametrize("page", TEXT_PAGES[1:], ids=lambda page: page.title)
@pytest.mark.parametrize("text", ["nina", "a", "anna" * 40, "  eva  "])
def test_any_name_of_known_letters_gives_figures(artifacts, page, text):
    at = open_page(page.address, checkpoint="microgpt_seed42")
    at.text_input("text").set_value(text).run()
    if page.address == "context":
        at.text_input("second").set_value("nevada").run()
    assert is_fine(at)
    assert specs(at)


@pytest.mark.parametrize("page", TEXT_PAGES[1:], ids=lambda page: page.title)
@pytest.mark.parametrize(
    ("text", "place"), [("mary-jane", 4), ("Emma", 1), ("anna\u2423", 5), ("<UNK>", 1), ("ev 1", 3)]
)
def test_a_strange_character_is_named_with_its_place(artifacts, page, text, place):
    at = open_page(page.address, checkpoint="microgpt_seed42")
    at.text_input("text").set_value(text).run()
    is_fine(at)
    assert f"(character {place}) is none of the" in said(at)
    assert not specs(at)


def test_each_kind_of_model_keeps_its_own_text(artifacts):
    at = open_page("attention")
    at.text_input("text").set_value(TEXTS["repeated"]).run()
    pick(at, "microgpt_seed42")
    assert at.text_input("text").value == "emma"
    at.text_input("text").set_value("nina").run()
    pick(at, "multihead_seed11")
    assert at.text_input("text").value == TEXTS["repeated"]
    pick(at, "microgpt_seed42")
    assert at.text_input("text").value == "nina"
    assert is_fine(at)


def test_a_link_with_a_name_opens_it(artifacts):
    at = open_page("attention", checkpoint="microgpt_seed42", text="vera")
    assert at.text_input("text").value == "vera"
    assert is_fine(at)


def test_a_choice_that_a_page_cannot_show_comes_back(artifacts):
    at = open_page("attention")
    pick(at, "multihead_seed11")
    chosen = at.selectbox("checkpoint").value
    at.switch_page("../pages/82_tokens.py").run()
    assert at.selectbox("checkpoint").options == ["microgpt_seed42"]
    at.switch_page("../pages/20_attention.py").run()
    assert at.selectbox("checkpoint").value == chosen
    assert is_fine(at)


@pytest.mark.parametrize("choice", range(3))
@pytest.mark.parametrize("position", range(8))
def test_every_token_can_be_taken_away(artifacts, choice, position):
    at = open_page("ablation")
    at.text_input("text").set_value(TEXTS["repeated"]).run()
    button_group(at, "by", choice)
    button_group(at, "token", position)
    assert is_fine(at)
    assert f"({position + 1})" in html(at)


def button_group(at: AppTest, key: str, position: int) -> None:
    """Click an option of a single choice."""
    at.button_group(key).set_value(position).run()


def offered(at: AppTest, key: str, position: int) -> None:
    """Click one of a row of offered texts."""
    at.button(f"{key}_{position}").click().run()


def test_ticks_are_the_tokens_in_order_also_where_they_repeat(artifacts):
    at = open_page("attention")
    at.text_input("text").set_value(TEXTS["repeated"]).run()
    heatmap = specs(at)[0]["layout"]
    tokens = ["&lt;BOS&gt;", "the", "cat", "saw", "the", "dog", "and", "the", "bird"]
    for axis in ("xaxis", "yaxis"):
        assert heatmap[axis]["ticktext"] == tokens
        assert heatmap[axis]["tickvals"] == list(range(9))
        assert heatmap[axis]["type"] == "linear"


def test_unknown_words_and_cut_off_tokens_are_named(artifacts):
    at = open_page("attention")
    at.text_input("text").set_value("the <b>zebra</b>").run()
    assert "“zebra” at 5" in html(at)
    assert "<b>zebra" not in html(at).replace("<b>0", "")
    at.text_input("text").set_value(" ".join(["cat"] * 20)).run()
    assert f"reads {CONTEXT} tokens at once" in html(at)
    assert "5 before them (&lt;BOS&gt; included) are cut off" in html(at)


def test_a_bad_link_falls_back_and_says_so(artifacts):
    at = open_page("attention", checkpoint="nope", step="abc", query="99", head="head 7")
    assert is_fine(at)
    for wrong in ("nope", "abc", "99"):
        assert f"&#x27;{wrong}&#x27;, which is not here" in html(at)
    assert at.selectbox("checkpoint").options[0] == "attention_seed11"
    assert at.selectbox("checkpoint").value == 0


def test_a_link_by_number_is_understood(artifacts):
    at = open_page("attention", checkpoint="multihead_seed11", step="5", query="2", head="3")
    assert is_fine(at)
    assert at.select_slider("step").value == 1
    assert at.select_slider("query").value == 2
    assert "not here" not in html(at)


def test_values_follow_from_page_to_page(artifacts):
    at = open_page("attention")
    pick(at, "multihead_seed11")
    chosen = at.selectbox("checkpoint").value
    at.text_input("text").set_value(TEXTS["repeated"]).run()
    at.select_slider("step").set_value(1).run()
    at.select_slider("query").set_value(3).run()
    at.switch_page("../pages/30_ablation.py").run()
    assert at.selectbox("checkpoint").value == chosen
    assert at.text_input("text").value == TEXTS["repeated"]
    assert at.select_slider("step").value == 1
    at.switch_page("../pages/20_attention.py").run()
    assert at.select_slider("query").value == 3
    assert is_fine(at)


def test_a_query_is_kept_while_it_exists_and_follows_the_end_until_chosen(artifacts):
    at = open_page("attention")
    at.text_input("text").set_value("the cat saw").run()
    assert at.select_slider("query").value == 3
    at.text_input("text").set_value("the cat saw the dog").run()
    assert at.select_slider("query").value == 5
    at.select_slider("query").set_value(2).run()
    at.text_input("text").set_value("a dog and a bird").run()
    assert at.select_slider("query").value == 2
    at.select_slider("query").set_value(4).run()
    at.text_input("text").set_value("a dog").run()
    assert at.select_slider("query").value == 2
    assert "query 4 · a is not here: reset" in html(at)


def test_a_preset_fills_the_box(artifacts):
    at = open_page("ablation")
    offered(at, "preset", 1)
    assert at.text_input("text").value == controls.PRESETS[1]


def test_replacing_a_word_by_itself_changes_nothing(artifacts):
    at = open_page("ablation")
    at.text_input("text").set_value("the cat saw the dog").run()
    button_group(at, "by", 1)
    button_group(at, "token", 1)
    assert "does not move" in html(at)


def test_a_replacement_must_be_a_word_of_the_vocabulary(artifacts):
    at = open_page("ablation")
    button_group(at, "by", 1)
    at.text_input("word").set_value("catt").run()
    assert "near it: cat" in said(at)
    is_fine(at)


def test_two_checkpoints_side_by_side(artifacts):
    at = open_page("attention")
    at.selectbox("other").set_value(2).run()
    at.select_slider("other_step").set_value(0).run()
    assert is_fine(at)
    assert "4 heads, step 0" in html(at)


def test_the_code_gives_the_number_on_screen(artifacts, monkeypatch, capsys):
    at = open_page("attention")
    monkeypatch.chdir(artifacts.parent)
    exec(at.code[-1].value, {})
    last = [float(n) for n in re.findall(r"softmax|<b>(\d\.\d{3})</b>", html(at)) if n]
    printed = re.search(r"\[([^\]]+)\]", capsys.readouterr().out.split(")", 1)[1])
    assert printed
    assert [float(n) for n in printed[1].split()] == pytest.approx(last, abs=6e-4)


def test_a_row_ends_in_the_mix_and_what_the_head_adds(artifacts):
    at = open_page("attention", checkpoint="multihead_seed11", head="2")
    at.text_input("text").set_value("the cat saw").run()
    loaded = make("multihead")
    trace = loaded.model.trace(loaded.vocabulary.probe("the cat saw", CONTEXT).ids)
    steps = attention.row_steps(trace, 0, 2, 3)
    shown = html(at)
    assert f"have length {np.linalg.norm(steps.mix):.2f};" in shown
    assert f"at the position, length {np.linalg.norm(steps.update):.2f}." in shown
    parts = steps.weights * np.linalg.norm(steps.values, axis=1)
    assert all(f"<td>{part:.2f}</td>" in shown for part in parts)


def test_the_link_names_the_view(artifacts):
    at = open_page("attention")
    at.text_input("text").set_value("the cat saw").run()
    at.select_slider("query").set_value(1).run()
    link = next(code.value for code in at.code if "checkpoint=" in code.value)
    assert "text=the+cat+saw" in link
    assert "query=1+%C2%B7+the" in link


def test_bad_files_are_listed_with_reasons_and_the_rest_works(folder, open_folder, tmp_path):
    shutil.copytree(folder, tmp_path / "artifacts")
    (tmp_path / "artifacts/empty.npz").touch()
    (tmp_path / "artifacts/text.npz").write_text("no archive", encoding="utf-8")
    whole = (folder / "mlp_seed11.npz").read_bytes()
    (tmp_path / "artifacts/cut.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "artifacts/benchmark.json").write_text("{", encoding="utf-8")
    open_folder(tmp_path / "artifacts")
    at = open_page()
    assert is_fine(at)
    for name in ("empty.npz", "text.npz", "cut.npz", "benchmark.json"):
        assert name in html(at)
    assert "it is empty" in html(at)
    assert "damaged or not an .npz file" in html(at)


def benchmark() -> dict:
    """Return the smallest result with all that the page shows."""
    kinds = {"mlp": (50.0, 2000), "attention": (30.0, 1500), "multihead": (27.0, 1500)}
    trace = [{"step": step, "validation_loss": 4.0 / step} for step in (1, 750)]
    split = {"documents": 1200, "tokens": 9000, "targets": 9900, "unknown_share": 0.01}
    return {
        "source": {"name": "stories", "licence": "MIT"},
        "protocol": {"steps": 6000, "heads": {"mlp": 0}},
        "corpus_audit": {"vocab_size": 4000, "splits": {"train": split}},
        "runs": {
            kind: [{"seed": 11, "parameter_count": size, "trace": trace}]
            for kind, (_, size) in kinds.items()
        },
        "aggregate": {
            kind: {
                "test_loss": {"mean": 3.5, "sample_std": 0.01, "values": [3.5]},
                "test_perplexity": {"mean": mean, "sample_std": None, "values": [mean]},
                "runtime_seconds": {"mean": 90.0, "sample_std": None, "values": [90.0]},
            }
            for kind, (mean, _) in kinds.items()
        },
        "comparison": {"relative_perplexity_change": -0.4, "claim_scope": "Only here & now."},
    }


def test_the_overview_shows_what_was_measured(folder, open_folder, tmp_path):
    shutil.copytree(folder, tmp_path / "artifacts")
    (tmp_path / "artifacts/benchmark.json").write_text(json.dumps(benchmark()), encoding="utf-8")
    open_folder(tmp_path / "artifacts")
    at = open_page()
    assert is_fine(at)
    text = re.sub(r"<[^>]+>", "", html(at))
    assert "40% lower perplexity with 25% fewer parameters" in text
    for shown in ("3.500 ± 0.010", "50.0", "1.5 min", "9,900", "Only here &amp; now."):
        assert shown in text
    assert len(specs(at)) == 3


@pytest.mark.parametrize("part", ["runs", "aggregate", "corpus_audit", "comparison", "source"])
def test_a_benchmark_that_lacks_a_part_is_listed_with_the_reason(
    folder, open_folder, tmp_path, part
):
    shutil.copytree(folder, tmp_path / "artifacts")
    measured = {key: value for key, value in benchmark().items() if key != part}
    (tmp_path / "artifacts/benchmark.json").write_text(json.dumps(measured), encoding="utf-8")
    open_folder(tmp_path / "artifacts")
    at = open_page()
    assert is_fine(at)
    assert f"it has no &#x27;{part}&#x27;" in html(at)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_an_empty_folder_teaches(open_folder, tmp_path, page):
    open_folder(tmp_path / "nothing")
    at = open_page(page.address)
    is_fine(at)
    assert "wordlm_core" in said(at) + " ".join(c.value for c in at.code)


def test_a_new_file_is_seen_at_the_next_rerun(folder, open_folder, tmp_path):
    (tmp_path / "artifacts").mkdir()
    shutil.copy(folder / "mlp_seed11.npz", tmp_path / "artifacts")
    open_folder(tmp_path / "artifacts")
    at = open_page("ablation")
    assert len(at.selectbox("checkpoint").options) == 1
    shutil.copy(folder / "attention_seed11.npz", tmp_path / "artifacts")
    at.run()
    assert at.selectbox("checkpoint").options == ["attention_seed11", "mlp_seed11"]


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("attention", "head"), ("ablation", "by"), ("ablation", "token"), ("embeddings", "map"),
        ("parameters", "matrix"), ("parameters", "box"), ("tokens", "refused"),
        ("training", "rate"), ("check_yourself", "topic"), ("autograd", "calls"),
        ("microgpt_map", "part"), ("microgpt_map", "card"), ("one_position", "checkpoint"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", ["", "nope", "-1", "9" * 400])
def test_a_link_with_a_value_that_is_none_shows_the_default(artifacts, address, key, value):
    at = open_page(address, **{key: value})
    assert is_fine(at)


ODD = {
    "metrics": [1],
    "training": "x",
    "corpus": [1],
    "loss_history": [10**400, 1],
    "trace": [{"step": "x"}, 3],
    "seed": {"a": [1]},
}


@pytest.fixture(scope="module")
def odd_folder(folder, tmp_path_factory):
    """The good checkpoints, and copies of two whose metadata say nonsense."""
    made = tmp_path_factory.mktemp("odd") / "artifacts"
    shutil.copytree(folder, made)
    for name in ("microgpt_seed42", "multihead_seed11"):
        for key, value in ODD.items():
            arrays, metadata = checkpoint.read_arrays(folder / f"{name}.npz")
            checkpoint.write_arrays(made / f"a_{name}_{key}.npz", arrays, metadata | {key: value})
    return made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_metadata_that_say_nonsense_take_no_page_down(odd_folder, open_folder, page):
    open_folder(odd_folder)
    kind = "microgpt_seed42" if page.group == "microgpt" else "multihead_seed11"
    for name in (kind, *(f"a_{kind}_{key}" for key in ODD)):
        is_fine(open_page(page.address, checkpoint=name))


@pytest.mark.parametrize("page", GPT_PAGES, ids=lambda page: page.title)
def test_the_walk_leads_on_and_back(artifacts, page):
    at = open_page(page.address)
    links = [element.proto for element in at.get("page_link")]
    following = GPT_PAGES[GPT_PAGES.index(page) + 1 :][:1]
    for each in following:
        assert f"Next: {each.title} · {each.question}" in [link.label for link in links]
    if page is not GPT_PAGES[0]:
        assert any(link.label.startswith("Back to the map") for link in links)
    asked = {link.label: link.query_string for link in links}
    lenses = [each.title for each in LENS_PAGES]
    opens = "checkpoint=microgpt_seed42"
    opened = [title for title in lenses if opens in asked.get(title, "")]
    assert opened == (lenses if "checkpoint" in [box.key for box in at.selectbox] else [])
