"""What a scanner of words asks of whoever reads the whole text."""

from __future__ import annotations

from typing import Protocol

from policyd.commands.state import State


class Host(Protocol):
    """What a scanner needs of the reader of the whole text."""

    source: str
    state: State
    shown: bool
    """Whether a grammar was asked where substitutions are (not for the text of a here-document)."""
    printed: str
    """What the substitution read last prints, as `tame.mark` says it."""

    def opaque(self, reason: str) -> None:
        """Note a part that is not understood."""

    def substitution(self, start: int, end: int) -> int:
        """Read the `$(…)`, `$((…))`, `<(…)` at `start`; return where it ends (at most `end`)."""

    def closing(self, start: int, end: int) -> int:
        """Return where the `${…}` at `start` ends, 0 where the grammar shows none."""

    def ends_at(self, start: int) -> int:
        """Return where the grammar ends the substitution at `start`, 0 where it shows none."""

    def backticks(self, inner: str) -> None:
        """Read the text between backticks, its escapes removed."""
