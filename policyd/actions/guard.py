"""Marks what touches policyd itself: its files under any name, its program (`running`), its processes.

A guarded action is at least an ask, whatever the rules say (the engine's floor); this module only marks. It errs on the
side of marking: where policyd's own directories cannot be listed to the end, any file that is changed may be a hard
link to one of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from policyd.actions.builder import Surroundings
from policyd.actions.running import runs_policyd
from policyd.model import BELOW, WRITE_KINDS, Action, Filesystem, PathRef, Role

MOST_FILES = 2_048
"""The number of files and directories below the reserved directories that are compared."""


def mark(actions: tuple[Action, ...], around: Surroundings) -> tuple[Action, ...]:
    """Return `actions` with `guarded` set on those that touch policyd."""
    if not [action for action in actions if action.path is not None or action.command is not None]:
        return actions
    linked: list[frozenset[tuple[int, int]] | None] = []

    def hard_linked(ref: PathRef) -> bool:
        """Say whether a file of policyd's is changed or mentioned under another name; reading one does no harm."""
        if around.fs is None or not around.reserved:
            return False
        own = {identity for form in ref.forms if (identity := _identity(around.fs, form))}
        if own and not linked:
            linked.append(around.fs.identities(around.reserved, MOST_FILES))
        return bool(own) and (linked[0] is None or bool(own & linked[0]))

    def why(action: Action) -> str:
        if action.path is not None:
            if touches(action.path, around.within):
                return "files"
            changes = bool(action.kinds & WRITE_KINDS)
            if (changes or not action.kinds) and hard_linked(action.path):
                return "files"
            if (
                changes
                and action.path.reach in BELOW
                and action.role is not Role.MENTION
                and holds(action.path, around)
            ):
                return "files"
        elif action.command is not None:
            return runs_policyd(action.command)
        return ""

    return tuple([replace(action, guarded=reason) if (reason := why(action)) else action for action in actions])


def touches(ref: PathRef, within: tuple[str, ...]) -> bool:
    """Say whether any form of `ref` is, or lies in, one of these places (each with a slash at its end)."""
    if ref.folded:
        within = tuple([own.casefold() for own in within])
    return any(f"{form.casefold() if ref.folded else form}/".startswith(within) for form in ref.forms)


def holds(ref: PathRef, around: Surroundings) -> bool:
    """Say whether the tree at `ref` holds something of policyd's that exists; only for what changes a whole tree.

    What only reads a tree is not checked: otherwise every `grep -r` of a project would need a person.
    """
    inner = (own for own in around.reserved for form in ref.forms if own.startswith(form.rstrip("/") + "/"))
    return any(around.fs is None or _identity(around.fs, own) is not None for own in inner)


def identities(places: Iterable[str], most: int, fs: Filesystem) -> frozenset[tuple[int, int]] | None:
    """Return what `fs.identities` would, for a file system that has no quicker way."""
    found: set[tuple[int, int]] = set()
    todo, looked = list(places), 0
    while todo:
        place, looked = todo.pop(), looked + 1
        if not fs.is_dir(place):
            identity = _identity(fs, place)
            found |= {identity} if identity else set()
            continue
        names = fs.listing(place)
        if names is None or looked + len(todo) + len(names) > most:
            return None
        todo += [f"{place.rstrip('/')}/{name}" for name in names]
    return frozenset(found)


def _identity(fs: Filesystem, path: str) -> tuple[int, int] | None:
    try:
        return fs.identity(path)
    except OSError:
        return None
