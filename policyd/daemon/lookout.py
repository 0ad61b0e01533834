"""Looks at policy files on request, in a thread: many simultaneous requests cause one look, or two.

A look that found a file which may be incomplete is followed by another a little later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import sleep

from policyd.service import steady


class Lookout:
    """Looks again and again as long as somebody asks meanwhile; one thread at most."""

    def __init__(
        self, look: Callable[[], bool | None], looked: Callable[[], None], complain: Callable[[str], None]
    ) -> None:
        """Begin nothing yet; all are called in the thread, `looked` even if `look` raised.

        `look` says whether to look again.
        """
        self._look = look
        self._looked = looked
        self._complain = complain
        self._lock = threading.Lock()
        self._wanted = False
        self._running = False

    def begin(self) -> None:
        """Look at what is there now, or later."""
        with self._lock:
            self._wanted = True
            if self._running:
                return
            self._running = True
        try:
            threading.Thread(target=self._run, name="policyd-look", daemon=True).start()
        except RuntimeError:  # no thread is to be had: the watcher looks anyway
            with self._lock:
                self._running = False
            self._looked()

    def _run(self) -> None:
        while self._again():
            waits = None
            try:
                waits = self._look()
            except Exception as error:  # a look that failed changed nothing
                self._complain(f"the policy files could not be looked at: {type(error).__name__}: {error}")
            self._looked()
            if waits:
                sleep(steady.QUIET)
                with self._lock:
                    self._wanted = True

    def _again(self) -> bool:
        with self._lock:
            wanted, self._wanted = self._wanted, False
            self._running = wanted
            return wanted
