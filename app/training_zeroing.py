"""Training without zeroing the gradient: a short list, trained on both ways when asked to."""

import re
from collections.abc import Sequence

import streamlit as st

from app import controls, layout, state
from app.state import View
from wordlm_core.errors import ConfigError, TextError
from wordlm_core.lens import training_step
from wordlm_core.lens.training_step import MOST_NAMES, Zeroing
from wordlm_core.vocabulary import Probe

_LIST = (
    "alora bennick calista doria elowen fenna galen hollis imari jorel kessia lumen marlo "
    "nerissa orin pellan quilla rosalin senna tavian"
)
_LIST_LENGTH = 400
_MILLION = 10**6
_HARMFUL = 0.01  # a rate at which leaving out the zeroing usually does harm
_RUN = "zeroing_run"


def both(of: View, rate: float) -> Zeroing | None:
    """Read a short list; when asked to, train on it with and without zeroing.

    The result stays as long as list, weights and rate are those it was asked for. A list that
    cannot be read, and a model that is too large to train here, get a sentence.
    """
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        names = _names(of)
        pressed = st.button(
            "Run both", key="run_both", icon=":material/play_arrow:", type="primary"
        )
    asked = (of.checkpoint.sha256, of.step, rate, names)
    if pressed:  # no callback: that would hold the list of the run before
        state.put(_RUN, asked)
    try:
        read = [of.vocabulary.probe(name, of.model.config.context_length) for name in names]
        return _trained(of, read[0], names, rate) if state.value(_RUN, None) == asked else None
    except (TextError, ConfigError) as error:
        layout.refuse(error)
        return None


def compared(result: Zeroing, rate: float) -> None:
    """Say what leaving out the zeroing did."""
    layout.answer(
        f"After {result.steps[-1]} steps at a rate of {rate:g} the list costs ",
        (f"{result.zeroed[-1]:.2f} nats", "microgpt"),
        " with zeroing and ",
        (f"{result.kept[-1]:.2f} nats", "number"),
        " without.",
    )
    layout.help_line(verdict(result, rate))


def verdict(result: Zeroing, rate: float) -> str:
    """Return what the two trainings say about the sum of all gradients."""
    told = (
        "Without zeroing every step adds to the sum of all gradients so far: at step "
        f"{result.steps[-1]} its gradient is {_times(result)} times as long, and it points where "
        "the loss fell long ago. "
    )
    if result.kept[-1] > result.zeroed[-1]:
        return told + (
            "Adam divides the length away but keeps the direction, so it goes on past the place "
            "where it should turn."
        )
    if rate < _HARMFUL:
        return told + (
            "Here the sum did no harm: at a small rate the old directions still hold, like a "
            f"very long momentum. Try a rate of {_HARMFUL:g} or more."
        )
    return told + (
        f"Here no harm is left at the end. On the way the list cost up to {result.kept.max():.2f} "
        f"nats, with zeroing up to {result.zeroed.max():.2f}."
    )


# -- parts


def _times(result: Zeroing) -> str:
    """Return how much longer the sum is; a list known by heart has hardly any gradient left."""
    sum_of_all, own = result.kept_norms[-1], result.zeroed_norms[-1]
    if sum_of_all > _MILLION * own:
        return "more than a million"
    return f"{sum_of_all / own:,.0f}"


def _names(of: View) -> tuple[str, ...]:
    """Return the items of the box; it begins with those that the vocabulary can read."""
    readable = [name for name in _LIST.split() if set(name) <= set(of.vocabulary.itos)]
    start = " ".join(readable or controls.presets(of.vocabulary)[0])
    state.turn("list", of.vocabulary.sha256, start)
    typed = st.text_input(
        "A short list to train on",
        start,
        max_chars=_LIST_LENGTH,
        key="list",
        bind="query-params",
        persist_state="session",
        help=f"Items with blanks or commas between them; the first {MOST_NAMES} are read in turn.",
    )
    typed = (typed or "")[:_LIST_LENGTH]
    state.remember_text("list", typed)
    return tuple(re.split(r"[\s,;]+", typed.strip(" ,;\t"))[:MOST_NAMES])


def _trained(of: View, first: Probe, names: Sequence[str], rate: float) -> Zeroing:
    # Kept under the list's first item: what is typed at the top does not matter here.
    return state.lens(
        state.view(of.checkpoint, of.step, first),
        training_step.zeroing,
        of.model,
        of.vocabulary,
        names=names,
        rate=rate,
    )
