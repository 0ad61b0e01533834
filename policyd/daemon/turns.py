"""Who is served next: users take turns, and each user's peers among them.

Rules of this module:

1. Every user with something to say has a turn before anyone has a second, however many peers one has.
2. A user's turn is `SLICE` seconds, or one message that takes longer. A peer's part of it is `SHARE` seconds or `MOST`
   messages; then the user's other peers go on, and it stands behind them.
3. A peer that does not read its answers has no turn.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from policyd.daemon.line import Line

SLICE = 0.002
SHARE = 0.0005
MOST = 16
FULL = 8 * 1024 * 1024
"""Bytes that wait for a peer before it is no longer read."""


class Turns:
    """The peers with messages that wait to be taken."""

    def __init__(self, taken: Callable[[Line], None], clock: Callable[[], float] = monotonic) -> None:
        """Nobody waits; `taken` is called with every peer that had a turn."""
        self._taken = taken
        self._clock = clock
        self._waiting: dict[int, dict[Line, None]] = {}

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiting)

    def add(self, line: Line) -> None:
        """Let a peer have a turn, if it has something and reads its answers."""
        if line.todo and len(line.out) <= FULL and not line.ended:
            self._waiting.setdefault(line.who.uid, {})[line] = None

    def drop(self, line: Line) -> None:
        """Forget a peer."""
        mine = self._waiting.get(line.who.uid)
        if mine is not None:
            mine.pop(line, None)
            if not mine:
                del self._waiting[line.who.uid]

    def take(self) -> None:
        """Give every user who has something a turn."""
        for uid in list(self._waiting):
            end = self._clock() + SLICE
            while uid in self._waiting:
                line = next(iter(self._waiting[uid]))
                self.drop(line)
                self._part(line)
                self._taken(line)  # puts it back, behind the others
                if self._clock() >= end:
                    break

    def _part(self, line: Line) -> None:
        end = self._clock() + SHARE
        for _ in range(MOST):
            if line.ended or not line.todo or len(line.out) > FULL:
                return
            message = line.todo.popleft()
            line.unread -= len(message) + 1
            line.peer.line(message)
            if self._clock() >= end:
                return
