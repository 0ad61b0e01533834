"""Compiling blocks to conditions: every pattern for its place, every word looked up.

A mistake does not stop compilation: it goes to `report`, and the condition is left out of a rule that will never be
used, because one mistake anywhere refuses the whole policy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any, NoReturn, TypeVar

from msgspec import Struct, field

from policyd.model import KINDS, READ_KINDS, WRITE_KINDS, Effect, Filesystem, Layer, RuleRef
from policyd.paths import PathPattern
from policyd.policy.attributes import (
    AgentCondition,
    InteractiveCondition,
    LabelCondition,
    ModeCondition,
    PersonCondition,
    UntilCondition,
)
from policyd.policy.blocks import PLAIN, Table, is_kind, normal
from policyd.policy.combinations import NARROW
from policyd.policy.conditions import (
    CommandCondition,
    CommandMatcher,
    Condition,
    InputCondition,
    KindCondition,
    PathCondition,
    Place,
    ToolCondition,
    UrlCondition,
)
from policyd.policy.errors import Mistake
from policyd.policy.rules import Compiled
from policyd.policy.sets import OUTSIDE, Sets
from policyd.tools import InputPattern, ToolPattern
from policyd.urls import UrlPattern

Pattern = TypeVar("Pattern")
Value = TypeVar("Value")
Report = Callable[[Mistake], None]
NO_SETS = Sets()
TIGHTENS = frozenset({Place.STRICT, Place.EXCEPT})
HOME = re.compile(r"~|\$HOME").search
VARIABLE = re.compile(r"(?:\*|[A-Za-z_][A-Za-z0-9_]*(?:\[[^]]*\])?)(?:=|\Z)")


class Compiler(Struct, dict=True):
    """Compiles the blocks of all files of one policy; equal texts are compiled once."""

    home: str
    tmpdir: str
    fs: Filesystem | None = None
    account: str = ""
    """The home directory of the account, where the environment may name another."""
    both: bool = False
    """`~/` stands for both homes."""
    known: dict[tuple[str, str], Any] = field(default_factory=dict)
    heads: dict[str, None] = field(default_factory=dict)
    """Literal heads of relative path patterns, in order."""

    @cached_property
    def strict(self) -> Compiler:
        """The compiler for managed rules where they tighten: setting `HOME` must not loosen them."""
        if self.account in {"", self.home}:
            return self
        return Compiler(self.home, self.tmpdir, self.fs, self.account, both=True, heads=self.heads)

    def plain(self, block: Table, ref: RuleRef) -> Compiled:
        """Compile a plain block, on first use."""
        return self.tables(block, ref, NO_SETS, refused)

    def now(self, block: Table, ref: RuleRef, sets: Sets, report: Report) -> Callable[[Table, RuleRef], Compiled]:
        """Compile a block; mistakes go to `report`."""
        compiled = self.tables(block, ref, sets, report)
        return lambda table, ref: compiled

    def tables(self, table: Table, ref: RuleRef, sets: Sets, report: Report) -> Compiled:
        """Compile the conditions of a block and those of each exception."""
        block, allow, managed = normal(table), ref.effect is Effect.ALLOW, ref.layer is Layer.MANAGED
        conditions = tuple(
            self.conditions(block, Place.ALLOW if allow else Place.STRICT, sets, report, managed=managed)
        )
        if "until" in block:
            conditions += (UntilCondition(block["until"]),)
        spare = Place.EXCEPT if allow else Place.SPARE
        return conditions, tuple(
            tuple(self.conditions(exception, spare, sets, inside_unless(report), managed=managed))
            for exception in block.get("unless", ())
        )

    def conditions(
        self, block: Table, place: Place, sets: Sets, report: Report, *, managed: bool
    ) -> Iterator[Condition]:
        """Compile the conditions of a block, the cheap ones first."""
        yield from kind(block, place, report)
        own = self.strict if managed and place in TIGHTENS else self
        yield from own.resource(block, place, sets, report)
        if "input" in block:
            try:
                yield InputCondition(place, InputPattern.compile(block["input"]))
            except ValueError as error:
                report(Mistake(f"`input`: {error}", key="input"))
        yield from attributes(block, place, report, managed=managed)

    def resource(self, block: Table, place: Place, sets: Sets, report: Report) -> Iterator[Condition]:
        """Compile the resource and what narrows it."""
        if "path" in block:
            found = list(sets.expand("path", block["path"], report))
            patterns = self.paths("path", [text for text in found if text != OUTSIDE], report)
            yield PathCondition(place, patterns, OUTSIDE in found)
        if "command" in block:
            entries = tuple(self.commands(sets.expand("command", block["command"], report), report))
            yield CommandCondition(place, entries, **self.narrowing(block, sets, report))
        if "url" in block:
            texts = sets.expand("url", block["url"], report)
            yield UrlCondition(place, tuple(self.each("url", UrlPattern.compile, texts, report)))
        if "tool" in block:
            texts = sets.expand("tool", block["tool"], report)
            yield ToolCondition(place, tuple(self.each("tool", ToolPattern.compile, texts, report)))

    def narrowing(self, block: Table, sets: Sets, report: Report) -> dict[str, Any]:
        """Compile `cwd`, `within` and `env`."""
        found: dict[str, Any] = {}
        for key in NARROW:
            if key not in block:
                continue
            texts = block[key]
            if key == "env":
                found[key] = each_word(env_name, texts, report)
            else:
                found[key] = self.paths(key, list(sets.expand(key, texts, report)), report)
        return found

    def paths(self, key: str, texts: list[Any], report: Report) -> tuple[PathPattern, ...]:
        """Compile path patterns and collect their heads."""
        found = tuple(self.each(key, self.path, iter(texts), report))
        for pattern in found:
            self.heads.update(dict.fromkeys(pattern.heads))
        return found

    def path(self, text: str) -> PathPattern:
        """Compile one path pattern."""
        found = PathPattern.compile(text, home=self.home, tmpdir=self.tmpdir, fs=self.fs)
        if not (self.both and HOME(text)):
            return found
        return found.beside(PathPattern.compile(text, home=self.account, tmpdir=self.tmpdir, fs=self.fs))

    def commands(self, entries: Iterator[str | CommandMatcher], report: Report) -> Iterator[CommandMatcher]:
        """Compile command patterns; entries of shipped sets are ready."""
        for entry in entries:
            if isinstance(entry, str):
                yield from self.each("command", self.command, iter([entry]), report)
            else:
                yield entry

    def command(self, text: str) -> CommandMatcher:
        """Compile one command pattern."""
        from policyd.commands.matching.patterns import CommandPattern

        found = CommandPattern.compile(text, home=self.home)
        return found.beside(CommandPattern.compile(text, home=self.account)) if self.both and HOME(text) else found

    def each(
        self, key: str, build: Callable[[str], Pattern], texts: Iterator[Any], report: Report
    ) -> Iterator[Pattern]:
        """Compile each of `texts` once; a pattern that cannot be meant is a mistake at `key`."""
        for text in texts:
            known = self.known.get((key, text))
            if known is None:
                try:
                    if key in PLAIN and PLAIN[key](text):
                        yield build(text)
                        continue
                    from policyd.policy.hints import refuse_foreign

                    refuse_foreign(key, text)
                    known = self.known[key, text] = build(text)
                except Mistake as mistake:
                    report(mistake)
                    continue
                except ValueError as error:
                    said = str(error)
                    report(Mistake(said if text in said else f"`{text}`: {said}", key=key, text=text))
                    continue
            yield known


def refused(mistake: Mistake) -> NoReturn:
    """Raise for a plain rule that turns out to hold a mistake: a rule must never lose a condition."""
    raise RuntimeError(f"a plain rule cannot be compiled: {mistake.found}")


def kind(block: Table, place: Place, report: Report) -> Iterator[Condition]:
    """Compile `kind`."""
    if "kind" in block:
        yield of_kinds(place, frozenset().union(*each_word(kinds_of, block["kind"], report)))


@lru_cache(256)
def of_kinds(place: Place, kinds: frozenset[str]) -> KindCondition:
    """Return the condition on some kinds: one for all rules that name the same."""
    return KindCondition(place, kinds - {"*"}, "*" in kinds)


def attributes(block: Table, place: Place, report: Report, *, managed: bool) -> Iterator[Condition]:
    """Compile the conditions on session and person."""
    if "agent" in block:
        yield AgentCondition(place, each_word(agent_name, block["agent"], report))
    if "mode" in block:
        yield ModeCondition(place, each_word(mode_name, block["mode"], report))
    if "interactive" in block:
        yield InteractiveCondition(place, block["interactive"])
    if "label" in block:
        wanted = tuple((key, tuple(values)) for key, values in sorted(block["label"].items()))
        yield LabelCondition(place, wanted, managed)
    if "user" in block:
        yield PersonCondition(place, tuple(block["user"]), "user")
    if "group" in block:
        yield PersonCondition(place, tuple(block["group"]), "group")


def each_word(read: Callable[[str], Value], words: list[str], report: Report) -> tuple[Value, ...]:
    """Return what `read` makes of each word; a mistake goes to `report`."""
    found = []
    for word in words:
        try:
            found.append(read(word))
        except Mistake as mistake:
            report(mistake)
    return tuple(found)


def inside_unless(report: Report) -> Report:
    """Report mistakes as standing inside `unless`."""

    def moved(mistake: Mistake) -> None:
        mistake.key = f"unless.{mistake.key}"
        report(mistake)

    return moved


def kinds_of(word: str) -> frozenset[str]:
    """Return the kinds a word of `kind` names; Mistake for one that does not exist."""
    if word == "*" or is_kind(word):
        return frozenset({word})
    if word == "@write":
        return WRITE_KINDS
    if word == "@read":
        return READ_KINDS
    from policyd.policy import hints

    wanted = hints.unknown_kind(word, (*KINDS, "@write", "@read", "*"), ", or a custom `_kind`")
    raise Mistake(f"unknown kind `{word}`", wanted, key="kind", text=word)


def env_name(word: str) -> str:
    """Check an entry of `env`: the name of a variable, or `*` for all, and the value it may have."""
    if not VARIABLE.match(word):
        raise Mistake(
            f"`{word}` names no variable", "write `NAME`, `NAME=pattern`, or `*` for all", key="env", text=word
        )
    return word


def agent_name(word: str) -> str:
    """Check an agent: a short name or exact wire name, globs in the version only."""
    name = word.rpartition("@")[0] if "@" in word[1:] else word
    if set(name) & set("*?"):
        raise Mistake(
            f"agent `{word}`: a pattern in the name never matches",
            "write the profile's short name, `claude` or `claude@0.101.*`, or the exact name the agent sends",
            key="agent",
            text=word,
        )
    return word


def mode_name(word: str) -> str:
    """Check a mode: a name, a glob, `@unsafe` or `@asking`."""
    if word.startswith("@") and word not in {"@unsafe", "@asking"}:
        raise Mistake(f"unknown mode set `{word}`", "write `@unsafe` or `@asking`", key="mode", text=word)
    return word
