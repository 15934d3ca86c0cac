"""Uploads: what is taken, what is refused and why, whose they are, and how long they stay."""

import json
import os
import threading
import time

import numpy as np
import pytest

from app.jobs import uploads as module
from app.jobs.bounds import Limits
from app.jobs.record import owner_of
from app.jobs.uploads import AT_MOST, UploadError, Uploads
from tests import tiny
from tests.ui.conftest import make
from wordlm_core import checkpoint
from wordlm_core.errors import CheckpointError, CorpusError, WordLMError

ANN, BEN = "a" * 32, "b" * 32
TEXT = b"the cat saw the dog\nthe bird ran\n"


@pytest.fixture
def store(tmp_path) -> Uploads:
    return Uploads(tmp_path, Limits(corpus_megabytes=1))


@pytest.fixture(scope="module")
def npz(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("made") / "mine.npz"
    checkpoint.save(make("attention"), path)
    return path.read_bytes()


def without_vocabulary(data: bytes, folder) -> bytes:
    """Return the same checkpoint as older files are: its vocabulary beside it."""
    path = folder / "old.npz"
    path.write_bytes(data)
    arrays, metadata = checkpoint.read_arrays(path)
    del metadata["vocabulary"]
    checkpoint.write_arrays(path, arrays, metadata)
    return path.read_bytes()


def test_a_corpus_is_read_and_its_documents_come_back(store):
    kept = store.add_corpus(TEXT, "mine.txt", ANN)
    assert (kept.name, kept.kind, kept.private, kept.owner) == (
        "mine.txt",
        "corpus",
        True,
        owner_of(ANN),
    )
    assert list(store.documents(kept)) == ["the cat saw the dog", "the bird ran"]
    assert kept.size == kept.path.stat().st_size
    lines = store.add_corpus(b'{"text": "one\\ntwo"}\n', "a.jsonl", ANN)
    assert list(store.documents(lines)) == ["one\ntwo"]


@pytest.mark.parametrize(
    ("data", "name", "said"),
    [
        (b"", "empty.txt", "holds no text"),
        (b"  \n\n", "blank.txt", "holds no text"),
        (b'{"text": " "}', "blank.jsonl", "holds no text"),
        (b"caf\xe9", "latin.txt", "not UTF-8: byte 3"),
        (b"a\0b", "zero.txt", "zero bytes"),
        (b"{}", "bad.jsonl", 'no "text"'),
        (b"[" * 100_000, "deep.jsonl", "not JSON"),
        (b"x" * (2**20 + 1), "large.txt", "1.0 MB; a corpus may have 1 MB"),
    ],
)
def test_a_bad_corpus_is_refused_in_a_sentence_and_leaves_nothing(
    store, tmp_path, data, name, said
):
    with pytest.raises(CorpusError, match=said):
        store.add_corpus(data, name, ANN)
    assert store.all() == ()
    assert not list(tmp_path.rglob("*.jsonl"))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\texts\\mine.txt", "mine.txt"),
        ("", "text"),
        ("/", "text"),
        ("<b>x</b>.txt", "b>.txt"),
        ("a\nb\x00.txt", "a\\nb\\x00.txt"),
        ("n" * 300 + ".jsonl", "n" * 53 + "….jsonl"),
    ],
)
def test_a_name_is_a_label_and_never_a_path(store, tmp_path, name, shown):
    data = b'{"text": "hello"}'
    kept = store.add_corpus(data, name, ANN)
    assert kept.name == shown
    assert len(kept.name) <= module.LONGEST_NAME
    assert {path.name for path in tmp_path.iterdir()} == {"uploads"}
    assert kept.path == tmp_path / "uploads" / kept.id / "corpus.jsonl"
    assert ANN not in (kept.path.parent / "meta.json").read_text(encoding="utf-8")


def test_a_checkpoint_is_stored_whole_and_opens_without_its_name(store, npz):
    kept = store.add_checkpoint(npz, "mine.npz", ANN)
    again = checkpoint.load(kept.path)
    assert again.sha256 == make("attention").sha256
    facts = kept.facts
    assert (facts.family, facts.tokenizer, facts.heads) == ("attention", "word", 1)
    assert facts.width == again.model.config.d_model


def test_a_checkpoint_without_a_vocabulary_takes_one_beside_it(store, npz, tmp_path):
    old = without_vocabulary(npz, tmp_path)
    with pytest.raises(CheckpointError, match="no vocabulary inside"):
        store.add_checkpoint(old, "old.npz", ANN)
    vocab = json.dumps(make("attention").vocabulary.to_json()).encode()
    kept = store.add_checkpoint(old, "old.npz", ANN, vocab)
    assert checkpoint.load(kept.path).sha256 == make("attention").sha256
    with pytest.raises(CheckpointError):
        store.add_checkpoint(old, "other.npz", ANN, json.dumps({"itos": ["a"]}).encode())
    with pytest.raises(CheckpointError, match="not readable JSON"):
        store.add_checkpoint(old, "other.npz", ANN, b"\xff")


def test_what_is_no_checkpoint_is_refused(store, npz, monkeypatch, tmp_path):
    np.savez(tmp_path / "evil.npz", a=np.array([{"a": 1}], dtype=object))
    for data in (b"", b"PK", npz[:1000], (tmp_path / "evil.npz").read_bytes()):
        with pytest.raises(CheckpointError):
            store.add_checkpoint(data, "bad.npz", ANN)
    monkeypatch.setattr(checkpoint, "MAX_BYTES", 1000)
    with pytest.raises(CheckpointError, match="too large"):
        store.add_checkpoint(npz, "large.npz", ANN)
    assert store.all() == ()


def test_the_same_file_twice_is_one_upload_but_not_for_another_person(store, npz):
    first = store.add_corpus(TEXT, "mine.txt", ANN)
    assert store.add_corpus(TEXT, "again.txt", ANN) == first
    assert store.add_corpus(TEXT, "mine.txt", BEN).id != first.id
    made = store.add_checkpoint(npz, "mine.npz", ANN)
    assert store.add_checkpoint(npz, "mine.npz", ANN) == made
    assert len(store.all()) == 3


def test_others_see_what_is_shared_and_only_the_owner_changes_it(store):
    kept = store.add_corpus(TEXT, "mine.txt", ANN)
    assert store.visible(BEN) == ()
    for act in (
        lambda: store.get(kept.id, BEN),
        lambda: store.share(kept.id, BEN, False),
        lambda: store.delete(kept.id, BEN),
        lambda: store.get("../" + kept.id, ANN),
    ):
        with pytest.raises(UploadError):
            act()
    assert store.visible(BEN, True) == (kept,)
    shared = store.share(kept.id, ANN, False)
    assert store.visible(BEN) == (shared,)
    assert not shared.private
    with pytest.raises(UploadError, match="somebody else's"):
        store.delete(kept.id, BEN)
    store.delete(kept.id, BEN, instructor=True)
    assert store.all() == ()
    assert not kept.path.parent.exists()


def test_ten_are_the_most_and_the_sentence_names_the_oldest(store):
    for number in range(AT_MOST):
        store.add_corpus(f"text {number}".encode(), f"{number}.txt", ANN)
    with pytest.raises(UploadError, match=r"delete one, such as the oldest, 0\.txt"):
        store.add_corpus(b"one more", "more.txt", ANN)
    assert store.add_corpus(b"text 3", "3.txt", ANN).name == "3.txt"
    store.add_corpus(b"one more", "more.txt", BEN)


def test_old_ones_are_cleared_by_rule(store, tmp_path):
    old = store.add_corpus(TEXT, "old.txt", ANN)
    new = store.add_corpus(b"new", "new.txt", ANN)
    meta = old.path.with_name("meta.json")
    record = json.loads(meta.read_text(encoding="utf-8"))
    record["created"] = time.time() - 15 * 86_400
    meta.write_text(json.dumps(record), encoding="utf-8")
    again = Uploads(tmp_path)
    assert again.clear() == 1
    assert [each.id for each in again.all()] == [new.id]


def test_a_damaged_record_is_passed_over(store, tmp_path):
    kept = store.add_corpus(TEXT, "mine.txt", ANN)
    for number, text in enumerate(("", "{}", "[1]", '{"kind": "corpus"}', "[" * 100_000)):
        folder = tmp_path / "uploads" / f"bad{number}"
        folder.mkdir()
        (folder / "meta.json").write_text(text, encoding="utf-8")
    assert Uploads(tmp_path).all() == (kept,)


def test_a_full_disk_is_said_and_leaves_nothing(store, tmp_path, monkeypatch):
    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WordLMError, match="No space left"):
        store.add_corpus(TEXT, "mine.txt", ANN)
    assert store.all() == ()
    assert not list((tmp_path / "uploads").iterdir())


def test_no_room_for_more(tmp_path):
    small = Uploads(tmp_path, Limits(megabytes=1))
    small.add_corpus(b"x " * 2**19 + b"x" * 2**18, "large.txt", ANN)
    with pytest.raises(UploadError, match="disk space"):
        small.add_corpus(b"more", "more.txt", ANN)


def test_the_same_upload_at_once_is_one(store):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(store.add_corpus(TEXT, "mine.txt", ANN)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({each.id for each in found}) == len(store.all()) == 1


def test_the_tiny_model_of_characters_says_what_it_reads(store, tmp_path):
    checkpoint.save(tiny.char_checkpoint(), tmp_path / "char.npz")
    kept = store.add_checkpoint((tmp_path / "char.npz").read_bytes(), "char.npz", ANN)
    assert (kept.facts.family, kept.facts.tokenizer) == ("microgpt", "char")
