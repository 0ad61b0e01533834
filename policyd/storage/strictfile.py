"""Reading a file that nobody but its owner could have written: checked on the open descriptor, then read from it.

Rules of this module:

1. A path is walked directory by directory on descriptors, never by name twice: what was checked is what is read, and
   swapping a file, directory or link between check and use has no effect.
2. Every directory on the way, and the file, belong to a trusted owner and are writable by nobody else. The sticky bit
   excuses nothing. (A POSIX access list that lets others write shows as the group's write bit.)
3. A link is followed only if the link and the folder it lies in pass the same test; its target is walked the same way.
4. Only a regular file is read; nothing on the way can block the reader (FIFOs, devices).
5. A missing file is no error only if nothing was meant to be there: a dangling link is a fault.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct, field

LARGEST = 16 * 1024 * 1024
SMALLER = "write less, or several files"
LINKS = 40
CLOSED = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class InsecureFileError(OSError):
    """A file or directory that somebody else could have written, or that is no plain file; says which and why."""

    def __init__(self, path: str, why: str, fix: str = "") -> None:
        """Name the path at fault, and what to do about it where that is not to whom it belongs."""
        super().__init__(f"{path}: {why}")
        self.path, self.why, self.fix = path, why, fix


class Owners(Struct, frozen=True):
    """Who may own and write what is trusted."""

    users: frozenset[int]
    """Owners that are trusted; managed files: root alone."""
    groups: frozenset[int] = field(default_factory=frozenset)
    """Groups whose write bit is no fault: a user's private group."""

    def fault(self, status: os.stat_result) -> str:
        """Return why an entry is not to be trusted, empty where it is."""
        if status.st_uid not in self.users:
            return f"it belongs to user {status.st_uid}, not to {' or '.join(map(name_of, sorted(self.users)))}"
        if stat.S_ISLNK(status.st_mode):
            return ""
        if status.st_mode & stat.S_IWOTH:
            return "everybody may write it"
        if status.st_mode & stat.S_IWGRP and status.st_gid not in self.groups:
            return f"group {status.st_gid} may write it"
        return ""


ROOT = Owners(frozenset({0}))


def name_of(uid: int) -> str:
    """Name a user in a message."""
    return "root" if uid == 0 else f"user {uid}"


def own_owners() -> Owners:
    """Return whom a user's own files may belong to: the user and root."""
    return Owners(frozenset({0, os.getuid()}), frozenset({os.getgid()}))


def read_strictly(path: str, owners: Owners = ROOT, *, start: str = "/") -> bytes:
    """Return the content of the file at the absolute `path`.

    Args:
        path: absolute, below `start`.
        owners: who may own and write what is on the way.
        start: the directory the walk begins at, itself checked; what lies above it is taken as it is.

    Raises:
        InsecureFileError: the file, a directory or a link on the way is not to be trusted, or is no plain file.
        OSError: it cannot be read.
    """
    with opened(path, owners, start, directory=False) as descriptor:
        return read_all(descriptor, path)


def names_in(path: str, owners: Owners = ROOT, *, start: str = "/") -> list[str]:
    """Return the sorted names in the directory at the absolute `path`, checked as a file is.

    Raises:
        FileNotFoundError: there is no such directory.
        InsecureFileError, OSError: as for `read_strictly`.
    """
    with opened(path, owners, start, directory=True) as descriptor:
        return sorted(os.listdir(descriptor))


def read_own(path: str, owners: Owners) -> bytes:
    """Return the content of a user's own file, through links: the file itself is checked, on its descriptor.

    Raises:
        InsecureFileError: somebody else may write it, or it is no plain file.
        OSError: it cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        why = owners.fault(os.fstat(descriptor))
        if why:
            raise InsecureFileError(path, why)
        return read_all(descriptor, path)
    finally:
        os.close(descriptor)


def read_all(descriptor: int, path: str) -> bytes:
    """Read a regular file from its descriptor, up to `LARGEST` bytes."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        why = f"it is {kind_of(status.st_mode)}, not a plain file"
        raise InsecureFileError(path, why, "put a plain file in its place, or take it away")
    if status.st_size > LARGEST:
        raise InsecureFileError(path, f"it is larger than {LARGEST} bytes", SMALLER)
    data = read_some(descriptor, LARGEST + 1)
    if len(data) > LARGEST:
        raise InsecureFileError(path, f"it is larger than {LARGEST} bytes", SMALLER)
    return data


def read_some(descriptor: int, most: int) -> bytes:
    """Return what a descriptor holds, at most `most` bytes of it."""
    blocks, left = [], most
    while left > 0 and (block := os.read(descriptor, min(left, 1 << 20))):
        blocks.append(block)
        left -= len(block)
    return b"".join(blocks)


def never_was(path: str) -> bool:
    """Say of a missing `path` whether nothing was meant to be there: no file and no link to nowhere is on the way."""
    above = os.path.abspath(path)
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    return above != os.path.abspath(path) and os.path.isdir(above)


def check_name(path: str) -> None:
    """Raise OSError for a file whose own name is no UTF-8: no answer and no record could name it."""
    try:
        os.path.basename(path).encode()
    except UnicodeEncodeError:
        raise OSError(errno.EILSEQ, "its name is no UTF-8", path) from None


def kind_of(mode: int) -> str:
    """Name what kind of entry a mode stands for."""
    for test, name in (
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISLNK, "a link"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISCHR, "a device"),
    ):
        if test(mode):
            return name
    return "no plain file"


@contextmanager
def opened(path: str, owners: Owners, start: str, *, directory: bool) -> Iterator[int]:
    """Open `path` by walking it from `start`; every step is checked on the descriptor it leads to."""
    walk = Walk(owners, start)
    try:
        yield walk.to(path, directory=directory)
    finally:
        walk.close()


class Walk:
    """One walk down from a directory: the descriptor of the place reached, and the way back."""

    def __init__(self, owners: Owners, start: str = "/") -> None:
        """Begin at `start`, which is checked too."""
        self.owners = owners
        self.links = 0
        self.start = self.name = start
        self.here = os.open(start, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.stack: list[int] = []

    def close(self) -> None:
        """Close every descriptor."""
        for descriptor in (self.here, *self.stack):
            os.close(descriptor)

    def to(self, path: str, *, directory: bool) -> int:
        """Walk to the absolute `path` and return its descriptor, which stays open until `close`."""
        below = self.start.rstrip("/") + "/"
        if not f"{path}/".startswith(below):
            raise InsecureFileError(path, f"it does not lie below {self.start}")
        self.check(os.fstat(self.here), self.start)
        todo = parts(path[len(below) :])
        while todo:
            part = todo.pop(0)
            if part == "..":
                self.up()
                continue
            status = os.stat(part, dir_fd=self.here, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                todo = self.follow(part, status) + todo
            else:
                self.enter(part, directory=bool(todo) or directory)
        if directory and not stat.S_ISDIR(os.fstat(self.here).st_mode):
            raise NotADirectoryError(20, "not a directory", path)
        return self.here

    def follow(self, part: str, status: os.stat_result) -> list[str]:
        """Check a link and return the parts of its target."""
        self.links += 1
        name = self.below(part)
        if self.links > LINKS:
            raise InsecureFileError(name, "too many links")
        self.check(status, name)
        target = os.readlink(part, dir_fd=self.here)
        if target.startswith("/"):
            self.restart(name)
        return parts(target)

    def restart(self, name: str) -> None:
        """Go back to `/` for an absolute link; a walk that began lower does not leave its directory."""
        if self.start != "/":
            raise InsecureFileError(name, f"it is a link out of {self.start}")
        while self.stack:
            self.up()

    def enter(self, part: str, *, directory: bool) -> None:
        """Open the entry `part` and check it on its descriptor."""
        flags = os.O_RDONLY | CLOSED | (os.O_DIRECTORY if directory else 0)
        name = self.below(part)
        descriptor = os.open(part, flags, dir_fd=self.here)
        self.stack.append(self.here)
        self.here, self.name = descriptor, name
        self.check(os.fstat(descriptor), name)

    def up(self) -> None:
        """Go back to the directory this one was entered from; `/` is its own parent."""
        if not self.stack and self.start != "/":
            raise InsecureFileError(self.name, f"it leads out of {self.start}")
        if self.stack:
            os.close(self.here)
            self.here = self.stack.pop()
            self.name = os.path.dirname(self.name)

    def below(self, part: str) -> str:
        """Return the path of an entry here, for messages."""
        return os.path.join(self.name, part)

    def check(self, status: os.stat_result, name: str) -> None:
        """Raise InsecureFileError for an entry that is not to be trusted."""
        why = self.owners.fault(status)
        if why:
            raise InsecureFileError(name, why)


def parts(path: str) -> list[str]:
    """Return the parts of a path, `..` kept."""
    return [part for part in path.split("/") if part not in {"", "."}]
