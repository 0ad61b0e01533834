"""One connection to the daemon as pure translation: lines in, lines out, without socket and clock.

    peer = Peer(shared, who, out)      # `who` from the kernel, before the first line
    peer.line(line)                    # one line without its newline
    peer.close(); peer.forget()

1. `_policyd/hello` comes first; before it everything is refused, permission requests with `cancelled`.
2. A line that cannot be parsed is refused if it can be answered, and never acted upon.
3. An exception here refuses the line; it ends a proxy's connection, so that the proxy rejects at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import policyd
from policyd import acp
from policyd.acp import messages
from policyd.daemon import wire
from policyd.daemon.control import Control
from policyd.daemon.embedder import Embedder
from policyd.daemon.relay import Relay
from policyd.daemon.shared import PENDING, Shared, Who
from policyd.daemon.wire import WireError
from policyd.service.performer import Performer
from policyd.service.relayed import CHANGED, HELLO, RELAY, PieceError
from policyd.session.state import PERMISSION
from policyd.storage.processes import run_word

FIRST = "`_policyd/hello` must be the first message"


class Peer:
    """What one connection says and is told."""

    def __init__(self, shared: Shared, who: Who, out: Callable[[bytes], None]) -> None:
        """Begin before the hello; `out` writes whole lines."""
        self._shared = shared
        self._who = who
        self._out = out
        self._role: Embedder | Relay | None = None
        self._control = Control(shared, who)
        self.trouble = ""
        """Why the connection must end, in words; empty: it need not."""

    @property
    def greeted(self) -> bool:
        """Whether the hello has come."""
        return self._role is not None

    @property
    def performers(self) -> list[Performer]:
        """The connections to be ticked."""
        return self._role.performers if self._role else []

    def line(self, line: bytes) -> None:
        """Take one line, without its newline."""
        if not line.strip():
            return
        try:
            self._message(acp.envelope(line), line)
        except acp.NotJsonError:
            self._out(messages.error(b"null", -32700, "no JSON object"))
        except (acp.ProtocolError, WireError, PieceError) as error:
            self._refuse(line, str(error))
        except Exception as error:
            self._shared.say_of(self._who, f"a message of a peer failed: {type(error).__name__}: {error}", loud=True)
            self._refuse(line, f"policyd failed: {type(error).__name__}")
            if isinstance(self._role, Relay):  # what became of the block it does not know, nor do we
                self.trouble = "a block of a proxy could not be taken"

    def _refuse(self, line: bytes, why: str) -> None:
        """Refuse a line that was not understood: to the enforcement it is a refused line of the agent."""
        ident = acp.readable_id(line)
        if isinstance(self._role, Embedder) and b"toolCallId" in line:
            self._role.refused(line)
        if answer := wire.refusal(line, ident, why):
            self._out(answer)
        else:
            self._shared.say_of(self._who, f"dropped a message of a peer: {why}")

    def _message(self, message: acp.Envelope, line: bytes) -> None:
        method, role = message.method, self._role
        if method is None:
            if isinstance(role, Embedder):
                role.response(message)
        elif method == HELLO and message.id is not None:
            self._hello(message.id, message.params)
        elif role is None:
            self._refuse(line, FIRST)
        elif message.id is None:
            self._notification(role, method, message, line)
        elif method == PERMISSION and isinstance(role, Embedder):
            self._permission(role, message, line)
        else:
            self._request(role, method, message.id, message.params or b"{}", line)

    def _hello(self, ident: bytes, params: bytes | None) -> None:
        if self._role is not None:
            raise WireError("a second hello")
        hello = wire.read_hello(acp.strict_object(params or b"{}"))
        run = run_word()
        kind = Relay if hello.relay else Embedder
        self._role = kind(self._shared, self._who, hello, run, self._out)
        self._out(messages.result(ident, self._control.welcome()))

    def _permission(self, role: Embedder, message: acp.Envelope, line: bytes) -> None:
        if self._shared.pending.get(self._who.uid, 0) >= PENDING:
            self._out(wire.rejected(message.id or b"null", f"{PENDING} requests of this user are pending already"))
            return
        role.permission(message.key, line)

    def _notification(self, role: Embedder | Relay, method: str, message: acp.Envelope, line: bytes) -> None:
        params = message.params or b"{}"
        if isinstance(role, Relay):
            if method != RELAY:
                raise WireError(f"{method} means nothing from a relay")
            self.trouble = role.take(acp.strict_object(params))
        elif method == wire.OBSERVE:
            role.observe(params)
        elif method == PERMISSION:
            raise WireError(f"{PERMISSION} without an id")
        elif not role.notification(method, line):
            self._shared.say_of(self._who, f"dropped a notification of a peer: {method} means nothing here")

    def _request(self, role: Embedder | Relay, method: str, ident: bytes, raw: bytes, line: bytes) -> None:
        if method == wire.DECIDE and isinstance(role, Embedder):
            role.decide(ident, raw)
            return
        params: Mapping[str, object] = acp.strict_object(raw)
        if method == wire.ANSWER and isinstance(role, Embedder):
            role.answer(ident, params)
        elif method == wire.SESSION and isinstance(role, Embedder):
            role.opened(params)
            self._out(messages.result(ident, {}))
        elif method == wire.OBSERVE and isinstance(role, Embedder):
            role.observe(raw)
            self._out(messages.result(ident, {}))
        elif (answer := self._control.answer(method, params)) is not None:
            self._out(messages.result(ident, answer))
        else:
            self._out(messages.error(ident, messages.UNKNOWN_METHOD, f"policyd {policyd.__version__}: no {method}"))

    # ---- from the daemon ----------------------------------------------------------------------------

    def changed(self, revision: str, *, loosens: bool) -> None:
        """Tell that another policy is in force."""
        if self._role is not None:
            self._out(messages.notification(CHANGED, {"revision": revision, "loosens": loosens}))

    def close(self) -> None:
        """The peer is gone, or the daemon ends: everything open is answered without an allow."""
        if self._role:
            self._role.close()

    def forget(self) -> None:
        """Let go of everything."""
        if self._role:
            self._role.forget()
            self._role = None
