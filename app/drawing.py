"""The controls of Generate: how the next word is drawn, and which draw is looked at."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import controls, layout, state
from app.controls import choose, seed_box
from app.state import View
from wordlm_core.lens import receipt, sampling
from wordlm_core.lens.receipt import Receipt
from wordlm_core.lens.sampling import Sample
from wordlm_core.text import SPECIALS, visible

_OFF = "off"
_TEMPERATURES = ("0 · greedy", *(f"{tenth / 10:g}" for tenth in range(1, 31)))
_TOP_K = (*map(str, (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1000)), _OFF)
_TOP_P = (*(f"{n / 20:g}" for n in range(1, 20)), "0.99", _OFF)
_SAMPLES = 20


def reshaping() -> dict[str, Any]:
    """Pick temperature, top-k and top-p; return the options of `next_distribution`."""
    temperature = choose(
        st.select_slider,
        "Temperature",
        "temperature",
        _TEMPERATURES,
        _TEMPERATURES.index("1"),
        help="Logits are divided by it. 1 leaves the model as it is; 0 is greedy: always the "
        "likeliest one.",
    )
    top_k = choose(
        st.select_slider,
        "Top-k",
        "top_k",
        _TOP_K,
        len(_TOP_K) - 1,
        help="Only so many of the likeliest can be drawn.",
    )
    top_p = choose(
        st.select_slider,
        "Top-p",
        "top_p",
        _TOP_P,
        len(_TOP_P) - 1,
        help="Only the fewest that together reach this share can be drawn.",
    )
    return {
        "temperature": temperature / 10,
        "top_k": None if _TOP_K[top_k] == _OFF else int(_TOP_K[top_k]),
        "top_p": None if _TOP_P[top_p] == _OFF else float(_TOP_P[top_p]),
    }


def force(of: View, words: Sequence[str]) -> tuple[Sequence[str], str]:
    """Offer candidates as buttons; one that is clicked goes behind the probe sentence.

    Returns:
        What `layout.plot` needs to do the same when a candidate's bar is clicked.
    """
    # Words stand apart in the box; the box's end is no place for a blank of their own.
    gap = " " if of.vocabulary.unit == "word" else ""
    texts = ["" if word in SPECIALS else gap + word for word in words]
    offered = [text for text in texts if text.strip()]
    layout.help_line(
        f"Force the next {of.vocabulary.unit}: it goes behind the text, as a click on its bar does."
    )
    controls.offer("Append this", "force", offered, state.append_to("text"))
    return texts, "text"


def samples(of: View, options: dict[str, Any], length: int) -> tuple[tuple[Sample, ...], int]:
    """Pick how many continuations to draw and the seed; return them and the seed."""
    many, seeded = layout.columns(3, 2)
    with many:
        counts = [str(n) for n in range(1, _SAMPLES + 1)]
        count = 1 + choose(st.select_slider, "Samples", "samples", counts, 2)
    with seeded:
        drawn_with = seed_box("Seed of the draws", "draw_seed")
    drawn = state.lens(
        of,
        sampling.generate,
        of.model,
        of.vocabulary,
        of.probe,
        seed=drawn_with,
        max_tokens=length,
        samples=count,
        **options,
    )
    return drawn, drawn_with


def corpus_counts(of: View, top: int) -> Receipt | None:
    """Look up what followed the text's last words in training; without counts, say so."""
    grams = state.library().ngrams
    if grams is None:
        layout.help_line(
            "There are no corpus counts in the artifacts folder: python -m wordlm_core ngrams "
            "makes them from the training text."
        )
        return None
    if grams.vocabulary_sha256 != of.vocabulary.sha256:
        layout.help_line("The corpus counts belong to another vocabulary than this model's.")
        return None
    return receipt.receipt(grams, of.vocabulary, of.probe.ids, top)


def sample(drawn: Sequence[Sample]) -> int:
    """Pick one of the samples."""
    labels = [f"sample {n}" for n in range(1, len(drawn) + 1)]
    if len(labels) < 2:
        return 0
    return choose(st.pills, "Step through", "sample", labels, wrap=True)


def drawn_token(of: View, sample: Sample) -> tuple[int, str]:
    """Pick one of a sample's tokens, the one that ended it included; return index and token."""
    vocabulary = of.vocabulary
    tokens = [*sample.tokens, *([vocabulary.itos[vocabulary.end_id]] if sample.ended else [])]
    labels = [f"{n} · {visible(word)}" for n, word in enumerate(tokens, 1)]
    if len(labels) < 2:
        return 0, tokens[0]
    title = f"{vocabulary.unit} of the sample".capitalize()
    index = choose(st.select_slider, title, "word_at", labels)
    return index, tokens[index]
