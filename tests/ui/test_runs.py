"""Runs: every state of a run as the page shows it, what its buttons do, what the picture draws."""

import contextlib
import csv
import html as markup
import io
import json
import math
import re
import shutil
import time
from dataclasses import replace
from urllib.parse import parse_qs

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app import figures, runs_choice, runs_curves, runs_page, runs_told, settings, state
from app.figures import RUN_LOOKS, Level, RunCurve
from app.jobs import progress as job_progress
from app.jobs import store as job_store
from app.jobs.progress import Curve, Writer
from app.jobs.record import Event, Job, JobError, owner_of
from app.jobs.store import CHECKPOINT, LOG, PROGRESS, RESULT, Store
from app.jobs.work import Source, Work
from app.runs_choice import Shown
from tests import tiny
from tests.ui.test_figures import unpack
from tests.ui.test_pages import ROOT, benchmark, html, is_fine, said, specs
from wordlm_core import experiment
from wordlm_core.experiment import OWN, Draw, Experiment
from wordlm_core.lens.training_history import moving_average
from wordlm_core.training import Progress, TrainConfig

ME, OTHER = "a" * 32, "b" * 32
STEPS = 60
HOSTILE = (
    "<b>x</b> <script>alert(1)</script>",
    "$x$ *a* `b` :red[hi] # _c_ [d](e)",
    "a name of exactly sixty characters, no more and no fewer: ab",
    "😀 имя 名 é",
    "=1+1",
)
FACTS = {
    "parameters": 4192,
    "vocab_size": 27,
    "uniform": math.log(27),
    "floor": 1.25,
    "floor_of": "grammar",
}
_NAMES = ("anna", "emma", "olivia", "ava", "mia", "tom", "lily")
DOCUMENTS = [f"{a} and {b} like {c}" for a in _NAMES for b in _NAMES for c in _NAMES]


@pytest.fixture
def store(artifacts, runs, monkeypatch) -> Store:
    """The store of the app of this process, empty; nobody works on what is put into it."""
    monkeypatch.setattr(job_store, "_CACHED_SECONDS", -1.0)
    monkeypatch.setattr(job_progress, "_EVERY_SECONDS", 0.0)
    return state.store()


@pytest.fixture
def held():
    """Whoever trains here holds the runs until the end of the test."""
    with contextlib.ExitStack() as stack:
        yield stack


def work(**settings) -> Work:
    config = TrainConfig.of("microgpt", **{"steps": STEPS} | settings)
    return Work("train", config, Source("own", label="mine.txt"))


def submitted(store, name="mine", person=ME, *, of: Work | None = None, private=False) -> Job:
    return store.submit(of or work(), person, name=name, private=private, documents=DOCUMENTS)


def report(store, job, steps: int, *, every: int = 20) -> list[float]:
    """Write the progress of so many steps; return the losses."""
    losses = [3.3 * 0.98**step for step in range(steps)]
    writer = Writer(store.folder(job.id) / PROGRESS)
    for step, loss in enumerate(losses, 1):
        validation = loss + 0.1 if step % every == 0 else None
        writer.report(Progress(step, job.steps, loss, validation, 8 * step, 0.01 * step), "")
    writer.close()
    return losses


def running(store, held, name="mine", *, steps=30, **more) -> Job:
    job = submitted(store, name, **more)
    held.enter_context(store.claim(job.id))
    store.begin(job.id)
    store.note(job.id, FACTS)
    report(store, job, steps)
    return store.job(job.id)


def ended(store, how: str, reason: str = "", *, name="mine", steps=STEPS, **more) -> Job:
    with contextlib.ExitStack() as stack:
        job = running(store, stack, name, steps=steps, **more)
        store.end(job.id, how, reason)
    return store.job(job.id)


def stopping(store, held) -> Job:
    return store.cancel(running(store, held).id, ME)


def interrupted(store, held) -> Job:
    with contextlib.ExitStack() as stack:
        job = running(store, stack)
    return store.job(job.id)


def cancelled(store, held) -> Job:
    return store.cancel(submitted(store).id, ME)


# What each state says, and the buttons of whoever owns the run.
STATES = {
    "queued": (lambda store, held: submitted(store), "It waits: place 1", {"cancel_run"}),
    "running": (running, "It trains.", {"cancel_run"}),
    "stopping": (stopping, "ends within seconds", set()),
    "interrupted": (interrupted, "goes on by itself", {"cancel_run"}),
    "finished": (
        lambda store, held: ended(store, "finished"),
        f"It trained all of its {STEPS} steps",
        {"delete_run"},
    ),
    "failed": (
        lambda store, held: ended(store, "failed", "the loss is not finite at step 31", steps=30),
        "The loss is not finite at step 31.",
        {"resume_run", "delete_run"},
    ),
    "cancelled": (cancelled, "Resume goes on", {"resume_run", "delete_run"}),
}
ACTS = {"cancel_run", "resume_run", "delete_run"}


def opened(person: str = ME, *, instructor: bool = False, **parameters: str):
    at = AppTest.from_file(str(ROOT / "app/main.py"), default_timeout=30)
    at.session_state["_person"] = person
    if instructor:
        at.session_state["_instructor"] = True
    for key, value in parameters.items():
        at.query_params[key] = value
    return at.switch_page("../pages/91_runs.py").run()


def keys(at, kind: str = "button") -> set[str]:
    return {element.key for element in at.get(kind)}


def plain(at) -> str:
    return markup.unescape(re.sub(r"<[^>]+>", " ", html(at)))


def badges(at) -> str:
    return " ".join(element.value for element in at.markdown)


def rows(at, label: str = "Runs") -> list[list[str]]:
    table = next(e.proto.body for e in at.get("html") if f'aria-label="{label}"' in e.proto.body)
    found = re.findall(r"<tr[^>]*>((?:<td.*?</td>)+)</tr>", table, re.DOTALL)
    return [
        [
            markup.unescape(cell).replace("\xa0", " ")
            for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)
        ]
        for row in found
    ]


def chosen(at) -> str:
    box = at.selectbox("run")
    return box.options[box.value]


# -- states


def test_without_a_run_the_page_teaches(store):
    at = opened()
    assert is_fine(at)
    assert "There is no run yet." in plain(at)
    commands = " ".join(code.value for code in at.code)
    assert "python -m app.jobs submit" in commands
    assert "python -m wordlm_core train" in commands
    links = [element.proto.label for element in at.get("page_link")]
    assert any(label.startswith("New run") for label in links)
    assert not specs(at)


@pytest.mark.parametrize("name", STATES)
def test_every_state_is_named_and_offers_what_can_be_done(store, held, name):
    make, told, buttons = STATES[name]
    job = make(store, held)
    assert job.state == name
    at = opened()
    assert is_fine(at)
    assert told in plain(at)
    assert name in badges(at)
    assert runs_told.STATES[name].icon in badges(at)
    assert keys(at) & ACTS == buttons
    (row,) = rows(at)
    assert row[:2] == ["mine", "you"]
    assert row[3].startswith(f"{runs_told.STATES[name].sign} {name}")
    assert [cells[0].split()[-1] for cells in rows(at, "States")] == [e.state for e in job.history]


def test_each_state_has_a_word_an_icon_a_sign_and_a_colour_of_its_own():
    looks = list(runs_told.STATES.values())
    for part in ("icon", "sign", "colour", "meaning"):
        assert len({getattr(look, part) for look in looks}) == len(looks)


def test_a_running_run_shows_its_numbers(store, held):
    job = running(store, held)
    at = opened()
    curve = store.progress(job.id)
    average = moving_average(curve.losses)
    shown = dict(rows(at, "Losses"))
    assert shown["train loss, mean of the last 50"] == f"{average[-1]:.3f}"
    assert shown["validation loss at step 20"] == f"{curve.validation[0][1]:.3f}"
    assert shown["guessing evenly: ln V"] == f"{math.log(27):.3f}"
    assert shown["true floor of the grammar"] == "1.250"
    settings_shown = dict(rows(at, "Settings"))
    assert settings_shown["trains"] == "microgpt · mine.txt"
    assert settings_shown["parameters"] == "4,192"
    assert settings_shown["steps"] == str(STEPS)
    assert "windows a step" not in settings_shown
    bar = at.get("progress")[0].proto
    assert bar.value == 50
    assert bar.text.startswith(f"step 30 of {STEPS}")


def test_the_page_looks_again_only_while_something_is_open(store, held, monkeypatch):
    asked = []
    real = st.fragment
    monkeypatch.setattr(
        st, "fragment", lambda *a, **k: (asked.append(k.get("run_every")), real(*a, **k))[1]
    )
    ended(store, "finished")
    opened()
    assert 2.0 not in asked
    submitted(store, "waits")
    opened()
    assert 2.0 in asked


# -- buttons


def test_cancel_resume_delete(store):
    job = submitted(store)
    at = opened()
    at.button("cancel_run").click().run()
    assert store.job(job.id).state == "cancelled"
    assert keys(at) & ACTS == {"resume_run", "delete_run"}
    at.button("resume_run").click().run()
    assert store.job(job.id).state == "queued"
    at.button("cancel_run").click().run()
    at.button("delete_run").click().run()
    assert is_fine(at)
    assert store.jobs() == ()
    assert "There is no run yet." in plain(at)


def test_a_refusal_is_one_sentence_and_said_once(store):
    job = submitted(store)
    at = opened()
    with store.claim(job.id):
        store.begin(job.id)
        store.end(job.id, "finished")
    at.button("cancel_run").click().run()
    assert "has finished: there is nothing to cancel" in said(at)
    assert store.job(job.id).state == "finished"
    at.run()
    assert "nothing to cancel" not in said(at)


def test_a_run_that_is_deleted_elsewhere_gives_way(store):
    job = ended(store, "finished", name="gone")
    ended(store, "finished", name="stays", of=work(steps=STEPS - 1), steps=STEPS - 1)
    at = opened(run=job.id)
    assert chosen(at) == job.label
    store.delete(job.id, ME)
    at.run()
    assert is_fine(at)
    assert chosen(at).startswith("stays")


def test_a_run_that_one_deletes_leaves_no_note_behind(store):
    ended(store, "finished", name="the newest", of=work(steps=STEPS - 1), steps=STEPS - 1)
    job = ended(store, "finished", name="gone")
    store._folders.write(replace(store.job(job.id), created=1.0))
    at = opened(run=job.id)
    assert chosen(at) == job.label
    at.button("delete_run").click().run()
    assert is_fine(at)
    assert chosen(at).startswith("the newest")
    assert "not here" not in plain(at)
    assert "gone" not in plain(at)
    assert "run" not in at.query_params


def test_only_the_owner_and_the_instructor_change_a_run(store):
    job = ended(store, "finished")
    theirs = opened(OTHER)
    assert is_fine(theirs)
    assert not keys(theirs) & ACTS
    assert not keys(theirs, "toggle")
    assert rows(theirs)[0][1] == owner_of(ME)[:4]
    teacher = opened(OTHER, instructor=True)
    assert keys(teacher) & ACTS == {"delete_run"}
    teacher.button("delete_run").click().run()
    assert store.jobs() == ()
    assert job.id


def test_sharing_is_a_switch(store):
    job = ended(store, "finished", private=True)
    at = opened()
    switch = f"shared_{job.id}"
    assert at.toggle(switch).value is False
    at.toggle(switch).set_value(True).run()
    assert not store.job(job.id).private
    store.share(job.id, ME, private=True)  # in another tab
    at.run()
    assert at.toggle(switch).value is False
    assert store.job(job.id).private


# -- whose it is


def test_a_private_run_of_others_shows_its_state_and_place_alone(store):
    hidden = submitted(store, "my secret plan", OTHER, private=True)
    ended(store, "finished", name="open", person=OTHER)
    at = opened()
    assert is_fine(at)
    assert ["private run", "", "", "… queued, place 1", "", "", "", ""] in rows(at)
    everything = plain(at) + " ".join(at.selectbox("run").options)
    assert "my secret plan" not in everything
    assert hidden.id[-6:] not in everything
    asked = opened(run=hidden.id)
    assert chosen(asked).startswith("open")
    assert "my secret plan" in plain(opened(OTHER))
    assert "my secret plan" in plain(opened(instructor=True))


def test_ones_own_newest_run_is_shown_first(store):
    mine = submitted(store, "mine")
    time.sleep(0.01)
    submitted(store, "theirs", OTHER)
    assert chosen(opened()) == mine.label
    assert chosen(opened("c" * 32)).startswith("theirs")


def test_the_address_names_a_run_by_its_id_and_so_does_the_link(store):
    first = ended(store, "finished", name="first")
    submitted(store, "second")
    at = opened(run=first.id)
    assert is_fine(at)
    assert chosen(at) == first.label
    assert any(f"run={first.id}" in code.value for code in at.code)
    assert chosen(opened(run=first.label)) == first.label
    lost = opened(run="20200101-000000-abcdef")
    assert is_fine(lost)
    assert chosen(lost).startswith("second")
    assert "not here" in plain(lost)


def test_nobodys_code_is_on_the_page_or_in_a_download(store, downloads):
    ended(store, "finished")
    at = opened()
    shown = html(at) + badges(at) + " ".join(code.value for code in at.code)
    made = downloads["runs.json"]() + downloads["runs.csv"]()
    for secret in (ME, owner_of(ME)):
        assert secret not in shown + made


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_shown_letter_for_letter(store, held, name):
    job = running(store, held, name)
    assert job.name == name
    at = opened()
    assert is_fine(at)
    assert rows(at)[0][0] == name
    assert chosen(at) == job.label
    assert f'<span class="wl-token">{markup.escape(name)}</span>' in html(at)
    other = ended(store, "finished", name="plain", of=work(steps=STEPS - 1), steps=STEPS - 1)
    over = opened(run=other.id)
    over.multiselect("overlay").set_value([job.id]).run()
    named = [line["name"] for line in specs(over)[0]["data"]]
    assert figures.escape(figures.shorten(job.label)) in named


# -- the table


def test_the_table_is_bounded_and_grows_when_asked(store, monkeypatch):
    monkeypatch.setattr(runs_choice, "LISTED", 3)
    for count in range(5):
        submitted(store, f"run {count}", of=work(steps=10 + count))
    at = opened()
    assert [row[0] for row in rows(at)] == ["run 4", "run 3", "run 2"]
    at.button("more_runs").click().run()
    assert len(rows(at)) == 5
    assert "more_runs" not in keys(at)


def test_the_table_lists_all_or_mine(store):
    submitted(store, "mine")
    submitted(store, "theirs", OTHER)
    at = opened()
    assert {row[0] for row in rows(at)} == {"mine", "theirs"}
    at.button_group("list").set_value(1).run()
    assert {row[0] for row in rows(at)} == {"mine"}
    stranger = opened("c" * 32, list="mine")
    assert "None of these runs is yours." in plain(stranger)


def test_times_and_lengths_in_words():
    assert [runs_told.lasting(s) for s in (0.0, 59.6, 61.0, 120.0, 3_600.0, 3_725.0, 2e5)] == [
        *("0 s", "1 min", "1 min 1 s", "2 min", "1 h", "1 h 2 min", "2 days"),
    ]
    assert [runs_told.ago(s) for s in (-5.0, 30.0, 61.0, 7_300.0, 86_400.0, 3e5)] == [
        *("just now", "just now", "1 min ago", "2 h ago", "24 h ago", "3 days ago"),
    ]


def test_the_time_it_took_is_the_time_it_ran(store):
    spells = [("queued", 0), ("running", 100), ("interrupted", 130), ("queued", 900)]
    spells += [("running", 1_000), ("finished", 1_025)]
    history = tuple(Event(name, float(at)) for name, at in spells)
    job = replace(submitted(store), state="finished", started=1_000.0, history=history)
    job = replace(job, ended=1_025.0)
    assert runs_told.happening(job, curve_of([3.0]), 0).endswith("steps in 55 s.")
    assert runs_told.row(job, curve_of([3.0]), 0, now=2e9, owner="")[-1] == "55\xa0s"
    waits = replace(job, state="queued", started=None, history=history[:1])
    assert runs_told.row(waits, curve_of([]), 1, now=2e9, owner="")[-1] == ""


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("queued", "It waits: place 2 in the queue. It begins anew"),
        ("interrupted", "Its process ended at step 2. It begins anew by itself"),
        ("cancelled", "It was ended at step 2. Resume begins it anew"),
    ],
)
def test_an_experiment_begins_anew_and_says_so(store, state, told):
    tried = Experiment("tiny", OWN, steps=20, d_model=8, n_head=1, context=12)
    job = submitted(store, of=Work.of_experiment(tried, Source("own")))
    said_of = runs_told.happening(replace(job, state=state), curve_of([3.0, 2.0]), 2)
    assert said_of == f"{told}: an experiment stores nothing on the way."
    trains = runs_told.happening(replace(submitted(store), state=state), curve_of([3.0, 2.0]), 2)
    assert "anew" not in trains
    assert "goes on" in trains
    assert "result" in runs_told.lost(job)
    assert "checkpoint" not in runs_told.lost(job)


def test_the_history_is_in_the_persons_own_time(store):
    job = replace(submitted(store), history=(Event("queued", 1_700_000_000.0),))
    assert runs_told.history(job, 0) == [["… queued", "2023-11-14 22:13:20", ""]]
    assert runs_told.history(job, -60)[0][1] == "2023-11-14 23:13:20"


# -- curves


def curve_of(losses, validation=(), steps=STEPS) -> Curve:
    return Curve(
        steps=steps, step=len(losses), losses=np.array(losses, float), validation=tuple(validation)
    )


def test_the_picture_draws_the_values_it_was_given():
    shown = RunCurve(
        "shown",
        np.array([1.0, 2.0, np.nan, 3.0]),
        np.array([3.0, 2.5, np.nan, 2.0]),
        np.array([3.0, 2.75, np.nan, 2.5]),
        np.array([2.0]),
        np.array([2.9]),
    )
    ghost = replace(shown, name="<old>", look=None)
    over = replace(shown, name="over", look=1, validation=np.zeros(0), validation_steps=np.zeros(0))
    figure = figures.run_curves([shown, over, ghost], [Level("uniform", 3.2, "dash")])
    laid, old, old_validation, each, mean, validation = figure.spec["data"]
    np.testing.assert_array_equal(unpack(each["y"]), shown.losses.astype("<f4"))
    np.testing.assert_array_equal(unpack(mean["y"]), shown.average.astype("<f4"))
    np.testing.assert_array_equal(unpack(mean["x"]), shown.steps.astype("<f4"))
    np.testing.assert_array_equal(unpack(validation["x"]), [2.0])
    np.testing.assert_array_equal(unpack(validation["y"]), np.array([2.9], "<f4"))
    np.testing.assert_array_equal(unpack(laid["y"]), over.average.astype("<f4"))
    assert (laid["name"], old["name"]) == ("over", "&lt;old&gt;")
    assert [laid["showlegend"], old["showlegend"], old_validation["showlegend"]] == [
        *(True, True, False),
    ]
    assert [line["legendrank"] for line in (each, mean, validation, laid)] == [0, 1, 2, 3]
    layout = figure.spec["layout"]
    assert layout["xaxis"]["title"]["text"] == "step"
    assert layout["yaxis"]["title"]["text"] == "loss (nats a token)"
    assert layout["shapes"][0]["y0"] == 3.2
    assert layout["annotations"][0]["text"] == "uniform 3.20"
    assert "shown: training 2.500, validation 2.900" in figure.alt


def test_each_run_has_a_colour_and_a_dash_of_its_own():
    line = RunCurve("a", np.ones(2), np.ones(2), np.ones(2), np.zeros(0), np.zeros(0))
    curves = [replace(line, look=look) for look in (*range(len(RUN_LOOKS)), None)]
    *others, _, mean, _ = figures.run_curves(curves, []).spec["data"]
    looks = [(drawn["line"]["color"], drawn["line"]["dash"]) for drawn in (mean, *others)]
    for part in range(2):
        assert len({look[part] for look in looks}) == len(curves)


def test_what_is_far_above_guessing_is_off_the_top_and_named():
    line = RunCurve("wild", np.ones(1), np.ones(1), np.array([1e6]), np.zeros(0), np.zeros(0))
    levels = [Level("uniform", 3.0, "dash")]
    assert figures.run_curves([line], levels).spec["layout"]["yaxis"]["range"][1] < 10
    assert figures.above_the_scale([line], levels) == ["wild"]
    assert figures.above_the_scale([replace(line, average=np.array([3.1]))], levels) == []


def test_a_long_curve_is_thinned_and_keeps_its_ends_and_its_average(store):
    losses = np.random.default_rng(1).uniform(1, 4, 20_000)
    job = submitted(store, of=work(steps=20_000))
    drawn = runs_curves.of_run(job, curve_of(losses, steps=20_000), 0)
    assert len(drawn.steps) == runs_curves.POINTS
    assert drawn.steps[[0, -1]].tolist() == [1, 20_000]
    at = drawn.steps.astype(int) - 1
    np.testing.assert_array_equal(drawn.losses, losses[at])
    np.testing.assert_allclose(drawn.average, moving_average(losses)[at])


def test_losses_that_are_not_known_are_left_out(store):
    job = submitted(store)
    drawn = runs_curves.of_run(job, curve_of([3.0, np.nan, 2.0], [(2, np.nan), (3, 2.5)]), 0)
    assert drawn.steps.tolist() == [1, 3]
    assert drawn.average.tolist() == [3.0, 2.5]
    assert drawn.validation_steps.tolist() == [3]
    assert runs_curves.of_run(job, curve_of([]), 0).is_empty


def test_each_training_of_a_benchmark_is_a_line_of_its_own(store):
    config = TrainConfig.of("attention", steps=3)
    job = Job(
        *("id", "name", Work("benchmark", config, Source("stories"), seeds=(1,)), "o"),
        **{"private": False, "created": 0.0, "queued": 0.0},
    )
    assert job.steps == 9
    drawn = runs_curves.of_run(job, curve_of([3, 2, 1, 6, 5], [(3, 1.5), (5, 5.5)], 9), 0)
    np.testing.assert_array_equal(drawn.steps, [1, 2, 3, np.nan, 4, 5])
    np.testing.assert_array_equal(drawn.average, [3, 2.5, 2, np.nan, 6, 5.5])
    np.testing.assert_array_equal(drawn.validation_steps, [3, np.nan, 5])


def test_the_page_draws_runs_over_each_other_and_a_ghost(store, held):
    other = ended(store, "finished", name="other")
    job = running(store, held, of=work(steps=STEPS + 1))
    at = opened(run=job.id)
    (alone,) = specs(at)
    np.testing.assert_allclose(
        unpack(alone["data"][0]["y"]), store.progress(job.id).losses, rtol=1e-6
    )
    assert [note["text"].rsplit(" ", 1)[0] for note in alone["layout"]["annotations"]] == [
        *("guessing evenly: ln V", "true floor of the grammar"),
    ]
    at.multiselect("overlay").set_value([other.id]).run()
    box = at.selectbox("ghost")
    box.set_value(box.options.index("microgpt_seed42")).run()
    assert is_fine(at)
    (laid,) = specs(at)
    names = [line["name"] for line in laid["data"]]
    assert other.label in names
    assert "microgpt_seed42" in names
    assert any("overlay=" in code.value and "ghost=" in code.value for code in at.code)


def test_a_run_that_its_owner_hides_is_seen_no_more_by_others(store, downloads, held):
    """Two persons: the one who looks has it in the picture and in the files, until it is hidden."""
    mine = running(store, held)
    theirs = ended(store, "finished", name="theirs", person=OTHER)
    at = opened(run=mine.id)
    at.multiselect("overlay").set_value([theirs.id]).run()
    (laid,) = specs(at)
    assert theirs.label in [line["name"] for line in laid["data"]]
    before = runs_page._fixed(shown_of(mine, theirs))
    csv_of, json_of = downloads["runs.csv"], downloads["runs.json"]
    assert theirs.label in csv_of()
    store.share(theirs.id, OTHER, private=True)
    assert runs_page._fixed(shown_of(mine, theirs)) != before  # so the page is drawn anew
    assert theirs.label not in csv_of()
    assert mine.label in csv_of()
    at.run()
    assert is_fine(at)
    assert theirs.label not in json.dumps(specs(at)) + plain(at)
    assert mine.id in json_of()
    store.share(mine.id, ME, private=True)
    assert mine.id in json_of()
    hidden = opened(OTHER, run=mine.id)
    assert mine.label not in hidden.selectbox("run").options
    assert chosen(hidden) == theirs.label


def test_a_run_that_is_shown_to_others_and_then_hidden_leaves_page_and_files(store, downloads):
    theirs = ended(store, "finished", name="theirs", person=OTHER)
    at = opened()
    assert chosen(at) == theirs.label
    json_of = downloads["runs.json"]
    assert theirs.id in json_of()
    store.share(theirs.id, OTHER, private=True)
    with pytest.raises(JobError, match="no longer shows it"):
        json_of()
    at.run()
    assert is_fine(at)
    assert "theirs" not in plain(at)


def shown_of(job: Job, *over: Job) -> Shown:
    return Shown(job, over, None, False, 50, True)


def test_a_run_with_no_loss_yet_says_so(store):
    submitted(store)
    at = opened()
    assert "No loss has been reported yet" in plain(at)
    assert not specs(at)


# -- results, models, downloads


def test_a_finished_run_opens_in_every_lens(store):
    job = ended(store, "finished")
    shutil.copy(
        settings.current().folder / "microgpt_seed42.npz", store.folder(job.id) / CHECKPOINT
    )
    at = opened()
    asked = {e.proto.label: e.proto.query_string for e in at.get("page_link")}
    for title in ("Attention", "Ablation", "Embeddings", "Generate", "One position"):
        assert parse_qs(asked[title]) == {"checkpoint": [job.label]}


def test_a_benchmark_shows_its_table(store):
    config = TrainConfig.of("attention", steps=4, context_length=4, max_vocab=30, min_freq=1)
    of = Work("benchmark", config, Source("own", label="mine.txt"), seeds=(1, 2))
    job = ended(store, "finished", of=of, steps=24)
    at = opened()
    assert "its result is not there" in said(at)
    measured = benchmark()
    (store.folder(job.id) / "benchmark.json").write_text(json.dumps(measured), encoding="utf-8")
    at.run()
    assert is_fine(at)
    assert rows(at, "Results")[0][0] == "MLP, fixed window"
    assert "Only here & now." in plain(at)


def test_an_experiment_shows_its_numbers(store, monkeypatch, capsys):
    tried = Experiment("tiny", OWN, steps=20, d_model=8, n_head=1, context=12, draws=(Draw(),))
    found = experiment.run(tried, experiment.own_list(tiny.ITEMS))
    of = Work.of_experiment(tried, Source("own", label="mine.txt"))
    job = ended(store, "finished", of=of, steps=60)
    (store.folder(job.id) / RESULT).write_text(json.dumps(found.to_json()), encoding="utf-8")
    at = opened()
    assert is_fine(at)
    shown = dict(rows(at, "Result"))
    assert shown["loss, last 200 steps, mean of the seeds"] == f"{found.loss:.3f}"
    assert shown["with each seed"] == ", ".join(f"{loss:.3f}" for loss in found.finals)
    assert "open in" not in plain(at)
    assert "Open its model" not in plain(at)
    monkeypatch.chdir(store.root.parent)
    exec(at.code[-1].value, {})
    assert str(found.parameters) in capsys.readouterr().out


@pytest.mark.parametrize("content", ["", "{", "[]", '{"losses": 3}'])
@pytest.mark.parametrize("kind", ["benchmark", "experiment"])
def test_a_damaged_result_is_one_sentence(store, kind, content):
    tried = Experiment("tiny", OWN, steps=20, d_model=8, n_head=1, context=12)
    config = TrainConfig.of("attention", steps=4, context_length=4, max_vocab=30, min_freq=1)
    works = {
        "benchmark": Work("benchmark", config, Source("own"), seeds=(1,)),
        "experiment": Work.of_experiment(tried, Source("own")),
    }
    job = ended(store, "finished", of=works[kind], steps=12)
    name = {"benchmark": "benchmark.json", "experiment": RESULT}[kind]
    (store.folder(job.id) / name).write_text(content, encoding="utf-8")
    at = opened()
    assert is_fine(at)
    assert len(at.warning) == 1


def test_the_log_is_its_owners(store):
    job = ended(store, "failed", "it ended")
    (store.folder(job.id) / LOG).write_text("a line of the log", encoding="utf-8")
    assert any("a line of the log" in code.value for code in opened().code)
    assert not any("a line of the log" in code.value for code in opened(OTHER).code)


def test_the_downloads_hold_every_step(store, downloads, held):
    job = running(store, held, "=1+1")
    opened()
    curve = store.progress(job.id)
    table = list(csv.DictReader(io.StringIO(downloads["runs.csv"]())))
    assert [float(row["train_loss"]) for row in table] == curve.losses.tolist()
    assert [float(row["moving_average"]) for row in table] == pytest.approx(
        moving_average(curve.losses).tolist()
    )
    assert {row["run"] for row in table} == {f"'{job.label}"}
    assert table[19]["validation_loss"] == str(curve.validation[0][1])
    made = json.loads(downloads["runs.json"]())
    assert made["run"]["work"] == job.work.to_json()
    assert made["curve"]["losses"] == curve.losses.tolist()
    assert "owner" not in made["run"]
    assert "Plotly.newPlot(" in downloads["runs.html"]()


def test_the_lines_of_code_open_the_model(store, monkeypatch, capsys):
    job = ended(store, "finished")
    shutil.copy(
        settings.current().folder / "microgpt_seed42.npz", store.folder(job.id) / CHECKPOINT
    )
    at = opened()
    monkeypatch.chdir(store.root.parent)
    code = at.code[-1].value
    assert f"python -m app.jobs show '{job.id}'" in code
    exec(code, {})
    assert "microgpt" in capsys.readouterr().out
