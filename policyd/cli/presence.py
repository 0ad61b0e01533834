"""Whether the person who types a loosening command is one: commands that an agent must not run for itself.

Such a command wants a terminal of its own, and is refused to whatever descends from a running `policyd proxy`: agents
give their commands pseudo-terminals. Where nothing can be seen of processes it is refused too. What is above a process
that cannot be seen (another user's, where the kernel hides these) is not looked at; below too many it is refused.
"""

from __future__ import annotations

import os
import sys

from policyd.storage.processes import DEEPEST, process, runs_agent


def refusal() -> str:
    """Return why this process may not loosen anything, empty if a person is there."""
    if not has_terminal():
        return "this wants a terminal of its own, with a person in front of it"
    return below_agent()


def below_agent() -> str:
    """Return why this process may be an agent's, empty if none is seen above it."""
    parent, _ = process(os.getpid())
    if parent < 0:
        return "it cannot be seen whether an agent runs this"
    found = _ancestors(parent)
    if len(found) == DEEPEST:  # an agent may begin shell below shell, so that it is not met among these
        return "too many processes are above this one to see whether an agent runs it"
    return "an agent under policyd may not do this" if any(map(runs_agent, found)) else ""


def has_terminal() -> bool:
    """Say whether this process has a terminal, and is typed to."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return sys.stdin.isatty()


def _ancestors(pid: int) -> list[list[str]]:
    """Return the command lines of a process and of all above it."""
    found: list[list[str]] = []
    while pid > 1 and len(found) < DEEPEST:
        pid, words = process(pid)
        found.append(words)
    return found
