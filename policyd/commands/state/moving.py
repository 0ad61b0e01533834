"""Where `cd`, `pushd` and `popd` lead, and what the shell remembers of where it was.

Rules of this module:

1. What is remembered in a directory is known only if every way to it leaves the same behind: `State.trails` is one for
   all ways and shells of a text, and what two of them do not share is lost for good. Where a text begins nothing is
   known: a shell may have been used before.
2. What tells where it went may fail at that, after it went there.
3. Whoever sets `CDPATH`, `OLDPWD` or the stack by hand is not followed.
"""

from __future__ import annotations

import posixpath
import re

from policyd.commands.lexing.plain import constant
from policyd.commands.state import LOST, Cwd, Pair, State, Trail, enter, union
from policyd.model import CONST, MOVERS, UNKNOWN, Assignment, Word

Words = tuple[Word, ...]

MOVES = frozenset({"cd", "chdir"})
STACK = MOVERS - MOVES
"""Builtins that move by the stack of directories."""
_LEADS = frozenset({"CDPATH", "HOME", "OLDPWD", "PWD"})
"""Variables that say where `cd` leads."""
_MEMORY = frozenset({"CDPATH", "DIRSTACK", "OLDPWD"})
_BACK = (constant("-"),)
_STEPS_ONLY = frozenset({"", ".", ".."})
_TOPLEVEL = frozenset(Word(f'"$(git rev-parse --show-toplevel{quiet})"', UNKNOWN) for quiet in ("", " 2>/dev/null"))
"""Where the repository begins, in quotes: where there is none, `cd` stays where it is."""


def leads(name: str, words: Words, env: tuple[Assignment, ...], state: State) -> Cwd | None:
    """Return every directory that `cd` or its kin may lead to, `env` in front of it; None where it cannot be told."""
    if name in MOVES and words != _BACK:
        return _directory(words, env, state)
    if env or state.tainted or state.lesser or state.picky or not _MEMORY.isdisjoint(state.names):
        return None
    if name == "pushd" and words:
        return _directory(words, env, state) if _is_plain(words) else None
    if name == "popd" and words:
        return None
    found = dict.fromkeys(_remembered(name, state.trails.get(place, LOST)) for place in state.cwd)
    return tuple(found) if found and "" not in found else None


def move(name: str, words: Words, env: tuple[Assignment, ...], state: State) -> Pair:
    """Note what the builtin `name` leaves behind; return where its success and its failure leave the shell."""
    here, there = state.cwd, leads(name, words, env, state)
    if not there:
        return (), ()
    trails = state.trails
    before = [(place, trails.setdefault(place, LOST)) for place in here]
    if not before:
        trails.update(dict.fromkeys(there, LOST))
    for place, trail in before:
        left = (place, _stack(name, words, place, trail[1]))
        for reached in there if len(here) == 1 else _reached(name, words, place, trail, there):
            known = trails.setdefault(reached, left)
            trails[reached] = (
                known[0] if known[0] == left[0] else "",
                known[1] if known[1] == left[1] else (),
            )
    return there, union(here, there) if name in STACK or words == _BACK else here


def forget_stack(state: State) -> None:
    """Trust nothing of the stack any more."""
    state.trails.update({place: (before, ()) for place, (before, _) in state.trails.items()})


def _is_plain(words: Words) -> bool:
    return len(words) == 1 and words[0].kind is CONST and words[0].text[:1] not in {"", "-", "+"}


def _remembered(name: str, trail: Trail) -> str:
    """Return the directory that `cd -`, `popd` or a bare `pushd` leads to; empty: it is not known."""
    before, stack = trail
    return before if name in MOVES else stack[0] if stack else ""


def _stack(name: str, words: Words, place: str, stack: Cwd) -> Cwd:
    """Return the stack behind a move out of `place`."""
    if name in MOVES:
        return stack
    if name == "popd":
        return stack[1:]
    return (place, *(stack if words else stack[1:]))


def _reached(name: str, words: Words, place: str, trail: Trail, there: Cwd) -> Cwd:
    """Return where a move leads from `place`, which is one of several."""
    if words == _BACK or (name in STACK and not words):
        return (_remembered(name, trail),)
    return enter((place,), words[0].text) if _is_plain(words) else there


def _directory(words: Words, env: tuple[Assignment, ...], state: State) -> Cwd | None:
    """Return every directory that `cd` may lead to by its words."""
    if env and not _LEADS.isdisjoint([assignment.name for assignment in env]):
        return None
    if (state.physical or "PWD" in state.names) and [word for word in words if ".." in word.text]:
        return None
    if len(words) == 1 and words[0].kind is CONST and words[0].text[:1] != "-":
        known = not state.tainted and "CDPATH" not in state.names
        return _entered(state, words[0].text) if known else None
    rest = list(words)
    while rest and rest[0].kind is CONST and re.fullmatch(r"-[LPe@]+", rest[0].text):
        if "P" in rest.pop(0).text:  # a later `..` leads out of what a link points to
            return None
    if rest and rest[0].kind is CONST and rest[0].text == "--":
        rest.pop(0)
    if state.tainted or "CDPATH" in state.names:
        return None
    if not rest:
        home = state.lookup("HOME")
        return enter(state.cwd, home.text) if home is not None and home.kind is CONST else None
    target = rest[0]
    if target in _TOPLEVEL and len(words) == 1 and state.cwd == state.start and not state.taint:
        return state.above or None
    if len(rest) > 1 or target.kind is not CONST or target.text == "-":
        return None
    return _entered(state, target.text)


def _entered(state: State, text: str) -> Cwd | None:
    """Return where `cd` leads that is spelled so; if that is not there, it goes back by the directories themselves."""
    parts = text.split("/") if ".." in text else []
    if ".." in parts and not _STEPS_ONLY.issuperset(parts[parts.index("..") :]):
        state.backs.update(dict.fromkeys(posixpath.join(place, text) for place in state.cwd))
    return enter(state.cwd, text) or None
