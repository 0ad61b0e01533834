"""The options in front of the command that a wrapper runs.

An option that is not listed may take the next word or not: both readings are given (at most `_READINGS`).
"""

from __future__ import annotations

import re

from msgspec import Struct, field

from policyd.commands.lexing.plain import constant
from policyd.commands.nested.inner import Words, constant_text
from policyd.commands.nested.wrapper_table import Wrapper
from policyd.model import Word

_NUMBER_OPTION = re.compile(r"-\d+").fullmatch
_READINGS = 4


class Options(Struct):
    """A wrapper's words taken apart."""

    rest: list[Words] = field(default_factory=list)
    """The command, in every reading."""
    names: set[str] = field(default_factory=set)
    """The options that are given."""
    values: list[tuple[str, Word]] = field(default_factory=list)
    plain: bool = True
    known: bool = True
    empty: bool = False
    forks: int = 0


def _full(name: str, spec: Wrapper) -> str:
    """Return the option that `name` spells or abbreviates."""
    if name in spec.flags or name in spec.valued or not name.startswith("--"):
        return name
    like = {option for option in spec.flags | spec.valued if option.startswith(name)}
    return like.pop() if len(like) == 1 else name


def read_options(spec: Wrapper, words: Words) -> Options:
    found = Options()
    _read_options(spec, words, 0, found)
    return found


def _read_options(spec: Wrapper, words: Words, at: int, found: Options) -> None:
    while at < len(words):
        text = constant_text(words[at])
        if text is None or not text.startswith("-") or (text == "-" and "-" not in spec.flags):
            break
        if text == "--":
            at += 1
            break
        at = _read_option(spec, words, at, found)
    if len(found.rest) < _READINGS:
        found.rest.append(words[at:])


def _read_option(spec: Wrapper, words: Words, at: int, found: Options) -> int:
    text = words[at].text
    if text.startswith("--"):
        name, equals, value = text.partition("=")
        return _long(spec, _full(name, spec), constant(value) if equals else None, words, at, found)
    if text in spec.flags or text in spec.valued:
        return _long(spec, text, None, words, at, found)
    if spec.numbers and _NUMBER_OPTION(text):
        return at + 1
    return _cluster(spec, words, at, found)


def _long(spec: Wrapper, name: str, glued: Word | None, words: Words, at: int, found: Options) -> int:
    _note(spec, name, found)
    if name in spec.valued:
        value = glued if glued is not None else words[at + 1] if at + 1 < len(words) else constant("")
        found.values.append((name, value))
        return at + (1 if glued is not None else 2)
    if name not in spec.flags and glued is None:
        _both(spec, words, at, found)
    elif name not in spec.flags:
        found.known = False
    return at + 1


def _note(spec: Wrapper, name: str, found: Options) -> None:
    found.names.add(name)
    found.plain &= name in spec.plain
    found.empty |= name in spec.empty


def _both(spec: Wrapper, words: Words, at: int, found: Options) -> None:
    """An option that is not listed: it may take the next word."""
    found.known = False
    found.forks += 1
    if found.forks < _READINGS and at + 2 < len(words):
        _read_options(spec, words, at + 2, found)


def _cluster(spec: Wrapper, words: Words, at: int, found: Options) -> int:
    text = words[at].text
    for place in range(1, len(text)):
        name = "-" + text[place]
        _note(spec, name, found)
        if name in spec.valued:
            glued = text[place + 1 :]
            if glued:
                found.values.append((name, constant(glued)))
                return at + 1
            found.values.append((name, words[at + 1] if at + 1 < len(words) else constant("")))
            return at + 2
        if name not in spec.flags:
            _both(spec, words, at, found)
            break
    return at + 1
