"""Which rules may match an action: a filter in front of the exact match.

`Index.candidates` returns a superset of the rules that may hold, in the policy's order; `Index.every` holds all of
them. One too many costs time, a missing one would be a hole, so what cannot be filed under a word is filed under "any".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from policyd.model import Action, Context, Role, SimpleCommand, Tool
from policyd.paths import PathIndex, PathPattern
from policyd.policy.commandindex import CommandIndex, Item, WordIndex
from policyd.policy.conditions import (
    FEW,
    CommandCondition,
    KindCondition,
    PathCondition,
    Place,
    ToolCondition,
    UrlCondition,
    wide_kinds,
)
from policyd.policy.rules import Rule
from policyd.urls import ANYWHERE, host_keys

MAGIC = frozenset("*?[]{}\\")
SPECIAL = re.compile(r"[*?\[\]{}\\]")


class GlobIndex:
    """Globs, each filed under its longest literal part: a prefix, a suffix, or an inner part."""

    __slots__ = ("closing", "holding", "opening")

    def __init__(self) -> None:
        """Begin empty."""
        self.opening: dict[int, dict[str, list[int]]] = {}
        self.closing: dict[int, dict[str, list[int]]] = {}
        self.holding: dict[int, dict[str, list[int]]] = {}

    def file(self, number: int, glob: str) -> None:
        """File rule `number` under a glob."""
        texts = SPECIAL.split(glob)
        text = max(texts, key=len)
        table = self.opening if text == texts[0] else self.closing if text == texts[-1] else self.holding
        table.setdefault(len(text), {}).setdefault(text, []).append(number)

    def find(self, name: str, found: set[int]) -> None:
        """Add the rules whose glob may fit `name` to `found`."""
        for size, table in self.opening.items():
            found.update(table.get(name[:size], ()))
        for size, table in self.closing.items():
            found.update(table.get(name[-size:], ()))
        for size, table in self.holding.items():
            for text in {name[at : at + size] for at in range(len(name) - size + 1)}:
                found.update(table.get(text, ()))


class ToolIndex:
    """Tool rules: by server and tool or by name, and globs of one server's tools.

    A pattern `server/…` holds for the splits of a name only, so its globs are looked for there.
    """

    __slots__ = ("globs", "words")

    def __init__(self) -> None:
        """Begin empty."""
        self.words = WordIndex()
        self.globs: dict[str, GlobIndex] = {}

    def __bool__(self) -> bool:
        """Say whether anything is filed."""
        return bool(self.words or self.globs)

    def file(self, number: int, condition: ToolCondition) -> None:
        """File rule `number` under each of its patterns."""
        for pattern in condition.patterns:
            first, slash, rest = pattern.source.casefold().partition("/")
            if not first or MAGIC & set(first):
                self.words.file(number, None)
            elif slash and MAGIC & set(rest):
                self.globs.setdefault(first, GlobIndex()).file(number, rest)
            else:
                self.words.file(number, [f"{first}/{rest}" if slash else first])

    def find(self, tool: Tool, found: set[int]) -> None:
        """Add the rules that may hold for a tool to `found`."""
        self.words.find(name_words(tool), found)
        for server, name in tool.splits:
            globs = self.globs.get(server.casefold())
            if globs is not None:
                globs.find(name.casefold(), found)


class Index:
    """Rules by what selects them: path, program, host, tool, or kind."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """File each rule once, under its resource or, without one, under its kinds."""
        self.every = tuple(rules)
        self.cacheable = all(rule.cacheable for rule in self.every)
        self.kinds, self.hosts, self.tools = WordIndex(), WordIndex(), ToolIndex()
        commands: list[Item] = []
        self.outside: list[int] = []
        self.named: list[int] = []
        """Rules on paths and URLs: any of them may match a mention that may name anything."""
        paths: list[tuple[PathPattern, int]] = []
        for number, rule in enumerate(self.every):
            self.named += [number] if rule.resource in {"path", "url"} else []
            match condition_of(rule):
                case PathCondition() as condition:
                    paths += [(pattern, number) for pattern in condition.patterns]
                    self.outside += [number] if condition.outside else []
                case CommandCondition() as condition:
                    strict = condition.place is not Place.ALLOW
                    few = len(condition.entries) <= FEW
                    commands += [
                        (number, entry.programs, entry.spelled if few else None, strict) for entry in condition.entries
                    ]
                case UrlCondition() as condition:
                    self.hosts.file(number, hosts(condition))
                case ToolCondition() as condition:
                    self.tools.file(number, condition)
                case KindCondition() as condition if not condition.every:
                    self.kinds.file(number, condition.kinds)
                case _:  # every kind: what is filed nowhere never holds
                    self.kinds.file(number, None)
        self.by_kind, self.by_host, self.by_tool = bool(self.kinds), bool(self.hosts), bool(self.tools)
        self.commands = CommandIndex(commands) if commands else None
        self.paths = PathIndex(paths) if paths else None

    def ready(self) -> None:
        """Build all lazy parts, including the indexes over the entries of long rules."""
        if self.commands is not None:
            self.commands.ready()
        for rule in self.every:
            for condition in rule.conditions:
                if isinstance(condition, CommandCondition) and len(condition.entries) > FEW:
                    condition.entry_index.ready()

    def parts(self) -> Iterator[object]:
        """Yield those parts of the index that may number thousands."""
        if self.paths is not None:
            yield from self.paths.parts()

    def about(self, command: SimpleCommand) -> list[Rule]:
        """Return, in the policy's order, the rules filed under the program of a command."""
        return [self.every[number] for number in sorted(self.commands.find(command))] if self.commands else []

    def candidates(self, action: Action, context: Context) -> list[Rule]:
        """Return, in the policy's order, every rule that may hold for `action`."""
        path, every = action.path, self.every
        found = self.paths.candidates(path, context.workspace) if path is not None and self.paths is not None else set()
        if path is not None and self.outside and not path.inside:
            found.update(self.outside)
        if action.command is not None and self.commands is not None:
            found |= self.commands.find(action.command)
        if action.url is not None and self.by_host:
            host = action.url.host
            self.hosts.find(None if host == ANYWHERE else host_keys(host), found)
        if action.role is Role.MENTION:
            found.update(self.named if action.opaque else ())
        else:
            if self.by_tool and (tool := action.tool or action.name) is not None:
                self.tools.find(tool, found)
            if self.by_kind:
                self.kinds.find(wide_kinds(action), found)
        return [every[number] for number in sorted(found)] if found else []


def condition_of(rule: Rule) -> object:
    """Return the condition a rule is filed by."""
    name = rule.resource or "kind"
    return next((condition for condition in rule.conditions if condition.name == name), None)


def hosts(condition: UrlCondition) -> frozenset[str]:
    """Return the keys under which a URL rule is filed."""
    return frozenset().union(*(pattern.hosts for pattern in condition.patterns))


def name_words(tool: Tool) -> set[str]:
    """Return every name, server and pair of both a tool may stand for."""
    words = {tool.name, tool.name.partition("/")[0]}
    for server, name in tool.splits:
        words |= {server, f"{server}/{name}"}
    return {word.casefold() for word in words}
