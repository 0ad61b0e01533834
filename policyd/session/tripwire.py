"""Detects calls that ran unasked although policy denies them, or that differ from what was allowed.

An unasked call counts once, when it is `completed`, and only in an open session (earlier updates are history). The
decider knows whether a request named or covered the call, and whether the agent's statuses can be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyd.model import WRITE_KINDS, Action, Effect, Role
from policyd.session.core import Core, text_of
from policyd.session.records import Records
from policyd.session.state import Session, remember


def resources(actions: tuple[Action, ...]) -> frozenset[object]:
    """Return what actions write, run and fetch, in comparable form."""
    found: set[object] = set()
    for action in actions:
        if action.role is Role.MENTION or action.opaque:
            continue
        if action.command is not None:
            found.add(tuple(word.text for word in action.command.argv))
        elif action.path is not None and action.kinds & WRITE_KINDS:
            found.update(action.path.forms)
        elif action.url is not None:
            found.add(action.url.text)
    return frozenset(found)


class Tripwire:
    """Watches completed and changed calls."""

    def __init__(self, core: Core, records: Records) -> None:
        """Share `core`."""
        self._core = core
        self._records = records

    def approved(self, session: Session, call_id: str, actions: tuple[Action, ...]) -> None:
        """Store what an allowed call would do."""
        if call_id:
            session.approved[call_id] = resources(actions)
            while len(session.approved) > self._core.settings.calls_kept:
                session.approved.popitem(last=False)

    def updated(self, session: Session, update: Mapping[str, object]) -> None:
        """Record once if an update of an allowed call names a command, URL or written path that was not asked for."""
        known = session.approved.get(text_of(update, "toolCallId"))
        if not known or not (update.get("rawInput") or update.get("content")):
            return
        try:
            now = resources(self._core.decider.stands_for(session.id, update))
        except Exception as error:
            self._core.note(f"session {session.id}: a changed call could not be read: {type(error).__name__}")
            return
        if now - known:
            call_id = text_of(update, "toolCallId")
            session.approved[call_id] = frozenset()
            self._records.event("changed_after_approval", session=session.id, call=call_id)
            self._core.note(f"session {session.id}: the call {call_id} changed after it was allowed", loud=True)

    def completed(self, session: Session, update: Mapping[str, object]) -> bool:
        """Look at a call that an update, not yet observed, reports as completed; True if the turn has to end."""
        call_id = text_of(update, "toolCallId")
        if not session.opened or call_id in session.judged:
            return False
        remember(session.judged, call_id, self._core.settings.calls_kept)
        try:
            verdict = self._core.decider.unasked(session.id, update, self._core.now)
        except Exception as error:
            self._core.note(f"session {session.id}: an unasked call could not be judged: {type(error).__name__}")
            return False
        if verdict is None or verdict.decision.effect is not Effect.DENY:
            return False
        self._records.decision(verdict, outcome="unasked", extra={"unasked": True})
        self._core.note(
            f"session {session.id}: the agent ran what policy denies, without asking: {verdict.request.title}",
            loud=True,
        )
        return self._core.settings.on_unasked == "cancel"
