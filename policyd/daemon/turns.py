"""Fair scheduling: users take turns, and each user's peers among them.

Rules of this module:

1. Every user with waiting messages has a turn before anyone has a second, however many peers a user has.
2. A user's turn is `SLICE` seconds, or one message that takes longer. A peer's part of it is `SHARE` seconds or `MOST`
   messages; then it queues behind the user's other peers.
3. A peer that does not read its answers has no turn.
4. A message that may take long (more than `BIG` bytes, or from a peer whose last message took more than `LONG` seconds)
   comes last: after one such message everybody else is served again.
5. For such messages a user has `CREDIT` seconds of work, which recover `REST` times as slowly as they are used. Until
   then, at most `MOST_REST` seconds, its long messages are delayed while other peers are served, so that a greedy peer
   seldom delays others, and then only once.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, thread_time

from policyd.daemon.line import Line

SLICE = 0.0005
SHARE = 0.00025
MOST = 16
FULL = 8 * 1024 * 1024
"""Bytes that wait for a peer before it is no longer read."""
BIG = 64 * 1024
LONG = 0.01
CREDIT = 0.5
REST = 10.0
MOST_REST = 3.0
LATELY = 10.0
"""Seconds for which a peer that was served counts as one that is served."""
Waiting = dict[int, dict[Line, None]]


class Turns:
    """The peers with messages that wait to be taken."""

    def __init__(
        self,
        taken: Callable[[Line], None],
        clock: Callable[[], float] = monotonic,
        work: Callable[[], float] = thread_time,
    ) -> None:
        """Nobody waits; `taken` is called with every peer that had a turn, `work` tells how long was worked."""
        self._taken = taken
        self._clock = clock
        self._work = work
        self._waiting: Waiting = {}
        self._long: Waiting = {}
        """The peers whose next message may take long."""
        self._slow: dict[Line, None] = {}
        """The peers whose last message took long."""
        self._credits: dict[int, tuple[float, float]] = {}
        """Seconds of long work each user had left, and when; who is not here has all."""
        self._served: dict[Line, float] = {}
        """When the last two peers were served whose messages take no time."""

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiting or self._long)

    def due(self) -> float | None:
        """Return in how many seconds somebody has a turn, None where nobody waits."""
        if self._waiting:
            return 0.0
        now = self._clock()
        return min((self._rest(line, now) for mine in self._long.values() for line in mine), default=None)

    def add(self, line: Line) -> None:
        """Let a peer have a turn, if it has something and reads its answers."""
        if line.todo and len(line.out) <= FULL and not line.ended:
            long = line in self._slow or len(line.todo[0]) > BIG
            (self._long if long else self._waiting).setdefault(line.who.uid, {})[line] = None

    def drop(self, line: Line) -> None:
        """Forget that a peer waits."""
        uid = line.who.uid
        for waiting in (self._waiting, self._long):
            mine = waiting.get(uid)
            if mine is not None:
                mine.pop(line, None)
                if not mine:
                    del waiting[uid]

    def forget(self, line: Line) -> None:
        """Forget a peer that is gone."""
        self.drop(line)
        self._slow.pop(line, None)
        self._served.pop(line, None)

    def take(self) -> None:
        """Give every user who has something a turn, then somebody whose message may take long."""
        for uid in list(self._waiting):
            end = self._clock() + SLICE
            while uid in self._waiting:
                self._turn(next(iter(self._waiting[uid])))
                if self._clock() >= end:
                    break
        if self._long:
            self._take_long()

    def _take_long(self) -> None:
        """Take what may take long, users and their peers in turn, until a slice is over."""
        now = self._clock()
        for uid in list(self._long):
            line = next((one for one in self._long[uid] if self._rest(one, now) <= 0), None)
            if line is None:
                continue
            self._long[uid] = self._long.pop(uid)  # behind the others
            self._turn(line)
            if self._clock() >= now + SLICE:
                return

    def _turn(self, line: Line) -> None:
        self.drop(line)
        took = self._part(line)
        now = self._clock()
        if took > LONG:
            self._slow[line] = None
            left = self._credit(line.who.uid, now) - took
            self._credits[line.who.uid] = max(left, -MOST_REST / REST), now
        else:
            self._slow.pop(line, None)
            self._served.pop(line, None)
            self._served[line] = now
            if len(self._served) > 2:
                del self._served[next(iter(self._served))]
        self._taken(line)  # puts it back, behind the others

    def _rest(self, line: Line, now: float) -> float:
        """Return how long a peer whose message may take long has to wait: not at all where nobody else is served."""
        if not any(other is not line and now - at < LATELY for other, at in self._served.items()):
            return 0.0
        rest = -REST * self._credit(line.who.uid, now)
        return rest if rest > SHARE else 0.0

    def _credit(self, uid: int, now: float) -> float:
        left, at = self._credits.get(uid, (CREDIT, now))
        return min(CREDIT, left + (now - at) / REST)

    def _part(self, line: Line) -> float:
        """Take messages of a peer; return how long it worked."""
        begin, end = self._work(), self._clock() + SHARE
        for _ in range(MOST):
            if line.ended or not line.todo or len(line.out) > FULL:
                break
            message = line.todo.popleft()
            line.unread -= len(message) + 1
            line.peer.line(message)
            if self._clock() >= end:
                break
        return self._work() - begin
