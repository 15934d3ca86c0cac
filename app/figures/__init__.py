"""Every figure of the app, as plain Plotly dicts made from lens results. No Streamlit.

Positions are coordinates and token text is only ever tick or hover text, escaped, so that a
word that stands twice, a number or `<UNK>` is drawn as what it is.
"""

from app.figures.ablation import (
    Panel,
    changes,
    effect_at,
    effect_scatter,
    kl_bars,
    survey_histogram,
)
from app.figures.attention import attention_grid, attention_heatmap
from app.figures.base import (
    MARK,
    MUTED,
    ROUNDING,
    Figure,
    drawable,
    escape,
    model_name,
    nats,
    percent,
    toolbar,
)
from app.figures.context import context_rows, neighbour_lists
from app.figures.embeddings import kept, kept_in_words, outside, refitted, trails
from app.figures.generate import Candidates, candidates_of, next_bars
from app.figures.logits import attention_pushes, mlp_pushes
from app.figures.neighbours import Near, biography, neighbour_bars, similarity_matrix
from app.figures.overview import learning_curves, next_words, seeds
from app.figures.standalone import standalone

__all__ = [
    "MARK",
    "MUTED",
    "ROUNDING",
    "Candidates",
    "Figure",
    "Near",
    "Panel",
    "attention_grid",
    "attention_heatmap",
    "attention_pushes",
    "biography",
    "candidates_of",
    "changes",
    "context_rows",
    "drawable",
    "effect_at",
    "effect_scatter",
    "escape",
    "kept",
    "kept_in_words",
    "kl_bars",
    "learning_curves",
    "mlp_pushes",
    "model_name",
    "nats",
    "neighbour_bars",
    "neighbour_lists",
    "next_bars",
    "next_words",
    "outside",
    "percent",
    "refitted",
    "seeds",
    "similarity_matrix",
    "standalone",
    "survey_histogram",
    "toolbar",
    "trails",
]
