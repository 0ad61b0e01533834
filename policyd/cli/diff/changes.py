"""Which decisions change between two policies, each tried with the engine on the same request in the same session.

A change is *looser* if the new decision is less strict, or is an ask that may be remembered longer; every one carries
the request it was seen on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from policyd.authorizer import inline
from policyd.cli.diff.comparing import Comparison, compare, counting
from policyd.cli.diff.recorded import Log
from policyd.cli.replay import Asked
from policyd.cli.trials.covering import Coverer
from policyd.cli.trials.drafting import USUAL, drafted
from policyd.cli.trials.standins import StandIns
from policyd.cli.trials.trial import Trial, suited
from policyd.model import MEMORY, Agent, Context, Decision, Effect, RuleRef
from policyd.policy import Policy, Rule

MOST_CONTEXTS = 6
UNKNOWN = ("agent", "mode", "user", "group")
"""Conditions on facts about a session that may be unknown."""
MOST_REQUESTS = 3_000


class Change(Struct):
    """Decisions that change alike: from the same rules to the same rules."""

    request: str
    """The first request it was seen on, as `KIND RESOURCE` or a table."""
    session: str
    """How the session differs from the usual one, in words."""
    old: Decision
    new: Decision
    source: str
    """`drafted`, or the log it was recorded in."""
    count: int = 1

    @property
    def looser(self) -> bool:
        """Whether the new decision lets more through."""
        return strength(self.new) < strength(self.old)


class Changes(Struct):
    """Everything that was tried, and the result."""

    comparison: Comparison
    drafted: int = 0
    recorded: int = 0
    left_out: int = 0
    """Records that lack something a decision needs."""
    found: dict[tuple[object, ...], Change] = field(default_factory=dict)

    @property
    def loosenings(self) -> list[Change]:
        """The changes that let more through."""
        return [change for change in self.found.values() if change.looser]

    @property
    def proved(self) -> bool:
        """Whether comparing the rules proves that nothing is looser."""
        return not self.comparison.suspects

    def note(self, request: str, session: str, old: Decision, new: Decision, source: str) -> None:
        """Add a decision if it changes, grouped with others that change alike."""
        if strength(old) == strength(new):
            return
        key = (strength(old), strength(new), labels(old), labels(new))
        if key in self.found:
            self.found[key].count += 1
        else:
            self.found[key] = Change(request, session, old, new, source)


def strength(decision: Decision) -> tuple[Effect, int]:
    """Return the strictness of a decision: the effect, then how briefly an ask may be remembered."""
    return decision.effect, -MEMORY[memory(decision)] if decision.effect is Effect.ASK else 0


def memory(decision: Decision) -> str:
    """Return the longest memory that every asking rule permits; floors do not count here."""
    asking = [judged for judged in decision.actions if judged.effect is Effect.ASK]
    refs = [ref for judged in asking for ref in (*judged.hits, *judged.possible) if ref.effect is not Effect.ALLOW]
    words = ["never" if ref.effect is Effect.DENY else ref.remember or "project" for ref in refs]
    return min(words, key=MEMORY.__getitem__, default="project")


def labels(decision: Decision) -> tuple[str, ...]:
    """Return the labels of the deciding rules."""
    return tuple(sorted(ref.label for ref in decision.rules))


def changes(old: Policy, new: Policy, trial: Trial, *, most: int = MOST_REQUESTS) -> Changes:
    """Compare two policies, then try requests drafted from both, those about what changed first.

    Args:
        old: the policy in force.
        new: the one that may replace it.
        trial: the session in which both policies decide.
        most: the maximum number of drafted requests.
    """
    machine = trial.conversation.machine
    coverer = Coverer(StandIns(machine.home, machine.tmpdir), trial.now, exact=True)
    found = Changes(compare(old, new, coverer))
    if found.comparison.same:
        return found
    contexts = list(sessions(trial.context(), [*counting(old), *counting(new)]))
    for asked in drafted(*changed_first(found.comparison, old, new)):
        if found.drafted >= most:
            break
        actions = trial.actions(asked)
        for session, context in contexts:
            found.drafted += 1
            both = (trial.decide(old, actions, context), trial.decide(new, actions, context))
            found.note(shown(asked), session, *both, "drafted")
    if old.lock.grants and not new.lock.grants:
        remembered(found, old, new, trial)
    return found


def remembered(found: Changes, old: Policy, new: Policy, trial: Trial) -> None:
    """Try the usual requests with a remembered allow, which a lock on grants kept from counting."""
    for asked in USUAL:
        actions = trial.actions(asked)
        both = [trial.decide(each, actions, trial.context(), lambda judged: Effect.ALLOW) for each in (old, new)]
        found.note(shown(asked), "a remembered allow", both[0], both[1], "drafted")


def changed_first(comparison: Comparison, *policies: Policy) -> tuple[list[Rule], list[Rule]]:
    """Return the rules to draft requests from: what changed, then all others and the conditional defaults."""
    changed = [*comparison.added, *comparison.removed]
    others = [rule for policy in policies for rule in counting(policy)]
    others += [rule for policy in policies for layer in policy.defaults for rule in layer.rules]
    return changed, others


def sessions(usual: Context, rules: Iterable[Rule]) -> Iterator[tuple[str, Context]]:
    """Yield sessions that rules distinguish: the usual one, one with nobody to ask, and those that rules name."""
    yield "", usual
    rules = list(rules)
    if any("interactive" in repr(rule.table) for rule in rules):
        yield "nobody to ask", replace(usual, interactive=False)
    if any(key in rule.table for rule in rules for key in UNKNOWN):
        yield "nothing known", replace(usual, agent=Agent(), mode=None, user="")
    seen: list[Context] = [usual, replace(usual, interactive=False)]
    for rule in rules:
        context = suited(usual, rule)
        if context not in seen and len(seen) < MOST_CONTEXTS:
            seen.append(context)
            yield described(context, usual), context


def described(context: Context, usual: Context) -> str:
    """Return how a session differs from the usual one."""
    mode = context.mode.name if context.mode else ""
    named = {"agent": context.agent.name, "user": context.user, "mode": mode}
    same = {"agent": usual.agent.name, "user": usual.user, "mode": usual.mode.name if usual.mode else ""}
    parts = [f"{key} {name}" for key, name in named.items() if name != same[key]]
    parts += [f"group {each}" for each in context.groups]
    parts += [f"label {key}={value}" for key, value in context.labels.items()]
    return ", ".join(parts)


def shown(asked: Asked) -> str:
    """Return a request as an example in a policy is written."""
    return asked if isinstance(asked, str) else inline(asked)


def try_recorded(found: Changes, old: Policy, new: Policy, trial: Trial, log: Log) -> None:
    """Try the requests of a log, each in the workspace it was made in."""
    for one in log.read():
        context = replace(trial.context(), workspace=one.workspace)
        both = [trial.decide(each, one.actions, context) for each in (old, new)]
        found.recorded += 1
        found.note(one.title, "", both[0], both[1], log.path)
    found.left_out += log.left_out


def where(refs: Iterable[RuleRef]) -> str:
    """Return rules with their files and lines."""
    return ", ".join(dict.fromkeys(f"{ref.label}{ref.place}" for ref in refs)) or "no rule"
