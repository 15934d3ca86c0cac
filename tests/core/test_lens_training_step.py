"""One training step: gradients against differences, Adam by hand, and nothing shared is changed."""

import dataclasses
import json
import math

import numpy as np
import pytest

from tests import tiny
from wordlm_core import answers
from wordlm_core.corpora import Corpus
from wordlm_core.errors import CheckpointError, ConfigError, CorpusError, TextError
from wordlm_core.gpt_trainer import BETA1, BETA2, EPSILON, GPTTrainer, loss_of
from wordlm_core.items import prepare_items
from wordlm_core.lens.training_step import MOST_NAMES, MOST_STEPS, training_step, zeroing
from wordlm_core.models import microgpt
from wordlm_core.models.base import softmax
from wordlm_core.models.microgpt import MicroGPTModel
from wordlm_core.training import TrainConfig

CHAR = tiny.char_checkpoint()
DEEP = tiny.char_checkpoint(n_layer=2, positions=False)
LETTERS = tiny.LETTERS
RATE = 0.003


def read(text: str, of=CHAR):
    return LETTERS.probe(text, of.model.config.context_length)


def taken(text: str = "nina", of=CHAR, **options):
    return training_step(of.model, LETTERS, read(text), **{"rate": RATE, **options})


def moved(model: MicroGPTModel, name: str, row: int, column: int, by: float) -> MicroGPTModel:
    array = model.weights[name].astype(np.float64)
    array[row, column] += by
    return MicroGPTModel(model.config, {**model.weights, name: array})


def mean_loss(model: MicroGPTModel, text: str) -> float:
    """Return the loss of a text by the model's own trace, which shares no loss with the lens."""
    ids = read(text).ids
    probs = softmax(model.trace(ids).logits)
    targets = [*ids[1:], LETTERS.end_id]
    return float(-np.mean(np.log(probs[np.arange(len(ids)), targets])))


# -- forward and loss


@pytest.mark.parametrize("of", [CHAR, DEEP], ids=["one layer", "two layers, no positions"])
def test_every_position_is_asked_for_the_next_token(of):
    result = taken("nina", of)
    probs = softmax(of.model.trace(read("nina").ids).logits)
    pairs = [(each.read, each.target) for each in result.forward]
    assert pairs == [("<BOS>", "n"), ("n", "i"), ("i", "n"), ("n", "a"), ("a", "<BOS>")]
    for position, each in enumerate(result.forward):
        assert each.position == position
        assert each.prob == pytest.approx(probs[position, LETTERS.stoi[each.target]])
        assert each.loss == pytest.approx(-math.log(each.prob))
        assert LETTERS.stoi[each.likeliest] == probs[position].argmax()
    assert result.loss == pytest.approx(np.mean([each.loss for each in result.forward]))
    assert result.loss == pytest.approx(mean_loss(of.model, "nina"))
    assert result.uniform == pytest.approx(math.log(len(LETTERS)))


# -- backward


@pytest.mark.parametrize("of", [CHAR, DEEP], ids=["one layer", "two layers, no positions"])
def test_gradients_equal_finite_differences(of):
    result = taken("nina", of)
    step = 1e-5
    for each in (*result.row, *result.largest):
        place = (each.matrix, each.row, each.column)
        up = mean_loss(moved(of.model, *place, step), "nina")
        down = mean_loss(moved(of.model, *place, -step), "nina")
        assert each.gradient == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-9), place


def test_the_chosen_numbers_are_the_first_letters_row_and_the_largest_entries():
    result = taken("nina")
    width = CHAR.model.config.d_model
    row, largest = result.row, result.largest
    assert [(p.matrix, p.row, p.column) for p in row] == [
        ("wte", LETTERS.stoi["n"], column) for column in range(width)
    ]
    assert {p.token for p in row} == {"n"}
    assert [p.matrix for p in largest] == list(CHAR.model.config.shapes)
    assert [p.token is None for p in largest] == [
        name not in ("wte", "lm_head") for name in CHAR.model.config.shapes
    ]
    for parameter, matrix in zip(largest, result.matrices, strict=True):
        assert abs(parameter.gradient) <= matrix.norm
        assert matrix.norm <= abs(parameter.gradient) * math.sqrt(math.prod(matrix.shape))
    for parameter in (*row, *largest):
        value = CHAR.model.weights[parameter.matrix][parameter.row, parameter.column]
        assert parameter.before == value


def test_only_rows_that_were_read_get_a_gradient():
    matrices = {matrix.name: matrix for matrix in taken("nina").matrices}
    width = CHAR.model.config.d_model
    assert matrices["wte"].reached == 4 * width  # <BOS>, n, i, a
    assert matrices["wpe"].reached == 5 * width
    assert matrices["lm_head"].reached == len(LETTERS) * width
    without = {matrix.name: matrix for matrix in taken("nina", DEEP).matrices}
    assert without["wpe"].reached == 0
    for name, matrix in matrices.items():
        weights = CHAR.model.weights[name]
        assert matrix.shape == weights.shape
        assert matrix.weight_norm == pytest.approx(np.linalg.norm(weights))


def test_a_text_beyond_the_context_is_read_from_its_beginning():
    result = taken("adamvera" + "n")  # <BOS> and nine letters, of which eight tokens are read
    assert "".join(each.read for each in result.forward) == "<BOS>adamver"
    assert result.row[0].token == "a"
    assert result.forward[-1].target == "a"


# -- Adam


def test_the_first_step_of_adam_by_hand():
    result = taken()
    for each in (*result.row, *result.largest):
        g = each.gradient
        assert each.mean == pytest.approx((1 - BETA1) * g)
        assert each.square == pytest.approx((1 - BETA2) * g * g)
        assert each.mean_hat == pytest.approx(g)
        assert each.square_hat == pytest.approx(g * g)
        assert each.update == pytest.approx(-RATE * g / (abs(g) + EPSILON), abs=1e-12)
        assert each.after == pytest.approx(each.before + each.update)


def test_the_second_step_remembers_the_first():
    first, second = taken("nina"), taken("nina", earlier=("nina",))
    assert (first.number, second.number) == (1, 2)
    for one, two in zip(first.row, second.row, strict=True):
        mean = BETA1 * one.mean + (1 - BETA1) * two.gradient
        square = BETA2 * one.square + (1 - BETA2) * two.gradient**2
        assert two.before == pytest.approx(one.after)
        assert (two.mean, two.square) == (pytest.approx(mean), pytest.approx(square))
        assert two.mean_hat == pytest.approx(mean / (1 - BETA1**2))
        assert two.square_hat == pytest.approx(square / (1 - BETA2**2))
        update = -RATE * two.mean_hat / (math.sqrt(two.square_hat) + EPSILON)
        assert two.update == pytest.approx(update)
    assert second.earlier == (pytest.approx(first.loss),)
    assert second.loss == pytest.approx(first.loss_after)
    assert second.forward == first.forward_after


@pytest.mark.parametrize("text", ["a", "nina", "vera", "ivan"])
def test_a_small_step_lowers_the_loss_of_its_text(text):
    result = taken(text, rate=1e-6)
    assert result.loss_after < result.loss
    assert all(each.gradient * each.update <= 0 for each in result.row)
    assert result.loss_after == pytest.approx(np.mean([each.loss for each in result.forward_after]))


def test_steps_are_those_of_the_trainer():
    """The trainer's first steps, at its rates, are the lens's at theirs: one optimiser."""
    items = prepare_items(Corpus("tiny", tiny.ITEMS, "MIT", "made up"))
    sizes = {"d_model": 8, "n_head": 2, "context_length": 8, "steps": 10**6}
    trainer = GPTTrainer(TrainConfig.of("microgpt", lr=RATE, **sizes), items)
    start = MicroGPTModel(
        trainer.model_config, {k: v.copy() for k, v in trainer.network.weights.items()}
    )
    texts = [trainer.document(step) for step in range(4)]
    for _ in range(4):
        trainer.one_step()
    *earlier, last = texts
    probe = items.vocabulary.probe(last, 8)
    result = training_step(start, items.vocabulary, probe, earlier=earlier, rate=RATE)
    assert [*result.earlier, result.loss] == pytest.approx(trainer.losses, rel=1e-6)
    for each in (*result.row, *result.largest):
        now = trainer.network.weights[each.matrix][each.row, each.column]
        assert each.after == pytest.approx(now, rel=1e-5)


def test_shared_weights_are_untouched():
    before = {name: array.copy() for name, array in CHAR.model.weights.items()}
    once = taken(earlier=("eva", "adam"), rate=0.1)
    zeroing(CHAR.model, LETTERS, names=("eva", "adam"), steps=5, rate=0.1)
    for name, array in before.items():
        np.testing.assert_array_equal(CHAR.model.weights[name], array)
        assert not CHAR.model.weights[name].flags.writeable
    assert taken(earlier=("eva", "adam"), rate=0.1) == once
    with pytest.raises(dataclasses.FrozenInstanceError):
        once.loss = 0.0


@pytest.mark.parametrize("rate", [0.0, -1.0, 1.5, math.nan, math.inf])
def test_a_rate_out_of_range_is_refused(rate):
    with pytest.raises(ConfigError, match="above 0 and at most 1"):
        taken(rate=rate)
    with pytest.raises(ConfigError, match="above 0 and at most 1"):
        zeroing(CHAR.model, LETTERS, names=("eva",), rate=rate)


def test_the_largest_rate_for_the_most_steps_stays_finite():
    result = taken(earlier=("nina",) * MOST_STEPS, rate=1.0)
    assert math.isfinite(result.loss_after)
    with pytest.raises(ConfigError, match="start again"):
        taken(earlier=("nina",) * (MOST_STEPS + 1))


def test_other_models_and_unknown_letters_are_refused(checkpoints, probe, vocabulary):
    with pytest.raises(CheckpointError, match="for microgpt alone"):
        training_step(checkpoints["attention"].model, vocabulary, probe)
    with pytest.raises(TextError, match="character 1"):
        taken(earlier=("zoe",))


def test_a_microgpt_of_words_takes_steps_too(checkpoints, probe, vocabulary):
    result = training_step(checkpoints["microgpt"].model, vocabulary, probe, rate=1e-4)
    assert result.forward[-1].target == "<EOS>"
    assert result.loss_after < result.loss


def test_the_answer_is_json_and_says_the_fall():
    result = taken()
    said = json.loads(json.dumps(answers.of_training_step(result), allow_nan=False))
    assert said["fell_by"] == pytest.approx(result.loss - result.loss_after)
    assert said["forward"][0]["read"] == "<BOS>"
    assert [each["column"] for each in said["row"]] == list(range(CHAR.model.config.d_model))
    assert [each["matrix"] for each in said["largest"]] == list(CHAR.model.config.shapes)
    assert [matrix["name"] for matrix in said["matrices"]] == list(CHAR.model.config.shapes)


# -- zeroing left out

NAMES = ("nina", "adam", "vera")


def test_zeroed_training_is_a_walk_of_steps():
    result = zeroing(CHAR.model, LETTERS, names=NAMES, steps=7, rate=RATE)
    assert result.steps == (0, 5, 7)
    assert len(result.zeroed) == len(result.kept) == 3
    assert len(result.zeroed_norms) == len(result.kept_norms) == 7
    assert result.floor == prepare_items(Corpus("own", NAMES, "MIT", "")).floor(8)
    path = [NAMES[i % 3] for i in range(7)]
    last = taken(path[-1], earlier=path[:-1])
    norm = math.hypot(*(matrix.norm for matrix in last.matrices))
    assert result.zeroed_norms[-1] == pytest.approx(norm)
    start = [mean_loss(CHAR.model, name) for name in NAMES]
    assert result.zeroed[0] == result.kept[0] == pytest.approx(np.mean(start))
    after = [taken(name, earlier=path[:5]).loss for name in NAMES]
    assert result.zeroed[1] == pytest.approx(np.mean(after))
    after = [taken(name, earlier=path).loss for name in NAMES]
    assert result.zeroed[2] == pytest.approx(np.mean(after))


def test_a_model_that_is_too_large_is_refused_before_any_step(monkeypatch):
    numbers = sum(array.size for array in CHAR.model.weights.values())
    monkeypatch.setattr("wordlm_core.lens.training_step.MOST_WORK", 6 * numbers)
    assert len(zeroing(CHAR.model, LETTERS, names=NAMES, steps=6).kept_norms) == 6
    with pytest.raises(ConfigError, match=f"7 steps of {numbers:,} numbers each"):
        zeroing(CHAR.model, LETTERS, names=NAMES, steps=7)


def test_without_zeroing_the_first_step_is_equal_and_later_gradients_are_sums():
    one = zeroing(CHAR.model, LETTERS, names=NAMES, steps=1, rate=RATE)
    assert one.kept[1] == one.zeroed[1] != one.zeroed[0]
    result = zeroing(CHAR.model, LETTERS, names=NAMES, steps=3, rate=1e-9)
    assert result.kept_norms[0] == result.zeroed_norms[0]
    # At a rate of almost nothing the model stands still: the sum is of known gradients.
    model = CHAR.model
    total = np.zeros(sum(array.size for array in model.weights.values()))
    for name in NAMES:
        flat = np.zeros_like(total)
        gradient = microgpt.as_network(model.config, flat)
        loss_of(model.network, np.append(read(name).ids, LETTERS.end_id), gradient)
        total += flat
    assert result.kept_norms[-1] == pytest.approx(np.linalg.norm(total), rel=1e-5)


@pytest.mark.parametrize("steps", [0, -1, MOST_STEPS + 1])
def test_a_number_of_steps_out_of_range_is_refused(steps):
    with pytest.raises(ConfigError, match="number of steps"):
        zeroing(CHAR.model, LETTERS, names=NAMES, steps=steps)


def test_lists_that_cannot_be_trained_on_are_refused(checkpoints, vocabulary):
    with pytest.raises(CorpusError, match="0 items"):
        zeroing(CHAR.model, LETTERS, names=("", " "))
    with pytest.raises(ConfigError, match="up to 40 items"):
        zeroing(CHAR.model, LETTERS, names=("eva",) * (MOST_NAMES + 1))
    with pytest.raises(TextError, match="character 1"):
        zeroing(CHAR.model, LETTERS, names=("eva", "zoe"))
    with pytest.raises(CheckpointError, match="for microgpt alone"):
        zeroing(checkpoints["mlp"].model, vocabulary, names=("the cat",))
