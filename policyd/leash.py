"""A leash: what was started does not outlive policyd, not even a policyd that was killed.

Who is on it inherits the reading end of a pipe whose writing end policyd alone has, and which is told (`F_SETOWN`,
`F_SETSIG`, `O_ASYNC`) to kill the process, or a whole group, when it changes: when policyd is gone, by whatever cause,
the kernel closes the other end. Linux's parent-death signal would need Python in a child that was just forked, and
reaches one process only. Where the kernel has no `F_SETSIG` (macOS), the end of its input is all that tells an orphan.

Nothing but `os`, `sys` and C modules of the interpreter is imported here: the agent waits for it.
"""

from __future__ import annotations

import fcntl
import os
import sys
from _signal import SIGKILL  # type: ignore[import-not-found]  # `signal` would cost the agent milliseconds

LINUX = sys.platform == "linux"


class Leash:
    """A pipe whose end, inherited as `ends`, kills whom it is told to hold."""

    __slots__ = ("_hand", "ends")

    def __init__(self) -> None:
        """Make it; nobody is on it yet."""
        self.ends: tuple[int, ...] = ()
        """The descriptor to be inherited, none where there is no leash."""
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
