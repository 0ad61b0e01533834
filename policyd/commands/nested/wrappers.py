"""What a wrapper runs: `timeout 5 rm x`, `sudo -u kim rm x`, `find . -exec rm {} +`, `bash -c 'rm x'`.

Rules of this module:

1. Options come from `wrapper_table`; with one that is not listed both readings are given and the wrapper is opaque.
2. What cannot be told (a script that is not constant, a program that is read from a pipe) has its reason in words.
   A word before the program that may become several words may bring a program of its own (`timeout $T ls`).
3. Nothing is decided here about who may see the inner command: `Inner` says how it was reached.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from policyd.commands.argv.options import becomes_several
from policyd.commands.lexing.plain import constant
from policyd.commands.lexing.plainwords import KEYWORDS
from policyd.commands.nested.inner import (
    MORE_INPUT,
    Inner,
    Unwrapped,
    Words,
    constant_text,
    joined,
    replaced,
    scripts,
)
from policyd.commands.nested.wrapper_options import Options, read_options
from policyd.commands.nested.wrapper_programs import OTHERS, interpreter, is_input, language
from policyd.commands.nested.wrapper_table import (
    ALL,
    FEEDS,
    INTERPRETERS,
    SCRIPT_OPTIONS,
    SUBCOMMANDS,
    WRAPPERS,
    Wrapper,
)
from policyd.model import CONST, UNKNOWN, Assignment, Word

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=(.*)", re.DOTALL)
_ANY_NAME = re.compile(r"([^=]*)()=(.*)", re.DOTALL)
"""What `env` takes for one: a name that no shell would, too."""
_LOADER = re.compile(r"ld(?:-linux.*|-musl.*|64)?\.so(?:\.\d+)*").fullmatch
_WORDS = frozenset({"time", "coproc"})
"""Wrappers that are words of the shell."""
_ENVIRONMENTS = frozenset({"env", "genv"})
_OPENING = KEYWORDS | {"{", "!", "[["}


def marks(name: str) -> frozenset[str] | None:
    """Return the words with which a program of this name may run something written among its words.

    None: it never does; none at all: whatever its words are.
    """
    if name in _GIT_LIKE:
        return _GIT_LIKE[name]
    special = (
        name in WRAPPERS
        or name in OTHERS
        or name in SCRIPT_OPTIONS
        or name in FEEDS
        or language(name) in INTERPRETERS
        or _LOADER(name) is not None
    )
    return frozenset() if special else None


def unwrap(name: str, argv: Words, *, fed: str, files: Words = ()) -> Unwrapped:
    """Return what the command `argv`, whose program is called `name`, runs beside itself.

    `files`: those whose names it is fed, each with a NUL behind it, where they are known.
    """
    found = Unwrapped()
    if name in FEEDS and (fed or any(map(is_input, argv[1:]))):
        found.reasons.append(f"`{name}` runs what it reads from its input")
    if name in WRAPPERS:
        named = name == "setarch" and bool(argv[1:]) and not (constant_text(argv[1]) or "-").startswith("-")
        _wrapper(name, WRAPPERS[name], argv[1 + named :], found, files)
    elif name in OTHERS:
        OTHERS[name](name, argv[1:], found, fed)
    elif name in SCRIPT_OPTIONS:
        scripts(name, SCRIPT_OPTIONS[name], argv[1:], found)
    elif _LOADER(name):
        _wrapper(name, Wrapper(valued=frozenset({"--library-path", "--preload", "--argv0"})), argv[1:], found)
    elif language(name) in INTERPRETERS:
        interpreter(name, argv[1:], found, fed)
    if name in _HEADS:
        _subcommand(name, argv[1:], found)
    return found


# ---- wrappers --------------------------------------------------------------------------------------


def _wrapper(name: str, spec: Wrapper, words: Words, found: Unwrapped, files: Words = ()) -> None:
    options = read_options(spec, words)
    if options.empty and options.known:
        return
    if not options.known:
        found.reasons.append(f"an option of `{name}` is not known, so what it runs may be another word")
    if name in _WORDS and any(map(_compound, options.rest)):
        found.reasons.append(f"`{name}` stands before more than a simple command")
    scripted = scripts(name, spec.scripts, words, found) if spec.scripts else False
    values = options.values
    place = next((value for option, value in values if option in spec.places), None) if values else None
    if name == "env":
        _split_string(options, found)
    trims = bool(options.names)
    inners = [inner for rest in options.rest if (inner := _command(name, spec, rest, place, trims)) is not None]
    loose = _loose(words, inners, spec)
    if loose is not None:
        found.reasons.append(f"`{loose.text}` may become several words, and `{name}` may run one of them")
    if not inners and not scripted and spec.shell:
        found.reasons.append(f"`{name}` starts a shell, which runs what it is given")
    if not inners and spec.here and spec.assigns and any(options.rest):
        found.reasons.append(f"`{name}` stands before assignments")
    if not inners or spec.skip == ALL:
        return
    if spec.transparent and options.plain and options.known and loose is None:
        found.transparent = inners[0]
        return
    if spec.transparent and options.known and loose is None:
        found.reasons.append(f"`{name}` has an option that does more than run the command behind it")
    handed = _handed(inners[0], options, files) if files and name in _XARGS and _takes_each(options) else []
    found.inners += handed or [_fed(inner, spec, options) for inner in inners]


def _loose(words: Words, inners: list[Inner], spec: Wrapper) -> Word | None:
    """Return a word that may become several in front of what a wrapper runs; anywhere, where that is put together."""
    for inner in inners:
        for word in words if spec.joined else words[: len(words) - len(inner.argv)]:
            if becomes_several(word):
                return word
    return None


def _command(name: str, spec: Wrapper, rest: Words, place: Word | None, trims: bool) -> Inner | None:
    env: list[Assignment] = []
    if name in _WORDS:
        rest = _braced(rest)
    while spec.assigns and rest and (pair := _assignment(rest[0], name)) is not None:
        env.append(pair)
        rest = rest[1:]
    rest = rest[spec.skip :]
    if spec.skip and rest and constant_text(rest[0]) == "--":
        rest = rest[1:]
    if not rest or (spec.scripts and constant_text(rest[0]) in spec.scripts):
        return None
    if not spec.joined:
        return Inner(name, rest, None, tuple(env), place, spec.away, spec.here, trims=trims)
    return Inner(name, (), joined(rest), tuple(env), place, spec.away, spec.here, trims=trims)


def _compound(rest: Words) -> bool:
    """Say whether words begin with what opens a compound command."""
    return not _OPENING.isdisjoint([word.text for word in rest[:3] if word.kind is CONST])


def in_shell(name: str) -> bool:
    """Say whether what the wrapper `name` runs, runs in this very shell."""
    return name in WRAPPERS and WRAPPERS[name].here


def _braced(rest: Words) -> Words:
    """Return the first command of `time { a; }`, `time ! a` and `coproc NAME { a; }`."""
    if len(rest) > 1 and constant_text(rest[1]) == "{":
        rest = rest[1:]
    while rest and constant_text(rest[0]) in {"{", "!", "time"} and len(rest) > 1:
        rest = rest[1:]
    return rest


def _assignment(word: Word, wrapper: str) -> Assignment | None:
    """Return what `name=value` sets, or `name+=value` behind a wrapper that is a word of the shell."""
    text = word.text if word.kind is CONST else word.prefix
    named = _ANY_NAME if wrapper in _ENVIRONMENTS else _ASSIGNMENT
    found = named.fullmatch(text) if "=" in text else None
    if found is None or (found[2] and wrapper not in _WORDS):
        return None
    value = constant(found[3]) if word.kind is CONST and not found[2] else Word(word.text, UNKNOWN)
    return Assignment(found[1], value, exported=True)


def _fed(inner: Inner, spec: Wrapper, options: Options) -> Inner:
    """Add the words that `xargs` and its kin read."""
    strict = len(options.rest) > 1
    if not spec.input:
        return _with(inner, inner.argv, strict=True) if strict else inner
    marks = [value.text for option, value in options.values if option in {"-I", "-J", "--replace"} and value.text]
    argv = replaced(inner.argv, (*marks, "{}")) if inner.argv else ()
    return _with(inner, (*argv, MORE_INPUT) if argv and not marks else argv, strict=strict)


_XARGS = frozenset({"xargs", "gxargs"})
_EACH = frozenset({"-0", "--null"})
_MANNERS = frozenset(
    "-n -P -t -x -I --max-args --max-procs --verbose --exit -r --no-run-if-empty".split()  # noqa: SIM905
)
"""Options of `xargs` that change nothing of the words it reads."""
_REPLACED = 5
"""Words in which every `xargs` puts what it reads."""


def _takes_each(options: Options) -> bool:
    """Say whether what `xargs` reads is divided at every NUL, and nowhere else."""
    return options.known and bool(options.names & _EACH) and options.names <= _EACH | _MANNERS


def _handed(inner: Inner, options: Options, files: Words) -> list[Inner]:
    """Return what `xargs` runs with the files it is told of, and, where it may be told of none, without."""
    marks = [value for option, value in options.values if option == "-I"]
    if marks:
        mark = constant_text(marks[-1])
        if not mark or sum(mark in word.text for word in inner.argv) > _REPLACED:
            return []
        return [_with(inner, tuple(file for word in inner.argv for file in _put(word, mark, files)))]
    bare = [] if options.names & {"-r", "--no-run-if-empty"} else [_with(inner, inner.argv, alone=True)]
    return [_with(inner, (*inner.argv, *files)), *bare]


def _put(word: Word, mark: str, files: Words) -> Words:
    return files if constant_text(word) == mark else replaced((word,), (mark,))


def _with(inner: Inner, argv: Words, *, strict: bool = False, alone: bool = False) -> Inner:
    return replace(inner, argv=argv, strict=strict, alone=alone)


def _split_string(options: Options, found: Unwrapped) -> None:
    """`env -S 'rm x'`: the words are in one string."""
    for option, value in options.values:
        if option in {"-S", "--split-string"}:
            rest = options.rest[0] if options.rest else ()
            found.reasons.append("`env -S` splits a string into the command it runs")
            found.inners.append(Inner("env", (), joined((value, *rest)), strict=True))


def _subcommand(name: str, words: Words, found: Unwrapped) -> None:
    """`uv run rm x`: a wrapper that is a subcommand, wherever one of its names stands: before it may be a value."""
    texts = [word.text if word.kind is CONST else "" for word in words]
    for (program, sub), spec in SUBCOMMANDS.items():
        parts = sub.split()
        if program != name:
            continue
        for at in range(min(len(texts), 6)):
            if texts[at : at + len(parts)] == parts:
                _wrapper(f"{name} {sub}", spec, words[at + len(parts) :], found)


_HEADS = frozenset(program for program, _ in SUBCOMMANDS)
_GIT_LIKE = {
    name: frozenset(sub.split()[0] for program, sub in SUBCOMMANDS if program == name) for name in _HEADS - {"git"}
} | {"git": frozenset({"bisect", "submodule", "rebase", "filter-branch"})}
"""Programs that run other programs by a subcommand only."""
