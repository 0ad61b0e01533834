"""Whether the person who types a loosening command is one: commands that an agent must not run for itself.

Such a command wants a terminal of its own, and is refused to whatever descends from a running `policyd proxy`: agents
give their commands pseudo-terminals.
"""

from __future__ import annotations

import os
import sys

from policyd.storage.processes import DEEPEST, process, runs_agent


def refusal() -> str:
    """Return why this process may not loosen anything, empty if a person is there."""
    if not _has_terminal():
        return "this wants a terminal of its own, with a person in front of it"
    return "an agent under policyd may not do this" if any(map(runs_agent, _ancestors())) else ""


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return sys.stdin.isatty()


def _ancestors() -> list[list[str]]:
    """Return the command lines of all processes above this one."""
    found: list[list[str]] = []
    pid = os.getppid()
    while pid > 1 and len(found) < DEEPEST:
        pid, words = process(pid)
        found.append(words)
    return found
