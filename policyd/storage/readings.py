"""What was read of policies and grants, kept in the user's cache directory so that it need not be read again.

Rules of this module:

1. Directory and file belong to the user and to nobody else (0700, 0600), checked on the open descriptors, links not
   followed. Anything else counts as nothing kept: files are then read as if there were no cache.
2. A file is named after the content it was made from, this policyd's own code, and nothing the content says.
3. Written beside and renamed; nothing here ever fails a start. At most `KEPT` files stay, the newest.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

import policyd
from policyd.digest import sha256
from policyd.storage.private import make_directory

KEPT = 64
LARGEST = 16 * 1024 * 1024
CLOSED = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Readings:
    """A `policyd.policy.Shelf` in a directory of the user's."""

    def __init__(self, directory: str, rooms: tuple[str, ...] = ("policy",)) -> None:
        """Use a directory, which is made when something is kept; `rooms` hold the code that reads."""
        self._directory = directory
        self._rooms = rooms

    def get(self, key: str) -> bytes | None:
        """Return what is kept under `key`, None where it is not there or not surely the user's own."""
        try:
            with self._open() as folder:
                return read_own(folder, name_of(key, self._rooms))
        except OSError:
            return None

    def put(self, key: str, data: bytes) -> None:
        """Keep `data` under `key`; what cannot be kept is not."""
        if len(data) > LARGEST:
            return
        with suppress(OSError):
            make_directory(self._directory)
            with self._open() as folder:
                write_own(folder, name_of(key, self._rooms), data)
                tidy(folder)

    @contextmanager
    def _open(self) -> Iterator[int]:
        """Yield the directory, open and surely the user's own."""
        folder = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | CLOSED)
        try:
            own(os.fstat(folder))
            yield folder
        finally:
            os.close(folder)


def own(status: os.stat_result) -> None:
    """Raise PermissionError for what is not the user's, or what others may write or read."""
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise PermissionError("not the user's own")


def read_own(folder: int, name: str) -> bytes:
    """Return a file of an open directory; OSError for one that is not a plain file of the user's own."""
    descriptor = os.open(name, os.O_RDONLY | CLOSED, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        own(status)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            raise PermissionError("no plain file")
        return file.read(LARGEST + 1)


def write_own(folder: int, name: str, data: bytes) -> None:
    """Write a file beside and rename it into place."""
    beside = f".{name}.{os.getpid()}"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | CLOSED, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(beside, dir_fd=folder)
        raise


def tidy(folder: int) -> None:
    """Remove the oldest beyond `KEPT`."""
    names = os.listdir(folder)
    if len(names) <= KEPT:
        return
    aged = sorted(names, key=lambda name: os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime_ns)
    for name in aged[:-KEPT]:
        os.unlink(name, dir_fd=folder)


def name_of(key: str, rooms: tuple[str, ...] = ("policy",)) -> str:
    """Return the name of the file for `key` under the code that runs now."""
    return f"{key[:40]}-{code(rooms)}"


@cache
def code(rooms: tuple[str, ...]) -> str:
    """Return a name for the code that reads: an edited one reads anew, whatever its version."""
    found = [policyd.__version__]
    for room in rooms:
        for entry in sorted(os.scandir(os.path.join(policyd.__path__[0], room)), key=lambda each: each.name):
            if entry.name.endswith(".py"):
                status = entry.stat()
                found.append(f"{entry.name} {status.st_size} {status.st_mtime_ns}")
    return sha256("\0".join(found).encode()).hexdigest()[:16]
