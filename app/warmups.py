"""Python warm-ups: short snippets of the kind that microgpt is written in. No Streamlit.

A person predicts what a snippet prints, then sees it. What it prints is never written down
here: the snippet itself is run. What a person types is compared as text and never run.
"""

import builtins
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

_ALLOWED = (
    *("__build_class__", "__import__", "enumerate", "len", "list", "range", "round", "set"),
    *("sorted", "sum", "zip"),
)
# Phones type curly quotes, word processors a longer minus.
_QUOTES, _MINUS = '\u201c\u201d\u2018\u2019"', "\u2212"
_STRAIGHT = str.maketrans(_QUOTES + _MINUS, "'" * len(_QUOTES) + "-")


@dataclass(frozen=True)
class Card:
    """One snippet to predict.

    Attributes:
        topic: What it is about.
        snippet: Python that prints one line.
        why: One sentence on the reason, for afterwards.
    """

    topic: str
    snippet: str
    why: str

    @cached_property
    def output(self) -> str:
        """Return what the snippet prints."""
        return _printed(self.snippet)

    def is_right(self, guess: str) -> bool:
        """Return whether a guess is what is printed, whatever its blanks and quotes."""
        return _plain(guess) == _plain(self.output)


CARDS = (
    Card(
        "a list",
        """docs = ["emma", "ava"]
docs.append("mia")
print(len(docs), docs[0])""",
        "append changes the list itself, and the first item has index 0.",
    ),
    Card(
        "two names",
        """keys = [1, 2]
cache = keys
cache.append(3)
print(keys)""",
        "the assignment copies nothing: both names stand for one list.",
    ),
    Card(
        "a slice to the end",
        """tokens = [26, 4, 12, 12, 0, 26]
print(tokens[:-1])""",
        "index -1 is the last item, and a slice stops before its end; tokens[1:] would be the "
        "targets.",
    ),
    Card(
        "a slice with a step",
        """letters = list("isabella")
print(letters[-2], letters[::3])""",
        "-2 counts from the end, and a step of 3 takes the items 0, 3 and 6.",
    ),
    Card(
        "a list comprehension",
        """odd = [n * n for n in range(5) if n % 2 == 1]
print(odd)""",
        "range(5) is 0 to 4, the condition keeps 1 and 3, and each is squared.",
    ),
    Card(
        "a matrix",
        """matrix = [[3 * row + column for column in range(3)] for row in range(2)]
print(matrix)""",
        "the outer comprehension makes the rows, the inner one the numbers in each.",
    ),
    Card(
        "zip",
        """w = [1, 2, 3]
x = [4, 0, -1]
print([wi * xi for wi, xi in zip(w, x)])""",
        "zip pairs the items at equal places: 1 with 4, 2 with 0, 3 with -1.",
    ),
    Card(
        "a sum",
        """w = [1, 2, 3]
x = [4, 0, -1]
print(sum(wi * xi for wi, xi in zip(w, x)))""",
        "the generator gives 4, 0 and -3 one by one: their sum is the dot product.",
    ),
    Card(
        "enumerate",
        """name = "isabella"
print([place for place, letter in enumerate(name) if letter == "l"])""",
        "enumerate counts from 0 while it walks, and both places of the letter are kept.",
    ),
    Card(
        "ids of letters",
        """itos = sorted(set("emma"))
stoi = {letter: i for i, letter in enumerate(itos)}
print(stoi["m"], itos[stoi["e"]])""",
        "a set holds each letter once, sorted gives a, e, m, and the dict leads back from a "
        "letter to its place.",
    ),
    Card(
        "a class that adds",
        """class Value:
    def __init__(self, data):
        self.data = data

    def __add__(self, other):
        return Value(self.data + other.data)

print((Value(2) + Value(3) + Value(4)).data)""",
        "a + between two Values calls __add__, which makes a new Value, so that sums can go on.",
    ),
    Card(
        "a weighted choice",
        """from random import Random

drawn = Random(42).choices("ab", weights=[1, 4], k=1000)
print(round(drawn.count("b") / 1000, 1))""",
        "a weight is a share: b has 4 of 5, so about 800 of 1,000 draws; the seed makes them the "
        "same each time.",
    ),
)


# -- parts


def _printed(snippet: str) -> str:
    """Run one of our snippets with the few names that it needs; return what it prints."""
    lines: list[str] = []

    def note(*values: object) -> None:
        lines.append(" ".join(map(str, values)))

    allowed: dict[str, Any] = {name: getattr(builtins, name) for name in _ALLOWED}
    exec(snippet, {"__builtins__": allowed | {"print": note}, "__name__": "warm_up"})
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Return `text` with one kind of quotes and without blanks that mean nothing."""
    straight = " ".join(text.translate(_STRAIGHT).split())
    return re.sub(r" ?([,:\[\](){}]) ?", r"\1", straight)
