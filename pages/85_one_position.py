"""What happens at one position of a name?"""

from app import controls, exports_gpt, figures, layout, position_page

LOOKING = "The only numbers that come from other positions: the cache, and the shares of it."
FUTURE = (
    "When a position is computed, later keys and values do not exist yet. The test is an "
    "intervention: one token is replaced, all is computed again, and the largest change is shown "
    "step by step. The loss is left out: it compares with the next token."
)
MIXING = (
    "An intervention: the identity takes the place of W_O, in this layer alone. A model trained "
    "without W_O from the start would adapt; this one was not."
)
HAND = "One query, a few keys and values, every number of the formula. Change them."
CAVEAT = (
    "The numbers show what is computed at one position, not why training chose them, and no slot "
    "of a vector has a meaning of its own. A large number need not matter, nor a large share: only "
    "the two interventions change something and look at what follows."
)
CODE = """
from pathlib import Path
from wordlm_core import checkpoint
from wordlm_core.lens import position, position_interventions

loaded = checkpoint.load(Path({path}))
model = loaded.model_at({step})
probe = loaded.vocabulary.probe({text}, model.config.context_length)
walk = position.walk(model, probe, {position}, end_id=loaded.vocabulary.end_id)
for step in walk.steps:
    print(step.name, step.values.shape, step.code)
print(walk.steps[{chosen}].values)
print(position_interventions.without_wo(model, probe, {position}, layer={layer}).kl)
"""

_, view = controls.opening(family="microgpt")

with position_page.predict(view):
    where, what = layout.columns(1, 2)
    with where:
        place = position_page.place(view)
    walk = position_page.walk(view, place)
    with what:
        chosen = position_page.step(walk)
    layout.plot(figures.walk_strip(walk, chosen), "walk_strip", click=("customdata", "walk"))
    position_page.show(walk, chosen, view)
    position_page.helpers()

layout.section("What this position looks back at", LOOKING)
layer = position_page.layer(view)
labels = position_page.labels_of(view)
held, looked = layout.columns(1, 1)
with held:
    layout.subtitle("The KV cache so far")
    layout.plot(
        figures.kv_cache(walk.find("KV cache", layer).values, labels), "kv_cache", name="cache"
    )
    position_page.held_in_words(walk, layer)
with looked:
    layout.subtitle("Attention of each head")
    shares = walk.find("attention", layer).values
    layout.plot(figures.head_bars(shares, labels), "head_bars", name="attention")

layout.section("Why future tokens cannot be seen", FUTURE)
swaps = position_page.swaps(view, place)
position_page.swapped(view, place, swaps)
if swaps:
    layout.plot(figures.swap_changes(walk, swaps), "walk_changes", name="changes")

layout.section("Why W_O", MIXING)
mixing = position_page.mixing(view, place, layer)
position_page.mixed(view, mixing)
layout.plot(figures.head_writes(mixing), "walk_writes", name="head_writes")

layout.section("By hand", HAND)
position_page.by_hand()

layout.caveat(CAVEAT)
layout.downloads(
    "one_position",
    csv=lambda: exports_gpt.walk_csv(walk),
    data=lambda: exports_gpt.walk_json(walk, view.vocabulary),
)
shown = {"position": place, "chosen": chosen, "layer": layer}
layout.code(CODE, controls.quoted(view) | shown)
