"""What a job is to do: a training, a benchmark or an experiment, as a record that crosses borders.

The same record stands in the run's folder, so everything here has a strict JSON form.
"""

from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from wordlm_core import corpora
from wordlm_core.benchmark import HEADS
from wordlm_core.corpora import Corpus
from wordlm_core.errors import ConfigError
from wordlm_core.experiment import SEEDS, Experiment
from wordlm_core.training import TrainConfig

Kind = Literal["train", "benchmark", "experiment"]
OWN = "own"
_MAX_SEEDS = 10


@dataclass(frozen=True)
class Source:
    """A corpus to load.

    Attributes:
        corpus: A name of `corpora.modules()`, or `own`: documents in the run's folder.
        profile: A size that the named corpus offers.
        documents: Only the first so many.
        label: What people call an own corpus: its file's name.
        licence: Of an own corpus.
        sha256: Of an own corpus's documents; the store fills it in.
    """

    corpus: str
    profile: str | None = None
    documents: int | None = None
    label: str = ""
    licence: str = "unknown"
    sha256: str = ""

    @property
    def is_own(self) -> bool:
        """Return whether the documents are a person's own."""
        return self.corpus == OWN

    def load(self, own: Path) -> Corpus:
        """Return the corpus; `own` is where a person's own documents are kept.

        Raises:
            CorpusError: It is not there, not readable or empty.
        """
        if not self.is_own:
            return corpora.load(self.corpus, profile=self.profile, documents=self.documents)
        read = corpora.load(str(own), profile=self.profile, documents=self.documents)
        name = self.label or "own text"
        return replace(read, name=name, licence=self.licence, source=f"uploaded as {name}")


@dataclass(frozen=True)
class Work:
    """What is to be done.

    Attributes:
        kind: One of `Kind`.
        config: The settings of a training; what the kinds of a benchmark share.
        source: What it reads.
        seeds: Of a benchmark.
        experiment: Of an experiment.
    """

    kind: Kind
    config: TrainConfig
    source: Source
    seeds: tuple[int, ...] = field(default=())
    experiment: Experiment | None = None

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if self.kind not in get_args(Kind):
            raise ConfigError(f"a job is one of {', '.join(get_args(Kind))}")
        if self.source.corpus != OWN and self.source.corpus not in corpora.modules():
            raise ConfigError(f"there is no corpus {self.source.corpus[:40]!r}")
        if self.kind == "benchmark" and not 1 <= len(set(self.seeds)) == len(self.seeds):
            raise ConfigError("a benchmark needs at least one seed, each named once")
        if len(self.seeds) > _MAX_SEEDS:
            raise ConfigError(f"a benchmark takes {_MAX_SEEDS} seeds at most")
        if (self.kind == "experiment") != (self.experiment is not None):
            raise ConfigError("an experiment, and nothing else, has an experiment's settings")

    @classmethod
    def of_experiment(cls, tried: Experiment, source: Source) -> "Work":
        """Return the work of an experiment."""
        return cls("experiment", tried.training, source, experiment=tried)

    @property
    def steps(self) -> int:
        """Return how many steps there are in all."""
        if self.kind == "benchmark":
            return self.config.steps * len(self.seeds) * len(HEADS)
        if self.kind == "experiment":
            return self.config.steps * SEEDS
        return self.config.steps

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return {
            "kind": self.kind,
            "config": self.config.to_json(),
            "source": asdict(self.source),
            "seeds": list(self.seeds),
            "experiment": None if self.experiment is None else self.experiment.to_json(),
        }

    @classmethod
    def from_json(cls, data: Any) -> "Work":
        """Read a record.

        Raises:
            ConfigError: It is not one that `to_json` can have written.
        """
        match data:
            case {
                "kind": str() as kind,
                "config": config,
                "source": dict() as source,
                "seeds": list() as seeds,
                "experiment": tried,
            } if all(type(seed) is int for seed in seeds):
                return cls(
                    kind,  # pyright: ignore[reportArgumentType] (checked above)
                    TrainConfig.from_json(config),
                    source_from_json(source),
                    tuple(seeds),
                    None if tried is None else Experiment.from_json(tried),
                )
            case _:
                raise ConfigError("this is not the record of a job")


def source_from_json(data: Any) -> Source:
    """Read the record of a corpus.

    Raises:
        ConfigError: It is not one.
    """
    known = {entry.name for entry in fields(Source)}
    if not isinstance(data, dict) or not set(data) <= known or "corpus" not in data:
        raise ConfigError("the corpus of a job is a record that names it")
    texts = [data["corpus"], data.get("label", ""), data.get("licence", ""), data.get("sha256", "")]
    profile, documents = data.get("profile"), data.get("documents")
    numbers = documents is None or (type(documents) is int and documents > 0)
    if not (all(isinstance(text, str) for text in texts) and numbers):
        raise ConfigError("the record of a job's corpus holds values of other types")
    if profile is not None:
        corpora.profile_of(str(profile))
    return Source(**data)
