"""The words of `test` and `[`: which files they ask about, and whether they do more than compare.

Source: bash(1), CONDITIONAL EXPRESSIONS. `-v` and `-R` evaluate a subscript, so they and any operand of a numeric
comparison that is no number are harm. A word that is not constant is fine where only an operand can stand.
"""

from __future__ import annotations

import re

from policyd.model import Word, WordKind

FILE = frozenset(f"-{letter}" for letter in "abcdefghkLNOGprsSuwx")
STRING = frozenset({"-z", "-n", "-t", "-o"})
TEXT = frozenset({"=", "==", "!=", "<", ">"})
NUMERIC = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
FILES = frozenset({"-nt", "-ot", "-ef"})
_NUMBER = re.compile(r"[-+]?[0-9]+").fullmatch

Found = tuple[str, tuple[Word, ...]]
ODD: Found = ("a test that is not understood", ())


def read_test(words: tuple[Word, ...]) -> Found:
    """Return why it is more than a comparison (empty if it is not), and the files it asks about."""
    if words and words[-1] == Word("]"):
        words = words[:-1]
    if any(word.many for word in words) and not _compares(words):
        return "a word of `test` that may become several", ()
    if len(words) > 4 or any(word.text in {"-a", "-o"} for word in words[1:-1]):
        return _joined(words)
    return _simple(words)


def _compares(words: tuple[Word, ...]) -> bool:
    """Say whether texts are compared of which each is one word, or none at all."""
    known = all(word.kind is not WordKind.UNKNOWN or not word.many for word in words)
    return known and len(words) == 3 and words[1].kind is WordKind.CONST and words[1].text in TEXT


def _joined(words: tuple[Word, ...]) -> Found:
    if any(word.kind is not WordKind.CONST for word in words):
        return ODD
    harms: list[str] = []
    files: list[Word] = []
    part: list[Word] = []
    for word in (*words, Word("-a")):
        if word.text in {"-a", "-o"} and part:
            harm, named = _simple(tuple(part))
            harms.append(harm)
            files.extend(named)
            part = []
        else:
            part.append(word)
    return next(filter(None, harms), "" if not part else ODD[0]), tuple(files)


def _simple(words: tuple[Word, ...]) -> Found:
    while len(words) > 1 and words[0] == Word("!"):
        words = words[1:]
    if len(words) <= 1:
        return "", ()
    if len(words) == 2:
        return _unary(words[0], words[1])
    if len(words) == 3:
        return _binary(*words)
    return ODD


def _unary(operator: Word, operand: Word) -> Found:
    if operator.kind is not WordKind.CONST:
        return ODD
    if operator.text in FILE:
        return "", (operand,)
    return ("", ()) if operator.text in STRING else ODD


def _binary(left: Word, operator: Word, right: Word) -> Found:
    if operator.kind is not WordKind.CONST:
        return ODD
    if operator.text in TEXT:
        return "", ()
    if operator.text in FILES:
        return "", (left, right)
    if operator.text in NUMERIC:
        numbers = all(word.kind is WordKind.UNKNOWN or _NUMBER(word.text) for word in (left, right))
        return ("", ()) if numbers else ("a number that is none", ())
    if left == Word("(") and right == Word(")"):
        return "", ()
    return ODD
