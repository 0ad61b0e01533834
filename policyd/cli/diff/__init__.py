"""`policyd diff OLD NEW`: which decisions change between two policies, and whether NEW is looser.

Rules of this command:

1. The rules are compared first. If they show that no decision can loosen, that is the answer, and it is proved.
2. Otherwise requests are tried: drafted from the patterns of both policies, and recorded ones given with `--log`. Every
   reported loosening was observed: on its request, with the decision of each policy.
3. If a loosening is neither found nor ruled out, the answer says so and lists the changes in doubt; `--prove` counts
   that as looser.
4. Exit code 0: not looser; 1: looser; 2: usage or policy errors.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime

from policyd.cli import options
from policyd.cli.diff.changes import MOST_REQUESTS, Change, Changes, changes, memory, try_recorded, where
from policyd.cli.diff.recorded import Log
from policyd.cli.ending import counted
from policyd.cli.loading import managed_in
from policyd.cli.saying import say_results
from policyd.cli.trials.tree import Tree
from policyd.cli.trials.trial import Trial
from policyd.display import safe
from policyd.model import Decision, Effect, Layer, RuleRef
from policyd.policy import Policy
from policyd.storage import policies
from policyd.storage.places import Places, find

WIDTH = 200
MOST_STRICTER = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `policyd diff`."""
    add = parser.add_argument
    add("old", metavar="OLD", help="policy file or directory in force")
    add("new", metavar="NEW", help="policy file or directory that may replace it")
    add("--managed-old", metavar="DIR", help="managed policies above OLD")
    add("--managed-new", metavar="DIR", help="managed policies above NEW (default: those above OLD)")
    add("--layer", choices=("user", "managed"), default="user", help="the layer OLD and NEW belong to (default: user)")
    add("--log", action="append", default=[], metavar="FILE", help="also try what this audit log or transcript holds")
    drafts = f"drafted requests (default {MOST_REQUESTS})"
    add("--requests", type=options.counting("requests", 0), default=MOST_REQUESTS, metavar="N", help=drafts)
    add("--prove", action="store_true", help="count as looser whatever is not proved to be as strict")
    add("--cwd", type=options.directory, metavar="DIR", help="workspace of the requests (default: one below home)")
    options.add_home(parser)
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Compare; return the exit code."""
    here = find(home=args.home)
    old = loaded(args.old, args.managed_old, args.layer, here)
    new = loaded(args.new, args.managed_new or args.managed_old, args.layer, here)
    found = tried(args, old, new, here)
    say_results(facts(found, old, new), lines(found, old, new), as_json=args.json)
    return 1 if found.loosenings or (args.prove and not found.proved) else 0


def loaded(name: str, managed: str | None, layer: str, here: Places) -> Policy:
    """Load one side.

    Raises:
        PolicyError: every mistake of its files.
    """
    found, disk = policies.given([name], Layer.MANAGED if layer == "managed" else Layer.USER), Tree()
    if managed:
        found += managed_in(managed)
    return policies.loaded_at(here, found.sources, disk)


def tried(args: argparse.Namespace, old: Policy, new: Policy, here: Places) -> Changes:
    """Compare two policies and try requests."""
    trial = Trial.open(here.home, {*old.heads, *new.heads}, cwd=args.cwd, now=datetime.now(UTC))
    found = changes(old, new, trial, most=args.requests)
    for name in args.log:
        try_recorded(found, old, new, trial, Log(name, trial.conversation, (*old.heads, *new.heads)))
    return found


# ---- in words --------------------------------------------------------------------------------------


def lines(found: Changes, old: Policy, new: Policy) -> Iterator[str]:
    """Yield the answer for people."""
    yield "; ".join(
        f"{name} {each.revision}, {counted(len(each.rules), 'rule')}" for name, each in (("old", old), ("new", new))
    )
    differ = found.comparison
    yield from (f"  - {rule.ref.effect.word:5} {placed(rule.ref)}" for rule in differ.removed)
    yield from (f"  + {rule.ref.effect.word:5} {placed(rule.ref)}" for rule in differ.added)
    yield from (f"  {line}" for line in (*differ.defaults, *differ.locks))
    for change in sorted(found.loosenings, key=lambda each: -each.count):
        yield from in_words(change)
    stricter = sorted((c for c in found.found.values() if not c.looser), key=lambda each: -each.count)
    for change in stricter[:MOST_STRICTER]:
        yield from in_words(change)
    if len(stricter) > MOST_STRICTER:
        yield f"stricter in {len(stricter) - MOST_STRICTER} more ways; `--json` has them all"
    yield verdict(found)
    if not found.loosenings and not found.proved:
        yield from (f"  not settled by comparing the rules: {why}" for why in differ.suspects)
    yield method(found)


def placed(ref: RuleRef) -> str:
    """Return a rule with its file and line."""
    return f"{safe(ref.label)}{ref.place}"


def in_words(change: Change) -> Iterator[str]:
    """Yield the lines of one change."""
    word = "LOOSER" if change.looser else "stricter"
    more = f"  (and {change.count - 1} more like it)" if change.count > 1 else ""
    session = f"  [{safe(change.session)}]" if change.session else ""
    effects = f"{effect_words(change.old)} -> {effect_words(change.new)}"
    yield f"{word:8} {effects}: {safe(change.request, limit=WIDTH)}{session}{more}"
    yield f"         was {where(change.old.rules)}; is {where(change.new.rules)}"


def effect_words(decision: Decision) -> str:
    """Return an effect, with the memory of an ask if it is limited."""
    short = decision.effect is Effect.ASK and memory(decision) != "project"
    return decision.effect.word + (f" (remember {memory(decision)})" if short else "")


def verdict(found: Changes) -> str:
    """Return the answer in one line."""
    if found.loosenings:
        return f"NEW is looser, in {counted(len(found.loosenings), 'way')} shown above"
    if found.comparison.same:
        return "NEW decides as OLD does"
    return "NEW is not looser" if found.proved else "NEW was not seen to be looser"


def method(found: Changes) -> str:
    """Say how the answer was found."""
    tries = [f"{found.drafted} drafted requests"] if found.drafted else []
    tries += [f"{found.recorded} recorded ones"] if found.recorded else []
    tries += [f"({found.left_out} records hold too little to decide)"] if found.left_out else []
    if found.loosenings:
        return f"answered by requests: {' and '.join(tries)}, each decided under both"
    if found.proved:
        return "answered by comparing the rules" + (f"; {' and '.join(tries)} agree" if tries else "")
    return f"answered by requests, not proved: {' and '.join(tries) or 'none was tried'}"


# ---- as JSON ---------------------------------------------------------------------------------------


def facts(found: Changes, old: Policy, new: Policy) -> Iterator[dict[str, object]]:
    """Yield a JSON object for each change, then a summary."""
    for change in found.found.values():
        yield {
            "change": "looser" if change.looser else "stricter",
            "request": change.request,
            "session": change.session,
            "from": change.source,
            "count": change.count,
            "old": side(change.old),
            "new": side(change.new),
        }
    differ = found.comparison
    yield {
        "looser": bool(found.loosenings),
        "proved": found.proved and not found.loosenings,
        "same": differ.same,
        "method": "requests" if found.loosenings or not found.proved else "rules",
        "untold": [] if found.loosenings else differ.suspects,
        "removed": [rule.ref.label for rule in differ.removed],
        "added": [rule.ref.label for rule in differ.added],
        "defaults": differ.defaults,
        "locks": differ.locks,
        "requests": {"drafted": found.drafted, "recorded": found.recorded, "left_out": found.left_out},
        "old": old.revision,
        "new": new.revision,
    }


def side(decision: Decision) -> dict[str, object]:
    """Return one side's decision."""
    rules = [ref.label for ref in decision.rules]
    return {"effect": decision.effect.word, "rules": rules, "reason": decision.reason, "remember": memory(decision)}
