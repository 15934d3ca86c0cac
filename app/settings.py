"""Settings from the environment, read once and validated.

A field's metadata names its variable and says in one line what it does; the README's table
of settings is made from, and tested against, the same lines.
"""

import os
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from wordlm_core.errors import ConfigError

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Settings:
    """How this installation runs."""

    artifacts: Path = field(
        default=Path("artifacts"),
        metadata={
            "variable": "WORDLM_ARTIFACTS",
            "meaning": "Folder with checkpoints and benchmark.json, relative to the repository",
        },
    )
    max_text: int = field(
        default=20_000,
        metadata={
            "variable": "WORDLM_MAX_TEXT",
            "meaning": "Longest probe sentence in characters, 100 to 1,000,000",
        },
    )

    quick_workers: int = field(
        default=2,
        metadata={
            "variable": "WORDLM_QUICK_WORKERS",
            "meaning": "Processes for quick experiments, shared by all sessions, 1 to 8",
        },
    )

    def __post_init__(self) -> None:
        """Refuse values out of range, naming the variable."""
        if not 1 <= self.quick_workers <= 8:
            raise ConfigError(f"WORDLM_QUICK_WORKERS must be 1 to 8, not {self.quick_workers:,}")
        if not 100 <= self.max_text <= 1_000_000:
            raise ConfigError(f"WORDLM_MAX_TEXT must be 100 to 1,000,000, not {self.max_text:,}")

    @property
    def folder(self) -> Path:
        """Return the artifacts folder as an absolute path."""
        return ROOT / self.artifacts


def described() -> tuple[tuple[str, str, str], ...]:
    """Return (variable, default, meaning) of every setting, in order."""
    return tuple(
        (entry.metadata["variable"], str(entry.default), entry.metadata["meaning"])
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
    """Return this process's settings; the environment is read at the first call."""
    return read(os.environ)


def _cast(entry: Field[Any], text: str) -> Any:
    try:
        return type(entry.default)(text)
    except ValueError as error:
        raise ConfigError(
            f"{entry.metadata['variable']} must be a whole number, not {text!r}"
        ) from error
