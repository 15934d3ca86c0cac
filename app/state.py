"""What the server and a session remember: the only user of session_state and st.cache_*.

For the server: checkpoints, loaded once for all sessions, and lens results, so that a hundred
students with the same preset cost one computation. For a session: the values of its widgets.
Every widget of a page is bound to the address, which Streamlit then keeps in step: a link
opens the same view, and the values follow from page to page.
"""

import datetime
import gc
import json
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlencode

import streamlit as st

from app import settings, summary
from app.figures import Figure
from app.jobs.bounds import Limits
from app.jobs.keeper import Keeper
from app.jobs.pool import Pool
from app.jobs.store import Store
from app.jobs.uploads import Uploads
from wordlm_core import checkpoint
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.errors import CheckpointError
from wordlm_core.lens import receipt, survey
from wordlm_core.lens.receipt import NGrams
from wordlm_core.lens.survey import Agreement, Survey
from wordlm_core.models.base import LanguageModel
from wordlm_core.vocabulary import Probe, Vocabulary

T = TypeVar("T")
Signature = tuple[tuple[str, int, int], ...]

# A result of a full window is about 1 MB, a model at an earlier step 5 to 9 MB.
_RESULTS, _MODELS = 64, 12
_CHOICES, _SHOWN, _PAGE, _LENT = "_choices", "_shown", "_page", "_lent"
_PERSON, _KEPT, _INSTRUCTOR = "_person", "_person_kept", "_instructor"
COOKIE, RECOVERY = "wordlm_person", "me"
NOT_KEPT = "none"
_CODE = re.compile("[0-9a-f]{32}")
_PLAN_IDLE_SECONDS = 60.0
_ANSWERS = 256
# Checkpoints of runs and uploads that stay open: many small ones, a few large ones.
_SMALL_BYTES, _SMALL, _LARGE = 4 * 2**20, 48, 6
_log = logging.getLogger("wordlm.jobs")


# -- what all sessions share


@dataclass(frozen=True)
class Library:
    """The artifacts folder as it was last read.

    Attributes:
        checkpoints: By name, in the order of the file names.
        unreadable: The reason for each file that could not be used.
        benchmark: The content of `benchmark.json`, or None where there is none.
        ngrams: Counts of the training corpus, or None where there are none.
        surveys: Attention against effect over many windows, by the checkpoint's sha256.
    """

    checkpoints: Mapping[str, Checkpoint]
    unreadable: Mapping[str, str]
    benchmark: Mapping[str, Any] | None
    ngrams: NGrams | None
    surveys: Mapping[str, Survey]


@dataclass(frozen=True)
class View:
    """One model at one training step, reading one text; `key` is its cache key."""

    checkpoint: Checkpoint
    step: str | None
    model: LanguageModel
    probe: Probe

    @property
    def vocabulary(self) -> Vocabulary:
        """Return the model's vocabulary."""
        return self.checkpoint.vocabulary

    @property
    def key(self) -> tuple[str, str | None, bytes, tuple[int, ...]]:
        """Return what a lens result depends on: equal keys give equal results."""
        probe = self.probe
        return self.checkpoint.sha256, self.step, probe.ids.tobytes(), probe.cut_off


def library() -> Library:
    """Return the artifacts; read again only when a file of the folder has changed."""
    folder = settings.current().folder
    return _read_library(str(folder), _signature(folder))


def view(chosen: Checkpoint, step: str | None, probe: Probe) -> View:
    """Return a checkpoint's model at a step, together with the text it reads."""
    return View(chosen, step, _model_at((chosen.sha256, step), chosen), probe)


def lens(of: View, function: Callable[..., T], *args: Any, **options: Any) -> T:
    """Return `function(*args, **options)`, computed once for each view and set of options.

    Args:
        of: The view that `args` are parts of.
        function: A lens.
        args: The parts it needs.
        options: Hashable settings of the lens.
    """
    key = (function.__module__, function.__qualname__, *of.key, tuple(sorted(options.items())))
    return cast("T", _result(key, lambda: function(*args, **options)))


def agreement(of: Checkpoint) -> Agreement | None:
    """Return how attention agrees with effect in the checkpoint's survey.

    None where there is none, or no window in which a rank correlation has a meaning.
    """
    taken = library().surveys.get(of.sha256)
    if taken is None or taken.attention is None:
        return None
    found = _result(("survey", of.sha256), lambda: survey.agreement(taken))
    return cast("Agreement", found) if len(found.correlations) else None


def tables(of: Sequence[Checkpoint], function: Callable[..., T], *args: Any, **options: Any) -> T:
    """Return `function(of, *args, **options)`, computed once for each set of stored embeddings.

    Args:
        of: Checkpoints.
        function: A lens over their embeddings at all steps.
        args: What else it needs, hashable.
        options: Hashable settings of the lens.
    """
    opened = tuple((each.name, each.sha256, each.steps) for each in of)
    key = (function.__module__, function.__qualname__, opened, args, *sorted(options.items()))
    return cast("T", _result(key, lambda: function(of, *args, **options)))


@st.cache_resource(show_spinner=False, on_release=Pool.close)
def quick_pool() -> Pool:
    """Return the server's processes for quick experiments; they start at the first request."""
    return Pool(settings.current().quick_workers)


@st.cache_resource(show_spinner=False, on_release=Pool.close)
def plan_pool() -> Pool:
    """Return the process that measures plans; it ends soon, for it has torch in memory."""
    return Pool(1, idle=_PLAN_IDLE_SECONDS)


@st.cache_resource(max_entries=_ANSWERS, show_spinner=False)
def answered_at(key: str) -> float:
    """Return when an answer of the pool was first seen, in seconds since 1970.

    `answered_at.clear(key)` where the same is asked for anew.
    """
    del key
    return time.time()


def store() -> Store:
    """Return the server's jobs."""
    asked = settings.current()
    return _store(asked.runs_folder, asked.limits)


def uploads() -> Uploads:
    """Return the server's uploads."""
    asked = settings.current()
    return _uploads(asked.runs_folder, asked.limits)


def wake(*, now: bool = False) -> None:
    """See to it that the server's jobs are carried on; `now` after a job has been taken."""
    keeper = _keeper(str(settings.current().runs_folder))
    if now:
        keeper.wake()


def opened(path: Path, label: str) -> Checkpoint:
    """Return the checkpoint of a run or an upload as the file is now; only a few stay open.

    Args:
        path: The file, which a training may replace at any moment.
        label: What people call it.

    Raises:
        CheckpointError: It is gone or not readable.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise CheckpointError(f"checkpoint {label} is no longer there: pick another") from error
    slot = (_small_slot if found.st_size <= _SMALL_BYTES else _large_slot)(str(path))
    try:
        return slot.read(path, label, (found.st_mtime_ns, found.st_size))
    except CheckpointError as error:
        raise CheckpointError(f"checkpoint {label} cannot be opened: {error}") from error


class _Slot:
    """The place of one file: a training that replaces it again and again takes no more."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._changed: tuple[int, int] | None = None
        self._loaded: Checkpoint | None = None

    def read(self, path: Path, label: str, changed: tuple[int, int]) -> Checkpoint:
        """Return the checkpoint, read again where the file is another than the last time."""
        with self._one_at_a_time:
            if self._loaded is None or (self._changed, self._loaded.name) != (changed, label):
                self._loaded = None  # two large ones at once would be too much
                self._loaded = checkpoint.load(path, name=label)
                self._changed = changed
            return self._loaded


@st.cache_resource(max_entries=_SMALL, show_spinner=False)
def _small_slot(path: str) -> _Slot:
    del path  # the key
    return _Slot()


@st.cache_resource(max_entries=_LARGE, show_spinner=False)
def _large_slot(path: str) -> _Slot:
    del path
    return _Slot()


# Asked for several times a rerun; a second one, made at the same moment, would do no harm.
@lru_cache(maxsize=4)
def _store(root: Path, limits: Limits) -> Store:
    return Store(root, limits)


@lru_cache(maxsize=4)
def _uploads(root: Path, limits: Limits) -> Uploads:
    return Uploads(root, limits)


@st.cache_resource(show_spinner=False, on_release=Keeper.close)
def _keeper(root: str) -> Keeper:
    started = Keeper(store())
    started.start()
    _log.info("looking after the jobs of %s", root)
    return started


@st.cache_resource(max_entries=1, show_spinner="Opening the checkpoints")
def _read_library(folder: str, signature: Signature) -> Library:
    good, unreadable = checkpoint.load_folder(Path(folder))
    there = {name for name, _, _ in signature}

    def read(name: str, reader: Callable[[Path], T]) -> T | None:
        try:
            return reader(Path(folder) / name) if name in there else None
        except CheckpointError as error:
            unreadable[name] = str(error)
            return None

    measured = read("benchmark.json", _read_benchmark)
    ngrams = read("ngrams.npz", receipt.load)
    surveys = read("survey.npz", survey.load) or {}
    # What stays for ever need not be looked at by every collection.
    gc.collect()
    gc.freeze()
    return Library(
        {loaded.name: loaded for loaded in good.values()},
        unreadable,
        measured,
        ngrams,
        {of.sha256: of for of in surveys.values()},
    )


@st.cache_resource(max_entries=_MODELS, show_spinner=False)
def _model_at(key: tuple[str, str | None], _checkpoint: Checkpoint) -> LanguageModel:
    return _checkpoint.model_at(key[1])


@st.cache_resource(max_entries=_RESULTS, show_spinner=False)
def _result(key: tuple[Any, ...], _compute: Callable[[], Any]) -> Any:
    return _compute()


def _signature(folder: Path) -> Signature:
    if not folder.is_dir():
        return ()
    with os.scandir(folder) as entries:
        files = [entry for entry in entries if entry.name.endswith((".npz", ".json"))]
        return tuple(
            sorted((f.name, f.stat().st_mtime_ns, f.stat().st_size) for f in files if f.is_file())
        )


def _read_benchmark(path: Path) -> Mapping[str, Any]:
    try:
        measured = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError("it is not readable JSON") from error
    summary.require_complete(measured)
    return measured


# -- what one session chose


@dataclass
class Page:
    """What a page has said and drawn so far, for its downloads."""

    title: str
    question: str
    caveat: str = ""
    code: str = ""
    figures: list[Figure] = field(default_factory=list[Figure])

    def add(self, figure: Figure) -> None:
        """Note a figure; one that is drawn in two places counts once."""
        if not any(figure is other for other in self.figures):
            self.figures.append(figure)


@dataclass(frozen=True)
class _Choice:
    """A choice as it was shown last: what the browser still holds when its labels change."""

    labels: tuple[str, ...]
    value: int
    default: int


def settle(key: str, labels: Sequence[str], default: int, *, by_label: bool) -> str | None:
    """Make sure that the coming choice widget `key` gets a value it can show.

    Widgets hold positions; the labels are what the browser and the address see. A value that
    stood at its default follows the default; another is kept where its label, or what stands
    before the label's dot (a position, a step), still is. One that had to give way on one page
    comes back on the next that has it.

    Args:
        key: The widget's key and the address's parameter.
        labels: One for each position.
        default: Position that is chosen where nothing else says so.
        by_label: Whether even a default stays what it was where its label still is: the
            checkpoint that is open on one page is open on the next.

    Returns:
        A sentence about a value that could not be kept, or None.
    """
    if key not in st.session_state:
        return _from_address(key, labels, default)
    last = _choices().get(key)
    if last is None or (last.labels, last.default) == (tuple(labels), default):
        return None
    position = st.session_state[key]
    before = last.labels[position] if 0 <= position < len(last.labels) else ""
    lent = cast("dict[str, str]", st.session_state.setdefault(_LENT, {}))
    asked = st.query_params.get(key)
    if by_label and asked in labels:  # a link from another page names it
        st.session_state[key] = labels.index(asked)
        return None
    at_default = position == last.default
    if at_default and lent.get(key) in labels:
        # Back on a page that has what another page could not show.
        st.session_state[key] = labels.index(lent.pop(key))
        return None
    if at_default and not by_label:
        st.session_state[key] = default
        return None
    same = _same(before, labels)
    st.session_state[key] = default if same is None else same
    if same is None:
        lent[key] = before
    else:
        lent.pop(key, None)
    return None if at_default or same is not None else f"{_words(key)} {before} is not here: reset."


def remember(key: str, labels: Sequence[str], value: int, default: int) -> None:
    """Keep what a choice widget showed, for `settle` and `link`."""
    _choices()[key] = _Choice(tuple(labels), value, default)
    _shown()[key] = labels[value]


def remember_text(key: str, value: str | list[str]) -> None:
    """Keep what a text box holds, or a choice of several, for `link`."""
    _shown()[key] = value


def shown(key: str) -> str | None:
    """Return what the page's link says of a widget, or None where it shows no such one."""
    found = _shown().get(key)
    return found if isinstance(found, str) else None


def value(key: str, otherwise: Any) -> Any:
    """Return a widget's value before it is drawn."""
    return st.session_state.get(key, otherwise)


def put(key: str, value: Any) -> None:
    """Set a widget's value before it is drawn, or in a callback."""
    st.session_state[key] = value


def forget(key: str) -> None:
    """Let a choice stand at its default again, in the address too (a callback)."""
    _choices().pop(key, None)
    st.session_state.pop(key, None)
    st.query_params.pop(key, None)


def turn(key: str, reader: str, otherwise: str) -> None:
    """Give a text box the text that it held last for this kind of reader.

    A sentence means nothing to a model of characters, nor a name to one of words: each kind
    has a text of its own in the same box.

    Args:
        key: The box's.
        reader: Kind of the model that reads it now.
        otherwise: What it holds at first.
    """
    texts = cast("dict[str, str]", st.session_state.setdefault(f"_texts_{key}", {}))
    last = texts.get("")
    if last not in (None, reader):
        texts[last] = st.session_state.get(key, "")
        st.session_state[key] = texts.get(reader, otherwise)
    texts[""] = reader


def person() -> str:
    """Return the code of whoever has this session: the cookie's, or one until the session ends."""
    if _PERSON not in st.session_state:
        cookie = str(st.context.cookies.get(COOKIE, ""))
        if is_code(cookie):
            st.session_state[_KEPT] = cookie
        st.session_state[_PERSON] = cookie if is_code(cookie) else secrets.token_hex(16)
    return cast("str", st.session_state[_PERSON])


def is_code(text: str) -> bool:
    """Return whether a text has the form of a person's code."""
    return _CODE.fullmatch(text) is not None


def adopt(code: str) -> bool:
    """Let the session be of the person with this code; False for what is no code."""
    if not is_code(code):
        return False
    st.session_state[_PERSON] = code
    return True


def kept() -> str:
    """Return the code that the browser keeps, `NOT_KEPT` where it keeps none, "" if unknown."""
    person()  # looks at the cookie
    return cast("str", st.session_state.get(_KEPT, ""))


def note_kept(component: str) -> None:
    """Take over what the component says the browser keeps (a callback)."""
    answer = str(st.session_state[component].get("kept") or "")
    if answer == NOT_KEPT or adopt(answer):
        st.session_state[_KEPT] = answer


def asked_person() -> str | None:
    """Return the code of a recovery link that was opened, if this is one."""
    return st.query_params.get(RECOVERY)


def forget_link() -> None:
    """Drop a recovery link's code from the address, which the browser has done already.

    In this order, because Streamlit would put another address into the browser's history and
    leave the one with the code behind it.
    """
    st.query_params.pop(RECOVERY, None)


def recovery_link() -> str:
    """Return the link that makes another browser this person's."""
    return f"{st.context.url or '/'}?{urlencode({RECOVERY: person()})}"


def is_instructor() -> bool:
    """Return whether this session has shown the passcode."""
    return bool(st.session_state.get(_INSTRUCTOR, False))


def instruct(on: bool) -> None:
    """Begin or end the instructor's view of this session (also as a callback)."""
    st.session_state[_INSTRUCTOR] = on


def named(key: str) -> frozenset[str]:
    """Return the labels that the address or the last page says a choice stands at."""
    last = _choices().get(key)
    label = last.labels[last.value : last.value + 1] if last is not None else ()
    several = st.session_state.get(key)
    return frozenset(
        (*st.query_params.get_all(key), *label, *(several if isinstance(several, list) else ()))
    )


def copy_point(chart: str, field: str, target: str) -> None:
    """Put a coordinate of a clicked point into a choice widget (a callback)."""
    points = st.session_state[chart]["selection"]["points"]
    if points:
        value = points[0][field]
        st.session_state[target] = int(value[0] if isinstance(value, list) else value)


def append_to(target: str) -> Callable[[str], None]:
    """Return a callback that puts a text behind what a text box holds."""
    return lambda text: _append(text, target)


def append_point(chart: str, texts: Sequence[str], target: str) -> None:
    """Put the text of a clicked point behind what a text box holds (a callback)."""
    points = st.session_state[chart]["selection"]["points"]
    if points:
        _append(texts[int(points[0]["point_index"])], target)


def copy_label(chart: str, target: str) -> None:
    """Put the text that a clicked point carries into a text box (a callback)."""
    points = st.session_state[chart]["selection"]["points"]
    if points:
        carried = points[0]["customdata"]
        st.session_state[target] = carried[0] if isinstance(carried, list) else carried


def keep(key: str, options: Sequence[int | str]) -> None:
    """Drop from a choice of several what is no longer among its options."""
    if key in st.session_state:
        st.session_state[key] = [each for each in st.session_state[key] if each in options]


def begin_page(title: str, question: str) -> None:
    """Start the list of what the page shows: links and downloads hold that and nothing else."""
    st.session_state[_SHOWN] = {}
    st.session_state[_PAGE] = Page(title, question)
    wake()


def page() -> Page:
    """Return the page that is being drawn."""
    return cast("Page", st.session_state[_PAGE])


def today() -> str:
    """Return the date where the person is, as far as the browser says where."""
    behind = datetime.timedelta(minutes=st.context.timezone_offset or 0)
    return (datetime.datetime.now(datetime.UTC) - behind).date().isoformat()


def link() -> str:
    """Return the address of the view that the page shows now."""
    return f"{st.context.url or '/'}?{urlencode(_shown(), doseq=True)}"


def _append(text: str, target: str) -> None:
    st.session_state[target] = f"{st.session_state.get(target, '').strip()}{text}"


def _choices() -> dict[str, _Choice]:
    return cast("dict[str, _Choice]", st.session_state.setdefault(_CHOICES, {}))


def _shown() -> dict[str, str | list[str]]:
    return cast("dict[str, str | list[str]]", st.session_state.setdefault(_SHOWN, {}))


def _from_address(key: str, labels: Sequence[str], default: int) -> str | None:
    asked = st.query_params.get(key)
    if asked is None or asked in labels:
        return None
    # A link written by hand may give the number alone: `?step=750`, `?query=3`, `?head=2`.
    named = f"{key.removeprefix('other_')} {asked}"
    short = [i for i, label in enumerate(labels) if label == named or label.split()[0] == asked]
    if short:
        st.session_state[key] = short[0]
        return None
    return (
        f"The link asks for {_words(key)} {asked[:40]!r}, which is not here: "
        f"{labels[default]} is shown."
    )


def _same(label: str, labels: Sequence[str]) -> int | None:
    """Return the position of the same choice in another list of labels."""
    names = [other.split(" · ")[0] for other in labels]
    name = label.split(" · ", maxsplit=1)[0]
    if label in labels:
        return labels.index(label)
    return names.index(name) if name in names else None


def _words(key: str) -> str:
    return key.replace("_", " ")
