"""Whether one rule covers another: holds wherever the other does, as far as their texts show.

Yes is certain: the rule holds for stand-ins of everything the other can match (`standins`), its conditions on the
session are the same, and its exceptions cannot apply to the other. No means: not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cached_property
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from policyd.cli.trials.standins import StandIn, StandIns, dotted, kind_of
from policyd.model import Action, Context, Effect, Role, Truth
from policyd.policy import MET_IN_EXAMPLES, Policy, Rule
from policyd.policy.combinations import NARROW
from policyd.policy.conditions import Condition, Place

SESSION = ("agent", "mode", "interactive", "label", "user", "group", "until", "input")
"""Conditions of a rule beside kinds and resource."""
MET = MET_IN_EXAMPLES | {"input"}


class Coverer(Struct, frozen=True, dict=True):
    """Compares rules in one workspace."""

    stand_ins: StandIns
    now: datetime
    exact: bool = False
    """Actions may have any kinds, whatever their resource; otherwise only the usual ones."""
    known: dict[tuple[int, tuple[str, ...]], tuple[Condition, Truth]] = field(default_factory=dict)
    """Cached results of path conditions, which do not depend on kinds."""

    @cached_property
    def context(self) -> Context:
        """The session of the stand-ins."""
        return Context(self.stand_ins.workspace, self.now, interactive=True, resolved=True)

    def covers(self, wide: Rule, narrow: Rule, one: StandIn) -> bool:
        """Say whether `wide` surely holds for all that `one`, a stand-in of `narrow`, stands for."""
        if not no_further_conditions(wide, narrow) or not self.names_kinds(wide, narrow):
            return False
        if one.action.role is Role.MENTION and (wide.effect is Effect.ALLOW or wide.resource not in {"path", "url"}):
            return False
        if wide.effect is Effect.ALLOW and narrow.effect is not Effect.ALLOW:
            return (
                False  # a strict rule matches more than its stand-ins: every wrapper, every form, any of several kinds
            )
        if wide.effect is Effect.ALLOW and any(wide.table.get(k) != narrow.table.get(k) for k in NARROW):
            return False
        least = kind_truth(narrow, one.action) if one.action.role is Role.MENTION else Truth.YES
        for condition in wide.conditions:
            needed = least if condition.name == "kind" else Truth.YES
            if condition.name not in MET and self.truth(condition, one.action) < needed:
                return False
        free = self.exact and kind_of(narrow) is None
        return not any(self.may_except(table, one.action, free=free) for table in exceptions(wide, narrow))

    def names_kinds(self, wide: Rule, narrow: Rule) -> bool:
        """Say whether `wide` holds for all kinds an action of `narrow` may have: an allow has to name each of them."""
        theirs, own = kind_of(wide), kind_of(narrow)
        if theirs is None:
            return True
        if own is None and self.exact:
            return wide.effect is not Effect.ALLOW and narrow.resource == "command" and theirs.names("execute")
        kinds = self.stand_ins.kinds(narrow)
        return wide.effect is not Effect.ALLOW or (
            all(map(theirs.names, kinds)) and (theirs.every or own is None or not own.every)
        )

    def truth(self, condition: Condition, action: Action) -> Truth:
        """Say whether a condition holds for all that `action` stands for (YES), or for some of it."""
        if condition.name != "path" or action.path is None:
            return condition.truth(action, self.context, None)
        key = (id(condition), action.path.forms)
        if key not in self.known:
            self.known[key] = condition, condition.truth(action, self.context, None)
        return self.known[key][1]

    def surely_excepts(self, table: tuple[Condition, ...], action: Action) -> bool:
        """Say whether an exception surely holds for all that `action` stands for."""
        return all(c.name not in SESSION and self.truth(c, action) is Truth.YES for c in table)

    def may_except(self, table: tuple[Condition, ...], action: Action, *, free: bool = False) -> bool:
        """Say whether an exception may hold for some of what `action` stands for; `free`: its kinds may be any."""
        return all((free and each.name == "kind") or self.may_hold(each, action) for each in table)

    def may_hold(self, condition: Condition, action: Action) -> bool:
        """Say whether a condition may hold for some of what `action` stands for."""
        if self.exact and condition.name == "command":
            return True  # an unknown program may run the words behind it
        if condition.name in SESSION or condition.name in {"url", "tool"}:
            return True
        resources = (action.path, action.command, action.url, action.tool)
        if condition.name in {"path", "command"} and all(each is None for each in resources):
            return True  # a stand-in of kinds alone stands for actions on any resource
        if condition.name == "kind":
            return placed(condition, Place.SPARE).truth(action, self.context, None) is not Truth.NO
        return placed(condition, Place.EXCEPT).truth(dotted(action), self.context, None) is not Truth.NO

    def covering(self, policy: Policy, narrow: Rule, one: StandIn, effects: Iterable[Effect]) -> Iterator[Rule]:
        """Yield the other rules of `policy` with one of `effects` that cover a stand-in of `narrow`."""
        wanted = set(effects)
        for rule in policy.candidates(one.action, self.context):
            if rule is not narrow and rule.effect in wanted and self.covers(rule, narrow, one):
                yield rule


def kind_truth(rule: Rule, action: Action) -> Truth:
    """Return whether the kinds of a rule hold for a mention, which may be of any kind."""
    own = kind_of(rule)
    return Truth.YES if own is None or own.names("read") else Truth.MAYBE


def placed(condition: Condition, place: Place) -> Condition:
    """Return a condition moved to another place."""
    movable: Any = condition
    moved: Condition = replace(movable, place=place)
    return moved


def no_further_conditions(wide: Rule, narrow: Rule) -> bool:
    """Say whether `wide` has no condition on session and call that `narrow` lacks."""
    keys = SESSION if wide.resource == "tool" else (*SESSION, "tool")
    return all(wide.table.get(key) in (None, narrow.table.get(key)) for key in keys)


def exceptions(wide: Rule, narrow: Rule) -> Iterator[tuple[Condition, ...]]:
    """Yield the exceptions of `wide` that `narrow` lacks."""
    theirs = tables(narrow)
    for table, raw in zip(wide.unless, tables(wide), strict=True):
        if raw not in theirs:
            yield table


def tables(rule: Rule) -> list[object]:
    """Return the exceptions of a rule as written."""
    unless = rule.table.get("unless")
    return unless if isinstance(unless, list) else [] if unless is None else [unless]
