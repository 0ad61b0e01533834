"""One reading in the making: what was found so far, and the limits on it.

Rules of this module:

1. Whatever is met is added; nothing that was found is ever taken back or replaced.
2. The caps end the reading by `FullError`: what was found stays, the rest is one opaque part.
"""

from __future__ import annotations

from msgspec import Struct, field

from policyd.commands.source import Document
from policyd.model import FileUse, Reading, SimpleCommand, UrlUse

LENGTH = 256 * 1024
DEPTH = 64
PARTS = 5_000
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
    depth: int = 0
    left: int = PARTS
    """Parts that may still be added."""

    def opaque(self, reason: str) -> None:
        """Note a part that could not be understood."""
        self.reasons[reason] = None

    def spend(self) -> None:
        """Count one part.

        Raises:
            FullError: there were `PARTS` before.
        """
        self.left -= 1
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
        """Add a command; return its index."""
        self.spend()
        self.commands.append(command)
        return len(self.commands) - 1

    def reading(self) -> Reading:
        """Return what was found."""
        return Reading(tuple(self.commands), tuple(self.files), tuple(self.urls), tuple(self.reasons))
