"""The story grammar: its probabilities are exact, and its stories make sense."""

import json
import math
import random
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from wordlm_core import corpora
from wordlm_core.corpora import _story_plots, _story_words, stories
from wordlm_core.errors import ConfigError, TextError
from wordlm_core.text import EOS, tokenise

GIRLS = {name.lower() for name in _story_words._GIRLS}
BOYS = {name.lower() for name in _story_words._BOYS}
ELDERS = {"mother", "grandma", "aunt", "sister", "father", "grandpa", "uncle", "brother"}


@pytest.fixture(scope="module")
def told() -> list[str]:
    return list(stories.load(documents=1500).documents)


@pytest.fixture(scope="module")
def tokens(told: list[str]) -> list[list[str]]:
    return [tokenise(story) for story in told]


def after(text: str) -> dict[str, float]:
    return stories.next_distribution(tokenise(text))


# -- the probabilities


def test_they_sum_to_one_at_every_prefix(tokens: list[list[str]]) -> None:
    for story in tokens[:10]:
        for n in range(len(story) + 1):
            found = stories.next_distribution(story[:n])
            assert math.isclose(sum(found.values()), 1.0, abs_tol=1e-12)
            assert all(0 < p <= 1 for p in found.values())
            assert found[[*story, EOS][n]] > 0


def test_log_probs_are_those_of_the_distributions(told: list[str], tokens: list[list[str]]) -> None:
    for text, story in zip(told[10:16], tokens[10:], strict=False):
        logs = stories.true_log_probs(text)
        one_by_one = [
            math.log(stories.next_distribution(story[:n])[token])
            for n, token in enumerate([*story, EOS])
        ]
        np.testing.assert_allclose(logs, one_by_one, rtol=0, atol=1e-12)


def derivations(target: tuple[str, ...]) -> Iterator[float]:
    """Yield the probability of each way to tell exactly `target`, found by trying all.

    An independent check: it knows choices only, and takes no notice of how a reader could
    tell them apart. Each way is a row of phrases, told again from the start at every step.
    """
    stack: list[tuple[tuple[str, ...], float, int]] = [((), 1.0, 0)]
    while stack:
        phrases, probability, at = stack.pop()
        script = stories._story()
        options = next(script)
        for phrase in phrases:
            options = script.send(phrase)
        for phrase, share in options.items():
            if phrase.strip() == EOS:
                if at == len(target):
                    yield probability * share
                continue
            mine = tuple(tokenise(phrase))
            if target[at : at + len(mine)] == mine:
                stack.append(((*phrases, phrase), probability * share, at + len(mine)))


def test_a_text_can_be_told_in_one_way_only(told: list[str], tokens: list[list[str]]) -> None:
    for text, story in zip(told[:25], tokens, strict=False):
        ways = list(derivations(tuple(story)))
        assert len(ways) == 1
        assert math.isclose(math.log(ways[0]), stories.true_log_probs(text).sum(), abs_tol=1e-9)


def test_no_alternative_begins_another() -> None:
    generator = random.Random(3)
    for _ in range(300):
        script = stories._story()
        options, phrase = next(script), ""
        while phrase.strip() != EOS:
            assert math.isclose(sum(options.values()), 1.0, abs_tol=1e-9)
            if len(options) > 1:
                rows = sorted(stories._tokens(phrase) for phrase in options)
                assert all(rows), "an alternative without a token"
                # Sorted, whatever begins another stands right before one that it begins.
                assert not [(a, b) for a, b in pairwise(rows) if b[: len(a)] == a]
            phrase = stories._draw(options, generator)
            options = options if phrase.strip() == EOS else script.send(phrase)


def test_frequencies_agree_at_some_prefixes(tokens: list[list[str]]) -> None:
    followers: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for story in tokens:
        for n in range(9):
            followers[tuple(story[:n])][story[n]] += 1
    checked = 0
    for prefix, counts in followers.items():
        total = counts.total()
        if total < 50:
            continue
        truth = stories.next_distribution(prefix)
        assert set(counts) <= set(truth)
        if len(truth) == 1 or total * min(truth.values()) < 4:
            continue
        expected = {token: total * p for token, p in truth.items()}
        chi_square = sum((counts[t] - e) ** 2 / e for t, e in expected.items())
        freedom = len(truth) - 1
        assert chi_square < freedom + 5 * math.sqrt(2 * freedom), (prefix, chi_square)
        checked += 1
    assert checked >= 12


def test_frequencies_agree_over_all_prefixes(told: list[str], tokens: list[list[str]]) -> None:
    # Each token's surprise minus the entropy before it has mean 0 if the truth is true.
    gaps, variance = 0.0, 0.0
    for text, story in zip(told[:60], tokens, strict=False):
        surprise = -stories.true_log_probs(text)
        reader = stories._Reader()
        for token, surprised in zip([*story, EOS], surprise, strict=True):
            p = np.array(list(reader.distribution().values()))
            entropy = -(p * np.log(p)).sum()
            gaps += surprised - entropy
            variance += (p * np.log(p) ** 2).sum() - entropy**2
            reader.read(token)
    assert variance > 100
    assert abs(gaps) < 3 * math.sqrt(variance)


def test_the_floor_is_the_mean_surprise(told: list[str], tokens: list[list[str]]) -> None:
    some = told[:60]
    logs = [stories.true_log_probs(text) for text in some]
    assert [len(row) for row in logs] == [len(story) + 1 for story in tokens[:60]]
    total, targets = sum(row.sum() for row in logs), sum(map(len, logs))
    floor = stories.loss_floor(iter(some))
    assert math.isclose(floor, -total / targets)
    assert 0.4 < floor < 0.6


def test_entropies_are_those_of_the_distributions(told: list[str]) -> None:
    for text in told[20:24]:
        story = tokenise(text)
        for n, entropy in enumerate(stories.true_entropies(text)):
            p = np.array(list(stories.next_distribution(story[:n]).values()))
            assert math.isclose(entropy, -(p * np.log(p)).sum(), abs_tol=1e-9)


def surprise_and_floor(texts: list[str], known: set[str] | None) -> tuple[float, float, float]:
    """Return the mean surprise of the folded tokens, the mean entropy, and 1 standard error.

    The surprise is of the token that was drawn, its probability added up by hand.
    """
    totals: list[tuple[float, float, int]] = []
    for text in texts:
        reader, surprise = stories._Reader(), 0.0
        story = [*tokenise(text), EOS]
        for token in story:
            found = reader.distribution()
            folded = known is not None and token not in known
            same = [t for t in found if t not in known] if folded and known else [token]
            surprise -= math.log(sum(found[t] for t in same))
            reader.read(token)
        totals.append((surprise, stories.true_entropies(text, known).sum(), len(story)))
    surprises, entropies, targets = np.array(totals).T
    error = (surprises - entropies).std() * math.sqrt(len(texts)) / targets.sum()
    floor = stories.mean_entropy(texts, known)
    assert math.isclose(floor, entropies.sum() / targets.sum())
    return surprises.sum() / targets.sum(), floor, error


def test_the_mean_entropy_is_what_sampled_stories_cost_on_average(
    told: list[str], tokens: list[list[str]]
) -> None:
    counts = Counter(token for story in tokens for token in story)
    small = {token for token, _ in counts.most_common(200)} | {EOS}
    floors = {}
    for name, known in (("every word", None), ("200 words", small)):
        surprise, floors[name], error = surprise_and_floor(told[:200], known)
        assert error < 0.004
        assert abs(surprise - floors[name]) < 3 * error
    assert floors["200 words"] < floors["every word"] - 10 * error
    assert stories.mean_entropy(told[:200], set(counts) | {EOS}) == pytest.approx(
        floors["every word"], abs=1e-3
    )
    # Nothing is known: every word is <UNK>, and only the end of a story can surprise.
    assert 0 < stories.mean_entropy(told[:200], {EOS}) < 0.05


def test_what_is_no_story_is_refused() -> None:
    with pytest.raises(TextError, match=r"'zebra' after 5 tokens"):
        after("Once upon a time, zebra")
    for text in ("The cat sat.", "Once upon a time,", "", "<EOS>", "caf\u00e9"):
        for reads in (stories.true_log_probs, stories.true_entropies):
            with pytest.raises(TextError):
                reads(text)
    whole = [*tokenise(stories.load(documents=1).documents[0]), EOS]
    assert stories.next_distribution(whole) == {}
    with pytest.raises(TextError):
        stories.next_distribution([*whole, "the"])


# -- what there is to find


def test_the_name_decides_the_pronoun() -> None:
    start = "Once upon a time, a kind {child} named {name} had a red ball."
    girl = after(start.format(child="girl", name="Mia"))
    boy = after(start.format(child="boy", name="Ben"))
    assert "she" in girl
    assert "he" in boy
    assert "he" not in girl
    assert "she" not in boy
    assert set(after("Once upon a time, a kind girl named")) == GIRLS


def test_a_thing_comes_back_with_its_colour_and_number() -> None:
    one = "A girl called Mia owned a red ball. Then a strong wind carried it away. "
    many = "A girl called Mia owned some red boots. Then a strong wind carried them away. "
    assert after(one + "At last, Mia found the") == {"red": 1.0}
    assert after(one + "At last, Mia found the red") == {"ball": 1.0}
    assert after(one + "In the end,") == {"it": 1.0}
    assert after(many + "In the end, they") == {"were": 1.0}
    assert set(after("A girl called Mia owned some red")) & {"ball", "boots"} == {"boots"}


def test_a_need_decides_its_remedy() -> None:
    start = "One sunny day, Mia went to the farm. There she saw a {} duck near the tree. "
    assert set(after(start.format("thirsty") + "So Mia brought it")) == {"a", "warm"}
    assert set(after(start.format("dirty") + "So Mia brought it")) == {"soap", "a"}


def test_a_friend_comes_back_by_name() -> None:
    start = "A girl called Mia owned a red ball. Along came Ben and wanted the ball, too. "
    found = after(start + 'Mia said, "I am sorry,')
    assert found == {"ben": 1.0}
    assert "mia" not in after("A girl called Mia owned a red ball. Along came")


def test_the_first_name_comes_back_late(tokens: list[list[str]]) -> None:
    late = [
        next(token for token in story if token in GIRLS | BOYS) in story[2 * len(story) // 3 :]
        for story in tokens
    ]
    assert np.mean(late) > 0.6


# -- the stories


def test_every_sentence_ends_with_its_one_mark(told: list[str], tokens: list[list[str]]) -> None:
    counts = Counter(sum(token in ".!?" for token in story) for story in tokens)
    assert set(counts) == set(range(2, 11))
    for text in told:
        assert text[0].isupper()
        assert text.rstrip('"')[-1] in ".!?"
        assert "{" not in text
        assert "  " not in text


def test_no_plot_can_be_too_long_or_too_short() -> None:
    for _, plots in _story_plots.OPENINGS:
        for plot in plots:
            assert plot[0].needed
            assert 2 <= len(plot) <= 9


def test_there_are_enough_words(tokens: list[list[str]]) -> None:
    types = Counter(token for story in tokens for token in story)
    assert len(types) >= 900
    assert sum(count >= 2 for count in types.values()) >= 900


def test_nearly_all_stories_differ(told: list[str]) -> None:
    assert len(set(told)) > 0.99 * len(told)


def test_every_sentence_of_the_grammar_is_told(told: list[str]) -> None:
    wanted = {
        sentence
        for opening, plots in _story_plots.OPENINGS
        for stage in (opening, *(stage for plot in plots for stage in plot))
        for sentence in stage.sentences
    }
    text = " ".join(told)
    # The longest piece between slots is enough to recognise a sentence by.
    pieces = {max(re.split(r"\{[^}]*\}", sentence), key=len) for sentence in wanted}
    assert len(pieces) > 150
    assert [piece for piece in pieces if piece.strip() not in text] == []


def test_verbs_agree_with_their_subjects(tokens: list[list[str]]) -> None:
    kinds: dict[str, set[str]] = {
        "was": {*_story_words._ONE_THING, *_story_words._ONE_ANIMAL},
        "were": {*_story_words._MANY_THINGS, *_story_words._MANY_ANIMALS},
    }
    seen: Counter[str] = Counter()
    for story in tokens:
        for before, first, noun, verb in zip(story, *(story[n:] for n in (1, 2, 3)), strict=False):
            if verb not in kinds or before == "and":  # "Mia and the duck were"
                continue
            other = "were" if verb == "was" else "was"
            if first == "the":
                assert noun not in kinds[other], (first, noun, verb)
                seen[verb] += noun in kinds[verb]
            if noun in GIRLS | BOYS:
                assert (first == "and" and verb == "were") or verb == "was" or first == "the"
                seen["names"] += 1
            if noun in ("she", "he", "it"):
                assert verb == "was"
            if noun == "they":
                assert verb == "were"
    assert min(seen[k] for k in ("was", "were", "names")) > 20


def test_numbers_agree_with_their_nouns(tokens: list[list[str]]) -> None:
    one, many = set(_story_words._ONE_ANIMAL), set(_story_words._MANY_ANIMALS)
    needs = set(_story_words.GOVERNED["remedy"][1])
    found = 0
    for story in tokens:
        for count, need, noun in zip(story, story[1:], story[2:], strict=False):
            if need in needs and noun in one | many:
                assert (noun in one) == (count in ("a", "little")) or count == "the"
                found += 1
    assert found > 100


def test_pronouns_agree_where_there_is_one_person(tokens: list[list[str]]) -> None:
    found: Counter[bool] = Counter()
    for story in tokens:
        names = (GIRLS | BOYS) & set(story)
        if len(names) > 1 or ELDERS & set(story):
            continue
        is_girl = names <= GIRLS
        wrong = {"he", "him", "his"} if is_girl else {"she", "her"}
        assert not wrong & set(story), story
        found[is_girl] += 1
    assert min(found[True], found[False]) > 50


# -- as a corpus


def test_it_is_found_by_name_in_any_size() -> None:
    assert corpora.modules()["stories"] is stories
    assert stories.available()
    assert stories.INFO.documents is None
    assert len(corpora.load("stories", profile="smoke").documents) == 480
    assert len(corpora.load("stories", documents=7).documents) == 7
    corpus = corpora.load("stories", profile="smoke", documents=3)
    assert (len(corpus.documents), corpus.licence) == (3, "CC0-1.0")
    assert stories.INFO.size(None, None) == 3000
    with pytest.raises(ConfigError, match="no profile 'huge'"):
        stories.load(profile="huge")
    with pytest.raises(ConfigError, match="at most 1,000,000"):
        stories.load(documents=10**12)
    with pytest.raises(ConfigError, match="1 or more"):
        stories.load(documents=0)


def test_fewer_stories_are_the_first_of_more(told: list[str]) -> None:
    assert list(stories.load(documents=40).documents) == told[:40]
    other = stories.load(documents=40, seed=1)
    assert not set(other.documents) & set(told[:40])
    assert other.source.endswith("seed 1")


def test_a_seed_means_the_same_in_every_process(told: list[str]) -> None:
    code = (
        "import json; from wordlm_core.corpora import stories as s;"
        "c = s.load(documents=50); d = s.next_distribution(['once', 'upon', 'a']);"
        "print(json.dumps([c.sha256, list(d.items())]))"
    )
    found = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", code],
                env={"PYTHONHASHSEED": seed, "PATH": ""},
                capture_output=True,
                check=True,
            ).stdout
        )
        for seed in ("0", "12345")
    ]
    assert found[0] == found[1]
    assert found[0][0] == stories.load(documents=50).sha256
