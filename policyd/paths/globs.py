"""Shell globs in a request: parsed leniently, as a shell does, never refused.

Quoted characters are backslashed; braces and everything else are literal. An unclosed `[` is itself. Where a class
that holds `[=` or `[.` ends, shells do not agree: it stands, with all that follows in the segment, for anything.
"""

from __future__ import annotations

import re
from functools import lru_cache

from policyd.paths.segments import DEEP, CharClass, Segment, Token, Wild, escape

_RANGE = re.compile(r"(.)(?:-(.))?", re.S)
_UNNAMED = re.compile(r"\[:(?![a-z]+:\])").search
"""What begins as a POSIX class and is none."""
ANYWHERE = "/**"
"""The glob form of a path that may lead anywhere: no allow rule but `/**` covers it."""


@lru_cache(maxsize=2_048)
def segments(form: str) -> tuple[Segment, ...]:
    """Parse an absolute glob form."""
    return tuple(_segment(name) for name in form.split("/") if name)


def head(form: str) -> str:
    """Return the literal directory in front of the first wildcard (the whole path if there is none)."""
    names: list[str] = []
    for each in segments(form):
        name = each.literal
        if name is None:
            break
        names.append(name)
    return "/" + "/".join(names)


def quote(path: str) -> str:
    """Return the glob form of a plain path."""
    return escape(path)


def _segment(name: str) -> Segment:
    if name == "**":
        return DEEP
    tokens: list[Token] = []
    here = 0
    while here < len(name):
        token, here = _token(name, here)
        if not (token is Wild.STAR and tokens[-1:] == [Wild.STAR]):
            tokens.append(token)
    return Segment(tuple(tokens))


def _token(name: str, here: int) -> tuple[Token, int]:
    char = name[here]
    if char == "\\" and here + 1 < len(name):
        return name[here + 1], here + 2
    if char == "*":
        return Wild.STAR, here + 1
    if char == "?":
        return Wild.ONE, here + 1
    return _class(name, here) if char == "[" else (char, here + 1)


def _class(name: str, here: int) -> tuple[Token, int]:
    """A class becomes its ranges; an odd one (quotes, POSIX classes, reversed ranges) is any character, or any text."""
    first = here + 2 if name[here + 1 : here + 2] in {"!", "^"} else here + 1
    end = _class_end(name, first)
    if end < 0:
        return "[", here + 1
    body = name[first:end]
    if "[=" in body or "[." in body or _UNNAMED(body):
        return Wild.STAR, len(name)
    ranges = tuple((found[1], found[2] or found[1]) for found in _RANGE.finditer(body))
    if "\\" in body or "[" in body or any(high < low for low, high in ranges):
        return Wild.ONE, end + 1
    return CharClass(first > here + 1, ranges), end + 1


def _class_end(name: str, first: int) -> int:
    """The position of the `]` that closes a class, -1 if none does."""
    here = first + 1 if name[first : first + 1] == "]" else first
    if name.find("]", here) < 0:
        return -1
    while here < len(name) and name[here] != "]":
        if name.startswith("[:", here) and name.find(":]", here) > 0:
            here = name.find(":]", here) + 2
        else:
            here += 2 if name[here] == "\\" else 1
    return here if here < len(name) else -1
