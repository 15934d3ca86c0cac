"""What does one training step change?"""

from app import (
    controls,
    exports_gpt,
    figures,
    layout,
    training_page,
    training_past,
    training_zeroing,
)

CAVEAT = (
    "A step that helps one text says nothing of other texts, and a gradient is a slope at these "
    "very numbers. The losses are on training items, so they do not show what is learned by heart. "
    "The map keeps two of all directions; attention shows where a head looks, not what for."
)
CURVE = (
    "Descriptive. Every point is another item, so the thin line jumps; the average is what was "
    "learned. Beside it, your text at every stored step."
)
FLOOR = "Descriptive. What would a perfect model reach on this list, and why is none perfect here?"
LETTERS = (
    "Descriptive. The rows of wte on one common basis for all stored steps, so movement here is "
    "movement of the letters. Nobody told the model what a vowel is."
)
HEADS = (
    "Descriptive. Your text in the model of every stored step: where each head looks, from 0 "
    "(pale) to 100% (strong). Play, or drag the slider."
)
ZEROING = (
    "Causal: the same weights, list, order and Adam, once with the gradient zeroed before every "
    "step and once not. It starts from the training step chosen above."
)
CODE = """
from pathlib import Path
from wordlm_core import checkpoint
from wordlm_core.lens import training_history, training_step

loaded = checkpoint.load(Path({path}))
model = loaded.model_at({step})
probe = loaded.vocabulary.probe({text}, model.config.context_length)
step = training_step.training_step(
    model, loaded.vocabulary, probe, earlier={earlier}, rate={rate}
)
print(step.loss, step.uniform, step.loss_after)
print(step.row[0])  # one number: gradient, m, v, update, new value
print(training_history.curve(loaded).last)
"""

view = training_page.opening()
walk = training_page.walk(view)
step = training_page.taken(view, walk)
through = training_past.through(view)
training_page.outcome(step, walk, view)
answers, numbers = layout.columns(1, 1)
with answers:
    training_page.predictions(step, walk)
with numbers:
    training_page.detail(step, walk, through)

curve = training_past.curve(view)
if curve is not None:
    layout.section("The loss curve", CURVE)
    training_past.learned(curve, through, walk.text, view)
    layout.plot(figures.training_curve(curve, through, walk.text), "curve", name="loss")
    layout.section("A perfect model", FLOOR)
    training_past.perfect(curve, view)

layout.section("The letters through training", LETTERS)
layout.plot(figures.letters_map(training_past.letters(view)), "letters", name="letters")

layout.section("The heads through training", HEADS)
heads = training_past.through(view, training_past.layer(view))
layout.plot(figures.heads_through(heads), "heads_through", name="heads_through_training")

layout.section("What if the gradient is not zeroed?", ZEROING)
zeroing = training_zeroing.both(view, walk.rate)
if zeroing is not None:
    training_zeroing.compared(zeroing, walk.rate)
    losses, norms = layout.columns(1, 1)
    with losses:
        layout.plot(figures.zeroing_losses(zeroing), "zeroing", name="zeroing")
    with norms:
        layout.plot(figures.zeroing_norms(zeroing), "zeroing_norms", name="zeroing_norms")

layout.caveat(CAVEAT)
layout.downloads(
    "training",
    csv=lambda: exports_gpt.training_step_csv(step),
    data=lambda: exports_gpt.training_step_json(step),
)
layout.code(CODE, controls.quoted(view) | {"earlier": walk.earlier, "rate": walk.rate})
