"""What programs do with their words: one table, `policyd/sets/programs*.toml`, and how to look things up in it.

Rules of this module:

1. A program is found by its name only; where it lies is a question of patterns, not of knowledge.
2. Options of a program that are not in the table are unknown, never harmless.
3. Options before a subcommand are the program's; a subcommand knows its own and, unless it says
   `apart = true`, those of the program too.

A table entry holds: `source` (where its content was read), `options` (notation of `options.py`), `operands` (roles in
order, `*` behind the one that repeats: `data read*`, `read* edit`), `empty` (what is read without operands), `reach`
of its operands, `deep` (options that make it reach content), `instead` (options that stand in for the first operand),
`role` (`reader` carries reads, `writer` carries what its operands say, `runner` runs what it is given), `check` (a
named checker of `scripts.py`), `posix`, `dash`, `sub`, and the examples `match`, `not_match`, `files`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import cast

from policyd.commands.options import Option, Syntax, options
from policyd.model import Word, WordKind

Entry = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Program:
    """A program or one of its subcommands."""

    name: str
    source: str = ""
    role: str = ""
    """reader, writer, runner; empty = other."""
    syntax: Syntax = field(default_factory=Syntax)
    operands: tuple[str, ...] = ()
    empty: str = ""
    """What it reads without operands, as a path; empty = standard input or nothing."""
    reach: str = "entry"
    deep: frozenset[str] = frozenset()
    instead: frozenset[str] = frozenset()
    check: str = ""
    subs: Mapping[str, Program] = field(default_factory=dict)
    examples: Mapping[str, object] = field(default_factory=dict)

    @property
    def can_harm(self) -> bool:
        """Whether any of its options writes or runs something."""
        return any(option.unsafe for option in self.syntax.options.values())


def _text(entry: Entry, key: str, default: str = "") -> str:
    return cast("str", entry.get(key, default))


def _names(entry: Entry, key: str) -> tuple[str, ...]:
    return tuple(_text(entry, key).split())


def _syntax(entry: Entry, above: Mapping[str, Option]) -> Syntax:
    table = {**above, **options(_text(entry, "options"))}
    return Syntax(table, bool(entry.get("posix")), bool(entry.get("dash")), known=True)


def _program(name: str, entry: Entry, above: Program | None = None) -> Program:
    inherit = above is not None and not entry.get("apart")
    syntax = _syntax(entry, above.syntax.options if above is not None and inherit else {})
    here = Program(
        name,
        _text(entry, "source", above.source if above else ""),
        _text(entry, "role", above.role if above else ""),
        syntax,
        _names(entry, "operands"),
        _text(entry, "empty"),
        _text(entry, "reach", "entry"),
        frozenset(_names(entry, "deep")),
        frozenset(_names(entry, "instead")),
        _text(entry, "check"),
        examples={key: entry[key] for key in ("match", "not_match", "files") if key in entry},
    )
    subs: dict[str, Program] = {}
    for key, value in cast("Mapping[str, Entry]", entry.get("sub", {})).items():
        sub = _program(f"{name} {key}", value, here)
        subs.update(dict.fromkeys((key, *_names(value, "names")), sub))
    return replace(here, subs=subs)


@cache
def _entries() -> Mapping[str, tuple[str, Entry]]:
    found: dict[str, tuple[str, Entry]] = {}
    for file in sorted(resources.files("policyd.sets").iterdir(), key=lambda item: item.name):
        if not (file.name.startswith("programs") and file.name.endswith(".toml")):
            continue
        for name, entry in tomllib.loads(file.read_text("utf-8")).items():
            found.update(dict.fromkeys((name, *_names(entry, "names")), (name, entry)))
    return found


@cache
def find(name: str) -> Program | None:
    """Return what is known of the program called `name`, None for a stranger."""
    item = _entries().get(name)
    return _program(*item) if item is not None else None


def known() -> tuple[str, ...]:
    """Return the name of every entry, aliases left out."""
    return tuple(dict.fromkeys(name for name, _ in _entries().values()))


@dataclass(frozen=True, slots=True)
class Called:
    """A program with the subcommand it was called with."""

    program: Program
    path: tuple[str, ...]
    """The subcommand words, empty without."""
    before: tuple[Word, ...]
    """The words between the program and its last subcommand word, those of the path left out."""
    after: tuple[Word, ...]
    """The words behind."""
    outer: Program
    """The program itself, whose options stand in `before`."""


def called(name: str, words: tuple[Word, ...]) -> Called | None:
    """Return the program `name` with the deepest subcommand its `words` name, None for a stranger."""
    outer = find(name)
    if outer is None:
        return None
    path: list[str] = []
    before: list[Word] = []
    program, rest = outer, words
    while program.subs:
        index = first_operand(program.syntax, rest)
        if index is None or rest[index].kind is not WordKind.CONST or rest[index].text not in program.subs:
            break
        path.append(rest[index].text)
        before.extend(rest[:index])
        program, rest = program.subs[rest[index].text], rest[index + 1 :]
    return Called(program, tuple(path), tuple(before), rest, outer)


def first_operand(syntax: Syntax, words: tuple[Word, ...]) -> int | None:
    """Return the index of the first word that is no option and no option's value."""
    position = 0
    while position < len(words):
        text = words[position].text if words[position].kind is WordKind.CONST else "x"
        if not text.startswith("-") or text == "-":
            return position
        option = syntax.options.get(text) or syntax.options.get("-" + text[-1:] if text[1:2] != "-" else "")
        position += 2 if option is not None and option.takes_next else 1
    return None
