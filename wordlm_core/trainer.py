"""Train a word model, by the protocol that the benchmark and the jobs share.

AdamW at a constant rate, gradient norm clipped at 1, batches drawn with replacement. The
validation slice is fixed; its lowest loss selects the weights, and only those read the test
split, once. Every random draw comes from the seed, and the whole state can be written and
taken up again: 100 steps + resume + 100 gives the weights of 200 in one go.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from wordlm_core import models
from wordlm_core.checkpoint import (
    Checkpoint,
    write_arrays,
)
from wordlm_core.errors import CheckpointError
from wordlm_core.models._torch_ops import head_loss
from wordlm_core.models.base import EMBEDDING, LanguageModel, count_parameters
from wordlm_core.training import (
    EVALUATIONS,
    VALIDATION_WINDOWS,
    NonFiniteLossError,
    Progress,
    TrainConfig,
    drive,
    evaluated_steps,
    finite,
    model_config,
    owner,
    perplexity,
    read_state,
    stride,
)
from wordlm_core.windows import Dataset, Windows

_EVALUATED_AT_ONCE = 1024
_SEED_OFFSET_OF_BATCHES = 10_000
_MAX_FLOAT16 = float(np.finfo(np.float16).max)


@dataclass
class _State:
    """All that changes while training; what a resume file holds."""

    weights: dict[str, torch.Tensor]
    best: dict[str, np.ndarray]
    step: int = 0
    best_step: int = 0
    best_loss: float = math.inf
    tokens_seen: int = 0
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)
    trace: list[dict[str, Any]] = field(default_factory=list)
    stored: dict[int, dict[str, np.ndarray]] = field(default_factory=dict)


class Trainer:
    """One training, from a dataset to a checkpoint."""

    def __init__(self, config: TrainConfig, data: Dataset, *, resume: Path | None = None) -> None:
        """Build the model, or take up the state in the file `resume`.

        Raises:
            CheckpointError: `resume` belongs to another config or corpus.
        """
        self.config, self.data = config, data
        self._family = models.family(config.family)
        self.model_config = model_config(config, len(data.vocabulary))
        with torch.random.fork_rng(devices=[]):  # the process's own stream goes on as it was
            torch.manual_seed(config.seed)
            weights = self._family.initial_weights(self.model_config)
        self._state = _State({k: v.requires_grad_() for k, v in weights.items()}, {})
        self._optimiser = torch.optim.AdamW(
            weights.values(), lr=config.lr, weight_decay=config.weight_decay, fused=True
        )
        self._generator = torch.Generator().manual_seed(config.seed + _SEED_OFFSET_OF_BATCHES)
        self._head_dtype = torch.bfloat16 if config.bfloat16_head else torch.float32
        self._every = max(1, config.steps // EVALUATIONS)
        self._evaluated = evaluated_steps(config.steps)
        if resume is None:
            self._state.best = self._copy_weights()
            self._store(0)
        else:
            self._load(resume)

    @property
    def step(self) -> int:
        """Return how many steps are done."""
        return self._state.step

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
            NonFiniteLossError: The loss became NaN or infinite; the state on disk is the last
                finite one.
        """
        return drive(self, report, should_stop, save_to, kept)

    def advance(self) -> Progress:
        """Take one step, and evaluate where it is due."""
        state = self._state
        started = time.perf_counter()
        loss = self.one_step()
        validation = self._evaluate_if_due()
        state.seconds += time.perf_counter() - started
        return Progress(
            state.step, self.config.steps, loss, validation, state.tokens_seen, state.seconds
        )

    def one_step(self) -> float:
        """Draw a batch and move all weights once; return the loss before, in nats.

        Raises:
            NonFiniteLossError: The loss is not finite; no weight has moved.
        """
        state, train = self._state, self.data.splits["train"]
        which = torch.randint(len(train), (self.config.batch,), generator=self._generator).numpy()
        loss = self._loss(train, which)
        value = loss.item()
        if not math.isfinite(value):
            raise NonFiniteLossError(
                f"the loss was not finite at step {state.step + 1}: the learning rate "
                f"{self.config.lr:g} is probably too high"
            )
        self._optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(state.weights.values(), 1.0)
        self._optimiser.step()
        state.step += 1
        state.tokens_seen += self.config.batch
        state.losses.append(value)
        return value

    def _loss(self, split: Windows, which: Any) -> torch.Tensor:
        weights = self._state.weights
        contexts = torch.from_numpy(np.ascontiguousarray(split.contexts(which)))
        hidden = self._family.training_hidden(self.model_config, weights, contexts)
        targets = torch.from_numpy(np.ascontiguousarray(split.targets(which)))
        return head_loss(
            hidden,
            weights["vocab_head.weight"],
            weights["vocab_head.bias"],
            targets,
            self._head_dtype,
        )

    def _evaluate_if_due(self) -> float | None:
        state = self._state
        if state.step not in self._evaluated:
            return None
        model = self._model(self._copy_weights())
        loss = mean_loss(model, self.data.splits["validation"], limit=VALIDATION_WINDOWS)
        if not math.isfinite(loss):
            raise NonFiniteLossError(f"the validation loss was not finite at step {state.step}")
        since = state.trace[-1]["step"] if state.trace else 0
        state.trace.append(
            {
                "step": state.step,
                "train_loss": float(np.mean(state.losses[since:])),
                "validation_loss": loss,
                "tokens_seen": state.tokens_seen,
            }
        )
        if loss < state.best_loss:
            state.best, state.best_step, state.best_loss = self._copy_weights(), state.step, loss
        if state.step % self._every == 0 or state.step == self.config.steps:
            self._store(state.step)
        return loss

    def seconds_evaluating(self, budget: float) -> float:
        """Measure a slice of an evaluation; return what all of a training take, the test too.

        Args:
            budget: Seconds for the measurement, about.
        """
        model, split = self._model(self._copy_weights()), self.data.splits["validation"]

        def a_window(windows: int) -> float:
            started = time.perf_counter()
            mean_loss(model, split, limit=windows)
            return (time.perf_counter() - started) / min(windows, len(split))

        a_window(_EVALUATED_AT_ONCE)  # a warm-up
        affordable = int(budget / a_window(_EVALUATED_AT_ONCE))
        measured = a_window(min(max(affordable, _EVALUATED_AT_ONCE), VALIDATION_WINDOWS))
        validation = len(self._evaluated) * min(len(split), VALIDATION_WINDOWS)
        return measured * (validation + len(self.data.splits["test"]))

    def _model(self, weights: dict[str, np.ndarray]) -> LanguageModel:
        return self._family.build(self.model_config, weights)

    def _copy_weights(self) -> dict[str, np.ndarray]:
        return {k: v.detach().numpy().copy() for k, v in self._state.weights.items()}

    def _store(self, step: int) -> None:
        """Keep this step's embedding and, where there is room, its other weights."""
        weights = self._copy_weights()
        if max(float(np.abs(array).max()) for array in weights.values()) > _MAX_FLOAT16:
            raise NonFiniteLossError(
                f"the weights outgrew float16 at step {step}: the learning rate "
                f"{self.config.lr:g} is probably too high"
            )
        index, embedding = step // self._every, weights[EMBEDDING]
        whole, evaluations = count_parameters(weights), self.config.steps // self._every + 1
        if index % stride(evaluations, whole) == 0:
            kept = weights
        elif index % stride(evaluations, embedding.size) == 0:
            kept = {EMBEDDING: embedding}
        else:
            return
        self._state.stored[step] = {k: v.astype(np.float16) for k, v in kept.items()}

    # -- what comes out

    def checkpoint(self, *, test: bool = True, latest: bool = False) -> Checkpoint:
        """Return the best weights so far as a checkpoint.

        Args:
            test: Read the test split. Only for the end of a training.
            latest: Return the weights of now instead, to look into while it trains: the best
                are those of an evaluation that may be long ago.
        """
        state, config = self._state, self.config
        weights = self._copy_weights() if latest else state.best
        step = state.step if latest else state.best_step
        model = self._model(weights)
        metrics: dict[str, Any] = {"validation_loss": finite(state.best_loss)}
        if test:
            loss = mean_loss(model, self.data.splits["test"])
            metrics |= {
                "test_loss": loss,
                "test_perplexity": perplexity(loss),
                "test_targets": len(self.data.splits["test"]),
            }
        corpus = self.data.corpus
        metadata = {
            "corpus": {
                "name": corpus.name,
                "licence": corpus.licence,
                "source": corpus.source,
                "sha256": corpus.sha256,
                **self.data.audit,
            },
            "seed": config.seed,
            "training": {
                **asdict(config),
                "steps_done": state.step,
                "tokens_seen": state.tokens_seen,
                "runtime_seconds": state.seconds,
                "parameters": count_parameters(model.weights),
            },
            "metrics": metrics,
            "trace": state.trace,
            "loss_history": [round(loss, 5) for loss in state.losses],
        }
        stored = {f"step_{step}": arrays for step, arrays in state.stored.items()}
        stored.pop(f"step_{step}", None)
        stored[f"selected_step_{step}"] = dict(model.weights)
        ordered = dict(sorted(stored.items(), key=lambda item: int(item[0].rsplit("_", 1)[1])))
        return Checkpoint.from_training(model, self.data.vocabulary, metadata, ordered)

    # -- the state on disk

    def save(self, path: Path) -> None:
        """Write the whole state; the file is replaced in one move."""
        state = self._state
        arrays: dict[str, np.ndarray] = {"generator": self._generator.get_state().numpy()}
        arrays |= {f"weights__{k}": v.detach().numpy() for k, v in state.weights.items()}
        arrays |= {f"best__{k}": v for k, v in state.best.items()}
        for name, tensor in state.weights.items():
            for part, value in self._optimiser.state.get(tensor, {}).items():
                arrays[f"adam__{part}__{name}"] = value.numpy()
        for step, stored in state.stored.items():
            arrays |= {f"stored__{step}__{k}": v for k, v in stored.items()}
        record = {
            "owner": owner(self.config, self.data),
            "step": state.step,
            "best_step": state.best_step,
            "best_loss": finite(state.best_loss),
            "tokens_seen": state.tokens_seen,
            "seconds": state.seconds,
            "losses": state.losses,
            "trace": state.trace,
        }
        write_arrays(path, arrays, record)

    def _load(self, path: Path) -> None:
        read_only, record = read_state(path, owner(self.config, self.data))
        try:
            self._take({name: array.copy() for name, array in read_only.items()}, record)
        except (KeyError, ValueError, RuntimeError, TypeError) as error:
            raise CheckpointError(f"{path.name} is incomplete: start the training anew") from error

    def _take(self, arrays: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        state = self._state
        with torch.no_grad():
            for name, tensor in state.weights.items():
                tensor.copy_(torch.from_numpy(arrays[f"weights__{name}"]))
                self._optimiser.state[tensor] = {
                    part: torch.from_numpy(arrays[f"adam__{part}__{name}"])
                    for part in ("step", "exp_avg", "exp_avg_sq")
                    if record["step"]
                }
        self._generator.set_state(torch.from_numpy(arrays["generator"]))
        state.best = {k: arrays[f"best__{k}"] for k in state.weights}
        for key in (k for k in arrays if k.startswith("stored__")):
            _, step, name = key.split("__", 2)
            state.stored.setdefault(int(step), {})[name] = arrays[key]
        state.step, state.best_step = record["step"], record["best_step"]
        best_loss = record["best_loss"]
        state.best_loss = math.inf if best_loss is None else best_loss
        state.tokens_seen, state.seconds = record["tokens_seen"], record["seconds"]
        state.losses, state.trace = record["losses"], record["trace"]


def mean_loss(model: LanguageModel, windows: Windows, *, limit: int | None = None) -> float:
    """Return the mean loss over the first `limit` windows in order, in nats a token.

    Computed with the training forward (full padded windows), summed in float64.
    """
    module = models.family(model.family)
    weights = {
        name: torch.from_numpy(array.astype(np.float32)) for name, array in model.weights.items()
    }
    total, count = 0.0, min(len(windows), limit or len(windows))
    with torch.no_grad():
        for batch in _batches(count):
            contexts = torch.from_numpy(np.ascontiguousarray(windows.contexts(batch)))
            targets = torch.from_numpy(np.ascontiguousarray(windows.targets(batch)))
            hidden = module.training_hidden(model.config, weights, contexts)
            logits = hidden @ weights["vocab_head.weight"].T + weights["vocab_head.bias"]
            loss = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
            total += loss.double().item()
    return total / count


def _batches(count: int) -> Iterator[slice]:
    size = _EVALUATED_AT_ONCE
    return (slice(start, min(start + size, count)) for start in range(0, count, size))
