"""What `cp`, `mv`, `ln` and `install` put where: the files they make inside a directory they are given.

A place is a directory where an option says so, where it is written as one or given more than one source, or where a
look finds one.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

from msgspec import Struct

from policyd.commands.argv.options import Parsed
from policyd.commands.argv.programs import Program
from policyd.model import Filesystem, FileUse, Reach, Role, Word, WordKind

LINKED = frozenset({"link", "copy"})
"""Operands that are read and, behind a hard link, written: of `ln` unless `-s`, of `cp` with `-l`."""
_TAKEN = {"move", "read", *LINKED}


class Targets(Struct, frozen=True):
    """What is put where."""

    sources: tuple[Word, ...]
    places: tuple[Word, ...]
    sure: bool
    """The place is a directory (`-t`)."""
    whole: bool = False
    """What is put there keeps its whole path (`cp --parents`)."""


def targets(program: Program, parsed: Parsed, paired: Iterable[tuple[str, Word]]) -> Targets:
    """Return what the operands, each with its role, put where."""
    operands = list(paired)
    given, whole = parsed.values(*program.target), parsed.has("--parents")
    sources = tuple(word for role, word in operands if role in _TAKEN)
    places = given or tuple(word for role, word in operands[-1:] if role == "edit")
    return Targets(sources, places, bool(given) or whole, whole)


def made(found: Targets, cwds: tuple[str, ...], fs: Filesystem | None, *, carried: bool) -> Iterator[FileUse]:
    """Yield the files that are made inside directories."""
    for place in found.places:
        if place.kind is WordKind.CONST and (found.sure or _directory(found, place, cwds, fs)):
            for source in found.sources:
                path = source.text.strip("/") if found.whole else posixpath.basename(source.text.rstrip("/"))
                if source.kind is WordKind.CONST and path:
                    yield FileUse("edit", Word(posixpath.join(place.text, path)), Role.OPERAND, 0, carried=carried)


def _directory(found: Targets, place: Word, cwds: tuple[str, ...], fs: Filesystem | None) -> bool:
    if len(found.sources) > 1 or place.text.endswith("/") or posixpath.basename(place.text) in {".", ".."}:
        return True
    return fs is not None and any(fs.is_dir(posixpath.join(cwd, place.text)) for cwd in cwds)


def fillers(found: Targets | None, use: FileUse) -> tuple[str, ...]:
    """Return what fills a directory that is written."""
    if found is None or use.reach is not Reach.CONTENT or use.kind != "edit" or use.word not in found.places:
        return ()
    known = all(source.kind is WordKind.CONST for source in found.sources)
    return tuple(source.text for source in found.sources) if known else ()
