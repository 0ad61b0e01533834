"""Stand-ins for the rim: a file system that is a dictionary."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase


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
        """Look at base names only; enough for the patterns tests use."""
        bases = [posixpath.basename(name) for name in names]
        below = [path for path in self.files if path.startswith(directory.rstrip("/") + "/")]
        return any(fnmatchcase(posixpath.basename(path), base) for path in below for base in bases)

    def is_dir(self, path: str) -> bool | None:
        """A key with value None, or a prefix of another key, is a directory."""
        prefix = path.rstrip("/") + "/"
        return (path in self.files and self.files[path] is None) or any(key.startswith(prefix) for key in self.files)

    def identity(self, path: str) -> tuple[int, int] | None:
        """Device 1 and the position of the resolved path among the files."""
        real = self.resolve(path)
        return (1, sorted(self.files).index(real)) if real in self.files else None

    def listing(self, directory: str) -> tuple[str, ...] | None:
        """The first components below `directory`."""
        prefix = directory.rstrip("/") + "/"
        names = {key[len(prefix) :].split("/")[0] for key in [*self.files, *self.links] if key.startswith(prefix)}
        return tuple(sorted(names))
