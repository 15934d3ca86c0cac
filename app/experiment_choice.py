"""Which experiment: a preset or settings of one's own, and a person's own list."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from app import controls, experiment_runs, layout, state
from app.number_boxes import decimal, whole
from wordlm_core import experiment
from wordlm_core.corpora import reading
from wordlm_core.errors import WordLMError
from wordlm_core.experiment import DATA, OWN, PRESETS, Draw, Experiment

_TYPED_LIST, _FILE_MEGABYTES = 100_000, 8
_FILE = "_own_file"
_OWN_SETTINGS = "own settings"
_OWN_QUESTION = "Change one setting, and leave the rest as it is: what does that one do?"
_DATA_NAMES = ("names", "English words", "short stories", "own list")


@dataclass(frozen=True)
class Asked:
    """The experiment that is chosen, and a person's own items where it reads them."""

    tried: Experiment
    documents: tuple[str, ...]
    listed: str

    @property
    def key(self) -> tuple[Experiment, str]:
        """Return what two equal choices have in common."""
        return self.tried, self.listed


def choose() -> Asked | None:
    """Pick an experiment; None where its settings or its list cannot be used, which is said."""
    labels = [*(preset.experiment.label for preset in PRESETS), _OWN_SETTINGS]
    chosen = controls.choose(st.selectbox, "Experiment", "experiment", labels)
    preset = PRESETS[chosen] if chosen < len(PRESETS) else None
    layout.help_line(preset.question if preset else _OWN_QUESTION)
    try:
        tried = preset.experiment if preset else _own_settings()
        if tried.data != OWN:
            return Asked(tried, (), "")
        own = experiment.own_list(_own_items())
    except WordLMError as error:
        layout.refuse(error)
        return None
    return Asked(tried, own.documents, own.sha256)


# -- the settings and the list


def _own_settings() -> Experiment:
    first, second, third = st.columns(3), st.columns(3), st.columns(3)
    with first[0]:
        data = DATA[controls.choose(st.selectbox, "Data", "data", _DATA_NAMES)]
    with third[0]:
        positions = controls.choose(st.selectbox, "Positions", "positions", ("on", "off")) == 0
    made = Experiment(
        data=data,
        lr=decimal(first[1], "Learning rate", "lr", 0.01),
        steps=whole(first[2], "Steps", "steps", 1000),
        d_model=whole(second[0], "Width", "width", 16),
        n_head=whole(second[1], "Heads", "heads", 4),
        n_layer=whole(second[2], "Layers", "layers", 1),
        positions=positions,
        seed=whole(third[1], "Seed", "run_seed", 42),
        context=whole(third[2], "Context", "window", 16),
        draws=(_draw(st.columns(3)),),
    )
    return replace(made, label=experiment_runs.named(made))


def _draw(places: Sequence[Any]) -> Draw:
    temperature = decimal(places[0], "Temperature", "run_temperature", 0.5)
    top_k = whole(places[1], "Top-k (0: all)", "run_top_k", 0)
    return Draw(temperature, None if top_k == 0 else top_k)


def _own_items() -> Sequence[str]:
    """Take a list by paste or as a file, which then stays until it is taken away."""
    typed = st.text_area(
        "Your list, one item a line",
        height=120,
        max_chars=_TYPED_LIST,
        key="own_list",
        persist_state="session",
        placeholder="oak\nbirch\nwillow",
    )
    sent = st.file_uploader(
        "or a text file, such as the course's list",
        ["txt", "jsonl"],
        key="own_file",
        max_upload_size=_FILE_MEGABYTES,
    )
    kept: tuple[str, str, tuple[str, ...]] | None = state.value(_FILE, None)
    if sent is not None and (kept is None or kept[0] != sent.file_id):
        read = reading.read_bytes(sent.getvalue(), sent.name)
        kept = (sent.file_id, sent.name, tuple(read))  # an item of a .jsonl may hold a new line
        state.put(_FILE, kept)
    if kept is None:
        return [line.strip() for line in (typed or "").splitlines() if line.strip()]
    layout.note(f"The file {kept[1]} is read; what is typed above it is not.")
    st.button("Take the file away", key="no_file", on_click=state.put, args=(_FILE, None))
    return kept[2]
