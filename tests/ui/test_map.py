"""The microgpt map: the sheet, its lock, its downloads; the warm-ups; the picture."""

import ast
import csv
import html as markup
import io
import json
import re
import subprocess
import sys

import pytest

from app import figures, map_page, map_sheet
from app.figures.base import MARK
from app.main import PAGES
from app.map_sheet import SECTIONS, Entry
from app.warmups import CARDS
from tests.ui.test_pages import ROOT, html, is_fine, open_page, specs

HOSTILE = {
    "markdown": "a*b*c `tick` $x$ and $y$ :red[hi] # title",
    "html": "<b>bold</b> <script>alert(1)</script> &amp; <UNK>",
    "two blanks and lines": "two  blanks\n1. a list\n- another\n\n    far in\n# title",
    "other scripts": "имя 名 😀 \u202e right to left",
    "braces": "{text} %s \\n {{0}} __import__('os')",
    "quotes": "\"both\" 'kinds' “curly”",
    "formula": "=1+1",
}
EACH_TEXT = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
EACH_CARD = pytest.mark.parametrize("card", CARDS, ids=lambda card: card.topic)
PARTS = range(len(SECTIONS))


def open_map(**parameters: str):
    return open_page("microgpt_map", **parameters)


def turn_to(at, part: int) -> None:
    at.button_group("part").set_value(part).run()


def write(at, part: int, text: str) -> None:
    turn_to(at, part)
    at.text_input(f"before_{part}").set_value(text).run()


def lock(at, part: int) -> None:
    at.button(f"lock_{part}").click().run()


def cells(at) -> list[list[str]]:
    """Return the sheet as it is shown: part, before, after."""
    table = next(e.proto.body for e in at.get("html") if "Your seven sentences" in e.proto.body)
    rows = re.findall(r"<tr[^>]*>((?:<td.*?</td>)+)</tr>", table, re.DOTALL)
    return [[markup.unescape(c) for c in re.findall(r"<td[^>]*>(.*?)</td>", r, re.S)] for r in rows]


def keys(at, kind: str) -> set[str]:
    return {element.key for element in at.get(kind)}


def lines(at) -> set[str]:
    """Return which lines of the sheet can be typed into."""
    return {key for key in keys(at, "text_input") if key.startswith(("before", "after"))}


# -- the sheet


def test_the_first_view_asks_for_a_sentence_and_reveals_nothing(artifacts):
    at = open_map()
    assert is_fine(at)
    assert [row[0] for row in cells(at)] == [f"{i + 1} · {SECTIONS[i].title}" for i in PARTS]
    assert SECTIONS[0].ask in markup.unescape(html(at))
    assert lines(at) == {"before_0"}
    assert not any(section.model[:40] in markup.unescape(html(at)) for section in SECTIONS)
    assert "gone when the tab is closed" in html(at)
    assert len(specs(at)) == 1


@pytest.mark.parametrize("part", PARTS)
def test_a_locked_sentence_stays_and_opens_the_revision_and_the_model(artifacts, part):
    at = open_map()
    write(at, part, "My first guess.")
    assert SECTIONS[part].model not in markup.unescape(html(at))
    lock(at, part)
    assert lines(at) == {f"after_{part}"}
    assert f"lock_{part}" not in keys(at, "button")
    assert SECTIONS[part].model in markup.unescape(html(at))
    others = [section.model for section in SECTIONS if section is not SECTIONS[part]]
    assert not any(model in markup.unescape(html(at)) for model in others)
    at.text_input(f"after_{part}").set_value("What I know now.").run()
    assert cells(at)[part][1:] == ["My first guess.", "What I know now."]
    assert [row[1:] for i, row in enumerate(cells(at)) if i != part] == [["", ""]] * 6


@pytest.mark.parametrize("blank", ["", "   ", "\n\n"])
def test_there_is_nothing_to_lock_in_a_blank(artifacts, blank):
    at = open_map()
    write(at, 0, blank)
    lock(at, 0)
    assert "nothing to lock yet" in html(at)
    assert lines(at) == {"before_0"}
    write(at, 0, "Now there is.")
    assert "nothing to lock yet" not in html(at)
    lock(at, 0)
    assert lines(at) == {"after_0"}


def test_nothing_is_lost_on_the_way_through_parts_and_pages(artifacts):
    at = open_map()
    for part in PARTS:
        write(at, part, f"before {part}")
    lock(at, 6)
    at.text_input("after_6").set_value("after 6").run()
    write(at, 2, "before 2, again")
    expected = [[f"before {part}", ""] for part in PARTS]
    expected[2], expected[6] = ["before 2, again", ""], ["before 6", "after 6"]
    assert [row[1:] for row in cells(at)] == expected
    for page in ("20_attention.py", "70_generate.py", "81_microgpt_map.py"):
        at.switch_page(f"../pages/{page}").run()
    assert [row[1:] for row in cells(at)] == expected
    assert at.text_input("before_2").value == "before 2, again"
    at.run()
    turn_to(at, 6)
    assert at.text_input("after_6").value == "after 6"
    assert [row[1:] for row in cells(at)] == expected


def test_what_is_written_is_in_no_address(artifacts):
    at = open_map()
    write(at, 1, "Secretsentence")
    lock(at, 1)
    at.text_input("after_1").set_value("Secretrevision").run()
    at.text_input("guess_0").set_value("Secretguess")
    at.button("see_0").click().run()
    assert "Secret" not in str(dict(at.query_params))
    link = next(code.value for code in at.code if "part=" in code.value)
    assert "Secret" not in link
    assert "part=2" in link


def test_two_sessions_do_not_see_each_other(artifacts):
    one, other = open_map(), open_map()
    write(one, 0, "Mine.")
    lock(one, 0)
    other.run()
    assert "Mine." not in html(other)
    assert lines(other) == {"before_0"}


@EACH_TEXT
def test_typed_text_is_shown_letter_for_letter(artifacts, text):
    at = open_map()
    write(at, 0, text)
    lock(at, 0)
    at.text_input("after_0").set_value(text).run()
    assert is_fine(at)
    assert cells(at)[0][1:] == [text, text]
    assert f'<p class="wl-quote">{markup.escape(text)}</p>' in html(at)
    assert not any(text in element.value for element in (*at.markdown, *at.caption))


def test_a_sentence_has_an_end(artifacts):
    at = open_map()
    assert at.text_input("before_0").proto.max_chars == map_page.LONGEST
    write(at, 0, "x" * 100_000)  # what a client of one's own could send
    lock(at, 0)
    at.text_input("after_0").set_value("y" * 100_000).run()
    assert cells(at)[0][1:] == ["x" * map_page.LONGEST, "y" * map_page.LONGEST]


# -- the downloads


@EACH_TEXT
def test_the_files_hold_what_was_typed(artifacts, downloads, text):
    at = open_map()
    write(at, 3, text)
    lock(at, 3)
    at.text_input("after_3").set_value(f"{text} again").run()
    write(at, 4, "open still")
    rows = list(csv.DictReader(io.StringIO(downloads["microgpt_sheet.csv"]())))
    assert [row["section"] for row in rows] == [section.title for section in SECTIONS]
    kept = "'=1+1" if text == "=1+1" else text
    assert [rows[3][key] for key in ("before", "locked", "after")] == [
        kept,
        "True",
        f"{kept} again",
    ]
    assert [rows[4][key] for key in ("before", "locked", "after")] == ["open still", "False", ""]
    sheet = json.loads(downloads["microgpt_map.json"]())["sheet"]
    assert (sheet[3]["before"], sheet[3]["after"]) == (text, f"{text} again")
    told = downloads["microgpt_sheet.md"]()
    assert told.count("\n## ") == 7
    assert read_back(told.split("\n## ")[4].split("**Before**")[1].split("**After**")[0]) == (
        "\n".join(line.rstrip() for line in text.split("\n"))
    )
    assert told.count("**A model sentence**") == 1
    hidden = [section.model for section in SECTIONS if section is not SECTIONS[3]]
    for name in ("csv", "md"):
        plain = downloads[f"microgpt_sheet.{name}"]().replace("\\", "")
        assert not any(model in plain for model in hidden)
    assert not any(model in downloads["microgpt_map.json"]() for model in hidden)
    assert "**Before (not locked)**" in told


def test_no_button_offers_the_same_twice(artifacts):
    labels = [button.label for button in open_map().get("download_button")]
    assert [label for label in labels if "CSV" in label] == ["Sheet as CSV"]
    assert "Figures as HTML" in labels


def read_back(quotation: str) -> str:
    """Return what a Markdown quotation says, by the rules of CommonMark for what we escape."""
    lines = [line.removeprefix("> ") for line in quotation.strip().splitlines()]
    assert all(line.startswith(">") for line in quotation.strip().splitlines())
    joined = "\n".join(line.removeprefix(">").removesuffix("\\") for line in lines)
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", joined.replace("&nbsp;", " "))


@EACH_TEXT
def test_no_sign_of_a_typed_text_means_something_in_the_markdown(text):
    told = map_sheet.markdown([Entry(SECTIONS[0], text, True, "")])
    typed = told.split("**Before**")[1].split("**After**")[0]
    bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", typed)
    assert not re.search(r"[`*_\[\]<#$~|]", bare)
    assert not re.search(r"^> ?(?:[-+=]|\d+[.)]|    )", bare, re.MULTILINE)


def test_an_empty_sheet_is_a_file_too(artifacts, downloads):
    open_map()
    assert downloads["microgpt_sheet.md"]().count("*nothing yet*") == 14
    assert json.loads(downloads["microgpt_map.json"]())["warm_ups"] == []


# -- the warm-ups


@EACH_CARD
def test_what_a_card_says_is_what_python_prints(card):
    done = subprocess.run(
        [sys.executable, "-I", "-c", card.snippet], capture_output=True, text=True, check=True
    )
    assert card.output == done.stdout.removesuffix("\n")
    assert "\n" not in card.output
    assert card.is_right(done.stdout)


def test_the_cards_are_of_many_kinds():
    assert len({card.topic for card in CARDS}) == len(CARDS) >= 8
    seen = {type(node) for card in CARDS for node in ast.walk(ast.parse(card.snippet))}
    wanted = {ast.List, ast.Slice, ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.ClassDef}
    assert wanted <= seen
    code = "\n".join(card.snippet for card in CARDS)
    assert all(word in code for word in ("zip(", "enumerate(", "__add__", "choices(", "::3", "-1"))


@pytest.mark.parametrize(
    ("number", "guess", "right"),
    [
        (0, "3 emma", True),
        (0, "  3   emma ", True),
        (0, "3emma", False),
        (0, "3 Emma", False),
        (1, "[1,2,3]", True),
        (1, "[ 1 , 2 , 3 ]", True),
        (1, "[1, 2]", False),
        (1, "1 2 3", False),
        (3, 'l ["i", "b", "l"]', True),
        (3, "l [‘i’, ‘b’, ‘l’]", True),  # noqa: RUF001 (as a phone types it)
        (6, "[4, 0, −3]", True),  # noqa: RUF001 (as a word processor types it)
        (7, "1.0", False),
        (7, "sum([4, 0, -3])", False),
    ],
)
def test_a_prediction_is_compared_as_text(number, guess, right):
    assert CARDS[number].is_right(guess) is right


@EACH_CARD
def test_a_card_is_seen_only_after_a_prediction_which_then_stays(artifacts, downloads, card):
    number = CARDS.index(card)
    at = open_map()
    at.button_group("card").set_value(number).run()
    assert at.code[-2].value == card.snippet
    at.button(f"see_{number}").click().run()
    assert "Predict first" in html(at)
    assert card.why not in markup.unescape(html(at))
    at.text_input(f"guess_{number}").set_value("<b>7</b> *x*")
    at.button(f"see_{number}").click().run()
    assert is_fine(at)
    shown = markup.unescape(html(at))
    assert "&lt;b&gt;7&lt;/b&gt; *x*" in html(at)
    assert f'It prints <span class="wl-token">{card.output}</span>' in shown
    assert f'<span class="wl-number">Not so</span>: {card.why}' in shown
    assert f"Seen 1 of {len(CARDS)}, predicted right: 0." in shown
    assert f"guess_{number}" not in keys(at, "text_input")
    (row,) = json.loads(downloads["microgpt_map.json"]())["warm_ups"]
    assert (row["prediction"], row["right"]) == ("<b>7</b> *x*", False)
    assert (row["snippet"], row["output"]) == (card.snippet, card.output)


def test_right_predictions_are_counted_and_kept(artifacts):
    at = open_map()
    for number, card in enumerate(CARDS):
        at.button_group("card").set_value(number).run()
        at.text_input(f"guess_{number}").set_value(card.output)
        at.button(f"see_{number}").click().run()
        assert f'<span class="wl-number">Right</span>: {card.why}' in markup.unescape(html(at))
    at.switch_page("../pages/20_attention.py").run()
    at.switch_page("../pages/81_microgpt_map.py").run()
    assert f"Seen {len(CARDS)} of {len(CARDS)}, predicted right: {len(CARDS)}." in html(at)


# -- the picture and the links


@pytest.mark.parametrize("part", PARTS)
def test_the_picture_marks_the_boxes_of_a_part(part):
    titles = [section.title for section in SECTIONS]
    chart = figures.gpt_map(part, titles)
    shapes, words = (chart.spec["layout"][key] for key in ("shapes", "annotations"))
    boxes = [shape for shape in shapes if shape["type"] != "path"]
    marked = [box for box in boxes if box["line"]["color"] == MARK]
    assert marked
    assert (len(marked) == len(boxes)) == (part == len(SECTIONS) - 1)
    page = f"{part + 1} · {titles[part]}"
    lit = [word["text"] for word in words if word.get("font", {}).get("color") == MARK]
    assert page in lit or part == len(SECTIONS) - 1
    assert titles[part] in chart.alt


def test_a_click_anywhere_into_a_box_names_its_part():
    titles = [section.title for section in SECTIONS]
    chart = figures.gpt_map(0, titles)
    (hits,) = chart.spec["data"]
    boxes = [s for s in chart.spec["layout"]["shapes"] if s["type"] != "path"]
    for x, y, text, part in zip(
        hits["x"], hits["y"], hits["text"], hits["customdata"], strict=True
    ):
        inside = [b for b in boxes if b["y0"] <= y <= b["y1"] and b["x0"] - 20 <= x <= b["x1"] + 20]
        assert inside
        assert text.endswith(titles[part])
    assert set(hits["customdata"]) == set(PARTS) - {6}


@pytest.mark.parametrize(
    ("box", "section"), [("softmax", "One position"), ("sampling", "Experiments")]
)
def test_a_click_leads_to_where_the_step_is_computed(box, section):
    titles = [each.title for each in SECTIONS]
    (hits,) = figures.gpt_map(0, titles).spec["data"]
    found = zip(hits["text"], hits["customdata"], strict=True)
    assert {part for text, part in found if text.startswith(f"<b>{box}</b>")} == {
        titles.index(section)
    }


def test_seven_sections_of_a_walk_not_seven_parts(artifacts):
    at = open_map()
    assert at.button_group("part").label == "Section of the walk"
    (here,) = (page for page in PAGES if page.address == "microgpt_map")
    assert here.question in markup.unescape(html(at))
    assert "seven sections" in here.question
    assert "seven parts" not in html(at)


def test_the_files_stand_beside_the_sentence_that_says_to_take_them(artifacts):
    kinds = [
        "warning" if "gone when the tab is closed" in getattr(element.proto, "body", "")
        else "table" if "Your seven sentences" in getattr(element.proto, "body", "")
        else getattr(element.proto, "label", "")
        for element in open_map().main
    ]  # fmt: skip
    shown = [kind for kind in kinds if kind in ("warning", "table") or kind.startswith("Sheet as")]
    assert shown == ["warning", "Sheet as Markdown", "Sheet as CSV", "table"]


def test_the_picture_is_the_order_of_the_code():
    words = figures.gpt_map(0, [section.title for section in SECTIONS]).alt
    order = (
        "token",
        "wte + wpe",
        "rmsnorm",
        "attention",
        "+",
        "MLP",
        "lm_head",
        "softmax",
        "sampling",
    )
    places = [words.index(f"{name}", words.index(":")) for name in order if name != "+"]
    assert places == sorted(places)


def test_the_count_in_the_model_sentence_adds_up():
    vocabulary, width, window = 27, 16, 16
    matrices = [
        *(vocabulary * width, window * width, vocabulary * width),
        *[width * width] * 4,
        *[4 * width * width] * 2,
    ]
    told = next(section.model for section in SECTIONS if section.title == "Parameters")
    assert f"{sum(matrices):,} random numbers" in told
    assert len(matrices) == 9
    assert told.startswith("Nine")


def test_each_part_has_its_page_and_a_link_to_it(artifacts):
    there = {page.title: page for page in PAGES if page.group == "microgpt"}
    titles = [section.title for section in SECTIONS]
    assert set(there) <= {"microgpt map", *titles}
    at = open_map()
    labels = [link.proto.label for link in at.get("page_link")]
    for title in set(titles) & set(there):
        assert any(f"**{title}**" in label for label in labels)


def test_the_code_gives_the_tokens_of_the_first_name(artifacts, monkeypatch, capsys):
    at = open_map()
    monkeypatch.chdir(ROOT)
    exec(at.code[-1].value, {})
    printed = capsys.readouterr().out.splitlines()
    assert printed == ["5494 names, 27 tokens", "[26, 12, 0, 17, 24, 26]"]
