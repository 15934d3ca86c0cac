"""What New run says of a job before it starts: its name, its lines of code. No Streamlit."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from app.jobs.work import Work
from app.new_run_sizes import SHARED
from wordlm_core.training import TrainConfig

LONGEST_NAME = 60
_LONGEST_CORPUS = 20
_COUNTS = {1: "one", 4: "four"}
_OPTIONS = {
    "steps": "--steps",
    "seed": "--seed",
    "n_head": "--heads",
    "n_layer": "--layers",
    "d_model": "--width",
    "hidden": "--hidden",
    "context_length": "--context",
    "lr": "--lr",
    "weight_decay": "--weight-decay",
    "batch": "--batch",
    "tokens": "--tokens",
    "max_vocab": "--max-vocab",
    "min_freq": "--min-freq",
}
_TRAIN = """
# In a terminal: {line}
from pathlib import Path
from wordlm_core import checkpoint, corpora, trainers
from wordlm_core.training import TrainConfig

config = TrainConfig(**{{config}})
corpus = corpora.load({{corpus}}, documents={{documents}})
training = trainers.build(config, trainers.prepared(config, corpus))
training.run()
checkpoint.save(training.checkpoint(), Path("run.npz"))
"""
_BENCHMARK = """
# In a terminal: {line}
from pathlib import Path
from wordlm_core import benchmark, corpora
from wordlm_core.training import TrainConfig

base = TrainConfig(**{{config}})
corpus = corpora.load({{corpus}}, documents={{documents}})
result = benchmark.run(corpus, Path("benchmark"), seeds={{seeds}}, base=base)
print(result["aggregate"])
"""
_EXPERIMENT = """
from wordlm_core import corpora, experiment
from wordlm_core.experiment import Draw, Experiment

tried = {experiment}
result = experiment.run(tried, corpora.load({corpus}))
print(tried.label, result.parameters, result.loss)
"""


def model(asked: TrainConfig) -> str:
    """Return the kind of model of a training in words."""
    if asked.family == "attention":
        count = _COUNTS.get(asked.n_head, str(asked.n_head))
        return f"attention, {count} {'head' if asked.n_head == 1 else 'heads'}"
    return {"mlp": "MLP"}.get(asked.family, asked.family)


def name(work: Work, size: str) -> str:
    """Return the name of a run that is given none: what is trained, on what, how large.

    Args:
        work: What is to be done.
        size: The ready size, or empty.
    """
    corpus = work.source.label.rsplit(".", 1)[0][:_LONGEST_CORPUS] or work.source.corpus
    if work.experiment is not None:
        what = work.experiment.label or "microgpt"
    elif work.kind == "benchmark":
        what = f"all kinds, {len(work.seeds)} seeds"
    else:
        what = model(work.config)
    return f"{what} · {corpus} · {size or f'{work.config.steps:,} steps'}"[:LONGEST_NAME]


def code(work: Work) -> tuple[str, dict[str, Any]]:
    """Return the lines that do the same elsewhere, as a template with its values."""
    corpus = "your_file.txt" if work.source.is_own else work.source.corpus
    values = {
        "config": asdict(work.config),
        "corpus": corpus,
        "documents": work.source.documents,
        "seeds": work.seeds,
        "experiment": work.experiment,
    }
    template = {"train": _TRAIN, "benchmark": _BENCHMARK}.get(work.kind, _EXPERIMENT)
    if work.kind != "experiment":
        template = template.format(line=command(work, corpus))
    return template, values


def command(work: Work, corpus: str) -> str:
    """Return the line for a terminal that asks for a training or a benchmark."""
    read = ["--corpus", corpus]
    read += ["--documents", str(work.source.documents)] if work.source.documents else []
    if work.kind == "benchmark":
        seeds = ["--seeds", ",".join(map(str, work.seeds))]
        options = [*seeds, *_options(work.config, SHARED)]
        words = ["wordlm_core", "benchmark", *read, "--out", "benchmark", *options]
    else:
        flags = [] if work.config.positions else ["--no-positions"]
        options = [*_options(work.config, tuple(_OPTIONS)), *flags]
        words = ["app.jobs", "submit", "--family", work.config.family, *read, *options]
    return shlex.join(["python", "-m", *words])


def _options(asked: TrainConfig, fields: Sequence[str]) -> list[str]:
    """Return the options of what differs from the family's defaults."""
    default = TrainConfig.of(asked.family)
    found: list[str] = []
    for field in fields:
        value = getattr(asked, field)
        # The limit of a vocabulary would otherwise be the profile's.
        if value != getattr(default, field) or field == "max_vocab":
            found += [_OPTIONS[field], str(value)]
    return found
