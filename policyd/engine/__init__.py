"""The decision: actions and a policy in, an effect with everything it rests on out. Pure; meant to be read in one go.

The entry point is `decide`; `judge` judges one action and holds the floors; `reasons` words the outcome; `cache` keeps
earlier verdicts.

Rules of this package:

1. No failure comes out as allow: an exception anywhere is a deny with source `error`.
2. The strictest of several effects is `max()`; order means nothing. Nothing overrides a deny.
3. One action is judged by the rules that hold, the defaults no rule displaced, and the floors. Floors are the one place
   where "at least ask, whatever the rules say" is written.
4. A default counts unless a rule of its layer or a higher one matched for certain. An uncertain match (`possible`)
   counts as ask and displaces nothing. An action that several kinds describe must be allowed as each of them: a kind
   that no default names asks (`read = "allow"` does not cover a command that an agent calls a read; `outside = "allow"`
   opens a place, whatever is not allowed there otherwise).
5. Nothing outside the workspace and nothing that was not understood is allowed unless a rule says so in words.
6. A mention needs no permission: only deny and ask rules see it. An idle action (`cd`, `true`) needs no allow of its
   own beside an action that does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from policyd.engine.cache import NONE, Verdict, keep, key_of, of_session
from policyd.engine.judge import Judge
from policyd.engine.reasons import explained, explained_by_rules, near_miss
from policyd.model import Action, Context, Decision, Effect, Filesystem, Judged, Request, Role, Source, Truth
from policyd.policy import MET_IN_EXAMPLES, Policy, Rule

__all__ = ["MENU", "Grants", "decide", "failed", "no_grants", "rule_holds"]

ALLOW, ASK, DENY = Effect.ALLOW, Effect.ASK, Effect.DENY
MENU = "the options are a menu: a person must choose"
"""Part of the reason of every decision that asks because of it."""
NO_ACTION = "nothing was found that the request would do"
REFUSED = "a remembered answer refuses it"
REMEMBERED = "a remembered answer allows it"
Grants = Callable[[Judged], Effect | None]


def no_grants(judged: Judged) -> None:
    """Nothing is remembered."""


def decide(
    request: Request, policy: Policy, context: Context, fs: Filesystem | None = None, grant: Grants = no_grants
) -> Decision:
    """Decide a request up to the point where a person would be asked.

    Args:
        request: what the agent asks for, as actions.
        policy: the rules in force.
        context: session, person and time.
        fs: access to the file system.
        grant: effect of the remembered answer to a judged action, None without one.

    Never raises, whatever a request holds: an exception anywhere is a deny with source `error`.
    """
    try:
        held = of_session(policy, context)
        common, own = key_of(request.actions)
        verdict = held.known.get(common, NONE).get(own)
        if verdict is not None:
            return repeated(verdict, request, policy, grant)
        judge = Judge(policy, context, fs, request.actions)
        judged = judge_all(judge)
        found = settle(request, judged, policy, grant)
        if judge.cacheable:
            keep(held, common, own, judged, found if found.actions is judged and not request.menu else None)
        return found
    except Exception as error:
        return failed(error, policy)


def failed(error: Exception, policy: Policy) -> Decision:
    """Return the denial for a failure of policyd itself; `policy` may be anything."""
    words = f"policyd failed and refuses: {type(error).__name__}"
    return Decision(DENY, Source.ERROR, words, revision=getattr(policy, "revision", ""))


def repeated(verdict: Verdict, request: Request, policy: Policy, grant: Grants) -> Decision:
    """Decide from a cached verdict, with the actions of this request; grants are looked up anew."""
    actions, known = request.actions, verdict.decision
    if len(actions) == 1:
        effect, hits, possible, defaults, floors = verdict.judged[0]
        judged: tuple[Judged, ...] = (Judged(actions[0], effect, hits, possible, defaults, floors),)
    else:
        judged = tuple([Judged(action, *found) for action, found in zip(actions, verdict.judged, strict=True)])
    if known is None or request.menu:
        return settle(request, judged, policy, grant)
    if known.effect is ASK and grant is not no_grants and [one for one in judged if grant(one) is not None]:
        return settle(request, judged, policy, grant)
    return Decision(
        known.effect, known.source, known.reason, known.rules, known.matched, judged, known.revision, known.remember
    )


def judge_all(judge: Judge) -> tuple[Judged, ...]:
    """Judge every action of a request, each carried operand after the command that carries it.

    A request of nothing but idle actions asks for just these: they are judged like any other.
    """
    actions = judge.actions
    if not [action for action in actions if action.idle or action.carrier is not None]:
        return tuple([judge.judge(action)[0] for action in actions])
    alone = all(action.idle or action.role is Role.MENTION for action in actions)
    found: dict[int, Judged] = {}
    allows: dict[int, list[Rule]] = {}
    carrying: dict[int, list[Rule]] = {}
    for number, action in sorted(enumerate(actions), key=lambda pair: pair[1].carrier is not None):
        own = replace(action, idle=False) if alone and action.idle else action
        if action.carrier is not None and action.carrier not in carrying:
            command = actions[action.carrier]
            carrying[action.carrier] = [rule for rule in allows[action.carrier] if rule.carries(command)]
        judged, allows[number] = judge.judge(own, carried(action, carrying))
        found[number] = judged if own is action else replace(judged, action=action)
    return tuple(found[number] for number in range(len(actions)))


def carried(action: Action, carrying: dict[int, list[Rule]]) -> list[Rule]:
    """Return the allow rules of a command that extend to its operand `action`.

    They do inside the workspace, or anywhere if the rule has a `within` of its own.

    Args:
        action: the operand.
        carrying: index of a command -> its allow rules that carry operands at all; some shipped entries do not.
    """
    path = action.path
    if action.carrier is None or path is None or action.opaque:
        return []
    return [rule for rule in carrying[action.carrier] if path.inside or rule.encloses]


def settle(request: Request, judged: tuple[Judged, ...], policy: Policy, grant: Grants) -> Decision:
    """Combine judged actions into one decision: the strictest effect, then menu and grants."""
    effect = judged[0].effect if len(judged) == 1 else max([one.effect for one in judged], default=ASK)
    words = [MENU] if request.menu else []
    if not [one for one in judged if one.action.role is not Role.MENTION]:
        words.append(NO_ACTION)
    if words and effect is ALLOW:
        effect = ASK
    if effect is not ASK:
        return decision(effect, judged, policy)
    answers = [] if grant is no_grants else [grant(one) for one in judged]
    if [answer for answer in answers if answer is not None]:
        judged = tuple([replace(one, granted=answer) for one, answer in zip(judged, answers, strict=True)])
        if any(one.granted is DENY for one in judged):
            return decision(DENY, judged, policy, [REFUSED], Source.GRANT)
        if not words and not policy.lock.grants and all(map(granted, judged)):
            return decision(ALLOW, judged, policy, [REMEMBERED], Source.GRANT)
    return decision(ASK, judged, policy, words)


def granted(one: Judged) -> bool:
    """Say whether a rule, or a remembered answer that may count, allows an action."""
    if one.effect is ALLOW:
        return True
    return one.effect is ASK and one.granted is ALLOW and one.memory != "never"


def decision(
    effect: Effect,
    judged: tuple[Judged, ...],
    policy: Policy,
    words: Sequence[str] = (),
    source: Source | None = None,
) -> Decision:
    """Build the decision: effect, source, deciding rules, all matched rules and the reason."""
    one = judged[0] if len(judged) == 1 else None
    if one is None or one.floors or words or source is not None or (effect is not ALLOW and near_missed(one, policy)):
        found = explained(effect, judged, words, source, policy.about)
    else:
        found = explained_by_rules(effect, one.hits, one.possible, one.defaults)
    return Decision(
        effect, found.source, found.reason, found.rules, found.matched, judged, policy.revision, found.remember
    )


def near_missed(one: Judged, policy: Policy) -> bool:
    """Say whether no rule matched a command although one nearly allowed it: the reason then names that rule."""
    unmatched = one.action.command is not None and not (one.hits or one.possible)
    return unmatched and near_miss(one.action, policy.about) != ""


def rule_holds(
    rule: Rule,
    actions: tuple[Action, ...],
    context: Context,
    fs: Filesystem | None = None,
) -> bool:
    """Say whether the conditions of `rule` hold for a request, as the examples of a policy are tested.

    A deny or ask rule holds if it may hold for one of `actions`; an allow rule if it holds for all it could be about.
    Conditions on the session count as met (on a mode, unless the example names one); layers, trust and floors are
    ignored.
    """
    held = [
        rule.holds(action, context, fs, met=MET_IN_EXAMPLES if action.mode is None else MET_IN_EXAMPLES - {"mode"})
        for action in actions
        if concerns(rule, action)
    ]
    return bool(held) and (min(held) is Truth.YES if rule.effect is ALLOW else max(held) is not Truth.NO)


def concerns(rule: Rule, action: Action) -> bool:
    """Say whether an allow rule could be about `action`; a strict rule may be about any."""
    if rule.effect is not ALLOW:
        return True
    if action.role is Role.MENTION or action.idle:
        return False
    resource = {"path": action.path, "command": action.command, "url": action.url}
    return action.role is Role.PRIMARY if rule.resource in {"", "tool"} else resource[rule.resource] is not None
