"""What lies where a command runs and makes it more than its words say.

Rules of this module:

1. A file called `-R`, which a glob among the words finds, is an option: `grep x *` then reads what lies behind links,
   `sort *` writes what a name says. Words behind `--` are none; where the directory cannot be listed nothing is found.
2. A repository inside another one came with its files, its configuration with it (see `gitplaces`).
3. `npx NAME` runs what the project installed under that name, where it did, and fetches else. What lies above the
   repository is not the project's; what a command of the same text moves or removes may be gone.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from itertools import islice

from msgspec.structs import replace

from policyd.commands.argv.options import may_be_option
from policyd.commands.argv.programs import Program
from policyd.commands.files import gitplaces
from policyd.commands.lexing.patternwords import can_match
from policyd.commands.state import Cwd
from policyd.model import Filesystem, Reading, SimpleCommand, Word, WordKind

_GLOBBING = frozenset({"BASHOPTS", "GLOBIGNORE"})
"""Variables by which a glob finds hidden names."""
_INSTALLED = "node_modules/.bin"
_NAME = re.compile(r"[a-z][a-z0-9-]*").fullmatch
"""A program as `npx` may find it here: no option, no path, no version."""


def odd(program: Program | None, command: SimpleCommand, fs: Filesystem | None) -> Iterator[str]:
    """Yield why a command is more than its words say."""
    yield from _widened(command)
    if fs is not None:
        yield from _lying(program, command, fs)


def _lying(program: Program | None, command: SimpleCommand, fs: Filesystem) -> Iterator[str]:
    """Yield what there is that a command would take for an option of its own, or for code."""
    if program is None or not (program.words or program.inert):
        for name in islice(_options(command.argv, command.cwd, fs), 1):
            yield f"`{name}` lies where it runs and becomes an option"
    if gitplaces.is_git(command.argv):
        for place in gitplaces.embedded(command.argv, command.cwd, fs):
            yield f"`{place}` is a repository inside another one, and git runs what its configuration names"


def _widened(command: SimpleCommand) -> Iterator[str]:
    """Yield a glob that may find more than it says, hidden names among it: options of the shell may be set."""
    told = command.tainted or any(one.name in _GLOBBING for one in (*command.taint, *command.env))
    if told and (glob := next((word for word in command.argv[1:] if word.kind is WordKind.GLOB), None)) is not None:
        yield f"`{glob.text}` may find other names than it says, for options of the shell may be set"


def _options(words: tuple[Word, ...], cwd: Cwd, fs: Filesystem) -> Iterator[str]:
    ends = words.index(Word("--")) if Word("--") in words else len(words)
    globs = [word.text.partition("/")[0] for word in words[:ends] if word.kind is WordKind.GLOB and may_be_option(word)]
    for place in cwd if globs else ():
        dashed = [name for name in fs.listing(place) or () if name.startswith("-")]
        yield from (name for name in dashed if any(can_match(glob, name) for glob in globs))


def installed(reading: Reading, fs: Filesystem) -> tuple[SimpleCommand, ...]:
    """Return the commands of a text; those of `npx` with the program of the project they run, where it is there."""
    if not any(_npx(command) for command in reading.commands) or any(
        use.kind in {"delete", "move"} for use in reading.files
    ):
        return reading.commands
    return tuple([_resolved(command, fs) if _npx(command) else command for command in reading.commands])


def _npx(command: SimpleCommand) -> bool:
    while command.inner is not None:
        command = command.inner
    words = command.argv[:2]
    named = len(words) == 2 and words[0].text == "npx" and _NAME(words[1].text) is not None
    return named and words[0].kind is words[1].kind is WordKind.CONST


def _resolved(command: SimpleCommand, fs: Filesystem) -> SimpleCommand:
    if command.inner is not None:
        return replace(command, inner=_resolved(command.inner, fs))
    name = command.argv[1].text
    if not command.cwd or not all(_has(name, place, fs) for place in command.cwd):
        return command
    return replace(command, inner=replace(command, argv=(Word(f"{_INSTALLED}/{name}"), *command.argv[2:])))


def _has(name: str, place: str, fs: Filesystem) -> bool:
    """Say whether a program lies among the installed ones of a directory, or of one above it in the repository."""
    start, found = place, ""
    while place != "/":
        if not found and fs.identity(posixpath.join(place, _INSTALLED, name)) is not None:
            found = place
        if fs.identity(posixpath.join(place, ".git")) is not None:
            return bool(found)
        place = posixpath.dirname(place)
    return found == start
