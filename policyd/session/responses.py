"""The agent's responses whose content matters: those that open a session, change its mode, or name the agent.

Each is observed before it is forwarded. One that cannot be parsed, or names another session than its request, is
refused with a reason, and its session has to be opened anew: the agent's mode is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from policyd import acp
from policyd.acp import messages
from policyd.session.core import Core, Passing, text_of
from policyd.session.events import Side
from policyd.session.modes import Modes
from policyd.session.modeshapes import listing
from policyd.session.state import OPENINGS, Session

CHANGES = frozenset({"session/set_mode", "session/set_config_option"})
REOPENINGS = frozenset({"session/load", "session/resume"})
CLOSINGS = frozenset({"session/close", "session/delete"})


class Responses:
    """Handles them as they pass."""

    def __init__(self, core: Core, modes: Modes, cancel: Callable[[Session], None]) -> None:
        """Share `core`; `cancel` answers the open requests of a session that is closed."""
        self._core = core
        self._modes = modes
        self._cancel = cancel

    def passed(self, passing: Passing, message: acp.Envelope, line: bytes) -> None:
        """Handle the response to a forwarded request."""
        session = self._core.sessions.get(passing.session)
        if session is not None and passing.method in REOPENINGS:
            session.opening = max(0, session.opening - 1)
        read, result = self._read(passing, message)
        if not read and session is not None and passing.method in REOPENINGS:
            session.was_open = False
            self._modes.not_opened(session)
        if not read:
            return
        if message.result is not None and passing.method in OPENINGS:
            self._opened(passing, line, result)
            return
        if message.error is None and passing.method in CLOSINGS:
            self._core.decider.closed(passing.session)
        self._core.forward(Side.CLIENT, line)
        if session is not None and passing.method in REOPENINGS:
            self._modes.not_opened(session)
        elif session is not None and session.opened and passing.method in CHANGES:
            self._changed(session, line, result)
        elif session is not None and message.error is None and passing.method in CLOSINGS:
            self._closed(session)

    def _closed(self, session: Session) -> None:
        """Drop a session, as if it had never been opened."""
        if session.hold is None and session.setback is None and not session.opening:
            self._cancel(session)
            self._modes.cancelled(session)
            del self._core.sessions[session.id]
            self._core.decider.ended(session.id)

    def _opened(self, passing: Passing, line: bytes, result: Mapping[str, object]) -> None:
        session_id = text_of(result, "sessionId") or passing.session
        if session_id:
            self._modes.opened(self._core.session(session_id), line, result)
        else:
            self._core.forward(Side.CLIENT, line)

    def _changed(self, session: Session, line: bytes, result: Mapping[str, object]) -> None:
        """Handle the answer to a change of one option: it lists all, of which the agent may have switched another."""
        if "configOptions" in result:
            params: dict[str, object] = {"sessionId": session.id, "update": listing(result)}
            self._core.decider.observe(Side.AGENT, {"method": acp.UPDATE, "params": params})
            self._modes.agent_switch(session, params, line, passed=True)

    def _read(self, passing: Passing, message: acp.Envelope) -> tuple[bool, Mapping[str, object]]:
        """Observe a response; False if it was refused and answered. A result that is not an object counts as empty."""
        try:
            ident, result = message.key[1] if message.key else None, acp.strict(message.result or b"null")
            fields = result if isinstance(result, dict) else {}
            if passing.method in REOPENINGS and text_of(fields, "sessionId") not in ("", passing.session):
                raise acp.ProtocolError("it names another session than the request")
            body: dict[str, object] = {"error": {}} if message.result is None else {"result": fields}
            self._core.decider.observe(Side.AGENT, {"jsonrpc": "2.0", "id": ident, **body})
        except Exception as error:  # a session is not opened by a response that failed
            self._core.note(f"refused the agent's response to {passing.method}: {error}", loud=True)
            text = f"policyd refused the agent's response to {passing.method}: {error}"
            self._core.send(Side.CLIENT, messages.error(message.id or b"null", messages.INVALID, text))
            return False, {}
        return True, fields
