"""TinyStories against a real HTTP server on this machine that misbehaves on demand."""

import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from wordlm_core import corpora
from wordlm_core.corpora import reading, tinystories
from wordlm_core.corpora.tinystories import REVISION, Patience
from wordlm_core.errors import ConfigError, CorpusError

QUICK = Patience(attempts=3, timeout=0.3, pause=0.01, longest_pause=0.05)

# What the server does with one request: a step is called with the handler and its query.
Step = Callable[["Handler", dict[str, str]], None]


def text(index: int) -> str:
    return f"Story {index} of the caf\u00e9.\n\u201cThe end,\u201d it said."


def page(query: dict[str, str]) -> dict[str, Any]:
    offset, length = int(query["offset"]), int(query["length"])
    rows = [
        {"row_idx": i, "row": {"text": text(i)}, "truncated_cells": []}
        for i in range(offset, offset + length)
    ]
    return {"rows": rows, "num_rows_total": 2_119_719, "partial": False}


class Handler(BaseHTTPRequestHandler):
    server: "Library"

    def do_GET(self) -> None:
        query = {k: v[0] for k, v in parse_qs(urlsplit(self.path).query).items()}
        self.server.asked.append(query)
        step = self.server.steps.pop(0) if self.server.steps else good
        step(self, query)

    def answer(self, body: bytes, code: int = 200, **headers: str) -> None:
        self.send_response(code)
        for name, value in (
            {"X_Revision": REVISION, "Content_Length": len(body)} | headers
        ).items():
            if value != "":
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: pytest shows what matters."""


class Library(ThreadingHTTPServer):
    """The server: takes its steps from a list, then behaves; notes what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.steps: list[Step] = []
        self.asked: list[dict[str, str]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/rows"

    def load(self, documents: int, patience: Patience = QUICK) -> tuple[str, ...]:
        return tinystories.load(documents=documents, url=self.url, patience=patience).documents

    def refuses(self, step: Step, documents: int = 5) -> str:
        self.steps = [step]
        with pytest.raises(CorpusError) as caught:
            self.load(documents)
        assert "\n" not in str(caught.value)
        return str(caught.value)


def good(handler: Handler, query: dict[str, str]) -> None:
    handler.answer(json.dumps(page(query)).encode())


def fails(code: int, **headers: str) -> Step:
    return lambda handler, query: handler.answer(b"no", code, **headers)


def changed(change: Callable[[dict[str, Any]], object]) -> Step:
    def step(handler: Handler, query: dict[str, str]) -> None:
        data = page(query)
        change(data)
        handler.answer(json.dumps(data).encode())

    return step


def cut_off(handler: Handler, query: dict[str, str]) -> None:
    body = json.dumps(page(query)).encode()
    handler.answer(body[:-20], Content_Length=str(len(body)))


def hangs_up(handler: Handler, query: dict[str, str]) -> None:
    handler.close_connection = True


def slow(handler: Handler, query: dict[str, str]) -> None:
    time.sleep(0.6)
    handler.close_connection = True


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORDLM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache" / f"tinystories-{REVISION[:8]}.jsonl"


@pytest.fixture
def library() -> Iterator[Library]:
    server = Library()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_pages_are_joined_in_order(library: Library) -> None:
    corpus = tinystories.load(documents=250, url=library.url, patience=QUICK)
    assert corpus.documents == tuple(text(i) for i in range(250))
    assert [(q["offset"], q["length"]) for q in library.asked] == [
        ("0", "100"),
        ("100", "100"),
        ("200", "50"),
    ]
    first = library.asked[0]
    assert first["dataset"] == "roneneldan/TinyStories"
    assert (first["config"], first["split"]) == ("default", "train")
    assert corpus.licence == "CDLA-Sharing-1.0"
    assert REVISION[:8] in corpus.source


def test_profiles_give_the_numbers(library: Library) -> None:
    corpus = tinystories.load(profile="smoke", url=library.url, patience=QUICK)
    assert len(corpus.documents) == 480
    assert tinystories.INFO.size(None, None) == 3000
    assert tinystories.INFO.size("full", 10**9) == 2_119_719
    with pytest.raises(ConfigError, match=r"no profile 'huge'.*smoke, classroom, full"):
        tinystories.load(profile="huge", url=library.url)


def test_the_address_comes_from_the_environment(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORDLM_TINYSTORIES_URL", library.url)
    assert corpora.load("tinystories", documents=3).documents == tuple(map(text, range(3)))
    monkeypatch.setenv("WORDLM_TINYSTORIES_URL", "file:///etc/passwd")
    with pytest.raises(ConfigError, match=r"must be http\(s\)"):
        corpora.load("tinystories", documents=4)


def test_progress_goes_to_stderr(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    library.steps = [fails(500)]  # the bar waits a moment before it appears
    library.load(3, Patience(attempts=2, pause=0.6, timeout=1.0))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "TinyStories" in captured.err
    assert "3/3" in captured.err


# -- the cache


def test_a_second_load_asks_nothing(library: Library, cache: Path) -> None:
    first = library.load(120)
    library.asked.clear()
    assert library.load(120) == first
    assert library.load(7) == first[:7]
    assert library.asked == []
    noted = cache.with_name(cache.name + ".sha256").read_text()
    assert noted == f"{hashlib.sha256(cache.read_bytes()).hexdigest()}  {cache.name}\n"
    assert reading.read_path(cache) == list(first)  # a corpus file like any other
    assert sorted(p.name for p in cache.parent.iterdir()) == [cache.name, cache.name + ".sha256"]


def test_more_stories_go_on_where_the_cache_ends(library: Library) -> None:
    library.load(130)
    library.asked.clear()
    assert library.load(300) == tuple(map(text, range(300)))
    assert [q["offset"] for q in library.asked] == ["130", "230"]


def test_an_interrupted_fetch_is_kept(library: Library) -> None:
    library.steps = [good, good, fails(404)]
    with pytest.raises(CorpusError, match="404"):
        library.load(300)
    library.asked.clear()
    assert library.load(300) == tuple(map(text, range(300)))
    assert [q["offset"] for q in library.asked] == ["200"]


@pytest.mark.parametrize(
    "change", [lambda b: b[:-1], lambda b: b + b'{"text": "x"}\n', bytes.upper]
)
def test_a_changed_cache_is_refused(
    library: Library, cache: Path, change: Callable[[bytes], bytes]
) -> None:
    library.load(5)
    cache.write_bytes(change(cache.read_bytes()))
    with pytest.raises(CorpusError, match=r"checksum differs.*delete it") as caught:
        library.load(5)
    assert str(cache) in str(caught.value)
    assert not tinystories.available()
    cache.unlink()
    assert library.load(5) == tuple(map(text, range(5)))


def test_a_cache_without_its_checksum_was_never_finished(library: Library, cache: Path) -> None:
    library.load(5)
    cache.with_name(cache.name + ".sha256").unlink()
    assert library.load(5) == tuple(map(text, range(5)))
    assert len(library.asked) == 2


def test_available_means_the_default_number_is_there(library: Library) -> None:
    assert not tinystories.available()
    library.load(480)
    assert not tinystories.available()
    library.load(3000)
    assert tinystories.available()
    assert len(tinystories.load(url="http://127.0.0.1:1/rows").documents) == 3000


def test_a_cache_that_cannot_be_kept_is_said(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("WORDLM_CACHE", str(tmp_path / "file"))
    with pytest.raises(CorpusError, match=r"cannot be read: Not a directory"):
        library.load(5)
    monkeypatch.setenv("WORDLM_CACHE", "/proc/none/such")
    with pytest.raises(CorpusError, match=r"jsonl could not be written: No such file"):
        library.load(5)


# -- a server that misbehaves


@pytest.mark.parametrize("revision", ["0" * 40, REVISION[:8], REVISION.upper(), ""])
def test_another_revision_is_refused(library: Library, revision: str, cache: Path) -> None:
    step: Step = lambda h, q: h.answer(json.dumps(page(q)).encode(), X_Revision=revision)  # noqa: E731
    message = library.refuses(step)
    assert REVISION in message
    assert "--corpus stories" in message
    assert len(library.asked) == 1
    assert not cache.exists()


@pytest.mark.parametrize(
    "step", [fails(500), fails(502), fails(503), fails(504), fails(429), cut_off, hangs_up, slow]
)
def test_a_passing_failure_is_tried_again(library: Library, step: Step) -> None:
    library.steps = [step, step]
    assert library.load(5) == tuple(map(text, range(5)))
    assert len(library.asked) == 3


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (fails(500), "the server answers 500, 3 times"),
        (fails(429, Retry_After="86400"), "the server answers 429, 3 times"),
        (cut_off, "the answer was cut off, 3 times"),
        (slow, "no answer in time, 3 times"),
    ],
)
def test_a_lasting_failure_ends(library: Library, step: Step, reason: str) -> None:
    library.steps = [step] * 3
    started = time.monotonic()
    with pytest.raises(CorpusError, match="could not be fetched") as caught:
        library.load(5)
    assert reason in str(caught.value)
    assert len(library.asked) == 3
    assert time.monotonic() - started < 3


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410])
def test_a_refusal_is_not_tried_again(library: Library, code: int) -> None:
    message = library.refuses(fails(code))
    assert f"the server answers {code}" in message
    assert "local .jsonl file or folder" in message
    assert len(library.asked) == 1


def test_retry_after_is_honoured_up_to_a_limit(library: Library) -> None:
    for asked_for, waited in (("1", 1.0), ("86400", 0.2)):
        library.steps = [fails(429, Retry_After=asked_for)]
        started = time.monotonic()
        limit = 5.0 if asked_for == "1" else 0.2
        library.load(5 * len(library.asked) + 5, Patience(pause=0.0, longest_pause=limit))
        assert waited <= time.monotonic() - started < waited + 1


def test_a_retry_after_that_is_no_number_is_ignored(library: Library) -> None:
    library.steps = [fails(503, Retry_After="Wed, 21 Oct 2099 07:28:00 GMT")]
    assert len(library.load(5)) == 5


def _swap(data: dict[str, Any]) -> None:
    data["rows"][1], data["rows"][2] = data["rows"][2], data["rows"][1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_swap, "row 1 of TinyStories is not in its place"),
        (lambda d: d["rows"][3].update(row_idx=4), "row 3 of TinyStories is not in its place"),
        (lambda d: d["rows"][0].pop("row_idx"), "row 0 of TinyStories is not in its place"),
        (lambda d: d["rows"].__setitem__(2, "x"), "row 2 of TinyStories is not in its place"),
        (lambda d: d["rows"].pop(), "gave 4 rows of TinyStories from 0 on, not 5"),
        (lambda d: d["rows"].append(d["rows"][0]), "gave 6 rows"),
        (lambda d: d["rows"][1]["row"].pop("text"), 'row 1 of TinyStories: no "text"'),
        (lambda d: d["rows"][1]["row"].update(text=7), 'row 1 of TinyStories: no "text"'),
        (lambda d: d["rows"][1].update(row=None), 'row 1 of TinyStories: no "text"'),
        (lambda d: d["rows"][1]["row"].update(text="\ud800"), "half a surrogate pair"),
        (lambda d: d["rows"][4].update(truncated_cells=["text"]), "row 4 .* cut short"),
        (lambda d: d.pop("rows"), "has no rows"),
        (lambda d: d.update(rows={}), "has no rows"),
        (lambda d: d.update(rows=None), "has no rows"),
    ],
)
def test_wrong_rows_are_refused(
    library: Library, cache: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    library.steps = [changed(change)]
    with pytest.raises(CorpusError, match=reason):
        library.load(5)
    assert len(library.asked) == 1
    assert not cache.exists()


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"rows": [', b"\xff\xfe", b"[" * 100_000])
def test_no_json_is_refused(library: Library, body: bytes) -> None:
    assert "not JSON" in library.refuses(lambda handler, query: handler.answer(body))


@pytest.mark.parametrize("body", [b"[]", b"null", b"3", b'"rows"'])
def test_other_json_is_refused(library: Library, body: bytes) -> None:
    assert "has no rows" in library.refuses(lambda handler, query: handler.answer(body))


def test_an_endless_answer_is_refused(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tinystories, "MAX_PAGE_BYTES", 1000)
    assert "larger than 1,000 bytes" in library.refuses(good, documents=50)


def test_no_network_names_the_other_ways() -> None:
    with socket.socket() as reserved:  # bound, not listening: nothing can answer there
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}/rows"
        started = time.monotonic()
        with pytest.raises(CorpusError) as caught:
            tinystories.load(documents=5, url=url)
        assert time.monotonic() - started < 1
    message = str(caught.value)
    assert "Connection refused" in message
    assert "local .jsonl file or folder" in message
    assert "--corpus stories" in message
