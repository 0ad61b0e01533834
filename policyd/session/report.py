"""Showing the person a refusal, or that the policy now allows more: as a synthetic failed tool call.

A refusal by policy is shown once per call, one caused by a failure each time. The synthetic call has an id of its own
and is never sent before the response that opens its session: a client drops updates of a session it does not know.
"""

from __future__ import annotations

from policyd.acp import messages
from policyd.display import safe
from policyd.model import Decision
from policyd.session.core import Core, text_of
from policyd.session.events import Side
from policyd.session.state import Held, Session, remember

TITLE = 200
APART = 10.0
"""Seconds between two announcements: whoever edits a policy saves it often."""


class Report:
    """Reports of one connection."""

    def __init__(self, core: Core) -> None:
        """Share `core`."""
        self._core = core
        self._announced = -APART

    def refused(self, held: Held, decision: Decision) -> None:
        """Show that `held` was refused, unless that call's refusal was shown before."""
        session = held.session
        if self._core.settings.report == "off" or not session.id or held.call_id in session.reported:
            return
        if held.call_id:
            remember(session.reported, held.call_id, self._core.settings.calls_kept)
        self.show(session, title(held, decision), text(decision))

    def announce(self, what: str) -> None:
        """Show an announcement in every open session."""
        if self._core.now.mono < self._announced + APART:
            return
        self._announced = self._core.now.mono
        for session in self._core.sessions.values():
            if session.opened:
                self.show(session, f"policyd: {what}", what)

    def show(self, session: Session, what: str, why: str) -> None:
        """Show a synthetic failed call, as soon as the client knows the session."""
        if self._core.settings.report == "off" or not session.id:
            return
        line = messages.refused_call(session.id, f"policyd-{self._core.number()}", what, why)
        if session.opened and session.hold is None:
            self._core.send(Side.CLIENT, line)
        else:
            session.reports.append(line)


def title(held: Held, decision: Decision) -> str:
    """Return what was refused and by which rule, in one line."""
    verdict = held.verdict
    what = verdict.request.title if verdict is not None else ""
    what = what or text_of(held.params, "path") or text_of(held.params, "command") or held.method
    rule = f" ({decision.rules[0].label})" if decision.rules else ""
    return f"Blocked by policyd: {safe(what, limit=TITLE)}{rule}"


def text(decision: Decision) -> str:
    """Return the reason, with the rules and their files and lines."""
    places = [f"{rule.label} ({rule.file}:{rule.line})" if rule.file else rule.label for rule in decision.rules]
    return "\n".join([safe(decision.reason), *map(safe, places)])
