"""What people bring: corpora to train on and checkpoints to look into. No streamlit.

An upload is a folder `<root>/uploads/<id>/` with `corpus.jsonl` or `checkpoint.npz` and, written
last, `meta.json`. Its id is made of whose it is and of the content, so that the same file twice
is one upload; a person's name for it is a label and never part of a path.
"""

import hashlib
import json
import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from app.jobs.bounds import Limits, has_room
from app.jobs.record import owner_of
from app.jobs.store import Store
from wordlm_core import checkpoint
from wordlm_core.corpora import reading
from wordlm_core.errors import CheckpointError, CorpusError, WordLMError
from wordlm_core.files import printable, replacing

Kind = Literal["corpus", "checkpoint"]
FOLDER, AT_MOST = "uploads", 10
LONGEST_NAME = 60
_META, _ID_DIGITS = "meta.json", 20
_FILES: dict[Kind, str] = {"corpus": "corpus.jsonl", "checkpoint": "checkpoint.npz"}
_CACHED_SECONDS, _DAY = 0.5, 86_400
_MEGABYTE = 2**20
_log = logging.getLogger("wordlm.uploads")


class UploadError(WordLMError):
    """An upload cannot be taken, found or changed."""


@dataclass(frozen=True)
class Facts:
    """What a picker has to know of a checkpoint before it is opened; empty for a corpus."""

    family: str = ""
    tokenizer: str = ""
    heads: int = 0
    width: int = 0


@dataclass(frozen=True)
class Upload:
    """One file that somebody brought.

    Attributes:
        id: Its folder's name.
        name: What the person's file was called; a label.
        kind: A corpus or a checkpoint.
        owner: Whose it is, as `owner_of` says.
        private: Whether nobody else sees it.
        created: When, in seconds since 1970.
        sha256: Of the bytes that were sent.
        size: Of the stored file in bytes.
        path: The stored file.
        facts: Of a checkpoint.
    """

    id: str
    name: str
    kind: Kind
    owner: str
    private: bool
    created: float
    sha256: str
    size: int
    path: Path
    facts: Facts = Facts()

    @property
    def label(self) -> str:
        """Return what tells it from others of the same name."""
        return f"{self.name} ({self.id[-6:]})"


class Uploads:
    """The uploads of a folder of runs."""

    def __init__(self, root: Path, limits: Limits | None = None) -> None:
        """Look at nothing yet.

        Args:
            root: The folder of runs; uploads have a folder in it.
            limits: Sizes and days.
        """
        self._folder, self._limits = root / FOLDER, limits or Limits()
        # Pages look while a large file is being written: two locks.
        self._changing, self._lock = threading.RLock(), threading.Lock()
        self._read: dict[Path, tuple[int, Upload]] = {}
        self._listed: tuple[float, tuple[Upload, ...]] = (-1.0, ())

    def all(self) -> tuple[Upload, ...]:
        """Return every upload, the oldest first; what is damaged is passed over."""
        with self._lock:
            if time.monotonic() - self._listed[0] > _CACHED_SECONDS:
                found = filter(None, map(self._upload, self._folder.glob(f"*/{_META}")))
                ordered = sorted(found, key=lambda each: (each.created, each.id))
                self._listed = (time.monotonic(), tuple(ordered))
            return self._listed[1]

    def visible(self, person: str, instructor: bool = False) -> tuple[Upload, ...]:
        """Return what a person may open: their own, and what others share."""
        me = owner_of(person)
        return tuple(u for u in self.all() if instructor or u.owner == me or not u.private)

    def get(self, upload: str, person: str, *, instructor: bool = False) -> Upload:
        """Return one upload.

        Raises:
            UploadError: There is none of this name that the person may open.
        """
        for each in self.visible(person, instructor):
            if each.id == upload:
                return each
        raise UploadError("this upload is no longer there, or is somebody else's own")

    def add_corpus(self, data: bytes, name: str, person: str) -> Upload:
        """Take a text, one document a line or .jsonl.

        Raises:
            WordLMError: It is too large, not readable, or the person has too many.
        """
        name, limit = _label(name, "text"), self._limits.corpus_megabytes
        if len(data) > limit * _MEGABYTE:
            size = len(data) / _MEGABYTE
            raise CorpusError(f"{name} has {size:,.1f} MB; a corpus may have {limit:,} MB")
        documents = [text for text in reading.read_bytes(data, name) if text.strip()]
        if not documents:
            raise CorpusError(f"{name} holds no text: one document a line is read, or .jsonl")
        lines = (json.dumps({"text": text}, ensure_ascii=False) for text in documents)
        text = "".join(f"{line}\n" for line in lines).encode()

        def write(path: Path) -> None:
            with replacing(path, UploadError) as file:
                file.write(text)

        with self._changing:
            made = self._new("corpus", name, person, data)
            return self._kept(made, write)

    def add_checkpoint(
        self, data: bytes, name: str, person: str, vocab: bytes | None = None
    ) -> Upload:
        """Take an .npz checkpoint; it is stored whole, with its vocabulary inside.

        Args:
            data: The file.
            name: Its name.
            person: Whose it is.
            vocab: A `vocab.json`, for a file that has none inside.

        Raises:
            WordLMError: It is none, too large, or the person has too many.
        """
        name, limit = _label(name, "checkpoint"), checkpoint.MAX_BYTES
        for part in (data, vocab or b""):
            if len(part) > limit:
                raise CheckpointError(f"{name} is too large: the limit is {limit // 2**20:,} MB")
        loaded = _load(data, name, vocab)
        model = loaded.model
        facts = Facts(model.family, loaded.vocabulary.tokenizer, model.n_head, model.config.d_model)
        with self._changing:
            made = replace(
                self._new("checkpoint", name, person, data + (vocab or b"")), facts=facts
            )
            return self._kept(made, partial(checkpoint.save, loaded))

    def share(self, upload: str, person: str, private: bool) -> Upload:
        """Show an upload to everybody, or to its person alone.

        Raises:
            UploadError: It is not the person's.
        """
        with self._changing:
            changed = replace(self._own(upload, person), private=private)
            self._write(changed)
            return changed

    def delete(self, upload: str, person: str, *, instructor: bool = False) -> None:
        """Remove an upload; what was trained on it stays.

        Raises:
            UploadError: It is not the person's.
        """
        with self._changing:
            self._remove(self._own(upload, person, instructor=instructor))

    def documents(self, upload: Upload) -> Sequence[str]:
        """Return the documents of a corpus.

        Raises:
            WordLMError: It is none, or gone.
        """
        if upload.kind != "corpus":
            raise UploadError(f"{upload.name} is a checkpoint, not a corpus")
        return reading.read_path(upload.path)

    def clear(self) -> int:
        """Remove what is older than the days that uploads are kept; return how many."""
        with self._changing:
            end = time.time() - self._limits.days * _DAY
            old = [each for each in self.all() if each.created < end]
            for each in old:
                self._remove(each)
            return len(old)

    # -- parts

    def _new(self, kind: Kind, name: str, person: str, data: bytes) -> Upload:
        """Return the upload that these bytes are or become; the lock is held."""
        self.clear()
        self._listed = (-1.0, ())
        owner, sha256 = owner_of(person), hashlib.sha256(data).hexdigest()
        digest = hashlib.sha256(f"{owner} {kind} {sha256}".encode()).hexdigest()[:_ID_DIGITS]
        path = self._folder / digest / _FILES[kind]
        return Upload(digest, name, kind, owner, True, time.time(), sha256, 0, path)

    def _kept(self, made: Upload, write: Callable[[Path], None]) -> Upload:
        """Write an upload's files, the record last; one that is there stays as it is."""
        mine = [each for each in self.all() if each.owner == made.owner]
        same = next((each for each in mine if each.id == made.id), None)
        if same is not None:
            return same
        if len(mine) >= AT_MOST:
            raise UploadError(
                f"you have {AT_MOST} uploads, which is the most: delete one, such as the oldest, "
                f"{mine[0].label}"
            )
        if not has_room(self._folder.parent, self._limits):
            raise UploadError(
                "the disk space for jobs and uploads is used up: delete some of yours"
            )
        try:
            write(made.path)
            made = replace(made, size=made.path.stat().st_size)
            self._write(made)
        except WordLMError:
            shutil.rmtree(made.path.parent, ignore_errors=True)
            raise
        return made

    def _own(self, upload: str, person: str, *, instructor: bool = False) -> Upload:
        found = self.get(upload, person, instructor=instructor)
        if not instructor and found.owner != owner_of(person):
            raise UploadError(f"{found.name} is somebody else's: only they can change it")
        return found

    def _write(self, upload: Upload) -> None:
        record = {k: v for k, v in asdict(upload).items() if k not in ("id", "path")}
        with replacing(upload.path.parent / _META, UploadError) as file:
            file.write(json.dumps(record, ensure_ascii=False).encode())
        self._listed = (-1.0, ())

    def _remove(self, upload: Upload) -> None:
        (upload.path.parent / _META).unlink(missing_ok=True)  # first: nobody opens half of it
        shutil.rmtree(upload.path.parent, ignore_errors=True)
        self._listed = (-1.0, ())

    def _upload(self, meta: Path) -> Upload | None:
        """Return the upload of a record, read again only when it has changed."""
        try:
            changed = meta.stat().st_mtime_ns
            known = self._read.get(meta)
            if known is None or known[0] != changed:
                known = (changed, _from_record(meta))
                self._read[meta] = known
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            _log.exception("upload %s cannot be read", meta.parent.name)
            return None
        return known[1]


def _from_record(meta: Path) -> Upload:
    record: dict[str, Any] = json.loads(meta.read_text(encoding="utf-8"))
    facts = Facts(**record.pop("facts"))
    path = meta.with_name(_FILES[record["kind"]])
    return Upload(id=meta.parent.name, path=path, facts=facts, **record)


def _load(data: bytes, name: str, vocab: bytes | None) -> checkpoint.Checkpoint:
    """Read a checkpoint as the loader does; where need be, beside its vocabulary."""
    if vocab is None:
        return checkpoint.load(data, name=name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _FILES["checkpoint"]
        path.write_bytes(data)
        path.with_name("vocab.json").write_bytes(vocab)
        return replace(checkpoint.load(path, name=name), path=None)


def _label(name: str, otherwise: str) -> str:
    """Return a file's name as a label: no path, nothing that cannot be shown, not too long."""
    last = printable(name.replace("\\", "/").rsplit("/", maxsplit=1)[-1].strip())
    if len(last) > LONGEST_NAME:  # its ending says how it is read
        head, dot, ending = last.rpartition(".")
        short = dot and len(ending) <= 5
        last = (
            f"{head[: LONGEST_NAME - len(ending) - 2]}….{ending}" if short else last[:LONGEST_NAME]
        )
    return last or otherwise


def tidy(store: Store) -> None:
    """Remove the jobs and uploads of a folder that the rule no longer keeps."""
    try:
        store.clear()
        Uploads(store.root, store.limits).clear()
    except (OSError, WordLMError) as error:
        _log.warning("old jobs and uploads could not be cleared: %s", error)
