"""Group commit: makes the audit log durable in a thread, with one call for all records that wait.

Traffic between agent and client never waits for a disk; only the answer that depends on a record does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from policyd.storage.auditlog import AuditLog


class Syncer:
    """Makes a log durable in a thread: all that wait when it starts share one call."""

    def __init__(self, log: AuditLog, done: Callable[[list[int], str], None]) -> None:
        """`done(keys, why)` is called in the thread; `why` is empty where the records are durable."""
        self._log, self._done = log, done
        self._wake = threading.Condition()
        self._waiting: list[tuple[int, int]] = []
        """What is reported, and the number of the record it is about."""
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="policyd-fsync", daemon=True)
        self._thread.start()

    def add(self, key: int) -> None:
        """Report `key` once the record that was appended last is durable, or cannot be."""
        with self._wake:
            self._waiting.append((key, self._log.begun))
            self._wake.notify()

    def stop(self) -> None:
        """Finish what waits, then end the thread."""
        with self._wake:
            self._stop = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._waiting or self._stop)
                waiting, self._waiting = self._waiting, []
            if not waiting:
                return
            self._log.sync()
            found: dict[str, list[int]] = {}
            for key, number in waiting:
                found.setdefault(self._log.doubt(number), []).append(key)
            for why, keys in found.items():
                self._done(keys, why)
