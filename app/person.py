"""Who somebody is: a code in a cookie of the browser, and no account.

Streamlit sets no cookies, so a small component does. Two tabs that are opened at once agree:
the first code that the browser keeps is everybody's, and each tab is told which one that is.
"""

import streamlit as st
from streamlit.components import v2

from app import layout, state
from app.jobs.record import owner_of

_READ = """
const NAME = "wordlm_person";
const kept = () => {
  const found = document.cookie.split("; ").find((each) => each.startsWith(NAME + "="));
  const code = found ? found.slice(NAME.length + 1) : "";
  return /^[0-9a-f]{32}$/.test(code) ? code : "";
};
const keep = (code, path) => {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie =
    `${NAME}=${code}; Path=${path}; Max-Age=31536000; SameSite=Lax${secure}`;
};
const told = new WeakMap();
"""
# Another tab may write at the same moment: what is there a little later is what both use.
_MEET = (
    _READ
    + """
export default function ({ data, parentElement, setStateValue }) {
  if (kept() === "") keep(data.code, data.path);
  const timer = setTimeout(() => {
    const answer = kept() || "none";
    if (answer !== data.known && told.get(parentElement) !== answer) {
      told.set(parentElement, answer);
      setStateValue("kept", answer);
    }
  }, 250);
  return () => clearTimeout(timer);
}
"""
)
# The code leaves the address and the entry of the history before anything is told to the server.
_EXCHANGE = (
    _READ
    + """
export default function ({ data, parentElement, setStateValue }) {
  const address = new URL(location.href);
  address.searchParams.delete("me");
  history.replaceState(history.state, "", address);
  if (data.code !== "") keep(data.code, data.path);
  if (told.get(parentElement)) return;
  told.set(parentElement, true);
  setStateValue("kept", kept() || "none");
}
"""
)
# They draw nothing, and take no room.
_HIDDEN = ".st-key-person, .st-key-person_exchange, .st-key-person_switch { display: none; }"
_OFFERED, _SURE = "_person_offered", "_person_sure"  # the code of a link, until it is decided
_meet = v2.component("wordlm_person", js=_MEET, css=_HIDDEN, isolate_styles=False)
_exchange = v2.component("wordlm_person_exchange", js=_EXCHANGE, css=_HIDDEN, isolate_styles=False)
_BLOCKED = (
    "Your browser keeps no cookie of this site: what you start is yours until this tab is closed "
    "or loaded anew. The link under “My runs on another device” brings it back."
)


def mount() -> None:
    """Have the browser keep the person's code; say so where it does not.

    Only on pages where something belongs to somebody: the others need no code.
    """
    data = {"code": state.person(), "path": _path(), "known": state.kept()}
    _meet(key="person", data=data, on_kept_change=_note_kept)
    if state.kept() == state.NOT_KEPT:
        layout.note(_BLOCKED)


def exchanged() -> bool:
    """Turn a recovery link into the cookie; return whether the page has to wait for that.

    The code leaves the address at once. Where the browser keeps another person's, it is asked
    first: that person's runs would be out of reach, and what is started next not theirs.
    """
    code = state.asked_person()
    if code is not None:
        _take(code)
    elif not state.value(_OFFERED, ""):
        return False
    elif state.value(_SURE, False):
        data = {"code": state.value(_OFFERED, ""), "path": _path()}
        _exchange(key="person_switch", data=data, on_kept_change=_note_switched)
        layout.help_line("Opening the runs of the link")
    else:
        _ask()
    return True


def recovery() -> None:
    """Offer the link that brings one's runs to another device."""
    with st.popover(
        "My runs on another device", icon=":material/devices:", key="recovery", on_change="rerun"
    ) as opened:
        if opened.open:  # the code is sent to the browser only when it is asked for
            st.caption("Open it once there. Whoever has this link has your runs: keep it private.")
            st.code(state.recovery_link(), language=None, wrap_lines=True)


# -- parts


def _note_kept() -> None:
    state.note_kept("person")


def _take(code: str) -> None:
    """Take a code out of the address, and keep it where no other person is known here."""
    if not state.is_code(code):
        st.toast("The link to your runs is not complete: copy the whole line.")
        code = ""
    elif state.kept() in ("", state.NOT_KEPT, code):
        state.adopt(code)
    else:
        state.put(_OFFERED, code)
        code = ""
    data = {"code": code, "path": _path()}
    _exchange(key="person_exchange", data=data, on_kept_change=_note_exchanged)
    layout.help_line("Opening your runs")


def _ask() -> None:
    """Let a person decide between the one that the browser knows and the one of the link."""
    here, there = _runs_of(state.person()), _runs_of(state.value(_OFFERED, ""))
    layout.answer(f"This browser already belongs to somebody with {here}.")
    layout.help_line(
        f"The link is of somebody with {there}. After a switch this browser is theirs: what was "
        "started here comes back with its own link alone, so stay and copy that from Runs first."
    )
    with st.container(horizontal=True, gap="small"):
        st.button("Stay", key="stay_person", on_click=_stay)
        st.button("Switch", key="switch_person", on_click=state.put, args=(_SURE, True))


def _runs_of(code: str) -> str:
    count = sum(job.owner == owner_of(code) for job in state.store().jobs())
    return f"{count:,} {'run' if count == 1 else 'runs'}"


def _stay() -> None:
    state.put(_OFFERED, "")


def _note_switched() -> None:
    state.note_kept("person_switch")
    state.put(_OFFERED, "")
    state.put(_SURE, False)


def _note_exchanged() -> None:
    state.note_kept("person_exchange")
    state.forget_link()


def _path() -> str:
    return "/" + str(st.get_option("server.baseUrlPath") or "").strip("/")
