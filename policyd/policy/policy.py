"""A loaded policy: rules, defaults, locks, and the indexes over them. Values; nothing is read or decided here."""

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


class Named(Struct, frozen=True, gc=False):
    """What a policy file calls itself: a claim of whoever wrote the file, so its layer and path stand beside it."""

    layer: str
    file: str
    name: str
    revision: str


class Policy(Struct, frozen=True, eq=False, dict=True):
    """All policy files of a session, compiled; one object is one revision and never changes."""

    rules: tuple[Rule, ...] = ()
    """Every rule, including void ones, in a fixed order."""
    defaults: tuple[LayerDefaults, ...] = ()
    """One for each group of files: managed, user, projects."""
    lock: Lock = field(default_factory=Lock)
    revision: str = ""
    names: tuple[Named, ...] = ()
    """What each file calls itself."""
    heads: tuple[str, ...] = ()
    """Literal heads of relative path patterns: `open_workspace` resolves them once a session."""
    examples: tuple[Example, ...] = ()

    def __repr__(self) -> str:
        """Name it in brief: a full listing would fill a log."""
        return f"Policy({len(self.rules)} rules, revision {self.revision!r})"

    @cached_property
    def memory(self) -> dict[int, object]:
        """The engine's cached verdicts under this policy, by session; a copy of the policy starts without them."""
        return {}

    @cached_property
    def index(self) -> Index:
        """The index over the rules that are not void, built on first use."""
        from policyd.policy.index import Index

        return Index([rule for rule in self.rules if not rule.void])

    @cached_property
    def indexed_defaults(self) -> tuple[tuple[LayerDefaults, Index], ...]:
        """The `defaults` that are not empty, each with the index over its `[[default]]` blocks."""
        from policyd.policy.index import Index

        return tuple((layer, Index(layer.rules)) for layer in self.defaults if layer.entries or layer.rules)

    def ready(self) -> None:
        """Build the indexes now, so that no decision waits for them; safe in a thread."""
        for index in (self.index, *(index for _, index in self.indexed_defaults)):
            index.ready()

    def parts(self) -> Iterator[object]:
        """Yield those parts of a policy that may number thousands, containers before their contents."""
        yield from self.memory.values()
        if "index" in self.__dict__:
            yield from self.index.parts()
        yield from self.rules

    def about(self, action: Action) -> Iterable[Rule]:
        """Return, in the policy's order, the rules filed under the program a command runs."""
        return self.index.about(action.command) if action.command is not None else ()

    def candidates(self, action: Action, context: Context) -> Iterable[Rule]:
        """Return, in the policy's order, a superset of the rules that may hold for `action`, void rules left out."""
        return self.index.candidates(action, context)
