"""What did the prediction depend on?"""

from app import controls, exports, figures, layout, results, state
from wordlm_core.lens import ablation

CAVEAT = (
    "A change of the input is a cause for this model's prediction on this sentence. It says "
    "nothing about language or about what the model understands, and what takes a token's place "
    "is one choice among many. Two that say the same cover for each other and both read low."
)
ORDER = (
    "The last token keeps its place. One layer of attention without positions reads those before "
    "it as a bag: its prediction could not change. Models with positions can tell."
)
LAW = "The same question asked of windows of test text, with the selected weights and <UNK>."
CODE = """
from pathlib import Path
from wordlm_core import checkpoint
from wordlm_core.lens import ablation

loaded = checkpoint.load(Path({path}))
model = loaded.model_at({step})
probe = loaded.vocabulary.probe({text}, model.config.context_length)
result = ablation.ablate(model, loaded.vocabulary, probe, **{options})
print(result.prediction[0])
print([(effect.position, effect.token, effect.kl) for effect in result.effects])
"""

_, view = controls.opening()
probe = view.probe

how, which = layout.columns(2, 3)
with how:
    options = controls.replacement(view)
result = controls.ablate(view, options)
with which:
    position = controls.token(result)
effect = figures.effect_at(result, position)
results.effect(effect, result)

bars, change = layout.columns(3, 2)
with bars:
    rivals = controls.rivals(view)
    panels = controls.panels([*rivals, *controls.near_sighted(view)], options)
    bar_chart = figures.kl_bars(panels, position)
    layout.plot(bar_chart, "kl", click=("point_index", "token"), name="ablation")
with change:
    layout.plot(figures.changes(effect, view.model.kind), "changes", name="changes")

results.unknown_seen(view.vocabulary, result.replacement)

scatter, others = layout.columns(1, 1)
with scatter:
    layout.section("Attention against effect", "Does the model depend on what it looks at?")
    if view.model.n_head > 0:
        results.correlation(result)
        layout.plot(figures.effect_scatter(result, view.model.kind, position), "scatter")
    else:
        layout.help_line("The MLP has no attention to compare with: pick another checkpoint.")
with others:
    layout.section("Switch a head off", "Its output is set to zero and the rest computed again.")
    if view.model.n_head > 0:
        off = state.lens(view, ablation.knock_out, view.model, view.vocabulary, probe)
        results.heads_off(off)
    else:
        layout.help_line("The MLP has no head to switch off.")
    layout.section("Shuffle what comes before", ORDER)
    seed = controls.seed(result)
    if seed is not None:
        shuffles = controls.shuffles([*rivals, *controls.without_positions(view)], seed)
        results.shuffled(shuffles)
        results.order_proof(shuffles)

if view.model.n_head > 0 and view.vocabulary.unit == "word":
    layout.section("One sentence is no law", LAW)
    agreement = state.agreement(view.checkpoint)
    many, told = layout.columns(1, 1)
    with told:
        results.survey(agreement, result.rank_correlation)
    if agreement is not None:
        with many:
            here = result.rank_correlation
            drawn = figures.survey_histogram(agreement, here, view.model.kind)
            layout.plot(drawn, "survey", name="survey")

layout.caveat(CAVEAT)
layout.downloads(
    "ablation",
    csv=lambda: exports.ablation_csv(result),
    data=lambda: exports.ablation_json(result, probe),
)
layout.code(CODE, controls.quoted(view) | {"options": options})
