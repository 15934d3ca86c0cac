"""The scalar autograd: against central differences, against torch, and what += means."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from wordlm_core.autograd import Value, in_order, zero_grad
from wordlm_core.errors import ConfigError

# What makes a number, and the same for torch's float64 scalars.
ONE = {
    "neg": (lambda x: -x, lambda x: -x),
    "exp": (Value.exp, torch.exp),
    "log": (lambda x: (x * x + 0.5).log(), lambda x: torch.log(x * x + 0.5)),
    "relu": (Value.relu, torch.relu),
    "square": (lambda x: x**2, lambda x: x**2),
    "cube": (lambda x: x**3, lambda x: x**3),
    "root": (lambda x: (x * x + 1) ** 0.5, lambda x: (x * x + 1) ** 0.5),
    "reciprocal": (lambda x: x**-1, lambda x: x**-1),
    "to the power of 0": (lambda x: x**0 * 3, lambda x: x**0 * 3),
    "+ 3": (lambda x: x + 3, lambda x: x + 3),
    "3 +": (lambda x: 3 + x, lambda x: 3 + x),
    "- 3": (lambda x: x - 3, lambda x: x - 3),
    "3 -": (lambda x: 3 - x, lambda x: 3 - x),
    "* 3": (lambda x: x * 3, lambda x: x * 3),
    "3 *": (lambda x: 3 * x, lambda x: 3 * x),
    "/ 3": (lambda x: x / 3, lambda x: x / 3),
    "3 /": (lambda x: 3 / x, lambda x: 3 / x),
    "3 **": (lambda x: 3**x, lambda x: 3**x),
    "used three times": (lambda x: x * x + x, lambda x: x * x + x),
}
TWO = {
    "+": (lambda x, y: x + y,) * 2,
    "-": (lambda x, y: x - y,) * 2,
    "*": (lambda x, y: x * y,) * 2,
    "/": (lambda x, y: x / y,) * 2,
    "both twice": (lambda x, y: (x * y + x) ** 2 * y,) * 2,
}
NUMBERS = (-2.5, -1.0, -0.3, 0.4, 1.0, 3.25)


def slope(function, *at: float, of: int = 0) -> float:
    """Return the central difference of a function of Values in one of its arguments."""
    step = 1e-6
    ends = []
    for sign in (1, -1):
        moved = [x + sign * step * (i == of) for i, x in enumerate(at)]
        ends.append(function(*map(Value, moved)).data)
    return (ends[0] - ends[1]) / (2 * step)


@pytest.mark.parametrize("x", NUMBERS)
@pytest.mark.parametrize(("ours", "theirs"), ONE.values(), ids=ONE)
def test_one_argument(ours, theirs, x):
    value, tensor = Value(x), torch.tensor(x, dtype=torch.float64, requires_grad=True)
    result, expected = ours(value), theirs(tensor)
    result.backward()
    expected.backward()
    assert result.data == pytest.approx(expected.item(), rel=1e-14)
    assert value.grad == pytest.approx(tensor.grad.item(), rel=1e-13)
    assert value.grad == pytest.approx(slope(ours, x), rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("x", NUMBERS)
@pytest.mark.parametrize("y", NUMBERS)
@pytest.mark.parametrize(("ours", "theirs"), TWO.values(), ids=TWO)
def test_two_arguments(ours, theirs, x, y):
    values = [Value(x), Value(y)]
    tensors = [torch.tensor(n, dtype=torch.float64, requires_grad=True) for n in (x, y)]
    ours(*values).backward()
    theirs(*tensors).backward()
    for of, (value, tensor) in enumerate(zip(values, tensors, strict=True)):
        assert value.grad == pytest.approx(tensor.grad.item(), rel=1e-13)
        assert value.grad == pytest.approx(slope(ours, x, y, of=of), rel=1e-6, abs=1e-7)


def test_the_example_of_the_module():
    a, b, c = Value(2), Value(-3), Value(10)
    result = (a * b + c) ** 2
    result.backward()
    assert (result.data, a.grad, b.grad, c.grad) == (16, -24, 16, 8)
    assert repr(a) == "Value(data=2, grad=-24)"


def test_a_node_receives_from_each_of_its_uses():
    a = Value(5)
    (a * a + a).backward()
    assert a.grad == 5 + 5 + 1


def test_relu_has_slope_0_at_0():
    a = Value(0)
    a.relu().backward()
    assert a.grad == 0


def test_sum_needs_no_start():
    parts = [Value(n) for n in (1, 2, 3)]
    total = sum(parts)
    total.backward()
    assert (total.data, [part.grad for part in parts]) == (6, [1, 1, 1])


def test_children_come_before_parents_once_each():
    a, b = Value(1), Value(2)
    shared = a * b
    order = in_order(shared + shared * a)
    assert len(order) == len(set(order)) == 5
    for place, node in enumerate(order):
        assert all(child in order[:place] for child in node.children)


@pytest.mark.parametrize("length", [5_000, 20_000])
def test_a_deep_graph_has_no_end_of_recursion(length):
    a = Value(0.5)
    result = a
    for _ in range(length):
        result = result + 1
    result.backward()
    assert (result.data, a.grad) == (length + 0.5, 1)


# -- += and zeroing


@pytest.mark.parametrize("calls", [1, 2, 3, 4])
@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_without_zeroing_inner_nodes_pass_on_what_they_have_added_up(calls, length):
    leaf = Value(1.5)
    result = leaf
    for _ in range(length):
        result = result * 2
    for _ in range(calls):
        result.backward()
    assert result.grad == 1
    assert leaf.grad == 2**length * math.comb(length + calls - 1, length)


def test_the_example_called_again_adds_and_after_zeroing_does_not():
    a, b, c = Value(2), Value(-3), Value(10)
    result = (a * b + c) ** 2
    result.backward()
    result.backward()
    assert (a.grad, b.grad, c.grad) == (-96, 64, 24)
    zero_grad(in_order(result))
    assert {node.grad for node in in_order(result)} == {0}
    result.backward()
    assert (a.grad, b.grad, c.grad) == (-24, 16, 8)


def test_a_new_graph_over_the_same_leaf_adds_exactly_its_own_gradient():
    weight = Value(3)
    for _ in range(2):
        (weight**2 * 0.5).backward()
    assert weight.grad == 3 + 3


@given(st.lists(st.floats(-2, 2), min_size=2, max_size=6))
def test_a_softmax_loss_has_the_textbook_gradient(logits):
    values = [Value(x) for x in logits]
    powers = [value.exp() for value in values]
    (-(powers[0] / sum(powers)).log()).backward()
    total = sum(math.exp(x) for x in logits)
    for i, value in enumerate(values):
        assert value.grad == pytest.approx(math.exp(logits[i]) / total - (i == 0), abs=1e-12)


# -- what has no answer


@pytest.mark.parametrize(
    ("compute", "sentence"),
    [
        (lambda x: x.log(), "log needs a number above 0, not 0"),
        (lambda x: (x - 1).log(), "log needs a number above 0, not -1"),
        (lambda x: 1 / x, "0 to the power of -1 is a division by zero"),
        (lambda x: (x + 1) / (x * 2), "division by zero"),
        (lambda x: x**-1, "division by zero"),
        (lambda x: x**0.5, "0 to the power of 0.5 has an infinite slope"),
        (lambda x: (x - 1) ** 0.5, "-1 to the power of 0.5 is no real number"),
        (lambda x: (x - 1) ** math.nan, "no real number"),
        (lambda x: (x + 1000).exp(), "exp of 1000 is too large"),
        (lambda x: (x + 10) ** (10**10), "too large"),
        (lambda x: (-2) ** x, "has to be above 0, not -2"),
        (lambda x: 10 ** (x + 1000), "too large"),
    ],
)
def test_what_has_no_answer_is_said_in_one_sentence(compute, sentence):
    with pytest.raises(ConfigError, match=sentence):
        compute(Value(0))
