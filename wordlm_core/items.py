"""A list of items made ready for microgpt: one document a step, no windows, no split.

Items are the lines of a corpus as they are: names, words, sentences. Nothing is lower-cased
and a repeat counts twice, because the original trains on it twice; `audit` says how many.
"""

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import UInt64

from wordlm_core.corpora import Corpus
from wordlm_core.errors import ConfigError, CorpusError
from wordlm_core.text import tokenise
from wordlm_core.vocabulary import CharVocabulary, Vocabulary, WordVocabulary

TOKENS = ("char", "word")
MAX_ITEMS = 1_000_000


@dataclass(frozen=True)
class Items:
    """A list with its vocabulary.

    Attributes:
        corpus: Where it comes from.
        documents: The items in the order of the source.
        vocabulary: Of their characters or words.
        audit: Counts: items, repeats, those longer than the context, the longest.
    """

    corpus: Corpus
    documents: tuple[str, ...]
    vocabulary: Vocabulary
    audit: dict[str, Any]

    def hashes(self) -> UInt64[np.ndarray, " items"]:
        """Return the hash of each different item, as a sample would spell it, sorted."""
        vocabulary = self.vocabulary
        spelled = (
            vocabulary.joined(vocabulary.itos[token_id] for token_id, _ in vocabulary.read(each))
            for each in self.documents
        )
        hashes = {item_hash(item) for item in spelled}
        return np.sort(np.fromiter(hashes, dtype=np.uint64, count=len(hashes)))

    def floor(self, context_length: int) -> float:
        """Return the least mean loss that any model can have on this list, in nats a token.

        Averaged as training reports it: over items, of each item's mean over its predictions.
        An item's predictions multiply to the probability p of the whole item, and those of
        different items sum to at most 1. The mean of -log(p) / length is least where p is
        proportional to w = count / length, and is then sum(w log(W / w)) / items, with W the
        sum of all w (Gibbs' inequality). A model that knows the list by heart reaches it.

        Args:
            context_length: Predictions of an item that count, at most.
        """
        read = (self.vocabulary.document(each)[1 : context_length + 1] for each in self.documents)
        counts = Counter(tuple(ids.tolist()) for ids in read)
        weights = np.array([count / len(ids) for ids, count in counts.items()])
        return float((weights * np.log(weights.sum() / weights)).sum() / len(self.documents))


def item_hash(document: str) -> int:
    """Return the first 8 bytes of an item's sha256 as a number.

    Enough to say whether a sample stands in the list without keeping the list: of a million
    items, a new one is mistaken for a seen one once in 10^13.
    """
    return int.from_bytes(hashlib.sha256(document.encode()).digest()[:8], "big")


def prepare_items(
    corpus: Corpus,
    *,
    tokens: str = "char",
    context_length: int = 16,
    max_vocab: int = 4000,
    min_freq: int = 1,
    vocabulary: Vocabulary | None = None,
) -> Items:
    """Take the items of a corpus and build their vocabulary.

    Args:
        corpus: Its documents are the items; blank ones are passed over.
        tokens: `char`, or `word` to read items like the word models do.
        context_length: Only for the audit: a longer item is trained on up to there.
        max_vocab: Limit of a word vocabulary.
        min_freq: Least count of a kept word.
        vocabulary: Use this one instead of building one (to evaluate a saved model).

    Raises:
        CorpusError: There is no item, or too many.
        ConfigError: No such kind of tokens.
        TextError: `vocabulary` cannot read an item.
    """
    if tokens not in TOKENS:
        raise ConfigError(f"tokens are {' or '.join(TOKENS)}, not {tokens[:40]!r}")
    documents = tuple(text for text in map(str.strip, corpus.documents) if text)
    if tokens == "word":  # a line of nothing that is a token would be an empty document
        documents = tuple(text for text in documents if tokenise(text))
    if not 1 <= len(documents) <= MAX_ITEMS:
        raise CorpusError(
            f"{corpus.name} holds {len(documents):,} items; a list has 1 to {MAX_ITEMS:,}"
        )
    if vocabulary is None and tokens == "char":
        vocabulary = CharVocabulary.build(documents)
    elif vocabulary is None:
        vocabulary = WordVocabulary.build(
            map(tokenise, documents), min_freq=min_freq, max_vocab=max_vocab
        )
    return Items(corpus, documents, vocabulary, _audit(documents, tokens, context_length))


def _audit(documents: tuple[str, ...], tokens: str, context_length: int) -> dict[str, Any]:
    lengths = [len(d) if tokens == "char" else len(tokenise(d)) for d in documents]
    repeats = len(documents) - len(Counter(documents))
    return {
        "items": len(documents),
        "repeats": repeats,
        "tokens": sum(lengths),
        "longest": max(lengths),
        # BOS takes a place of the context, and the last token is only ever predicted.
        "longer_than_context": sum(length + 1 > context_length for length in lengths),
    }
