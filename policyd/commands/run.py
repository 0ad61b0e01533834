"""One reading in the making: what was found so far, and the limits on it.

Rules of this module:

1. Whatever is met is added; nothing that was found is ever taken back or replaced.
2. The caps end the reading by `Full`: what was found stays, the rest is one opaque part.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from policyd.commands.source import Document
from policyd.commands.state import State
from policyd.model import FileUse, Reading, SimpleCommand, UrlUse

try:
    from policyd.commands.operands import uses
except ImportError:

    def uses(command, index, *, home, stdin=False):
        return (), (), ()


LENGTH = 256 * 1024
DEPTH = 64
PARTS = 5_000


class Full(Exception):
    """A cap is reached."""


@dataclass(slots=True)
class Run:
    """Everything found so far in one text and the scripts inside it."""

    home: str
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
            Full: there were `PARTS` before.
        """
        self.left -= 1
        if self.left < 0:
            raise Full(f"more than {PARTS} parts")

    def deeper(self) -> None:
        """Enter one level of nesting; the caller leaves it with `depth -= 1`.

        Raises:
            Full: deeper than `DEPTH`.
        """
        self.depth += 1
        if self.depth > DEPTH:
            raise Full(f"nested more than {DEPTH} deep")

    def add(self, command: SimpleCommand, *, piped: bool) -> int:
        """Add a command and the files and URLs it names; return its index."""
        self.spend()
        index = len(self.commands)
        self.commands.append(command)
        last = command
        while last.inner is not None:
            last = last.inner
        files, urls, reasons = uses(last, index, home=self.home, stdin=piped)
        self.files += files
        self.urls += urls
        for reason in reasons:
            self.opaque(reason)
        return index

    def reading(self) -> Reading:
        """Return what was found."""
        return Reading(tuple(self.commands), tuple(self.files), tuple(self.urls), tuple(self.reasons))
