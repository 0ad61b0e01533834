"""What a changed policy means for running sessions: is it looser, what stays of a vanished file, how to only tighten.

Pure functions over compiled policies. Where it cannot be shown that a change only tightens, it counts as loosening.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from policyd.model import Effect, Layer
from policyd.policy import LayerDefaults, Lock, Policy, PolicySource, Rule

Signature = tuple[object, ...]


def signature(rule: Rule) -> Signature:
    """Return what makes two rules of two loads the same rule: where it counts, what it says."""
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
    return not (gone or come) or grounds(old) != grounds(new) or not old.lock.refuse <= new.lock.refuse


def grounds(policy: Policy) -> list[Signature]:
    """Return what a policy's defaults say."""
    return [
        (
            each.rank,
            sorted((key, entry.effect, entry.delegate) for key, entry in each.entries.items()),
            *map(signature, each.rules),
        )
        for each in policy.defaults
    ]


def with_vanished(new: Policy, old: Policy, files: Iterable[str]) -> Policy:
    """Return `new` with what `old` refused or asked in files that are no longer there (`files`: those that are)."""
    present = set(files)
    kept = [rule for rule in old.rules if rule.ref.file not in present and rule.effect is not Effect.ALLOW]
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


def strict_ground(ground: LayerDefaults, present: set[str]) -> LayerDefaults:
    """Return what of a layer's defaults came from files that vanished and is no allow."""
    entries = {
        key: entry
        for key, entry in ground.entries.items()
        if entry.ref.file not in present and entry.effect is not Effect.ALLOW
    }
    rules = tuple(r for r in ground.rules if r.ref.file not in present and r.effect is not Effect.ALLOW)
    return LayerDefaults(ground.rank, entries, rules)


def tightened(old: Policy, new: Policy) -> Policy:
    """Return a policy that allows only what both allow, and asks and refuses what either does."""
    allows = {signature(rule): rule for rule in old.rules if rule.effect is Effect.ALLOW}
    both = [joined(allows[signature(rule)], rule) for rule in new.rules if signature(rule) in allows]
    strict = [rule for policy in (new, old) for rule in policy.rules if rule.effect is not Effect.ALLOW]
    return replace(
        new,
        rules=numbered((*both, *strict)),
        defaults=(*new.defaults, *old.defaults),
        lock=Lock(old.lock.refuse | new.lock.refuse, old.lock.settings | new.lock.settings),
        heads=tuple(dict.fromkeys((*new.heads, *old.heads))),
        revision=f"{new.revision}+tightened",
    )


def joined(old: Rule, new: Rule) -> Rule:
    """Return an allow that holds where both hold: the sets it names may have changed."""
    both = (*old.conditions, *new.conditions), (*old.unless, *new.unless)
    return replace(new, compile=lambda table, ref: both)


def numbered(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules, their numbers made unique again."""
    return tuple(replace(rule, number=number) for number, rule in enumerate(rules))
