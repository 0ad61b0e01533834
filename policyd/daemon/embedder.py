"""A peer that is an ACP client with an agent of its own: it sends its agent's messages and receives answers.

Each peer has an enforcement of its own over one decision point. Messages that the peer relays are fed to it as lines of
the two sides; of its output, only answers to the peer's own requests go back, and questions for its user become
`_policyd/ask`. `_policyd/decide` runs a second enforcement over the same decision point, whose questions are returned
as values instead of being asked.

1. Every request is answered once. A permission request is answered with an ACP result, whatever goes wrong.
2. Ids of what was observed live in a space of their own: no observed answer is taken for one to the peer's request.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from msgspec.structs import replace

from policyd import acp
from policyd.acp import messages
from policyd.daemon import descent, wire
from policyd.daemon.deciding import Deciding
from policyd.daemon.wire import Hello, WireError
from policyd.service.performer import Performer
from policyd.session import Side
from policyd.session.core import quoted
from policyd.session.judge import Judge
from policyd.session.responses import CHANGES
from policyd.session.state import OPENINGS, PERMISSION

if TYPE_CHECKING:
    from policyd.daemon.shared import Shared, Who

CANCEL = "session/cancel"
CANCEL_REQUEST = "$/cancel_request"
READ_OF_CLIENT = OPENINGS | CHANGES | {"initialize"}
MOST_OBSERVED = 10_000


class Embedder:
    """The swapped ACP connection of one peer, after its hello."""

    def __init__(self, shared: Shared, who: Who, hello: Hello, run: str, out: Callable[[bytes], None]) -> None:
        """Begin with nothing observed; `out` writes whole lines to the peer."""
        self._shared = shared
        self._who = who
        self._out = out
        settings = shared.settings
        chain = tuple(step for step in settings.prompt if step != "client" or hello.person)
        self._authorizer = shared.authorizer(who, hello, run, interactive=bool(chain))
        self._judge = Judge(self._authorizer, descent.speaks(shared, who))
        off = {"agent_mode": "off", "side_doors": False, "report": "off"}
        enforced = shared.enforced(chain, run, hello.client, **off)
        self.performer, _ = shared.performer(who, self._judge, enforced, transport="daemon")
        self.performer.send_by(self._sent)
        asking = shared.enforced(
            ("client",) if hello.person else (), run, hello.client, **off, details_after_ms=0, on_unasked="record"
        )
        self._deciding = Deciding(
            lambda: shared.performer(who, self._judge, asking, transport="daemon"),
            out,
            revision=self._revision,
            expires=lambda: expiry(asking.prompt_timeouts),
            why=lambda params: self._authorizer.decide(params, now=datetime.now(UTC)),
        )
        self._open: Counter[object] = Counter()
        """The peer's permission requests that are not answered, by id."""
        self._asks: set[bytes] = set()
        """The ids of the questions put to the peer, which nobody can guess (`session.core`)."""
        self._observed: dict[str, None] = {}
        """Observed permission requests whose answer was not observed."""
        self._unanswered: set[str] = set()
        """Other observed requests whose answer was not observed."""
        self._cancelling = False
        self._naming: set[object] = set()
        """Ids of `initialize` requests whose answer was not seen."""
        self._labels = dict(hello.labels)
        self._assumed = hello.agent
        """What stands for the agent's name until it is told."""
        self._sessions = 0
        shared.arrived(who)
        if hello.client:
            info = {"clientInfo": {"name": hello.client, "version": hello.version}}
            self._tell(Side.CLIENT, {"id": "policyd:hello", "method": "initialize", "params": info})

    @property
    def performers(self) -> list[Performer]:
        """The connections to be ticked and forgotten."""
        return [self.performer, *self._deciding.performers]

    def refused(self, line: bytes) -> None:
        """A line that was refused may have been about a call: what is known of that no longer counts."""
        session, call = acp.update_call(line)
        if session and call:
            self._judge.refused(session, call)

    # ---- what the peer sends --------------------------------------------------------------------------

    def permission(self, key: object, line: bytes) -> None:
        """Take a permission request; its answer goes out when there is one."""
        self._open[key] += 1
        self._count(1)
        self.performer.feed(Side.AGENT, line + b"\n")

    def notification(self, method: str, line: bytes) -> bool:
        """Take a notification of ACP; False if it is none that means anything here."""
        if method in (acp.UPDATE, CANCEL_REQUEST):
            self.performer.feed(Side.AGENT, line + b"\n")
        elif method == CANCEL:
            self._cancel(line)
        else:
            return False
        return True

    def _cancel(self, line: bytes) -> None:
        self._cancelling = True
        try:
            for performer in self.performers:
                performer.feed(Side.CLIENT, line + b"\n")
        finally:
            self._cancelling = False

    def response(self, message: acp.Envelope) -> None:
        """Take the peer's answer to a question that was put to it; what comes late is dropped."""
        ident = quoted(str(message.key[1])) if message.key else b""
        if ident not in self._asks:
            return
        self._asks.discard(ident)
        body = b'"error":' + message.error if message.error is not None else b'"result":' + (message.result or b"null")
        self.performer.feed(Side.CLIENT, b'{"jsonrpc":"2.0","id":' + ident + b"," + body + b"}\n")

    def observe(self, params: bytes) -> None:
        """Take one message that passed between the peer and its agent, verbatim.

        Raises:
            WireError, ProtocolError: it cannot be read.
        """
        found = acp.strict_object(params)
        side = {"a2c": Side.AGENT, "c2a": Side.CLIENT}.get(str(found.get("dir")))
        message = found.get("msg")
        if side is None or not isinstance(message, dict):
            raise WireError('observe needs {"dir": "a2c" or "c2a", "msg": {…}}')
        method, ident = message.get("method"), message.get("id")
        moved = {"jsonrpc": "2.0", **{name: message[name] for name in ("params", "result", "error") if name in message}}
        if "id" in message:
            moved["id"] = f"observed:{json.dumps(ident)}"
        if method is not None:
            moved["method"] = method
        self._observe(side, method, moved)

    def _observe(self, side: Side, method: object, moved: dict[str, object]) -> None:
        ident = str(moved.get("id", ""))
        if method == PERMISSION and side is Side.AGENT:
            self._observed[ident] = None
            while len(self._observed) > MOST_OBSERVED:
                del self._observed[next(iter(self._observed))]
            self._judge.observe(side, moved)
        elif method is None and side is Side.CLIENT:
            if ident in self._observed:
                del self._observed[ident]
                self._judge.observe(side, moved)
        elif side is Side.AGENT and method in (acp.UPDATE, None):
            self._unanswered.discard(ident)
            self._tell(side, moved)
        elif side is Side.CLIENT and method == CANCEL:
            self._cancel(json.dumps(moved).encode())
        elif side is Side.CLIENT and method in READ_OF_CLIENT:
            if len(self._unanswered) >= MOST_OBSERVED:
                raise WireError(f"{MOST_OBSERVED} observed requests have no observed answer")
            self._unanswered.add(ident)
            self._tell(side, moved)

    def opened(self, params: Mapping[str, object]) -> None:
        """Take the short form of a session that was opened.

        Raises:
            WireError: it cannot be taken.
        """
        told = wire.read_session(params)
        self._label(told.labels)
        self._sessions += 1
        ident = f"policyd:{self._sessions}"
        name, version = told.agent
        known = self._authorizer.conversation.agent
        if name and known.name not in ("", name, self._assumed):
            raise WireError(f"this connection's agent is `{known.name}`; another needs a connection of its own")
        if name:
            self._assumed = ""
            self._tell(Side.CLIENT, {"id": f"{ident}:agent", "method": "initialize", "params": self._info()})
            self._tell(
                Side.AGENT, {"id": f"{ident}:agent", "result": {"agentInfo": {"name": name, "version": version}}}
            )
        opening = {
            "cwd": told.cwd,
            "additionalDirectories": list(told.additional),
            "mcpServers": [{"name": server} for server in told.servers],
        }
        modes = {"modes": {"currentModeId": told.mode, "availableModes": []}} if told.mode else {}
        self._tell(Side.CLIENT, {"id": ident, "method": "session/new", "params": opening})
        self._tell(Side.AGENT, {"id": ident, "result": {"sessionId": told.session, **modes}})

    def _info(self) -> dict[str, object]:
        name, version = self._authorizer.conversation.client
        return {"clientInfo": {"name": name, "version": version}}

    def _label(self, labels: Mapping[str, str]) -> None:
        for name in self._labels.keys() & labels.keys():
            if self._labels[name] != labels[name]:
                raise WireError(f"the label `{name}` is of the connection, and was {self._labels[name]!r}")
        if len({**self._labels, **labels}) > wire.MOST_LABELS:
            raise WireError(f"this connection has more than {wire.MOST_LABELS} labels")
        self._labels.update(labels)
        self._authorizer.claims = replace(self._authorizer.claims, labels=self._shared.labels(self._labels))

    def _tell(self, side: Side, message: Mapping[str, object]) -> None:
        """Feed a message with an id that is nobody's. Agent and client may be told more than once."""
        whole = {"jsonrpc": "2.0", **message}
        ident = message.get("id")
        if message.get("method") == "initialize":
            self._naming.add(ident)
            self._judge.observe(side, whole)
        elif "method" not in message and ident in self._naming:
            self._naming.discard(ident)
            self._judge.observe(side, whole)
        else:
            self.performer.feed(side, json.dumps(whole).encode() + b"\n")

    # ---- decide and answer ----------------------------------------------------------------------------

    def decide(self, ident: bytes, params: bytes) -> None:
        """Decide a request without asking anybody."""
        self._deciding.decide(ident, params)

    def answer(self, ident: bytes, params: Mapping[str, object]) -> None:
        """Close a question that `decide` handed back."""
        self._deciding.answer(ident, params)

    def _revision(self, session: str) -> str:
        return self._authorizer.in_force(session)[0].revision

    # ---- what the enforcement sends -------------------------------------------------------------------

    def _sent(self, side: Side, data: bytes) -> None:
        for line in data[:-1].split(b"\n"):
            if side is Side.AGENT:
                self._to_agent(line)
            else:
                self._to_client(line)

    def _to_agent(self, line: bytes) -> None:
        message = acp.envelope(line)
        if message.method is None and self._open[message.key] > 0:
            self._open[message.key] -= 1
            self._count(-1)
            if not self._open[message.key]:
                del self._open[message.key]
            self._out(line + b"\n")
        elif message.method == CANCEL and not self._cancelling:
            self._out(line + b"\n")

    def _to_client(self, line: bytes) -> None:
        message = acp.envelope(line)
        if message.method == PERMISSION and message.id is not None:
            self._asks.add(message.id)
            self._out(messages.spliced_request(message.id, wire.ASK, message.params or b"{}"))
        elif message.method == CANCEL_REQUEST and message.params is not None:
            ident = quoted(str(acp.strict_object(message.params).get("requestId")))
            if ident in self._asks:
                self._asks.discard(ident)
                self._out(messages.cancel_request(ident))

    def _count(self, step: int) -> None:
        pending, uid = self._shared.pending, self._who.uid
        pending[uid] = max(0, pending.get(uid, 0) + step)

    # ---- the end --------------------------------------------------------------------------------------

    def close(self) -> None:
        """The peer is gone, or the daemon ends: everything open is answered without an allow."""
        for performer in self.performers:
            performer.closed(Side.CLIENT)

    def forget(self) -> None:
        """Let go of everything, once nothing can be sent any more."""
        self._shared.arrived(self._who, -1)
        self._count(-sum(self._open.values()))
        self._open.clear()
        for performer in self.performers:
            self._shared.forget(performer)


def expiry(timeouts: Mapping[str, float]) -> str:
    """Return until when a question of `decide` may be answered."""
    return (datetime.now(UTC) + timedelta(seconds=timeouts.get("client", 600.0))).isoformat()
