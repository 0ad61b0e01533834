"""Group commit: makes the audit log durable in a thread, one call for all records that wait.

Nothing that passes between agent and client waits for a disk; only the answer whose record it is does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from policyd.storage.auditlog import AuditError, AuditLog


class Syncer:
    """Makes a log durable in a thread: all that wait when it starts share one call."""

    def __init__(self, log: AuditLog, done: Callable[[list[int], str], None]) -> None:
        """`done(keys, why)` is called in the thread; `why` is empty where the records are durable."""
        self._log, self._done = log, done
        self._wake = threading.Condition()
        self._waiting: list[int] = []
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="policyd-fsync", daemon=True)
        self._thread.start()

    def add(self, key: int) -> None:
        """Report `key` once everything written so far is durable."""
        with self._wake:
            self._waiting.append(key)
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
                keys, self._waiting = self._waiting, []
            if not keys:
                return
            self._done(keys, self._sync())

    def _sync(self) -> str:
        """Make durable; return why that failed. Whatever keeps it from being done, it is not done."""
        try:
            self._log.fsync()
        except Exception as error:
            return str(error) if isinstance(error, AuditError) else f"{type(error).__name__}: {error}"
        return ""
