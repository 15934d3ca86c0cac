"""Where does each position look?"""

from app import controls, exports, figures, layout, results, state
from wordlm_core.lens import attention

CAVEAT = (
    "A weight says how much of a position is mixed in, not how much the prediction depends on "
    "it: Ablation measures that. "
)
CODE = """
from pathlib import Path
from wordlm_core import checkpoint
from wordlm_core.lens import attention

loaded = checkpoint.load(Path({path}))
model = loaded.model_at({step})
probe = loaded.vocabulary.probe({text}, model.config.context_length)
result = attention.attend(model, probe)
print(result.tokens)
print(result.weights[{layer}, {head}, {query}])  # one row: where position {query} looks
print(attention.row_steps(result.trace, {layer}, {head}, {query}).scaled)
"""

_, view = controls.opening()
probe = view.probe
controls.require_attention(view)
result = state.lens(view, attention.attend, view.model, probe)

picture, numbers = layout.columns(6, 5)
with numbers:
    layer, head = controls.head(view)
    query = controls.query(view)
    steps = attention.row_steps(result.trace, layer, head, query)
    results.row_steps(steps, result.tokens, query)
with picture:
    if view.model.n_head > 1:
        grid = figures.attention_grid(result, layer, head, query)
        layout.plot(grid, "heads", click=("customdata", "head"), name="heads")
    heatmap = figures.attention_heatmap(result, layer, head, query)
    layout.plot(heatmap, "heatmap", click=("y", "query"), name="attention")

layout.section("Side by side", "The same sentence in another model, or earlier in training.")
compared = controls.other(view, layout.columns(1, 1, 1))
if compared is not None:
    second, other_layer, other_head = compared
    other = state.lens(second, attention.attend, second.model, second.probe)
    left, right = layout.columns(1, 1)
    with left:
        layout.subtitle(f"{controls.model_name(view)}, head {head}")
        layout.plot(heatmap, "heatmap_left", name="attention")
    with right:
        layout.subtitle(f"{controls.model_name(second)}, head {other_head}")
        beside = figures.attention_heatmap(other, other_layer, other_head, query)
        layout.plot(beside, "heatmap_right", name="attention_beside")

layout.caveat(CAVEAT + controls.trained_on(view))
layout.downloads(
    "attention",
    csv=lambda: exports.attention_csv(result),
    data=lambda: exports.attention_json(result, probe),
)
layout.code(CODE, controls.quoted(view) | {"layer": layer, "head": head, "query": query})
