"""Which command rules, or entries of one of them, a command may concern: a filter in front of the exact judgement.

`Commands.find` names every one that may hold, whether it allows, denies or asks, and some that do not: one that is
named too often costs time, one that is missing would be a hole, so what cannot be filed under a word is filed under
"any".
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
"""Commands of which is remembered what was found."""
LONGEST_GLUED = 64
"""Characters of an option word whose end is looked at; a longer one counts as any."""
Item = tuple[int, frozenset[str] | None, "tuple[tuple[PatternWord, ...], ...] | None", bool]
"""A number, the programs of what is filed under it (None = any), the words it may be where they are told, and whether
it denies or asks."""


class Words:
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


class Uses:
    """Rules on one program, filed where they say more words under the rarest of those.

    A word behind an option may be glued to it (`python -mNAME`), so it is looked for at the end of option words too.
    A long option nobody knows may be abbreviated, be written with one dash or as its first letter. A subcommand stands
    for every name of it (`npm i`, `npm install`), and for some programs for whatever it begins with.
    """

    __slots__ = ("any", "every", "glued", "keys", "options", "strict", "words")

    def __init__(self, name: str, patterns: Sequence[tuple[int, tuple[PatternWord, ...], bool]]) -> None:
        """File each number under what its pattern, of program `name`, says; and note which deny or ask."""
        self.any: list[int] = []
        self.every = [number for number, _, _ in patterns]
        self.strict = [number for number, _, strict in patterns if strict]
        self.words: dict[str, list[int]] = {}
        """By word, in each of its spellings."""
        self.options: dict[str, list[tuple[str, int]]] = {}
        """By first letter, in lower case: names of long options, without dashes."""
        self.glued = False
        """Some rule is filed under a word behind an option."""
        told = [(number, telling(name, words)) for number, words, _ in patterns]
        often = Counter([word for _, words in told for word, _ in words])
        for number, words in told:
            self._file(number, min(words, key=lambda each: often[each[0]], default=None))
        self.words.update({word: self.words[other] for word, other in synonyms(name).items() if other in self.words})
        self.keys = sorted(self.words)

    def _file(self, number: int, rarest: tuple[str, bool] | None) -> None:
        """File a rule under a word, or an option as `long_name` gives it."""
        word, behind = rarest or ("", False)
        if not word:
            self.any.append(number)
        elif word.startswith("--"):
            self.options.setdefault(word[2:3].lower(), []).append((word[2:], number))
        else:
            self.words.setdefault(word, []).append(number)
            self.glued = self.glued or behind

    def find(self, words: Iterable[str], found: set[int]) -> None:
        """Add the rules that say no more than the program, and those that one of `words` may tell."""
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
        """Add the rules filed under a word that one of `words` is the beginning of."""
        for word in words:
            for at in range(bisect_left(self.keys, word), len(self.keys)):
                if not self.keys[at].startswith(word):
                    break
                found.update(self.words[self.keys[at]])

    def _option(self, word: str, found: set[int]) -> None:
        """Add the rules that an option word may tell, by its name, as a path, or by what may be glued to it."""
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


class Commands:
    """Command rules, filed under the program, and there as `Uses` does: when a program is first met.

    A command with a word that is not constant may be any of its program's strict rules; an allow believes what is
    constant only. In a command whose program is the one meant in another case only, a short option may be a spelling
    of any long one.
    """

    __slots__ = ("alone", "met", "patterns", "uses")

    def __init__(self, items: Iterable[Item]) -> None:
        """File every number under the programs it may hold for."""
        self.alone = Words()
        self.patterns: dict[str, list[tuple[int, tuple[PatternWord, ...], bool]]] = {}
        """By program: what `uses` is made of."""
        self.uses: dict[str, Uses] = {}
        self.met: dict[int, tuple[SimpleCommand, set[int]]] = {}
        """What was found for the last few commands: where nothing speaks about one, the same is asked again."""
        for number, programs, spelled, strict in items:
            if programs is None or spelled is None:
                self.alone.file(number, programs)
            else:
                for words in spelled:
                    self.patterns.setdefault(program_of(words), []).append((number, words, strict))

    def ready(self) -> None:
        """File everything, so that no command waits for it."""
        for name in self.patterns:
            self.of(name)

    def of(self, name: str) -> Uses:
        """Return the rules on a program there are some of."""
        found = self.uses.get(name)
        if found is None:
            found = self.uses[name] = Uses(name, self.patterns[name])
        return found

    def find(self, command: SimpleCommand) -> set[int]:
        """Return the numbers of what may hold for `command`; the set is nobody's to change."""
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
        for front, *rest in spoken(command):  # an allow rule may speak of it by the wrapper it runs in
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
            if uses.options and doubted(seen, name) and any(map(is_short, words)):
                found.update(number for each in uses.options.values() for _, number in each)


def spoken(command: SimpleCommand) -> Iterator[tuple[Word, ...]]:
    """Yield the words of every wrapper, with the command or a text it stands in, by which an allow may speak of it."""
    if command.behind:
        yield (*map(Word, command.behind), *command.argv)
    for text in command.texts:
        yield tuple(map(Word, text))


def program_of(words: tuple[PatternWord, ...]) -> str:
    """Return the name of the program of a pattern that names one."""
    return posixpath.basename(words[0].literal or "").lower() or "/"


def telling(name: str, words: tuple[PatternWord, ...]) -> list[tuple[str, bool]]:
    """Return each word one of which a command of a pattern of program `name` holds, and whether it may be glued."""
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
