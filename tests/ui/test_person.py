"""Who somebody is: the cookie's code or one of the session, and the link to it."""

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from app.jobs.record import owner_of
from app.jobs.store import Store
from app.jobs.work import Source, Work
from tests.ui.test_pages import open_page
from wordlm_core.training import TrainConfig

CODE, OTHER = "0123456789abcdef" * 2, "fedcba9876543210" * 2
FACTS = {"parameters": 10, "vocab_size": 26, "uniform": 3.3, "floor": None, "floor_of": ""}
PAGE = """
import streamlit as st

from app import layout, person, state

if not person.exchanged():
    state.begin_page("title", "question")
    person.mount()
    person.recovery()
    st.text(state.person())
    st.text(state.link())
"""


@pytest.fixture
def cookies(monkeypatch) -> dict[str, str]:
    """What stands in for the cookies of a request."""
    found: dict[str, str] = {}
    monkeypatch.setattr("streamlit.runtime.context.ContextProxy.cookies", found)
    return found


def opened(**parameters: str) -> AppTest:
    at = AppTest.from_string(PAGE)
    for key, value in parameters.items():
        at.query_params[key] = value
    return at.run()


def test_the_cookie_is_the_person(cookies):
    cookies["wordlm_person"] = CODE
    at = opened()
    assert not at.exception
    assert at.text[0].value == CODE
    assert opened().text[0].value == CODE


@pytest.mark.parametrize("odd", ["", "x", CODE.upper(), CODE + "0", "../" + CODE, f"{CODE}\n"])
def test_an_odd_cookie_is_replaced(cookies, odd):
    cookies["wordlm_person"] = odd
    at, other = opened(), opened()
    code = at.text[0].value
    assert not at.exception
    assert len(code) == 32
    assert int(code, 16) >= 0
    assert code != odd
    assert other.text[0].value != code
    assert at.run().text[0].value == code


def test_a_recovery_link_shows_nothing_before_it_is_exchanged(cookies):
    cookies["wordlm_person"] = OTHER
    del cookies["wordlm_person"]
    at = opened(me=CODE)
    assert not at.exception
    assert not at.text
    assert at.session_state["_person"] == CODE
    del at.query_params["me"]  # as the component's answer does
    assert at.run().text[0].value == CODE


@pytest.mark.parametrize("choice", ["stay", "switch"])
def test_a_browser_of_somebody_is_asked_before_it_becomes_somebody_elses(cookies, runs, choice):
    cookies["wordlm_person"] = OTHER
    store, config = Store(runs), TrainConfig.of("microgpt", steps=9)
    for seed, person in enumerate((OTHER, OTHER, CODE)):
        work = Work("train", replace(config, seed=seed), Source("names", documents=50))
        store.submit(work, person, facts=FACTS)
    at = opened(me=CODE)
    assert not at.exception
    assert not at.text
    assert not at.button
    assert at.session_state["_person"] == OTHER
    del at.query_params["me"]  # as the component's answer does
    at.run()
    shown = " ".join(each.proto.body for each in at.get("html"))
    assert "already belongs to somebody with 2 runs" in shown
    assert "somebody with 1 run." in shown
    assert CODE not in shown
    assert not at.text
    at.button(f"{choice}_person").click().run()
    if choice == "stay":
        assert at.text[0].value == OTHER
        return
    assert not at.text  # until the browser has answered
    assert at.get("bidi_component")[0].proto.id


def test_ones_own_link_asks_nothing(cookies):
    cookies["wordlm_person"] = CODE
    at = opened(me=CODE)
    del at.query_params["me"]
    assert at.run().text[0].value == CODE


def test_half_a_recovery_link_changes_nothing_and_is_said(cookies):
    cookies["wordlm_person"] = OTHER
    at = opened(me=CODE[:20])
    assert "not complete" in at.toast[0].value
    del at.query_params["me"]
    assert at.run().text[0].value == OTHER


def test_no_link_and_no_page_that_is_drawn_holds_the_code(cookies, artifacts):
    cookies["wordlm_person"] = CODE
    at = opened()
    assert CODE not in at.text[1].value
    for address in ("", "attention", "experiments", "runs", "new_run"):
        page = open_page(address)
        for block in ("html", "code", "markdown", "caption", "plotly_chart"):
            assert CODE not in "".join(str(each.proto) for each in page.get(block))


def test_no_file_holds_the_code():
    assert CODE not in owner_of(CODE)
    assert owner_of(CODE) != owner_of(OTHER)
