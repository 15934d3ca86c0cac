"""Which text New run trains on: a named corpus, or one that was uploaded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app import layout, settings, state
from app.jobs.record import owner_of
from app.jobs.uploads import Upload
from app.jobs.work import OWN, Source
from wordlm_core import corpora
from wordlm_core.errors import CorpusError, WordLMError

KEY = "new_corpus"
_FILE, _REFUSED, _UPLOADED = "new_corpus_file", "_new_corpus_refused", "_new_corpus_made"
_LISTS = 10_000
_FIRST, _FIRST_LIST = "stories", "names"  # neither needs a network
_RULES = (
    "UTF-8, one document a line, or .jsonl with “text”; at most {limit:,} MB. Only you see it, "
    "unless you share it; what is trained on it is private at first."
)


@dataclass(frozen=True)
class Chosen:
    """A corpus to train on, and the upload where it is one."""

    source: Source
    upload: Upload | None = None


def choose(
    documents: int | None,
    only: Sequence[str] | None = None,
    *,
    items: bool = False,
    whole_lists: bool = True,
) -> Chosen:
    """Pick a corpus.

    Args:
        documents: Of a named corpus, the first so many; None leaves it as it is.
        only: Offer these named ones only.
        items: What is trained reads a list of short items best.
        whole_lists: Take an own text, and a list of a few thousand items, whole, whatever
            `documents` says.

    Raises:
        CorpusError: There is none to choose from.
    """
    loaded = corpora.modules()
    wanted = loaded if only is None else only
    named = [name for name in wanted if name in loaded and loaded[name].available()]
    uploads = {each.id: each for each in _uploads()}
    first = _FIRST_LIST if items else _FIRST
    offered = [*sorted(named, key=lambda name: name != first), *uploads]
    if not offered:
        raise CorpusError("there is no text of your own yet: upload one below")
    labels = {each: uploads[each].label if each in uploads else each for each in offered}
    key = "_".join(
        (KEY, *(["list"] if items else []), *(["tried", *only] if only is not None else []))
    )
    picked = _picked(offered, labels, key)
    if picked not in uploads:
        many = _length(picked) if whole_lists and documents is not None else None
        return Chosen(Source(picked, documents=many or documents))
    upload = uploads[picked]
    of_own = None if whole_lists else documents
    return Chosen(Source(OWN, documents=of_own, label=upload.name), upload)


def upload_box(chosen: Chosen | None) -> None:
    """Take a text of one's own; share or delete the one that is chosen."""
    limit = settings.current().limits.corpus_megabytes
    with st.popover("Your own text", icon=":material/upload_file:", width="stretch"):
        layout.help_line(_RULES.format(limit=limit))
        st.file_uploader(
            "A text to train on",
            ["txt", "jsonl"],
            key=_FILE,
            max_upload_size=limit,
            on_change=_take,
        )
        if chosen is not None and chosen.upload is not None and may_delete(chosen.upload):
            manage(chosen.upload, "text", _REFUSED)
    refused(_REFUSED)


def may_delete(upload: Upload) -> bool:
    """Return whether an upload is this person's, or this person the instructor."""
    return _is_mine(upload) or state.is_instructor()


def said_name(name: str) -> str:
    """Return the name of a file that was sent with no sign in it that parts a path."""
    return name.replace("/", "\N{DIVISION SLASH}")


def manage(upload: Upload, what: str, refusals: str) -> None:
    """Offer to share or delete an upload of one's own; the instructor deletes others', too.

    Args:
        upload: The upload.
        what: What it is, in a word.
        refusals: Where a refusal is kept until the page is drawn.
    """
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if _is_mine(upload):
            shared = f"shared_{upload.id}"
            state.put(shared, not upload.private)
            title = f"Others may use this {what}"
            st.toggle(title, key=shared, on_change=_share, args=(upload.id, refusals))
        else:
            layout.help_line(f"Somebody else's {what}: {upload.owner[:4]}.")
        st.button(
            f"Delete {layout.plain(upload.name)}",
            key=f"delete_{upload.id}",
            icon=":material/delete:",
            on_click=_delete,
            args=(upload.id, refusals),
        )


def refused(key: str) -> None:
    """Say once what a callback was refused for."""
    error = state.value(key, None)
    if error is not None:
        layout.refuse(error)
        state.put(key, None)


# -- parts


def _uploads() -> list[Upload]:
    found = state.uploads().visible(state.person(), state.is_instructor())
    return [each for each in found if each.kind == "corpus"]


def _length(name: str) -> int | None:
    """Return how many items a list has, or None for what is longer."""
    there: int | None = corpora.modules()[name].INFO.documents
    return there if there is not None and there <= _LISTS else None


def _picked(offered: Sequence[str], labels: dict[str, str], key: str) -> str:
    """Draw the choice; its value is a name or an upload's id, its label is in the address."""
    if state.value(key, None) is None:  # a link names the label
        strange = state.named(key) - set(labels.values())
        layout.note(
            *(f"The link asks for the text {e[:40]!r}, which is not here." for e in strange)
        )
    if state.value(key, offered[0]) not in offered:
        layout.note("The text that was chosen is no longer there.")
        state.put(key, offered[0])
    wanted: str | None = state.value(_UPLOADED, None)
    if wanted in offered:
        state.put(key, wanted)
    state.put(_UPLOADED, None)
    picked: Any = st.selectbox(
        "Text",
        offered,
        format_func=labels.__getitem__,
        key=key,
        bind="query-params",
        persist_state="session",
    )
    picked = picked or offered[0]
    state.remember_text(key, labels[picked])
    return picked


def _take() -> None:
    """Keep the file that was sent, and choose it (a callback)."""
    sent: Any = state.value(_FILE, None)
    if sent is None:
        return
    try:
        name = said_name(sent.name)
        made = state.uploads().add_corpus(sent.getvalue(), name, state.person())
    except WordLMError as error:
        state.put(_REFUSED, error)
        return
    state.put(_UPLOADED, made.id)


def _is_mine(upload: Upload) -> bool:
    return upload.owner == owner_of(state.person())


def _share(upload: str, refusals: str) -> None:
    private = not state.value(f"shared_{upload}", False)
    try:
        state.uploads().share(upload, state.person(), private)
    except WordLMError as error:
        state.put(refusals, error)


def _delete(upload: str, refusals: str) -> None:
    try:
        state.uploads().delete(upload, state.person(), instructor=state.is_instructor())
    except WordLMError as error:
        state.put(refusals, error)
