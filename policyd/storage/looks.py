"""A bounded search of everything below a directory.

Links that lead out of the directory are followed once, as a recursive reader may follow them too. Links within it are
not, as their targets are searched anyway. A policy asks for a hundred patterns, so names are looked up by prefix and
suffix, and hardly any is compared with a pattern.
"""

from __future__ import annotations

import errno
import os
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator

from policyd.paths import LookedFor, inside
from policyd.paths.segments import DEEP, Segment, Token

ENTRIES = 100_000
"""Entries a look may pass."""
SECONDS = 0.15
"""Time a look, and each search in it, may take."""
STRIDE = 64
"""Entries between two glances at the clock."""
AFFIX = 2
"""Characters at the beginning and the end of a name by which it is found."""


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
        self._aliased = False
        """Whether a path was noted that leads through directories which were not."""
        self._seen = {directory}
        self._paths: dict[str, list[str]] = {}
        self._starts: dict[str, list[str]] = {}
        self._ends: dict[str, list[str]] = {}
        self._walk()
        for name in self._paths:
            self._starts.setdefault(name[:AFFIX], []).append(name)
            self._ends.setdefault(name[-AFFIX:], []).append(name)
        self.ended = time.monotonic()

    def finds(self, names: tuple[LookedFor, ...]) -> bool | None:
        """Say whether something below matches; None: nothing seen does, but not everything was seen."""
        self._deadline = time.monotonic() + self._seconds
        try:
            if any(map(self._below, names)):
                return True
        except TimeoutError:
            return None
        floats = any(each.floats and len(each.tail.segments) > 2 for each in names)
        return False if self.complete and not (self.leaves and floats) else None

    def _below(self, each: LookedFor) -> bool:
        """Say whether a path matches."""
        if not (self._aliased or self._holds(each)):
            return False
        paths = (path for name in self._matching(each.last) for path in self._paths[name])
        return any(map(each.tail.matches, self._timed(paths)))

    def _holds(self, each: LookedFor) -> bool:
        """Say whether every name of a pattern is there: all on the way to what lies below were noted."""
        segments = [segment for segment in each.tail.segments if segment is not DEEP]
        return all(any(self._matching(segment)) for segment in segments)

    def _matching(self, segment: Segment) -> Iterator[str]:
        """Yield the names that a segment matches."""
        return filter(segment.matches, self._timed(self._fitting(segment)))

    def _timed(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield what is compared with a pattern; TimeoutError where the time of a search is over before the end."""
        for number, text in enumerate(texts):
            yield text
            if number % STRIDE == 0 and time.monotonic() > self._deadline:
                raise TimeoutError

    def _fitting(self, segment: Segment) -> Iterable[str]:
        """Return every name that a segment may match, and few others."""
        if segment.literal is not None:
            return (segment.literal,) if segment.literal in self._paths else ()
        start, end = _affix(segment.tokens[:AFFIX]), _affix(segment.tokens[-AFFIX:])
        found = [self._starts.get(start, ())] if start else []
        found += [self._ends.get(end, ())] if end else []
        return min(found, key=len, default=self._paths)

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
        self._aliased = True
        if not entry.is_dir():
            return []
        self.leaves = True
        return [(target, path + "/")]

    def _note(self, path: str) -> None:
        path = path if path.isascii() else unicodedata.normalize("NFC", path)
        path = path.casefold() if self._fold else path
        self._paths.setdefault(path.rpartition("/")[2], []).append(path)


def _affix(tokens: tuple[Token, ...]) -> str:
    """Return the characters that tokens at an end of a segment stand for; nothing if they are few, or may be others."""
    chars = [token for token in tokens if isinstance(token, str)]
    return "".join(chars) if len(chars) == AFFIX == len(tokens) else ""
