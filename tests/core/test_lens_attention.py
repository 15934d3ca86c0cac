"""Attention: the picture is the computation."""

import math

import numpy as np
import pytest

from tests import tiny
from tests.core import oracle
from wordlm_core.errors import CheckpointError, ConfigError, TextError
from wordlm_core.lens.attention import attend, row_steps
from wordlm_core.models.attention import AttentionConfig, AttentionModel
from wordlm_core.text import SPECIALS
from wordlm_core.vocabulary import Vocabulary, WordVocabulary


def test_weights_equal_the_oracle(attention_model, any_probe):
    result = attend(attention_model, any_probe)
    expected = oracle.forward(attention_model, any_probe.ids).attention
    np.testing.assert_allclose(result.weights, expected, rtol=1e-9, atol=1e-9)


def test_rows_sum_to_one_and_no_query_sees_the_future(attention_model, probe):
    weights = attend(attention_model, probe).weights
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-6)
    assert (weights >= 0).all()
    assert (np.triu(weights, k=1) == 0).all()


def test_a_label_a_row_and_a_column_even_where_words_repeat(attention_model, probe):
    result = attend(attention_model, probe)
    assert result.tokens == ("<BOS>", "the", "cat", "saw", "the", "dog", "and", "the", "<UNK>")
    assert result.weights.shape == (attention_model.n_layer, attention_model.n_head, 9, 9)
    last = result.weights[0, :, -1]
    assert np.allclose(last[:, 1], last[:, 4]) == (not attention_model.config.positions)


def test_a_cropped_text_is_labelled_by_the_tokens_that_were_kept(attention_model, cropped):
    result = attend(attention_model, cropped)
    assert cropped.dropped == 3
    assert " ".join(result.tokens) == "saw the dog and the bird ran to the park"
    assert result.weights.shape[2:] == (10, 10)


def test_one_token_looks_at_itself(attention_model, vocabulary):
    result = attend(attention_model, vocabulary.probe("dog", 1))
    shape = (attention_model.n_layer, attention_model.n_head, 1, 1)
    np.testing.assert_array_equal(result.weights, np.ones(shape))


def by_hand() -> tuple[AttentionModel, Vocabulary]:
    """One head, identity projections, no positions: q = k = v = the lookup row."""
    words = ("north", "east", "both", "zero")
    config = AttentionConfig(8, 4, 2, 1, 1, 2, 2, positions=False)
    weights = {name: np.zeros(shape) for name, shape in config.shapes.items()}
    weights["token_embedding.weight"][4:] = [[0, 1], [1, 0], [1, 1], [0, 0]]
    for name in ("W_Q", "W_K", "W_V", "W_O"):
        weights[f"{name}.weight"] = np.eye(2)
    return AttentionModel(config, weights), WordVocabulary((*SPECIALS, *words), {})


def test_a_case_by_hand():
    model, vocabulary = by_hand()
    weights = attend(model, vocabulary.probe("north east both", 4)).weights[0, 0]
    e = math.exp(1 / math.sqrt(2))
    expected = [
        [1, 0, 0, 0],
        [1 / (1 + e), e / (1 + e), 0, 0],
        [1 / (2 + e), 1 / (2 + e), e / (2 + e), 0],
        [1 / (1 + 2 * e + e * e), *[e / (1 + 2 * e + e * e)] * 2, e * e / (1 + 2 * e + e * e)],
    ]
    np.testing.assert_allclose(weights, expected, rtol=1e-6)


def test_row_steps_by_hand():
    model, vocabulary = by_hand()
    steps = row_steps(attend(model, vocabulary.probe("north both east", 4)).trace, 0, 0, 2)
    e, e2 = math.exp(1 / math.sqrt(2)), math.exp(2 / math.sqrt(2))
    whole = 1 + e + e2
    np.testing.assert_array_equal(steps.query_vector, [1, 1])
    np.testing.assert_array_equal(steps.keys, [[0, 0], [0, 1], [1, 1], [1, 0]])
    np.testing.assert_array_equal(steps.dots, [0, 1, 2, 1])
    np.testing.assert_allclose(steps.scaled, np.array([0, 1, 2, 1]) / math.sqrt(2), rtol=1e-6)
    np.testing.assert_array_equal(steps.masked, [False, False, False, True])
    np.testing.assert_allclose(steps.weights, [1 / whole, e / whole, e2 / whole, 0], rtol=1e-6)
    np.testing.assert_allclose(steps.mix, [e2 / whole, (e + e2) / whole], rtol=1e-6)
    np.testing.assert_allclose(steps.update, steps.mix, rtol=1e-6)


def test_row_steps_lead_from_the_query_to_the_picture(attention_model, probe):
    result = attend(attention_model, probe)
    width = result.trace.queries.shape[-1]
    expected = oracle.forward(attention_model, probe.ids).head_updates
    for layer, head in np.ndindex(attention_model.n_layer, attention_model.n_head):
        for query in (0, 4, len(probe.ids) - 1):
            steps = row_steps(result.trace, layer, head, query)
            np.testing.assert_allclose(steps.dots, steps.keys @ steps.query_vector, rtol=1e-6)
            np.testing.assert_allclose(steps.scaled * math.sqrt(width), steps.dots, rtol=1e-9)
            seen = oracle.softmax(steps.scaled[~steps.masked])
            np.testing.assert_allclose(steps.weights[~steps.masked], seen, rtol=1e-9)
            assert steps.masked.sum() == len(probe.ids) - 1 - query
            np.testing.assert_array_equal(steps.weights, result.weights[layer, head, query])
            update = expected[layer, head, query]
            np.testing.assert_allclose(steps.update, update, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(steps.mix, steps.weights @ steps.values, rtol=1e-6)


@pytest.mark.parametrize(
    ("place", "error", "message"),
    [
        ((1, 0, 0), ConfigError, "no layer 1, head 0"),
        ((0, 2, 0), ConfigError, "no layer 0, head 2"),
        ((0, -1, 0), ConfigError, "head -1"),
        ((0, 0, 9), TextError, "no position 9: the text has 9"),
        ((0, 0, -1), TextError, "no position -1"),
    ],
)
def test_places_that_do_not_exist(checkpoints, probe, place, error, message):
    trace = attend(checkpoints["uneven"].model, probe).trace
    with pytest.raises(error, match=message):
        row_steps(trace, *place)


def test_the_mlp_is_refused_in_a_sentence(mlp, probe):
    with pytest.raises(CheckpointError, match="the MLP has no attention"):
        attend(mlp, probe)
    with pytest.raises(CheckpointError, match="no attention"):
        row_steps(mlp.trace(probe.ids), 0, 0, 0)


def test_stored_steps_are_models_of_their_own(checkpoints, probe):
    checkpoint = checkpoints["multihead"]
    early, final = (
        attend(checkpoint.model_at(step), probe).weights for step in (0, tiny.STEPS[-1])
    )
    assert not np.allclose(early, final)
