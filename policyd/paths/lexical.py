"""Lexical operations on paths: normalising, composing, containment."""

from __future__ import annotations

import posixpath
import unicodedata
from contextlib import suppress

from policyd.model import Filesystem

_IGNORED = dict.fromkeys((*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF, 0xAD))
"""Characters in names that file systems which fold case also leave out."""


def fold(path: str) -> str:
    """Fold `.`, `..` and doubled slashes of an absolute path, as written."""
    if "//" not in path and "/." not in path and not path.endswith("/"):
        return path or "/"
    folded = posixpath.normpath(path)
    return folded[1:] if folded.startswith("//") else folded


def compose(path: str) -> str:
    """Return the NFC spelling."""
    return path if path.isascii() else unicodedata.normalize("NFC", path)


def caseless(path: str) -> str:
    """Return the spelling by which a file system that folds case compares."""
    return path.casefold() if path.isascii() else path.translate(_IGNORED).casefold()


def below(directory: str, path: str) -> str | None:
    """Return `path` relative to `directory` ("" for itself), None if it does not lie there."""
    if path == directory:
        return ""
    start = directory if directory == "/" else directory + "/"
    return path[len(start) :] if path.startswith(start) else None


def inside(path: str, directories: tuple[str, ...]) -> bool:
    """Say whether `path` is one of `directories` or lies below one."""
    for directory in directories:
        if path == directory:
            return True
        if path.startswith(directory if directory == "/" else directory + "/"):
            return True
    return False


def resolved(path: str, fs: Filesystem | None) -> tuple[str, ...]:
    """Return `path` as written and, where it can be told, as the kernel walks it; both composed."""
    spellings = [path]
    if fs is not None:
        with suppress(OSError):
            spellings.append(fold(fs.resolve(path)))
    return tuple(dict.fromkeys(map(compose, spellings)))
