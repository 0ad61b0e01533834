"""One word of a pattern against one word of a command, as a strict rule has to suspect it."""

from __future__ import annotations

import posixpath

from policyd.commands.lexing.patternwords import PatternWord, can_match, fits, fold
from policyd.commands.matching.kin import ABBREVIATES
from policyd.commands.matching.views import View
from policyd.model import Truth, Word, WordKind

CONST, NO, MAYBE, YES = WordKind.CONST, Truth.NO, Truth.MAYBE, Truth.YES


def fit(pattern: PatternWord, word: Word, view: View, *, widen: bool) -> Truth:
    """Say whether `word`, one behind the program, may be what `pattern` says."""
    if word.kind is not CONST:
        return MAYBE if _may_be(pattern, word) else NO
    if fits(pattern, word.text, cross=widen) or (pattern.path and path(pattern, word.text, view)):
        return YES
    if not widen:
        return NO
    return YES if _same_sub(pattern, word, view) else MAYBE if _shortened(pattern, word, view) else NO


def _shortened(pattern: PatternWord, word: Word, view: View) -> bool:
    """Say whether a word may be the beginning of a subcommand that its program takes for the whole."""
    if len(word.text) < 2 or not (pattern.literal or "").startswith(word.text) or view.names.isdisjoint(ABBREVIATES):
        return False
    return view.called is None or word.text not in view.called.outer.subs


def _may_be(pattern: PatternWord, word: Word) -> bool:
    if word.many or pattern.any:
        return True
    if pattern.literal is None:
        return True
    if word.kind is WordKind.GLOB:
        return can_match(word.text, pattern.literal)
    return pattern.literal.startswith(word.prefix) or "/" in word.prefix


def path(pattern: PatternWord, text: str, view: View) -> Truth:
    """Compare as paths, relative ones from every directory the command may run in."""
    if fits(pattern, text, cross=True):
        return YES
    if pattern.literal is None:
        return YES if any(fits(pattern, posixpath.join(place, text), cross=True) for place in view.cwd) else NO
    for place in view.cwd:
        if fold(posixpath.join(place, text)) == fold(posixpath.join(place, pattern.literal)):
            return YES
    return NO


def _same_sub(pattern: PatternWord, word: Word, view: View) -> bool:
    """Say whether both words name the same subcommand (`npm i` and `npm install`)."""
    if view.called is None or pattern.literal is None or word.text not in view.called.path:
        return False
    path, table = view.called.path, view.called.outer
    for step in path[: path.index(word.text)]:
        table = table.subs[step]
    other = table.subs.get(pattern.literal)
    return other is not None and other.name == table.subs[word.text].name
