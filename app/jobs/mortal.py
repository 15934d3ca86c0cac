"""A process that ends when its parent does, so that nothing trains on behind anybody's back."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Let the system end this process when the one that started it ends, in whatever way.

    Elsewhere than on Linux there is no such signal: a training asks `is_orphan` at every step,
    and a process that answers over pipes ends when they close.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if is_orphan(parent):  # it ended before the line above
        sys.exit()


def is_orphan(parent: int) -> bool:
    """Return whether the process that started this one has ended."""
    return os.getppid() != parent
