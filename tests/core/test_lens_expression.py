"""Typed expressions: the numbers of Python, the += of the real Value, refusals in a sentence."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wordlm_core.autograd import Value
from wordlm_core.errors import ConfigError, TextError
from wordlm_core.lens import expression
from wordlm_core.lens.expression import NUDGE, evaluate

LETTERS = {"a": 2.0, "b": -3.0, "c": 10.0}
SQUARE = "(a*b + c)**2"


def relu(x: float) -> float:
    return max(0.0, x)


def of_python(text: str, letters: dict[str, float]) -> float:
    known = {"log": math.log, "exp": math.exp, "relu": relu, **letters}
    return float(eval(text, {"__builtins__": {}}, known))


def binary(sign: str):
    # Value divides by multiplying with a reciprocal, which rounds otherwise than Python's /.
    python = "*(%s)**-1" if sign == "/" else f"{sign}(%s)"
    return lambda two: (f"({two[0][0]}) {sign} ({two[1][0]})", f"({two[0][1]}){python % two[1][1]}")


def unary(form: str):
    return lambda inner: (form % inner[0], form % inner[1])


def grown(smaller):
    pairs = st.tuples(smaller, smaller)
    forms = ("-(%s)", "+(%s)", "log(%s)", "exp(%s)", "relu(%s)", "(%s)**2", "(%s)**-1", "(%s)**0.5")
    return st.one_of(
        *(st.builds(binary(sign), pairs) for sign in "+-*/"),
        *(st.builds(unary(form), smaller) for form in (*forms, "2**(%s)")),
    )


leaf = st.sampled_from(["a", "b", "c", "2", "0.5", "3.", ".25", "1e1"]).map(lambda t: (t, t))
number = st.integers(-8, 8).map(lambda n: n / 2)


@given(
    texts=st.recursive(leaf, grown, max_leaves=6),
    numbers=st.tuples(number, number, number),
    calls=st.integers(1, 3),
)
@settings(deadline=None, max_examples=300)
def test_any_expression_has_pythons_value_or_a_sentence(texts, numbers, calls):
    typed, python = texts
    letters = dict(zip("abc", numbers, strict=True))
    try:
        expected = of_python(python, letters)
    except (ArithmeticError, ValueError, TypeError):
        expected = math.nan
    refusal = result = None
    try:
        result = evaluate(typed, letters, calls)
    except TextError as error:
        refusal = str(error)
    if result is None:
        limits = ("infinite slope", "too large", "deep", "characters", "exponent at", "nodes")
        assert not math.isfinite(expected) or any(limit in refusal for limit in limits)
    else:
        assert result.result.data == expected
        check_backward(result)


def check_backward(result: expression.ExpressionResult) -> None:
    """Check that the passes, one by one, end in the grads that `backward` really left."""
    edges = sum(len(node.children) for node in result.nodes)
    assert len(result.passes) == edges * result.calls
    grads = [0.0] * len(result.nodes)
    for place, each in enumerate(result.passes):
        grads[-1] = 1.0
        assert each.before == grads[each.child]
        grads[each.child] += each.local_grad * each.upstream
        assert each.after == grads[each.child]
        assert each.upstream == grads[each.node]
        assert result.grads_at(place + 1) == tuple(grads)
    assert result.grads_at(len(result.passes)) == tuple(node.grad for node in result.nodes)
    for node in result.nodes:
        assert all(child < node.id for child in node.children)
        assert len(node.children) == len(node.local_grads)


# -- known values


def test_the_example():
    result = evaluate(SQUARE, LETTERS)
    assert result.result.data == 16
    assert result.grads == {"a": -24, "b": 16, "c": 8}
    assert [(node.name, node.formula, node.data, node.grad) for node in result.nodes] == [
        ("a", "", 2, -24),
        ("b", "", -3, 16),
        ("d", "a * b", -6, 8),
        ("c", "", 10, 8),
        ("e", "d + c", 4, 8),
        ("f", "e ** 2", 16, 1),
    ]
    first = result.passes[0]
    assert (first.node, first.child, first.local_grad, first.upstream) == (5, 4, 8, 1)
    assert (first.before, first.after) == (0, 8)
    assert result.grads_at(0) == (0,) * 6


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_calls_without_zeroing_are_those_of_the_real_value(calls):
    a, b, c = Value(2), Value(-3), Value(10)
    root = (a * b + c) ** 2
    for _ in range(calls):
        root.backward()
    result = evaluate(SQUARE, LETTERS, calls)
    assert result.grads == {"a": a.grad, "b": b.grad, "c": c.grad}
    assert [each.call for each in result.passes] == sorted([*range(1, calls + 1)] * 5)
    check_backward(result)


def test_a_letter_used_twice_is_one_node_that_receives_twice():
    result = evaluate("a*a", LETTERS)
    assert len(result.nodes) == 2
    assert [(each.child, each.after) for each in result.passes] == [(0, 2), (0, 4)]
    assert result.grads == {"a": 4, "b": 0, "c": 0}


def test_a_nudge_moves_the_result_by_about_what_the_slope_promises():
    for nudge in evaluate(SQUARE, LETTERS, calls=3).nudges:
        moved = {**LETTERS, nudge.letter: LETTERS[nudge.letter] + NUDGE}
        assert nudge.after == of_python(SQUARE, moved)
        assert nudge.change == nudge.after - 16
        assert nudge.change == pytest.approx(nudge.expected, rel=1e-3)


def test_a_nudge_to_where_there_is_no_value_says_so():
    result = evaluate("1/a + b", {"a": -NUDGE, "b": 1.0, "c": 0.0})
    assert [nudge.letter for nudge in result.nudges] == ["a", "b"]
    assert (result.nudges[0].after, result.nudges[0].change) == (None, None)
    assert result.nudges[1].after is not None


@pytest.mark.parametrize(("text", "grad"), [("a", 1), ("-a", -1), ("+a", 1), ("7", 0)])
def test_the_smallest_expressions(text, grad):
    result = evaluate(text, LETTERS)
    assert result.grads["a"] == grad
    assert result.grads_at(len(result.passes))[-1] == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a ** (1/2)", math.sqrt(2)),
        ("2 ** a", 4),
        ("-a**2", -4),
        ("a - -b", -1),
        (" a\n+\tb ", -1),
        ("log (exp(a))", 2),
        ("a**2**1", 4),
        ("c**0", 1),
        ("1e3 + 1.5E-1", 1000.15),
    ],
)
def test_pythons_notation(text, value):
    assert evaluate(text, LETTERS).result.data == pytest.approx(value, rel=1e-15)


def test_every_operation_says_how_it_is_made():
    text = "2**a + -b - 0.5/c + log(exp(relu(a))) + c**-1"
    formulas = [node.formula for node in evaluate(text, LETTERS).nodes if node.children]
    assert formulas == [
        *("2 ** a", "-b", "d + e", "c ** -1", "0.5 * g", "-h", "f + i"),
        *("relu(a)", "exp(k)", "log(m)", "j + n", "c ** -1", "o + p"),
    ]


def test_names_of_many_nodes_are_all_different():
    result = evaluate("+".join("a" * 16), LETTERS)
    assert len({node.name for node in result.nodes}) == len(result.nodes) == 16


# -- what is refused


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "type an expression"),
        (" \n ", "type an expression"),
        ("__import__('os')", "“__import__” at place 1"),
        ("a.b", "“.” at place 2"),
        ("a.__class__", "“.” at place 2"),
        ("lambda: 1", "“lambda” at place 1"),
        ("[a for a in b]", "“\\[” at place 1"),
        ("a if b else c", "“if” at place 3"),
        ("a; b", "“;” at place 2"),
        ("a := 3", "“:” at place 3"),
        ("a == b", "“=” at place 3"),
        ("'a'", "“'” at place 1"),
        ("a\x00b", "at place 2"),
        ("a # b", "“#” at place 3"),
        ("a + d", "“d” at place 5"),
        ("A", "“A” at place 1"),
        ("exec(a)", "“exec” at place 1"),
        ("sin(a)", "“sin” at place 1"),
        ("a × b", "“×” at place 3"),  # noqa: RUF001
        ("a\u00b2", "at place 1"),
        ("\u0430", "at place 1"),  # Cyrillic a
        ("2a", "missing before place 2: write 2\\*a"),
        ("2(a)", "missing before place 2"),
        ("1..2", "missing before place 3"),
        ("0x1f", "“x1f” at place 2"),
        ("1if a", "“if” at place 2"),
        ("a b", "cannot be read at place 3"),
        ("a +", "cannot be read at place"),
        ("(a", "cannot be read at place 1"),
        ("a)", "cannot be read at place 2"),
        ("007", "cannot be read at place"),
        ("()", "stands at place 1 cannot be computed"),
        ("a(b)", "stands at place 1 cannot be computed"),
        ("a + log", "stands at place 5 cannot be computed"),
        ("log()", "stands at place 1 cannot be computed"),
        ("log(*a)", "cannot be computed"),
        ("log(**a)", "cannot be computed"),
        ("a // b", "stands at place 1 cannot be computed"),
        ("10**10**10", "exponent at place 5 has to be a number from -20 to 20"),
        ("a**21", "exponent at place 4"),
        ("a**b", "write exp\\(b\\*log\\(a\\)\\)"),
        ("0**a", "to the power of a letter has to be above 0, not 0 \\(at place 1\\)"),
        ("a + (-2)**(b*c)", "to the power of a letter has to be above 0, not -2"),
        ("log(b)", "log needs a number above 0, not -3 \\(at place 1\\)"),
        ("c + a/(b + 3)", "division by zero \\(at place 5\\)"),
        ("0**-1", "division by zero"),
        ("b**0.5", "no real number"),
        ("(b + 3)**0.5", "infinite slope"),
        ("exp(1000)", "exp of 1000 is too large"),
        ("exp(exp(c)*c)", "too large"),
        ("1e308*10", "too large"),
        ("1e999", "too large"),
        ("1e999 - 1e999", "too large"),
        ("10**(c**3)", "too large"),
        ("1e-300**-1 * 1e-300**-1", "too large"),
        ("-" * 119 + "a", "up to 16 deep"),
        ("(" * 59 + "a" + ")" * 59 + "+b" * 2, "up to 120 characters"),
        ("(" * 5_000 + "a" + ")" * 5_000, "up to 120 characters"),
        ("9" * 5_000, "up to 120 characters"),
        ("(((a+1)*(b+2))+((c+3)*(a+4)))*(((b+5)*(c+6))+((a+7)*(b+8)))-(1+2)*(3+4)", "up to 32"),
    ],
)
def test_a_refusal_is_one_sentence_that_names_the_place(text, sentence):
    with pytest.raises(TextError, match=sentence) as refused:
        evaluate(text, LETTERS)
    assert "\n" not in str(refused.value)


def test_deep_brackets_are_fine_and_do_not_count():
    assert evaluate("(" * 55 + "a" + ")" * 55, LETTERS).result.data == 2


def test_a_gradient_without_end_is_refused():
    with pytest.raises(TextError, match="a gradient is too large"):
        evaluate("exp(c*70)*(a*1e10)*exp(b)", {"a": 1e-10, "b": 0.0, "c": 10.0})


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_letters_are_finite(number):
    with pytest.raises(TextError, match="b has to be a finite number"):
        evaluate("a", {**LETTERS, "b": number})


@pytest.mark.parametrize("calls", [0, -1, 6])
def test_the_number_of_calls_has_its_range(calls):
    with pytest.raises(ConfigError, match=f"1 to 5, not {calls}"):
        evaluate("a", LETTERS, calls)


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_a_call_is_over_after_its_last_edge(calls):
    result = evaluate("(a*b + c)**2", LETTERS, calls)
    over = [result.calls_over(step) for step in range(len(result.passes) + 1)]
    assert over == [step // 5 if step % 5 == 0 else 0 for step in range(5 * calls + 1)]
    assert evaluate("a", LETTERS, calls).calls_over(0) == calls
