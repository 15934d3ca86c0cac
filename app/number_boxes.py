"""Boxes for settings of one's own: whatever is typed stays, and what is none is said."""

from typing import Any

import streamlit as st

from app import controls, state
from wordlm_core.errors import TextError


def whole(place: Any, title: str, key: str, default: int) -> int:
    """Draw a box for a whole number, kept and bound to the address.

    Raises:
        TextError: It is empty.
    """
    typed = place.number_input(
        title, value=default, step=1, key=key, bind="query-params", persist_state="session"
    )
    state.remember_text(key, "" if typed is None else str(typed))
    if typed is None:
        raise TextError(f"{title.lower()} is empty: type a whole number")
    return int(typed)


def decimal(place: Any, title: str, key: str, default: float) -> float:
    """Draw a box for a number, kept and bound to the address.

    Raises:
        TextError: It holds none.
    """
    typed = _line(place, title, key, f"{default:g}", 20)
    try:
        return float(typed.strip().replace(",", "."))
    except ValueError as error:
        raise TextError(f"{title.lower()} is a number, like {default:g}") from error


def wholes(place: Any, title: str, key: str, default: tuple[int, ...]) -> tuple[int, ...]:
    """Draw a box for whole numbers with commas between them.

    Raises:
        TextError: It holds something else.
    """
    start = ", ".join(map(str, default))
    typed = _line(place, title, key, start, 120)
    try:
        return tuple(int(part) for part in typed.replace(",", " ").split())
    except ValueError as error:
        raise TextError(f"{title.lower()} are whole numbers with commas, like {start}") from error


def switch(place: Any, title: str, key: str) -> bool:
    """Draw a choice between on and off, on at first."""
    with place:
        return controls.choose(st.selectbox, title, key, ("on", "off")) == 0


def _line(place: Any, title: str, key: str, default: str, longest: int) -> str:
    typed = place.text_input(
        title,
        default,
        max_chars=longest,
        key=key,
        bind="query-params",
        persist_state="session",
        live="200ms",
    )
    state.remember_text(key, typed or "")
    return typed or ""
