"""What every training shares: its settings, its progress, and how it ends. No torch.

The trainers are `trainer` (of windows, torch) and `gpt_trainer` (of items, NumPy); `trainers`
picks one.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Protocol, get_args, get_type_hints, runtime_checkable

import numpy as np

from wordlm_core import models
from wordlm_core.checkpoint import RESUME_SUFFIX, Checkpoint, naming, read_arrays
from wordlm_core.errors import CheckpointError, ConfigError, WordLMError
from wordlm_core.models.base import check_sizes

# A word model's; microgpt is not evaluated in training.
VALIDATION_WINDOWS = 20_000
EVALUATIONS = 8
# The history of a checkpoint must stay well below what its reader accepts.
MAX_HISTORY_BYTES = 60 * 2**20
# A short training is to be looked into as well, and a long one not to be held up by saving.
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_MAX_STATE_BYTES = 2**30  # our own file: weights, two moments, the best and the history
_MAX_STEPS, _MAX_BATCH, _MAX_SEED = 1_000_000, 65_536, 2**31
_MAX_WHOLE = 2**53  # what JSON surely carries


class NonFiniteLossError(WordLMError):
    """Training diverged; the last finite state is kept."""


@dataclass(frozen=True)
class TrainConfig:
    """What to train. The defaults are the protocol of the committed attention model.

    `of` fills in those of another family.

    Attributes:
        family: `mlp`, `attention` or `microgpt`.
        steps: Optimiser steps.
        seed: Seed of the initialisation and of the order of the data.
        n_head: Attention heads (a layer).
        n_layer: Layers; word models have one.
        d_model: Width of embeddings.
        hidden: Width of the hidden layer; None is four times `d_model` (microgpt).
        context_length: Window, in tokens.
        lr: Learning rate; microgpt's falls to 0 along a line.
        weight_decay: AdamW's; microgpt has none.
        batch: Windows a step; microgpt reads one document.
        positions: Add a position table.
        tokens: `word`, or `char` (microgpt).
        max_vocab: Limit of a word vocabulary, specials included.
        min_freq: Least count of a kept word.
        bfloat16_head: Compute a word model's head in bfloat16.
    """

    family: str = "attention"
    steps: int = 6000
    seed: int = 11
    n_head: int = 1
    n_layer: int = 1
    d_model: int = 64
    hidden: int | None = 256
    context_length: int = 64
    lr: float = 3e-3
    weight_decay: float = 1e-3
    batch: int = 512
    positions: bool = True
    tokens: str = "word"
    max_vocab: int = 4000
    min_freq: int = 2
    bfloat16_head: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be trained."""
        reads = models.family(self.family).READS
        if reads == "windows" and (self.n_layer, self.tokens) != (1, "word"):
            raise ConfigError("word models read words and have one layer: that is microgpt's")
        check_sizes(steps=(self.steps, _MAX_STEPS), batch=(self.batch, _MAX_BATCH))
        if not 0 <= self.seed < _MAX_SEED:
            raise ConfigError(f"the seed must be 0 to {_MAX_SEED - 1:,}, not {self.seed}")
        if not (math.isfinite(self.lr) and self.lr > 0):
            raise ConfigError(f"the learning rate must be above 0, not {self.lr}")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise ConfigError(f"the weight decay must be 0 or more, not {self.weight_decay}")

    @classmethod
    def of(cls, family: str, **given: Any) -> "TrainConfig":
        """Return a family's settings, with what is given in their place; None means not given.

        Raises:
            ConfigError: A setting is out of range, or the family has no such choice.
        """
        defaults = models.family(family).DEFAULTS
        said = {name: value for name, value in given.items() if value is not None}
        settings: dict[str, Any] = {"family": family, **defaults, **said}
        return cls(**settings)

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> "TrainConfig":
        """Read settings that crossed a process border.

        What is left out is at the family's default; the family must be named.

        Raises:
            ConfigError: Not such a record, a setting that does not exist, of another type or out
                of range.
        """
        if not (isinstance(data, dict) and isinstance(data.get("family"), str)):
            raise ConfigError("the settings of a training are a record that names the family")
        said = {name: _typed(name, value) for name, value in data.items()}
        return cls(**{**models.family(said["family"]).DEFAULTS, **said})

    def matches(self, stored: Mapping[str, Any]) -> bool:
        """Return whether a checkpoint's `training` record is of these settings.

        A setting that the record lacks is one of a later version, at its default then.
        """
        return all(
            stored.get(field.name, field.default) == getattr(self, field.name)
            for field in fields(self)
        )


_TYPES = get_type_hints(TrainConfig)


def _typed(name: Any, value: Any) -> Any:
    """Return a setting's value, refused where it is of another type."""
    if name not in _TYPES:
        raise ConfigError(f"there is no setting {str(name)[:40]!r} of a training")
    wanted = _TYPES[name]
    if wanted is float and type(value) is int and abs(value) < _MAX_WHOLE:
        return float(value)
    if type(value) not in (get_args(wanted) or (wanted,)):  # by type: bool is an int
        shown = repr(value)[:40] if isinstance(value, str | bool | float) else type(value).__name__
        raise ConfigError(f"{name!r} cannot be {shown} in the settings of a training")
    if type(value) is int and abs(value) >= _MAX_WHOLE:
        raise ConfigError(f"{name!r} is too large a number")
    return value


@dataclass(frozen=True)
class Progress:
    """One report of a running training. Losses in nats a token."""

    step: int
    steps: int
    train_loss: float
    validation_loss: float | None
    tokens_seen: int
    seconds: float


@runtime_checkable
class Training(Protocol):
    """The interface of a trainer."""

    config: TrainConfig

    @property
    def step(self) -> int:
        """Return how many steps are done."""
        ...

    def advance(self) -> Progress:
        """Take one step, and evaluate where it is due."""
        ...

    def one_step(self) -> float:
        """Take one step without evaluating; return its loss."""
        ...

    def seconds_evaluating(self, budget: float) -> float:
        """Measure for `budget` seconds; return what all evaluations of a training take."""
        ...

    def save(self, path: Path) -> None:
        """Write the whole state; the file is replaced in one move."""
        ...

    def run(
        self,
        *,
        report: Callable[[Progress], None],
        should_stop: Callable[[], bool],
        save_to: Path | None,
        kept: Callable[[], None] = lambda: None,
    ) -> bool:
        """Train to the end; return False if `should_stop` ended it early; see `drive`."""
        ...

    def checkpoint(self, *, test: bool = True, latest: bool = False) -> Checkpoint:
        """Return the weights to keep, as a checkpoint."""
        ...


def drive(
    training: Training,
    report: Callable[[Progress], None],
    should_stop: Callable[[], bool],
    save_to: Path | None,
    kept: Callable[[], None],
) -> bool:
    """Train to the end; return False if `should_stop` ended it early.

    Args:
        training: What takes the steps.
        report: Called after every step.
        should_stop: Asked before every step.
        save_to: Where to keep the state for resuming, written on a stop, at every evaluation and
            between: after a second, after two more, after four more, at last every half minute.
        kept: Called after every writing of the state.
    """

    def save(to: Path) -> None:
        training.save(to)
        kept()

    saved_at, pause = time.monotonic(), _FIRST_PAUSE
    while training.step < training.config.steps:
        if should_stop():
            if save_to:
                save(save_to)
            return False
        progress = training.advance()
        report(progress)
        due = time.monotonic() - saved_at > pause
        if save_to and (due or progress.validation_loss is not None):
            save(save_to)
            saved_at = time.monotonic()
            pause = min(2 * pause, _LONGEST_PAUSE) if due else pause
    return True


def model_config(config: TrainConfig, vocab_size: int) -> Any:
    """Return the sizes of the model that a training builds.

    Raises:
        ConfigError: They are out of range, or the heads do not divide the width.
    """
    return models.family(config.family).config_for(
        vocab_size=vocab_size,
        context_length=config.context_length,
        d_model=config.d_model,
        hidden=config.hidden,
        n_head=config.n_head,
        n_layer=config.n_layer,
        positions=config.positions,
    )


def evaluated_steps(steps: int) -> set[int]:
    """Return after which steps a word model's training of so many is evaluated."""
    every = max(1, steps // EVALUATIONS)
    return {1, *range(every, steps + 1, every), steps}


def stride(evaluations: int, numbers: int) -> int:
    """Return at every how many evaluations so many float16 numbers may be kept."""
    return math.ceil(evaluations * numbers * 2 / MAX_HISTORY_BYTES)


def resume_path(out: Path) -> Path:
    """Return where the state of a training that writes `out` is kept until its end."""
    return out.with_name(out.name + RESUME_SUFFIX)


def owner(config: TrainConfig, data: Any) -> dict[str, Any]:
    """Return what must be equal for a saved state to belong to a training.

    Args:
        config: The training's settings.
        data: What it reads: a vocabulary and a corpus.
    """
    return {
        "config": asdict(config),
        "vocabulary": data.vocabulary.sha256,
        "corpus": data.corpus.sha256,
    }


def read_state(
    path: Path, expected: Mapping[str, Any]
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the record of a saved state.

    Args:
        path: Our own file, beside the checkpoint to come.
        expected: The `owner` of the training that goes on.

    Raises:
        CheckpointError: Unreadable, or of another training.
    """
    with naming(path):
        arrays, record = read_arrays(path, limit=_MAX_STATE_BYTES)
    if record.get("owner") != expected:
        raise CheckpointError(
            f"{path.name} belongs to a training with other settings or another corpus"
        )
    return arrays, record


def perplexity(loss: float) -> float:
    """Return exp(loss), for a loss in nats a token; capped where a float would overflow."""
    return math.exp(min(loss, 700.0))


def finite(value: float) -> float | None:
    """Return a number that JSON can hold, or None."""
    return value if math.isfinite(value) else None
