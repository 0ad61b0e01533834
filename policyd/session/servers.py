"""MCP servers that the client has the agent start: refused where a rule names what they would run or call.

1. They are the client's wish: what a policy says of kinds and of files, and its defaults, is about what the agent asks
   for (a server may be given the secrets that the agent may not read). A deny rule that names the command or the URL
   holds; so does the guard of policyd's own.
2. Nobody can be asked before a session is open: what would be asked about passes, with a note.
3. A request that is refused is answered with the reason and recorded; a failure refuses.
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
"""The resources by which a rule names a server."""


class Servers:
    """Looks at every request that opens a session."""

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
    """Return a verdict on servers as it is for a wish of the client's; `named`: the rules that name a resource."""
    decision = verdict.decision
    if decision.source is Source.ERROR:
        return verdict
    told = [judged for judged in decision.actions if judged.action.role is not Role.MENTION]
    against = [ref for judged in told for ref in judged.hits if ref.effect is Effect.DENY and ref in named]
    guarded = [judged.action.guarded for judged in told if judged.action.guarded and judged.effect is not Effect.ALLOW]
    if against or guarded:
        return replace(verdict, decision=_denied(decision, against, guarded))
    return replace(verdict, decision=replace(decision, effect=min(decision.effect, Effect.ASK)))


def _denied(decision: Decision, against: list[RuleRef], guarded: list[str]) -> Decision:
    said = [ref.reason or f"{ref.label} denies it" for ref in against]
    source = Source.RULE if against else Source.GUARD
    return replace(decision, effect=Effect.DENY, source=source, reason=" ".join(said or guarded), rules=tuple(against))
