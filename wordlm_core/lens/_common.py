"""What several lenses share: ranked tokens, positions, families, and bounded memory."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from wordlm_core.errors import CheckpointError, ConfigError, TextError
from wordlm_core.models.base import LanguageModel
from wordlm_core.models.microgpt import MicroGPTModel
from wordlm_core.vocabulary import Probe, Vocabulary

_GROUP_SIZE = 32
_MAX_BYTES = 256 * 2**20


@dataclass(frozen=True)
class TokenProb:
    """A token and its probability."""

    token: str
    prob: float


def check_length(count: int) -> int:
    """Return the wanted length of a list, if it is one.

    Raises:
        ConfigError: It is not positive.
    """
    if count < 1:
        raise ConfigError(f"the length of a list must be 1 or more, not {count}")
    return count


def largest(values: Float[np.ndarray, "*rows n"], count: int) -> Int[np.ndarray, "*rows top"]:
    """Return the indices of the `count` largest values of each row, falling; ties by index.

    Of values tied at the cut, any may be the one that is left out. A `count` above the
    length of a row means all of it.

    Raises:
        ConfigError: `count` is not positive.
    """
    count = min(check_length(count), values.shape[-1])
    ids = _candidates(values, count)
    picked = np.argpartition(np.take_along_axis(values, ids, -1), -count, axis=-1)[..., -count:]
    ids = np.sort(np.take_along_axis(ids, picked, -1), axis=-1)
    order = np.argsort(-np.take_along_axis(values, ids, -1), axis=-1, kind="stable")
    return np.take_along_axis(ids, order, -1)


def top_probs(
    probs: Float[np.ndarray, " vocab"], vocabulary: Vocabulary, count: int
) -> tuple[TokenProb, ...]:
    """Return the `count` likeliest tokens, by probability falling."""
    return tuple(TokenProb(vocabulary.itos[i], float(probs[i])) for i in largest(probs, count))


def texts_at_once(model: LanguageModel, length: int) -> int:
    """Return how many texts of so many tokens one forward may take in bounded memory."""
    # Of the vocabulary: logits, two distributions, their ratio and difference, and ranks.
    numbers = model.numbers_of(length) + 6 * model.config.vocab_size
    return max(1, _MAX_BYTES // (8 * numbers))


def position_in(probe: Probe, position: int) -> int:
    """Return `position` counted from the left; negative ones count from the end.

    Raises:
        TextError: There is no such position.
    """
    length = len(probe.ids)
    if not -length <= position < length:
        raise TextError(f"there is no position {position}: the text has {length} tokens")
    return position % length


def require_microgpt(model: LanguageModel, why: str) -> MicroGPTModel:
    """Return the model, if it is a microgpt.

    Args:
        model: Of any family.
        why: Says in an error what only a microgpt can answer.

    Raises:
        CheckpointError: It is none.
    """
    if not isinstance(model, MicroGPTModel):
        raise CheckpointError(f"{why}: choose a microgpt checkpoint")
    return model


def frozen(values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Return a read-only copy: results are shared, and a view would keep the whole pass."""
    own = np.array(values)
    own.setflags(write=False)
    return own


def _candidates(
    values: Float[np.ndarray, "*rows n"], count: int
) -> Int[np.ndarray, "*rows candidates"]:
    """Return indices of each row among which its `count` largest values are.

    Those stand in the `count` groups with the largest maxima, where column i belongs to
    group i modulo the number of groups. Over a vocabulary this saves most of the sorting.
    """
    every = np.broadcast_to(np.arange(values.shape[-1]), values.shape)
    groups = values.shape[-1] // _GROUP_SIZE
    if groups <= count:
        return every
    grouped = groups * _GROUP_SIZE
    rows = values.shape[:-1]
    maxima = values[..., :grouped].reshape(*rows, _GROUP_SIZE, groups).max(axis=-2)
    best = np.argpartition(maxima, -count, axis=-1)[..., None, -count:]
    inside = best + groups * np.arange(_GROUP_SIZE)[:, None]
    return np.concatenate([inside.reshape(*rows, -1), every[..., grouped:]], axis=-1)
