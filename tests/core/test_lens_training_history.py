"""Training looked back on: the curve, a text through it, the letters, and a list's floor."""

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from tests import tiny
from wordlm_core.checkpoint import step_number
from wordlm_core.corpora import Corpus
from wordlm_core.errors import CheckpointError, ConfigError
from wordlm_core.items import prepare_items
from wordlm_core.lens.attention import attend
from wordlm_core.lens.training_history import curve, letters_map, through_training
from wordlm_core.lens.training_step import training_step
from wordlm_core.lens.trajectory import trajectory

CHAR = tiny.char_checkpoint()
LETTERS = tiny.LETTERS


def with_metadata(**changes):
    return dataclasses.replace(CHAR, metadata={**CHAR.metadata, **changes})


# -- the curve


def test_average_and_last_equal_plain_means():
    losses = np.random.default_rng(0).uniform(1, 4, 230)
    result = curve(with_metadata(loss_history=losses.tolist()))
    np.testing.assert_array_equal(result.losses, losses)
    expected = [losses[max(0, i - 49) : i + 1].mean() for i in range(230)]
    np.testing.assert_allclose(result.average, expected)
    assert result.last == pytest.approx(losses[130:].mean())
    assert result.uniform == pytest.approx(math.log(len(LETTERS)))
    assert result.floor is None


def test_the_floor_comes_from_the_file():
    assert curve(with_metadata(corpus={"floor": 1.25})).floor == 1.25


@pytest.mark.parametrize("floor", [None, "1.2", True, [1.0]])
@pytest.mark.parametrize("corpus", [dict, list])
def test_a_floor_that_is_no_number_is_none(corpus, floor):
    said = {"floor": floor} if corpus is dict else [floor]
    assert curve(with_metadata(corpus=said)).floor is None


@pytest.mark.parametrize("history", [None, [], "3.0", {"0": 3.0}, [3.0, None], [3.0, "2"], [True]])
def test_a_file_without_losses_is_refused(history):
    with pytest.raises(CheckpointError, match="does not hold the loss of every step"):
        curve(with_metadata(loss_history=history))


# -- a text through training


@pytest.mark.parametrize("layer", [0, 1])
def test_attention_and_loss_are_those_of_the_model_at_each_step(layer):
    deep = tiny.char_checkpoint(n_layer=2)
    probe = LETTERS.probe("ivan", 8)
    result = through_training(deep, LETTERS, probe, layer=layer)
    assert result.steps == tuple(map(step_number, tiny.STEPS))
    assert result.tokens == ("<BOS>", "i", "v", "a", "n")
    for index, label in enumerate(tiny.STEPS):
        model = deep.model_at(label)
        expected = attend(model, probe).weights[layer]
        np.testing.assert_allclose(result.attention[index], expected, atol=1e-12)
        assert result.losses[index] == pytest.approx(training_step(model, LETTERS, probe).loss)
    assert np.ptp(result.losses) > 0.01


def test_of_a_long_text_the_first_positions_are_as_in_the_whole_text():
    wide = tiny.char_checkpoint(context_length=40)
    probe = LETTERS.probe("anna" * 9, 40)
    result = through_training(wide, LETTERS, probe)
    assert result.tokens == probe.tokens[:32]
    whole = attend(wide.model, probe).weights[0]
    np.testing.assert_allclose(result.attention[-1], whole[:, :32, :32], atol=1e-12)


def test_many_steps_are_thinned_out_to_bounded_size(monkeypatch):
    monkeypatch.setattr("wordlm_core.lens.training_history._MOST_CELLS", 2 * 25 * 2)
    result = through_training(CHAR, LETTERS, LETTERS.probe("ivan", 8))
    assert result.steps == (0, 20)


def test_what_cannot_be_looked_back_on_is_refused(checkpoints, probe, vocabulary):
    one = LETTERS.probe("ivan", 8)
    with pytest.raises(ConfigError, match="no layer 1"):
        through_training(CHAR, LETTERS, one, layer=1)
    bare = dataclasses.replace(CHAR, embeddings={}, snapshots={})
    with pytest.raises(CheckpointError, match="at no step"):
        through_training(bare, LETTERS, one)
    with pytest.raises(CheckpointError, match="microgpt alone"):
        through_training(checkpoints["attention"], vocabulary, probe)


# -- letters


def test_letters_are_the_trajectory_of_every_character():
    result = letters_map(CHAR)
    letters = list(LETTERS.itos[:-1])
    expected = trajectory([CHAR], letters)
    assert result.trajectory.paths == expected.paths
    np.testing.assert_array_equal(result.trajectory.basis, expected.basis)
    assert [letters[i] for i, vowel in enumerate(result.vowels) if vowel] == ["a", "e", "i"]


def test_accents_are_vowels_too_and_blanks_are_letters():
    items = ("éa b", "Übo", "ыъ")
    vocabulary = prepare_items(Corpus("own", items, "MIT", "")).vocabulary
    other = tiny.char_checkpoint(vocab_size=len(vocabulary))
    result = letters_map(dataclasses.replace(other, vocabulary=vocabulary))
    words = [path.word for path in result.trajectory.paths]
    assert words == list(vocabulary.itos[:-1])
    assert {word for word, vowel in zip(words, result.vowels, strict=True) if vowel} == set("éaÜo")


def test_of_many_tokens_the_frequent_ones_are_drawn(monkeypatch):
    monkeypatch.setattr("wordlm_core.lens.training_history._MOST_TOKENS", 3)
    words = {path.word for path in letters_map(CHAR).trajectory.paths}
    counts = Counter(LETTERS.counts)
    assert sum(counts[word] for word in words) == sum(n for _, n in counts.most_common(3))


# -- a list's floor


def loss_by_beginnings(
    documents: Sequence[str], context: int, weights: Mapping[tuple[str, ...], float]
) -> float:
    """Return the mean over items of the mean loss of a model that knows beginnings by heart.

    After a beginning it expects each next token by the weight of the items that go on so.
    """
    items = [(*text, "end")[:context] for text in documents]
    mass: Counter[tuple[str, ...]] = Counter()
    for item, weight in weights.items():
        mass.update({item[:length]: weight for length in range(len(item) + 1)})
    losses = [
        [-math.log(mass[item[: n + 1]] / mass[item[:n]]) for n in range(len(item))]
        for item in items
    ]
    return sum(sum(each) / len(each) for each in losses) / len(losses)


@pytest.mark.parametrize("context", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize(
    "documents",
    [
        tiny.ITEMS,
        ("anna", "anna", "ann", "an", "annabel", "eva"),
        ("abcdefgh", "abcdefgh", "abcdefgx", "abcd"),
    ],
)
def test_the_floor_is_reached_by_heart_and_by_nothing_else(documents, context):
    floor = prepare_items(Corpus("own", documents, "MIT", "")).floor(context)
    best = Counter((*text, "end")[:context] for text in documents)
    best = {item: count / len(item) for item, count in best.items()}
    assert loss_by_beginnings(documents, context, best) == pytest.approx(floor, abs=1e-12)
    rng = np.random.default_rng(1)
    for _ in range(50):
        other = {item: weight * rng.lognormal(0, 0.3) for item, weight in best.items()}
        assert loss_by_beginnings(documents, context, other) >= floor - 1e-12


def test_one_item_alone_has_a_floor_of_0():
    assert prepare_items(Corpus("own", ("anna",) * 3, "MIT", "")).floor(16) == 0


def test_unknown_words_are_one_token_in_the_floor():
    corpus = Corpus("own", ("the cat", "the dog", "the cat"), "MIT", "")
    items = prepare_items(corpus, tokens="word", min_freq=2)
    assert items.floor(8) == pytest.approx(math.log(3) * 1 / 9 + math.log(1.5) * 2 / 9)
    rare = prepare_items(corpus, tokens="word", min_freq=3)  # cat and dog are <UNK>
    assert rare.floor(8) == 0
