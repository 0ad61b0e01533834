"""People's answers from the log: each question once, with how often, when and by whom it was approved or refused.

Rules of this module:

1. Refusals are taken from the whole log: a filter must not hide one.
2. A refusal is a person's no, and every denial by rule, default, guard or grant. A dismissed question counts as one
   unless it was approved at other times. Silence, a broken prompt and a cancelled turn are neither.
3. A refusal of one agent's request holds for the same request of any other.
4. A refusal that cannot be reconstructed from its record prevents general rules for anything like it (`Blind`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from policyd.audit.rebuild import Undecidable
from policyd.cli.audit.cases import Case, case, signature
from policyd.cli.audit.filters import PEOPLE, Record, Wanted, answered
from policyd.cli.shapes import listed, table


class Question(Struct):
    """One question, asked once or often."""

    case: Case
    approved: int = 0
    """By a person, in the records that pass the filters."""
    refused: int = 0
    """By a person."""
    denied: int = 0
    """By a rule, a default, the guard or a remembered answer."""
    dismissed: int = 0
    first: str = ""
    last: str = ""
    by: Counter[str] = field(default_factory=Counter)

    @property
    def against(self) -> bool:
        """Whether no suggestion may allow this."""
        return bool(self.refused or self.denied or (self.dismissed and not self.approved))

    def note(self, record: Record) -> None:
        """Add when it was answered, and by whom."""
        time = str(record.get("time"))
        self.first = min(self.first or time, time)
        self.last = max(self.last, time)
        self.by[str(record.get("by"))] += 1


class Blind(Struct):
    """What is known of refusals that cannot be reconstructed."""

    count: int = 0
    everything: bool = False
    """One of them may have been about anything."""
    programs: set[str] = field(default_factory=set)
    tools: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    urls: set[str] = field(default_factory=set)

    def add(self, record: Record) -> None:
        """Add what a record still holds."""
        rows = [table(row) for row in listed(record.get("actions"))]
        self.count += 1
        self.everything |= "whole" in record or not rows
        for row in rows:
            words = listed(row.get("command"))
            self.programs.update(map(str, words[:1]))
            for held, key in ((self.tools, "tool"), (self.paths, "path"), (self.urls, "url")):
                if key in row:
                    held.add(str(row[key]))


class Answers(Struct):
    """All questions of a log."""

    questions: dict[tuple[object, ...], Question] = field(default_factory=dict)
    blind: Blind = field(default_factory=Blind)
    prompts: int = 0
    """Answers of people in the records that pass the filters."""
    unreadable: int = 0
    """Approvals that cannot be reconstructed."""
    rules: Counter[str] = field(default_factory=Counter)
    """Rule named in the log -> how often."""
    decisions: int = 0

    def add(self, record: Record, *, chosen: bool) -> None:
        """Add one record; `chosen`: it passes the filters."""
        if record.get("event") != "decision":
            return
        self.decisions += 1
        self.rules.update(rules_named(record))
        answer = verdict(record)
        self.prompts += chosen and answer in {"approved", "refused", "dismissed"}
        if answer and (chosen or answer != "approved"):
            self.count(record, answer)

    def count(self, record: Record, answer: str) -> None:
        """Count one answer."""
        try:
            one = case(record)
            question = self.questions.setdefault(signature(one), Question(one))
        except Undecidable:
            if answer == "approved":
                self.unreadable += 1
            else:
                self.blind.add(record)
            return
        setattr(question, answer, getattr(question, answer) + 1)
        if answer in {"approved", "refused"}:
            question.note(record)

    @property
    def against(self) -> list[Question]:
        """Questions that no suggestion may allow."""
        return [one for one in self.questions.values() if one.against]

    @property
    def approved(self) -> list[Question]:
        """Questions that were always approved."""
        return [one for one in self.questions.values() if one.approved and not one.against]


def echoed(answers: Answers) -> list[Question]:
    """Return the refused questions for every other agent of the log: a refusal holds for all agents."""
    agents = {str(table(one.case.record.get("agent"))): one.case.record.get("agent") for one in answers.approved}
    found: dict[tuple[object, ...], Question] = {}
    for one in answers.against:
        for agent in agents.values():
            other = replace(one.case, record={**one.case.record, "agent": agent})
            sign = signature(other)
            if known := answers.questions.get(sign):
                known.denied += known is not one
            else:
                found[sign] = Question(other, denied=1)
    return list(found.values())


def collect(records: Iterable[Record], want: Wanted) -> Answers:
    """Return the answers of a whole log; `want` chooses the approvals that count."""
    answers = Answers()
    for record in records:
        answers.add(record, chosen=want(record))
    return answers


def verdict(record: Record) -> str:
    """Return how a question was answered: approved, refused, denied, dismissed, or empty."""
    effect, source = str(record.get("effect")), str(record.get("source"))
    if answered(record):
        return {"allow": "approved", "deny": "refused"}.get(effect, "")
    if effect != "deny":
        return ""
    if source in {"rule", "default", "guard", "grant"}:
        return "denied"
    person = str(record.get("by") or "").partition(":")[0] in PEOPLE
    return "dismissed" if source == "prompt" and person else ""


def rules_named(record: Record) -> set[str]:
    """Return every rule a record names: deciding ones, and all others that matched."""
    rows = [*listed(record.get("rules"))]
    names = {str(table(row).get("rule")) for row in rows} | set(map(str, listed(record.get("matched"))))
    for action in listed(record.get("actions")):
        names.update(map(str, listed(table(action).get("rules"))))
    return names
