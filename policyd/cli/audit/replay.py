"""`policyd audit replay [--policy NEW]`: past requests decided again; which decisions change.

The effects of rules are compared: a request that was asked about counts as `ask`, whatever the person answered, and so
does one that a remembered answer settled. Rules are judged as of the time the request was made.

Exit codes: 0; 1 with `--exit-code` if a decision changed or could not be decided; 2 usage or policy errors.
"""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator

from msgspec import Struct, field

from policyd.audit.rebuild import Undecidable
from policyd.cli.audit.cases import Case, Redecided, Replayer, cases
from policyd.cli.audit.filters import Record, chosen, wanted
from policyd.cli.ending import counted
from policyd.cli.saying import say_results, shown
from policyd.cli.shapes import listed, values
from policyd.model import EFFECTS, Effect

LOOKED = "depends on what a directory holds now"


class Change(Struct, frozen=True):
    """A past request that is decided differently now."""

    case: Case
    then: Effect
    now: Redecided

    @property
    def looser(self) -> bool:
        """Whether the effect is less strict now."""
        return self.now.effect < self.then

    def facts(self) -> dict[str, object]:
        """Return the change as JSON."""
        record, decision = self.case.record, self.now.decision
        return {
            "seq": record.get("seq"),
            "id": record.get("id"),
            "time": record.get("time"),
            "session": record.get("session"),
            "title": record.get("title"),
            "then": self.then.word,
            "now": self.now.effect.word,
            "answered": record.get("effect"),
            "looser": self.looser,
            "rules_then": [name for rule in listed(record.get("rules")) for name in values(rule, "rule")],
            "rules_now": [ref.label for ref in decision.rules],
            "reason": decision.reason,
            **({"looked": True} if self.now.looked else {}),
        }


class Outcome(Struct):
    """The result of a replay."""

    same: int = 0
    changes: list[Change] = field(default_factory=list)
    undecidable: list[tuple[Record, str]] = field(default_factory=list)


def run(args: Namespace, log: str) -> int:
    """Print which decisions change."""
    outcome = replay(args, log)
    say_results(facts(outcome), lines(outcome), as_json=args.json)
    return int(args.exit_code and bool(outcome.changes or outcome.undecidable))


def replay(args: Namespace, log: str) -> Outcome:
    """Decide the wanted requests of a log again."""
    replayer, outcome = Replayer(args), Outcome()
    for one in cases(chosen(log, wanted(args))):
        if isinstance(one, Case):
            again(replayer, one, outcome)
        else:
            outcome.undecidable.append(one)
    return outcome


def again(replayer: Replayer, one: Case, outcome: Outcome) -> None:
    """Decide one request again."""
    try:
        then, now = rules_effect(one.record), replayer.decide(one)
    except Undecidable as error:
        outcome.undecidable.append((one.record, str(error)))
        return
    if then is now.effect:
        outcome.same += 1
    else:
        outcome.changes.append(Change(one, then, now))


def rules_effect(record: Record) -> Effect:
    """Return the effect of the rules on a request then.

    Raises:
        Undecidable: rules did not decide it.
    """
    source = str(record.get("source"))
    if source == "error":
        raise Undecidable("it was refused because something failed, not by a rule")
    if source in {"prompt", "grant"}:
        return Effect.ASK
    named = [record.get("effect")]
    if record.get("door"):  # reads inside pass where rules would ask
        named = [effect for action in listed(record.get("actions")) for effect in values(action, "effect")]
    effects = [EFFECTS[str(name)] for name in named if str(name) in EFFECTS]
    if not effects:
        raise Undecidable("it does not say what was decided")
    return max(effects)


def facts(outcome: Outcome) -> Iterator[dict[str, object]]:
    """Yield each change, each request that cannot be decided, then a summary."""
    for change in outcome.changes:
        yield change.facts()
    for record, why in outcome.undecidable:
        yield {"seq": record.get("seq"), "id": record.get("id"), "undecidable": why}
    yield {
        "same": outcome.same,
        "changed": len(outcome.changes),
        "looser": sum(change.looser for change in outcome.changes),
        "undecidable": len(outcome.undecidable),
    }


def lines(outcome: Outcome) -> Iterator[str]:
    """Yield the report for people, looser changes first."""
    for change in sorted(outcome.changes, key=lambda change: not change.looser):
        record, now = change.case.record, change.now
        mark = "!" if change.looser else " "
        yield f"{mark} {record.get('seq')}  {change.then.word} -> {now.effect.word}  {shown(record.get('title'))}"
        rules = ", ".join(shown(ref.label) for ref in now.decision.rules) or "-"
        yield f"      {rules}: {shown(now.decision.reason)}" + (f"; {LOOKED}" if now.looked else "")
    looser = sum(change.looser for change in outcome.changes)
    count = len(outcome.changes)
    summary = f"{counted(outcome.same, 'decision')} {'stays' if outcome.same == 1 else 'stay'}, {count} "
    summary += "changes" if count == 1 else "change"
    yield summary + (f", {looser} of them to something looser (!)" if looser else "")
    if outcome.undecidable:
        yield f"{len(outcome.undecidable)} cannot be decided again:"
        yield from (
            f"  {count}: {shown(why)}" for why, count in Counter(w for _, w in outcome.undecidable).most_common()
        )
