"""Performs the enforcement's commands: sends, records, asks, remembers; and feeds back the results.

Rules of this module:

1. Commands are performed in order. A `Send` or `Remember` whose record failed is dropped, and the failure goes back as
   `Failed`, which the enforcement answers with a rejection.
2. With `fsync`, commands that depend on a record wait until it is durable; all others go on.
3. Results of threads (answers of hooks, durability, a new policy) arrive through one queue, and wake the loop by a
   pipe. Threads never touch the connection.
4. An exception while performing is a failure of that command, never a reason to go on as if it had been done.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic
from typing import Protocol

from policyd.service.tally import Tally
from policyd.session import (
    Ask,
    Closed,
    Command,
    Event,
    Failed,
    Moment,
    Note,
    Record,
    Reloaded,
    Remember,
    Reply,
    Send,
    Side,
    Tick,
)
from policyd.storage.auditlog import AuditError, AuditLog

FAILED_KEPT = 10_000
"""Keys of failed records that are remembered; what depends on a record comes right behind it."""


class Enforcement(Protocol):
    """The interface of `policyd.session.Connection` used here."""

    def handle(self, event: Event, now: Moment) -> list[Command]:
        """Take one event."""

    def feed(self, side: Side, block: bytes, now: Moment) -> list[Command]:
        """Take whole lines."""

    def deadline(self) -> float | None:
        """When the next tick is due."""


class Steps(Protocol):
    """Runs the steps of the prompt chain that are not the client."""

    def start(self, ask: Ask) -> None:
        """Begin; the answer comes through `Performer.post`. Raises what keeps it from beginning."""

    def withdraw(self, ask: int) -> None:
        """End it; an answer is no longer wanted."""

    def close(self) -> None:
        """End all."""


class Durable(Protocol):
    """Makes records durable."""

    def add(self, key: int) -> None:
        """Report `key` once it is."""

    def stop(self) -> None:
        """Finish what waits."""


def moment() -> Moment:
    """Return the time by both clocks."""
    return Moment(datetime.now(UTC), monotonic())


def bell() -> tuple[int, Callable[[], None]]:
    """Return a descriptor that becomes readable, and what makes it so from any thread."""
    waker, rope = os.pipe()
    for fd in (waker, rope):
        os.set_blocking(fd, False)

    def ring() -> None:
        with suppress(BlockingIOError, OSError):  # full: the loop is awake anyway
            os.write(rope, b".")

    return waker, ring


class Performer:
    """One connection's hands."""

    def __init__(
        self,
        connection: Enforcement,
        *,
        log: AuditLog,
        note: Callable[[Note], None],
        remember: Callable[[Remember], None],
        now: Callable[[], Moment] = moment,
        ring: Callable[[], None] | None = None,
        stamp: Mapping[str, object] | None = None,
    ) -> None:
        """Hold the connection and what its commands are performed with; `send_by` completes it.

        Args:
            ring: called from any thread when `wake` has something to take; default: `waker` becomes readable.
            stamp: fields that every record of this connection gets.
        """
        self.log = log
        self.tally = Tally()
        self.steps: Steps | None = None
        self.durable: Durable | None = None
        self.reloaded: Callable[[object], Reloaded | None] = lambda found: None
        """Takes what the watcher found, in the loop's thread; returns what the enforcement is told of it."""
        self.waker, self._ring = (-1, ring) if ring else bell()
        self._stamp = dict(stamp or {})
        self._connection = connection
        self._send: Callable[[Side, bytes], None]
        self._note = note
        self._remember = remember
        self._now = now
        self._at = now()
        """When the event that is being performed was taken."""
        self._posted: deque[Event | tuple[list[int], str] | object] = deque()
        self._failed: set[int] = set()
        self._waiting: dict[int, list[Send | Remember]] = {}
        self._events: deque[Event] = deque()

    def send_by(self, send: Callable[[Side, bytes], None]) -> None:
        """Write whole lines to a side by `send`."""
        self._send = send

    # ---- what the transport calls -------------------------------------------------------------------

    def feed(self, side: Side, block: bytes) -> None:
        """Take whole lines of a side."""
        self._at = at = self._now()
        self._perform(self._connection.feed(side, block, at))

    def closed(self, side: Side) -> None:
        """A side is gone."""
        self.handle(Closed(side))

    def tick(self) -> None:
        """Time passed."""
        self.handle(Tick())

    def deadline(self) -> float | None:
        """When `tick` is due, of the clock that never jumps."""
        return self._connection.deadline()

    def busy(self) -> bool:
        """Whether something decided still waits for its record."""
        return bool(self._waiting)

    def wake(self) -> None:
        """Take what threads have posted."""
        if self.waker >= 0:
            with suppress(BlockingIOError):
                os.read(self.waker, 4096)
        while self._posted:
            self._take(self._posted.popleft())

    def post(self, what: object) -> None:
        """Hand something to the loop, from any thread."""
        self._posted.append(what)
        self._ring()

    def handle(self, event: Event) -> None:
        """Hand one event to the enforcement and perform what follows."""
        self._at = at = self._now()
        self._perform(self._connection.handle(event, at))

    def record(self, row: Mapping[str, object]) -> None:
        """Append a record nothing depends on; a failure is reported."""
        try:
            self.log.append(row, self._now().wall)
        except AuditError as error:
            self._note(Note(str(error), loud=True))

    def finish(self) -> None:
        """End what runs beside the loop, once the sides are gone."""
        if self.steps:
            self.steps.close()
        if self.durable:
            self.durable.stop()
            self.wake()

    # ---- performing ---------------------------------------------------------------------------------

    def _perform(self, commands: list[Command]) -> None:
        for command in commands:
            if type(command) is Send and command.record is None:  # what passes; every message comes by here
                self._send(command.side, command.data)
            else:
                self._do(command)
        while self._events:
            self.handle(self._events.popleft())

    def _do(self, command: Command) -> None:
        if isinstance(command, Send | Remember):
            self._dependent(command)
        elif isinstance(command, Record):
            self._record(command)
        elif isinstance(command, Ask):
            self._ask(command)
        elif isinstance(command, Note):
            self._note(command)
        elif self.steps:
            self.steps.withdraw(command.ask)

    def _record(self, command: Record) -> None:
        try:
            row = {**self._stamp, **command.record} if self._stamp else command.record
            self.log.append(row, self._at.wall)
            if self.durable:
                self._waiting[command.key] = []
                self.durable.add(command.key)
        except Exception as error:  # whatever keeps a record from being written keeps the allow from leaving
            self._fail(command.key, str(error) if isinstance(error, AuditError) else f"{type(error).__name__}: {error}")
            return
        self.tally.add(command.record)

    def _fail(self, key: int, why: str) -> None:
        self.tally.lost += 1
        self._failed.add(key)
        if len(self._failed) > FAILED_KEPT:
            self._failed = {one for one in self._failed if one > key - FAILED_KEPT}
        self._waiting.pop(key, None)
        self._events.append(Failed(key, why))

    def _dependent(self, command: Send | Remember) -> None:
        if command.record in self._failed:
            return
        if command.record in self._waiting:
            self._waiting[command.record].append(command)
        elif isinstance(command, Send):
            self._send(command.side, command.data)
        else:
            self._remember_now(command)

    def _remember_now(self, command: Remember) -> None:
        try:
            self._remember(command)
        except Exception as error:  # not kept: the person is asked again
            self._note(Note(f"the answer could not be remembered: {error}", loud=True))

    def _ask(self, command: Ask) -> None:
        try:
            if self.steps is None:
                raise RuntimeError(f"the step `{command.step}` cannot be run here")
            self.steps.start(command)
        except Exception as error:  # a step that cannot begin has failed
            self._events.append(Failed(command.id, str(error)))

    # ---- what threads posted ------------------------------------------------------------------------

    def _take(self, what: object) -> None:
        match what:
            case Reply() | Failed():
                self.handle(what)
            case (list() as keys, str() as why):
                self._synced(keys, why)
            case _:
                event = self.reloaded(what)
                if event is not None:
                    self.handle(event)

    def _synced(self, keys: list[int], why: str) -> None:
        for key in keys:
            if why:
                self._fail(key, why)
                continue
            for command in self._waiting.pop(key, ()):
                self._dependent(command)
        self._perform([])
