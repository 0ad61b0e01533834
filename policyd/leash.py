"""A leash: a child process does not outlive policyd, not even if policyd is killed.

The child inherits the reading end of a pipe whose writing end only policyd has, and which is set up (`F_SETOWN`,
`F_SETSIG`, `O_ASYNC`) to kill the process, or its whole group, when it changes: the kernel closes the other end when
policyd ends for whatever reason. Linux's parent-death signal would need Python in a child that was just forked, and
reaches one process only. Without `F_SETSIG` (macOS) an orphan only sees the end of its input.

Nothing but `os`, `sys` and C modules of the interpreter is imported here: the agent waits for it.
"""

from __future__ import annotations

import fcntl
import os
import sys
from _signal import SIGKILL  # type: ignore[import-not-found]  # `signal` would cost the agent milliseconds

LINUX = sys.platform == "linux"


class Leash:
    """A pipe whose inherited `ends` kill the process, or group, that `hold` names."""

    __slots__ = ("_hand", "ends")

    def __init__(self) -> None:
        """Create the pipe; no process is on it yet."""
        self.ends: tuple[int, ...] = ()
        """The descriptor to be inherited; empty if the system supports no leash."""
        self._hand: tuple[int, ...] = ()
        if LINUX:
            end, hand = os.pipe()
            self.ends, self._hand = (end,), (hand,)

    def hold(self, pid: int) -> None:
        """Have the kernel kill a process, or (its number negative) a group, that has inherited the end."""
        for end in self.ends:
            fcntl.fcntl(end, fcntl.F_SETOWN, pid)
            fcntl.fcntl(end, fcntl.F_SETSIG, SIGKILL)
            fcntl.fcntl(end, fcntl.F_SETFL, fcntl.fcntl(end, fcntl.F_GETFL) | os.O_ASYNC)
            os.close(end)
        self.ends = ()

    def let_go(self) -> None:
        """Close it: who is held and still has the end is killed."""
        for fd in self.ends + self._hand:
            os.close(fd)
        self.ends = self._hand = ()
