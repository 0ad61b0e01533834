"""Shell globs in a request: read leniently, the way a shell does, never refused.

Quoted characters are backslashed; braces and everything else are literal. An unclosed `[` is itself.
"""

from __future__ import annotations

from functools import lru_cache

from policyd.paths.segments import DEEP, CharClass, Segment, Token, Wild, escape

ANYWHERE = "/**"
"""The glob form that stands for a path which may lead anywhere: no allow rule but `/**` covers it."""


@lru_cache(maxsize=512)
def segments(form: str) -> tuple[Segment, ...]:
    """Take an absolute glob form apart."""
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
    """A class becomes its ranges; one that is odd (POSIX classes, reversed ranges) stands for any character."""
    first = here + 2 if name[here + 1 : here + 2] in {"!", "^"} else here + 1
    end = name.find("]", first + 1)
    if end < 0:
        return "[", here + 1
    body = name[first:end]
    if "[:" in body or "\\" in body:
        return Wild.ONE, (name.find("]", end + 1) if "[:" in body else end) + 1 or len(name)
    ranges: list[tuple[str, str]] = []
    i = 0
    while i < len(body):
        high = body[i + 2] if body[i + 1 : i + 2] == "-" and i + 2 < len(body) else body[i]
        ranges.append((body[i], high))
        i += 3 if high != body[i] or body[i + 1 : i + 3] == f"-{high}" else 1
    if any(high < low for low, high in ranges):
        return Wild.ONE, end + 1
    return CharClass(first > here + 1, tuple(ranges)), end + 1
