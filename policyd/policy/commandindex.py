"""Which command rules, or entries of one rule, may match a command: a filter in front of the exact match.

`CommandIndex.find` returns a superset of those that may hold: one too many costs time, a missing one would be a hole,
so what cannot be filed under a word is filed under "any".
"""

from __future__ import annotations

import posixpath
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from policyd.commands.argv.programs import Program, find
from policyd.commands.lexing.patternwords import PatternWord, fold
from policyd.commands.matching.kin import ABBREVIATES
from policyd.commands.matching.views import View, every, lower, names, names_of
from policyd.model import SimpleCommand, Word, WordKind

CONST = WordKind.CONST
COMMANDS = 16
"""Commands whose result is cached."""
LONGEST_GLUED = 64
"""Characters of an option word that is searched for glued values; a longer one may hold any."""
Item = tuple[int, frozenset[str] | None, "tuple[tuple[PatternWord, ...], ...] | None", bool]
"""A rule's number, its programs (None = any), the words its pattern may be where they are known, and whether it denies
or asks."""


class WordIndex:
    """Rules filed under words; those without one under "any"."""

    __slots__ = ("any", "by_word")

    def __init__(self) -> None:
        """Begin empty."""
        self.by_word: dict[str, list[int]] = {}
        self.any: list[int] = []

    def __bool__(self) -> bool:
        """Say whether anything is filed."""
        return bool(self.any or self.by_word)

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


class ProgramIndex:
    """Rules on one program, each filed under the rarest further word of its pattern.

    A word behind an option may be glued to it (`python -mNAME`), so it is looked for at the end of option words too.
    An unknown long option may be abbreviated, or written with one dash or as its first letter. A subcommand stands
    for all its aliases (`npm i`, `npm install`), and for some programs for whatever it begins with.
    """

    __slots__ = ("any", "every", "glued", "keys", "options", "strict", "words")

    def __init__(self, name: str, patterns: Sequence[tuple[int, tuple[PatternWord, ...], bool]]) -> None:
        """File each number under its pattern, of program `name`; note which deny or ask."""
        self.any: list[int] = []
        self.every = [number for number, _, _ in patterns]
        self.strict = [number for number, _, strict in patterns if strict]
        self.words: dict[str, list[int]] = {}
        """By word, in each of its aliases."""
        self.options: dict[str, list[tuple[str, int]]] = {}
        """First letter in lower case -> names of long options, without dashes."""
        self.glued = False
        """Some rule is filed under a word behind an option."""
        told = [(number, filing_words(name, words)) for number, words, _ in patterns]
        often = Counter([word for _, words in told for word, _ in words])
        for number, words in told:
            self._file(number, min(words, key=lambda each: often[each[0]], default=None))
        self.words.update({word: self.words[other] for word, other in synonyms(name).items() if other in self.words})
        self.keys = sorted(self.words)

    def _file(self, number: int, rarest: tuple[str, bool] | None) -> None:
        """File a rule under a word, or under an option as `long_name` returns it."""
        word, behind = rarest or ("", False)
        if not word:
            self.any.append(number)
        elif word.startswith("--"):
            self.options.setdefault(word[2:3].lower(), []).append((word[2:], number))
        else:
            self.words.setdefault(word, []).append(number)
            self.glued = self.glued or behind

    def find(self, words: Iterable[str], found: set[int]) -> None:
        """Add the rules on the program alone, and those that one of `words` may match."""
        found.update(self.any)
        table = self.words
        for word in words:
            if word in table:
                found.update(table[word])
            if word.startswith("-"):
                self._option(word, found)
            elif "/" in word:
                found.update(table.get(fold(word), ()))

    def begun(self, words: Iterable[str], found: set[int]) -> None:
        """Add the rules filed under a word that begins with one of `words`."""
        for word in words:
            for at in range(bisect_left(self.keys, word), len(self.keys)):
                if not self.keys[at].startswith(word):
                    break
                found.update(self.words[self.keys[at]])

    def _option(self, word: str, found: set[int]) -> None:
        """Add the rules that an option word may match: by its name, as a path, or by a glued value."""
        name, whole = long_name(word)[2:], not word.startswith("--")
        for option, number in self.options.get(name[:1].lower(), ()):
            if option == name or (option.startswith(name) and not whole):
                found.add(number)
        for letter in set(word[1:].lower()) & self.options.keys() if whole else ():
            found.update(number for _, number in self.options[letter])
        if "/" in word:
            found.update(self.words.get(fold(word), ()))
        if self.glued and len(word) > LONGEST_GLUED:
            found.update(self.every)
        elif self.glued:
            for at in range(2, len(word)):
                found.update(self.words.get(word[at:], ()), self.words.get(fold(word[at:]), ()))


class CommandIndex:
    """Command rules by program; the `ProgramIndex` of a program is built when it is first met.

    A command with a word that is not constant may match any strict rule on its program; an allow rule counts only
    constant words. Where a program matches only if letter case is ignored, a short option may stand for any long one.
    """

    __slots__ = ("alone", "met", "patterns", "uses")

    def __init__(self, items: Iterable[Item]) -> None:
        """File every number under the programs it may match."""
        self.alone = WordIndex()
        self.patterns: dict[str, list[tuple[int, tuple[PatternWord, ...], bool]]] = {}
        """Program -> the patterns its `ProgramIndex` is built from."""
        self.uses: dict[str, ProgramIndex] = {}
        self.met: dict[int, tuple[SimpleCommand, set[int]]] = {}
        """Results for the last few commands: where no rule matches one, the reason asks for the same again."""
        for number, programs, spelled, strict in items:
            if programs is None or spelled is None:
                self.alone.file(number, programs)
            else:
                for words in spelled:
                    self.patterns.setdefault(program_of(words), []).append((number, words, strict))

    def ready(self) -> None:
        """Build every program's index, so that no command waits for it."""
        for name in self.patterns:
            self.of(name)

    def of(self, name: str) -> ProgramIndex:
        """Return the index of a program that has rules."""
        found = self.uses.get(name)
        if found is None:
            found = self.uses[name] = ProgramIndex(name, self.patterns[name])
        return found

    def find(self, command: SimpleCommand) -> set[int]:
        """Return the numbers of the rules that may match `command`; callers must not change the set."""
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
        for front, *rest in wrapped(command):  # an allow rule may name the wrapper as well
            seen = (*seen, View(front, tuple(rest), command.cwd))
        names = names_of(seen)
        self.alone.find(names, found)
        if names is None:
            found.update(number for patterns in self.patterns.values() for number, _, _ in patterns)
            return
        some = [name for name in names if name in self.patterns]
        words, constant = later_words(seen) if some else ((), True)
        for name in some:
            uses = self.of(name)
            uses.find(words, found)
            if not ABBREVIATES.isdisjoint(names):
                uses.begun(words, found)
            if not constant:
                found.update(uses.strict)
            if uses.options and matches_ignoring_case(seen, name) and any(map(is_short, words)):
                found.update(number for each in uses.options.values() for _, number in each)


def wrapped(command: SimpleCommand) -> Iterator[tuple[Word, ...]]:
    """Yield the command with its wrappers, in every form that an allow pattern may spell out."""
    if command.behind:
        yield (*map(Word, command.behind), *command.argv)
    for text in command.texts:
        yield tuple(map(Word, text))


def program_of(words: tuple[PatternWord, ...]) -> str:
    """Return the program a pattern names."""
    return posixpath.basename(words[0].literal or "").lower() or "/"


def filing_words(name: str, words: tuple[PatternWord, ...]) -> list[tuple[str, bool]]:
    """Return the words that every match of a pattern holds, to file it under; and whether each may be glued."""
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
    return found


def is_named(program: PatternWord) -> bool:
    """Say whether a program is written in lower case, in which program names are compared."""
    return program.literal is not None and program.literal == program.literal.lower()


def is_stranger(program: str, option: str) -> bool:
    """Say whether a long option of a program is unknown, and so has no alias."""
    return option.startswith("--") and option.partition("=")[0] not in known_options(program)


def long_name(option: str) -> str:
    """Return an option without its value and with exactly two dashes."""
    return "--" + option.partition("=")[0].lstrip("-")


def is_short(word: str) -> bool:
    """Say whether a word is one or more short options."""
    return word.startswith("-") and not word.startswith("--") and word != "-"


def matches_ignoring_case(seen: Sequence[View], name: str) -> bool:
    """Say whether a command matches a program only if letter case is ignored."""
    return bool([view for view in seen if name not in view.names and name in lower(view.names)])


def later_words(seen: Sequence[View]) -> tuple[list[str], bool]:
    """Return the constant words behind the program in all views of a command, and whether all words are constant."""
    words = seen[0].words if len(seen) == 1 else {word for view in seen for word in view.words}
    found = [word.text for word in words if word.kind is CONST]
    return found, len(found) == len(words)


def tables(program: str) -> Iterator[Program]:
    """Yield the tables of a program and of its subcommands at every depth."""
    todo = [table for name in names(Word(program)) if (table := find(name)) is not None]
    while todo:
        table = todo.pop()
        yield table
        todo += {id(sub): sub for sub in table.subs.values()}.values()


@lru_cache(512)
def synonyms(program: str) -> Mapping[str, str]:
    """Map each subcommand with aliases, at any depth of a program, to the one name that stands for all."""
    found: dict[str, str] = {}
    for table in tables(program):
        for word, sub in table.subs.items():
            merge_aliases(found, word, sub.name)
    return {word: representative(found, word) for word in found}


@lru_cache(512)
def known_options(program: str) -> frozenset[str]:
    """Return the known options of a program and its subcommands, which may have aliases."""
    return frozenset(option for table in tables(program) for option in table.syntax.options)


def merge_aliases(found: dict[str, str], one: str, other: str) -> None:
    """Merge the alias sets of two words."""
    ends = representative(found, one), representative(found, other)
    if ends[0] != ends[1]:
        found[ends[0]] = ends[1]


def representative(found: Mapping[str, str], word: str) -> str:
    """Return the representative of a word's alias set."""
    while word in found:
        word = found[word]
    return word
