"""Vocabularies: the one place that knows which id stands for which token.

Word models read words, with four special tokens in front; microgpt reads characters, with
`<BOS>` behind them as the only special one, or words like the word models.

A `Probe` is a typed text as a model sees it. Everything downstream addresses a token by
its position in the probe; its string is only a label.
"""

import difflib
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Int

from wordlm_core.errors import CheckpointError, ConfigError, TextError
from wordlm_core.text import (
    BOS,
    BOS_ID,
    EOS_ID,
    FIRST_LEXICAL_ID,
    PAD_ID,
    SPECIALS,
    UNK,
    UNK_ID,
    normalise,
    pieces,
    visible,
)

MAX_VOCAB_SIZE = 200_000
_MAX_ECHO = 40


@dataclass(frozen=True)
class Probe:
    """A text as a model reads it.

    Attributes:
        tokens: Vocabulary tokens, `<BOS>` first unless it was cut off; aligned with `ids`.
        typed: What the person typed at each position, in lower case; a label, never a key.
        ids: Token ids, shape (pos,).
        unknown: Positions that became `<UNK>`.
        dropped: How many tokens, `<BOS>` included, were cut off on the left.
        cut_off: Their ids: training reads a long text from its beginning.
    """

    tokens: tuple[str, ...]
    typed: tuple[str, ...]
    ids: Int[np.ndarray, " pos"]
    unknown: tuple[int, ...]
    dropped: int
    cut_off: tuple[int, ...] = ()

    def last(self, count: int) -> "Probe":
        """Return the last `count` tokens as a text of their own: what a short window holds."""
        cut = max(0, len(self.tokens) - count)
        return Probe(
            tokens=self.tokens[cut:],
            typed=self.typed[cut:],
            ids=self.ids[cut:],
            unknown=tuple(position - cut for position in self.unknown if position >= cut),
            dropped=self.dropped + cut,
            cut_off=(*self.cut_off, *self.ids[:cut].tolist()),
        )


@dataclass(frozen=True)
class Vocabulary:
    """An ordered list of tokens with their counts in the training documents.

    Attributes:
        itos: Token of each id.
        counts: How often each token stands in the training documents.
        tokenizer: What a token is: `word` or `char`.
        unit: The same for people.
        bos_id: Begins a document.
        end_id: Ends one.
        unknown_id: Stands for what is not in the vocabulary, or None where nothing does.
        never_drawn: Ids that a sample cannot hold.
        lexical: The rows of an embedding table that belong to no special token.
    """

    itos: tuple[str, ...]
    counts: Mapping[str, int]

    tokenizer: ClassVar[str]
    unit: ClassVar[str]

    def __post_init__(self) -> None:
        """Refuse a list that could give two ids to one token, or none to a special."""
        self._check_specials()
        if len(self.stoi) != len(self.itos):
            raise CheckpointError("the vocabulary names a token twice")

    @staticmethod
    def from_json(data: Any, where: str) -> "Vocabulary":
        """Read `{"tokenizer": ..., "itos": [...], "counts": {...}}`.

        Args:
            data: Parsed JSON; without a tokenizer, words.
            where: Names the source in errors.
        """
        itos = data.get("itos") if isinstance(data, dict) else None
        if not isinstance(itos, list) or not all(isinstance(token, str) for token in itos):
            raise CheckpointError(f"{where} has no list of tokens under 'itos'")
        counts = data.get("counts") or {}
        if not isinstance(counts, dict) or not all(
            isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in counts.values()
        ):
            raise CheckpointError(f"'counts' in {where} must map tokens to whole numbers")
        try:
            "".join([*itos, *counts]).encode()
        except UnicodeEncodeError as error:
            raise CheckpointError(
                f"{where} holds half a surrogate pair, which is no text"
            ) from error
        tokenizer = data.get("tokenizer", WordVocabulary.tokenizer)
        kinds = {kind.tokenizer: kind for kind in (WordVocabulary, CharVocabulary)}
        if not isinstance(tokenizer, str) or tokenizer not in kinds:
            raise CheckpointError(
                f"{where} has the tokenizer {str(tokenizer)[:40]!r}; this version reads "
                f"{' and '.join(kinds)}"
            )
        return kinds[tokenizer](tuple(itos), counts)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that `from_json` reads."""
        return {
            "tokenizer": self.tokenizer,
            "itos": list(self.itos),
            "counts": dict(self.counts),
        }

    @cached_property
    def stoi(self) -> dict[str, int]:
        """Return the id of each token."""
        return {token: i for i, token in enumerate(self.itos)}

    @cached_property
    def sha256(self) -> str:
        """Return a hash of the tokens in order: equal exactly when ids mean the same."""
        text = json.dumps(list(self.itos), ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def __len__(self) -> int:
        """Return vocab_size, specials included."""
        return len(self.itos)

    @property
    def bos_id(self) -> int:
        """Return the id that begins a document."""
        raise NotImplementedError

    @property
    def end_id(self) -> int:
        """Return the id that ends a document."""
        raise NotImplementedError

    @property
    def unknown_id(self) -> int | None:
        """Return the id of what is not in the vocabulary."""
        raise NotImplementedError

    @property
    def never_drawn(self) -> tuple[int, ...]:
        """Return the ids that a sample cannot hold."""
        raise NotImplementedError

    @property
    def lexical(self) -> slice:
        """Return where the rows of tokens that are no specials stand."""
        raise NotImplementedError

    def read(self, text: str) -> list[tuple[int, str]]:
        """Return the id and the typed form of each token of a text, in order.

        Raises:
            TextError: Something in it cannot be read.
        """
        raise NotImplementedError

    def joined(self, tokens: Iterable[str]) -> str:
        """Return tokens as one text."""
        raise NotImplementedError

    def probe(self, text: str, context_length: int) -> Probe:
        """Read a typed text as `<BOS>` and its tokens, the last `context_length` of them.

        Raises:
            TextError: Nothing was typed, or something that cannot be read.
        """
        found = self.read(text)
        typed = (BOS, *(form for _, form in found))
        ids = np.array([self.bos_id, *(token_id for token_id, _ in found)], dtype=np.int64)
        dropped = max(0, len(ids) - context_length)
        cut_off, ids = tuple(ids[:dropped].tolist()), ids[dropped:]
        ids.setflags(write=False)
        return Probe(
            tokens=tuple(self.itos[i] for i in ids),
            typed=typed[dropped:],
            ids=ids,
            unknown=tuple(i for i, token_id in enumerate(ids) if token_id == self.unknown_id),
            dropped=dropped,
            cut_off=cut_off,
        )

    def beginning(self) -> Probe:
        """Return the text before anything was said: `<BOS>` alone."""
        ids = np.array([self.bos_id])
        ids.setflags(write=False)
        return Probe(tokens=(BOS,), typed=(BOS,), ids=ids, unknown=(), dropped=0)

    def document(self, text: str) -> Int[np.ndarray, " pos"]:
        """Return a text's ids between the ones that begin and end a document.

        Raises:
            TextError: There is nothing to read, or something that cannot be read.
        """
        inside = [token_id for token_id, _ in self.read(text)]
        return np.array([self.bos_id, *inside, self.end_id])

    def word_id(self, word: str) -> int:
        """Return the id of one typed token that is no special.

        Raises:
            TextError: Not exactly one, or not in the vocabulary.
        """
        raise NotImplementedError

    def knows(self, word: str) -> bool:
        """Return whether a typed text is one token that has a row of its own."""
        try:
            self.word_id(word)
        except TextError:
            return False
        return True

    def near(self, word: str, limit: int = 5) -> list[str]:
        """Return tokens of the vocabulary spelled like `word`, best first."""
        return difflib.get_close_matches(
            normalise(word), self.itos[self.lexical], n=limit, cutoff=0.7
        )

    def _check_specials(self) -> None:
        raise NotImplementedError


class WordVocabulary(Vocabulary):
    """Words, numbers and punctuation, after `<PAD>`, `<BOS>`, `<EOS>` and `<UNK>`.

    `counts` of `<UNK>` says how many tokens were left out.
    """

    tokenizer, unit = "word", "word"

    @property
    def bos_id(self) -> int:
        """Return the id of `<BOS>`."""
        return BOS_ID

    @property
    def end_id(self) -> int:
        """Return the id of `<EOS>`."""
        return EOS_ID

    @property
    def unknown_id(self) -> int | None:
        """Return the id of `<UNK>`."""
        return UNK_ID

    @property
    def never_drawn(self) -> tuple[int, ...]:
        """Return the ids of `<PAD>`, `<BOS>` and `<UNK>`."""
        return PAD_ID, BOS_ID, UNK_ID

    @property
    def lexical(self) -> slice:
        """Return where the rows after the four specials stand."""
        return slice(FIRST_LEXICAL_ID, None)

    @classmethod
    def build(
        cls, documents: Iterable[Sequence[str]], *, min_freq: int, max_vocab: int
    ) -> "WordVocabulary":
        """Count tokens and keep the frequent ones.

        Args:
            documents: Tokens of each training document.
            min_freq: A token must occur at least this often (>= 1).
            max_vocab: Size limit, the four specials included.
        """
        if min_freq < 1:
            raise ConfigError(f"min-freq must be 1 or more, not {min_freq}")
        if not FIRST_LEXICAL_ID < max_vocab <= MAX_VOCAB_SIZE:
            raise ConfigError(
                f"max-vocab must be {FIRST_LEXICAL_ID + 1} to {MAX_VOCAB_SIZE:,}, not {max_vocab}"
            )
        counts: Counter[str] = Counter()
        for tokens in documents:
            counts.update(tokens)
        total = counts.total()
        counts.pop(UNK, None)
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        kept = dict([item for item in ranked if item[1] >= min_freq][: max_vocab - len(SPECIALS)])
        return cls(SPECIALS + tuple(kept), kept | {UNK: total - sum(kept.values())})

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the id of each token, `<UNK>`'s where it is not in the vocabulary."""
        return [self.stoi.get(token, UNK_ID) for token in tokens]

    def read(self, text: str) -> list[tuple[int, str]]:
        """Return the id and the typed form of each word; unknown ones are `<UNK>`'s.

        Raises:
            TextError: There is none.
        """
        found = pieces(text)
        if not found:
            raise TextError("there is nothing to read: type at least one word")
        return [(self.stoi.get(token, UNK_ID), form) for token, form in found]

    def joined(self, tokens: Iterable[str]) -> str:
        """Return words with blanks between them."""
        return " ".join(tokens)

    def word_id(self, word: str) -> int:
        """Return the id of one typed word, in the same normal form as training.

        Raises:
            TextError: Not exactly one word, or not in the vocabulary; near spellings are
                offered.
        """
        found = [token for token, _ in pieces(word)]
        if len(found) != 1:
            raise TextError(f"one word is needed here, not {len(found)}")
        if found[0] == UNK:
            raise TextError(
                "this reads as <UNK>, whose row stands for every unknown word at once: "
                "choose one word of the vocabulary"
            )
        if found[0] not in self.stoi:
            near = self.near(found[0])
            hint = f"; near it: {', '.join(near)}" if near else ""
            shown = found[0] if len(found[0]) <= _MAX_ECHO else found[0][:_MAX_ECHO] + "..."
            raise TextError(f"{shown!r} is not in this vocabulary{hint}")
        return self.stoi[found[0]]

    def _check_specials(self) -> None:
        if self.itos[: len(SPECIALS)] != SPECIALS:
            raise CheckpointError(
                f"the vocabulary must begin with {', '.join(SPECIALS)}, not "
                f"{', '.join(map(repr, self.itos[:4])) or 'nothing'}"
            )


class CharVocabulary(Vocabulary):
    """The characters of the training documents, sorted, and `<BOS>` behind them.

    `<BOS>` stands at both ends of a document. Nothing stands for an unknown character: a
    text that holds one cannot be read.
    """

    tokenizer, unit = "char", "character"

    @classmethod
    def build(cls, documents: Iterable[str]) -> "CharVocabulary":
        """Collect the characters of documents, as they are.

        Raises:
            ConfigError: There are more than an embedding table may have rows.
        """
        counts: Counter[str] = Counter()
        for document in documents:
            counts.update(document)
        if len(counts) >= MAX_VOCAB_SIZE:
            raise ConfigError(f"more than {MAX_VOCAB_SIZE - 1:,} different characters")
        return cls((*sorted(counts), BOS), dict(counts))

    @property
    def bos_id(self) -> int:
        """Return the id of `<BOS>`, the last one."""
        return len(self.itos) - 1

    @property
    def end_id(self) -> int:
        """Return the id of `<BOS>`, which ends a document too."""
        return self.bos_id

    @property
    def unknown_id(self) -> int | None:
        """Return None: an unknown character is refused."""
        return None

    @property
    def never_drawn(self) -> tuple[int, ...]:
        """Return nothing: `<BOS>` is drawn, and ends a sample."""
        return ()

    @property
    def lexical(self) -> slice:
        """Return where the rows before `<BOS>` stand."""
        return slice(0, -1)

    def encode(self, document: str) -> list[int]:
        """Return the id of each character.

        Raises:
            TextError: One is not in the vocabulary; it is named with its place.
        """
        try:
            return [self.stoi[character] for character in document]
        except KeyError:
            raise self._strange(document) from None

    def read(self, text: str) -> list[tuple[int, str]]:
        """Return the id of each character and the character, white space around them left out.

        Raises:
            TextError: There is none, or one is not in the vocabulary.
        """
        text = text.strip()
        if not text:
            raise TextError("there is nothing to read: type at least one character")
        return list(zip(self.encode(text), text, strict=True))

    def joined(self, tokens: Iterable[str]) -> str:
        """Return characters as one word."""
        return "".join(tokens)

    def word_id(self, word: str) -> int:
        """Return the id of one character.

        Raises:
            TextError: Not exactly one, or not in the vocabulary.
        """
        character = word if len(word) == 1 else word.strip()
        if len(character) != 1:
            raise TextError(f"one character is needed here, not {len(character)}")
        return self.encode(character)[0]

    def near(self, word: str, limit: int = 5) -> list[str]:
        """Return the character in lower case, or nothing: characters have no spelling."""
        return [c for c in (word.lower(),) if c in self.stoi and c != BOS][:limit]

    def _strange(self, text: str) -> TextError:
        place = next(i for i, character in enumerate(text) if character not in self.stoi)
        known = "".join(map(visible, self.itos[self.lexical]))
        shown = known if len(known) <= _MAX_ECHO else known[:_MAX_ECHO] + "..."
        small = text[place].lower()
        hint = f"; it does know {small!r}" if small != text[place] and small in self.stoi else ""
        return TextError(
            f"{visible(text[place])!r} (character {place + 1}) is none of the "
            f"{len(self.itos) - 1} characters that this model knows: {shown}{hint}"
        )

    def _check_specials(self) -> None:
        lexical = self.itos[self.lexical]
        if not self.itos or self.itos[-1] != BOS or any(len(token) != 1 for token in lexical):
            raise CheckpointError(
                f"a vocabulary of characters holds single ones and ends with {BOS}"
            )
