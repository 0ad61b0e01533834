"""Shell text to simple commands, files and URLs; command patterns; the sets that ship.

This is the package's one door: `read`, `read_argv`, `CommandPattern`, `PatternError`, `shipped`. The sets and the
grammar are loaded when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policyd.commands.patterns import CommandPattern, PatternError
    from policyd.commands.reading import read, read_argv
    from policyd.commands.sets import ShippedSet

HOMES = {"read": "reading", "read_argv": "reading", "CommandPattern": "patterns", "PatternError": "patterns"}
"""Where what is loaded when it is first asked for lives."""
FOREIGN = frozenset({"powershell", "pwsh", "cmd"})
"""Shells of whose texts only the plainest are read (see `foreign`); a command found there was reached through one."""

__all__ = ["FOREIGN", "CommandPattern", "PatternError", "read", "read_argv", "shipped"]


def __getattr__(name: str) -> object:
    """Load what reads commands and patterns when it is first asked for: a start has neither."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
    globals()[name] = found
    return found


def shipped() -> Mapping[str, ShippedSet]:
    """Return the sets that ship, by name without `@`."""
    from policyd.commands.sets import shipped as load

    return load()
