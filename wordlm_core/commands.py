"""What each command answers, as JSON-ready data. Parsing and printing are `__main__`'s.

Every function takes the parsed arguments and returns a dict; a page shows the same numbers
from the same lens functions. Text that a person typed never comes back: tokens are the
vocabulary's.
"""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Generator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from wordlm_core import answers, benchmark, checkpoint, corpora, gpt_trainer, trainers
from wordlm_core.answers import Answer
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.errors import CheckpointError, ConfigError, TextError
from wordlm_core.lens import (
    ablation,
    attention,
    contextual,
    logits,
    maps,
    neighbours,
    receipt,
    sampling,
    survey,
    trajectory,
)
from wordlm_core.models.base import LanguageModel, count_parameters
from wordlm_core.models.microgpt import MicroGPTModel
from wordlm_core.packing import pack
from wordlm_core.training import (
    NonFiniteLossError,
    Progress,
    TrainConfig,
    perplexity,
    resume_path,
)
from wordlm_core.vocabulary import Probe, WordVocabulary
from wordlm_core.windows import Windows, prepare

_MAX_NAME = 240  # file systems take 255 bytes, and a file is written aside first


def open_checkpoint(path: str) -> Checkpoint:
    """Read a checkpoint; what is wrong with it is said with the file's name."""
    with checkpoint.naming(Path(path)):
        return checkpoint.load(Path(path))


def open_text(args: argparse.Namespace) -> tuple[Checkpoint, LanguageModel, Probe]:
    """Return the checkpoint, its model at --step and the probe of --text."""
    loaded = open_checkpoint(args.checkpoint)
    model = loaded.model_at(args.step)
    return loaded, model, loaded.vocabulary.probe(args.text, model.config.context_length)


# -- looking into a checkpoint


def inspect(args: argparse.Namespace) -> Answer:
    """Say what a checkpoint is."""
    loaded = open_checkpoint(args.checkpoint)
    model, config = loaded.model, loaded.model.config
    return {
        "path": args.checkpoint,
        "kind": model.kind,
        "vocab_size": len(loaded.vocabulary),
        "context_length": config.context_length,
        "d_model": config.d_model,
        "n_head": model.n_head,
        "n_layer": model.n_layer,
        "parameters": count_parameters(model.weights),
        "steps": list(loaded.steps),
        "whole_steps": list(loaded.whole_steps),
        "selected_step": loaded.selected_step,
        "metrics": loaded.section("metrics"),
        "corpus": loaded.section("corpus"),
        "sha256": loaded.sha256,
    }


def attend(args: argparse.Namespace) -> Answer:
    """Give the attention weights of every head over a text."""
    _, model, probe = open_text(args)
    return answers.of_attention(attention.attend(model, probe), probe)


def row(args: argparse.Namespace) -> Answer:
    """Take one query's row of one head apart: q.k, scale, mask, softmax."""
    _, model, probe = open_text(args)
    query = args.query % len(probe.ids) if args.query < 0 else args.query
    steps = attention.row_steps(attention.attend(model, probe).trace, args.layer, args.head, query)
    keys = [
        {
            "position": position,
            "token": token,
            "dot": float(steps.dots[position]),
            "scaled": float(steps.scaled[position]),
            "masked": bool(steps.masked[position]),
            "weight": float(steps.weights[position]),
        }
        for position, token in enumerate(probe.tokens)
    ]
    return {**answers.of_probe(probe), "query": query, "keys": keys, "mix": steps.mix.tolist()}


def ablate(args: argparse.Namespace) -> Answer:
    """Replace or delete each token in turn and measure the change of the prediction."""
    loaded, model, probe = open_text(args)
    result = ablation.ablate(
        model,
        loaded.vocabulary,
        probe,
        replacement=args.replace,
        delete=args.delete,
        top=args.top,
    )
    return answers.of_ablation(result, probe)


def knockout(args: argparse.Namespace) -> Answer:
    """Switch each head off in turn and measure the change of the prediction."""
    loaded, model, probe = open_text(args)
    effects = ablation.knock_out(model, loaded.vocabulary, probe, top=args.top)
    heads = [
        {
            "layer": effect.layer,
            "head": effect.head,
            **answers.of_kl(effect.kl),
            "changes": answers.rows(effect.changes),
        }
        for effect in effects
    ]
    return {**answers.of_probe(probe), "heads": heads}


def shuffle(args: argparse.Namespace) -> Answer:
    """Put the earlier words in another order and measure the change of the prediction."""
    loaded, model, probe = open_text(args)
    result = ablation.shuffle(model, loaded.vocabulary, probe, args.seed, top=args.top)
    return {
        **answers.of_probe(probe),
        "order": list(result.order),
        "shuffled": list(result.tokens),
        **answers.of_kl(result.kl),
        "prediction_before": answers.rows(result.prediction_before),
        "prediction_after": answers.rows(result.prediction_after),
    }


def logit_view(args: argparse.Namespace) -> Answer:
    """Say which tokens attention and the MLP promote and push down at a position."""
    loaded, model, probe = open_text(args)
    view = logits.logit_view(model, loaded.vocabulary, probe, position=args.position, top=args.top)
    return {**answers.of_probe(probe), **answers.plain(asdict(view))}


def nearest(args: argparse.Namespace) -> Answer:
    """List the cosine neighbours of a word's lookup row."""
    loaded = open_checkpoint(args.checkpoint)
    table = loaded.embedding_at(args.step)
    word_id = loaded.vocabulary.word_id(args.word)
    found = neighbours.nearest(table, loaded.vocabulary, word_id, top=args.top)
    return answers.of_neighbours(found)


def similarity(args: argparse.Namespace) -> Answer:
    """Give the cosines of a few words' lookup rows, each with each."""
    loaded = open_checkpoint(args.checkpoint)
    word_ids = [loaded.vocabulary.word_id(word) for word in _words(args)]
    found = neighbours.similarity(loaded.embedding_at(args.step), loaded.vocabulary, word_ids)
    return {"words": list(found.tokens), "cosines": found.cosines.tolist()}


def history(args: argparse.Namespace) -> Answer:
    """Say at which stored step a word's neighbours joined and left."""
    loaded = open_checkpoint(args.checkpoint)
    found = neighbours.history(loaded, loaded.vocabulary.word_id(args.word), top=args.top)
    return answers.plain(asdict(found))


def paths(args: argparse.Namespace) -> Answer:
    """Follow words over training on one PCA basis of all checkpoints and steps."""
    loaded = [open_checkpoint(path) for path in args.checkpoints]
    words = _words(args)
    common = trajectory.trajectory(loaded, words)
    answer = answers.of_trajectory(common)
    if args.separately:
        answer["separately"] = [
            {"checkpoint": each.name}
            | asdict(maps.jumps(maps.refitted(each, words), common, index))
            for index, each in enumerate(loaded)
        ]
    return answer


def _words(args: argparse.Namespace) -> list[str]:
    words = [word for word in args.words.split(",") if word.strip()]
    if not words:
        raise TextError("name at least one word")
    return words


def context(args: argparse.Namespace) -> Answer:
    """Compare one word's lookup and contextual rows in two texts."""
    loaded = open_checkpoint(args.checkpoint)
    model = loaded.model_at(args.step)
    length = model.config.context_length
    probes = [loaded.vocabulary.probe(text, length) for text in (args.a, args.b)]
    places = [len(probe.ids) - 1 for probe in probes]
    if args.word is not None:
        word_id = loaded.vocabulary.word_id(args.word)
        places = [_last_occurrence(probe, word_id) for probe in probes]
    pair = contextual.compare(
        model, loaded.vocabulary, probes[0], places[0], probes[1], places[1], top=args.top
    )
    return answers.plain(asdict(pair))


def _last_occurrence(probe: Probe, word_id: int) -> int:
    found = np.flatnonzero(probe.ids == word_id)
    if not len(found):
        raise TextError("the word does not stand in both texts")
    return int(found[-1])


def next_word(args: argparse.Namespace) -> Answer:
    """Give the next-word distribution after a text."""
    loaded, model, probe = open_text(args)
    result = sampling.next_distribution(
        model.last_logits(probe.ids[None])[0],
        loaded.vocabulary,
        temperature=args.temperature,
        top_k=args.top_k,
        top_p=args.top_p,
    )
    return answers.of_distribution(result, probe, args.limit)


def generate(args: argparse.Namespace) -> Answer:
    """Sample continuations."""
    loaded = open_checkpoint(args.checkpoint)
    model = loaded.model_at(args.step)
    probe = None
    if args.text:
        probe = loaded.vocabulary.probe(args.text, model.config.context_length)
    samples = sampling.generate(
        model,
        loaded.vocabulary,
        probe,
        temperature=args.temperature,
        top_k=args.top_k,
        top_p=args.top_p,
        seed=args.seed,
        max_tokens=args.max_tokens,
        samples=args.samples,
    )
    return {
        "samples": [sample.text for sample in samples],
        "seen_in_training": [sampling.seen_in_training(loaded, probe, each) for each in samples],
    }


def corpus_receipt(args: argparse.Namespace) -> Answer:
    """Say what followed the same last words in training, beside what the model expects."""
    loaded, model, probe = open_text(args)
    found = receipt.receipt(
        receipt.load(Path(args.ngrams)), loaded.vocabulary, probe.ids, top=args.top
    )
    expected = sampling.next_distribution(model.last_logits(probe.ids[None])[0], loaded.vocabulary)
    return {
        **answers.of_probe(probe),
        "prediction": answers.rows(expected.ranked(args.top)),
        **answers.plain(asdict(found)),
    }


# -- training and measuring


def train(args: argparse.Namespace) -> Answer:
    """Train one model, or go on with one that was stopped."""
    out = Path(args.out)
    # os.path: unlike Path.is_dir, it calls a name that is too long just absent.
    if out.suffix != ".npz" or os.path.isdir(out):
        raise ConfigError(f"--out must be a file that ends in .npz, not {out.name[:80]!r}")
    config = one_config(args)
    state = resume_path(out)
    if len(os.fsencode(state.name)) > _MAX_NAME:
        raise ConfigError("the name of --out is too long for a file beside it that ends in .tmp")
    if args.resume and not os.path.exists(state):
        raise ConfigError(f"there is nothing to resume: {state.name[:80]} is not there")
    if not args.resume and os.path.exists(state):
        raise ConfigError(
            f"{state.name} holds a training that was stopped: --resume goes on with it, or remove "
            "that file"
        )
    data = trainers.prepared(config, _corpus(args))
    trainer = trainers.build(config, data, state if args.resume else None)
    with _Bar(config.steps, trainer.step) as bar, _stoppable() as should_stop:
        try:
            ended = trainer.run(
                report=lambda progress: bar.show(out.stem, progress),
                should_stop=should_stop,
                save_to=state,
            )
        except NonFiniteLossError as error:
            checkpoint.save(trainer.checkpoint(test=False), out)
            raise NonFiniteLossError(
                f"{error}; the weights and the curve up to there are in {out.name}"
            ) from error
    if not ended:
        raise KeyboardInterrupt(f"stopped at step {trainer.step}: --resume goes on from there")
    done = trainer.checkpoint()
    checkpoint.save(done, out)
    state.unlink(missing_ok=True)
    return {
        "out": args.out,
        "parameters": count_parameters(done.model.weights),
        "steps": config.steps,
        "selected_step": done.selected_step,
        "loss_history": done.metadata["loss_history"],
        "metrics": done.metadata["metrics"],
    }


def evaluate(args: argparse.Namespace) -> Answer:
    """Measure a checkpoint's loss on a split of a corpus."""
    loaded = open_checkpoint(args.checkpoint)
    model = loaded.model_at(args.step)
    if isinstance(model, MicroGPTModel):
        if args.split is not None:
            raise ConfigError("microgpt trains on a whole list: it has no splits to choose from")
        loss, targets = gpt_trainer.mean_loss(loaded, model, _corpus(args))
    else:
        from wordlm_core.trainer import mean_loss  # noqa: PLC0415 (it loads torch)

        windows = _split(args, loaded, args.split or "test")
        loss, targets = mean_loss(model, windows), len(windows)
    if not np.isfinite(loss):
        raise CheckpointError("the loss is not finite: the weights are too large")
    return {"loss": loss, "perplexity": perplexity(loss), "targets": targets}


def run_benchmark(args: argparse.Namespace) -> Answer:
    """Train every kind over several seeds and compare."""
    try:
        seeds = [int(seed) for seed in args.seeds.split(",")]
    except ValueError as error:
        raise ConfigError(f"--seeds takes whole numbers with commas, not {args.seeds!r}") from error
    config = shared_config(args, "attention")
    with _Bar(config.steps, 0) as bar, _stoppable() as should_stop:
        return benchmark.run(
            _corpus(args),
            Path(args.out),
            seeds=seeds,
            base=config,
            report=lambda kind, seed, progress: bar.show(f"{kind} {seed}", progress),
            should_stop=should_stop,
        )


def list_corpora(args: argparse.Namespace) -> Answer:
    """List the named corpora."""
    listed = [
        {
            "name": name,
            "documents": module.INFO.documents,
            "licence": module.INFO.licence,
            "available": module.available(),
            "how_to_get": module.INFO.how_to_get,
        }
        for name, module in corpora.modules().items()
    ]
    return {"corpora": listed}


def pack_checkpoint(args: argparse.Namespace) -> Answer:
    """Write a smaller copy of a checkpoint, for shipping."""
    out = Path(args.out)
    wanted = [label for label in args.snapshots.split(",") if label]
    packed = pack(
        open_checkpoint(args.checkpoint),
        significant_bits=args.bits,
        history_bits=args.history_bits,
        snapshots=wanted,
    )
    checkpoint.save(packed, out)
    return {"out": args.out, "bytes": out.stat().st_size, "packed": packed.metadata["packed"]}


def count_ngrams(args: argparse.Namespace) -> Answer:
    """Count the training split's word pairs and triples for the corpus receipt."""
    loaded = open_checkpoint(args.checkpoint)
    documents = _split(args, loaded, "train").documents()
    grams = receipt.count(documents, loaded.vocabulary, least=args.least)
    out = Path(args.out)
    receipt.save(grams, out)
    return {
        "out": args.out,
        "bytes": out.stat().st_size,
        "bigrams": len(grams.bigrams),
        "trigrams": len(grams.trigrams),
    }


def take_survey(args: argparse.Namespace) -> Answer:
    """Ablate many held-out windows in each model and keep the numbers."""
    corpus = _corpus(args)
    surveys: dict[str, survey.Survey] = {}
    for path in args.checkpoints:
        loaded = open_checkpoint(path)
        if loaded.name in surveys:
            raise ConfigError(f"two checkpoints are called {loaded.name}")
        windows = _split(args, loaded, "test")
        surveys[loaded.name] = survey.survey(loaded, windows, count=args.windows)
    out = Path(args.out)
    survey.save(surveys, {"name": corpus.name, "sha256": corpus.sha256, "split": "test"}, out)
    return {
        "out": args.out,
        "bytes": out.stat().st_size,
        "models": [_survey_json(name, of) for name, of in surveys.items()],
    }


def _survey_json(name: str, of: survey.Survey) -> Answer:
    common = {"checkpoint": name, "windows": len(of.kl), "mean_kl": float(of.kl.mean())}
    if of.attention is None:
        return {**common, "median_rank_correlation": None, "top_matches": None}
    found = survey.agreement(of)
    return {
        **common,
        "median_rank_correlation": found.median,
        "top_matches": found.top_matches,
    }


def _corpus(args: argparse.Namespace) -> corpora.Corpus:
    if args.profile is not None:
        corpora.profile_of(args.profile)  # refuses an unknown one even beside --documents
    corpus = corpora.load(args.corpus, profile=args.profile, documents=args.documents)
    return corpus if args.licence is None else replace(corpus, licence=args.licence)


def _split(args: argparse.Namespace, loaded: Checkpoint, split: str) -> Windows:
    """Return a split of the corpus, in the vocabulary and windows of a checkpoint."""
    if not isinstance(loaded.vocabulary, WordVocabulary):
        raise ConfigError(f"{loaded.name} reads characters: this needs a model that reads words")
    data = prepare(
        _corpus(args),
        context_length=loaded.model.config.context_length,
        max_vocab=len(loaded.vocabulary),
        min_freq=1,
        vocabulary=loaded.vocabulary,
        needed=(split,),
    )
    return data.splits[split]


def shared_config(args: argparse.Namespace, family: str, **more: Any) -> TrainConfig:
    """Return a family's settings with the parsed options that all kinds of a benchmark share.

    Raises:
        ConfigError: One is out of range, or the family has no such choice.
    """
    profile = corpora.profile_of(args.profile or "full")
    return TrainConfig.of(
        family,
        steps=args.steps,
        d_model=args.width,
        hidden=args.hidden,
        context_length=args.context,
        batch=args.batch,
        max_vocab=profile.max_vocab if args.max_vocab is None else args.max_vocab,
        min_freq=args.min_freq,
        **more,
    )


def one_config(args: argparse.Namespace) -> TrainConfig:
    """Return the settings that the parsed options of one training stand for.

    Raises:
        ConfigError: One is out of range, or the family has no such choice.
    """
    return shared_config(
        args,
        args.family,
        seed=args.seed,
        n_head=args.heads,
        n_layer=args.layers,
        lr=args.lr,
        weight_decay=args.weight_decay,
        positions=not args.no_positions,
        tokens=args.tokens,
        bfloat16_head=args.bfloat16_head,
    )


@contextlib.contextmanager
def _stoppable() -> Generator[Callable[[], bool]]:
    """Turn Ctrl-C and SIGTERM into a question that a training asks before every step."""
    asked: list[int] = []
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda got, _: asked.append(got)) for number in signals]
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


class _Bar:
    """A progress bar on stderr with the losses beside it."""

    def __init__(self, total: int, done: int) -> None:
        from tqdm import tqdm  # noqa: PLC0415

        self._bar = tqdm(total=total, initial=done, unit="step", file=sys.stderr, leave=True)

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def show(self, name: str, progress: Progress) -> None:
        """Move the bar; a smaller step than the last starts it anew for the next run."""
        if progress.step < self._bar.n:
            self._bar.reset(total=progress.steps)
        self._bar.update(progress.step - self._bar.n)
        if progress.validation_loss is not None:
            self._bar.set_description(f"{name}  validation {progress.validation_loss:.3f} nats")
