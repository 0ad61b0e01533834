"""The two ends of pipes: `Source` is read, `Sink` is written, neither ever blocking.

Rules of this module:

1. Nothing blocks. Bytes that the reader does not take yet wait in the sink; the pump limits how much.
2. Bytes leave a sink unchanged and in order, however many the kernel accepts at a time.
3. A sink whose reader is gone is dead; further bytes vanish, as they would without policyd.
"""

from __future__ import annotations

import os
from collections import deque

BLOCK = 120 * 1024
"""About half a pipe; for a larger one `malloc` would ask the kernel, at ten times the cost of a short message."""


class Source:
    """The reading end of one side."""

    __slots__ = ("ended", "fd")

    def __init__(self, fd: int) -> None:
        """Read from `fd`, made non-blocking."""
        os.set_blocking(fd, False)
        self.fd = fd
        self.ended = False

    def read(self) -> bytes | None:
        """Return what is there, None if nothing is, `b""` at the end."""
        try:
            data = os.read(self.fd, BLOCK)
        except BlockingIOError:
            return None
        except OSError:  # a terminal or socket that was reset: the end
            data = b""
        self.ended = not data
        return data


class Sink:
    """The writing end of one side."""

    __slots__ = ("_parts", "dead", "fd", "size")

    def __init__(self, fd: int) -> None:
        """Write to `fd`, made non-blocking."""
        os.set_blocking(fd, False)
        self.fd = fd
        self.size = 0
        """Bytes that wait."""
        self.dead = False
        self._parts: deque[memoryview | bytes] = deque()

    def put(self, data: bytes) -> None:
        """Write `data` as far as the kernel takes it; the rest waits."""
        if self._parts:
            self._parts.append(data)
            self.size += len(data)
        elif not self.dead:
            written = self._write(data)
            if written < len(data) and not self.dead:
                self._parts.append(memoryview(data)[written:])
                self.size = len(data) - written

    def flush(self) -> None:
        """Write what waits, as far as the kernel takes it."""
        while self._parts and not self.dead:
            part = self._parts[0]
            written = self._write(part)
            self.size -= written
            if written < len(part):
                self._parts[0] = memoryview(part)[written:]
                return
            self._parts.popleft()

    def kill(self) -> None:
        """The reader is gone."""
        self.dead = True
        self._parts.clear()
        self.size = 0

    def _write(self, data: memoryview | bytes) -> int:
        try:
            return os.write(self.fd, data)
        except BlockingIOError:
            return 0
        except OSError:
            self.kill()
            return 0
