"""The instructor's passcode: kept as a hash, slow to guess, offered only where there is one."""

import getpass

import pytest
from streamlit.testing.v1 import AppTest

from app import access, settings
from app.access import Lock, PasscodeError
from wordlm_core.errors import ConfigError

PASSCODE = "correct horse"


@pytest.fixture(scope="module")
def stored() -> str:
    return access.hashed(PASSCODE)


PAGE = """
import streamlit as st

from app import access, state

access.gate()
st.text(f"instructor: {state.is_instructor()}")
"""


def said(at: AppTest) -> str:
    assert not at.exception
    return at.text[0].value


def test_a_hash_has_a_salt_and_tells_nothing_of_the_passcode(stored):
    other = access.hashed(PASSCODE)
    assert stored != other
    assert settings.PASSCODE.fullmatch(stored)
    assert PASSCODE not in stored
    assert access.matches(PASSCODE, stored)
    assert access.matches(PASSCODE, other)
    assert not access.matches("Correct horse", stored)
    assert not access.matches("x" * 10_000_000, stored)
    assert not access.matches("", stored)


@pytest.mark.parametrize("bad", ["", "plain", "scrypt$1$1$1$aa$bb", "scrypt$99999999$8$1$00$00"])
def test_a_bad_hash_is_refused_by_name_and_never_matches(bad):
    if bad:
        with pytest.raises(ConfigError, match="WORDLM_PASSCODE_HASH must be a line"):
            settings.read({"WORDLM_PASSCODE_HASH": bad})
    assert not access.matches(PASSCODE, bad)


def test_a_wrong_try_makes_the_next_one_wait_twice_as_long(stored):
    now = [100.0]
    lock = Lock(lambda: now[0])
    for wait in (1, 2, 4, 8, 16, 30, 30):
        with pytest.raises(PasscodeError, match=f"again in {wait} s"):
            lock.open("wrong", stored)
        now[0] += wait - 0.01
        with pytest.raises(PasscodeError, match="just now"):
            lock.open(PASSCODE, stored)  # even the right one, without a look at it
        now[0] += 0.02
    lock.open(PASSCODE, stored)
    with pytest.raises(PasscodeError, match="again in 1 s"):
        lock.open("wrong", stored)


@pytest.fixture
def locked(stored, monkeypatch):
    monkeypatch.setenv("WORDLM_PASSCODE_HASH", stored)
    monkeypatch.setattr(access, "_LOCK", Lock())
    settings.current.cache_clear()


def test_without_a_hash_there_is_nothing_to_see():
    at = AppTest.from_string(PAGE).run()
    assert said(at) == "instructor: False"
    assert not at.text_input


def test_the_passcode_opens_this_session_alone(locked):
    at, other = AppTest.from_string(PAGE).run(), AppTest.from_string(PAGE).run()
    at.text_input("passcode").set_value(PASSCODE)
    at.button[0].click().run()
    assert said(at) == "instructor: True"
    assert said(other.run()) == "instructor: False"
    at.button("leave_instructor").click().run()
    assert said(at) == "instructor: False"


def test_a_wrong_passcode_is_said_and_the_whole_server_waits(locked):
    at, other = AppTest.from_string(PAGE).run(), AppTest.from_string(PAGE).run()
    at.text_input("passcode").set_value("wrong")
    at.button[0].click().run()
    assert said(at) == "instructor: False"
    assert "not the passcode: try again in 1 s" in at.warning[0].value
    other.text_input("passcode").set_value(PASSCODE)
    other.button[0].click().run()
    assert said(other) == "instructor: False"
    assert "try again in" in other.warning[0].value


def test_the_command_prints_a_hash_that_the_settings_take(monkeypatch, capsys):
    monkeypatch.setattr(getpass, "getpass", lambda _: PASSCODE)
    assert access.main() == 0
    printed = capsys.readouterr().out.strip()
    assert settings.read({"WORDLM_PASSCODE_HASH": printed}).passcode_hash == printed
    assert access.matches(PASSCODE, printed)
    answers = iter(["one passcode", "another"])
    monkeypatch.setattr(getpass, "getpass", lambda _: next(answers))
    assert access.main() == 2
    assert capsys.readouterr().err == "error: the two are not the same\n"
    monkeypatch.setattr(getpass, "getpass", lambda _: "short")
    assert access.main() == 2


def test_the_secrets_file_is_read_and_the_environment_comes_first(stored, tmp_path):
    file = tmp_path / "secrets.toml"
    assert settings.secrets(file) == {}
    file.write_text(f'passcode_hash = "{stored}"\n', encoding="utf-8")
    assert settings.secrets(file) == {"WORDLM_PASSCODE_HASH": stored}
    file.write_text("passcode_hash = [", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"secrets.toml is not readable"):
        settings.secrets(file)
