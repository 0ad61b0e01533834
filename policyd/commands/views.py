"""The ways to see a command: what it may be called, and the words that go with each name.

Rules of this module:

1. A program is known by its base name behind any path, by its name without a version, as an applet of busybox, as
   `git-push` for `git push`, as `python -m name`.
2. Words of a stranger, those behind `docker exec` and its like, names in code that runs programs may be a program (see
   `buried.py`); a subcommand git does not have may be an alias: what follows from such a view is `MAYBE` at most.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import lru_cache

from policyd.commands import buried, programs
from policyd.commands.options import Syntax
from policyd.commands.patternwords import fold
from policyd.model import SimpleCommand, Truth, Word, WordKind

BOXES = frozenset({"busybox", "toybox", "coreutils"})
PYTHONS = frozenset({"python", "py", "pypy"})
FAMILIES = ("git", "cargo", "docker")
"""Programs whose subcommand `x` is also a program `NAME-x`."""
_MEMBERS = tuple(f"{family}-" for family in FAMILIES)
_VERSION = re.compile(r"[-.]?[0-9][0-9.]*$")


class View:
    """A command as strict rules may see it: a program and its words."""

    __slots__ = ("_called", "cwd", "names", "program", "sure", "words")

    def __init__(self, program: Word, words: tuple[Word, ...], cwd: tuple[str, ...], sure: Truth = Truth.YES) -> None:
        """See `words` as those of `program`; `sure` is the most that may follow from it."""
        self.program, self.words, self.cwd, self.sure = program, words, cwd, sure
        self.names = names(program)
        self._called: programs.Called | bool | None = False

    @property
    def called(self) -> programs.Called | None:
        """The program of the table with its subcommand, None for a stranger; looked up when first needed."""
        if isinstance(self._called, bool):
            found = (programs.called(name, self.words) for name in sorted(self.names, reverse=True))
            self._called = next(filter(None, found), None)
        return self._called

    def syntax(self, index: int) -> Syntax:
        """Return how the word at `index` is read."""
        if self.called is None:
            return _STRANGER
        start = len(self.words) - len(self.called.after)
        return (self.called.program if index >= start else self.called.outer).syntax


_STRANGER = Syntax()


@lru_cache(2048)
def _names(text: str) -> frozenset[str]:
    base = posixpath.basename(fold(text)) or text
    bare = _VERSION.sub("", base)
    return frozenset(name for name in (base, bare) if name)


def names(word: Word) -> frozenset[str]:
    """Return the names a program word may be known by, none where it is not constant."""
    return _names(word.text) if word.kind is WordKind.CONST else frozenset()


@lru_cache(2048)
def simple(text: str) -> frozenset[str] | None:
    """Return the lower-case names of a program that has no other view, None for one that may have."""
    known = _names(text)
    other = known & (BOXES | PYTHONS | buried.ELSEWHERE.keys()) or any(
        name.startswith(family + "-") for family in FAMILIES for name in known
    )
    suspect = other or buried.is_stranger(known) or buried.speaks(known)
    return None if suspect else frozenset(name.lower() for name in known)


def alone(command: SimpleCommand) -> bool:
    """Say whether a command is seen in one way only: as it is written."""
    if command.inner is not None or not command.argv or command.argv[0].kind is not WordKind.CONST:
        return False
    known = simple(command.argv[0].text)
    return known is not None and ("git" not in known or _alias(command.argv[1:]) is None)


_LAST: list[tuple[SimpleCommand, tuple[View, ...]]] = []
"""The command that was asked about last, with its views: many rules ask about the same one."""


def views(command: SimpleCommand) -> tuple[View, ...]:
    """Return every way to see one level of a command; wrappers that run another are not unwrapped here."""
    for known, found in _LAST:
        if known is command:
            return found
    seen = tuple(_views(command))
    _LAST[:] = [(command, seen)]
    return seen


def _views(command: SimpleCommand) -> Iterator[View]:
    program, words = (command.argv[0], command.argv[1:]) if command.argv else (Word(""), ())
    yield View(program, words, command.cwd)
    known = names(program)
    if known & BOXES and words:
        yield View(words[0], words[1:], command.cwd)
    for family in FAMILIES:
        for name in known:
            if name.startswith(family + "-"):
                yield View(Word(family), (Word(name[len(family) + 1 :]), *words), command.cwd)
    for inner, behind in _buried(known, words):
        yield View(inner, behind, command.cwd, Truth.MAYBE)
    if "git" in known and (alias := _alias(words)) is not None:
        yield View(program, alias, command.cwd, Truth.MAYBE)
    module = _module(words) if known & PYTHONS else None
    if module is not None:
        yield View(Word(words[module].text.replace("_", "-")), words[module + 1 :], command.cwd)


def _buried(known: frozenset[str], words: tuple[Word, ...]) -> Iterator[tuple[Word, tuple[Word, ...]]]:
    for name in known & buried.ELSEWHERE.keys():
        yield from buried.elsewhere(buried.ELSEWHERE[name], words)
    if buried.is_stranger(known) and not any(name.startswith(_MEMBERS) for name in known):
        yield from buried.among(words)
    if buried.speaks(known):
        yield from buried.spoken(known, words)


def _alias(words: tuple[Word, ...]) -> tuple[Word, ...] | None:
    """Return the words of a git command whose subcommand git does not have: an alias stands for any words."""
    table = programs.find("git")
    at = programs.first_operand(table.syntax, words) if table is not None else None
    if table is None or at is None or words[at].kind is not WordKind.CONST or words[at].text in table.subs:
        return None
    return (*words[:at], Word(words[at].text, WordKind.UNKNOWN, "", many=True), *words[at + 1 :])


def _module(words: tuple[Word, ...]) -> int | None:
    """Return the index of the module of `python -m NAME`."""
    for index, word in enumerate(words[:-1]):
        if word.kind is WordKind.CONST and word.text.startswith("-") and not word.text.startswith("--"):
            if word.text.endswith("m") and words[index + 1].kind is WordKind.CONST:
                return index + 1
        else:
            return None
    return None
