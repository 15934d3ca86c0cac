"""Which trainings New run offers: models, ready sizes, and how they are said. No Streamlit.

The sizes were chosen by seconds of one processor core, from the start of the process to the test:
"20 seconds" takes 14 to 20 and "2 minutes" about 100, on our stories, and for microgpt on the
names; starting the process and whoever else computes come on top. On the page the time is
measured anew where it runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wordlm_core import models
from wordlm_core.training import TrainConfig

BENCHMARK_SEEDS = (11, 29, 47)
TWENTY, TWO_MINUTES, FULL, OWN_SETTINGS = "20 seconds", "2 minutes", "full", "own settings"
SIZE_NAMES = (TWENTY, TWO_MINUTES, FULL, OWN_SETTINGS)


@dataclass(frozen=True)
class Model:
    """A kind of model that can be trained.

    Attributes:
        key: For widgets and tables; also its look in `layout.answer`.
        name: For people.
        family: Of `TrainConfig`.
        heads: Attention heads, or None where the family's default holds.
    """

    key: str
    name: str
    family: str
    heads: int | None = None

    @property
    def reads_items(self) -> bool:
        """Return whether it is trained on whole items and not on windows."""
        return models.family(self.family).READS == "items"


MODELS = (
    Model("mlp", "MLP", "mlp"),
    Model("attention", "attention, one head", "attention", 1),
    Model("multihead", "attention, four heads", "attention", 4),
    Model("microgpt", "microgpt", "microgpt"),
)
KINDS = MODELS[:3]  # what a benchmark compares
# What its kinds have in common; the rates are each family's own.
SHARED = ("steps", "d_model", "hidden", "context_length", "batch", "max_vocab", "min_freq")


@dataclass(frozen=True)
class Size:
    """Settings that belong together, and how many documents suit them; None is the corpus's."""

    settings: Mapping[str, Any]
    documents: int | None = None


_SMALL = {"batch": 256, "d_model": 32, "hidden": 128, "context_length": 32, "max_vocab": 3000}
_MIDDLE = {"batch": 256, "d_model": 64, "hidden": 256, "context_length": 64, "max_vocab": 4000}
_LARGE = _MIDDLE | {"batch": 512, "steps": 6000}  # the protocol of the committed models
_SMALL_GPT = {"steps": 20_000, "d_model": 80, "context_length": 16}
_MIDDLE_GPT = {"steps": 18_000, "d_model": 160, "n_layer": 2, "context_length": 16, "lr": 0.003}

SIZES: Mapping[tuple[str, str], Size] = {
    ("mlp", TWENTY): Size(_SMALL | {"steps": 1_400}, 2_000),
    ("attention", TWENTY): Size(_SMALL | {"steps": 2_000}, 2_000),
    ("multihead", TWENTY): Size(_SMALL | {"steps": 1_700}, 2_000),
    ("benchmark", TWENTY): Size(_SMALL | {"steps": 150}, 800),
    ("microgpt", TWENTY): Size(_SMALL_GPT, 2_000),
    ("mlp", TWO_MINUTES): Size(_MIDDLE | {"steps": 3_200}, 4_000),
    ("attention", TWO_MINUTES): Size(_MIDDLE | {"steps": 8_000}, 4_000),
    ("multihead", TWO_MINUTES): Size(_MIDDLE | {"steps": 6_800}, 4_000),
    ("benchmark", TWO_MINUTES): Size(_SMALL | {"steps": 1_300}, 2_000),
    ("microgpt", TWO_MINUTES): Size(_MIDDLE_GPT, 2_000),
    **{(key, FULL): Size(_LARGE, 6_000) for key in ("mlp", "attention", "multihead", "benchmark")},
    ("microgpt", FULL): Size({}, 6_000),  # Karpathy's own
}
_WHY = {
    FULL: "The protocol of the committed models",
    (FULL, "microgpt"): "As in the original, done at once",
    (FULL, "benchmark"): "The protocol of the committed models, one seed at first",
    (TWENTY, "benchmark"): "A first look",
}


def size(key: str, name: str) -> Size:
    """Return a ready size; one's own settings begin at the smallest."""
    return SIZES[key, TWENTY if name == OWN_SETTINGS else name]


def config(model: Model, settings: Mapping[str, Any]) -> TrainConfig:
    """Return the settings of a training of one kind of model.

    Raises:
        ConfigError: One is out of range.
    """
    heads = {} if model.heads is None else {"n_head": model.heads}
    return TrainConfig.of(model.family, **{**heads, **settings})


def per_kind(base: TrainConfig) -> tuple[TrainConfig, ...]:
    """Return the settings of each kind that a benchmark compares."""
    shared = {name: getattr(base, name) for name in SHARED}
    return tuple(config(model, shared) for model in KINDS)


def said(key: str, name: str) -> str:
    """Return a ready size in words."""
    chosen = size(key, name)
    made = TrainConfig.of("microgpt" if key == "microgpt" else "attention", **chosen.settings)
    why = _WHY.get((name, key), _WHY.get(name, ""))
    parts = [
        f"{made.steps:,} steps{' a run' if key == 'benchmark' else ''}",
        f"width {made.d_model}",
        *([f"{made.n_layer} layers"] if made.n_layer > 1 else []),
        f"context {made.context_length}",
        "one item a step" if key == "microgpt" else f"{made.batch} windows a step",
    ]
    return f"{why}{': ' if why else ''}{', '.join(parts)}."
