"""What one simple command adds to a reading: itself, what it runs, what it does to the shell.

Rules of this module:

1. A transparent wrapper's command becomes `inner`; any other wrapper's is one more command with `via`.
2. Shell text inside a command is read as a text of its own, whatever else is said about it.
3. A word that decides which program runs and is not constant makes the command opaque and is kept beside.
4. A shell that only reads a text given to it (`bash -lc TEXT`) needs no allow of its own: the text does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from policyd.commands.lexing.plainwords import NO_PROGRAM
from policyd.commands.lexing.run import SHOWN, WORDS, FullError, Run
from policyd.commands.lexing.source import Input
from policyd.commands.matching.patterns import plain_name
from policyd.commands.nested import wrappers
from policyd.commands.nested.inner import MORE_INPUT, Inner, Unwrapped, Words, base, unknown_script
from policyd.commands.nested.wrapper_programs import CONTAINERS
from policyd.commands.nested.wrapper_table import SHELLS
from policyd.commands.state import Cwd, Pair, State, builtins, enter
from policyd.commands.state.moving import leads
from policyd.commands.state.taint import TAINTS_ALL, loose
from policyd.commands.state.variables import HARMLESS
from policyd.model import CONST, MOVERS, UNKNOWN, Assignment, SimpleCommand, Word

MORE = Word("…", UNKNOWN, many=True)
"""Words that were not read."""
_CHAIN = 32
_UNSEEN = frozenset({""})
_MARKS_KEPT = 4_096
_PLACES_SHOWN = 4
_UNSHOWN: tuple[str | None, ...] = (None,)
_KEEPS_PREFIX = frozenset(
    [
        ":",
        ".",
        "break",
        "continue",
        "eval",
        "exec",
        "exit",
        "export",
        "readonly",
        "return",
        "set",
        "shift",
        "times",
        "trap",
        "unset",
    ]
)
"""Builtins after which a POSIX shell keeps the assignments in front of them."""
_DECLARES = frozenset({"declare", "local", "typeset"})
_TIMES = re.compile(
    r"(?:time|coproc)\s+(?:-\S+\s+)*+(?:[A-Za-z_]\w*\+?=[^\s$`]*+\s+)*+[A-Za-z_]\w*\+?=[^\s$`]*+[$`]"
).match
"""Assignments behind a word of the shell whose value is expanded: it is not divided."""
_FULL = frozenset({"bash -c", "rbash -c", "zsh -c"})
"""How texts are given to shells that read them as bash does; those for zsh were looked at as a whole."""


class Call(Struct):
    """One simple command about to run."""

    argv: Words
    source: str
    env: tuple[Assignment, ...] = ()
    via: tuple[str, ...] = ()
    fed: str = ""
    """`|`, or the source of what it is fed."""
    document: Input | None = None
    """The here-document or here-string it is fed."""
    files: Words = ()
    """The files whose names it is fed, each with a NUL behind it, where they are known."""
    behind: tuple[str, ...] = ()
    """The words in front of it, of the wrappers that run it."""


class _Level(Struct):
    argv: Words
    env: tuple[Assignment, ...]
    cwd: Cwd
    whole: bool = True
    """It is surely given all of `env`."""


Script = Callable[[Run, str, State, tuple[str, ...]], Pair]
"""Reads shell text: run, text, state, via."""

_MARKS: dict[str, frozenset[str] | None] = {}


def is_special(name: str, argv: Words) -> bool:
    """Say whether a program of this name, with these words, needs more than to be listed."""
    marks = _MARKS.get(name, _UNSEEN)
    if marks is _UNSEEN:
        if len(_MARKS) > _MARKS_KEPT:
            _MARKS.clear()
        marks = _MARKS[name] = frozenset() if name in builtins.BUILTINS or name in NO_PROGRAM else wrappers.marks(name)
    if marks is None:
        return False
    if not marks:
        return True
    return bool([word for word in argv if word.text in marks or word.kind is UNKNOWN])


@lru_cache(_MARKS_KEPT)
def _wraps(name: str) -> bool:
    """Say whether a program of this name may run something written among its words."""
    return bool(name) and wrappers.marks(name) is not None


def listed(
    run: Run,
    state: State,
    argv: Words,
    source: str,
    via: tuple[str, ...],
    fed: str,
    env: tuple[Assignment, ...] = (),
) -> int:
    """Add words that make a command which needs no more than to be listed; return its index, -1 where they do not."""
    head = argv[0]
    if head.kind is not CONST or len(argv) > WORDS:
        return -1
    name = head.text.rpartition("/")[2]
    if _MARKS.get(name, _UNSEEN) is not None and is_special(name, argv):
        return -1
    index = run.add(
        SimpleCommand(argv, source, env, state.taint, state.tainted, state.cwd, None, via, None, False, run.strict, fed)
    )
    state.expand(argv)
    return index


def simple(run: Run, state: State, call: Call, script: Script) -> tuple[int, Pair]:
    """Add a command and all it runs; return its index and the directories after success and failure."""
    if len(call.argv) > WORDS:
        call = _cut(run, call)
    state.expand(call.argv)
    head = call.argv[0]
    if head.kind is not CONST:
        return _unknown_program(run, state, call)
    text = head.text
    if not is_special(text.rpartition("/")[2], call.argv):
        return _ordinary(run, state, call)
    if text in builtins.BUILTINS and not _wraps(text):
        return _builtin(run, state, call, text)
    levels, found, here = _levels(run, state, call)
    if _TIMES(call.source) is not None:
        run.opaque(f"`{call.source[:SHOWN]}` sets a variable to one word, which would be several elsewhere")
    last = levels[-1]
    name = last.argv[0].text
    own = here and name in builtins.BUILTINS
    alike = found.alike and plain_name(last.argv[0]) in SHELLS
    index = _add(run, state, call, levels, name if own else "", alike)
    if found.reasons and call.document is not None:
        _document(run, state, call, script, base(last.argv[0]))
    pair = (state.cwd, state.cwd)
    if found.reasons and here and wrappers.in_shell(base(last.argv[0])):
        state.taint_all(found.reasons[0])
    for inner in found.inners:
        if inner.far:
            _far(run, state, index, inner, script)
            continue
        live = here and inner.here
        after = _inner(run, state if live else state.fork(), call, last, inner, script)
        pair = after if live else pair
    if own:
        after = builtins.apply(name, last.argv, last.env, state, run.opaque)
        pair = after if name != "eval" else ((), ()) if not found.inners else pair
        _prefixed(state, name, last.env)
    return index, pair


def _builtin(run: Run, state: State, call: Call, name: str) -> tuple[int, Pair]:
    """Add a builtin that runs nothing, `cd` once for every directory it may lead to; do what it does to the shell."""
    idle, places = False, _UNSHOWN
    if _is_clean(run, state, call.env):
        idle, places = builtins.is_idle(name, call.argv), _shown(state, name, call.argv, call.env)
    first = len(run.commands)
    for place in places:
        _ordinary(run, state, call, place, idle)
    pair = builtins.apply(name, call.argv, call.env, state, run.opaque)
    _prefixed(state, name, call.env)
    return first, pair


def _prefixed(state: State, name: str, env: tuple[Assignment, ...]) -> None:
    """Follow assignments in front of a builtin: a POSIX shell keeps some; what `declare` makes of one is lost."""
    for assignment in env:
        if name in _KEEPS_PREFIX:
            state.assign(assignment.name, None, plain=False)
        elif name in _DECLARES:
            state.bind(assignment.name, None)


def _cut(run: Run, call: Call) -> Call:
    """Return a command of very many words as its first ones, behind which any may stand."""
    run.opaque(f"a command has more than {WORDS} words; the rest was not read")
    return replace(call, argv=(*call.argv[:WORDS], MORE))


def _ordinary(run: Run, state: State, call: Call, place: str | None = None, idle: bool = False) -> tuple[int, Pair]:
    cwd = state.cwd
    command = SimpleCommand(
        call.argv,
        call.source,
        call.env,
        state.taint,
        state.tainted,
        cwd,
        None,
        call.via,
        place,
        idle,
        run.strict,
        call.fed,
    )
    return run.add(command), (cwd, cwd)


def _unknown_program(run: Run, state: State, call: Call) -> tuple[int, Pair]:
    run.opaque(f"the program in `{call.source[:60]}` is not constant")
    index, _ = _ordinary(run, state, call)
    state.taint_all("a program that is not constant may change the shell")
    return index, ((), ())


def _levels(run: Run, state: State, call: Call) -> tuple[list[_Level], Unwrapped, bool]:
    """Look through transparent wrappers; say what the last level runs and whether it is in this shell."""
    levels = [_Level(call.argv, call.env, state.cwd)]
    here = True
    while True:
        level = levels[-1]
        name = base(level.argv[0])
        found = wrappers.unwrap(name, level.argv, fed=call.fed, files=call.files) if _wraps(name) else Unwrapped()
        for reason in found.reasons:
            run.opaque(reason)
        inner = found.transparent
        if inner is None:
            return levels, found, here
        here = here and inner.here
        whole = level.whole and not inner.trims
        levels.append(_Level(inner.argv, level.env + inner.env, _place(inner, level.cwd), whole))
        if inner.argv[0].kind is not CONST:
            run.opaque(f"the program in `{call.source[:60]}` is not constant")
        if len(levels) > _CHAIN:
            raise FullError(f"more than {_CHAIN} wrappers around a command")


def _place(inner: Inner, cwd: Cwd) -> Cwd:
    if inner.away:
        return ()
    if inner.place is None:
        return cwd
    return enter(cwd, inner.place.text) if inner.place.kind is CONST else ()


def _add(run: Run, state: State, call: Call, levels: list[_Level], builtin: str, alike: bool) -> int:
    """Add the command, its levels one inside the other; `cd` once for every directory it may lead to.

    `alike`: it is `bash -lc TEXT`, and all it does is what the text does, which is read beside it.
    """
    last = levels[-1]
    if len(levels) == 1 and not builtin:
        return _ordinary(run, state, call, None, alike and _is_clean(run, state, last.env))[0]
    idle, places = False, _UNSHOWN
    if _is_clean(run, state, last.env):
        idle = builtins.is_idle(builtin, last.argv) if builtin else alike
        places = _shown(state, builtin, last.argv, last.env)
    first = -1
    for place in places:
        if len(levels) == 1:
            index, _ = _ordinary(run, state, call, place, idle)
            first = index if first < 0 else first
            continue
        command: SimpleCommand | None = None
        for level in reversed(levels):
            command = SimpleCommand(
                level.argv,
                call.source,
                level.env,
                state.taint,
                state.tainted,
                level.cwd,
                command,
                call.via,
                place,
                idle,
                run.strict,
                call.fed,
            )
        if command is not None:
            index = run.add(command)
            first = index if first < 0 else first
    return first


def _is_clean(run: Run, state: State, env: tuple[Assignment, ...]) -> bool:
    """Say whether nothing that was set, before or in front, means more to a builtin than its own words."""
    if state.tainted or state.taint or run.strict:
        return False
    return not env or all(one.name == "IFS" or loose(one.name) or one.name in HARMLESS for one in env)


def _shown(state: State, name: str, argv: Words, env: tuple[Assignment, ...]) -> tuple[str | None, ...]:
    """Return every directory that `cd` may lead to, if it is one."""
    places = leads(name, argv[1:], env, state) if name in MOVERS else None
    return places if places and len(places) <= _PLACES_SHOWN else _UNSHOWN


def _inner(run: Run, state: State, call: Call, level: _Level, inner: Inner, script: Script) -> Pair:
    """Read what a wrapper runs."""
    run.deeper()
    strict, via = run.strict, (*call.via, inner.via)
    run.strict = strict or inner.strict
    cwd = _place(inner, level.cwd)
    try:
        if inner.argv:
            if not inner.here:
                state.physical = state.physical or state.cwd != cwd
                state.cwd = cwd
            source = " ".join([word.text for word in inner.argv])
            env, fed = level.env + inner.env, "" if inner.alone else call.fed
            index, pair = listed(run, state, inner.argv, source, via, fed, env), (state.cwd, state.cwd)
            behind = _behind(call, level, inner.argv[:-1] if inner.argv[-1] is MORE_INPUT else inner.argv)
            if index < 0:
                within = Call(inner.argv, source, env, via, fed, call.document, (), behind)
                index, pair = simple(run, state, within, script)
            if behind:
                run.commands[index] = replace(run.commands[index], behind=behind)
                run.spend(len(behind))
            return pair
        first = len(run.commands)
        pair = _script(run, state, level, inner, (cwd, via), script)
        if not (inner.here and "$" in call.source):  # what is set here would say what such a text means
            _written_out(run, first, call, level)
        return pair
    finally:
        run.strict = strict
        run.depth -= 1


def _far(run: Run, state: State, index: int, inner: Inner, script: Script) -> None:
    """Note with a command what it runs elsewhere; what else that does, or may do, is not done here."""
    there = replace(run, commands=[], files=[], urls=[], reasons={}, documents=[], backs={})
    apart = State(state.home, (), told=there.opaque, backs=there.backs)
    call = Call(inner.argv, "")
    with suppress(FullError):  # whatever stands among its words is suspected besides
        _inner(there, apart, call, _Level(inner.argv, (), ()), inner, script)
    run.left, run.looks = there.left, there.looks
    run.commands[index] = replace(run.commands[index], far=tuple(there.commands))


def _behind(call: Call, level: _Level, argv: Words) -> tuple[str, ...]:
    """Return the words in front of `argv`, which a wrapper runs; none where it does not stand as it is run."""
    front = level.argv[: -len(argv)]
    if front + argv != level.argv or any(word.kind is not CONST for word in front):
        return ()
    return call.behind + tuple([word.text for word in front])


def _written_out(run: Run, first: int, call: Call, level: _Level) -> None:
    """Note for the commands from `first` on, which a text runs, with which words that was given to a wrapper."""
    if any(word.kind is not CONST for word in level.argv):
        return
    words = call.behind + tuple([word.text for word in level.argv])
    alone = len(run.commands) == first + 1
    run.spend(len(words))
    for index in range(first, len(run.commands)):
        found = run.commands[index]
        behind = _behind(call, level, found.argv) if alone and not found.behind else found.behind
        run.commands[index] = replace(found, behind=behind, texts=(*found.texts, words))


def _script(
    run: Run, state: State, level: _Level, inner: Inner, where: tuple[Cwd, tuple[str, ...]], script: Script
) -> Pair:
    word: Word | None = inner.script
    cwd, via = where
    inside = state
    if not inner.here:
        if inner.via == "trap":
            inside.taint_all(TAINTS_ALL["trap"])
            inside.cwd = ()
        else:
            inside = state.fresh(cwd)
            inside.lesser = inner.via not in _FULL
        less = not level.whole or len(via) > 1  # `sudo` and its kin take variables out
        inside.physical = inside.physical or less
        for assignment in level.env + inner.env:
            inside.assign(assignment.name, assignment.value, exported=True)
            if less:
                inside.bind(assignment.name, None)
    else:
        for assignment in level.env:  # it is seen in the text of `eval`, and only there
            state.bind(assignment.name, None)
    if word is None:
        return cwd, cwd
    if word.kind is CONST:
        return script(run, word.text, inside, via)
    run.opaque(f"the text that `{inner.via}` runs is not constant")
    run.strict = True
    script(run, unknown_script(word), inside, via)
    return (), ()


def _document(run: Run, state: State, call: Call, script: Script, name: str) -> None:
    """Read a here-document that an interpreter is fed as if it were its script."""
    if name not in SHELLS and name not in {"ssh", "su", "sudo", ".", "source", "chroot", "doas", "newgrp", *CONTAINERS}:
        return
    run.deeper()
    try:
        script(run, call.document.text if call.document is not None else "", state.fresh(state.cwd), (*call.via, name))
    finally:
        run.depth -= 1
