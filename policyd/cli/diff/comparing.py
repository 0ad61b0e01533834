"""Two policies compared by their rules: what changed, and which changes could let more through.

Changes of these kinds cannot loosen any decision:

1. A removed allow: fewer rules displace defaults, and nothing else depends on it.
2. An added deny: the strictest counts.
3. An added allow that an allow of the old policy covers, or that a deny of the new one covers.
4. An added ask where the old policy has a rule that covers it, or no default denies.
5. A removed deny or ask that a rule of the new policy, as strict and as high, covers.
6. Defaults of a layer that are, for each kind and place, as strict as before.

Every other change is a suspect: requests are tried to find out whether it loosens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from policyd.cli.lint.reach import carries
from policyd.cli.trials.covering import Coverer
from policyd.cli.trials.standins import globbed
from policyd.model import KINDS, MEMORY, Action, Effect, Layer
from policyd.policy import Entry, LayerDefaults, Policy, Rule
from policyd.policy.conditions import Condition

Signature = tuple[object, ...]


class Comparison(Struct):
    """What differs between two policies."""

    added: list[Rule] = field(default_factory=list)
    removed: list[Rule] = field(default_factory=list)
    defaults: list[str] = field(default_factory=list)
    """Changes of defaults, in words."""
    locks: list[str] = field(default_factory=list)
    """Changes of locks, in words."""
    suspects: list[str] = field(default_factory=list)
    """Changes that could loosen a decision, in words."""

    @property
    def same(self) -> bool:
        """Whether nothing differs that could decide."""
        return not (self.added or self.removed or self.defaults or self.locks)


def compare(old: Policy, new: Policy, coverer: Coverer) -> Comparison:
    """Compare two policies without trying requests."""
    found = Comparison()
    found.added, found.removed = differing(counting(old), counting(new))
    for rule in found.added:
        if not harmless_addition(rule, old, new, coverer):
            found.suspects.append(f"{rule.effect.word} `{rule.ref.label}` is new")
    for rule in found.removed:
        if not harmless_removal(rule, new, coverer):
            found.suspects.append(f"{rule.effect.word} `{rule.ref.label}` is gone")
    compare_defaults(old, new, found)
    locks(old, new, found)
    return found


def counting(policy: Policy) -> list[Rule]:
    """Return the rules of a policy that are not void."""
    return [rule for rule in policy.rules if not rule.void]


# ---- rules -----------------------------------------------------------------------------------------


def differing(old: Sequence[Rule], new: Sequence[Rule]) -> tuple[list[Rule], list[Rule]]:
    """Return the rules only `new` has, and those only `old` has."""
    return less(new, old), less(old, new)


def less(these: Sequence[Rule], those: Sequence[Rule]) -> list[Rule]:
    """Return the rules among `these` without an equal among `those`."""
    left = Counter(map(signature, those))
    kept = []
    for rule in these:
        if left[signature(rule)]:
            left[signature(rule)] -= 1
        else:
            kept.append(rule)
    return kept


def signature(rule: Rule) -> Signature:
    """Return everything in a rule that matters for decisions: equal signatures decide alike."""
    return (
        rule.rank,
        rule.ref.layer,
        rule.effect,
        frozenset(map(condition_signature, rule.conditions)),
        frozenset(frozenset(map(condition_signature, table)) for table in rule.unless),
        (rule.opaque, rule.escalate, rule.delegate),
        rule.ref.remember,
    )


def condition_signature(condition: Condition) -> Signature:
    """Return everything in a condition but its place, which follows from the rule."""
    held: Any = condition
    parts = (comparable(value) for key, value in asdict(held).items() if key != "place")
    return (type(condition).__name__, *parts)


def comparable(value: object) -> object:
    """Return a part of a condition as a comparable value: lists without order, patterns as written, sets by name."""
    if isinstance(value, tuple | frozenset):
        return frozenset(map(comparable, value))
    written = getattr(value, "text", getattr(value, "source", value))
    return repr(sorted(written.items())) if isinstance(written, Mapping) else written


def harmless_addition(rule: Rule, old: Policy, new: Policy, coverer: Coverer) -> bool:
    """Say whether an added rule surely loosens nothing."""
    if rule.effect is Effect.DENY:
        return True
    if rule.effect is Effect.ASK:
        return not denies(old, new) or covered(rule, old, coverer, lambda wide: wide.rank >= rule.rank)
    if rule.opaque or rule.escalate or not rule.resource:
        return covered(rule, old, coverer, lambda wide: as_open(wide, rule))
    return covered(rule, old, coverer, lambda wide: as_open(wide, rule)) or covered(
        rule, new, coverer, lambda wide: wide.effect is Effect.DENY
    )


def as_open(wide: Rule, rule: Rule) -> bool:
    """Say whether an allow lets through at least as much as another that it covers."""
    if wide.effect is not Effect.ALLOW or wide.rank < rule.rank or wide.ref.layer < rule.ref.layer:
        return False
    if (rule.opaque and not wide.opaque) or (rule.escalate and not wide.escalate) or wide.resource != rule.resource:
        return False
    return carries(wide) or not carries(rule)


def harmless_removal(rule: Rule, new: Policy, coverer: Coverer) -> bool:
    """Say whether a removed rule surely loosens nothing."""
    if rule.effect is Effect.ALLOW:
        return True

    def as_strict(wide: Rule) -> bool:
        short = MEMORY[wide.ref.remember or "project"] <= MEMORY[rule.ref.remember or "project"]
        return wide.effect >= rule.effect and wide.rank >= rule.rank and (short or wide.effect is Effect.DENY)

    return covered(rule, new, coverer, as_strict)


def covered(rule: Rule, policy: Policy, coverer: Coverer, fits: Callable[[Rule], bool]) -> bool:
    """Say whether rules of `policy` that fit cover everything `rule` can match."""
    stand_ins = coverer.stand_ins.of(rule)
    if not stand_ins:
        return False
    return all(
        any(fits(wide) and coverer.covers(wide, rule, one) for wide in policy.candidates(one.action, coverer.context))
        for one in stand_ins
    )


def denies(*policies: Policy) -> bool:
    """Say whether a default of one of the policies denies anything."""
    layers = [layer for policy in policies for layer in policy.defaults]
    entries = [entry.effect for layer in layers for entry in layer.entries.values()]
    return Effect.DENY in (*entries, *(rule.effect for layer in layers for rule in layer.rules))


# ---- defaults --------------------------------------------------------------------------------------


def compare_defaults(old: Policy, new: Policy, found: Comparison) -> None:
    """Add the differences between defaults, and those that could loosen."""
    before, after = by_layer(old.defaults), by_layer(new.defaults)
    for rank in sorted({*before, *after}, reverse=True):
        was, now = before.get(rank, ()), after.get(rank, ())
        found.defaults += entry_changes(rank, was, now)
        added, removed = differing([r for one in was for r in one.rules], [r for one in now for r in one.rules])
        for rule in added:
            found.defaults.append(f"+ {rule.ref.layer.word} [[default]] {rule.effect.word} {rule.ref.id}")
            if rule.effect is not Effect.DENY or rule.delegate:
                found.suspects.append(f"the default `{rule.ref.label}` is new")
        for rule in removed:
            found.defaults.append(f"- {rule.ref.layer.word} [[default]] {rule.effect.word} {rule.ref.id}")
            found.suspects.append(f"the default `{rule.ref.label}` is gone")
        loose = [what for what, action in places(old, new) if not as_strict(stance(was, action), stance(now, action))]
        if loose:
            more = f" and {len(loose) - 3} more" if len(loose) > 3 else ""
            found.suspects.append(f"{rank.word} defaults are looser for {', '.join(loose[:3])}{more}")


def by_layer(defaults: Iterable[LayerDefaults]) -> dict[Layer, tuple[LayerDefaults, ...]]:
    """Return the defaults by layer."""
    found: dict[Layer, tuple[LayerDefaults, ...]] = {}
    for layer in defaults:
        found[layer.rank] = (*found.get(layer.rank, ()), layer)
    return found


def entry_changes(rank: Layer, was: Sequence[LayerDefaults], now: Sequence[LayerDefaults]) -> Iterator[str]:
    """Yield the entries of `[defaults]` that differ."""
    before = {key: word_of(entry) for one in was for key, entry in one.entries.items()}
    after = {key: word_of(entry) for one in now for key, entry in one.entries.items()}
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            yield f"~ {rank.word} defaults.{key}: {before.get(key, 'none')} -> {after.get(key, 'none')}"


def word_of(entry: Entry) -> str:
    """Return an entry of `[defaults]` in words."""
    return entry.effect.word + (" (delegated)" if entry.delegate else "")


def places(*policies: Policy) -> Iterator[tuple[str, Action]]:
    """Yield an action of each kind in each place that defaults distinguish."""
    named = {key for policy in policies for layer in policy.defaults for key in layer.entries}
    for kind in (*KINDS, *sorted(named - {*KINDS, "*", "outside", "mcp"}), "_other"):
        bare = frozenset({kind})
        yield f"`{kind}`", Action(bare)
        yield f"`{kind}` inside", Action(bare, path=globbed("/w/x", inside=True))
        yield f"`{kind}` outside", Action(bare, path=globbed("/x", inside=False))
        yield f"`{kind}` not understood", Action(bare, opaque="x")
    yield "MCP tools", Action(frozenset({"other"}), mcp=True)


Stance = tuple[Effect | None, Effect | None, bool]
"""The strictest default, the strictest that is not delegated, and whether `outside` allows."""


def stance(layers: Iterable[LayerDefaults], action: Action) -> Stance:
    """Return the defaults of one layer for an action, as far as they matter here."""
    entries = [entry for layer in layers for entry in layer.of(action)]
    firm = [entry.effect for entry in entries if not entry.delegate]
    opens = any(entry.outside and entry.effect is Effect.ALLOW for entry in entries)
    return max((e.effect for e in entries), default=None), max(firm, default=None), opens


def as_strict(was: Stance, now: Stance) -> bool:
    """Say whether the defaults of a layer are surely as strict as before."""
    return at_least(was[0], now[0]) and at_least(was[1], now[1]) and (was[2] or not now[2])


def at_least(was: Effect | None, now: Effect | None) -> bool:
    """Compare two effects; without one, other layers decide, or the request asks."""
    if now is None:
        return was in (None, Effect.ALLOW)
    return now >= (Effect.ASK if was is None else was)


# ---- locks -----------------------------------------------------------------------------------------


def locks(old: Policy, new: Policy, found: Comparison) -> None:
    """Add the differences between locks; apart from grants, their effect shows in the rules that count."""
    for name in ("refuse", "settings"):
        before, after = getattr(old.lock, name), getattr(new.lock, name)
        found.locks += [f"- lock.{name} {each}" for each in sorted(before - after)]
        found.locks += [f"+ lock.{name} {each}" for each in sorted(after - before)]
    if old.lock.grants and not new.lock.grants:
        found.suspects.append("remembered answers are no longer locked")
