"""The command line: `python -m wordlm_core COMMAND`.

A table by default, one JSON document on stdout with `--json`; progress goes to stderr. Bad
input ends with `error: ...` on stderr and exit status 2, never with a traceback.
"""

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

# Matrices here are small: more threads only cost, and several commands may run at once. NumPy
# reads this when it is first imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from wordlm_core import commands, commands_gpt
from wordlm_core.answers import Answer
from wordlm_core.errors import WordLMError
from wordlm_core.tables import render

Command = Callable[[argparse.Namespace], Answer]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"error: {message} ({self.prog} --help shows the options)", file=sys.stderr)
        raise SystemExit(2)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; each sets `run` to its function."""
    parser = _Parser(prog="python -m wordlm_core", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)

    def add(name: str, run: Command, *parts: Callable[[argparse.ArgumentParser], None]) -> None:
        text = run.__doc__ or ""
        sub = subparsers.add_parser(name, help=text, description=text)
        for part in parts:
            part(sub)
        sub.add_argument("--json", action="store_true", help="one JSON document on stdout")
        sub.set_defaults(run=run)

    add("inspect", commands.inspect, _checkpoint)
    add("attend", commands.attend, _checkpoint, _step, _text)
    add("row", commands.row, _checkpoint, _step, _text, _place)
    add("ablate", commands.ablate, _checkpoint, _step, _text, _ablation, _top)
    add("knockout", commands.knockout, _checkpoint, _step, _text, _top)
    add("shuffle", commands.shuffle, _checkpoint, _step, _text, _seed, _top)
    add("logits", commands.logit_view, _checkpoint, _step, _text, _position, _top)
    add("neighbours", commands.nearest, _checkpoint, _step, _word, _top)
    add("similarity", commands.similarity, _checkpoint, _step, _words)
    add("history", commands.history, _checkpoint, _word, _top)
    add("trajectory", commands.paths, _checkpoints, _words, _separately)
    add("contextual", commands.context, _checkpoint, _step, _two_texts, _top)
    add("next", commands.next_word, _checkpoint, _step, _text, _sampling, _limit)
    add("generate", commands.generate, _checkpoint, _step, _sampling, _seed, _generation)
    add("receipt", commands.corpus_receipt, _checkpoint, _step, _text, _ngrams, _top)
    add("autograd", commands_gpt.autograd, _expression)
    add("tokens", commands_gpt.read_tokens, _checkpoint, _step, _text)
    add("parameters", commands_gpt.list_parameters, _checkpoint, _step)
    add("position", commands_gpt.walk, _checkpoint, _step, _text, _position)
    add("step", commands_gpt.step, _checkpoint, _step, _text, _rate)
    add("quiz", commands_gpt.ask, _checkpoints, _seed, _topic)
    add("train", commands.train, _corpus, _sizes, _one_training)
    add("evaluate", commands.evaluate, _checkpoint, _step, _corpus, _split)
    add("benchmark", commands.run_benchmark, _corpus, _sizes, _benchmark)
    add("corpora", commands.list_corpora)
    add("pack", commands.pack_checkpoint, _checkpoint, _packing)
    add("ngrams", commands.count_ngrams, _checkpoint, _corpus, _counting)
    add("survey", commands.take_survey, _checkpoints, _corpus, _surveying)
    return parser


def _checkpoint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", metavar="CKPT", help="a checkpoint file (.npz)")


def _step(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--step", help="a stored step, by label or number; default: selected")


def _text(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text", required=True, help="the probe sentence")


def _word(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--word", required=True)


def _top(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--top", type=_count, default=8, help="how many to list (default 8)")


def _limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=_count, default=10, help="how many to list (default 10)")


def _position(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--position", type=int, default=-1, help="index into tokens; default last")


def _place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--query", type=int, default=-1, help="index into tokens; default last")
    parser.add_argument("--layer", type=int, default=0)
    parser.add_argument("--head", type=int, default=0)


def _seed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=0, help="of the random draw (default 0)")


def _ablation(parser: argparse.ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--replace", metavar="TOKEN", help="replace by this token, not <UNK>")
    how.add_argument("--delete", action="store_true", help="delete the token, others move up")


def _two_texts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--a", required=True, metavar="TEXT")
    parser.add_argument("--b", required=True, metavar="TEXT")
    parser.add_argument("--word", help="its last occurrence in each; default: the last tokens")


def _checkpoints(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoints", nargs="+", metavar="CKPT")


def _words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--words", required=True, help="words with commas between them")


def _separately(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--separately",
        action="store_true",
        help="also how far the words seem to jump where every step has axes of its own",
    )


def _sampling(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--temperature", type=float, default=1.0, help="0 is greedy (default 1)")
    parser.add_argument("--top-k", type=int, help="keep the k most probable tokens")
    parser.add_argument("--top-p", type=float, help="keep the smallest set with this probability")


def _generation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text", default="", help="what to continue; default: from <BOS>")
    parser.add_argument("--max-tokens", type=_count, default=30)
    parser.add_argument("--samples", type=_count, default=1)


def _ngrams(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ngrams", default="artifacts/ngrams.npz", metavar="FILE")


def _expression(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--expression", required=True, metavar="E", help="over a, b and c")
    parser.add_argument("--a", type=float, default=2.0)
    parser.add_argument("--b", type=float, default=-3.0)
    parser.add_argument("--c", type=float, default=10.0)
    parser.add_argument("--calls", type=_count, default=1, help="of backward, without zeroing")


def _rate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate (default 0.01)")


def _topic(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", help="only this one; default: all")


def _corpus(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpus", required=True, help="a corpus name, a file or a folder")
    parser.add_argument("--profile", help="a size the named corpus offers")
    parser.add_argument("--documents", type=_count, metavar="N", help="only the first N")
    parser.add_argument("--licence", help="of a text of your own, to be kept with the model")


def _sizes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=_count, help="default 6000; microgpt 1000")
    parser.add_argument("--width", type=_count, help="d_model; default 64, microgpt 16")
    parser.add_argument("--hidden", type=_count, help="default 256; microgpt four times the width")
    parser.add_argument("--context", type=_count, help="tokens in a window; default 64, 16")
    parser.add_argument("--batch", type=_count, help="windows a step; default 512, microgpt one")
    parser.add_argument("--max-vocab", type=_count, help="default: the profile's, else 4,000")
    parser.add_argument("--min-freq", type=_count, help="of a kept word; default 2")
    parser.add_argument("--out", required=True, help="file of a training, folder of a benchmark")


def _one_training(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--family", required=True, help="mlp, attention or microgpt")
    parser.add_argument("--seed", type=int, help="default 11; microgpt 42")
    parser.add_argument("--heads", type=_count, help="default 1; microgpt 4")
    parser.add_argument("--layers", type=_count, help="default 1; word models have one")
    parser.add_argument("--tokens", choices=("char", "word"), help="microgpt's; default char")
    parser.add_argument("--lr", type=float, help="default: the family's")
    parser.add_argument("--weight-decay", type=float, help="default: the family's")
    parser.add_argument("--no-positions", action="store_true")
    parser.add_argument("--bfloat16-head", action="store_true", help="faster, less exact")
    parser.add_argument("--resume", action="store_true", help="go on from the state beside --out")


def _benchmark(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", default="11,29,47")


def _split(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--split", choices=("train", "validation", "test"), help="default test")


def _packing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", required=True)
    parser.add_argument("--bits", type=int, default=12, help="significant bits kept (8 to 24)")
    parser.add_argument("--history-bits", type=int, default=8, help="of other steps (8 to 11)")
    parser.add_argument("--snapshots", default="", help="steps whose whole weights stay, by commas")


def _counting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="artifacts/ngrams.npz")
    parser.add_argument("--least", type=_count, default=2, help="least count that is kept")


def _surveying(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--windows", type=_count, default=200, help="how many (default 200)")
    parser.add_argument("--out", default="artifacts/survey.npz")


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"needs a whole number of 1 or more, not {text!r}")
    return value


def main(argv: list[str] | None = None) -> int:
    """Run one command and return the exit status."""
    args = build_parser().parse_args(argv)
    try:
        answer = args.run(args)
        return _print(_json(answer) if args.json else render(answer))
    except WordLMError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stopped:
        print(f"error: {stopped or 'interrupted'}", file=sys.stderr)
        return 128 + signal.SIGINT


def _print(text: str) -> int:
    """Print an answer; a reader that went away early is no error, a full disk is one."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python flushes once more at exit: give it something that can be flushed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"error: the answer could not be written: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    return 0


def _json(answer: dict[str, Any]) -> str:
    return json.dumps(answer, ensure_ascii=False, allow_nan=False)


if __name__ == "__main__":
    if sys.stdout is None:  # started with stdout closed
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stdout.reconfigure(encoding="utf-8")  # pyright: ignore[reportAttributeAccessIssue]
    raise SystemExit(main())
