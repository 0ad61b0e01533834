"""Since when files are as they are: one that is being written holds a part of what it is going to hold.

A prefix of a policy is often a policy, with the allows that came first and without the denies behind them. A file that
changed is therefore believed for what it loosens once it has been the same for `QUIET` seconds, seen at two looks.
Who writes slower than that, and not beside and renamed, is not noticed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from math import inf
from time import monotonic

QUIET = 1.0
"""Seconds."""
KEPT = 10_000
"""Files: sessions in new projects come and go."""
Stamp = tuple[int, ...]


class Steady:
    """When each file was first seen as it is."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """Nothing was seen."""
        self._clock = clock
        self._since: dict[str, tuple[Stamp, float]] = {}

    def begin(self, paths: Iterable[str]) -> None:
        """Take files that are read for the first time for steady: there is nothing else to go by."""
        if len(self._since) > KEPT:  # all are restless for a while
            self._since.clear()
        for path in paths:
            self._since.setdefault(path, (stamp(path), -inf))

    def look(self, paths: Iterable[str]) -> frozenset[str]:
        """Note how files are; return those that are not steady."""
        now, restless = self._clock(), []
        for path in paths:
            seen, since = stamp(path), self._since.get(path)
            if since is None or since[0] != seen:
                self._since[path] = since = seen, now
            if now - since[1] < QUIET:
                restless.append(path)
        return frozenset(restless)


def stamp(path: str) -> Stamp:
    """Return what changes whenever a file is written or another is put in its place, empty where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
