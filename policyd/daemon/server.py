"""The daemon's loop: accepts peers, moves their lines, ticks their deadlines, ends in order. One thread; none waits.

Rules of this module:

1. At most `MOST` peers, `MOST_OF_ONE` of one uid that is not its own; with few descriptors left, nobody is accepted
   for a while.
2. A peer that leaves a line unfinished, sends no hello, or does not read its answers is dropped after `PATIENCE`
   seconds.
3. Users take turns, and a user's peers among them (`turns`): those who send more wait for the others. A peer that does
   not read is not read from.
4. At the end every open request is answered without an allow and output is flushed, all within `FAREWELL`.
"""

from __future__ import annotations

import errno
import gc
import os
import resource
import select
import selectors
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from signal import SIGHUP, SIGINT, SIGTERM
from time import monotonic, sleep

from policyd.acp import FrameLimitError
from policyd.daemon.line import Line
from policyd.daemon.listen import Door, StrangerError
from policyd.daemon.memory import HELD, HELD_OWN, Pressure, room, used
from policyd.daemon.peer import Peer
from policyd.daemon.shared import Shared, Who
from policyd.daemon.systemd import Notifier
from policyd.daemon.turns import FULL, Turns
from policyd.display import safe
from policyd.service.performer import Performer
from policyd.service.relayed import FRAME

MOST = 2_000
MOST_OF_ONE = 256
PATIENCE = 30.0
AT_ONCE = 64
"""Peers that are accepted before those that are served have a turn."""
OVERFULL = 128 * 1024 * 1024
"""Bytes that wait for a peer before it is dropped."""
PAUSE = 0.5
KEPT, MOST_KEPT = 40, 128
"""Descriptors that peers do not get: half of them, but so many at least, and at most what sixteen hooks at once need.

Files are read and programs started for those that are served.
"""
FAREWELL = 2.0
ENDING, RELOADING = frozenset({SIGTERM, SIGINT}), SIGHUP


class Server:
    """Serves peers until it is told to end."""

    def __init__(
        self,
        shared: Shared,
        doors: Sequence[Door],
        notifier: Notifier,
        selector: Callable[[], selectors.BaseSelector] = selectors.DefaultSelector,
    ) -> None:
        """Listen at `doors`; nothing is accepted before `run`."""
        self._shared = shared
        self._doors = list(doors)
        self._notifier = notifier
        self._selector = selector()
        self._lines: dict[int, Line] = {}
        self._by_performer: dict[Performer, Line] = {}
        self._uids: Counter[int] = Counter()
        self._held: Counter[int] = Counter()
        """Bytes that wait for or from the peers of each uid."""
        self._pressure = Pressure(room())
        self._due: dict[Line, float] = {}
        self._turns = Turns(self._touched)
        self._room = descriptors()
        """How many peers there are descriptors for."""
        self._said_full = False
        self._strangers: set[int | None] = set()
        """The uids that were told of in the log because they may not come in."""
        self._paused: float | None = None
        self._beat = 0.0
        self._swept = 0.0
        self._ending = False
        self._reloading = False
        """SIGHUP came, and the service manager waits to hear that it was done."""
        shared.changed = self._changed
        shared.reported, shared.looked = self._reported, self._looked

    # ---- the loop -----------------------------------------------------------------------------------

    def serve(self, who: Who, source: int, target: int) -> None:
        """Serve one peer on two descriptors beside whoever connects."""
        self._add(Line(source, target, who, monotonic()))

    def run(self, signals: int) -> None:
        """Serve until SIGTERM or SIGINT comes, or the last peer has gone and nobody can connect."""
        self._selector.register(self._shared.waker, selectors.EVENT_READ, self._woken)
        self._selector.register(signals, selectors.EVENT_READ, lambda: self._signalled(signals))
        self._listen()
        self._notifier.ready(self._shared.words())
        while not self._ending and (self._doors or self._lines):
            events = self._selector.select(self._wait())
            self._signalled(signals)  # first: who waits to be accepted may be the next daemon's
            for key, _ in events:
                if not self._ending:
                    self._event(key)
            self._turns.take()
            self._clock(monotonic())
        self._end()

    def _event(self, key: selectors.SelectorKey) -> None:
        if isinstance(key.data, Line):
            self._moved(key.data)
        else:
            key.data()

    def _wait(self) -> float | None:
        """Return how long nothing is due, in seconds."""
        turn = self._turns.due()
        if turn == 0.0:
            return 0.0
        now = monotonic()
        times = [*self._due.values(), now + 1.0 if self._lines else now + 60.0]
        if turn is not None:
            times.append(now + turn)
        if self._paused is not None:
            times.append(self._paused)
        if self._notifier.interval:
            times.append(self._beat)
        return max(0.0, min(times) - now)

    def _clock(self, now: float) -> None:
        for line in [line for line, due in self._due.items() if due <= now]:
            for performer in line.peer.performers:
                performer.tick()
            self._touched(line)
        if self._paused is not None and now >= self._paused:
            self._listen()
        if self._notifier.interval and now >= self._beat:
            self._beat = now + self._notifier.interval
            self._check()
        if now >= self._swept + 1.0:
            self._swept = now
            self._sweep(now)

    def _check(self) -> None:
        """Feed the watchdog, if a decision could be made."""
        why = self._shared.check()
        if why:
            self._shared.say(f"the self-check failed: {why}", loud=True)
        else:
            self._notifier.beat()

    def _sweep(self, now: float) -> None:
        """Drop who keeps others waiting."""
        for line in gone([line for line in self._lines.values() if line.todo]):
            self._drop(line, "")
        for line in list(self._lines.values()):
            waits = None if line.todo else line.seen  # not for what it said before
            late = [waits, line.stuck, None if line.peer.greeted else line.since]
            if any(at is not None and now - at > PATIENCE for at in late):
                self._drop(line, f"nothing moved for {PATIENCE:.0f} seconds")
        victim = self._pressure.victim(self._lines.values(), used())
        if victim is not None:
            self._drop(victim, "memory is short, and it said most")
            gc.collect()

    # ---- accepting ----------------------------------------------------------------------------------

    def _listen(self) -> None:
        self._paused = None
        for door in self._doors:
            door.listener.setblocking(False)
            with suppress(KeyError):
                self._selector.register(door.listener, selectors.EVENT_READ, lambda door=door: self._accept(door))

    def _rest(self) -> None:
        """Accept nobody for a while."""
        self._deafen()
        self._paused = monotonic() + PAUSE

    def _deafen(self) -> None:
        for door in self._doors:
            with suppress(KeyError):
                self._selector.unregister(door.listener)

    def _accept(self, door: Door) -> None:
        for _ in range(AT_ONCE):
            if len(self._lines) >= self._room:
                self._full()
                return
            try:
                one, _ = door.listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._full(error)
                return
            one.setblocking(False)
            try:
                who = door.who(one)
            except StrangerError as error:
                one.close()
                self._turned_away(error.uid, str(error))
                continue
            if len(self._lines) >= MOST or self._uids[who.uid] >= self._most(who):
                one.close()
                self._turned_away(who.uid, f"{len(self._lines)} connections are open, {self._uids[who.uid]} of it")
                continue
            self._add(Line(one, one, who, monotonic()))

    def _full(self, error: OSError | None = None) -> None:
        """Let who connects wait; say why, once where it is only that there is no room."""
        self._rest()
        if error and error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
            self._shared.say(f"nobody can be accepted: {error.strerror}", loud=True)
        elif not self._said_full:
            self._said_full = True
            why = error.strerror if error else "`ulimit -n` leaves room for no more"
            self._shared.say(f"{len(self._lines)} connections are open, and {why}: who connects waits", loud=True)

    def _turned_away(self, uid: int | None, why: str) -> None:
        """Say once of each user why they did not come in: whoever tries all day fills no log."""
        if uid not in self._strangers and len(self._strangers) < MOST:
            self._strangers.add(uid)
            self._shared.say(f"turned a connection of user {uid} away: {safe(why)}", loud=True)

    def _most(self, who: Who) -> int:
        """Return how many connections a uid may have: its own user's daemon is for that user alone."""
        return MOST if who.own else MOST_OF_ONE

    def _add(self, line: Line) -> None:
        line.peer = Peer(self._shared, line.who, lambda data: self._put(line, data))
        self._lines[line.fd] = line
        self._uids[line.who.uid] += 1
        self._watch(line.source, selectors.EVENT_READ, line)

    # ---- moving -------------------------------------------------------------------------------------

    def _put(self, line: Line, data: bytes) -> None:
        line.out += data

    def _moved(self, line: Line) -> None:
        if not (line.todo or line.closing or line.ended):
            self._read(line)
            if line.todo:  # it is touched when it had its turn
                return
        self._touched(line)

    def _read(self, line: Line) -> None:
        data = line.read()
        if data is None:
            return
        if not data:
            line.closing = True
            line.seen = None
            line.peer.close()
            return
        line.came(len(data))
        try:
            block = line.lines.feed(data)
        except FrameLimitError:
            self._drop(line, f"it sent a message of more than {FRAME} bytes")
            return
        whole = data.endswith(b"\n")
        line.seen = None if whole else (line.seen if line.seen and not block else monotonic())
        if block:
            line.todo.extend(block[:-1].split(b"\n"))
            self._turns.add(line)

    def _touched(self, line: Line) -> None:
        """Write what there is, and see what the peer is waited for."""
        if line.ended:
            return
        if not line.write(monotonic()):
            self._drop(line, "")
            return
        performers = line.peer.performers
        if line.peer.trouble or len(line.out) > OVERFULL:
            self._drop(line, line.peer.trouble or "it does not read what is sent to it")
            return
        if self._holds(line) > (HELD_OWN if line.who.own else HELD):
            self._drop(line, "too much waits for or from its user's connections")
            return
        if line.closing and not line.out and not any(performer.busy() for performer in performers):
            self._drop(line, "")
            return
        self._turns.add(line)
        self._register(line)
        self._due.pop(line, None)
        for performer in performers:
            self._by_performer.setdefault(performer, line)
            due = performer.deadline()
            if due is not None:
                self._due[line] = min(due, self._due.get(line, due))

    def _holds(self, line: Line) -> int:
        """Count what waits on both sides of a peer; return what waits for all peers of its uid."""
        held = 0 if line.ended else line.unread + len(line.out)
        self._held[line.who.uid] += held - line.held
        line.held = held
        return self._held[line.who.uid]

    def _register(self, line: Line) -> None:
        reading = not line.todo and not line.closing and len(line.out) <= FULL
        events = selectors.EVENT_READ if reading else 0
        writing = selectors.EVENT_WRITE if line.out else 0
        if line.source is line.target:
            self._watch(line.source, events | writing, line)
        else:
            self._watch(line.source, events, line)
            self._watch(line.target, writing, line)

    def _watch(self, what: socket.socket | int, events: int, line: Line) -> None:
        known = line.watched.get(what, 0)
        if events == known:
            return
        if not events:
            self._selector.unregister(what)
        elif known:
            self._selector.modify(what, events, line)
        else:
            self._selector.register(what, events, line)
        line.watched[what] = events

    def _drop(self, line: Line, why: str) -> None:
        """A peer is gone, or has to go."""
        if line.ended:
            return
        line.ended = True
        self._holds(line)
        if why:
            self._shared.say_of(line.who, f"dropped a connection of {line.who.user}: {why}")
        performers = line.peer.performers
        line.peer.close()
        line.peer.forget()
        for performer in performers:
            self._by_performer.pop(performer, None)
        self._due.pop(line, None)
        self._turns.forget(line)
        self._uids[line.who.uid] -= 1
        del self._lines[line.fd]
        for what in dict.fromkeys((line.source, line.target)):
            self._watch(what, 0, line)
            if not isinstance(what, int):
                what.close()
        if self._paused is not None:
            self._listen()

    # ---- from threads and signals -------------------------------------------------------------------

    def _woken(self) -> None:
        for performer in self._shared.wake():
            line = self._by_performer.get(performer)
            if line is not None:
                self._touched(line)

    def _changed(self, revision: str, loosens: bool) -> None:
        for line in list(self._lines.values()):
            line.peer.changed(revision, loosens=loosens)
            self._touched(line)

    def _signalled(self, fd: int) -> None:
        try:
            numbers = os.read(fd, 4096)
        except BlockingIOError:
            return
        for number in numbers:
            if number in ENDING:
                self._ending = True
        if RELOADING in numbers:
            self._notifier.reloading()
            self._reloading = True
            self._shared.look_soon()

    def _reported(self) -> None:
        self._notifier.status(self._shared.words())

    def _looked(self) -> None:
        """A reload is over: what the files say is in force, or reported."""
        if self._reloading:
            self._reloading = False
            self._notifier.ready(self._shared.words())

    # ---- the end ------------------------------------------------------------------------------------

    def _end(self) -> None:
        """Answer everything without an allow, write it out, let go."""
        self._notifier.stopping()
        self._deafen()
        for line in list(self._lines.values()):
            line.peer.close()
        until = monotonic() + FAREWELL
        while monotonic() < until and any(map(unfinished, self._lines.values())):
            self._shared.wake()
            for line in self._lines.values():
                if not line.write(monotonic()):
                    line.out.clear()
            sleep(0.005)
        for line in list(self._lines.values()):
            self._drop(line, "")
        self._selector.close()


def descriptors() -> int:
    """Return how many descriptors there are for peers."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return limit - min(max(KEPT, limit // 2), MOST_KEPT)


def gone(lines: list[Line]) -> list[Line]:
    """Return the peers that have hung up: nobody reads an answer to what they said before."""
    poller = select.poll()
    for line in lines:
        poller.register(line.source, 0)
    ended = {fd for fd, events in poller.poll(0) if events & select.POLLHUP} if lines else set()
    return [line for line in lines if line.fd in ended and not isinstance(line.source, int)]


def unfinished(line: Line) -> bool:
    """Say whether something decided has not reached its peer."""
    return bool(line.out) or any(performer.busy() for performer in line.peer.performers)
