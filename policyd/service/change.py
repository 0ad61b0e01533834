"""Applying a changed policy to running sessions: is it looser, what stays of a vanished file, how to only tighten.

Pure functions over compiled policies. A change that cannot be shown to only tighten counts as loosening.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from msgspec.structs import replace

from policyd.model import Effect, Layer
from policyd.policy import Entry, LayerDefaults, Lock, Policy, PolicySource, Rule

Signature = tuple[object, ...]


def signature(rule: Rule) -> Signature:
    """Return a signature that is equal for the same rule in two loads: its layer and contents."""
    return rule.rank, rule.effect, rule.void, repr(rule.table)


def loosens(old: Policy, new: Policy) -> bool:
    """Say whether `new` may allow what `old` did not."""
    before, after = {signature(rule) for rule in old.rules}, {signature(rule) for rule in new.rules}
    gone, come = before - after, after - before
    if any(effect is Effect.ALLOW for _, effect, *_ in come) or any(
        effect is not Effect.ALLOW for _, effect, *_ in gone
    ):
        return True
    # Sets, defaults or locks changed: what that means is not told apart.
    if not (gone or come) or grounds(old) != grounds(new) or not old.lock.refuse <= new.lock.refuse:
        return True
    return other_sets(old, new) or other_sets(new, old)


def other_sets(some: Policy, others: Policy) -> bool:
    """Say whether a rule of `some` is in `others` too, but names sets that hold something else there."""
    there: dict[Signature, list[Rule]] = {}
    for rule in every(others):
        there.setdefault(signature(rule), []).append(rule)
    for rule in every(some):
        same = there.get(signature(rule)) if "@" in repr(rule.table) else None
        if same and all(rule.compiled != one.compiled for one in same):
            return True
    return False


def every(policy: Policy) -> Iterator[Rule]:
    """Yield the rules and the `[[default]]` blocks."""
    yield from policy.rules
    for each in policy.defaults:
        yield from each.rules


def grounds(policy: Policy) -> list[Signature]:
    """Return a signature of a policy's defaults."""
    return [(*said(each), *map(signature, each.rules)) for each in policy.defaults]


def said(ground: LayerDefaults) -> Signature:
    """Return a signature of the entries of a layer's defaults."""
    return ground.rank, sorted((key, entry.effect, entry.delegate) for key, entry in ground.entries.items())


def with_vanished(new: Policy, old: Policy, files: Iterable[str]) -> Policy:
    """Return `new` with what `old` refused or asked in files that are no longer there (`files`: those that are)."""
    present = set(files)
    kept = [rule for rule in strict(old.rules) if rule.ref.file not in present]
    ground = tuple(strict_ground(each, present) for each in old.defaults)
    ground = tuple(each for each in ground if each.entries or each.rules)
    if not kept and not ground:
        return new
    return replace(
        new,
        rules=numbered((*new.rules, *kept)),
        defaults=(*new.defaults, *ground),
        heads=tuple(dict.fromkeys((*new.heads, *old.heads))),
        revision=f"{new.revision}+kept",
    )


def vanished_locks(old: Iterable[PolicySource], new: Iterable[PolicySource]) -> Iterator[PolicySource]:
    """Yield, for each managed file of `old` that is not in `new` any more, one that says nothing but its `[lock]`."""
    import tomllib

    import tomli_w

    present = {source.name for source in new}
    for source in old:
        if source.layer is Layer.MANAGED and source.name not in present:
            lock = tomllib.loads(source.data.decode()).get("lock")
            if lock:
                yield replace(source, data=tomli_w.dumps({"lock": lock}).encode())


def strict_ground(ground: LayerDefaults, present: Container[str]) -> LayerDefaults:
    """Return what of a layer's defaults is no allow and came from files that are not `present`."""
    entries = {
        key: entry
        for key, entry in ground.entries.items()
        if entry.ref.file not in present and entry.effect is not Effect.ALLOW
    }
    rules = tuple(rule for rule in strict(ground.rules) if rule.ref.file not in present)
    return LayerDefaults(ground.rank, entries, rules)


def tightened(old: Policy, new: Policy) -> Policy:
    """Return a policy that allows only what both allow, with all rules and defaults of both that ask or deny."""
    ground = [agreed_ground(each, old.defaults) for each in new.defaults]
    return replace(
        new,
        rules=numbered((*agreed(new.rules, old.rules), *strict(new.rules), *more_strict(old.rules, new.rules))),
        defaults=(*ground, *more_ground(old.defaults, ground)),
        lock=Lock(old.lock.refuse | new.lock.refuse, old.lock.settings | new.lock.settings),
        heads=tuple(dict.fromkeys((*new.heads, *old.heads))),
        revision=f"{new.revision}+tightened",
    )


def agreed(new: Iterable[Rule], old: Iterable[Rule]) -> Iterator[Rule]:
    """Yield the allows that are in both."""
    allows = {signature(rule): rule for rule in old if rule.effect is Effect.ALLOW}
    yield from (joined(allows[signature(rule)], rule) for rule in new if signature(rule) in allows)


def strict(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Yield the rules that ask or deny."""
    yield from (rule for rule in rules if rule.effect is not Effect.ALLOW)


def more_strict(old: Iterable[Rule], new: Iterable[Rule]) -> Iterator[Rule]:
    """Yield what of `old` asks or denies and is not in `new`: the same words may name a set that changed."""
    there = {signature(rule): rule for rule in strict(new)}
    for rule in strict(old):
        same = there.get(signature(rule))
        if same is None or same.compiled != rule.compiled:
            yield rule


def agreed_ground(ground: LayerDefaults, old: Iterable[LayerDefaults]) -> LayerDefaults:
    """Return a layer's defaults; what only these allow asks. A block that only these have falls to their entries."""
    before = [each for each in old if each.rank == ground.rank]
    allowed = {key for each in before for key, entry in each.entries.items() if entry.effect is Effect.ALLOW}
    entries = {
        key: entry if entry.effect is not Effect.ALLOW or key in allowed else asking(entry)
        for key, entry in ground.entries.items()
    }
    rules = [rule for each in before for rule in each.rules]
    return LayerDefaults(ground.rank, entries, (*agreed(ground.rules, rules), *strict(ground.rules)))


def asking(entry: Entry) -> Entry:
    """Return an entry that asks instead."""
    return replace(entry, ref=replace(entry.ref, effect=Effect.ASK), effect=Effect.ASK)


def more_ground(old: Iterable[LayerDefaults], new: Iterable[LayerDefaults]) -> Iterator[LayerDefaults]:
    """Yield what the defaults of `old` ask and deny, as far as those of `new` do not say the same."""
    there = [strict_ground(each, ()) for each in new]
    for each in old:
        kept = strict_ground(each, ())
        if (kept.entries or kept.rules) and not any(same_ground(kept, one) for one in there):
            yield kept


def same_ground(one: LayerDefaults, other: LayerDefaults) -> bool:
    """Say whether two strict grounds of a layer say the same."""
    rules = [*more_strict(one.rules, other.rules), *more_strict(other.rules, one.rules)]
    return not rules and said(one) == said(other)


def joined(old: Rule, new: Rule) -> Rule:
    """Return an allow that holds where both hold: the sets it names may have changed."""
    both = (*old.conditions, *new.conditions), (*old.unless, *new.unless)
    return replace(new, compile=lambda table, ref: both)


def numbered(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules, their numbers made unique again."""
    return tuple(replace(rule, number=number) for number, rule in enumerate(rules))
