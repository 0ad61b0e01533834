"""Whom a signal was meant for: what a terminal sends, it sends to the agent as well.

A key like Ctrl-C signals every process of the terminal's foreground group: the agent, which stays in the group it would
be in without policyd, has it already and must not get it again. What is sent to policyd alone is passed on. Only the
kernel knows which it was, and tells it to whoever waits for a blocked signal: a thread does that. Of what a program
sends, the kernel does not tell whether it was for the whole group: that the agent gets twice.

Where there is no such waiting (macOS), or no thread to be had, all is passed on.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Collection
from contextlib import suppress

SHARED = 0x80
"""Added to the number of a signal that the agent has too."""
BY_KERNEL = 0x80
"""`SI_KERNEL`."""


def tell(numbers: Collection[int], signals: int) -> None:
    """Write signals to a descriptor from here on, as `catch` does, with whether the agent has them too.

    Threads that are started later have them blocked.
    """
    if not hasattr(signal, "sigwaitinfo"):
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        threading.Thread(target=_wait, args=(numbers, signals), name="policyd-signals", daemon=True).start()
    except RuntimeError:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)


def _wait(numbers: Collection[int], signals: int) -> None:
    while True:
        found = signal.sigwaitinfo(numbers)
        with suppress(BlockingIOError):  # full of signals that were not looked at yet
            os.write(signals, bytes([found.si_signo | (SHARED if to_all(found.si_signo, found.si_code) else 0)]))


def to_all(number: int, code: int) -> bool:
    """Say whether the whole group got a signal; that a terminal was hung up is told to a session's leader alone."""
    return code == BY_KERNEL and not (number == signal.SIGHUP and os.getsid(0) == os.getpid())
