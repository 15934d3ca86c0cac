"""The pages that open a checkpoint, for whoever links to them with one."""

import streamlit as st

from app import layout

# Like `main.PAGES`, which a test compares: the entry of the app is imported by nobody.
ON_TEXT = (
    ("20_attention.py", "Attention", ":material/grid_on:"),
    ("30_ablation.py", "Ablation", ":material/content_cut:"),
    ("40_embeddings.py", "Embeddings", ":material/scatter_plot:"),
    ("50_neighbours.py", "Neighbours", ":material/hub:"),
    ("60_context.py", "Context", ":material/compare_arrows:"),
    ("70_generate.py", "Generate", ":material/casino:"),
    ("80_logits.py", "Logit view", ":material/swap_vert:"),
)
OF_MICROGPT = (
    ("84_parameters.py", "Parameters", ":material/apps:"),
    ("85_one_position.py", "One position", ":material/steps:"),
    ("86_training.py", "Training", ":material/fitness_center:"),
)


def links(label: str, family: str) -> None:
    """Link to the lenses that open a checkpoint.

    Args:
        label: What the pickers call it.
        family: Its family: microgpt has pages of its own.
    """
    more = OF_MICROGPT if family == "microgpt" else ()
    with st.container(horizontal=True, gap="xsmall", key="open_in"):
        for file, title, icon in (*ON_TEXT, *more):
            layout.page_link(file, title, icon, {"checkpoint": label})
