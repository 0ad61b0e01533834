"""A simulated file system: nothing on the real disk is looked at."""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Mapping

from msgspec import Struct, field

from policyd.actions import guard
from policyd.model import Workspace
from policyd.paths import PathPattern, ref
from policyd.storage import places

MOST_LINKS = 40


class Tree(Struct, frozen=True):
    """Files, links and the directories above them; `model.Filesystem` over two tables of absolute paths."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Path -> content."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Path -> target."""
    home: str = "/"

    def resolve(self, path: str) -> str:
        """Return `path` as a kernel would walk it; OSError for a loop."""
        done, hops = "/", 0
        todo = parts(path)
        while todo:
            name = todo.pop(0)
            here = posixpath.dirname(done) if name == ".." else posixpath.join(done, name)
            target = self.links.get(here) if name != ".." else None
            if target is None:
                done = here
                continue
            hops += 1
            if hops > MOST_LINKS:
                raise OSError(errno.ELOOP, "too many links", path)
            todo = parts(target) + todo
            done = "/" if target.startswith("/") else done
        return done

    def contains(self, directory: str, names: tuple[str, ...]) -> bool | None:
        """Say whether a file below `directory` matches one of `names`."""
        nowhere = Workspace(None, (), (), self.home)
        found = [ref(path, base=(), workspace=nowhere, fs=None) for path in self.below(directory)]
        wanted = [PathPattern.compile(name, home=self.home, tmpdir="/tmp") for name in (names if found else ())]
        return any(pattern.maybe(path, nowhere, None, widen=True) for path in found for pattern in wanted)

    def is_dir(self, path: str) -> bool | None:
        """Say whether there is something below `path`."""
        return bool(self.below(path))

    def identity(self, path: str) -> tuple[int, int] | None:
        """Return a number for each file."""
        real = self.resolve(path)
        return (0, sorted(self.files).index(real)) if real in self.files else None

    def listing(self, directory: str) -> tuple[str, ...] | None:
        """Return the names in `directory`."""
        start = len(self.resolve(directory).rstrip("/")) + 1
        return tuple(sorted({path[start:].split("/")[0] for path in self.below(directory)}))

    def below(self, directory: str) -> list[str]:
        """Return the files and links below `directory`."""
        if not self.files and not self.links:
            return []
        above = self.resolve(directory).rstrip("/") + "/"
        return [path for path in (*self.files, *self.links) if path.startswith(above)]

    def identities(self, places: tuple[str, ...], most: int) -> frozenset[tuple[int, int]] | None:
        """Return the numbers of all files among and below `places`."""
        return guard.identities(places, most, self)


def reserved(home: str) -> tuple[str, ...]:
    """Return the paths of policyd's own files, as on a real disk."""
    return places.find(home=home, environ={}, platform="linux").reserved


def parts(path: str) -> list[str]:
    """Return the components of a path, empty ones and `.` left out."""
    return [part for part in path.split("/") if part not in {"", "."}]
