"""Shapes and counts filled in by hand: how they are read, and what is said of each. No Streamlit.

A sentence about a wrong answer says where to look, not what is right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wordlm_core import typed
from wordlm_core.errors import TextError
from wordlm_core.lens.parameters import Matrix

LONGEST = 24
_ONE_FOR_EACH = {
    "vocabulary": "one for each token of the vocabulary",
    "context": "one for each position of the context",
    "width": "as many as the model is wide",
    "hidden": "as many as there are hidden units",
}


@dataclass(frozen=True)
class Row:
    """One matrix on the sheet.

    Attributes:
        matrix: What it is.
        shape: As it was typed.
        count: As it was typed.
        wrong: A sentence for each answer that is not right.
    """

    matrix: Matrix
    shape: str
    count: str
    wrong: tuple[str, ...]

    @property
    def right(self) -> int:
        """Return how many of the two answers are right."""
        return 2 - len(self.wrong)


@dataclass(frozen=True)
class Sheet:
    """All answers, checked.

    Attributes:
        rows: One a matrix that was asked for.
        total: As it was typed.
        wrong_total: A sentence about the total, or nothing where it is right.
    """

    rows: tuple[Row, ...]
    total: str
    wrong_total: str

    @property
    def right(self) -> int:
        """Return how many answers are right."""
        return sum(row.right for row in self.rows) + (not self.wrong_total)

    @property
    def filled(self) -> int:
        """Return how many answers there are, right or wrong."""
        typed_in = [self.total, *(text for row in self.rows for text in (row.shape, row.count))]
        return sum(bool(text.strip()) for text in typed_in)

    @property
    def asked(self) -> int:
        """Return how many answers are asked for."""
        return 2 * len(self.rows) + 1


def check(matrices: Sequence[Matrix], answers: Mapping[str, tuple[str, str]], total: str) -> Sheet:
    """Check what was filled in.

    Args:
        matrices: All of the model.
        answers: Shape and count by state name, for the matrices that were asked for.
        total: Parameters of the whole model.
    """
    asked = [matrix for matrix in matrices if matrix.name in answers]
    rows = tuple(_row(matrix, *answers[matrix.name]) for matrix in asked)
    return Sheet(rows, total, _about_total(matrices, asked, total))


# -- parts


def _row(matrix: Matrix, shape: str, count: str) -> Row:
    found = (_about_shape(matrix, shape), _about_count(matrix, count))
    return Row(matrix, shape, count, tuple(sentence for sentence in found if sentence))


def _about_shape(matrix: Matrix, given: str) -> str:
    if not given.strip():
        return "No shape yet."
    try:
        shape = typed.shape(given)
    except TextError:
        shape = tuple[int, ...]()
    if len(shape) != len(matrix.shape):
        return f"“{given.strip()}” is no shape: write rows x columns, such as 3 x 5."
    if shape == matrix.shape:
        return ""
    if shape == matrix.shape[::-1]:
        return f"The other way round: its rows are {_ONE_FOR_EACH[matrix.rows]}."
    if shape[0] != matrix.shape[0]:
        return f"Not {shape[0]:,} rows: they are {_ONE_FOR_EACH[matrix.rows]}."
    return f"Not {shape[1]:,} columns: they are {_ONE_FOR_EACH[matrix.columns]}."


def _about_count(matrix: Matrix, given: str) -> str:
    if not given.strip():
        return "No count yet."
    try:
        count = typed.count(given)
    except TextError as error:
        return _refused(error)
    if count == matrix.count:
        return ""
    if count == sum(matrix.shape):
        return f"{count:,} is rows plus columns: a matrix holds rows times columns."
    return f"Not {count:,}: a matrix holds rows times columns."


def _about_total(matrices: Sequence[Matrix], asked: Sequence[Matrix], given: str) -> str:
    if not given.strip():
        return "No total yet."
    try:
        total = typed.count(given)
    except TextError as error:
        return _refused(error)
    every, one_layer = (sum(matrix.count for matrix in of) for of in (matrices, asked))
    if total == every:
        return ""
    if total == one_layer:
        return f"{total:,} counts one layer: each layer has matrices of its own."
    return f"Not {total:,}: add up the counts of all matrices."


def _refused(error: TextError) -> str:
    return f"{str(error)[:1].upper()}{str(error)[1:]}."
