"""What a text reaches through a link that it makes, moves or copies itself: it is not there yet where it will be.

Rules of this module:

1. What is written through a name that a symbolic link of the same text has cannot be told.
2. What is moved or copied keeps the links in it, under another name: what the text does below that name, or runs
   there, it does below the old one. Where that leads through a link it cannot be told.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence

from policyd.model import CONST, READ_KINDS, Filesystem, FileUse, Reach, Role, SimpleCommand, Word, WordKind

_TAKEN = frozenset({"read", "move"})
_MOST = 2_048
"""Names that one text gives which are looked at."""
_STEPS = 512
"""Older names of one path that are looked at."""
Names = dict[str, set[tuple[str, int]]]
"""What a text gives a name -> what that was, or lay in, before, and the command that does it."""


def hidden(commands: Sequence[SimpleCommand], files: Sequence[FileUse], fs: Filesystem | None) -> Iterator[str]:
    """Yield what may lead through a link that is made, moved or copied here."""
    if len(commands) < 2:
        return
    yield from _through_made(files)
    if fs is None:
        return
    names = _names(files)
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


def _names(files: Iterable[FileUse]) -> Names:
    """Return what every command that takes files and puts them elsewhere calls them."""
    taken: dict[int, list[FileUse]] = {}
    put: dict[int, list[FileUse]] = {}
    for use in files:
        if use.role is Role.OPERAND and use.kind in _TAKEN:
            taken.setdefault(use.command, []).append(use)
        elif use.role is Role.OPERAND and use.kind == "edit":
            put.setdefault(use.command, []).append(use)
    found: Names = {}
    for index in taken.keys() & put.keys():
        old = [(place, use.word.kind) for use in taken[index] for place in _places(use.word, use.cwd)]
        for use in put[index]:
            for new in _places(use.word, use.cwd):
                _call(found, new, old, index)
                if len(found) > _MOST:
                    return found
    return found


def _call(found: Names, new: str, old: Sequence[tuple[str, WordKind]], index: int) -> None:
    """Note what lies at a name, or below it, if it is the directory that things are put into."""
    name = posixpath.basename(new)
    alike = [place for place, _ in old if posixpath.basename(place) == name]
    found.setdefault(new, set()).update((place, index) for place in alike or [place for place, _ in old])
    for place, kind in () if alike else old:
        if kind is CONST:
            found.setdefault(posixpath.join(new, posixpath.basename(place)), set()).add((place, index))


def _places(word: Word, cwds: Iterable[str]) -> Iterator[str]:
    """Yield the absolute paths of a word, of one that is not constant the directory before what is not."""
    if word.kind is WordKind.UNKNOWN:
        return
    text = word.text
    if word.kind is WordKind.GLOB:
        text = text[: min(text.find(sign) for sign in "*?[" if sign in text)].rpartition("/")[0]
    for cwd in cwds:
        yield posixpath.normpath(posixpath.join(cwd, text))


def _reached(commands: Sequence[SimpleCommand], files: Iterable[FileUse]) -> Iterator[tuple[str, int, str]]:
    """Yield every path that the text is about, the command that is about it, and how it is called."""
    for use in files:
        if use.role is not Role.MENTION:
            yield from ((place, use.command, use.word.text) for place in _places(use.word, use.cwd))
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
                if len(seen) > _STEPS or _linked(old, rest, fs):
                    return True
                seen.add(before)
                todo.append(before)
            above, name = posixpath.split(above)
            rest = posixpath.join(name, rest) if rest else name
    return False


def _linked(old: str, rest: str, fs: Filesystem) -> bool:
    above, name = posixpath.split(old)
    try:
        return fs.resolve(posixpath.join(old, rest)) != posixpath.join(fs.resolve(above), name, rest).rstrip("/")
    except OSError:
        return True
