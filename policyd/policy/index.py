"""Which rules an action may concern: a filter in front of the exact judgement.

`Index.candidates` returns a superset of the rules that may hold, in the policy's order; `Index.every` is the linear
reference and returns all of them. Nothing is decided here: a rule that is named too often costs time, one that is
missing would be a hole, so whatever cannot be filed under a word is filed under "any".
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from functools import lru_cache

from policyd.commands.patterns import CommandPattern, levels, program_names
from policyd.commands.patternwords import PatternWord
from policyd.commands.programs import find
from policyd.commands.strict import views
from policyd.model import Action, Context, Role, SimpleCommand, WordKind
from policyd.paths import PathIndex, PathPattern
from policyd.policy.conditions import (
    CommandCondition,
    KindCondition,
    PathCondition,
    ToolCondition,
    UrlCondition,
    wide_kinds,
)
from policyd.policy.rules import Rule
from policyd.urls import host_keys

MAGIC = frozenset("*?[]{}\\")


class Words:
    """Rules filed under words; those without one under "any"."""

    __slots__ = ("any", "by_word")

    def __init__(self) -> None:
        """Begin empty."""
        self.by_word: dict[str, list[int]] = {}
        self.any: list[int] = []

    def file(self, number: int, words: Iterable[str] | None) -> None:
        """File rule `number` under each of `words`, or under "any"."""
        if words is None:
            self.any.append(number)
        else:
            for word in set(words):
                self.by_word.setdefault(word, []).append(number)

    def find(self, words: Iterable[str] | None, found: set[int]) -> None:
        """Add the rules filed under any of `words` to `found`; None = all."""
        found.update(self.any)
        for word in self.by_word if words is None else words:
            numbers = self.by_word.get(word)
            if numbers is not None:
                found.update(numbers)


class Commands:
    """Command rules, filed under the program and, where a pattern writes its second word out, that word too.

    A second word stands for every name of that subcommand (`npm i`, `npm install`). A command with a word that is not
    constant may be any of them.
    """

    __slots__ = ("alone", "paired", "under")

    def __init__(self) -> None:
        """Begin empty."""
        self.alone, self.under = Words(), Words()
        self.paired = Words()

    def file(self, number: int, condition: CommandCondition) -> None:
        """File rule `number` under what its entries may hold for."""
        for entry in condition.entries:
            if entry.programs is None:
                self.alone.file(number, None)
            elif isinstance(entry, CommandPattern):
                for words in entry.alternatives:
                    self.file_words(number, words)
            else:
                self.alone.file(number, entry.programs)

    def file_words(self, number: int, words: tuple[PatternWord, ...]) -> None:
        """File rule `number` under one alternative of a pattern."""
        name = posixpath.basename(words[0].literal or "").lower() or "/"
        second = words[1] if len(words) > 1 else None
        if second is None or not second.literal or second.path or second.option or second.literal == "--":
            self.alone.file(number, [name])
        else:
            self.under.file(number, [name])
            self.paired.file(number, [f"{name}\0{subcommand(name, second.literal)}"])

    def find(self, command: SimpleCommand, found: set[int]) -> None:
        """Add the rules that may hold for `command` to `found`."""
        names = program_names(command)
        self.alone.find(names, found)
        if names is None or not names.isdisjoint(self.under.by_word):
            words = None if names is None else later_words(command)
            if words is None or names is None:
                self.under.find(names, found)
            else:
                self.paired.find([f"{name}\0{subcommand(name, word)}" for name in names for word in words], found)


def later_words(command: SimpleCommand) -> set[str] | None:
    """Return every word behind a program in any view of a command; None where one of them is not constant."""
    found: set[str] = set()
    for level in levels(command):
        for view in views(level):
            for word in view.words:
                if word.kind is not WordKind.CONST:
                    return None
                found.add(word.text)
    return found


@lru_cache(4096)
def subcommand(program: str, word: str) -> str:
    """Return one name for all the names of a subcommand; another word as it is."""
    known = find(program)
    sub = known.subs.get(word) if known is not None else None
    return word if sub is None else sub.name


class Index:
    """Rules by the one thing each is selected by: path, program, host, tool, or kind."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """File each rule once, under its resource or, without one, under its kinds."""
        self.every = tuple(rules)
        self.kinds, self.hosts, self.tools = Words(), Words(), Words()
        self.commands = Commands()
        self.outside: list[int] = []
        paths: list[tuple[PathPattern, int]] = []
        for number, rule in enumerate(self.every):
            match condition_of(rule):
                case PathCondition() as condition:
                    paths += [(pattern, number) for pattern in condition.patterns]
                    self.outside += [number] if condition.outside else []
                case CommandCondition() as condition:
                    self.commands.file(number, condition)
                case UrlCondition() as condition:
                    self.hosts.file(number, hosts(condition))
                case ToolCondition() as condition:
                    self.tools.file(number, tool_words(condition))
                case KindCondition() as condition:
                    self.kinds.file(number, None if condition.every else condition.kinds)
                case _:
                    self.kinds.file(number, None)
        self.paths = PathIndex(paths) if paths else None

    def candidates(self, action: Action, context: Context) -> list[Rule]:
        """Return, in the policy's order, every rule that may hold for `action`."""
        if not self.every:
            return []
        found: set[int] = set()
        if action.path is not None:
            if self.paths is not None:
                found.update(self.paths.candidates(action.path, context.workspace))
            if not action.path.inside:
                found.update(self.outside)
        if action.command is not None:
            self.commands.find(action.command, found)
        if action.url is not None:
            self.hosts.find(host_keys(action.url.host), found)
        if action.role is not Role.MENTION:
            if action.tool is not None or action.name is not None:
                self.tools.find(name_words(action), found)
            self.kinds.find(wide_kinds(action), found)
        return [self.every[number] for number in sorted(found)]


def condition_of(rule: Rule) -> object:
    """Return the condition a rule is filed by."""
    name = rule.resource or "kind"
    return next((condition for condition in rule.conditions if condition.name == name), None)


def hosts(condition: UrlCondition) -> frozenset[str]:
    """Return the keys under which a URL rule is filed."""
    return frozenset().union(*(pattern.hosts for pattern in condition.patterns))


def tool_words(condition: ToolCondition) -> set[str] | None:
    """Return the words a tool rule is filed under: server and tool where both are written out, else the first."""
    found: set[str] = set()
    for pattern in condition.patterns:
        first, slash, rest = pattern.source.casefold().partition("/")
        if not first or MAGIC & set(first):
            return None
        found.add(f"{first}/{rest}" if slash and not MAGIC & set(rest) else first)
    return found


def name_words(action: Action) -> set[str]:
    """Return every name, server and pair of both the action's tool may stand for."""
    tool = action.tool or action.name
    if tool is None:
        return set()
    words = {tool.name, tool.name.partition("/")[0]}
    for server, name in tool.splits:
        words |= {server, f"{server}/{name}"}
    return {word.casefold() for word in words}
