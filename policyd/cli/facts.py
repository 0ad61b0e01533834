"""Decisions and actions as the JSON that `decide` and `explain --json` print."""

from __future__ import annotations

from collections.abc import Mapping

from policyd.cli.replay import Result
from policyd.display import sentences
from policyd.model import Action, Effect, Judged, Role

SHOWN_FIRST = ("delete", "move", "edit", "execute", "fetch", "switch_mode", "read", "search", "think")


def result_facts(result: Result) -> dict[str, object]:
    """Return one line of `decide`; for a malformed request its id, the error, and a denial."""
    ident = result.line.message.get("id")
    if result.error:
        facts = {"id": ident, "error": result.error, "effect": Effect.DENY.word}
        return {**facts, "outcome": result.outcome} if result.line.method.startswith("session/") else facts
    decision, request, answer = result.decision, result.request, result.answer
    facts = {
        "id": ident,
        "sessionId": request.session_id,
        "toolCallId": request.call_id,
        "effect": answer.effect.word,
        "source": decision.source.value,
        "rules": [ref.label for ref in decision.rules],
        "reason": sentences((answer.why, decision.reason)),
        "actions": [action_facts(one) for one in decision.actions],
        "outcome": result.outcome,
    }
    return {**facts, "method": request.side_door} if request.side_door else facts


def action_facts(judged: Judged) -> dict[str, object]:
    """Return one action of `decide`."""
    action = judged.action
    facts: dict[str, object] = {"kind": shown_kind(action)}
    if len(action.kinds) > 1:
        facts["kinds"] = sorted(action.kinds)
    facts.update(resource(action))
    facts["role"] = action.role.value
    extra: Mapping[str, object] = {
        "opaque": action.opaque,
        "escalate": action.escalate,
        "guarded": action.guarded,
        "mode": action.mode.name if action.mode else "",
        "input": dict(action.args) if action.tool is not None and action.args is not None else "",
    }
    facts.update((key, value) for key, value in extra.items() if value != "")
    facts["effect"] = judged.effect.word
    return facts


def resource(action: Action) -> dict[str, object]:
    """Return the resource of an action under its name, empty if it has none."""
    if action.path is not None:
        several = action.path.forms if len(action.path.forms) > 1 else ()
        return {"path": action.path.forms[0], **({"forms": list(several)} if several else {})}
    if action.command is not None:
        words: dict[str, object] = {"command": [word.text for word in action.command.argv]}
        return {**words, "text": action.command.text}
    if action.url is not None:
        return {"url": action.url.text}
    return {"tool": action.tool.name} if action.tool is not None else {}


def shown_kind(action: Action) -> str | None:
    """Return the most telling kind: `other` for an MCP call, None for a bare mention."""
    if action.role is Role.MENTION and not action.kinds:
        return None
    if action.mcp:
        return "other"
    custom = sorted(action.kinds - set(SHOWN_FIRST) - {"other"})
    return next((kind for kind in SHOWN_FIRST if kind in action.kinds), custom[0] if custom else "other")
