"""The sets that ship: `policyd/sets/*.toml` (the tables of programs apart).

Rules of this module:

1. A set has a kind; command sets hold entries that are asked the same questions as a `CommandPattern`, path sets hold
   pattern texts.
2. An entry that is `closed` holds in an allow rule only if the table of programs vouches for every word, any other
   only if no word is a URL. In a strict rule, and where an exception tightens, it is its patterns, read as widely as
   any.
3. Sets are read when a policy first names one, and never change while policyd runs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib import resources
from typing import cast

from msgspec import Struct, field

from policyd.commands.argv import programs
from policyd.commands.argv.options import is_long, key, parse
from policyd.commands.argv.programs import Called, Program
from policyd.commands.dialects import foreign
from policyd.commands.lexing.patternwords import PatternWord, glob, pieces
from policyd.commands.matching.patterns import (
    CommandPattern,
    exactly,
    levels,
    plain_name,
    program_names,
    trusted,
    untrusted,
)
from policyd.commands.sets import closed
from policyd.commands.sets.ways import Ways, compiled
from policyd.model import SimpleCommand, Truth, Word, WordKind

Table = Mapping[str, object]


class SetEntry(Struct, frozen=True, dict=True):
    """One entry of a command set: a program, or a few that are alike."""

    name: str
    """`@set.entry` without the `@`."""
    patterns: tuple[CommandPattern, ...]
    reason: str
    stated: str
    """Where it was read, if not where the table of programs was."""
    programs: frozenset[str] | None
    closed: bool = False
    alike: str = ""
    """The program whose options count, where a pattern names another way to it (`python -m pytest`)."""
    ways: Ways | None = None
    """Other ways to the programs its patterns name."""
    operands: tuple[str, ...] = ()
    """What the operands may be, joined by blanks; empty = not restricted. `*` takes no blank."""
    several: bool = False
    """Any number of the operands named, instead of one."""
    unless: tuple[CommandPattern, ...] = ()
    env: tuple[str, ...] = ()
    """Variables it tolerates, as `env` of a rule."""
    shell: bool = False
    """A builtin: called by its bare name in the shell itself, no variable changes it."""
    behind: bool = False
    """Only behind a pipe, where a variable the entry tolerates is set: for what a test prints after `activate`."""
    writes: bool = False
    carries: bool = True
    runs: bool = False
    """A word may name code that it runs."""

    @property
    def source(self) -> str:
        """Where what the entry rests on was read."""
        name = (self.alike or self.name.partition(".")[2]).partition(" ")[0]
        program = programs.find(name) or programs.find(min(self.programs or {""}))
        return self.stated or (program.source if program is not None else "")

    @property
    def text(self) -> str:
        """How a policy names the entry."""
        return f"@{self.name}"

    @property
    def spelled(self) -> tuple[tuple[PatternWord, ...], ...] | None:
        """The words it may be, of which its command holds each; None where there are other ways to its programs."""
        if self.ways is not None:
            return None
        return tuple(words for pattern in self.patterns for words in pattern.alternatives)

    def sure(self, command: SimpleCommand, env: tuple[str, ...] = ()) -> bool:
        """Say whether an allow rule with this entry (and `env`) holds for the command."""
        if self._others(command):
            return False
        if not self._trusted(command, env) or (command.via and command.via[0] in foreign.SHELLS):
            return False
        if self.behind and not (command.fed == "|" and command.taint):
            return False
        if not any(self._known(level) for level in levels(command)):
            return False
        return not any(pattern.maybe(command, widen=False) for pattern in self.unless)

    def why_not(self, command: SimpleCommand, env: tuple[str, ...] = ()) -> str:
        """Return why the entry does not hold for a command it is about; nothing where it is about others."""
        if self._others(command):
            return ""
        found = [reason for level in levels(command) for form in self._forms(level) for reason in self._reasons(form)]
        return (min(found) or untrusted(command, (*self.env, *env))) if found else ""

    def elsewhere(self, command: SimpleCommand) -> bool:
        """Say whether it says itself that the command runs on another machine: no entry does."""
        return False

    def _others(self, command: SimpleCommand) -> bool:
        """Say whether the command certainly runs none of the entry's programs."""
        names = program_names(command)
        return names is not None and self.programs is not None and names.isdisjoint(self.programs)

    @cached_property
    def _named_by(self) -> Mapping[str, list[tuple[PatternWord, ...]]]:
        """What its patterns say, by the name of the program; what leaves that open is under no name."""
        found: dict[str, list[tuple[PatternWord, ...]]] = {}
        for pattern in self.patterns:
            for words in pattern.alternatives:
                name = words[0].literal if not words[0].path else None
                found.setdefault(name or "", []).append(words)
        return found

    def _about(self, level: SimpleCommand) -> Sequence[tuple[PatternWord, ...]]:
        """Return what its patterns say of programs such as a level of a command runs."""
        name = plain_name(level.argv[0]) if level.argv else ""
        others = self._named_by.get("", ())
        return [*self._named_by.get(name, ()), *others] if name else others

    def _reasons(self, level: SimpleCommand) -> Iterator[str]:
        """Yield, for every pattern the command is about, why the table does not vouch for it."""
        for words in self._about(level):
            if self.closed and words[-1].many:
                called = self._called(words, level)
                if called is not None:
                    yield self._reason(called)
            elif exactly(words, level) and not _addressed(level):
                yield ""

    def maybe(self, command: SimpleCommand, *, widen: bool) -> Truth:
        """Say whether the command may be what the entry means."""
        forms = (command, *(form for level in levels(command) for form in self._behind(level)))
        return max((pattern.maybe(form, widen=widen) for pattern in self.patterns for form in forms), default=Truth.NO)

    def _forms(self, level: SimpleCommand) -> tuple[SimpleCommand, ...]:
        """Return the level as it is, and what it reaches by other ways."""
        return (level, *self._behind(level))

    def _behind(self, level: SimpleCommand) -> tuple[SimpleCommand, ...]:
        return self.ways.behind(level) if self.ways is not None else ()

    def _trusted(self, command: SimpleCommand, env: tuple[str, ...]) -> bool:
        if self.shell and not command.via and command.inner is None and command.argv:
            word = command.argv[0]
            if word.kind is WordKind.CONST and "/" not in word.text:
                return not command.tainted and not command.strict_only
        return trusted(command, (*self.env, *env))

    def _known(self, level: SimpleCommand) -> bool:
        name = (self.name, key(level.argv), level.cwd)
        holds = _HOLDS.get(name)
        if holds is None:
            holds = any(self._holds(form) for form in self._forms(level))
            if is_long(level.argv):
                return holds
            if len(_HOLDS) >= _HOLDS_KEPT:
                _HOLDS.clear()
            _HOLDS[name] = holds
        return holds

    def _holds(self, level: SimpleCommand) -> bool:
        for words in self._about(level):
            if self.closed and words[-1].many:
                called = self._called(words, level)
                if called is not None and not self._reason(called):
                    return True
            elif exactly(words, level) and not _addressed(level):
                return True
        return False

    def _called(self, words: tuple[PatternWord, ...], level: SimpleCommand) -> Called | None:
        """Return the call to vouch for, None if the command is not what `words` say."""
        target = _target(words) if not self.alike else None
        if target is not None:
            name = plain_name(level.argv[0]) if level.argv else ""
            called = programs.called(name, level.argv[1:]) if name == words[0].literal else None
            return called if called is not None and called.program.name == target.name else None
        if not exactly(words, level):
            return None
        program, *sub = (self.alike or str(words[0].literal)).split()
        rest = level.argv[len(words) - 1 :]
        return programs.called(program, (*map(Word, sub), *rest))

    def _reason(self, called: Called) -> str:
        reason = closed.reason(called, writes=self.writes)
        if not self.operands:
            return reason
        parsed = parse(called.program.syntax, called.after)
        own = parsed.split >= 0 and closed.passes(called.program)
        given = parsed.operands[: parsed.split] if own else parsed.operands
        text = " ".join(word.text for word in given)
        if not given or any(word.kind is not WordKind.CONST for word in given):
            return reason or (f"`{text}` decides what it runs" if given else "without a name it may run anything")
        return reason if self._named(tuple(word.text for word in given)) else f"it does not name `{text}`"

    def _named(self, given: tuple[str, ...]) -> bool:
        """Say whether the operands, or each of them where the entry takes several, are what it names."""
        texts = given if self.several else (" ".join(given),)
        return all(any(glob(pieces(operand), text, stops=" ") for operand in self.operands) for text in texts)


def _addressed(level: SimpleCommand) -> bool:
    """Say whether a word is a URL: what `*` of an entry means is a name or a file of this machine."""
    return any("://" in word.text for word in level.argv)


_HOLDS: dict[tuple[object, ...], bool] = {}
"""Whether an entry holds for the words of a command in a place; words recur."""
_HOLDS_KEPT = 4096


def advice(pattern: CommandPattern) -> str:
    """Return what an allow rule with `pattern` lets in that its author may not know of, and what to write instead.

    Empty where the table of programs knows of nothing. For `policyd check`.
    """
    for words in pattern.alternatives:
        target = _target(words) if words[-1].many else None
        options = _harmful(target) if target is not None else ()
        if target is not None and options:
            better = _entry_for(target)
            instead = f"; write `{better.text}`" if better is not None else ""
            return f"`{target.name} **` also allows `{'`, `'.join(options)}`, which write or run something{instead}"
    return ""


def _harmful(program: Program) -> tuple[str, ...]:
    found = dict.fromkeys(option.names[-1] for option in program.syntax.options.values() if option.harms)
    return tuple(found)[:3]


def _entry_for(target: Program) -> SetEntry | None:
    """Return the closed entry for a program or subcommand."""
    for name in ("read-only", "git-read", "test-runners"):
        for entry in shipped()[name].entries.values():
            if isinstance(entry, SetEntry) and entry.closed and entry.alike in {"", target.name}:
                words = (words for pattern in entry.patterns for words in pattern.alternatives)
                if any(found is not None and found.name == target.name for found in map(_target, words)):
                    return entry
    return None


def _target(words: tuple[PatternWord, ...]) -> Program | None:
    """Return the program or subcommand a pattern `program sub **` names in the table."""
    program = programs.find(words[0].literal or "") if not words[0].path else None
    for word in words[1:-1]:
        program = program.subs.get(word.literal or "") if program is not None else None
    return program


class ShippedSet(Struct, frozen=True):
    """A set that ships with policyd."""

    name: str
    kind: str
    """command or path."""
    reason: str
    entries: Mapping[str, SetEntry | str] = field(default_factory=dict)
    """Entries by name; of a path set pattern texts, each its own name."""


def _list(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(cast("list[str]", value or []))


def _entry(name: str, key: str, entry: Table, whole: Table, ways: Mapping[str, Ways]) -> SetEntry:
    both = {**whole, **entry}
    patterns = tuple(CommandPattern.compile(text, home="~") for text in _list(entry.get("command", f"{key} **")))
    named = [pattern.programs for pattern in patterns]
    way = ways.get(cast("str", entry.get("ways", "")))
    found = frozenset[str]().union(*(item for item in named if item is not None), way.programs if way else ())
    return SetEntry(
        f"{name}.{key}",
        patterns,
        cast("str", both["reason"]),
        cast("str", entry.get("source", "")),
        None if None in named else found,
        closed=bool(both.get("closed")),
        alike=cast("str", entry.get("as", "")),
        ways=way,
        operands=_list(entry.get("operands")),
        several=bool(entry.get("several")),
        unless=tuple(CommandPattern.compile(text, home="~") for text in _list(entry.get("unless"))),
        env=_list(both.get("env")),
        shell=bool(entry.get("shell")),
        behind=bool(entry.get("behind")),
        writes=bool(both.get("writes")),
        carries=bool(both.get("carries", True)),
        runs=bool(both.get("runs")),
    )


def _set(name: str, table: Table) -> ShippedSet:
    kind = cast("str", table["kind"])
    entries: dict[str, SetEntry | str]
    if kind == "path":
        entries = {text: text for text in _list(table["entries"])}
    else:
        whole = {key: value for key, value in table.items() if key not in {"entry", "ways"}}
        found = cast("Mapping[str, Table]", table["entry"])
        ways = {way: compiled(_list(texts)) for way, texts in cast("Table", table.get("ways", {})).items()}
        entries = {key: _entry(name, key, entry, whole, ways) for key, entry in found.items()}
    return ShippedSet(name, kind, cast("str", table["reason"]), entries)


class _Shipped(Mapping[str, ShippedSet]):
    """Every set by name, each read when it is first asked for."""

    def __init__(self) -> None:
        """Note the files."""
        files = sorted((resources.files("policyd") / "sets").iterdir(), key=lambda file: file.name)
        named = ((file.name.removesuffix(".toml"), file) for file in files if file.name.endswith(".toml"))
        self._files = {name: file for name, file in named if not name.startswith("programs")}
        self._read: dict[str, ShippedSet] = {}

    def __getitem__(self, name: str) -> ShippedSet:
        if name not in self._read:
            self._read[name] = _set(name, tomllib.loads(self._files[name].read_text("utf-8")))
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


@cache
def shipped() -> Mapping[str, ShippedSet]:
    """Return every set that ships, by name."""
    return _Shipped()
