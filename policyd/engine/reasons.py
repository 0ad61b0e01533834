"""Why a decision is what it is: the rules that made it, their words, and how long an answer may be remembered.

Reasons are written for the model and the person. What an agent wrote is made safe to show first.
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
MOST_SAID = 20
"""Reasons that are told; what nearly allowed an action is looked for as often."""
SILENCE = "no rule speaks about it"
UNREAD = "not understood: "
"""How it is said why something could not be read."""
Item = TypeVar("Item", bound=Hashable)
About = Callable[[Action], Iterable[Rule]]
"""The rules that are about what an action runs."""


def nothing(_: Action) -> tuple[Rule, ...]:
    """No rule is about anything."""
    return ()


def unique(items: list[Item]) -> list[Item]:
    """Return the items without repetition, in order."""
    return items if len(items) < 2 else list(dict.fromkeys(items))


def told(words: list[str]) -> list[str]:
    """Return the first reasons, and how many more there are."""
    return words if len(words) <= MOST_SAID else [*words[:MOST_SAID], f"and {len(words) - MOST_SAID} more reasons"]


def unrepeated(words: list[str]) -> list[str]:
    """Leave out why something was not understood where another reason, of a rule that nearly held, says it too."""
    held = [word for word in words if not word.startswith(UNREAD)]
    why = len(UNREAD)
    return [word for word in words if word in held or not any(f": {word[why:]}" in other for other in held)]


def near(action: Action, about: About) -> str:
    """Say what nearly allowed an action, nothing where nothing did."""
    for rule in about(action):
        if short := rule.short(action):
            return safe(short, limit=LONGEST_FLOOR)
    return ""


def silence(judged: Judged, about: About, *, alone: bool) -> str:
    """Say that no rule speaks about an action: which, where it is not the only one, and what nearly did."""
    action = judged.action
    nearly = near(action, about)
    if alone:
        return nearly or SILENCE
    if action.command is not None:
        named = action.command.text
    elif action.path is not None and action.kinds:
        named = f"{min(action.kinds)} {action.path.text}"
    else:
        return SILENCE
    return f"no rule speaks about `{safe(named, limit=LONGEST_NAME)}`" + (f" ({nearly})" if nearly else "")


def deciding(effect: Effect, judged: tuple[Judged, ...], about: About = nothing) -> tuple[list[RuleRef], list[str]]:
    """Return the rules and defaults that made the effect what it is, and their reasons.

    `about`: the rules among which is looked for what nearly allowed an action nothing speaks about.
    """
    refs: list[RuleRef] = []
    words: list[str] = []
    alone = len([one for one in judged if one.action.role is not Role.MENTION and not one.action.idle]) < 2
    silent = 0
    for one in judged:
        if one.effect is not effect:
            continue
        own = [ref for ref in one.hits if ref.effect is effect]
        if effect is ASK:
            own += one.possible
        spoken = bool(own)
        own = own or [ref for ref in one.defaults if ref.effect is effect]
        refs += own
        words += [ref.reason or f"{verb(ref, effect)} by `{ref.label}`" for ref in own]
        if effect is ASK:
            words += [safe(floor, limit=LONGEST_FLOOR) for floor in one.floors]
            if not spoken and (own or not one.floors):
                silent += 1
                looked = about if silent <= MOST_SAID else nothing
                words += [near(one.action, looked)] if own else [silence(one, looked, alone=alone)]
    return unique(refs), list(filter(None, words))


def verb(ref: RuleRef, effect: Effect) -> str:
    """Say what a rule did; one that only may match asks."""
    if effect is ASK:
        return "asked about" if ref.effect is ASK else "possibly denied"
    return "allowed" if effect is ALLOW else "denied"


class Said(Struct, frozen=True, gc=False):
    """What is said of judged actions, the actions themselves apart."""

    source: Source
    reason: str
    rules: tuple[RuleRef, ...]
    matched: tuple[RuleRef, ...]
    remember: str


def said(
    effect: Effect,
    judged: tuple[Judged, ...],
    words: Sequence[str] = (),
    source: Source | None = None,
    about: About = nothing,
) -> Said:
    """Put together source, reason, deciding rules, all matched rules and the longest memory.

    `about`: the rules among which is looked for what nearly allowed an action nothing speaks about.
    """
    rules, reasons = deciding(effect, judged, about)
    return Said(
        source or source_of(effect, rules, judged),
        sentences(unrepeated(told(unique([*words, *reasons])))) or SILENCE,
        tuple(rules),
        tuple(unique([ref for one in judged for ref in one.hits + one.possible])),
        "project" if effect is not ASK else "never" if words else remember(judged),
    )


@lru_cache(1024)
def said_of_rules(
    effect: Effect, hits: tuple[RuleRef, ...], possible: tuple[RuleRef, ...], defaults: tuple[RuleRef, ...]
) -> Said:
    """Return the same of one action over which no floor lies: it follows from rules and defaults alone."""
    return said(effect, (Judged(NOBODY, effect, hits, possible, defaults),))


def source_of(effect: Effect, rules: Iterable[RuleRef], judged: tuple[Judged, ...]) -> Source:
    """Say what made the decision: policyd's own guard, a rule, or the ground."""
    if effect is ASK and any(one.action.guarded and one.floors for one in judged if one.effect is ASK):
        return Source.GUARD
    return Source.RULE if any(not ref.default for ref in rules) else Source.DEFAULT


def remember(judged: tuple[Judged, ...]) -> str:
    """Return the longest memory that may settle all the asks."""
    return min([one.memory for one in judged if one.effect is ASK], key=MEMORY.__getitem__, default="project")
