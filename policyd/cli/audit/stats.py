"""`policyd audit stats`: counts of rules, kinds and prompts, and how people answer them.

A prompt is a question a person answered. Asking somebody who approves nearly everything is no use: a line with at
least 50 prompts, more than 95 % of them approved, is marked; `policyd audit suggest` finds rules that settle these.
Latencies are given separately for decisions policyd made alone and for those that waited for a person.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from policyd.cli.audit.filters import Record, answered, chosen, kinds, wanted
from policyd.cli.ending import counted
from policyd.cli.saying import say_results, shown
from policyd.cli.shapes import listed, values

TIRED_PROMPTS = 50
TIRED_RATE = 0.95


class Tally(Struct):
    """Decisions of one rule, one kind, one day, or all."""

    allow: int = 0
    ask: int = 0
    deny: int = 0
    prompts: int = 0
    approved: int = 0

    def add(self, record: Record) -> None:
        """Count one decision."""
        effect = str(record.get("effect"))
        if effect in {"allow", "ask", "deny"}:
            setattr(self, effect, getattr(self, effect) + 1)
        if answered(record):
            self.prompts += 1
            self.approved += effect == "allow"

    @property
    def decisions(self) -> int:
        """How many decisions there were."""
        return self.allow + self.ask + self.deny

    @property
    def rate(self) -> float | None:
        """The share of prompts that were approved; None without prompts."""
        return self.approved / self.prompts if self.prompts else None

    @property
    def tired(self) -> bool:
        """Whether nearly all of many prompts were approved."""
        return self.prompts >= TIRED_PROMPTS and self.approved > TIRED_RATE * self.prompts

    def facts(self) -> dict[str, object]:
        """Return the counts as JSON."""
        rate = None if self.rate is None else round(self.rate, 4)
        counts = {name: getattr(self, name) for name in ("decisions", "allow", "ask", "deny", "prompts", "approved")}
        return {**counts, "approval_rate": rate, "flagged": self.tired}


class Stats(Struct):
    """Everything counted."""

    total: Tally = field(default_factory=Tally)
    rules: dict[str, Tally] = field(default_factory=dict)
    kinds: dict[str, Tally] = field(default_factory=dict)
    days: dict[str, Tally] = field(default_factory=dict)
    alone: list[float] = field(default_factory=list)
    """Latencies in ms of decisions policyd made alone; questions nobody answered are in neither list."""
    people: list[float] = field(default_factory=list)
    """Latencies in ms of decisions a person made."""
    unasked: list[Record] = field(default_factory=list)
    events: dict[str, int] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Count one record."""
        event = str(record.get("event"))
        if record.get("unasked") is True or event == "unasked":
            self.unasked.append(record)
        elif event != "decision":
            self.events[event] = self.events.get(event, 0) + 1
        else:
            self.decision(record)

    def decision(self, record: Record) -> None:
        """Count one decision, once for each deciding rule and each kind."""
        self.total.add(record)
        rules = dict.fromkeys(str(name) for rule in listed(record.get("rules")) for name in values(rule, "rule"))
        found = dict.fromkeys(str(kind) for row in listed(record.get("actions")) for kind in kinds(row) if kind)
        places = [(self.rules, rules or [f"({record.get('source')})"]), (self.kinds, found or ["(none)"])]
        for table, names in (*places, (self.days, [str(record.get("time"))[:10]])):
            for name in names:
                table.setdefault(name, Tally()).add(record)
        taken = record.get("latency_ms")
        if isinstance(taken, int | float) and (record.get("source") != "prompt" or answered(record)):
            (self.people if answered(record) else self.alone).append(float(taken))


def run(args: Namespace, log: str) -> int:
    """Print the counts."""
    stats = Stats()
    for record in chosen(log, wanted(args)):
        stats.add(record)
    say_results([facts(stats)], lines(stats), as_json=args.json)
    return 0


def quantile(sample: Iterable[float], part: float) -> float | None:
    """Return a quantile of a sample (nearest rank), None if it is empty."""
    ordered = sorted(sample)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else None


def prompts_a_day(stats: Stats) -> float:
    """Return the prompts per day with any decision."""
    return stats.total.prompts / len(stats.days) if stats.days else 0.0


def facts(stats: Stats) -> dict[str, object]:
    """Return everything as one JSON object; latencies in ms."""
    latency = {
        name: {"p50": quantile(sample, 0.5), "p99": quantile(sample, 0.99), "count": len(sample)}
        for name, sample in (("policy", stats.alone), ("people", stats.people))
    }
    tables = {"rules": stats.rules, "kinds": stats.kinds, "days": stats.days}
    return {
        **stats.total.facts(),
        "prompts_a_day": round(prompts_a_day(stats), 2),
        "latency_ms": latency,
        "unasked": [values(record, "time", "seq", "title") for record in stats.unasked],
        "events": stats.events,
        **{name: {key: tally.facts() for key, tally in table.items()} for name, table in tables.items()},
    }


# ---- for people ------------------------------------------------------------------------------------


def lines(stats: Stats) -> Iterator[str]:
    """Yield the report."""
    total = stats.total
    when = f"{counted(total.decisions, 'decision')} on {counted(len(stats.days), 'day')}"
    yield f"{when}: {total.allow} allowed, {total.deny} denied, {total.ask} left open"
    yield f"{total.prompts} prompts, {prompts_a_day(stats):.1f} a day{approved(total)}"
    for name, sample in (("decided by policyd", stats.alone), ("answered by a person", stats.people)):
        if sample:
            yield f"{name}: {took(quantile(sample, 0.5))} p50, {took(quantile(sample, 0.99))} p99"
    for title, table in (("rule", stats.rules), ("kind", stats.kinds), ("day", stats.days)):
        yield from section(title, table)
    if stats.unasked:
        yield from ("", f"{len(stats.unasked)} calls that policy denies ran without being asked for:")
        yield from (f"  {record.get('seq')}  {shown(record.get('title'))}" for record in stats.unasked)
    if stats.events:
        events = ", ".join(f"{count} {shown(name)}" for name, count in sorted(stats.events.items()))
        yield from ("", f"also in the log: {events}")
    if any(tally.tired for tally in (total, *stats.rules.values(), *stats.kinds.values())):
        yield ""
        yield f"! more than {TIRED_RATE:.0%} of {TIRED_PROMPTS} or more prompts were approved: such questions"
        yield "  are clicked away, not answered; `policyd audit suggest` finds rules that settle them"


def section(title: str, table: dict[str, Tally]) -> Iterator[str]:
    """Yield a table: the most prompts first, then the most decisions; days in order."""
    if not table:
        return
    rows = sorted(table.items(), key=lambda item: (-item[1].prompts, -item[1].decisions, item[0]))
    rows = sorted(table.items()) if title == "day" else rows
    width = max(len(title), *(len(shown(name)) for name in table))
    yield from ("", f"  {title:<{width}}  allowed   denied  prompts  approved")
    for name, tally in rows:
        rate = "" if tally.rate is None else f"{tally.rate:.0%}"
        mark = " !" if tally.tired and title != "day" else ""
        yield f"  {shown(name):<{width}}  {tally.allow:7}  {tally.deny:7}  {tally.prompts:7}  {rate:>8}{mark}".rstrip()


def approved(tally: Tally) -> str:
    """Say how many prompts were approved."""
    mark = " !" if tally.tired else ""
    return "" if tally.rate is None else f", {tally.rate:.0%} approved{mark}"


def took(ms: float | None) -> str:
    """Return a duration in a readable unit."""
    if ms is None:
        return "-"
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.2f} ms" if ms >= 0.01 else "under 0.01 ms"
