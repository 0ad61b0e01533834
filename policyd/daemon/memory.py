"""How much memory the daemon may use, and which peer is dropped when it uses more.

Rules of this module:

1. At most `HELD` bytes wait for or from the peers of one uid, `HELD_OWN` for the daemon's own: unfinished lines and
   unread output. The peer that exceeds this is dropped.
2. What the daemon knows of sessions and calls grows with what peers send. Beyond its limit the peer that sent most is
   dropped: a proxy reconnects and sends what is needed, an embedder rejects and reconnects. If that frees no memory, no
   other peer is dropped until usage grows again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from policyd.daemon.line import Line

HELD = 64 * 1024 * 1024
HELD_OWN = 512 * 1024 * 1024
MOST = 1024 * 1024 * 1024
"""Bytes of memory where no control group says less."""
STEP = 16 * 1024 * 1024
"""Bytes it must have grown by since somebody was dropped."""
GROUPS = "/sys/fs/cgroup"


def room(groups: str = GROUPS, process: str = "/proc/self/cgroup") -> int:
    """Return how many bytes of memory may be used: a fifth less than the control group allows."""
    found = [MOST]
    try:
        with open(process, encoding="ascii") as file:
            path = next(line[3:].strip() for line in file if line.startswith("0::"))
    except (OSError, StopIteration, UnicodeError):  # no control group that can be asked
        return MOST
    for name in ("memory.high", "memory.max"):
        try:
            with open(f"{groups}{path}/{name}", encoding="ascii") as file:
                found.append(int(file.read()) * 4 // 5)
        except (OSError, ValueError):  # no such limit: `max` is no number
            continue
    return min(found)


def used() -> int:
    """Return how many bytes of memory are used; 0 where that cannot be told."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


class Pressure:
    """Says who has to go."""

    def __init__(self, most: int) -> None:
        """Allow `most` bytes."""
        self._most = most
        self._level = most

    def victim(self, lines: Iterable[Line], now: int) -> Line | None:
        """Return the peer that has to go where `now` bytes are used; None where nobody has to."""
        if now <= self._most:
            self._level = self._most
            return None
        if now <= self._level:
            return None
        self._level = now + STEP
        return max(lines, key=lambda line: line.taken, default=None)
