"""What the kernel says of other processes: who started them, when, and with which words."""

from __future__ import annotations

import sys

PROC = "/proc"
DEEPEST = 100
"""Processes above one that are looked at."""


def born(pid: int) -> int:
    """Return when a process was started, in the kernel's ticks; 0 where that cannot be told."""
    try:
        return int(_stat(pid)[19])
    except (OSError, ValueError, IndexError):
        return 0


def process(pid: int) -> tuple[int, list[str]]:
    """Return the parent and the words of a process; -1 where it cannot be looked at."""
    if sys.platform == "darwin":
        return _by_ps(pid)
    try:
        parent = int(_stat(pid)[1])
        with open(f"{PROC}/{pid}/cmdline", "rb") as file:
            return parent, file.read().decode(errors="replace").split("\0")
    except (OSError, ValueError, IndexError):
        return -1, []


def runs_agent(words: list[str]) -> bool:
    """Say whether a command line is a policyd that has an agent below it."""
    names = [word.rpartition("/")[2] for word in words]
    return any(name == "policyd" and words[at + 1 : at + 2] in (["proxy"], ["serve"]) for at, name in enumerate(names))


def _stat(pid: int) -> list[str]:
    """Return the fields of a process behind its name, which may hold anything."""
    with open(f"{PROC}/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def _by_ps(pid: int) -> tuple[int, list[str]]:
    import subprocess

    command = ["/bin/ps", "-o", "ppid=,command=", "-p", str(pid)]
    words = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return (int(words[0]), words[1:]) if words and words[0].isdigit() else (-1, [])
