"""Check yourself: questions, first answers, marks, the score and the card."""

import contextlib
import csv
import html as markup
import io
import json
import re
import shutil

import pytest

from app import quiz_page, scorecard
from app.exports import markdown_quote
from app.scorecard import Card, Given
from tests.ui.test_pages import ROOT, html, is_fine, open_page, said
from wordlm_core import checkpoint, quiz
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.quiz.question import Choice, Number, Points, Question

HOSTILE = {
    "markdown": "a*b*c `tick` $x$ and $y$ :red[hi] # title",
    "html": "<b>bold</b> <script>alert(1)</script> &amp; <UNK>",
    "other scripts": "имя 名 😀",
    "formula": "=1+1",
    "lines": "- one\n1. two\n\n# three\n| four |",
}
EACH_TEXT = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)


@pytest.fixture
def loaded(artifacts) -> Checkpoint:
    return checkpoint.load(artifacts / "microgpt_seed42.npz")


def open_quiz(**parameters: str):
    return open_page("check_yourself", **parameters)


def shown(at) -> str:
    return markup.unescape(html(at))


def set_of(loaded: Checkpoint, seed: int = 1) -> tuple[Question, ...]:
    return quiz.questions([loaded], seed=seed)


def key_of(loaded: Checkpoint, question: Question) -> str:
    return f"answer_{quiz_page.place_of(loaded, question.seed)}_{question.key}"


def turn_to(at, question: Question, asked) -> None:
    at.select_slider("question").set_value(asked.index(question)).run()


def answer(at, loaded: Checkpoint, question: Question, given: str) -> None:
    """Answer the question that is shown."""
    key = key_of(loaded, question)
    if isinstance(question.expected, Choice):
        at.radio(key).set_value(question.expected.options.index(given))
    elif isinstance(question.expected, Points):
        at.text_area(key).set_value(given).run()
        at.button(f"see_{key}").click().run()
        return
    else:
        at.text_input(key).set_value(given)
    at.button(f"check_{key}").click().run()


def first_of(asked, kind: type) -> Question:
    return next(question for question in asked if isinstance(question.expected, kind))


def boxes(at) -> set[str]:
    found = [*at.text_input, *at.text_area, *at.radio]
    return {each.key for each in found if each.key.startswith("answer_")}


# -- questions


def test_the_first_view_asks_and_gives_nothing_away(loaded):
    at = open_quiz()
    first = set_of(loaded)[0]
    assert is_fine(at)
    assert first.text in shown(at)
    assert boxes(at) == {key_of(loaded, first)}
    assert first.why not in shown(at)
    assert "0 right of 0 answered" in shown(at)


def test_every_question_is_asked(loaded):
    asked = set_of(loaded)
    at = open_quiz()
    for number, question in enumerate(asked):
        if number:
            at.button("turn_Next").click().run()
        assert [error.message for error in at.exception] == []
        assert question.text in shown(at)
        assert boxes(at) == {key_of(loaded, question)}
    assert at.button("turn_Next").disabled
    at.button("turn_Previous").click().run()
    assert asked[-2].text in shown(at)


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("kind", [Number, Choice])
def test_a_first_answer_counts_and_is_explained(loaded, kind, right):
    asked = set_of(loaded)
    question = first_of(asked, kind)
    given = question.expected.shown
    if not right:
        options = getattr(question.expected, "options", ("999999",))
        given = next(option for option in options if option != question.expected.shown)
    at = open_quiz()
    turn_to(at, question, asked)
    answer(at, loaded, question, given)
    assert is_fine(at)
    assert boxes(at) == set()
    text = re.sub(r"<[^>]+>", "", html(at))
    assert ("Right: " if right else "Not so: ") + question.expected.shown in markup.unescape(text)
    assert question.why in shown(at)
    assert f"{int(right)} right of 1 answered" in shown(at)
    assert f'aria-label="1 of {len(asked)} answered"' in html(at)
    sign = "✓" if right else "✗"
    assert html(at).count(sign) == 1


@pytest.mark.parametrize("given", ["", "   ", "seven", "1/0"])
def test_what_cannot_be_read_does_not_count(loaded, given):
    asked = set_of(loaded)
    question = first_of(asked, Number)
    at = open_quiz()
    turn_to(at, question, asked)
    answer(at, loaded, question, given)
    assert boxes(at) == {key_of(loaded, question)}
    assert "wl-note" in html(at)
    assert "0 right of 0 answered" in shown(at)
    answer(at, loaded, question, question.expected.shown)
    assert "1 right of 1 answered" in shown(at)


def test_nothing_chosen_does_not_count(loaded):
    asked = set_of(loaded)
    question = first_of(asked, Choice)
    at = open_quiz()
    turn_to(at, question, asked)
    at.button(f"check_{key_of(loaded, question)}").click().run()
    assert "choose one" in shown(at)
    assert boxes(at) == {key_of(loaded, question)}


def test_an_explanation_is_marked_by_the_person(loaded):
    asked = set_of(loaded)
    question = first_of(asked, Points)
    at = open_quiz()
    turn_to(at, question, asked)
    assert question.expected.points[0] not in shown(at)
    answer(at, loaded, question, "Because of this and that.")
    assert all(point in shown(at) for point in question.expected.points)
    assert "Because of this and that." in shown(at)
    at.button_group(f"mark_{key_of(loaded, question)}").set_value(2).run()
    assert "2 of 3" in shown(at)
    place = quiz_page.place_of(loaded, 1)
    at.button_group(f"aloud_{place}_{question.topic}").set_value(3).run()
    assert "5 of 6" in shown(at)
    assert "0 right of 0 answered" in shown(at)


def test_a_topic_is_asked_alone_and_the_place_in_it_stays_within(loaded):
    at = open_quiz()
    at.select_slider("question").set_value(len(set_of(loaded)) - 1).run()
    for number, topic in enumerate(quiz.TOPICS, 2):
        at.button_group("topic").set_value(number).run()
        assert is_fine(at)
        assert "is not here" not in html(at)
        asked = quiz.questions([loaded], seed=1, topic=topic)
        assert len(at.select_slider("question").options) == len(asked)
        at.select_slider("question").set_value(0).run()
        assert asked[0].text in shown(at)
        assert quiz.ALOUD[topic] in shown(at)


def test_ten_mixed_questions_are_the_same_for_the_same_set(loaded):
    at = open_quiz()
    at.button_group("topic").set_value(1).run()
    assert len(at.select_slider("question").options) == 10
    few = quiz_page.picked(set_of(loaded), quiz_page.MIXED, 1)
    assert few[0].text in shown(at)
    assert len({question.topic for question in few}) >= 4
    assert few != quiz_page.picked(set_of(loaded), quiz_page.MIXED, 2)


def test_answers_stay_with_their_set_across_pages(loaded):
    asked = set_of(loaded)
    at = open_quiz()
    answer(at, loaded, asked[0], asked[0].expected.shown)
    at.button("another_set").click().run()
    assert at.number_input("set").value == 2
    assert set_of(loaded, 2)[0].text in shown(at)
    assert "0 right of 0 answered" in shown(at)
    at.switch_page("../pages/20_attention.py").run()
    at.switch_page("../pages/88_check_yourself.py").run()
    assert at.number_input("set").value == 2
    at.number_input("set").set_value(1).run()
    assert "1 right of 1 answered" in shown(at)
    assert asked[0].why in shown(at)


def test_two_people_do_not_share_answers(loaded):
    first, second = open_quiz(), open_quiz()
    question = set_of(loaded)[0]
    answer(first, loaded, question, "999999")
    second.run()
    assert "1 answered" not in shown(second)
    assert boxes(second) == {key_of(loaded, question)}


def test_what_does_not_apply_is_said(loaded):
    assert "do not apply to this model: there is no like model trained" in shown(open_quiz())


def test_without_a_microgpt_there_is_a_sentence(folder, open_folder, tmp_path):
    shutil.copytree(folder, tmp_path / "artifacts")
    (tmp_path / "artifacts/microgpt_seed42.npz").unlink()
    open_folder(tmp_path / "artifacts")
    at = open_quiz()
    assert [error.message for error in at.exception] == []
    assert "there is no microgpt to open yet" in said(at).lower()


def test_the_code_puts_the_question_on_screen(open_folder, monkeypatch, capsys):
    open_folder(ROOT / "artifacts")
    at = open_quiz(set="5")
    monkeypatch.chdir(ROOT)
    exec(at.code[-1].value, {})
    text, right, why = capsys.readouterr().out.strip().splitlines()
    assert text in shown(at)
    assert right in why


# -- the card


def test_the_card_holds_what_was_answered_and_no_other_answers(loaded, downloads):
    asked = set_of(loaded)
    at = open_quiz()
    answer(at, loaded, asked[0], "999999")
    at.text_input("quiz_name").set_value("Ada & <b>Co</b>").run()
    page = downloads["score_card.html"]()
    assert "Ada &amp; &lt;b&gt;Co&lt;/b&gt;" in page
    assert "@media print" in page
    assert "http" not in page
    assert "999999" in page
    assert markup.escape(asked[0].why) in page
    assert markup.escape(asked[1].text) not in page
    told = downloads["score_card.md"]()
    assert r"Ada \& \<b\>Co\</b\>" in told
    assert "\n> 999999\n\nNot so" in told
    rows = list(csv.DictReader(io.StringIO(downloads["check_yourself.csv"]())))
    assert [row["question"] for row in rows] == [question.text for question in asked]
    assert [row["answer"] for row in rows if row["answer"]] == ["999999"]
    assert [row["right_answer"] for row in rows if row["right_answer"]] == [asked[0].expected.shown]
    data = json.loads(downloads["check_yourself.json"]())
    assert [each.get("answer") for each in data["questions"]][:2] == ["999999", None]
    assert sum("why" in each for each in data["questions"]) == 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", data["date"])
    assert (data["seed"], data["checkpoint"]) == (1, "microgpt_seed42")


@EACH_TEXT
def test_what_was_typed_stands_letter_for_letter(loaded, downloads, text):
    asked = set_of(loaded)
    question = first_of(asked, Points)
    at = open_quiz()
    turn_to(at, question, asked)
    answer(at, loaded, question, text)
    assert f'<p class="wl-quote">{markup.escape(text)}</p>' in html(at)
    page = downloads["score_card.html"]()
    assert f"<p>{markup.escape(text)}</p>" in page
    assert "<script>" not in page
    told = downloads["score_card.md"]()
    quoted = told[told.index("\n> ") + 1 : told.index("\n\nOwn mark")]
    assert quoted == "\n".join(markdown_quote(text))


def test_the_score_is_counted_by_topic(loaded):
    asked = set_of(loaded)
    given = {}
    for question in asked:
        if question.topic == "sampling":
            kind = question.kind
            given[question.key] = (
                Given("why", mark=2) if kind == "explain" else Given("x", kind == "trace")
            )
    card = Card("", "2030-01-02", 1, "m", asked, given, {"training": 3, "sampling": 1})
    scores = {score.topic: score for score in card.scores}
    of_sampling = [question.kind for question in asked if question.topic == "sampling"]
    assert scores["sampling"].right == of_sampling.count("trace")
    assert scores["sampling"].answered == scores["sampling"].asked
    assert scores["sampling"].marks == (*[2] * of_sampling.count("explain"), 1)
    assert (scores["training"].answered, scores["training"].marks) == (0, (3,))
    assert 0 < scores["sampling"].share < 1
    assert scorecard.rows(card)[quiz.TOPICS.index("attention")] == ["attention", "0 of 0", "none"]
    assert "Own mark: 2 of 3" in scorecard.markdown(card)


@pytest.mark.parametrize(
    ("given", "quoted"),
    [
        ("0.25", "> 0\\.25"),
        ("4,192", "> 4,192"),
        ("-3", "> \\-3"),
        ("1. one\n2) two", "> 1\\. one\\\n> 2\\) two"),
        ("a*b", "> a\\*b"),
    ],
)
def test_an_answer_in_the_markdown_is_what_was_typed(loaded, given, quoted):
    """A backslash before a sign is not drawn; before a digit, or at the very end, it is."""
    (question, *_) = set_of(loaded)
    card = Card("", "2030-01-02", 1, "m", (question,), {question.key: Given(given, True)}, {})
    told = scorecard.markdown(card).split("## Answers\n\n")[1]
    shown = re.sub(r"([<>])", r"\\\1", question.text), re.sub(r"([<>])", r"\\\1", question.why)
    assert told == f"**{shown[0]}**\n\n{quoted}\n\nRight.\\\n{shown[1]}\n"


def test_a_formula_in_the_card_is_no_formula(loaded):
    asked = set_of(loaded)[:4]
    typed = ('=HYPERLINK("http://x","y")', "-0.53", "+1,5%", "-1+1")
    given = {q.key: Given(text, True) for q, text in zip(asked, typed, strict=True)}
    card = Card("@name", "2030-01-02", 1, "m", asked, given, {})
    rows = list(csv.DictReader(io.StringIO(scorecard.as_csv(card))))
    assert [row["answer"] for row in rows] == [
        '\'=HYPERLINK("http://x","y")',
        "-0.53",
        "+1,5%",
        "'-1+1",
    ]


def test_there_are_no_figures_to_save(loaded):
    at = open_quiz()
    labels = [button.label for button in at.get("download_button")]
    assert "Data as CSV" in labels
    assert "Figures as HTML" not in labels
    assert "image" not in {group.key for group in at.get("button_group")}


def test_an_empty_card_is_a_card_too(loaded):
    card = Card("", "2030-01-02", 1, "m", set_of(loaded), {}, {})
    assert "None yet" in scorecard.page(card)
    assert "## Answers" in scorecard.markdown(card)
    with contextlib.closing(io.StringIO(scorecard.as_csv(card))) as file:
        assert len(list(csv.reader(file))) == len(card.questions) + 1
