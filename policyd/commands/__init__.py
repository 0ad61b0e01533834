"""Shell text to simple commands, files and URLs; command patterns; the sets that ship.

This is the package's one door: `read`, `read_argv`, `CommandPattern`, `PatternError`; each is loaded when it is
first asked for. A text goes up the stairs; each folder knows those below it:

    reading    the whole way of a text, or of an argument vector, to everything it would do
    sets       the sets that ship, and whether the table of programs can vouch for a command
    files      the files and URLs a simple command names, and what it does to them
    shell      what a text does when a shell runs it: `flat` for plain lists, `grammar` for the rest
    matching   a pattern against a command: sure for an allow, suspecting for a strict rule
    nested     commands inside commands: `sudo`, `find -exec`, `bash -c`, the words of a stranger
    dialects   what zsh, a lesser `sh`, PowerShell and cmd read the same way
    argv       the words of a program taken apart as the program would
    state      what a shell knows while a text runs: directory, variables, meaning of names
    lexing     text before it means anything
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policyd.commands.matching.patterns import CommandPattern, PatternError
    from policyd.commands.reading import read, read_argv

HOMES = {
    "read": "reading",
    "read_argv": "reading",
    "CommandPattern": "matching.patterns",
    "PatternError": "matching.patterns",
}
"""Where what is loaded when it is first asked for lives."""
FOREIGN = frozenset({"powershell", "pwsh", "cmd"})
"""Shells whose texts are read at their plainest only (`dialects.foreign`); commands there are reached through one."""

__all__ = ["FOREIGN", "CommandPattern", "PatternError", "read", "read_argv"]


def __getattr__(name: str) -> object:
    """Load what reads commands and patterns when it is first asked for: a start has neither."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
    globals()[name] = found
    return found
