"""A bounded look at everything below a directory.

Links that lead out of the directory are followed once: a recursive reader may follow them too. Links within it are
not, their targets are seen where they lie.
"""

from __future__ import annotations

import errno
import os
import time
import unicodedata
from collections.abc import Callable, Iterator

from policyd.paths import LookedFor, inside

ENTRIES = 20_000
"""Entries a look may pass."""
SECONDS = 0.04
"""Time a look, and each search in it, may take."""
STRIDE = 64
"""Entries between two glances at the clock."""


class Look:
    """The names below a directory, as far as entries and time allow."""

    def __init__(
        self, directory: str, resolve: Callable[[str], str], *, fold_case: bool = False, seconds: float = SECONDS
    ) -> None:
        """Look below the resolved `directory`; `seconds` bound it and each search in it."""
        self.directory = directory
        self.complete = True
        self.leaves = False
        """Whether a directory outside was followed: where it lies may match what its name here does not."""
        self._fold = fold_case
        self._resolve = resolve
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._count = 0
        self._stopped = False
        self._seen = {directory}
        self._paths: dict[str, list[str]] = {}
        self._walk()
        self.ended = time.monotonic()

    def finds(self, names: tuple[LookedFor, ...]) -> bool | None:
        """Say whether something below matches; None: nothing seen does, but not everything was seen."""
        deadline = time.monotonic() + self._seconds
        for number, path in enumerate(self._candidates(names)):
            if path:
                return True
            if number % STRIDE == 0 and time.monotonic() > deadline:
                return None
        floats = any(each.floats and len(each.tail.segments) > 2 for each in names)
        return False if self.complete and not (self.leaves and floats) else None

    def _candidates(self, names: tuple[LookedFor, ...]) -> Iterator[bool]:
        """For every path whose last name fits a pattern: whether the path does."""
        for each in names:
            for name, paths in self._paths.items():
                if each.last.matches(name):
                    yield from map(each.tail.matches, paths)

    def _walk(self) -> None:
        todo = [(self.directory, "")]
        while todo and not self._stopped:
            directory, start = todo.pop()
            try:
                with os.scandir(directory) as entries:
                    for entry in entries:
                        todo += self._take(entry, start)
                        if self._stopped:
                            break
            except OSError:
                self.complete = False

    def _take(self, entry: os.DirEntry[str], start: str) -> list[tuple[str, str]]:
        """Note an entry; return the directory to look into."""
        self._count += 1
        if self._count > ENTRIES or (self._count % STRIDE == 0 and time.monotonic() > self._deadline):
            self._stopped, self.complete = True, False
            return []
        path = start + entry.name
        self._note(path)
        if entry.is_symlink():
            return self._follow(entry, path)
        return [(entry.path, path + "/")] if entry.is_dir(follow_symlinks=False) else []

    def _follow(self, entry: os.DirEntry[str], path: str) -> list[tuple[str, str]]:
        try:
            target = self._resolve(entry.path)
        except OSError as error:
            self.complete = self.complete and error.errno == errno.ELOOP
            return []
        if inside(target, (self.directory,)) or target in self._seen:
            return []
        self._seen.add(target)
        self._note(target[1:])
        if not entry.is_dir():
            return []
        self.leaves = True
        return [(target, path + "/")]

    def _note(self, path: str) -> None:
        path = path if path.isascii() else unicodedata.normalize("NFC", path)
        path = path.casefold() if self._fold else path
        self._paths.setdefault(path.rpartition("/")[2], []).append(path)
