"""Same word, different context?"""

from app import controls, exports, figures, layout, results, state
from wordlm_core.lens import contextual

NO_ROW = (
    "An MLP has no contextual row to show. It puts the lookup rows of its whole window side by "
    "side into one long vector and mixes them at once: a word has its lookup row, the same in "
    "every text, and after that nothing that belongs to one position. Pick a model with attention."
)
CAVEAT = (
    "Two rows can be far apart in ways the prediction ignores: Ablation measures what matters. "
    "Contextual rows were never trained to lie near lookup rows, so their neighbours are a "
    "reading aid. Where attention looks depends on position too, so the two parts are not two "
    "causes."
)
CODE = """
from pathlib import Path
from wordlm_core import checkpoint
from wordlm_core.lens import contextual

loaded = checkpoint.load(Path({path}))
model = loaded.model_at({step})
window = model.config.context_length
first = loaded.vocabulary.probe({text}, window)
second = loaded.vocabulary.probe({second}, window)
pair = contextual.compare(model, loaded.vocabulary, first, {word_a}, second, {word_b})
print(pair.lookup_equal, pair.lookup_cosine, pair.contextual_cosine, pair.contextual_l2)
print(pair.position_l2, pair.attention_l2, pair.attention_share)
"""

pickers, text = layout.columns(2, 3)
with pickers:
    checkpoint = controls.checkpoint()
    step = controls.step(checkpoint)
with text:
    first = controls.probe(checkpoint)
view = state.view(checkpoint, step, first)
controls.require_attention(view, NO_ROW)
with text:
    second = controls.second_text(view)

word_a, word_b = controls.shared_token(view, second, layout.columns(1, 1))
pair = contextual.compare(view.model, view.vocabulary, first, word_a, second, word_b)

built, seen = layout.columns(1, 1)
with built:
    results.ledger(pair)
with seen:
    layout.plot(figures.context_rows(pair), "rows", name="rows")
    results.shares(pair)

layout.section(
    "What is near each row",
    "Lookup rows by cosine; in grey what was near the lookup row already.",
)
layout.plot(figures.neighbour_lists(pair, view.model.kind), "near", name="context_neighbours")

layout.caveat(CAVEAT)
layout.downloads(
    "context",
    csv=lambda: exports.context_csv(pair),
    data=lambda: exports.context_json(pair),
)
places = {"second": controls.as_typed(view.vocabulary, second), "word_a": word_a, "word_b": word_b}
layout.code(CODE, controls.quoted(view) | places)
