"""The options that whatever starts a training has in common: parts of a parser."""

import argparse


def corpus(parser: argparse.ArgumentParser) -> None:
    """Add which texts to read."""
    parser.add_argument("--corpus", required=True, help="a corpus name, a file or a folder")
    parser.add_argument("--profile", help="a size the named corpus offers")
    parser.add_argument("--documents", type=count, metavar="N", help="only the first N")
    parser.add_argument("--licence", help="of a text of your own, to be kept with the model")


def sizes(parser: argparse.ArgumentParser) -> None:
    """Add the settings that all kinds of a benchmark share."""
    parser.add_argument("--steps", type=count, help="default 6000; microgpt 1000")
    parser.add_argument("--width", type=count, help="d_model; default 64, microgpt 16")
    parser.add_argument("--hidden", type=count, help="default 256; microgpt four times the width")
    parser.add_argument("--context", type=count, help="tokens in a window; default 64, 16")
    parser.add_argument("--batch", type=count, help="windows a step; default 512, microgpt one")
    parser.add_argument("--max-vocab", type=count, help="default: the profile's, else 4,000")
    parser.add_argument("--min-freq", type=count, help="of a kept word; default 2")


def one_training(parser: argparse.ArgumentParser) -> None:
    """Add the settings of one training; with `sizes` these are all that there are."""
    parser.add_argument("--family", required=True, help="mlp, attention or microgpt")
    parser.add_argument("--seed", type=int, help="default 11; microgpt 42")
    parser.add_argument("--heads", type=count, help="default 1; microgpt 4")
    parser.add_argument("--layers", type=count, help="default 1; word models have one")
    parser.add_argument("--tokens", choices=("char", "word"), help="microgpt's; default char")
    parser.add_argument("--lr", type=float, help="default: the family's")
    parser.add_argument("--weight-decay", type=float, help="default: the family's")
    parser.add_argument("--no-positions", action="store_true")
    parser.add_argument("--bfloat16-head", action="store_true", help="faster, less exact")


def count(text: str) -> int:
    """Return the number that a text names.

    Raises:
        ArgumentTypeError: It is no whole number of 1 or more.
    """
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"needs a whole number of 1 or more, not {text!r}")
    return value
