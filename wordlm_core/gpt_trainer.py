"""Train a microgpt, number for number as the scalar original does, a thousand times faster.

`random.Random(seed)` first shuffles the documents and then draws the weights. One document a
step, every position of it at once; Adam with bias correction; the learning rate falls to 0
along a line. The last weights are the ones that are kept: there is no validation split.
"""

import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from wordlm_core.checkpoint import Checkpoint, write_arrays
from wordlm_core.corpora import Corpus
from wordlm_core.errors import CheckpointError, ConfigError, CorpusError, TextError
from wordlm_core.items import Items, prepare_items
from wordlm_core.models import microgpt
from wordlm_core.models.base import count_parameters, log_softmax, quiet_overflow
from wordlm_core.models.microgpt import MicroGPTModel, Network
from wordlm_core.training import (
    NonFiniteLossError,
    Progress,
    TrainConfig,
    drive,
    model_config,
    owner,
    read_state,
    stride,
)

SNAPSHOTS = 100
MEAN_OVER = 200
BETA1, BETA2, EPSILON = 0.85, 0.99, 1e-8
_MAX_FLOAT16 = float(np.finfo(np.float16).max)


@dataclass
class Adam:
    """Adam on one vector of weights, in place.

    Attributes:
        weights: What is optimised.
        mean: Running mean of the gradients.
        square: Running mean of their squares.

    Source:
        Kingma and Ba 2014, arXiv:1412.6980; betas of microgpt.
    """

    weights: Float[np.ndarray, " n"]
    mean: Float[np.ndarray, " n"] = field(init=False)
    square: Float[np.ndarray, " n"] = field(init=False)

    def __post_init__(self) -> None:
        """Start with means of zero."""
        self.mean, self.square = np.zeros_like(self.weights), np.zeros_like(self.weights)
        self._work = np.empty_like(self.weights)

    def step(self, gradient: Float[np.ndarray, " n"], rate: float, number: int) -> None:
        """Take the `number`-th step (from 1) against a gradient."""
        work = self._work
        self.mean *= BETA1
        self.mean += np.multiply(gradient, 1 - BETA1, out=work)
        self.square *= BETA2
        np.multiply(gradient, gradient, out=work)
        work *= 1 - BETA2
        self.square += work
        np.divide(self.square, 1 - BETA2**number, out=work)
        np.sqrt(work, out=work)
        work += EPSILON
        np.divide(self.mean, work, out=work)
        work *= rate / (1 - BETA1**number)
        self.weights -= work


@quiet_overflow
def loss_of(
    network: Network, ids: Int[np.ndarray, " pos"], gradient: Network | None = None
) -> Float[np.ndarray, " targets"]:
    """Return the loss of each prediction of a document, in nats.

    Args:
        network: The model.
        ids: The document between the ids that begin and end it; what is beyond the context
            is left out.
        gradient: Where the gradient of the mean loss is written, if it is wanted.
    """
    count = min(network.config.context_length, len(ids) - 1)
    inputs, targets = ids[:count], ids[1 : count + 1]
    run = microgpt.forward(network, inputs)
    logs = log_softmax(run.out @ network.weights["lm_head"].T)
    places = np.arange(count)
    losses = -logs[places, targets]
    if gradient is not None:
        of_logits = np.exp(logs)
        of_logits[places, targets] -= 1
        of_logits /= count
        microgpt.backward(network, run, inputs, of_logits, gradient)
    return losses


class GPTTrainer:
    """One training of a microgpt, from a list of items to a checkpoint."""

    def __init__(self, config: TrainConfig, data: Items, *, resume: Path | None = None) -> None:
        """Draw the order and the weights, or take up the state in the file `resume`.

        Raises:
            ConfigError: Sizes out of range, or a setting that microgpt has no use for.
            CheckpointError: `resume` belongs to another config or corpus.
        """
        if config.batch != 1 or config.weight_decay != 0 or config.bfloat16_head:
            raise ConfigError(
                "microgpt reads one document a step, without weight decay, in float64: leave "
                "out --batch, --weight-decay and --bfloat16-head"
            )
        self.config, self.data = config, data
        self.model_config = model_config(config, len(data.vocabulary))
        rng = random.Random(config.seed)
        self._order = list(range(len(data.documents)))
        rng.shuffle(self._order)
        drawn = microgpt.initial_weights(self.model_config, rng)
        self._flat = np.concatenate([array.ravel() for array in drawn.values()])
        self._gradient = np.zeros_like(self._flat)
        self.network = microgpt.as_network(self.model_config, self._flat)
        self.gradient = microgpt.as_network(self.model_config, self._gradient)
        self._adam = Adam(self._flat)
        self._every = max(1, config.steps // SNAPSHOTS)
        self._every *= stride(config.steps // self._every + 1, self._flat.size)
        self.losses: list[float] = []
        self._stored: dict[int, dict[str, np.ndarray]] = {}
        self._tokens_seen, self._seconds = 0, 0.0
        if resume is None:
            self._store()
        else:
            self._load(resume)

    @property
    def step(self) -> int:
        """Return how many steps are done."""
        return len(self.losses)

    def document(self, step: int) -> str:
        """Return the document of a step, from 0 on."""
        return self.data.documents[self._order[step % len(self._order)]]

    def run(
        self,
        *,
        report: Callable[[Progress], None] = lambda progress: None,
        should_stop: Callable[[], bool] = lambda: False,
        save_to: Path | None = None,
        kept: Callable[[], None] = lambda: None,
    ) -> bool:
        """Train to the end; return False if `should_stop` ended it early.

        Args:
            report: Called after every step.
            should_stop: Asked before every step.
            save_to: Where to keep the state for resuming; when, says `drive`.
            kept: Called after every writing of the state.

        Raises:
            NonFiniteLossError: Training diverged; `losses` holds the curve up to there.
        """
        return drive(self, report, should_stop, save_to, kept)

    def advance(self) -> Progress:
        """Take one step; see `one_step`."""
        started = time.perf_counter()
        self.one_step()
        self._seconds += time.perf_counter() - started
        return Progress(
            self.step, self.config.steps, self.losses[-1], None, self._tokens_seen, self._seconds
        )

    def one_step(self) -> float:
        """Read one document and move all weights once; return the mean loss before, in nats.

        Raises:
            NonFiniteLossError: The loss is not finite, or the weights outgrew float16.
        """
        ids = self.data.vocabulary.document(self.document(self.step))
        try:
            losses = loss_of(self.network, ids, self.gradient)
        except CheckpointError as error:  # the softmax refuses what overflowed
            raise self._diverged("the loss was not finite", self.step + 1) from error
        rate = self.config.lr * (1 - self.step / self.config.steps)
        self._adam.step(self._gradient, rate, self.step + 1)
        self.losses.append(float(losses.mean()))
        self._tokens_seen += len(losses)
        if self.step % self._every == 0 and self.step < self.config.steps:
            self._store()
        elif self.step == self.config.steps:
            self._require_storable()
        return self.losses[-1]

    def seconds_evaluating(self, budget: float) -> float:
        """Return 0: there is nothing but training."""
        return 0.0

    def _store(self) -> None:
        self._require_storable()
        narrow = self._flat.astype(np.float16)
        weights = microgpt.as_network(self.model_config, narrow).weights
        self._stored[self.step] = dict(weights)

    def _require_storable(self) -> None:
        if not np.abs(self._flat).max() <= _MAX_FLOAT16:
            raise self._diverged(f"a weight grew beyond {_MAX_FLOAT16:,.0f}", self.step)

    def _diverged(self, what: str, step: int) -> NonFiniteLossError:
        return NonFiniteLossError(
            f"{what} at step {step:,}: the learning rate {self.config.lr:g} is probably too high"
        )

    # -- what comes out

    def checkpoint(self, *, test: bool = True, latest: bool = False) -> Checkpoint:
        """Return the last weights as a checkpoint; of a training that diverged, the last kept.

        Args:
            test: Ignored: there is no split to test on.
            latest: Ignored: the last weights are the ones that are kept.
        """
        done = self.step
        if not np.abs(self._flat).max() <= _MAX_FLOAT16:
            done = max(self._stored)
        weights = dict(self.network.weights) if done == self.step else self._stored[done]
        model = MicroGPTModel(self.model_config, weights)
        mean = np.mean(self.losses[-MEAN_OVER:]) if self.losses else None
        corpus = self.data.corpus
        metadata = {
            "corpus": {
                "name": corpus.name,
                "licence": corpus.licence,
                "source": corpus.source,
                "sha256": corpus.sha256,
                **self.data.audit,
                "floor": self.data.floor(self.model_config.context_length),
            },
            "seed": self.config.seed,
            "training": {
                **asdict(self.config),
                "hidden": self.model_config.hidden,
                "steps_done": self.step,
                "tokens_seen": self._tokens_seen,
                "runtime_seconds": self._seconds,
                "parameters": count_parameters(model.weights),
            },
            "metrics": {f"train_loss_last_{MEAN_OVER}": None if mean is None else float(mean)},
            "loss_history": list(self.losses),
        }
        stored = {f"step_{step}": kept for step, kept in self._stored.items() if step < done}
        stored[f"selected_step_{done}"] = dict(model.weights)
        made = Checkpoint.from_training(model, self.data.vocabulary, metadata, stored)
        return replace(made, seen_items=self.data.hashes())

    # -- the state on disk

    def save(self, path: Path) -> None:
        """Write the whole state; the file is replaced in one move."""
        arrays = {
            "weights": self._flat,
            "mean": self._adam.mean,
            "square": self._adam.square,
            "losses": np.array(self.losses),
        }
        for step, weights in self._stored.items():
            arrays[f"stored__{step}"] = np.concatenate([a.ravel() for a in weights.values()])
        record = {
            "owner": owner(self.config, self.data),
            "tokens_seen": self._tokens_seen,
            "seconds": self._seconds,
        }
        write_arrays(path, arrays, record)

    def _load(self, path: Path) -> None:
        arrays, record = read_state(path, owner(self.config, self.data))
        try:
            vectors = [arrays[name] for name in ("weights", "mean", "square", "stored__0")]
            losses = arrays["losses"]
            if {each.shape for each in vectors} != {self._flat.shape} or losses.ndim != 1:
                raise ValueError("arrays of other shapes")
            if len(losses) > self.config.steps:
                raise ValueError("more steps than the training has")
            self._flat[:], self._adam.mean[:], self._adam.square[:] = vectors[:3]
            self.losses = losses.tolist()
            self._tokens_seen, self._seconds = record["tokens_seen"], record["seconds"]
            for name in (name for name in arrays if name.startswith("stored__")):
                kept = microgpt.as_network(self.model_config, arrays[name]).weights
                self._stored[int(name.removeprefix("stored__"))] = dict(kept)
        except (KeyError, ValueError, TypeError) as error:
            raise CheckpointError(f"{path.name} is incomplete: start the training anew") from error


def mean_loss(checkpoint: Checkpoint, model: MicroGPTModel, corpus: Corpus) -> tuple[float, int]:
    """Return the mean loss over every prediction of a list, in nats, and their number.

    Unlike the mean of the losses in training, a long item counts for more than a short one.

    Raises:
        CorpusError: The list is empty, or holds a character that the model cannot read.
    """
    try:
        data = prepare_items(
            corpus,
            tokens=checkpoint.vocabulary.tokenizer,
            context_length=model.config.context_length,
            vocabulary=checkpoint.vocabulary,
        )
        losses = [loss_of(model.network, data.vocabulary.document(each)) for each in data.documents]
    except TextError as error:
        raise CorpusError(f"{corpus.name} cannot be read by this model: {error}") from error
    every = np.concatenate(losses)
    return float(every.mean()), len(every)
