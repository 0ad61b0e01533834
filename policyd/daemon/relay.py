"""A peer that is `policyd proxy --connect`: it moves bytes, everything else happens here.

The proxy relays whole lines of both sides, numbered; the full enforcement reads them and says what leaves to which
side. What a block leads to goes back in one piece with its number: a proxy that lost its daemon knows exactly what
was done, and that nothing else was.

    _policyd/relay    {n, side, text | base64, more?}      lines of a side
    _policyd/relay    {n, side, text, replay: "seen" | "call" | "open"}   of before a lost daemon: not judged, not sent
    _policyd/relay    {forgot: session, calls: [...]}      calls of which not everything is known any more
    _policyd/relay    {closed: side}                       a side is gone
    _policyd/relayed  {n?, pass: true}                     the block leaves as it came
    _policyd/relayed  {n?, side, text | base64, more?}     lines for a side; `more`: the piece does not end it
    _policyd/relayed  {n}                                  all of block n is done
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from policyd import acp
from policyd.acp import messages
from policyd.daemon import descent, wire
from policyd.daemon.wire import Hello, WireError
from policyd.service.performer import Performer, moment
from policyd.service.relayed import FRAME, RELAYED, piece_of, pieces
from policyd.session import Side
from policyd.session.judge import Judge

if TYPE_CHECKING:
    from policyd.daemon.shared import Shared, Who

SIDES = {"agent": Side.AGENT, "client": Side.CLIENT}


class Relay:
    """One proxy's connection, after its hello."""

    def __init__(self, shared: Shared, who: Who, hello: Hello, run: str, out: Callable[[bytes], None]) -> None:
        """Begin with nothing seen; `out` writes whole lines to the proxy."""
        self._shared = shared
        self._who = who
        self._out = out
        chain = shared.settings.prompt
        person = descent.speaks(shared, who)
        self._judge = Judge(shared.authorizer(who, hello, run, interactive=bool(chain)), person)
        settings = shared.enforced(chain, run, hello.profile)
        self.performer, self._connection = shared.performer(who, self._judge, settings, transport="connect")
        self.performer.send_by(self._send)
        self._parts: list[bytes] = []
        self._size = 0
        self._sends: list[tuple[Side, bytes]] | None = None
        """What the block under way leads to; None: nothing is under way."""
        shared.arrived(who)
        if hello.rejected:
            shared.record("unreachable", uid=who.uid, peer=who.pid, rejected=hello.rejected)

    @property
    def performers(self) -> list[Performer]:
        """The connection to be ticked."""
        return [self.performer]

    # ---- from the proxy -----------------------------------------------------------------------------

    def take(self, params: Mapping[str, object]) -> str:
        """Take one relay message; return why the connection must end, empty if it need not."""
        if "closed" in params:
            self.performer.closed(side_of(params.get("closed")))
            return ""
        if "forgot" in params:
            self._judge.forgot(wire.text(params, "forgot"), wire.listed(params, "calls"))
            return ""
        side, number = side_of(params.get("side")), params.get("n")
        piece = piece_of(params)
        self._parts.append(piece)
        self._size += len(piece)
        if self._size > acp.LIMIT + FRAME:
            return "it relayed a line that is too long"
        if wire.flag(params, "more"):
            return ""
        block, self._parts, self._size = b"".join(self._parts), [], 0
        if not block.endswith(b"\n"):
            raise WireError("what is relayed must be whole lines")
        replay = wire.text(params, "replay")
        if replay:
            self._replay(side, block, replay)
        else:
            self._block(side, block)
        self._done(number, block, side)
        return ""

    def _block(self, side: Side, block: bytes) -> None:
        self._sends = []
        self.performer.feed(side, block)

    def _replay(self, side: Side, block: bytes, how: str) -> None:
        """Take in what passed before: nothing of it leaves again, but policyd's own settings may follow from it."""
        self._sends = []
        if how == "call":
            self._learn(side, block[:-1])
        elif how == "open" or side is Side.CLIENT:
            self._connection.adopt(side, block[:-1], moment())
        else:
            self.performer.feed(side, block)
        self._sends = [(to, data) for to, data in self._sends if to is Side.AGENT]

    def _learn(self, side: Side, line: bytes) -> None:
        """Take in what was said of a call, as evidence only; what cannot be read makes the call opaque."""
        try:
            self._judge.observe(side, acp.strict_object(line, self._judge.names()))
        except Exception:
            session, call = acp.update_call(line)
            if session and call:
                self._judge.refused(session, call)

    def _done(self, number: object, block: bytes, side: Side) -> None:
        """Say what a block led to, and that it is done."""
        sends, self._sends = self._sends or [], None
        if sends == [(side.other, block)]:
            self._relayed({"n": number, "pass": True})
            return
        for to, data in sends:
            self._give(to, data, number)
        self._relayed({"n": number})

    # ---- to the proxy -------------------------------------------------------------------------------

    def _send(self, side: Side, data: bytes) -> None:
        if self._sends is not None:
            self._sends.append((side, data))
        else:
            self._give(side, data, None)

    def _give(self, side: Side, data: bytes, number: object) -> None:
        lead = {} if number is None else {"n": number, "part": True}
        for piece in pieces(data):
            self._relayed({**lead, "side": side.value, **piece})

    def _relayed(self, params: Mapping[str, object]) -> None:
        self._out(messages.notification(RELAYED, params))

    # ---- the end ------------------------------------------------------------------------------------

    def close(self) -> None:
        """The proxy is gone, or the daemon ends: open questions are withdrawn, and the proxy rejects by itself."""
        self._out = lambda data: None
        self.performer.closed(Side.CLIENT)

    def forget(self) -> None:
        """Let go of everything, once nothing can be sent any more."""
        self._shared.arrived(self._who, -1)
        self._shared.forget(self.performer)


def side_of(value: object) -> Side:
    """Return the side a message names.

    Raises:
        WireError: it names none.
    """
    if value not in SIDES:
        raise WireError("`side` is agent or client")
    return SIDES[str(value)]
