"""A ready process for quick experiments: one JSON request a line in, JSON lines out.

Started by `pool` as `python -m app.jobs.quick PARENT`. A request is `{"task": "run",
"experiment": {...}, "documents": [...]}`, or the same with `look`, which only counts what is in
the list; `documents` are a person's own items. The answers are `{"progress": [step, steps,
loss]}`, at most ten a second, and then `{"result": {...}}` or `{"error": "one sentence"}`. What
is no mistake in the request goes to stderr with its traceback and ends the process: the pool
starts another.
"""

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TextIO

from wordlm_core import experiment
from wordlm_core.corpora import Corpus
from wordlm_core.errors import ConfigError, WordLMError
from wordlm_core.experiment import Experiment
from wordlm_core.training import Progress

NICE = 10
TASKS = ("run", "look")
_REPORT_SECONDS = 0.1
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Answer requests until stdin closes."""
    _die_with(int(sys.argv[1]))
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

    task, settings, documents = _read(line)
    own = settings.data == experiment.OWN
    corpus = experiment.own_list(documents) if own else _named(settings.data)
    if task == "look":
        return experiment.look(corpus, settings.context)
    return experiment.run(settings, corpus, report).to_json()


def _read(line: str) -> tuple[str, Experiment, list[str]]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError("the request is not JSON") from error
    if not isinstance(request, dict):
        raise ConfigError("the request is not a record")
    task = request.get("task")
    if task not in TASKS:
        raise ConfigError(f"the task of a request is {' or '.join(TASKS)}")
    documents = request.get("documents") or []
    if not (isinstance(documents, list) and all(isinstance(item, str) for item in documents)):
        raise ConfigError("the documents of a request are a list of texts")
    return task, Experiment.from_json(request.get("experiment")), documents


@lru_cache(maxsize=len(experiment.DATA))
def _named(data: str) -> Corpus:
    return experiment.corpus_of(Experiment(data=data), None)


def _die_with(parent: int) -> None:
    """End when the parent does, also in the middle of a run.

    Elsewhere than on Linux the closed stdin and stdout do it, at the next request or report.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the line above
            sys.exit()


if __name__ == "__main__":
    main()
