"""Whether a process runs below another: agents must not answer for the person whose agents they are.

Read from `/proc` by process ids the kernel gave. What cannot be told (another namespace, a hidden `/proc`, a process
that has ended, whose id may be another's) is said so, and whoever asks must refuse. A process that got itself another
parent is not found out: where that matters, `/proc` is closed to the daemon and only root answers, as in the shipped
unit.
"""

from __future__ import annotations

import os
from collections.abc import Collection

DEEPEST = 100
PROC = "/proc"
UNSEEN = "policyd cannot see which program asks (its `/proc` is closed or another): answer as root"
BELOW = "what runs below an agent, or below a program that asks policyd, may not answer for a person"


def above(pid: int, peers: Collection[int]) -> str:
    """Return why process `pid` may not speak for a person, empty if nothing above it is, or runs, an agent.

    `peers` are programs that ask policyd for an agent of theirs.
    """
    if pid <= 0:
        return UNSEEN
    seen = 0
    while pid > 1 and seen < DEEPEST:
        parent, words = process(pid)
        if parent < 0:
            return UNSEEN
        if seen and (pid in peers or runs_agent(words)):
            return BELOW
        pid, seen = parent, seen + 1
    return BELOW if pid > 1 else ""


def born(pid: int) -> int:
    """Return when a process was started, in the kernel's ticks; 0 where that cannot be told."""
    try:
        with open(f"{PROC}/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def process(pid: int) -> tuple[int, list[str]]:
    """Return the parent and the words of a process; -1 where it cannot be looked at."""
    try:
        with open(f"{PROC}/{pid}/stat", encoding="utf-8", errors="replace") as file:
            parent = int(file.read().rpartition(")")[2].split()[1])
        with open(f"{PROC}/{pid}/cmdline", "rb") as file:
            return parent, file.read().decode(errors="replace").split("\0")
    except (OSError, ValueError, IndexError):
        return (-1, []) if os.path.isdir(PROC) else (0, [])


def runs_agent(words: list[str]) -> bool:
    """Say whether a command line is a policyd that has an agent below it."""
    names = [word.rpartition("/")[2] for word in words]
    return any(name == "policyd" and words[at + 1 : at + 2] in (["proxy"], ["serve"]) for at, name in enumerate(names))
