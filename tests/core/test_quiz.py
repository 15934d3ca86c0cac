"""The quiz: every question on every sort of microgpt, and its answers computed another way."""

import contextlib
import dataclasses
import json
import math
import random
import re
import statistics
from pathlib import Path

import numpy as np
import pytest

from tests import tiny
from wordlm_core import answers, checkpoint, quiz
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.errors import CheckpointError, ConfigError, TextError
from wordlm_core.models import microgpt
from wordlm_core.quiz.question import (
    KINDS,
    Choice,
    Context,
    Number,
    Numbers,
    Points,
    Question,
    Word,
)
from wordlm_core.scalar_gpt import ScalarGPT, Settings
from wordlm_core.text import BOS, SPECIALS
from wordlm_core.vocabulary import CharVocabulary, Vocabulary, WordVocabulary

ROOT = Path(__file__).resolve().parents[2]
ARTIFACTS = [
    ROOT / f"artifacts/microgpt{name}_seed42.npz" for name in ("", "_no_positions", "_2_layers")
]
OTHER_LETTERS = CharVocabulary.build(("лиза", "a b", "'x<\"", "-1", "$*_"))
EVERY_SEED = range(3)


def sized(vocabulary: Vocabulary, name: str, **sizes) -> Checkpoint:
    """Return a small random microgpt without any history."""
    given = {"context_length": 9, "d_model": 12, "hidden": None, "n_head": 3, "n_layer": 1}
    config = microgpt.config_for(
        vocab_size=len(vocabulary), **{"positions": True, **given, **sizes}
    )
    model = microgpt.build(config, tiny.weights_of(config.shapes, 5))
    made = Checkpoint.from_training(model, vocabulary, {}, {})
    return dataclasses.replace(made, name=name)


MADE = {
    "tiny": tiny.char_checkpoint(),
    "two layers, no positions": dataclasses.replace(
        tiny.char_checkpoint(seed=3, n_layer=2, positions=False), name="deep"
    ),
    "other letters": sized(OTHER_LETTERS, "letters"),
    "words": sized(tiny.VOCABULARY, "words"),
    "narrow": sized(tiny.LETTERS, "narrow", d_model=1, n_head=1, context_length=4),
    "odd": sized(tiny.LETTERS, "odd", d_model=67, n_head=1, hidden=3, n_layer=3),
    "long": sized(tiny.LETTERS, "long", context_length=200),
    "large": sized(tiny.LETTERS, "large", d_model=192, hidden=768, n_head=4),
}


@pytest.fixture(scope="module")
def opened() -> dict[str, list[Checkpoint]]:
    """The loaded checkpoint of each case, and behind it what it can be compared with."""
    real = [checkpoint.load(path) for path in ARTIFACTS]
    trained = {of.name: [of, *(o for o in real if o is not of)] for of in real}
    return {**trained, **{name: [made] for name, made in MADE.items()}}


CASES = [path.stem for path in ARTIFACTS] + list(MADE)
# These train, which takes longer than all the others together.
TRAINED = {"learning_rates", "huge_learning_rate", "same_run_again"}
EACH_CASE = pytest.mark.parametrize("case", CASES)


_CONTEXTS: dict[tuple[str, ...], Context] = {}
_SETS: dict[tuple[tuple[str, ...], int], dict[str, Question]] = {}


def context_of(of: list[Checkpoint]) -> Context:
    """Return what questions are made from; made once, as its items are drawn from the model."""
    names = tuple(each.name for each in of)
    if names not in _CONTEXTS:
        _CONTEXTS[names] = Context.of(of)
    return _CONTEXTS[names]


def by_key(of: list[Checkpoint], seed: int = 0) -> dict[str, Question]:
    """Return a set by the questions' keys; made once, as questions compute at their first look."""
    wanted = tuple(each.name for each in of), seed
    if wanted not in _SETS:
        shared = context_of(of)
        _SETS[wanted] = {
            question.key: dataclasses.replace(question, context=shared)
            for question in quiz.questions(of, seed=seed)
        }
    return _SETS[wanted]


def wrong_answers(expected) -> list[str]:
    match expected:
        case Number(value, digits):
            near = 10.0 ** (1 - digits) + (abs(value) * 0.02 if digits else 0)
            return [f"{value + near:.9f}", f"{value - near:.9f}", f"{value + 7:.9f}"]
        case Numbers(values, _):
            *all_but_one, last = values
            more = [*values, 1]
            off = [*all_but_one, last + 1]
            return [" ".join(f"{v:.9f}" for v in each) for each in (all_but_one, more, off) if each]
        case Word(value):
            return [value + "q", "q" + value, "27"]
        case Choice(options, right):
            return [option for i, option in enumerate(options) if i != right]
    return []


def typed(expected) -> str:
    """Return the right answer with all its digits, as somebody might type it."""
    match expected:
        case Number(value, _):
            return repr(float(value))
        case Numbers(values, _):
            return f"({', '.join(repr(float(v)) for v in values)})"
        case Word(value):
            return f" {value} "
        case Choice():
            return expected.shown
    return "Because."


# -- the bank


def test_there_are_enough_questions_of_each_topic_and_kind(opened):
    found = quiz.questions(opened["microgpt_seed42"], seed=0)
    assert len(found) == len(quiz.TEMPLATES) >= 42
    assert len({question.key for question in found}) == len(found)
    assert len(quiz.TOPICS) == 7
    for topic in quiz.TOPICS:
        of_topic = [question for question in found if question.topic == topic]
        assert len(of_topic) >= 5
        assert {question.kind for question in of_topic} == set(KINDS)
        assert quiz.ALOUD[topic]
        assert [q.key for q in quiz.questions(opened["microgpt_seed42"], seed=0, topic=topic)] == [
            q.key for q in of_topic
        ]


@EACH_CASE
def test_every_question_can_be_answered_right_and_wrong(opened, case):
    vocabularies = ("microgpt_seed42", "other letters", "words", "narrow")
    for key, question in by_key(opened[case]).items():
        if key in TRAINED and case not in vocabularies:
            continue
        where = f"{question.key}: {question.text}"
        assert question.text.endswith(("?", ".")), where
        assert question.accepts(typed(question.expected)), where
        if question.kind != "explain":
            assert question.accepts(question.expected.shown), where
            assert question.why, where
            wrong = wrong_answers(question.expected)
            assert wrong, where
            assert not any(question.accepts(each) for each in wrong), where
        with pytest.raises(TextError):
            question.accepts("   ")


@EACH_CASE
def test_the_kind_fits_the_answer(opened, case):
    of_kind = {"trace": (Number, Numbers, Word), "predict": (Choice,), "explain": (Points,)}
    for question in by_key(opened[case]).values():
        if question.key in TRAINED and case != "narrow":
            continue
        assert isinstance(question.expected, of_kind[question.kind])
        if isinstance(question.expected, Choice):
            assert len(set(question.expected.options)) == len(question.expected.options) >= 2


@EACH_CASE
def test_what_does_not_apply_says_why(opened, case):
    missing = quiz.left_out(opened[case])
    assert set(missing) == {t.key for t in quiz.TEMPLATES} - set(by_key(opened[case]))
    assert all(missing.values())
    for topic in quiz.TOPICS:
        assert len(quiz.questions(opened[case], seed=0, topic=topic)) >= 3


def test_only_a_trained_pair_is_compared(opened):
    pair = {"loss_without_positions", "loss_with_more_layers"}
    assert not pair & set(quiz.left_out(opened["microgpt_seed42"]))
    assert pair & set(quiz.left_out(opened["microgpt_2_layers_seed42"])) == {
        "loss_without_positions"
    }
    assert pair <= set(quiz.left_out(opened["microgpt_seed42"][:1]))
    other = opened["microgpt_seed42"][1]
    training = other.metadata["training"] | {"seed": 7}
    strange = dataclasses.replace(other, metadata={**other.metadata, "training": training})
    assert pair <= set(quiz.left_out([opened["microgpt_seed42"][0], strange]))


def test_a_seed_draws_a_set(opened):
    of = opened["microgpt_seed42"]
    first, other = (by_key(of, seed) for seed in (1, 2))
    again = quiz.questions(of, seed=1)
    assert [q.posed for q in first.values() if q.key not in TRAINED] == [
        q.posed for q in again if q.key not in TRAINED
    ]
    traces = [key for key, question in first.items() if question.kind == "trace"]
    fixed = {key for key in traces if len({by_key(of, s)[key].text for s in range(6)}) == 1}
    # What these ask about is the loaded model's size alone.
    assert fixed == {
        *("size_of_vocabulary", "shape_of_wte", "numbers_in_tables", "width_of_a_head"),
        *("attention_parameters", "hidden_units", "shape_of_fc2", "longest_sample"),
        "all_parameters",
    }
    assert sum(first[key].text != other[key].text for key in traces) > len(traces) / 2


def test_each_option_that_can_come_true_does(opened):
    """A question whose answer is always the same teaches to click, not to think."""
    of = opened["microgpt_seed42"]
    for key in ("another_token", "same_seed", "higher_entropy"):
        rights = {by_key(of, seed)[key].expected.right for seed in range(12)}
        assert len(rights) >= 2, key
    for key in ("unknown_character", "one_hot", "shifted_logits", "without_fc2"):
        places = {by_key(of, seed)[key].expected.right for seed in range(12)}
        assert len(places) == 3, key


@pytest.mark.parametrize("kind", ["attention", "mlp"])
def test_another_family_is_refused(kind):
    with pytest.raises(CheckpointError, match="about microgpt"):
        quiz.questions([tiny.make_checkpoint(kind)], seed=0)


def test_too_small_a_model_and_a_strange_topic_are_refused():
    small = sized(tiny.LETTERS, "small", context_length=3)
    with pytest.raises(CheckpointError, match="too small to ask about"):
        quiz.questions([small], seed=0)
    with pytest.raises(ConfigError, match="topics are tokenisation"):
        quiz.questions([MADE["tiny"]], seed=0, topic="cooking")


def test_the_answers_for_instructors_are_json(opened):
    found = list(by_key(opened["microgpt_seed42"]).values())
    made = json.loads(json.dumps(answers.of_quiz(found), allow_nan=False))["questions"]
    assert [each["text"] for each in made] == [question.text for question in found]
    assert [each["answer"] for each in made] == [question.expected.shown for question in found]
    assert {each["kind"] for each in made} == set(KINDS)


# -- the same answers, computed from the text alone or by the scalar original


def numbers_in(text: str) -> list[float]:
    return [float(n.replace(",", "")) for n in re.findall(r"-?\d[\d,]*(?:\.\d+)?", text)]


def quoted(text: str) -> str:
    return re.findall("“(.*?)”", text)[0]


def in_brackets(text: str) -> list[list[float]]:
    return [[float(n) for n in found.split(", ")] for found in re.findall(r"\(([-\d., ]+)\)", text)]


def parameters(of: Context, **changes) -> int:
    c = dataclasses.replace(of.config, **changes)
    layer = 4 * c.d_model**2 + 2 * c.d_model * c.hidden
    return (2 * c.vocab_size + c.context_length) * c.d_model + c.n_layer * layer


def stated(pattern: str, text: str) -> float:
    return float(re.search(pattern, text)[1].replace(",", ""))


def adam(text: str, of: Context) -> float:
    weight, gradient, rate = numbers_in(text)[:3]
    return weight - math.copysign(rate, gradient)


def two_softmax(first: float, second: float) -> float:
    return math.exp(first) / (math.exp(first) + math.exp(second))


def rms(text: str, of: Context) -> list[float]:
    a, b = (float(n) for n in re.search(r"\[(.*?)\]", text)[1].split(","))
    size = math.sqrt((a * a + b * b) / 2)
    return [a / size, b / size]


def ids_of(text: str, of: Context) -> list[int]:
    itos = of.vocabulary.itos
    return [len(itos) - 1, *(itos.index(c) for c in quoted(text)), len(itos) - 1]


def summed(text: str, of: Context) -> float:
    row, place = (float(n) for n in re.findall(r"is (-?\d+\.\d+)", text))
    return row + place if of.config.positions else row


BY_HAND = {
    "document_length": lambda t, of: len(quoted(t)) + 2,
    "document_ids": ids_of,
    "size_of_vocabulary": lambda t, of: sum(numbers_in(t)[:2]),
    "predictions_of": lambda t, of: len(quoted(t)) + 1,
    "predictions_of_a_long_one": lambda t, of: stated(r"context is (\d+)", t),
    "shape_of_wte": lambda t, of: [stated(r"has ([\d,]+) tokens", t), stated(r"of (\d+)\.", t)],
    "numbers_in_tables": lambda t, of: (numbers_in(t)[0] + numbers_in(t)[1]) * numbers_in(t)[2],
    "width_and_wte": lambda t, of: len(of.vocabulary) * stated(r"at width (\d+)\?", t),
    "sum_of_rows": summed,
    "dot_of_rows": lambda t, of: sum(a * b for a, b in zip(*in_brackets(t), strict=True)),
    "width_of_a_head": lambda t, of: numbers_in(t)[0] / numbers_in(t)[1],
    "shape_of_scores": lambda t, of: [of.config.n_head, *[len(quoted(t)) + 1] * 2],
    "visible_keys": lambda t, of: 1 + stated(r"query at position (\d+)", t),
    "weights_of_a_head": lambda t, of: sum(range(1, int(numbers_in(t)[0]) + 1)),
    "only_key": lambda t, of: 1,
    "scaled_score": lambda t, of: numbers_in(t)[-1] / math.sqrt(numbers_in(t)[0]),
    "weight_of_two": lambda t, of: two_softmax(
        *(float(n) for n in reversed(re.findall(r"(-?\d+\.\d+) \(position", t)))
    ),
    "cached_numbers": lambda t, of: 2 * of.config.n_layer * numbers_in(t)[0] * numbers_in(t)[-1],
    "attention_parameters": lambda t, of: 4 * numbers_in(t)[0] ** 2,
    "hidden_units": lambda t, of: of.config.hidden,
    "shape_of_fc2": lambda t, of: [of.config.d_model, of.config.hidden],
    "norm_of_two": rms,
    "size_after_norm": lambda t, of: 1,
    "relu_zeros": lambda t, of: len(re.findall(r"-\d+\.\d\d", t)),
    "after_the_mlp": lambda t, of: sum(map(float, re.findall(r"-?\d+\.\d{3}", t))),
    "uniform_loss": lambda t, of: math.log(stated(r"of ([\d,]+) tokens", t)),
    "loss_of_one": lambda t, of: -math.log(stated(r"probability of ([-\d.e]+?)\. ", t)),
    "mean_of_losses": lambda t, of: np.mean([float(n) for n in re.findall(r"\d+\.\d\d", t)]),
    "first_step_of_adam": adam,
    "twice_backward": lambda t, of: 2 * stated(r"b = (-?\d+)", t),
    "gradient_of_a_logit": lambda t, of: stated(r"probability of ([\d.]+\d)", t) - 1,
    "rows_with_gradient": lambda t, of: len(set(quoted(t))) + 1,
    "two_likeliest": lambda t, of: two_softmax(*(map(float, re.findall(r"(-?\d+\.\d\d) \(", t)))),
    "kept_by_top_k": lambda t, of: stated(r"top-k (\d+)", t),
    "greedy": lambda t, of: 1,
    "two_in_a_row": lambda t, of: math.prod(
        float(n.rstrip(".")) for n in re.findall(r"probability ([\d.e-]+)", t)
    ),
    "effective_tokens": lambda t, of: math.exp(stated(r"entropy of ([\d.]+) nats", t)),
    "longest_sample": lambda t, of: stated(r"context is (\d+)", t),
    "all_parameters": lambda t, of: parameters(of),
    "one_layer_more": lambda t, of: parameters(of, n_layer=int(stated(r"= (\d+)\?", t))),
    "more_tokens": lambda t, of: parameters(
        of, vocab_size=len(of.vocabulary) + int(stated(r"gets (\d+) new", t))
    ),
    "perplexity_of_the_end": lambda t, of: math.exp(stated(r"loss was ([\d.]+) nats", t)),
}
PLAIN_LETTERS = ["microgpt_seed42", "microgpt_no_positions_seed42", "microgpt_2_layers_seed42"]
PLAIN_LETTERS += ["tiny", "two layers, no positions", "odd"]


@pytest.mark.parametrize("key", BY_HAND)
def test_what_can_be_computed_by_hand_is_the_answer(opened, key):
    asked = 0
    for case in PLAIN_LETTERS:
        of = context_of(opened[case])
        for seed in EVERY_SEED:
            question = by_key(opened[case], seed).get(key)
            if question is not None:
                value, expected = BY_HAND[key](question.text, of), question.expected
                pairs = zip(np.ravel(value), np.ravel(getattr(expected, "values", expected)))  # noqa: B905 (lengths are compared by accepts)
                given = " ".join(f"{float(v):.9f}" for v, _ in pairs)
                assert question.accepts(given), f"{case} {seed} {question.text} {given} {expected}"
                asked += 1
    assert asked >= 6


def test_every_trace_question_is_computed_by_hand_too():
    traced = {template.key for template in quiz.TEMPLATES if template.kind == "trace"}
    assert traced - set(BY_HAND) == {"text_of_ids", "target_at"}


def test_words_are_where_the_text_says(opened):
    for case in PLAIN_LETTERS:
        of = context_of(opened[case])
        for seed in EVERY_SEED:
            asked = by_key(opened[case], seed)
            ids = stated_ids(asked["text_of_ids"].text)
            assert asked["text_of_ids"].accepts("".join(of.vocabulary.itos[i] for i in ids[1:-1]))
            text = asked["target_at"].text
            place = int(stated(r"position (\d+)\?", text))
            assert asked["target_at"].accepts([*quoted(text), BOS][place])


def stated_ids(text: str) -> list[int]:
    return [int(n) for n in re.search(r"document ([\d, ]+)\?", text)[1].split(", ")]


@pytest.mark.parametrize("case", ["microgpt_seed42", "microgpt_no_positions_seed42", "tiny"])
def test_the_numbers_in_the_text_are_the_scalar_originals(opened, case):
    of = context_of(opened[case])
    c = of.config
    settings = Settings(
        context_length=c.context_length,
        d_model=c.d_model,
        n_head=c.n_head,
        n_layer=c.n_layer,
        positions=c.positions,
    )
    original = ScalarGPT({name: w.tolist() for name, w in of.model.weights.items()}, settings)
    asked = by_key(opened[case], seed=5)
    mean = asked["mean_of_losses"]
    ids = ids_of(mean.text, of)
    assert mean.expected.value == pytest.approx(original.loss(ids).data, abs=1e-9)


def test_predictions_come_true_as_they_are_known_to(opened):
    for case in PLAIN_LETTERS:
        config = opened[case][0].model.config
        for seed in EVERY_SEED:
            asked = by_key(opened[case], seed)
            shown = {
                key: q.expected.shown
                for key, q in asked.items()
                if q.kind == "predict" and key not in TRAINED
            }
            assert shown["same_token_twice"] == (
                "they differ" if config.positions else "they are equal"
            )
            order_counts = config.positions or config.n_layer > 1
            assert shown["swapped_tokens"] == ("they differ" if order_counts else "they are equal")
            text = asked["another_token"].text
            places = [int(n) for n in re.findall(r"position (\d+)", text)]
            seen = places[0] <= places[1]
            assert shown["another_token"] == (
                "its logits change" if seen else "its logits stay the same"
            )
            temperatures = numbers_in(" ".join(asked["higher_entropy"].expected.options))
            assert stated(r"([\d.]+)", shown["higher_entropy"]) == max(temperatures)
            factor = stated(r"multiplied by (\d)", asked["multiplied_logits"].text)
            assert shown["multiplied_logits"] == f"temperature {1 / factor:g}"
            assert shown["shifted_logits"] == "all stay the same"
            assert shown["norm_of_a_larger_row"] == "practically the same numbers"
            assert shown["without_fc2"].startswith("the row after the MLP equals")
            assert shown["one_hot"].startswith("row ")
            assert shown["unknown_character"].startswith("it is refused")
            assert shown["step_on_one_item"] == "it falls"
            assert shown["loss_before_training"].startswith("near ln")
            wide, hidden = config.d_model, config.hidden
            larger = np.sign(4 * wide**2 - 2 * wide * hidden)
            assert shown["larger_half"] == {
                1: "its attention",
                -1: "its MLP",
                0: "both the same",
            }.get(larger)
            assert shown["double_width"] == "more than twice as many"


def test_trainings_end_as_they_are_known_to(opened):
    of = opened["microgpt_seed42"]
    for seed in range(4):
        asked = by_key(of, seed)
        rates = numbers_in(" ".join(asked["learning_rates"].expected.options))
        assert asked["learning_rates"].expected.shown == f"the one with {min(rates):g}"
        assert asked["huge_learning_rate"].expected.shown.startswith("it stops")
        again = asked["same_run_again"]
        same = len(set(re.findall(r"seed (\d+)", again.text))) == 1
        assert again.expected.shown.startswith("they are equal") is same
    assert len({by_key(of, seed)["same_run_again"].expected.right for seed in range(6)}) == 2


def test_the_trained_pairs_are_compared_by_their_own_losses(opened):
    of = opened["microgpt_seed42"]
    ends = {each.name: each.metadata["loss_history"][-200:] for each in of}
    asked = by_key(of)

    def standard_errors(name: str) -> float:
        pairs = zip(ends[name], ends["microgpt_seed42"], strict=True)
        changes = [a - b for a, b in pairs]
        return statistics.fmean(changes) / (statistics.stdev(changes) / math.sqrt(200))

    assert standard_errors("microgpt_no_positions_seed42") > 2
    assert asked["loss_without_positions"].expected.shown == "the model without positions"
    assert abs(standard_errors("microgpt_2_layers_seed42")) < 2
    assert asked["loss_with_more_layers"].expected.shown == "neither, beyond chance"


def test_a_word_model_keeps_what_it_does_not_know():
    asked = by_key([MADE["words"]])
    assert asked["unknown_character"].expected.shown.endswith("<UNK>")
    assert "longest_sample" in quiz.left_out([MADE["words"]])


def test_what_is_strange_really_cannot_be_read():
    """A list may hold every single sign of a strange word."""
    letters = CharVocabulary.build(("7é", "ß", "Ж", "狗", "quagga"))
    asked = by_key([sized(letters, "strange")])["unknown_character"]
    assert "followed by “zyzzyva”" in asked.text
    assert asked.expected.shown.startswith("it is refused")
    every = CharVocabulary.build(("7é", "ß", "Ж", "狗", "quagga", "zyzzyva"))
    assert "unknown_character" in quiz.left_out([sized(every, "all of them")])


def test_a_word_that_is_known_is_not_strange():
    words = WordVocabulary((*SPECIALS, "a", "b", "7", "quagga"), {"a": 2, "b": 1, "7": 1})
    asked = by_key([sized(words, "numbers")])["unknown_character"]
    assert not asked.text.count("“7”")
    assert asked.expected.shown.endswith("<UNK>")


@pytest.mark.parametrize(
    ("key", "sizes"),
    [
        ("one_layer_more", {"n_layer": 62, "d_model": 1, "n_head": 1}),
        ("width_and_wte", {"d_model": 1, "n_head": 1, "hidden": 9_000}),
        ("double_width", {"d_model": 1, "n_head": 1, "hidden": 9_000}),
        ("other_heads", {"d_model": 2, "n_head": 1, "context_length": 2048}),
    ],
)
def test_nothing_is_asked_about_a_model_beyond_the_limits(key, sizes):
    of = [sized(tiny.LETTERS, f"{key} edge", **sizes)]
    missing = quiz.left_out(of)
    assert key in missing
    for question in quiz.questions(of, seed=0, topic="experiments"):
        if question.key not in TRAINED:
            assert question.posed.text


def test_nothing_is_trained_while_a_class_waits_where_it_takes_long():
    few, many = (
        WordVocabulary((*SPECIALS, *(f"w{i}" for i in range(size))), {}) for size in (2000, 4000)
    )
    assert not TRAINED & set(quiz.left_out([sized(few, "few", d_model=3)]))
    missing = quiz.left_out([sized(many, "many", d_model=3)])
    assert set(missing) >= TRAINED
    assert "4,004 tokens" in missing["learning_rates"]


@pytest.mark.parametrize(
    "strange",
    [
        *({"loss_history": value} for value in (["a"], 5, "text", [None], [True], [10**400], {})),
        *({"training": value} for value in ([1], "text", 7)),
        *({"corpus": value} for value in ([1], "text", 7)),
    ],
    ids=str,
)
def test_what_a_strangers_file_says_of_its_training_may_be_nonsense(opened, strange):
    plain, *others = opened["microgpt_seed42"]
    odd = dataclasses.replace(plain, metadata={**plain.metadata, **strange})
    missing = quiz.left_out([odd, *others])
    assert {"loss_without_positions", "loss_with_more_layers"} <= set(missing)
    assert ("perplexity_of_the_end" in missing) == ("loss_history" in strange)
    assert len(quiz.questions([plain, odd], seed=0)) >= len(quiz.questions([odd], seed=0))


def test_items_are_made_up_and_fit(opened):
    for case in CASES:
        of = context_of(opened[case])
        assert len(of.items) >= 2
        assert len({item.raw for item in of.items}) == len(of.items)
        for item in of.items:
            assert 5 <= len(item.ids) <= of.config.context_length + 1
            assert (item.ids[0], item.ids[-1]) == (of.vocabulary.bos_id, of.vocabulary.end_id)


# -- answers as they are typed


@pytest.mark.parametrize("given", ["4,192", "4192", "4 192", "4192.0", "8384/2"])
def test_a_whole_number_is_accepted_however_it_is_written(given):
    assert Number(4192).accepts(given)
    assert not Number(4193).accepts(given)


@pytest.mark.parametrize("given", ["4.192", "4192.5", "41.92", "emma"])
def test_what_is_no_whole_number_counts_neither_way(given):
    for expected in (Number(4192), Numbers((4192, 2))):
        with pytest.raises(TextError):
            expected.accepts(given)


def test_a_shape_is_compared_in_order():
    assert Numbers((27, 16)).accepts("27 x 16")
    assert not Numbers((16, 27)).accepts("27 x 16")
    assert not Numbers((27, 16, 1)).accepts("27 x 16")
    assert Numbers((10_000, 64)).accepts("10,000 x 64")


@pytest.mark.parametrize(
    ("value", "given", "right"),
    [
        (BOS, "<BOS>", True),
        (BOS, "bos", True),
        (BOS, "“<bos>”", True),
        ("emma", " emma ", True),
        ("emma", '"emma"', True),
        ("emma", "Emma", False),
        (" ", "\u2423", True),
        ("a b", "a\u2423b", True),
        ("'a", "'a", True),
        ("<", "<", True),
        ("b", "<b>", False),
    ],
)
def test_a_token_is_compared_letter_for_letter(value, given, right):
    assert Word(value).accepts(given) is right


def test_rounding_is_forgiven_and_nothing_else():
    loss = Number(math.log(27), 2)
    assert all(loss.accepts(each) for each in ("3.3", "3.29", "3.30", "3,296"))
    assert not any(loss.accepts(each) for each in ("3.2", "3.4", "1.43", "27"))


def test_random_text_is_read_or_refused():
    rng = random.Random(0)
    for _ in range(2000):
        text = "".join(rng.choices("0123456789.,/-+eE%x*() '_\u00d7=", k=rng.randint(1, 9)))
        for expected in (Number(3), Number(0.25, 2), Numbers((3, 4))):
            with contextlib.suppress(TextError):
                assert expected.accepts(text) in (True, False)
