"""What the Experiments page shows of its runs: curves, samples, explanations, the table."""

from collections.abc import Mapping, Sequence

import streamlit as st

from app import experiment_commit, experiment_runs, layout, state
from app.experiment_commit import MOST_RUNS, SHOWN
from app.experiment_runs import Run
from app.experiment_start import Start
from app.figures import Overlaid
from wordlm_core.experiment import SAMPLES, SEEDS

_LONGEST = 2_000
_EXPLANATIONS = "_explanations"
_STAYS = (
    f"Runs stay in this browser tab, {MOST_RUNS} at most: they are on no disk and in no link, and "
    "gone when the tab is closed or loaded anew. So download them."
)


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
            f" over the last 200 of {len(known.baseline.losses):,} steps, mean of {SEEDS} seeds.",
        )


def curves(done: Run | None, known: Start | None) -> tuple[list[Overlaid], int] | None:
    """Return the baseline's curve and those of the runs, and which one is looked at."""
    finished = experiment_commit.runs()
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
            key=SHOWN,
            persist_state="session",
        )
        run = finished[shown or 0]
        st.text_area(
            "How do you explain it?",
            height=120,
            max_chars=_LONGEST,
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


# -- parts


def _remove(gone: Run) -> None:
    experiment_commit.remove(gone)
    state.put(_explanation_key(gone.number), "")
    explanations().pop(gone.number, None)


def _note(number: int) -> None:
    explanations()[number] = state.value(_explanation_key(number), "") or ""


def _explanation_key(number: int) -> str:
    return f"explain_run_{number}"


def _samples(run: Run) -> None:
    if not run.result.samples:
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
