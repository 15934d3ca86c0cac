"""A folder of tiny checkpoints of every kind, for the app to open. Nothing is trained."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from streamlit.runtime.media_file_manager import MediaFileManager

from app import settings, state
from tests import tiny
from tests.ui.browsing import FLAGS, HARMLESS, describe, new_page, wait_for
from wordlm_core import checkpoint, models
from wordlm_core.__main__ import build_parser
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.text import SPECIALS
from wordlm_core.vocabulary import WordVocabulary

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("attention", "mlp", "multihead")
CONTEXT = 16
WORDS = (
    *("the", "cat", "saw", "dog", "and", "bird", "a", "red", "ball", "lily", "had", "tom"),
    *("took", ".", ",", "!", '"', "don't", "1", "2", "10", "3"),
)
VOCABULARY = WordVocabulary((*SPECIALS, *WORDS), dict.fromkeys(WORDS, 5) | {"<UNK>": 3})


def make(kind: str) -> Checkpoint:
    """Return a checkpoint with whole weights at three steps."""
    config = tiny.config_of(kind, vocab_size=len(VOCABULARY), context_length=CONTEXT)
    labels = ("step_0", "step_5", "selected_step_10")
    stored = {label: tiny.weights_of(config.shapes, seed) for seed, label in enumerate(labels)}
    model = models.family(tiny.CASES[kind][0]).build(config, stored[labels[-1]])
    trace = [{"step": step, "validation_loss": 4.0 / step} for step in (1, 5, 10)]
    metadata = {"seed": 11, "metrics": {"test_loss": 3.25}, "trace": trace}
    return Checkpoint.from_training(model, VOCABULARY, metadata, stored)


def printed_by(*arguments: str) -> Any:
    """Return the JSON document of a command, its defaults filled in by the real parser."""
    args = build_parser().parse_args(arguments)
    return json.loads(json.dumps(args.run(args)))


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """A folder named `artifacts` with one checkpoint of each kind."""
    made = tmp_path_factory.mktemp("lab") / "artifacts"
    for kind in KINDS:
        checkpoint.save(make(kind), made / f"{kind}_seed11.npz")
    checkpoint.save(tiny.char_checkpoint(), made / "microgpt_seed42.npz")
    return made


@pytest.fixture
def open_folder(monkeypatch):
    """Point the app of this process at a folder; what it read before is forgotten."""

    def point(where: Path) -> Path:
        monkeypatch.setenv("WORDLM_ARTIFACTS", str(where))
        settings.current.cache_clear()
        state._read_library.clear()
        return where

    yield point
    settings.current.cache_clear()


@pytest.fixture(autouse=True)
def runs(tmp_path_factory, monkeypatch) -> Generator[Path]:
    """An empty folder of jobs and uploads; nothing trains unless a test starts it."""
    made = tmp_path_factory.mktemp("runs")
    monkeypatch.setenv("WORDLM_RUNS", str(made))
    monkeypatch.setattr(state, "wake", lambda **_: None)
    settings.current.cache_clear()
    yield made
    settings.current.cache_clear()


@pytest.fixture
def artifacts(folder, open_folder) -> Path:
    """The tiny checkpoints, open in the app of this process."""
    return open_folder(folder)


@pytest.fixture(scope="session")
def served_runs(tmp_path_factory) -> Path:
    """The folder of jobs and uploads of `server`."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="session")
def server(folder, served_runs):
    """The address of a running app that opens the tiny checkpoints."""
    with serving(folder, served_runs) as url:
        yield url


@pytest.fixture(scope="session")
def real_server(tmp_path_factory):
    """The address of a running app that opens the committed checkpoints."""
    with serving(ROOT / "artifacts", tmp_path_factory.mktemp("served")) as url:
        yield url


@contextlib.contextmanager
def serving(artifacts: Path, runs: Path, **more: str) -> Generator[str]:
    """Run the app on a folder of checkpoints and one of runs; give its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    folders = {"WORDLM_ARTIFACTS": str(artifacts), "WORDLM_RUNS": str(runs)}
    environment = {**os.environ, **folders, "OMP_NUM_THREADS": "1", **more}
    command = [sys.executable, "-m", "streamlit", "run", "app/main.py"]
    options = ["--server.port", str(port), "--server.address", "127.0.0.1"]
    with subprocess.Popen(
        [*command, *options],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            wait_for(f"{url}/_stcore/health")
            yield url
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def browser():
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    path = next((path for path in found if path), None)
    assert path, "Chromium is needed: apt-get install chromium"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def page(browser, server):
    """A new session; at its end: no request left this host and the console is clean."""
    with watching(browser, server) as opened:
        yield opened


@contextlib.contextmanager
def watching(browser: Browser, server: str) -> Generator[Page]:
    """Open a session; at its end: no request left this host and the console is clean."""
    opened = new_page(browser)
    errors: list[str] = []
    requests: list[str] = []
    opened.on("request", lambda request: requests.append(request.url))
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda m: errors.append(describe(m)) if m.type == "error" else None)
    yield opened
    opened.context.close()
    hosts = {urlsplit(url).netloc for url in requests if url.startswith(("http", "ws"))}
    assert hosts == {urlsplit(server).netloc}
    assert [error for error in errors if not any(known in error for known in HARMLESS)] == []


def pytest_collection_modifyitems(items):
    """Put the browser last: one server and one browser serve all of its tests."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


@pytest.fixture
def downloads(monkeypatch):
    """What makes each download of the pages that a test opens, by file name."""
    makers = {}
    add = MediaFileManager.add_deferred

    def noted(self, make, *arguments, file_name, **more):
        makers[file_name] = make
        return add(self, make, *arguments, file_name=file_name, **more)

    monkeypatch.setattr(MediaFileManager, "add_deferred", noted)
    return makers
