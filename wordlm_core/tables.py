"""Plain-text tables of a command's answer, for people."""

from collections.abc import Mapping, Sequence
from typing import Any

_WIDEST = 100


def render(answer: Mapping[str, Any]) -> str:
    """Return scalars as lines, lists of records as tables, matrices as grids.

    Numbers are cut to four digits and long cells end in dots; `--json` has everything.
    Attention is printed head by head with the tokens, numbered by position, as row and
    column labels.
    """
    parts: list[str] = []
    for key, value in answer.items():
        if key == "attention" and _depth(value) == 4:
            parts += _attention(value, answer["tokens"])
        elif key == "samples":
            parts += [f"sample {i}: {text}" for i, text in enumerate(value)]
        elif _is_records(value):
            parts.append(f"{key}\n{_table(value)}")
        elif isinstance(value, Mapping):
            parts.append(f"{key}\n" + "\n".join(f"  {k}: {_short(v)}" for k, v in value.items()))
        elif _is_matrix(value):
            parts.append(f"{key}\n" + _grid(value))
        else:
            parts.append(f"{key}: {_short(value)}")
    return "\n".join(parts)


def _depth(value: Any) -> int:
    return 1 + _depth(value[0]) if isinstance(value, list) and value else 0


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _is_matrix(value: Any) -> bool:
    return _depth(value) > 1


def _attention(weights: Sequence[Any], tokens: Sequence[str]) -> list[str]:
    labels = [f"{position} {token}" for position, token in enumerate(tokens)]
    parts: list[str] = []
    for layer, heads in enumerate(weights):
        for head, rows in enumerate(heads):
            records = [
                {"query \\ key": label, **dict(zip(labels, row, strict=True))}
                for label, row in zip(labels, rows, strict=True)
            ]
            parts.append(f"attention, layer {layer}, head {head}\n{_table(records)}")
    return parts


def _table(records: Sequence[Mapping[str, Any]]) -> str:
    columns = list(records[0])
    rows = [columns, *([_short(record[column]) for column in columns] for record in records)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns))]
    return "\n".join(
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _grid(matrix: Sequence[Any]) -> str:
    return "\n".join("  " + _short(row) for row in matrix)


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, Mapping):
        return _record(value)
    if isinstance(value, list):
        text = ", ".join(_record(item) for item in value)
        return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."
    if value is None:
        return "-"
    text = " ".join(str(value).split("\n"))
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


def _record(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(_short(item) for item in value.values())
    return f"[{_short(value)}]" if isinstance(value, list) else _short(value)
