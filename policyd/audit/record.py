"""The audit record (`schema = 1`): one flat object for each decision.

A record is plain data; secrets in it are masked when it becomes a line (`lines.body`), before it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from policyd.audit.actionrows import action_row
from policyd.model import KINDS, Context, Decision, Judged, Request, RuleRef, Tool

SCHEMA = 1
KNOWN = frozenset(KINDS)
RULES_LISTED = 50
"""Rules that are listed by name."""
ACTIONS_LISTED = 100
"""Actions that are listed."""


def record(
    decision: Decision,
    request: Request | None,
    context: Context,
    *,
    id: str,  # noqa: A002 - the name of the field
    client: Mapping[str, str] | None = None,
    option: str | None = None,
    outcome: str = "",
    by: str = "policy",
    latency_ms: float | None = None,
    extra: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Return the record of one decision.

    Args:
        request: None for a message that was no request at all.
        id: the decision's id, unique.
        client: `name` and `version` as the client states them.
        option: the id of the option answered.
        outcome: `selected`, `cancelled`, `error`, `passed`.
        by: who answered: `policy`, `client`, `command:/path`, `inbox`, `grant`.
        latency_ms: from the request's arrival to its answer.
        extra: further fields; none may replace one of the above.
    """
    agent = context.agent
    row: dict[str, object] = {
        "schema": SCHEMA,
        "event": "decision",
        "id": id,
        "time": timestamp(context.now),
        "user": context.user,
        "agent": {"name": agent.name, "version": agent.version, "profile": agent.profile},
        "client": dict(client or {}),
        "session": request.session_id if request else "",
        "cwd": context.workspace.cwd,
        "call": request.call_id if request else "",
        "title": request.title if request else "",
        "kind": request_kind(request),
    }
    add_decision(row, decision)
    row["outcome"], row["option"], row["by"] = outcome, option, by
    row["latency_ms"] = None if latency_ms is None else round(latency_ms, 3)
    row["revision"] = decision.revision
    add_session(row, context)
    if request:
        add_request(row, request)
    return {**extra, **row} if extra else row


def add_decision(row: dict[str, object], decision: Decision) -> None:
    """Add what was decided, by which rules, of which actions."""
    row["effect"], row["source"] = decision.effect.word, str(decision.source)
    row["rules"] = [rule_row(rule) for rule in decision.rules[:RULES_LISTED]]
    row["reason"] = decision.reason
    row["actions"] = [judged_row(judged) for judged in decision.actions[:ACTIONS_LISTED]]
    if others := others_of(decision):
        row["matched"] = others
    if len(decision.actions) > ACTIONS_LISTED:
        row["actions_cut"] = len(decision.actions) - ACTIONS_LISTED
    if len(decision.rules) > RULES_LISTED:
        row["rules_cut"] = len(decision.rules) - RULES_LISTED


def add_session(row: dict[str, object], context: Context) -> None:
    """Add what else rules may ask about the session, where it is not the usual."""
    space = context.workspace
    if context.mode:
        row["mode"] = context.mode.name
    if context.labels or context.managed_labels:
        row["labels"] = {**context.labels, **context.managed_labels}
    if space.roots != ((space.cwd,) if space.cwd else ()):
        row["roots"] = list(space.roots)
    if space.sound != space.roots:
        row["sound"] = list(space.sound)
    if context.interactive:
        row["interactive"] = True
    if context.managed_labels:
        row["managed_labels"] = list(context.managed_labels)


def add_request(row: dict[str, object], request: Request) -> None:
    """Add what an answer depends on beside the actions: the door, the options, the tool's name."""
    if request.side_door:
        row["door"] = request.side_door
    elif request.options:
        row["offered"] = [[option.id, option.kind] for option in request.options]
    if request.menu:
        row["menu"] = True
    if request.plain is not None:
        row["plain"] = request.plain
    if request.refusal is not None:
        row["refusal"] = request.refusal
    names = [action.name for action in request.actions if action.name]
    if names:
        called = names[0]
        row["called"] = tool_row(called)
        add_others(row, request, called)


def add_others(row: Mapping[str, object], request: Request, called: Tool) -> None:
    """Add to actions of calls of another tool which tool that is: a request may stand for several calls."""
    listed = row["actions"]
    for one, action in zip(listed if isinstance(listed, list) else (), request.actions, strict=False):
        if action.name is not called and action.name != called:
            one["called"] = tool_row(action.name) if action.name else None


def tool_row(tool: Tool) -> dict[str, object]:
    """Return a tool with every server and name it may mean."""
    return {"tool": tool.name, "splits": [list(pair) for pair in tool.splits]}


def event(name: str, now: datetime, **fields: object) -> dict[str, object]:
    """Return the record of something that is no decision (`start`, `reload`, `unasked`, `gap`, …)."""
    return {"schema": SCHEMA, "event": name, "time": timestamp(now), **fields}


def timestamp(moment: datetime) -> str:
    """Return an aware time as UTC with microseconds."""
    universal = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return universal.isoformat(timespec="microseconds")[:-6] + "Z"


def request_kind(request: Request | None) -> str:
    """Return the kind of the request's first action that states one."""
    for action in request.actions if request else ():
        if known := action.kinds & KNOWN:
            return next(iter(known)) if len(known) == 1 else next(kind for kind in KINDS if kind in known)
    return ""


def others_of(decision: Decision) -> list[str]:
    """Return the rules that matched and did not decide."""
    if not decision.matched:
        return []
    deciding = decision.rules if len(decision.rules) < 4 else frozenset(decision.rules)
    return labels_of([rule for rule in decision.matched if rule not in deciding])


def labels_of(rules: Sequence[RuleRef]) -> list[str]:
    """Return the names of rules; of very many the first, and how many more."""
    names = [rule.label for rule in rules[:RULES_LISTED]]
    return names if len(rules) <= RULES_LISTED else [*names, f"[{len(rules) - RULES_LISTED} more]"]


def rule_row(rule: RuleRef) -> dict[str, object]:
    """Return a rule as records name it."""
    row: dict[str, object] = {"rule": rule.label, "effect": rule.effect.word}
    if rule.file:
        row["file"], row["line"] = rule.file, rule.line
    return row


def judged_row(judged: Judged) -> dict[str, object]:
    """Return one action with what was decided of it."""
    row = action_row(judged.action)
    row["effect"] = judged.effect.word
    if spoke := (*judged.hits, *judged.possible, *judged.defaults):
        row["rules"] = labels_of(spoke)
    if judged.floors:
        row["floors"] = list(judged.floors)
    if judged.granted is not None:
        row["granted"] = judged.granted.word
    return row
