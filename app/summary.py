"""What the Overview page says, as rows and sentences made from the benchmark's results.

Without `benchmark.json` the checkpoints speak for themselves: each carries its own metrics
and the trace of its training.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from app import figures
from app.figures import model_name
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.errors import CheckpointError
from wordlm_core.models.base import count_parameters

Rows = list[list[str]]
Traces = dict[str, list[Sequence[Mapping[str, Any]]]]

RESULT_HEADS = ("model", "test loss, nats a word", "perplexity", "parameters", "training", "seeds")
FILE_HEADS = ("checkpoint", "model", "parameters", "steps stored", "selected", "test loss")
SPLIT_HEADS = ("split", "documents", "tokens", "targets", "unknown")


def require_complete(measured: Any) -> None:
    """Refuse a benchmark that lacks what the page shows.

    Raises:
        CheckpointError: Naming the first part that is missing.
    """
    try:
        for part in (results, conclusion, perplexities, splits, protocol, claim_scope):
            part(measured)
        figures.learning_curves(traces(measured, {}))
    except KeyError as error:
        raise CheckpointError(f"it has no {error}") from error
    except (TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError) as error:
        raise CheckpointError(f"a part of it is not as it should be: {error}") from error


def claim_scope(measured: Mapping[str, Any]) -> str:
    """Return how far the measured conclusion reaches."""
    return str(measured["comparison"]["claim_scope"])


def results(measured: Mapping[str, Any]) -> Rows:
    """Return one row a kind of model: mean and sample deviation over its seeds."""
    rows: Rows = []
    for kind, runs in measured["runs"].items():
        totals = measured["aggregate"][kind]
        rows.append(
            [
                model_name(kind),
                _spread(totals["test_loss"], 3),
                _spread(totals["test_perplexity"], 1),
                f"{runs[0]['parameter_count']:,}",
                f"{totals['runtime_seconds']['mean'] / 60:.1f} min",
                str(len(runs)),
            ]
        )
    return rows


def conclusion(measured: Mapping[str, Any]) -> list[str | tuple[str, str]]:
    """Return the measured difference between one head and the MLP, as parts of an answer."""
    totals, runs = measured["aggregate"], measured["runs"]
    perplexity = {kind: totals[kind]["test_perplexity"]["mean"] for kind in totals}
    change = measured["comparison"]["relative_perplexity_change"]
    sizes = {kind: runs[kind][0]["parameter_count"] for kind in runs}
    return [
        ("One head of attention", "attention"),
        " leaves the model choosing between ",
        (f"{perplexity['attention']:.0f}", "number"),
        " words where ",
        ("the fixed-window MLP", "mlp"),
        " is left with ",
        (f"{perplexity['mlp']:.0f}", "number"),
        f": {_relative(change, 'higher', 'lower')} perplexity with "
        f"{_relative(sizes['attention'] / sizes['mlp'] - 1, 'more', 'fewer')} parameters.",
    ]


def traces(measured: Mapping[str, Any] | None, checkpoints: Mapping[str, Checkpoint]) -> Traces:
    """Return the training traces by kind, from the benchmark or from the checkpoints."""
    if measured is not None:
        return {kind: [run["trace"] for run in runs] for kind, runs in measured["runs"].items()}
    found: Traces = {}
    for loaded in checkpoints.values():
        trace = loaded.trace()
        if trace:
            found.setdefault(loaded.model.kind, []).append(trace)
    return found


def perplexities(measured: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return the test perplexity of every seed by kind."""
    return {
        kind: list(totals["test_perplexity"]["values"])
        for kind, totals in measured["aggregate"].items()
    }


def splits(measured: Mapping[str, Any]) -> Rows:
    """Return the corpus audit, one row a split."""
    return [
        [
            name,
            f"{split['documents']:,}",
            f"{split['tokens']:,}",
            f"{split['targets']:,}",
            f"{split['unknown_share']:.2%}",
        ]
        for name, split in measured["corpus_audit"]["splits"].items()
    ]


def protocol(measured: Mapping[str, Any]) -> Rows:
    """Return the protocol and what was removed from the corpus, one row an entry."""
    audit = {k: v for k, v in measured["corpus_audit"].items() if k != "splits"}
    entries = measured["source"] | audit | measured["protocol"]
    return [[str(name).replace("_", " "), _plain(value)] for name, value in entries.items()]


def files(checkpoints: Mapping[str, Checkpoint]) -> Rows:
    """Return one row a checkpoint that can be opened."""
    return [
        [
            name,
            model_name(loaded.model.kind),
            f"{count_parameters(loaded.model.weights):,}",
            str(len(loaded.steps)),
            "-" if loaded.selected_step is None else f"{loaded.selected_step:,}",
            _loss(loaded),
        ]
        for name, loaded in checkpoints.items()
    ]


def _loss(loaded: Checkpoint) -> str:
    loss = loaded.section("metrics").get("test_loss")
    return f"{loss:.3f}" if isinstance(loss, float) else "-"


def _relative(change: float, up: str, down: str) -> str:
    return f"{abs(change):.0%} {up if change > 0 else down}"


def _spread(total: Mapping[str, Any], digits: int) -> str:
    deviation = total["sample_std"]
    spread = "" if deviation is None else f" ± {deviation:.{digits}f}"
    return f"{total['mean']:.{digits}f}{spread}"


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(entry)}" for name, entry in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)
