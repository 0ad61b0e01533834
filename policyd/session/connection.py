"""One connection between a client and an agent: where every line is routed.

1. Lines that do not concern policyd are forwarded byte for byte, in order. A block is scanned in C; only lines that may
   concern policyd are parsed.
2. Never forwarded: a line that could be parsed in two ways, a batch, a request from the wrong side, a permission
   request or side-door call without an id, an answer to no open request, an overlong list.
3. An exception while a line is handled drops the commands it caused and refuses the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policyd import acp
from policyd.acp import messages
from policyd.actions.evidence import CHUNK, TELLING
from policyd.session.core import Core, Passing, text_of
from policyd.session.doors import DOORS, diff_digests
from policyd.session.events import Closed, Command, Event, Failed, Frame, Moment, Reloaded, Reply, Side
from policyd.session.modes import JUDGED, SWITCHES, Modes
from policyd.session.permissions import Permissions
from policyd.session.ports import Decider
from policyd.session.records import Records
from policyd.session.responses import CHANGES, CLOSINGS, REOPENINGS, Responses
from policyd.session.servers import Servers
from policyd.session.settings import Settings
from policyd.session.state import OPENINGS, PERMISSION, Session
from policyd.session.tripwire import Tripwire

CALLS = frozenset(TELLING)
WATCHED = CALLS | SWITCHES | {"?"}
UNDERSTOOD = OPENINGS | CHANGES | CLOSINGS | {"initialize"}
"""Requests of the client whose response is parsed too."""
ORDERED = UNDERSTOOD | {"session/prompt"}
"""Requests of the client that may have to wait or be refused."""
CANCEL_REQUEST = "$/cancel_request"
NULL = ("null", None)
ASKS = b'{"jsonrpc":"2.0","id":'
"""How most requests and responses begin."""
MOST_LISTED = 1_000
"""Entries in any of `LISTED`: the options of a request, the directories and servers of a session."""
LISTED = ("options", "additionalDirectories", "mcpServers")
LAST = "put policyd last: policyd proxy -- AGENT"


class Connection:
    """The enforcement between one client and one agent, with all their sessions."""

    def __init__(self, decider: Decider, settings: Settings, *, nonce: str) -> None:
        """Start fresh. `nonce` is random text: neither side can guess the ids policyd derives from it.

        Raises:
            ValueError: the prompt chain of the settings cannot be read, in words.
        """
        self._core = Core(decider, settings, nonce)
        self._records = Records(self._core)
        self._tripwire = Tripwire(self._core, self._records)
        self._permissions = Permissions(self._core, self._records, self._tripwire)
        self._modes = Modes(self._core, self._records)
        self._servers = Servers(self._core, self._records)
        self._responses = Responses(
            self._core, self._modes, lambda session: self._permissions.cancel_session(session, by="policyd")
        )
        self._initialized = False
        self._nameless: set[Side] = set()
        """Sides that used `null` as the id of a request: an error with that id may be its answer."""

    # ---- events -------------------------------------------------------------------------------------

    def handle(self, event: Event, now: Moment) -> list[Command]:
        """Handle one event and return the commands to perform, in order. Never raises, whatever a side sends."""
        self._core.now = now
        if isinstance(event, Frame):
            self._line(event.side, event.data)
        elif isinstance(event, Reply):
            self._permissions.replied(event.ask, event.answer)
        elif isinstance(event, Failed):
            self._permissions.failed(event.command, event.why)
        elif isinstance(event, Reloaded):
            self._permissions.reload(event.announce)
        elif isinstance(event, Closed):
            self._closed(event.side)
        else:
            self._modes.tick()
            self._permissions.tick()
        self._released()
        return self._core.taken()

    def feed(self, side: Side, block: bytes, now: Moment) -> list[Command]:
        """Handle a block of whole lines (`acp.Lines.feed`) as one `Frame` each; forwarded runs are one `Send`."""
        self._core.now = now
        if block.startswith(ASKS) and block.find(b"\n") == len(block) - 1:  # a guess: no line of a stream
            self._line(side, block[:-1])
            self._released()
            return self._core.taken()
        if side is Side.AGENT and not self._modes.holding and acp.streams(block):
            self._core.send(Side.CLIENT, block)
            return self._core.taken()
        for data, plain in acp.runs(block, WATCHED) if side is Side.AGENT else ((block, True),):
            if plain and side is Side.AGENT and not self._modes.holding:
                self._core.forward(Side.CLIENT, data[:-1])
                continue
            for line in data[:-1].split(b"\n") if plain else (data,):
                self._line(side, line)
                self._released()
        return self._core.taken()

    def deadline(self) -> float | None:
        """Return the `Moment.mono` at which the next `Tick` is due, None if nothing waits."""
        if not (self._permissions.waiting or self._modes.waiting):  # nearly always; called after every message
            return None
        due = [at for at in (self._permissions.deadline(), self._modes.deadline()) if at is not None]
        return min(due, default=None)

    def holds(self, ident: bytes) -> bool:
        """Say whether a request of the agent with this id is held: it waits for a person, or for details."""
        key = acp.id_key(ident)
        return any(held.key == key for held in self._core.held.values())

    @property
    def waiting(self) -> int:
        """How many requests of the agent wait for a person, or for details."""
        return len(self._core.held)

    def adopt(self, side: Side, line: bytes, now: Moment) -> None:
        """Register a request that was forwarded before this connection existed, so that its response is handled.

        It is not judged, as it has been forwarded already.

        Raises:
            NotJsonError, ProtocolError: it is no request.
        """
        self._core.now = now
        message = acp.envelope(line)
        method = message.method or ""
        try:
            if side is Side.CLIENT and method in UNDERSTOOD:
                self._follow(method, message, self._object(message))
                return
        except Exception as error:  # its session stays unknown, so no prompt passes there
            self._core.note(f"an earlier request could not be read: {type(error).__name__}")
        self._core.track(side, message.key, Passing(method))

    @property
    def unwatched(self) -> tuple[str, ...]:
        """The sessions whose agent may act without asking."""
        return tuple(session.id for session in self._core.sessions.values() if session.unwatched)

    def _closed(self, side: Side) -> None:
        self._core.closed.add(side)
        self._permissions.abandon(f"the {side.value} is gone")

    def _released(self) -> None:
        """Handle the lines that waited for a session, as if they came now."""
        while self._modes.ready:
            for side, line in self._modes.ready.pop(0):
                self._line(side, line)

    # ---- lines --------------------------------------------------------------------------------------

    def _line(self, side: Side, line: bytes) -> None:
        mark = self._core.mark()
        try:
            self._route(side, line)
        except acp.NotJsonError:
            self._core.rewind(mark)
            if line.strip():
                self._core.note(f"dropped a line of the {side.value} that is no message: {_show(line)}")
            else:
                self._core.forward(side.other, line)
        except acp.ProtocolError as error:
            self._core.rewind(mark)
            self._refused(side, line, str(error))
        except Exception as error:
            self._core.rewind(mark)
            self._permissions.forget(line)
            self._refused(side, line, f"policyd failed: {type(error).__name__}: {error}")

    def _route(self, side: Side, line: bytes) -> None:
        message = acp.envelope(line)
        if message.method is None:
            self._response(side, message, line)
        elif message.id is None:
            self._notification(side, message.method, message, line)
        elif self._core.ours(message.key):
            raise acp.ProtocolError("an id that is policyd's own")
        elif message.key == NULL and side not in self._nameless:
            self._nameless.add(side)
            self._route(side, line)
        elif side is Side.AGENT:
            self._agent_request(message.method, message, line)
        else:
            self._client_request(message.method, message, line)

    def _refused(self, side: Side, line: bytes, why: str) -> None:
        """Refuse a line: answer it if its id can be read, and make the call it updates opaque."""
        self._core.note(f"refused a line of the {side.value}: {why}", loud=True)
        self._records.event("refused", side=side.value, reason=why)
        self._forget_call(line)
        ident = acp.readable_id(line)
        if line.lstrip().startswith(b"["):
            self._core.send(side, messages.error(b"null", messages.INVALID, "policyd passes no batches"))
        if ident is None:
            return
        if not acp.has_method(line):
            said = messages.error(ident, messages.INVALID, f"policyd refused the {side.value}'s response: {why}")
            self._response(side, acp.envelope(said), said[:-1])
        elif side is Side.AGENT and acp.claims(line, PERMISSION):
            meta = {"effect": "deny", "rules": [], "reason": f"the request was refused: {why}"}
            self._core.send(side, messages.permission(ident, None, meta))
        else:
            self._core.send(side, messages.error(ident, messages.INVALID, f"Refused by policyd: {why}"))

    def _forget_call(self, line: bytes) -> None:
        """Make the call of a refused update opaque."""
        session_id, call_id = acp.update_call(line)
        if session_id and call_id:
            self._core.decider.refused(session_id, call_id)

    def _object(self, message: acp.Envelope) -> dict[str, Any]:
        if message.params is None:
            raise acp.ProtocolError("no params")
        params = acp.strict_object(message.params, self._core.decider.names())
        if len(message.params) > MOST_LISTED:  # shorter params cannot hold so long a list
            for name in LISTED:
                found = params.get(name)
                if isinstance(found, list) and len(found) > MOST_LISTED:
                    raise acp.ProtocolError(f"more than {MOST_LISTED} {name}")
        return params

    def _observe(self, side: Side, message: acp.Envelope, params: Mapping[str, object]) -> None:
        whole: dict[str, object] = {"jsonrpc": "2.0", "method": message.method, "params": params}
        if message.id is not None:
            whole["id"] = message.key[1] if message.key else None
        self._core.decider.observe(side, whole)

    def _waits(self, side: Side, message: acp.Envelope, line: bytes) -> bool:
        """Queue a line of a session whose first response is held; False if none is."""
        if not self._modes.holding or message.params is None:
            return False
        session = self._core.sessions.get(acp.session_of(message.params))
        return session is not None and self._modes.queued(session, side, message, line)

    # ---- from the agent -----------------------------------------------------------------------------

    def _agent_request(self, method: str, message: acp.Envelope, line: bytes) -> None:
        if method not in JUDGED and method.strip().casefold() in JUDGED:
            raise acp.ProtocolError(f"{method!r} is a variant of a method that is judged")
        if method != PERMISSION and self._permissions.uses(message.key):
            raise acp.ProtocolError("an id that is in use")
        if method != PERMISSION and (method not in DOORS or not self._core.settings.side_doors):
            if not self._waits(Side.AGENT, message, line):
                self._core.track(Side.AGENT, message.key, Passing(method))
                self._core.forward(Side.CLIENT, line)
            return
        params = self._object(message)
        if self._waits(Side.AGENT, message, line):
            return
        if method == PERMISSION:
            self._observe(Side.AGENT, message, params)
        session = self._core.session(text_of(params, "sessionId"))
        self._permissions.arrive(session, message, line, params)

    def _notification(self, side: Side, method: str, message: acp.Envelope, line: bytes) -> None:
        if side is Side.CLIENT:
            self._client_notification(method, message, line)
        elif method == PERMISSION or method in DOORS:
            raise acp.ProtocolError(f"{method} without an id")
        elif method == CANCEL_REQUEST:
            self._agent_cancels(message, line)
        elif not self._waits(side, message, line):
            if method == acp.UPDATE and message.params is not None:
                self._update(message, line)
            else:
                self._core.forward(Side.CLIENT, line)

    def _agent_cancels(self, message: acp.Envelope, line: bytes) -> None:
        key = _requested(self._object(message))
        if not (self._permissions.cancel_request(key) or self._modes.cancel_request(key)):
            self._core.forward(Side.CLIENT, line)

    def _update(self, message: acp.Envelope, line: bytes) -> None:
        if acp.update_kind(message.params or b"")[1] not in WATCHED:
            self._core.forward(Side.CLIENT, line)
            return
        params = self._object(message)
        update = params.get("update")
        kind = text_of(update, "sessionUpdate") if isinstance(update, dict) else ""
        session = self._core.session(text_of(params, "sessionId"))
        if kind in CALLS and isinstance(update, dict) and update.get("status") == "completed":
            ends = self._tripwire.completed(session, update)
            if ends:
                self._core.send(Side.AGENT, messages.cancel_session(session.id))
                self._permissions.cancel_session(session, by="policyd")
        self._observe(Side.AGENT, message, params)
        if kind in SWITCHES and session.opened:
            self._modes.agent_switch(session, params, line)
            return
        if kind in SWITCHES:
            session.early_updates[kind] = (params, line)
        self._core.forward(Side.CLIENT, line)
        if kind in CALLS and isinstance(update, dict):
            self._call(session, update)

    def _call(self, session: Session, update: Mapping[str, object]) -> None:
        if update.get("sessionUpdate") == CHUNK:
            update = {**update, "content": [update.get("content")]}
        call_id = text_of(update, "toolCallId")
        shown = diff_digests(update)
        if shown:
            session.diffs[call_id] = shown
            while len(session.diffs) > self._core.settings.calls_kept:
                session.diffs.popitem(last=False)
        self._tripwire.updated(session, update)
        self._permissions.details(session, call_id)

    # ---- from the client ----------------------------------------------------------------------------

    def _client_request(self, method: str, message: acp.Envelope, line: bytes) -> None:
        ident = message.id or b"null"
        if method not in ORDERED and method.strip().casefold() in ORDERED:
            raise acp.ProtocolError(f"{method!r} is a variant of a method that is watched")
        if method == PERMISSION:
            text = "session/request_permission is a request of agents"
            self._core.send(Side.CLIENT, messages.error(ident, messages.UNKNOWN_METHOD, text))
        elif method in ("proxy/initialize", "_proxy/initialize"):
            self._core.send(Side.CLIENT, messages.error(ident, messages.UNKNOWN_METHOD, LAST))
        elif method == "initialize" and self._initialized:
            raise acp.ProtocolError("a second initialize")
        elif method == "session/prompt":
            self._prompt(message, line, ident)
        elif method in UNDERSTOOD:
            self._understood(method, message, line, ident)
        elif not self._waits(Side.CLIENT, message, line):
            self._core.track(Side.CLIENT, message.key, Passing(method))
            self._core.forward(Side.AGENT, line)

    def _understood(self, method: str, message: acp.Envelope, line: bytes, ident: bytes) -> None:
        params = self._object(message)
        if self._waits(Side.CLIENT, message, line):
            return
        if method != "initialize" and self._modes.client_switch(method, params, ident):
            return
        if method in OPENINGS and self._servers.refused(method, params, ident):
            return
        self._follow(method, message, params)
        self._core.forward(Side.AGENT, line)

    def _follow(self, method: str, message: acp.Envelope, params: Mapping[str, object]) -> None:
        """Observe a request of the client that is forwarded, and expect its response."""
        self._initialized = self._initialized or method == "initialize"
        self._observe(Side.CLIENT, message, params)
        passing = Passing(method, text_of(params, "sessionId"), understood=True)
        if method in REOPENINGS:
            session = self._core.session(passing.session)
            session.was_open = session.was_open if session.opening else session.opened
            session.opened, session.opening = False, session.opening + 1
        self._core.track(Side.CLIENT, message.key, passing)

    def _prompt(self, message: acp.Envelope, line: bytes, ident: bytes) -> None:
        session_id = text_of(self._object(message), "sessionId")
        if self._modes.prompt(self._core.session(session_id), line, ident):
            self._core.track(Side.CLIENT, message.key, Passing("session/prompt", session_id))

    def _client_notification(self, method: str, message: acp.Envelope, line: bytes) -> None:
        if method in ORDERED:
            raise acp.ProtocolError(f"{method} without an id")
        if method == "session/cancel":
            params = self._object(message)
            self._observe(Side.CLIENT, message, params)
            self._core.forward(Side.AGENT, line)
            session = self._core.sessions.get(text_of(params, "sessionId"))
            if session is not None:
                self._modes.cancelled(session)
                self._permissions.cancel_session(session)
        elif method == CANCEL_REQUEST and self._modes.cancel_prompt(_requested(self._object(message))):
            return
        elif not self._waits(Side.CLIENT, message, line):
            self._core.forward(Side.AGENT, line)

    # ---- responses ----------------------------------------------------------------------------------

    def _response(self, side: Side, message: acp.Envelope, line: bytes) -> None:
        key = message.key
        if key is not None and self._core.ours(key):
            answered = self._core.own.pop((side, str(key[1])), None)
            if answered is not None:
                answered(message)
                return
        if side is Side.CLIENT and self._permissions.client_answered(key, message):
            return
        passing = self._core.answered(side, key)
        if passing is not None:
            self._passed(side, passing, message, line)
        elif key == NULL and message.error is not None and side.other not in self._nameless:
            self._core.forward(side.other, line)
        elif not self._core.ours(key):  # of those another may come: late, or once more
            self._core.note(f"dropped an answer of the {side.value} to a request that is not open")

    def _passed(self, side: Side, passing: Passing, message: acp.Envelope, line: bytes) -> None:
        if not passing.understood or side is Side.CLIENT:
            self._core.forward(side.other, line)
            return
        self._initialized = self._initialized and (passing.method != "initialize" or message.error is None)
        self._responses.passed(passing, message, line)


def _requested(params: Mapping[str, object]) -> object:
    """Return the key of the request that a `$/cancel_request` names, None if that is no id."""
    value = params.get("requestId")
    if isinstance(value, bool | list | dict):
        return None
    kind = "text" if isinstance(value, str) else "null" if value is None else "number"
    return (kind, value)


def _show(line: bytes) -> str:
    text = line[:200].decode("utf-8", "replace")
    return text + (f" … ({len(line)} bytes)" if len(line) > 200 else "")
