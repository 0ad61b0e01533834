"""Counts what was decided, for the summary at the end of a run and for `--fail-on-reject`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence


class Tally:
    """Decisions counted from their records."""

    def __init__(self) -> None:
        """Nothing was decided."""
        self.effects: Counter[str] = Counter()
        self.rules: Counter[str] = Counter()
        self.unasked = 0

    def add(self, record: Mapping[str, object]) -> None:
        """Count one record."""
        if record.get("event") == "unasked":
            self.unasked += 1
        if record.get("event") != "decision":
            return
        effect = str(record.get("effect"))
        self.effects[effect] += 1
        rules = record.get("rules")
        names = (
            [str(rule["rule"]) for rule in rules if isinstance(rule, Mapping)] if isinstance(rules, Sequence) else []
        )
        for name in names or [str(record.get("source"))]:
            self.rules[f"{effect} {name}"] += 1

    @property
    def refused(self) -> bool:
        """Whether anything was refused."""
        return self.effects["deny"] > 0

    def lines(self) -> list[str]:
        """Return the summary: the counts, then the rules, the busiest first."""
        head = f"{self.effects['allow']} allowed, {self.effects['deny']} rejected, {self.unasked} unasked"
        width = max((len(str(count)) for count in self.rules.values()), default=1)
        return [head, *(f"  {count:>{width}}  {name}" for name, count in self.rules.most_common(20))]
