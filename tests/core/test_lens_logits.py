"""Logit view: differences of logits, and sums over hidden units."""

import numpy as np
import pytest

from tests import tiny
from tests.core import oracle
from wordlm_core.errors import CheckpointError, TextError
from wordlm_core.lens.logits import Push, logit_view

POSITIONS = [-1, 0, 4]


def check(push: Push, shifts: np.ndarray, top: int = 8) -> None:
    expected = shifts - sum(shifts) / len(shifts)
    order = np.argsort(-expected)
    itos = tiny.VOCABULARY.itos
    for shown, ids in ((push.promoted, order[:top]), (push.pushed_down, order[::-1][:top])):
        assert [shift.token for shift in shown] == [itos[i] for i in ids]
        np.testing.assert_allclose(
            [shift.logit for shift in shown], expected[ids], rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("position", POSITIONS)
def test_attention_and_heads_equal_the_oracle(attention_model, vocabulary, probe, position):
    view = logit_view(attention_model, vocabulary, probe, position)
    heads = list(np.ndindex(attention_model.n_layer, attention_model.n_head))
    whole = oracle.forward(attention_model, probe.ids).logits[position]
    none = oracle.forward(attention_model, probe.ids, heads).logits[position]
    check(view.attention, whole - none)
    assert [(push.layer, push.head) for push in view.heads] == heads
    for index, head in enumerate(heads):
        without = oracle.forward(attention_model, probe.ids, [head]).logits[position]
        check(view.heads[index].push, whole - without)


@pytest.mark.parametrize("position", POSITIONS)
def test_mlp_and_neurons_equal_the_oracle(model, vocabulary, probe, position):
    view = logit_view(model, vocabulary, probe, position)
    hidden = oracle.forward(model, probe.ids).hidden[position]
    columns = oracle.hidden_columns(model)
    check(view.mlp, columns @ hidden)
    strength = [h * np.std(columns[:, i]) for i, h in enumerate(hidden)]
    order = [i for i in np.argsort(strength)[::-1] if hidden[i] > 0][:8]
    assert [neuron.index for neuron in view.neurons] == order
    for neuron in view.neurons:
        assert neuron.activation == pytest.approx(hidden[neuron.index], rel=1e-9, abs=1e-9)
        check(neuron.push, hidden[neuron.index] * columns[:, neuron.index])


@pytest.mark.parametrize("case", tiny.WORD_MODELS)
def test_with_the_bias_the_units_sum_to_the_logits_up_to_a_constant(
    case, checkpoints, vocabulary, probe
):
    model = checkpoints[case].model
    view = logit_view(model, vocabulary, probe, top=len(vocabulary))
    bias = dict(zip(vocabulary.itos, model.weights["vocab_head.bias"], strict=True))
    logits = dict(zip(vocabulary.itos, oracle.last_logits(model, probe.ids), strict=True))
    rest = [logits[s.token] - bias[s.token] - s.logit for s in view.mlp.promoted]
    assert np.ptp(rest) == pytest.approx(0, abs=1e-9)


def test_shifts_are_centred_so_that_promoted_means_more_than_others(model, vocabulary, probe):
    view = logit_view(model, vocabulary, probe, top=len(vocabulary))
    for push in (view.attention, view.mlp, *(head.push for head in view.heads)):
        if push is not None:
            assert sum(shift.logit for shift in push.promoted) == pytest.approx(0, abs=1e-9)
            assert push.promoted[0].logit > 0 > push.pushed_down[0].logit


def test_numbers_that_overflow_are_refused(mlp, vocabulary, probe):
    weights = {name: array * 1e200 for name, array in mlp.weights.items()}
    with pytest.raises(CheckpointError, match="numbers overflow"):
        logit_view(type(mlp)(mlp.config, weights), vocabulary, probe)


def test_the_only_head_is_all_of_attention(checkpoints, vocabulary, probe):
    view = logit_view(checkpoints["attention"].model, vocabulary, probe)
    assert [s.token for s in view.heads[0].push.promoted] == [
        s.token for s in view.attention.promoted
    ]


def test_the_mlp_family_has_no_attention_part(mlp, vocabulary, probe):
    view = logit_view(mlp, vocabulary, probe)
    assert view.attention is None
    assert view.heads == ()


def test_positions(model, vocabulary, probe):
    assert logit_view(model, vocabulary, probe).position == len(probe.ids) - 1
    assert logit_view(model, vocabulary, probe).tokens == probe.tokens
    with pytest.raises(TextError, match="no position 9"):
        logit_view(model, vocabulary, probe, 9)
