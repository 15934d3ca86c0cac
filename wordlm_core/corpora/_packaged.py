"""Lists of names and words that installed packages carry: short texts, taken whole by default."""

import importlib.util
from collections.abc import Callable, Sequence

from wordlm_core.corpora import Corpus, CorpusInfo
from wordlm_core.errors import CorpusError


def is_installed(requirement: str) -> bool:
    """Return whether the package of a requirement such as `names==0.3.0` can be imported."""
    return importlib.util.find_spec(_module(requirement)) is not None


def load(
    info: CorpusInfo,
    requirement: str,
    read: Callable[[], Sequence[str]],
    profile: str | None,
    documents: int | None,
) -> Corpus:
    """Return the first items of a packaged list, or all: a profile's default is for stories.

    Args:
        info: What is known about the corpus, its number of items among it.
        requirement: Package and version, as pip takes it.
        read: Returns all items; raises ImportError or OSError where the package is not there.
        profile: A name of `corpora.PROFILES`, or None for all.
        documents: How many, instead of the profile's number.

    Raises:
        CorpusError: The package is not installed, or holds another list than ours.
        ConfigError: Unknown profile, or `documents` is not positive.
    """
    is_whole = profile is None and documents is None
    count = info.documents if is_whole else info.size(profile, documents)
    try:
        items = read()
    except (ImportError, OSError) as error:
        raise CorpusError(
            f"the corpus {info.name!r} needs a package that is not installed: "
            f"pip install {requirement}"
        ) from error
    if len(items) != info.documents:
        raise CorpusError(
            f"the installed package gives {len(items):,} {info.name}, not {info.documents:,}: "
            f"pip install {requirement}"
        )
    return Corpus(info.name, tuple(items[:count]), info.licence, f"Python package {requirement}")


def _module(requirement: str) -> str:
    return requirement.partition("==")[0].replace("-", "_")
