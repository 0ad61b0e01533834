"""Which rules an action may concern: a filter in front of the exact judgement.

`Index.candidates` returns a superset of the rules that may hold, in the policy's order; `Index.every` is the linear
reference and returns all of them. Nothing is decided here: a rule that is named too often costs time, one that is
missing would be a hole, so whatever cannot be filed under a word is filed under "any".
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from policyd.commands.patterns import CommandPattern
from policyd.commands.patternwords import PatternWord, fold
from policyd.commands.programs import Program, find
from policyd.commands.views import View, every, lower, names, names_of
from policyd.model import Action, Context, Role, SimpleCommand, Tool, Word, WordKind
from policyd.paths import PathIndex, PathPattern
from policyd.policy.conditions import (
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

CONST = WordKind.CONST
MAGIC = frozenset("*?[]{}\\")
SPECIAL = re.compile(r"[*?\[\]{}\\]")
COMMANDS = 16
"""Commands of which is remembered what was found."""
LONGEST_GLUED = 64
"""Characters of an option word whose end is looked at; a longer one counts as any."""


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


class Uses:
    """Rules on one program that hold only for commands with a certain word more: a filter by that word.

    A word behind an option may be glued to it (`python -mNAME`), so it is looked for at the end of option words too.
    A long option nobody knows may be abbreviated, or be written with one dash.
    """

    __slots__ = ("every", "glued", "options", "strict", "words")

    def __init__(self) -> None:
        """Begin empty."""
        self.every: list[int] = []
        self.strict: list[int] = []
        """Those of them that deny or ask."""
        self.words: dict[str, list[int]] = {}
        """By word, in each of its spellings."""
        self.options: dict[str, list[tuple[str, int]]] = {}
        """By first letter: names of long options, without dashes."""
        self.glued = False
        """Some rule is filed under a word behind an option."""

    def file(self, number: int, word: str, *, strict: bool, behind: bool) -> None:
        """File a rule under a word, or an option as `long_name` gives it."""
        self.every.append(number)
        if strict:
            self.strict.append(number)
        if word.startswith("--"):
            self.options.setdefault(word[2:3], []).append((word[2:], number))
        else:
            self.words.setdefault(word, []).append(number)
            self.glued = self.glued or behind

    def find(self, words: Iterable[str], found: set[int]) -> None:
        """Add the rules that one of `words` may tell."""
        table = self.words
        for word in words:
            if word in table:
                found.update(table[word])
            if word.startswith("-"):
                self._option(word, found)
            elif "/" in word:
                found.update(table.get(fold(word), ()))

    def _option(self, word: str, found: set[int]) -> None:
        """Add the rules that an option word may tell, by its name, as a path, or by what may be glued to it."""
        name, whole = long_name(word)[2:], not word.startswith("--")
        for option, number in self.options.get(name[:1], ()):
            if option == name or (option.startswith(name) and not whole):
                found.add(number)
        if "/" in word:
            found.update(self.words.get(fold(word), ()))
        if self.glued and len(word) > LONGEST_GLUED:
            found.update(self.every)
        elif self.glued:
            for at in range(2, len(word)):
                found.update(self.words.get(word[at:], ()), self.words.get(fold(word[at:]), ()))


class Commands:
    """Command rules, filed under the program and, where a pattern writes more words out, the rarest of those.

    A subcommand stands for every name of it (`npm i`, `npm install`). A command with a word that is not constant may
    be any of its program's strict rules; an allow believes what is constant only. In a command whose program
    is the one meant in another case only, a short option may be a spelling of any long one.
    """

    __slots__ = ("alone", "met", "uses")

    def __init__(self, items: Sequence[tuple[int, CommandCondition]]) -> None:
        """File every rule under what its entries may hold for."""
        self.alone = Words()
        self.uses: dict[str, Uses] = {}
        """By program."""
        self.met: dict[int, tuple[SimpleCommand, set[int]]] = {}
        """What was found for the last few commands: where nothing speaks about one, the same is asked again."""
        patterns: list[tuple[int, bool, str, list[tuple[str, bool]]]] = []
        for number, condition in items:
            for entry in condition.entries:
                if entry.programs is not None and isinstance(entry, CommandPattern):
                    strict = condition.place is not Place.ALLOW
                    patterns += [(number, strict, *telling(words)) for words in entry.alternatives]
                else:
                    self.alone.file(number, entry.programs)
        often = Counter([(name, word) for *_, name, words in patterns for word, _ in words])
        for number, strict, name, words in patterns:
            if words:
                word, behind = min(words, key=lambda each: often[name, each[0]])
                self.uses.setdefault(name, Uses()).file(number, word, strict=strict, behind=behind)
            else:
                self.alone.file(number, [name])
        for name, uses in self.uses.items():
            table = uses.words
            table.update({word: table[other] for word, other in synonyms(name).items() if other in table})

    def find(self, command: SimpleCommand) -> set[int]:
        """Return the rules that may hold for `command`; the set is nobody's to change."""
        met = self.met.get(id(command))
        if met is not None and met[0] is command:
            return met[1]
        found: set[int] = set()
        self._find(command, found)
        if len(self.met) >= COMMANDS:
            self.met.clear()
        self.met[id(command)] = command, found
        return found

    def _find(self, command: SimpleCommand, found: set[int]) -> None:
        seen = every(command)
        names = names_of(seen)
        self.alone.find(names, found)
        some = [name for name in (self.uses if names is None else names) if name in self.uses]
        if names is None:
            found.update(*(self.uses[name].every for name in some))
        elif some:
            words, constant = later_words(seen)
            for name in some:
                uses = self.uses[name]
                uses.find(words, found)
                if not constant:
                    found.update(uses.strict)
                if uses.options and doubted(seen, name) and any(map(is_short, words)):
                    found.update(number for each in uses.options.values() for _, number in each)


def telling(words: tuple[PatternWord, ...]) -> tuple[str, list[tuple[str, bool]]]:
    """Return the program of a pattern, and each word one of which a command must hold, with whether it may be glued."""
    name = posixpath.basename(words[0].literal or "").lower() or "/"
    same = synonyms(name)
    found: list[tuple[str, bool]] = []
    options = 0
    for before, word in pairwise(words):
        text = word.literal
        options += word.option
        if not text or word.path or text == "--":
            continue
        if not word.option:
            found.append((same.get(text, text), before.option))
        elif options == 1 and is_named(words[0]) and is_stranger(name, text):
            found.append((long_name(text), False))
    return name, found


def is_named(program: PatternWord) -> bool:
    """Say whether a program is written in lower case, as the names of programs are compared."""
    return program.literal is not None and program.literal == program.literal.lower()


def is_stranger(program: str, option: str) -> bool:
    """Say whether a long option of a program is one nobody knows, so that it has no other name."""
    return option.startswith("--") and option.partition("=")[0] not in known_options(program)


def long_name(option: str) -> str:
    """Return an option without its value and with two dashes, however many it is written with."""
    return "--" + option.partition("=")[0].lstrip("-")


def is_short(word: str) -> bool:
    """Say whether a word is one or more short options."""
    return word.startswith("-") and not word.startswith("--") and word != "-"


def doubted(seen: Sequence[View], name: str) -> bool:
    """Say whether a command may be of a program only because the case of a name does not count."""
    return bool([view for view in seen if name not in view.names and name in lower(view.names)])


def later_words(seen: Sequence[View]) -> tuple[list[str], bool]:
    """Return every constant word behind a program in any view of a command, and whether all are."""
    words = seen[0].words if len(seen) == 1 else {word for view in seen for word in view.words}
    found = [word.text for word in words if word.kind is CONST]
    return found, len(found) == len(words)


def tables(program: str) -> Iterator[Program]:
    """Yield what is known of a program and of its subcommands at every depth."""
    todo = [table for name in names(Word(program)) if (table := find(name)) is not None]
    while todo:
        table = todo.pop()
        yield table
        todo += {id(sub): sub for sub in table.subs.values()}.values()


@lru_cache(512)
def synonyms(program: str) -> Mapping[str, str]:
    """Return, for each subcommand of a program at any depth that has several names, one that stands for all."""
    found: dict[str, str] = {}
    for table in tables(program):
        for word, sub in table.subs.items():
            if word != sub.name:
                join(found, word, sub.name)
    return {word: last(found, word) for word in found}


@lru_cache(512)
def known_options(program: str) -> frozenset[str]:
    """Return the options that are known of a program or a subcommand: they may have other names."""
    return frozenset(option for table in tables(program) for option in table.syntax.options)


def join(found: dict[str, str], one: str, other: str) -> None:
    """Let two words lead to the same last one."""
    ends = last(found, one), last(found, other)
    if ends[0] != ends[1]:
        found[ends[0]] = ends[1]


def last(found: Mapping[str, str], word: str) -> str:
    """Return the word that `word` leads to in the end."""
    while word in found:
        word = found[word]
    return word


class Globs:
    """Globs, each filed under the longest text in it: what it opens with, closes with, or holds."""

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


class Tools:
    """Tool rules: by server and tool or by name, and globs of one server's tools.

    A pattern `server/…` holds for the splits of a name only, so its globs are looked for there.
    """

    __slots__ = ("globs", "words")

    def __init__(self) -> None:
        """Begin empty."""
        self.words = Words()
        self.globs: dict[str, Globs] = {}

    def file(self, number: int, condition: ToolCondition) -> None:
        """File rule `number` under each of its patterns."""
        for pattern in condition.patterns:
            first, slash, rest = pattern.source.casefold().partition("/")
            if not first or MAGIC & set(first):
                self.words.file(number, None)
            elif slash and MAGIC & set(rest):
                self.globs.setdefault(first, Globs()).file(number, rest)
            else:
                self.words.file(number, [f"{first}/{rest}" if slash else first])

    def find(self, action: Action, found: set[int]) -> None:
        """Add the rules that may hold for the action's tool to `found`."""
        tool = action.tool or action.name
        if tool is None:
            return
        self.words.find(name_words(tool), found)
        for server, name in tool.splits:
            globs = self.globs.get(server.casefold())
            if globs is not None:
                globs.find(name.casefold(), found)


class Index:
    """Rules by the one thing each is selected by: path, program, host, tool, or kind."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """File each rule once, under its resource or, without one, under its kinds."""
        self.every = tuple(rules)
        self.steady = all(rule.steady for rule in self.every)
        self.kinds, self.hosts, self.tools = Words(), Words(), Tools()
        commands: list[tuple[int, CommandCondition]] = []
        self.outside: list[int] = []
        self.named: list[int] = []
        """Rules on paths and URLs: what may name anything may be caught by any of them."""
        paths: list[tuple[PathPattern, int]] = []
        for number, rule in enumerate(self.every):
            self.named += [number] if rule.resource in {"path", "url"} else []
            match condition_of(rule):
                case PathCondition() as condition:
                    paths += [(pattern, number) for pattern in condition.patterns]
                    self.outside += [number] if condition.outside else []
                case CommandCondition() as condition:
                    commands.append((number, condition))
                case UrlCondition() as condition:
                    self.hosts.file(number, hosts(condition))
                case ToolCondition() as condition:
                    self.tools.file(number, condition)
                case KindCondition() as condition:
                    self.kinds.file(number, None if condition.every else condition.kinds)
                case _:
                    self.kinds.file(number, None)
        self.by_kind = bool(self.kinds.any or self.kinds.by_word)
        self.commands = Commands(commands)
        self.paths = PathIndex(paths) if paths else None

    def parts(self) -> Iterator[object]:
        """Yield what the index is made of, as far as there may be thousands."""
        if self.paths is not None:
            yield from self.paths.parts()

    def about(self, command: SimpleCommand) -> list[Rule]:
        """Return, in the policy's order, the rules that are filed under what a command runs."""
        return [self.every[number] for number in sorted(self.commands.find(command))]

    def candidates(self, action: Action, context: Context) -> list[Rule]:
        """Return, in the policy's order, every rule that may hold for `action`."""
        path, every = action.path, self.every
        found = self.paths.candidates(path, context.workspace) if path is not None and self.paths is not None else set()
        if path is not None and self.outside and not path.inside:
            found.update(self.outside)
        if action.command is not None:
            found |= self.commands.find(action.command)
        if action.url is not None:
            host = action.url.host
            self.hosts.find(None if host == ANYWHERE else host_keys(host), found)
        if action.role is Role.MENTION:
            found.update(self.named if action.opaque else ())
        else:
            if action.tool is not None or action.name is not None:
                self.tools.find(action, found)
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
