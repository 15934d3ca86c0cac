"""Checkpoint files: ours, the course's, and those of an adversary."""

import json
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from wordlm_core import checkpoint
from wordlm_core.errors import CheckpointError
from wordlm_core.files import replacing
from wordlm_core.items import item_hash
from wordlm_core.models import attention, mlp
from wordlm_core.packing import pack
from wordlm_core.text import SPECIALS

WORDS = [*SPECIALS, "the", "cat", "saw", "dog", "and", "bird"]
V, T, D, H = len(WORDS), 6, 4, 5


def state(kind: str, *, d_k: int = 4, d_v: int = 4, seed: int = 0) -> dict[str, np.ndarray]:
    heads = 2 if kind == "multihead" else 1
    config = (
        mlp.MLPConfig(V, T, D, H)
        if kind == "mlp"
        else attention.AttentionConfig(V, T, D, H, heads, d_k, d_v)
    )
    rng = np.random.default_rng(seed)
    return {k: rng.normal(size=s).astype(np.float32) for k, s in config.shapes.items()}


def write(path: Path, arrays: dict, metadata: dict | None) -> Path:
    members = {k: np.asarray(v) for k, v in arrays.items()}
    if metadata is not None:
        members["metadata_json"] = np.array(json.dumps(metadata))
    with path.open("wb") as file:
        np.savez(file, **members)
    return path


def ours(path: Path, kind: str = "attention", **changes: object) -> Path:
    arrays = {f"state__{k}": v for k, v in state(kind).items()}
    metadata = {
        "kind": kind,
        "model_config": {"n_head": 2 if kind == "multihead" else 1},
        "vocabulary": {"itos": WORDS, "counts": {}},
    }
    for key, value in changes.items():
        (arrays if isinstance(value, np.ndarray) else metadata)[key] = value
    return write(path, arrays, metadata)


# -- the course's own files


@pytest.mark.parametrize("kind", ["mlp", "attention", "multihead"])
def test_course_file_without_vocabulary_or_config_takes_vocab_json_beside_it(tmp_path, kind):
    (tmp_path / "vocab.json").write_text(json.dumps({"itos": WORDS, "counts": {"cat": 7}}))
    arrays = {f"state__{k}": v for k, v in state(kind).items()}
    arrays["embedding__step_0"] = np.ones((V, D), np.float16)
    arrays["embedding__selected_step_500"] = arrays["state__token_embedding.weight"]
    metadata = {"kind": kind, "protocol": {"heads": {"attention": 1, "multihead": 2}}}
    loaded = checkpoint.load(write(tmp_path / "x.npz", arrays, metadata))
    assert loaded.model.kind == kind
    assert loaded.model.config.context_length == T
    assert loaded.steps == ("step_0", "selected_step_500")
    assert loaded.selected_step == 500
    assert loaded.vocabulary.counts["cat"] == 7
    assert loaded.model.n_head == {"mlp": 0, "attention": 1, "multihead": 2}[kind]


def test_query_and_value_widths_of_their_own_are_read_from_the_arrays(tmp_path):
    arrays = {f"state__{k}": v for k, v in state("multihead", d_k=6, d_v=10).items()}
    metadata = {"model_config": {"heads": 2}, "vocabulary": {"itos": WORDS}}
    loaded = checkpoint.load(write(tmp_path / "x.npz", arrays, metadata))
    trace = loaded.model.trace(np.array([1, 4, 5]))
    assert (loaded.model.config.d_k, loaded.model.config.d_v) == (6, 10)
    assert trace.queries.shape == (1, 2, 3, 3)
    assert trace.values.shape == (1, 2, 3, 5)


def test_file_without_metadata_is_told_apart_by_its_arrays(tmp_path):
    (tmp_path / "vocab.json").write_text(json.dumps({"itos": WORDS}))
    for kind in ("mlp", "attention"):
        arrays = {f"state__{k}": v for k, v in state(kind).items()}
        assert checkpoint.load(write(tmp_path / "x.npz", arrays, None)).model.kind == kind


@pytest.mark.parametrize(
    ("metadata", "heads"),
    [
        ({"model_config": {"heads": 2}}, 2),
        ({"model_config": {"n_head": 4}}, 4),
        ({"model_config": {"heads": None, "n_head": 2}}, 2),
        ({"model_config": {"n_head": None}, "protocol": {"heads": {"multihead": 4}}}, 4),
        ({"model_config": {}, "protocol": {"heads": {"multihead": 2}}}, 2),
        ({"protocol": {"heads": {"attention": 4}}}, 1),
        ({}, 1),
    ],
)
def test_heads_come_from_config_then_protocol_then_one(tmp_path, metadata, heads):
    arrays = {f"state__{k}": v for k, v in state("multihead").items()}
    whole = {"kind": "multihead", "vocabulary": {"itos": WORDS}, **metadata}
    assert checkpoint.load(write(tmp_path / "x.npz", arrays, whole)).model.n_head == heads


@pytest.mark.parametrize(
    "metadata",
    [
        {"protocol": {"heads": {"mlp": 0, "attention": 1}}},
        {"model_config": {"n_head": 0}},
        {"model_config": {"n_head": None}},
        {"model_config": {"heads": "none"}},
    ],
)
def test_an_mlp_has_no_heads_whatever_its_metadata_says(tmp_path, metadata):
    arrays = {f"state__{k}": v for k, v in state("mlp").items()}
    whole = {"kind": "mlp", "vocabulary": {"itos": WORDS}, **metadata}
    assert checkpoint.load(write(tmp_path / "x.npz", arrays, whole)).model.n_head == 0


def test_null_means_absent(tmp_path):
    (tmp_path / "vocab.json").write_text(json.dumps({"itos": WORDS, "counts": None}))
    arrays = {f"state__{k}": v for k, v in state("attention").items()}
    loaded = checkpoint.load(
        write(tmp_path / "x.npz", arrays, {"kind": None, "vocabulary": None, "selected_step": True})
    )
    assert loaded.model.kind == "attention"
    assert loaded.selected_step is None  # true is no step


def test_numbers_of_the_metadata_that_are_none_become_null(tmp_path):
    (tmp_path / "vocab.json").write_text(json.dumps({"itos": WORDS}))
    members = {f"state__{k}": v for k, v in state("mlp").items()}
    text = '{"metrics": {"a": NaN, "b": [Infinity, -Infinity, 1e999, 0.5]}}'
    path = write(tmp_path / "x.npz", {**members, "metadata_json": np.array(text)}, None)
    loaded = checkpoint.load(path)
    assert loaded.metadata["metrics"] == {"a": None, "b": [None, None, None, 0.5]}
    checkpoint.save(loaded, tmp_path / "y.npz")


def test_a_snapshot_may_repeat_the_embedding(tmp_path):
    table = state("attention", seed=2)["token_embedding.weight"].astype(np.float16)
    weights = {f"snapshot__step_0__{k}": v for k, v in state("attention", seed=1).items()}
    loaded = checkpoint.load(ours(tmp_path / "x.npz", embedding__step_0=table, **weights))
    model = loaded.model_at(0)
    assert np.array_equal(model.weights["token_embedding.weight"], table)
    assert np.array_equal(model.weights["W_Q.weight"], weights["snapshot__step_0__W_Q.weight"])
    weights["snapshot__step_0__token_embedding.weight"] = np.ones((V, D + 1), np.float16)
    with pytest.raises(CheckpointError, match=r"token_embedding\.weight has shape"):
        checkpoint.load(ours(tmp_path / "x.npz", embedding__step_0=table, **weights))


def test_the_hash_is_of_all_that_a_lens_reads(tmp_path):
    base = {
        "embedding__step_0": np.ones((V, D), np.float16),
        **{f"snapshot__step_0__{k}": v for k, v in state("attention", seed=1).items()
           if k != "token_embedding.weight"},
    }  # fmt: skip
    changes = {
        "nothing": {},
        "a weight": {"state__W_Q.weight": np.eye(4, dtype=np.float32)},
        "an embedding": {"embedding__step_0": np.full((V, D), 2, np.float16)},
        "a label": {"embedding__step_1": np.ones((V, D), np.float16)},
        "a snapshot": {"snapshot__step_0__W_Q.weight": np.eye(4, dtype=np.float16)},
        "counts": {"vocabulary": {"itos": WORDS, "counts": {"cat": 1}}},
        "tokens": {"vocabulary": {"itos": [*WORDS[:-1], "fish"], "counts": {}}},
        "heads": {"model_config": {"n_head": 2}},
    }
    hashes = {
        name: checkpoint.load(ours(tmp_path / f"{i}.npz", **{**base, **change})).sha256
        for i, (name, change) in enumerate(changes.items())
    }
    assert len(set(hashes.values())) == len(changes)
    again = checkpoint.load(ours(tmp_path / "another name.npz", **base))
    assert again.sha256 == hashes["nothing"]


def test_a_file_name_that_is_no_text_still_gives_a_label(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9\n.npz")
    try:
        ours(path)
    except OSError:
        pytest.skip("this disk takes only UTF-8 names")
    loaded = checkpoint.load(path)
    assert loaded.name == "caf\\udce9\\n"
    good, bad = checkpoint.load_folder(tmp_path)
    assert list(good) == [f"{loaded.name}.npz"]
    assert bad == {}


def test_one_file_that_breaks_the_reader_does_not_hide_the_others(tmp_path, monkeypatch, caplog):
    ours(tmp_path / "a.npz")
    ours(tmp_path / "b.npz")
    real = checkpoint.load

    def load(path: Path) -> checkpoint.Checkpoint:
        if path.name == "a.npz":
            raise MemoryError
        return real(path)

    monkeypatch.setattr(checkpoint, "load", load)
    good, bad = checkpoint.load_folder(tmp_path)
    assert list(good) == ["b.npz"]
    assert bad == {"a.npz": "it cannot be read (MemoryError)"}
    assert "reading a.npz failed" in caplog.text


def test_a_caller_that_lists_no_names_can_have_the_file_named(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"")
    with (
        pytest.raises(CheckpointError, match=r"^x\.npz: it is empty$"),
        checkpoint.naming(tmp_path / "x.npz"),
    ):
        checkpoint.read_arrays(tmp_path / "x.npz")


def test_a_pipe_a_device_or_a_folder_is_refused_unread(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "folder.npz").mkdir()
    for path in (tmp_path / "pipe.npz", tmp_path / "folder.npz", Path("/dev/zero")):
        with pytest.raises(CheckpointError, match="it is not a regular file"):
            checkpoint.load(path)
    os.mkfifo(tmp_path / "vocab.json")
    with pytest.raises(CheckpointError, match="it is not a regular file"):
        checkpoint.read_vocabulary(tmp_path / "vocab.json")


def test_vocabulary_inside_comes_before_the_one_beside(tmp_path):
    (tmp_path / "vocab.json").write_text(json.dumps({"itos": [*WORDS[:-1], "fish"]}))
    assert checkpoint.load(ours(tmp_path / "x.npz")).vocabulary.itos[-1] == "bird"


# -- saving


def test_save_and_load_give_the_same_model_and_history(tmp_path):
    loaded = checkpoint.load(
        ours(
            tmp_path / "x.npz",
            embedding__step_0=np.ones((V, D), np.float16),
            embedding__selected_step_9=state("attention")["token_embedding.weight"],
            **{
                f"snapshot__step_0__{k}": v.astype(np.float16)
                for k, v in state("attention", seed=1).items()
                if k != "token_embedding.weight"
            },
        )
    )
    checkpoint.save(loaded, tmp_path / "v1.2")
    again = checkpoint.load(tmp_path / "v1.2")
    assert again.sha256 == loaded.sha256
    assert again.steps == ("step_0", "selected_step_9")
    assert again.whole_steps == again.steps
    ids = np.array([[1, 4, 5]])
    for step in (None, 0, "step_0", "9", "selected_step_9"):
        left, right = loaded.model_at(step), again.model_at(step)
        assert np.array_equal(left.last_logits(ids), right.last_logits(ids))
    assert not np.array_equal(
        again.model_at(0).last_logits(ids), again.model_at(9).last_logits(ids)
    )


def test_history_that_outgrows_half_precision_is_kept(tmp_path):
    large = np.full((V, D), 1e30, np.float32)
    loaded = checkpoint.load(ours(tmp_path / "x.npz", embedding__step_0=large))
    for written in (loaded, pack(loaded, history_bits=8)):
        checkpoint.save(written, tmp_path / "y.npz")
        again = checkpoint.load(tmp_path / "y.npz")
        assert again.sha256 == written.sha256
        assert np.allclose(again.embedding_at(0), 1e30, rtol=0.01)


def test_a_step_without_whole_weights_names_those_that_have_them(tmp_path):
    loaded = checkpoint.load(
        ours(
            tmp_path / "x.npz",
            embedding__step_0=np.ones((V, D), np.float16),
            embedding__selected_step_9=state("attention")["token_embedding.weight"],
        )
    )
    assert loaded.embedding_at(0).dtype == np.float64
    with pytest.raises(CheckpointError, match=r"only the embeddings at step_0.*selected_step_9"):
        loaded.model_at(0)
    with pytest.raises(CheckpointError, match=r"step '7' is not stored.*step_0, selected_step_9"):
        loaded.model_at("7")


def test_arrays_are_read_only(tmp_path):
    loaded = checkpoint.load(ours(tmp_path / "x.npz"))
    for array in loaded.model.weights.values():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_a_writer_that_fails_leaves_the_earlier_file_and_no_stray(tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(b"earlier")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(b"%d" % (1 // 0))
    assert [p.name for p in tmp_path.iterdir()] == ["x.npz"]
    assert path.read_bytes() == b"earlier"


def test_a_writer_killed_in_mid_save_leaves_the_earlier_file(tmp_path):
    path = tmp_path / "x[1].npz"
    path.write_bytes(b"earlier")
    script = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from wordlm_core.files import replacing\n"
        "with replacing(Path(sys.argv[1])) as f:\n"
        "    f.write(b'half'); f.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert killed.returncode < 0
    assert path.read_bytes() == b"earlier"
    (stray,) = (p for p in tmp_path.iterdir() if p != path)
    os.utime(stray, (0, 0))
    with replacing(path) as file:
        file.write(b"later")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"later"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    loaded = checkpoint.load(ours(tmp_path / "x.npz"))
    real_open = Path.open
    monkeypatch.setattr(
        Path,
        "open",
        lambda self, *a, **k: real_open(
            Path("/dev/full") if self.suffix == ".tmp" else self, *a, **k
        ),
    )
    with pytest.raises(CheckpointError, match=r"y.npz could not be written: No space left"):
        checkpoint.save(loaded, tmp_path / "y.npz")
    assert not (tmp_path / "y.npz").exists()


# -- hostile files


class _Pickled:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return (os.system, (f"touch {self.marker}",))


def _zip(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def _npy(shape: str, descr: str = "'<f4'", data: bytes = b"") -> bytes:
    return _raw(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n", data)


def _raw(text: str, data: bytes = b"") -> bytes:
    header = text.encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def pickle_inside(path: Path) -> None:
    marker = path.parent / "marker"
    array = np.empty(1, object)
    array[0] = _Pickled(marker)
    with path.open("wb") as file:
        np.savez(file, **{"state__token_embedding.weight": array})


def bomb(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("state__a.npy", "w", force_zip64=True) as member,
    ):
        for _ in range(12):
            member.write(bytes(2**24))
    assert path.stat().st_size < 250_000


HOSTILE = {
    "empty": (lambda p: p.write_bytes(b""), "it is empty"),
    "text": (lambda p: p.write_text("hello"), "damaged or not an .npz"),
    "cut": (lambda p: p.write_bytes(ours(p).read_bytes()[:-200]), "damaged or not an .npz"),
    "pickle": (pickle_inside, "Python objects, which are never loaded"),
    "bomb": (bomb, "would expand to 192 MB; the limit is 180 MB"),
    "huge shape": (
        lambda p: _zip(p, {"state__a.npy": _npy("(1000000, 1000000)")}),
        "says it has shape",
    ),
    "negative shape": (lambda p: _zip(p, {"state__a.npy": _npy("(-1, 4)")}), "impossible shape"),
    "no header": (lambda p: _zip(p, {"state__a.npy": b"junk"}), "no readable array header"),
    "header of code": (
        lambda p: _zip(p, {"state__a.npy": _npy("__import__('os')")}),
        "no readable array header",
    ),
    **{
        f"header {name}": (
            lambda p, header=header: _zip(p, {"state__a.npy": header}),
            "no readable array header",
        )
        for name, header in {
            "not closed": _raw("{'descr': ("),
            "of minus signs": _raw("{'descr': " + "-" * 9000 + "1}"),
            "of brackets": _raw("{'descr': " + "(" * 4000),
            "empty descr": _npy("(4,)", "()"),
            "tuple descr": _npy("(4,)", "('<f4',)"),
            "unknown descr": _npy("(4,)", "'<f7'"),
            "true shape": _npy("(True,)"),
            "too long": _npy("(4,)" + " " * 9000),
            "with a long tail": _npy("(4,), }" + " " * 9000),
        }.items()
    },
    **{
        f"items of no size {descr}": (
            lambda p, descr=descr: _zip(p, {"state__a.npy": _npy("(1000000000000,)", descr)}),
            "impossible shape",
        )
        for descr in ("'<U0'", "'|S0'", "'|V0'")
    },
    "LZMA": (
        lambda p: _zip(p, {"state__a.npy": _npy("(1,)")}, zipfile.ZIP_LZMA),
        "compressed in a way that is not read here",
    ),
    "half a surrogate in the metadata": (
        lambda p: write(p, {"metadata_json": np.array('{"a": ["\\ud800"]}')}, None),
        "half a surrogate pair",
    ),
    "half a surrogate in the vocabulary": (
        lambda p: ours(p, vocabulary={"itos": [*WORDS[:-1], "\ud800"]}),
        "half a surrogate pair",
    ),
    "two selected steps": (
        lambda p: ours(
            p,
            embedding__selected_step_1=np.ones((V, D), np.float32),
            embedding__selected_step_2=np.ones((V, D), np.float32),
        ),
        "more than one selected step: selected_step_1, selected_step_2",
    ),
    "heads true": (lambda p: ours(p, model_config={"heads": True}), "number of heads is True"),
    "step in other digits": (
        lambda p: ours(p, **{"embedding__step_\u0661": np.ones((V, D), np.float32)}),
        "is no step label",
    ),
    "line break in a name": (
        lambda p: ours(p, **{"snapshot__step_3__a\nb": np.ones((4, 4), np.float16)}),
        "belongs to no weight or stored step",
    ),
    "short data": (
        lambda p: _zip(p, {"state__a.npy": _npy("(4,)", data=b"12")}),
        "is cut off",
    ),
    "member path": (lambda p: _zip(p, {"../../etc/x": b"x"}), "is no array of its own"),
    "many members": (
        lambda p: _zip(p, {f"{i}.npy": b"" for i in range(5001)}),
        "5,001 members; the limit is 5,000",
    ),
    "no weights": (lambda p: write(p, {"a": np.ones(3)}, {}), "holds no weights"),
    "metadata no JSON": (
        lambda p: write(p, {"metadata_json": np.array("{")}, None),
        "metadata_json is not JSON",
    ),
    "metadata a list": (
        lambda p: write(p, {"metadata_json": np.array("[]")}, None),
        "not a JSON object",
    ),
    "metadata bytes": (
        lambda p: write(p, {"metadata_json": np.array(b"{}")}, None),
        "metadata_json is not a text",
    ),
    "NaN weight": (
        lambda p: ours(p, **{"state__W_Q.weight": np.full((4, 4), np.nan, np.float32)}),
        "W_Q.weight holds numbers that are not finite",
    ),
    "float64 beyond float32": (
        lambda p: ours(p, **{"state__W_Q.weight": np.full((4, 4), 1e300)}),
        "W_Q.weight holds numbers that are not finite",
    ),
    "integers": (
        lambda p: ours(p, **{"state__W_Q.weight": np.ones((4, 4), int)}),
        "int64, not floating-point",
    ),
    "wrong shape": (
        lambda p: ours(p, **{"state__W_O.weight": np.ones((3, 4), np.float32)}),
        r"W_O.weight has shape \(3, 4\), expected \(4, 4\)",
    ),
    "not a matrix": (
        lambda p: ours(p, **{"state__W_Q.weight": np.ones(4, np.float32)}),
        "expected a matrix",
    ),
    "extra weight": (
        lambda p: ours(p, **{"state__x": np.ones(4, np.float32)}),
        "unexpected weights: x",
    ),
    "embedding shape": (
        lambda p: ours(p, embedding__step_0=np.ones((V, D + 1), np.float32)),
        r"embedding__step_0 has shape",
    ),
    "embedding label": (
        lambda p: ours(p, embedding__latest=np.ones((V, D), np.float32)),
        "'latest' is no step label",
    ),
    "snapshot of nothing": (
        lambda p: ours(p, **{"snapshot__step_3__W_Q.weight": np.ones((4, 4), np.float16)}),
        "belongs to no weight or stored step",
    ),
    "half a snapshot": (
        lambda p: ours(
            p,
            embedding__step_3=np.ones((V, D), np.float16),
            **{"snapshot__step_3__W_Q.weight": np.ones((4, 4), np.float16)},
        ),
        "the snapshot at step_3 lacks some weights",
    ),
    "kind": (lambda p: ours(p, kind="rnn"), "its kind is 'rnn'"),
    "heads": (lambda p: ours(p, model_config={"heads": 3}), "3 heads do not divide"),
    "heads no number": (lambda p: ours(p, model_config={"heads": "two"}), "number of heads is two"),
    "vocabulary too short": (
        lambda p: ours(p, vocabulary={"itos": WORDS[:-1]}),
        "vocabulary has 9 tokens but its embedding 10 rows",
    ),
    "vocabulary too long": (
        lambda p: ours(p, vocabulary={"itos": [*WORDS, "fish"]}),
        "vocabulary has 11 tokens but its embedding 10 rows",
    ),
    "vocabulary repeats": (
        lambda p: ours(p, vocabulary={"itos": [*WORDS[:-1], "the"]}),
        "names a token twice",
    ),
    "vocabulary no specials": (
        lambda p: ours(p, vocabulary={"itos": sorted(WORDS)}),
        "must begin with <PAD>",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_bad_file_is_refused_in_one_sentence(tmp_path, name):
    make, reason = HOSTILE[name]
    path = tmp_path / "bad.npz"
    make(path)
    with pytest.raises(CheckpointError, match=reason) as caught:
        checkpoint.load(path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "marker").exists()


def test_a_vocabulary_of_another_run_with_equal_size_is_refused(tmp_path):
    loaded = checkpoint.load(ours(tmp_path / "x.npz"))
    arrays = {f"state__{k}": v for k, v in loaded.model.weights.items()}
    metadata = {"kind": "attention", "vocabulary_sha256": loaded.vocabulary.sha256}
    write(tmp_path / "y.npz", arrays, metadata)
    (tmp_path / "vocab.json").write_text(json.dumps({"itos": [*WORDS[:-1], "fish"]}))
    with pytest.raises(CheckpointError, match="not the one it was trained with"):
        checkpoint.load(tmp_path / "y.npz")


def test_a_folder_lists_bad_files_with_reasons_and_loads_the_rest(tmp_path):
    ours(tmp_path / "good.npz")
    ours(tmp_path / "also good.npz", kind="multihead", model_config={"n_head": 2})
    for name, (make, _) in HOSTILE.items():
        make(tmp_path / f"bad {name}.npz")
    good, bad = checkpoint.load_folder(tmp_path)
    assert sorted(good) == ["also good.npz", "good.npz"]
    assert sorted(bad) == sorted(f"bad {name}.npz" for name in HOSTILE)
    assert all(reason and "\n" not in reason for reason in bad.values())


def test_an_upload_is_read_from_its_bytes(tmp_path):
    data = ours(tmp_path / "x.npz").read_bytes()
    assert checkpoint.load(data, name="mine").name == "mine"


def test_any_bytes_give_a_sentence_or_a_checkpoint(tmp_path):
    good = bytearray(ours(tmp_path / "x.npz").read_bytes())
    rng = np.random.default_rng(3)
    for _ in range(300):
        broken = bytearray(good)
        for place in rng.integers(0, len(broken), 4):
            broken[place] = rng.integers(256)
        try:
            checkpoint.load(bytes(broken))
        except CheckpointError:
            continue


@pytest.mark.parametrize(
    "array",
    [np.array([1, 2], dtype=np.int64), np.array([1.5]), np.zeros((2, 2), np.uint64), np.array("x")],
    ids=["signed", "float", "table", "text"],
)
def test_hashes_that_are_none_are_refused(tmp_path, array):
    path = ours(tmp_path / "x.npz", seen_items=array)
    with pytest.raises(CheckpointError, match="not a list of hashes"):
        checkpoint.load(path)


def test_hashes_in_any_order_are_found(tmp_path):
    hashes = np.array([item_hash(text) for text in ("b", "zz", "a")], dtype=np.uint64)
    loaded = checkpoint.load(ours(tmp_path / "x.npz", seen_items=hashes))
    assert [loaded.has_seen(text) for text in ("a", "b", "zz", "c")] == [True, True, True, False]
    empty = checkpoint.load(ours(tmp_path / "y.npz", seen_items=hashes[:0]))
    assert empty.has_seen("a") is False


@pytest.mark.parametrize(
    ("told", "losses"),
    [
        ([3.0, 2], [3.0, 2.0]),
        *((nonsense, []) for nonsense in (None, 5, "ab", ["a"], [None, 1.0], [True], {"a": 1})),
        ([10**400], []),
    ],
)
def test_losses_are_numbers_or_nothing(tmp_path, told, losses):
    loaded = checkpoint.load(ours(tmp_path / "x.npz", loss_history=told))
    assert loaded.losses().tolist() == losses


@pytest.mark.parametrize(
    ("told", "section"), [({"lr": 1}, {"lr": 1}), *((odd, {}) for odd in ([1], "lr", 7, None))]
)
def test_a_section_is_a_table_or_nothing(tmp_path, told, section):
    loaded = checkpoint.load(ours(tmp_path / "x.npz", training=told))
    assert loaded.section("training") == section
    assert loaded.section("corpus") == {}
