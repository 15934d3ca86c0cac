"""Contextual: the same word in two texts has one lookup row and two contextual rows."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from wordlm_core.errors import TextError
from wordlm_core.lens._common import position_in
from wordlm_core.lens.attention import require_attention
from wordlm_core.lens.neighbours import Neighbour, cosine, nearest_to
from wordlm_core.models.base import LanguageModel, require_finite
from wordlm_core.vocabulary import Probe, Vocabulary


@dataclass(frozen=True)
class ContextPair:
    """One word at two places.

    Attributes:
        token: The word at both.
        position_a: Its position in the first text.
        position_b: Its position in the second.
        lookup_equal: Whether both lookup rows are the same numbers; always so.
        lookup_cosine: Their cosine.
        contextual_cosine: Cosine of the contextual rows.
        contextual_l2: Euclidean distance of the contextual rows.
        residual_cosine: Cosine of what attention reads: lookup row plus position row.
        position_l2: Distance of those; the lookup rows are equal, so it is position alone.
        attention_l2: Distance of what attention adds (contextual - residual).
        attention_share: How much of the contextual difference lies along what attention
            added; the rest, which makes 1 of it, along position. Below 0 or above 1 where
            the two pull apart. None where there is no difference.
        rows: Lookup row, then the contextual rows of both places.
        neighbours_a: Tokens whose lookup rows are nearest to the first contextual row.
        neighbours_b: The same for the second.
        lookup_neighbours: The same for the lookup row.
    """

    unit: ClassVar[str] = "cosine; L2 in units of the residual stream"

    token: str
    position_a: int
    position_b: int
    lookup_equal: bool
    lookup_cosine: float
    contextual_cosine: float
    contextual_l2: float
    residual_cosine: float
    position_l2: float
    attention_l2: float
    attention_share: float | None
    rows: Float[np.ndarray, "3 d_model"]
    neighbours_a: tuple[Neighbour, ...]
    neighbours_b: tuple[Neighbour, ...]
    lookup_neighbours: tuple[Neighbour, ...]


def compare(  # noqa: PLR0913, PLR0917 (two places, each a text and a position)
    model: LanguageModel,
    vocabulary: Vocabulary,
    probe_a: Probe,
    position_a: int,
    probe_b: Probe,
    position_b: int,
    top: int = 8,
) -> ContextPair:
    """Compare one word's lookup and contextual rows at two places.

    A contextual row is the residual stream + what attention brought in (of the last layer);
    in one layer the stream before it is lookup row + position row. A word model's text fills
    the last slots of the window, so words at different distances from the end stand in
    different slots (microgpt counts from the start), and part of a difference can be position
    alone. The two
    parts are vectors: their lengths do not add up to the whole, their shares along it do.
    Where attention looks depends on position too. Contextual rows live in the same space as
    lookup rows but were never trained to be near one: their neighbours are a reading aid.

    Args:
        model: Any family with attention.
        vocabulary: The model's.
        probe_a: The first text.
        position_a: Where the word stands in it; negative counts from the end.
        probe_b: The second text.
        position_b: The same there.
        top: Length of the neighbour lists (>= 1); the word itself is left out of them.

    Raises:
        CheckpointError: The model has no attention, so no contextual row, or its numbers
            overflow.
        TextError: The tokens differ, or there is no such position.
    """
    require_attention(model, "a word has no row of its own there that a context could change")
    position_a, position_b = position_in(probe_a, position_a), position_in(probe_b, position_b)
    token = probe_a.tokens[position_a]
    if token != probe_b.tokens[position_b]:
        raise TextError(
            f"the words differ: {token!r} in the first text, "
            f"{probe_b.tokens[position_b]!r} in the second"
        )
    a, b = model.trace(probe_a.ids), model.trace(probe_b.ids)
    assert a.contextual is not None
    assert b.contextual is not None
    assert a.residual is not None
    assert b.residual is not None
    lookup_a, lookup_b = a.embed[position_a], b.embed[position_b]
    row_a = require_finite(a.contextual[position_a])
    row_b = require_finite(b.contextual[position_b])
    before_a, before_b = a.residual[position_a], b.residual[position_b]
    moved, change = before_a - before_b, row_a - row_b
    added = change - moved
    table = model.weights[model.embedding_name]
    near_a, near_b, near_lookup = (
        nearest_to(row, table, vocabulary, top, exclude=(int(probe_a.ids[position_a]),))
        for row in (row_a, row_b, lookup_a)
    )
    return ContextPair(
        token=token,
        position_a=position_a,
        position_b=position_b,
        lookup_equal=np.array_equal(lookup_a, lookup_b),
        lookup_cosine=cosine(lookup_a, lookup_b),
        contextual_cosine=cosine(row_a, row_b),
        contextual_l2=float(np.linalg.norm(change)),
        residual_cosine=cosine(before_a, before_b),
        position_l2=float(np.linalg.norm(moved)),
        attention_l2=float(np.linalg.norm(added)),
        attention_share=float(added @ change / (change @ change)) if change.any() else None,
        rows=np.stack([lookup_a, row_a, row_b]),
        neighbours_a=near_a,
        neighbours_b=near_b,
        lookup_neighbours=near_lookup,
    )
