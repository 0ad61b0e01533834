"""The cache of parsed policies and grants, in the user's cache directory.

Rules of this module:

1. Directory and files belong to the user alone (0700, 0600), checked on the open descriptors, links not followed.
   Anything else counts as an empty cache.
2. A file is named after the content it was made from and this policyd's own code, never after what the content says.
3. Files are written under another name and renamed; no error here ever fails a start. The newest `KEPT` files stay.
"""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import policyd
from policyd.digest import sha256
from policyd.storage.private import make_directory

KEPT = 64
LARGEST = 16 * 1024 * 1024
CLOSED = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class FileCache:
    """A `policyd.policy.Cache` in a directory of the user's."""

    def __init__(self, directory: str, packages: tuple[str, ...] = ("policy",)) -> None:
        """Use a directory, created on first use; a change to the code of `packages` invalidates the cache."""
        self._directory = directory
        self._rooms = packages

    def get(self, key: str) -> bytes | None:
        """Return the data under `key`, None if it is missing or not surely the user's own."""
        try:
            with self._open() as folder:
                return read_own(folder, name_of(key, self._rooms))
        except OSError:
            return None

    def put(self, key: str, data: bytes) -> None:
        """Store `data` under `key`; errors are ignored."""
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


def name_of(key: str, packages: tuple[str, ...] = ("policy",)) -> str:
    """Return the name of the file for `key` under the code that runs now."""
    return f"{key[:40]}-{code(packages)}"


@functools.cache
def code(packages: tuple[str, ...]) -> str:
    """Return a name for the code that parses, which changes when it is edited, whatever its version."""
    found = [policyd.__version__]
    for package in packages:
        for entry in sorted(os.scandir(os.path.join(policyd.__path__[0], package)), key=lambda each: each.name):
            if entry.name.endswith(".py"):
                status = entry.stat()
                found.append(f"{entry.name} {status.st_size} {status.st_mtime_ns}")
    return sha256("\0".join(found).encode()).hexdigest()[:16]
