"""Experiments: commit, run, compare, through AppTest with the real pool of processes."""

import base64
import csv
import datetime
import html as markup
import io
import json
import math
import re
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from app import experiment_runs, figures, state
from app.experiment_runs import CANNOT_TELL, DOWN, RIGHT, SAME, UP, WRONG, Prediction, Run
from app.figures import RUN_LOOKS, Overlaid
from app.figures.base import MARK, MUTED
from tests import tiny
from tests.ui.test_pages import ROOT, html, is_fine, open_page, said, specs
from wordlm_core import experiment
from wordlm_core.errors import TextError
from wordlm_core.experiment import DATA, OWN, PRESETS, Draw, Experiment, Result

NAMES = (
    *("oranel", "tivo", "masu", "belinara", "kex", "junoth"),
    *("arvela", "pilo", "sumari", "denk", "oluvia", "tamberlin"),
)
LABELS = [preset.experiment.label for preset in PRESETS]
OWN_SETTINGS = len(PRESETS)
OWN_LIST = LABELS.index("own list")
HOSTILE = {
    "formula": "=1+1",
    "other formulas": "@SUM(A1) | -2 | +3",
    "markdown": "a*b*c `tick` ``` $x$ :red[hi] # title | cell",
    "html": "<b>bold</b> <script>alert(1)</script> &amp; <BOS>",
    "other scripts": "имя 名 😀 \u202e right to left",
    "quotes": "\"both\" 'kinds' “curly”; and, commas",
}


@pytest.fixture(autouse=True, scope="module")
def _end_the_pool():
    yield
    state.quick_pool.clear()


@pytest.fixture
def at(artifacts):
    """The page once its baseline is trained, which takes longer on a busy machine."""
    opened = open_page("experiments")
    end = time.monotonic() + 30.0
    while "lock_prediction" not in keys(opened, "button"):
        assert time.monotonic() < end
        opened.run()
    return opened


def plain(at) -> str:
    return markup.unescape(re.sub(r"<[^>]+>", "", html(at)))


def keys(at, kind: str) -> set[str]:
    return {element.key for element in at.get(kind)}


def choose(at, position: int) -> None:
    at.selectbox("experiment").set_value(position).run()


def predict(at, direction: int | None, size: str, count: str, because: str = "my reason") -> None:
    at.button_group("guess_direction").set_value(direction).run()
    if direction != SAME:
        at.text_input("guess_size").set_value(size)
    at.text_input("guess_count").set_value(count)
    at.text_input("guess_because").set_value(because).run()


def lock(at) -> None:
    at.button("lock_prediction").click().run()


def finish(at, seconds: float = 30.0) -> None:
    """Look again until the run is over, as the page does by itself."""
    end = time.monotonic() + seconds
    while "cancel_run" in keys(at, "button"):
        assert time.monotonic() < end
        time.sleep(0.1)
        at.run()


def run_it(at) -> None:
    at.button("run_experiment").click().run()
    finish(at)


def rows(at) -> list[list[str]]:
    table = next(e.proto.body for e in at.get("html") if 'aria-label="All runs"' in e.proto.body)
    found = re.findall(r"<tr[^>]*>((?:<td.*?</td>)+)</tr>", table, re.DOTALL)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in found]
    return [[markup.unescape(cell) for cell in row] for row in cells]


def run_apart(tried: Experiment) -> Result:
    """Run an experiment in a process of its own, without the page and its pool."""
    code = (
        "import json, sys; from wordlm_core import experiment as e; "
        "tried = e.Experiment.from_json(json.loads(sys.argv[1])); "
        "print(json.dumps(e.run(tried, e.corpus_of(tried, None)).to_json()))"
    )
    return Result.from_json(json.loads(printed(code, json.dumps(tried.to_json()))))


def printed(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def small(**settings) -> Experiment:
    return replace(Experiment("small", OWN, steps=60, d_model=8, n_head=1, context=12), **settings)


@pytest.fixture(scope="module")
def results():
    """A baseline, an ordinary result and one that diverged."""
    own = experiment.own_list(NAMES)
    tried = (small(), small(positions=False, draws=(Draw(), Draw(1.0, 3))), small(lr=1e6))
    return [experiment.run(each, own) for each in tried]


def made(results, guess: Prediction, number: int = 1, *, diverged: bool = False) -> Run:
    tried = small(lr=1e6) if diverged else small(positions=False, draws=(Draw(), Draw(1.0, 3)))
    return Run(number, tried, "", guess, results[2 if diverged else 1], results[0])


# -- predict


def test_the_first_view_shows_the_baseline_and_asks_for_a_prediction(at):
    assert is_fine(at)
    baseline = run_apart(Experiment())
    assert (
        f"Baseline: loss {baseline.loss:.3f} over the last 200 of 1,000 steps, mean of 3 seeds"
        in plain(at)
    )
    assert "V = 27" in plain(at)
    assert "4,192" not in plain(at)  # it is to be counted by hand
    assert keys(at, "button") >= {"lock_prediction"}
    assert "run_experiment" not in keys(at, "button")
    assert len(specs(at)) == 1


INCOMPLETE = (
    (None, "0.1", "4192", "say whether the loss goes down, stays or goes up"),
    (UP, "", "4192", "by how much is a number of nats"),
    (UP, "much", "4192", "by how much is a number of nats"),
    (UP, "-0.1", "4192", "by how much is a number of nats"),
    (UP, "nan", "4192", "by how much is a number of nats"),
    (DOWN, "0.1", "", "the number of parameters is a whole number"),
    (DOWN, "0.1", "many", "the number of parameters is a whole number"),
    (SAME, "", "4.5", "the number of parameters is a whole number"),
)
NO_REASONS = ("", "   ", "idk", "?!? ... ---", "=1+1")


def test_nothing_runs_before_the_prediction_is_whole_and_nothing_typed_is_lost(at):
    for direction, size, count, told in INCOMPLETE:
        predict(at, direction, size, count, "my reason")
        lock(at)
        assert told in said(at).lower(), told
        assert "run_experiment" not in keys(at, "button")
        assert at.text_input("guess_count").value == count
        assert at.text_input("guess_because").value == "my reason"
        assert is_fine(at)


def test_a_prediction_needs_a_few_words_of_why(at):
    for because in NO_REASONS:
        predict(at, UP, "0.1", "4192", because)
        lock(at)
        assert "say in a few words why you expect that" in said(at).lower(), because
        assert "run_experiment" not in keys(at, "button")
    predict(at, UP, "0.1", "4192", "too far")
    lock(at)
    assert "run_experiment" in keys(at, "button")


def test_the_page_says_that_its_names_are_not_those_of_the_checkpoint(at):
    told = f"census names, another list than the {len(tiny.ITEMS)} names that microgpt_seed42"
    assert told in plain(at)
    choose(at, LABELS.index("words instead of names"))
    assert "census names" not in plain(at)


def test_without_a_checkpoint_of_microgpt_there_is_no_other_list(tmp_path, open_folder):
    open_folder(tmp_path)
    at = open_page("experiments")
    assert is_fine(at)
    assert "V = 27" in plain(at)
    assert "census names" not in plain(at)


def test_the_time_is_that_of_all_seeds_and_in_whole_seconds(at):
    assert "about 1 s for all 3 seeds" in plain(at)
    choose(at, LABELS.index("5,000 steps"))
    assert "about 4 s for all 3 seeds" in plain(at)


def test_a_locked_prediction_cannot_be_changed_and_waits_for_its_experiment(at):
    choose(at, LABELS.index("width 32"))
    predict(at, DOWN, "0,15", "14,528", "wider is better")
    lock(at)
    assert "The loss goes down by 0.15; 14,528 parameters." in plain(at)
    assert not keys(at, "text_input") & {"guess_size", "guess_count", "guess_because"}
    assert not keys(at, "button_group") & {"guess_direction"}
    choose(at, LABELS.index("2 layers"))
    assert "run_experiment" not in keys(at, "button")
    assert at.text_input("guess_count").value == ""
    choose(at, LABELS.index("width 32"))
    assert "wider is better" in plain(at)
    assert "run_experiment" in keys(at, "button")


# -- run and compare


def test_commit_run_compare_explain(at):
    chosen = LABELS.index("learning rate 0.1")
    choose(at, chosen)
    assert "Changed: learning rate 0.01 → 0.1. Same seeds (42 to 44), same orders" in plain(at)
    predict(at, UP, "0.3", "4192", "too large steps")
    lock(at)
    run_it(at)
    assert is_fine(at)
    tried = PRESETS[chosen].experiment
    here, baseline = run_apart(tried), run_apart(tried.baseline())
    change = here.loss - baseline.loss
    changes = [loss - base for loss, base in zip(here.finals, baseline.finals, strict=True)]
    spread = f"between {min(changes):+.3f} and {max(changes):+.3f} over 3 seeds"
    assert f"goes up ({change:+.3f}, {spread})" in plain(at)
    assert f"The direction was right; the size was {abs(change - 0.3):.3f} nats off." in plain(at)
    assert "You counted 4,192 parameters: right." in plain(at)
    (row,) = rows(at)
    assert row[:3] == ["1 · learning rate 0.1", "4,192", f"{here.loss:.3f}"]
    assert row[4:6] == ["goes up by 0.3", "4,192"]
    assert row[7].split() == [each.text for each in here.samples[0][:4]]
    assert row[8] == "too large steps"
    new = [each.text for each in here.samples[0] if not each.seen]
    assert " ".join(new) in plain(at)
    at.text_area("explain_run_1").set_value("It jumps\nover the valley.").run()
    assert rows(at)[0][9] == "It jumps\nover the valley."
    at.switch_page("../pages/20_attention.py").run()
    at.switch_page("../pages/87_experiments.py").run()
    assert rows(at)[0][9] == "It jumps\nover the valley."
    assert at.text_area("explain_run_1").value == "It jumps\nover the valley."
    names = [line["name"] for line in specs(at)[0]["data"]]
    assert names == ["baseline", "1 · learning rate 0.1"]
    look, colour, _ = RUN_LOOKS[0]
    assert f'loss <span class="wl-{look}">{here.loss:.3f}</span>, baseline {baseline.loss:.3f}' in (
        html(at)
    )
    assert specs(at)[0]["data"][1]["line"]["color"] == colour


def test_temperatures_are_ways_to_sample_one_training(at):
    choose(at, LABELS.index("temperature 0.1 to 2"))
    assert "The training is the baseline's: only the sampling differs." in plain(at)
    predict(at, SAME, "", "4192")
    lock(at)
    run_it(at)
    assert "stays the same (+0.000, between +0.000 and +0.000 over 3 seeds)" in plain(at)
    for temperature in ("T 0.1", "T 0.5", "T 1", "T 2"):
        assert html(at).count(f'<td class="wl-left">{temperature}</td>') == 1
    assert specs(at) == []  # the samples stand in place of two equal curves
    assert "download_html" not in keys(at, "download_button")
    assert "Its samples stand above" in plain(at)
    choose(at, LABELS.index("width 32"))
    assert drawn_runs(at) == [1]
    assert html(at).count('<td class="wl-left">T 0.1</td>') == 1


def test_every_preset_says_its_question_and_what_it_changes(at):
    for position, preset in enumerate(PRESETS):
        choose(at, position)
        assert is_fine(at)
        assert preset.question in plain(at)
        if position == OWN_LIST:
            assert "the list is empty" in said(at).lower()
        else:
            assert "Same seeds" in plain(at) or "Losses of two lists" in plain(at)
            assert "lock_prediction" in keys(at, "button")


def test_a_long_run_is_watched_left_found_again_and_cancelled(at):
    choose(at, OWN_SETTINGS)
    at.number_input("steps").set_value(20_000)
    at.number_input("width").set_value(32)
    at.number_input("run_seed").set_value(7).run()
    assert "Several at once: an effect has no single cause." in plain(at)
    predict(at, DOWN, "0.1", "1", "longer")
    lock(at)
    at.button("run_experiment").click().run()
    assert "cancel_run" in keys(at, "button")
    assert "steps 20,000, width 32" in plain(at)
    at.switch_page("../pages/20_attention.py").run()
    at.switch_page("../pages/87_experiments.py").run()
    assert "cancel_run" in keys(at, "button")
    assert at.get("progress")
    at.button("cancel_run").click().run()
    assert "it was cancelled" in said(at).lower()
    assert "run_experiment" in keys(at, "button")  # the prediction is still locked
    assert is_fine(at)


def test_an_experiment_is_run_once_and_can_be_removed(at):
    choose(at, LABELS.index("no positions"))
    unused = "wpe is still drawn, stored and counted, but never added"
    assert unused in plain(at)
    predict(at, UP, "0.05", "3936")
    lock(at)
    run_it(at)
    assert f"You counted {27 * 16 * 2 + 3072:,} parameters; there are 4,192: wte 27 x 16" in plain(
        at
    )
    assert plain(at).count(unused) == 2  # of the experiment, and of the wrong count
    assert "lock_prediction" not in keys(at, "button")
    choose(at, LABELS.index("temperature 0.1 to 2"))
    predict(at, SAME, "", "4192")
    lock(at)
    run_it(at)
    assert at.selectbox("run_shown").value == 1
    choose(at, LABELS.index("no positions"))
    assert "Run 1: your prediction against the result" in plain(at)
    assert at.selectbox("run_shown").value == 0
    at.text_area("explain_run_1").set_value("surprising").run()
    at.button("remove_run").click().run()
    assert is_fine(at)
    assert [row[0] for row in rows(at)] == ["2 · temperature 0.1 to 2"]
    assert "lock_prediction" in keys(at, "button")


def test_two_people_see_their_own_runs_only(artifacts):
    first, second = open_page("experiments"), open_page("experiments")
    predict(first, SAME, "", "4192", "mine alone")
    lock(first)
    run_it(first)
    second.run()
    assert "mine alone" in html(first)
    assert "mine alone" not in html(second)
    assert 'aria-label="All runs"' not in html(second)


def test_the_table_is_bounded_and_says_so(at, results):
    guess = Prediction(SAME, 0.0, 1, "")
    at.session_state["_runs"] = [made(results, guess, number) for number in range(1, 31)]
    at.run()
    assert "30 runs are kept: download them, then remove one to go on." in plain(at)
    assert "lock_prediction" not in keys(at, "button")
    assert len(rows(at)) == 30
    at.selectbox("run_shown").set_value(4).run()
    at.button("remove_run").click().run()
    assert [row[0].split()[0] for row in rows(at)][:6] == ["1", "2", "3", "4", "6", "7"]
    assert drawn_runs(at) == [26, 27, 28, 29, 30]
    assert "lock_prediction" in keys(at, "button")


def drawn_runs(at) -> list[int]:
    names = [line["name"] for line in specs(at)[0]["data"]]
    assert names.count("baseline") == 1
    return sorted(int(name.split(" · ")[0]) for name in names if name != "baseline")


def test_the_latest_five_are_drawn_until_a_person_chooses(at, results):
    guess = Prediction(SAME, 0.0, 1, "")
    at.session_state["_runs"] = [made(results, guess, number) for number in range(1, 9)]
    at.run()
    assert at.multiselect("runs_drawn").value == drawn_runs(at) == [4, 5, 6, 7, 8]
    at.multiselect("runs_drawn").set_value([1, 7, 2]).run()
    assert drawn_runs(at) == [1, 2, 7]
    looks = {(line["line"]["color"], line["line"]["dash"]) for line in specs(at)[0]["data"]}
    assert len(looks) == 4  # 1 and 7 would have one and the same
    at.multiselect("runs_drawn").set_value([]).run()
    assert is_fine(at)
    assert drawn_runs(at) == []
    at.multiselect("runs_drawn").set_value([3, 4]).run()
    at.selectbox("run_shown").set_value(2).run()
    at.button("remove_run").click().run()
    assert drawn_runs(at) == [4]
    predict(at, SAME, "", "4192")
    lock(at)
    run_it(at)
    choose(at, LABELS.index("width 32"))
    assert drawn_runs(at) == [4, 9]


# -- bad input


BAD_SETTINGS = (
    ("steps", 0, "steps must be 1 to 20,000, not 0"),
    ("steps", 10**9, "steps must be 1 to 20,000"),
    ("width", 10, "4 heads do not divide a width of 10"),
    ("width", 1_000, "width must be 1 to 64"),
    ("heads", 3, "3 heads do not divide a width of 16"),
    ("heads", 0, "heads must be"),
    ("layers", 9, "layers must be 1 to 4"),
    ("window", 0, "context must be 1 to 64"),
    ("run_seed", -1, "seed must be"),
    ("run_top_k", -1, "top-k must be 1 or more"),
    ("lr", "fast", "learning rate is a number, like 0.01"),
    ("lr", "", "learning rate is a number, like 0.01"),
    ("lr", "0", "learning rate must be above 0"),
    ("lr", "1e9", "at most 1,000,000"),
    ("lr", "nan", "learning rate must be above 0"),
    ("run_temperature", "-1", "temperature must be 0 to 10"),
    ("run_temperature", "hot", "temperature is a number"),
)


def test_a_setting_that_cannot_be_is_one_sentence_and_the_rest_stays(at):
    choose(at, OWN_SETTINGS)
    at.text_input("guess_because").set_value("typed before").run()
    for key, value, told in BAD_SETTINGS:
        box = at.text_input if key in ("lr", "run_temperature") else at.number_input
        before = box(key).value
        box(key).set_value(value).run()
        assert is_fine(at)
        assert told in said(at).lower(), told
        assert "lock_prediction" not in keys(at, "button")
        assert box(key).value == value
        box(key).set_value(before).run()
        assert at.text_input("guess_because").value == "typed before"


def test_what_takes_too_long_is_refused_before_the_prediction(at):
    choose(at, OWN_SETTINGS)
    for key, value in {"steps": 20_000, "width": 64, "layers": 4, "window": 64}.items():
        at.number_input(key).set_value(value)
    at.run()
    assert "a quick run has 25: take fewer steps or a smaller model" in said(at)
    assert "lock_prediction" not in keys(at, "button")


def test_a_learning_rate_of_a_million_stops_with_a_reason_and_keeps_its_curve(at):
    choose(at, OWN_SETTINGS)
    at.text_input("lr").set_value("1e6").run()
    predict(at, UP, "50", "4192")
    lock(at)
    run_it(at)
    assert is_fine(at)
    assert "the learning rate 1e+06 is probably too high). That counts as going up" in plain(at)
    assert "the direction was right" in plain(at)
    assert "No samples" in plain(at)
    drawn = specs(at)[0]
    assert [line["name"] for line in drawn["data"]][-1] == "1 · learning rate 1e+06"
    low, high = drawn["layout"]["yaxis"]["range"]
    assert 0 < low < high < 5
    assert "Off the top, unless you fit all: 1 · learning rate 1e+06." in plain(at)
    at.button_group("axis").set_value(1).run()
    axis = specs(at)[0]["layout"]["yaxis"]
    assert axis["type"] == "log"
    assert 10 ** axis["range"][1] > 1e3
    assert "Off the top" not in plain(at)


def test_a_link_opens_the_same_settings(artifacts):
    at = open_page("experiments", experiment="own settings", width="24", lr="0.02", positions="off")
    assert is_fine(at)
    assert at.number_input("width").value == 24
    assert "learning rate 0.01 → 0.02, width 16 → 24, positions on → off" in plain(at)
    assert "width=24" in plain(at) or any("width=24" in code.value for code in at.code)


# -- own lists


def type_list(at, text: str) -> None:
    choose(at, OWN_LIST)
    at.text_area("own_list").set_value(text).run()


LISTS = {
    "one": ("a", 2),
    "one character each": ("a\nb\nc", 4),
    "blanks and repeats": ("ann\n\n  ann  \nbo", 5),
    "other scripts": ("Äpfel\n名前\n😀 <BOS>", 15),
    "longer than the context": ("x" * 40, 2),
    "signs": ("=1+1\n<b>bold</b>", 11),
}


def test_any_list_that_is_typed_can_be_tried(at):
    for number, (text, tokens) in enumerate(LISTS.values(), 1):
        type_list(at, text)
        assert tokens == len(set("".join(line.strip() for line in text.splitlines()))) + 1
        assert f"V = {tokens}" in plain(at)
        predict(at, DOWN, "1", "4192")
        lock(at)
        run_it(at)
        assert is_fine(at)
        assert len(rows(at)) == number
        assert at.text_area("own_list").value == text


def test_an_audit_names_repeats_and_what_is_cut(at):
    type_list(at, "ann\nann\n" + "x" * 20)
    assert "3 items" in plain(at)
    assert "1 repeats" in plain(at)
    assert "1 longer than the context, so cut" in plain(at)


@pytest.mark.parametrize("text", ["", "   \n\n  "], ids=["empty", "blank lines"])
def test_an_empty_list_is_one_sentence(at, text):
    type_list(at, text)
    assert is_fine(at)
    assert "the list is empty: give one item a line" in said(at).lower()


def send(at, name: str, data: bytes) -> None:
    at.file_uploader("own_file").set_value((name, data, "text/plain")).run()


def test_a_file_is_read_and_stays_until_it_is_taken_away(at):
    choose(at, OWN_LIST)
    send(at, "trees.txt", b"\xef\xbb\xbfoak\r\nbirch\r\n")
    assert "2 items" in plain(at)
    assert f"V = {len(set('oakbirch')) + 1}" in plain(at)
    at.switch_page("../pages/20_attention.py").run()
    at.switch_page("../pages/87_experiments.py").run()
    assert "The file trees.txt is read" in plain(at)
    at.button("no_file").click().run()
    assert "the list is empty" in said(at).lower()


def test_an_item_of_a_jsonl_file_may_hold_a_new_line(at):
    choose(at, OWN_LIST)
    send(at, "two.jsonl", b'{"text": "ab\\ncd"}\n{"text": "ef"}\n')
    assert "2 items; 7 different characters" in plain(at)


def test_a_list_with_too_many_different_characters_is_one_sentence(at):
    choose(at, OWN_LIST)
    characters = "".join(map(chr, range(0x4E00, 0x4E00 + 15_000)))
    send(at, "signs.txt", "\n".join(re.findall(".{1,15}", characters)).encode())
    assert is_fine(at)
    assert "15,000 different characters, and a quick run has room for 9,999" in said(at)
    assert "lock_prediction" not in keys(at, "button")


def test_a_baseline_that_nobody_waits_for_is_ended(at):
    choose(at, OWN_SETTINGS)
    at.selectbox("data").set_value(DATA.index(OWN))
    at.text_input("lr").set_value("0.02").run()
    characters = "".join(map(chr, range(0x4E00, 0x4E00 + 9_000)))
    send(at, "signs.txt", "\n".join(re.findall(".{1,15}", characters)).encode())
    assert "Training the baseline" in plain(at)
    assert len(state.quick_pool().processes()) == 1
    at.run()  # the page looks again: it is still waited for
    assert len(state.quick_pool().processes()) == 1
    choose(at, LABELS.index("2 layers"))
    assert "lock_prediction" in keys(at, "button")
    end = time.monotonic() + 2.0
    while state.quick_pool().processes():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_200_000_items_from_a_file_run(at):
    choose(at, OWN_LIST)
    lines = "\n".join(f"{NAMES[i % 12][:4]}{i % 50_000}" for i in range(200_000))
    send(at, "many.txt", lines.encode())
    assert is_fine(at)
    deadline = time.monotonic() + 20
    while "lock_prediction" not in keys(at, "button"):
        assert time.monotonic() < deadline
        at.run()
    assert "200,000 items" in plain(at)
    predict(at, UP, "0.1", "5000")
    lock(at)
    run_it(at)
    assert len(rows(at)) == 1


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"caf\xe9\n", "not utf-8"),
        (b"a\x00b", "zero bytes"),
        (b"a\n" * 200_001, "200,001 items"),
        (b"x" * 1_500, "item 1 has 1,500 characters"),
        (b"", "the list is empty"),
    ],
    ids=["latin-1", "binary", "too many", "a long item", "empty"],
)
def test_a_file_that_cannot_be_used_is_one_sentence(at, data, told):
    choose(at, OWN_LIST)
    send(at, "mine.txt", data)
    assert is_fine(at)
    assert told in said(at).lower()


# -- what was written, on screen and in files


def test_a_person_s_text_is_drawn_letter_for_letter(at, results):
    texts = list(HOSTILE.values())
    guesses = [Prediction(SAME, 0.0, 1, text) for text in texts]
    at.session_state["_runs"] = [made(results, guess, n) for n, guess in enumerate(guesses, 1)]
    at.session_state["_explanations"] = dict(enumerate(texts, 1))
    at.run()
    assert [row[8:] for row in rows(at)] == [[text, text] for text in texts]
    at.session_state["_runs"] = []
    everything = "\u00a0".join(texts)
    predict(at, UP, "0.1", "1", everything)
    lock(at)
    assert everything in markup.unescape(html(at))


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_csv_holds_the_text_and_no_formula(results, text):
    run = made(results, Prediction(DOWN, 0.25, 1, text))
    (row,) = csv.DictReader(io.StringIO(experiment_runs.runs_csv([run], {1: text})))
    expected = f"'{text}" if text[0] in "=+-@" else text
    assert row["hypothesis"] == row["explanation"] == expected
    assert float(row["change"]) == run.change
    assert float(row["predicted_change"]) == -0.25
    assert row["positions"] == "False"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_the_report_holds_the_text_in_a_block_that_nothing_in_it_ends(results, text):
    runs = [made(results, Prediction(UP, 0.1, 1, text))]
    report = experiment_runs.report(runs, {1: text}, date="2024-05-06")
    blocks = re.findall(r"^(`{3,})text\n(.*?)\n\1$", report, re.DOTALL | re.MULTILINE)
    bodies = [body for _, body in blocks]
    assert bodies[0] == bodies[-1] == text
    samples = [" ".join(each.text for each in drawn) for drawn in runs[0].result.samples]
    assert bodies[1:-1] == samples


def test_the_report_begins_with_a_name_and_a_date(results):
    runs = [made(results, Prediction(UP, 0.1, 1, "why"))]
    report = experiment_runs.report(runs, {}, name=" Ann *B* <b> | ", date="2024-05-06")
    assert report.splitlines()[2] == r"Name: Ann \*B\* \<b\> \|. Date: 2024-05-06."
    assert "Name: -. Date" in experiment_runs.report(runs, {}, date="2024-05-06")


def test_the_name_on_the_report_is_kept_on_the_page_and_out_of_the_link(at, results, downloads):
    at.session_state["_runs"] = [made(results, Prediction(UP, 0.1, 1, "why"))]
    at.run()
    make = downloads["experiments.md"]
    at.text_input("quiz_name").set_value("Ann").run()
    today = datetime.datetime.now(datetime.UTC).date()
    assert f"Name: Ann. Date: {today}." in make()  # made before the name was typed
    assert "Ann" not in at.query_params.get("quiz_name", "")
    at.switch_page("../pages/20_attention.py").run()
    at.switch_page("../pages/87_experiments.py").run()
    assert at.text_input("quiz_name").value == "Ann"
    assert "Name: Ann." in downloads["experiments.md"]()


def test_samples_that_look_like_formulas_are_quoted_too():
    own = experiment.own_list(["=cmd"])
    tried = small(draws=(Draw(0.0),), steps=200)
    result = experiment.run(tried, own)
    assert result.samples[0][0].text == "=cmd"
    run = Run(1, tried, "", Prediction(SAME, 0.0, 1, ""), result, result)
    (row,) = csv.DictReader(io.StringIO(experiment_runs.runs_csv([run], {})))
    assert row["samples"].startswith("'=cmd")


def test_json_holds_everything_also_of_a_training_that_diverged(results):
    guess = Prediction(UP, 0.1, 5, "why")
    runs = [made(results, guess), made(results, guess, 2, diverged=True)]
    told = json.loads(experiment_runs.runs_json(runs, {1: "a", 2: "b"}))["runs"]
    assert told[0]["result"]["losses"] == results[1].losses.tolist()
    assert told[0]["change"] == runs[0].change
    assert told[1]["result"]["loss"] is None
    assert told[1]["change"] is None
    assert Experiment.from_json(told[0]["experiment"]) == runs[0].experiment
    assert [each["explanation"] for each in told] == ["a", "b"]
    assert "diverged" in experiment_runs.report(runs, {1: "a", 2: "b"}, date="2024-05-06")
    assert len(list(csv.reader(io.StringIO(experiment_runs.runs_csv(runs, {}))))) == 3


# -- prediction against result


@pytest.mark.parametrize(
    ("changes", "direction"),
    [
        ((0.5, 0.4, 0.6), UP),
        ((0.008, 0.043, 0.029), UP),  # no positions: its first seed alone says little
        ((-0.3, -0.2, -0.1), DOWN),
        ((-0.016, -0.016, -0.016), DOWN),
        ((0.014, 0.014, 0.014), SAME),  # too small
        ((-0.018, -0.006, -0.012), SAME),  # width 32
        ((0.5, 0.4, -0.001), SAME),  # contradicted
        ((0.0, 0.0, 0.0), SAME),
    ],
)
def test_the_direction_is_that_of_three_pairs(results, changes, direction):
    base = replace(results[0], seed_losses=(2.0, 2.5, 1.5))
    losses = tuple(map(sum, zip(base.seed_losses, changes, strict=True)))
    result = replace(results[1], seed_losses=losses)
    run = Run(1, small(), "", Prediction(UP, 0.1, result.parameters, ""), result, base)
    assert run.changes == pytest.approx(changes)
    assert run.change == pytest.approx(sum(changes) / 3)
    assert run.direction == direction
    assert run.judgement == {UP: RIGHT, SAME: CANNOT_TELL, DOWN: WRONG}[direction] or not any(
        changes
    )
    assert run.count_right
    off = abs(sum(changes) / 3 - 0.1)
    assert f"{off:.3f} nats off" in experiment_runs.verdict(run)[0]
    spread = f"between {min(changes):+.3f} and {max(changes):+.3f} over 3 seeds"
    assert spread in experiment_runs.happened(run)
    (row,) = csv.DictReader(io.StringIO(experiment_runs.runs_csv([run], {})))
    assert float(row["lowest_change"]) == pytest.approx(min(changes))
    assert float(row["highest_change"]) == pytest.approx(max(changes))
    (told,) = json.loads(experiment_runs.runs_json([run], {}))["runs"]
    assert told["changes"] == pytest.approx(changes)


@pytest.mark.parametrize(
    ("changes", "guess", "judged"),
    [
        ((-0.018, -0.006, -0.012), DOWN, CANNOT_TELL),
        ((-0.002, -0.001, -0.003), UP, CANNOT_TELL),
        ((0.5, 0.4, -0.001), UP, CANNOT_TELL),
        ((-0.002, -0.001, -0.003), SAME, RIGHT),
        ((0.5, 0.4, 0.6), SAME, WRONG),
        ((0.5, 0.4, 0.6), DOWN, WRONG),
        ((0.0, 0.0, 0.0), DOWN, WRONG),  # the same training: there is no noise in that
        ((0.0, 0.0, 0.0), SAME, RIGHT),
    ],
)
def test_noise_refutes_nobody(results, changes, guess, judged):
    base = replace(results[0], seed_losses=(2.0, 2.5, 1.5))
    losses = tuple(map(sum, zip(base.seed_losses, changes, strict=True)))
    result = replace(results[1], seed_losses=losses)
    run = Run(1, small(), "", Prediction(guess, 0.1, 1, ""), result, base)
    assert run.judgement == judged
    assert f" {judged}; the size was" in experiment_runs.verdict(run)[0]
    assert f"| {judged} | wrong |" in experiment_runs.report([run], {}, date="2024-05-06")


def test_a_training_that_diverged_judges_too(results):
    for guess, judged in ((UP, RIGHT), (SAME, WRONG), (DOWN, WRONG)):
        run = made(results, Prediction(guess, 0.1, 1, ""), diverged=True)
        assert run.judgement == judged
        assert f"the direction was {judged}." in experiment_runs.verdict(run)[0]


@pytest.mark.parametrize(
    "settings",
    [{}, {"n_layer": 3}, {"d_model": 32, "context": 7}, {"positions": False}],
    ids=str,
)
def test_a_wrong_count_is_told_the_sum_that_is_right(results, settings):
    tried = Experiment("tried", **settings)
    parameters, _ = experiment.estimate(tried, 27)
    result = replace(results[1], parameters=parameters, vocab_size=27)
    run = Run(1, tried, "", Prediction(SAME, 0.0, 1, ""), result, results[0])
    told = experiment_runs.verdict(run)
    assert f"there are {parameters:,}: " in told[1]
    assert told[1].endswith(f" = {parameters:,}.")
    products = re.findall(r"(\d+(?: x \d+)+) = ([\d,]+)", told[1])
    values = [int(value.replace(",", "")) for _, value in products]
    assert [math.prod(map(int, left.split(" x "))) for left, _ in products] == values
    *tables, attention, fc1, fc2 = values
    assert sum(tables) + tried.n_layer * (attention + fc1 + fc2) == parameters
    assert ("never added" in told[-1]) == (not tried.positions)
    right = replace(run, prediction=Prediction(SAME, 0.0, parameters, ""))
    assert experiment_runs.verdict(right)[1:] == [f"You counted {parameters:,} parameters: right."]


def test_what_a_preset_does_is_told_from_what_its_seeds_do():
    """What fifteen seeds say together (bench/experiment_noise.py), three say too."""
    baseline = run_apart(Experiment())
    for label, direction in {"no positions": UP, "width 32": SAME, "2 layers": SAME}.items():
        tried = PRESETS[LABELS.index(label)].experiment
        run = Run(1, tried, "", Prediction(SAME, 0.0, 1, ""), run_apart(tried), baseline)
        assert run.direction == direction, label


@pytest.mark.parametrize(
    ("typed", "count"),
    [
        *(("4192", 4192), (" 4,192 ", 4192), ("4 192", 4192), ("27.0", 27)),
        *(("4'192", 4192), ("1,234,567", 1234567), ("0", 0)),
    ],
)
def test_a_count_may_be_grouped(typed, count):
    assert experiment_runs.parse_count(typed) == count


@pytest.mark.parametrize("typed", ["", "4.5", "-1", "4.192", "4,19", "٤", "9" * 20, "4192 about"])
def test_what_is_no_count_is_refused(typed):
    with pytest.raises(TextError, match="a whole number"):
        experiment_runs.parse_count(typed)


@pytest.mark.parametrize(("typed", "size"), [("0.05", 0.05), (" 0,2 ", 0.2), ("1", 1.0)])
def test_a_size_may_have_a_comma(typed, size):
    assert experiment_runs.parse_size(typed) == size


# -- the figure


def decoded(packed: dict) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["bdata"]), dtype="<f4")


def test_the_curves_are_the_averages_and_the_marked_one_is_on_top(results):
    curves = [
        Overlaid("baseline", results[0].average, results[0].vocab_size),
        Overlaid("1 · <b>", results[1].average, results[1].vocab_size, 0),
        Overlaid("2 · third", results[0].average + 1, results[0].vocab_size, 1),
    ]
    drawn = figures.overlaid(curves, 1)
    *_, marked = drawn.spec["data"]
    assert marked["name"] == "1 · &lt;b&gt;"
    assert marked["line"]["color"] == MARK
    assert decoded(marked["y"]) == pytest.approx(results[1].average, rel=1e-6)
    assert decoded(marked["x"]).tolist() == list(range(1, 61))
    assert drawn.spec["data"][0]["line"]["color"] == MUTED
    assert all(line["showlegend"] for line in drawn.spec["data"])
    assert [line["legendrank"] for line in drawn.spec["data"]] == [0, 2, 1]
    assert [line["line"]["width"] for line in drawn.spec["data"]] == [2.2, 2.2, 4]
    (level,) = drawn.spec["layout"]["shapes"]
    assert level["y0"] == pytest.approx(math.log(results[1].vocab_size))
    assert "2 · third" in drawn.alt


def test_every_run_has_a_colour_of_its_own(results):
    looks = [(colour, dash) for _, colour, dash in RUN_LOOKS]
    assert len({colour for colour, _ in looks} | {MUTED}) == len(RUN_LOOKS) + 1
    runs = [Overlaid(f"{i}", results[0].average, 27, i) for i in range(len(RUN_LOOKS))]
    drawn = figures.overlaid([Overlaid("baseline", results[0].average, 27), *runs], 0)
    lines = {line["name"]: line["line"] for line in drawn.spec["data"]}
    assert [(lines[str(i)]["color"], lines[str(i)]["dash"]) for i in range(len(looks))] == looks


def test_the_scale_zooms_or_fits_all():
    low, high = np.linspace(3.3, 2.2, 50), np.linspace(3.3, 5.0, 50)
    curves = [Overlaid("baseline", low, 27), Overlaid("1 · high", high, 27, 0)]

    def ends(*more: Overlaid, fit: bool) -> tuple[str, float, float]:
        axis = figures.overlaid([*curves, *more], 0, fit=fit).spec["layout"]["yaxis"]
        return axis.get("type", "linear"), *axis["range"]

    assert ends(fit=False) == ("linear", pytest.approx(2.08), pytest.approx(math.log(27) + 0.35))
    assert ends(fit=True) == ("linear", pytest.approx(2.08), pytest.approx(5.12))
    assert figures.off_the_top(curves) == ["1 · high"]
    wild = Overlaid("2 · wild", np.array([3.3, 1e5, 1e6]), 27, 1)
    kind, bottom, top = ends(wild, fit=True)
    assert kind == "log"
    assert (bottom < math.log10(2.2), top > math.log10(1e6)) == (True, True)
    assert ends(wild, Overlaid("3 · nothing", np.zeros(3), 27, 2), fit=True)[1] > -4


def test_a_long_curve_is_thinned_out_to_its_last_step():
    average = np.linspace(3.0, 2.0, 20_000)
    drawn = figures.overlaid([Overlaid("baseline", average, 27)], 0)
    x, y = (decoded(drawn.spec["data"][0][axis]) for axis in "xy")
    assert len(x) == len(y) == 400
    assert (x[0], x[-1]) == (1, 20_000)
    assert y == pytest.approx(average[x.astype(int) - 1], rel=1e-6)


def test_the_code_gives_the_numbers_on_screen(at):
    choose(at, LABELS.index("no positions"))
    lines = printed(at.code[-1].value).splitlines()
    assert re.match(r"baseline 4192 2\.\d+", lines[0])
    assert f"{float(lines[0].split()[-1]):.3f}" in plain(at)
    assert lines[2].startswith("no positions 4192")
