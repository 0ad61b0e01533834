"""Whether a process runs below another: agents must not answer for the person whose agents they are.

Judged by process ids the kernel gave. What cannot be told (another namespace, a hidden `/proc`, a process that has
ended, whose id may be another's) is said so, and whoever asks must refuse. A process that got itself another parent is
not found out: where that matters, `/proc` is closed to the daemon and only root answers, as in the shipped unit.
"""

from __future__ import annotations

from collections.abc import Collection

from policyd.storage.processes import DEEPEST, process, runs_agent

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
