"""The words of a text that no grammar here reads, cut at every operator of any shell: for strict rules only.

It sees programs that are plainly written and promises nothing else; whatever it is used for is opaque as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from policyd.commands.lexing.plain import constant
from policyd.commands.lexing.plainwords import KEYWORDS
from policyd.model import Word

_CUTS = re.compile(r"[;\n\r&|(){}`]+")
_WORDS = re.compile(r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"]|['\"])+")
_QUOTES = re.compile(r"['\"\\^]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=").match
_PIECES = 1_000
_PIECE = 16_384


def pieces(text: str) -> Iterator[tuple[Word, ...]]:
    """Yield the words of every piece between operators, without keywords and assignments at its head."""
    for number, piece in enumerate(_CUTS.split(text)):
        if number >= _PIECES:
            return
        words = [_QUOTES.sub("", word) for word in _WORDS.findall(piece[:_PIECE])]
        while words and (words[0] in KEYWORDS or words[0] in {"!", "$", "@"} or _ASSIGNMENT(words[0])):
            words.pop(0)
        if words and words[0]:
            words[0] = words[0].lstrip("=$") or words[0]
            yield tuple([constant(word) for word in words])
