"""`policyd audit suggest [--min N] [--unused]`: rules for questions that people always answered the same way.

The output is a policy file: the rule that saves most prompts first, each with its evidence and with examples. The
engine has decided every past question with this policy in force: it allows nothing that was ever refused.
`--unused` prints the reverse: allow rules in force that nothing in the log used.

Exit codes: 0; 2 usage or policy errors.
"""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from policyd.cli.audit.cases import Replayer
from policyd.cli.audit.filters import chosen, wanted
from policyd.cli.ending import DONE, counted
from policyd.cli.saying import say_json, say_results, say_verbatim
from policyd.cli.suggest.log import Answers, collect, echoed
from policyd.cli.suggest.proof import Before, Proof
from policyd.cli.suggest.rules import Candidate, asked, candidates
from policyd.cli.suggest.text import Page, evidence
from policyd.model import Effect


class Suggestions(Struct, frozen=True):
    """The suggestions from a log."""

    page: Page
    settled: int
    answers: Answers
    unsuggested: Counter[str]
    """Why approvals led to no rule -> how many."""


def run(args: Namespace, log: str) -> int:
    """Print suggestions, or unused rules."""
    answers = collect(chosen(log, lambda record: True), wanted(args))
    replayer = Replayer(args)
    if args.unused:
        return unused(replayer, answers, as_json=args.json)
    found = suggest(args, answers, replayer)
    if args.json:
        say_json(*facts(found))
    else:
        say_verbatim(found.page.text(head(found)))
    return 0


def suggest(args: Namespace, answers: Answers, replayer: Replayer) -> Suggestions:
    """Return proved suggestions from a log."""
    questions = [*echoed(answers), *answers.questions.values()]
    before = Before.of(replayer, questions)
    unsuggested: Counter[str] = Counter()
    approved, refused = [], []
    for one in questions:
        found = before.found.get(id(one))
        if found is None or found.effect is not Effect.ASK or not (one.approved or one.refused):
            continue
        ask = asked(one, found.decision.actions)
        if isinstance(ask, str):
            unsuggested[ask] += one.approved
        elif not one.against:
            approved.append(ask)
        elif not one.approved:
            refused.append(ask)
    rules = candidates(approved, Effect.ALLOW, args.min, answers.blind)
    rules += candidates(refused, Effect.DENY, args.min, answers.blind)
    proof = Proof(args, questions, before, Page(rules, refused, approved))
    proof.settle()
    unsuggested += proof.doubted
    proof.page.rules.sort(key=lambda rule: (-rule.saves, rule.id))
    return Suggestions(proof.page, proof.settled, answers, unsuggested)


# ---- printing --------------------------------------------------------------------------------------


def head(found: Suggestions) -> Iterator[str]:
    """Yield the comment at the beginning of the file."""
    answers, rules = found.answers, len(found.page.rules)
    prompts = counted(answers.prompts, "prompt")
    if rules:
        yield f"{counted(rules, 'rule')} suggested by `policyd audit suggest`: would have settled {found.settled} of"
        yield f"{prompts}. Every request in the log was decided with them: nothing refused is allowed."
    else:
        yield f"`policyd audit suggest` has nothing to suggest: the log holds {prompts}, and no answer that was given"
        yield "often enough, always alike, and could be written as a rule."
    if answers.blind.count:
        yield f"Masked or cut in the log, and not tried: {counted(answers.blind.count, 'refusal')}."
    if answers.unreadable:
        yield f"Masked or cut in the log, and left out: {counted(answers.unreadable, 'approval')}."
    for why, number in found.unsuggested.most_common():
        if number:
            yield f"left out, {counted(number, 'approval')}: {why}"


def facts(found: Suggestions) -> Iterator[dict[str, object]]:
    """Yield each suggestion, then a summary."""
    yield from (rule_facts(found.page, rule) for rule in found.page.rules)
    yield {
        "prompts": found.answers.prompts,
        "settled": found.settled,
        "rules": len(found.page.rules),
        "untried_refusals": found.answers.blind.count,
        "left_out": dict(found.unsuggested),
    }


def rule_facts(page: Page, rule: Candidate) -> dict[str, object]:
    """Return one suggestion as JSON."""
    return {
        "rule": page.table(rule),
        "beside": rule.beside,
        "saves": rule.saves,
        "evidence": list(evidence(rule)),
        "first": min(one.question.first for one in rule.asks),
        "last": max(one.question.last for one in rule.asks),
    }


def unused(replayer: Replayer, answers: Answers, *, as_json: bool) -> int:
    """Print the allow rules in force that nothing in the log used, neither then nor if decided today."""
    used = set(answers.rules)
    questions = list(answers.questions.values())
    for found in Before.of(replayer, questions).found.values():
        used.update(ref.label for one in found.decision.actions for ref in one.hits)
    policies = {id(policy): policy for policy in (*(replayer.policy(one.case)[0] for one in questions), replayer.own())}
    rules = {rule.ref.label: rule for policy in policies.values() for rule in policy.rules}
    idle = [rule.ref for rule in rules.values() if rule.effect is Effect.ALLOW and not rule.void]
    idle = [ref for ref in idle if ref.label not in used]
    facts = ({"rule": ref.label, "file": ref.file, "line": ref.line} for ref in idle)
    said = f"{counted(len(idle), 'allow rule')} used by none of {counted(answers.decisions, 'decision')}"
    say_results(facts, [*(f"{ref.label}{ref.place}" for ref in idle), said], as_json=as_json)
    return DONE
