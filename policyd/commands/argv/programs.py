"""What programs do with their words: one table, `policyd/sets/programs*.toml`, and how to look things up in it.

Rules of this module:

1. A program is found by its name only; where it lies is a question of patterns, not of knowledge.
2. Options of a program that are not in the table are unknown, never harmless.
3. Options before a subcommand are the program's; a subcommand knows its own and, unless it says
   `apart = true`, those of the program too.

A table entry holds:

- `source`: where its content was read; `names`: other names of it; `like`: other subcommands that are as it is; `sub`:
  its subcommands, which hold the same keys
- `options`: in the notation of `options.py`; `with`: names of option groups of the program (`groups`)
- `operands`: their roles in order, `*` behind the one that repeats (`data read*`, `read* edit`); what is named `goal`
  is a file if it holds a `/`; `instead`: options that stand in for the first; `target`: the option that stands in for
  the last; `empty`: what is done to what without operands (`search .`)
- `reach` of the operands; `deep`, `shallow`: options that make it content, names; `deep_as`: their kind then;
  `hidden`: the options without which names with a leading dot below are skipped; `endings`: how the names of the files
  end, of those below, that it works on; a value of the role `endings` adds some. Values of the role `only` are
  patterns of the only names it works on, if nothing stands before them that leaves names out
- `role`: `reader` carries reads, `writer` what its operands say; `verb`: it changes something whatever its options
- `peek`: options that make it only read what it would write or remove, beside others that are known;
  `shallow` are then those of them that show names only; `modes`: options of which one takes another back, so that
  none of them is a `peek` beside another
- `fixes`: options with which it also writes what it checks
- `untold`: it changes files that no word names (see `Untold`)
- `listing`: options without which an operand makes something (`git branch NAME`); `check`: a checker of `scripts.py`
- `needs`: options one of which must be given, else it writes or runs something (`tsc --noEmit`, `bash -n`); `mixes`: on
  every system it takes options behind operands too
- `ordered`: on some systems options end at the first operand, so that behind one a value is an operand as well
- `beside`: settings that lie beside an operand may be code, which it runs
- `leads`: commands of its own that may be the first operand where the operands are arguments of a test runner
- `ats`: a word `@file` stands for the options in that file; `letters`: behind one dash each letter is an option, even
  where one before it takes a value (`jest -tu` is `-t -u`)
- `posix`, `dash`, `raw`, `bundle`: see `Syntax`; `fed`: fed from a pipe it reads that instead of `empty`;
  `help = false`: it has no harmless `--help` and `--version`
- `match`, `not_match`: commands that only read, and that do not; `files`: what is done to which file
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import cast

from msgspec import Struct, field
from msgspec.structs import replace

from policyd.commands.argv.options import Option, Parsed, Syntax, options
from policyd.model import Word, WordKind

Entry = Mapping[str, object]


class Untold(Struct, frozen=True):
    """How a program changes files below a directory that its data names: a patch, an archive."""

    kinds: tuple[str, ...] = ()
    """What may be done to them."""
    where: frozenset[str] = frozenset()
    """The options whose value is the directory; without one it is where the command runs."""
    when: frozenset[str] = frozenset()
    """The options one of which must be given."""
    unless: frozenset[str] = frozenset()
    """The options with which it changes none, where none of `again` is given."""
    again: frozenset[str] = frozenset()
    operands: str = ""
    """`paths`: only what they name is changed; `either`: they are paths, or a revision first; `file`: with one nothing
    else is changed, unless a directory is given."""
    tree: bool = False
    """It is a working tree, whose top may lie above; the command's allow is for that, whatever it holds."""


class Program(Struct, frozen=True):
    """A program or one of its subcommands."""

    name: str
    source: str = ""
    role: str = ""
    """reader, writer; empty = other."""
    syntax: Syntax = field(default_factory=Syntax)
    operands: tuple[str, ...] = ()
    empty: str = ""
    """What it reads without operands, as a path; empty = standard input or nothing."""
    reach: str = "entry"
    deep: frozenset[str] = frozenset()
    shallow: frozenset[str] = frozenset()
    fed: bool = False
    deep_as: str = ""
    hidden: frozenset[str] = frozenset()
    endings: tuple[str, ...] = ()
    fixes: frozenset[str] = frozenset()
    untold: Untold | None = None
    instead: frozenset[str] = frozenset()
    target: frozenset[str] = frozenset()
    listing: frozenset[str] = frozenset()
    peek: frozenset[str] = frozenset()
    modes: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    mixes: bool = False
    ordered: bool = False
    ats: bool = False
    letters: bool = False
    beside: bool = False
    leads: frozenset[str] = frozenset()
    verb: bool = False
    asks: bool = True
    """`--help` and `--version` are harmless."""
    check: str = ""
    subs: Mapping[str, Program] = field(default_factory=dict)
    examples: Mapping[str, object] = field(default_factory=dict)

    @property
    def words(self) -> bool:
        """Whether every word is data whatever it is (`echo`)."""
        return self.syntax.raw and not self.check and self.operands == ("data*",)

    @property
    def inert(self) -> bool:
        """Whether no word, whatever it is, makes it touch a file, write or run something (`basename`)."""
        options = self.syntax.options.values()
        plain = self.operands == ("data*",) and not (self.check or self.verb or self.syntax.raw)
        return plain and not any(option.unsafe or option.value not in {"", "data"} for option in options)

    @property
    def can_harm(self) -> bool:
        """Whether any of its options writes or runs something."""
        return any(option.harms for option in self.syntax.options.values())

    def ended(self, parsed: Parsed) -> tuple[str, ...]:
        """Return how the names of the files below end that it works on with these options; nothing: as they like."""
        if parsed.unknown or parsed.loose:
            return ()
        if not self.endings:
            return _only(parsed)
        added = [given.value for given in parsed.given if given.role == "endings"]
        if any(word is None or word.kind is not WordKind.CONST for word in added):
            return ()
        return (*self.endings, *(end for word in added if word is not None for end in word.text.split(",")))


def _only(parsed: Parsed) -> tuple[str, ...]:
    """Return how the names end that patterns let in; nothing where one lets in any, or what matches none is let in."""
    picks = [(given.role, given.value) for given in parsed.given if given.role in {"only", "but", "read"}]
    if not picks or picks[0][0] != "only":
        return ()
    only = [word for role, word in picks if role == "only"]
    ends = {"" if word is None or word.kind is WordKind.UNKNOWN else _WILD.sub("", word.text) for word in only}
    return () if "" in ends else tuple(sorted(ends))


_WILD = re.compile(r".*[*?\]\[\\]", re.DOTALL)
"""A pattern of names up to what it surely ends in."""


def _text(entry: Entry, key: str, default: str = "") -> str:
    return cast("str", entry.get(key, default))


def _names(entry: Entry, key: str) -> tuple[str, ...]:
    return tuple(_text(entry, key).split())


def _untold(entry: Entry) -> Untold | None:
    told = cast("Entry | None", entry.get("untold"))
    if told is None:
        return None
    sets = {key: frozenset(_names(told, key)) for key in ("where", "when", "unless", "again")}
    return Untold(_names(told, "kinds"), **sets, operands=_text(told, "operands"), tree=bool(told.get("tree")))


def _syntax(entry: Entry, above: Mapping[str, Option], groups: Mapping[str, str], *, asks: bool) -> Syntax:
    table = dict(above)
    if asks:
        table.update(options("--help --version"))
    for group in _names(entry, "with"):
        table.update(options(groups[group]))
    table.update(options(_text(entry, "options")))
    return Syntax(
        table,
        posix=bool(entry.get("posix")),
        dash=bool(entry.get("dash")),
        known=True,
        raw=bool(entry.get("raw")),
        bundle=bool(entry.get("bundle")),
    )


def _program(name: str, entry: Entry, above: Program | None = None, groups: Mapping[str, str] | None = None) -> Program:
    inherited = {} if above is None or entry.get("apart") else above.syntax.options
    groups = cast("Mapping[str, str]", entry.get("groups", groups or {}))
    asks = bool(entry.get("help", above is None or above.asks))
    here = Program(
        name,
        _text(entry, "source", above.source if above else ""),
        _text(entry, "role", above.role if above else ""),
        _syntax(entry, inherited, groups, asks=asks),
        _names(entry, "operands"),
        _text(entry, "empty"),
        _text(entry, "reach", "entry"),
        deep=frozenset(_names(entry, "deep")),
        shallow=frozenset(_names(entry, "shallow")),
        fed=bool(entry.get("fed")),
        deep_as=_text(entry, "deep_as"),
        hidden=frozenset(_names(entry, "hidden")),
        endings=_names(entry, "endings"),
        fixes=frozenset(_names(entry, "fixes")),
        untold=_untold(entry),
        instead=frozenset(_names(entry, "instead")),
        target=frozenset(_names(entry, "target")),
        listing=frozenset(_names(entry, "listing")),
        peek=frozenset(_names(entry, "peek")),
        modes=frozenset(_names(entry, "modes")),
        needs=frozenset(_names(entry, "needs")),
        mixes=bool(entry.get("mixes")),
        ordered=bool(entry.get("ordered")),
        ats=bool(entry.get("ats")),
        letters=bool(entry.get("letters", above is not None and above.letters)),
        beside=bool(entry.get("beside")),
        leads=frozenset(_names(entry, "leads")),
        verb=bool(entry.get("verb")),
        asks=asks,
        check=_text(entry, "check"),
        examples={key: entry[key] for key in ("match", "not_match", "files") if key in entry},
    )
    subs: dict[str, Program] = {}
    for key, value in cast("Mapping[str, Entry]", entry.get("sub", {})).items():
        sub = _program(f"{name} {key}", value, here, groups)
        subs.update(dict.fromkeys((key, *_names(value, "names")), sub))
        subs.update({other: replace(sub, name=f"{name} {other}") for other in _names(value, "like")})
    return replace(here, subs=subs)


@cache
def _entries() -> Mapping[str, tuple[str, Entry]]:
    import tomllib
    from importlib import resources

    found: dict[str, tuple[str, Entry]] = {}
    for file in sorted((resources.files("policyd") / "sets").iterdir(), key=lambda item: item.name):
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


class Called(Struct, frozen=True):
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
