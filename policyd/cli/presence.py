"""Whether the person who types a loosening command is one: commands that an agent must not run for itself.

Such a command wants a terminal of its own, and is refused to whatever descends from a running `policyd proxy`: agents
give their commands pseudo-terminals.
"""

from __future__ import annotations

import os
import sys

DEEPEST = 100
WATCHED = ("proxy", "serve")


def refusal() -> str:
    """Return why this process may not loosen anything, empty if a person is there."""
    if not _has_terminal():
        return "this wants a terminal of its own, with a person in front of it"
    return "an agent under policyd may not do this" if any(map(_is_policyd, _ancestors())) else ""


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
        pid, words = _process(pid)
        found.append(words)
    return found


def _process(pid: int) -> tuple[int, list[str]]:
    """Return the parent and the words of a process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            parent = int(file.read().rpartition(")")[2].split()[1])
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return parent, file.read().decode(errors="replace").split("\0")
    except (OSError, ValueError, IndexError):
        return _by_ps(pid) if sys.platform == "darwin" else (0, [])


def _by_ps(pid: int) -> tuple[int, list[str]]:
    import subprocess

    said = subprocess.run(
        ["/bin/ps", "-o", "ppid=,command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    words = said.stdout.split()
    return (int(words[0]), words[1:]) if words and words[0].isdigit() else (0, [])


def _is_policyd(words: list[str]) -> bool:
    """Say whether a command line is a policyd that has an agent below it."""
    names = [word.rpartition("/")[2] for word in words]
    return any(
        name == "policyd" and words[at + 1 : at + 2] and words[at + 1] in WATCHED for at, name in enumerate(names)
    )
