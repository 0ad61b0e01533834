"""Calls that ran without having been asked, though policy denies them outright (design section 9).

Only `completed` counts, only in a session that is open (before, updates are history), once a call. Whether a request
named or covered the call, and whether the agent's statuses can be trusted, the decider knows.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyd import acp
from policyd.model import Effect
from policyd.session.core import Core, text_of
from policyd.session.events import Side
from policyd.session.records import Records
from policyd.session.state import Session, remember


class Tripwire:
    """Looks at completed calls."""

    def __init__(self, core: Core, records: Records) -> None:
        """Share `core`."""
        self._core = core
        self._records = records

    def completed(self, session: Session, update: Mapping[str, object]) -> None:
        """Look at a call that an update, not yet observed, reports as completed."""
        call_id = text_of(update, "toolCallId")
        if not session.opened or call_id in session.judged:
            return
        remember(session.judged, call_id, self._core.settings.calls_kept)
        try:
            verdict = self._core.decider.unasked(session.id, update, self._core.now, self._core.fs)
        except Exception as error:
            self._core.note(f"session {session.id}: an unasked call could not be judged: {type(error).__name__}")
            return
        if verdict is None or verdict.decision.effect is not Effect.DENY:
            return
        self._records.decision(verdict, outcome="unasked", extra={"unasked": True})
        self._core.note(
            f"session {session.id}: the agent ran what policy denies, without asking: {verdict.request.title}",
            loud=True,
        )
        if self._core.settings.on_unasked == "cancel":
            self._core.send(Side.AGENT, acp.messages.cancel_session(session.id))
