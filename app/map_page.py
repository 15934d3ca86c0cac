"""What the microgpt map consists of: the sheet in two columns, the warm-ups, the links.

What a person writes stays in the session of the browser tab. It is not in the address, which
others are shown.
"""

import html

import streamlit as st

from app import controls, layout, map_sheet, state
from app.main import PAGES
from app.map_sheet import SECTIONS, Entry, Seen
from app.warmups import CARDS

LONGEST, LONGEST_GUESS = 300, 120
_WARM_UPS = "warm-ups"
_STAYS = (
    "What you write stays in this browser tab: it is on no disk and in no link, and it is gone "
    "when the tab is closed or loaded anew. So download it."
)


def part() -> int:
    """Pick one of the seven sections; a click into the picture does the same."""
    labels = [f"{number} · {section.title}" for number, section in enumerate(SECTIONS, 1)]
    return controls.choose(st.pills, "Section of the walk", "part", labels, wrap=True)


def write(part: int) -> None:
    """Write about one section: before, which can be locked, and then after."""
    section = SECTIONS[part]
    layout.section(section.title, section.ask)
    if _before(part):
        _box("After", f"after_{part}", LONGEST, "What would you say now?")
        with layout.folded("A model sentence", ":material/visibility:"):
            _quote(section.model)
    else:
        layout.help_line("Once it is locked, there is a line for what you say afterwards.")
    for page in PAGES:
        if page.title == section.title:
            layout.page_link(page.file, f"To the page {page.title}: {page.question}", page.icon)


def entries() -> list[Entry]:
    """Return what has been written so far, a section an entry."""
    return [_entry(part) for part in range(len(SECTIONS))]


def sheet(written: list[Entry]) -> None:
    """Show all that was written, before and after side by side, and offer it as files."""
    layout.section("Your sheet", _STAYS)
    _files(written)
    rows = [[f"{n} · {e.section.title}", e.before, e.after] for n, e in enumerate(written, 1)]
    open_still = [index for index, entry in enumerate(written) if not entry.locked]
    with st.container(key="map_sheet"):
        layout.table(
            ("section", "before (pale: not locked)", "after"),
            rows,
            faint=open_still,
            words=(0, 1, 2),
            label="Your seven sentences, before and after",
        )


def warm_up() -> list[Seen]:
    """Show one warm-up: its lines, a prediction, and what they print; return all seen ones."""
    labels = [f"{number} · {card.topic}" for number, card in enumerate(CARDS, 1)]
    number = controls.choose(st.pills, "Card", "card", labels, wrap=True)
    lines, prediction = layout.columns(1, 1)
    with lines:
        st.code(CARDS[number].snippet)
    with prediction:
        guess = _seen(number)
        if guess is None:
            _predict(number)
        else:
            _compare(Seen(CARDS[number], guess))
    guesses = [(card, _seen(index)) for index, card in enumerate(CARDS)]
    seen = [Seen(card, guess) for card, guess in guesses if guess is not None]
    right = sum(each.card.is_right(each.guess) for each in seen)
    layout.help_line(f"Seen {len(seen)} of {len(CARDS)}, predicted right: {right}.")
    return seen


def links() -> None:
    """Link to the pages that go through microgpt section by section."""
    titles = {section.title for section in SECTIONS}
    layout.cards(
        *(
            (page.file, f"**{page.title}** · {page.question}", page.icon)
            for page in PAGES
            if page.title in titles
        )
    )


def jump() -> None:
    """Link to the warm-ups, which stand below the sheet."""
    st.html(f'<p class="wl-help"><a href="#{_WARM_UPS}">Down to the Python warm-ups</a></p>')


def landing() -> None:
    """Stand where the link to the warm-ups leads."""
    st.html(f'<div id="{_WARM_UPS}"></div>')


# -- the sheet


def _files(written: list[Entry]) -> None:
    """Offer the sheet as files, beside the sentence that says why to take them."""
    with st.container(horizontal=True, gap="small"):
        for label, make, ending, mime in (
            ("Sheet as Markdown", map_sheet.markdown, "md", "text/markdown"),
            ("Sheet as CSV", map_sheet.sheet_csv, "csv", "text/csv"),
        ):
            st.download_button(
                label,
                lambda make=make: make(written),
                f"microgpt_sheet.{ending}",
                mime,
                key=f"sheet_{ending}",
                on_click="ignore",
                icon=":material/download:",
            )


def _before(part: int) -> bool:
    """Write the first sentence, or show it where it is locked; return whether it is."""
    key = f"before_{part}"
    entry = _entry(part)
    if not entry.locked:
        _box("Before", key, LONGEST, "One sentence in your own words: a guess is fine.")
        asked = st.button(
            "Lock",
            key=f"lock_{part}",
            help="A locked sentence stays as it is, so that you can see how far you have come.",
            icon=":material/lock:",
            on_click=_lock,
            args=(key,),
        )
        if asked:
            layout.note("There is nothing to lock yet: write a sentence first.")
        return False
    layout.subtitle("Before, locked")
    _quote(entry.before)
    return True


def _box(title: str, key: str, longest: int, hint: str) -> None:
    """Draw a line to type into; live, so that a click right after typing misses nothing."""
    st.text_input(
        title,
        max_chars=longest,
        key=key,
        persist_state="session",
        live="200ms",
        placeholder=hint,
        autocomplete="off",
    )


def _quote(text: str) -> None:
    st.html(f'<p class="wl-quote">{html.escape(text)}</p>')


def _lock(key: str) -> None:
    text = _typed(key)
    if text.strip():
        state.put(f"{key}_locked", text)


def _entry(part: int) -> Entry:
    locked = state.value(f"before_{part}_locked", None)
    before = _typed(f"before_{part}") if locked is None else locked
    return Entry(SECTIONS[part], before, locked is not None, _typed(f"after_{part}"))


def _typed(key: str) -> str:
    return state.value(key, None) or ""


# -- the warm-ups


def _seen(number: int) -> str | None:
    """Return the prediction of a card whose output was seen, else None."""
    return state.value(f"guess_{number}_seen", None)


def _predict(number: int) -> None:
    key = f"guess_{number}"
    with st.form(f"card_{number}", border=False):
        _box("What does it print?", key, LONGEST_GUESS, "Exactly as print writes it")
        asked = st.form_submit_button(
            "See", key=f"see_{number}", icon=":material/play_arrow:", on_click=_see, args=(key,)
        )
    if asked:
        layout.note("Predict first: type what you think it prints.")


def _see(key: str) -> None:
    guess = _typed(key)
    if guess.strip():
        state.put(f"{key}_seen", guess)


def _compare(seen: Seen) -> None:
    right = seen.card.is_right(seen.guess)
    layout.answer("You predicted ", (seen.guess, "token"), ".")
    layout.answer("It prints ", (seen.card.output, "token"), ".")
    layout.answer(("Right" if right else "Not so", "number"), f": {seen.card.why}")
