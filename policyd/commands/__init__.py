"""Shell text to simple commands, files and URLs; command patterns; the sets that ship.

This is the package's one door: `read`, `read_argv`, `CommandPattern`, `shipped`.
"""

from __future__ import annotations

from policyd.commands.reading import read, read_argv

__all__ = ["CommandPattern", "read", "read_argv", "shipped"]


def __getattr__(name: str) -> object:
    if name == "CommandPattern":
        from policyd.commands.patterns import CommandPattern

        return CommandPattern
    if name == "shipped":
        from policyd.commands.sets import shipped

        return shipped
    raise AttributeError(name)
