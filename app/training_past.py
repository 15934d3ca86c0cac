"""Training looked back on: its loss curve, its letters, and its heads through the stored steps."""

from collections.abc import Sequence

import streamlit as st

from app import controls, figures, layout, state
from app.state import View
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.errors import CheckpointError
from wordlm_core.lens import training_history
from wordlm_core.lens.training_history import AVERAGE_OVER, LAST, Curve, LettersMap, Through
from wordlm_core.models.base import count_parameters

_RISEN = 0.1  # nats from its lowest point, that one can see in the figure
_ROUNDED = 0.005  # less is 0.00 on the page


def curve(of: View) -> Curve | None:
    """Return the checkpoint's loss curve; where it holds none, say so."""
    try:
        return training_history.curve(of.checkpoint)
    except CheckpointError as error:
        layout.refuse(error)
        return None


def learned(curve: Curve, through: Through, text: str, of: View) -> None:
    """Say what training came to beside guessing, where it began, and how the text fared.

    Args:
        curve: Losses of the training.
        through: One text's loss at the stored steps.
        text: That text.
        of: The view.
    """
    gained = curve.uniform - curve.last
    layout.answer(
        f"From {curve.losses[0]:.2f}, the first item's loss, to ",
        (f"{curve.last:.2f} nats", "number"),
        f" a token, the mean of the last {min(LAST, len(curve.losses))} steps: "
        f"{abs(gained):.2f} nats {'less' if gained >= 0 else 'more'} than guessing, which costs "
        f"ln {len(of.vocabulary)} = {curve.uniform:.2f}.",
    )
    layout.help_line(" ".join(beside(curve, through, figures.shorten(text))))


def beside(curve: Curve, through: Through, text: str) -> list[str]:
    """Return what the text's own curve says: where it began, and whether it rose again."""
    told: list[str] = []
    if through.steps[0] == 0:
        told.append(
            f"Before training {text} cost {through.losses[0]:.3f}, where guessing all tokens "
            f"alike costs {curve.uniform:.3f}: fresh weights do not guess quite alike."
        )
    lowest = int(through.losses.argmin())
    step, least, now = through.steps[lowest], through.losses[lowest], through.losses[-1]
    if step == 0 or now - least < _RISEN:
        return told
    mean, last = curve.average[min(step, len(curve.average)) - 1], curve.average[-1]
    if last < mean:
        told.append(
            f"After step {step:,} {text} rose again, from {least:.2f} to {now:.2f}: every step "
            "follows another item, and they all pull the same weights. The mean of "
            f"{AVERAGE_OVER} fell all the same, from {mean:.2f} to {last:.2f}."
        )
    return told


def perfect(curve: Curve, of: View) -> None:
    """Say what a perfect model would reach on the list, and why none is perfect here."""
    config, corpus = of.model.config, of.checkpoint.section("corpus")
    steps, items = len(curve.losses), corpus.get("items")
    long = corpus.get("longer_than_context")
    listed = f"{items:,} items" if isinstance(items, int) else "the whole list"
    cut = f" ({long:,} here)" if isinstance(long, int) else ""
    if curve.floor is None:
        layout.help_line(
            "This file does not hold the loss of a model that knows its list by heart, and the "
            "list itself is not in it. But that loss is not 0."
        )
    else:
        layout.answer(
            "Knowing the list by heart would cost ",
            (f"{curve.floor:.2f} nats", "number"),
            f" a token, not 0. {above(curve.last - curve.floor)}",
        )
    layout.help_line(
        "Even a perfect model has to spread its bet, because one beginning goes on in several "
        f"ways. And it is not reached here: {count_parameters(of.model.weights):,} numbers have "
        f"to do for {listed}, {steps:,} steps have shown the model one item each, and an item of "
        f"more than {config.context_length - 1} tokens is cut off{cut}."
    )


def above(gap: float) -> str:
    """Return how far the last steps are from the floor, as it can be seen in two decimals."""
    if gap < -_ROUNDED:
        return (
            f"The last steps cost {-gap:.2f} less: their items are easier than the list as a whole."
        )
    return "This model costs the same." if gap < _ROUNDED else f"This model is {gap:.2f} above."


def letters(of: View) -> LettersMap:
    """Return the map of the checkpoint's tokens."""
    return state.tables((of.checkpoint,), _letters)


def layer(of: View) -> int:
    """Pick a layer, where there is a choice."""
    if of.model.n_layer < 2:
        return 0
    names = [f"layer {n}" for n in range(of.model.n_layer)]
    return controls.choose(st.segmented_control, "Layer", "layer", names)


def through(of: View, layer: int = 0) -> Through:
    """Return the text's attention in a layer, and its loss, through training."""
    whole = state.view(of.checkpoint, of.checkpoint.selected_label, of.probe)
    return state.lens(
        whole,
        training_history.through_training,
        of.checkpoint,
        of.vocabulary,
        of.probe,
        layer=layer,
    )


def _letters(of: Sequence[Checkpoint]) -> LettersMap:
    return training_history.letters_map(of[0])
