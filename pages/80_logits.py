"""Which next words do heads and neurons push?"""

from app import controls, exports, figures, layout, results, state
from wordlm_core.lens import logits

CAVEAT = (
    "Only differences between tokens count: a constant added to all logits changes no "
    "probability. Parts interact in the ReLU, so heads do not add up to attention; what goes to "
    "the logits past them (a bias, the residual stream) is left out. What is pushed need not be "
    "likely. "
)
HEADS = (
    "Logits with what attention wrote, minus logits without it; a head: with all, minus all but it."
)
NEURONS = (
    "Activation times outgoing weights. The strongest first: by how much they tell tokens apart."
)
CODE = """
from pathlib import Path
from wordlm_core import checkpoint
from wordlm_core.lens import logits

loaded = checkpoint.load(Path({path}))
model = loaded.model_at({step})
probe = loaded.vocabulary.probe({text}, model.config.context_length)
view = logits.logit_view(model, loaded.vocabulary, probe, position={position})
print(view.attention and view.attention.promoted[0], view.mlp.promoted[0])
print([(neuron.index, neuron.activation) for neuron in view.neurons])
"""

pickers, view = controls.opening()
probe = view.probe
with pickers:
    position = controls.position(view)
result = state.lens(view, logits.logit_view, view.model, view.vocabulary, probe, position=position)
results.pushes(result)

if result.attention is None:
    layout.help_line("An MLP has no attention: all of its logits come from its hidden units.")
else:
    layout.section("What attention pushes", HEADS)
    chart = figures.attention_pushes(result, view.model.kind)
    layout.plot(chart, "heads_push", name="attention_pushes")
layout.section("What the MLP's neurons push", NEURONS)
together, alone = layout.columns(2, 3)
with together:
    layout.plot(figures.mlp_pushes(result, view.model.kind), "mlp_push", name="mlp_pushes")
with alone:
    results.neurons(result)

layout.caveat(CAVEAT + controls.trained_on(view))
layout.downloads(
    "logits",
    csv=lambda: exports.logits_csv(result),
    data=lambda: exports.logits_json(result, probe),
)
layout.code(CODE, controls.quoted(view) | {"position": position})
