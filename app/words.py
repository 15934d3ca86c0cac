"""The controls of the pages about words alone: one word, a few words, several checkpoints."""

from collections.abc import Sequence

import streamlit as st

from app import controls, layout, shelf, state
from app.figures import Near
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.errors import TextError
from wordlm_core.lens import neighbours
from wordlm_core.vocabulary import Vocabulary

WORDS = ("ran", "mom", "happy", "red", "said", "he")
GROUPS = {
    "family": ("mom", "dad", "mommy", "daddy", "grandma", "brother", "sister"),
    "feelings": ("happy", "sad", "angry", "scared", "excited", "proud"),
    "animals": ("cat", "dog", "bird", "bear", "fish", "rabbit"),
    "colours": ("red", "blue", "green", "yellow", "pink", "black"),
    "verbs, past": ("went", "ran", "saw", "took", "said", "found"),
}
LETTERS = {
    "vowels": ("a", "e", "i", "o", "u"),
    "frequent": ("a", "e", "n", "i", "r", "l"),
    "rare": ("q", "x", "z", "w", "v", "j"),
}
AT_ONCE = 12
_LONGEST, _TYPED, _NAMED = 60, 300, 6


def together(first: Checkpoint) -> list[Checkpoint]:
    """Pick checkpoints to look at together with the first one."""
    # Other tokens or another width share no map with the first.
    offered = {
        entry.label: entry
        for entry in shelf.entries("also")
        if entry.label != first.name
        and entry.tokenizer == first.vocabulary.tokenizer
        and entry.width == first.model.config.d_model
    }
    if not offered:
        return [first]
    state.keep("also", list(offered))
    chosen = st.multiselect(
        "Together with",
        list(offered),
        key="also",
        bind="query-params",
        persist_state="session",
        placeholder="nothing",
    )
    state.remember_text("also", chosen)
    return [first, *(offered[label].open() for label in chosen)]


def one(of: Checkpoint) -> int:
    """Read one word; near spellings of one that is not in the vocabulary can be clicked.

    Raises:
        TextError: It is not one word of the vocabulary.
    """
    vocabulary = of.vocabulary
    presets = [word for word in WORDS if word in vocabulary.stoi]
    presets = presets or _first_words(vocabulary, 6 if vocabulary.tokenizer == "char" else 1)
    state.turn("near", vocabulary.tokenizer, presets[0])
    typed = controls.box(vocabulary.unit.capitalize(), "near", presets[0], _LONGEST)
    strange = bool(typed.strip()) and not _is_word(typed, [vocabulary])
    offered = vocabulary.near(typed) if strange else presets
    title = "Near spellings" if strange else "Try one of these"
    controls.offer(title, "spelling", offered, controls.fill("near"), lit=typed)
    return vocabulary.word_id(typed)


def several(of: Sequence[Checkpoint], title: str = "") -> tuple[str, ...]:
    """Read a few words; those that are not in every vocabulary are named and left out.

    Raises:
        TextError: None is left.
    """
    vocabularies = [each.vocabulary for each in of]
    groups = {
        name: ", ".join(word for word in group if _is_word(word, vocabularies))
        for name, group in (GROUPS if _reads_words(vocabularies[0]) else LETTERS).items()
    }
    groups = {name: text for name, text in groups.items() if text}
    groups = groups or {"frequent words": ", ".join(_first_words(vocabularies[0], 5))}
    start = next(iter(groups.values()))
    state.turn("words", vocabularies[0].tokenizer, start)
    typed = controls.box(title or f"{vocabularies[0].unit}s".capitalize(), "words", start, _TYPED)
    texts, names = list(groups.values()), list(groups)
    controls.offer("Groups", "group", texts, controls.fill("words"), names, lit=typed)
    asked = list(dict.fromkeys(typed.replace(",", " ").split()))
    known = [word for word in asked if _is_word(word, vocabularies)]
    strange = [word for word in asked if word not in known]
    if strange:
        layout.note(_not_there(strange, vocabularies[0]))
    found = list(dict.fromkeys(vocabularies[0].word_id(word) for word in known))
    if not found:
        raise TextError(
            f"type at least one {vocabularies[0].unit} of the vocabulary, with commas between more"
        )
    if len(found) > AT_ONCE:
        layout.note(f"The first {AT_ONCE} are shown.")
    return tuple(vocabularies[0].itos[word_id] for word_id in found[:AT_ONCE])


def separate() -> bool:
    """Switch on the panels that mislead."""
    on = st.toggle(
        "Separately fitted panels (misleading)",
        key="separate",
        bind="query-params",
        persist_state="session",
    )
    state.remember_text("separate", str(on).lower())
    return on


def near(of: Checkpoint, step: str | None, word_id: int, top: int) -> list[Near]:
    """Return a word's neighbours in the checkpoint and its companions, at the same step."""
    found: list[Near] = []
    for each in controls.companions(of):
        at = controls.same_step(of, step, each, each.steps)
        table = each.embedding_at(at)
        result = neighbours.nearest(table, each.vocabulary, word_id, top)
        layers = max(1, each.model.n_layer)
        found.append(Near(each.name, each.model.kind, result, layers))
    return found


def paths(of: Sequence[Checkpoint]) -> list[str]:
    """Return where the lines of "Show the code" find the same checkpoints."""
    return [shelf.path_of(each) for each in of]


# -- parts


def _reads_words(vocabulary: Vocabulary) -> bool:
    return vocabulary.tokenizer == "word"


def _first_words(vocabulary: Vocabulary, count: int) -> list[str]:
    """Return the most frequent tokens with letters, or any where there is none."""
    lexical = vocabulary.itos[vocabulary.lexical]
    ranked = sorted(lexical, key=lambda token: -vocabulary.counts.get(token, 0))
    return [token for token in ranked if token.isalpha()][:count] or list(ranked[:count])


def _is_word(typed: str, vocabularies: Sequence[Vocabulary]) -> bool:
    return all(vocabulary.knows(typed) for vocabulary in vocabularies)


def _not_there(strange: Sequence[str], vocabulary: Vocabulary) -> str:
    """Name the words that have no row, with near spellings."""
    named: list[str] = []
    for word in strange[:_NAMED]:
        close = ", ".join(vocabulary.near(word, 3))
        named.append(f"“{word}”" + (f" (near it: {close})" if close else ""))
    more = len(strange) - len(named)
    return (
        "Not in this vocabulary, so not drawn: "
        + ", ".join(named)
        + (f" and {more} more." if more else ".")
    )
