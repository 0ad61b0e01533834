"""Counts decisions, for the summary at the end of a run and for `--fail-on-reject`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


class Tally:
    """Decisions counted from their records."""

    def __init__(self) -> None:
        """Nothing was decided."""
        self.effects: Counter[str] = Counter()
        self.rules: Counter[str] = Counter()
        self.unasked = 0
        self.lost = 0
        """Records that could not be written: what they allow is refused."""

    def add(self, record: Mapping[str, object]) -> None:
        """Count one record."""
        event = record.get("event")
        if event == "unasked":
            self.unasked += 1
        if event != "decision":
            return
        effect, rules = record.get("effect"), record.get("rules")
        self.effects[str(effect)] += 1
        for rule in rules if isinstance(rules, list) and rules else ({"rule": record.get("source")},):
            self.rules[f"{effect} {rule['rule']}"] += 1

    @property
    def refused(self) -> bool:
        """Whether anything was refused, including for lack of a record."""
        return self.effects["deny"] > 0 or self.lost > 0

    def lines(self) -> list[str]:
        """Return the summary: the counts, then the rules, the busiest first."""
        head = f"{self.effects['allow']} allowed, {self.effects['deny']} rejected, {self.unasked} unasked"
        if self.lost:
            head += f", {self.lost} refused: they could not be recorded"
        width = max((len(str(count)) for count in self.rules.values()), default=1)
        return [head, *(f"  {count:>{width}}  {name}" for name, count in self.rules.most_common(20))]
