"""Waiting for a file lock with a time limit: a stopped process keeps its locks."""

from __future__ import annotations

import errno
import fcntl
from time import monotonic, sleep

LONGEST, BRIEF = 5.0, 0.05
"""Seconds. No policyd process holds a lock for longer than a disk takes to write."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.0001, 0.001
"""Seconds between attempts: a busy writer releases its lock for a short time only."""


def lock(descriptor: int, *, brief: bool = False) -> None:
    """Lock an open file for this process alone; `brief`: hardly wait.

    Raises:
        BlockingIOError: another process kept it locked all the time.
    """
    until, pause = monotonic() + (BRIEF if brief else LONGEST), SHORTEST_PAUSE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if monotonic() >= until:
                raise BlockingIOError(errno.EAGAIN, "another process keeps it locked") from None
        sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def unlock(descriptor: int) -> None:
    """Let others lock it, also while a thread holds a copy of the descriptor."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
