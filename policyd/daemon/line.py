"""One connection in the daemon's loop: two descriptors, input lines, and output bytes that wait."""

from __future__ import annotations

import os
import socket
from collections import deque

from policyd.acp import Lines
from policyd.daemon.peer import Peer
from policyd.daemon.shared import Who
from policyd.service.relayed import FRAME

BLOCK = 64 * 1024


class Line:
    """One connection: its bytes, and when it was last seen to move."""

    __slots__ = (
        "closing",
        "ended",
        "fd",
        "held",
        "lines",
        "out",
        "peer",
        "seen",
        "since",
        "source",
        "stuck",
        "taken",
        "target",
        "todo",
        "unread",
        "watched",
        "who",
    )

    def __init__(self, source: socket.socket | int, target: socket.socket | int, who: Who, now: float) -> None:
        """Read from `source`, write to `target`, both not blocking."""
        self.source = source
        self.target = target
        self.fd = source if isinstance(source, int) else source.fileno()
        self.who = who
        self.lines = Lines(FRAME)
        self.todo: deque[bytes] = deque()
        """Lines read and not yet taken."""
        self.unread = 0
        """Bytes that came and were not taken."""
        self.taken = 0
        """Bytes that came since it connected."""
        self.held = 0
        """Bytes that waited on either side when it was last counted."""
        self.out = bytearray()
        self.peer: Peer
        self.since = now
        """When it connected."""
        self.seen: float | None = None
        """Since when a line is incomplete."""
        self.stuck: float | None = None
        """Since when it reads nothing of what waits for it."""
        self.watched: dict[socket.socket | int, int] = {}
        """The events the loop waits for, by what they happen to."""
        self.closing = False
        """It sends no more; what it asked for is written out."""
        self.ended = False

    def came(self, count: int) -> None:
        """Note that bytes came."""
        self.unread += count
        self.taken += count

    def read(self) -> bytes | None:
        """Return what came, None if nothing did, `b""` at the end."""
        try:
            if isinstance(self.source, int):
                return os.read(self.source, BLOCK)
            return self.source.recv(BLOCK)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return b""

    def write(self, now: float) -> bool:
        """Write what waits, as far as it goes; False if nobody reads any more."""
        while self.out:
            try:
                view = memoryview(self.out)[: 4 * BLOCK]
                count = os.write(self.target, view) if isinstance(self.target, int) else self.target.send(view)
                view.release()
            except (BlockingIOError, InterruptedError):
                view.release()
                self.stuck = self.stuck or now
                return True
            except OSError:
                view.release()
                return False
            del self.out[:count]
            self.stuck = None
        return True
