"""The fast path: a text of plain words needs no grammar.

A text qualifies if every character means itself to every shell (letters, digits, `_./@%+,:=-` and blanks) and the first
word is neither a keyword nor an assignment. Anything else is `grammar`'s.
"""

from __future__ import annotations

import re

from policyd.model import Word

KEYWORDS = frozenset(
    [
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "for",
        "select",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "function",
        "time",
        "coproc",
        "in",
        "repeat",
        "foreach",
        "end",
        "nocorrect",
        "noglob",
        "always",
    ]
)
"""Words that are no program at the head of a command, in bash or zsh."""

_PLAIN = re.compile(r"[A-Za-z0-9_./@%+,:-][A-Za-z0-9_./@%+,:= \t-]*").fullmatch
_WORDS: dict[str, Word] = {}
_WORDS_KEPT = 8192


def constant(text: str) -> Word:
    """Return the constant word `text`; words recur, so they are kept (bounded)."""
    word = _WORDS.get(text)
    if word is None:
        if len(_WORDS) >= _WORDS_KEPT:
            _WORDS.clear()
        word = _WORDS[text] = Word(text)
    return word


def split(text: str) -> tuple[Word, ...] | None:
    """Return the words of a text that needs no grammar, None for any other."""
    if _PLAIN(text) is None:
        return None
    words = text.split()
    first = words[0]
    if first in KEYWORDS or "=" in first:
        return None
    return tuple([_WORDS.get(word) or constant(word) for word in words])
