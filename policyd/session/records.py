"""Audit records of one connection: decisions and other events."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from policyd.audit import event, record
from policyd.model import Context, Decision, Effect, Request, Source
from policyd.session.core import Core
from policyd.session.ports import Verdict
from policyd.session.state import Held


class Records:
    """Builds records and puts them in the outbox."""

    def __init__(self, core: Core) -> None:
        """Share `core`."""
        self._core = core

    def decision(
        self,
        verdict: Verdict,
        *,
        outcome: str,
        option: str | None = None,
        by: str = "policy",
        held: Held | None = None,
        extra: Mapping[str, object] | None = None,
    ) -> int:
        """Put the record of a decision; return its key. Raises whatever building it raises."""
        return self._put(verdict.decision, verdict.request, verdict.context, outcome, option, by, held, extra)

    def failure(self, held: Held, why: str) -> int:
        """Put the record of a request that was refused because something failed; never raises."""
        decision = Decision(Effect.DENY, Source.ERROR, why)
        try:
            context = self._core.decider.context(held.session.id, self._core.now)
            return self._put(decision, None, context, "cancelled", None, "policy", held, {"method": held.method})
        except Exception as error:
            return self.event("error", session=held.session.id, reason=f"{why}; {type(error).__name__} in its record")

    def event(self, name: str, **fields: object) -> int:
        """Put the record of an event that is not a decision."""
        return self._core.record(event(name, self._core.now.wall, **fields))

    def _put(
        self,
        decision: Decision,
        request: Request | None,
        context: Context,
        outcome: str,
        option: str | None,
        by: str,
        held: Held | None,
        extra: Mapping[str, object] | None,
    ) -> int:
        now = self._core.now
        row = record(
            decision,
            request,
            context if context.now is now.wall else replace(context, now=now.wall),
            id=f"{self._core.prefix}{self._core.number()}".removeprefix("policyd:"),
            client=self._core.decider.client(),
            option=option,
            outcome=outcome,
            by=by,
            latency_ms=None if held is None else (now.mono - held.started.mono) * 1000.0,
            extra=extra,
        )
        return self._core.record(row)
