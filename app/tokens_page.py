"""The Tokens page: two names as ids, what is predicted from what, and what cannot be read."""

import html
import math
from collections.abc import Sequence

import numpy as np
import streamlit as st
from jaxtyping import Float

from app import controls, layout, settings, state
from app.layout import Bar, Cell, Part
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.lens import tokens
from wordlm_core.lens.tokens import Row, Strange, TokenTable
from wordlm_core.models.base import LanguageModel, count_parameters

# Seventeen letters: two predictions more than a context of sixteen has room for.
TOO_LONG = "alexandrachristie"
REFUSED = ("mary-jane", "Emma")
SHOWN = 100
_AT_ONCE, _BEYOND, _NAMED, _LISTED = 40, 8, 6, 3


def texts(of: Checkpoint) -> tuple[str, str]:
    """Read the name that all pages share and the person's own."""
    longest = settings.current().max_text
    presets, _ = controls.presets(of.vocabulary)
    left, right = layout.columns(1, 1)
    with left:
        state.turn("text", of.vocabulary.tokenizer, presets[0])
        shared = controls.box("Probe sentence", "text", presets[0], longest, "Type a name")
        offered = [*presets[:3], TOO_LONG]
        labels = [*presets[:3], f"{len(TOO_LONG)} letters"]
        controls.offer(
            "Try one of these", "preset", offered, controls.fill("text"), labels, lit=shared
        )
    with right:
        own = controls.box("Your name", "own_name", "", longest, "Type your own name")
        layout.help_line("As in the training list: small letters, one word.")
    return shared, own


def own_name(of: Checkpoint, typed: str) -> TokenTable | None:
    """Read the person's own name; as long as there is none, ask for it."""
    if not typed.strip():
        layout.help_line("Type your name above: it is read the same way, character by character.")
        return None
    return tokens.read(of.vocabulary, typed, of.model.config.context_length)


def side(of: LanguageModel, table: TokenTable) -> None:
    """Show one text: its ids, each prediction and the loss, or why it cannot be read."""
    if table.strange:
        layout.answer(*_refusal(table.strange))
        _chips(table)
        layout.help_line("Below: why, and what would have to change.")
        return
    losses = tokens.losses(of, table)
    layout.answer(
        f"{_count(len(table.tokens) - 2, 'token')} between ",
        (table.tokens[0].label, "token"),
        " and ",
        (table.tokens[-1].label, "token"),
        f": {_predicted(table)}, loss ",
        (f"{losses.mean():.3f}", "number"),
        " nats, their mean",
    )
    _chips(table)
    _predictions(table, losses)
    if table.cut_off:
        layout.note(_too_long(table))


def uniform(of: Checkpoint) -> str:
    """Return what a loss is compared with."""
    size = len(of.vocabulary)
    return (
        f"Loss is minus the natural log of the target's probability. Guessing evenly among "
        f"{size:,} tokens costs ln {size:,} = {math.log(size):.3f} nats a prediction."
    )


def refused(of: Checkpoint) -> None:
    """Pick a name that cannot be read; show the refusal, why, and what would have to change."""
    names = list(REFUSED)
    left, right = layout.columns(1, 1)
    with left:
        chosen = controls.choose(st.pills, "A name", "refused", names)
        table = tokens.read(of.vocabulary, names[chosen], of.model.config.context_length)
        if not table.strange:
            layout.note(f"This model's list holds every character of {names[chosen]}: it reads it.")
            _chips(table)
            return
        layout.answer(*_refusal(table.strange))
        _chips(table)
        layout.help_line(_why(of))
    with right:
        layout.subtitle("What would have to change")
        layout.help_line(_remedy(of, table.strange))
        layout.subtitle("What a word model does")
        _beside(names[chosen])


def marked(tables: Sequence[TokenTable | None]) -> set[int]:
    """Return the ids of the tokens that stand in the typed texts."""
    found = {token.id for table in tables if table is not None for token in table.tokens}
    return {each for each in found if each is not None}


def rows(of: Checkpoint) -> tuple[Row, ...]:
    """Return the first rows of the vocabulary; where there are more, say so."""
    found = tokens.alphabet(of.vocabulary)
    if len(found) > SHOWN:
        layout.note(f"The first {SHOWN} of {len(found):,} tokens are shown.")
    return found[:SHOWN]


def vocabulary(rows: Sequence[Row]) -> None:
    """Draw the vocabulary as a table."""
    most = max((row.share or 0.0 for row in rows), default=0.0) or 1.0
    cells: list[list[Cell]] = [
        [
            str(row.id),
            row.label,
            "" if row.count is None else f"{row.count:,}",
            "" if row.share is None else Bar(f"{row.share:.2%}", row.share / most),
        ]
        for row in rows
    ]
    with layout.folded("The vocabulary as a table", ":material/table:"):
        layout.table(("id", "token", "count", "share"), cells, words=(1,), label="The vocabulary")


# -- parts


def _chips(table: TokenTable) -> None:
    """Draw the tokens in order: position, token, id; what cannot be read is marked."""
    chips = "".join(
        f'<li class="wl-chip{"" if token.id is not None else " wl-chip-strange"}">'
        f"<small>{token.position}</small><b>{html.escape(token.label)}</b>"
        f"<span>{'no id' if token.id is None else token.id}</span></li>"
        for token in table.tokens[:_AT_ONCE]
    )
    more = len(table.tokens) - _AT_ONCE
    rest = f"<li>and {more:,} more</li>" if more > 0 else ""
    legend = '<li class="wl-chip wl-chip-legend"><small>position</small><b>token</b><span>id</span>'
    st.html(f'<ol class="wl-chips" aria-label="Tokens with ids">{legend}</li>{chips}{rest}</ol>')


def _predictions(table: TokenTable, losses: Float[np.ndarray, " targets"]) -> None:
    rows: list[list[Cell]] = []
    shown = table.pairs[: table.context_length + _BEYOND]
    for pair in shown:
        scored: list[Cell] = ["not trained", ""]
        if pair.trained:
            loss = float(losses[pair.position])
            scored = [Bar(f"{math.exp(-loss):.4f}", math.exp(-loss)), f"{loss:.3f}"]
        rows.append([str(pair.position), pair.input.label, pair.target.label, *scored])
    beyond = [row for row, pair in enumerate(shown) if not pair.trained]
    rows.append(["mean", "", "", "", f"{losses.mean():.3f}"])
    heads = ("position", "input", "target", "probability", "loss (nats)")
    layout.table(
        heads,
        rows,
        strong=len(rows) - 1,
        faint=beyond,
        words=(1, 2),
        label="What is predicted from what",
    )


def _too_long(table: TokenTable) -> str:
    first = table.cut_off[0]
    letters = [pair.target.label for pair in table.cut_off[:-1]]
    lost = f"{', '.join(letters[:_NAMED])} and the end" if letters else "the end"
    return (
        f"There are {table.context_length} positions, 0 to {first.position - 1}. Training stops "
        f"there: from position {first.position} on nothing is read, so {lost} "
        f"{'are' if letters else 'is'} never predicted, and the loss is the mean of the rest. "
        f"Attention and One position, which ask what comes next, keep the last "
        f"{table.context_length} tokens instead: there the beginning is cut off."
    )


def _predicted(table: TokenTable) -> str:
    """Return how many predictions there are, and why they are not one for each target."""
    if not table.cut_off:
        return _count(len(table.pairs), "prediction")
    places = _count(table.context_length, "position")
    return f"{len(table.trained):,} of {len(table.pairs):,} predictions, as there are {places}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _refusal(strange: Sequence[Strange]) -> list[Part]:
    parts: list[Part] = ["Refused: "]
    for each in strange[:_LISTED]:
        parts += [(each.label, "token"), f" (character {each.place}), "]
    more = len(strange) - _LISTED
    parts[-1] = f"{str(parts[-1]).removesuffix(', ')}{f' and {more:,} more' if more > 0 else ''} "
    parts.append("is not in the list" if len(strange) == 1 else "are not in the list")
    known = next((each.known_as for each in strange if each.known_as is not None), None)
    return parts if known is None else [*parts, "; ", (known, "token"), " is"]


def _why(of: Checkpoint) -> str:
    return (
        f"microgpt has a row for each of the {len(of.vocabulary) - 1:,} characters of its "
        "training list and one for <BOS>, and none that stands for all the others. Without an id "
        "there is no row to look up. A capital is another character than the small letter: "
        "nothing is lowered."
    )


def _remedy(of: Checkpoint, strange: Sequence[Strange]) -> str:
    added = list(dict.fromkeys(each.label for each in strange))
    size, width = len(of.vocabulary), of.model.config.d_model
    old = count_parameters(of.model.weights)
    new = old + 2 * width * len(added)
    return (
        f"Train anew with {', '.join(added)} in the list: {size:,} tokens become "
        f"{size + len(added):,}, wte and lm_head get {len(added)} more row"
        f"{'s' if len(added) > 1 else ''} of {width} each, and {old:,} parameters become {new:,}. "
        "Ids behind the new character move up, so old weights do not fit. A row added without "
        "training would be random numbers. Or type the name as the list would have it."
    )


def _beside(text: str) -> None:
    """Read the text with the first word model that is there."""
    loaded = state.library().checkpoints.values()
    other = next((each for each in loaded if each.vocabulary.unknown_id is not None), None)
    if other is None:
        layout.help_line(
            "It has a row <UNK> for all words that it does not know: it reads anything, and "
            "forgets which word it was."
        )
        return
    table = tokens.read(other.vocabulary, text, other.model.config.context_length)
    _chips(table)
    unknown = sum(token.id == other.vocabulary.unknown_id for token in table.tokens)
    layout.help_line(
        f"{other.name} cuts it into words and punctuation marks, in lower case: "
        f"{unknown or 'none'} of them {'is' if unknown == 1 else 'are'} unknown to it. What it "
        "does not know becomes <UNK>, one row for all such words: it never refuses, but it cannot "
        "tell one of them from another."
    )
