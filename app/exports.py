"""Results as files: CSV with one row a cell or position, JSON with the command line's keys.

A notebook holds the lines that compute the result again.
"""

import csv
import html
import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np

from app.figures import Near
from wordlm_core import answers
from wordlm_core.lens.ablation import AblationResult
from wordlm_core.lens.attention import AttentionResult
from wordlm_core.lens.contextual import ContextPair
from wordlm_core.lens.logits import LogitView
from wordlm_core.lens.neighbours import NeighbourHistory, Neighbours
from wordlm_core.lens.sampling import Distribution, Sample
from wordlm_core.lens.trajectory import Trajectory
from wordlm_core.vocabulary import Probe

# What a spreadsheet takes for a formula, and what begins like one but is only a number.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[-+]?[0-9.,]*[0-9]%?")
# What Markdown would read as something else than itself: anywhere, and at a line's beginning.
_SIGN = re.compile(r"[\\`*_\[\]<>#$~|&]|^[-+=]")
_ENUMERATION = re.compile(r"^(\d+)([.)])")
_LINE_END = re.compile(r"\r\n?|\n")


def attention_csv(result: AttentionResult) -> str:
    """Return one row a layer, head, query and key that is not masked."""
    n_layer, n_head, length, _ = result.weights.shape
    rows = (
        (layer, head, query, result.tokens[query], key, result.tokens[key], weight)
        for layer in range(n_layer)
        for head in range(n_head)
        for query in range(length)
        for key, weight in enumerate(result.weights[layer, head, query, : query + 1].tolist())
    )
    heads = ("layer", "head", "query", "query_token", "key", "key_token", "attention")
    return csv_text(heads, rows)


def attention_json(result: AttentionResult, probe: Probe) -> str:
    """Return what `attend --json` prints."""
    return json_text(answers.of_attention(result, probe))


def ablation_csv(result: AblationResult) -> str:
    """Return one row a position: mean attention from the last query, and KL in nats."""
    rows = (
        (
            effect.position,
            effect.token,
            "" if effect.replacement is None else effect.replacement,
            "" if effect.attention is None else float(effect.attention.mean()),
            effect.kl,
        )
        for effect in result.effects
    )
    return csv_text(("position", "token", "replacement", "mean_attention", "kl_nats"), rows)


def ablation_json(result: AblationResult, probe: Probe) -> str:
    """Return what `ablate --json` prints."""
    return json_text(answers.of_ablation(result, probe))


def next_csv(before: Distribution, after: Distribution) -> str:
    """Return one row a token, likeliest first: its probability unscaled and at the settings."""
    itos = before.vocabulary.itos
    order = np.argsort(-before.probs, kind="stable")
    rows = ((itos[i], float(before.probs[i]), float(after.probs[i])) for i in order)
    return csv_text(("token", "probability_unscaled", "probability"), rows)


def next_json(after: Distribution, drawn: Sequence[Sample], probe: Probe) -> str:
    """Return what `next --json` prints with no limit, and the samples of `generate --json`."""
    expected = answers.of_distribution(after, probe, len(after.vocabulary))
    return json_text(expected | {"samples": [sample.text for sample in drawn]})


def context_csv(pair: ContextPair) -> str:
    """Return one row a neighbour of each of the three rows."""
    lists = {
        "lookup": pair.lookup_neighbours,
        "contextual_first": pair.neighbours_a,
        "contextual_second": pair.neighbours_b,
    }
    rows = (
        (name, rank, item.token, item.cosine)
        for name, items in lists.items()
        for rank, item in enumerate(items, 1)
    )
    return csv_text(("row", "rank", "token", "cosine"), rows)


def context_json(pair: ContextPair) -> str:
    """Return what `contextual --json` prints."""
    return json_text(answers.plain(asdict(pair)))


def logits_csv(of: LogitView) -> str:
    """Return one row a part and token: the ends of its list of shifts."""
    parts = [] if of.attention is None else [("attention", of.attention)]
    parts += [(f"layer {h.layer} head {h.head}", h.push) for h in of.heads]
    parts += [("mlp", of.mlp), *((f"neuron {n.index}", n.push) for n in of.neurons)]
    rows = (
        (part, side, shift.token, shift.logit)
        for part, push in parts
        for side, shifts in (("promoted", push.promoted), ("pushed_down", push.pushed_down))
        for shift in shifts
    )
    return csv_text(("part", "side", "token", "logit"), rows)


def logits_json(of: LogitView, probe: Probe) -> str:
    """Return what `logits --json` prints."""
    return json_text(answers.of_probe(probe) | answers.plain(asdict(of)))


def trajectory_csv(result: Trajectory) -> str:
    """Return one row a checkpoint, word and stored step: its coordinates."""
    names = ("x", "y", "z")[: len(result.basis)]
    rows = (
        (path.checkpoint, path.word, point.step, *point.coords)
        for path in result.paths
        for point in path.points
    )
    return csv_text(("checkpoint", "word", "step", *names), rows)


def trajectory_json(result: Trajectory) -> str:
    """Return what `trajectory --json` prints, with z where there are three axes."""
    return json_text(answers.of_trajectory(result))


def neighbours_csv(lists: Sequence[Near], past: NeighbourHistory) -> str:
    """Return one row a neighbour: of each model now, then of the first at each stored step."""
    now = (
        (panel.name, "shown", panel.result.word, rank, item.token, item.cosine)
        for panel in lists
        for rank, item in enumerate(panel.result.items, 1)
    )
    then = (
        (lists[0].name, entry.step, past.word, rank, item.token, item.cosine)
        for entry in past.steps
        for rank, item in enumerate(entry.items, 1)
    )
    return csv_text(("checkpoint", "step", "word", "rank", "neighbour", "cosine"), [*now, *then])


def neighbours_json(result: Neighbours) -> str:
    """Return what `neighbours --json` prints."""
    return json_text(answers.of_neighbours(result))


def notebook(title: str, question: str, caveat: str, code: str) -> str:
    """Return a Jupyter notebook (format 4.5): what is asked, then the lines that answer it."""
    told = "\n\n".join(
        (
            f"# {title}",
            question,
            f"**What this does not show.** {caveat}",
            "Run it from the root of the repository, where `wordlm_core` and the files are.",
        )
    )
    text = {"cell_type": "markdown", "id": "about", "metadata": {}}
    lines = {"cell_type": "code", "id": "code", "metadata": {}}
    return json_text(
        {
            "cells": [
                text | {"source": html.escape(told, quote=False)},
                lines | {"source": code, "execution_count": None, "outputs": []},
            ],
            "metadata": {
                "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                "language_info": {"name": "python"},
            },
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


def csv_text(
    heads: Sequence[str], rows: Iterable[Sequence[Any]], *, typed: Sequence[str] = ()
) -> str:
    """Return a table as CSV, whatever page it is of.

    Args:
        heads: Column titles.
        rows: Cells.
        typed: Titles of the columns that hold what people typed: an apostrophe stands before
            what a spreadsheet would compute there. Tokens and numbers of a model stay as they are.
    """
    guarded = [head in typed for head in heads]
    file = io.StringIO()
    writer = csv.writer(file)  # its line ends make it quote a cell that holds one of their signs
    writer.writerow(heads)
    for row in rows:
        writer.writerow(
            [_guarded(cell) if guard else cell for cell, guard in zip(row, guarded, strict=True)]
        )
    return file.getvalue()


def json_text(data: dict[str, Any]) -> str:
    """Return data as JSON, which holds no NaN."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False)


def markdown_quote(text: str) -> list[str]:
    """Return typed text as the lines of a quotation, which Markdown draws letter for letter."""
    if not text.strip():
        return ["> *nothing yet*"]
    lines = [markdown_line(line) for line in _LINE_END.split(text)]
    # A backslash breaks a line where another one follows it; anywhere else it would be drawn.
    breaks = ["\\" if here and after else "" for here, after in pairwise([*lines, ""])]
    return [f"> {line}{end}" for line, end in zip(lines, breaks, strict=True)]


def markdown_line(line: str) -> str:
    """Return a line so that Markdown draws every sign of it, and the blanks it begins with."""
    shown = line.strip()
    inside = _SIGN.sub(r"\\\g<0>", shown)
    indent = "&nbsp;" * (len(line) - len(line.lstrip())) if shown else ""
    return indent + _ENUMERATION.sub(r"\1\\\2", inside)


# -- parts


def _guarded(cell: object) -> object:
    risky = isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if risky else cell
