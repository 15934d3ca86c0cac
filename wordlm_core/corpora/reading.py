"""Read a person's own text: one document a line, or .jsonl with "text".

The rules for every upload: UTF-8 (byte-order marks, wherever files were glued together, and
CR LF are taken away), anything else refused with the place of the first bad byte.
"""

import json
import stat
from pathlib import Path
from typing import Any

from wordlm_core.errors import CorpusError
from wordlm_core.files import printable

MAX_BYTES = 200_000_000
_MARK = "\ufeff"


def read_path(path: Path) -> list[str]:
    """Return the documents of a file, or of a folder's .jsonl files in name order."""
    if path.is_dir():
        files = sorted(path.glob("*.jsonl"))
        if not files:
            raise CorpusError(f"the folder {printable(path.name)} holds no .jsonl file")
        return [text for file in files for text in read_path(file)]
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):  # a pipe or a device would block, or never end
            raise CorpusError(f"{printable(path.name)} is neither a file nor a folder")
        size = found.st_size
        data = path.read_bytes() if size <= MAX_BYTES else b""
    except OSError as error:
        raise CorpusError(f"{printable(path.name)} cannot be read: {error.strerror}") from error
    if size > MAX_BYTES:
        raise CorpusError(f"{printable(path.name)} has {size:,} bytes; the limit is {MAX_BYTES:,}")
    return read_bytes(data, printable(path.name))


def read_bytes(data: bytes, name: str) -> list[str]:
    """Return the documents in the bytes of a file called `name`.

    Raises:
        CorpusError: Not UTF-8, or a .jsonl line without a "text"; the line is named.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CorpusError(
            f"{name} is not UTF-8: byte {error.start:,} (line {line:,}) cannot be read; "
            "save it as UTF-8"
        ) from error
    if "\0" in text:
        raise CorpusError(f"{name} holds zero bytes, so it is not a text file")
    lines = text.replace(_MARK, "").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if name.lower().endswith(".jsonl"):
        return [_json_text(line, name, i) for i, line in enumerate(lines, 1) if line.strip()]
    return [line.strip() for line in lines if line.strip()]


def text_of(record: Any, where: str) -> str:
    """Return the "text" of a JSON record; `where` names it in errors.

    Raises:
        CorpusError: It has none, or one that is no text.
    """
    text = record.get("text") if isinstance(record, dict) else None
    if not isinstance(text, str):
        raise CorpusError(f'{where}: no "text"')
    try:
        text.encode()  # JSON escapes can spell half a surrogate pair, which is no text
    except UnicodeEncodeError as error:
        raise CorpusError(f"{where}: half a surrogate pair") from error
    if "\0" in text:
        raise CorpusError(f"{where}: a zero character, which is no text")
    return text.replace(_MARK, "")


def _json_text(line: str, name: str, number: int) -> str:
    where = f"{name}, line {number:,}"
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{where}: not JSON") from error
    return text_of(record, where)
