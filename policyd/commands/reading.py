"""From a shell text, or an argument vector, to everything it would do.

Rules of this module:

1. What was read once is kept (bounded): the same text in the same place reads the same.
2. Text for zsh is text for bash where `zsh` finds no difference; else it is read as bash for strict rules and is
   opaque. Text for other shells is opaque unless it is as plain as `foreign` wants it, its plain words are seen by
   strict rules.
3. No cap and no fault of a parser takes away what was found before it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from functools import lru_cache

from msgspec.structs import replace

from policyd.commands.dialects import foreign
from policyd.commands.files import links
from policyd.commands.files.assigned import named
from policyd.commands.files.ondisk import installed
from policyd.commands.files.operands import uses
from policyd.commands.lexing.plain import constant, split
from policyd.commands.lexing.rough import pieces
from policyd.commands.lexing.run import LENGTH, PARTS, WORDS, FullError, Run, told
from policyd.commands.lexing.source import odd_characters
from policyd.commands.nested.wrapper_programs import without_text
from policyd.commands.shell.execute import MORE, Call, is_special, simple
from policyd.commands.shell.flat import script
from policyd.commands.state import PLACES, State
from policyd.model import Assignment, Filesystem, Reading, SimpleCommand, Word

_KEPT = 2_048
_KEPT_LENGTH = 4_096
_BLANKS = " \t\n"
_TOPLEVEL = "--show-toplevel"
_BASH = frozenset({"bash", "sh", "dash", "ksh", "ash", ""})


def read(text: str, *, cwd: tuple[str, ...], home: str, shell: str = "bash", fs: Filesystem | None = None) -> Reading:
    """Read a shell text into the simple commands it would run, with their files and URLs.

    Args:
        text: what the shell is given.
        cwd: every absolute directory it may start in; empty = unknown.
        home: the absolute home directory.
        shell: which shell reads it; a path counts by its name.
        fs: asked what an operand is, where that decides what is done to it.
    """
    above = _above(cwd, fs) if _TOPLEVEL in text else ()
    look = _kept if len(text) <= _KEPT_LENGTH else _last
    return _looked(look(text, cwd, home, shell, above), home, fs)


def _above(cwd: tuple[str, ...], fs: Filesystem | None) -> tuple[str, ...]:
    """Return every directory in which the repository around `cwd` may begin, and `cwd`; none: that cannot be told.

    All from `cwd` up to the last that looks like one: what is nearer may be none, or be made in between.
    """
    if fs is None or len(cwd) != 1:
        return ()
    try:
        places = [fs.resolve(cwd[0])]
    except OSError:
        return ()
    while places[-1] != "/":
        places.append(posixpath.dirname(places[-1]))
    last = -1
    for number, place in enumerate(places):
        found = fs.is_dir(posixpath.join(place, ".git"))
        if found is None:
            return ()
        if found or fs.identity(posixpath.join(place, ".git")) is not None:
            last = number
    found_places = tuple(dict.fromkeys((*cwd, *places[: last + 1])))
    return found_places if len(found_places) <= PLACES else ()


def _looked(bare: Reading, home: str, fs: Filesystem | None) -> Reading:
    """Return the reading with what lies where it runs, and the files and URLs that the words of its commands name."""
    reading = _filled(bare, home, fs)
    commands = bare.commands if fs is None else installed(reading, fs)
    return reading if commands is bare.commands else _filled(replace(bare, commands=commands), home, fs)


def _filled(bare: Reading, home: str, fs: Filesystem | None) -> Reading:
    """Return the reading with the files and URLs that the words of its commands name."""
    files, urls, reasons = list(bare.files), list(bare.urls), dict.fromkeys(bare.opaque)
    for index, command in enumerate(bare.commands):
        for more_files, more_urls, more_reasons in (
            uses(without_text(command) if command.idle and not bare.opaque else command, index, home=home, fs=fs),
            *((named(command),) if command.env or command.inner is not None else ()),
        ):
            files += more_files
            urls += more_urls
            reasons.update(dict.fromkeys(more_reasons))
        if len(files) > PARTS or len(urls) > PARTS:
            del files[PARTS:], urls[PARTS:]
            reasons[f"the command names more than {PARTS} files; the rest was not looked at"] = None
            break
    reasons.update(dict.fromkeys(links.hidden(bare.commands, files, fs)))
    if bare.backs and fs is not None:
        reasons.update(dict.fromkeys(_elsewhere(bare.backs, fs)))
    return Reading(bare.commands, tuple(files), tuple(urls), told(reasons))


def _elsewhere(backs: tuple[str, ...], fs: Filesystem) -> Iterator[str]:
    """Yield what `cd ../x` may be where it is not there, and a link leads `..` to another `x`."""
    for spelled in backs:
        place = posixpath.normpath(spelled)
        try:
            there = fs.is_dir(place) or fs.resolve(spelled) == fs.resolve(place)
        except OSError:
            there = False
        if not there:
            yield f"`cd` to `{place}`, which is not there, may lead through a link"


@lru_cache(_KEPT)
def _kept(text: str, cwd: tuple[str, ...], home: str, shell: str, above: tuple[str, ...]) -> Reading:
    return _read(text, cwd, home, shell, above)


@lru_cache(1)
def _last(text: str, cwd: tuple[str, ...], home: str, shell: str, above: tuple[str, ...]) -> Reading:
    """Read a long text; who asks where it leads asks what it does as well."""
    return _read(text, cwd, home, shell, above)


def _read(text: str, cwd: tuple[str, ...], home: str, shell: str, above: tuple[str, ...]) -> Reading:
    """Return the commands of a text, with the files of its redirections only."""
    usual = shell == "bash" and len(text) <= LENGTH
    words = split(text) if usual else None
    if words is not None and len(words) <= WORDS and not is_special(words[0].text.rpartition("/")[2], words):
        return Reading((SimpleCommand(words, text, cwd=cwd),))
    run = Run()
    state = State(home, cwd, told=run.opaque, backs=run.backs, start=cwd, above=above)
    try:
        if words is not None:
            _called(run, state, Call(words, text))
        elif usual and text.strip(_BLANKS):
            _script(run, state, text)
        else:
            _parse(run, state, text, shell.rpartition("/")[2])
    except FullError as full:
        run.opaque(f"the command is {full}; the rest was not read")
    except RecursionError:
        run.opaque("the command is nested too deeply; the rest was not read")
    return run.reading()


def _called(run: Run, state: State, call: Call) -> None:
    simple(run, state, call, script)


def _parse(run: Run, state: State, text: str, shell: str) -> None:
    if not text.strip(_BLANKS):
        run.opaque("the command is empty")
        return
    if len(text) > LENGTH:
        run.opaque(f"the command is longer than {LENGTH // 1024} KiB; the rest was not read")
        text = text[:LENGTH]
    why = _difference(text) if shell == "zsh" else ""
    state.picky = shell == "zsh"
    if shell in _BASH or (shell == "zsh" and not why):
        state.lesser = shell not in {"bash", "zsh", ""}
        _script(run, state, text)
        return
    told = foreign.plain(text, shell)
    if told is not None:
        _foreign(run, state, told, shell.lower().removesuffix(".exe"))
        return
    run.opaque(why or f"text for {shell} is not parsed")
    run.strict = True
    if shell == "zsh":
        _script(run, state, text)
    _rough(run, state, text, shell.lower().removesuffix(".exe"))


def _difference(text: str) -> str:
    from policyd.commands.dialects.zsh import difference

    return difference(text)


def _foreign(run: Run, state: State, told: list[tuple[Word, ...]], shell: str) -> None:
    """Read plain commands of another shell, under every name they have."""
    for words in told:
        text = " ".join([word.text for word in words])
        first = len(run.commands)
        _called(run, state.fork(), Call(words, text, via=(shell,)))
        run.commands[first] = replace(run.commands[first], idle=False)
        run.commands += [
            SimpleCommand(other, text, cwd=state.cwd, via=(shell,), idle=True) for other in foreign.others(words)
        ]


def _script(run: Run, state: State, text: str) -> None:
    try:
        script(run, text, state, ())
    except FullError as full:
        run.opaque(f"the command is {full}; the rest was not read")
        run.strict = True
        _rough(run, state, text)


def _rough(run: Run, state: State, text: str, shell: str = "") -> None:
    """Add the plainly readable words, for strict rules only; under every name they have in another shell."""
    text, _ = odd_characters(text)
    run.depth = 0
    for words in pieces(text):
        for seen in (words, *(foreign.others(words) if shell in foreign.SHELLS else ())):
            simple(run, state.fork(), Call(seen, " ".join([word.text for word in seen])), script)


def read_argv(
    argv: tuple[str, ...],
    env: Mapping[str, str],
    *,
    cwd: tuple[str, ...],
    home: str,
    fs: Filesystem | None = None,
) -> Reading:
    """Read an argument vector that is executed without a shell, with its environment as assignments.

    The program gets the words as they are; a shell or wrapper among them is read as in `read`.
    """
    run = Run()
    if not argv or not argv[0]:
        run.opaque("the command is empty")
        return run.reading()
    rest: tuple[Word, ...] = ()
    if sum(map(len, argv)) > LENGTH:
        run.opaque(f"the command is longer than {LENGTH // 1024} KiB; the rest was not read")
        argv, rest = tuple(_fitting(argv)), (MORE,)
    for word in argv:
        reason = odd_characters(word)[1]
        if reason:
            run.opaque(reason)
    assignments = tuple(Assignment(name, constant(value), exported=True) for name, value in env.items())
    call = Call((*map(constant, argv), *rest), " ".join(argv), assignments)
    try:
        above = _above(cwd, fs) if any(_TOPLEVEL in word for word in argv) else ()
        _called(run, State(home, cwd, told=run.opaque, backs=run.backs, start=cwd, above=above), call)
    except FullError as full:
        run.opaque(f"the command is {full}; the rest was not read")
    except RecursionError:
        run.opaque("the command is nested too deeply; the rest was not read")
    return _filled(run.reading(), home, fs)


def _fitting(argv: tuple[str, ...]) -> Iterator[str]:
    """Yield the first words that are `LENGTH` characters together, at least one."""
    room = LENGTH
    for at, word in enumerate(argv):
        room -= len(word)
        if room < 0:
            if not at:
                yield word[:LENGTH]
            return
        yield word
