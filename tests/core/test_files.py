"""A file is replaced whole or not at all."""

import os
from pathlib import Path

import pytest

from wordlm_core.errors import CorpusError, WordLMError
from wordlm_core.files import replacing


def test_the_new_file_takes_the_place_of_the_old(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "v1.2"
    for content in (b"one", b"two"):
        with replacing(path) as file:
            file.write(content)
        assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_a_failure_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail() -> None:
        with replacing(path) as file:
            file.write(b"half of the")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_writer_left_is_swept_and_a_living_one_kept(tmp_path: Path) -> None:
    path = tmp_path / "a[1]"
    strays = {pid: tmp_path / f".a[1].{pid}.tmp" for pid in (os.getppid(), 2**22 + 1)}
    for stray in strays.values():
        stray.touch()
    with replacing(path) as file:
        file.write(b"x")
    assert sorted(tmp_path.iterdir()) == sorted([path, strays[os.getppid()]])


@pytest.mark.parametrize("error_class", [WordLMError, CorpusError])
def test_a_refusing_disk_is_said_in_the_error_asked_for(
    tmp_path: Path, error_class: type[WordLMError]
) -> None:
    (tmp_path / "file").touch()
    message = "x could not be written: (File exists|Not a directory)"
    with (
        pytest.raises(WordLMError, match=message) as caught,
        replacing(tmp_path / "file" / "x", error_class) as file,
    ):
        file.write(b"x")
    assert type(caught.value) is error_class


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with (
        pytest.raises(WordLMError, match="No space left"),
        replacing(path),
        open("/dev/full", "wb", buffering=0) as full,
    ):
        full.write(b"x")
    assert not path.exists()
