"""Commit, then run: the controls and texts of the Experiments page.

A prediction is locked before its experiment can be run. What a person writes and runs stays in
the session of the browser tab; the running itself is done by the server's pool of processes.
"""

import html
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from app import controls, experiment_runs, layout, state
from app.experiment_runs import DIRECTIONS, SAME, Prediction, Run
from app.figures import Overlaid
from app.jobs.pool import QuickError, Ticket
from wordlm_core import experiment
from wordlm_core.corpora import reading
from wordlm_core.errors import TextError, WordLMError
from wordlm_core.experiment import DATA, OWN, PRESETS, SAMPLES, Draw, Experiment, Result

MOST_RUNS = 30
_TYPED_LIST, _LONGEST, _FILE_MEGABYTES = 100_000, 400, 8
_WAIT_SECONDS, _POLL_SECONDS = 2.5, 2.0
_RUNS, _LOCKS, _PENDING, _FILE = "_runs", "_locks", "_pending_run", "_own_file"
_SHOWN, _EXPLANATIONS, _LAST = "run_shown", "_explanations", "_last_compared"
_OWN_SETTINGS = "own settings"
_OWN_QUESTION = "Change one setting, and leave the rest as it is: what does that one do?"
_DATA_NAMES = ("names", "English words", "short stories", "own list")
_STAYS = (
    "Runs stay in this browser tab, 30 at most: they are on no disk and in no link, and gone when "
    "the tab is closed or loaded anew. So download them."
)


@dataclass(frozen=True)
class Asked:
    """The experiment that is chosen, and a person's own items where it reads them."""

    tried: Experiment
    documents: tuple[str, ...]
    listed: str

    @property
    def key(self) -> tuple[Experiment, str]:
        """Return what two equal choices have in common."""
        return self.tried, self.listed


@dataclass(frozen=True)
class Start:
    """What is known before the run: the list, and what came of the baseline."""

    vocab_size: int
    audit: dict[str, int]
    baseline: Result


@dataclass
class _Pending:
    """A run that was asked for and has not come back."""

    asked: Asked
    prediction: Prediction
    baseline: Result
    ticket: Ticket | None = None
    since: float = field(default_factory=time.monotonic)


# -- what the page calls, in its order


def collect() -> None:
    """Take in the result of a run that was asked for; a short one is waited for."""
    pending: _Pending | None = state.value(_PENDING, None)
    if pending is None:
        return
    try:
        if pending.ticket is None:
            pending.ticket = _ask("run", pending.asked.tried, pending.asked.documents)
        if not pending.ticket.wait(pending.since + _WAIT_SECONDS - time.monotonic()):
            return
        _keep(pending, Result.from_json(pending.ticket.result()))
    except QuickError as error:
        layout.refuse(error)
    state.put(_PENDING, None)


def choose() -> Asked | None:
    """Pick an experiment; None where its settings or its list cannot be used, which is said."""
    labels = [*(preset.experiment.label for preset in PRESETS), _OWN_SETTINGS]
    chosen = controls.choose(st.selectbox, "Experiment", "experiment", labels)
    preset = PRESETS[chosen] if chosen < len(PRESETS) else None
    layout.help_line(preset.question if preset else _OWN_QUESTION)
    try:
        tried = preset.experiment if preset else _own_settings()
        if tried.data != OWN:
            return Asked(tried, (), "")
        own = experiment.own_list(_own_items())
    except WordLMError as error:
        layout.refuse(error)
        return None
    return Asked(tried, own.documents, own.sha256)


def start(asked: Asked | None) -> Start | None:
    """Say what is changed and what the list holds; train the baseline if nobody has yet."""
    if asked is None:
        return None
    tried, baseline = asked.tried, asked.tried.baseline()
    only_list = Experiment(data=tried.data, context=tried.context)
    try:
        seen = _answer("look", only_list, asked.documents)
        if seen is None:
            return None
        experiment.require_quick(tried, seen["vocab_size"])
        layout.help_line(f"{_changed(tried, baseline)} {_list_line(tried, seen)}")
        found = _answer("baseline", baseline, asked.documents)
    except WordLMError as error:
        layout.refuse(error)
        return None
    return None if found is None else Start(**seen, baseline=Result.from_json(found))


def commit(asked: Asked | None, known: Start | None) -> Run | None:
    """Lock a prediction, run, and hold it against the result; return the run if it is done."""
    pending: _Pending | None = state.value(_PENDING, None)
    if pending is not None and pending.ticket is not None:
        layout.subtitle(f"Running: {pending.asked.tried.label}")
        _watch(pending.ticket)
        st.button("Cancel", key="cancel_run", on_click=pending.ticket.cancel)
        return None
    if asked is None:
        return None
    done = next((run for run in runs() if (run.experiment, run.listed) == asked.key), None)
    if done is not None and done is not state.value(_LAST, None):
        state.put(_SHOWN, runs().index(done))  # it is explained below
    state.put(_LAST, done)
    if done is not None:
        _compare(done)
    elif len(runs()) >= MOST_RUNS:
        layout.note(f"{MOST_RUNS} runs are kept: download them, then remove one to go on.")
    elif known is not None:
        locked = _locks().get(asked.key)
        if locked is None:
            _form(asked)
        else:
            _ready(asked, locked, known.baseline)
    return done


def runs() -> list[Run]:
    """Return the runs of this session, in their order."""
    return state.value(_RUNS, [])


def headline(done: Run | None, known: Start | None) -> None:
    """Say in one line what the picture shows."""
    if done is not None:
        layout.answer(
            (done.experiment.label, "token"),
            f": loss {experiment_runs.loss_of(done.result)}, baseline ",
            (experiment_runs.loss_of(done.baseline), "number"),
            ".",
        )
    elif known is not None:
        layout.answer(
            "Baseline: loss ",
            (experiment_runs.loss_of(known.baseline), "number"),
            f" over the last 200 of {len(known.baseline.losses):,} steps.",
        )


def curves(done: Run | None, known: Start | None) -> tuple[list[Overlaid], int] | None:
    """Return the baseline's curve and those of the runs, and which one is looked at."""
    finished = runs()
    base = done.baseline if done is not None else known.baseline if known is not None else None
    if base is None:
        if not finished:
            return None
        base = finished[-1].baseline
    drawn = [("baseline", base), *((run.name, run.result) for run in finished)]
    marked = 0 if done is None else 1 + finished.index(done)
    return [Overlaid(name, of.average, of.vocab_size) for name, of in drawn], marked


def look_at(finished: Sequence[Run]) -> None:
    """Pick a run; show its samples, and take an explanation of it."""
    names = [run.name for run in finished]
    left, right = layout.columns(2, 3)
    with left:
        shown = st.selectbox(
            "Run",
            range(len(names)),
            format_func=names.__getitem__,
            key=_SHOWN,
            persist_state="session",
        )
        run = finished[shown or 0]
        st.text_area(
            "How do you explain it?",
            height=120,
            max_chars=_LONGEST * 5,
            key=_explanation_key(run.number),
            persist_state="session",
            on_change=_note,
            args=(run.number,),
            placeholder="What does the result say about your hypothesis?",
        )
        st.button(
            f"Remove run {run.number}",
            key="remove_run",
            icon=":material/delete:",
            on_click=_remove,
            args=(run,),
        )
    with right:
        _samples(run)


def explanations() -> dict[int, str]:
    """Return what was written about each run, by its number.

    It is one and the same dictionary as long as the session lasts: a download that is clicked
    straight from the text box holds what was just typed.
    """
    if state.value(_EXPLANATIONS, None) is None:
        state.put(_EXPLANATIONS, {})
    return state.value(_EXPLANATIONS, {})


def table(finished: Sequence[Run], told: Mapping[int, str]) -> None:
    """Show all runs, and offer them as a report."""
    layout.section("All runs", _STAYS)
    rows = [
        [
            run.name,
            f"{run.result.parameters:,}",
            experiment_runs.loss_of(run.result),
            experiment_runs.happened(run),
            experiment_runs.predicted(run.prediction),
            f"{run.prediction.count:,}",
            f"{run.result.seconds:.2f}",
            experiment_runs.in_short(run.result),
            run.prediction.because,
            told.get(run.number, ""),
        ]
        for run in finished
    ]
    heads = (
        *("run", "parameters", "loss, last 200", "against the baseline", "predicted"),
        *("counted", "seconds", "samples", "hypothesis", "explanation"),
    )
    with st.container(key="runs_table"):
        layout.table(heads, rows, words=(0, 3, 4, 7, 8, 9), label="All runs")
    st.download_button(
        "Report as Markdown",
        lambda: experiment_runs.report(finished, told),
        "experiments.md",
        "text/markdown",
        key="report",
        on_click="ignore",
        icon=":material/download:",
    )


# -- the settings and the list


def _own_settings() -> Experiment:
    first, second, third = st.columns(3), st.columns(3), st.columns(3)
    with first[0]:
        data = DATA[controls.choose(st.selectbox, "Data", "data", _DATA_NAMES)]
    with third[0]:
        positions = controls.choose(st.selectbox, "Positions", "positions", ("on", "off")) == 0
    made = Experiment(
        data=data,
        lr=_decimal(first[1], "Learning rate", "lr", "0.01"),
        steps=_whole(first[2], "Steps", "steps", 1000),
        d_model=_whole(second[0], "Width", "width", 16),
        n_head=_whole(second[1], "Heads", "heads", 4),
        n_layer=_whole(second[2], "Layers", "layers", 1),
        positions=positions,
        seed=_whole(third[1], "Seed", "run_seed", 42),
        context=_whole(third[2], "Context", "window", 16),
        draws=(_draw(st.columns(3)),),
    )
    return replace(made, label=experiment_runs.named(made))


def _draw(places: Sequence[Any]) -> Draw:
    temperature = _decimal(places[0], "Temperature", "run_temperature", "0.5")
    top_k = _whole(places[1], "Top-k (0: all)", "run_top_k", 0)
    return Draw(temperature, None if top_k == 0 else top_k)


def _whole(place: Any, title: str, key: str, default: int) -> int:
    typed = place.number_input(
        title, value=default, step=1, key=key, bind="query-params", persist_state="session"
    )
    state.remember_text(key, "" if typed is None else str(typed))
    if typed is None:
        raise TextError(f"{title.lower()} is empty: type a whole number")
    return int(typed)


def _decimal(place: Any, title: str, key: str, default: str) -> float:
    typed = place.text_input(
        title,
        default,
        max_chars=20,
        key=key,
        bind="query-params",
        persist_state="session",
        live="200ms",
    )
    state.remember_text(key, typed or "")
    try:
        return float((typed or "").strip().replace(",", "."))
    except ValueError as error:
        raise TextError(f"{title.lower()} is a number, like {default}") from error


def _own_items() -> list[str]:
    """Take a list by paste or as a file, which then stays until it is taken away."""
    typed = st.text_area(
        "Your list, one item a line",
        height=120,
        max_chars=_TYPED_LIST,
        key="own_list",
        persist_state="session",
        placeholder="oak\nbirch\nwillow",
    )
    sent = st.file_uploader(
        "or a text file, such as the course's list",
        ["txt", "jsonl"],
        key="own_file",
        max_upload_size=_FILE_MEGABYTES,
    )
    kept: tuple[str, str, str] | None = state.value(_FILE, None)
    if sent is not None and (kept is None or kept[0] != sent.file_id):
        read = reading.read_bytes(sent.getvalue(), sent.name)
        kept = (sent.file_id, sent.name, "\n".join(read))
        state.put(_FILE, kept)
    if kept is None:
        return [line.strip() for line in (typed or "").splitlines() if line.strip()]
    layout.note(f"The file {kept[1]} is read; what is typed above it is not.")
    st.button("Take the file away", key="no_file", on_click=state.put, args=(_FILE, None))
    return kept[2].split("\n") if kept[2] else []


def _changed(tried: Experiment, baseline: Experiment) -> str:
    found = experiment_runs.changes(tried, baseline)
    if tried.data != baseline.data:
        other = "Losses of two lists compare only roughly: one may be easier to predict."
    else:
        other = f"Same seed ({tried.seed}), same order of the items as the baseline."
    if not found and tried.draws == baseline.draws:
        return "Nothing is changed: this is the baseline itself."
    if not found:
        return f"The training is the baseline's: only the sampling differs. {other}"
    several = "" if len(found) == 1 else " Several at once: an effect has no single cause."
    return f"Changed: {', '.join(found)}.{several} {other}"


def _list_line(tried: Experiment, seen: dict[str, Any]) -> str:
    counts = seen["audit"]
    remarks = [
        f"{counts['items']:,} items",
        f"{seen['vocab_size'] - 1:,} different characters and <BOS>: V = {seen['vocab_size']:,}",
        f"context {tried.context}",
    ]
    if counts["repeats"]:
        remarks.append(f"{counts['repeats']:,} repeats")
    if counts["longer_than_context"]:
        remarks.append(f"{counts['longer_than_context']:,} longer than the context, so cut")
    _, seconds = experiment.estimate(tried, seen["vocab_size"])
    remarks.append(
        f"about {seconds:.0f} s" if seconds >= 10 else f"about {max(0.1, seconds):.1f} s"
    )
    return f"{'; '.join(remarks)}."


# -- the pool


def _ask(task: str, tried: Experiment, documents: Sequence[str]) -> Ticket:
    request = {
        "task": "look" if task == "look" else "run",
        "experiment": replace(tried, label="").to_json(),
        "documents": list(documents) if tried.data == OWN else [],
    }
    return state.quick_pool().submit(f"{state.person()} {task}", request)


def _answer(task: str, tried: Experiment, documents: Sequence[str]) -> dict[str, Any] | None:
    """Return what the pool says, or None while it is at it: the page then looks again."""
    ticket = _ask(task, tried, documents)
    if ticket.wait(_WAIT_SECONDS):
        return ticket.result()
    layout.subtitle("Training the baseline" if task == "baseline" else "Reading the list")
    _watch(ticket)
    return None


@st.fragment(run_every=_POLL_SECONDS)
def _watch(ticket: Ticket) -> None:
    """Show how far a run is; draw the page anew at its end."""
    if ticket.over:
        st.rerun()
    place = ticket.place
    if place:
        st.progress(0.0, f"Waiting for a free process: place {place} in the queue")
    elif ticket.progress is None:
        st.progress(0.0, "Starting")
    else:
        step, steps, loss = ticket.progress
        st.progress(step / steps, f"Step {step:,} of {steps:,}, loss {loss:.3g}")


# -- predict, run, compare


def _locks() -> dict[tuple[Experiment, str], Prediction]:
    return state.value(_LOCKS, {})


def _form(asked: Asked) -> None:
    direction: int | None = st.segmented_control(
        "Your prediction: against the baseline, the loss",
        range(len(DIRECTIONS)),
        format_func=DIRECTIONS.__getitem__,
        key="guess_direction",
        persist_state="session",
    )
    places = st.columns(2)
    if direction != SAME:
        _line(places[0], "By how many nats", "guess_size", "0.05")
    _line(places[1], "Parameters, by hand", "guess_count", "A whole number")
    _line(st, "Because", "guess_because", "Your hypothesis, in a sentence")
    clicked = st.button(
        "Lock my prediction",
        key="lock_prediction",
        icon=":material/lock:",
        help="A locked prediction stays as it is. Then the experiment can be run.",
        on_click=_lock,
        args=(asked.key,),
    )
    if clicked:
        try:
            _typed_prediction()
        except TextError as error:
            layout.refuse(error)


def _line(place: Any, title: str, key: str, hint: str) -> None:
    place.text_input(
        title,
        max_chars=_LONGEST,
        key=key,
        persist_state="session",
        live="200ms",
        placeholder=hint,
    )


def _typed_prediction() -> Prediction:
    """Return what the form holds.

    Raises:
        TextError: Something is missing or is no number.
    """
    direction = state.value("guess_direction", None)
    if direction is None:
        raise TextError("predict first: say whether the loss goes down, stays or goes up")
    size = 0.0 if direction == SAME else experiment_runs.parse_size(_typed("guess_size"))
    count = experiment_runs.parse_count(_typed("guess_count"))
    return Prediction(direction, size, count, _typed("guess_because"))


def _typed(key: str) -> str:
    return (state.value(key, "") or "")[:_LONGEST]


def _lock(key: tuple[Experiment, str]) -> None:
    try:
        prediction = _typed_prediction()
    except TextError:  # the form says it, under the button
        return
    state.put(_LOCKS, _locks() | {key: prediction})
    state.put("guess_direction", None)
    for name in ("guess_size", "guess_count", "guess_because"):
        state.put(name, "")


def _ready(asked: Asked, locked: Prediction, baseline: Result) -> None:
    layout.subtitle("Your prediction, locked")
    _quote(locked)
    st.button(
        "Run",
        key="run_experiment",
        type="primary",
        icon=":material/play_arrow:",
        on_click=_run,
        args=(_Pending(asked, locked, baseline),),
    )


def _quote(locked: Prediction) -> None:
    said = f"The loss {experiment_runs.predicted(locked)}; {locked.count:,} parameters."
    because = f"\n{locked.because}" if locked.because.strip() else ""
    st.html(f'<p class="wl-quote">{html.escape(said + because)}</p>')


def _run(pending: _Pending) -> None:
    pending.since = time.monotonic()
    state.put(_PENDING, pending)


def _keep(pending: _Pending, result: Result) -> None:
    finished, asked = runs(), pending.asked
    number = finished[-1].number + 1 if finished else 1
    run = Run(number, asked.tried, asked.listed, pending.prediction, result, pending.baseline)
    state.put(_RUNS, [*finished, run])
    state.put(_LOCKS, {key: held for key, held in _locks().items() if key != asked.key})
    state.put(_SHOWN, len(finished))


def _remove(gone: Run) -> None:
    state.put(_RUNS, [run for run in runs() if run is not gone])
    state.put(_explanation_key(gone.number), "")
    explanations().pop(gone.number, None)
    state.put(_SHOWN, max(0, len(runs()) - 1))


def _note(number: int) -> None:
    explanations()[number] = state.value(_explanation_key(number), "") or ""


def _explanation_key(number: int) -> str:
    return f"explain_run_{number}"


def _compare(run: Run) -> None:
    layout.subtitle(f"Run {run.number}: your prediction against the result")
    _quote(run.prediction)
    layout.answer("The loss ", (experiment_runs.happened(run), "number"), ".")
    for sentence in experiment_runs.verdict(run):
        layout.help_line(sentence)
    layout.help_line("Explain it below, or choose another experiment above.")


def _samples(run: Run) -> None:
    if run.result.stopped is not None:
        layout.note(f"No samples: {run.result.stopped}. The curve up to there is kept.")
        return
    rows = []
    for draw, drawn in zip(run.experiment.draws, run.result.samples, strict=True):
        new = [each.text or "(empty)" for each in drawn if not each.seen]
        seen = [each.text or "(empty)" for each in drawn if each.seen]
        ways = experiment_runs.draw_name(draw)
        rows.append([ways, str(len(new)), " ".join(new), " ".join(seen)])
    with st.container(key="run_samples"):
        layout.table(
            ("sampling", f"new of {SAMPLES}", "new", "stand in the list"),
            rows,
            words=(0, 2, 3),
            label="Samples",
        )
