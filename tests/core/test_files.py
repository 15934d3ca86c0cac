"""A file is replaced whole or not at all."""

import os
import platform
import time
from pathlib import Path

import pytest

from wordlm_core.errors import CorpusError, WordLMError
from wordlm_core.files import printable, replacing


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


def aside(path: Path, host: str, pid: int, age: float) -> Path:
    """Make what a writer leaves beside `path`, last written to `age` seconds ago."""
    stray = path.with_name(f".{path.name}.{host}.{pid}.tmp")
    stray.touch()
    os.utime(stray, (time.time() - age,) * 2)
    return stray


def test_what_a_dead_writer_left_is_swept_and_all_others_kept(tmp_path: Path) -> None:
    path, here, nobody = tmp_path / "a[1]", platform.node(), 2**22 + 1
    dead = aside(path, here, nobody, 3600)
    also_dead = aside(path, here, 10**12, 3600)
    kept = [
        aside(path, here, os.getppid(), 3600),  # alive
        aside(path, here, nobody - 1, 5),  # perhaps alive where we cannot see it
        aside(path, "another", nobody, 3600),
        aside(tmp_path / "other", here, nobody, 3600),
    ]
    with replacing(path) as file:
        file.write(b"x")
    assert not dead.exists()
    assert not also_dead.exists()
    assert sorted(tmp_path.iterdir()) == sorted([path, *kept])


def test_a_living_writer_of_another_process_space_loses_nothing(tmp_path: Path) -> None:
    """Two containers write one file; neither sees the other's process number."""
    path = tmp_path / "file"
    theirs = aside(path, platform.node(), 2**22 + 1, 0)
    with replacing(path) as file:
        file.write(b"ours")
    theirs.write_bytes(b"theirs")
    theirs.replace(path)
    assert path.read_bytes() == b"theirs"


@pytest.mark.parametrize(
    ("name", "shown"),
    [("caf\u00e9 1.npz", "caf\u00e9 1.npz"), ("a\nb", r"a\nb"), ("\udcff.npz", r"\udcff.npz")],
)
def test_a_name_can_be_printed_whatever_its_bytes(name: str, shown: str) -> None:
    assert printable(name) == shown


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
