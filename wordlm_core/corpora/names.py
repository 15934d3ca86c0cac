"""First names from the Python package `names`: female, then male, most frequent first.

They are the first names of the 1990 census of the United States. A name that stands in both
lists stands here twice, as it does in the source.
"""

from importlib import resources

from wordlm_core.corpora import Corpus, CorpusInfo, _packaged

REQUIREMENT = "names==0.3.0"
INFO = CorpusInfo(
    name="names",
    documents=5494,
    # What the package's readme says about these files; its code is under the MIT licence.
    licence="LicenseRef-public-domain",
    how_to_get=(
        f"pip install {REQUIREMENT} (MIT); the lists in it are public domain, derived from the "
        "United States census of 1990; your own list: name a file with one item a line"
    ),
)

_FILES = ("dist.female.first", "dist.male.first")


def available() -> bool:
    """Return whether the package is installed."""
    return _packaged.is_installed(REQUIREMENT)


def load(*, profile: str | None = None, documents: int | None = None) -> Corpus:
    """Return the names in lower case, in the order of the source; all of them by default.

    Args:
        profile: A name of `corpora.PROFILES`.
        documents: How many, instead of the profile's number.

    Raises:
        CorpusError: The package is not installed, or holds another list.
        ConfigError: Unknown profile, or `documents` is not positive.
    """
    return _packaged.load(INFO, REQUIREMENT, _read, profile, documents)


def _read() -> list[str]:
    folder = resources.files("names")
    texts = [folder.joinpath(file).read_text(encoding="ascii") for file in _FILES]
    return [line.split()[0].lower() for text in texts for line in text.splitlines()]
