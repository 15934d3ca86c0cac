"""Corpora: one module each, found by folder scan.

A corpus module offers `INFO` (a `CorpusInfo`), `available()` and `load(profile=, documents=)`.
Anything else named on the command line is a file or a folder, read by `reading`.
"""

import hashlib
import importlib
import os
import pkgutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType

from wordlm_core.corpora import reading
from wordlm_core.errors import ConfigError, CorpusError


@dataclass(frozen=True)
class Profile:
    """A size to train at: how many documents, and the vocabulary limit that suits them."""

    documents: int
    max_vocab: int


PROFILES = {
    "smoke": Profile(480, 1500),
    "classroom": Profile(3000, 3000),
    "full": Profile(6000, 4000),
}


@dataclass(frozen=True)
class Corpus:
    """Documents with their origin.

    Attributes:
        name: Short name, or the file's or folder's name.
        documents: Texts in the order of the source, not yet normalised.
        licence: SPDX name, or "unknown" for a person's own file.
        source: Where they came from, for people.
    """

    name: str
    documents: tuple[str, ...]
    licence: str
    source: str

    @cached_property
    def sha256(self) -> str:
        """Return a hash of the documents in order."""
        digest = hashlib.sha256()
        for document in self.documents:
            digest.update(document.encode() + b"\0")
        return digest.hexdigest()


@dataclass(frozen=True)
class CorpusInfo:
    """What `corpora` lists about a named corpus.

    Attributes:
        name: The name for `--corpus`.
        documents: How many there are, or None where any number can be had.
        licence: SPDX name.
        how_to_get: One sentence.
    """

    name: str
    documents: int | None
    licence: str
    how_to_get: str

    def size(self, profile: str | None, documents: int | None) -> int:
        """Return how many documents to load: `documents`, else the profile's number.

        Cut to what there is. The default profile is `classroom`.

        Raises:
            ConfigError: There is no such profile, or `documents` is not positive.
        """
        count = profile_of(profile or "classroom").documents if documents is None else documents
        if count < 1:
            raise ConfigError(f"documents must be 1 or more, not {count}")
        return count if self.documents is None else min(count, self.documents)


def profile_of(name: str) -> Profile:
    """Return a profile by name.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in PROFILES:
        raise ConfigError(f"there is no profile {name[:40]!r}; there are {', '.join(PROFILES)}")
    return PROFILES[name]


def modules() -> dict[str, ModuleType]:
    """Return every corpus module by the name of its corpus."""
    loaded = [
        importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
        if not module.name.startswith("_")
    ]
    return {module.INFO.name: module for module in loaded if hasattr(module, "INFO")}


def load(where: str, *, profile: str | None = None, documents: int | None = None) -> Corpus:
    """Load a corpus by name, or from a file or folder.

    Args:
        where: A name of `modules()`, else a path.
        profile: One of `PROFILES`: how many documents, unless `documents` says so.
        documents: Keep the first so many; more than there are means all.

    Raises:
        CorpusError: Neither a name nor a readable path.
        ConfigError: `documents` is not positive, or the profile is unknown.
    """
    if documents is not None and documents < 1:
        raise ConfigError(f"documents must be 1 or more, not {documents}")
    named = modules()
    if where in named:
        return named[where].load(profile=profile, documents=documents)
    if profile is not None and documents is None:
        documents = profile_of(profile).documents
    # os.path: unlike Path.exists, it calls a name that is too long just absent.
    if not os.path.exists(where):
        raise CorpusError(f"no corpus, file or folder {where[:80]!r}; corpora: {', '.join(named)}")
    path = Path(where)
    texts = reading.read_path(path)
    if not texts:
        raise CorpusError(f"{path.name} holds no text")
    return Corpus(path.name, tuple(texts[:documents]), "unknown", f"local {path.name}")
