"""The instructor's passcode: only its hash is kept, and wrong tries make the next ones wait.

`python -m app.access` asks for a passcode and prints the line for `WORDLM_PASSCODE_HASH`.
"""

import getpass
import hashlib
import hmac
import secrets
import sys
import threading
import time
from collections.abc import Callable

import streamlit as st

from app import settings, state
from wordlm_core.errors import ConfigError, WordLMError

SHORTEST, LONGEST = 8, 200
_COST, _BLOCK, _LANES, _SALT_BYTES, _KEY_BYTES = 2**15, 8, 1, 16, 32
_LONGEST_WAIT = 30.0
_BOX, _SAID = "passcode", "_passcode_said"


class PasscodeError(WordLMError):
    """A passcode is wrong, or may not be tried yet."""


class Lock:
    """One passcode for a whole server: after a wrong try the next one has to wait."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with no wrong tries.

        Args:
            clock: Seconds.
        """
        self._clock = clock
        self._one_at_a_time = threading.Lock()
        self._wrong, self._closed_until = 0, 0.0

    def open(self, passcode: str, stored: str) -> None:
        """Compare a passcode with a stored hash; one at a time, so that no crowd of tries gets by.

        Raises:
            PasscodeError: It is wrong, or comes too soon after a wrong one.
        """
        with self._one_at_a_time:
            left = self._closed_until - self._clock()
            if left > 0:
                raise PasscodeError(f"a passcode was wrong just now: try again in {left + 1:.0f} s")
            if matches(passcode, stored):
                self._wrong = 0
                return
            wait = min(_LONGEST_WAIT, 2.0**self._wrong)
            self._wrong = min(self._wrong + 1, 10)
            self._closed_until = self._clock() + wait
        raise PasscodeError(f"this is not the passcode: try again in {wait:.0f} s")


def hashed(passcode: str) -> str:
    """Return what is stored of a passcode: scrypt$n$r$p$salt$hash.

    Raises:
        ConfigError: It is too short or too long.
    """
    if not SHORTEST <= len(passcode) <= LONGEST:
        raise ConfigError(f"a passcode has {SHORTEST} to {LONGEST} characters")
    salt = secrets.token_bytes(_SALT_BYTES)
    key = _key(passcode, (_COST, _BLOCK, _LANES), salt)
    return f"scrypt${_COST}${_BLOCK}${_LANES}${salt.hex()}${key.hex()}"


def matches(passcode: str, stored: str) -> bool:
    """Return whether a passcode is the one of a stored hash, in a time that tells nothing."""
    if not settings.PASSCODE.fullmatch(stored) or len(passcode) > LONGEST:
        return False
    _, cost, block, lanes, salt, key = stored.split("$")
    found = _key(passcode, (int(cost), int(block), int(lanes)), bytes.fromhex(salt))
    return hmac.compare_digest(found, bytes.fromhex(key))


def gate() -> None:
    """Offer the instructor's view, where this installation has a passcode."""
    if not settings.current().passcode_hash:
        return
    with st.popover("Instructor", icon=":material/key:"):
        if state.is_instructor():
            st.caption("This tab sees and changes the jobs of everybody.")
            st.button("Leave", key="leave_instructor", on_click=state.instruct, args=(False,))
            return
        with st.form("instructor", clear_on_submit=True, border=False):
            st.text_input("Passcode", type="password", max_chars=LONGEST, key=_BOX)
            st.form_submit_button("Open", on_click=_try)
        said = state.value(_SAID, "")
        if said:
            st.warning(said)


def main() -> int:
    """Ask for a passcode twice and print its hash."""
    try:
        first = getpass.getpass("Passcode: ")
        if getpass.getpass("Again: ") != first:
            raise ConfigError("the two are not the same")
        line = hashed(first)
    except (WordLMError, EOFError, KeyboardInterrupt) as error:
        sys.stderr.write(f"error: {str(error) or 'nothing was typed'}\n")
        return 2
    sys.stdout.write(f"{line}\n")
    sys.stderr.write("Put it in single quotes in a shell: it holds $ signs.\n")
    return 0


# -- parts

_LOCK = Lock()


def _try() -> None:
    try:
        _LOCK.open(str(state.value(_BOX, "")), settings.current().passcode_hash)
    except PasscodeError as error:
        state.put(_SAID, f"{str(error)[:1].upper()}{str(error)[1:]}.")
        return
    state.put(_SAID, "")
    state.instruct(True)


def _key(passcode: str, costs: tuple[int, int, int], salt: bytes) -> bytes:
    n, r, p = costs
    return hashlib.scrypt(
        passcode.encode(), salt=salt, n=n, r=r, p=p, maxmem=256 * n * r, dklen=_KEY_BYTES
    )


if __name__ == "__main__":
    raise SystemExit(main())
