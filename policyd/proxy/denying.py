"""The replacement for a lost daemon: everything that would be judged is rejected with the reason, the rest passes.

It is the same enforcement over an empty policy: agents are still put into an asking mode, unsafe switches are still
refused, every request is still answered once. A session that starts MCP servers is not opened, and an agent that cannot
be made to ask gets no prompt, as the lost daemon might refuse these. Nothing is recorded here; the daemon gets the
number of rejections when it is back.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from msgspec.structs import replace

from policyd import __version__, policy
from policyd.actions import Machine
from policyd.authorizer import Authorizer
from policyd.model import Decision, Effect, Source
from policyd.service.performer import moment
from policyd.session import Command, Connection, Moment, Note, Record, Send, Settings, Side, Tick
from policyd.session.events import Closed
from policyd.session.judge import Judge
from policyd.session.ports import Message, Verdict
from policyd.storage.places import Places

REASON = "the policyd daemon cannot be reached ({why}); until it is back everything that needs a decision is rejected"


class Denying(Judge):
    """A decision point that only denies."""

    def __init__(self, authorizer: Authorizer, why: str) -> None:
        """Deny for this reason."""
        super().__init__(authorizer)
        self._why = why

    def permission(self, params: Message, now: Moment) -> Verdict:
        """Deny a permission request."""
        return self._denied(super().permission(params, now))

    def door(self, method: str, params: Message, now: Moment) -> Verdict:
        """Deny a call through a side door."""
        return self._denied(super().door(method, params, now))

    def servers(self, method: str, params: Message, now: Moment) -> Verdict:
        """Deny the MCP servers that a request to open a session starts."""
        return self._denied(super().servers(method, params, now))

    def unasked(self, session_id: str, update: Message, now: Moment) -> Verdict | None:
        """Say nothing: there is no policy to compare with."""
        return None

    def _denied(self, verdict: Verdict) -> Verdict:
        decision = Decision(Effect.DENY, Source.ERROR, self._why, actions=verdict.decision.actions)
        return replace(verdict, decision=decision)


class Local:
    """The enforcement of a proxy whose daemon is lost."""

    def __init__(self, places: Places, why: str, *, agent: str, client: str, note: Callable[[str], None]) -> None:
        """Begin with nothing seen; `why` the daemon is lost is told with every rejection."""
        rules = policy.load([], home=places.home, tmpdir=places.tmpdir, version=__version__)
        authorizer = Authorizer(rules, machine=Machine(places.home, tmpdir=places.tmpdir), agent=agent)
        settings = Settings(prompt=(), fs_read="policy", strict=True, client=client)
        self._connection = Connection(Denying(authorizer, REASON.format(why=why)), settings, nonce=secrets.token_hex(8))
        self._note = note
        self.rejected = 0

    def feed(self, side: Side, block: bytes) -> list[tuple[Side, bytes]]:
        """Take whole lines; return what leaves."""
        return self._sends(self._connection.feed(side, block, moment()))

    def learn(self, side: Side, line: bytes) -> list[tuple[Side, bytes]]:
        """Take a line that passed before; return what policyd itself asks the agent for because of it."""
        if side is Side.CLIENT:
            self.adopt(side, line)
            return []
        return [(to, data) for to, data in self.feed(side, line + b"\n") if to is Side.AGENT]

    def adopt(self, side: Side, line: bytes) -> None:
        """Take a request that has left and is not answered."""
        self._connection.adopt(side, line, moment())

    def tick(self) -> list[tuple[Side, bytes]]:
        """Time passed; return what leaves."""
        return self._sends(self._connection.handle(Tick(), moment()))

    def closed(self, side: Side) -> list[tuple[Side, bytes]]:
        """A side is gone; return what leaves."""
        return self._sends(self._connection.handle(Closed(side), moment()))

    def deadline(self) -> float | None:
        """When `tick` is due; None: nothing is held here."""
        return self._connection.deadline()

    def _sends(self, commands: list[Command]) -> list[tuple[Side, bytes]]:
        sends = []
        for command in commands:
            if isinstance(command, Send):
                sends.append((command.side, command.data))
            elif isinstance(command, Note) and command.loud:
                self._note(command.text)
            elif isinstance(command, Record) and command.record.get("event") == "decision":
                self.rejected += 1
        return sends
