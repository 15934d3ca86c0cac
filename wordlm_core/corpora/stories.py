"""Stories of our own, told by a small grammar whose true next-word distribution is known.

A name at the start decides the pronouns and names at the end; a thing that is lost comes back
with its colour; a cold animal gets a blanket and a hungry one bread; verbs agree with their
subjects. So attention has something true to find, and how well a model could do at best is no
guess: `loss_floor` is computed, and `next_distribution` says what should come next.

The grammar (`_story_plots`) is walked as a sequence of choices between phrases, each with a
known probability that depends on the choices before it alone. Of the phrases of one choice
none is the beginning of another. So a text can be cut into its choices in one way only, each
choice can be read off the tokens, and the probability of a token is that of the phrases that
go on with it, divided by that of all phrases that agree with the text so far. Nothing is
approximated.
"""

import math
import random
import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from wordlm_core.corpora import Corpus, CorpusInfo
from wordlm_core.corpora._story_plots import OPENINGS, THE_END, Stage
from wordlm_core.corpora._story_words import FORMS, GOVERNED, IT, KIND, WORDS
from wordlm_core.errors import ConfigError, TextError
from wordlm_core.text import EOS, UNK, tokenise

SEED = 20_260_101
MAX_DOCUMENTS = 1_000_000
INFO = CorpusInfo(
    name="stories",
    documents=None,
    licence="CC0-1.0",
    how_to_get="told on the spot by our own story grammar: any number, no network needed",
)

Options = dict[str, float]  # phrase -> its probability
Said = dict[str, str]  # slot -> the word it stands for in this story


def available() -> bool:
    """Return True: nothing has to be fetched."""
    return True


def load(*, profile: str | None = None, documents: int | None = None, seed: int = SEED) -> Corpus:
    """Tell stories.

    The first stories of a seed are the same whatever the number asked for, on any machine.

    Args:
        profile: A name of `corpora.PROFILES`; `classroom` by default.
        documents: How many, instead of the profile's number.
        seed: Another seed tells other stories.

    Raises:
        ConfigError: Unknown profile, or more than `MAX_DOCUMENTS`.
    """
    count = INFO.size(profile, documents)
    if count > MAX_DOCUMENTS:
        raise ConfigError(f"documents must be at most {MAX_DOCUMENTS:,} for stories, not {count:,}")
    generator = random.Random(seed)
    told = tuple(tell(generator) for _ in range(count))
    return Corpus(INFO.name, told, INFO.licence, f"WordLM Lab's story grammar, seed {seed}")


def tell(generator: random.Random) -> str:
    """Return one story, drawn with `generator`."""
    script = _story()
    phrase, told = _draw(next(script), generator), ""
    while phrase != _END:
        told += phrase
        phrase = _draw(script.send(phrase), generator)
    return told.strip()


def next_distribution(prefix: Sequence[str]) -> dict[str, float]:
    """Return the true probability of each token that can follow.

    Args:
        prefix: Tokens of the beginning of a story (as from `tokenise`), without `<BOS>`.

    Returns:
        Probabilities by token; `<EOS>` where a story can end. They sum to 1 to rounding;
        every token that is not listed has probability 0.

    Raises:
        TextError: No story of this grammar begins so; the first wrong token is named.
    """
    reader = _Reader()
    for token in prefix:
        reader.read(token)
    return reader.distribution()


def true_log_probs(document: str) -> Float[np.ndarray, " pos"]:
    """Return ln p(token | all tokens before it) of each token of a story, and of `<EOS>`.

    Aligned with `[*tokenise(document), "<EOS>"]`: the targets of a document in training. A
    model's context may be shorter than the story, and rare words may be `<UNK>` to it: these
    values know neither limit.

    Raises:
        TextError: The text is not a story of this grammar.
    """
    reader, logs = _Reader(), []
    for token in [*tokenise(document), EOS]:
        logs.append(math.log(reader.distribution().get(token, 1.0)))
        reader.read(token)  # refuses a token that has no probability
    return np.array(logs)


def loss_floor(documents: Iterable[str]) -> float:
    """Return the mean of -ln p over all targets of `documents`, in nats a token.

    What a model that knows the grammar would score on exactly these stories; over many
    stories, no model scores less. A model that reads rare words as `<UNK>` has fewer words
    to tell apart, and its own floor lies a little lower.
    """
    logs = np.concatenate([true_log_probs(document) for document in documents])
    return float(-logs.mean())


def true_entropies(
    document: str, known: Collection[str] | None = None
) -> Float[np.ndarray, " pos"]:
    """Return the entropy of the true next-token distribution before each token, in nats.

    Aligned like `true_log_probs`, whose negative is on average this: the entropy is how much
    surprise to expect there, whichever token then came.

    Args:
        document: A story.
        known: A vocabulary; tokens outside it are told apart no more, as in training. None is
            every token.

    Raises:
        TextError: The text is not a story of this grammar.
    """
    reader, entropies = _Reader(), []
    for token in [*tokenise(document), EOS]:
        shares: dict[str, float] = defaultdict(float)
        for each, share in reader.distribution().items():
            shares[each if known is None or each in known else UNK] += share
        entropies.append(-sum(share * math.log(share) for share in shares.values()))
        reader.read(token)
    return np.array(entropies)


def mean_entropy(documents: Iterable[str], known: Collection[str] | None = None) -> float:
    """Return the mean entropy of a target of `documents`, `<EOS>` among them, in nats.

    The loss that no model can expect to go below on stories that it was not trained on. On the
    very stories of a training it can, by learning them by heart; and on a few held-out ones by
    chance, for what came was likelier than usual (`loss_floor` says how likely).

    Args:
        documents: Stories; the more, the nearer to the mean over all.
        known: The vocabulary of a model. Words that are one `<UNK>` to it are one outcome here,
            which lowers the floor; but the text before is read whole. A model that reads
            `<UNK>` there too, or only the last tokens, knows less: its own floor is higher.
    """
    return float(np.concatenate([true_entropies(each, known) for each in documents]).mean())


# -- the grammar as a sequence of choices

_END = f" {EOS}"
_SLOT = re.compile(r"\{(?P<recall>=?)(?P<name>(?P<words>[a-z]+)[0-9]?)(?:\.(?P<form>[A-Za-z]+))?\}")

Script = Generator[Options, str]


class _Slot(NamedTuple):
    name: str  # spot2
    words: str  # the list it draws from: spot
    form: str | None  # the form to show: they


Parts = tuple[str | _Slot, ...]


class _Sentence(NamedTuple):
    parts: Parts
    recalled: frozenset[str]  # slots marked "=": they must have their word already


def _story() -> Script:
    """Yield the options of every choice of one story; is sent the phrase that was chosen."""
    said: Said = {}
    opening = yield from _say(said, [stage for stage, _ in OPENINGS])
    plots = OPENINGS[opening][1]
    plot = yield from _say(said, [stages[0] for stages in plots])
    rest = (*plots[plot][1:], THE_END)
    while rest:
        needed = next(i for i, stage in enumerate(rest) if stage.needed)
        told = yield from _say(said, rest[: needed + 1], fade=0.5)
        rest = rest[told + 1 :]


def _say(said: Said, stages: Sequence[Stage], *, fade: float = 1.0) -> Generator[Options, str, int]:
    """Tell one of these stages in one of its sentences.

    Of the stages with a sentence that fits, each is `fade` times as likely as the one before
    it. The sentences of a stage that fit are equally likely, and so are the words of a slot.

    Returns:
        Index of the stage that was told.
    """
    fitting = [
        (i, sentences)
        for i, stage in enumerate(stages)
        if (sentences := [s for s in map(_parse, stage.sentences) if s.recalled <= said.keys()])
    ]
    shares = [fade**k for k in range(len(fitting))]
    options: Options = {}
    goes_on: dict[str, tuple[int, _Slot | None, Parts]] = {}
    for (i, sentences), share in zip(fitting, shares, strict=True):
        for sentence in sentences:
            head, slot, rest = _up_to_new_slot(sentence.parts, said)
            options[head] = share / sum(shares) / len(sentences)
            goes_on[head] = i, slot, rest
    told, slot, rest = goes_on[(yield options)]
    while slot is not None:
        words = _candidates(slot, said)
        said[slot.name] = yield dict.fromkeys(words, 1 / len(words))
        literal, slot, rest = _up_to_new_slot(rest, said)
        yield {literal: 1.0}
    return told


@cache
def _parse(text: str) -> _Sentence:
    parts: list[str | _Slot] = []
    recalled: set[str] = set()
    text, at = f" {text}", 0
    for match in _SLOT.finditer(text):
        if match.start() > at:
            parts.append(text[at : match.start()])
        name, words, form, recall = match.group("name", "words", "form", "recall")
        parts.append(_Slot(name, words, form))
        at = match.end()
        if recall:
            recalled.add(name)
    return _Sentence((*parts, text[at:]), frozenset(recalled))


def _up_to_new_slot(parts: Parts, said: Said) -> tuple[str, _Slot | None, Parts]:
    """Return the text before the first slot that has no word yet, that slot, what is left."""
    text = ""
    for i, part in enumerate(parts):
        if isinstance(part, str):
            text += part
        elif part.name in said:
            text += _in_form(said[part.name], part.form)
        else:
            return text, part, parts[i + 1 :]
    return text, None, ()


def _in_form(word: str, form: str | None) -> str:
    if form is None:
        return word
    text = FORMS[form.lower()][KIND.get(word, IT)]
    return text.capitalize() if form[0].isupper() else text


def _candidates(slot: _Slot, said: Said) -> list[str]:
    """Return the words a new slot can take: of its list, and not in the story yet."""
    if slot.words in GOVERNED:
        governor, lists = GOVERNED[slot.words]
        chosen = [lists[said[governor]]] if governor in said else lists.values()
        words = [word for words in chosen for word in words]
    else:
        words = WORDS[slot.words]
    taken = set(said.values())
    return [word for word in dict.fromkeys(words) if word not in taken]


# -- telling and reading


def _draw(options: Options, generator: random.Random) -> str:
    # By hand: random() is the one method whose numbers no Python version may change.
    ends = list(accumulate(options.values()))
    which = bisect(ends, generator.random())
    return list(options)[min(which, len(ends) - 1)]  # the last end is 1 only to rounding


@lru_cache(maxsize=50_000)
def _tokens(phrase: str) -> tuple[str, ...]:
    return (EOS,) if phrase == _END else tuple(tokenise(phrase))


class _Reader:
    """Follows a text through the grammar, token by token."""

    def __init__(self) -> None:
        self._script = _story()
        self._tokens_read = 0  # in all, for messages
        self._open(next(self._script))

    def distribution(self) -> dict[str, float]:
        """Return the probability of each token that can come now."""
        total = sum(self._alive.values())
        found: dict[str, float] = defaultdict(float)
        for phrase, probability in self._alive.items():
            found[_tokens(phrase)[self._at]] += probability / total
        return dict(found)

    def read(self, token: str) -> None:
        """Go on by one token.

        Raises:
            TextError: It cannot come here.
        """
        alive = {p: w for p, w in self._alive.items() if _tokens(p)[self._at] == token}
        if not alive:
            raise TextError(
                f"no story of this grammar goes on with {token[:40]!r} after "
                f"{self._tokens_read} tokens"
            )
        self._alive = alive
        self._at += 1
        self._tokens_read += 1
        self._go_on()

    def _open(self, options: Options) -> None:
        self._alive, self._at = options, 0  # phrases that agree with the text; tokens into them

    def _go_on(self) -> None:
        """Open the next choice once this one is decided and read to its end."""
        while len(self._alive) == 1:
            (phrase,) = self._alive
            if self._at < len(_tokens(phrase)):
                return
            if phrase == _END:
                self._open({})
            else:
                self._open(self._script.send(phrase))
