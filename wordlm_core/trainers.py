"""The trainer that fits a family: what a training reads, and what takes its steps."""

from pathlib import Path

from wordlm_core import models
from wordlm_core.corpora import Corpus
from wordlm_core.gpt_trainer import GPTTrainer
from wordlm_core.items import Items, prepare_items
from wordlm_core.training import TrainConfig, Training
from wordlm_core.windows import Dataset, prepare


def prepared(config: TrainConfig, corpus: Corpus) -> Dataset | Items:
    """Return a corpus made ready for the family of `config`: split into windows, or as items.

    Raises:
        CorpusError: It holds too little, or too much, to be trained on.
        ConfigError: The limits of the vocabulary or of the context are out of range.
    """
    if models.family(config.family).READS == "items":
        return prepare_items(
            corpus,
            tokens=config.tokens,
            context_length=config.context_length,
            max_vocab=config.max_vocab,
            min_freq=config.min_freq,
        )
    return prepare(
        corpus,
        context_length=config.context_length,
        max_vocab=config.max_vocab,
        min_freq=config.min_freq,
    )


def build(config: TrainConfig, data: Dataset | Items, resume: Path | None = None) -> Training:
    """Return a training, at its beginning or at the state in the file `resume`.

    Args:
        config: Its settings.
        data: What it reads, as from `prepared`.
        resume: A state that a training of the same settings and corpus has saved.

    Raises:
        ConfigError: Sizes out of range, or a setting that the family has no use for.
        CheckpointError: `resume` is of another training, or damaged.
    """
    if isinstance(data, Items):
        return GPTTrainer(config, data, resume=resume)
    from wordlm_core.trainer import Trainer  # noqa: PLC0415 (it loads torch)

    return Trainer(config, data, resume=resume)
