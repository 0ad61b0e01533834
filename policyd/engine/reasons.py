"""Why a decision is what it is: the deciding rules, their reasons, and how long an answer may be remembered.

Reasons are written for the model and the person. Text that comes from an agent is made safe to display first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

from msgspec import Struct

from policyd.display import safe, sentences
from policyd.model import MEMORY, Action, Effect, Judged, Role, RuleRef, Source
from policyd.policy import Rule

ALLOW, ASK = Effect.ALLOW, Effect.ASK
LONGEST_FLOOR = 300
NOBODY = Action(frozenset())
LONGEST_NAME = 60
MOST_REASONS = 20
"""Reasons shown; near misses are looked for as often."""
NO_RULE = "no rule applies to it"
UNREAD = "not understood: "
"""What the floor of an opaque action begins with."""
VERBS = {ALLOW: "allowed", ASK: "asked about", Effect.DENY: "denied"}
Item = TypeVar("Item", bound=Hashable)
About = Callable[[Action], Iterable[Rule]]
"""Finds the rules filed under the program an action runs."""


def no_rules(_: Action) -> tuple[Rule, ...]:
    """Find none."""
    return ()


def unique(items: list[Item]) -> list[Item]:
    """Return the items without repetition, in order."""
    return items if len(items) < 2 else list(dict.fromkeys(items))


def capped(words: list[str]) -> list[str]:
    """Return the first reasons, then how many more there are."""
    more = len(words) - MOST_REASONS
    return words if more <= 0 else [*words[:MOST_REASONS], f"and {more} more reasons"]


def unrepeated(words: list[str]) -> list[str]:
    """Drop each "not understood" reason that the reason of a near miss repeats."""
    held = [word for word in words if not word.startswith(UNREAD)]
    why = len(UNREAD)
    return [word for word in words if word in held or not any(f": {word[why:]}" in other for other in held)]


def near_miss(action: Action, about: About) -> str:
    """Return which allow rule nearly held for an action and why it did not, empty if none did."""
    for rule in about(action):
        if why := rule.why_not(action):
            return safe(why, limit=LONGEST_FLOOR)
    return ""


def no_rule_reason(judged: Judged, about: About, *, alone: bool) -> str:
    """Return the reason for an action without a matching rule: which, unless it is `alone`, and the near miss."""
    action = judged.action
    nearly = near_miss(action, about)
    if alone:
        return nearly or NO_RULE
    if action.command is not None:
        named = action.command.text
    elif action.path is not None and action.kinds:
        named = f"{min(action.kinds)} {action.path.text}"
    else:
        return NO_RULE
    return f"no rule applies to `{safe(named, limit=LONGEST_NAME)}`" + (f" ({nearly})" if nearly else "")


def deciding(effect: Effect, judged: tuple[Judged, ...], about: About = no_rules) -> tuple[list[RuleRef], list[str]]:
    """Return the rules and defaults that made the effect what it is, and their reasons.

    `about`: finds the rules among which to look for near misses of an action without a matching rule.
    """
    refs: list[RuleRef] = []
    words: list[str] = []
    alone = len([one for one in judged if one.action.role is not Role.MENTION and not one.action.idle]) < 2
    unmatched = 0
    for one in judged:
        if one.effect is not effect:
            continue
        own = [ref for ref in one.hits if ref.effect is effect]
        if effect is ASK:
            own += one.possible
        matched = bool(own)
        own = own or [ref for ref in one.defaults if ref.effect is effect]
        refs += own
        words += [spoken(ref, effect) for ref in own]
        if effect is ASK:
            words += [safe(floor, limit=LONGEST_FLOOR) for floor in one.floors]
        if effect is not ALLOW and not matched and (own or (effect is ASK and not one.floors)):
            unmatched += 1
            among = about if unmatched <= MOST_REASONS else no_rules
            words += [near_miss(one.action, among)] if own else [no_rule_reason(one, among, alone=alone)]
    return unique(refs), list(filter(None, words))


def spoken(ref: RuleRef, effect: Effect) -> str:
    """Return the reason a rule gives; that of a deny rule which only may match is said to be its, and possible."""
    if effect is ASK and ref.effect is not ASK:
        return f"possibly denied by `{ref.label}`" + (f": {ref.reason}" if ref.reason else "")
    return ref.reason or f"{VERBS[effect]} by `{ref.label}`"


class Explanation(Struct, frozen=True, gc=False):
    """A decision without its effect and actions."""

    source: Source
    reason: str
    rules: tuple[RuleRef, ...]
    matched: tuple[RuleRef, ...]
    remember: str


def explained(
    effect: Effect,
    judged: tuple[Judged, ...],
    words: Sequence[str] = (),
    source: Source | None = None,
    about: About = no_rules,
) -> Explanation:
    """Return source, reason, deciding rules, all matched rules and the longest memory; `about` as in `deciding`."""
    rules, reasons = deciding(effect, judged, about)
    return Explanation(
        source or source_of(effect, rules, judged),
        sentences(unrepeated(capped(unique([*words, *reasons])))) or NO_RULE,
        tuple(rules),
        tuple(unique([ref for one in judged for ref in one.hits + one.possible])),
        "project" if effect is not ASK else "never" if words else remember(judged),
    )


@lru_cache(1024)
def explained_by_rules(
    effect: Effect, hits: tuple[RuleRef, ...], possible: tuple[RuleRef, ...], defaults: tuple[RuleRef, ...]
) -> Explanation:
    """Return the same for one action without floors: it follows from rules and defaults alone."""
    return explained(effect, (Judged(NOBODY, effect, hits, possible, defaults),))


def source_of(effect: Effect, rules: Iterable[RuleRef], judged: tuple[Judged, ...]) -> Source:
    """Return what made the decision: policyd's own guard, a rule, or a default."""
    if effect is ASK and any(one.action.guarded and one.floors for one in judged if one.effect is ASK):
        return Source.GUARD
    return Source.RULE if any(not ref.default for ref in rules) else Source.DEFAULT


def remember(judged: tuple[Judged, ...]) -> str:
    """Return the longest memory that may settle all the asks: the shortest that any of them permits."""
    return min([one.memory for one in judged if one.effect is ASK], key=MEMORY.__getitem__, default="project")
