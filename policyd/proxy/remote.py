"""`policyd proxy --connect`: decisions, grants, prompts and audit are the daemon's; here lines are relayed.

Rules of this module:

1. Every line of both sides goes to the daemon, in numbered blocks, and leaves as the daemon says. What a block leads to
   comes back in one piece: a daemon that dies half-way has done nothing of it.
2. A daemon that cannot be had, goes, or does not acknowledge for `SILENCE` seconds is lost: what it held and what comes
   is rejected here with the reason, everything else passes (`denying`). Nothing is ever allowed here.
3. It is looked for again in the background; when it is back it is told what it missed, and decides again.
4. Byte-identity and one answer to each request hold across all of that (`ledger`).
"""

from __future__ import annotations

import selectors
from collections.abc import Callable, Mapping
from time import monotonic

from policyd import __version__
from policyd.acp import messages
from policyd.display import safe
from policyd.proxy.denying import Local
from policyd.proxy.ledger import Ledger
from policyd.proxy.link import Link, LostError, check_hello
from policyd.proxy.options import Options
from policyd.service.relayed import CHANGED, HELLO, PROTOCOL, RELAY, RELAYED, PieceError, piece_of, pieces
from policyd.session import Side
from policyd.storage import places, sockets
from policyd.storage.sockets import SocketError

SILENCE = 10.0
FIRST = 5.0
"""Seconds the first connection may take: the agent is booting."""
SOONEST, LATEST = 0.1, 5.0
"""Seconds between attempts."""
MOST_UNDONE = 16 * 1024 * 1024
"""Bytes the daemon may owe before nothing more is read."""


class Remote:
    """What the pump needs of a service, with the daemon behind it."""

    def __init__(self, options: Options, note: Callable[[str], None]) -> None:
        """Connect to nothing yet.

        Raises:
            PlaceError: no home directory is known.
        """
        self._options = options
        self._places = places.find(home=options.home)
        self._note = note
        self._selector = selectors.DefaultSelector()
        self.waker: int = self._selector.fileno()
        self._ledger = Ledger()
        self._link: Link | None = None
        self._local: Local | None = None
        self._undone: dict[int, tuple[Side, bytes, float]] = {}
        """Blocks the daemon has not finished."""
        self._waiting = 0
        """Bytes of those."""
        self._parts: dict[int | None, list[tuple[Side, bytes]]] = {}
        self._pieces: list[bytes] = []
        self._number = 0
        self._replays: set[int] = set()
        self._retry: float | None = None
        self._pause = SOONEST
        self._greeting = 0.0
        """Since when the answer to a hello is awaited; 0: it is not."""
        self._said = ""
        self._revision = ""
        """Of the policy the daemon last spoke of."""
        self._gone: list[Side] = []
        self._out: Callable[[Side, bytes], None]

    def connect(self, out: Callable[[Side, bytes], None]) -> None:
        """Begin: send by `out`."""
        self._out = out
        try:
            link = self._dial(FIRST)
            self._await_hello(link)
        except (LostError, SocketError) as error:
            self._stand_in(str(error))
            return
        self._take_over(link)

    # ---- what the pump calls --------------------------------------------------------------------------

    def feed(self, side: Side, block: bytes) -> None:
        """Take whole lines of a side."""
        self._number += 1
        self._ledger.fed(side, block, self._number)
        if self._local is not None:
            self._deliver_all(self._local.feed(side, block))
            return
        self._undone[self._number] = side, block, monotonic()
        self._waiting += len(block)
        self._guarded(lambda: self._relay(self._number, side, block))
        while self._waiting > MOST_UNDONE and self._link is not None:
            self._selector.select(max(0.0, (self.deadline() or 0.0) - monotonic()))
            self.wake()
            self.tick()

    def closed(self, side: Side) -> None:
        """A side is gone."""
        self._gone.append(side)
        if self._local is not None:
            self._deliver_all(self._local.closed(side))
        elif (link := self._link) is not None:
            self._guarded(lambda: link.send(RELAY, {"closed": side.value}))

    def wake(self) -> None:
        """Take what the daemon sent."""
        link = self._link
        if link is None:
            return
        try:
            for _, events in self._selector.select(0):
                if events & selectors.EVENT_WRITE:
                    link.flush()
                if events & selectors.EVENT_READ:
                    for message in link.read():
                        self._message(message)
            self._watch()
        except LostError as error:
            self._lost(str(error))

    def tick(self) -> None:
        """Time passed: look for the daemon, or find that it is silent."""
        now = monotonic()
        if self._local is not None:
            self._deliver_all(self._local.tick())
        oldest = next(iter(self._undone.values()), None)
        if self._local is None and oldest is not None and now - oldest[2] >= SILENCE:
            self._lost(f"it has not answered for {SILENCE:.0f} seconds")
        elif self._greeting and now - self._greeting >= FIRST:
            self._unlink()
            self._later()
        elif self._retry is not None and now >= self._retry:
            self._again()

    def deadline(self) -> float | None:
        """When `tick` is due."""
        times = [self._retry, self._local.deadline() if self._local else None]
        if self._undone and self._local is None:
            times.append(next(iter(self._undone.values()))[2] + SILENCE)
        if self._greeting:
            times.append(self._greeting + FIRST)
        return min((at for at in times if at is not None), default=None)

    def busy(self) -> bool:
        """Whether something that came has not left."""
        return self._local is None and bool(self._undone)

    @property
    def refused(self) -> bool:
        """Whether anything was refused."""
        return self._ledger.refused

    def summary(self) -> list[str]:
        """What was decided: the daemon's record says it."""
        return []

    def finish(self) -> None:
        """End, once the sides are gone."""
        self._unlink()
        self._selector.close()

    # ---- with the daemon ------------------------------------------------------------------------------

    def _relay(self, number: int, side: Side, block: bytes, replay: str = "") -> None:
        link = self._link
        if link is None:
            raise LostError("there is no connection")
        lead = {"n": number, "side": side.value, **({"replay": replay} if replay else {})}
        for piece in pieces(block):
            link.send(RELAY, {**lead, **piece})
        self._watch()

    def _message(self, message: Mapping[str, object]) -> None:
        params = message.get("params")
        if message.get("method") == RELAYED and isinstance(params, dict):
            self._relayed(params)
        elif message.get("method") == CHANGED and isinstance(params, dict):
            self._changed(params)
        elif self._greeting and message.get("id") == 0:
            self._greeted(message)

    def _changed(self, params: Mapping[str, object]) -> None:
        self._revision = str(params.get("revision"))
        if params.get("loosens") is not False:
            self._note(f"the daemon's policy changed: it may allow more than before (revision {safe(self._revision)})")

    def _relayed(self, params: Mapping[str, object]) -> None:
        number = params.get("n")
        key = number if isinstance(number, int) else None
        if "side" in params:
            self._piece(key, params)
        elif key is not None:
            self._done(key, passes=params.get("pass") is True)

    def _piece(self, number: int | None, params: Mapping[str, object]) -> None:
        try:
            self._pieces.append(piece_of(params))
            side = Side(str(params.get("side")))
        except (PieceError, ValueError) as error:
            raise LostError(f"it sent what cannot be read: {error}") from error
        if params.get("more"):
            return
        data, self._pieces = b"".join(self._pieces), []
        if number is None:
            self._deliver(side, data)
        else:
            self._parts.setdefault(number, []).append((side, data))

    def _done(self, number: int, *, passes: bool) -> None:
        sends = self._parts.pop(number, [])
        if number in self._replays:
            self._replays.discard(number)
            self._deliver_all(sends)
            return
        undone = self._undone.pop(number, None)
        if undone is None:
            raise LostError("it answered what was not asked")
        side, block, _ = undone
        self._waiting -= len(block)
        self._deliver_all([(side.other, block)] if passes else sends)

    def _deliver_all(self, sends: list[tuple[Side, bytes]]) -> None:
        for side, data in sends:
            self._deliver(side, data)

    def _deliver(self, side: Side, data: bytes) -> None:
        kept = self._ledger.sent(side, data)
        if kept:
            self._out(side, kept)

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except LostError as error:
            self._lost(str(error))

    # ---- lost -----------------------------------------------------------------------------------------

    def _lost(self, why: str) -> None:
        self._unlink()
        self._stand_in(why)

    def _stand_in(self, why: str) -> None:
        """Go on without the daemon: reject what it held, read again what it did not finish."""
        if self._local is not None:
            self._later()
            return
        if why != self._said:
            said = why if why.startswith("no daemon") else f"no daemon: {why}"
            self._note(f"{said}; requests are rejected until it is back")
        self._said = why
        agent, client = self._options.agent or "", self._options.client or ""
        self._local = local = Local(self._places, why, agent=agent, client=client, note=self._note)
        undone, self._undone, self._waiting = self._undone, {}, 0
        self._parts, self._pieces, self._replays = {}, [], set()
        for ident in list(self._ledger.questions()):
            self._out(Side.CLIENT, messages.cancel_request(ident))
        for side, line in list(self._ledger.past()):
            self._deliver_all(local.learn(side, line))
        for side, line in list(self._ledger.passed()):
            local.adopt(side, line)
        for side, line in list(self._ledger.stranded(undone)):
            self._deliver_all(local.feed(side, line + b"\n"))
        for side, block, _ in undone.values():
            self._deliver_all(local.feed(side, block))
        for side in self._gone:
            self._deliver_all(local.closed(side))
        self._later()

    def _later(self) -> None:
        """Look for the daemon again, each time a little later."""
        self._retry = monotonic() + self._pause
        self._pause = min(2 * self._pause, LATEST)

    # ---- and back -------------------------------------------------------------------------------------

    def _dial(self, seconds: float) -> Link:
        """Connect and say hello. SocketError where there is no daemon to be trusted."""
        link = Link(sockets.connect(sockets.find(self._places, self._options.connect or None), seconds=seconds))
        hello = {
            "protocol": PROTOCOL,
            "client": {"name": "policyd proxy", "version": __version__},
            "relay": True,
            "agent": self._options.agent,
            "profile": self._options.client,
            "labels": dict(label.split("=", 1) for label in self._options.labels),
            "cwd": places.here().encode("utf-8", "replace").decode(),
            "rejected": self._local.rejected if self._local else 0,
        }
        link.send(HELLO, hello, 0)
        return link

    def _await_hello(self, link: Link) -> None:
        """Wait for the answer to the first hello; nothing passes meanwhile."""
        with selectors.DefaultSelector() as selector:
            selector.register(link.socket, selectors.EVENT_READ)
            until = monotonic() + FIRST
            while (left := until - monotonic()) > 0:
                selector.select(left)
                for message in link.read():
                    self._revision = check_hello(message)
                    return
        raise LostError("it does not answer")

    def _again(self) -> None:
        """Try to connect; the traffic goes on."""
        self._retry = None
        try:
            self._link = self._dial(0.2)
        except (LostError, SocketError):
            self._later()
            return
        self._greeting = monotonic()
        self._watch()

    def _greeted(self, message: Mapping[str, object]) -> None:
        revision = check_hello(message)
        self._greeting = 0.0
        local, link = self._local, self._link
        if link is None:
            return
        if local is not None:
            local.rejected = 0  # they have been told
        if local is not None and local.deadline() is not None:  # something is held here: not now
            self._unlink()
            self._pause = SOONEST
            self._later()
            return
        self._note("the daemon is back")
        if self._revision not in ("", revision):
            self._note(f"its policy is another: it may allow more than before (revision {safe(revision)})")
        self._revision = revision
        self._take_over(link)

    def _take_over(self, link: Link) -> None:
        """Let the daemon decide from here on; tell it what it missed."""
        self._link, self._local, self._said = link, None, ""
        self._retry, self._pause = None, SOONEST
        self._watch()
        try:
            for side, line in list(self._ledger.past()):
                self._replay(side, line, "seen")
            for side, line in list(self._ledger.journal.entries()):
                self._replay(side, line, "call")
            for session, calls in self._ledger.journal.lost().items():
                link.send(RELAY, {"forgot": session, "calls": calls})
            for side, line in list(self._ledger.passed()):
                self._replay(side, line, "open")
            for side in self._gone:
                link.send(RELAY, {"closed": side.value})
        except LostError as error:
            self._lost(str(error))

    def _replay(self, side: Side, line: bytes, how: str) -> None:
        self._number += 1
        self._replays.add(self._number)
        self._relay(self._number, side, line + b"\n", how)

    def _watch(self) -> None:
        link = self._link
        if link is None:
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if link.waits else 0)
        known = self._selector.get_map().get(link.socket)
        if known is None:
            self._selector.register(link.socket, events)
        elif known.events != events:
            self._selector.modify(link.socket, events)

    def _unlink(self) -> None:
        link, self._link, self._greeting = self._link, None, 0.0
        if link is not None:
            if self._selector.get_map().get(link.socket) is not None:
                self._selector.unregister(link.socket)
            link.socket.close()
