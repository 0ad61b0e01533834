"""The text of `policyd explain`; untrusted parts, and then each line, are made safe to show."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime

from policyd.actions import Evidence
from policyd.authorizer import Authorizer
from policyd.cli.explain.waysout import Obstacles, ways_out
from policyd.cli.facts import shown_kind
from policyd.cli.replay import Result
from policyd.display import inert, safe
from policyd.model import Action, Context, Effect, Judged, Role, RuleRef
from policyd.policy import Rule
from policyd.policy.conditions import CommandCondition
from policyd.storage.trust import FOLDER

WIDTH = 200
NEAREST = 4


def explain(result: Result, evidence: tuple[Evidence, ...], point: Authorizer) -> str:
    """Return the explanation of one decision."""
    return "".join(f"{inert(line)}\n" for line in paragraphs(result, evidence, point))


def paragraphs(result: Result, evidence: tuple[Evidence, ...], point: Authorizer) -> Iterator[str]:
    """Yield the lines of an explanation."""
    if result.error:
        yield f"line {result.line.number}: malformed, denied: {safe(result.error, limit=WIDTH)}"
        return
    request, agent = result.request, point.conversation.agent
    yield f"{request.side_door or 'request'} {safe(request.title, limit=WIDTH) or request.call_id!r}"
    name = " ".join(filter(None, [safe(agent.name), safe(agent.version)])) or "without a name"
    yield f"  agent    {name}, read by the profile `{agent.profile}`"
    for found in evidence:
        yield from known(found)
    for number, judged in enumerate(result.decision.actions, 1):
        yield from action_lines(number, judged, result, point)
    yield f"  decision {result.answer.effect.word}: {safe(result.decision.reason, limit=3 * WIDTH)}"
    if result.answer.why:
        yield f"           {safe(result.answer.why, limit=WIDTH)}"
    yield f"  answer   {answered(result)}"
    space = point.context(request.session_id, datetime.now(UTC)).workspace
    obstacles = Obstacles(*point.in_force(request.session_id), () if space.sound else space.unsound)
    for way in ways_out(result.decision, result.answer.effect, space.roots, obstacles):
        lines = way.splitlines()
        place = "  # for a file of ~/.config/policyd/policies.d/" if lines[0] == "[[rule]]" else ""
        yield f"  way out  {safe(lines[0])}{place}"
        yield from (f"           {safe(line)}" for line in lines[1:])


def known(evidence: Evidence) -> Iterator[str]:
    """Yield the evidence of a call."""
    yield f"  call     {safe(evidence.call_id, limit=80)}, kind {', '.join(sorted(evidence.kinds))}"
    for key, value in evidence.raw.items():
        yield f"           rawInput.{safe(key, limit=40)} = {shown(value)}"
    for path in evidence.locations:
        yield f"           location {safe(path, limit=WIDTH)}"
    for diff in evidence.diffs:
        yield f"           diff of {safe(diff.path, limit=WIDTH)}"
    for text in evidence.texts:
        yield f"           text {shown(text)}"
    for place in sorted(evidence.missing):
        yield f"           {place} has not come"


def shown(value: object) -> str:
    """Return a value of the evidence in one line."""
    return safe(json.dumps(value, ensure_ascii=False, default=str), limit=WIDTH)


def action_lines(number: int, judged: Judged, result: Result, point: Authorizer) -> Iterator[str]:
    """Yield one action with everything that applies to it."""
    action = judged.action
    yield f"  {number:>2}. {judged.effect.word:5} {shown_kind(action) or 'any kind'} {named(action)} ({role(action)})"
    if action.origin:
        yield f"           found in {safe(action.origin, limit=80)}"
    if action.command is not None:
        yield f"           runs in {', '.join(action.cwd) or 'an unknown directory'}"
    for word, refs in (("rule", judged.hits), ("may match", judged.possible), ("default", judged.defaults)):
        yield from (f"           {word} {described(ref)}" for ref in refs)
    yield from (f"           at least ask: {safe(floor, limit=WIDTH)}" for floor in judged.floors)
    if judged.granted is not None:
        yield f"           a remembered answer says {judged.granted.word}"
    for ref, why in taken_away(judged, result, point):
        hint = trusting(ref.file) if "trusted" in why else ""
        yield f"           not counted {described(ref)}: {safe(why, limit=WIDTH)}{hint}"
    for ref, but in nearly(judged, result, point):
        yield f"           nearly {described(ref)}: `{but}` does not hold"


def trusting(file: str) -> str:
    """Return what lets a project's file allow; `policyd trust` does not cover a named file that lies there."""
    if os.path.basename(os.path.dirname(file)) == FOLDER:
        return "; `policyd trust` lets them allow"
    return "; a policy that lies in the workspace is the project's: keep it elsewhere, or give its `--policy-digest`"


def named(action: Action) -> str:
    """Return the resource of an action."""
    if action.opaque:
        return f"not understood: {safe(action.opaque, limit=WIDTH)}"
    if action.path is not None:
        return " = ".join(safe(form, limit=WIDTH) for form in action.path.forms)
    if action.command is not None:
        return safe(action.command.text, limit=WIDTH)
    text = action.url.text if action.url else action.tool.name if action.tool else ""
    return safe(text or (f"beyond its limits by {action.escalate}" if action.escalate else "as a whole"), limit=WIDTH)


def role(action: Action) -> str:
    """Return the role of an action in its request."""
    carried = f" of action {action.carrier + 1}" if action.carrier is not None else ""
    own = f"policyd's own {action.guarded}" if action.guarded else ""
    notes = [action.role.value + carried, "needs no allow" if action.idle else "", own]
    return ", ".join(filter(None, notes))


def described(ref: RuleRef) -> str:
    """Return a rule with its effect, file and line."""
    return f"{safe(ref.label)} says {ref.effect.word}{ref.place}"


def taken_away(judged: Judged, result: Result, point: Authorizer) -> list[tuple[RuleRef, str]]:
    """Return the rules that hold but do not count, for lack of trust or because of a lock, and why."""
    policy, _ = point.in_force(result.request.session_id)
    context = point.context(result.request.session_id, datetime.now(UTC))
    look = point.conversation.machine.fs
    void = [rule for rule in policy.rules if rule.void]
    return [(rule.ref, rule.void) for rule in void if not rule.failed_conditions(judged.action, context, look)]


def nearly(judged: Judged, result: Result, point: Authorizer) -> list[tuple[RuleRef, str]]:
    """Return the rules that only one condition keeps from holding, and that condition."""
    if judged.action.role is Role.MENTION:
        return []
    policy, _ = point.in_force(result.request.session_id)
    context = point.context(result.request.session_id, datetime.now(UTC))
    found = []
    for rule in policy.rules:
        if rule.ref in judged.hits or rule.ref in judged.possible or rule.void:
            continue
        missed = rule.failed_conditions(judged.action, context, point.conversation.machine.fs)
        if len(missed) == 1 and close(rule, missed[0], judged.action):
            found.append((rule.ref, culprit(rule, missed[0], judged.action, context)))
    return found[:NEAREST]


def culprit(rule: Rule, missed: str, action: Action, context: Context) -> str:
    """Return the key that keeps a rule from holding: `cwd` or `within` if the command itself matches."""
    condition = next((each for each in rule.conditions if isinstance(each, CommandCondition)), None)
    if missed != "command" or rule.effect is not Effect.ALLOW or condition is None or action.command is None:
        return missed
    if not any(entry.sure(action.command, condition.env) for entry in condition.entries):
        return missed
    if not condition.in_place(action, context):
        return "cwd"
    return missed if condition.files_fit(action, context) else "within"


def close(rule: Rule, missed: str, action: Action) -> bool:
    """Say whether a rule that only `missed` keeps from holding is worth showing: it concerns similar actions."""
    has = {"path": action.path, "command": action.command, "url": action.url, "tool": action.tool}
    if rule.resource and has[rule.resource] is None:
        return False
    if missed == "kind" and not rule.resource:
        return False
    if missed != rule.resource or len(rule.conditions) > 1:
        return True
    first = action.command.argv[0].text if action.command and action.command.argv else None
    return first is not None and f"{first} " in f"{rule.table.get('command', '')} ".replace("'", " ").replace('"', " ")


def answered(result: Result) -> str:
    """Return which option would be answered."""
    outcome = result.outcome
    if result.answer.effect is Effect.ASK:
        return "a person is asked"
    if result.request.side_door:
        return "the call passes" if result.answer.effect is Effect.ALLOW else "an error with the reason"
    chosen = outcome.get("optionId") if outcome else None
    return f"option `{safe(str(chosen))}`" if chosen else "`cancelled`"
