"""What a training will be like, before it starts: sizes, floor, and time measured here and now.

A plan really builds the training, takes a few steps and throws them away. Whoever trains after
it gets the same weights as without it.
"""

import math
import time
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any

from wordlm_core import trainers
from wordlm_core.corpora import Corpus, stories
from wordlm_core.errors import TextError
from wordlm_core.items import Items
from wordlm_core.models.base import parameters_of
from wordlm_core.text import UNK, normalise
from wordlm_core.training import TrainConfig, Training, model_config
from wordlm_core.vocabulary import Vocabulary
from wordlm_core.windows import Dataset, split_of

GRAMMAR, BY_HEART = "grammar", "by heart"
PREVIEW_DOCUMENTS, PREVIEW_TOKENS = 5, 40
_PREVIEW_CHARACTERS = 4000  # of a document, enough for the tokens
_FLOOR_STORIES = 600  # the mean over these is within 0.004 of that over all stories
_WARM_UP, _LEAST_STEPS = 2, 3
_EVALUATING_SHARE = 0.25  # of the budget
# Adam takes no less time to stand still, and no loss can become infinite.
_STANDING_STILL = 1e-12


@dataclass(frozen=True)
class Facts:
    """What is known of a training before its first step.

    Attributes:
        parameters: How many numbers the model has.
        vocab_size: Tokens, specials included.
        uniform: The loss of a model that finds all tokens equally likely, in nats a token.
        floor: The least loss that there can be, in nats a token; None where nobody knows it.
        floor_of: `grammar`: what a model that knows the grammar of our stories can expect on
            stories it has not seen (in training it can go below, learning them by heart). `by
            heart`: what a model that knows the list by heart has on it. Else empty.
    """

    parameters: int
    vocab_size: int
    uniform: float
    floor: float | None
    floor_of: str

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Facts":
        """Read the record of facts."""
        return Facts(**data)


@dataclass(frozen=True)
class Plan:
    """What a training will be like, and how long it takes on this machine as busy as it is.

    Attributes:
        facts: Sizes and floor.
        audit: Counts of the corpus: of its splits, or of its items.
        unknown_share: Which part of its tokens reads as `<UNK>`; None where nothing can.
        preview: Tokens of the first documents, as the model reads them.
        seconds_per_step: Mean of the measured steps.
        seconds_evaluating: All validations and the test together.
        seconds: The whole training; reading the corpus and building the model come before.
        measured_steps: How many steps were measured.
    """

    facts: Facts
    audit: dict[str, Any]
    unknown_share: float | None
    preview: tuple[tuple[str, ...], ...]
    seconds_per_step: float
    seconds_evaluating: float
    seconds: float
    measured_steps: int

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return asdict(self) | {"preview": [list(tokens) for tokens in self.preview]}

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Plan":
        """Read the record of a plan."""
        made: dict[str, Any] = {
            "facts": Facts.from_json(data["facts"]),
            "preview": tuple(tuple(tokens) for tokens in data["preview"]),
        }
        return Plan(**{**data, **made})


def facts(config: TrainConfig, data: Dataset | Items) -> Facts:
    """Return what is known of a training before its first step.

    Args:
        config: Its settings.
        data: What it reads, as from `trainers.prepared`.

    Raises:
        ConfigError: The sizes are out of range, or do not go together.
    """
    sizes = model_config(config, len(data.vocabulary))
    floor, floor_of = _floor(config, data)
    return Facts(
        parameters=parameters_of(sizes),
        vocab_size=len(data.vocabulary),
        uniform=math.log(len(data.vocabulary)),
        floor=floor,
        floor_of=floor_of,
    )


def plan(config: TrainConfig, corpus: Corpus, *, budget: float = 1.0) -> Plan:
    """Build a training, measure its steps and evaluations, and say what all of it takes.

    Args:
        config: Its settings.
        corpus: What to train on.
        budget: Seconds for measuring, about; slow steps take longer, for three are measured.

    Raises:
        CorpusError: The corpus holds too little, or too much, to be trained on.
        ConfigError: A setting is out of range, or does not go with another.
    """
    data = trainers.prepared(config, corpus)
    known = facts(config, data)
    training = trainers.build(replace(config, lr=_STANDING_STILL), data)
    measured, a_step = _measure(training, budget)
    evaluating = training.seconds_evaluating(budget * _EVALUATING_SHARE)
    return Plan(
        facts=known,
        audit=data.audit,
        unknown_share=_unknown_share(data),
        preview=_preview(corpus, data.vocabulary),
        seconds_per_step=a_step,
        seconds_evaluating=evaluating,
        seconds=config.steps * a_step + evaluating,
        measured_steps=measured,
    )


def _measure(training: Training, budget: float) -> tuple[int, float]:
    """Take steps for so many seconds; return how many, and the mean time of one."""
    for _ in range(_WARM_UP):
        training.one_step()
    most = max(_LEAST_STEPS, training.config.steps)
    started, taken, seconds = time.perf_counter(), 0, 0.0
    while taken < _LEAST_STEPS or (taken < most and seconds < budget):
        training.one_step()
        taken, seconds = taken + 1, time.perf_counter() - started
    return taken, seconds / taken


# -- the corpus


def _floor(config: TrainConfig, data: Dataset | Items) -> tuple[float | None, str]:
    if isinstance(data, Items):
        return data.floor(config.context_length), BY_HEART
    if data.corpus.name != stories.INFO.name:
        return None, ""
    try:
        return _of_grammar(data.corpus.documents, data.vocabulary.itos), GRAMMAR
    except TextError:  # somebody's own text under the same name
        return None, ""


@lru_cache(maxsize=4)  # half a second, and the same for every model that reads these
def _of_grammar(documents: tuple[str, ...], itos: tuple[str, ...]) -> float:
    held_out = (text for text in documents if split_of(normalise(text)) == "validation")
    return stories.mean_entropy(islice(held_out, _FLOOR_STORIES), frozenset(itos))


def _unknown_share(data: Dataset | Items) -> float | None:
    if data.vocabulary.unknown_id is None:
        return None
    if isinstance(data, Items):
        return data.vocabulary.counts.get(UNK, 0) / data.audit["tokens"]
    splits = data.audit["splits"].values()
    unknown = sum(split["unknown_share"] * split["tokens"] for split in splits)
    return unknown / sum(split["tokens"] for split in splits)


def _preview(corpus: Corpus, vocabulary: Vocabulary) -> tuple[tuple[str, ...], ...]:
    shown: list[tuple[str, ...]] = []
    for document in corpus.documents:
        if len(shown) == PREVIEW_DOCUMENTS:
            break
        try:
            found = vocabulary.read(document.strip()[:_PREVIEW_CHARACTERS])
        except TextError:  # there is nothing in it
            continue
        shown.append(tuple(vocabulary.itos[token] for token, _ in found[:PREVIEW_TOKENS]))
    return tuple(shown)
