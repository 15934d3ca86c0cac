"""The process that trains: `python -m app.jobs.child ROOT RUN PARENT`, started by `task`.

A fresh interpreter, one thread, low priority. It claims the run, goes on from its last
checkpoint, reports into its folder and writes down how it ended. It looks for the cancel mark
before every step.
"""

import json
import logging
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from app import settings
from app.jobs import bounds
from app.jobs.mortal import die_with, is_orphan
from app.jobs.progress import Writer
from app.jobs.record import Job, JobError
from app.jobs.store import CHECKPOINT, CORPUS, PROGRESS, RESULT, STATE, Store
from wordlm_core import benchmark, checkpoint, experiment, planning, trainers
from wordlm_core.benchmark import HEADS
from wordlm_core.corpora import Corpus
from wordlm_core.errors import WordLMError
from wordlm_core.files import replacing
from wordlm_core.training import NonFiniteLossError, Progress

NICE = 10
_log = logging.getLogger("wordlm.jobs")


class Stopped(Exception):  # noqa: N818 (it is no error)
    """The run was told to stop; the message says why, or is empty where somebody wanted it."""


def main(root: Path, run: str, parent: int) -> int:
    """Train one run to its end; return the exit status."""
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started the workers
    if hasattr(os, "nice"):
        os.nice(NICE)
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
    )
    store = Store(root, settings.current().limits)
    try:
        with store.claim(run):
            job = store.begin(run)
            if job is None:
                return 0
            _log.info("attempt %d of %s begins", job.attempt, run)
            ended = store.end(run, *_outcome(store, job, parent))
            _log.info("%s %s", ended.state, ended.reason)
            if ended.state == "finished":  # not before: a cancelled run may be resumed from it
                (store.folder(run) / STATE).unlink(missing_ok=True)
    except JobError as error:
        _log.info("%s", error)
    return 0


def _outcome(store: Store, job: Job, parent: int) -> tuple[str, str]:
    """Return the state in which the work ended, and why."""
    try:
        _Trained(store, job, parent).run()
    except Stopped as stopped:
        return ("failed", str(stopped)) if str(stopped) else ("cancelled", "")
    except WordLMError as error:
        return "failed", str(error)
    except MemoryError:
        return "failed", "the machine has not enough memory for it"
    except OSError as error:
        return "failed", f"its folder could not be written: {error.strerror or error}"
    except Exception:
        # Whatever else it is, it is a mistake of ours: the log has it, and the queue goes on.
        _log.exception("a mistake in the program")
        return "failed", "a mistake in the program ended it: see its log"
    return "finished", ""


class _Trained:
    """One attempt at a run."""

    def __init__(self, store: Store, job: Job, parent: int) -> None:
        self._store, self._job, self._parent = store, job, parent
        self._folder = store.folder(job.id)
        left = store.limits.minutes * 60 - job.running_seconds(of_this_attempt=True)
        self._until = time.monotonic() + left
        self._why = ""

    def run(self) -> None:
        """Do the work; raises what ends it early."""
        corpus = self._job.work.source.load(self._folder / CORPUS)
        self._writer = Writer(self._folder / PROGRESS)
        try:
            {
                "train": self._train,
                "benchmark": self._benchmark,
                "experiment": self._experiment,
            }[self._job.work.kind](corpus)
        finally:
            self._writer.close()

    def _train(self, corpus: Corpus) -> None:
        config, state, out = self._job.work.config, self._folder / STATE, self._folder / CHECKPOINT
        data = trainers.prepared(config, corpus)
        facts = planning.facts(config, data).to_json()
        bounds.require_facts(self._job.work, facts, self._store.limits)
        self._store.note(self._job.id, facts)
        training = trainers.build(config, data, state if state.exists() else None)

        def keep(*, latest: bool = True) -> None:
            checkpoint.save(training.checkpoint(test=False, latest=latest), out)

        try:
            ended = training.run(
                report=self._writer.report,
                should_stop=self._should_stop,
                save_to=state,
                kept=keep,
            )
        except NonFiniteLossError:
            keep(latest=False)  # those of now may be beyond all numbers
            raise
        if not ended:
            raise Stopped(self._why)
        checkpoint.save(training.checkpoint(), out)

    def _benchmark(self, corpus: Corpus) -> None:
        work = self._job.work
        order = [(kind, seed) for seed in work.seeds for kind in HEADS]

        def report(kind: str, seed: int, progress: Progress) -> None:
            before = order.index((kind, seed)) * work.config.steps
            through = replace(progress, step=before + progress.step, steps=work.steps)
            self._writer.report(through, f"{kind}, seed {seed}")

        try:
            benchmark.run(
                corpus,
                self._folder,
                seeds=work.seeds,
                base=work.config,
                report=report,
                should_stop=self._should_stop,
            )
        except KeyboardInterrupt as stopped:
            raise Stopped(self._why) from stopped

    def _experiment(self, corpus: Corpus) -> None:
        tried = self._job.work.experiment
        assert tried is not None

        def report(progress: Progress) -> None:
            if self._should_stop():
                raise Stopped(self._why)
            self._writer.report(progress)

        result = experiment.run(tried, corpus, report, quick=False)
        text = json.dumps(result.to_json(), allow_nan=False)
        with replacing(self._folder / RESULT, JobError) as file:
            file.write(text.encode())

    def _should_stop(self) -> bool:
        if is_orphan(self._parent):
            sys.exit("the process that started this one is gone")
        if time.monotonic() > self._until:
            self._why = f"it took more than {self._store.limits.minutes:,} minutes"
            return True
        return self._store.is_marked(self._job.id)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
