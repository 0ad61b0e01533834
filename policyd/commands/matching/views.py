"""The ways to see a command: what it may be called, and the words that go with each name.

Rules of this module:

1. A program is known by its base name behind any path, by its name without a version, as an applet of busybox, as
   `git-push` for `git push`, as `python -m name`, and by what it is called elsewhere (see `kin.py`).
2. Words of a stranger, those behind `docker exec` and its like, names in code that runs programs and in variables may
   be a program (see `buried.py`); a subcommand git does not have may be an alias: what follows from such a view is
   `MAYBE` at most.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from policyd.commands.argv import programs
from policyd.commands.argv.options import Syntax
from policyd.commands.dialects import foreign
from policyd.commands.lexing.patternwords import fold
from policyd.commands.matching import kin
from policyd.commands.nested import buried
from policyd.commands.nested.wrappers import marks
from policyd.model import SimpleCommand, Truth, Word, WordKind

CONST, YES = WordKind.CONST, Truth.YES
NOBODY: frozenset[str] = frozenset()
BOXES = frozenset({"busybox", "toybox", "coreutils"})
PYTHONS = frozenset({"python", "py", "pypy"})
FAMILIES = ("git", "cargo", "docker")
"""Programs whose subcommand `x` is also a program `NAME-x`."""
SEEN = 4
"""Commands of which the views are remembered: each may hold thousands of words."""
_SUFFIX = re.compile(r"\.(?:exe|cmd|bat)$")
_VALUED = frozenset("cWX")
"""Options of python whose value may be glued on: an `m` in it is none."""
_MAIN = re.compile(r"\._?_(?:main__|internal)$")
"""What of the name of a module says that it is the program of its package."""
_VERSION = re.compile(r"[-.]?[0-9][0-9.]*$")


class View:
    """A command as strict rules may see it: a program and its words."""

    __slots__ = ("_called", "_front", "cwd", "names", "program", "sure", "words")

    def __init__(self, program: Word, words: tuple[Word, ...], cwd: tuple[str, ...], sure: Truth = YES) -> None:
        """See `words` as those of `program`; `sure` is the most that may follow from it."""
        self.program = program
        self.words = words
        self.cwd = cwd
        self.sure = sure
        self.names = _names(program.text) if program.kind is CONST else NOBODY
        self._called: programs.Called | bool | None = False
        self._front = -1

    @property
    def called(self) -> programs.Called | None:
        """The program of the table with its subcommand, None for a stranger; looked up when first needed."""
        if isinstance(self._called, bool):
            found = (programs.called(name, self.words) for name in sorted(self.names, reverse=True))
            self._called = next(filter(None, found), None)
        return self._called

    def syntax(self, index: int) -> Syntax:
        """Return how the word at `index` is read."""
        called = self.called
        if called is None:
            return _STRANGER
        behind = index - len(self.words) + len(called.after)
        if behind < 0:
            return called.outer.syntax
        table = called.program.syntax
        if table.posix and self._front < 0:
            self._front = programs.first_operand(table, called.after) or 0
        return _STRANGER if table.posix and behind > self._front else table


_STRANGER = Syntax()


@lru_cache(2048)
def _names(text: str) -> frozenset[str]:
    base = posixpath.basename(fold(text)) or text
    plain = _SUFFIX.sub("", base)
    bare = _VERSION.sub("", plain)
    return frozenset(name for name in (base, plain, bare, *kin.twins(plain), *kin.twins(bare)) if name)


def _is_other(text: str) -> bool:
    """Say whether what a program runs would be seen, were it not for the `.exe` or `.cmd` behind its name."""
    base = posixpath.basename(fold(text))
    plain = _SUFFIX.sub("", base)
    return plain != base and marks(base) is None and marks(plain) is not None


def names(word: Word) -> frozenset[str]:
    """Return the names a program word may be known by, none where it is not constant."""
    return _names(word.text) if word.kind is CONST else NOBODY


class Ways(Struct, frozen=True):
    """Why a program may be seen otherwise than as it is written; all empty where nothing could be otherwise."""

    known: frozenset[str]
    """The names it may be known by."""
    box: bool = False
    """Its first word is a program."""
    members: tuple[tuple[Word, Word], ...] = ()
    """The programs whose subcommand it is, with that subcommand."""
    verbs: tuple[frozenset[str], ...] = ()
    """It runs its words: see `buried.ELSEWHERE`."""
    stranger: bool = False
    speaks: bool = False
    git: bool = False
    python: bool = False
    kin: tuple[str, ...] = ()
    """The names by which it has kin."""


@lru_cache(2048)
def _ways(text: str) -> Ways | None:
    """Return how else a program may be seen, None where it is what it is, whatever its words."""
    known = _names(text)
    pairs = [(family, name) for family in FAMILIES for name in known if name.startswith(family + "-")]
    found = Ways(
        known,
        box=bool(known & BOXES),
        members=tuple((Word(family), Word(name[len(family) + 1 :])) for family, name in pairs),
        verbs=tuple(buried.ELSEWHERE[name] for name in known & buried.ELSEWHERE.keys()),
        stranger=(buried.is_stranger(known) and not pairs) or _is_other(text),
        speaks=buried.speaks(known),
        git="git" in known,
        python=bool(known & PYTHONS),
        kin=tuple(known & kin.KNOWN),
    )
    return found if found != Ways(known) else None


@lru_cache(2048)
def lower(known: frozenset[str]) -> frozenset[str]:
    """Return names in lower case."""
    return frozenset(name.lower() for name in known)


_SEEN: dict[int, tuple[SimpleCommand, tuple[View, ...]]] = {}
"""The commands that were asked about last, with their views: many rules ask about the same one and what it wraps."""


def views(command: SimpleCommand) -> tuple[View, ...]:
    """Return every way to see one level of a command; wrappers that run another are not unwrapped here."""
    known = _SEEN.get(id(command))
    if known is not None and known[0] is command:
        return known[1]
    program, words = (command.argv[0], command.argv[1:]) if command.argv else (Word(""), ())
    ways = _ways(program.text) if program.kind is CONST else None
    written = View(program, words, command.cwd)
    seen = (written,) if ways is None else (written, *_others(ways, program, words, command.cwd))
    if command.env or command.taint:
        seen += tuple(_suspected(buried.in_variables(command), command.cwd))
    if len(_SEEN) >= SEEN:
        _SEEN.clear()
    _SEEN[id(command)] = command, seen
    return seen


def every(command: SimpleCommand) -> Sequence[View]:
    """Return the views of a command, of all that it wraps, outermost first, and of what it runs elsewhere."""
    if command.inner is None and not command.far:
        return views(command)
    found: list[View] = []
    here: SimpleCommand | None = command
    while here is not None:
        found += views(here)
        here = here.inner
    for other in command.far:
        found += every(other)
    return found


def names_of(seen: Sequence[View]) -> frozenset[str] | None:
    """Return, in lower case, every name strict rules may know views by; None = any (not constant)."""
    found: frozenset[str] = frozenset()
    for view in seen:
        if not view.names and view.program.text:
            return None
        found = found | lower(view.names) if found else lower(view.names)
    return found


def _others(ways: Ways, program: Word, words: tuple[Word, ...], cwd: tuple[str, ...]) -> Iterator[View]:
    """Yield every way but the written one."""
    if ways.box and words:
        yield View(words[0], words[1:], cwd)
    for family, member in ways.members:
        yield View(family, (member, *words), cwd)
    for verbs in ways.verbs:
        found = buried.elsewhere(verbs, words)
        yield from _suspected(found if ways.known.isdisjoint(foreign.SHELLS) else _renamed(found), cwd)
    if ways.stranger:
        yield from _suspected(buried.among(words), cwd)
    if ways.speaks:
        yield from _suspected(buried.spoken(ways.known, words), cwd)
    for name in ways.kin:
        yield from (View(Word(other), rest, cwd) for other, rest in kin.kin(name, words))
    if ways.kin:
        yield from _suspected(kin.binaries(ways.known, words), cwd)
    if ways.git and (alias := _alias(words)) is not None:
        yield View(program, alias, cwd, Truth.MAYBE)
    module = _module(words) if ways.python else None
    if module is not None:
        yield View(*module, cwd)


def _renamed(found: Iterator[buried.Found]) -> Iterator[buried.Found]:
    """See what another shell may run under every name it has there."""
    for inner, behind in found:
        yield inner, behind
        yield from ((other[0], behind) for other in foreign.others((inner,)))


def _suspected(found: Iterator[buried.Found], cwd: tuple[str, ...]) -> Iterator[View]:
    """See what may be programs among words."""
    return (View(inner, behind, cwd, Truth.MAYBE) for inner, behind in found)


def _alias(words: tuple[Word, ...]) -> tuple[Word, ...] | None:
    """Return the words of a git command whose subcommand git does not have: an alias stands for any words."""
    table = programs.find("git")
    at = programs.first_operand(table.syntax, words) if table is not None else None
    if table is None or at is None or words[at].kind is not CONST or words[at].text in table.subs:
        return None
    return (*words[:at], Word(words[at].text, WordKind.UNKNOWN, "", many=True), *words[at + 1 :])


def _module(words: tuple[Word, ...]) -> tuple[Word, tuple[Word, ...]] | None:
    """Return the program that `python -m NAME` or `-mNAME` is, with its words."""
    while words and words[0].kind is CONST and words[0].text.startswith("-") and not words[0].text.startswith("--"):
        flags, marked, name = words[0].text.partition("m")
        words = words[2:] if flags in {"-W", "-X"} and not marked else words[1:]
        if marked and _VALUED.isdisjoint(flags):
            named = (Word(name), *words) if name else words
            known = bool(named) and named[0].kind is CONST
            return (Word(_MAIN.sub("", named[0].text).replace("_", "-")), named[1:]) if known else None
    return None
