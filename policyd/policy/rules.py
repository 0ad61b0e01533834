"""A compiled rule: its name, its conditions, its exceptions, and when it holds.

A plain rule is compiled when it is first needed. Whether a rule *counts* (not an untrusted allow, not refused by
`[lock]`) was decided when the policy was built: one that does not has a `void` and is never among the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

from msgspec import Struct, field

from policyd.model import EMPTY, Action, Context, Effect, Filesystem, Layer, Role, RuleRef, Truth
from policyd.policy.blocks import Table
from policyd.policy.conditions import CommandCondition, Condition

NO, MAYBE, YES = Truth.NO, Truth.MAYBE, Truth.YES
UNCACHEABLE = frozenset({"until", "input"})
NOTHING: frozenset[str] = frozenset()


Conditions = tuple[Condition, ...]
Compiled = tuple[Conditions, tuple[Conditions, ...]]
"""The conditions of a rule, and those of each of its exceptions."""


class Rule(Struct, frozen=True, eq=False, dict=True):
    """One `[[rule]]` or `[[default]]`, ready to be asked."""

    ref: RuleRef
    effect: Effect
    rank: Layer
    """The layer it counts as: a trusted project's rule ranks as the user's."""
    resource: str
    """`path`, `command`, `url`, `tool`, or empty for a rule on kinds alone."""
    compile: Callable[[Table, RuleRef], Compiled]
    """Builds the conditions on first use; an exception in it reaches the caller."""
    opaque: bool = False
    """Also allows what could not be understood."""
    escalate: bool = False
    """Also allows what widens the agent's reach."""
    encloses: bool = False
    """Of a command rule: its `within` limits which files commands may name."""
    delegate: bool = False
    """Of a default: yields to rules of lower trusted layers."""
    void: str = ""
    """Why it never counts, in words."""
    number: int = 0
    """Its place in the policy, the same whatever order the files were read in."""
    table: Table = field(default_factory=lambda: EMPTY)
    """As written."""

    @cached_property
    def compiled(self) -> Compiled:
        """Conditions and exceptions."""
        return self.compile(self.table, self.ref)

    @property
    def conditions(self) -> Conditions:
        """All of these must hold."""
        return self.compiled[0]

    @property
    def unless(self) -> tuple[Conditions, ...]:
        """If any of these holds, the rule does not."""
        return self.compiled[1]

    def holds(
        self,
        action: Action,
        context: Context,
        fs: Filesystem | None = None,
        *,
        actions: tuple[Action, ...] = (),
        met: frozenset[str] = NOTHING,
    ) -> Truth:
        """Say whether every condition holds and no exception does.

        Args:
            action: the action in question.
            context: session, time and person.
            fs: files, where the caller has them.
            actions: of the request: an exception of an allow rule on kinds alone is tested on its mentions too.
            met: names of conditions taken as met (examples are written without a session).
        """
        if action.role is Role.MENTION and (self.effect is Effect.ALLOW or self.resource not in {"path", "url"}):
            return NO
        truth = MAYBE if action.doubtful else YES
        conditions, unless = self.compiled
        for condition in conditions:
            one = condition.truth(action, context, fs)
            if one is not YES and condition.name not in met:
                if one is NO:
                    return NO
                truth = MAYBE
        if self.effect is Effect.ALLOW and truth is not YES:
            return NO
        if unless and self.excepted(action, context, fs, actions, met):
            return NO
        return truth

    def excepted(
        self,
        action: Action,
        context: Context,
        fs: Filesystem | None,
        actions: tuple[Action, ...],
        met: frozenset[str],
    ) -> bool:
        """Say whether an exception surely holds (of a strict rule), or may hold (of an allow rule)."""
        least, asked = YES, [action]
        if self.effect is Effect.ALLOW:
            least = MAYBE
            asked += [one for one in actions if one.role is Role.MENTION and not self.resource]
        return any(
            all(condition.truth(one, context, fs) >= least for condition in table)
            for table in self.unless
            if not any(condition.name in met for condition in table)
            for one in asked
        )

    @cached_property
    def cacheable(self) -> bool:
        """Whether its verdict on an action depends on neither the clock, nor arguments, nor a command's files."""
        for table in (self.conditions, *self.unless):
            for condition in table:
                if condition.name in UNCACHEABLE:
                    return False
                if isinstance(condition, CommandCondition) and condition.within is not None:
                    return False
        return True

    def carries(self, action: Action) -> bool:
        """Say whether allowing the command `action` also allows the files it names: some shipped entries do not."""
        return all(condition.carries(action) for condition in self._commands)

    def runs(self, action: Action) -> bool:
        """Say whether the command `action` is allowed only by entries for running the code it names."""
        return any(condition.runs(action) for condition in self._commands)

    @property
    def _commands(self) -> list[CommandCondition]:
        return [condition for condition in self.conditions if isinstance(condition, CommandCondition)]

    def why_not(self, action: Action) -> str:
        """Return, in words, why an allow rule does not hold for a command with an entry's program; else empty."""
        if self.effect is not Effect.ALLOW or self.void:
            return ""
        return next(filter(None, (condition.why_not(action) for condition in self._commands)), "")

    def failed_conditions(self, action: Action, context: Context, fs: Filesystem | None = None) -> tuple[str, ...]:
        """Return the names of the conditions that fail, `unless` for an exception; for `explain`."""
        if action.role is Role.MENTION and (self.effect is Effect.ALLOW or self.resource not in {"path", "url"}):
            return ("resource",)
        least = YES if self.effect is Effect.ALLOW else MAYBE
        missed = [c.name for c in self.conditions if c.truth(action, context, fs) < least]
        if not missed and self.excepted(action, context, fs, (), NOTHING):
            missed.append("unless")
        return tuple(missed)


class Example(Struct, frozen=True):
    """An example of a rule: a request on which its conditions hold, or do not."""

    rule: Rule
    text: str = ""
    """`KIND RESOURCE`, empty where a table was written."""
    table: Mapping[str, object] = field(default_factory=lambda: EMPTY)
    """Keys of the example table: kind, path, command, cwd, url, tool, input, mode."""
    wanted: bool = True
    """`match` or `not_match`."""
    file: str = ""
    line: int = 0
