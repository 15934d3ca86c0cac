"""Writing a file so that nobody ever sees half of it."""

import contextlib
import glob
import os
import platform
import time
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

from wordlm_core.errors import WordLMError

# A writer that has not touched its file for so many seconds may be taken for dead.
_STALE_AFTER = 600


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
        aside = path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.tmp")
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
        raise error_class(
            f"{printable(path.name)} could not be written: {error.strerror or error}"
        ) from error


def printable(name: str) -> str:
    """Return a file's name as a label: what cannot be shown or encoded is spelled out."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)


def _sweep(path: Path) -> None:
    """Remove what a killed writer of the same file left behind on this machine.

    A folder can be shared with containers whose processes cannot be seen from here, perhaps
    under one host name: a file that was written to of late belongs to somebody alive.
    """
    mine = f".{glob.escape(path.name)}.{glob.escape(platform.node())}."
    for stray in path.parent.glob(f"{mine}*.tmp"):
        pid = stray.name.split(".")[-2]
        with contextlib.suppress(FileNotFoundError):  # somebody else swept it
            stale = time.time() - stray.stat().st_mtime > _STALE_AFTER
            if stale and pid.isdecimal() and not _is_alive(int(pid)):
                stray.unlink()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # alive, and somebody else's
    return True
