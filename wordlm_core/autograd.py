"""A number that remembers how it was made, so that it can say what it depends on.

Read it from top to bottom: this is all that training needs to know about derivatives.

    a, b, c = Value(2), Value(-3), Value(10)
    result = (a * b + c) ** 2  # forward: every operation makes a new Value
    result.backward()          # backward: every Value learns d result / d itself
    result.data, a.grad        # 16.0, -24.0

Forward, each operation notes two things: its children (the Values it was made from) and one
local gradient for each child (how fast the outcome changes when that child alone does). The
notes form a graph. Backward, the graph is walked from the result to the leaves, and each node
passes `local gradient * its own grad` on to each child: the chain rule, one edge at a time.
"""

import math
from collections.abc import Iterable

from wordlm_core.errors import ConfigError

Number = float | int


class Value:
    """A number, how it was made, and how strongly the result depends on it.

    Attributes:
        data: The number.
        grad: What `backward` has added up so far: d result / d this, where it was 0 before.
        children: The Values this one was made from; none for a leaf.
        local_grads: d this / d child for each child, at the children's data.
        operation: What made it, for people to read; "" for a leaf. Nothing is computed from it.
    """

    __slots__ = ("children", "data", "grad", "local_grads", "operation")

    def __init__(
        self,
        data: Number,
        children: "tuple[Value, ...]" = (),
        local_grads: tuple[float, ...] = (),
        operation: str = "",
    ) -> None:
        # Always a float: powers of Python's integers have no upper end and would run for ever.
        self.data = float(data)
        self.grad = 0.0
        self.children = children
        self.local_grads = local_grads
        self.operation = operation

    def __repr__(self) -> str:
        return f"Value(data={self.data:g}, grad={self.grad:g})"

    # -- operations: the number, what it was made from, and how it changes with each of those

    def __add__(self, other: "Value | Number") -> "Value":
        right = _as_value(other)
        return Value(self.data + right.data, (self, right), (1.0, 1.0), "+")

    def __mul__(self, other: "Value | Number") -> "Value":
        right = _as_value(other)
        return Value(self.data * right.data, (self, right), (right.data, self.data), "*")

    def __neg__(self) -> "Value":
        return Value(-self.data, (self,), (-1.0,), "neg")

    def __pow__(self, exponent: Number) -> "Value":
        data = _power(self.data, exponent)
        if self.data == 0 and 0 < exponent < 1:
            raise ConfigError(f"0 to the power of {exponent:g} has an infinite slope")
        # What is to the power of 0 is 1 everywhere; the formula would ask for 0 ** -1.
        slope = exponent * _power(self.data, exponent - 1) if exponent else 0.0
        return Value(data, (self,), (slope,), f"**{exponent:g}")

    def __rpow__(self, base: Number) -> "Value":
        if base <= 0:
            raise ConfigError(f"a number to the power of a Value has to be above 0, not {base:g}")
        data = _power(float(base), self.data)
        return Value(data, (self,), (data * math.log(base),), f"{base:g}**")

    def log(self) -> "Value":
        """Return the natural logarithm.

        Raises:
            ConfigError: The number is not above 0.
        """
        if self.data <= 0:
            raise ConfigError(f"log needs a number above 0, not {self.data:g}")
        return Value(math.log(self.data), (self,), (1 / self.data,), "log")

    def exp(self) -> "Value":
        """Return e to the power of the number, which is its own slope.

        Raises:
            ConfigError: The outcome is too large for a float.
        """
        try:
            data = math.exp(self.data)
        except OverflowError:
            raise ConfigError(f"exp of {self.data:g} is too large") from None
        return Value(data, (self,), (data,), "exp")

    def relu(self) -> "Value":
        """Return the number where it is above 0, else 0; at 0 the slope is taken as 0."""
        return Value(max(0.0, self.data), (self,), (float(self.data > 0),), "relu")

    # -- made of the ones above

    def __sub__(self, other: "Value | Number") -> "Value":
        return self + (-other)

    def __truediv__(self, other: "Value | Number") -> "Value":
        return self * _as_value(other) ** -1

    def __radd__(self, other: Number) -> "Value":
        return _as_value(other) + self

    def __rsub__(self, other: Number) -> "Value":
        return _as_value(other) - self

    def __rmul__(self, other: Number) -> "Value":
        return _as_value(other) * self

    def __rtruediv__(self, other: Number) -> "Value":
        return _as_value(other) / self

    # -- backward

    def backward(self) -> None:
        """Add d this / d node to the grad of every node that this was made from.

        The grad of this node itself is set to 1, every other one is added to (`+=`), because a
        node that is used twice receives from both of its uses. Nothing is set back to 0 first,
        inner nodes included. So a second call without `zero_grad` in between does more than
        double: a direct child of this node has 2 times its gradient, but what it passes on is
        those 2 times, so its children have 1 + 2 = 3 times theirs, and so on down. A leaf on
        one path of length n from the result has C(n + k - 1, n) times its gradient after k
        calls.
        """
        self.grad = 1.0
        for node in reversed(in_order(self)):
            for child, local_grad in zip(node.children, node.local_grads, strict=True):
                child.grad += local_grad * node.grad


def in_order(result: Value) -> list[Value]:
    """Return every node that `result` was made from, children before parents, itself last.

    Backwards, this order makes sure that a node has received from all its uses before it
    passes anything on. It keeps a list of its own of what is still to do: calls within calls
    would hit Python's limit in a graph that is a few hundred operations deep.
    """
    order: list[Value] = []
    seen: set[Value] = set()
    to_do = [(result, False)]
    while to_do:
        node, children_done = to_do.pop()
        if children_done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            to_do.append((node, True))
            to_do.extend((child, False) for child in reversed(node.children))
    return order


def zero_grad(values: Iterable[Value]) -> None:
    """Set the grad of each Value to 0; `zero_grad(in_order(result))` clears a whole graph."""
    for value in values:
        value.grad = 0.0


# -- parts


def _as_value(number: Value | Number) -> Value:
    return number if isinstance(number, Value) else Value(number)


def _power(base: Number, exponent: Number) -> float:
    """Return base ** exponent as a real number.

    Raises:
        ConfigError: There is none, or it is too large for a float.
    """
    if base == 0 and exponent < 0:
        raise ConfigError(f"0 to the power of {exponent:g} is a division by zero")
    if base < 0 and not float(exponent).is_integer():
        raise ConfigError(f"{base:g} to the power of {exponent:g} is no real number")
    try:
        return float(base) ** exponent
    except OverflowError:
        raise ConfigError(f"{base:g} to the power of {exponent:g} is too large") from None
