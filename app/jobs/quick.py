"""A ready process for quick experiments: one JSON request a line in, JSON lines out.

Started by `pool` as `python -m app.jobs.quick PARENT`. A request is `{"task": "run",
"experiment": {...}, "documents": [...]}`, or the same with `look`, which only counts what is in
the list; `documents` are a person's own items. `{"task": "plan", "config": {...}, "source":
{...}, "path": null}` measures a training; `path` is the file of an own corpus. The answers are
`{"progress": [step, steps, loss]}`, at most ten a second (a plan has none), and then
`{"result": {...}}` or `{"error": "one sentence"}`. What is no mistake in the request goes to
stderr with its traceback and ends the process: the pool starts another.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

from app.jobs.mortal import die_with
from app.jobs.work import Source, Work, source_from_json
from wordlm_core import experiment, planning
from wordlm_core.corpora import Corpus
from wordlm_core.errors import ConfigError, WordLMError
from wordlm_core.experiment import Experiment
from wordlm_core.training import Progress, TrainConfig

NICE = 10
TASKS = ("run", "look", "plan")
_REPORT_SECONDS = 0.1


def main() -> None:
    """Answer requests until stdin closes."""
    die_with(int(sys.argv[1]))
    if hasattr(os, "nice"):
        os.nice(NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends us
    serve(sys.stdin, sys.stdout)


def serve(requests: TextIO, answers: TextIO) -> None:
    """Answer one request a line."""

    def say(record: dict[str, Any]) -> None:
        answers.write(json.dumps(record, allow_nan=False) + "\n")
        answers.flush()

    for line in requests:
        try:
            say({"result": _answer(line, say)})
        except WordLMError as error:
            say({"error": str(error)})


def _answer(line: str, say: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    said_at = time.monotonic()

    def report(progress: Progress) -> None:
        nonlocal said_at
        now = time.monotonic()
        if now - said_at >= _REPORT_SECONDS:
            said_at = now
            say({"progress": [progress.step, progress.steps, progress.train_loss]})

    request = _read(line)
    if request["task"] == "plan":
        return _plan(request)
    settings, documents = _experiment(request)
    own = settings.data == experiment.OWN
    corpus = experiment.own_list(documents) if own else _named(settings.data)
    if request["task"] == "look":
        return experiment.look(corpus, settings.context)
    return experiment.run(settings, corpus, report).to_json()


def _read(line: str) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError("the request is not JSON") from error
    if not isinstance(request, dict):
        raise ConfigError("the request is not a record")
    if request.get("task") not in TASKS:
        raise ConfigError(f"the task of a request is {' or '.join(TASKS)}")
    return request


def _experiment(request: dict[str, Any]) -> tuple[Experiment, list[str]]:
    documents = request.get("documents") or []
    if not (isinstance(documents, list) and all(isinstance(item, str) for item in documents)):
        raise ConfigError("the documents of a request are a list of texts")
    return Experiment.from_json(request.get("experiment")), documents


@lru_cache(maxsize=len(experiment.DATA))
def _named(data: str) -> Corpus:
    return experiment.corpus_of(Experiment(data=data), None)


def _plan(request: dict[str, Any]) -> dict[str, Any]:
    config = TrainConfig.from_json(request.get("config"))
    source = Work("train", config, source_from_json(request.get("source"))).source
    match source.is_own, request.get("path"):
        case True, str(path):
            corpus = _own(source, path, _changed(path))
        case False, None:
            corpus = _named_source(source)
        case _:
            raise ConfigError("the plan of a person's own corpus, and no other, names its file")
    return planning.plan(config, corpus).to_json()


@lru_cache(maxsize=3)
def _named_source(source: Source) -> Corpus:
    return source.load(Path())


@lru_cache(maxsize=1)
def _own(source: Source, path: str, changed: tuple[int, int] | None) -> Corpus:
    return source.load(Path(path))


def _changed(path: str) -> tuple[int, int] | None:
    """Return what tells one state of a file from the next."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None  # the reader says why
    return found.st_mtime_ns, found.st_size


if __name__ == "__main__":
    main()
