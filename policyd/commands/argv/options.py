"""The words of a program taken apart as the program itself would: options, their values, operands.

Rules of this module:

1. The notation of an option is `-o|--output=edit`: spellings joined by `|`, then what the value is. `[=data]` is a
   value that only counts when glued on (`[=number]`: a number may be the next word too; `[=commit]`: what is no option
   may), `=data+read` two values. A
   final `!` says that the option makes the program write or run something; `=edit`, `=delete`, `=run` and `=code` say
   so by themselves. A final `?` says that it only reads what nobody named (behind links, from a list). `-#` stands for
   a number used as an option (`head -20`).
2. An abbreviation (`--outp=x`) is resolved, to a dangerous option if it may be one, and marked as not exact.
3. `-f=x` is read twice, with the value `=x` and with `x`: some programs drop the `=` behind a letter, others do not.
4. A word that no option explains stays `unknown`; whether it takes the next word is then not known either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from msgspec import Struct, field
from msgspec.structs import force_setattr

from policyd.commands.lexing.quoting import NAME
from policyd.model import CONST, GLOB, UNKNOWN, Word

_DASH, _DASHES = Word("-"), Word("--")
_SIGNS = ("", "-", "+")
"""What a word begins with that may be more than an operand."""
_LENGTH_KEPT = 4_096
HARMS = frozenset({"edit", "delete", "move", "run", "code"})


class Option(Struct, frozen=True):
    """One option of a program."""

    names: tuple[str, ...]
    """Every spelling, `-f` and `--force`."""
    value: str = ""
    """What its value is: data, read, search, edit, delete, run, url, mention; empty = it takes none."""
    glued: bool = False
    """The value counts only when glued on (`--color=auto`)."""
    unsafe: bool = False
    """It makes the program write or run something, or read what nobody named."""
    harms: bool = False
    """It makes the program write or run something."""

    @property
    def takes_next(self) -> bool:
        """Whether the next word is its value, unless one is glued on."""
        return bool(self.value) and not self.glued


def _option(token: str) -> Option:
    mark = token[-1] if token[-1] in "!?" else ""
    token = token.removesuffix(mark)
    glued = token.endswith("]")
    names, _, value = token.rstrip("]").replace("[=", "=", 1).partition("=")
    harms = mark == "!" or value in HARMS
    return Option(tuple(names.split("|")), value, glued, harms or mark == "?", harms)


@cache
def options(notation: str) -> Mapping[str, Option]:
    """Read the notation of rule 1: spelling -> option."""
    table = (_option(token) for token in notation.split())
    return {name: option for option in table for name in option.names}


class Syntax(Struct, frozen=True):
    """How a program reads its words."""

    options: Mapping[str, Option] = field(default_factory=dict)
    posix: bool = False
    """Options end at the first operand."""
    dash: bool = False
    """Long options have one dash (`find -name`, `go -run`); short ones do not cluster."""
    known: bool = False
    """The program is in the table: a word that is no option of it is unknown, not just unread."""
    raw: bool = False
    """It has no options: every word is an operand (`test`, `find`)."""
    bundle: bool = False
    """The first word may be a cluster without a dash (`tar xf`)."""


_CLUSTER = 64
"""Short options in one word that are read."""


class Given(Struct, frozen=True):
    """An option as given."""

    option: Option
    word: Word
    value: Word | None = None
    exact: bool = True
    apart: bool = False
    """The value is the next word, not glued on."""
    role: str = ""
    """What the value is; of an option with two values (`=data+read`) one `Given` each."""


class Parsed(Struct, frozen=True):
    """The words behind a program (or subcommand) taken apart."""

    given: tuple[Given, ...] = ()
    operands: tuple[Word, ...] = ()
    unknown: tuple[Word, ...] = ()
    """Option words nobody knows."""
    loose: tuple[Word, ...] = ()
    """Words that are not constant and might be an option or several words."""
    split: int = -1
    """How many operands stood before `--`; -1 without one."""
    mixed: bool = False
    """An option stood behind an operand; some systems take it for one."""
    eaten: bool = False
    """The word before `--` was an option: were it to take a value, `--` would be it."""
    spelled: frozenset[str] = frozenset()
    """Every spelling of the options given."""

    def __post_init__(self) -> None:
        """Gather the spellings: they are asked for at every operand."""
        if self.given:
            force_setattr(self, "spelled", frozenset().union(*[item.option.names for item in self.given]))

    def has(self, *names: str) -> bool:
        """Say whether an option with one of these spellings was given."""
        return not self.spelled.isdisjoint(names)

    def values(self, *names: str) -> tuple[Word, ...]:
        """Return the values given to these options, in order."""
        return tuple(
            item.value
            for item in self.given
            if item.value is not None and any(name in item.option.names for name in names)
        )


def tail(word: Word, length: int) -> Word:
    """Return `word` without its first `length` constant characters (which hold no backslash)."""
    if word.kind is UNKNOWN:
        return Word(word.text, UNKNOWN, word.prefix[length:], word.many)
    return Word(word.text[length:], word.kind)


def constant(word: Word) -> str:
    """Return the constant beginning of `word` as its program will see it."""
    if word.kind is CONST:
        return word.text
    return word.prefix if word.kind is UNKNOWN else glob_head(word.text)


def key(words: tuple[Word, ...]) -> tuple[str | Word, ...]:
    """Return what tells two command lines apart, quick to hash."""
    return tuple([word.text if word.kind is CONST else word for word in words])


def is_long(words: tuple[Word, ...]) -> bool:
    """Say whether words are too long for what was found of them to be kept."""
    return sum([len(word.text) for word in words]) > _LENGTH_KEPT


def glob_head(text: str) -> str:
    """Return the literal characters in front of the first wildcard of a glob, backslashes removed."""
    head, position = [], 0
    while position < len(text) and text[position] not in "*?[":
        position += text[position] == "\\" and position + 1 < len(text)
        head.append(text[position])
        position += 1
    return "".join(head)


_NO_OPTION = re.compile(r"\[(?:_(?!-)|[0-9A-Za-z](?:-[0-9A-Za-z])?)+\]").match
"""A glob that begins with a class of letters and digits: what it stands for, itself included, is no option.

A range that begins or ends with `_` may hold the dash, in the order of an older shell's language.
"""


def may_be_option(word: Word) -> bool:
    """Say whether a word that is not constant might become an option."""
    if word.kind is CONST:
        return word.text.startswith("-")
    if word.kind is GLOB and _NO_OPTION(word.text):
        return False
    head = constant(word)
    return word.many or not head or head.startswith("-")


def unread(word: Word) -> str:
    """Return how a word that is not constant is called in a reason; `…` stands for the words `xargs` reads."""
    return "what is read from the input" if word.text == "…" else f"`{word.text}`"


def becomes_several(word: Word) -> bool:
    """Say whether a word may become several words, or none: the unquoted unknown, and what a glob finds."""
    return word.many or word.kind is GLOB


def abbreviated(name: str, table: Mapping[str, Option]) -> tuple[Option | None, bool]:
    """Find a long option by its name or an abbreviation of it.

    Returns the option and whether the name was exact. Of several candidates a dangerous one is returned.
    """
    if name in table:
        return table[name], True
    found = [full for full in table if full.startswith(name)] if len(name) > 2 else []
    return max([table[full] for full in found], key=lambda option: option.unsafe, default=None), False


class _Reader(Struct):
    syntax: Syntax
    words: tuple[Word, ...]
    at: int = 0
    given: list[Given] = field(default_factory=list)
    operands: list[Word] = field(default_factory=list)
    unknown: list[Word] = field(default_factory=list)
    loose: list[Word] = field(default_factory=list)
    split: int = -1
    mixed: bool = False
    eaten: bool = False

    def run(self) -> Parsed:
        while self.at < len(self.words):
            word = self.words[self.at]
            self.at += 1
            head = constant(word)
            dashed = head.startswith("-")
            if self._ends(word, dashed):
                break
            if word.kind is CONST and head[:1] not in _SIGNS:
                self.operands.append(word)
                continue
            if word.many and word.kind is UNKNOWN:
                self.loose.append(word)
            self.mixed = self.mixed or (dashed and bool(self.operands) and word != _DASH)
            self._word(word, head)
        self.operands.extend(self.words[self.at :])
        self.loose.extend(word for word in self.words[self.at :] if word.many and word.kind is UNKNOWN)
        found = (tuple(self.given), tuple(self.operands), tuple(self.unknown), tuple(self.loose))
        return Parsed(*found, self.split, self.mixed, self.eaten)

    def _ends(self, word: Word, dashed: bool) -> bool:
        if dashed and word == _DASHES:
            self.split = len(self.operands)
            before = self.words[self.at - 2] if self.at > 1 else Word("")
            taken = self.given[-1].value if self.given else None
            self.eaten = before is not taken and constant(before).startswith("-")
            return True
        if self.syntax.posix and not dashed:
            self.at -= 1
            return True
        return False

    def _word(self, word: Word, head: str) -> None:
        plus = head.startswith("+") and head[:2] in self.syntax.options
        if word.kind is not CONST and may_be_option(word):
            if not self._glued(word, head) and not self._valued(word, head):
                if not word.many:
                    (self.unknown if word.kind is GLOB and head.startswith("-") else self.loose).append(word)
                if not head.startswith("-"):
                    self.operands.append(word)
        elif plus or (head.startswith("-") and head != "-"):
            if not self._glued(word, head) and not self._short(word, head):
                self.unknown.append(word)
        else:
            self.operands.append(word)

    def _glued(self, word: Word, head: str) -> bool:
        """Read a long option, or a short one of a program with one dash."""
        if not head.startswith("--") and not self.syntax.dash:
            return False
        name, equals, _ = head.partition("=")
        if not equals and word.kind is not CONST:
            return False
        option, exact = self._find(name)
        if option is None or (equals and not option.value):
            return False
        self._give(option, word, tail(word, len(name) + 1) if equals else None, exact)
        return True

    def _give(self, option: Option, word: Word, value: Word | None, exact: bool = True) -> None:
        first, *more = option.value.split("+")
        apart = value is None
        value = self._next(option) if apart else value
        self.given.append(Given(option, word, value, exact, apart, first))
        self.given.extend(Given(option, word, self._next(option), exact, True, role) for role in more)

    def _find(self, name: str) -> tuple[Option | None, bool]:
        table = self.syntax.options
        if not self.syntax.dash:
            return abbreviated(name, table)
        other = name[1:] if name.startswith("--") else "-" + name
        return table.get(name) or table.get(other), True

    def _next(self, option: Option) -> Word | None:
        if self.at >= len(self.words) or not (option.takes_next or self._optional(option, self.words[self.at])):
            return None
        self.at += 1
        return self.words[self.at - 1]

    @staticmethod
    def _optional(option: Option, word: Word) -> bool:
        """Say whether `word` is the number that `make -j 4` takes, or the commit of `vitest --changed main`."""
        if option.value == "commit":
            return not may_be_option(word)
        return option.value == "number" and word.kind is CONST and word.text.isdigit()

    def _valued(self, word: Word, head: str) -> bool:
        """Read `-j$(nproc)`: a name or number of which at least one letter is there is the last option's value.

        What may be empty is not: after `-j$N` with no `N`, the next word would be the value.
        """
        table = self.syntax.options
        if word.many or not word.text.startswith(f"{head}{NAME}") or len(head) < len("-j") or self.syntax.dash:
            return False
        *flags, last = (table.get(head[0] + letter) for letter in head[1:])
        plain = all(option is not None and not option.value for option in flags)
        return plain and last is not None and bool(last.value) and self._short(word, head)

    def _short(self, word: Word, head: str) -> bool:
        """Read a cluster of short options (`-xvf FILE`), all of which must be known."""
        table, position = self.syntax.options, 1
        found: list[tuple[Option, Word | None]] = []
        if head[1:].isdigit() and "-#" in table:
            self._give(table["-#"], word, None)
            return True
        if len(head) > 2 and head in table and word.kind is CONST:  # `zip -TT`
            self._give(table[head], word, None)
            return True
        if head.startswith("--") or self.syntax.dash:
            return False
        while position < len(head):
            option = table.get(head[0] + head[position])
            if option is None or position > _CLUSTER:
                return False
            position += 1
            glued = option.value and (position < len(head) or word.kind is not CONST)
            found.append((option, tail(word, position) if glued else None))
            if glued:
                break
        for option, value in found:
            self._give(option, word, value)
            if value is not None and constant(value)[:1] == "=" != value.text:
                self._give(option, word, tail(value, 1))
        return True


def unbundled(syntax: Syntax, words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Write the first word of `tar xfC a.tar dir` as options with their values."""
    if not words or words[0].kind is not CONST or not words[0].text.isalpha():
        return words
    found: list[Word] = []
    rest = list(words[1:])
    for letter in letters("-" + words[0].text):
        found.append(Word(letter))
        option = syntax.options.get(letter)
        if option is not None and option.takes_next and rest:
            found.append(rest.pop(0))
    return (*found, *rest)


def parse(syntax: Syntax, words: Iterable[Word]) -> Parsed:
    """Take the words behind a program name apart. An option word that is not understood counts as a flag."""
    given = tuple(words)
    if syntax.raw:
        return Parsed(operands=given, loose=tuple(word for word in given if word.many))
    if not (syntax.bundle or [word for word in given if word.kind is not CONST or word.text[:1] in _SIGNS]):
        return Parsed((), given)
    return _Reader(syntax, unbundled(syntax, given) if syntax.bundle else given).run()


def letters(text: str) -> Iterator[str]:
    """Yield the options of a cluster of short ones: `-rf` is `-r` and `-f`."""
    yield from (text[0] + letter for letter in text[1:])
