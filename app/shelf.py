"""What a person can open: the artifacts, their own runs and uploads, and what a link names.

Of runs and uploads only records are read until one is chosen: what a picker has to know stands
in them, and a checkpoint is loaded when somebody looks at it.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app import settings, state
from app.jobs.record import Job, JobError, owner_of
from wordlm_core.benchmark import HEADS
from wordlm_core.checkpoint import Checkpoint


@dataclass(frozen=True)
class Entry:
    """One checkpoint of a picker.

    Attributes:
        label: What people and the address call it.
        family: `mlp`, `attention` or `microgpt`.
        tokenizer: `word` or `char`.
        heads: Attention heads; 0 where it has no attention.
        width: Of its embeddings.
        source: The checkpoint where it is open for everybody, or else its file.
    """

    label: str
    family: str
    tokenizer: str
    heads: int
    width: int
    source: Checkpoint | Path

    def open(self) -> Checkpoint:
        """Return the checkpoint; of a run that still trains, the latest.

        Raises:
            CheckpointError: It is gone, or not readable.
        """
        if isinstance(self.source, Checkpoint):
            return self.source
        return state.opened(self.source, self.label)


def entries(key: str, family: str | None = None) -> list[Entry]:
    """Return what a picker offers: artifacts first, then runs and uploads, the oldest first.

    Args:
        key: The picker's: a run of somebody else is offered where its link or the last page
            names it.
        family: Offer only this family's.
    """
    found = [_of_artifact(each) for each in state.library().checkpoints.values()]
    taken = {entry.label for entry in found}
    with suppress(JobError):  # a folder that cannot be read: Runs says so, the artifacts are here
        if state.store().jobs() or state.uploads().all():
            people = list(_of_people(state.named(key)))
            found += [entry for entry in people if entry.label not in taken]
    return [entry for entry in found if family in (None, entry.family)]


def path_of(of: Checkpoint) -> str:
    """Return where the lines of "Show the code" find a checkpoint, from the repository."""
    asked = settings.current()
    if of.path is not None and of.path.is_relative_to(asked.runs_folder):
        return f"{asked.runs.name}/{of.path.relative_to(asked.runs_folder).as_posix()}"
    return f"{asked.artifacts.name}/{of.name}.npz"


# -- parts


def _of_people(named: frozenset[str]) -> Iterator[Entry]:
    person, instructor = state.person(), state.is_instructor()
    me, store = owner_of(person), state.store()
    for job in reversed(store.visible(person, instructor=instructor)):
        if job.owner == me or any(name.startswith(job.label) for name in named):
            for label, path in store.checkpoints(job):
                yield _of_run(job, label, path)
    for each in state.uploads().visible(person, instructor):
        if each.kind == "checkpoint" and (each.owner == me or each.label in named):
            facts = each.facts
            yield Entry(
                each.label, facts.family, facts.tokenizer, facts.heads, facts.width, each.path
            )


def _of_run(job: Job, label: str, path: Path) -> Entry:
    config = job.work.config
    family, heads = config.family, config.n_head
    if job.work.kind == "benchmark":
        heads = HEADS.get(path.name.partition("_seed")[0], heads)
        family = "attention" if heads else "mlp"
    return Entry(
        label, family, config.tokens, 0 if family == "mlp" else heads, config.d_model, path
    )


def _of_artifact(of: Checkpoint) -> Entry:
    model = of.model
    return Entry(
        of.name,
        model.family,
        of.vocabulary.tokenizer,
        model.n_head,
        model.config.d_model,
        of,
    )
