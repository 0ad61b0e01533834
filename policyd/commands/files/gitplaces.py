"""Where the paths of a git command begin: below the directories of `-C`, and those of `HEAD:PATH` at the top.

Rules of this module:

1. A `-C` in front of the subcommand is a `cd` before everything else; behind one that is not constant, no place is
   known.
2. What stands behind the `:` of a revision, behind `:/` and behind `:(top)` begins at the top, unless it begins with
   `./` or `../`.
3. The top is the nearest directory that holds a `.git`; where none is found no other place is meant.
4. A directory inside a repository that is one itself is what git takes first, and its `config` may name programs,
   though it came with the files of the other. It holds a `HEAD`, which may be a link to what is not there, and either
   `objects` and `refs`, which need not be directories, or a `commondir` that says where those are.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from policyd.commands.argv.options import parse
from policyd.commands.argv.programs import Called, called
from policyd.commands.state import Cwd, enter
from policyd.model import Filesystem, FileUse, Role, Word, WordKind

_MARKS = (".git", ".hg", ".svn", ".jj")
"""What the top of a working tree holds."""


def is_git(argv: tuple[Word, ...]) -> bool:
    """Say whether a command is git, wherever that lies; what only ends in the name is taken for it too."""
    return argv[0].text.endswith("git")


def placed(files: Sequence[FileUse], argv: tuple[Word, ...], cwd: Cwd, fs: Filesystem | None) -> list[FileUse]:
    """Return what a git command does to which files, each where it is meant."""
    call = called("git", argv[1:])
    if call is None:
        return list(files)
    moves = _moves(call)
    there = _place(moves, cwd)
    found = [replace(use, cwd=_either(cwd, there) if use.word in moves else there) for use in files] if moves else files
    return [*found, *_from_top(call, there, fs)]


def place(argv: tuple[Word, ...], cwd: Cwd) -> Cwd:
    """Return the directories a command works in: those of `-C` where it is git, else where it runs."""
    call = called("git", argv[1:]) if is_git(argv) else None
    return cwd if call is None else _place(_moves(call), cwd)


def trees(argv: tuple[Word, ...], where: Cwd, fs: Filesystem | None) -> Iterator[tuple[Word, Cwd]]:
    """Yield every working tree a command may change, as a path and where that begins: the tops, and what is named."""
    tops = [here if fs is None else _tree(here, fs) for here in where]
    yield Word("."), tuple(dict.fromkeys(tops))
    call = called("git", argv[1:]) if is_git(argv) else None
    if call is not None and call.before:
        yield from ((word, where) for word in parse(call.outer.syntax, call.before).values("--work-tree"))


def _tree(here: str, fs: Filesystem) -> str:
    """Return the top of the working tree around a directory, as the kernel walks there; itself where none is found."""
    try:
        return _top(fs.resolve(here), fs, _MARKS) or here
    except OSError:
        return here


def embedded(argv: tuple[Word, ...], cwd: Cwd, fs: Filesystem) -> Iterator[str]:
    """Yield the directories inside a repository that a git command would, or may, take for one of their own."""
    call = called("git", argv[1:])
    for place in _place(_moves(call), cwd) if call is not None else cwd:
        if not _holds(posixpath.join(place, ".git"), fs):
            yield from _bare(place, fs)


def _holds(path: str, fs: Filesystem) -> bool:
    return bool(fs.is_dir(path)) or fs.identity(path) is not None


def _bare(place: str, fs: Filesystem) -> Iterator[str]:
    try:
        here = fs.resolve(place)
    except OSError:
        yield place
        return
    bare = ""
    while here != "/":
        git = posixpath.join(here, ".git")
        if _holds(git, fs):
            if bare not in {"", git}:
                yield bare
            return
        if not bare and _is_repository(here, fs):
            bare = here
        here = posixpath.dirname(here)


def _is_repository(here: str, fs: Filesystem) -> bool:
    """Say whether git may take a directory, as the kernel walks there, for a repository (`is_git_directory`)."""
    head, common, *stores = (posixpath.join(here, part) for part in ("HEAD", "commondir", "objects", "refs"))
    return (_holds(common, fs) or all(_holds(one, fs) for one in stores)) and (_holds(head, fs) or _is_link(head, fs))


def _is_link(path: str, fs: Filesystem) -> bool:
    try:
        return fs.resolve(path) != path
    except OSError:
        return True


def _moves(call: Called) -> tuple[Word, ...]:
    return parse(call.outer.syntax, call.before).values("-C") if call.before else ()


def _place(moves: tuple[Word, ...], cwd: Cwd) -> Cwd:
    for word in moves:
        cwd = enter(cwd, word.text) if word.kind is WordKind.CONST and word.text else cwd if not word.text else ()
    return cwd


def _either(one: Cwd, other: Cwd) -> Cwd:
    """Return the directories of both: the value of `-C` may be a path behind it as well."""
    return tuple(dict.fromkeys((*one, *other)))


def _from_top(call: Called, place: Cwd, fs: Filesystem | None) -> Iterator[FileUse]:
    """Yield the paths among the words behind the subcommand that begin at the top, where that lies elsewhere."""
    paths = [
        path for word in call.after if word.kind is WordKind.CONST and ":" in word.text for path in _paths(word.text)
    ]
    if not paths or fs is None or len(place) != 1:
        return
    top, shown = _top(place[0], fs), "rev*" in call.program.operands
    for path in paths if top not in {"", place[0]} else ():
        yield FileUse("search" if shown else "read", Word(path), Role.MENTION, 0, cwd=(top,), known=shown)


def _paths(text: str) -> Iterator[str]:
    """Yield what in a word may be a path from the top."""
    if text.startswith(":("):
        magic, _, path = text.partition(")")
        found = [path] if "top" in magic else []
    else:
        found = [text.partition(":")[2].removeprefix("/"), text.rpartition(":")[2]]
    yield from (path for path in dict.fromkeys(found) if path and not path.startswith(("./", "../", "/")))


def _top(place: str, fs: Filesystem, marks: tuple[str, ...] = (".git",)) -> str:
    """Return the nearest directory from `place` up that holds a `.git`, nothing where there is none."""
    while True:
        if any(_holds(posixpath.join(place, mark), fs) for mark in marks):
            return place
        if place == "/":
            return ""
        place = posixpath.dirname(place)
