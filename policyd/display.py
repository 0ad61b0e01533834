"""Making text safe to show to a person.

Rules of this module:

1. No character moves a cursor, changes a colour or a title, or is invisible: control, format, direction, private and
   unassigned characters, lone surrogates and blanks other than the plain one are written as `⟨U+202E⟩`; a line feed is
   `⏎`, a tab `⇥`. These signs themselves are escaped too, so that nobody can forge one.
2. A cut is shown with its length, and the end stays visible, where a command may hide its last part.
3. Long runs of blanks and floods of combining marks, which push text out of sight, are cut in the same way.
4. The result is one line. A text of several lines is split by the caller.
5. Parts are made safe when they are put into a line, and the whole line when it is printed (`inert`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

RUN = 16
"""Blanks in a row that are shown as they are."""
MARKS = 4
"""Combining marks on one character that are shown."""
SHORTEST = 64
"""The least limit: below it nothing could be announced."""

_TOO_WIDE = " " * (RUN + 1)
_ASCII = re.compile(rf" {{{RUN + 1},}}|[ -~]")
_NAMED = {"\n": "⏎", "\t": "⇥"}
_SIGNS = frozenset("⟨⟩⏎⇥")
_LOOKS_EMPTY = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_SELECTORS = (("\u180b", "\u180f"), ("\ufe00", "\ufe0f"), ("\U000e0100", "\U000e01ef"))

Piece = tuple[str, int]
"""What is shown, and for how many characters of the text."""


def sentences(parts: Iterable[str]) -> str:
    """Return reasons as one text: one that ends as a sentence needs no semicolon behind it. Empty ones are left out."""
    text = ""
    for part in filter(None, parts):
        text += f"{' ' if text[-1:] in '.!?' else '; '}{part}" if text else part
    return text


def safe(text: str, *, limit: int | None = None) -> str:
    """Return `text` as one line that acts on no terminal, page or chat.

    With `limit`, at most that many characters (at least `SHORTEST`); the middle gives way.
    """
    if (limit is None or len(text) <= limit) and _plain(text):
        return text
    if limit is None:
        return _joined(_pieces(text))
    room = max(limit, SHORTEST)
    if len(text) <= 2 * room:
        pieces = list(_pieces(text))
        shown = _joined(pieces)
        return shown if len(shown) <= room else _ends(pieces, pieces[::-1], len(text), room)
    return _ends(list(_pieces(text[:room])), list(_pieces(text[-room:]))[::-1], len(text), room)


def _plain(text: str) -> bool:
    """Say whether a text is printable ASCII without blanks at its ends or many in a row."""
    return text.isascii() and text.isprintable() and _TOO_WIDE not in text and " " not in (text[:1], text[-1:])


def inert(line: str) -> str:
    """Return a line put together of parts, some of them safe already: it acts on nothing, and is cut nowhere."""
    if line.isascii() and line.isprintable():
        return line
    return "".join(char if char == " " or char in _SIGNS else _written(char) for char in line)


def in_toml(text: str) -> str:
    """Return TOML without comments that means the same, in which such characters are escaped, as its strings may be."""
    if text.isascii():  # what is no text there was escaped when it was written
        return text
    return "".join(char if char in " \n" or not _hides(char) else f"\\U{ord(char):08x}" for char in text)


def _joined(pieces: Iterable[Piece]) -> str:
    return "".join(shown for shown, _ in pieces)


def _ends(front: list[Piece], back: list[Piece], length: int, room: int) -> str:
    """The beginning and, longer, the end of a text, with the number of its characters between them."""
    room -= len(_note(length, "characters"))
    first = _fitting(front, room // 3)
    last = _fitting(back, room - sum(len(shown) for shown, _ in first))
    cut = length - sum(count for _, count in first) - sum(count for _, count in last)
    return _joined(first) + _note(cut, "characters") + _joined(reversed(last))


def _fitting(pieces: list[Piece], room: int) -> list[Piece]:
    """The first pieces that fit into `room` characters."""
    fitting: list[Piece] = []
    for piece in pieces:
        room -= len(piece[0])
        if room < 0:
            break
        fitting.append(piece)
    return fitting


def _note(count: int, what: str) -> str:
    return f"⟨{count} {what} cut⟩"


# ---- pieces ----------------------------------------------------------------------------------------


def _pieces(text: str) -> Iterator[Piece]:
    here = 0
    while here < len(text):
        piece = _piece(text, here)
        here += piece[1]
        yield piece


def _piece(text: str, here: int) -> Piece:
    found = _ASCII.match(text, here)
    if found is not None:
        return (found[0], 1) if len(found[0]) == 1 else (_note(len(found[0]), "blanks"), len(found[0]))
    marks = _marks(text, here)
    return (_note(marks, "marks"), marks) if marks > MARKS else (_written(text[here]), 1)


def _marks(text: str, here: int) -> int:
    """The number of combining marks in a row that begin at `here`."""
    end = here
    while end < len(text) and unicodedata.category(text[end])[0] == "M":
        end += 1
    return end - here


def _written(char: str) -> str:
    if char in _NAMED:
        return _NAMED[char]
    return f"⟨U+{ord(char):04X}⟩" if _hides(char) else char


def _hides(char: str) -> bool:
    """Whether a character acts on a display, shows as nothing or as a blank, or is a sign of this module."""
    if unicodedata.category(char)[0] in "CZ" or char in _SIGNS or char in _LOOKS_EMPTY:
        return True
    return any(low <= char <= high for low, high in _SELECTORS)
