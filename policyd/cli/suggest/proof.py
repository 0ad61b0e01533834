"""The proof of suggestions: the engine decides every past question with them in force; harmful ones are dropped.

Rules of this module:

1. A printed suggestion allows nothing that was refused, and denies nothing that was approved.
2. A suggestion that settles no prompt is not printed.
3. A suggestion that `policyd check` would warn of is not printed.
4. A harmful general rule is replaced by the exact rules it was made from, which are proved again.
"""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from msgspec import Struct, field

from policyd.audit.rebuild import Undecidable
from policyd.cli.audit.cases import Redecided, Replayer
from policyd.cli.lint import lint
from policyd.cli.suggest.log import Question
from policyd.cli.suggest.rules import FILE, Candidate
from policyd.cli.suggest.text import Page, beside_id
from policyd.model import Effect, Layer
from policyd.policy import PolicyError, PolicySource

ROUNDS = 40


class Before(Struct):
    """The decisions of the rules in force on every question."""

    found: dict[int, Redecided] = field(default_factory=dict)

    @classmethod
    def of(cls, replayer: Replayer, questions: Iterable[Question]) -> Before:
        """Decide every question under the rules in force; those that cannot be decided are left out."""
        before = cls()
        for one in questions:
            try:
                before.found[id(one)] = replayer.decide(one.case)
            except Undecidable:
                continue
        return before


class Proof(Struct):
    """Suggestions, the questions they are tried on, and the result."""

    args: Namespace
    questions: Sequence[Question]
    before: Before
    page: Page
    settled: int = 0
    """Prompts that the suggestions would have saved."""
    doubted: Counter[str] = field(default_factory=Counter)
    """Warning of `policyd check` -> how many approvals led to it."""

    def settle(self) -> None:
        """Drop harmful and useless rules until the rest is proved."""
        for _ in range(ROUNDS):
            replayer = self.replayer()
            if replayer is not None and not self.attempt(replayer) and not self.warned(replayer):
                return
        self.page.rules.clear()  # never printed unproved
        self.settled = 0

    def replayer(self) -> Replayer | None:
        """Put the suggestions in force; None if one of them, or its examples, did not load and was dropped."""
        text = self.page.text()
        try:
            replayer = Replayer(self.args, [PolicySource(FILE, text.encode(), Layer.USER)])
            for one in self.questions:
                replayer.policy(one.case)
        except PolicyError as error:
            own = {diagnostic.rule for diagnostic in error.diagnostics if diagnostic.file == FILE}
            if not own:
                raise
            self.strip(own)
            return None
        return replayer

    def strip(self, names: set[str]) -> None:
        """Drop the examples of rules that do not load, then the rules."""
        for rule in list(self.page.rules):
            if rule.id in names or any(beside_id(rule, n) in names for n in range(1, len(rule.beside) + 1)):
                self.page.plain[rule.id] = self.page.plain.get(rule.id, 0) + 1
                if self.page.plain[rule.id] > 2:
                    self.drop(rule)

    def attempt(self, replayer: Replayer) -> bool:
        """Decide every question; return whether suggestions were dropped."""
        saves: dict[str, int] = {}
        blamed: list[set[str]] = []
        self.settled = 0
        for one in self.questions:
            if id(one) not in self.before.found:
                continue
            was, now = self.before.found[id(one)].effect, replayer.decide(one.case)
            own = suggestions_in(now)
            if own and harmful(one, was, now.effect):
                blamed.append(own)
            decided = {ref.id for ref in now.decision.rules if ref.file == FILE}
            if was is Effect.ASK and now.effect is not Effect.ASK:
                count = one.approved if now.effect is Effect.ALLOW else one.refused
                self.settled += count
                for name in decided:
                    saves[name] = saves.get(name, 0) + count
        harm = self.guilty(blamed, saves)
        idle = {rule.id for rule in self.page.rules if not saves.get(rule.id)}
        for rule in list(self.page.rules):
            rule.saves = saves.get(rule.id, 0)
            if rule.id in harm or (rule.id in idle and not harm):
                self.drop(rule)
        return bool(harm or idle)

    def guilty(self, blamed: Iterable[set[str]], saves: dict[str, int]) -> set[str]:
        """Return the rules to drop so that no harm is left: for each question the general one, or the least useful."""
        owner = {rule.id: rule for rule in self.page.rules}
        owner |= {beside_id(rule, at + 1): rule for rule in self.page.rules for at in range(len(rule.beside))}
        guilty: set[str] = set()
        for names in blamed:
            rules = {owner[name].id: owner[name] for name in names if name in owner}
            if rules and not guilty & rules.keys():
                guilty.add(min(rules.values(), key=lambda one: (not one.instead, saves.get(one.id, 0), one.id)).id)
        return guilty

    def warned(self, replayer: Replayer) -> bool:
        """Drop rules that `policyd check` warns of; return whether there were any."""
        places = replayer.loaded.places
        found = lint(
            replayer.own(), replayer.loaded.base.sources, home=places.home, tmpdir=places.tmpdir, now=datetime.now(UTC)
        )
        named = {one.at.rule: one for one in found if one.at.file == FILE}
        for rule in [one for one in self.page.rules if one.id in named]:
            if not rule.instead:
                self.doubted[f"`policyd check` would warn of {named[rule.id].name}"] += rule.answers
            self.drop(rule)
        return bool(named)

    def drop(self, rule: Candidate) -> None:
        """Drop a rule; the exact ones it was made from replace a general one."""
        self.page.rules.remove(rule)
        self.page = Page([*self.page.rules, *rule.instead], self.page.refused, self.page.approved, self.page.plain)


def suggestions_in(found: Redecided) -> set[str]:
    """Return the suggestions that matched in a decision."""
    judged = found.decision.actions
    return {ref.id for one in judged for ref in (*one.hits, *one.possible) if ref.file == FILE}


def harmful(question: Question, was: Effect, now: Effect) -> bool:
    """Say whether a suggestion does harm: allows what was refused, or restricts what was not."""
    if now < was:
        return question.against
    return now > was and (was is Effect.ALLOW or bool(question.approved))
