"""MCP servers that the client has the agent start: refused where a rule names what they would run or call.

1. The client wants them, not the agent: rules on kinds and files, and defaults, do not apply (a server may be given
   secrets that the agent must not read). Deny rules on the command or the URL do; so does the guard of policyd's own
   files.
2. Nobody can be asked before a session is open: what would ask passes, with a note.
3. A refused request is answered with the reason and recorded; a failure refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from msgspec.structs import replace

from policyd import acp
from policyd.model import Decision, Effect, Role, RuleRef, Source
from policyd.session.core import Core
from policyd.session.events import Side
from policyd.session.ports import Verdict
from policyd.session.records import Records

NAMING = frozenset({"command", "url"})
"""The resources of rules that apply to servers."""


class Servers:
    """Judges the MCP servers in requests that open a session."""

    def __init__(self, core: Core, records: Records) -> None:
        """Share `core`."""
        self._core = core
        self._records = records

    def refused(self, method: str, params: Mapping[str, object], ident: bytes) -> bool:
        """Judge the servers of a request; True if it was refused and answered."""
        if not self._core.settings.side_doors or params.get("mcpServers") in (None, []):
            return False
        why = self._refusal(method, params)
        if why:
            text = f"Refused by policyd: an MCP server of this request may not be started. {why}".strip()
            self._core.send(Side.CLIENT, acp.messages.error(ident, acp.messages.REFUSED, text))
        return bool(why)

    def _refusal(self, method: str, params: Mapping[str, object]) -> str:
        core = self._core
        try:
            verdict = core.decider.servers(method, params, core.now)
        except Exception as error:
            core.note(f"the MCP servers of {method} could not be judged: {type(error).__name__}", loud=True)
            return f"policyd failed: {type(error).__name__}"
        if verdict.decision.effect is Effect.DENY:
            self._records.decision(verdict, outcome="error", extra={"method": method})
            return verdict.decision.reason
        if asking := [ref.label for ref in verdict.decision.rules if not ref.default and ref.effect is Effect.ASK]:
            core.note(f"{method} starts an MCP server that {', '.join(asking)} would ask about", loud=True)
        return ""


def as_asked_by_client(verdict: Verdict, named: Set[RuleRef]) -> Verdict:
    """Reduce a verdict on servers to what applies to the client's wishes; `named`: the rules on command or URL."""
    decision = verdict.decision
    if decision.source is Source.ERROR:
        return verdict
    primary = [judged for judged in decision.actions if judged.action.role is not Role.MENTION]
    against = [ref for judged in primary for ref in judged.hits if ref.effect is Effect.DENY and ref in named]
    guarded = [one.action.guarded for one in primary if one.action.guarded and one.effect is not Effect.ALLOW]
    if against or guarded:
        return replace(verdict, decision=_denied(decision, against, guarded))
    return replace(verdict, decision=replace(decision, effect=min(decision.effect, Effect.ASK)))


def _denied(decision: Decision, against: list[RuleRef], guarded: list[str]) -> Decision:
    said = [ref.reason or f"{ref.label} denies it" for ref in against]
    source = Source.RULE if against else Source.GUARD
    return replace(decision, effect=Effect.DENY, source=source, reason=" ".join(said or guarded), rules=tuple(against))
