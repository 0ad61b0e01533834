"""What a text reaches through a link that it makes, moves or copies itself: it is not there yet where it will be.

Rules of this module:

1. What is written through a name that a symbolic link of the same text has cannot be told.
2. What is moved or copied keeps the links in it, under another name: what the text does below that name, or runs
   there, it does below the old one. Where that leads through a link it cannot be told.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from policyd.commands.lexing.patternwords import can_match
from policyd.model import CONST, READ_KINDS, Filesystem, FileUse, Reach, Role, SimpleCommand, WordKind

_TAKEN = frozenset({"read", "move"})
_GONE = frozenset({"delete", "move"})
_MOST = 2_048
"""Names that one text gives which are looked at."""
_STEPS = 512
"""Older names of one path that are looked at, and directories of one path with wildcards."""
_ANY = "?"
"""What cannot be told."""
_WILD = re.compile(r"[*?\[\\]").search
Names = dict[str, set[tuple[str, int]]]
"""What a text gives a name -> what that was, or lay in, before, and the command that does it."""


def hidden(commands: Sequence[SimpleCommand], files: Sequence[FileUse], fs: Filesystem | None) -> Iterator[str]:
    """Yield what may lead through a link that is made, moved or copied here."""
    if len(commands) < 2:
        return
    yield from _through_made(files)
    if fs is None:
        return
    names = _names(commands, files, fs)
    if len(names) > _MOST:
        yield "the command gives more files other names than are looked at"
        return
    for where, index, shown in _reached(commands, files) if names else ():
        if _led(where, index, names, fs):
            yield f"`{shown}` may lead through a link that is moved or copied here"


def _through_made(files: Sequence[FileUse]) -> Iterator[str]:
    """Yield what is written through a name that a symbolic link of the same text has."""
    makers: dict[str, set[int]] = {}
    for use in files:
        if use.reach is Reach.LINK:
            makers.setdefault(use.word.text.rstrip("/").rpartition("/")[2], set()).add(use.command)
    every = set().union(*makers.values())
    for use in files if makers else ():
        if use.role is not Role.MENTION and use.kind not in READ_KINDS:
            where = {name for path in (use.word.text, *use.cwd) for name in path.split("/")}
            met = every if use.word.kind is not CONST else {one for name in where for one in makers.get(name, ())}
            if met - {use.command}:
                yield f"`{use.word.text}` may lead through a link that is made here"


def _names(commands: Sequence[SimpleCommand], files: Iterable[FileUse], fs: Filesystem) -> Names:
    """Return what every command that takes files and puts them elsewhere calls them."""
    taken: dict[int, list[FileUse]] = {}
    put: dict[int, list[FileUse]] = {}
    gone: set[str] = set()
    for use in files:
        if use.kind in _GONE:
            gone.update(_paths(use))
        if use.role is Role.OPERAND and use.kind in _TAKEN:
            taken.setdefault(use.command, []).append(use)
        elif use.role is Role.OPERAND and use.kind == "edit":
            put.setdefault(use.command, []).append(use)
    found: Names = {}
    for index in taken.keys() & put.keys():
        old = [(use, place) for use in taken[index] for path in _paths(use) for place in _expanded(path, fs)]
        for new in (path for use in put[index] for path in _paths(use)):
            becomes = len(taken[index]) == 1 and (new in gone or not fs.is_dir(new) or _merges(commands[index]))
            found.setdefault(new, set()).update((place, index) for use, place in old if becomes or _inner(use))
            for _, place in old:
                name = posixpath.basename(place)
                inside = new if posixpath.basename(new) == name else posixpath.join(new, name)
                found.setdefault(inside, set()).add((place, index))
            if len(found) > _MOST:
                return found
    return found


def _merges(command: SimpleCommand) -> bool:
    """Say whether what is put at a name is put there even where a directory is (`cp -rT`)."""
    while command.inner is not None:
        command = command.inner
    options = [word.text for word in command.argv[1:] if word.text.startswith("-")]
    return any(text.startswith("--no-t") or ("T" in text and text[1:2] != "-") for text in options)


def _inner(use: FileUse) -> bool:
    """Say whether what lies in a directory is taken, without its name: `cp -r a/. b`."""
    return use.word.text.endswith(".")


def _paths(use: FileUse) -> Iterator[str]:
    """Yield the absolute paths of a file, with wildcards; nothing where its word is not known."""
    if use.word.kind is not WordKind.UNKNOWN:
        yield from (posixpath.normpath(posixpath.join(cwd, use.word.text)) for cwd in use.cwd)


def _expanded(path: str, fs: Filesystem) -> Iterator[str]:
    """Yield what a path with wildcards may find, and `_ANY` where that cannot be told; what is plain is itself."""
    todo = [("/", path.strip("/").split("/"))]
    for _ in range(_STEPS):
        if not todo:
            return
        here, rest = todo.pop()
        while rest and not _WILD(rest[0]):
            here, rest = posixpath.join(here, rest[0]), rest[1:]
        if not rest:
            yield here
            continue
        names = () if fs.is_dir(here) is False else fs.listing(here)
        if names is None or rest[0] == "**":
            break
        todo += [(posixpath.join(here, name), rest[1:]) for name in names if can_match(rest[0], name)]
    yield _ANY


def _reached(commands: Sequence[SimpleCommand], files: Iterable[FileUse]) -> Iterator[tuple[str, int, str]]:
    """Yield every path that the text is about, the command that is about it, and how it is called."""
    for use in files:
        yield from ((place, use.command, use.word.text) for place in _paths(use))
    for index, command in enumerate(commands):
        yield from ((posixpath.normpath(place), index, place) for place in command.cwd)


def _led(path: str, index: int, names: Names, fs: Filesystem) -> bool:
    """Say whether a path, by any name that things had before, leads through a link which lies in what was moved."""
    seen, todo = {path}, [path]
    while todo:
        here = todo.pop()
        above, rest = here, ""
        while above != "/":
            for old, maker in names.get(above, ()):
                before = posixpath.join(old, rest) if rest else old
                if before in seen or (here == path and maker == index):
                    continue
                if len(seen) > _STEPS or any(_linked(old, each, fs) for each in _expanded(before, fs)):
                    return True
                seen.add(before)
                todo.append(before)
            above, name = posixpath.split(above)
            rest = posixpath.join(name, rest) if rest else name
    return False


def _linked(old: str, path: str, fs: Filesystem) -> bool:
    """Say whether a path at or below a name leads through a link there; one on the way to the name is none."""
    if _ANY in {old, path}:
        return True
    above, _ = posixpath.split(old)
    try:
        return fs.resolve(path) != posixpath.join(fs.resolve(above), posixpath.relpath(path, above))
    except OSError:
        return True
