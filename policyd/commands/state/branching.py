"""`if`, `for`, `while`: what may have happened before, between and after, however the text was taken apart.

Rules of this module:

1. A loop over constants and globs is read once a value, its variable known; any other loop with its variable unknown.
   For a glob its body may run any number of times.
2. What a body sets or tampers with counts for its beginning too: a loop whose first reading changed something is read
   a second time from there.
3. After branches only that is known which is the same on every way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from policyd.commands.state import LIST, NUMBER, Cwd, Pair, State, met, union
from policyd.model import CONST, UNKNOWN, Word

Read = Callable[[], Pair]
"""Reads a list where `state.cwd` is; returns the directories after success and after failure."""

_JUMPS = re.compile(r"\b(?:break|continue)\b").search


def branches(state: State, segments: Iterable[tuple[str, Read]]) -> Pair:
    """Read the lists of `if … elif … else … fi`, each given with the word before it."""
    fall, success, other = state.cwd, state.cwd, False
    ends: list[Cwd] = []
    names: list[dict[str, Word | None]] = []
    for keyword, read in segments:
        if keyword in {"if", "elif"}:
            state.cwd = fall
            success, fall = read()
        else:
            before = dict(state.names)
            state.cwd = success if keyword == "then" else fall
            ends.append(union(*read()))
            names.append(state.names)
            state.names = before
            other = other or keyword == "else"
    if not other:
        ends.append(fall)
    return after(state, ends, names)


def after(state: State, ends: list[Cwd], names: list[dict[str, Word | None]]) -> Pair:
    """Return the directories after branches that end in `ends`, keeping the values that are the same in all."""
    for ending in names:
        state.join(ending)
    result = ends[0]
    for end in ends[1:]:
        result = union(result, end)
    return result, result


def each(state: State, name: str, words: Sequence[Word], text: str, body: Read) -> Pair:
    """Read the loop `text`, whose variable takes the values `words`."""
    if words and all(word.kind is not UNKNOWN for word in words):
        pair = unrolled(state, name, words, text, body)
        state.expand(words)
        return pair
    return repeat(state, text, body)


def unrolled(state: State, name: str, words: Sequence[Word], text: str, body: Read) -> Pair:
    """Read a body once for every value; over constants, what it sets is set."""
    fold, start = state.fold, state.cwd
    jumps, jumped = _JUMPS(text) is not None, state.jumps
    state.fold = fold and not jumps
    for word in words:

        def once(word: Word = word) -> Pair:
            if fold:
                state.bind(name, word)
            pair = body()
            state.names[name] = None
            return pair

        state.cwd = union(*(once() if word.kind is CONST else repeat(state, text, once)))
        if (jumps or state.jumps != jumped) and state.cwd != start:
            state.cwd = ()
        if state.jumps != jumped:
            state.names, state.fold = dict.fromkeys(state.names), False
    state.fold = fold and state.fold_kept
    return state.cwd, state.cwd


def repeated(state: State, text: str, condition: Read, body: Read, *, until: bool) -> Pair:
    """Read `while … do … done` or `until …`, which `text` is."""

    def once() -> Pair:
        success, failure = condition()
        if until:
            success, failure = failure, success
        state.cwd = success
        return union(failure, union(*body())), failure

    return repeat(state, text, once)


def _may_set(text: str, name: str) -> bool:
    name = name.removesuffix(LIST)
    return re.search(rf"(?<![$\w{{]){name}\b|\{{{name}:?=", text) is not None


def repeat(state: State, text: str, once: Read) -> Pair:
    """Read the loop `text`, whose body runs any number of times."""
    start, fold, jumps = state.cwd, state.fold, state.jumps
    state.fold = fold and _JUMPS(text) is None
    set_there = [name for name in state.names if _may_set(text, name)]
    state.names.update({name: met(state.names[name], NUMBER) for name in set_there})
    end, changed = _once(state, once)
    if changed or end != start or (state.fold and state.jumps != jumps):
        state.fold = False
        state.names.update(dict.fromkeys(set_there))
        state.cwd = start if end == start else ()
        end, changed = _once(state, once)
    if changed:  # something is set that is not called by its name: it may hand on what another holds
        state.names = dict.fromkeys(state.names)
        state.cwd = start if end == start else ()
        end, _ = _once(state, once)
    state.fold = fold and state.fold_kept
    result = union(start, end)
    return result, result


def _once(state: State, once: Read) -> tuple[Cwd, bool]:
    """Read a body and keep what is known at its beginning and at its end; return where it leaves the shell.

    Say too whether less is known behind it than before.
    """
    taint, before = (state.taint, state.tainted), dict(state.names)
    end = union(*once())
    kept = {name: value if met(state.names.get(name), value) == value else None for name, value in before.items()}
    changed = kept != before or (state.taint, state.tainted) != taint
    state.names = {**dict.fromkeys(state.names), **kept}
    return end, changed
