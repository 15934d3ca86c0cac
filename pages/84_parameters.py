"""Which numbers does the model consist of, and what did training do to them?"""

from app import controls, exports_gpt, layout, parameters_page, small_boxes, words
from wordlm_core.lens import parameters

BY_HAND = (
    "From the sizes alone. The table opens when all is right, at a second check, or at your wish."
)
MOVED = (
    "Each cell is one parameter, orange below 0 and blue above, on one scale for all pictures. "
    "A click picks a matrix."
)
BOXES = "The four operations that the forward pass is made of. Change the numbers."
CAVEAT = (
    "A matrix that moved far is not more important than one that moved little, and a single "
    "number has no meaning of its own: another seed gives other numbers and as good a model."
)
CODE = """
from pathlib import Path
from wordlm_core import checkpoint
from wordlm_core.lens import parameters

loaded = checkpoint.load(Path({path}))
for matrix in parameters.inventory(loaded.model):
    print(matrix.name, matrix.shape, matrix.count)
print(sum(matrix.count for matrix in parameters.inventory(loaded.model)))
for change in parameters.changes(loaded, {step}):
    print(change.name, change.before.norm, change.after.norm, change.moved)
"""

pickers, known = layout.columns(2, 5)
with pickers:
    opened = controls.checkpoint(family="microgpt")
with known:
    parameters_page.sizes(opened.model)
layout.section("Fill in by hand", BY_HAND)
parameters_page.fill_in(opened.model)

layout.section("Before and after training", MOVED)
has_before = parameters_page.has_before(opened)
step = controls.step(opened)
found = parameters.changes(opened, step) if has_before else ()
if has_before:
    all_of_it = layout.columns(1, 1)
    chosen = parameters_page.one_matrix(opened)
    parameters_page.mosaics(opened, step, chosen, all_of_it)
    parameters_page.pictures(opened, step, chosen)
    parameters_page.way(opened, step, chosen)
    parameters_page.numbers(found, chosen)

layout.section("Small boxes", BOXES)
small_boxes.box()

layout.caveat(CAVEAT)
layout.downloads(
    "parameters",
    csv=lambda: exports_gpt.parameters_csv(parameters.inventory(opened.model), found),
    data=lambda: exports_gpt.parameters_json(parameters.inventory(opened.model), found),
)
layout.code(CODE, {"path": words.paths([opened])[0], "step": step})
