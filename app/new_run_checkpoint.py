"""A checkpoint that somebody brings: what it is, and its way into the lenses."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import layout, lenses, new_run_corpus, state
from app.figures import model_name
from app.jobs.uploads import Facts, Upload
from wordlm_core.checkpoint import MAX_BYTES, Checkpoint, step_number
from wordlm_core.errors import CheckpointError, WordLMError
from wordlm_core.models.base import count_parameters

_FILE, _VOCAB, _REFUSED = "new_checkpoint_file", "new_checkpoint_vocab", "_new_checkpoint_refused"
_PICKED = "_new_checkpoint"
_RULES = (
    "A model that was trained elsewhere, as this app or the course writes it: checked as every "
    "file is, and only you see it unless you share it."
)
_MEGABYTES = MAX_BYTES // 2**20


def section() -> None:
    """Take a checkpoint, and show those that a person has brought."""
    with layout.folded("Upload a checkpoint that was trained elsewhere", ":material/upload:"):
        layout.help_line(_RULES)
        one, two, three = st.columns([3, 3, 1], vertical_alignment="bottom")
        file = one.file_uploader("Checkpoint", ["npz"], key=_FILE, max_upload_size=_MEGABYTES)
        two.file_uploader(
            "vocab.json, where it has none inside", ["json"], key=_VOCAB, max_upload_size=_MEGABYTES
        )
        three.button("Add", key="add_checkpoint", on_click=_take, disabled=file is None)
        new_run_corpus.refused(_REFUSED)
        _brought()


# -- parts


def _take() -> None:
    """Keep the files that were sent (a callback)."""
    sent: Any = state.value(_FILE, None)
    vocab: Any = state.value(_VOCAB, None)
    if sent is None:
        return
    read = None if vocab is None else vocab.getvalue()
    name = new_run_corpus.said_name(sent.name)
    try:
        made = state.uploads().add_checkpoint(sent.getvalue(), name, state.person(), read)
        state.put(_PICKED, made.id)
    except CheckpointError as error:
        known = name in str(error)
        state.put(_REFUSED, error if known else CheckpointError(f"file {name[:60]}: {error}"))
    except WordLMError as error:
        state.put(_REFUSED, error)


def _brought() -> None:
    found = state.uploads().visible(state.person(), state.is_instructor())
    brought = [u for u in found if u.kind == "checkpoint" and new_run_corpus.may_delete(u)]
    if not brought:
        return
    chosen = _pick(brought)
    _tell(chosen)
    layout.help_line("Open it in:")
    lenses.links(chosen.label, chosen.facts.family)
    new_run_corpus.manage(chosen, "checkpoint", _REFUSED)


def _tell(chosen: Upload) -> None:
    """Say what a checkpoint is, as noted when it came; the file is read when that is asked for."""
    facts = chosen.facts
    rows = [
        ["kind", model_name(_kind(facts))],
        ["reads", f"{facts.tokenizer}s"],
        ["width", f"{facts.width:,}"],
        ["size", f"{chosen.size / 2**20:,.1f} MB"],
    ]
    if st.toggle("Look into the file", key=f"look_into_{chosen.id}"):
        try:
            rows = _told(state.opened(chosen.path, chosen.label))
        except WordLMError as error:
            layout.refuse(error)
    layout.table(("", ""), rows, words=(0, 1), label="What it is")


def _kind(facts: Facts) -> str:
    several = facts.family == "attention" and facts.heads > 1
    return "multihead" if several else facts.family


def _pick(brought: Sequence[Upload]) -> Upload:
    by_id = {each.id: each for each in brought}
    if state.value(_PICKED, None) not in by_id:
        state.put(_PICKED, brought[-1].id)
    if len(brought) == 1:
        layout.subtitle(brought[0].label)
        return brought[0]
    picked = st.selectbox(
        "Checkpoints that were brought",
        list(by_id),
        format_func=lambda each: by_id[each].label,
        key=_PICKED,
    )
    return by_id[picked or brought[-1].id]


def _told(opened: Checkpoint) -> list[list[str]]:
    model = opened.model
    rows = [
        ["kind", model_name(model.kind)],
        ["parameters", f"{count_parameters(model.weights):,}"],
        ["vocabulary", f"{len(opened.vocabulary):,} {opened.vocabulary.unit}s and special tokens"],
        ["context", f"{model.config.context_length:,}"],
        ["width", f"{model.config.d_model:,}"],
        ["layers, heads", f"{model.n_layer}, {model.n_head}"],
    ]
    steps = [step_number(label) for label in opened.steps]
    if steps:
        shown = ", ".join(f"{step:,}" for step in steps[:8])
        rows.append(["stored steps", shown + (" …" if len(steps) > 8 else "")])
    return rows
