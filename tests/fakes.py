"""Stand-ins for the rim: a file system that is a dictionary."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from policyd.actions import guard


@dataclass
class FakeFilesystem:
    """A file system of absolute paths: files (content), directories (None) and links (target)."""

    files: Mapping[str, str | None] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    errors: frozenset[str] = frozenset()

    def resolve(self, path: str) -> str:
        """Walk `path` component by component as the kernel does; OSError after 40 links or at `errors`."""
        done, todo, hops = "/", [part for part in path.split("/") if part not in {"", "."}], 0
        while todo:
            part = todo.pop(0)
            if part == "..":
                done = posixpath.dirname(done)
                continue
            here = posixpath.join(done, part)
            if here in self.errors:
                raise OSError(13, "denied", here)
            if here not in self.links:
                done = here
                continue
            hops += 1
            if hops > 40:
                raise OSError(40, "too many links", path)
            target = self.links[here]
            todo = [p for p in target.split("/") if p not in {"", "."}] + todo
            done = "/" if target.startswith("/") else done
        return done

    def contains(self, directory: str, names: tuple[str, ...]) -> bool | None:
        """Look at the names of files and of the directories they lie in."""
        start = directory.rstrip("/") + "/"
        files = [path[len(start) :].split("/") for path in self.files if path.startswith(start)]
        below = [parts[:end] for parts in files for end in range(1, len(parts) + 1)]
        return any(_fits(parts, name.split("/")) for parts in below for name in names)

    def is_dir(self, path: str) -> bool | None:
        """A key with value None, or a prefix of another key, is a directory."""
        path = posixpath.normpath(path)
        prefix = path.rstrip("/") + "/"
        return (path in self.files and self.files[path] is None) or any(key.startswith(prefix) for key in self.files)

    def identity(self, path: str) -> tuple[int, int] | None:
        """Device 1 and the position of the resolved path among the files, None where it cannot be looked at."""
        try:
            real = self.resolve(path)
        except OSError:
            return None
        return (1, sorted(self.files).index(real)) if real in self.files else None

    def listing(self, directory: str) -> tuple[str, ...] | None:
        """The first components below `directory`."""
        prefix = directory.rstrip("/") + "/"
        names = {key[len(prefix) :].split("/")[0] for key in [*self.files, *self.links] if key.startswith(prefix)}
        return tuple(sorted(names))

    def identities(self, places: tuple[str, ...], most: int) -> frozenset[tuple[int, int]] | None:
        """Of all files among and below `places`."""
        return guard.identities(places, most, self)


def _fits(parts: list[str], pattern: list[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return _fits(parts, pattern[1:]) or (bool(parts) and _fits(parts[1:], pattern))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])
