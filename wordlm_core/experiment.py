"""One quick experiment with microgpt: settings in, losses and samples out, both also as JSON.

The limits keep a run below half a minute, so that a class can share a few processes. Each is
trained with a few seeds. Runs that are compared share them, hence the orders of the items and,
where the sizes are equal, the first weights: what differs is the one setting that was changed.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from wordlm_core import corpora
from wordlm_core.corpora import Corpus
from wordlm_core.errors import ConfigError, CorpusError
from wordlm_core.gpt_trainer import MEAN_OVER, GPTTrainer
from wordlm_core.items import Items, prepare_items
from wordlm_core.lens import sampling
from wordlm_core.lens.training_history import moving_average
from wordlm_core.models.base import check_sizes, parameters_of
from wordlm_core.models.microgpt import DEFAULTS, MicroGPTConfig, MicroGPTModel
from wordlm_core.training import NonFiniteLossError, Progress, TrainConfig, model_config

OWN = "own"
DATA = ("names", "words", "stories", OWN)
MAX_STEPS, MAX_WIDTH, MAX_LAYERS, MAX_CONTEXT, MAX_SECONDS = 20_000, 64, 4, 64, 25
MAX_RATE, MAX_TEMPERATURE = 1e6, 10.0
MAX_LABEL, MAX_DRAWS = 80, 6
MAX_ITEMS, MAX_CHARACTERS, MAX_ITEM, MAX_VOCAB = 200_000, 2_000_000, 1_000, 10_000
SAMPLES, SAMPLING_SEED, SEEDS = 20, 0, 3
# Twice the standard error of the mean of three paired differences, by bench/experiment_noise.py:
# their deviation is at most 0.013 where the difference is small. Unpaired it would be 0.027.
SAME_WITHIN = 0.015

# Microseconds, measured on one core. Of a step: fixed, a layer, a weight, a weight and position,
# a logit. Of drawing a first weight. Of sampling a token: fixed, a layer, a weight and position,
# a logit.
_FIXED, _A_LAYER, _A_WEIGHT, _A_WEIGHT_AND_POSITION, _A_LOGIT = 70.0, 110.0, 0.007, 0.00023, 0.006
_A_FIRST_WEIGHT = 0.4
_SAMPLED, _SAMPLED_LAYER, _SAMPLED_WEIGHT_AND_POSITION, _SAMPLED_LOGIT = 50.0, 50.0, 0.00002, 0.05


class Draw(NamedTuple):
    """How to sample: temperature, and the number of likeliest tokens that are kept."""

    temperature: float = 0.5
    top_k: int | None = None


@dataclass(frozen=True)
class Experiment:
    """What to train and how to sample from it. The defaults are Karpathy's.

    Attributes:
        label: A name for people.
        data: One of `DATA`.
        steps: One item each.
        lr: Learning rate at the first step; it falls to 0 along a line.
        d_model: Width.
        n_head: Heads a layer; divides the width.
        n_layer: Layers.
        positions: Whether position embeddings are added.
        seed: Of the order of the items and of the first weights; the first of `seeds`.
        context: Longest text in tokens, `<BOS>` included.
        draws: Ways to sample from the one training.
    """

    label: str = ""
    data: str = "names"
    steps: int = DEFAULTS["steps"]
    lr: float = DEFAULTS["lr"]
    d_model: int = DEFAULTS["d_model"]
    n_head: int = DEFAULTS["n_head"]
    n_layer: int = 1
    positions: bool = True
    seed: int = DEFAULTS["seed"]
    context: int = DEFAULTS["context_length"]
    draws: tuple[Draw, ...] = (Draw(),)

    def __post_init__(self) -> None:
        """Refuse what is out of range, or too large for a quick run."""
        if self.data not in DATA:
            raise ConfigError(f"the data are {', '.join(DATA)}, not {self.data[:40]!r}")
        check_sizes(
            steps=(self.steps, MAX_STEPS),
            width=(self.d_model, MAX_WIDTH),
            layers=(self.n_layer, MAX_LAYERS),
            context=(self.context, MAX_CONTEXT),
            ways_to_sample=(len(self.draws), MAX_DRAWS),
        )
        if not 0 < self.lr <= MAX_RATE:
            raise ConfigError(
                f"the learning rate must be above 0 and at most {MAX_RATE:,.0f}, not {self.lr:g}"
            )
        if len(self.label) > MAX_LABEL:
            raise ConfigError(f"a label has at most {MAX_LABEL} characters")
        for temperature, top_k in self.draws:
            if not 0 <= temperature <= MAX_TEMPERATURE:
                raise ConfigError(
                    f"the temperature must be 0 to {MAX_TEMPERATURE:g}, not {temperature:g}"
                )
            if top_k is not None and top_k < 1:
                raise ConfigError(f"top-k must be 1 or more, not {top_k}")
        self.sizes(1)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Return the seeds it is trained with: its own and those after it."""
        return tuple(range(self.seed, self.seed + SEEDS))

    @property
    def training(self) -> TrainConfig:
        """Return the settings of the training alone, with the first seed."""
        return TrainConfig.of(
            "microgpt",
            steps=self.steps,
            lr=self.lr,
            d_model=self.d_model,
            n_head=self.n_head,
            n_layer=self.n_layer,
            positions=self.positions,
            seed=self.seed,
            context_length=self.context,
        )

    def sizes(self, vocab_size: int) -> MicroGPTConfig:
        """Return the sizes of the model for a vocabulary.

        Raises:
            ConfigError: They do not go together.
        """
        return model_config(self.training, vocab_size)

    def baseline(self) -> "Experiment":
        """Return what to compare with: the default settings, same seed and data.

        Where the data are all that was changed, the names are the baseline.
        """
        default = Experiment("baseline", self.data, seed=self.seed)
        only_data = replace(self, label=default.label, draws=default.draws) == default
        return replace(default, data=DATA[0]) if only_data else default

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return asdict(self) | {"draws": [list(draw) for draw in self.draws]}

    @staticmethod
    def from_json(data: Any) -> "Experiment":
        """Read settings that crossed a process border; what is left out is at its default.

        Raises:
            ConfigError: Not such a record, or a setting is of another type or out of range.
        """
        if not isinstance(data, dict):
            raise ConfigError("an experiment is a record of settings")
        return Experiment(**{name: _typed(name, value) for name, value in data.items()})


class Drawn(NamedTuple):
    """A sample, and whether it stands in the list that was trained on."""

    text: str
    seen: bool


@dataclass(frozen=True, eq=False)
class Result:
    """What came out. Losses are in nats a token.

    Attributes:
        parameters: How many numbers the model has.
        vocab_size: Tokens, `<BOS>` included.
        losses: Of every step with the first seed: the mean over its item, before the update.
        seed_losses: With each seed, the mean of the last 200 (or of all, if fewer); None, and
            the end, where training diverged.
        seconds: Training with all seeds, and sampling.
        samples: With the first seed, for each of the experiment's draws; none where it diverged.
        stopped: Why training ended before its last step, or None.
        audit: Counts of the list: items, repeats, the longest, those longer than the context.
    """

    parameters: int
    vocab_size: int
    losses: Float[np.ndarray, " steps"]
    seed_losses: tuple[float | None, ...]
    seconds: float
    samples: tuple[tuple[Drawn, ...], ...]
    stopped: str | None
    audit: dict[str, int]

    @property
    def finals(self) -> tuple[float, ...] | None:
        """Return the loss with each seed, or None where training diverged with one of them."""
        kept = tuple(loss for loss in self.seed_losses if loss is not None)
        return kept if len(kept) == len(self.seed_losses) else None

    @property
    def loss(self) -> float | None:
        """Return the mean loss over the seeds, or None where training diverged with one."""
        return None if self.finals is None else float(np.mean(self.finals))

    @property
    def average(self) -> Float[np.ndarray, " steps"]:
        """Return the moving average of the losses."""
        return moving_average(self.losses)

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads, and the mean loss."""
        record = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return record | {"losses": self.losses.tolist(), "loss": self.loss}

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Result":
        """Read the record of a result."""
        losses = np.array(data["losses"], dtype=float)
        losses.setflags(write=False)
        made = {
            "losses": losses,
            "seed_losses": tuple(data["seed_losses"]),
            "samples": tuple(tuple(Drawn(*each) for each in drawn) for drawn in data["samples"]),
        }
        rest = {name: value for name, value in data.items() if name not in (*made, "loss")}
        return Result(**made, **rest)


@dataclass(frozen=True)
class Preset:
    """An experiment worth doing, and the question it asks."""

    question: str
    experiment: Experiment


PRESETS = (
    Preset(
        "One training, sampled at four temperatures: what changes, the loss or the names?",
        Experiment("temperature 0.1 to 2", draws=tuple(map(Draw, (0.1, 0.5, 1.0, 2.0)))),
    ),
    Preset(
        "Nothing tells the model where a letter stands: how much did it use that?",
        Experiment("no positions", positions=False),
    ),
    Preset(
        "Steps ten times smaller: is it more careful, or just late?",
        Experiment("learning rate 0.001", lr=0.001),
    ),
    Preset(
        "Steps ten times larger: faster there, or past it?",
        Experiment("learning rate 0.1", lr=0.1),
    ),
    Preset(
        "Twice the width: how many times the parameters, and how much less loss?",
        Experiment("width 32", d_model=32),
    ),
    Preset(
        "A second layer can read what the first one wrote: does this task need it?",
        Experiment("2 layers", n_layer=2),
    ),
    Preset(
        "The same model on English words: easier or harder to predict than names?",
        Experiment("words instead of names", "words"),
    ),
    Preset(
        "Only the likeliest 1, 3 or 10 letters may be drawn: what becomes of the names?",
        Experiment("top-k 1, 3, 10", draws=tuple(Draw(1.0, top_k) for top_k in (1, 3, 10))),
    ),
    Preset(
        "Five times the training: five times the progress?",
        Experiment("5,000 steps", steps=5000),
    ),
    Preset(
        "Your own list, one item a line: what will the model pick up?",
        Experiment("own list", OWN),
    ),
)


def own_list(documents: Sequence[str]) -> Corpus:
    """Return a person's own items as a corpus.

    Raises:
        CorpusError: None, too many, or one that is too long.
    """
    if not documents:
        raise CorpusError("the list is empty: give one item a line")
    total = sum(map(len, documents))
    if len(documents) > MAX_ITEMS or total > MAX_CHARACTERS:
        raise CorpusError(
            f"the list has {len(documents):,} items and {total:,} characters: at most "
            f"{MAX_ITEMS:,} and {MAX_CHARACTERS:,} fit a quick run, so shorten it"
        )
    longest = max(range(len(documents)), key=lambda i: len(documents[i]))
    if len(documents[longest]) > MAX_ITEM:
        raise CorpusError(
            f"item {longest + 1:,} has {len(documents[longest]):,} characters: at most "
            f"{MAX_ITEM:,}, and one item a line"
        )
    return Corpus("own list", tuple(documents), "unknown", "typed or uploaded")


def corpus_of(experiment: Experiment, documents: Sequence[str] | None) -> Corpus:
    """Return the data of an experiment; `documents` are a person's own items.

    Raises:
        CorpusError: The corpus is not installed, or the list cannot be used.
    """
    if experiment.data == OWN:
        return own_list(documents or ())
    return corpora.load(experiment.data)


def look(corpus: Corpus, context: int) -> dict[str, Any]:
    """Return what an experiment on a list starts from: `vocab_size` and `audit`, as in a result.

    Raises:
        CorpusError: There is no item.
    """
    items = prepare_items(corpus, context_length=context)
    return {"vocab_size": len(items.vocabulary), "audit": items.audit}


def estimate(experiment: Experiment, vocab_size: int) -> tuple[int, float]:
    """Return the number of parameters, and about how many seconds the run takes.

    The time assumes items and samples as long as the context: shorter ones take less.
    """
    sizes = experiment.sizes(vocab_size)
    parameters = parameters_of(sizes)
    everywhere = parameters * sizes.context_length
    a_step = (
        _FIXED
        + _A_LAYER * sizes.n_layer
        + _A_WEIGHT * parameters
        + _A_WEIGHT_AND_POSITION * everywhere
        + _A_LOGIT * vocab_size * sizes.context_length
    )
    a_token = (
        _SAMPLED
        + _SAMPLED_LAYER * sizes.n_layer
        + _SAMPLED_WEIGHT_AND_POSITION * everywhere
        + _SAMPLED_LOGIT * vocab_size
    )
    tokens = len(experiment.draws) * SAMPLES * sizes.context_length
    training = SEEDS * (experiment.steps * a_step + parameters * _A_FIRST_WEIGHT)
    return parameters, (training + tokens * a_token) / 1e6


def require_quick(experiment: Experiment, vocab_size: int) -> None:
    """Refuse what takes too long, or too much memory, for a quick run.

    Raises:
        ConfigError: By the estimate it takes too long, or there are too many tokens.
    """
    if vocab_size > MAX_VOCAB:
        raise ConfigError(
            f"the list has {vocab_size - 1:,} different characters, and a quick run has room for "
            f"{MAX_VOCAB - 1:,}: shorten it"
        )
    parameters, seconds = estimate(experiment, vocab_size)
    if seconds > MAX_SECONDS:
        raise ConfigError(
            f"{parameters:,} parameters and {experiment.steps:,} steps with {SEEDS} seeds take "
            f"about {seconds:.0f} seconds, and a quick run has {MAX_SECONDS}: take fewer steps or "
            "a smaller model"
        )


def run(
    experiment: Experiment,
    corpus: Corpus,
    report: Callable[[Progress], None] = lambda progress: None,
    *,
    quick: bool = True,
) -> Result:
    """Train with each seed, and sample with the first.

    A training that diverges keeps its curve and says why it stopped; seeds after it are left out.

    Args:
        experiment: The settings.
        corpus: The items.
        report: Called after every step; steps are counted through all seeds.
        quick: Refuse what takes more than `MAX_SECONDS`; a job of its own may take longer.

    Raises:
        CorpusError: There is no item.
        ConfigError: It would take too long.
    """
    started = time.perf_counter()
    items = prepare_items(corpus, context_length=experiment.context)
    if quick:
        require_quick(experiment, len(items.vocabulary))
    losses: list[list[float]] = []
    samples: tuple[tuple[Drawn, ...], ...] = ()
    stopped = None
    for seed in experiment.seeds:
        trainer = GPTTrainer(replace(experiment.training, seed=seed), items)
        losses.append(trainer.losses)
        try:
            trainer.run(report=_through_all(report, experiment.steps * (len(losses) - 1)))
        except NonFiniteLossError as error:
            stopped = f"with seed {seed} {error}"
            break
        if seed == experiment.seed:
            model = MicroGPTModel(trainer.model_config, trainer.network.weights)
            samples = _samples(experiment, model, items)
    finals = [float(np.mean(each[-MEAN_OVER:])) for each in losses]
    return Result(
        parameters=estimate(experiment, len(items.vocabulary))[0],
        vocab_size=len(items.vocabulary),
        losses=np.array(losses[0]),
        seed_losses=(*finals[:-1], None) if stopped else tuple(finals),
        seconds=time.perf_counter() - started,
        samples=samples,
        stopped=stopped,
        audit=items.audit,
    )


def _through_all(report: Callable[[Progress], None], before: int) -> Callable[[Progress], None]:
    """Return a report that counts the steps of earlier seeds and expects those of all."""
    return lambda made: report(replace(made, step=before + made.step, steps=SEEDS * made.steps))


def _samples(
    experiment: Experiment, model: MicroGPTModel, items: Items
) -> tuple[tuple[Drawn, ...], ...]:
    known = set(items.documents)
    drawn = [
        sampling.generate(
            model,
            items.vocabulary,
            None,
            temperature=draw.temperature,
            top_k=draw.top_k,
            seed=SAMPLING_SEED,
            max_tokens=experiment.context,
            samples=SAMPLES,
        )
        for draw in experiment.draws
    ]
    return tuple(tuple(Drawn(s.text, s.text in known) for s in samples) for samples in drawn)


def _typed(name: str, value: Any) -> Any:
    """Return a setting's value, refused where it is of another type."""
    if name == "draws":
        return _draws(value)
    # By its fields: every class has more attributes than settings.
    known = name in Experiment.__dataclass_fields__
    wanted = type(getattr(_DEFAULT, name)) if known else None
    if wanted is float and type(value) is int:
        value = _real(value)
    if type(value) is not wanted:  # bool is an int
        raise ConfigError(f"{name[:40]!r} cannot be {str(value)[:40]!r} in an experiment")
    return value


def _real(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise ConfigError("a number in an experiment is too large") from error


def _draws(value: Any) -> tuple[Draw, ...]:
    pairs: list[Any] = value if isinstance(value, list) else [None]
    for pair in pairs:
        if not (isinstance(pair, list) and [type(number) for number in pair] in _DRAW_TYPES):
            raise ConfigError("'draws' are pairs of a temperature and a top-k or null")
    return tuple(Draw(_real(temperature), top_k) for temperature, top_k in pairs)


_DEFAULT = Experiment()
_DRAW_TYPES = [[number, count] for number in (int, float) for count in (int, type(None))]
