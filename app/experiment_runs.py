"""Predictions, what came of them, and the table of runs as files. No Streamlit."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.exports import csv_text, json_text, markdown_line
from wordlm_core import typed
from wordlm_core.errors import TextError
from wordlm_core.experiment import SAME_WITHIN, SAMPLES, SEEDS, Draw, Experiment, Result

DOWN, SAME, UP = range(3)
DIRECTIONS = ("goes down", "stays the same", "goes up")
RIGHT, WRONG, CANNOT_TELL = "right", "wrong", "within noise: these runs cannot tell"
MOST_NATS = 100.0
NO_POSITIONS = "wpe is still drawn, stored and counted, but never added."
_NAMES = {
    "data": "data",
    "steps": "steps",
    "lr": "learning rate",
    "d_model": "width",
    "n_head": "heads",
    "n_layer": "layers",
    "positions": "positions",
    "seed": "seed",
    "context": "context",
}


@dataclass(frozen=True)
class Prediction:
    """What a person committed to before the run.

    Attributes:
        direction: Index into `DIRECTIONS`: where the loss goes against the baseline.
        size: By how many nats; 0 where it stays the same.
        count: Number of parameters, counted by hand.
        because: The hypothesis, in the person's own words.
    """

    direction: int
    size: float
    count: int
    because: str

    @property
    def change(self) -> float:
        """Return the predicted change of the loss in nats."""
        return (self.direction - SAME) * self.size


@dataclass(frozen=True)
class Run:
    """An experiment that was run, and what it is compared with.

    Attributes:
        number: From 1, in the order of the runs.
        experiment: The settings.
        listed: Which list of a person's own it read; empty for a named corpus.
        prediction: What was committed before.
        result: What came out.
        baseline: What came out of the baseline.
    """

    number: int
    experiment: Experiment
    listed: str
    prediction: Prediction
    result: Result
    baseline: Result

    @property
    def name(self) -> str:
        """Return the run's number and label."""
        return f"{self.number} · {self.experiment.label}"

    @property
    def changes(self) -> tuple[float, ...] | None:
        """Return with each seed the loss minus the baseline's; None where one diverged."""
        here, there = self.result.finals, self.baseline.finals
        if here is None or there is None:
            return None
        return tuple(loss - base for loss, base in zip(here, there, strict=True))

    @property
    def change(self) -> float | None:
        """Return the mean of the changes, or None where one of the trainings diverged."""
        return None if self.changes is None else sum(self.changes) / len(self.changes)

    @property
    def direction(self) -> int:
        """Return where the loss went: nowhere if small, or if the seeds contradict each other.

        A training that diverged went up.
        """
        if self.changes is None or self.change is None:
            return UP
        contradicted = min(self.changes) <= 0 <= max(self.changes)
        if contradicted or abs(self.change) < SAME_WITHIN:
            return SAME
        return UP if self.change > 0 else DOWN

    @property
    def judgement(self) -> str:
        """Return what the runs say of the predicted direction.

        Whoever predicts a change is not refuted by one too small to be told from noise, but is by
        losses that are equal to the last digit: there is no noise in them.
        """
        if self.direction == self.prediction.direction:
            return RIGHT
        changed = self.changes is None or any(self.changes)
        return CANNOT_TELL if changed and self.direction == SAME else WRONG

    @property
    def sampling_only(self) -> bool:
        """Return whether it trains as its baseline does, and only samples in other ways."""
        tried, baseline = self.experiment, self.experiment.baseline()
        return not changes(tried, baseline) and tried.draws != baseline.draws

    @property
    def count_right(self) -> bool:
        """Return whether the parameters were counted right."""
        return self.prediction.count == self.result.parameters


def parse_size(text: str) -> float:
    """Return a typed number of nats.

    Raises:
        TextError: It is none.
    """
    try:
        size = float(text.strip().replace(",", "."))
    except ValueError:
        size = math.nan
    if not 0 < size <= MOST_NATS:
        raise TextError(f"by how much is a number of nats above 0, up to {MOST_NATS:g}, like 0.05")
    return size


def parse_count(text: str) -> int:
    """Return a typed number of parameters.

    Raises:
        TextError: It is none.
    """
    try:
        return typed.count(text)
    except TextError as error:
        raise TextError("the number of parameters is a whole number, like 1,234") from error


def changes(experiment: Experiment, baseline: Experiment) -> list[str]:
    """Return each setting of the training that differs: its name, before and after."""
    here, there = asdict(experiment), asdict(baseline)
    return [
        f"{title} {_said(there[name])} → {_said(here[name])}"
        for name, title in _NAMES.items()
        if here[name] != there[name]
    ]


def named(experiment: Experiment) -> str:
    """Return a label made of what differs from the baseline."""
    return ", ".join(_short(experiment)) or "as baseline"


def draw_name(draw: Draw) -> str:
    """Return one way to sample in words."""
    return f"T {draw.temperature:g}" + ("" if draw.top_k is None else f", top-k {draw.top_k}")


def seeds_said(experiment: Experiment) -> str:
    """Return the seeds of an experiment in words."""
    return f"{experiment.seeds[0]} to {experiment.seeds[-1]}"


def predicted(prediction: Prediction) -> str:
    """Return a prediction of the loss in words."""
    by = "" if prediction.direction == SAME else f" by {prediction.size:g}"
    return f"{DIRECTIONS[prediction.direction]}{by}"


def happened(run: Run) -> str:
    """Return in words what the loss did, and how far the seeds agree."""
    if run.changes is None:
        return "diverged"
    spread = f"between {min(run.changes):+.3f} and {max(run.changes):+.3f} over {SEEDS} seeds"
    return f"{DIRECTIONS[run.direction]} ({run.change:+.3f}, {spread})"


def verdict(run: Run) -> list[str]:
    """Return sentences that hold the prediction against the result."""
    if run.change is None:
        why = run.result.stopped or run.baseline.stopped
        told = [
            f"Training diverged ({why}). That counts as going up: the direction was "
            f"{run.judgement}."
        ]
    else:
        off = abs(run.change - run.prediction.change)
        is_was = "is" if run.judgement == CANNOT_TELL else "was"
        told = [f"The direction {is_was} {run.judgement}; the size was {off:.3f} nats off."]
    counted = f"You counted {run.prediction.count:,} parameters"
    if run.count_right:
        return [*told, f"{counted}: right."]
    there = f"{counted}; there are {run.result.parameters:,}: {counted_out(run)}."
    return [*told, there, *([] if run.experiment.positions else [NO_POSITIONS])]


def counted_out(run: Run) -> str:
    """Return the sum that gives the number of parameters, matrix by matrix."""
    sizes = run.experiment.sizes(run.result.vocab_size)
    tables = [f"{name} {_product(sizes.shapes[name])}" for name in ("wte", "wpe", "lm_head")]
    attention, fc1, fc2 = (
        sizes.shapes[f"layer0.{name}"] for name in ("attn_wq", "mlp_fc1", "mlp_fc2")
    )
    layer = 4 * math.prod(attention) + math.prod(fc1) + math.prod(fc2)
    layers = "1 layer" if sizes.n_layer == 1 else f"{sizes.n_layer} layers of {layer:,}"
    return (
        f"{' + '.join(tables)} + {layers} (wq, wk, wv, wo {_product((4, *attention))} + fc1 "
        f"{_product(fc1)} + fc2 {_product(fc2)}) = {run.result.parameters:,}"
    )


def runs_csv(runs: Sequence[Run], explanations: Mapping[int, str]) -> str:
    """Return one row a run."""
    heads = (
        *("run", "experiment", *_NAMES.values(), "sampling", "parameters", "loss_last_200"),
        *("baseline_loss", "change", "lowest_change", "highest_change", "seconds", "stopped"),
        *("predicted_direction", "predicted_change", "predicted_parameters", "hypothesis"),
        *("explanation", "samples"),
    )
    rows: list[tuple[object, ...]] = []
    for run in runs:
        settings, made, guess = asdict(run.experiment), run.result, run.prediction
        low, high = (min(run.changes), max(run.changes)) if run.changes else (None, None)
        row = (
            *(run.number, run.experiment.label, *(settings[name] for name in _NAMES)),
            *("; ".join(map(draw_name, run.experiment.draws)), made.parameters, made.loss),
            *(run.baseline.loss, run.change, low, high, made.seconds, made.stopped),
            *(DIRECTIONS[guess.direction], guess.change, guess.count, guess.because),
            *(
                explanations.get(run.number, ""),
                " ".join(each.text for drawn in made.samples for each in drawn),
            ),
        )
        rows.append(row)
    return csv_text(
        heads, rows, typed=("experiment", "data", "hypothesis", "explanation", "samples")
    )


def runs_json(runs: Sequence[Run], explanations: Mapping[int, str]) -> str:
    """Return everything about the runs, every loss included."""
    told = [
        {
            "run": run.number,
            "experiment": run.experiment.to_json(),
            "baseline": run.experiment.baseline().to_json(),
            "prediction": asdict(run.prediction),
            "result": run.result.to_json(),
            "baseline_loss": run.baseline.loss,
            "change": run.change,
            "changes": run.changes,
            "explanation": explanations.get(run.number, ""),
        }
        for run in runs
    ]
    return json_text({"runs": told})


def report(
    runs: Sequence[Run], explanations: Mapping[int, str], *, name: str = "", date: str
) -> str:
    """Return a report to hand in, as Markdown; what was typed or drawn stands in code blocks.

    Args:
        runs: Its runs.
        explanations: By number of the run.
        name: Who hands it in; may be empty.
        date: When.
    """
    heads = "| run | parameters | loss, last 200 | change | predicted | direction | count |"
    rows = [
        f"| {run.name} | {run.result.parameters:,} | {loss_of(run.result)} | {_change(run)} "
        f"| {predicted(run.prediction)} | {run.judgement} | {RIGHT if run.count_right else WRONG} |"
        for run in runs
    ]
    told = [
        "# Experiments with microgpt",
        f"Name: {markdown_line(name.strip()) or '-'}. Date: {date}.",
        "\n".join([heads, "|---|---|---|---|---|---|---|", *rows]),
    ]
    for run in runs:
        told += _chapter(run, explanations.get(run.number, ""))
    return "\n\n".join(told) + "\n"


def loss_of(result: Result) -> str:
    """Return a result's loss for people."""
    return "diverged" if result.loss is None else f"{result.loss:.3f}"


def in_short(result: Result, count: int = 4) -> str:
    """Return the first samples of each way to sample, one way a line."""
    lines = [" ".join(each.text or "(empty)" for each in drawn[:count]) for drawn in result.samples]
    return "\n".join(lines) or "none"


# -- parts


def _product(shape: tuple[int, ...]) -> str:
    return f"{' x '.join(map(str, shape))} = {math.prod(shape):,}"


def _chapter(run: Run, explanation: str) -> list[str]:
    baseline = run.experiment.baseline()
    changed = "; ".join(changes(run.experiment, baseline)) or "nothing in the training"
    told = [
        f"## {run.name}",
        f"Changed against the baseline ({baseline.data}, loss {loss_of(run.baseline)}): {changed}. "
        f"Same seeds ({seeds_said(run.experiment)}).",
        f"**Predicted:** the loss {predicted(run.prediction)}; "
        f"{run.prediction.count:,} parameters.",
        "**Because:**",
        _fenced(run.prediction.because),
        f"**Result:** the loss {happened(run)}: {loss_of(run.result)}; "
        f"{run.result.parameters:,} parameters, {run.result.seconds:.2f} seconds. "
        f"{' '.join(verdict(run))}",
    ]
    for draw, drawn in zip(run.experiment.draws, run.result.samples, strict=False):
        new = sum(not each.seen for each in drawn)
        told.append(f"**Samples, {draw_name(draw)}** ({new} of {SAMPLES} are not in the list):")
        told.append(_fenced(" ".join(each.text for each in drawn)))
    return [*told, "**Explanation:**", _fenced(explanation)]


def _fenced(text: str) -> str:
    """Return a code block, in which Markdown reads nothing, whatever the text holds."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _short(experiment: Experiment) -> list[str]:
    here, there = asdict(experiment), asdict(Experiment())
    return [
        f"{title} {_said(here[name])}"
        for name, title in _NAMES.items()
        if here[name] != there[name]
    ]


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    return str(value)


def _change(run: Run) -> str:
    return "" if run.change is None else f"{run.change:+.3f}"
