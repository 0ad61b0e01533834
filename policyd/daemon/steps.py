"""The steps of the prompt chain for all peers: shared hooks, one inbox, one fsync thread.

Questions are renumbered here, since every connection numbers its own from one. A uid other than the daemon's own has at
most `MOST_OF_ONE` questions open, as hooks and inbox are shared.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from policyd.service.performer import Performer
from policyd.service.steps import Crew
from policyd.session import Ask, Failed, Reply
from policyd.storage.auditlog import AuditLog
from policyd.storage.auditsync import Syncer
from policyd.storage.inbox import Inbox

if TYPE_CHECKING:
    from policyd.daemon.shared import Who

MOST_OF_ONE = 200


class Steps:
    """The prompt programs and the inbox of one daemon."""

    def __init__(self, inbox: Inbox) -> None:
        """Start nothing yet."""
        self._numbers = itertools.count(1)
        self._asked: dict[int, tuple[Performer, int, int]] = {}
        """For each question who is told, under which number of its own, and whose it is."""
        self._crew = Crew(inbox, self._replied, self._failed)

    def of(self, performer: Performer, who: Who) -> PeerSteps:
        """Return the steps as one connection starts them."""
        return PeerSteps(self, performer, who)

    def begin(self, performer: Performer, who: Who, ask: Ask) -> int:
        """Begin a step; return its number here. Raises what keeps it from beginning."""
        if not who.own and sum(uid == who.uid for *_, uid in self._asked.copy().values()) >= MOST_OF_ONE:
            raise ValueError(f"{MOST_OF_ONE} questions of this user are open already")
        number = next(self._numbers)
        self._asked[number] = performer, ask.id, who.uid
        try:
            self._crew.start(number, ask, who.uid)
        except Exception:
            self._asked.pop(number, None)
            raise
        return number

    def end(self, number: int) -> None:
        """End a step whose answer is no longer wanted."""
        self._asked.pop(number, None)
        self._crew.stop(number)

    def close(self) -> None:
        """End all."""
        self._crew.close()

    def _replied(self, number: int, answer: Mapping[str, object]) -> None:
        found = self._asked.pop(number, None)
        if found:
            found[0].post(Reply(found[1], answer))

    def _failed(self, number: int, why: str) -> None:
        found = self._asked.pop(number, None)
        if found:
            found[0].post(Failed(found[1], why))


class PeerSteps:
    """The steps of one connection."""

    def __init__(self, steps: Steps, performer: Performer, who: Who) -> None:
        """Nothing is open."""
        self._steps = steps
        self._performer = performer
        self._who = who
        self._open: dict[int, int] = {}

    def start(self, ask: Ask) -> None:
        """Begin a step; its answer or failure is posted."""
        self._open[ask.id] = self._steps.begin(self._performer, self._who, ask)

    def withdraw(self, ask: int) -> None:
        """End a step whose answer is no longer wanted."""
        number = self._open.pop(ask, None)
        if number is not None:
            self._steps.end(number)

    def close(self) -> None:
        """End all steps of this connection."""
        for ask in list(self._open):
            self.withdraw(ask)


class Durability:
    """Makes the records of all connections durable: those that wait share one call."""

    def __init__(self, log: AuditLog) -> None:
        """Start the thread."""
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[Performer, int] | None] = {}
        self._lock = threading.Lock()
        self._beat = 0
        self._syncer = Syncer(log, self._done)

    def of(self, performer: Performer) -> PeerDurability:
        """Return it as one connection uses it."""
        return PeerDurability(self, performer)

    def add(self, performer: Performer | None, key: int) -> int:
        """Report `key` to `performer` once it is durable; return its number here."""
        with self._lock:
            number = next(self._numbers)
            self._waiting[number] = (performer, key) if performer else None
        self._syncer.add(number)
        return number

    def check(self) -> str:
        """Say whether the thread has not come round since the last check; empty if it has."""
        with self._lock:
            stuck = self._beat in self._waiting
        if stuck:
            return "the audit log is not made durable any more"
        self._beat = self.add(None, 0)
        return ""

    def stop(self) -> None:
        """Finish what waits."""
        self._syncer.stop()

    def _done(self, numbers: list[int], why: str) -> None:
        keys: dict[Performer, list[int]] = {}
        with self._lock:
            for number in numbers:
                found = self._waiting.pop(number, None)
                if found:
                    keys.setdefault(found[0], []).append(found[1])
        for performer, mine in keys.items():
            performer.post((mine, why))


class PeerDurability:
    """Durability of one connection's records."""

    def __init__(self, durability: Durability, performer: Performer) -> None:
        """Share the thread."""
        self._durability = durability
        self._performer = performer

    def add(self, key: int) -> None:
        """Report `key` once everything written so far is durable."""
        self._durability.add(self._performer, key)

    def stop(self) -> None:
        """Finish nothing: the thread is everybody's."""
