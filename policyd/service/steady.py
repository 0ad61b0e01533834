"""Since when files are unchanged: one that is being written is incomplete.

A prefix of a policy is often a valid policy, with its first allows but without the denies behind them. So the loosening
of a changed file counts only after it was unchanged for `QUIET` seconds, seen twice. A writer that is slower than that,
and does not rename a finished file into place, is not noticed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from math import inf
from time import monotonic

from policyd.policy import PolicySource

QUIET = 1.0
"""Seconds."""
KEPT = 10_000
"""Files: sessions in new projects come and go."""
Seen = tuple[bytes, int, int, int, int, int]
"""What was read, and what the file system says of the file: its clock may be coarser than a writer is quick."""


class Steady:
    """When each file was first seen as it is."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """Nothing was seen."""
        self._clock = clock
        self._since: dict[str, tuple[Seen, float]] = {}

    def begin(self, sources: Iterable[PolicySource]) -> None:
        """Take files that are read for the first time for steady: there is nothing else to go by."""
        if len(self._since) > KEPT:  # of those that are steady this is found out again
            now = self._clock()
            self._since = {name: one for name, one in list(self._since.items()) if now - one[1] < QUIET}
        for source in sources:
            self._since.setdefault(source.name, (seen(source), -inf))

    def look(self, sources: Iterable[PolicySource]) -> bool:
        """Note how files are; say whether all are steady."""
        now, steady = self._clock(), True
        for source in sources:
            found, known = seen(source), self._since.get(source.name)
            if known is None or known[0] != found:
                self._since[source.name] = known = found, now
            steady &= now - known[1] >= QUIET
        return steady


def seen(source: PolicySource) -> Seen:
    """Return what changes whenever a file is written or another is put in its place."""
    try:
        found = os.stat(source.name)
    except OSError:
        return source.data, 0, 0, 0, 0, 0
    return source.data, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
