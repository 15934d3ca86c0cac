"""A typed expression over a, b and c as a graph of Values: forward, then backward edge by edge.

What is typed is never run: it is cut into numbers, letters and signs, Python's own parser says
how they belong together, and a short list of what is allowed turns that into `Value`s.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wordlm_core.autograd import Number, Value, in_order, zero_grad
from wordlm_core.errors import ConfigError, TextError

LETTERS = ("a", "b", "c")
FUNCTIONS: Mapping[str, Callable[[Value], Value]] = {
    "log": Value.log,
    "exp": Value.exp,
    "relu": Value.relu,
}
NUDGE = 0.001
MAX_LENGTH, MAX_NODES, MAX_DEPTH, MAX_EXPONENT, MAX_CALLS = 120, 32, 16, 20, 5

_PIECE = re.compile(r"\s+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[A-Za-z_]\w*|[-+*/()]")
_MEANING = "use numbers, a, b, c, + - * / **, brackets, log(x), exp(x) and relu(x)"
_SIGNS: Mapping[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_NAMES = "defghijkmnopqrstuvwxyz"  # without l, which looks like 1


@dataclass(frozen=True)
class Node:
    """One Value of the graph.

    Attributes:
        id: Its place in the order of the forward pass: children come first.
        name: a, b or c; a number; or the next free letter for what an operation made.
        operation: What made it, as `Value` calls it; "" for a leaf.
        formula: The same with the names of its children: `a * b`; "" for a leaf.
        data: Its number.
        grad: After all the calls of `backward`.
        children: Ids of what it was made from.
        local_grads: d this / d child, one for each child.
    """

    id: int
    name: str
    operation: str
    formula: str
    data: float
    grad: float
    children: tuple[int, ...]
    local_grads: tuple[float, ...]


@dataclass(frozen=True)
class Pass:
    """One edge of one backward call: child.grad += local_grad * upstream.

    Attributes:
        call: Which call of `backward`, from 1.
        node: Id of the node that passes its grad on.
        child: Id of the node that receives.
        local_grad: d node / d child.
        upstream: The grad of the node.
        before: The grad of the child before.
        after: And after.
    """

    call: int
    node: int
    child: int
    local_grad: float
    upstream: float
    before: float
    after: float


@dataclass(frozen=True)
class Nudge:
    """What really happens to the result when one letter is moved by NUDGE.

    Attributes:
        letter: The letter.
        expected: Its gradient (of one call) times NUDGE: what the slope promises.
        after: The result, computed again; None where the expression has no value there.
        change: By how much it moved; None likewise.
    """

    letter: str
    expected: float
    after: float | None
    change: float | None


@dataclass(frozen=True)
class ExpressionResult:
    """An expression, forward and backward.

    Attributes:
        letters: The numbers put in for a, b and c.
        calls: How often `backward` was called without zeroing in between.
        nodes: In the order of the forward pass; the last one is the result.
        passes: Every edge of every call, in the order in which backward takes them.
        grads: Of a, b and c after the calls; 0 for a letter that does not occur.
        nudges: One for each letter that occurs.
    """

    letters: Mapping[str, float]
    calls: int
    nodes: tuple[Node, ...]
    passes: tuple[Pass, ...]
    grads: Mapping[str, float]
    nudges: tuple[Nudge, ...]

    @property
    def result(self) -> Node:
        """Return the last node."""
        return self.nodes[-1]

    def grads_at(self, step: int) -> tuple[float, ...]:
        """Return each node's grad after the first `step` passes; before any, all are 0."""
        grads = [0.0] * len(self.nodes)
        if step or not self.passes:
            grads[-1] = 1.0  # which is how a call begins
        for each in self.passes[:step]:
            grads[each.child] = each.after
        return tuple(grads)

    def calls_over(self, step: int) -> int:
        """Return how many calls are over after `step` passes; 0 in the middle of one."""
        if not self.passes:
            return self.calls
        calls, begun = divmod(step * self.calls, len(self.passes))
        return 0 if begun else calls


def evaluate(text: str, letters: Mapping[str, Number], calls: int = 1) -> ExpressionResult:
    """Compute an expression and its gradients, and check each gradient by a nudge.

    A gradient is a slope at these numbers: what a small change of one letter does to the
    result, per unit of change. It says nothing about large changes, which the nudge (an
    intervention: the letter is moved and all is computed again) would show.

    Args:
        text: Over a, b and c, in Python's notation.
        letters: A number for each of a, b and c.
        calls: How often to call `backward` without setting the grads back to 0, 1 to 5.

    Raises:
        TextError: The text is no such expression, too long, or has no finite value.
        ConfigError: The number of calls is out of range.
    """
    if not 1 <= calls <= MAX_CALLS:
        raise ConfigError(f"the number of backward calls has to be 1 to {MAX_CALLS}, not {calls}")
    leaves = {letter: Value(number) for letter, number in letters.items()}
    root = build(text, leaves)
    order = in_order(root)
    root.backward()
    _require_finite(order)
    used = [letter for letter in LETTERS if leaves[letter] in order]
    nudges = tuple(_nudge(text, leaves, letter, root) for letter in used)
    zero_grad(order)
    passes = tuple(each for call in range(1, calls + 1) for each in _backward(order, call))
    _require_finite(order)
    return ExpressionResult(
        letters={letter: leaf.data for letter, leaf in leaves.items()},
        calls=calls,
        nodes=_nodes(order, leaves),
        passes=passes,
        grads={letter: leaf.grad for letter, leaf in leaves.items()},
        nudges=nudges,
    )


def build(text: str, letters: Mapping[str, Value]) -> Value:
    """Return the Value of an expression, made from the Values of its letters.

    Args:
        text: The expression.
        letters: A Value for each of a, b and c.

    Raises:
        TextError: The text is no such expression, or has no finite value.
    """
    for letter in LETTERS:
        if not math.isfinite(letters[letter].data):
            raise TextError(f"{letter} has to be a finite number")
    root = _Builder(letters).value(_parse(text))
    order = in_order(root)
    if len(order) > MAX_NODES:
        raise TextError(f"the graph has {len(order)} nodes and can be drawn with up to {MAX_NODES}")
    return root


# -- from text to Values


def _parse(typed: str) -> ast.expr:
    """Return Python's reading of a text that holds nothing but allowed pieces."""
    text = re.sub(r"\s", " ", typed[: MAX_LENGTH + 1]).strip()
    if not text:
        raise TextError(f"type an expression such as (a*b + c)**2: {_MEANING}")
    if len(text) > MAX_LENGTH:
        raise TextError(f"an expression can have up to {MAX_LENGTH} characters")
    _require_pieces(text)
    try:
        parsed = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        place = min(error.offset or len(text), len(text))
        raise TextError(
            f"the expression cannot be read at place {place}: see whether a sign, a number or a "
            "bracket is missing there"
        ) from None
    if _depth(parsed) > MAX_DEPTH:
        raise TextError(f"operations can stand inside each other up to {MAX_DEPTH} deep")
    return parsed


def _require_pieces(text: str) -> None:
    """Let only numbers, known names and signs through, so that no other syntax gets further."""
    place, number_before = 0, False
    while place < len(text):
        found = _PIECE.match(text, place)
        piece = found[0] if found else text[place]
        is_name = piece[0].isalpha() or piece[0] == "_"
        if found is None or (is_name and piece not in (*LETTERS, *FUNCTIONS)):
            raise TextError(f"“{piece}” at place {place + 1} has no meaning here: {_MEANING}")
        is_number = piece[0].isdigit() or piece[0] == "."
        if number_before and (is_name or is_number or piece == "("):
            raise TextError(f"a sign is missing before place {place + 1}: write 2*a, not 2a")
        number_before = is_number
        place += len(piece)


def _depth(tree: ast.AST) -> int:
    """Return how deep expressions are nested, counted level by level."""
    depth, level = 0, [tree]
    while level:
        depth += 1
        level = [
            child
            for node in level
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.expr)
        ]
    return depth


class _Builder:
    """Turns a parsed expression into Values; whatever is not on its list is refused."""

    def __init__(self, letters: Mapping[str, Value]) -> None:
        self.letters = letters

    def value(self, node: ast.expr) -> Value:
        try:
            made = self._made(node)
        except ConfigError as error:
            raise TextError(f"{error} (at place {node.col_offset + 1})") from None
        if not math.isfinite(made.data):
            raise TextError(f"what begins at place {node.col_offset + 1} is too large a number")
        return made

    def _made(self, node: ast.expr) -> Value:
        match node:
            case ast.Name(id=letter) if letter in self.letters:
                return self.letters[letter]
            case ast.Constant(value=int() | float() as number):
                return Value(number)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                inner = self.value(operand)
                return -inner if isinstance(sign, ast.USub) else inner
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self._power(left, right)
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SIGNS:
                return _SIGNS[type(sign)](self.value(left), self.value(right))
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if (
                name in FUNCTIONS
            ):
                return FUNCTIONS[name](self.value(argument))
            case _:
                raise TextError(
                    f"what stands at place {node.col_offset + 1} cannot be computed here: "
                    f"{_MEANING}"
                )

    def _power(self, left: ast.expr, right: ast.expr) -> Value:
        """Return left ** right, one of which has to be without letters: `Value` wants a number."""
        if not _has_letters(right):
            exponent = self.value(right).data
            if abs(exponent) > MAX_EXPONENT:
                raise TextError(
                    f"the exponent at place {right.col_offset + 1} has to be a number from "
                    f"-{MAX_EXPONENT} to {MAX_EXPONENT}"
                )
            return self.value(left) ** exponent
        if not _has_letters(left):
            base = self.value(left).data
            if base <= 0:
                raise ConfigError(
                    f"a number to the power of a letter has to be above 0, not {base:g}"
                )
            return base ** self.value(right)
        raise TextError(
            f"base and exponent at place {left.col_offset + 1} both hold a letter: write "
            "exp(b*log(a)) for a**b"
        )


def _has_letters(tree: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id in LETTERS for node in ast.walk(tree))


# -- from Values to the result


def _backward(order: list[Value], call: int) -> list[Pass]:
    """Call `backward` once, and tell it edge by edge.

    In its order a node's grad is complete by the time that it is passed on, so what was passed
    can be read from the grads that are left when the call is over.
    """
    ids = {value: number for number, value in enumerate(order)}
    grads = [value.grad for value in order]
    order[-1].backward()
    passes: list[Pass] = []
    for value in reversed(order):
        for child, local_grad in zip(value.children, value.local_grads, strict=True):
            before = grads[ids[child]]
            after = grads[ids[child]] = before + local_grad * value.grad
            passes.append(Pass(call, ids[value], ids[child], local_grad, value.grad, before, after))
    return passes


def _nudge(text: str, leaves: Mapping[str, Value], letter: str, root: Value) -> Nudge:
    moved = {name: Value(leaf.data) for name, leaf in leaves.items()}
    moved[letter] = Value(leaves[letter].data + NUDGE)
    expected = leaves[letter].grad * NUDGE
    try:
        after = build(text, moved).data
    except TextError:
        return Nudge(letter, expected, None, None)
    return Nudge(letter, expected, after, after - root.data)


def _nodes(order: list[Value], leaves: Mapping[str, Value]) -> tuple[Node, ...]:
    ids = {value: number for number, value in enumerate(order)}
    made = [value for value in order if value.children]
    names = {value: _name(number) for number, value in enumerate(made)}
    names |= {value: f"{value.data:g}" for value in order if not value.children}
    names |= {leaf: letter for letter, leaf in leaves.items()}
    return tuple(
        Node(
            id=ids[value],
            name=names[value],
            operation=value.operation,
            formula=_formula(value.operation, [names[child] for child in value.children]),
            data=value.data,
            grad=value.grad,
            children=tuple(ids[child] for child in value.children),
            local_grads=value.local_grads,
        )
        for value in order
    )


def _formula(operation: str, names: list[str]) -> str:
    match operation.split("**"):
        case [""]:
            return ""
        case ["+" | "*"]:
            return f"{names[0]} {operation} {names[1]}"
        case ["neg"]:
            return f"-{names[0]}"
        case ["", exponent]:
            return f"{names[0]} ** {exponent}"
        case [base, ""]:
            return f"{base} ** {names[0]}"
        case _:
            return f"{operation}({names[0]})"


def _name(number: int) -> str:
    around, letter = divmod(number, len(_NAMES))
    return _NAMES[letter] + (str(around + 1) if around else "")


def _require_finite(order: list[Value]) -> None:
    if not all(math.isfinite(value.grad) for value in order):
        raise TextError("a gradient is too large to be a number: try smaller numbers")
