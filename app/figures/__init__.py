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
from app.figures.autograd import expression_graph, graph_columns, short_number
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
    shift,
    shorten,
    toolbar,
)
from app.figures.context import context_rows, neighbour_lists
from app.figures.embeddings import kept, kept_in_words, outside, refitted, trails
from app.figures.experiments import RUN_LOOKS, Overlaid, off_the_top, overlaid
from app.figures.generate import Candidates, candidates_of, next_bars
from app.figures.gpt_map import gpt_map
from app.figures.logits import attention_pushes, mlp_pushes
from app.figures.neighbours import Near, biography, neighbour_bars, similarity_matrix
from app.figures.overview import learning_curves, next_words, seeds
from app.figures.parameters import SHOWN as MATRIX_SHOWN
from app.figures.parameters import Weights, colour_limit, matrix_heatmap, mosaic, movement
from app.figures.position import (
    VECTOR_SHOWN,
    counted,
    head_bars,
    head_writes,
    kv_cache,
    step_cells,
    swap_changes,
    walk_strip,
)
from app.figures.runs import Level, RunCurve, above_the_scale, run_curves
from app.figures.standalone import standalone
from app.figures.tokens import token_bars
from app.figures.training import (
    heads_through,
    letters_map,
    training_curve,
    zeroing_losses,
    zeroing_norms,
)

__all__ = [
    "MARK",
    "MATRIX_SHOWN",
    "MUTED",
    "ROUNDING",
    "RUN_LOOKS",
    "VECTOR_SHOWN",
    "Candidates",
    "Figure",
    "Level",
    "Near",
    "Overlaid",
    "Panel",
    "RunCurve",
    "Weights",
    "above_the_scale",
    "attention_grid",
    "attention_heatmap",
    "attention_pushes",
    "biography",
    "candidates_of",
    "changes",
    "colour_limit",
    "context_rows",
    "counted",
    "drawable",
    "effect_at",
    "effect_scatter",
    "escape",
    "expression_graph",
    "gpt_map",
    "graph_columns",
    "head_bars",
    "head_writes",
    "heads_through",
    "kept",
    "kept_in_words",
    "kl_bars",
    "kv_cache",
    "learning_curves",
    "letters_map",
    "matrix_heatmap",
    "mlp_pushes",
    "model_name",
    "mosaic",
    "movement",
    "nats",
    "neighbour_bars",
    "neighbour_lists",
    "next_bars",
    "next_words",
    "off_the_top",
    "outside",
    "overlaid",
    "percent",
    "refitted",
    "run_curves",
    "seeds",
    "shift",
    "short_number",
    "shorten",
    "similarity_matrix",
    "standalone",
    "step_cells",
    "survey_histogram",
    "swap_changes",
    "token_bars",
    "toolbar",
    "trails",
    "training_curve",
    "walk_strip",
    "zeroing_losses",
    "zeroing_norms",
]
