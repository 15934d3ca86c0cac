"""What the Experiments page shows of its runs: curves, samples, explanations, the table."""

from collections.abc import Mapping, Sequence

import streamlit as st

from app import controls, experiment_commit, experiment_runs, figures, layout, state
from app.experiment_commit import DRAWN, MOST_DRAWN, MOST_RUNS, SHOWN
from app.experiment_runs import Run
from app.experiment_start import Start
from app.figures import RUN_LOOKS, Overlaid
from app.quiz_page import LONGEST_NAME
from wordlm_core.experiment import SAMPLES, SEEDS

_LONGEST = 2_000
_EXPLANATIONS, _SIGNED = "_explanations", "_signed"
_NAME = "quiz_name"  # typed once, for the score card and the report
_STAYS = (
    f"Runs stay in this browser tab, {MOST_RUNS} at most: they are on no disk and in no link, and "
    "gone when the tab is closed or loaded anew. So download them."
)


def headline(done: Run | None, known: Start | None) -> None:
    """Say in one line what the picture shows."""
    if done is not None:
        layout.answer(
            (done.experiment.label, "token"),
            ": loss ",
            (experiment_runs.loss_of(done.result), _look(done)),
            f", baseline {experiment_runs.loss_of(done.baseline)}.",
        )
    elif known is not None:
        layout.answer(
            "Baseline: loss ",
            (experiment_runs.loss_of(known.baseline), "number"),
            f" over the last 200 of {len(known.baseline.losses):,} steps, mean of {SEEDS} seeds.",
        )


def picture(done: Run | None, known: Start | None) -> bool:
    """Draw the curves, or the samples where only these differ; return whether it was curves."""
    if done is not None and done.sampling_only:
        layout.help_line("The training is the baseline's, curve and all: look at the samples.")
        _samples(done)
        return False
    finished = experiment_commit.runs()
    base = done.baseline if done is not None else known.baseline if known is not None else None
    if base is None and finished:
        base = finished[-1].baseline
    if base is None:
        return False
    place = st.container()
    fit = _pick_curves(finished) if finished else False
    drawn = experiment_commit.drawn()
    looks = _looks(drawn)
    curves = [
        Overlaid("baseline", base.average, base.vocab_size),
        *(
            Overlaid(run.name, run.result.average, run.result.vocab_size, looks[run.number])
            for run in drawn
        ),
    ]
    marked = 1 + drawn.index(done) if done in drawn else 0
    with place:
        layout.plot(figures.overlaid(curves, marked, fit=fit), "curves", name="experiments")
        above = [] if fit else figures.off_the_top(curves)
        if above:
            layout.help_line(f"Off the top, unless you fit all: {'; '.join(above)}.")
    return True


def look_at(finished: Sequence[Run], above: Run | None) -> None:
    """Pick a run; show its samples, and take an explanation of it.

    Args:
        finished: The runs.
        above: The run that is looked at in the picture.
    """
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
        if run is above and run.sampling_only:
            layout.note("Its samples stand above, in place of the curves.")
        else:
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
    _sign()  # it may have been typed on another page
    signed, today = state.value(_SIGNED, {}), state.today()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input(
            "Name on the report",
            max_chars=LONGEST_NAME,
            key=_NAME,
            persist_state="session",
            on_change=_sign,
            placeholder="It may stay empty",
            width=300,
        )
        st.download_button(
            "Report as Markdown",
            lambda: experiment_runs.report(finished, told, name=signed["name"], date=today),
            "experiments.md",
            "text/markdown",
            key="report",
            on_click="ignore",
            icon=":material/download:",
        )


# -- parts


def _pick_curves(finished: Sequence[Run]) -> bool:
    """Pick the runs that are drawn, and return whether all of each curve is to be seen."""
    names = {run.number: run.name for run in finished}
    state.put(DRAWN, [run.number for run in experiment_commit.drawn()])
    left, right = layout.columns(3, 1)
    with left:
        st.multiselect(
            "Runs in the picture",
            list(names),
            format_func=names.__getitem__,
            key=DRAWN,
            persist_state="session",
            max_selections=MOST_DRAWN,
            placeholder="Only the baseline",
        )
    with right:
        return controls.choose(st.segmented_control, "Loss axis", "axis", ("zoom", "fit all")) == 1


def _looks(drawn: Sequence[Run]) -> dict[int, int]:
    """Return each run's look by its number: the same for as long as no other run has it."""
    free = list(range(MOST_DRAWN))
    looks: dict[int, int] = {}
    for run in drawn:
        own = (run.number - 1) % MOST_DRAWN
        looks[run.number] = own if own in free else free[0]
        free.remove(looks[run.number])
    return looks


def _look(run: Run) -> str:
    """Return the look of a run's numbers: that of its curve."""
    looks = _looks(experiment_commit.drawn())
    return RUN_LOOKS[looks[run.number]][0] if run.number in looks else "ink"


def _sign() -> None:
    """Note the typed name; in a dictionary of its own, as with the explanations."""
    state.put(_SIGNED, state.value(_SIGNED, {}))
    state.value(_SIGNED, {})["name"] = (state.value(_NAME, "") or "")[:LONGEST_NAME]


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
