"""Whether a process descends from an agent: agents must not answer for their person.

Judged by process ids from the kernel. If it cannot be determined (another namespace, a hidden `/proc`, a process that
has ended and whose id may be reused), the result says so and the caller must refuse. A process that was reparented is
not detected: where that matters, `/proc` is hidden from the daemon and only root may answer, as in the shipped unit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from policyd.storage.processes import DEEPEST, born, process, runs_agent

if TYPE_CHECKING:
    from policyd.daemon.shared import Shared, Who

UNSEEN = "policyd cannot see which program asks (its `/proc` is closed or another): answer as root"
BELOW = "what runs below an agent, or below a program that asks policyd, may not answer for a person"


def speaks(shared: Shared, who: Who) -> Callable[[], bool]:
    """Return what says whether a peer may speak for a person: its answers then count beyond its own sessions."""
    return lambda: not refusal(who, shared.agents_above())


def refusal(who: Who, peers: Collection[int]) -> str:
    """Return why a peer may not speak for a person, empty if it may."""
    why = above(who.pid, peers)
    if born(who.pid) != who.born:  # it has ended, and its id may be another's
        why = UNSEEN
    return "" if why == UNSEEN and who.uid == 0 else why


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
