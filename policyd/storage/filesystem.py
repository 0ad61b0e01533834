"""The real file system, behind the interface of the core.

Rules of this module:

1. `resolve` walks like the kernel: component by component, `..` after each link, at most 40 links. Missing components
   are kept below the nearest existing ancestor; every other failure is an `OSError`, and the path opaque.
2. A link of a process (`/proc/self/cwd`, `/dev/fd/3`) has another target for the agent than for policyd: an `OSError`
   too, unless it leads to `/`.
3. Every search is bounded by entries and by time, about 150 ms, and all searches within a second to a quarter of it; an
   incomplete search returns None, not "nothing". Offline commands bound searches by entries alone (`steady`).
4. A search is cached for a third of a second: one decision asks for many patterns below the same directory.
5. Nothing is opened but directories, and no file is ever read.
"""

from __future__ import annotations

import errno
import math
import os
import re
import stat
import sys
import time
from contextlib import suppress

from policyd.paths import looked_for
from policyd.storage.looks import SECONDS, STRIDE, Look
from policyd.storage.ownfiles import OwnFiles

FORMAT, LINK = 0o170000, stat.S_IFLNK
HANDLE = os.O_PATH | os.O_CLOEXEC if sys.platform == "linux" else 0
"""Opens a name without what it names."""
DELETED = " (deleted)"
SHORT = 250
"""Characters that any path and any name in it may have."""
LINKS = 40
"""Links one path may lead through, as in the Linux kernel."""
NAMES = 10_000
"""Names of one directory that are listed."""
REMEMBERED = 0.3
"""Seconds a look below a directory is remembered."""
KEPT = 4
"""Looks that are remembered."""
WINDOW, BUDGET = 1.0, 0.25
"""Seconds of looking that any second allows: a command may name thousands of directories.

Walks count too, but are never refused.
"""

_FOREIGN = re.compile(r"/(proc/(\d+|self|thread-self)/(.*/)?(cwd|exe|root|fd/[^/]+|ns/[^/]+|map_files/[^/]+))\Z")


class RealFilesystem:
    """The file system of this machine.

    `fold_case`: names compare without regard to case (default: on macOS). `steady`: looks are bounded by entries only,
    so that the same question has the same answer on a slow machine and behind others.
    """

    def __init__(self, *, fold_case: bool = sys.platform == "darwin", steady: bool = False) -> None:
        self.fold_case = fold_case
        self._seconds = math.inf if steady else SECONDS
        self._looks: dict[str, Look] = {}
        self._own = OwnFiles()
        self._window = self._spent = 0.0

    def resolve(self, path: str) -> str:
        """Return the absolute `path` as the kernel walks it.

        Raises:
            OSError: a loop, a denied directory, a name too long, or a link of another process.
        """
        start = time.monotonic()
        try:
            return _walk(path)
        finally:
            self._spent += time.monotonic() - start

    def contains(self, directory: str, names: tuple[str, ...]) -> bool | None:
        """Say whether something below `directory` matches one of `names`; None: not looked at to the end."""
        if self._exhausted():
            return None
        start = time.monotonic()
        try:
            return self._look(_walk(directory)).finds(looked_for(names, fold_case=self.fold_case))
        except (OSError, ValueError):
            return None
        finally:
            self._spent += time.monotonic() - start

    def _exhausted(self) -> bool:
        """Whether this second's looking is used up."""
        if self._seconds == math.inf:
            return False
        now = time.monotonic()
        if now - self._window > WINDOW:
            self._window, self._spent = now, 0.0
        return self._spent > BUDGET

    def _look(self, directory: str) -> Look:
        last = self._looks.get(directory)
        if last is None or time.monotonic() - last.ended > REMEMBERED:
            if len(self._looks) >= KEPT:
                self._looks.clear()
            last = self._looks[directory] = Look(directory, _walk, fold_case=self.fold_case, seconds=self._seconds)
        return last

    def is_dir(self, path: str) -> bool | None:
        """Say whether `path` is an existing directory; None where that cannot be told."""
        try:
            return stat.S_ISDIR(os.stat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError):
            return None

    def identity(self, path: str) -> tuple[int, int] | None:
        """Return device and inode of an existing file, None where there is none."""
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            return None
        return found.st_dev, found.st_ino

    def listing(self, directory: str) -> tuple[str, ...] | None:
        """Return the names in `directory`, None where they cannot be listed or are too many."""
        if self._exhausted():
            return None
        start = time.monotonic()
        try:
            return _names(directory, start + self._seconds)
        except (OSError, ValueError):
            return None
        finally:
            self._spent += time.monotonic() - start

    def identities(self, places: tuple[str, ...], most: int) -> frozenset[tuple[int, int]] | None:
        """Return device and inode of every file among and below `places`; see `ownfiles`."""
        if self._exhausted():
            return None
        start = time.monotonic()
        try:
            return self._own.identities(places, most)
        finally:
            self._spent += time.monotonic() - start


# ---- walking ---------------------------------------------------------------------------------------


def real_path(path: str) -> str:
    """Return what `os.path.realpath` does, by one walk of the kernel where it says what it found."""
    try:
        if not HANDLE:  # elsewhere opening is more than naming
            return os.path.realpath(path)
        handle = os.open(path, HANDLE)
        try:
            found = os.readlink(f"/proc/self/fd/{handle}")
        finally:
            os.close(handle)
    except OSError:
        return os.path.realpath(path)
    return found if found.startswith("/") and not found.endswith(DELETED) else os.path.realpath(path)


def _walk(path: str) -> str:
    try:
        return _walked(path)
    except ValueError as error:  # a NUL, or a character that no name has
        raise OSError(errno.EINVAL, str(error), path) from error


def _walked(path: str) -> str:
    done, todo, links = "", _parts(path), 0
    while todo:
        part = todo.pop()
        if part == "..":
            done = done.rpartition("/")[0]
            continue
        here = f"{done}/{part}"
        try:
            if os.lstat(here).st_mode & FORMAT != LINK:
                done = here
                continue
            target = os.readlink(here)
        except (FileNotFoundError, NotADirectoryError):
            done = _missing(here, todo)
            continue
        links += 1
        if links > LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        if target != "/" and _FOREIGN.match(here):
            raise OSError(errno.EXDEV, "a link of another process", here)
        todo += _parts(target)
        done = "" if target.startswith("/") else done
    return done or "/"


def _missing(path: str, todo: list[str]) -> str:
    """Return what does not exist with the names below it, taken from `todo`: nothing can be there."""
    names = [path]
    while todo and todo[-1] != "..":
        names.append(todo.pop())
    path = "/".join(names)
    if len(path) > SHORT or not path.isprintable():
        with suppress(FileNotFoundError, NotADirectoryError):
            os.lstat(path)  # the kernel refuses what can be no path at all
    return path


def _names(directory: str, deadline: float) -> tuple[str, ...] | None:
    names: list[str] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            names.append(entry.name)
            if len(names) > NAMES or (len(names) % STRIDE == 0 and time.monotonic() > deadline):
                return None
    return tuple(names)


def _parts(path: str) -> list[str]:
    """The components of a path, the first one last."""
    parts = path.split("/")[::-1]
    if parts[-1] == "":
        parts.pop()
    return [part for part in parts if part not in {"", "."}] if "" in parts or "." in parts else parts
