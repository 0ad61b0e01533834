"""Shell text to simple commands, files and URLs; command patterns; the sets that ship.

This is the package's one door: `read`, `read_argv`, `CommandPattern`, `shipped`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policyd.commands.plain import split
from policyd.model import Filesystem, Reading, SimpleCommand

__all__ = ["CommandPattern", "read", "read_argv", "shipped"]


def read(
    text: str, *, cwd: tuple[str, ...], home: str, shell: str = "bash", fs: Filesystem | None = None
) -> Reading:
    """Read a shell text."""
    words = split(text.strip(" \t\n")) if text.strip(" \t\n") else None
    if words is None:
        return Reading(opaque=("the command is not understood",))
    return Reading(commands=(SimpleCommand(words, text, cwd=cwd),))


def read_argv(
    argv: tuple[str, ...], env: Mapping[str, str], *, cwd: tuple[str, ...], home: str, fs: Filesystem | None = None
) -> Reading:
    """Read an argument vector."""
    return read(" ".join(argv), cwd=cwd, home=home, fs=fs)


def __getattr__(name: str) -> Any:
    if name == "CommandPattern":
        from policyd.commands.patterns import CommandPattern

        return CommandPattern
    if name == "shipped":
        from policyd.commands.sets import shipped

        return shipped
    raise AttributeError(name)
