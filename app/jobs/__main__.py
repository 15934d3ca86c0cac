"""The command line of the queue: `python -m app.jobs COMMAND`.

It reads and writes the run folders, like the pages do. What it submits runs as soon as an app
or a `worker` looks after the folder. Who can write that folder may cancel anybody's run.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is imported

from app import settings
from app.jobs import engine, workers
from app.jobs.progress import Curve
from app.jobs.record import WAITING, Job
from app.jobs.store import Store
from app.jobs.work import OWN, Source, Work
from wordlm_core import commands, console, corpora, options
from wordlm_core.errors import ConfigError
from wordlm_core.experiment import DATA, PRESETS

Answer = dict[str, Any]
_LOOK_SECONDS = 0.5
# Not in the table of a terminal, which is to fit it.
_LONG = (
    *("history", "facts", "settings", "kind", "reason", "attempt", "interruptions"),
    *("tokens_per_second", "created", "started", "ended"),
)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; each sets `run` to its function."""
    parser = console.Parser(prog="python -m app.jobs", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True, parser_class=console.Parser)

    def add(
        name: str,
        run: Callable[[argparse.Namespace], Answer],
        *parts: Callable[[argparse.ArgumentParser], None],
    ) -> None:
        text = run.__doc__ or ""
        sub = subparsers.add_parser(name, help=text, description=text)
        for part in parts:
            part(sub)
        sub.add_argument("--json", action="store_true", help="one JSON document on stdout")
        sub.set_defaults(run=run)

    one = (options.corpus, options.sizes, options.one_training, _named)
    add("submit", submit, *one)
    add("benchmark", submit_benchmark, options.corpus, options.sizes, _seeds, _named)
    add("experiment", submit_experiment, _preset, _named)
    add("list", list_jobs, _all)
    add("show", show, _run, _follow)
    add("cancel", cancel, _run)
    add("resume", resume, _run)
    add("delete", delete, _run)
    add("worker", work, _workers)
    return parser


def submit(args: argparse.Namespace) -> Answer:
    """Queue one training; the options are those of `wordlm_core train`."""
    return _submit(args, Work("train", commands.one_config(args), _source(args)))


def submit_benchmark(args: argparse.Namespace) -> Answer:
    """Queue the training of every kind of word model over several seeds."""
    try:
        seeds = tuple(int(seed) for seed in args.seeds.split(","))
    except ValueError as error:
        raise ConfigError(f"--seeds takes whole numbers with commas, not {args.seeds!r}") from error
    base = commands.shared_config(args, "attention")
    return _submit(args, Work("benchmark", base, _source(args), seeds))


def submit_experiment(args: argparse.Namespace) -> Answer:
    """Queue a microgpt experiment: a preset, with three seeds."""
    known = {preset.experiment.label: preset.experiment for preset in PRESETS}
    if args.preset not in known:
        raise ConfigError(f"there is no preset {args.preset[:40]!r}; there are {', '.join(known)}")
    tried = known[args.preset]
    if tried.data not in DATA[:3]:
        raise ConfigError("that preset reads a list of one's own: start it from the page")
    return _submit(args, Work.of_experiment(tried, Source(tried.data, profile="classroom")))


def list_jobs(args: argparse.Namespace) -> Answer:
    """List the runs, newest first: those that are open and those that have ended."""
    store = _store()
    jobs = store.jobs() if args.all else store.jobs()[:50]
    places = {job.id: place for place, job in enumerate(store.queue(), 1)}
    listed = [_told(store, job) | {"place": places.get(job.id, 0)} for job in jobs]
    left_out = ("history", "facts", "settings") if args.json else _LONG
    for record in listed:
        for name in left_out:
            del record[name]
    return {"jobs": listed, "engine": engine.is_working(store.root)}


def show(args: argparse.Namespace) -> Answer:
    """Show one run: its state, progress and history."""
    store = _store()
    while args.follow and store.job(args.id).is_open:
        curve = store.progress(args.id)
        _say(f"{store.job(args.id).state}  step {curve.step:,} of {curve.steps:,}  {_loss(curve)}")
        time.sleep(_LOOK_SECONDS)
    job = store.job(args.id)
    return _told(store, job) | {
        "place": store.place(job.id),
        "checkpoints": [str(path) for _, path in store.checkpoints(job)],
        "log": store.log(job.id).splitlines()[-20:],
    }


def cancel(args: argparse.Namespace) -> Answer:
    """End a run, or take it out of the queue."""
    store = _store()
    return _told(store, store.cancel(args.id, "", instructor=True))


def resume(args: argparse.Namespace) -> Answer:
    """Queue a cancelled or failed run again, from its last checkpoint."""
    store = _store()
    return _told(store, store.resume(args.id, "", instructor=True))


def delete(args: argparse.Namespace) -> Answer:
    """Remove a run that has come to its end, with its files."""
    _store().delete(args.id, "", instructor=True)
    return {"deleted": args.id}


def work(args: argparse.Namespace) -> Answer:
    """Work on the queue until stopped; with WORDLM_SCHEDULER, join the machines that share it."""
    return workers.work(args.workers)


# -- options


def _run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="RUN", help="as `list` shows it")


def _all(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="more than the newest 50")


def _follow(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--follow", action="store_true", help="until it ends, progress on stderr")


def _seeds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", default="11,29,47")


def _preset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", required=True, help="as the page Experiments names it")


def _workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=options.count, help="default: WORDLM_JOB_WORKERS")


def _named(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default="", help="a label for people")
    parser.add_argument("--private", action="store_true", help="others do not open it")
    parser.add_argument(
        "--person",
        default=f"terminal of user {os.getuid() if hasattr(os, 'getuid') else ''}",
        help="whose run it is, as in the link of `My runs on another device`; one runs at a time",
    )


# -- parts


def _store() -> Store:
    ours = settings.current()
    return Store(ours.runs_folder, ours.limits)


def _source(args: argparse.Namespace) -> Source:
    if args.profile is not None:
        corpora.profile_of(args.profile)
    if args.corpus in corpora.modules():
        return Source(args.corpus, args.profile, args.documents)
    label = Path(args.corpus).name
    return Source(OWN, args.profile, args.documents, label, args.licence or "unknown")


def _submit(args: argparse.Namespace, wanted: Work) -> Answer:
    store = _store()
    documents = None
    if wanted.source.is_own:
        # Read here: a worker on another machine does not see this file.
        documents = corpora.load(args.corpus).documents
    job = store.submit(
        wanted, args.person, name=args.name, private=args.private, documents=documents
    )
    if not engine.is_working(store.root):
        _say("queued; it runs as soon as the app is open, or python -m app.jobs worker")
    return _told(store, job) | {"place": store.place(job.id)}


def _told(store: Store, job: Job) -> Answer:
    curve = store.progress(job.id)
    best = min((loss for _, loss in curve.validation), default=None)
    return {
        "id": job.id,
        "name": job.name,
        "kind": job.work.kind,
        "family": job.work.config.family,
        "state": job.state,
        "reason": job.reason,
        "attempt": job.attempt,
        "interruptions": job.interruptions,
        "step": curve.step,
        "steps": curve.steps,
        "train_loss": _last_loss(curve),
        "validation_loss": best,
        "tokens_per_second": curve.tokens_per_second,
        "remaining_seconds": curve.remaining if job.state not in WAITING else None,
        "created": job.created,
        "started": job.started,
        "ended": job.ended,
        "facts": job.facts,
        "settings": job.work.config.to_json(),
        "history": [
            {"state": each.state, "at": each.at, "reason": each.reason} for each in job.history
        ],
    }


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _last_loss(curve: Curve) -> float | None:
    known = curve.losses[curve.losses == curve.losses]  # NaN is not equal to itself
    return float(known[-1]) if len(known) else None


def _loss(curve: Curve) -> str:
    last = _last_loss(curve)
    return "" if last is None else f"train loss {last:.3f} nats"


def main(argv: list[str] | None = None) -> int:
    """Run one command and return the exit status."""
    return console.run(build_parser(), argv)


if __name__ == "__main__":
    raise SystemExit(console.start(main))
