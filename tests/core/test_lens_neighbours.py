"""Neighbours: cosine lists without surprises, and their history."""

import dataclasses
import math

import numpy as np
import pytest

from tests import tiny
from tests.core import oracle
from wordlm_core.errors import ConfigError, TextError
from wordlm_core.lens.neighbours import cosine, history, nearest, nearest_to, similarity
from wordlm_core.text import FIRST_LEXICAL_ID, SPECIALS
from wordlm_core.vocabulary import WordVocabulary

LEXICAL = range(FIRST_LEXICAL_ID, len(tiny.VOCABULARY))


def test_lists_equal_the_oracle(checkpoint, vocabulary):
    for label in checkpoint.steps:
        table = checkpoint.embedding_at(label)
        for word_id in LEXICAL:
            found = nearest(table, vocabulary, word_id)
            others = [i for i in LEXICAL if i != word_id]
            expected = oracle.nearest(table[word_id], table, others)[:8]
            assert found.word == vocabulary.itos[word_id]
            assert [item.id for item in found.items] == [i for i, _ in expected]
            assert [item.token for item in found.items] == [vocabulary.itos[i] for i, _ in expected]
            assert [item.cosine for item in found.items] == pytest.approx([c for _, c in expected])


def test_by_hand():
    vocabulary = WordVocabulary((*SPECIALS, "east", "far_east", "north", "west", "between"), {})
    table = np.array([[1, 0]] * 5 + [[9, 0], [0, 2], [-1, 0], [3, 3]], np.float32)
    found = nearest(table, vocabulary, 4)
    assert [(item.token, item.cosine) for item in found.items] == [
        ("far_east", 1.0),
        ("between", pytest.approx(1 / math.sqrt(2))),
        ("north", 0.0),
        ("west", -1.0),
    ]


def test_self_and_specials_are_left_out_and_a_long_list_is_cut(checkpoint, vocabulary):
    table = checkpoint.embedding_at(None)
    found = nearest(table, vocabulary, 5, top=1000)
    assert len(found.items) == len(LEXICAL) - 1
    assert not {item.token for item in found.items} & {*SPECIALS, "cat"}
    with pytest.raises(ConfigError, match="not 0"):
        nearest(table, vocabulary, 5, top=0)


def test_rows_without_a_direction_are_left_out(checkpoints, vocabulary):
    table = checkpoints["attention"].embedding_at(None).copy()
    table[7], table[8] = 0, 1e-30
    found = nearest(table, vocabulary, 5, top=1000)
    assert not {7, 8} & {item.id for item in found.items}
    assert all(math.isfinite(item.cosine) for item in found.items)
    for word_id, word in ((7, "dog"), (8, "and")):
        with pytest.raises(TextError, match=f"the row of '{word}' is zero"):
            nearest(table, vocabulary, word_id)
    assert nearest_to(np.zeros(tiny.WIDTH, np.float32), table, vocabulary) == ()


def test_half_precision_tables_are_compared_in_full(checkpoints, vocabulary):
    table = checkpoints["attention"].embedding_at(None) * 300
    half = table.astype(np.float16)
    assert nearest(half, vocabulary, 5).items[0].cosine == pytest.approx(
        nearest(table, vocabulary, 5).items[0].cosine, abs=1e-2
    )


def test_any_vector_may_be_asked_for(checkpoints, vocabulary):
    table = checkpoints["attention"].embedding_at(None)
    first = nearest_to(table[5], table, vocabulary, 3)[0]
    assert (first.id, first.token, first.cosine) == (5, "cat", pytest.approx(1))
    assert 5 not in {n.id for n in nearest_to(table[5], table, vocabulary, 3, exclude=(5,))}


def test_cosine_known_values():
    a, b, zero = np.array([3.0, 4.0]), np.array([-4.0, 3.0]), np.zeros(2)
    assert cosine(a, a) == 1
    assert cosine(a, -a) == -1
    assert cosine(a, b) == 0
    assert cosine(a, zero) == 0
    rng = np.random.default_rng(0)
    for first, second in rng.normal(size=(20, 2, 6)):
        assert cosine(first, first) == 1
        assert cosine(first, second) == pytest.approx(oracle.cosine(first, second))


# -- history


def test_history_lists_equal_each_steps_own(checkpoint, vocabulary):
    found = history(checkpoint, 5, top=4)
    assert found.word == "cat"
    assert [(step.label, step.step) for step in found.steps] == list(
        zip(tiny.STEPS, (0, 10, 20), strict=True)
    )
    for step in found.steps:
        table = checkpoint.embedding_at(step.label)
        assert step.items == nearest(table, vocabulary, 5, top=4).items


def test_history_says_who_joined_and_who_left(checkpoints):
    source = checkpoints["attention"]
    tables = {}
    for step, near in ((0, [6, 7]), (5, [6, 7]), (9, [7, 8])):
        table = np.zeros_like(source.embeddings["step_0"])
        table[4:, 1] = 1
        table[[5, *near]] = [1] + [0] * (tiny.WIDTH - 1)
        tables[f"step_{step}"] = table
    found = history(dataclasses.replace(source, embeddings=tables), 5, top=2)
    assert [(step.step, step.joined, step.left) for step in found.steps] == [
        (0, (), ()),
        (5, (), ()),
        (9, ("and",), ("saw",)),
    ]


def test_history_passes_over_a_row_that_is_zero_at_first(checkpoints):
    source = checkpoints["attention"]
    tables = {**source.embeddings, "step_0": np.zeros_like(source.embeddings["step_0"])}
    first, second, *_ = history(dataclasses.replace(source, embeddings=tables), 5, top=3).steps
    assert first.items == ()
    assert len(second.joined) == 3


def test_history_of_a_file_without_steps_is_empty(checkpoints):
    bare = dataclasses.replace(checkpoints["attention"], embeddings={})
    assert history(bare, 5).steps == ()


def test_similarity_is_each_with_each(checkpoint, vocabulary):
    table, ids = checkpoint.embedding_at(None), [9, 4, 7]
    found = similarity(table, vocabulary, ids)
    assert found.tokens == tuple(vocabulary.itos[i] for i in ids)
    expected = [[oracle.cosine(table[a], table[b]) for b in ids] for a in ids]
    np.testing.assert_allclose(found.cosines, expected, atol=1e-9)
    np.testing.assert_array_equal(found.cosines, found.cosines.T)
    assert np.diag(found.cosines).tolist() == [1.0] * 3


def test_a_zero_row_is_similar_to_nothing(checkpoint, vocabulary):
    table = np.array(checkpoint.embedding_at(None))
    table[5] = 0
    assert similarity(table, vocabulary, [4, 5]).cosines.tolist() == [[1, 0], [0, 0]]
