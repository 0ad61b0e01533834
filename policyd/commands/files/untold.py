"""Which files a command may change though no word of it names them: a patch or an archive does.

Rules of this module:

1. Where that is, `untold` of the table says; an option nobody knows spares nothing.
2. A path among the operands bounds it only where git would take it for one: what exists, or stands behind `--`. What
   git expands itself (`*.py` in quotes, `:/`) bounds nothing.
3. What moves to another commit (`git pull`, `git switch main`, `git stash pop`) is not looked into, as what git shows
   of one is not: that was committed.
4. Of a working tree it is a mention with a kind: only what denies or asks for paths looks at it. It begins at the top,
   which may lie above where the command runs, and outside the workspace.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from msgspec import Struct

from policyd.commands.argv.options import Parsed
from policyd.commands.argv.programs import Called, Untold
from policyd.commands.files import gitplaces
from policyd.commands.state import Cwd
from policyd.model import Filesystem, FileUse, Reach, Role, SimpleCommand, Word, WordKind

HERE = Word(".")
_MAGIC = frozenset("*?[:")


class Changed(Struct, frozen=True):
    """What of a command changes files below, without the place it runs in."""

    told: Untold
    places: tuple[Word, ...] = ()
    """The directories and files; none: all of where it runs."""
    maybe: bool = False
    """The first of the places may be a revision."""


def changed(call: Called, parsed: Parsed) -> Changed | None:
    """Return what files a command changes below, None where it changes none that no word names."""
    told = call.program.untold
    if told is None or _spared(told, parsed):
        return None
    if told.operands in {"paths", "either"}:
        return _named(told, parsed)
    if told.operands == "file" and parsed.operands and not parsed.has(*told.where):
        return None
    return Changed(told, parsed.values(*told.where))


def _named(told: Untold, parsed: Parsed) -> Changed | None:
    """Return what is changed where the operands bound it; of `either`, none are no change but for `when`."""
    either = told.operands == "either"
    behind = either and parsed.split >= 0
    paths = parsed.operands[parsed.split :] if behind else parsed.operands
    if either and not paths and not parsed.has(*told.when):
        return None
    if parsed.unknown or parsed.has("--pathspec-from-file") or any(map(_expanded, paths)):
        return Changed(told)
    return Changed(told, paths, maybe=either and not behind)


def _spared(told: Untold, parsed: Parsed) -> bool:
    """Say whether the options given make it change nothing; a word nobody knows may take that back."""
    if parsed.unknown or parsed.loose:
        return False
    if told.unless and parsed.has(*told.unless) and not parsed.has(*told.again):
        return True
    return bool(told.when) and told.operands != "either" and not parsed.has(*told.when)


def _expanded(word: Word) -> bool:
    """Say whether a path may be more than one to git itself, or is not known."""
    return word.kind is WordKind.UNKNOWN or (word.kind is WordKind.CONST and not _MAGIC.isdisjoint(word.text))


def below(found: Changed, command: SimpleCommand, carried: bool, fs: Filesystem | None) -> Iterator[FileUse]:
    """Yield what a command does below the directories it changes files in."""
    role = Role.MENTION if found.told.tree else Role.OPERAND
    for place, cwd in _places(found, command, gitplaces.place(command.argv, command.cwd), fs):
        for kind in found.told.kinds:
            yield FileUse(kind, place, role, 0, Reach.UNTOLD, carried=carried, cwd=cwd)


def _places(found: Changed, command: SimpleCommand, cwd: Cwd, fs: Filesystem | None) -> Iterator[tuple[Word, Cwd]]:
    places = found.places
    if found.maybe and places and not _exists(places[0], cwd, fs):
        places = places[1:]
        if not places:
            return
    if found.told.tree and not places:
        yield from gitplaces.trees(command.argv, cwd, fs)
    else:
        yield from ((place, cwd) for place in places or (HERE,))


def _exists(word: Word, cwd: Cwd, fs: Filesystem | None) -> bool:
    """Say whether a word surely names something that is there: then it is no revision to git."""
    if word.kind is not WordKind.CONST:
        return True
    paths = [posixpath.join(place, word.text) for place in cwd]
    return fs is not None and bool(paths) and all(fs.is_dir(path) or fs.identity(path) for path in paths)
