"""Text to tokens: one rule for training and for typed probes.

`normalise` gives the form that is compared, hashed and split by; `tokenise` cuts it into
tokens. Nothing is dropped without a trace: whatever the vocabulary cannot hold by its form
alone becomes one `<UNK>`, so that a picture has a place for it.
"""

import re
import unicodedata

PAD, BOS, EOS, UNK = "<PAD>", "<BOS>", "<EOS>", "<UNK>"
SPECIALS = (PAD, BOS, EOS, UNK)
PAD_ID, BOS_ID, EOS_ID, UNK_ID = range(4)
FIRST_LEXICAL_ID = len(SPECIALS)

# The acute accent stands here because NFKC would turn it into a blank and a combining mark.
_STRAIGHT = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc\u2032\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"')
)

_SIGNS = {"\t": "\u21e5", "\n": "\u21b5"}
_LATIN_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_PIECE = re.compile(
    r"""
    (?P<special> <(?:pad|bos|eos|unk)> )
  | (?P<word>    [^\W\d_]+ (?: '[^\W\d_]+ )? )   # letters of any script
  | (?P<as_is>   [0-9]+ | [^\w\s] )
  | (?P<dropped> (?: _ | (?![0-9])\d )+ )        # underscores, digits of other scripts
    """,
    re.VERBOSE,
)


def normalise(text: str) -> str:
    """Return `text` in the form that is hashed, split by and tokenised.

    NFKC, curly quotes and apostrophes to straight ones, lower case, every run of white
    space one blank. Idempotent.
    """
    text = unicodedata.normalize("NFKC", text.translate(_STRAIGHT)).translate(_STRAIGHT)
    # Lower-casing can undo NFKC (a dotted capital I), so compose once more after it.
    return " ".join(unicodedata.normalize("NFKC", text.lower()).split())


def pieces(text: str) -> list[tuple[str, str]]:
    """Return (token, typed form) for each piece of `text`, in order.

    The token is what a vocabulary is asked for: a lower-case word, a number, one
    punctuation mark, or `<UNK>` for a word of another script, for a typed special token
    and for a run of characters that fits no rule. The typed form is the normalised text
    of the piece with its accents and vowel signs, for messages only.
    """
    # Accents are combining marks after decomposition; without them "café" is "cafe", and
    # a word of a script with vowel signs stays one run of letters.
    decomposed = unicodedata.normalize("NFD", normalise(text))
    if decomposed.isascii():
        return [(_token(match), match.group()) for match in _PIECE.finditer(decomposed)]
    letters = [i for i, c in enumerate(decomposed) if not unicodedata.category(c).startswith("M")]
    folded = "".join(decomposed[i] for i in letters)
    letters.append(len(decomposed))
    return [
        (_token(match), _typed(decomposed[letters[match.start()] : letters[match.end()]]))
        for match in _PIECE.finditer(folded)
    ]


def tokenise(text: str) -> list[str]:
    """Return the tokens of `text`, without `<BOS>` or `<EOS>`."""
    return [token for token, _ in pieces(text)]


def visible(token: str) -> str:
    """Return a token as it can be seen: white space as a sign of its own.

    Character models have tokens that a page would swallow.
    """
    return _SIGNS.get(token, "\u2423" if token.isspace() else token)


def _typed(decomposed: str) -> str:
    return unicodedata.normalize("NFC", decomposed)


def _token(match: re.Match[str]) -> str:
    piece = match.group()
    if match.lastgroup == "word":
        return piece if _LATIN_WORD.fullmatch(piece) else UNK
    return piece if match.lastgroup == "as_is" else UNK
