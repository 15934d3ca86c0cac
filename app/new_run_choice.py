"""What New run trains: one model, all kinds, or an experiment; ready sizes or one's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from app import controls, experiment_runs, layout, new_run_corpus, new_run_sizes
from app.jobs.uploads import Upload
from app.jobs.work import Work
from app.new_run_corpus import Chosen
from app.new_run_sizes import BENCHMARK_SEEDS, FULL, MODELS, OWN_SETTINGS, SIZE_NAMES, Model
from app.number_boxes import decimal, switch, whole, wholes
from wordlm_core.corpora import stories
from wordlm_core.errors import WordLMError
from wordlm_core.experiment import DATA, OWN, PRESETS, Experiment
from wordlm_core.items import TOKENS
from wordlm_core.models.base import check_sizes
from wordlm_core.training import TrainConfig

_WHAT = ("one model", "all kinds", "an experiment")
_AS_IS, _LONGER = "as on its page", "6,000 steps"
_LONG_STEPS = 6_000
_ABOUT = {
    "benchmark": "MLP, attention with one head and with four on the same text and seeds: "
    "which one predicts better?",
    "experiment": "microgpt with three seeds, larger than the Experiments page has time for. ",
}


@dataclass(frozen=True)
class Asked:
    """What is to be trained, where its settings are valid.

    Attributes:
        work: For the queue.
        upload: The text of one's own that it reads.
        size: Name of its ready size; empty where it has none.
    """

    work: Work
    upload: Upload | None
    size: str

    @property
    def trainings(self) -> tuple[TrainConfig, ...]:
        """Return the settings to measure: one of each kind of model."""
        base = self.work.config
        return new_run_sizes.per_kind(base) if self.work.kind == "benchmark" else (base,)

    @property
    def runs_each(self) -> int:
        """Return how many trainings there are of each."""
        return self.work.steps // (self.work.config.steps * len(self.trainings))


def choose() -> Asked | None:
    """Pick what to train; None where the settings cannot be used, which is said."""
    what = controls.choose(st.segmented_control, "Train", "new_what", _WHAT)
    made = (_one_model, _benchmark, _experiment)[what]
    chosen: Chosen | None = None
    try:
        asked, chosen = made()
    except WordLMError as error:
        layout.refuse(error)
        asked = None
    new_run_corpus.upload_box(chosen)
    return asked


# -- the three of them


def _one_model() -> tuple[Asked, Chosen]:
    names = [model.name for model in MODELS]
    model = MODELS[controls.choose(st.segmented_control, "Model", "new_model", names, 1)]
    size, chosen = _size_and_text(model.key)
    start = new_run_sizes.size(model.key, size).settings
    given = _own(model, start) if size == OWN_SETTINGS else start
    config = new_run_sizes.config(model, given)
    work = Work("train", config, chosen.source)
    return Asked(work, chosen.upload, _ready(size)), chosen


def _benchmark() -> tuple[Asked, Chosen]:
    layout.help_line(_ABOUT["benchmark"])
    size, chosen = _size_and_text("benchmark")
    given, places = new_run_sizes.size("benchmark", size).settings, st.columns(3)
    # Three seeds of the whole protocol take longer than a job has on most machines.
    full = size == FULL
    start = BENCHMARK_SEEDS[:1] if full else BENCHMARK_SEEDS
    seeds = wholes(places[0], "Seeds", "new_seeds_full" if full else "new_seeds", start)
    if size == OWN_SETTINGS:
        given = _shared("benchmark", given, (places[1], places[2], *st.columns(3)))
        given |= _vocabulary("benchmark", given, st.columns(3))
    base = TrainConfig.of("attention", **given)
    work = Work("benchmark", base, chosen.source, seeds)
    return Asked(work, chosen.upload, _ready(size)), chosen


def _experiment() -> tuple[Asked, Chosen]:
    labels = [preset.experiment.label for preset in PRESETS]
    preset = PRESETS[controls.choose(st.selectbox, "Experiment", "new_experiment", labels)]
    layout.help_line(_ABOUT["experiment"] + preset.question)
    names = (_AS_IS, _LONGER, OWN_SETTINGS)
    size = names[controls.choose(st.segmented_control, "Size", "new_experiment_size", names)]
    tried, own = preset.experiment, size == OWN_SETTINGS
    only = [data for data in DATA if data != OWN] if own else []
    if not own and tried.data != OWN:
        only = [tried.data]
    chosen = new_run_corpus.choose(None, only)
    data = OWN if chosen.upload is not None else chosen.source.corpus
    tried = replace(tried, data=data)
    if size == _LONGER:
        tried = replace(tried, steps=max(tried.steps, _LONG_STEPS))
    elif own:
        tried = _own_experiment(tried)
    return Asked(Work.of_experiment(tried, chosen.source), chosen.upload, ""), chosen


def _size_and_text(key: str) -> tuple[str, Chosen]:
    size = SIZE_NAMES[controls.choose(st.segmented_control, "Size", "new_size", SIZE_NAMES)]
    documents, items = new_run_sizes.size(key, size).documents, key == "microgpt"
    if size == OWN_SETTINGS:
        text, many = layout.columns(2, 1)
        documents = whole(many, "Documents, at most", "new_documents", documents or 2_000)
        check_sizes(documents=(documents, stories.MAX_DOCUMENTS))
        with text:
            return size, new_run_corpus.choose(documents, items=items, whole_lists=False)
    layout.help_line(new_run_sizes.said(key, size))
    return size, new_run_corpus.choose(documents, items=items)


def _ready(size: str) -> str:
    return "" if size == OWN_SETTINGS else size


# -- settings of one's own


def _own(model: Model, start: Mapping[str, Any]) -> dict[str, Any]:
    default = TrainConfig.of(model.family, **start)
    first, second, third, fourth = (st.columns(3) for _ in range(4))
    key = f"new_{model.key}"
    given = _shared(model.key, start, (*first, *second))
    if model.family != "mlp":
        given["n_head"] = whole(third[0], "Heads", f"{key}_heads", model.heads or default.n_head)
        given["positions"] = switch(third[1], "Positions", f"{key}_positions")
    given["lr"] = decimal(second[2], "Learning rate", f"{key}_lr", default.lr)
    given["seed"] = whole(third[2], "Seed", f"{key}_seed", default.seed)
    if model.reads_items:
        given["n_layer"] = whole(first[2], "Layers", f"{key}_layers", default.n_layer)
        with second[1]:
            tokens = controls.choose(st.selectbox, "Tokens", f"{key}_tokens", TOKENS)
        given["tokens"] = TOKENS[tokens]
        return given | (_vocabulary(model.key, given, fourth) if tokens else {})
    decay = decimal(fourth[2], "Weight decay", f"{key}_decay", default.weight_decay)
    return given | _vocabulary(model.key, start, fourth) | {"weight_decay": decay}


def _shared(key: str, start: Mapping[str, Any], places: Sequence[Any]) -> dict[str, Any]:
    """Draw steps, width, context and, for models of windows, hidden width and batch."""
    family = "microgpt" if key == "microgpt" else "attention"
    default, key = TrainConfig.of(family, **start), f"new_{key}"
    given = {
        "steps": whole(places[0], "Steps", f"{key}_steps", default.steps),
        "d_model": whole(places[1], "Width", f"{key}_width", default.d_model),
    }
    if family == "microgpt":
        context = whole(places[3], "Context", f"{key}_context", default.context_length)
        return given | {"context_length": context}
    return given | {
        "hidden": whole(places[2], "Hidden width", f"{key}_hidden", default.hidden or 128),
        "context_length": whole(places[3], "Context", f"{key}_context", default.context_length),
        "batch": whole(places[4], "Windows a step", f"{key}_batch", default.batch),
    }


def _vocabulary(key: str, start: Mapping[str, Any], places: Sequence[Any]) -> dict[str, Any]:
    most = start.get("max_vocab", 4000)
    return {
        "max_vocab": whole(places[0], "Words, at most", f"new_{key}_vocab", most),
        "min_freq": whole(places[1], "Least count of a word", f"new_{key}_freq", 2),
    }


def _own_experiment(tried: Experiment) -> Experiment:
    first, second, third = (st.columns(3) for _ in range(3))
    made = replace(
        tried,
        steps=whole(first[0], "Steps", "new_tried_steps", _LONG_STEPS),
        d_model=whole(first[1], "Width", "new_tried_width", 32),
        n_layer=whole(first[2], "Layers", "new_tried_layers", 2),
        n_head=whole(second[0], "Heads", "new_tried_heads", tried.n_head),
        context=whole(second[1], "Context", "new_tried_context", 16),
        lr=decimal(second[2], "Learning rate", "new_tried_lr", 0.01),
        seed=whole(third[0], "First seed", "new_tried_seed", tried.seed),
        positions=switch(third[1], "Positions", "new_tried_positions"),
    )
    return replace(made, label=experiment_runs.named(made))
