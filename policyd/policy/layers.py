"""Layers: which entries of a layer's `[defaults]` apply to an action, and what a managed `[lock]` forbids.

Rules of this module:

1. Files of one layer merge first: for one key the strictest counts, and a named kind beats `"*"`.
2. An *allow* in `"*"` never reaches `switch_mode`, an opaque action, a path outside, an MCP call; a strict one does.
3. A path outside takes the stricter of `outside` and the kind's own ask or deny. A kind's own allow does not
   reach outside; it is kept, so that the decision can name the floor.
4. An MCP call takes `mcp`, else an ask or deny of `"*"`, never `other`.
5. A layer without an entry for an action does not take part.
6. A kind no file names takes, beside `"*"`, an ask or deny of a kind it implies: a search is also a read.
7. An allow covers only the kinds it names, and `outside` names none: an action that is also of a kind no layer names
   is not allowed (`names`; the engine asks).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import Struct, field

from policyd.model import Action, Effect, Layer, RuleRef
from policyd.policy.conditions import IMPLIED
from policyd.policy.rules import Rule

KEPT = 256
"""Sorts of actions for which a layer caches the applicable entries."""


class Entry(Struct, frozen=True, gc=False):
    """One entry of `[defaults]`."""

    ref: RuleRef
    effect: Effect
    delegate: bool = False
    outside: bool = False
    """It is the `outside` entry, whose allow is meant to reach outside."""
    block: bool = False
    """It stands for a `[[default]]` block that holds; if it allows, then for every kind."""


class LayerDefaults(Struct, frozen=True, eq=False, dict=True):
    """The defaults of one layer."""

    rank: Layer
    entries: Mapping[str, Entry] = field(default_factory=dict)
    """By kind, `*`, `outside`, `mcp`."""
    rules: tuple[Rule, ...] = ()
    """Its `[[default]]` blocks."""

    @cached_property
    def known(self) -> dict[tuple[object, ...], tuple[Entry, ...]]:
        """The applicable entries by everything they depend on; never shared with a changed copy."""
        return {}

    def of(self, action: Action) -> tuple[Entry, ...]:
        """Return the entries that apply to `action`; the strictest counts."""
        if not self.entries:
            return ()
        outside = action.path is not None and not action.path.inside
        key = action.kinds, action.mcp, outside, outside or bool(action.opaque)
        found = self.known.get(key)
        if found is None:
            if len(self.known) >= KEPT:
                self.known.clear()
            found = self.known[key] = tuple(self.applicable(*key))
        return found

    def applicable(self, kinds: frozenset[str], mcp: bool, outside: bool, beyond_all: bool) -> Iterator[Entry]:
        """Yield the entries for an action of these kinds; an allow of `*` does not apply if `beyond_all` is set."""
        if mcp:
            found = self.entries.get("mcp") or self.every(reach=False)
            yield from (found,) if found else ()
            return
        beyond = self.entries.get("outside") if outside else None
        if beyond:
            yield beyond
        for kind in sorted(kinds) or ("other",):
            own = self.entries.get(kind)
            own_entries = [own] if own else self.unnamed(kind, reach=not beyond_all and kind != "switch_mode")
            yield from (entry for entry in own_entries if not (beyond and entry.effect is Effect.ALLOW))

    def names(self, kind: str) -> bool:
        """Say whether an entry covers `kind`: its own, or `*`, which never covers `switch_mode`."""
        return kind in self.entries or ("*" in self.entries and kind != "switch_mode")

    def unnamed(self, kind: str, *, reach: bool) -> list[Entry]:
        """Return the entries for a kind that no file of the layer names."""
        implied = sorted(IMPLIED.get(kind, ()))
        found = [e for k in implied if (e := self.entries.get(k)) and e.effect is not Effect.ALLOW]
        if every := self.every(reach=reach):
            found.append(every)
        return found

    def every(self, *, reach: bool) -> Entry | None:
        """Return the `*` entry; an allow only if it may `reach`."""
        entry = self.entries.get("*")
        return entry if entry and (reach or entry.effect is not Effect.ALLOW) else None


def merged(entries: Mapping[str, Entry], more: Mapping[str, Entry]) -> dict[str, Entry]:
    """Merge the `[defaults]` of two files of one layer."""
    found = dict(entries)
    for key, entry in more.items():
        held = found.get(key)
        if held is None or strictness(entry) > strictness(held):
            found[key] = entry
    return found


def strictness(entry: Entry) -> tuple[Effect, bool, str, int]:
    """Return the sort key of entries for one key: effect, then not delegating, then a fixed order of files."""
    return entry.effect, not entry.delegate, entry.ref.file, entry.ref.line


class Lock(Struct, frozen=True):
    """What managed files forbid to all lower layers, all files together."""

    refuse: frozenset[str] = frozenset()
    """`user.allow`, `project.allow`, `grants`."""
    settings: frozenset[str] = frozenset()

    @property
    def grants(self) -> bool:
        """Whether remembered allows are refused."""
        return "grants" in self.refuse

    def voids(self, layer: Layer, *, trusted: bool) -> str:
        """Return why an allow of a lower layer does not count, empty where it does."""
        if layer is Layer.PROJECT and self.refuse & {"project.allow", "user.allow"}:
            return "`[lock]` refuses allow rules of projects"
        if layer is Layer.PROJECT and not trusted:
            return "the project is not trusted: its files only tighten"
        if layer is Layer.USER and "user.allow" in self.refuse:
            return "`[lock]` refuses allow rules of users"
        return ""
