"""Shell text to simple commands, files and URLs; command patterns; the sets that ship.

This is the package's one door: `read`, `read_argv`, `CommandPattern`, `PatternError`, `shipped`. The sets and the
grammar are loaded when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from policyd.commands.patterns import CommandPattern, PatternError
from policyd.commands.reading import read, read_argv

if TYPE_CHECKING:
    from policyd.commands.sets import ShippedSet

__all__ = ["CommandPattern", "PatternError", "read", "read_argv", "shipped"]


def shipped() -> Mapping[str, ShippedSet]:
    """Return the sets that ship, by name without `@`."""
    from policyd.commands.sets import shipped as load

    return load()
