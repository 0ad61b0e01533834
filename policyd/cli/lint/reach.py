"""Rules that can never decide: void, outranked, redundant, excepted entirely, expired."""

from __future__ import annotations

from collections.abc import Iterable

from policyd.cli import shapes
from policyd.cli.findings import Review, shown
from policyd.cli.trials.covering import tables
from policyd.cli.trials.standins import StandIn, written
from policyd.model import Effect, Layer
from policyd.policy import Entry, LayerDefaults, Rule
from policyd.policy.attributes import UntilCondition
from policyd.policy.layers import merged
from policyd.policy.read import Parsed
from policyd.policy.sets import shipped

MOST_NAMED = 3
STRICTER = {Effect.ALLOW: (Effect.ASK, Effect.DENY), Effect.ASK: (Effect.DENY,), Effect.DENY: ()}
DOES = {Effect.ALLOW: "allowed", Effect.ASK: "asked about", Effect.DENY: "denied"}


def check(review: Review) -> None:
    """Find rules and defaults that can never decide."""
    for rule in review.policy.rules:
        if rule.void:
            write = cure_of_void(rule.void, ", or move the rule to your own policy")
            review.warn("void", rule.ref, f"it does not count: {rule.void}", write, key="effect")
        elif not expired(review, rule):
            swallowed(review, rule)
            outranked(review, rule)
            overridden(review, rule)
    for layer in review.policy.defaults:
        for rule in layer.rules:
            expired(review, rule)
    for parsed in review.files:
        void_defaults(review, parsed)
    outranked_defaults(review)


def cure_of_void(void: str, other: str = "") -> str:
    """Say what to do about a void rule; `other`: an alternative if trust is missing."""
    if "trusted" in void:
        return f"run `policyd trust` in the project{other}"
    return "remove it, or ask whoever keeps the managed policy"


def expired(review: Review, rule: Rule) -> bool:
    """Warn about an expired rule; return whether it is."""
    until = next((c.moment for c in rule.conditions if isinstance(c, UntilCondition)), None)
    if until is None or review.now < until:
        return False
    found = f"it ended {until.isoformat()}: since then it never holds"
    review.warn("expired", rule.ref, found, "remove the rule, or move `until`", key="until")
    return True


# ---- exceptions ------------------------------------------------------------------------------------


def swallowed(review: Review, rule: Rule) -> None:
    """Warn about exceptions that leave nothing of their rule, or that never apply to it."""
    if not rule.unless:
        return
    stand_ins = [one for one in review.stand_ins.of(rule) or () if not one.deep]
    if not stand_ins:
        return
    if all(any(review.coverer.surely_excepts(table, one.action) for table in rule.unless) for one in stand_ins):
        found = "its `unless` covers all it is about, so nothing is left of it"
        review.warn("swallowed", rule.ref, found, "narrow the exception, or remove the rule", key="unless")
        return
    if any(text[1:].partition(".")[0] in shipped() for text in written(rule.table, rule.resource)):
        return  # shipped sets change with releases, so the exception may apply later
    for conditions, raw in zip(rule.unless, tables(rule), strict=True):
        if not any(review.coverer.may_except(conditions, one.action) for one in stand_ins):
            text = next(iter(written(raw, rule.resource)), "") if isinstance(raw, dict) else ""
            found = "this exception never holds: it names nothing the rule is about"
            review.warn("idle-exception", rule.ref, found, "correct or remove it", key="unless", text=text)


# ---- covered by others -----------------------------------------------------------------------------


def outranked(review: Review, rule: Rule) -> None:
    """Warn about a rule, or single patterns of one, that stricter or equal rules cover."""
    stand_ins = review.stand_ins.of(rule)
    if not stand_ins:
        return
    for effects, note in ((STRICTER[rule.effect], note_outranked), ((rule.effect,), note_redundant)):
        over: dict[StandIn, Rule | None] = {}
        for one in stand_ins if effects else ():
            over[one] = first(review, rule, one, effects)
            if over[one] is None and (rule.effect is not Effect.ALLOW or note is note_redundant):
                break
        if over and all(over.values()):
            note(review, rule, [each for each in over.values() if each])
            return
        if note is note_outranked:
            outranked_patterns(review, rule, over)


def first(review: Review, rule: Rule, one: StandIn, effects: Iterable[Effect]) -> Rule | None:
    """Return a rule that leaves `rule` without effect for a stand-in: the strictest, then the highest."""
    found = [each for each in review.coverer.covering(review.policy, rule, one, effects) if leaves_nothing(each, rule)]
    return max(found, key=lambda each: (each.effect, each.rank, -each.number), default=None)


def leaves_nothing(wide: Rule, narrow: Rule) -> bool:
    """Say whether covering by `wide` leaves `narrow` nothing to do."""
    if wide.effect is not narrow.effect:
        return True
    if wide.rank < narrow.rank or wide.ref.remember != narrow.ref.remember:
        return False
    if (wide.opaque, wide.escalate) != (narrow.opaque, narrow.escalate) and narrow.opaque | narrow.escalate:
        return False
    if wide.effect is not Effect.ALLOW and narrow.ref.reason not in ("", wide.ref.reason):
        return False
    return wide.effect is not Effect.ALLOW or carries(wide) or not carries(narrow)


def carries(rule: Rule) -> bool:
    """Say whether an allow of commands extends to their files."""
    entries = [entry for c in rule.conditions for entry in getattr(c, "entries", ())]
    return all(getattr(entry, "carries", True) for entry in entries)


def note_outranked(review: Review, rule: Rule, over: list[Rule]) -> None:
    """Warn about a rule that others always override."""
    found = f"it never decides: all it names is {by(over)}"
    review.warn("outranked", rule.ref, found, cure(rule, over), key="effect")


def outranked_patterns(review: Review, rule: Rule, over: dict[StandIn, Rule | None]) -> None:
    """Warn about single patterns of an allow that other rules always override."""
    patterns = dict.fromkeys(one.pattern for one in over if not one.pattern.startswith("@"))
    if rule.effect is not Effect.ALLOW or len(patterns) < 2:
        return
    own = written(rule.table, rule.resource)
    idle: dict[tuple[str, str, str], list[str]] = {}
    for pattern in patterns:
        rules = [each for one, each in over.items() if one.pattern == pattern]
        strict = [each for each in rules if each]
        if len(strict) == len(rules):
            text = pattern if pattern in own else ""  # patterns of one set share a finding
            idle.setdefault((text, by(strict), cure(rule, strict)), []).append(pattern)
    for (text, who, write), found in idle.items():
        review.warn("outranked", rule.ref, f"{never(found)} {who}", write, key=rule.resource, text=text)


def never(patterns: list[str]) -> str:
    """Return the beginning of a sentence on patterns that never count."""
    names = ", ".join(f"`{each}`" for each in patterns[:MOST_NAMED])
    if len(patterns) == 1:
        return f"{names} never counts here: it is"
    more = f" and {len(patterns) - MOST_NAMED} more" if len(patterns) > MOST_NAMED else ""
    return f"{names}{more} never count here: they are"


def note_redundant(review: Review, rule: Rule, over: list[Rule]) -> None:
    """Warn about a rule that changes nothing; of two equal ones about the later."""
    if any(twins(review, rule, each) and each.number > rule.number for each in over):
        return
    found = f"it changes nothing: all it names is {by(over)}"
    review.warn("redundant", rule.ref, found, "remove it, or say in it what is different", key=rule.resource or "kind")


def twins(review: Review, rule: Rule, other: Rule) -> bool:
    """Say whether `rule` covers `other` in turn."""
    stand_ins = review.stand_ins.of(other) or ()
    return all(review.coverer.covers(rule, other, one) and leaves_nothing(rule, other) for one in stand_ins)


def by(rules: Iterable[Rule]) -> str:
    """Return which rules decide instead, and how."""
    unique = list({rule.number: rule for rule in rules}.values())
    effect = max(rule.effect for rule in unique)
    more = f" and {len(unique) - MOST_NAMED} more" if len(unique) > MOST_NAMED else ""
    return f"{DOES[effect]} by {', '.join(shown(rule.ref) for rule in unique[:MOST_NAMED])}{more}"


def cure(rule: Rule, over: list[Rule]) -> str:
    """Return what to do about a rule that stricter ones override."""
    wide = over[0]
    if wide.rank > rule.rank:
        return f"remove it: only whoever keeps the {wide.ref.layer.word} policy can lift `{wide.ref.label}`"
    if rule.effect is not Effect.ALLOW:
        return f"remove it, or give `{wide.ref.label}` an `unless` for it"
    exception = f"give `{wide.ref.label}` an `unless` for it"
    return f"{exception}, or turn that rule into a `[[default]]`, which yields to any rule that matches"


# ---- defaults --------------------------------------------------------------------------------------


def overridden(review: Review, rule: Rule) -> None:
    """Warn about an allow that a default of a higher layer always overrides."""
    if rule.effect is not Effect.ALLOW or not (stand_ins := review.stand_ins.of(rule)):
        return
    strict = [default_above(review, rule, one) for one in stand_ins]
    if all(strict):
        entry = max((each for each in strict if each), key=lambda each: each.effect)
        found = f"it never decides: all it names is {DOES[entry.effect]} by the default {shown(entry.ref)}"
        write = "remove it: only a rule there, or `delegate = true` beside that default, makes room for yours"
        review.warn("outranked", rule.ref, found, write, key="effect")


def default_above(review: Review, rule: Rule, one: StandIn) -> Entry | None:
    """Return the deny or ask default of a higher layer that surely applies to a stand-in."""
    ranks = {each.rank for each in review.policy.candidates(one.action, review.coverer.context)}
    for layer in review.policy.defaults:
        if layer.rank > rule.rank and not layer.rules and all(rank < layer.rank for rank in ranks):
            entries = [e for e in layer.of(one.action) if e.effect is not Effect.ALLOW and not e.delegate]
            if entries:
                return max(entries, key=lambda each: each.effect)
    return None


def void_defaults(review: Review, parsed: Parsed) -> None:
    """Warn about allows in `[defaults]` and `[[default]]` that a lock or missing trust makes void."""
    source = parsed.source
    trusted = source.layer is not Layer.PROJECT or source.trusted
    void = review.policy.lock.voids(source.layer, trusted=trusted)
    if not void:
        return
    write = cure_of_void(void)
    for key, word in shapes.table(parsed.raw.get("defaults")).items():
        if word == Effect.ALLOW.word:
            review.warn_top("void", parsed, f"defaults.{key}", f"`{key}` = allow does not count: {void}", write)
    for number, block in parsed.defaults:
        if block["effect"] == Effect.ALLOW.word:
            line = parsed.line("default", number)
            key = f"{source.name}:{line}"
            review.warn_top("void", parsed, "default", f"the `[[default]]` at {key} does not count: {void}", write)


def outranked_defaults(review: Review) -> None:
    """Warn about entries of `[defaults]` that stricter ones of a higher layer always override."""
    layers = by_rank(review.policy.defaults)
    for rank, entries in layers.items():
        for key, entry in entries.items():
            for above in (r for r in layers if r > rank):
                higher = layers[above].get(key) or (layers[above].get("*") if key not in {"outside", "mcp"} else None)
                if higher and higher.effect > entry.effect and not higher.delegate:
                    note_default(review, key, entry, higher)


def by_rank(defaults: Iterable[LayerDefaults]) -> dict[Layer, dict[str, Entry]]:
    """Return the `[defaults]` of each layer."""
    found: dict[Layer, dict[str, Entry]] = {}
    for layer in defaults:
        found[layer.rank] = merged(found.get(layer.rank, {}), layer.entries)
    return found


def note_default(review: Review, key: str, entry: Entry, higher: Entry) -> None:
    """Warn about one entry that never counts."""
    parsed = next((p for p in review.files if p.source.name == entry.ref.file), None)
    if parsed is None:
        return
    found = f"`{key}` never decides: it is {DOES[higher.effect]} by the stricter default {shown(higher.ref)}"
    review.warn_top("outranked", parsed, f"defaults.{key}", found, "remove it")
