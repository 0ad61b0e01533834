"""The identities of policyd's own files, which a hard link to one of them shares.

Rules of this module:

1. At every look each directory is asked for its device, inode and both times, and its names are read again unless all
   of them are as they were: whatever adds, removes or replaces a name changes `ctime`, which no program can set.
2. Names of a directory that changed less than `SETTLED` ago are not kept: a file system counts time in steps, and a
   second change may come within one. A time that is not over yet counts as such.
3. Links and directories in it are asked anew at every look: where they lead changes without it.
4. What root mounts over a single file of policyd is not seen before its directory changes.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

from msgspec import Struct, field

SETTLED = 4_000_000_000
"""Nanoseconds; the coarsest file systems count time in steps of two seconds."""
KEPT = 512
"""Directories of which the names are kept, and answers."""

_Files = frozenset[tuple[int, int]]
_Parts = list[_Files]


class _Listed(Struct, frozen=True):
    """What was found in a directory."""

    stamp: tuple[int, int, int, int]
    files: _Files
    apart: tuple[str, ...]
    """Its directories and links."""


class OwnFiles(Struct):
    """What was found in directories, as long as they are the same."""

    _known: dict[str, _Listed] = field(default_factory=dict)
    _joined: dict[tuple[str, ...], tuple[_Parts, _Files]] = field(default_factory=dict)
    """The last answer for these places and what it was put together from: the same answer is the same object."""

    def identities(self, places: tuple[str, ...], most: int) -> _Files | None:
        """Return device and inode of every file among and below `places`; see `model.Filesystem`."""
        parts: _Parts = []
        todo, looked = list(places), 0
        while todo:
            place, looked = todo.pop(), looked + 1
            try:
                told = os.stat(place)
                if not stat.S_ISDIR(told.st_mode):
                    parts.append(frozenset({(told.st_dev, told.st_ino)}))
                    continue
            except (OSError, ValueError):  # nothing is there, or nothing that a path of this user leads to
                continue
            listed = self._listed(place, told, most)
            if listed is None:
                return None
            looked += len(listed.files)
            if looked + len(listed.apart) + len(todo) > most:
                return None
            parts.append(listed.files)
            todo += listed.apart
        return self._join(places, parts)

    def _join(self, places: tuple[str, ...], parts: _Parts) -> _Files:
        known = self._joined.get(places)
        if known is not None and known[0] == parts:
            return known[1]
        if len(self._joined) >= KEPT:
            self._joined.clear()
        found: _Files = frozenset().union(*parts)
        self._joined[places] = parts, found
        return found

    def _listed(self, directory: str, told: os.stat_result, most: int) -> _Listed | None:
        stamp = (told.st_dev, told.st_ino, told.st_mtime_ns, told.st_ctime_ns)
        known = self._known.get(directory)
        if known is not None and known.stamp == stamp:
            return known
        self._known.pop(directory, None)
        settled = time.time_ns() - max(stamp[2:]) > SETTLED
        found = _read(directory, stamp, most)
        if found is not None and settled:
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[directory] = found
        return found


def _read(directory: str, stamp: tuple[int, int, int, int], most: int) -> _Listed | None:
    files: set[tuple[int, int]] = set()
    apart: list[str] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_symlink() or entry.is_dir(follow_symlinks=False):
                    apart.append(f"{directory.rstrip('/')}/{entry.name}")
                else:
                    with suppress(FileNotFoundError):  # it went while the names were read
                        told = entry.stat(follow_symlinks=False)
                        files.add((told.st_dev, told.st_ino))
                if len(files) + len(apart) > most:
                    return None
    except OSError:
        return None
    return _Listed(stamp, frozenset(files), tuple(apart))
