"""What touches policyd itself: its files by any alias, its program, its processes.

A guarded action is at least an ask, whatever the rules say (the engine's floor); this module only marks. It errs on the
side of marking: a command that sends a signal and speaks of policyd, or signals every process, is marked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from policyd.actions.builder import Surroundings
from policyd.model import WRITE_KINDS, Action, Filesystem, PathRef, Reach, SimpleCommand, Word

PROGRAM = "policyd"
SIGNALLERS = frozenset(
    {
        "kill",
        "pkill",
        "killall",
        "killall5",
        "skill",
        "xkill",
        "fuser",
        "pgrep",
        "pidof",
        "systemctl",
        "service",
        "launchctl",
    }
)
EVERYONE = frozenset({"-1", "0"})
MOST_FILES = 256


def mark(actions: tuple[Action, ...], around: Surroundings) -> tuple[Action, ...]:
    """Return `actions` with `guarded` set on those that touch policyd."""
    linked: list[frozenset[tuple[int, int]]] = []

    def hard_linked(ref: PathRef) -> bool:
        """Say whether another name of one of policyd's files is changed or mentioned; reading one is no harm."""
        if around.fs is None or not around.reserved:
            return False
        own = {identity for form in ref.forms if (identity := _identity(around.fs, form))}
        if own and not linked:
            linked.append(identities(around.reserved, around.fs))
        return bool(own) and bool(own & linked[0])

    def why(action: Action) -> str:
        if action.path is not None:
            if touches(action.path, around.reserved):
                return "files"
            changes = bool(action.kinds & WRITE_KINDS)
            if (changes or not action.kinds) and hard_linked(action.path):
                return "files"
            if changes and action.path.reach is Reach.CONTENT and holds(action.path, around):
                return "files"
        elif action.command is not None:
            return runs_policyd(action.command)
        return ""

    return tuple(replace(action, guarded=reason) if (reason := why(action)) else action for action in actions)


def touches(ref: PathRef, reserved: Iterable[str]) -> bool:
    """Say whether any form of `ref` is one of `reserved`, or lies in it."""
    forms = tuple(form.casefold() for form in ref.forms) if ref.folded else ref.forms
    for own in reserved:
        mine = own.casefold() if ref.folded else own
        if any(form == mine or form.startswith(mine.rstrip("/") + "/") for form in forms):
            return True
    return False


def holds(ref: PathRef, around: Surroundings) -> bool:
    """Say whether the tree at `ref` holds something of policyd's that exists; asked of what changes a whole tree only.

    What only reads a tree is not asked: else every `grep -r` of a project would need a person.
    """
    inner = (own for own in around.reserved for form in ref.forms if own.startswith(form.rstrip("/") + "/"))
    return any(around.fs is None or _identity(around.fs, own) is not None for own in inner)


def identities(reserved: Iterable[str], fs: Filesystem) -> frozenset[tuple[int, int]]:
    """Return device and inode of the reserved files and of the files directly below the reserved directories."""
    places = list(reserved)
    for folder in tuple(places):
        places += [f"{folder.rstrip('/')}/{name}" for name in (fs.listing(folder) or ())[:MOST_FILES]]
    return frozenset(identity for place in places if not fs.is_dir(place) and (identity := _identity(fs, place)))


def _identity(fs: Filesystem, path: str) -> tuple[int, int] | None:
    try:
        return fs.identity(path)
    except OSError:
        return None


def runs_policyd(command: SimpleCommand) -> str:
    """Say which of policyd's things `command` (or what it wraps) runs or signals, `""` if none."""
    if command.inner is not None and (reason := runs_policyd(command.inner)):
        return reason
    if not command.argv:
        return ""
    name, words = _base(command.argv[0]), command.argv[1:]
    if name == PROGRAM or (name.startswith("python") and _module(words)):
        return "program"
    if name in SIGNALLERS and (PROGRAM in command.text or (name == "kill" and _everyone(words))):
        return "process"
    return ""


def _base(word: Word) -> str:
    return word.text.rsplit("/", 1)[-1]


def _module(words: tuple[Word, ...]) -> bool:
    texts = [word.text for word in words]
    return f"-m{PROGRAM}" in texts or any(pair == ("-m", PROGRAM) for pair in pairwise(texts))


def _everyone(words: tuple[Word, ...]) -> bool:
    """Say whether a `kill` reaches every process: a target of -1 or 0 behind the signal."""
    targets = [word.text for word in words]
    if targets and targets[0].startswith("-") and targets[0] not in {"--", "-s", "-n"}:
        targets = targets[1:] or targets
    return any(target in EVERYONE for target in targets)
