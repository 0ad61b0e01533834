"""Whether a signal has reached the agent too, as signals of a terminal do.

A key like Ctrl-C signals every process of the terminal's foreground group: the agent, which is in the same group as it
would be without policyd, has received it already and must not get it again. A signal to policyd alone is passed on.
Only the kernel knows which it was, and tells a thread that waits for the blocked signal (`sigwaitinfo`). For a signal
from a program the kernel does not tell whether it went to the whole group: the agent may get that twice.

Without such a wait (macOS), or without a thread, every signal is passed on.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress

TERMINALS = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT})
"""What a terminal sends. All else is caught as ever: at once, in the order of what else happens."""
SHARED = 0x80
"""Added to the number of a signal that the agent has too."""
BY_KERNEL = 0x80
"""`SI_KERNEL`."""


def tell(signals: int) -> None:
    """Write `TERMINALS` to a descriptor from here on, as `catch` does, with whether the agent has them too.

    Threads that are started later have them blocked.
    """
    if not hasattr(signal, "sigwaitinfo"):
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, TERMINALS)
    try:
        threading.Thread(target=_wait, args=(signals,), name="policyd-signals", daemon=True).start()
    except RuntimeError:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TERMINALS)


def _wait(signals: int) -> None:
    while True:
        found = signal.sigwaitinfo(TERMINALS)
        with suppress(BlockingIOError):  # full of signals that were not looked at yet
            os.write(signals, bytes([found.si_signo | (SHARED if to_all(found.si_signo, found.si_code) else 0)]))


def to_all(number: int, code: int) -> bool:
    """Say whether the whole group got a signal; that a terminal was hung up is told to a session's leader alone."""
    return code == BY_KERNEL and not (number == signal.SIGHUP and os.getsid(0) == os.getpid())
