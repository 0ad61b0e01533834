"""Making files and directories that are this user's alone, whatever the umask would give to others."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress


def make_directory(path: str) -> None:
    """Make a directory, and what is missing above it."""
    if path and not os.path.isdir(path):
        make_directory(os.path.dirname(path))
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)


def write_whole(
    path: str, data: bytes, dress: Callable[[int], None] = lambda descriptor: None, *, folder: int | None = None
) -> None:
    """Write a new file and flush it to the disk.

    Args:
        path: relative to `folder`, an open directory, where that is given.
        data: what it holds.
        dress: called with its descriptor, before it is flushed.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600, dir_fd=folder)
    with open(descriptor, "wb", buffering=0) as file:
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
        dress(descriptor)
        os.fsync(descriptor)


def put(path: str, data: bytes) -> None:
    """Put a file in the place of another, whole or not at all; one process at a time."""
    beside = f"{path}.new"
    with suppress(FileNotFoundError):
        os.unlink(beside)
    write_whole(beside, data)
    os.rename(beside, path)


def put_new(path: str, data: bytes) -> None:
    """Put a file where none is, whole or not at all; FileExistsError where one is."""
    beside = f"{path}.{os.urandom(8).hex()}"
    try:
        write_whole(beside, data)
        os.link(beside, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside)


def flush_directory(path: str) -> None:
    """Flush a directory's entries to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
