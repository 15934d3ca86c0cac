"""How every command line of ours behaves: a table or one JSON document, and one-line errors.

Bad input ends with `error: ...` on stderr and exit status 2, never with a traceback.
"""

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from wordlm_core.errors import WordLMError
from wordlm_core.tables import render


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and leave."""
        print(f"error: {message} ({self.prog} --help shows the options)", file=sys.stderr)
        raise SystemExit(2)


def run(parser: argparse.ArgumentParser, argv: list[str] | None) -> int:
    """Run the command that `run` of the parsed options is, and return the exit status."""
    args = parser.parse_args(argv)
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


def start(main: Callable[[], int]) -> int:
    """Run a program's `main` with a stdout that takes any text."""
    if sys.stdout is None:  # started with stdout closed
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stdout.reconfigure(encoding="utf-8")  # pyright: ignore[reportAttributeAccessIssue]
    return main()
