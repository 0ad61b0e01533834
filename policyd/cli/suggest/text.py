"""Suggestions as a policy file: each rule with its evidence in comments, and with examples."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import tomli_w
from msgspec import Struct, field

from policyd.cli.ending import counted
from policyd.cli.shapes import unlisted
from policyd.cli.suggest.rules import Candidate
from policyd.cli.suggest.write import Ask, Table, example, likeness, near
from policyd.display import in_toml, safe
from policyd.model import Effect

MOST_EXAMPLES = 5
MOST_NEAR = 3


class Page(Struct):
    """The rules of a file, with ids, and which of their examples are left out because they fail."""

    rules: list[Candidate]
    refused: Sequence[Ask] = ()
    approved: Sequence[Ask] = ()
    plain: dict[str, int] = field(default_factory=dict)
    """Rule id -> 1: without `not_match`; 2: without any example."""

    def __post_init__(self) -> None:
        """Name the rules."""
        taken: set[str] = set()
        for rule in self.rules:
            rule.id = rule.id or fresh(slug(rule), taken)
            taken.add(rule.id)

    def text(self, head: Iterable[str] = ()) -> str:
        """Return the file; `head`: lines of comment to begin with."""
        lines = [*(comment(line) for line in head), "version = 1", ""]
        for rule in self.rules:
            lines += [*(comment(line) for line in evidence(rule)), *self.written(rule)]
        return "\n".join(lines)

    def written(self, rule: Candidate) -> Iterator[str]:
        """Yield a rule as TOML, and those that belong to it."""
        yield in_toml(tomli_w.dumps({"rule": [self.table(rule)]}))
        for number, table in enumerate(rule.beside, 1):
            whole = {"id": beside_id(rule, number), "effect": "ask", **unlisted(table), "reason": BESIDE}
            yield comment(f"belongs to `{rule.id}`: leave both in, or both out")
            yield in_toml(tomli_w.dumps({"rule": [whole]}))

    def table(self, rule: Candidate) -> Table:
        """Return a rule with id, reason and examples."""
        table: Table = {"id": rule.id, "effect": rule.effect.word, **unlisted(rule.table), "reason": reason(rule)}
        left_out = self.plain.get(rule.id, 0)
        if left_out < 2:
            table["match"] = unique(map(example, rule.asks))[:MOST_EXAMPLES]
        if left_out < 1 and (others := self.near(rule)):
            table["not_match"] = others
        return table

    def near(self, rule: Candidate) -> list[object]:
        """Return examples a rule must not match: questions answered differently, else a made-up one."""
        one = rule.asks[0]
        other = self.refused if rule.effect is Effect.ALLOW else self.approved
        alike = sorted(((likeness(one, each), at) for at, each in enumerate(other)), reverse=True)
        found = unique(example(other[at]) for degree, at in alike if degree)[:MOST_NEAR]
        return found or ([near(one)] if rule.effect is Effect.ALLOW else [])


BESIDE = "this option makes the program run, load or write something else"


def beside_id(rule: Candidate, number: int) -> str:
    """Return the name of a rule that belongs to another."""
    return f"{rule.id}-options" + (str(number) if number > 1 else "")


def reason(rule: Candidate) -> str:
    """Return a rule's reason."""
    if rule.effect is Effect.ALLOW:
        return f"approved {times(rule.answers)}, never refused"
    return f"refused {times(rule.answers)}, never approved"


def times(count: int) -> str:
    """Return how often in words."""
    return "once" if count == 1 else f"{count} times"


def evidence(rule: Candidate) -> Iterator[str]:
    """Yield the evidence for a rule: how often, when and by whom it was answered."""
    questions = list({id(one.question): one.question for one in rule.asks}.values())
    by: Counter[str] = Counter()
    users: Counter[str] = Counter()
    for one in questions:
        by.update(one.by)
        users[str(one.case.record.get("user") or "")] += 1
    first, last = min(one.first for one in questions)[:10], max(one.last for one in questions)[:10]
    when = f"on {first}" if first == last else f"{first} to {last}"
    variants = len({one.key for one in rule.asks})
    ways = f" in {variants} variants" if variants > 1 else ""
    yield f"would have settled {rule.saves} prompts: {reason(rule)}{ways}, {when}"
    people = ", ".join(name for name in users if name)
    answered = ", ".join(f"{name} ({counted(count, 'time')})" for name, count in by.most_common())
    yield f"answered by way of {answered}" + (f"; user {people}" if people else "")


def slug(rule: Candidate) -> str:
    """Return an id for a rule, derived from its resource."""
    resource = next(name for name in ("command", "path", "url", "tool") if name in rule.table)
    value = rule.table[resource]
    text = str(value[0]) if isinstance(value, list) else str(value)
    if resource == "command":
        words = [word.rsplit("/", 1)[-1] for word in text.split(" ")[:4]]
    else:
        words = [*rule.asks[0].key.kinds[:1], *text.split("/")[-2:]]
    name = re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")[:40].strip("-")
    return f"{'no-' if rule.effect else ''}{name or resource}"


def fresh(name: str, taken: set[str]) -> str:
    """Return `name`, with a number if it is taken."""
    numbers = (name if at == 1 else f"{name}-{at}" for at in range(1, len(taken) + 2))
    return next(each for each in numbers if each not in taken)


def unique(items: Iterable[object]) -> list[object]:
    """Return items without repetition, in order."""
    found: list[object] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found


def comment(line: str) -> str:
    """Return one line of comment."""
    return f"# {safe(line, limit=300)}".replace("\n", " ").rstrip()
