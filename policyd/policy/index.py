"""Which rules an action may concern: a filter in front of the exact judgement.

`Index.candidates` returns a superset of the rules that may hold, in the policy's order; `Index.every` is the linear
reference and returns all of them. Nothing is decided here: a rule that is named too often costs time, one that is
missing would be a hole, so whatever cannot be filed under a word is filed under "any".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from policyd.commands.patterns import program_names
from policyd.model import Action, Context, Role
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

    def find(self, words: Iterable[str] | None) -> Iterator[int]:
        """Return the rules filed under any of `words`; None = all."""
        yield from self.any
        if words is None:
            yield from chain.from_iterable(self.by_word.values())
        else:
            for word in words:
                yield from self.by_word.get(word, ())


class Index:
    """Rules by the one thing each is selected by: path, program, host, tool, or kind."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """File each rule once, under its resource or, without one, under its kinds."""
        self.every = tuple(rules)
        self.kinds, self.programs, self.hosts, self.tools = Words(), Words(), Words(), Words()
        self.outside: list[int] = []
        paths: list[tuple[PathPattern, int]] = []
        for number, rule in enumerate(self.every):
            match condition_of(rule):
                case PathCondition() as condition:
                    paths += [(pattern, number) for pattern in condition.patterns]
                    self.outside += [number] if condition.outside else []
                case CommandCondition() as condition:
                    self.programs.file(number, programs(condition))
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
        numbers: set[int] = set()
        if action.path is not None:
            if self.paths is not None:
                numbers.update(self.paths.candidates(action.path, context.workspace))
            if not action.path.inside:
                numbers.update(self.outside)
        if action.command is not None:
            numbers.update(self.programs.find(program_names(action.command)))
        if action.url is not None:
            numbers.update(self.hosts.find(host_keys(action.url.host)))
        if action.role is not Role.MENTION:
            numbers.update(self.tools.find(name_words(action)))
            numbers.update(self.kinds.find(wide_kinds(action)))
        return [self.every[number] for number in sorted(numbers)]


def condition_of(rule: Rule) -> object:
    """Return the condition a rule is filed by."""
    name = rule.resource or "kind"
    return next((condition for condition in rule.conditions if condition.name == name), None)


def programs(condition: CommandCondition) -> frozenset[str] | None:
    """Return the programs a command rule names, None where one of its entries may name any."""
    found: set[str] = set()
    for entry in condition.entries:
        if entry.programs is None:
            return None
        found |= entry.programs
    return frozenset(found)


def hosts(condition: UrlCondition) -> frozenset[str]:
    """Return the keys under which a URL rule is filed."""
    return frozenset().union(*(pattern.hosts for pattern in condition.patterns))


def tool_words(condition: ToolCondition) -> set[str] | None:
    """Return the literal first words (server, or the name of a built-in tool) of a tool rule, None if one has none."""
    words = {pattern.source.partition("/")[0] for pattern in condition.patterns}
    return None if any(not word or MAGIC & set(word) for word in words) else {word.casefold() for word in words}


def name_words(action: Action) -> set[str]:
    """Return every name and server the action's tool may stand for."""
    tool = action.tool or action.name
    if tool is None:
        return set()
    words = {tool.name, tool.name.partition("/")[0], *(server for server, _ in tool.splits)}
    return {word.casefold() for word in words}
