"""Every error that bad input can cause, in one tree.

    WordLMError
    |- TextError          a probe or word that cannot be used
    |- CorpusError        a corpus that cannot be read, fetched or split
    |- CheckpointError    a checkpoint file that is not one, or lacks what is asked for
    |- ConfigError        a size, step count or setting out of range

The message is one sentence for a person: what is wrong and, where there is one, the way
out. The command line prints it and exits 2; a page shows it in place of its figure.
"""


class WordLMError(ValueError):
    """Base of all errors whose message is meant for the person who gave the input."""


class TextError(WordLMError):
    """A typed text, word or position cannot be used."""


class CorpusError(WordLMError):
    """A corpus cannot be found, read, fetched or split."""


class CheckpointError(WordLMError):
    """A checkpoint is unreadable, or does not hold what a lens needs."""


class ConfigError(WordLMError):
    """A setting is out of its range."""
