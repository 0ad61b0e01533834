"""What `cp`, `mv`, `ln` and `install` put where: the files they make inside a directory, under another name, as links.

Rules of this module:

1. A place is a directory where an option says so, where it is written as one or given more than one source, or where a
   look finds one.
2. The text of a symbolic link begins where the link lies, not where the command runs; of a place that may be a
   directory or be the link, either. One that was there is copied as it is, or moved.
3. What is overwritten stays under another name where an ending for that is given.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from policyd.commands.argv.options import Parsed
from policyd.commands.argv.programs import Program
from policyd.model import Filesystem, FileUse, Reach, Role, Word, WordKind

LINKED = frozenset({"link", "copy"})
"""Operands that are read and, behind a hard link, written: of `ln` unless `-s`, of `cp` with `-l`."""
_TAKEN = {"move", "read", *LINKED}
HERE = Word(".")


class Targets(Struct, frozen=True):
    """What is put where."""

    sources: tuple[Word, ...]
    places: tuple[Word, ...]
    sure: bool
    """The place is a directory (`-t`)."""
    whole: bool = False
    """What is put there keeps its whole path (`cp --parents`)."""
    soft: bool = False
    """What is put there are symbolic links."""
    spelled: bool = False
    """They say what the sources are called, as written (`ln -s`)."""
    suffix: Word | None = None
    """What is behind the name under which an overwritten file stays."""


def targets(program: Program, parsed: Parsed, paired: Iterable[tuple[str, Word]]) -> Targets:
    """Return what the operands, each with its role, put where."""
    operands = list(paired)
    given, whole = parsed.values(*program.target), parsed.has("--parents")
    sources = tuple(word for role, word in operands if role in _TAKEN)
    places = given or tuple(word for role, word in operands[-1:] if role == "edit") or (HERE,)
    links = program.operands[:1] == ("link*",)
    soft = parsed.has("-s") and not LINKED.isdisjoint(role for role, _ in operands)
    return Targets(
        sources,
        places,
        bool(given) or whole,
        whole,
        soft,
        soft and links and not parsed.has("-r"),
        next(reversed(parsed.values("-S")), None),
    )


def put(
    found: Targets, files: Sequence[FileUse], cwds: tuple[str, ...], fs: Filesystem | None, *, carried: bool
) -> Iterator[FileUse]:
    """Yield what is done to the files of a command, and to those it makes and keeps."""
    written = [use for use in files if use.kind == "edit" and use.word in found.places]
    for use in files:
        if use not in written:
            yield from _named(found, use, cwds, fs) if found.spelled and use.word in found.sources else (use,)
    written += _made(found, cwds, fs, carried=carried)
    links = found.soft or any(_is_link(word, cwds, fs) for word in found.sources)
    for use in written:
        if not found.soft:
            yield replace(use, filled_from=_fillers(found, use))
        if links:
            yield replace(use, reach=Reach.LINK)
        if found.suffix is not None:
            yield from _kept(use, found.suffix)


def _made(found: Targets, cwds: tuple[str, ...], fs: Filesystem | None, *, carried: bool) -> Iterator[FileUse]:
    """Yield the files that are made inside directories."""
    for place in found.places:
        if place.kind is WordKind.CONST and (found.sure or _directory(found, place, cwds, fs)):
            for source in found.sources:
                path = source.text.strip("/") if found.whole else posixpath.basename(source.text.rstrip("/"))
                if source.kind is WordKind.CONST and path:
                    yield FileUse("edit", Word(posixpath.join(place.text, path)), Role.OPERAND, 0, carried=carried)


def _directory(found: Targets, place: Word, cwds: tuple[str, ...], fs: Filesystem | None) -> bool:
    return _written_as_one(found, place) or (
        fs is not None and any(fs.is_dir(posixpath.join(cwd, place.text)) for cwd in cwds)
    )


def _written_as_one(found: Targets, place: Word) -> bool:
    return len(found.sources) > 1 or place.text.endswith("/") or posixpath.basename(place.text) in {".", ".."}


def _fillers(found: Targets, use: FileUse) -> tuple[str, ...]:
    """Return what fills a directory that is written."""
    if use.reach is not Reach.CONTENT:
        return ()
    known = all(source.kind is WordKind.CONST for source in found.sources)
    return tuple(source.text for source in found.sources) if known else ()


def _named(found: Targets, use: FileUse, cwds: tuple[str, ...], fs: Filesystem | None) -> Iterator[FileUse]:
    """Yield what a symbolic link leads to, from every directory it may lie in."""
    if use.word.kind is WordKind.UNKNOWN or use.word.text.startswith("/"):
        yield use
        return
    bases: dict[str, None] = {}
    for place in found.places:
        if place.kind is not WordKind.CONST:
            yield use
        elif found.sure or _written_as_one(found, place):
            bases[place.text] = None
        else:
            bases[posixpath.dirname(place.text)] = None
            if _directory(found, place, cwds, fs):
                bases[place.text] = None
    for base in bases:
        path = posixpath.join(base, use.word.text) if base.strip("./") or ".." in base else use.word.text
        yield replace(use, word=Word(path, use.word.kind))


def _is_link(word: Word, cwds: tuple[str, ...], fs: Filesystem | None) -> bool:
    """Say whether a source is a link itself; a link to nothing is one, what cannot be looked at as well."""
    name = posixpath.basename(word.text.rstrip("/"))
    if fs is None or word.kind is not WordKind.CONST or name in {"", ".", ".."}:
        return False
    for cwd in cwds:
        above, path = posixpath.split(posixpath.join(cwd, word.text.rstrip("/")))
        try:
            if fs.resolve(posixpath.join(above, path)) != posixpath.join(fs.resolve(above), path):
                return True
        except OSError:
            return True
    return False


def _kept(use: FileUse, suffix: Word) -> Iterator[FileUse]:
    """Yield the name under which what was there stays; an ending with a `/` is none to GNU."""
    if suffix.kind is not WordKind.CONST or use.word.kind is not WordKind.CONST:
        why = f"`{suffix.text}` is not known before it runs"
        yield replace(use, word=Word(suffix.text, WordKind.UNKNOWN), unknown=use.unknown or why)
    elif "/" not in suffix.text:
        name = use.word.text.rstrip("/")
        yield replace(use, word=Word(name + suffix.text), reach=Reach.CONTENT, filled_from=(name,))
