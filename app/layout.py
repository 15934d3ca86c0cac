"""How a page is put together: header, notes, tables, figures, downloads, code.

Token text reaches the page through `html.escape` or as the value of a widget, never as
Markdown or HTML: `<UNK>` is drawn as `<UNK>`.
"""

import html
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from app import exports, figures, settings, state
from app.figures import Figure
from wordlm_core.errors import TextError, WordLMError

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


_CARDS = 4
Cell = str | Bar
Part = str | tuple[str, str]
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
    """Link to pages, up to four side by side: file, label and icon of each."""
    for start in range(0, len(links), _CARDS):
        row = links[start : start + _CARDS]
        for place, (file, label, icon) in zip(
            st.columns(min(len(links), _CARDS)), row, strict=False
        ):
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


def page_link(file: str, label: str, icon: str, asked: Mapping[str, str] | None = None) -> None:
    """Link to the page of a file in `pages/`, perhaps with parameters of its address."""
    path = str(settings.ROOT / "pages" / file)
    st.page_link(path, label=label, icon=icon, query_params=dict(asked) if asked else None)


def onward(links: Sequence[tuple[str, str, str]], views: Sequence[tuple[str, str, str]]) -> None:
    """Draw where a page leads: links of file, label and icon, and other views of its model."""
    opened = state.shown("checkpoint")
    with st.container(horizontal=True, gap="small", key="onward"):
        for file, label, icon in links:
            page_link(file, label, icon)
    if opened is not None:
        with st.container(horizontal=True, gap="small", vertical_alignment="center", key="views"):
            st.html('<p class="wl-help">This model in the lenses:</p>')
            for file, label, icon in views:
                page_link(file, label, icon, {"checkpoint": opened})


def caveat(text: str) -> None:
    """Say what this page does not show."""
    state.page().caveat = text
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


def answer(*parts: Part) -> None:
    """Draw the page's answer in large type; a tuple is (token or number, look).

    Looks are `token`, `number` and the kinds of models.
    """
    drawn = [_text(part) if isinstance(part, str) else _mark(*part) for part in parts]
    st.html(f'<p class="wl-answer" role="status">{"".join(drawn)}</p>')


def tokens_line(tokens: Sequence[str], *, faint: int = 0, strong: int | None = None) -> None:
    """Draw a text as its tokens; the first `faint` ones recede, one may be marked."""
    looks = [
        "plain" if i < faint else "drawn" if i == strong else "token" for i in range(len(tokens))
    ]
    words = " ".join(map(_mark, tokens, looks))
    st.html(f'<p class="wl-order">{words}</p>')


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
    figure: Figure,
    key: str,
    *,
    click: tuple[str, str] | None = None,
    append: tuple[Sequence[str], str] | None = None,
    pick: str | None = None,
    name: str = "figure",
) -> None:
    """Draw a figure, perhaps one that can be clicked.

    Args:
        figure: The figure.
        key: Its key; `_clicked` is added where it can be clicked.
        click: A click puts the point's field click[0] into the widget click[1].
        append: A click puts the text append[0][point] behind what the box append[1] holds.
        pick: A click puts the word that the point carries into this text box.
        name: File name of a saved image.
    """
    state.page().add(figure)
    config = figures.toolbar(name, state.value("image", "png"))
    chart = f"{key}_clicked"
    if click is not None:
        act = partial(state.copy_point, chart, *click)
    elif append is not None:
        act = partial(state.append_point, chart, *append)
    elif pick is not None:
        act = partial(state.copy_label, chart, pick)
    else:
        st.plotly_chart(figures.drawable(figure), key=key, config=config, alt=figure.alt)
        return
    st.plotly_chart(
        figures.drawable(figure),
        key=chart,
        config=config,
        alt=figure.alt,
        selection_mode="points",
        on_select=act,
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


def downloads(
    name: str,
    *,
    data: Callable[[], str],
    csv: Callable[[], str] | None = None,
    with_figures: bool = True,
) -> None:
    """Offer result, figures and code as files, made when asked for; choose the figures' format.

    Args:
        name: Of the files.
        data: Makes the JSON.
        csv: Makes the table; without it there is no button for one.
        with_figures: The page has figures.
    """
    page = state.page()  # What follows the buttons is on it by the time of a click.

    def drawn() -> str:
        return figures.standalone(page.title, page.question, page.figures)

    def notebook() -> str:
        return exports.notebook(page.title, page.question, page.caveat, page.code)

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        for label, make, ending, mime in (
            ("Data as CSV", csv, "csv", "text/csv"),
            ("Data as JSON", data, "json", "application/json"),
            ("Figures as HTML", drawn if with_figures else None, "html", "text/html"),
            ("Download as notebook", notebook, "ipynb", "application/x-ipynb+json"),
        ):
            if make is None:
                continue
            st.download_button(
                label,
                make,
                f"{name}.{ending}",
                mime,
                key=f"download_{ending}",
                on_click="ignore",
                icon=":material/download:",
            )
        if not with_figures:
            return
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
    lines = template.format(**{key: repr(value) for key, value in values.items()}).strip()
    state.page().code = lines
    with st.expander("Show the code", icon=":material/code:"):
        st.code(lines)


# -- parts


def plain(text: str) -> str:
    """Return `text` so that Streamlit's Markdown draws it letter for letter."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#$:~|" else c for c in text)


def _text(text: str) -> str:
    return html.escape(text)


def _mark(text: str, look: str) -> str:
    return f'<span class="wl-{look}">{_text(text)}</span>'


def _cell(cell: Cell, side: str) -> str:
    if isinstance(cell, str):
        return f"<td{side}>{_text(cell)}</td>"
    width = f"{100 * min(1.0, max(0.0, cell.share)):.1f}%"
    return f'<td class="wl-bar"><span style="width:{width}"></span><b>{_text(cell.text)}</b></td>'
