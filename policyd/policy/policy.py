"""A loaded policy: rules, ground, locks, and the indexes over them. Values; nothing is read or decided here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from policyd.model import Action, Context
from policyd.policy.index import Index
from policyd.policy.layers import LayerDefaults, Lock
from policyd.policy.rules import Example, Rule


@dataclass(frozen=True, eq=False)
class Policy:
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

    def __post_init__(self) -> None:
        """Build the indexes."""
        object.__setattr__(self, "index", Index([rule for rule in self.rules if not rule.void]))
        object.__setattr__(self, "ground", tuple((layer, Index(layer.rules)) for layer in self.defaults))

    index: Index = field(init=False, repr=False)
    ground: tuple[tuple[LayerDefaults, Index], ...] = field(init=False, repr=False)
    """`defaults`, each with the index over its `[[default]]` blocks."""

    memory: dict[int, object] = field(init=False, repr=False, default_factory=dict)
    """What the engine keeps of verdicts under this policy, by session; it goes with the policy."""

    def candidates(self, action: Action, context: Context) -> Iterable[Rule]:
        """Return, in the policy's order, every rule that may hold for `action`: a superset, void rules left out."""
        return self.index.candidates(action, context)
