"""A checkpoint that somebody brings: what it is, and its way into the lenses."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import layout, new_run_corpus, state
from app.figures import model_name
from app.jobs.store import owner_of
from app.jobs.uploads import Upload
from wordlm_core.checkpoint import Checkpoint, step_number
from wordlm_core.errors import WordLMError
from wordlm_core.models.base import count_parameters

_FILE, _VOCAB, _REFUSED = "new_checkpoint_file", "new_checkpoint_vocab", "_new_checkpoint_refused"
_PICKED = "_new_checkpoint"
_RULES = (
    "A model that was trained elsewhere, as this app or the course writes it: checked as every "
    "file is, and only you see it unless you share it."
)
_LENSES = (
    ("20_attention.py", "Attention", ":material/grid_on:"),
    ("30_ablation.py", "Ablation", ":material/content_cut:"),
    ("40_embeddings.py", "Embeddings", ":material/scatter_plot:"),
    ("50_neighbours.py", "Neighbours", ":material/hub:"),
    ("60_context.py", "Context", ":material/compare_arrows:"),
    ("70_generate.py", "Generate", ":material/casino:"),
    ("80_logits.py", "Logit view", ":material/swap_vert:"),
)
_MEGABYTES = 200


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
    try:
        made = state.uploads().add_checkpoint(sent.getvalue(), sent.name, state.person(), read)
        state.put(_PICKED, made.id)
    except WordLMError as error:
        state.put(_REFUSED, error)


def _brought() -> None:
    me = owner_of(state.person())
    found = state.uploads().visible(state.person(), state.is_instructor())
    mine = [each for each in found if each.kind == "checkpoint" and each.owner == me]
    if not mine:
        return
    chosen = _pick(mine)
    try:
        opened = state.opened(chosen.path, chosen.label)
    except WordLMError as error:
        layout.refuse(error)
    else:
        layout.table(("", ""), _told(opened), words=(0, 1), label="What it is")
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            layout.help_line("Open in:")
            for file, title, icon in _LENSES:
                layout.page_link(file, title, icon, {"checkpoint": chosen.label})
    new_run_corpus.manage(chosen, "checkpoint", _REFUSED)


def _pick(mine: Sequence[Upload]) -> Upload:
    by_id = {each.id: each for each in mine}
    if state.value(_PICKED, None) not in by_id:
        state.put(_PICKED, mine[-1].id)
    if len(mine) == 1:
        layout.subtitle(mine[0].label)
        return mine[0]
    picked = st.selectbox(
        "Your checkpoints", list(by_id), format_func=lambda each: by_id[each].label, key=_PICKED
    )
    return by_id[picked or mine[-1].id]


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
