"""`_policyd/decide`: returns a decision if policy settles the request, else a question for the caller to ask.

The question is the one a person at a client would be asked; `_policyd/answer` closes it, and the answer is judged
again, remembered and recorded like any other. A question without an answer times out as a rejection.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from policyd import acp
from policyd.acp import messages
from policyd.model import Decision
from policyd.service.performer import Performer
from policyd.session import Connection, Side
from policyd.session.core import quoted
from policyd.session.state import PERMISSION

MOST = 100
"""Questions of one peer that are open at once."""
CANCELLED = {"outcome": {"outcome": "cancelled"}}


class Deciding:
    """The decisions one peer asked for as values."""

    def __init__(
        self,
        make: Callable[[], tuple[Performer, Connection]],
        out: Callable[[bytes], None],
        *,
        revision: Callable[[str], str],
        expires: Callable[[], str],
        why: Callable[[Mapping[str, object]], Decision],
    ) -> None:
        """Make nothing yet: most peers never decide so.

        Args:
            make: a performer and the connection it is of.
            out: writes whole lines to the peer.
            revision: of the policy of a session.
            expires: until when a question that is asked now may be answered, as ISO 8601.
            why: the decision that a request gets before anybody is asked.
        """
        self._make = make
        self._out = out
        self._revision = revision
        self._expires = expires
        self._why = why
        self._performer: Performer | None = None
        self._connection: Connection
        self._count = 0
        self._callers: dict[str, tuple[bytes, str]] = {}
        """Who waits for what becomes of a decision: the id of the request, and the session."""
        self._asks: dict[str, tuple[str, bytes, str]] = {}
        """Question -> the decision it belongs to, the id it was asked under, and the session."""
        self._asking = ""

    @property
    def performers(self) -> list[Performer]:
        """The connection to be ticked and forgotten, once there is one."""
        return [self._performer] if self._performer else []

    def decide(self, ident: bytes, params: bytes) -> None:
        """Decide the params of a permission request; the result goes out under `ident`."""
        if self._performer is None:
            self._performer, self._connection = self._make()
            self._performer.send_by(self._sent)
        if len(self._asks) >= MOST:
            self._refuse(ident, acp.session_of(params), f"{MOST} questions are open already")
            return
        self._count += 1
        name = f"decide-{self._count}"
        self._callers[name] = ident, acp.session_of(params)
        self._asking = name
        self._performer.feed(Side.AGENT, messages.spliced_request(quoted(name), PERMISSION, params))
        self._performer.tick()
        if name in self._callers and self._connection.holds(quoted(name)):  # it waits for the answer to a twin
            caller, session = self._callers.pop(name)
            self._performer.feed(Side.AGENT, messages.cancel_request(quoted(name)))
            self._refuse(caller, session, "the same question is open already: answer that one")

    def answer(self, ident: bytes, params: Mapping[str, object]) -> None:
        """Close a question; without an option it is a rejection."""
        found = self._asks.pop(str(params.get("id")), None)
        if found is None or self._performer is None:
            self._refuse(ident, "", "no such question is open")
            return
        name, asked, session = found
        option = params.get("optionId")
        chosen = {"outcome": "selected", "optionId": option} if isinstance(option, str) else {"outcome": "cancelled"}
        self._callers[name] = ident, session
        self._performer.feed(Side.CLIENT, messages.result(asked, {"outcome": chosen}))

    def _refuse(self, ident: bytes, session: str, why: str) -> None:
        self._result(ident, session, {"effect": "deny", "response": CANCELLED, "rules": [], "reason": why})

    def _result(self, ident: bytes, session: str, found: Mapping[str, object]) -> None:
        whole = {"ask": None, **found, "revision": self._revision(session)}
        self._out(messages.result(ident, whole))

    # ---- what the enforcement sends -------------------------------------------------------------------

    def _sent(self, side: Side, data: bytes) -> None:
        for line in data[:-1].split(b"\n"):
            message = acp.envelope(line)
            if side is Side.AGENT and message.method is None and message.result is not None:
                self._answered(str(message.key[1]) if message.key else "", message.result)
            elif side is Side.CLIENT and message.method == PERMISSION and message.id and message.params:
                self._asked(message.id, message.params)

    def _answered(self, name: str, raw: bytes) -> None:
        caller = self._callers.pop(name, None)
        for ask in [ask for ask, (owner, _, _) in self._asks.items() if owner == name]:
            del self._asks[ask]
        if caller is None:
            return
        response = json.loads(raw)
        said = response.get("_meta", {}).get("policyd", {})
        facts = {name: said.get(name) for name in ("effect", "rules", "reason")}
        self._result(*caller, {**facts, "response": response})

    def _asked(self, ident: bytes, raw: bytes) -> None:
        """Hand a question back to whoever wanted the decision."""
        name = self._asking
        caller = self._callers.pop(name, None)
        if caller is None:
            return
        params = json.loads(raw)
        ask = str(json.loads(ident))  # nobody can guess it (`session.core`)
        self._asks[ask] = name, ident, caller[1]
        call = params.get("toolCall")
        decision = self._why(params)
        question = {
            "id": ask,
            "title": call.get("title") if isinstance(call, dict) else None,
            "options": params.get("options"),
            "reason": decision.reason,
            "expires": self._expires(),
        }
        rules = [rule.label for rule in decision.rules]
        found = {"effect": "ask", "response": None, "ask": question, "rules": rules, "reason": decision.reason}
        self._result(*caller, found)
