"""Checkpoints of the audit log: number and hash of its last line, written where its writers cannot rewrite them.

Rules of this module:

1. A checkpoint is one line, `audit checkpoint <number> <sha256> <path>`, on standard error (a service's journal) or in
   the system's log. `policyd audit verify --checkpoints` finds them in any text.
2. There is one for the first line a process writes, then for the newest line after `EVERY` lines or `SECONDS`, and for
   the last one at the end. Lines since the last checkpoint are exposed: they can be removed or replaced unnoticed.
3. A thread writes them. No decision waits for one or depends on one; a failure is reported once, and retried with the
   next checkpoint.
4. The path is the one policyd writes to, links unresolved: another log that a link puts there is compared with the same
   checkpoints. A log that is not a regular file has none.
5. It is no signature: whoever can write to that place can cause a false alarm, but not remove checkpoints.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from policyd.storage.auditlog import AuditLog

EVERY = 1_000
SECONDS = 60.0
PATIENCE = 1.0
"""Seconds the end of a process waits for its last one."""
SYSLOG = "/var/run/syslog" if sys.platform == "darwin" else "/dev/log"
PRIVATE_INFO = 10 * 8 + 6
"""The facility `authpriv`, which not everybody may read, and the level `info`."""
PLAIN = re.compile(rb"[^\w.,:@+=~/-]")
CHECKPOINT = re.compile(rb"audit checkpoint (\d{1,20}) ([0-9a-f]{64}) (/[\w.,:@+=~/%-]*)")


class Checkpoint(Struct, frozen=True):
    """One checkpoint of a log."""

    seq: int
    digest: str
    path: str
    """As `plain` writes it."""

    def __str__(self) -> str:
        """The line."""
        return f"audit checkpoint {self.seq} {self.digest} {self.path}"


def plain(path: str) -> str:
    """Return a path in characters that end nowhere and need no quotes, the others as `%XX`."""
    data = os.fsencode(os.path.abspath(path))
    return PLAIN.sub(lambda match: b"%%%02X" % match[0][0], data).decode("ascii")


def find(lines: Iterable[bytes]) -> Iterator[tuple[int, Checkpoint]]:
    """Yield the checkpoints of a text with the numbers of their lines."""
    for number, line in enumerate(lines, 1):
        for match in CHECKPOINT.finditer(line):
            yield number, Checkpoint(int(match[1]), match[2].decode(), match[3].decode())


def to_syslog(text: str, address: str = SYSLOG) -> None:
    """Send a line to the system's log without blocking; OSError if it is not accepted."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        door.setblocking(False)
        try:
            door.sendto(f"<{PRIVATE_INFO}>policyd[{os.getpid()}]: {text}".encode(), address)
        except OSError as error:
            raise OSError(error.errno, f"{address}: {error.strerror}") from error


def begin(log: AuditLog, how: str, note: Callable[[str], None]) -> Checkpoints:
    """Write checkpoints of a log to standard error by `note`, or (`syslog`) to the system's log."""
    return Checkpoints(log, note if how == "stderr" else to_syslog, note)


class Checkpoints:
    """Writes the checkpoints of one log, until `stop`."""

    def __init__(self, log: AuditLog, say: Callable[[str], None], complain: Callable[[str], None]) -> None:
        """Begin.

        Args:
            log: what is written to it from now on is covered.
            say: called in a thread with each checkpoint; an OSError is why it was not said.
            complain: called in that thread with what a person should know.
        """
        self._path = plain(log.path)
        self._say, self._complain = say, complain
        self._end = self._said = (0, "")
        self._tried = -EVERY
        """The number of the last attempted checkpoint."""
        self._why = ""
        self._wake = threading.Event()
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="policyd-checkpoints", daemon=True)
        self._thread.start()
        log.written = self._written

    def stop(self) -> None:
        """Write the last checkpoint, then end."""
        self._stop = True
        self._wake.set()
        self._thread.join(PATIENCE)

    def _written(self, seq: int, digest: str) -> None:
        """Take the end of the log after each line, in the thread that writes them."""
        self._end = seq, digest
        if seq - self._tried >= EVERY:
            self._wake.set()

    def _run(self) -> None:
        while not self._stop:
            self._wake.wait(SECONDS)
            self._wake.clear()
            self._look()
        self._look()

    def _look(self) -> None:
        """Write a checkpoint of the end of the log, unless there is one."""
        end = self._end
        if end == self._said:
            return
        self._tried = end[0]
        why = ""
        try:
            self._say(str(Checkpoint(*end, self._path)))
            self._said = end
        except OSError as error:
            why = f"checkpoints of the audit log cannot be said: {error.strerror or error}"
        if why and why != self._why:
            self._complain(why)
        self._why = why
