"""The command line: `python -m wordlm_core COMMAND`.

A table by default, one JSON document on stdout with `--json`; progress goes to stderr. Bad
input ends with `error: ...` on stderr and exit status 2, never with a traceback.
"""

import argparse
import os
from collections.abc import Callable

# Matrices here are small: more threads only cost, and several commands may run at once. NumPy
# reads this when it is first imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from wordlm_core import commands, commands_gpt, console, options
from wordlm_core.answers import Answer

Command = Callable[[argparse.Namespace], Answer]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; each sets `run` to its function."""
    parser = console.Parser(prog="python -m wordlm_core", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True, parser_class=console.Parser)

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
    add("train", commands.train, options.corpus, options.sizes, _out, options.one_training, _resume)
    add("evaluate", commands.evaluate, _checkpoint, _step, options.corpus, _split)
    add("benchmark", commands.run_benchmark, options.corpus, options.sizes, _out, _benchmark)
    add("corpora", commands.list_corpora)
    add("pack", commands.pack_checkpoint, _checkpoint, _packing)
    add("ngrams", commands.count_ngrams, _checkpoint, options.corpus, _counting)
    add("survey", commands.take_survey, _checkpoints, options.corpus, _surveying)
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
    parser.add_argument("--top", type=options.count, default=8, help="how many to list (default 8)")


def _limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit", type=options.count, default=10, help="how many to list (default 10)"
    )


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
    parser.add_argument("--max-tokens", type=options.count, default=30)
    parser.add_argument("--samples", type=options.count, default=1)


def _ngrams(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ngrams", default="artifacts/ngrams.npz", metavar="FILE")


def _expression(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--expression", required=True, metavar="E", help="over a, b and c")
    parser.add_argument("--a", type=float, default=2.0)
    parser.add_argument("--b", type=float, default=-3.0)
    parser.add_argument("--c", type=float, default=10.0)
    parser.add_argument(
        "--calls", type=options.count, default=1, help="of backward, without zeroing"
    )


def _rate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate (default 0.01)")


def _topic(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", help="only this one; default: all")


def _out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", required=True, help="file of a training, folder of a benchmark")


def _resume(parser: argparse.ArgumentParser) -> None:
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
    parser.add_argument("--out", required=True, help="of the app: artifacts/ngrams.npz")
    parser.add_argument("--least", type=options.count, default=2, help="least count that is kept")


def _surveying(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--windows", type=options.count, default=200, help="how many (default 200)")
    parser.add_argument("--out", required=True, help="of the app: artifacts/survey.npz")


def main(argv: list[str] | None = None) -> int:
    """Run one command and return the exit status."""
    return console.run(build_parser(), argv)


if __name__ == "__main__":
    raise SystemExit(console.start(main))
