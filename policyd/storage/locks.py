"""Waiting for a file that another process has locked, but not for ever: a process that was stopped keeps its locks."""

from __future__ import annotations

import errno
import fcntl
from time import monotonic, sleep

LONGEST, BRIEF = 5.0, 0.05
"""Seconds. Nobody holds a lock of policyd's for longer than a disk takes to write."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.0001, 0.001
"""Seconds. Who writes one thing after another lets go for less than that: whoever looks seldom would never meet it."""


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
