"""TinyStories: the first stories of one pinned revision, fetched once and kept.

The rows come from the data set server's public API, page by page. Every answer says which
revision it was read from, and any other than ours is refused: numbers measured on one text
must not be compared with numbers on another.

The cache holds the first stories, as many as were ever asked for, as a .jsonl file with its
checksum beside it. A fetch that is interrupted keeps what it has; the next one goes on there.
"""

import hashlib
import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tqdm import tqdm

from wordlm_core.corpora import Corpus, CorpusInfo, reading
from wordlm_core.errors import ConfigError, CorpusError
from wordlm_core.files import replacing

DATASET = "roneneldan/TinyStories"
REVISION = "f54c09fd23315a6f9c86f9dc80f725de7d8f9c64"
ROWS_URL = "https://datasets-server.huggingface.co/rows"
URL_VARIABLE, CACHE_VARIABLE = "WORDLM_TINYSTORIES_URL", "WORDLM_CACHE"
PAGE = 100  # the most rows that the API gives at once
MAX_PAGE_BYTES = 20_000_000
INFO = CorpusInfo(
    name="tinystories",
    documents=2_119_719,
    licence="CDLA-Sharing-1.0",
    how_to_get=(
        f"fetched from the Hugging Face data set {DATASET} on first use and kept; without a "
        "network, name a local .jsonl file or folder instead"
    ),
)

_RETRIED = {429, 500, 502, 503, 504}
_WAY_OUT = "name a local .jsonl file or folder instead, or use --corpus stories"


@dataclass(frozen=True)
class Patience:
    """How long to bear with the server.

    Attributes:
        attempts: Tries for one page.
        timeout: Seconds to wait for a connection and for each piece of an answer.
        pause: Seconds before the second try; doubled before each further one.
        longest_pause: Most seconds between two tries, whatever the server asks for.
    """

    attempts: int = 6
    timeout: float = 30.0
    pause: float = 1.0
    longest_pause: float = 60.0


def available() -> bool:
    """Return whether the default number of stories is in the cache, unchanged."""
    try:
        return len(_read_cache()) >= INFO.size(None, None)
    except CorpusError:
        return False


def load(
    *,
    profile: str | None = None,
    documents: int | None = None,
    url: str | None = None,
    patience: Patience = Patience(),
) -> Corpus:
    """Return the first stories of the training split, from the cache as far as it goes.

    Args:
        profile: A name of `corpora.PROFILES`; `classroom` by default.
        documents: How many, instead of the profile's number.
        url: Address of the rows API; by default `$WORDLM_TINYSTORIES_URL`, else the public one.
        patience: Limits on waiting.

    Raises:
        CorpusError: The server cannot be reached, or answers with another revision or with
            something else than these rows; or the cache was changed.
        ConfigError: Unknown profile, or an address that is not http(s).
    """
    count = INFO.size(profile, documents)
    texts = _read_cache()
    if len(texts) < count:
        url = url or os.environ.get(URL_VARIABLE) or ROWS_URL
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"the address of TinyStories must be http(s), not {url[:80]!r}")
        texts = _fetch(texts, count, url, patience)
    source = f"Hugging Face {DATASET}, revision {REVISION[:8]}"
    return Corpus(INFO.name, tuple(texts[:count]), INFO.licence, source)


# -- the cache


def _cache_path() -> Path:
    folder = os.environ.get(CACHE_VARIABLE) or "~/.cache/wordlm-lab"
    return Path(folder).expanduser() / f"tinystories-{REVISION[:8]}.jsonl"


def _checksum_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _read_cache() -> list[str]:
    """Return the stories in the cache; none where it is missing or was never finished."""
    path = _cache_path()
    try:
        noted = _checksum_path(path).read_bytes().split()
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CorpusError(f"the cache file {path} cannot be read: {error.strerror}") from error
    if noted[:1] != [hashlib.sha256(data).hexdigest().encode()]:
        raise CorpusError(
            f"the cache file {path} is not what was fetched (its checksum differs): delete it, "
            "and it will be fetched again"
        )
    return reading.read_bytes(data, path.name)


def _write_cache(texts: Sequence[str]) -> None:
    path = _cache_path()
    checksum = _checksum_path(path)
    data = b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts)
    with replacing(path, CorpusError) as file:
        file.write(data)
        # Without its checksum a cache counts as missing, so a stop in between is harmless.
        checksum.unlink(missing_ok=True)
    with replacing(checksum, CorpusError) as file:  # in the form of sha256sum
        file.write(f"{hashlib.sha256(data).hexdigest()}  {path.name}\n".encode())


# -- the server


def _fetch(cached: list[str], count: int, url: str, patience: Patience) -> list[str]:
    texts = list(cached)
    try:
        with tqdm(
            total=count, initial=len(texts), desc="TinyStories", unit=" stories", delay=0.5
        ) as bar:
            while len(texts) < count:
                wanted = range(len(texts), min(len(texts) + PAGE, count))
                page = _rows(_get(url, wanted, patience), wanted)
                texts += page
                bar.update(len(page))
    finally:
        if len(texts) > len(cached):
            _write_cache(texts)
    return texts


class _TryAgainError(Exception):
    """The server may do better the next time; `pause` is the wait it asked for."""

    def __init__(self, reason: str, pause: float | None = None) -> None:
        super().__init__(reason)
        self.pause = pause


def _unreachable(reason: str) -> CorpusError:
    return CorpusError(f"TinyStories could not be fetched ({reason}): {_WAY_OUT}")


def _get(url: str, wanted: range, patience: Patience) -> bytes:
    """Return the body of the answer for these rows, after some tries if need be."""
    query = {
        "dataset": DATASET,
        "config": "default",
        "split": "train",
        "offset": wanted.start,
        "length": len(wanted),
    }
    address = f"{url}?{urlencode(query)}"
    attempt = 1
    while True:
        try:
            return _answer(address, patience.timeout)
        except _TryAgainError as error:
            if attempt >= patience.attempts:
                raise _unreachable(f"{error}, {attempt} times") from error
            pause = error.pause or patience.pause * 2 ** (attempt - 1)
        time.sleep(min(pause, patience.longest_pause))
        attempt += 1


def _answer(address: str, timeout: float) -> bytes:
    request = urllib.request.Request(address, headers={"User-Agent": "wordlm-lab"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return _body(response)
    except urllib.error.HTTPError as error:
        with error:
            reason = f"the server answers {error.code}"
            if error.code not in _RETRIED:
                raise _unreachable(reason) from error
            seconds = error.headers.get("Retry-After", "")
            raise _TryAgainError(reason, float(seconds) if seconds.isdecimal() else None) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise _TryAgainError("no connection in time") from error
        raise _unreachable(getattr(error.reason, "strerror", None) or str(error.reason)) from error
    except TimeoutError as error:
        raise _TryAgainError("no answer in time") from error
    except (OSError, http.client.HTTPException) as error:
        raise _TryAgainError("the answer was cut off") from error


def _body(response: http.client.HTTPResponse) -> bytes:
    revision = response.headers.get("X-Revision")
    if revision != REVISION:
        raise CorpusError(
            f"the server has revision {str(revision)[:40]} of TinyStories, not {REVISION}: "
            f"{_WAY_OUT}"
        )
    body = response.read(MAX_PAGE_BYTES + 1)
    if len(body) > MAX_PAGE_BYTES:
        raise CorpusError(f"the server's answer is larger than {MAX_PAGE_BYTES:,} bytes")
    if response.length:  # bytes that were announced and did not come
        raise http.client.IncompleteRead(body, response.length)
    return body


def _rows(body: bytes, wanted: range) -> list[str]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise CorpusError("the server's answer for TinyStories is not JSON") from error
    rows = answer.get("rows") if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise CorpusError("the server's answer for TinyStories has no rows")
    if len(rows) != len(wanted):
        raise CorpusError(
            f"the server gave {len(rows)} rows of TinyStories from {wanted.start:,} on, "
            f"not {len(wanted)}"
        )
    return [_row_text(row, index) for row, index in zip(rows, wanted, strict=True)]


def _row_text(row: Any, index: int) -> str:
    where = f"row {index:,} of TinyStories"
    if not isinstance(row, dict) or row.get("row_idx") != index:
        raise CorpusError(f"{where} is not in its place in the server's answer")
    if row.get("truncated_cells"):
        raise CorpusError(f"{where} was cut short by the server")
    return reading.text_of(row.get("row"), where)
