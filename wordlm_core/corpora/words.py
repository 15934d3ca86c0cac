"""English words from the Python package `english-words`: 10,000 of its list `web2`.

Words of 3 to 10 letters that the list has in lower case, so that proper nouns stay out. They
are drawn with a fixed seed and stay in the order of the draw: the first few are a sample too.
"""

import random
import re

from wordlm_core.corpora import Corpus, CorpusInfo, _packaged

REQUIREMENT = "english-words==2.0.2"
SEED = 42
COUNT = 10_000
INFO = CorpusInfo(
    name="words",
    documents=COUNT,
    licence="MIT",  # of the package, which gives the list no licence of its own
    how_to_get=(
        f"pip install {REQUIREMENT} (MIT); its list web2 is Webster's Second International of "
        "1934, whose copyright has lapsed according to the BSD systems that carry it"
    ),
)

_WORD = re.compile(r"[a-z]{3,10}")


def available() -> bool:
    """Return whether the package is installed."""
    return _packaged.is_installed(REQUIREMENT)


def load(*, profile: str | None = None, documents: int | None = None) -> Corpus:
    """Return the words in the order in which they were drawn; all of them by default.

    Args:
        profile: A name of `corpora.PROFILES`.
        documents: How many, instead of the profile's number.

    Raises:
        CorpusError: The package is not installed, or holds another list.
        ConfigError: Unknown profile, or `documents` is not positive.
    """
    return _packaged.load(INFO, REQUIREMENT, _read, profile, documents)


def _read() -> list[str]:
    # The package keeps its list as a pickle and reads it itself: code of the same wheel.
    from english_words import get_english_words_set  # noqa: PLC0415

    # Sorted, because a set's order differs from process to process.
    found = sorted(word for word in get_english_words_set(["web2"]) if _WORD.fullmatch(word))
    return random.Random(SEED).sample(found, min(len(found), COUNT))
