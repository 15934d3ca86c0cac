"""Settings from the environment, read once and validated.

A field's metadata names its variable and says in one line what it does; the README's table
of settings is made from, and tested against, the same lines.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from app.jobs.bounds import Limits
from wordlm_core.errors import ConfigError

ROOT = Path(__file__).resolve().parents[1]
_SCHEDULER = re.compile(r"(tcp|tls)://[^\s/:]+:[0-9]{1,5}")
# As `python -m app.access` prints it; the bounds keep one try below a second and 256 MB.
PASSCODE = re.compile(r"scrypt\$(16384|32768|65536|131072)\$8\$1\$[0-9a-f]{32}\$[0-9a-f]{64}")


def _named(variable: str, meaning: str) -> dict[str, Any]:
    return {"variable": variable, "meaning": meaning}


def _number(variable: str, meaning: str, least: int, most: int) -> dict[str, Any]:
    """Describe a whole number with its range, which its meaning ends with."""
    said = f"{meaning}, {least:,} to {most:,}"
    return {"variable": variable, "meaning": said, "bounds": (least, most)}


@dataclass(frozen=True)
class Settings:
    """How this installation runs."""

    artifacts: Path = field(
        default=Path("artifacts"),
        metadata=_named(
            "WORDLM_ARTIFACTS",
            "Folder with checkpoints and benchmark.json, relative to the repository",
        ),
    )
    max_text: int = field(
        default=20_000,
        metadata=_number("WORDLM_MAX_TEXT", "Longest probe sentence in characters", 100, 1_000_000),
    )
    quick_workers: int = field(
        default=2,
        metadata=_number(
            "WORDLM_QUICK_WORKERS", "Processes for quick experiments, shared by all sessions", 1, 8
        ),
    )
    runs: Path = field(
        default=Path("runs"),
        metadata=_named("WORDLM_RUNS", "Folder of jobs and uploads, relative to the repository"),
    )
    scheduler: str = field(
        default="",
        metadata=_named(
            "WORDLM_SCHEDULER",
            "Address of the Dask scheduler of several machines, tcp:// or tls://; without it this "
            "machine trains",
        ),
    )
    job_workers: int = field(
        default=2,
        metadata=_number("WORDLM_JOB_WORKERS", "Jobs that train at once on this machine", 1, 16),
    )
    max_waiting: int = field(
        default=60,
        metadata=_number("WORDLM_MAX_WAITING", "Jobs that may wait in the queue", 1, 10_000),
    )
    max_waiting_each: int = field(
        default=10,
        metadata=_number("WORDLM_MAX_WAITING_EACH", "Jobs of one person that may wait", 1, 10_000),
    )
    max_steps: int = field(
        default=20_000,
        metadata=_number("WORDLM_MAX_STEPS", "Most steps of one training", 1, 1_000_000),
    )
    max_parameters: int = field(
        default=5_000_000,
        metadata=_number(
            "WORDLM_MAX_PARAMETERS", "Most parameters of a model to train", 1_000, 100_000_000
        ),
    )
    max_minutes: int = field(
        default=60, metadata=_number("WORDLM_MAX_MINUTES", "Longest job in minutes", 1, 10_000)
    )
    max_runs_mb: int = field(
        default=4_000,
        metadata=_number(
            "WORDLM_MAX_RUNS_MB", "Most megabytes of all jobs and uploads together", 10, 10_000_000
        ),
    )
    keep_days: int = field(
        default=14,
        metadata=_number(
            "WORDLM_KEEP_DAYS", "Days after which ended jobs and uploads are cleared", 1, 3_650
        ),
    )
    max_corpus_mb: int = field(
        default=20,
        metadata=_number("WORDLM_MAX_CORPUS_MB", "Largest uploaded corpus in megabytes", 1, 200),
    )
    passcode_hash: str = field(
        default="",
        repr=False,
        metadata=_named(
            "WORDLM_PASSCODE_HASH",
            "Hash of the instructor's passcode, made by python -m app.access; or passcode_hash in "
            ".streamlit/secrets.toml",
        ),
    )

    def __post_init__(self) -> None:
        """Refuse what is out of range or of no known form, naming the variable."""
        for entry in fields(self):
            value, variable = getattr(self, entry.name), entry.metadata["variable"]
            least, most = entry.metadata.get("bounds", (value, value))
            if not least <= value <= most:
                raise ConfigError(f"{variable} must be {least:,} to {most:,}, not {value:,}")
        if self.scheduler and not _SCHEDULER.fullmatch(self.scheduler):
            raise ConfigError(
                "WORDLM_SCHEDULER must be an address such as tcp://host:8786 or "
                f"tls://host:8786, not {self.scheduler!r}"
            )
        if self.passcode_hash and not PASSCODE.fullmatch(self.passcode_hash):
            raise ConfigError(
                "WORDLM_PASSCODE_HASH must be a line that python -m app.access printed, in "
                "single quotes where a shell reads it"
            )

    @property
    def folder(self) -> Path:
        """Return the artifacts folder as an absolute path."""
        return ROOT / self.artifacts

    @cached_property
    def runs_folder(self) -> Path:
        """Return the folder of jobs and uploads as an absolute path."""
        return ROOT / self.runs

    @cached_property
    def limits(self) -> Limits:
        """Return the bounds of jobs and uploads."""
        return Limits(
            waiting=self.max_waiting,
            waiting_each=self.max_waiting_each,
            steps=self.max_steps,
            parameters=self.max_parameters,
            minutes=self.max_minutes,
            megabytes=self.max_runs_mb,
            days=self.keep_days,
            corpus_megabytes=self.max_corpus_mb,
        )


def described() -> tuple[tuple[str, str, str], ...]:
    """Return (variable, default, meaning) of every setting, in order."""
    return tuple(
        (entry.metadata["variable"], str(entry.default) or "(empty)", entry.metadata["meaning"])
        for entry in fields(Settings)
    )


def read(environ: Mapping[str, str]) -> Settings:
    """Return the settings of an environment; an empty variable means the default.

    Raises:
        ConfigError: A value is of the wrong type or out of range.
    """
    given = {entry: environ.get(entry.metadata["variable"], "") for entry in fields(Settings)}
    return Settings(**{entry.name: _cast(entry, text) for entry, text in given.items() if text})


@lru_cache(maxsize=1)
def current() -> Settings:
    """Return this process's settings; environment and secrets are read at the first call."""
    given = {name: text for name, text in os.environ.items() if text}
    return read(secrets(ROOT / ".streamlit" / "secrets.toml") | given)


def secrets(path: Path) -> dict[str, str]:
    """Return what the file of secrets holds of the settings, by variable.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise ConfigError(f".streamlit/secrets.toml is not readable: {error}") from error
    return {"WORDLM_PASSCODE_HASH": str(found["passcode_hash"])} if "passcode_hash" in found else {}


def _cast(entry: Field[Any], text: str) -> Any:
    try:
        return type(entry.default)(text)
    except ValueError as error:
        raise ConfigError(
            f"{entry.metadata['variable']} must be a whole number, not {text!r}"
        ) from error
