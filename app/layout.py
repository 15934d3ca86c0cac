"""How a page is put together: header, notes, tables, figures, downloads, code.

Token text reaches the page through `html.escape` or as the value of a widget, never as
Markdown or HTML: `<UNK>` is drawn as `<UNK>`.
"""

import html
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from app import figures, settings, state
from app.figures import Figure
from wordlm_core.errors import TextError, WordLMError
from wordlm_core.lens.ablation import (
    AblationResult,
    Change,
    Effect,
    HeadEffect,
    ShuffleResult,
    TokenProb,
)
from wordlm_core.lens.attention import RowSteps
from wordlm_core.text import UNK
from wordlm_core.vocabulary import Vocabulary

Kind = Literal["descriptive", "causal (intervention)", ""]
_BADGES: dict[str, tuple[Literal["blue", "violet"], str]] = {
    "descriptive": ("blue", "It shows what the model computes, not what it depends on."),
    "causal (intervention)": (
        "violet",
        "Something is changed and the model computed again: the difference is an effect.",
    ),
}


@dataclass(frozen=True)
class Bar:
    """A table cell with a number and a bar of its share, 0 to 1."""

    text: str
    share: float


Cell = str | Bar
_STYLE = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")


# -- the frame of a page


def shell() -> None:
    """Draw what every page has around it."""
    st.logo(str(Path(__file__).parent / "logo.svg"), size="large")
    st.html(f"<style>{_STYLE}</style>")


def header(title: str, question: str, kind: Kind) -> Any:
    """Draw the title line; return the place at its end for the link."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="header"):
        st.html(
            f'<h1 class="wl-title">{_text(title)}</h1><p class="wl-question">{_text(question)}</p>'
        )
        if kind:
            colour, meaning = _BADGES[kind]
            st.badge(kind, color=colour, help=meaning)
        return st.empty()


def share(place: Any, address: str) -> None:
    """Put the link to the exact view into `place`."""
    with place.popover("Link", icon=":material/link:", help="A link to exactly this view"):
        st.caption("Opens the same view anywhere: checkpoint, sentence, step and choices.")
        st.code(address, language=None, wrap_lines=True)


def refuse(error: WordLMError) -> None:
    """Say in one sentence why there is nothing to show."""
    show = st.info if isinstance(error, TextError) else st.warning
    show(plain(str(error)[:1].upper() + str(error)[1:]) + ".")


def hero(claim: str, explanation: str) -> None:
    """Draw the first lines of the app."""
    st.html(
        f'<h1 class="wl-title wl-hero">{_text(claim)}</h1>'
        f'<p class="wl-lead">{_text(explanation)}</p>'
    )


def cards(*links: tuple[str, str, str]) -> None:
    """Link to pages side by side: file, label and icon of each."""
    for place, (file, label, icon) in zip(st.columns(len(links)), links, strict=True):
        with place, st.container(border=True):
            page_link(file, label, icon)


def command(line: str) -> None:
    """Show a line for a terminal."""
    st.code(line, language="bash")


@contextmanager
def folded(title: str, icon: str) -> Generator[None]:
    """Hide what is drawn inside until it is asked for."""
    with st.expander(title, icon=icon):
        yield


def unreadable(reasons: Mapping[str, str]) -> None:
    """List the files that could not be used, with the reason for each."""
    if reasons:
        section("Files that could not be used")
        rows = [[name, reason] for name, reason in reasons.items()]
        table(("file", "reason"), rows, words=(0, 1), label="Unreadable files")


def page_link(file: str, label: str, icon: str) -> None:
    """Link to the page of a file in `pages/`."""
    st.page_link(str(settings.ROOT / "pages" / file), label=label, icon=icon)


def caveat(text: str) -> None:
    """Say what this page does not show."""
    st.caption(f":material/visibility_off: **What this does not show.** {plain(text)}")


def note(*sentences: str) -> None:
    """Show short remarks about the input, letter for letter."""
    if sentences:
        st.html("".join(f'<p class="wl-note">{_text(s)}</p>' for s in sentences))


def section(title: str, explanation: str = "") -> None:
    """Draw a section's heading, with a line on how to read it."""
    st.html(
        f'<h2 class="wl-section">{_text(title)}</h2>'
        + (f'<p class="wl-help">{_text(explanation)}</p>' if explanation else "")
    )


def answer(*parts: str | tuple[str, str]) -> None:
    """Draw the page's answer in large type; a tuple is (token or number, look).

    Looks are `token`, `number` and the kinds of models.
    """
    drawn = [_text(part) if isinstance(part, str) else _mark(*part) for part in parts]
    st.html(f'<p class="wl-answer" role="status">{"".join(drawn)}</p>')


def subtitle(text: str) -> None:
    """Draw a small heading over a figure."""
    st.html(f'<h3 class="wl-subtitle">{_text(text)}</h3>')


def help_line(text: str) -> None:
    """Draw a line on how to read what follows."""
    st.html(f'<p class="wl-help">{_text(text)}</p>')


def columns(*widths: int) -> Sequence[Any]:
    """Return columns side by side, aligned at the top."""
    return st.columns(list(widths), gap="medium")


# -- figures, tables, downloads


def plot(
    figure: Figure, key: str, *, click: tuple[str, str] | None = None, name: str = "figure"
) -> None:
    """Draw a figure; a click puts the point's field click[0] into the widget click[1]."""
    config = figures.toolbar(name, state.value("image", "png"))
    if click is None:
        st.plotly_chart(figures.drawable(figure), key=key, config=config, alt=figure.alt)
        return
    field, target = click
    chart = f"{key}_clicked"
    st.plotly_chart(
        figures.drawable(figure),
        key=chart,
        config=config,
        alt=figure.alt,
        selection_mode="points",
        on_select=lambda: state.copy_point(chart, field, target),
    )


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    strong: int | None = None,
    faint: Sequence[int] = (),
    words: Sequence[int] = (0,),
    label: str,
) -> None:
    """Draw a small table; columns are told apart by position.

    Args:
        heads: Column titles.
        rows: Cells as text or bars.
        strong: Index of a row to mark.
        faint: Indices of rows that do not count.
        words: Columns of words; the others hold numbers and are aligned to the right.
        label: What the table is, for screen readers.
    """
    sides = [' class="wl-left"' if column in words else "" for column in range(len(heads))]
    look = {index: ' class="wl-faint"' for index in faint}
    if strong is not None:
        look[strong] = ' class="wl-strong"'
    body = "".join(
        f"<tr{look.get(i, '')}>{''.join(map(_cell, row, sides))}</tr>" for i, row in enumerate(rows)
    )
    head = "".join(
        f'<th scope="col"{side}>{_text(title)}</th>'
        for title, side in zip(heads, sides, strict=True)
    )
    st.html(
        f'<div class="wl-scroll"><table class="wl-table" aria-label="{_text(label)}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def downloads(name: str, *, csv: Callable[[], str], data: Callable[[], str]) -> None:
    """Offer a result as CSV and JSON, made when asked for, and choose the figures' format."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        for label, make, ending, mime in (
            ("Data as CSV", csv, "csv", "text/csv"),
            ("Data as JSON", data, "json", "application/json"),
        ):
            st.download_button(
                label,
                make,
                f"{name}.{ending}",
                mime,
                key=f"download_{ending}",
                on_click="ignore",
                icon=":material/download:",
            )
        st.segmented_control(
            "Figures save as",
            ["png", "svg"],
            default="png",
            required=True,
            key="image",
            persist_state="session",
            help="The camera button over a figure saves it in this format",
        )


def code(template: str, values: Mapping[str, Any]) -> None:
    """Show the lines over `wordlm_core` that give the number on screen."""
    with st.expander("Show the code", icon=":material/code:"):
        st.code(template.format(**{key: repr(value) for key, value in values.items()}).strip())


# -- results in words and numbers


def row_steps(steps: RowSteps, tokens: Sequence[str], query: int) -> None:
    """Draw one attention row as it is computed: q.k, scale, mask, softmax."""
    d_head = len(steps.query_vector)
    section(
        f"How position {query} · {tokens[query]} shares its attention",
        f"q·k, then ÷ √{d_head}, later positions masked, softmax over the rest.",
    )
    rows: list[list[Cell]] = [
        [
            f"{key} · {token}",
            f"{steps.dots[key]:.2f}",
            "masked" if steps.masked[key] else f"{steps.scaled[key]:.2f}",
            Bar(f"{steps.weights[key]:.3f}", float(steps.weights[key])),
        ]
        for key, token in enumerate(tokens)
    ]
    table(
        ["key (source)", "q·k", f"÷ √{d_head}, mask", "softmax"],
        rows,
        strong=int(steps.weights.argmax()),
        faint=range(query + 1, len(tokens)),
        label=f"Attention of query {query} step by step",
    )


def effect(of: Effect, result: AblationResult) -> None:
    """Say what taking one token away did."""
    parts: list[str | tuple[str, str]] = [(of.token, "token"), f" ({of.position}) "]
    if of.replacement is None:
        parts = ["Deleting ", *parts]
    else:
        parts = ["Replacing ", *parts, "by ", (of.replacement, "token"), " "]
    if not math.isfinite(of.kl):
        parts += [
            "moves the prediction ",
            ("infinitely far", "number"),
            ": a word that was possible before has no probability left.",
        ]
    elif of.kl == 0:
        parts += [("does not move", "number"), " the prediction at all: KL is 0."]
    else:
        parts += ["moves the prediction by ", (f"{figures.nats(of.kl)} nats", "number"), ": "]
        parts += _moves(of)
    answer(*parts)


def correlation(result: AblationResult) -> None:
    """Say how well attention ranks the effects."""
    if result.rank_correlation is None:
        help_line("Too few positions, or all alike: there is no rank correlation.")
    else:
        answer("Rank correlation ", (f"{result.rank_correlation:.2f}", "number"))


def unknown_seen(vocabulary: Vocabulary, replacement: str | None) -> None:
    """Say what `<UNK>` meant in training, where it is the stand-in."""
    if replacement != UNK:
        return
    seen, total = vocabulary.counts.get(UNK, 0), sum(vocabulary.counts.values())
    if not total:
        help_line("The file does not say how often <UNK> was seen in training.")
    elif not seen:
        help_line("<UNK> was never seen in training: replacing by it is replacing by noise.")
    else:
        help_line(
            f"In training <UNK> stood for {seen:,} of {total:,} tokens ({seen / total:.2%}): to "
            "the model it means some rare word."
        )


def heads_off(effects: Sequence[HeadEffect]) -> None:
    """Draw what switching each head off did to the prediction."""
    most = max((effect.kl for effect in effects if math.isfinite(effect.kl)), default=0.0)
    rows: list[list[Cell]] = [
        [
            f"head {effect.head}" if effects[-1].layer == 0 else f"{effect.layer}, {effect.head}",
            _change(effect.changes[0]),
            Bar(figures.nats(effect.kl), min(effect.kl, most) / most if most else 0.0),
        ]
        for effect in effects
    ]
    heads = ("head", "largest change", "KL in nats")
    table(heads, rows, words=(0, 1), label="The prediction without each head")


def shuffled(results: Sequence[tuple[str, ShuffleResult]]) -> None:
    """Draw the new order, and for each model what it did to the prediction."""
    words = " ".join(_mark(token, "token") for token in results[0][1].tokens)
    st.html(f'<p class="wl-order">{words}</p>')
    rows = [
        [
            name,
            _likeliest(result.prediction_before),
            _likeliest(result.prediction_after),
            figures.nats(result.kl),
        ]
        for name, result in results
    ]
    heads = ("model", "as typed", "shuffled", "KL in nats")
    table(heads, rows, words=(0, 1, 2), label="The prediction before and after the shuffle")


# -- parts


def plain(text: str) -> str:
    """Return `text` so that Streamlit's Markdown draws it letter for letter."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#$:~|" else c for c in text)


def _likeliest(predicted: Sequence[TokenProb]) -> str:
    return f"{predicted[0].token} {figures.percent(predicted[0].prob)}"


def _moves(of: Effect) -> list[str | tuple[str, str]]:
    parts: list[str | tuple[str, str]] = []
    for change in of.changes[:2]:
        ends = _change(change).removeprefix(change.token)
        parts += [", " if parts else "", (change.token, "token"), ends]
    return [*parts, "."]


def _change(of: Change) -> str:
    return f"{of.token} {figures.percent(of.before)} → {figures.percent(of.after)}"


def _text(text: str) -> str:
    return html.escape(text)


def _mark(text: str, look: str) -> str:
    return f'<span class="wl-{look}">{_text(text)}</span>'


def _cell(cell: Cell, side: str) -> str:
    if isinstance(cell, str):
        return f"<td{side}>{_text(cell)}</td>"
    width = f"{100 * min(1.0, max(0.0, cell.share)):.1f}%"
    return f'<td class="wl-bar"><span style="width:{width}"></span><b>{_text(cell.text)}</b></td>'
