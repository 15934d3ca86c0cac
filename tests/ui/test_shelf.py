"""The pickers over artifacts, runs and uploads: what is offered to whom, and what is opened."""

import os
import time
from pathlib import Path

import pytest

from app import state
from app.jobs.store import Store
from app.jobs.uploads import Uploads
from app.jobs.work import Source, Work
from tests import tiny
from tests.ui.conftest import KINDS, make
from tests.ui.test_pages import GPT_PAGES, html, is_fine, open_page, pick, said, specs
from wordlm_core import checkpoint
from wordlm_core.training import TrainConfig

ANN, BEN = "a" * 32, "b" * 32
ARTIFACTS = sorted([*(f"{kind}_seed11" for kind in KINDS), "microgpt_seed42"])
FACTS = {"parameters": 1000, "vocab_size": 26, "uniform": 3.3, "floor": None, "floor_of": ""}


@pytest.fixture(autouse=True)
def me(monkeypatch):
    """Be Ann until a test says otherwise."""
    monkeypatch.setattr(state, "person", lambda: ANN)
    return lambda who: monkeypatch.setattr(state, "person", lambda: who)


def run(runs: Path, name: str, *, person: str = ANN, private: bool = False, **settings):
    """Return a job that waits, as one that has not begun to write."""
    config = TrainConfig.of(settings.pop("family", "attention"), steps=20, **settings)
    work = Work("train", config, Source("stories", documents=50))
    store = Store(runs)
    job = store.submit(work, person, name=name, private=private, facts=FACTS)
    return job, store.folder(job.id) / "checkpoint.npz"


def trained(runs: Path, name: str = "my run", kind: str = "multihead", **more):
    """Return the label and the file of a run that has a checkpoint."""
    width = make(kind).model.config.d_model
    job, path = run(runs, name, family="mlp" if kind == "mlp" else "attention",
                    n_head=4 if kind == "multihead" else 1, d_model=width, **more)  # fmt: skip
    checkpoint.save(make(kind), path)
    return job.label, path


def fresh() -> None:
    """Wait until the list of jobs is read again."""
    time.sleep(0.55)


def test_without_runs_the_artifacts_are_offered_alone(artifacts):
    at = open_page("attention")
    assert at.selectbox("checkpoint").options == ARTIFACTS


def test_a_folder_that_cannot_be_read_leaves_the_artifacts(artifacts, runs):
    runs.rmdir()
    runs.write_text("no folder")
    assert open_page("attention").selectbox("checkpoint").options == ARTIFACTS
    for page in ("runs", "new_run"):
        at = open_page(page)
        assert not at.exception
        assert "cannot be read" in said(at)


def test_an_own_run_opens_in_every_lens_and_is_shown_as_its_file(artifacts, runs):
    label, path = trained(runs)
    for address in ("attention", "ablation", "embeddings", "neighbours", "generate"):
        at = open_page(address)
        assert at.selectbox("checkpoint").options == [*ARTIFACTS, label]
        pick(at, label)
        assert is_fine(at)
        assert specs(at)
        code = next(each.value for each in at.code if "checkpoint.load" in each.value)
        assert f"{runs.name}/{path.parent.name}/checkpoint.npz" in code
        assert str(runs.parent) not in code


def test_a_run_without_a_checkpoint_yet_is_not_offered(artifacts, runs):
    run(runs, "waits")
    assert open_page("attention").selectbox("checkpoint").options == ARTIFACTS


def test_somebody_elses_run_opens_by_its_link_alone(artifacts, runs, me):
    label, _ = trained(runs)
    me(BEN)
    assert open_page("attention").selectbox("checkpoint").options == ARTIFACTS
    at = open_page("attention", checkpoint=label)
    assert is_fine(at)
    assert at.selectbox("checkpoint").options[-1] == label
    assert "is not here" not in html(at)
    at.switch_page("../pages/30_ablation.py").run()
    assert is_fine(at)
    assert at.selectbox("checkpoint").value == len(ARTIFACTS)


def test_a_private_run_opens_for_nobody_else(artifacts, runs, me):
    label, _ = trained(runs, private=True)
    assert label in open_page("attention").selectbox("checkpoint").options
    me(BEN)
    at = open_page("attention", checkpoint=label)
    assert at.selectbox("checkpoint").options == ARTIFACTS
    assert is_fine(at)
    assert "which is not here" in html(at)


def test_a_new_checkpoint_of_a_run_shows_fresh_results(artifacts, runs):
    label, path = trained(runs, kind="attention")
    at = open_page("attention", checkpoint=label)
    before = specs(at)
    weights = tiny.weights_of(make("attention").model.config.shapes, 77)
    model = type(make("attention").model)(make("attention").model.config, weights)
    vocabulary = make("attention").vocabulary
    stored = {"step_0": weights}
    checkpoint.save(checkpoint.Checkpoint.from_training(model, vocabulary, {}, stored), path)
    at.run()
    assert is_fine(at)
    assert specs(at) != before


def test_a_run_that_writes_again_and_again_pushes_nothing_out(artifacts, runs, monkeypatch):
    loaded = []
    load = checkpoint.load
    monkeypatch.setattr(
        checkpoint, "load", lambda path, **k: (loaded.append(path), load(path, **k))[1]
    )
    (label, path), (other, still) = trained(runs), trained(runs, "still", "attention")
    kept = state.opened(still, other)
    for time_of in range(state._SMALL + 2):
        os.utime(path, (time_of, time_of))
        assert state.opened(path, label).name == label
    assert len(loaded) == state._SMALL + 3
    assert state.opened(still, other) is kept
    assert state.opened(path, label) is state.opened(path, label)
    assert len(loaded) == state._SMALL + 3


@pytest.mark.parametrize("broken", [b"", b"PK\3\4", b"no zip at all"])
def test_a_broken_one_is_refused_and_the_others_live_on(artifacts, runs, broken):
    label, path = trained(runs)
    path.write_bytes(broken)
    at = open_page("attention", checkpoint=label)
    is_fine(at)
    assert f"{label} cannot be opened" in said(at)
    assert not specs(at)
    pick(at, ARTIFACTS[0])
    assert is_fine(at)
    assert specs(at)


def test_a_run_that_is_deleted_meanwhile_gives_way(artifacts, runs):
    label, path = trained(runs)
    at = open_page("attention", checkpoint=label)
    path.unlink()
    at.run()
    assert is_fine(at)
    assert at.selectbox("checkpoint").options == ARTIFACTS


def test_a_run_is_compared_and_laid_beside_others(artifacts, runs):
    label, _ = trained(runs)
    mlp, _ = trained(runs, "no attention", "mlp")
    fresh()
    at = open_page("attention")
    offered = at.selectbox("other").options
    assert label in offered
    assert mlp not in offered
    at.selectbox("other").set_value(offered.index(label)).run()
    assert is_fine(at)
    at = open_page("embeddings", also=label)
    assert is_fine(at)
    assert at.multiselect("also").value == [label]
    assert mlp in at.multiselect("also").options


def test_only_what_is_chosen_is_loaded(artifacts, runs, monkeypatch):
    label, _ = trained(runs)
    trained(runs, "another", "attention")
    fresh()
    loaded = []
    load = checkpoint.load
    open_page("attention")
    monkeypatch.setattr(
        checkpoint, "load", lambda *a, **k: (loaded.append(k.get("name")), load(*a, **k))[1]
    )
    at = open_page("attention")
    assert loaded == []
    pick(at, label)
    at.run()
    assert loaded == [label]


@pytest.mark.parametrize("address", ["attention", "ablation", "embeddings", "neighbours"])
def test_a_name_is_drawn_letter_for_letter(artifacts, runs, address):
    label, _ = trained(runs, "<b>x</b> *a* $y$ & [d](e) · z")
    at = open_page(address, checkpoint=label)
    assert is_fine(at)
    assert at.selectbox("checkpoint").value == len(ARTIFACTS)
    others = open_page(address, also=label, other=label)
    assert is_fine(others)
    for page in (at, others):
        drawn = "".join(each.value for each in (*page.markdown, *page.caption))
        assert "<b>x" not in html(page) + str(specs(page)) + drawn


def test_pages_of_one_family_offer_its_runs_alone(artifacts, runs):
    word, _ = trained(runs)
    job, path = run(runs, "names", family="microgpt")
    checkpoint.save(tiny.char_checkpoint(), path)
    fresh()
    at = open_page("tokens")
    assert at.selectbox("checkpoint").options == ["microgpt_seed42", job.label]
    at = open_page("attention", checkpoint=job.label)
    assert is_fine(at)
    assert word not in at.selectbox("other").options  # it reads words


@pytest.mark.parametrize("page", GPT_PAGES, ids=lambda page: page.title)
def test_a_run_of_letters_opens_on_every_page_of_the_walk(artifacts, runs, page):
    job, path = run(runs, "names", family="microgpt")
    checkpoint.save(tiny.char_checkpoint(3, n_layer=2, context_length=6), path)
    at = open_page(page.address, checkpoint=job.label)
    assert is_fine(at)
    assert not any(
        box.options[box.value] != job.label for box in at.selectbox if box.key == "checkpoint"
    )


def test_a_run_is_enough_where_there_are_no_artifacts(open_folder, tmp_path, runs):
    (tmp_path / "artifacts").mkdir()
    open_folder(tmp_path / "artifacts")
    assert "there is no checkpoint to open yet" in said(open_page("attention")).lower()
    label, _ = trained(runs)
    fresh()
    at = open_page("attention")
    assert is_fine(at)
    assert at.selectbox("checkpoint").options == [label]


def test_every_model_of_a_benchmark_is_offered(artifacts, runs):
    config = TrainConfig.of("attention", steps=20)
    work = Work("benchmark", config, Source("stories", documents=50), seeds=(11,))
    job = Store(runs).submit(work, ANN, name="bench", facts=FACTS)
    for kind in KINDS:
        checkpoint.save(make(kind), runs / job.id / f"{kind}_seed11.npz")
    (runs / job.id / "mlp_seed11.resume.npz").write_bytes(b"")
    at = open_page("attention")
    mine = at.selectbox("checkpoint").options[len(ARTIFACTS) :]
    assert mine == [f"{job.label} {kind}_seed11" for kind in KINDS]
    assert not [each for each in at.selectbox("other").options if each.endswith("mlp_seed11")][1:]


def test_an_upload_opens_for_its_person_and_by_link_once_it_is_shared(artifacts, runs, me):
    uploads = Uploads(runs)
    data = (artifacts / "multihead_seed11.npz").read_bytes()
    kept = uploads.add_checkpoint(data, "mine.npz", ANN)
    uploads.add_corpus(b"the cat", "corpus.txt", ANN)
    at = open_page("ablation", checkpoint=kept.label)
    assert is_fine(at)
    assert at.selectbox("checkpoint").options == [*ARTIFACTS, kept.label]
    me(BEN)
    at = open_page("ablation", checkpoint=kept.label)
    assert at.selectbox("checkpoint").options == ARTIFACTS
    state.uploads().share(kept.id, ANN, False)
    at = open_page("ablation", checkpoint=kept.label)
    assert at.selectbox("checkpoint").options[-1] == kept.label
    assert is_fine(at)
