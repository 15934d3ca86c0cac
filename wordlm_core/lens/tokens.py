"""Tokens: a text as ids, and what is predicted from what.

One document is a line of ids with one that begins it and one that ends it. Each id but the
last is an input, and its target is the id after it: so a name of four letters asks for five
predictions, the last of which is that it ends.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from wordlm_core.gpt_trainer import loss_of
from wordlm_core.lens._common import require_microgpt
from wordlm_core.models.base import LanguageModel
from wordlm_core.text import visible
from wordlm_core.vocabulary import Vocabulary


@dataclass(frozen=True)
class Token:
    """One token of a document.

    Attributes:
        position: From 0, the id that begins the document.
        label: As it can be seen: white space is made visible.
        id: In the vocabulary; None for a character that has none.
    """

    position: int
    label: str
    id: int | None


@dataclass(frozen=True)
class Pair:
    """What is read at a position and what should be predicted there.

    Attributes:
        position: Of the input.
        input: The token that is read.
        target: The token after it.
        trained: Whether the position is within the context; training leaves the others out.
    """

    position: int
    input: Token
    target: Token
    trained: bool


@dataclass(frozen=True)
class Strange:
    """A character that the vocabulary lacks.

    Attributes:
        place: Among the characters of the text, from 1; its position among the tokens too.
        label: As it can be seen.
        known_as: The same letter in lower case, where the vocabulary has that.
    """

    place: int
    label: str
    known_as: str | None


@dataclass(frozen=True)
class TokenTable:
    """A text as a model reads it in training.

    Attributes:
        tokens: All of it, with the ones that begin and end it.
        pairs: One a prediction; empty where the text cannot be read.
        strange: What the vocabulary lacks; empty where the text can be read.
        context_length: Positions that the model has.
    """

    tokens: tuple[Token, ...]
    pairs: tuple[Pair, ...]
    strange: tuple[Strange, ...]
    context_length: int

    @property
    def trained(self) -> tuple[Pair, ...]:
        """Return the pairs within the context."""
        return self.pairs[: self.context_length]

    @property
    def cut_off(self) -> tuple[Pair, ...]:
        """Return the pairs beyond the context, which training never reads."""
        return self.pairs[self.context_length :]


@dataclass(frozen=True)
class Row:
    """One row of a vocabulary.

    Attributes:
        id: Its row.
        label: As it can be seen.
        count: How often it stands in the training documents; None for a special token and
            where the file has no counts.
        share: Of all counts.
    """

    id: int
    label: str
    count: int | None
    share: float | None


def read(vocabulary: Vocabulary, text: str, context_length: int) -> TokenTable:
    """Return a text's ids, and each input with its target.

    It says what would be read in training, where a document ends as well as begins. A lens
    reads a typed text without the end, to predict it.

    Args:
        vocabulary: Of characters, or of words: then nothing is strange, as `<UNK>` stands for
            all that is not in it.
        text: White space around it is left out, as in training.
        context_length: Positions that the model has.

    Raises:
        TextError: There is nothing to read.
    """
    strange = _strange(vocabulary, text)
    if strange:
        inside = [(vocabulary.stoi.get(character), character) for character in text.strip()]
    else:
        inside = [(each, vocabulary.itos[each]) for each, _ in vocabulary.read(text)]
    first, last = vocabulary.bos_id, vocabulary.end_id
    framed = [(first, vocabulary.itos[first]), *inside, (last, vocabulary.itos[last])]
    tokens = tuple(Token(i, visible(label), each) for i, (each, label) in enumerate(framed))
    pairs = tuple(
        Pair(here.position, here, after, here.position < context_length)
        for here, after in pairwise(tokens)
    )
    return TokenTable(tokens, () if strange else pairs, strange, context_length)


def losses(model: LanguageModel, table: TokenTable) -> Float[np.ndarray, " targets"]:
    """Return the loss of each trained prediction in nats, -log of the target's probability.

    Their mean is the document's loss, which a training step lowers. It says how unexpected
    the text was to this model, not whether it is a name.

    Args:
        model: A microgpt.
        table: The text.

    Returns:
        Nats, >= 0, aligned with `table.trained`; empty where the text cannot be read.

    Raises:
        CheckpointError: A word model is asked, which was trained on its last position alone.
    """
    model = require_microgpt(model, "only microgpt predicts at every position")
    ids = [token.id for token in table.tokens if token.id is not None]
    if table.strange:
        return np.zeros(0)
    return loss_of(model.network, np.array(ids))


def alphabet(vocabulary: Vocabulary) -> tuple[Row, ...]:
    """Return every token with its id, its count in training, and its share of all counts."""
    total = sum(vocabulary.counts.get(token, 0) for token in vocabulary.itos)
    rows: list[Row] = []
    for number, token in enumerate(vocabulary.itos):
        count = vocabulary.counts.get(token)
        share = None if count is None or total == 0 else count / total
        rows.append(Row(number, visible(token), count, share))
    return tuple(rows)


def _strange(vocabulary: Vocabulary, text: str) -> tuple[Strange, ...]:
    if vocabulary.unknown_id is not None:
        return ()
    return tuple(
        Strange(place, visible(character), next(iter(vocabulary.near(character)), None))
        for place, character in enumerate(text.strip(), 1)
        if character not in vocabulary.stoi
    )
