"""Waits until descriptors can be read or written: `poll` with incremental registration.

A descriptor that nothing waits for is unregistered, since `poll` always reports a hang-up, and the loop would spin.
"""

from __future__ import annotations

import select

READ = select.POLLIN
WRITE = select.POLLOUT
GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL


class Poller:
    """Watches descriptors."""

    def __init__(self) -> None:
        """Watch nothing yet."""
        self._poll = select.poll()
        self._watched: dict[int, int] = {}

    def watch(self, fd: int, events: int | None) -> None:
        """Wait for `events` on `fd`: 0 = only for its being gone, None = for nothing."""
        if self._watched.get(fd) == events:
            return
        if events is None:
            if fd in self._watched:
                del self._watched[fd]
                self._poll.unregister(fd)
            return
        self._watched[fd] = events
        self._poll.register(fd, events)

    def wait(self, seconds: float | None) -> list[tuple[int, int]]:
        """Return the descriptors that have something, at the latest after `seconds` (None: no limit)."""
        return self._poll.poll(None if seconds is None else max(0, seconds) * 1000)
