"""One reading in the making: what was found so far, and the limits on it.

Rules of this module:

1. Whatever is met is added; nothing that was found is ever taken back or replaced.
2. The caps end the reading by `FullError`: what was found stays, the rest is one opaque part.
3. What is read costs at most what the caps say, whatever it is: words are counted with the parts, since each of them
   may name a file.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from policyd.commands.lexing.source import Document
from policyd.model import FileUse, Reading, SimpleCommand, UrlUse

LENGTH = 256 * 1024
DEPTH = 64
PARTS = 5_000
WORDS = 5_000
"""Words of one command; behind them may stand any others."""
A_PART = 4
"""Words that count as much as a part."""
LOOKS = 20_000
"""How often the grammar may look at a piece of text: far more than the longest texts that are shell syntax need."""
A_WORD = 64
"""Characters of a directory that count as much as a word."""
REASONS = 100
"""Reasons that are told apart."""
SHOWN = 60
"""How many characters of a text a reason shows."""


class FullError(Exception):
    """A cap is reached."""


class Run(Struct):
    """Everything found so far in one text and the scripts inside it."""

    strict: bool = False
    """Only strict rules may use what is found (text for another shell)."""
    commands: list[SimpleCommand] = field(default_factory=list)
    files: list[FileUse] = field(default_factory=list)
    urls: list[UrlUse] = field(default_factory=list)
    reasons: dict[str, None] = field(default_factory=dict)
    documents: list[Document] = field(default_factory=list)
    backs: dict[str, None] = field(default_factory=dict)
    depth: int = 0
    left: int = PARTS
    """Parts that may still be added."""
    looks: int = LOOKS
    """How often the grammar may still look at a piece of text."""

    def opaque(self, reason: str) -> None:
        """Note a part that could not be understood."""
        self.reasons[reason] = None

    def spend(self, words: int = 0) -> None:
        """Count one part, with words that have to be looked at.

        Raises:
            FullError: there were `PARTS` before.
        """
        self.left -= 1 + words // A_PART
        if self.left < 0:
            raise FullError(f"more than {PARTS} parts")

    def deeper(self) -> None:
        """Enter one level of nesting; the caller leaves it with `depth -= 1`.

        Raises:
            FullError: deeper than `DEPTH`.
        """
        self.depth += 1
        if self.depth > DEPTH:
            raise FullError(f"nested more than {DEPTH} deep")

    def add(self, command: SimpleCommand) -> int:
        """Add a command, counted as a part with its words; return its index.

        Raises:
            FullError: there were `PARTS` before.
        """
        self.spend(_words(command))
        self.commands.append(command)
        return len(self.commands) - 1

    def reading(self) -> Reading:
        """Return what was found."""
        reasons = told(self.reasons) if self.reasons else ()
        return Reading(tuple(self.commands), tuple(self.files), tuple(self.urls), reasons, tuple(self.backs))


def _words(command: SimpleCommand) -> int:
    """Return how many words have to be looked at: those of the wrapped command, and of what was set before, too.

    A directory many levels deep counts as well: each level may be a link.
    """
    count, inner = len(command.argv) + len(command.taint) + len(command.env), command.inner
    count += sum(map(len, command.cwd)) // A_WORD
    while inner is not None:
        count, inner = count + len(inner.argv), inner.inner
    return count


def told(reasons: Iterable[str]) -> tuple[str, ...]:
    """Return reasons; of very many the first, and how many more there are."""
    found = tuple(reasons)
    if len(found) <= REASONS:
        return found
    return (*found[:REASONS], f"{len(found) - REASONS} more parts of the command are not understood")
