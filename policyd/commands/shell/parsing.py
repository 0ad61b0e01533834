"""The grammar, asked within bounds: some texts cost it the square of their length, or worse.

Rules of this module:

1. Nothing here looks at a clock: what a text costs is counted, so the same text is always read the same way.
2. The grammar looks ahead from every word of some broken texts to their end. It is given the text in pieces, and the
   pieces it asks for are counted as looks, over a whole reading and the texts inside it.
3. What it does at the end of a broken text grows with the square of its words, and nothing can end that: the marks and
   blanks that part words are counted before. Letters cost next to nothing, so long texts of few marks are parsed.
4. Beyond a bound there is no tree. Whoever asked says so, and reads the text without one.
"""

from __future__ import annotations

import re
import string
from functools import cache
from itertools import islice

import tree_sitter
import tree_sitter_bash

from policyd.commands.lexing.run import Run

MARKS = 8_000
"""Characters that are no part of a plain word, in one text."""
_PIECE = 1_024
_BROKEN = 2.5
"""Looks that a mark of a broken text counts for: what is done at its end."""
_PLAIN = f"{string.ascii_letters}{string.digits}_./-".encode()
_STAND_INS = bytes(range(128)) + b"\x07" * 128
_MARK = re.compile(rb"[^A-Za-z0-9_./-]")


@cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parsed(run: Run, source: str) -> tree_sitter.Node | None:
    """Return the root of the tree of a text (latin-1), None where that may cost too much."""
    text = stand_in(source)
    most = min(MARKS, run.looks)
    if len(text) > most and _marks(text) > most:
        return None

    def piece(at: int, _: object) -> bytes:
        run.looks -= 1
        return text[at : at + _PIECE] if run.looks >= 0 else b""

    root = _parser().parse(piece).root_node
    if run.looks < 0:  # the grammar was told that the text ends where it does not
        return None
    if root.has_error:
        run.looks -= int(_marks(text) * _BROKEN)
    return root


def stand_in(source: str) -> bytes:
    """Return ASCII of the same length for the grammar, with stand-ins for all other characters.

    Its scanner looks every character up in a table of the C library that ends at 255, and dies beyond it.
    """
    return source.encode("latin-1", "replace").translate(_STAND_INS)


def _marks(text: bytes) -> int:
    """Count what parts words; the blanks a line begins with count for few."""
    return len(text.replace(b"    ", b" ").translate(None, _PLAIN))


def beginning(source: str) -> str:
    """Return the first lines or commands of a text that has too many marks, with half as many as may be."""
    end = next(islice(_MARK.finditer(stand_in(source)), MARKS // 2, None), None)
    if end is None:
        return ""
    return source[: max(source.rfind(one, 0, end.start()) for one in "\n;") + 1]
