"""What is inside a command, and how it was reached."""

from __future__ import annotations

import re

from msgspec import Struct, field

from policyd.commands.lexing.plain import constant
from policyd.model import CONST, UNKNOWN, Assignment, Word

Words = tuple[Word, ...]

MORE_INPUT = Word("…", UNKNOWN, "", many=True)
"""The words that `xargs` and its kin read."""


class Inner(Struct, frozen=True):
    """One command, or shell text, that a wrapper runs."""

    via: str
    argv: Words = ()
    script: Word | None = None
    """Shell text; not constant = opaque."""
    env: tuple[Assignment, ...] = ()
    place: Word | None = None
    """The directory it runs in, where the wrapper names one."""
    away: bool = False
    """It runs in a place that cannot be told."""
    here: bool = False
    """It runs in the same shell."""
    alone: bool = False
    """It reads nothing of what the wrapper is fed."""
    trims: bool = False
    """It may not be given every variable that is set in front of the wrapper."""
    strict: bool = False
    """Only strict rules see it (another shell's text, one of two readings)."""
    far: bool = False
    """It runs on another machine or in a container; the wrapper's own allow is for it."""


class Unwrapped(Struct):
    """What is inside a command."""

    transparent: Inner | None = None
    inners: list[Inner] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    alike: bool = False
    """It is a shell that only runs a text, which bash reads as it does."""


def base(word: Word) -> str:
    """Return the name of a constant program word, without its directory; empty if it is not constant."""
    return word.text.rpartition("/")[2] if word.kind is CONST else ""


def constant_text(word: Word) -> str | None:
    return word.text if word.kind is CONST else None


def joined(words: Words) -> Word:
    """Return the words joined with blanks, as `eval` and `ssh` join them; unknown if one is."""
    if all(word.kind is CONST for word in words):
        return constant(" ".join([word.text for word in words]))
    return Word(" ".join([_source(word) for word in words]), UNKNOWN, "", many=True)


def _source(word: Word) -> str:
    text = word.text
    if word.kind is UNKNOWN and len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r'\\(["\\$`])', r"\1", text[1:-1])
    return text


def unknown_script(word: Word) -> str:
    """Return shell text that is not constant as far as it is written: for strict rules."""
    return _source(word)


def replaced(argv: Words, marks: tuple[str, ...]) -> Words:
    """Return the words with those that hold a mark for input turned unknown."""
    words = list(argv)
    for at, word in enumerate(argv):
        for mark in marks:
            if mark in word.text:
                words[at] = Word(word.text, UNKNOWN, word.text.split(mark, 1)[0])
                break
    return tuple(words)


def scripts(name: str, names: frozenset[str], words: Words, found: Unwrapped) -> bool:
    """Take every value of the options that hold shell text, wherever they stand."""
    before = len(found.inners)
    letters = "".join(option[1] for option in names if len(option) == 2)
    cluster = re.compile(rf"-[A-Za-z]*?[{letters}](.*)", re.DOTALL) if letters else None
    for at, word in enumerate(words):
        text = word.text if word.kind is CONST else word.prefix
        head, equals, _ = text.partition("=")
        following = words[at + 1] if at + 1 < len(words) else constant("")
        if text in names:
            value = following
        elif equals and head in names:
            value = _tail(word, len(head) + 1)
        elif cluster and not text.startswith("--") and (match := cluster.fullmatch(text)):
            value = _tail(word, match.start(1)) if match[1] or word.kind is UNKNOWN else following
        else:
            continue
        found.inners.append(Inner(name, script=value))
    return len(found.inners) > before


def _tail(word: Word, start: int) -> Word:
    if word.kind is CONST:
        return constant(word.text[start:])
    return Word(word.text, UNKNOWN, word.prefix[start:], word.many)
