"""The comparison behind the Overview page: every kind of word model over several seeds.

Each run is a checkpoint in the output folder; a run that is already there with the same
settings and corpus is taken as it is, and a run that was stopped goes on from its saved state.
So the benchmark can be stopped at any moment and called again.
"""

import json
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from wordlm_core import checkpoint, models, trainers
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.corpora import Corpus
from wordlm_core.errors import CheckpointError, ConfigError
from wordlm_core.files import replacing
from wordlm_core.training import (
    EVALUATIONS,
    VALIDATION_WINDOWS,
    Progress,
    TrainConfig,
    model_config,
    resume_path,
)
from wordlm_core.windows import SPLIT_SEED, Dataset, prepare

HEADS = {"mlp": 0, "attention": 1, "multihead": 4}
SEEDS = (11, 29, 47)

Report = Callable[[str, int, Progress], None]


def run(
    corpus: Corpus,
    out: Path,
    *,
    seeds: Sequence[int] = SEEDS,
    base: TrainConfig | None = None,
    report: Report = lambda kind, seed, progress: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Train or take up every run, write `benchmark.json` and `vocab.json`.

    Args:
        corpus: What to train on.
        out: Folder for checkpoints and results.
        seeds: One run of each kind a seed; sample deviations need two or more.
        base: Settings that all kinds share; each kind uses its own rates.
        report: Called after every step with the kind and the seed.
        should_stop: Asked before every step.

    Returns:
        The content of `benchmark.json`.

    Raises:
        CheckpointError: The folder holds a run with other settings under the same name.
        KeyboardInterrupt: `should_stop` ended it; the state is saved and a later call goes on.
    """
    if not seeds or len(set(seeds)) != len(seeds):
        raise ConfigError("the benchmark needs at least one seed, each named once")
    base = base or TrainConfig()
    data = prepare(
        corpus,
        context_length=base.context_length,
        max_vocab=base.max_vocab,
        min_freq=base.min_freq,
    )
    plan = [(kind, seed, _config(base, kind, seed)) for seed in seeds for kind in HEADS]
    for _, _, config in plan:  # what cannot be built is said before the first hour of training
        model_config(config, len(data.vocabulary))
    done = {(kind, seed): _finished(config, data, out, kind) for kind, seed, config in plan}
    _write_json(out / "vocab.json", data.vocabulary.to_json())
    runs: dict[str, list[dict[str, Any]]] = {kind: [] for kind in HEADS}
    for kind, seed, config in plan:
        path = _path(out, kind, seed)
        loaded = done[kind, seed] or _train(
            config,
            data,
            path,
            report=lambda progress, kind=kind, seed=seed: report(kind, seed, progress),
            should_stop=should_stop,
        )
        runs[kind].append(_record(loaded, path.name))
    result = _summary(data, base, runs)
    _write_json(out / "benchmark.json", result)
    return result


def _config(base: TrainConfig, kind: str, seed: int) -> TrainConfig:
    family = models.by_kind()[kind]
    own = {"family": family.MODEL.family, **family.DEFAULTS}  # each family has its own rates
    return replace(base, **own, n_head=max(1, HEADS[kind]), seed=seed)


def _path(out: Path, kind: str, seed: int) -> Path:
    return out / f"{kind}_seed{seed}.npz"


def _finished(config: TrainConfig, data: Dataset, out: Path, kind: str) -> Checkpoint | None:
    """Return the run if it is there, refusing one of another training."""
    path = _path(out, kind, config.seed)
    if not path.exists():
        return None
    with checkpoint.naming(path):
        done = checkpoint.load(path)
    training = done.section("training")
    same = (
        config.matches(training)
        and done.vocabulary.sha256 == data.vocabulary.sha256
        and done.section("corpus").get("sha256") == data.corpus.sha256
    )
    if not same:
        raise CheckpointError(
            f"{path.name} is there already, but from other settings or another corpus: "
            "choose an empty folder, or remove it"
        )
    resume_path(path).unlink(missing_ok=True)
    return done


def _train(
    config: TrainConfig,
    data: Dataset,
    path: Path,
    *,
    report: Callable[[Progress], None],
    should_stop: Callable[[], bool],
) -> Checkpoint:
    state = resume_path(path)
    trainer = trainers.build(config, data, state if state.exists() else None)
    if not trainer.run(report=report, should_stop=should_stop, save_to=state):
        raise KeyboardInterrupt(f"stopped at step {trainer.step} of {path.name}: call it again")
    checkpoint.save(trainer.checkpoint(), path)
    state.unlink(missing_ok=True)
    return checkpoint.load(path)


def _record(done: Checkpoint, file: str) -> dict[str, Any]:
    training, metrics = done.metadata["training"], done.metadata["metrics"]
    return {
        "seed": training["seed"],
        "file": file,
        "parameter_count": training["parameters"],
        "tokens_seen": training["tokens_seen"],
        "selected_step": done.selected_step,
        "validation_loss": metrics["validation_loss"],
        "test_loss": metrics["test_loss"],
        "test_perplexity": metrics["test_perplexity"],
        "runtime_seconds": training["runtime_seconds"],
        "trace": done.metadata["trace"],
    }


def _summary(
    data: Dataset, base: TrainConfig, runs: Mapping[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    corpus = data.corpus
    aggregate = {
        kind: {
            key: _spread([record[key] for record in records])
            for key in ("test_loss", "test_perplexity", "runtime_seconds")
        }
        for kind, records in runs.items()
    }
    return {
        "source": {
            "name": corpus.name,
            "licence": corpus.licence,
            "source": corpus.source,
            "sha256": corpus.sha256,
        },
        "protocol": {
            "steps": base.steps,
            "batch": base.batch,
            "context_length": base.context_length,
            "d_model": base.d_model,
            "hidden": base.hidden,
            "heads": HEADS,
            "optimiser": "AdamW, constant rate, gradient norm clipped at 1.0",
            "validation": f"first {VALIDATION_WINDOWS:,} validation windows, at step 1, every "
            f"{max(1, base.steps // EVALUATIONS)} steps and at the last",
            "selection": "lowest validation loss; the test split is read once, with its weights",
            "split": f"80/10/10 by a hash of each document's text, seed {SPLIT_SEED}",
            "min_freq": base.min_freq,
            "max_vocab": base.max_vocab,
            "machine": f"{platform.system()} {platform.machine()}, Python "
            f"{platform.python_version()}",
        },
        "corpus_audit": data.audit,
        "configs": {kind: asdict(_config(base, kind, runs[kind][0]["seed"])) for kind in runs},
        "runs": dict(runs),
        "aggregate": aggregate,
        "comparison": _comparison(data, aggregate, runs),
    }


def _spread(values: list[float]) -> dict[str, Any]:
    return {
        "mean": statistics.fmean(values),
        "sample_std": statistics.stdev(values) if len(values) > 1 else None,
        "values": values,
    }


def _comparison(
    data: Dataset,
    aggregate: Mapping[str, Mapping[str, Any]],
    runs: Mapping[str, list[dict[str, Any]]],
) -> dict[str, Any]:
    loss = {kind: aggregate[kind]["test_loss"]["mean"] for kind in runs}
    perplexity = {kind: aggregate[kind]["test_perplexity"]["mean"] for kind in runs}
    sizes = {kind: runs[kind][0]["parameter_count"] for kind in runs}
    seeds = len(runs["mlp"])
    return {
        "attention_minus_mlp_test_loss": loss["attention"] - loss["mlp"],
        "multihead_minus_attention_test_loss": loss["multihead"] - loss["attention"],
        "relative_perplexity_change": perplexity["attention"] / perplexity["mlp"] - 1,
        "winner": "attention" if loss["attention"] < loss["mlp"] else "mlp",
        "claim_scope": (
            f"Mean over {seeds} {'seed' if seeds == 1 else 'seeds'} on "
            f"{data.audit['splits']['test']['targets']:,} held-out targets of "
            f"{data.corpus.name}, at these sizes and this step budget. The models differ in "
            f"parameters ({', '.join(f'{kind} {size:,}' for kind, size in sizes.items())}) and "
            "were not tuned against each other: it does not say that attention beats every "
            "fixed-window model, on other text or at other sizes."
        ),
    }


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    with replacing(path, CheckpointError) as file:
        file.write(text.encode() + b"\n")
