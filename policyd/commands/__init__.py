"""Shell text to simple commands, files and URLs; command patterns; the sets that ship.

This is the package's one door: `read`, `read_argv`, `CommandPattern`, `PatternError`, `shipped`. The sets and the
grammar are loaded when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from policyd.commands.patterns import CommandPattern, PatternError

if TYPE_CHECKING:
    from policyd.commands.reading import read, read_argv
    from policyd.commands.sets import ShippedSet

FOREIGN = frozenset({"powershell", "pwsh", "cmd"})
"""Shells of whose texts only the plainest are read (see `foreign`); a command found there was reached through one."""

__all__ = ["FOREIGN", "CommandPattern", "PatternError", "read", "read_argv", "shipped"]


def __getattr__(name: str) -> object:
    """Load the readers of commands when one is first asked for: a start has no command to read."""
    if name not in {"read", "read_argv"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from policyd.commands import reading

    globals()["read"], globals()["read_argv"] = reading.read, reading.read_argv
    return globals()[name]


def shipped() -> Mapping[str, ShippedSet]:
    """Return the sets that ship, by name without `@`."""
    from policyd.commands.sets import shipped as load

    return load()
