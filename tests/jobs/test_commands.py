"""`python -m app.jobs`: what it answers, what it refuses, and that the documents tell the same."""

import json
import re

import dask
import pytest
import yaml

from app import settings
from app.jobs import __main__ as commands
from app.jobs import engine
from app.jobs.store import Store
from tests.jobs.conftest import ROOT

SMALL = ("--corpus", "stories", "--documents", "200", "--context", "16")
TRAIN = ("submit", "--family", "microgpt", "--corpus", "names", "--steps", "20")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command on an empty folder; return its status, its JSON and what it complained of."""
    monkeypatch.setenv("WORDLM_RUNS", str(tmp_path / "runs"))
    settings.current.cache_clear()

    def call(*arguments: str):
        try:
            status = commands.main([*arguments, "--json"])
        except SystemExit as left:
            status = left.code
        out, err = capsys.readouterr()
        return status, json.loads(out) if out else None, err

    yield call
    settings.current.cache_clear()


def test_a_life_from_the_command_line(run, tmp_path):
    status, made, said = run(*TRAIN, "--name", "mine <b>", "--person", "ann")
    assert (status, made["state"], made["place"], made["name"]) == (0, "queued", 1, "mine <b>")
    assert "python -m app.jobs worker" in said
    assert made["facts"]["parameters"] == 4192
    status, listed, _ = run("list")
    assert [job["id"] for job in listed["jobs"]] == [made["id"]]
    assert listed["engine"] is False
    _, shown, _ = run("show", made["id"])
    assert shown["settings"]["steps"] == 20
    assert [each["state"] for each in shown["history"]] == ["queued"]
    assert run("cancel", made["id"])[1]["state"] == "cancelled"
    assert run("resume", made["id"])[1]["attempt"] == 2
    assert run("cancel", made["id"])[0] == 0
    assert run("delete", made["id"])[1] == {"deleted": made["id"]}
    assert run("list")[1]["jobs"] == []
    assert "ann" not in "".join(path.name for path in (tmp_path / "runs").rglob("*"))


def test_a_benchmark_and_an_experiment_are_queued(run):
    made = run("benchmark", *SMALL, "--steps", "10", "--seeds", "1,2")[1]
    assert (made["kind"], made["steps"]) == ("benchmark", 10 * 2 * 3)
    made = run("experiment", "--preset", commands.PRESETS[0].experiment.label)[1]
    assert made["kind"] == "experiment"


def test_a_file_of_ones_own_is_copied_into_the_run(run, tmp_path):
    own = tmp_path / "own.txt"
    own.write_bytes("\ufeffanna\r\notto\r\n".encode())
    made = run("submit", "--family", "microgpt", "--corpus", str(own), "--steps", "5")[1]
    own.unlink()
    folder = Store(tmp_path / "runs").folder(made["id"])
    lines = (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    assert texts == ["anna", "otto"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "20261201-000000-abcdef"),
        ("cancel", "../x"),
        ("submit", "--family", "rnn", "--corpus", "names"),
        ("submit", "--family", "mlp", "--corpus", "nowhere.txt"),
        ("submit", "--family", "mlp", "--corpus", "stories", "--steps", "0"),
        ("submit", "--family", "attention", "--corpus", "stories", "--width", "65", "--heads", "4"),
        ("submit", "--family", "mlp", "--corpus", "stories", "--lr", "nan"),
        ("benchmark", "--corpus", "stories", "--seeds", "1,x"),
        ("experiment", "--preset", "no such"),
        ("fly",),
    ],
)
def test_what_cannot_be_done_is_one_sentence(run, arguments):
    status, answer, said = run(*arguments)
    assert (status, answer) == (2, None)
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert run("list")[1]["jobs"] == []


def test_the_document_names_every_command():
    text = (ROOT / "docs/jobs.md").read_text(encoding="utf-8")
    parser = commands.build_parser()
    names = next(action.choices for action in parser._actions if action.choices)
    for name in names:
        assert re.search(rf"`{name}[ `]", text), name


def test_compose_starts_what_is_there_with_settings_that_exist():
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert set(services) == {"app", "scheduler", "worker"}
    known = {variable for variable, _, _ in settings.described()} | {"WORDLM_CACHE"}
    for service in services.values():
        for variable in service["environment"]:
            assert variable in known or variable.startswith("DASK_"), variable
    assert services["app"]["volumes"] == services["worker"]["volumes"]
    assert commands.build_parser().parse_args(services["worker"]["command"][3:]).workers == 1


def test_the_scheduler_of_several_machines_queues_like_our_own():
    """What the engine sets for its own cluster, compose and the document set for a scheduler."""
    text = (ROOT / "docs/jobs.md").read_text(encoding="utf-8")
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    asked = {k: v for k, v in services["scheduler"]["environment"].items() if "SCHEDULER__" in k}
    assert len(asked) == 2
    read = dask.config.collect_env(asked)
    for name in ("worker-saturation", "allowed-failures"):
        assert (
            dask.config.get(f"distributed.scheduler.{name}", config=read)
            == (engine._CONFIG[f"distributed.scheduler.{name}"])
        )
    for variable, value in asked.items():
        assert f"{variable}={value}" in text
