"""Layers: what `[defaults]` of one layer say of an action, and what a managed `[lock]` takes away.

Rules of this module:

1. Files of one layer merge first: for one key the strictest counts, and a named kind beats `"*"`.
2. An *allow* in `"*"` never reaches `switch_mode`, an opaque action, a path outside, an MCP call; a strict one does.
3. A path outside takes the stricter of `outside` and the kind's own ask or deny. A kind's own allow does not
   reach outside; it is kept, so that the decision can name the floor.
4. An MCP call takes `mcp`, else an ask or deny of `"*"`, never `other`.
5. A layer that says nothing of an action has no voice.
6. A kind no file names takes, beside `"*"`, a stricter entry of a kind it implies: a search is also a read.
7. An allow is about the kinds it names, and `outside` names none: what is also of another kind, that no layer names,
   is not allowed by it (`names`; the engine asks).
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from policyd.model import Action, Effect, Layer, RuleRef
from policyd.policy.conditions import IMPLIED
from policyd.policy.rules import Rule


class Entry(Struct, frozen=True):
    """One entry of `[defaults]`."""

    ref: RuleRef
    effect: Effect
    delegate: bool = False
    outside: bool = False
    """It is the `outside` entry: an allow of it reaches outside on purpose."""
    block: bool = False
    """It stands for a `[[default]]` block that holds: one that allows holds for every kind."""


class LayerDefaults(Struct, frozen=True, eq=False):
    """The ground of one layer."""

    rank: Layer
    entries: Mapping[str, Entry] = field(default_factory=dict)
    """By kind, `*`, `outside`, `mcp`."""
    rules: tuple[Rule, ...] = ()
    """Its `[[default]]` blocks."""

    def of(self, action: Action) -> list[Entry]:
        """Return the entries that speak about `action`; the strictest counts."""
        entries = self.entries
        if not entries:
            return []
        if action.mcp:
            found = entries.get("mcp") or self.every(reach=False)
            return [found] if found else []
        reach = not action.opaque and (action.path is None or action.path.inside)
        spoken: list[Entry] = []
        for kind in sorted(action.kinds) or ("other",):
            own = entries.get(kind)
            if own is None:
                spoken += self.unnamed(kind, reach=reach and kind != "switch_mode")
            else:
                spoken.append(own)
        if action.path is not None and not action.path.inside and (outside := entries.get("outside")):
            spoken = [outside, *(entry for entry in spoken if entry.effect is not Effect.ALLOW)]
        return spoken

    def names(self, kind: str) -> bool:
        """Say whether an entry is about `kind`: its own, or `*`, which never allows a `switch_mode`."""
        return kind in self.entries or ("*" in self.entries and kind != "switch_mode")

    def unnamed(self, kind: str, *, reach: bool) -> list[Entry]:
        """Return what speaks about a kind that no file of the layer names."""
        implied = sorted(IMPLIED.get(kind, ()))
        found = [e for k in implied if (e := self.entries.get(k)) and e.effect is not Effect.ALLOW]
        if every := self.every(reach=reach):
            found.append(every)
        return found

    def every(self, *, reach: bool) -> Entry | None:
        """Return the `*` entry; an allow only where it may `reach`."""
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
    """Order entries of one key; between equals the one that does not delegate, then a fixed order of files."""
    return entry.effect, not entry.delegate, entry.ref.file, entry.ref.line


class Lock(Struct, frozen=True):
    """What managed files take from everybody below, all files together."""

    refuse: frozenset[str] = frozenset()
    """`user.allow`, `project.allow`, `grants`."""
    settings: frozenset[str] = frozenset()

    @property
    def grants(self) -> bool:
        """Whether no remembered allow counts."""
        return "grants" in self.refuse

    def voids(self, layer: Layer, *, trusted: bool) -> str:
        """Return why an allow of a lower layer does not count, empty where it does."""
        if layer is Layer.PROJECT and not trusted:
            return "the project is not trusted: its files only tighten (`policyd trust`)"
        if layer is Layer.PROJECT and self.refuse & {"project.allow", "user.allow"}:
            return "`[lock]` refuses allow rules of projects"
        if layer is Layer.USER and "user.allow" in self.refuse:
            return "`[lock]` refuses allow rules of users"
        return ""
