"""What the enforcement needs of the decision point, as one small protocol, and the values that cross it.

`policyd.session.judge.Judge` is the real one (an `Authorizer` and the `Conversation` it observes); tests have others.
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
    """A request, what was decided of it, and in which context."""

    request: Request
    decision: Decision
    context: Context


class Asking(Struct, frozen=True):
    """What has to be set so that a session asks, and what the client is then told."""

    steps: tuple[tuple[str, Mapping[str, object]], ...] = ()
    """Requests to the agent, in order: method and params. None: it asks already, or has no such mode."""
    mode: str = ""
    """The mode in force after them; `""` = modes are not touched."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Config option -> its value after them."""
    missing: str = ""
    """Why asking cannot be set, in words; then there are no steps."""


class Decider(Protocol):
    """The decision point of one connection."""

    def observe(self, side: Side, message: Message) -> None:
        """Take in a message from `side` as it passes: sessions, modes, tool calls, answers."""

    def refused(self, session_id: str, call_id: str) -> None:
        """Take in that an update of this call was refused: what is known of it no longer counts."""

    def closed(self, session_id: str) -> None:
        """Take in that a session was closed: what was remembered for it alone ends, whoever opens it again."""

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
        """Say whether the policy lets people's answers be remembered as an allow."""

    def person(self) -> bool:
        """Say whether the client may speak for a person to other sessions: whether it surely runs below no agent."""

    def late(self, params: Message) -> bool:
        """Say whether details of this permission request race it and have not come."""

    def permission(self, params: Message, now: Moment) -> Verdict:
        """Decide a `session/request_permission`."""

    def again(self, verdict: Verdict, now: Moment) -> Decision:
        """Decide the same request, as it was understood, under the policy of this moment."""

    def door(self, method: str, params: Message, now: Moment) -> Verdict:
        """Decide a call through a side door."""

    def switch(self, method: str, params: Message, now: Moment) -> Verdict | None:
        """Decide a change that would switch asking off, from whichever door; None = it does not."""

    def servers(self, method: str, params: Message, now: Moment) -> Verdict:
        """Decide the MCP servers that a request to open a session starts."""

    def chosen(self, verdict: Verdict, option: str, now: Moment) -> Verdict | None:
        """Decide the mode an option of a `switch_mode` request leads to; None = to none that is unsafe."""

    def asking(self, session_id: str, opened: Message) -> Asking:
        """Return what to set in a session whose opening response has this result."""

    def stands_for(self, session_id: str, update: Message) -> tuple[Action, ...]:
        """Return what a call would do going by one update of it alone."""

    def unasked(self, session_id: str, update: Message, now: Moment) -> Verdict | None:
        """Decide a call that `update`, not yet observed, says is completed; None = it was asked, or cannot be told."""
