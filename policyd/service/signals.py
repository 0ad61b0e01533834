"""Turns signals into bytes in a pipe that a loop reads: their numbers, in order of arrival."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection
from types import FrameType


def catch(numbers: Collection[int]) -> tuple[int, int]:
    """Catch signals, those too that whoever started this process had blocked; return the ends of the pipe.

    An ignored SIGCHLD is ignored no more: with it nobody learns how a child ended.
    """
    reading, writing = os.pipe()
    for fd in (reading, writing):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in numbers:
        signal.signal(number, noted)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
    return reading, writing


def noted(number: int, frame: FrameType | None) -> None:
    """Do nothing: the interpreter has written the number to the pipe."""
