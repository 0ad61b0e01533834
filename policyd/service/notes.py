"""Writing lines to standard error without ever blocking the traffic.

Other processes, such as the agent, share standard error, so it cannot be made non-blocking: a pipe or terminal is
opened a second time if the system supports that (a file is not, as two positions in it would overwrite each other),
and written to only when ready. A line that does not fit is dropped and counted in the next.
"""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Iterable
from contextlib import suppress

from policyd.display import inert, safe

LONGEST = 1000
"""Characters: at four bytes each, a ready pipe accepts them as a whole."""


def complain(problems: Iterable[str]) -> int:
    """Say on standard error why nothing was started, safe for a terminal: policies are written by others too."""
    lines = (safe(line) for problem in problems for line in problem.splitlines())
    os.write(2, "".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
    return 2


def on_journal() -> bool:
    """Say whether standard error is the journal of the service manager, which says so in `JOURNAL_STREAM`."""
    found = os.fstat(2)
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


class Notes:
    """Writes `policyd: …` lines."""

    def __init__(self) -> None:
        """Write to what standard error is now."""
        self._fd = 2
        self._lost = 0
        mode = os.fstat(2).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
            with suppress(OSError):
                self._fd = os.open("/proc/self/fd/2", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def write(self, text: str) -> None:
        """Write one line, or count it as lost."""
        lead = f"policyd: {self._lost} lines before this one found no room\n" if self._lost else ""
        data = f"{lead}policyd: {inert(text)}"[:LONGEST].encode("utf-8", "replace") + b"\n"
        if self._put(data):
            self._lost = 0
        else:
            self._lost += 1

    def _put(self, data: bytes) -> bool:
        ready = select.poll()
        ready.register(self._fd, select.POLLOUT)
        if not ready.poll(0):
            return False
        try:
            return os.write(self._fd, data) > 0
        except OSError:
            return False
