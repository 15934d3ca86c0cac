"""Checkpoints: one .npz file with weights, config, vocabulary and the embeddings over training.

    state__NAME             weights, float32, [out, in]
    embedding__LABEL        (vocab_size, d_model), float32 or float16; LABEL is `step_N` or
                            `selected_step_N`
    snapshot__LABEL__NAME   the other weights at a step whose embedding is stored
    seen_items              hashes of the training documents, uint64, sorted (see `items`)
    metadata_json           0-d unicode array with JSON

Files come from strangers. The reader never unpickles, bounds every size by the declared one
before anything is expanded, and refuses what it does not know in one sentence.
"""

import contextlib
import hashlib
import io
import json
import logging
import math
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Float, UInt64

from wordlm_core import models
from wordlm_core.errors import CheckpointError
from wordlm_core.files import printable, replacing
from wordlm_core.items import item_hash
from wordlm_core.models.base import LanguageModel, Weights
from wordlm_core.vocabulary import Vocabulary

FORMAT_VERSION = 1
# Other .npz files that ship beside checkpoints: see `lens.receipt` and `lens.survey`.
RESUME_SUFFIX = ".resume.npz"
NOT_CHECKPOINTS = ("ngrams.npz", "survey.npz")
MAX_BYTES = 180 * 2**20
MAX_MEMBERS = 5_000
MAX_METADATA_BYTES = 64 * 2**20
_MAX_NDIM = 4
# What zipfile raises on damaged archives, by their places of damage.
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)
SEEN = "seen_items"
_log = logging.getLogger(__name__)
_LABEL = re.compile(r"(?:selected_)?step_([0-9]{1,9})")
_SELECTED = "selected_"
# What tells the kind of a file that does not say it.
_KIND_BY_WEIGHT = {"wte": "microgpt", "W_Q.weight": "attention"}
# The form that NumPy writes. Its own reader evaluates a header as a Python literal, and a
# stranger's literal can exhaust memory or the tokenizer.
_HEADER = re.compile(
    r"\{'descr': '([<>|=]?[biufcOSUV][0-9]{0,9})', 'fortran_order': (True|False), "
    r"'shape': \(((?:-?[0-9]{1,18},? ?)*)\), \}\s*"
)
_HEADER_SIZES = {b"\x01\x00": "<H", b"\x02\x00": "<I"}
_MAX_HEADER = 4096


@dataclass(frozen=True)
class Checkpoint:
    """A model with its vocabulary, its history and where it came from.

    Attributes:
        name: File name without `.npz`; a label.
        path: The file, or None before it is saved.
        model: The selected weights.
        vocabulary: Tokens by id.
        metadata: Everything else the file says (corpus, seed, training, metrics, trace).
        embeddings: Token embeddings by step label, in step order.
        snapshots: The other weights at some of those labels.
        seen_items: Hashes of the training documents, sorted, or None where they are not kept.
    """

    name: str
    path: Path | None
    model: LanguageModel
    vocabulary: Vocabulary
    metadata: dict[str, Any]
    embeddings: Mapping[str, Float[np.ndarray, "vocab d_model"]]
    snapshots: Mapping[str, Weights] = field(repr=False)
    seen_items: UInt64[np.ndarray, " items"] | None = field(default=None, repr=False)

    @classmethod
    def from_training(
        cls,
        model: LanguageModel,
        vocabulary: Vocabulary,
        metadata: dict[str, Any],
        stored: Mapping[str, Weights],
    ) -> "Checkpoint":
        """Build a checkpoint from whole weights, or embeddings alone, by label in step order."""
        table = model.embedding_name
        snapshots = {
            label: {k: as_stored(label, array) for k, array in weights.items() if k != table}
            for label, weights in stored.items()
            if not label.startswith(_SELECTED) and len(weights) > 1
        }
        embeddings = {label: as_stored(label, weights[table]) for label, weights in stored.items()}
        return cls("untitled", None, model, vocabulary, metadata, embeddings, snapshots)

    @cached_property
    def sha256(self) -> str:
        """Return a hash of all that a lens reads: the cache key.

        Weights, config, tokens and counts, embeddings and snapshots, each array in the
        precision it is stored in. The name and the rest of the metadata are no part of it.
        """
        vocabulary = [self.vocabulary.itos, sorted(self.vocabulary.counts.items())]
        text = json.dumps([asdict(self.model.config), vocabulary], sort_keys=True)
        digest = hashlib.sha256(text.encode())
        for name, array in sorted(_arrays_of(self).items()):
            native = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
            digest.update(f"{name} {native.dtype} {native.shape}\n".encode())
            digest.update(native.data)
        return digest.hexdigest()

    @property
    def steps(self) -> tuple[str, ...]:
        """Return the labels of all stored steps, in order."""
        return tuple(self.embeddings)

    @property
    def selected_label(self) -> str | None:
        """Return the label of the selected weights, if the file names one."""
        return next((label for label in self.steps if label.startswith(_SELECTED)), None)

    @property
    def selected_step(self) -> int | None:
        """Return the step of the selected weights."""
        label = self.selected_label
        if label is not None:
            return step_number(label)
        return _whole_number(self.metadata.get("selected_step"))

    @property
    def whole_steps(self) -> tuple[str, ...]:
        """Return the labels at which all weights are stored, in order."""
        return tuple(
            label for label in self.steps if label in self.snapshots or label == self.selected_label
        )

    def resolve_step(self, step: str | int | None) -> str | None:
        """Return the label that `step` (a label, a number, or None for selected) means.

        Raises:
            CheckpointError: It is not stored; the stored ones are named.
        """
        if step is None:
            return self.selected_label
        by_number = {str(step_number(label)): label for label in self.steps}
        if self.selected_label is not None:  # a file may store both labels for one number
            by_number[str(self.selected_step)] = self.selected_label
        label = str(step) if str(step) in self.steps else by_number.get(str(step))
        if label is not None:
            return label
        have = ", ".join(self.steps) or "none"
        raise CheckpointError(
            f"step {str(step)[:40]!r} is not stored in {self.name}; stored: {have}"
        )

    def embedding_at(self, step: str | int | None) -> Float[np.ndarray, "vocab d_model"]:
        """Return the token embeddings at a step (None: of the selected weights)."""
        label = self.resolve_step(step)
        if label is None or label == self.selected_label:
            return self.model.weights[self.model.embedding_name]
        return self.embeddings[label].astype(np.float64)

    def model_at(self, step: str | int | None) -> LanguageModel:
        """Return the whole model at a step (None: the selected weights).

        Raises:
            CheckpointError: Only the embedding is stored there; the steps with whole
                weights are named.
        """
        label = self.resolve_step(step)
        if label is None or label == self.selected_label:
            return self.model
        if label not in self.snapshots:
            have = ", ".join(self.whole_steps) or "the selected weights alone"
            raise CheckpointError(
                f"{self.name} stores only the embeddings at {label}; whole weights: {have}"
            )
        module = models.family(self.model.family)
        table = {self.model.embedding_name: self.embeddings[label]}
        return module.build(self.model.config, {**table, **self.snapshots[label]})

    def section(self, name: str) -> dict[str, Any]:
        """Return a part of the metadata, such as `training`; empty where the file has none."""
        return _mapping(self.metadata.get(name))

    def losses(self) -> Float[np.ndarray, " step"]:
        """Return the loss of every training step; empty where the file does not tell it."""
        found = finite_numbers(self.metadata.get("loss_history"))
        return np.zeros(0) if found is None else found

    def trace(self) -> list[dict[str, float]]:
        """Return step and validation loss of each evaluation; empty where any is amiss."""
        entries = self.metadata.get("trace")
        found: list[dict[str, float]] = []
        for entry in cast("list[object]", entries) if isinstance(entries, list) else []:
            of = _mapping(entry)
            numbers = finite_numbers([of.get("step"), of.get("validation_loss")])
            if numbers is None:
                return []
            found.append({"step": float(numbers[0]), "validation_loss": float(numbers[1])})
        return found

    def has_seen(self, document: str) -> bool | None:
        """Return whether a document stands in the training list; None where that is unknown."""
        if self.seen_items is None:
            return None
        wanted = np.uint64(item_hash(document))
        place = int(np.searchsorted(self.seen_items, wanted))
        return place < len(self.seen_items) and bool(self.seen_items[place] == wanted)


def step_number(label: str) -> int:
    """Return N of `step_N` or `selected_step_N`."""
    match = _LABEL.fullmatch(label)
    if match is None:
        raise CheckpointError(f"{label[:40]!r} is no step label such as step_750")
    return int(match.group(1))


def finite_numbers(values: object) -> Float[np.ndarray, " n"] | None:
    """Return what a file says is a list of numbers as an array, or None where it is not."""
    if not isinstance(values, list):
        return None
    numbers = cast("list[object]", values)
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in numbers):
        return None
    try:
        array = np.array(numbers, dtype=np.float64)
    except OverflowError:  # an integer too large for a float
        return None
    return array if np.isfinite(array).all() else None


# -- loading and saving


def load(source: Path | bytes, *, name: str | None = None) -> Checkpoint:
    """Read a checkpoint of ours or of the course.

    A vocabulary inside the file comes first, else `vocab.json` beside it.

    Args:
        source: A path, or a file's bytes (an upload).
        name: Label; the file's stem by default.

    Raises:
        CheckpointError: With the reason, in one sentence.
    """
    path = source if isinstance(source, Path) else None
    label = name or (printable(path.stem) if path else "upload")
    arrays, metadata = read_arrays(source)
    state = _finite_floats(_with_prefix(arrays, "state__"))
    if not state:
        raise CheckpointError("it holds no weights (no state__ arrays), so it is no checkpoint")
    model = _build_model(state, metadata)
    vocabulary = _find_vocabulary(metadata, path)
    vocab_size, d_model = model.weights[model.embedding_name].shape
    if len(vocabulary) != vocab_size:
        raise CheckpointError(
            f"its vocabulary has {len(vocabulary):,} tokens but its embedding {vocab_size:,} rows"
        )
    embeddings = _finite_floats(_with_prefix(arrays, "embedding__"))
    embeddings = dict(sorted(embeddings.items(), key=lambda item: step_number(item[0])))
    selected = [step for step in embeddings if step.startswith(_SELECTED)]
    if len(selected) > 1:
        raise CheckpointError(f"it has more than one selected step: {', '.join(selected)}"[:200])
    for step, array in embeddings.items():
        if array.shape != (vocab_size, d_model):
            raise CheckpointError(
                f"embedding__{step} has shape {array.shape}, expected {(vocab_size, d_model)}"
            )
    return Checkpoint(
        name=label,
        path=path,
        model=model,
        vocabulary=vocabulary,
        metadata=metadata,
        embeddings=embeddings,
        snapshots=_snapshots(arrays, model, embeddings),
        seen_items=_seen_items(arrays.get(SEEN)),
    )


def save(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint: aside, fsync, replace. The name is taken as it is."""
    arrays = {
        name: as_stored(name.split("__")[1], array)
        if name.startswith(("embedding__", "snapshot__"))
        else array
        for name, array in _arrays_of(checkpoint).items()
    }
    model = checkpoint.model
    metadata = {
        **checkpoint.metadata,
        "format_version": FORMAT_VERSION,
        "kind": model.kind,
        "model_config": asdict(model.config),
        "vocabulary": checkpoint.vocabulary.to_json(),
        "vocabulary_sha256": checkpoint.vocabulary.sha256,
        "selected_step": checkpoint.selected_step,
    }
    write_arrays(path, arrays, metadata, compress=True)


def load_folder(folder: Path) -> tuple[dict[str, Checkpoint], dict[str, str]]:
    """Load every checkpoint of a folder.

    Returns:
        Checkpoints by file name, and the reason for each file that is unreadable; whatever
        is wrong with one file, the others load.
        `NOT_CHECKPOINTS` and the states of unfinished trainings are passed over.
    """
    good: dict[str, Checkpoint] = {}
    bad: dict[str, str] = {}
    for path in sorted(folder.glob("*.npz")):
        if path.name in NOT_CHECKPOINTS or path.name.endswith(RESUME_SUFFIX):
            continue
        name = printable(path.name)
        try:
            good[name] = load(path)
        except CheckpointError as error:
            bad[name] = str(error)
        except Exception as error:  # a fault of ours, or no memory: not the other files' loss
            _log.exception("reading %s failed", name)
            bad[name] = f"it cannot be read ({type(error).__name__})"
    return good, bad


@contextlib.contextmanager
def naming(path: Path) -> Generator[None]:
    """Put the file's name before the reason of any `CheckpointError` raised inside."""
    try:
        yield
    except CheckpointError as error:
        raise CheckpointError(f"{printable(path.name)}: {error}") from error


def _arrays_of(checkpoint: Checkpoint) -> dict[str, np.ndarray]:
    """Return the arrays of a checkpoint by their names in a file, weights in float32."""
    arrays: dict[str, np.ndarray] = {
        f"state__{name}": array.astype(np.float32)
        for name, array in checkpoint.model.weights.items()
    }
    for label, array in checkpoint.embeddings.items():
        arrays[f"embedding__{label}"] = array
    for label, weights in checkpoint.snapshots.items():
        arrays |= {f"snapshot__{label}__{name}": array for name, array in weights.items()}
    if checkpoint.seen_items is not None:
        arrays[SEEN] = checkpoint.seen_items
    return arrays


def as_stored(label: str, array: np.ndarray) -> np.ndarray:
    """Return an array in the precision of a file: half, but for the selected weights.

    What outgrows half precision stays single.
    """
    single = array.astype(np.float32)
    if label.startswith(_SELECTED):
        return single
    with np.errstate(over="ignore"):
        half = array.astype(np.float16)
    return half if np.isfinite(half).all() else single


def _build_model(state: dict[str, np.ndarray], metadata: dict[str, Any]) -> LanguageModel:
    kind = metadata.get("kind")
    if kind is None:
        kind = next((kind for name, kind in _KIND_BY_WEIGHT.items() if name in state), "mlp")
    families = models.by_kind()
    if not isinstance(kind, str) or kind not in families:
        raise CheckpointError(
            f"its kind is {str(kind)[:40]!r}; this version reads {', '.join(sorted(families))}"
        )
    config = _mapping(metadata.get("model_config"))
    try:
        return families[kind].MODEL.from_weights(
            state,
            # The MLP has no heads, whatever a protocol says of them.
            n_head=0 if kind == "mlp" else _heads(metadata, kind),
            context_length=_whole_number(config.get("context_length")),
            positions=config.get("positions") is not False,
        )
    except CheckpointError:
        raise
    except ValueError as error:  # sizes out of range: a config's complaint about a file
        raise CheckpointError(str(error)) from error


def _heads(metadata: dict[str, Any], kind: str) -> int:
    config = _mapping(metadata.get("model_config"))
    by_kind = _mapping(_mapping(metadata.get("protocol")).get("heads"))
    said = (config.get("heads"), config.get("n_head"), by_kind.get(kind))
    stated = next((heads for heads in said if heads is not None), 1)
    heads = _whole_number(stated)
    if heads is None or heads < 1:
        raise CheckpointError(f"its number of heads is {str(stated)[:40]}, not a whole number")
    return heads


def _whole_number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _find_vocabulary(metadata: dict[str, Any], path: Path | None) -> Vocabulary:
    if metadata.get("vocabulary") is not None:
        found = Vocabulary.from_json(metadata["vocabulary"], "the vocabulary inside")
        where = "the vocabulary inside"
    else:
        beside = path.parent / "vocab.json" if path else None
        if beside is None or not beside.is_file():
            raise CheckpointError(
                "it has no vocabulary inside and there is no vocab.json beside it"
            )
        found, where = read_vocabulary(beside), "vocab.json beside it"
    expected = metadata.get("vocabulary_sha256")
    if expected is not None and expected != found.sha256:
        raise CheckpointError(f"{where} is not the one it was trained with (the hashes differ)")
    return found


def read_vocabulary(path: Path) -> Vocabulary:
    """Read a `vocab.json`."""
    name = printable(path.name)
    try:
        _require_regular(path)
        if path.stat().st_size > MAX_METADATA_BYTES:
            raise CheckpointError(f"{name} is larger than {MAX_METADATA_BYTES:,} bytes")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{name} is not readable JSON") from error
    return Vocabulary.from_json(_parse_json(text, name), name)


def _snapshots(
    arrays: Mapping[str, np.ndarray], model: LanguageModel, embeddings: Mapping[str, np.ndarray]
) -> dict[str, Weights]:
    found: dict[str, dict[str, np.ndarray]] = {}
    for key, array in _finite_floats(_with_prefix(arrays, "snapshot__")).items():
        label, _, name = key.partition("__")
        shown = printable(key[:80])
        if name not in model.weights or label not in embeddings:
            raise CheckpointError(f"snapshot__{shown} belongs to no weight or stored step")
        if array.shape != model.weights[name].shape:
            raise CheckpointError(
                f"snapshot__{shown} has shape {array.shape}, expected {model.weights[name].shape}"
            )
        # A snapshot may repeat the embedding; the step's own array is the one that is used.
        if name != model.embedding_name:
            found.setdefault(label, {})[name] = array
    wanted = set(model.weights) - {model.embedding_name}
    for label, weights in found.items():
        if set(weights) != wanted:
            raise CheckpointError(f"the snapshot at {label} lacks some weights")
    return cast("dict[str, Weights]", found)


def _seen_items(array: np.ndarray | None) -> UInt64[np.ndarray, " items"] | None:
    if array is not None and (array.dtype != np.uint64 or array.ndim != 1):
        raise CheckpointError(
            f"{SEEN} holds {array.dtype} of {array.ndim} axes, not a list of hashes"
        )
    # A file may hold them in any order; the search needs them sorted.
    return None if array is None else np.sort(array)


def _with_prefix(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _finite_floats(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return float16/float32 arrays as they are and float64 as float32, all finite."""
    checked = {}
    for name, array in arrays.items():
        if array.dtype.kind != "f":
            raise CheckpointError(f"{_short(name)} holds {array.dtype}, not floating-point numbers")
        with np.errstate(over="ignore"):
            narrow = array if array.dtype.itemsize <= 4 else array.astype(np.float32)
        if not np.isfinite(narrow).all():
            raise CheckpointError(f"{_short(name)} holds numbers that are not finite")
        narrow.setflags(write=False)
        checked[name] = narrow
    return checked


# -- the container


def read_arrays(
    source: Path | bytes, *, limit: int = MAX_BYTES
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return all arrays of an .npz file but its metadata, and the metadata.

    Args:
        source: A path, or a file's bytes.
        limit: Most bytes, of the file and of what it expands to.

    Raises:
        CheckpointError: Unreadable, too large, holding objects, or lying about its sizes.
    """
    try:
        with contextlib.ExitStack() as stack:
            if isinstance(source, Path):
                _require_regular(source)
                file = stack.enter_context(source.open("rb"))
            else:
                file = io.BytesIO(source)
            size = file.seek(0, io.SEEK_END)
            _require_within(size, limit, "has")
            if size == 0:
                raise CheckpointError("it is empty")
            archive = stack.enter_context(zipfile.ZipFile(file))
            arrays = dict(_members(archive, limit))
    except CheckpointError:
        raise
    except OSError as error:
        raise CheckpointError(f"it cannot be read: {error.strerror or error}") from error
    except _ZIP_ERRORS as error:
        raise CheckpointError("it is damaged or not an .npz file") from error
    metadata = arrays.pop("metadata_json", None)
    return arrays, {} if metadata is None else _parse_metadata(metadata)


def _members(archive: zipfile.ZipFile, limit: int) -> Iterator[tuple[str, np.ndarray]]:
    infos = archive.infolist()
    if len(infos) > MAX_MEMBERS:
        raise CheckpointError(f"it has {len(infos):,} members; the limit is {MAX_MEMBERS:,}")
    _require_within(sum(info.file_size for info in infos), limit, "would expand to")
    seen: set[str] = set()
    for info in infos:
        name = info.filename.removesuffix(".npy")
        if name == info.filename or name in seen:
            raise CheckpointError(f"its member {info.filename[:60]!r} is no array of its own")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise CheckpointError(f"{_short(name)} is compressed in a way that is not read here")
        seen.add(name)
        with archive.open(info) as member:
            yield name, _read_array(cast("zipfile.ZipExtFile", member), name, info.file_size)


def _require_within(size: int, limit: int, verb: str) -> None:
    if size > limit:
        raise CheckpointError(
            f"it {verb} {size / 2**20:,.0f} MB; the limit is {limit // 2**20:,} MB"
        )


def _require_regular(path: Path) -> None:
    """Refuse what would block or never end: pipes, devices, folders."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise CheckpointError("it is not a regular file")


def _short(name: str) -> str:
    return printable(name[:60])


def _read_array(member: zipfile.ZipExtFile, name: str, declared: int) -> np.ndarray:
    """Read one .npy stream, whose header may lie, without trusting it."""
    shape, fortran, dtype = _read_header(member, name)
    if dtype.hasobject:
        raise CheckpointError(f"{_short(name)} holds Python objects, which are never loaded")
    if len(shape) > _MAX_NDIM or any(n < 0 for n in shape) or dtype.itemsize == 0:
        raise CheckpointError(f"{_short(name)} has an impossible shape")
    size = math.prod(shape) * dtype.itemsize
    if size > declared:
        raise CheckpointError(
            f"{_short(name)} says it has shape {shape}, more than the {declared:,} bytes stored"
        )
    if name == "metadata_json" and size > MAX_METADATA_BYTES:
        raise CheckpointError(f"its metadata has {size:,} bytes; limit {MAX_METADATA_BYTES:,}")
    data = member.read(size)
    if len(data) != size:
        raise CheckpointError(f"{_short(name)} is cut off")
    array = np.frombuffer(data, dtype)
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


def _read_header(
    member: zipfile.ZipExtFile, name: str
) -> tuple[tuple[int, ...], bool, "np.dtype[Any]"]:
    magic, version = member.read(6), member.read(2)
    try:
        if magic != b"\x93NUMPY":
            raise ValueError("no .npy stream")
        width = _HEADER_SIZES[version]
        (length,) = struct.unpack(width, member.read(struct.calcsize(width)))
        header = member.read(min(length, _MAX_HEADER)).decode("latin-1")
        match = _HEADER.fullmatch(header)
        if match is None or len(header) != length:
            raise ValueError("not the form that NumPy writes")
        descr, fortran, sizes = match.groups()
        shape = tuple(int(n) for n in sizes.split(",") if n.strip())
        return shape, fortran == "True", np.dtype(descr)
    except (KeyError, TypeError, ValueError, struct.error) as error:
        raise CheckpointError(f"{_short(name)} has no readable array header") from error


def _parse_metadata(array: np.ndarray) -> dict[str, Any]:
    if array.dtype.kind != "U" or array.ndim != 0:
        raise CheckpointError("its metadata_json is not a text")
    try:
        text = str(array)
    except ValueError as error:  # numbers that are no characters
        raise CheckpointError("its metadata_json is not a text") from error
    metadata = _parse_json(text, "its metadata_json")
    if not isinstance(metadata, dict):
        raise CheckpointError("its metadata_json is not a JSON object")
    return cast("dict[str, Any]", metadata)


def _parse_json(text: str, where: str) -> Any:
    """Return JSON that can be written again as JSON: NaN and infinities become null."""
    try:
        data = json.loads(text, parse_constant=lambda _: None, parse_float=_finite_or_none)
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise CheckpointError(f"{where} holds half a surrogate pair, which is no text") from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{where} is not JSON") from error
    return data


def _finite_or_none(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


def write_arrays(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    metadata: Mapping[str, Any],
    *,
    compress: bool = False,
) -> None:
    """Write an .npz file aside, fsync it, and move it in place: never half a file.

    Raises:
        CheckpointError: The disk or the folder refuses; the earlier file is untouched.
    """
    text = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
    members = {**arrays, "metadata_json": np.array(text)}
    writer = np.savez_compressed if compress else np.savez
    with replacing(path, CheckpointError) as file:
        writer(file, allow_pickle=False, **cast("dict[str, Any]", members))
