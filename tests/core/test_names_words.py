"""The packaged lists: what is in them, that they never change, what happens without them."""

import re
import subprocess
import sys
from collections import Counter
from importlib import metadata
from pathlib import Path

import pytest

from wordlm_core import corpora
from wordlm_core.corpora import names, words
from wordlm_core.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
BOTH = pytest.mark.parametrize("corpus", [names, words], ids=lambda corpus: corpus.INFO.name)
# sha256 of all documents in order: numbers measured on one list hold for that list only.
SHA256 = {
    "names": "d1ea712bf70d749fa1d6a7bdb4dc871328fb47f6cf2b763e749fda4f194be025",
    "words": "4440ff88c7a9184df2ed105c4d6f646cac77ddf99d7558a9e045a25dce13e481",
}


def python(code: str, *, flags: tuple[str, ...] = (), **environment: str):
    return subprocess.run(
        [sys.executable, *flags, "-c", code],
        cwd=ROOT,
        env={"PATH": "", **environment},
        capture_output=True,
        check=False,
        text=True,
    )


@BOTH
def test_all_of_a_list_comes_by_default(corpus) -> None:
    name = corpus.INFO.name
    assert corpora.modules()[name] is corpus
    assert corpus.available()
    loaded = corpora.load(name)
    assert len(loaded.documents) == corpus.INFO.documents
    assert loaded.sha256 == SHA256[name]
    assert (loaded.name, loaded.licence) == (name, corpus.INFO.licence)
    assert loaded.source.endswith(corpus.REQUIREMENT)


@BOTH
def test_fewer_are_the_first_of_all(corpus) -> None:
    name, whole = corpus.INFO.name, corpus.load().documents
    assert corpora.load(name, documents=7).documents == whole[:7]
    assert corpora.load(name, documents=10**9).documents == whole
    assert corpora.load(name, profile="smoke").documents == whole[:480]
    assert corpora.load(name, profile="classroom", documents=3).documents == whole[:3]


@BOTH
def test_a_wrong_size_is_refused(corpus) -> None:
    for documents in (0, -1):
        with pytest.raises(ConfigError, match="1 or more"):
            corpus.load(documents=documents)
    with pytest.raises(ConfigError, match="no profile 'huge'"):
        corpus.load(profile="huge")


def test_names_are_the_census_in_its_order_repeats_included() -> None:
    found = names.load().documents
    assert all(re.fullmatch("[a-z]{2,11}", name) for name in found)
    assert set("".join(found)) == set("abcdefghijklmnopqrstuvwxyz")
    female, male = found[:4275], found[4275:]
    assert (female[0], male[0], len(male)) == ("mary", "james", 1219)
    repeated = [name for name, count in Counter(found).items() if count > 1]
    assert len(repeated) == 331
    assert set(repeated) == set(female) & set(male)
    # A reading of our own: the file lists each name with its share of people, falling.
    file = metadata.distribution("names").locate_file("names/dist.male.first")
    rows = [line.split() for line in Path(str(file)).read_text(encoding="ascii").splitlines()]
    assert [row[0].lower() for row in rows] == list(male)
    shares = [float(row[1]) for row in rows]
    assert shares == sorted(shares, reverse=True)


def test_words_are_short_lower_case_and_of_one_list_only() -> None:
    from english_words import get_english_words_set  # noqa: PLC0415

    found = words.load().documents
    assert all(re.fullmatch("[a-z]{3,10}", word) for word in found)
    assert len(set(found)) == len(found)
    source = get_english_words_set(["web2"])
    assert set(found) <= source
    # Drawn from the whole list, not its beginning: as many of each half, to chance.
    short = sorted(word for word in source if re.fullmatch("[a-z]{3,10}", word))
    early = sum(word < short[len(short) // 2] for word in found)
    assert abs(early - 5000) < 4 * 50  # a deviation is 50
    assert abs(sum(word < short[len(short) // 2] for word in found[:1000]) - 500) < 4 * 16


@BOTH
@pytest.mark.parametrize("seed", ["0", "12345"])
def test_a_list_is_the_same_in_every_process(corpus, seed: str) -> None:
    name = corpus.INFO.name
    code = f"from wordlm_core import corpora; print(corpora.load({name!r}).sha256)"
    done = python(code, PYTHONHASHSEED=seed)
    assert (done.returncode, done.stdout.strip()) == (0, SHA256[name])


@BOTH
def test_without_its_package_a_corpus_is_listed_and_says_the_way_out(corpus, tmp_path) -> None:
    """In a Python that finds every installed package but the two."""
    for installed in Path(str(metadata.distribution("names").locate_file(""))).iterdir():
        if not installed.name.startswith(("names", "english_words")):
            (tmp_path / installed.name).symlink_to(installed)
    name = corpus.INFO.name
    code = (
        "from wordlm_core import corpora; from wordlm_core.errors import CorpusError\n"
        f"print(corpora.modules()[{name!r}].available())\n"
        f"try: corpora.load({name!r})\n"
        "except CorpusError as error: print(error)"
    )
    done = python(code, flags=("-S",), PYTHONPATH=str(tmp_path))
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "False",
        f"the corpus {name!r} needs a package that is not installed: "
        f"pip install {corpus.REQUIREMENT}",
    ]


def test_another_list_under_the_same_name_is_refused(tmp_path) -> None:
    """A package of that name that is not the one we know, first on the path."""
    package = tmp_path / "names"
    package.mkdir()
    (package / "__init__.py").touch()
    for file in ("dist.female.first", "dist.male.first"):
        (package / file).write_text("ADA 1.0 1.0 1\n", encoding="ascii")
    code = (
        "from wordlm_core import corpora; from wordlm_core.errors import CorpusError\n"
        "try: corpora.load('names')\n"
        "except CorpusError as error: print(error)"
    )
    done = python(code, PYTHONPATH=str(tmp_path))
    assert done.stderr == ""
    assert "gives 2 names, not 5,494: pip install names==0.3.0" in done.stdout


def test_the_requirements_name_the_packages() -> None:
    pinned = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert {names.REQUIREMENT, words.REQUIREMENT} <= set(pinned)
