"""A loaded policy: rules, ground, locks, and the indexes over them. Values; nothing is read or decided here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct, field

from policyd.model import Action, Context
from policyd.policy.layers import LayerDefaults, Lock
from policyd.policy.rules import Example, Rule

if TYPE_CHECKING:
    from policyd.policy.index import Index


class Policy(Struct, frozen=True, eq=False, dict=True):
    """Everything that was written, compiled; one object is one revision and never changes."""

    rules: tuple[Rule, ...] = ()
    """Every rule, void ones included, in a fixed order."""
    defaults: tuple[LayerDefaults, ...] = ()
    """The ground, a group of files each: managed, user, projects."""
    lock: Lock = field(default_factory=Lock)
    revision: str = ""
    names: tuple[tuple[str, str], ...] = ()
    """Name and revision each file states."""
    heads: tuple[str, ...] = ()
    """Literal heads of relative path patterns: `open_workspace` resolves them once a session."""
    examples: tuple[Example, ...] = ()

    def __repr__(self) -> str:
        """Say which it is: all of it fills a log."""
        return f"Policy({len(self.rules)} rules, revision {self.revision!r})"

    @cached_property
    def memory(self) -> dict[int, object]:
        """What the engine keeps of verdicts under this policy, by session; it goes with the policy, not with a copy."""
        return {}

    @cached_property
    def index(self) -> Index:
        """The index over the rules that count, made when it is first needed."""
        from policyd.policy.index import Index

        return Index([rule for rule in self.rules if not rule.void])

    @cached_property
    def ground(self) -> tuple[tuple[LayerDefaults, Index], ...]:
        """Those `defaults` that say something, each with the index over its `[[default]]` blocks."""
        from policyd.policy.index import Index

        return tuple((layer, Index(layer.rules)) for layer in self.defaults if layer.entries or layer.rules)

    def ready(self) -> None:
        """Make the indexes now, so that no decision waits for them; safe in a thread."""
        for index in (self.index, *(index for _, index in self.ground)):
            index.ready()

    def parts(self) -> Iterator[object]:
        """Yield what a policy is made of, as far as there may be thousands; what holds other parts comes first."""
        yield from self.memory.values()
        if "index" in self.__dict__:
            yield from self.index.parts()
        yield from self.rules

    def about(self, action: Action) -> Iterable[Rule]:
        """Return, in the policy's order, the rules that are about what a command runs."""
        return self.index.about(action.command) if action.command is not None else ()

    def candidates(self, action: Action, context: Context) -> Iterable[Rule]:
        """Return, in the policy's order, every rule that may hold for `action`: a superset, void rules left out."""
        return self.index.candidates(action, context)
