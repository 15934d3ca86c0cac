"""Writing a file so that nobody ever sees half of it."""

import contextlib
import glob
import os
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

from wordlm_core.errors import WordLMError


@contextlib.contextmanager
def replacing(path: Path, error_class: type[WordLMError] = WordLMError) -> Generator[BinaryIO]:
    """Open a file beside `path` that takes its place when the block ends well.

    Written aside, fsynced, moved in one step: killed at any moment, either the earlier or
    the new file is there, whole.

    Args:
        path: The file to replace or create; its folder is made if need be.
        error_class: What to raise when the disk or the folder refuses.

    Raises:
        WordLMError: Of `error_class`, with the reason; the earlier file is untouched.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            with aside.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise error_class(f"{path.name} could not be written: {error.strerror or error}") from error


def _sweep(path: Path) -> None:
    """Remove what a killed writer of the same file left behind."""
    for stray in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        pid = stray.name.split(".")[-2]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            stray.unlink(missing_ok=True)
