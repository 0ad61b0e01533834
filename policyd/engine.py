"""The decision: actions and a policy in, an effect with everything it rests on out. Pure; meant to be read in one go.

Rules of this module:

1. No failure comes out as allow: an exception anywhere is a deny with source `error`.
2. The strictest of several is `max()`; order means nothing. Nothing settles a deny.
3. `judge` looks at one action: the rules that hold, the defaults no rule displaced, and the floors. Floors are the one
   place where "at least ask, whatever the rules say" is written.
4. A default counts unless a rule of its layer or a higher one matched for certain. A match that may be (`possible`)
   counts as ask and displaces nothing.
5. Nothing outside the workspace and nothing that was not understood is allowed unless a rule says so in words.
6. A mention asks for nothing: only deny and ask rules see it. An idle action (`cd`, `true`) needs no allow of its own
   beside one that does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from policyd.display import safe
from policyd.model import (
    Action,
    Context,
    Decision,
    Effect,
    Filesystem,
    Judged,
    Layer,
    Request,
    Role,
    RuleRef,
    Source,
    Truth,
)
from policyd.policy import MET_IN_EXAMPLES, Entry, Policy, Rule

ALLOW, ASK, DENY = Effect.ALLOW, Effect.ASK, Effect.DENY
NO, MAYBE, YES = Truth.NO, Truth.MAYBE, Truth.YES
MEMORY = {"never": 0, "session": 1, "project": 2}
UNKNOWN_USE = frozenset({"read", "edit"})
"""What a command may do with a file nobody knows the use of."""
MENU = "the options are a menu: a person must choose"
REFUSED = "a remembered answer refuses it"
REMEMBERED = "a remembered answer allows it"
SILENCE = "no rule speaks about it"
Grants = Callable[[Judged], Effect | None]


def no_grants(judged: Judged) -> Effect | None:
    """Nothing is remembered."""
    return None


def decide(
    request: Request, policy: Policy, context: Context, fs: Filesystem | None = None, grant: Grants = no_grants
) -> Decision:
    """Decide a request up to the point where a person would be asked.

    Args:
        request: what the agent asks for, understood.
        policy: the rules in force.
        context: session, person and time.
        fs: how the core looks at files.
        grant: what a remembered answer says of a judged action, None for nothing.

    Never raises for what a request holds: an exception anywhere is a deny with source `error`.
    """
    try:
        return settle(request, judge_all(request.actions, policy, context, fs), policy, grant)
    except Exception as error:
        words = f"policyd failed and refuses: {type(error).__name__}"
        return Decision(DENY, Source.ERROR, words, revision=getattr(policy, "revision", ""))


def settle(request: Request, judged: tuple[Judged, ...], policy: Policy, grant: Grants) -> Decision:
    """Turn judged actions into one decision: strictest, menu, grants."""
    effect = max((one.effect for one in judged), default=ASK)
    words = [MENU] if request.menu else []
    if not any(one.action.role is not Role.MENTION for one in judged):
        words.append("nothing was found that the request would do")
    if words:
        effect = max(effect, ASK)
    if effect is not ASK:
        return decision(effect, judged, policy)
    judged = tuple(replace(one, granted=grant(one)) for one in judged)
    if any(one.granted is DENY for one in judged):
        return decision(DENY, judged, policy, [REFUSED], Source.GRANT)
    if not words and not policy.lock.grants and all(map(granted, judged)):
        return decision(ALLOW, judged, policy, [REMEMBERED], Source.GRANT)
    return decision(ASK, judged, policy, words)


def granted(one: Judged) -> bool:
    """Say whether an action is allowed by rule, or by a person's remembered answer that may count."""
    if one.effect is ALLOW:
        return True
    return one.effect is ASK and not one.floors and one.granted is ALLOW and remember((one,)) != "never"


# ---- one action ------------------------------------------------------------------------------------


def judge_all(
    actions: tuple[Action, ...], policy: Policy, context: Context, fs: Filesystem | None = None
) -> tuple[Judged, ...]:
    """Judge every action of a request; a carried operand after the command that carries it."""
    alone = all(action.idle or action.role is Role.MENTION for action in actions)
    mentions = tuple(action for action in actions if action.role is Role.MENTION)
    found: dict[int, Judged] = {}
    carriers: dict[int, list[Rule]] = {}
    for number, action in sorted(enumerate(actions), key=lambda pair: pair[1].carrier is not None):
        own = replace(action, idle=False) if alone and action.idle else action
        carried: list[Rule] = []
        if action.carrier is not None:
            carried = [rule for rule in carriers[action.carrier] if rule.carries(actions[action.carrier])]
        found[number], carriers[number] = judge(
            own, policy, context, fs, carried=carried, mentions=mentions, siblings=actions
        )
    return tuple(replace(found[n], action=action) if alone else found[n] for n, action in enumerate(actions))


def judge(
    action: Action,
    policy: Policy,
    context: Context,
    fs: Filesystem | None = None,
    *,
    carried: list[Rule] | tuple[Rule, ...] = (),
    mentions: tuple[Action, ...] = (),
    siblings: tuple[Action, ...] = (),
) -> tuple[Judged, list[Rule]]:
    """Judge one action; also return the allow rules that held for it, for the operands it carries.

    Args:
        carried: allow rules that held for the command whose operand this is.
        mentions: the mentions of the request.
        siblings: all actions of the request.
    """
    hits, possible = matching(action, policy.candidates(action, context), context, fs, mentions)
    hits += [rule for rule in carried if reaches_operand(rule, action) and rule not in hits]
    if action.role is Role.MENTION or action.idle:
        hits, defaults = [rule for rule in hits if rule.effect is not ALLOW], []
    else:
        defaults = ground(action, policy, context, fs, hits, mentions)
    allows = [rule for rule in hits if rule.effect is ALLOW]
    floors = tuple(reasons_to_ask(action, allows, defaults, policy, context, fs, siblings))
    spoken = [rule.effect for rule in hits] + [entry.effect for entry in defaults]
    if possible or floors:
        spoken.append(ASK)
    silent = ALLOW if action.role is Role.MENTION or action.idle else ASK
    return (
        Judged(
            action=action,
            effect=max(spoken, default=silent),
            hits=tuple(rule.ref for rule in hits),
            possible=tuple(rule.ref for rule in possible),
            defaults=tuple(entry.ref for entry in defaults),
            floors=floors,
        ),
        allows,
    )


def matching(
    action: Action,
    rules: Iterable[Rule],
    context: Context,
    fs: Filesystem | None,
    mentions: tuple[Action, ...],
) -> tuple[list[Rule], list[Rule]]:
    """Return the rules that hold, and the strict ones that may."""
    hits: list[Rule] = []
    possible: list[Rule] = []
    for rule in rules:
        truth = rule.holds(action, context, fs, mentions=mentions)
        if truth is YES:
            hits.append(rule)
        elif truth is not NO and rule.effect is not ALLOW:
            possible.append(rule)
    return hits, possible


def reaches_operand(rule: Rule, action: Action) -> bool:
    """Say whether an allow of the command also allows its operand `action`: inside, or where the rule says `within`."""
    path = action.path
    return path is not None and not action.opaque and (path.inside or rule.encloses)


def ground(
    action: Action,
    policy: Policy,
    context: Context,
    fs: Filesystem | None,
    hits: list[Rule],
    mentions: tuple[Action, ...],
) -> list[Entry]:
    """Return the defaults that count: of each layer, unless a rule of that layer or a higher one matched.

    What an untrusted project says only tightens, so its rules do not displace its defaults either.
    """
    rank = max((rule.rank for rule in hits), default=-1)
    found: list[Entry] = []
    for layer, index in zip(policy.defaults, policy.grounds, strict=True):
        if rank >= max(layer.rank, Layer.USER):
            continue
        sure, may = matching(action, index.candidates(action, context), context, fs, mentions)
        spoken = [Entry(rule.ref, rule.effect, rule.delegate) for rule in sure] or layer.of(action)
        spoken += [Entry(replace(rule.ref, effect=ASK), ASK, rule.delegate) for rule in may]
        found += [entry for entry in spoken if not (entry.delegate and rank >= Layer.USER)]
    return found


# ---- floors ----------------------------------------------------------------------------------------


def reasons_to_ask(
    action: Action,
    allows: list[Rule],
    defaults: list[Entry],
    policy: Policy,
    context: Context,
    fs: Filesystem | None,
    siblings: tuple[Action, ...],
) -> Iterator[str]:
    """Yield, in words, why an action is at least asked about whatever the rules say."""
    if action.guarded and not any(rule.ref.layer is Layer.MANAGED for rule in allows):
        yield f"it touches policyd's own {action.guarded}"
    if action.role is Role.MENTION:
        return
    if action.opaque and not any(rule.opaque for rule in allows):
        yield f"not understood: {action.opaque}"
    if action.escalate and not any(rule.escalate for rule in allows):
        yield f"it widens the agent's reach: {action.escalate}"
    if context.broken:
        yield f"the project's policy is broken: {context.broken}"
    lenient = [entry for entry in defaults if entry.effect is ALLOW]
    if not action.idle and (allows or lenient):
        yield from reaches(action, allows, lenient, policy, context, fs, siblings)


def reaches(
    action: Action,
    allows: list[Rule],
    lenient: list[Entry],
    policy: Policy,
    context: Context,
    fs: Filesystem | None,
    siblings: tuple[Action, ...],
) -> Iterator[str]:
    """Yield where an allow would reach further than any word of it says."""
    named = any(rule.resource == "path" or rule.encloses for rule in allows)
    path, command = action.path, action.command
    if path is not None and not path.inside and not named and not ground_opens(action, policy):
        yield "outside the workspace"
    if command is not None:
        if not action.cwd_inside and not any(rule.places for rule in allows):
            yield "it runs outside the workspace"
        if command.strict_only:
            yield "it may be read in more than one way"
        if not any(rule.encloses for rule in allows):
            strays = [word for word in action.strays if not covered(word, action, policy, context, fs, siblings)]
            if strays:
                yield f"it names {', '.join(strays)} outside the workspace"
    if not context.resolved and (not allows or (path is not None and not named)):
        yield "paths cannot be resolved here"


def covered(
    word: str, action: Action, policy: Policy, context: Context, fs: Filesystem | None, siblings: tuple[Action, ...]
) -> bool:
    """Say whether an allow rule with `path` covers a word of a command that names a path outside."""
    same = [one for one in siblings if one.path is not None and one.path.text == word]
    known = [one for one in same if one.role is not Role.MENTION]
    refs = [ref for ref in action.within if ref is not None and ref.text == word]
    unknown = [ref for ref in [*refs, *(one.path for one in same)] if ref is not None]
    if not known:
        known = [replace(action, kinds=UNKNOWN_USE, command=None, path=ref, strays=(), within=()) for ref in unknown]
    return bool(known) and all(named_outside(one, policy, context, fs) for one in known)


def named_outside(action: Action, policy: Policy, context: Context, fs: Filesystem | None) -> bool:
    """Say whether an allow rule with `path`, or a default for `outside`, lets `action` reach its path."""
    rules = [rule for rule in policy.candidates(action, context) if rule.effect is ALLOW and rule.resource == "path"]
    if any(rule.holds(action, context, fs) is YES for rule in rules):
        return True
    return ground_opens(action, policy)


def ground_opens(action: Action, policy: Policy) -> bool:
    """Say whether the ground lets `action` reach outside: some `outside` allows, and no entry is stricter."""
    entries = [entry for layer in policy.defaults for entry in layer.of(action)]
    return any(entry.outside for entry in entries) and all(entry.effect is ALLOW for entry in entries)


# ---- words -----------------------------------------------------------------------------------------


def decision(
    effect: Effect,
    judged: tuple[Judged, ...],
    policy: Policy,
    words: list[str] | tuple[str, ...] = (),
    source: Source | None = None,
) -> Decision:
    """Put together effect, source, deciding rules, all matched rules and the reason."""
    rules, reasons = deciding(effect, judged)
    return Decision(
        effect=effect,
        source=source or source_of(effect, rules, judged),
        reason="; ".join(dict.fromkeys([*words, *reasons])) or SILENCE,
        rules=rules,
        matched=tuple(dict.fromkeys(ref for one in judged for ref in (*one.hits, *one.possible))),
        actions=judged,
        revision=policy.revision,
        remember=remember(judged) if effect is ASK and not words else "never" if effect is ASK else "project",
    )


def deciding(effect: Effect, judged: tuple[Judged, ...]) -> tuple[tuple[RuleRef, ...], list[str]]:
    """Return the rules and defaults that made the effect what it is, and their reasons."""
    rules: dict[RuleRef, None] = {}
    words: list[str] = []
    for one in judged:
        if one.effect is not effect:
            continue
        own = [ref for ref in one.hits if ref.effect is effect] + (list(one.possible) if effect is ASK else [])
        own = own or [ref for ref in one.defaults if ref.effect is effect]
        rules.update(dict.fromkeys(own))
        words += [ref.reason or f"{verb(ref, effect)} by `{ref.label}`" for ref in own]
        if effect is ASK:
            words += [safe(floor, limit=300) for floor in one.floors] or ([] if own else [SILENCE])
    return tuple(rules), words


def verb(ref: RuleRef, effect: Effect) -> str:
    """Say what a rule did; one that only may match asks."""
    if effect is ASK:
        return "asked about" if ref.effect is ASK else "possibly denied"
    return "allowed" if effect is ALLOW else "denied"


def source_of(effect: Effect, rules: tuple[RuleRef, ...], judged: tuple[Judged, ...]) -> Source:
    """Say what made the decision: policyd's own guard, a rule, or the ground."""
    if effect is ASK and any(one.action.guarded and one.floors for one in judged if one.effect is ASK):
        return Source.GUARD
    return Source.RULE if any(not ref.default for ref in rules) else Source.DEFAULT


def remember(judged: tuple[Judged, ...]) -> str:
    """Return the longest memory that may settle the asks: the least any asking rule grants, none over a floor."""
    least = "project"
    for one in judged:
        if one.effect is ASK:
            asking = [ref.remember or "project" for ref in (*one.hits, *one.possible) if ref.effect is not ALLOW]
            least = min([least, *asking, *(["never"] if one.floors else [])], key=MEMORY.__getitem__)
    return least


def rule_holds(
    rule: Rule,
    actions: tuple[Action, ...],
    context: Context,
    fs: Filesystem | None = None,
    met: frozenset[str] = MET_IN_EXAMPLES,
) -> bool:
    """Say whether the conditions of `rule` hold for a request: what an example of a policy tests.

    A deny or ask rule holds if it may for one of `actions`; an allow rule if it holds for every one it could be about.
    Conditions on the session (`met`) count as met; layers, trust and floors are not looked at.
    """
    held = [rule.holds(action, context, fs, met=met) for action in actions if concerns(rule, action)]
    return bool(held) and (min(held) is YES if rule.effect is ALLOW else max(held) is not NO)


def concerns(rule: Rule, action: Action) -> bool:
    """Say whether an allow rule could be about `action`; a strict rule may be about any."""
    if rule.effect is not ALLOW:
        return True
    if action.role is Role.MENTION or action.idle:
        return False
    resource = {"path": action.path, "command": action.command, "url": action.url}
    return action.role is Role.PRIMARY if rule.resource in {"", "tool"} else resource[rule.resource] is not None
