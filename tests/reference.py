"""The naive reference: the decision by plain loops over the raw tables of a policy (its matchers: `tests/naive.py`).

Written from the design of the language alone, for the part of it that `tests/random_policies.py` writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from policyd.model import Action, Context, Request, Role
from tests.ground import ALLOW, ASK, EFFECTS, File, counts, entries, every_kind_named, opened, voices
from tests.naive import MAYBE, NO, YES, as_list, command_truth, host_matches, path_matches, tool_matches

ATTRIBUTES = ("kind", "tool", "input", "mode", "label", "interactive", "until")


# ---- conditions ------------------------------------------------------------------------------------


def kinds_named(value: object) -> Callable[[str], bool]:
    words: set[str] = set()
    for word in as_list(value):
        words |= {"@write": {"edit", "delete", "move"}, "@read": {"read", "search"}}.get(word, {word})
    return lambda kind: kind in words or ("*" in words and kind != "switch_mode")


def kind_truth(value: object, action: Action, place: str) -> int:
    named, kinds = kinds_named(value), set(action.kinds)
    if place in {"allow", "spare"}:
        kinds = {"other"} if action.mcp and place == "allow" else kinds | ({"other"} if action.mcp else set())
        return YES if kinds and all(map(named, kinds)) and action.role is not Role.MENTION else NO
    if action.role is Role.MENTION:
        return YES if named("read") else MAYBE
    kinds |= {"read"} if "search" in kinds else set()
    kinds |= {"delete", "edit", "read"} if "move" in kinds else set()
    kinds |= {"other"} if action.mcp or not kinds else set()
    return YES if any(map(named, kinds)) else NO


def truth(key: str, table: dict[str, Any], action: Action, context: Context, place: str, managed: bool) -> int:
    """Judge one condition of a table."""
    value, loose, widen = table[key], place in {"allow", "spare"}, place == "strict"
    if key in {"path", "command", "url"} and getattr(action, key) is None:
        return MAYBE if action.opaque and place == "except" else NO
    if key == "kind":
        return kind_truth(value, action, place)
    if key == "path":
        assert action.path is not None
        if loose:
            each = (
                any(path_matches(p, f, strict=False, widen=False) for p in as_list(value)) for f in action.path.forms
            )
            return YES if context.resolved and all(each) else NO
        some = (path_matches(p, f, strict=True, widen=widen) for f in action.path.forms for p in as_list(value))
        return YES if any(some) else NO
    if key == "command":
        best = max(command_truth(p, action, strict=not loose, widen=widen) for p in as_list(value))
        return best if not loose or (best == YES and (place == "spare" or action.cwd_inside)) else NO
    if key == "url":
        assert action.url is not None
        return YES if any(host_matches(p, action.url.host) for p in as_list(value)) else NO
    if key == "tool":
        tool = action.tool or action.name
        if tool is None:
            return MAYBE if place == "except" else NO
        pairs = tool.splits or (("", tool.name),)
        held = [[tool_matches(p, server, name, widen) for server, name in pairs] for p in as_list(value)]
        return YES if any((all if loose else any)(row) for row in held) else NO
    if key == "input":
        if action.args is None:
            return NO if loose else MAYBE
        return YES if all(action.args.get(k) == v for k, v in value.items()) else NO
    if key == "mode":
        mode = action.mode or (None if "switch_mode" in action.kinds else context.mode)
        if mode is None:
            return NO if loose else YES
        return YES if any(mode.unsafe if word == "@unsafe" else word == mode.name for word in as_list(value)) else NO
    if key == "label":
        labels = {**context.labels, **context.managed_labels}
        labels = dict(context.managed_labels) if managed and loose else labels
        return YES if all(labels.get(k) == v for k, v in value.items()) else NO
    if key == "until":
        return YES if context.now < value else NO
    assert key == "interactive"
    return YES if context.interactive is value else NO


def holds(rule: dict[str, Any], action: Action, context: Context, managed: bool, mentions: list[Action]) -> int:
    """Judge a rule or conditional default."""
    allow = rule["effect"] == "allow"
    main, spare = ("allow", "except") if allow else ("strict", "spare")
    resource = next((key for key in ("path", "command", "url", "tool") if key in rule), "")
    if action.role is Role.MENTION and (allow or resource not in {"path", "url"}):
        return NO
    keys = [key for key in ("path", "command", "url", *ATTRIBUTES) if key in rule]
    found = min(truth(key, rule, action, context, main, managed) for key in keys)
    if allow and found != YES:
        return NO
    for table in as_list(rule.get("unless", [])):
        for one in [action, *(mentions if allow and not resource else [])]:
            inner = min(truth(key, table, one, context, spare, managed) for key in table)
            if inner == YES or (inner == MAYBE and allow):
                return NO
    return found


# ---- the decision ----------------------------------------------------------------------------------


def judge(
    number: int, request: Request, files: list[File], context: Context, refuse: set[str], lone: bool
) -> tuple[int, list[tuple[int, dict[str, Any]]]]:
    """Return the effect of one action, and the allow rules (with their layer) that held for it."""
    action = request.actions[number]
    mentions = [one for one in request.actions if one.role is Role.MENTION]
    silent = action.role is Role.MENTION or (action.idle and not lone)
    hits, effects = [], []
    for layer, trusted, table in files:
        for rule in table.get("rule", []):
            found = holds(rule, action, context, layer == 2, mentions)
            if found == YES and counts(rule["effect"], layer, trusted, refuse):
                hits.append((max(layer, int(trusted)), rule, layer))
            elif found == MAYBE:
                effects.append(ASK)
    if action.carrier is not None and action.path is not None and action.path.inside and not action.opaque:
        _, carried = judge(action.carrier, request, files, context, refuse, lone)
        hits += [(rank, rule, rank) for rank, rule in carried]
    if silent:
        hits = [hit for hit in hits if hit[1]["effect"] != "allow"]
    allows = [hit for hit in hits if hit[1]["effect"] == "allow"]
    effects += [EFFECTS[rule["effect"]] for _, rule, _ in hits]
    top = max((rank for rank, _, _ in hits), default=-1)
    grounds = [] if silent else list(defaults(action, files, context, refuse, top, mentions))
    effects += [effect for effect, _ in grounds]
    lenient = [block for effect, block in grounds if effect == ALLOW]
    if lenient and not hits and not any(lenient) and not every_kind_named(action, files, refuse):
        effects.append(ASK)
    named = any("path" in rule for _, rule, _ in allows)
    floor = bool(action.guarded) and not any(layer == 2 for _, _, layer in allows)
    if action.role is not Role.MENTION:
        floor |= bool(action.opaque) and not any(rule.get("opaque") for _, rule, _ in allows)
        floor |= bool(action.escalate) and not any(rule.get("escalate") for _, rule, _ in allows)
        floor |= bool(context.broken)
    if not silent and (allows or lenient):
        out = action.path is not None and not action.path.inside
        floor |= out and not named and not opened(action, files, refuse)
        floor |= action.command is not None and not action.cwd_inside
        floor |= not context.resolved and (not allows or (action.path is not None and not named))
    effects += [ASK] if floor else []
    return max(effects, default=ALLOW if silent else ASK), [(rank, rule) for rank, rule, _ in allows]


def defaults(
    action: Action, files: list[File], context: Context, refuse: set[str], top: int, mentions: list[Action]
) -> Iterator[tuple[int, bool]]:
    """Yield effect and "it is a `[[default]]` block" of the defaults that count."""
    for layer, trusted, own in voices(files):
        if top >= max(layer, 1):
            continue
        blocks = [b for t in own for b in t.get("default", []) if counts(b["effect"], layer, trusted, refuse)]
        found = [(holds(block, action, context, layer == 2, mentions), block) for block in blocks]
        spoken = [(EFFECTS[b["effect"]], b.get("delegate", False), True) for held, b in found if held == YES]
        if not spoken:
            words = entries(action, own, layer, trusted, refuse)
            spoken = [(effect, delegate, False) for effect, delegate, _ in words]
        spoken += [
            (ASK, b.get("delegate", False), False) for held, b in found if held == MAYBE and b["effect"] != "allow"
        ]
        yield from ((effect, block) for effect, delegate, block in spoken if not (delegate and top >= 1))


def decide(request: Request, files: list[File], context: Context) -> int:
    """Return the effect of a request, without grants."""
    refuse = {word for _, _, table in files for word in table.get("lock", {}).get("refuse", [])}
    lone = all(one.idle or one.role is Role.MENTION for one in request.actions)
    every = [judge(n, request, files, context, refuse, lone)[0] for n in range(len(request.actions))]
    primary = any(one.role is not Role.MENTION for one in request.actions)
    return max([*every, *([ASK] if request.menu or not primary else [])])
