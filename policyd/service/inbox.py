"""Waiting for answers in the inbox: a thread looks for them while questions are open, and only then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from time import monotonic

from policyd.storage.inbox import Inbox, InboxError

LOOK = 0.2
"""Seconds between looks."""


class InboxStep:
    """The step `inbox` of any number of connections. `replied` is called in a thread, once a question at most."""

    def __init__(self, inbox: Inbox, replied: Callable[[int, Mapping[str, object]], None]) -> None:
        """Start nothing yet."""
        self.inbox = inbox
        self._replied = replied
        self._open: dict[str, int] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._running = False

    def start(self, key: int, question: Mapping[str, object], deadline: float, *, uid: int) -> None:
        """Put a question in the inbox until `deadline` (of `monotonic`).

        Raises:
            InboxError: it cannot be put there.
            RuntimeError: no thread is to be had that would look for the answer.
        """
        ident = self.inbox.put(question, deadline - monotonic(), uid=uid)
        with self._lock:
            self._open[ident] = key
            begin, self._running = not self._running, True
        if begin:
            try:
                threading.Thread(target=self._run, name="policyd-inbox", daemon=True).start()
            except RuntimeError:
                self._running = False
                self.withdraw(key)
                raise

    def withdraw(self, key: int) -> bool:
        """Take a question out again; False if it is not in the inbox."""
        with self._lock:
            found = next((ident for ident, one in self._open.items() if one == key), None)
            if found is not None:
                del self._open[found]
        if found is not None:
            self.inbox.remove(found)
        return found is not None

    def close(self) -> None:
        """Take everything out."""
        self._stop.set()
        with self._lock:
            left, self._open = list(self._open), {}
        for ident in left:
            self.inbox.remove(ident)
        self.inbox.close()

    def _run(self) -> None:
        while not self._stop.wait(LOOK):
            with self._lock:
                if not self._open:
                    self._running = False
                    return
                waiting = list(self._open)
            for ident in waiting:
                self._look(ident)

    def _look(self, ident: str) -> None:
        try:
            answer = self.inbox.answered(ident)
        except InboxError:
            answer = {}
        if answer is None:
            return
        with self._lock:
            key = self._open.pop(ident, None)
        self.inbox.remove(ident)
        if key is not None:
            self._replied(key, answer)
