"""The protocol through which the enforcement uses the decision point, and the values that cross it.

`policyd.session.judge.Judge` implements it (an `Authorizer` and the `Conversation` it observes); tests have others.
A decider may raise at any point: the enforcement turns that into a denial.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct, field

from policyd.model import Action, Context, Decision, Request
from policyd.session.events import Moment, Side

Message = Mapping[str, object]


class Verdict(Struct, frozen=True):
    """A request, the decision on it, and the context it was made in."""

    request: Request
    decision: Decision
    context: Context


class Asking(Struct, frozen=True):
    """The steps that put a session into an asking mode, and the mode and options in force after them."""

    steps: tuple[tuple[str, Mapping[str, object]], ...] = ()
    """Requests to the agent, in order: method and params. Empty: it asks already, or has no such mode."""
    mode: str = ""
    """The mode in force after them; `""` = modes are not touched."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Config option -> its value after them."""
    missing: str = ""
    """Why asking cannot be set, in words; then there are no steps."""


class Decider(Protocol):
    """The decision point of one connection."""

    def observe(self, side: Side, message: Message) -> None:
        """Observe a message that `side` sent: sessions, modes, tool calls, answers."""

    def refused(self, session_id: str, call_id: str) -> None:
        """Note that an update of this call was refused: what is known of the call no longer counts."""

    def closed(self, session_id: str) -> None:
        """Note that a session was closed: its session grants end, even if it is opened again."""

    def ended(self, session_id: str) -> None:
        """Forget a session that was closed."""

    def names(self) -> frozenset[str]:
        """Return the field names the agent's profile reads in `rawInput`."""

    def client(self) -> Mapping[str, str]:
        """Return `name` and `version` of the client as it states them."""

    def context(self, session_id: str, now: Moment) -> Context:
        """Return what is true of the session now."""

    def project(self, session_id: str) -> str:
        """Return the real path of the session's project, `""` if none is known."""

    def remembers(self) -> bool:
        """Say whether the policy permits remembered allows."""

    def person(self) -> bool:
        """Say whether a person's answers at the client may count in other sessions: it surely runs below no agent."""

    def late(self, params: Message) -> bool:
        """Say whether details of this permission request, sent separately, are still to come."""

    def permission(self, params: Message, now: Moment) -> Verdict:
        """Decide a `session/request_permission`."""

    def again(self, verdict: Verdict, now: Moment) -> Decision:
        """Decide the same request, with the same actions, under the current policy."""

    def door(self, method: str, params: Message, now: Moment) -> Verdict:
        """Decide a call through a side door."""

    def switch(self, method: str, params: Message, now: Moment) -> Verdict | None:
        """Decide a change that would switch asking off, by whatever method; None = it does not."""

    def servers(self, method: str, params: Message, now: Moment) -> Verdict:
        """Decide the MCP servers that a request to open a session starts."""

    def chosen(self, verdict: Verdict, option: str, now: Moment) -> Verdict | None:
        """Decide the mode an option of a `switch_mode` request leads to; None = to none that is unsafe."""

    def asking(self, session_id: str, opened: Message) -> Asking:
        """Return the steps for a session whose opening response has this result."""

    def stands_for(self, session_id: str, update: Message) -> tuple[Action, ...]:
        """Return the actions of a call according to this one update alone."""

    def unasked(self, session_id: str, update: Message, now: Moment) -> Verdict | None:
        """Decide a call that `update`, not yet observed, reports as completed; None = it was asked, or is unknown."""
