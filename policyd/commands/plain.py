"""The fast path: a text of plain words and plain operators needs no grammar.

Rules of this module:

1. A character qualifies only if it means the same to every shell: letters, digits, `_./@%+,:=-`, blanks, and
   printable ASCII in one pair of quotes around a whole word (in double quotes no `$`, backtick and backslash).
2. Between commands stand `&&`, `||`, `|`, `;`; redirections are `2>&1` and those into `/dev/null`, which are nothing.
3. No command begins with a keyword or an assignment. Anything else is `grammar`'s.
"""

from __future__ import annotations

import re

from msgspec import Struct

from policyd.model import Word, WordKind

KEYWORDS = frozenset(
    """
    always case coproc do done elif else end esac fi for foreach function if in nocorrect noglob repeat select then time
    until while
    """.split()  # noqa: SIM905
)
"""Words that are no program at the head of a command, in bash or zsh."""

_PLAIN = re.compile(r"[A-Za-z0-9_./@%+,:-][A-Za-z0-9_./@%+,:= \t-]*").fullmatch
_TOKEN = re.compile(
    r"(?:(&&|\|\||;|\|(?!&))"
    r"|([A-Za-z0-9_./@%+,:=-]+)"
    r"|'([ -&(-~]*)'"
    r"|\"([ !#%-\[\]-_a-~]*)\""
    r"|([A-Za-z0-9_./*?-]+)"
    r"|(2>&1|[12]?>>?[ \t]?/dev/null|&>[ \t]?/dev/null))"
    r"(?:[ \t]+|(?=[;&|])|(?<=[;&|])|\Z)"
).match
_WORDS: dict[str, Word] = {}
_WORDS_KEPT = 8_192
_OPERATOR, _BARE, _GLOB, _REDIRECT = 1, 2, 5, 6


class Part(Struct):
    """One simple command of a plain list."""

    operator: str
    """What stands before it: `&&`, `||`, `;`, `|`, or nothing."""
    words: list[Word]
    start: int
    end: int


def constant(text: str) -> Word:
    """Return the constant word `text`; words recur, so they are kept (bounded)."""
    word = _WORDS.get(text)
    if word is None:
        if len(_WORDS) >= _WORDS_KEPT:
            _WORDS.clear()
        word = _WORDS[text] = Word(text)
    return word


def split(text: str) -> tuple[Word, ...] | None:
    """Return the words of a text that is one plain command, None for any other."""
    if _PLAIN(text) is None:
        return None
    words = text.split()
    first = words[0]
    if first in KEYWORDS or "=" in first:
        return None
    return tuple([_WORDS.get(word) or constant(word) for word in words])


def divide(text: str) -> list[Part] | None:
    """Return the simple commands of a text that is a plain list, None for any other."""
    text = text.strip(" \t\n")
    parts = [Part("", [], 0, 0)]
    at, size = 0, len(text)
    while at < size:
        token = _TOKEN(text, at)
        if token is None:
            return None
        kind, at = token.lastindex or 0, token.end()
        if kind == _OPERATOR:
            if not parts[-1].words:
                return None
            parts.append(Part(token[1], [], at, at))
        elif kind != _REDIRECT:
            value = token[kind]
            words = parts[-1].words
            if not words and kind <= _BARE and (value in KEYWORDS or "=" in value):
                return None
            words.append(constant(value) if kind != _GLOB else Word(value, WordKind.GLOB))
            parts[-1].end = at
    if not parts[-1].words and parts[-1].operator == ";":
        parts.pop()
    return parts if parts[-1].words else None
