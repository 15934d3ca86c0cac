"""New run: what is chosen is what is measured and what is started; refusals are a sentence."""

import json
import re
import shlex
import time
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from app import lenses, new_run_checkpoint, new_run_sizes, new_run_told, settings, state
from app.jobs import bounds
from app.jobs.pool import Pool, QuickError, Ticket
from app.jobs.record import JobError
from app.jobs.store import Store
from app.jobs.uploads import UploadError
from app.jobs.work import Source, Work
from app.main import PAGES, WALK
from app.new_run_sizes import MODELS, SIZE_NAMES, SIZES
from tests import tiny
from tests.ui.test_pages import html, is_fine, open_page, said
from wordlm_core import checkpoint, corpora, experiment, planning
from wordlm_core.errors import WordLMError
from wordlm_core.experiment import PRESETS
from wordlm_core.training import TrainConfig

NAMES = ("anna", "emma", "olivia", "ava", "mia", "tom", "lily")
TEXT = "\n".join(f"{a} and {b} like {c}" for a in NAMES for b in NAMES for c in NAMES)
WHAT, SIZE, MODEL = ("one model", "all kinds", "an experiment"), SIZE_NAMES, MODELS
OWN_SETTINGS = SIZE_NAMES.index(new_run_sizes.OWN_SETTINGS)
MICROGPT = [model.key for model in MODELS].index("microgpt")
OTHER = "b" * 32


class Answered(Ticket):
    """A ticket of a process that is done, or of one that has not begun."""

    place, over = 1, False

    def __init__(self, record: dict | None, key: str = "") -> None:
        self.key = key
        self.record, self.over = record, record is not None
        self.state = "finished" if self.over else "queued"

    def wait(self, seconds: float) -> bool:
        return self.over

    def cancel(self) -> None:
        self.state = "cancelled"

    def result(self) -> dict:
        assert self.record is not None
        if "error" in self.record:
            raise QuickError(self.record["error"])
        return self.record["result"]


class FakePool:
    """Answers as the pool's process does, but here and at once."""

    def __init__(self) -> None:
        self.asked: list[dict] = []
        self.busy = False

    def submit(self, person: str, lane: str, request: dict) -> Answered:
        self.asked.append(request)
        line = json.dumps(request, sort_keys=True)
        return Answered(None if self.busy else answer(line), line)


@cache
def answer(line: str) -> dict:
    request = json.loads(line)
    config = TrainConfig.from_json(request["config"])
    try:
        corpus = Source(**request["source"]).load(Path(request["path"] or "none"))
        return {"result": planning.plan(config, corpus, budget=0.05).to_json()}
    except WordLMError as error:
        return {"error": str(error)}


def slow(person: str, lane: str, request: dict) -> Answered:
    """Answer for the pool, without measuring: five minutes a training, whatever it is."""
    facts = planning.Facts(1000, 26, 3.3, None, "")
    plan = planning.Plan(facts, {"items": 9, "tokens": 99}, None, (("a",),), 0.05, 0.0, 300.0, 6)
    return Answered({"result": plan.to_json()}, json.dumps(request, sort_keys=True))


@pytest.fixture
def pool(monkeypatch) -> FakePool:
    made = FakePool()
    monkeypatch.setattr(state, "plan_pool", lambda: made)
    return made


@pytest.fixture
def at(artifacts, pool) -> AppTest:
    """The page on a small model of characters: it is measured in a moment."""
    return open_page("new_run", **GPT)


GPT = {"new_model": "microgpt", "new_size": "full"}


def plain(at: AppTest) -> str:
    return re.sub(r"<[^>]+>", "", html(at)).replace("&lt;", "<").replace("&gt;", ">")


def choose(at: AppTest, key: str, position: int) -> None:
    at.button_group(key).set_value(position).run()


def press(at: AppTest, key: str = "start_run") -> None:
    at.button(key).click().run()


def send(at: AppTest, name: str, data: bytes) -> None:
    at.file_uploader("new_corpus_file").set_value((name, data, "text/plain")).run()


def keys(at: AppTest, kind: str) -> set[str]:
    return {element.key for element in at.get(kind) if element.key}


# -- the first view


def test_the_first_view_says_what_how_long_and_how_good(artifacts, pool):
    at = open_page("new_run")
    assert is_fine(at)
    shown = plain(at)
    plan = answer(json.dumps(pool.asked[0], sort_keys=True))["result"]
    assert "attention, one head on stories: about " in shown
    assert f"{plan['facts']['parameters']:,}" in shown
    uniform, many = plan["facts"]["uniform"], plan["facts"]["vocab_size"]
    assert f"guessing evenly: ln V{uniform:.2f} nats: ln {many:,}" in shown
    assert f"true floor of the grammar{plan['facts']['floor']:.2f} nats" in shown
    assert f"on this machine: {plan['measured_steps']:,} steps" in shown
    assert "Nothing runs or waits: it begins at once." in shown
    assert "once upon a time" in shown  # tokens of the first story
    assert not at.button("start_run").disabled
    assert "validation" in shown


def test_the_same_settings_are_asked_for_with_the_same_words(at, pool):
    at.run()
    lines = [json.dumps(each, sort_keys=True) for each in pool.asked]
    assert len(lines) > 1
    assert len(set(lines)) == 1


def test_it_is_started_when_the_text_was_checked_and_not_before(artifacts, pool, monkeypatch):
    def never(*_):
        raise AssertionError("the page's thread prepares a text")

    monkeypatch.setattr(bounds, "require_trainable", never)
    pool.busy = True
    at = open_page("new_run", **GPT)
    assert at.get("progress")
    assert "about" not in plain(at).split("on names")[1][:10]
    assert at.button("start_run").disabled
    assert at.button("start_run").label == "Checking the text"
    pool.busy = False
    at.run()
    assert at.button("start_run").label == "Start"
    press(at)
    (job,) = state.store().jobs()
    assert job.state == "queued"
    assert job.facts["parameters"] == 4192


def test_a_pool_that_is_full_or_gave_the_place_away_is_asked_again(artifacts, pool):
    def full(*_):
        raise QuickError("60 experiments are waiting already")

    pool.submit = full
    at = open_page("new_run", **GPT)
    assert is_fine(at)
    assert "asks again in a moment" in plain(at)
    assert at.button("start_run").disabled
    given_away = Answered({"error": "a newer experiment took its place"})
    given_away.state = "cancelled"
    pool.submit = lambda *_: given_away
    at.run()
    assert "asks again in a moment" in plain(at)
    assert at.button("start_run").disabled
    del pool.submit
    at.run()
    assert not at.button("start_run").disabled


def test_what_was_measured_a_while_ago_says_when(at, monkeypatch):
    now = time.time()
    assert "Measured just now" in plain(at)
    monkeypatch.setattr(time, "time", lambda: now + 12 * 60 + 1)
    at.run()
    assert "Measured 12 min ago" in plain(at)


def test_what_takes_longer_than_a_job_may_is_refused(artifacts, pool, monkeypatch):
    monkeypatch.setenv("WORDLM_MAX_MINUTES", "1")
    settings.current.cache_clear()
    at = open_page("new_run", new_model="microgpt", new_size="own settings")
    at.number_input("new_microgpt_steps").set_value(20_000)
    at.number_input("new_microgpt_layers").set_value(3)
    at.number_input("new_microgpt_width").set_value(200).run()
    assert is_fine(at)
    assert "and a job has 1 minutes" in said(at)
    assert at.button("start_run").disabled


def test_the_real_process_measures_once(artifacts, monkeypatch):
    own = Pool(1)
    monkeypatch.setattr(state, "plan_pool", lambda: own)
    try:
        at = open_page("new_run", **GPT)
        end = time.monotonic() + 60
        while "Measured just now" not in plain(at) and time.monotonic() < end:
            time.sleep(0.2)
            at.run()
        shown = plain(at)
        assert "Measured just now" in shown
        at.run()
        assert re.findall(r"machine: [\d,]+ steps", plain(at)) == re.findall(
            r"machine: [\d,]+ steps", shown
        )
    finally:
        own.close()


# -- what is chosen


@pytest.mark.parametrize(("key", "name"), SIZES, ids=str)
def test_every_ready_size_is_one_that_may_be_trained(key, name):
    size = SIZES[key, name]
    model = next((each for each in MODELS if each.key == key), MODELS[1])
    config = new_run_sizes.config(model, size.settings)
    seeds = (1, 2, 3) if key == "benchmark" else ()
    work = Work("benchmark" if seeds else "train", config, Source("stories"), seeds)
    bounds.require_sizes(work, settings.current().limits)
    assert new_run_sizes.said(key, name).endswith(".")


def test_full_is_the_protocol_of_the_committed_models():
    config = new_run_sizes.config(MODELS[2], SIZES["multihead", "full"].settings)
    assert config == TrainConfig(n_head=4)
    assert new_run_sizes.config(MODELS[3], SIZES["microgpt", "full"].settings) == TrainConfig.of(
        "microgpt"
    )


def test_what_is_shown_is_what_is_started(at, pool):
    press(at)
    (job,) = state.store().jobs()
    assert job.work.config == TrainConfig.of("microgpt")
    assert asdict(job.work.source) == pool.asked[-1]["source"]
    assert job.work.config.to_json() == pool.asked[-1]["config"]
    assert job.name == "microgpt · names · full"
    assert not job.private
    assert job.facts["parameters"] == 4192
    assert job.owner not in html(at)


def test_settings_of_ones_own_reach_the_job(at):
    choose(at, "new_size", OWN_SETTINGS)
    at.number_input("new_microgpt_steps").set_value(77)
    at.number_input("new_microgpt_width").set_value(24)
    at.number_input("new_microgpt_heads").set_value(2)
    at.number_input("new_microgpt_layers").set_value(2)
    at.number_input("new_microgpt_context").set_value(9)
    at.number_input("new_microgpt_seed").set_value(5)
    at.number_input("new_documents").set_value(50)
    at.text_input("new_microgpt_lr").set_value("0,02")
    at.selectbox("new_microgpt_positions").set_value(1).run()
    at.text_input("new_name").set_value("mine <b>*x*</b>").run()
    assert is_fine(at)
    press(at)
    (job,) = state.store().jobs()
    config = job.work.config
    assert (config.steps, config.d_model, config.n_head, config.n_layer) == (77, 24, 2, 2)
    assert (config.context_length, config.seed, config.lr, config.positions) == (9, 5, 0.02, False)
    assert job.name == "mine <b>*x*</b>"


@pytest.mark.parametrize("model", range(4))
def test_every_model_has_settings_of_its_own(artifacts, pool, model):
    pool.busy = True
    at = open_page("new_run", new_model=MODELS[model].name, new_size="own settings")
    assert is_fine(at)
    shown = keys(at, "number_input")
    assert (f"new_{MODELS[model].key}_heads" in shown) == (MODELS[model].key != "mlp")
    assert (f"new_{MODELS[model].key}_batch" in shown) == (not MODELS[model].reads_items)


REFUSED = (
    ("new_microgpt_steps", 0, "steps must be"),
    ("new_microgpt_steps", -5, "steps must be"),
    ("new_microgpt_steps", 20_001, "a training has at most 20,000"),
    ("new_microgpt_heads", 3, "heads"),
    ("new_microgpt_seed", -1, "the seed must be"),
    ("new_microgpt_width", 2000, "parameters must be"),
    ("new_documents", 0, "documents must be 1 to"),
)


@pytest.mark.parametrize(("key", "value", "sentence"), REFUSED, ids=str)
def test_what_cannot_be_trained_is_refused_in_a_sentence(at, key, value, sentence):
    choose(at, "new_size", OWN_SETTINGS)
    at.number_input(key).set_value(value).run()
    assert is_fine(at)
    assert sentence in said(at).lower()
    assert at.button("start_run").disabled
    assert at.number_input(key).value == value
    at.number_input(key).set_value(4).run()
    assert not at.button("start_run").disabled


@pytest.mark.parametrize("typed", ["", "fast", "nan", "-1", "1e999"])
def test_a_learning_rate_that_is_none_is_refused(at, typed):
    choose(at, "new_size", OWN_SETTINGS)
    at.text_input("new_microgpt_lr").set_value(typed).run()
    assert is_fine(at)
    assert "learning rate" in said(at).lower()
    assert at.button("start_run").disabled
    assert at.text_input("new_microgpt_lr").value == typed


def test_all_kinds_are_measured_and_started_together(artifacts, pool):
    pool.busy = True
    at = open_page("new_run", new_what="all kinds")
    families = [(each["config"]["family"], each["config"]["n_head"]) for each in pool.asked[-3:]]
    assert families == [("mlp", 1), ("attention", 1), ("attention", 4)]
    pool.submit = slow
    at.text_input("new_seeds").set_value("3 4").run()
    press(at)
    (job,) = state.store().jobs()
    assert (job.work.kind, job.work.seeds) == ("benchmark", (3, 4))
    assert job.name == "all kinds, 2 seeds · stories · 20 seconds"


def test_the_full_comparison_is_bounded_by_its_time_and_not_by_its_steps(artifacts, pool):
    pool.submit = slow
    at = open_page("new_run", new_what="all kinds", new_size="full")
    assert at.text_input("new_seeds_full").value == "11"
    assert is_fine(at)
    assert "about 15 min" in plain(at)
    assert not at.button("start_run").disabled
    at.text_input("new_seeds_full").set_value("11, 29, 47").run()
    assert "about 45 min" in plain(at)
    at.text_input("new_seeds_full").set_value("1 2 3 4 5").run()
    assert "it takes about 1 h 15 min, and a job has 60 minutes" in said(at).lower()
    assert at.button("start_run").disabled


@pytest.mark.parametrize("seeds", ["", "one", "1, 1", ",".join(map(str, range(11)))])
def test_seeds_that_are_none_are_refused(artifacts, pool, seeds):
    pool.busy = True
    at = open_page("new_run", new_what="all kinds")
    at.text_input("new_seeds").set_value(seeds).run()
    assert is_fine(at)
    assert "seed" in said(at).lower()
    assert at.button("start_run").disabled


def test_the_kinds_of_a_benchmark_are_its_own_trainings():
    base = TrainConfig.of("attention", steps=7, d_model=8, hidden=16, context_length=6, batch=3)
    made = new_run_sizes.per_kind(base)
    assert [each.lr for each in made] == [1e-3, 3e-3, 3e-3]
    assert {(each.steps, each.d_model, each.context_length) for each in made} == {(7, 8, 6)}
    assert made[1] == base


@pytest.mark.parametrize("position", range(len(PRESETS)))
def test_every_experiment_can_be_asked_for(artifacts, pool, position):
    label = PRESETS[position].experiment.label
    at = open_page("new_run", new_what="an experiment", new_experiment=label)
    assert is_fine(at)
    if PRESETS[position].experiment.data == experiment.OWN:
        assert "no text of your own yet" in said(at)
        assert at.button("start_run").disabled
        return
    press(at)
    (job,) = state.store().jobs()
    assert job.work.experiment == PRESETS[position].experiment
    assert job.steps == 3 * PRESETS[position].experiment.steps


def test_an_experiment_may_be_larger_than_its_page_allows(artifacts, pool):
    pool.busy = True
    at = open_page("new_run", new_what="an experiment", new_experiment_size="own settings")
    at.number_input("new_tried_width").set_value(64)
    pool.submit = slow
    at.number_input("new_tried_layers").set_value(4).run()
    press(at)
    (job,) = state.store().jobs()
    tried = job.work.experiment
    assert (tried.d_model, tried.n_layer, tried.steps) == (64, 4, 6000)
    with pytest.raises(experiment.ConfigError, match="a quick run has"):
        experiment.require_quick(tried, 27)


# -- texts of one's own


def test_a_text_is_uploaded_previewed_and_trained_on(at):
    send(at, "mine.txt", TEXT.encode())
    assert is_fine(at)
    (upload,) = state.uploads().all()
    assert at.selectbox("new_corpus_list").value == upload.id
    assert "microgpt on mine.txt" in plain(at)
    assert f"{len(TEXT.splitlines()):,} documents" in plain(at)
    press(at)
    (job,) = state.store().jobs()
    assert job.private
    assert replace(job.work.source, sha256="") == Source("own", label="mine.txt")
    kept = job.work.source.load(state.store().folder(job.id) / "corpus.jsonl")
    assert list(kept.documents) == TEXT.splitlines()


def test_a_files_name_is_read_as_it_is(at):
    send(at, "<b>x</b>.txt", TEXT.encode())
    (upload,) = state.uploads().all()
    assert upload.name == "<b>x<\N{DIVISION SLASH}b>.txt"
    assert f"microgpt on {upload.name}" in plain(at)


def test_words_of_a_text_that_are_unknown_are_marked(artifacts, pool):
    at = open_page("new_run", new_model="microgpt", new_size="own settings")
    at.selectbox("new_microgpt_tokens").set_value(1).run()
    send(at, "mine.txt", (f"hapax <b> {NAMES[0]}\n" + TEXT).encode())
    assert '<span class="wl-drawn">&lt;UNK&gt;</span>' in html(at)
    assert "read as <UNK>" in plain(at)


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("bad.txt", b"good\nb\xff\n", "bad.txt is not UTF-8: byte 6 (line 2)"),
        ("empty.txt", b" \n\n", "empty.txt holds no text"),
        ("bad.jsonl", b'{"text": "a"}\n{"x": 1}', 'bad.jsonl, line 2: no "text"'),
        ("*b*<i>.txt", b"\0", "holds zero bytes"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_place(at, name, data, sentence):
    send(at, name, data)
    assert is_fine(at)
    assert sentence.lower() in said(at).lower()
    assert state.uploads().all() == ()
    assert not at.button("start_run").disabled  # on what was chosen before


def test_a_text_that_is_too_short_is_refused(artifacts, pool):
    pool.submit = slow
    at = open_page("new_run")
    del pool.submit
    send(at, "short.txt", b"one line\nand another")
    assert is_fine(at)
    assert "no document fell into" in said(at).lower()
    assert at.button("start_run").disabled


def test_a_text_of_ones_own_can_be_cut(artifacts, pool):
    at = open_page("new_run", new_model="microgpt", new_size="own settings")
    send(at, "mine.txt", TEXT.encode())
    at.number_input("new_documents").set_value(7).run()
    assert "7 documents" in plain(at)
    press(at)
    (job,) = state.store().jobs()
    assert job.work.source.documents == 7


def test_a_text_is_private_until_it_is_shared_and_can_be_deleted(at):
    send(at, "mine.txt", TEXT.encode())
    (upload,) = state.uploads().all()
    assert state.uploads().visible(OTHER) == ()
    at.toggle(f"shared_{upload.id}").set_value(True).run()
    assert [each.id for each in state.uploads().visible(OTHER)] == [upload.id]
    at.button(f"delete_{upload.id}").click().run()
    assert state.uploads().all() == ()
    assert is_fine(at)
    assert "microgpt on names" in plain(at)


def test_somebody_elses_text_is_not_offered_until_it_is_shared(artifacts, pool):
    upload = state.uploads().add_corpus(TEXT.encode(), "theirs.txt", OTHER)
    at = open_page("new_run", **GPT, new_corpus_list=upload.label)
    assert "is not here" in plain(at)
    assert upload.id not in str(at.selectbox("new_corpus_list").options)
    state.uploads().share(upload.id, OTHER, False)
    at = open_page("new_run", **GPT, new_corpus_list=upload.label)
    assert "microgpt on theirs.txt" in plain(at)
    assert f"delete_{upload.id}" not in keys(at, "button")


def test_the_instructor_deletes_what_others_have_brought(at, tmp_path):
    text = state.uploads().add_corpus(TEXT.encode(), "theirs.txt", OTHER)
    path = tmp_path / "mine.npz"
    checkpoint.save(tiny.char_checkpoint(), path)
    model = state.uploads().add_checkpoint(path.read_bytes(), "model.npz", OTHER)
    at.run()
    assert not keys(at, "button") & {f"delete_{text.id}", f"delete_{model.id}"}
    at.session_state["_instructor"] = True
    at.run()
    at.selectbox("new_corpus_list").set_value(text.id).run()
    for upload in (text, model):
        assert f"shared_{upload.id}" not in keys(at, "toggle")
        at.button(f"delete_{upload.id}").click().run()
        assert is_fine(at)
    assert state.uploads().all() == ()


@pytest.mark.parametrize("act", ["share", "delete"])
def test_what_the_uploads_refuse_is_a_sentence(at, monkeypatch, act):
    def refuse(*_, **__):
        raise UploadError("this upload is no longer there, or is somebody else's own")

    send(at, "mine.txt", TEXT.encode())
    (upload,) = state.uploads().all()
    monkeypatch.setattr(type(state.uploads()), act, refuse)
    if act == "share":
        at.toggle(f"shared_{upload.id}").set_value(True).run()
    else:
        at.button(f"delete_{upload.id}").click().run()
    assert is_fine(at)
    assert "This upload is no longer there" in said(at)
    at.run()
    assert "no longer there" not in said(at)


# -- the start


def test_a_double_click_is_one_job(at):
    press(at)
    at.switch_page("../pages/90_new_run.py").run()
    press(at)
    assert len(state.store().jobs()) == 1


def test_a_full_queue_is_a_sentence_and_nothing_is_lost(at, monkeypatch):
    def full(*_, **__):
        raise JobError("the queue is full: 60 jobs are waiting; try again when some are done")

    monkeypatch.setattr(type(state.store()), "submit", full)
    at.text_input("new_name").set_value("my name").run()
    press(at)
    assert is_fine(at)
    assert "The queue is full: 60 jobs" in said(at)
    assert at.text_input("new_name").value == "my name"


def test_the_queue_is_told_before_the_start(at):
    work = Work("train", TrainConfig.of("microgpt", steps=9), Source("names", documents=50))
    for seed in range(2):
        changed = replace(work, config=replace(work.config, seed=seed))
        state.store().submit(changed, OTHER)
    time.sleep(0.6)
    at.run()
    assert "0 running, 2 waiting; you have 0 open." in plain(at)


def test_the_link_holds_the_view_and_no_code_of_a_person(at):
    at.text_input("new_name").set_value("mine").run()
    link = next(code.value for code in at.code if "new_model=" in code.value)
    assert "new_name=mine" in link
    assert "new_size=full" in link
    assert at.session_state["_person"] not in link


def test_the_plan_can_be_downloaded(at, downloads):
    at.run()
    data = json.loads(downloads["new_run.json"]())
    assert Work.from_json(data["work"]).config == TrainConfig.of("microgpt")
    assert data["seconds"] > 0
    assert data["plans"][0]["facts"]["parameters"] == 4192


@pytest.mark.parametrize("kind", ["train", "benchmark", "experiment"])
def test_the_code_is_one_that_runs(kind, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    sizes = {"steps": 3, "d_model": 8, "hidden": 8, "context_length": 6, "batch": 4}
    source = Source("stories", documents=150)
    if kind == "experiment":
        tried = replace(PRESETS[1].experiment, steps=3)
        made = Work.of_experiment(tried, Source("names"))
    elif kind == "benchmark":
        made = Work("benchmark", TrainConfig.of("attention", **sizes), source, (1,))
    else:
        made = Work("train", TrainConfig.of("mlp", **sizes), source)
    template, values = new_run_told.code(made)
    exec(template.format(**{name: repr(value) for name, value in values.items()}), {})
    if kind == "train":
        assert checkpoint.load(tmp_path / "run.npz").model.kind == "mlp"
    else:
        assert capsys.readouterr().out


def test_the_line_for_a_terminal_asks_for_the_same():
    from app.jobs import __main__ as jobs_cli  # noqa: PLC0415

    config = TrainConfig.of("attention", steps=9, n_head=4, lr=0.01, positions=False, min_freq=3)
    work = Work("train", config, Source("stories", documents=150))
    words = shlex.split(new_run_told.command(work, "stories"))
    assert words[:4] == ["python", "-m", "app.jobs", "submit"]
    parsed = jobs_cli.build_parser().parse_args(words[3:])
    from wordlm_core import commands  # noqa: PLC0415

    assert commands.one_config(parsed) == config


# -- a checkpoint of one's own


def test_a_checkpoint_is_uploaded_told_linked_shared_and_deleted(at, tmp_path):
    path = tmp_path / "mine.npz"
    checkpoint.save(tiny.char_checkpoint(), path)
    file = ("mine.npz", path.read_bytes(), "application/octet-stream")
    at.file_uploader("new_checkpoint_file").set_value(file).run()
    press(at, "add_checkpoint")
    assert is_fine(at)
    (upload,) = state.uploads().all()
    assert upload.kind == "checkpoint"
    assert upload.private
    shown = plain(at)
    assert upload.label in shown
    assert "microgpt" in shown.split("kind")[1][:12]
    assert "parameters" not in shown.split("kind")[1]
    assert not state._small_slot(str(upload.path))._loaded  # nobody has asked for it
    at.toggle(f"look_into_{upload.id}").set_value(True).run()
    assert "stored steps" in plain(at)
    asked = [parse_qs(link.proto.query_string) for link in at.get("page_link")]
    assert {"checkpoint": [upload.label]} in asked
    at.toggle(f"shared_{upload.id}").set_value(True).run()
    assert state.uploads().visible(OTHER)
    at.button(f"delete_{upload.id}").click().run()
    assert state.uploads().all() == ()


def test_a_file_that_is_no_checkpoint_is_refused(at):
    file = ("bad.npz", b"no archive", "application/octet-stream")
    at.file_uploader("new_checkpoint_file").set_value(file).run()
    press(at, "add_checkpoint")
    assert is_fine(at)
    assert "File bad.npz: it is" in said(at)
    assert "npz file" in said(at)
    assert state.uploads().all() == ()


def test_a_file_that_is_too_large_to_open_is_not_sent():
    assert new_run_checkpoint._MEGABYTES * 2**20 <= checkpoint.MAX_BYTES


def test_the_lenses_that_are_linked_to_are_those_of_the_menu():
    on_text = tuple((page.file, page.title, page.icon) for page in PAGES if page.on_text)
    walk = {(page.file, page.title, page.icon) for page in PAGES if page.group == WALK}
    assert on_text == lenses.ON_TEXT
    assert set(lenses.OF_MICROGPT) < walk


def test_the_page_is_in_the_menu_before_the_runs():
    train = [page.address for page in PAGES if page.group == "Train"]
    assert train == ["new_run", "runs"]


def test_only_what_is_there_is_offered(artifacts, pool, monkeypatch):
    pool.busy = True
    at = open_page("new_run")
    there = [name for name, module in corpora.modules().items() if module.available()]
    assert sorted(at.selectbox("new_corpus").options) == sorted(there)


def test_a_start_that_was_clicked_with_a_number_just_typed_is_not_lost(artifacts, pool, runs):
    """The browser sends both at once; the new settings have not been checked by then."""
    at = open_page("new_run", new_model="microgpt", new_size="own settings")
    pool.busy = True
    at.number_input("new_microgpt_steps").set_value(77)
    at.button("start_run").click()
    at.run()
    assert "It starts as soon as the text is checked." in html(at)
    assert Store(runs).jobs() == ()
    pool.busy = False
    at.run()
    [job] = Store(runs).jobs()
    assert job.work.config.steps == 77
