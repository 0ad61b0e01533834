"""Omissions and misspellings: a related kind that is not denied, an unused set, an unknown agent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from msgspec.structs import replace

from policyd.actions import profiles
from policyd.cli import shapes
from policyd.cli.findings import Review
from policyd.cli.trials.standins import kind_of, written
from policyd.cli.trials.trial import suited
from policyd.model import EFFECTS, Effect, Role
from policyd.policy import Diagnostic, Rule
from policyd.policy.conditions import UrlCondition
from policyd.policy.errors import nearest
from policyd.policy.read import Parsed
from policyd.policy.sets import REFERENCE, shipped
from policyd.urls import UrlPattern, host_keys

FAMILIES = {"@read": ("read", "search"), "@write": ("edit", "delete", "move")}
LOOKING = "a search prints what it finds in files"
CHANGING = "what may not be edited can still be {}"
_DOMAIN = re.compile(r"[^.]*[a-z][^.]*\.(?:[a-z]{2,3}\.[a-z]{2}|[a-z][a-z0-9-]+)").fullmatch
"""A host for which people mean its subdomains too: a name and a top-level domain."""
DONE = {"edit": "edited", "delete": "deleted", "move": "moved away", "read": "read", "search": "searched"}


def check(review: Review) -> None:
    """Find what policies leave out by mistake."""
    for rule in review.rules():
        if rule.effect is not Effect.ALLOW and rule.resource == "path":
            related_kinds(review, rule)
        if rule.effect is not Effect.ALLOW and rule.resource == "url":
            subdomains(review, rule)
        agents(review, rule)
    for parsed in review.files:
        related_defaults(review, parsed)
    unused_sets(review)


# ---- hosts -----------------------------------------------------------------------------------------


def subdomains(review: Review, rule: Rule) -> None:
    """Warn about a denied domain without its subdomains."""
    strict = [other for other in review.rules() if other.effect >= rule.effect]
    covered = {host for other in strict for pattern in _urls(other) for host in pattern.hosts}
    for pattern in _urls(rule):
        if _DOMAIN(pattern.host) and not pattern.path and not covered & {*host_keys(f"x.{pattern.host}")}:
            found = f"`{pattern.source}` is that host alone, none of its subdomains"
            write = f'write `"*.{pattern.host}"` beside it'
            review.warn("gap", rule.ref, found, write, key="url", text=pattern.source)


def _urls(rule: Rule) -> Iterator[UrlPattern]:
    return (each for one in rule.conditions if isinstance(one, UrlCondition) for each in one.patterns)


# ---- neighbours of a kind --------------------------------------------------------------------------


def related_kinds(review: Review, rule: Rule) -> None:
    """Warn about a denied kind if this policy allows a related kind for the same paths."""
    named = kind_of(rule)
    kinds = named.kinds if named and not named.every else None
    one = next((one for one in review.stand_ins.of(rule) or () if one.action.role is not Role.MENTION), None)
    if not kinds or one is None:
        return
    context = suited(review.coverer.context, rule)
    for word, family in FAMILIES.items():
        if not kinds & set(family):
            continue
        missing = [kind for kind in family if kind not in kinds]
        open_ = []
        for kind in missing:
            action = replace(one.action, kinds=frozenset({kind}))
            if review.trial.decide(review.policy, (action,), context).effect < rule.effect:
                open_.append(kind)
        if open_:
            has = ", ".join(f"`{kind}`" for kind in sorted(kinds & set(family)))
            found = f"it names {has} without {', '.join(f'`{kind}`' for kind in open_)}"
            done = " and ".join(DONE[kind] for kind in open_)
            write = f'these paths can still be {done}: write `kind = "{word}"`'
            review.warn("gap", rule.ref, found, write, key="kind")


def related_defaults(review: Review, parsed: Parsed) -> None:
    """Warn about defaults that are looser for a related kind than for the kind itself."""
    given = shapes.table(parsed.raw.get("defaults"))
    given_effects = {key: EFFECTS[word] for key, word in given.items() if isinstance(word, str) and word in EFFECTS}
    for strict, loose, why in (
        ("read", "search", LOOKING),
        ("edit", "delete", CHANGING.format("deleted")),
        ("edit", "move", CHANGING.format("moved away")),
    ):
        if strict in given_effects and loose in given_effects and given_effects[loose] < given_effects[strict]:
            found = f"`{loose}` is looser than `{strict}`: {why}"
            write = f'write `{loose} = "{given_effects[strict].word}"`'
            review.warn_top("gap", parsed, f"defaults.{loose}", found, write)


# ---- sets ------------------------------------------------------------------------------------------


def unused_sets(review: Review) -> None:
    """Warn about sets that no file of their layer or a lower one uses."""
    for parsed in review.files:
        below = [each for each in review.files if each.source.layer <= parsed.source.layer]
        used = {name for each in below for name in references(each)}
        for name in parsed.file.sets:
            if name not in used:
                line = parsed.lines.top(f"sets.{name}")
                near = nearest(name, used - set(shipped()))
                meant = f"name it as it is used, `@{near}`" if near else f"write `@{name}` where it is meant"
                said = f"nothing uses the set `@{name}`", f"{meant}, or remove it"
                at = Diagnostic(parsed.source.name, line, "", *said, parsed.source.layer)
                review.note("unused-set", at, parsed, line)


def references(parsed: Parsed) -> Iterator[str]:
    """Yield the name of every set that a file's conditions or sets name."""
    for text in texts({key: value for key, value in parsed.raw.items() if key in {"rule", "default", "sets"}}):
        if match := REFERENCE.match(text):
            yield match[1]


def texts(value: object) -> Iterator[str]:
    """Yield every text inside tables and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)


# ---- agents ----------------------------------------------------------------------------------------


def agents(review: Review, rule: Rule) -> None:
    """Warn about an unknown agent's name if one that is known is very similar; others may be wire names."""
    names = {profile.short: profile for profile in profiles.shipped().values()} if rule.table.get("agent") else {}
    for text in written(rule.table, "agent"):
        short = text.rpartition("@")[0] if "@" in text[1:] else text
        near = next(iter(get_close_matches(short, names, 1, cutoff=0.75)), "")
        if short not in names and near and profiles.named(short) is None:
            found = f"no agent is known as `{short}`"
            review.warn("unknown-agent", rule.ref, found, f"write `{near}`", key="agent", text=text)
