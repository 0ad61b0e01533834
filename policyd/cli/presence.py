"""Whether a person runs a loosening command, which an agent must not run for itself.

Such a command needs a terminal of its own, and is refused to all descendants of a running `policyd proxy`, since agents
give their commands pseudo-terminals. It is also refused if processes cannot be inspected, or below too many of them.
Processes above one that is hidden (another user's, where the kernel hides these) are not inspected.
"""

from __future__ import annotations

import os
import sys

from policyd.storage.processes import DEEPEST, process, runs_agent


def refusal() -> str:
    """Return why this process may not loosen anything, empty if a person runs it."""
    if not has_terminal():
        return "this needs a terminal of its own, with a person in front of it"
    return below_agent()


def below_agent() -> str:
    """Return why an agent may have started this process, empty if none is found above it."""
    parent, _ = process(os.getpid())
    if parent < 0:
        return "it cannot be determined whether an agent runs this"
    found = _ancestors(parent)
    if len(found) == DEEPEST:  # an agent may nest shells to hide beyond these
        return "too many processes are above this one to determine whether an agent runs it"
    return "an agent under policyd may not do this" if any(map(runs_agent, found)) else ""


def has_terminal() -> bool:
    """Say whether this process has a terminal, and reads from one."""
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
