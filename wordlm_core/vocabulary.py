"""Vocabulary: the one place that knows which id stands for which token.

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
from typing import Any

import numpy as np
from jaxtyping import Int

from wordlm_core.errors import CheckpointError, ConfigError, TextError
from wordlm_core.text import BOS, BOS_ID, FIRST_LEXICAL_ID, SPECIALS, UNK, UNK_ID, normalise, pieces

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
    """

    tokens: tuple[str, ...]
    typed: tuple[str, ...]
    ids: Int[np.ndarray, " pos"]
    unknown: tuple[int, ...]
    dropped: int

    def last(self, count: int) -> "Probe":
        """Return the last `count` tokens as a text of their own: what a short window holds."""
        cut = max(0, len(self.tokens) - count)
        return Probe(
            tokens=self.tokens[cut:],
            typed=self.typed[cut:],
            ids=self.ids[cut:],
            unknown=tuple(position - cut for position in self.unknown if position >= cut),
            dropped=self.dropped + cut,
        )


@dataclass(frozen=True)
class Vocabulary:
    """An ordered list of tokens with their counts in the training split.

    Attributes:
        itos: Token of each id; the four specials come first.
        counts: How often each token stands in the training documents; `<UNK>` counts the
            tokens that were left out.
    """

    itos: tuple[str, ...]
    counts: Mapping[str, int]

    def __post_init__(self) -> None:
        """Refuse a list that could give two ids to one token, or none to a special."""
        if self.itos[: len(SPECIALS)] != SPECIALS:
            raise CheckpointError(
                f"the vocabulary must begin with {', '.join(SPECIALS)}, not "
                f"{', '.join(map(repr, self.itos[:4])) or 'nothing'}"
            )
        if len(self.stoi) != len(self.itos):
            raise CheckpointError("the vocabulary names a token twice")

    @classmethod
    def build(
        cls, documents: Iterable[Sequence[str]], *, min_freq: int, max_vocab: int
    ) -> "Vocabulary":
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

    @classmethod
    def from_json(cls, data: Any, where: str) -> "Vocabulary":
        """Read `{"itos": [...], "counts": {...}}`; `where` names the source in errors."""
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
        return cls(tuple(itos), counts)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that `from_json` reads."""
        return {"tokenizer": "word", "itos": list(self.itos), "counts": dict(self.counts)}

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

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the id of each token, `<UNK>`'s where it is not in the vocabulary."""
        return [self.stoi.get(token, UNK_ID) for token in tokens]

    def probe(self, text: str, context_length: int) -> Probe:
        """Read a typed text as `<BOS>` and its tokens, the last `context_length` of them.

        Raises:
            TextError: Nothing was typed.
        """
        found = pieces(text)
        if not found:
            raise TextError("there is nothing to read: type at least one word")
        typed = (BOS, *(form for _, form in found))
        ids = np.array([BOS_ID, *self.encode(token for token, _ in found)], dtype=np.int64)
        dropped = max(0, len(ids) - context_length)
        ids = ids[dropped:]
        ids.setflags(write=False)
        return Probe(
            tokens=tuple(self.itos[i] for i in ids),
            typed=typed[dropped:],
            ids=ids,
            unknown=tuple(int(i) for i in np.flatnonzero(ids == UNK_ID)),
            dropped=dropped,
        )

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

    def near(self, word: str, limit: int = 5) -> list[str]:
        """Return vocabulary words spelled like `word`, best first."""
        return difflib.get_close_matches(
            normalise(word), self.itos[FIRST_LEXICAL_ID:], n=limit, cutoff=0.7
        )
