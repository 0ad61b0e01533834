"""Signals become bytes in a pipe that the loop reads: their numbers, in the order they came."""

from __future__ import annotations

import os
import signal
from types import FrameType

from policyd.proxy.pump import FORWARDED


def install() -> int:
    """Catch what is forwarded and the end of children; return the descriptor to read."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    for number in (*FORWARDED, signal.SIGCHLD):
        signal.signal(number, noted)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


def noted(number: int, frame: FrameType | None) -> None:
    """Do nothing: the interpreter has written the number to the pipe."""


def die_by(number: int) -> None:
    """End this process by the signal that ended the agent, so that whoever waits sees the same; no core of ours."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    signal.set_wakeup_fd(-1)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
