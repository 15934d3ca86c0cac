"""Training looked back on: its loss curve, its letters, and its heads through the stored steps."""

from collections.abc import Sequence

import streamlit as st

from app import controls, layout, state
from app.state import View
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.errors import CheckpointError
from wordlm_core.lens import training_history
from wordlm_core.lens.training_history import LAST, Curve, LettersMap, Through
from wordlm_core.models.base import count_parameters


def curve(of: View) -> Curve | None:
    """Return the checkpoint's loss curve; where it holds none, say so."""
    try:
        return training_history.curve(of.checkpoint)
    except CheckpointError as error:
        layout.refuse(error)
        return None


def learned(curve: Curve, of: View) -> None:
    """Say what training came to, between guessing and a perfect memory."""
    gained = curve.uniform - curve.last
    layout.answer(
        f"From ln {len(of.vocabulary)} = {curve.uniform:.2f} to ",
        (f"{curve.last:.2f} nats", "number"),
        f" a token, the mean of the last {LAST} steps: {gained:.2f} nats less than guessing.",
    )


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
            f" a token, not 0. This model is {curve.last - curve.floor:.2f} above.",
        )
    layout.help_line(
        "Even a perfect model has to spread its bet, because one beginning goes on in several "
        f"ways. And it is not reached here: {count_parameters(of.model.weights):,} numbers have "
        f"to do for {listed}, {steps:,} steps have shown the model one item each, and an item of "
        f"more than {config.context_length - 1} tokens is cut off{cut}."
    )
    if curve.floor is not None:
        layout.help_line(
            "The floor counts every prediction alike; the curve is of whole items, in which a "
            "short one weighs as much as a long one."
        )


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
