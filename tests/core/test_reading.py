"""A person's own text: one document a line or .jsonl, UTF-8 or a sentence why not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from wordlm_core import corpora
from wordlm_core.corpora import reading
from wordlm_core.errors import ConfigError, CorpusError, WordLMError

LINES = ["The cat sat.", "Caf\u00e9 \u732b \U0001f600 \u201chi\u201d"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_marks_leave_no_trace(end: str, mark: str) -> None:
    data = (mark + end.join(["", LINES[0], "  ", f" {LINES[1]}\t", ""])).encode()
    assert reading.read_bytes(data, "a.txt") == LINES
    rows = [json.dumps({"text": line, "more": 1}) for line in LINES]
    data = (mark + end.join([*rows, "", ""])).encode()
    assert reading.read_bytes(data, "a.jsonl") == LINES
    assert reading.read_bytes(data, "A.JSONL") == LINES


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_marks_of_files_that_were_glued_together_are_taken_away(name: str) -> None:
    rows = LINES if name == "a.txt" else [json.dumps({"text": f"\ufeff{line}"}) for line in LINES]
    data = "".join(f"\ufeff{row}\n" for row in rows).encode()
    assert reading.read_bytes(data, name) == LINES


def test_a_pipe_or_a_device_is_refused_unread(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    for path in (tmp_path / "pipe.txt", Path("/dev/zero")):
        with pytest.raises(CorpusError, match=f"{path.name} is neither a file nor a folder"):
            reading.read_path(path)


def test_other_line_separators_stay_inside_a_document() -> None:
    text = "one\u2028two\x85three\x0bfour"
    assert reading.read_bytes(text.encode(), "a.txt") == [text]
    assert reading.read_bytes(json.dumps({"text": "a\nb"}).encode(), "a.jsonl") == ["a\nb"]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_other_encodings_are_refused_with_the_place(encoding: str) -> None:
    data = "plain\nplain\na caf\u00e9".encode(encoding)
    with pytest.raises(CorpusError, match=r"a\.txt is not UTF-8: byte 17 \(line 3\)"):
        reading.read_bytes(data, "a.txt")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_wide_encodings_are_refused(encoding: str) -> None:
    with pytest.raises(CorpusError, match=r"is not UTF-8|zero bytes"):
        reading.read_bytes("plain text".encode(encoding), "a.txt")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("text", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('["text"]', 'no "text"'),
        ('{"Text": "x"}', 'no "text"'),
        ('{"text": 3}', 'no "text"'),
        ('{"text": null}', 'no "text"'),
        ('{"text": "\\ud83d"}', "half a surrogate pair"),
        ('{"text": "a\\u0000b"}', "a zero character, which is no text"),
    ],
)
def test_a_bad_json_line_is_named(line: str, reason: str) -> None:
    data = f'{{"text": "fine"}}\n\n{line}\n'.encode()
    with pytest.raises(CorpusError, match=rf"^a\.jsonl, line 3: {reason}$"):
        reading.read_bytes(data, "a.jsonl")


def test_a_folder_is_its_jsonl_files_in_name_order(tmp_path: Path) -> None:
    for name, texts in (("b", ["3"]), ("a-10", ["1", "2"]), ("c", ["4", "5"])):
        rows = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        (tmp_path / f"{name}.jsonl").write_text(rows)
    (tmp_path / "notes.txt").write_text("not read")
    assert reading.read_path(tmp_path) == ["1", "2", "3", "4", "5"]
    corpus = corpora.load(str(tmp_path), documents=3)
    assert corpus.documents == ("1", "2", "3")
    assert (corpus.name, corpus.licence) == (tmp_path.name, "unknown")
    assert str(tmp_path) not in corpus.source


def test_more_documents_than_there_are_means_all(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("one\ntwo\n")
    assert corpora.load(str(path), documents=10**9).documents == ("one", "two")
    assert corpora.load(str(path)).name == "mine.txt"


def test_too_large_a_file_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.txt"
    path.write_bytes(b"x" * 11)
    monkeypatch.setattr(reading, "MAX_BYTES", 10)
    with pytest.raises(CorpusError, match=r"large\.txt has 11 bytes; the limit is 10"):
        reading.read_path(path)


@pytest.mark.parametrize("where", ["nothing here", "", "a" * 5000, "a\0b", "/etc/passwd/x"])
def test_what_is_not_there_is_said(where: str) -> None:
    with pytest.raises(CorpusError, match=r"no corpus, file or folder .*stories, tinystories"):
        corpora.load(where)


def test_empty_sources_are_said(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_bytes(b"\xef\xbb\xbf \r\n\t")
    with pytest.raises(CorpusError, match=r"empty\.txt holds no text"):
        corpora.load(str(tmp_path / "empty.txt"))
    with pytest.raises(CorpusError, match=r"holds no \.jsonl file"):
        corpora.load(str(tmp_path))


def test_settings_out_of_range_are_said(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("one\n")
    for documents in (0, -1):
        with pytest.raises(ConfigError, match="documents must be 1 or more"):
            corpora.load(str(path), documents=documents)
    with pytest.raises(ConfigError, match=r"no profile 'huge'.*smoke, classroom, full"):
        corpora.load(str(path), profile="huge")


def test_a_corpus_is_known_by_its_documents() -> None:
    one, two = (corpora.Corpus("x", texts, "", "") for texts in (("ab", "c"), ("a", "bc")))
    assert one.sha256 != two.sha256
    assert one.sha256 == corpora.Corpus("y", ("ab", "c"), "MIT", "z").sha256


def test_every_named_corpus_says_what_it_is() -> None:
    found = corpora.modules()
    assert set(found) >= {"stories", "tinystories"}
    for name, module in found.items():
        info = module.INFO
        assert info.name == name
        assert info.licence
        assert info.how_to_get
        assert isinstance(module.available(), bool)


def test_the_platform_encoding_plays_no_part(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_bytes("\n".join(LINES).encode())
    code = (
        "import sys; from wordlm_core import corpora;"
        "print(corpora.load(sys.argv[1]).sha256, ascii(corpora.load(sys.argv[1]).documents))"
    )
    answer = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", code, str(path)],
        env={"LANG": "C", "LC_ALL": "C", "PATH": ""},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert answer.split(" ", 1)[0] == corpora.load(str(path)).sha256
    assert issubclass(CorpusError, WordLMError)


def test_a_profile_cuts_a_path_too(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("\n".join(f"story {n}" for n in range(500)))
    assert len(corpora.load(str(path), profile="smoke").documents) == 480
    assert len(corpora.load(str(path), profile="full").documents) == 500
    assert len(corpora.load(str(path), profile="smoke", documents=3).documents) == 3
