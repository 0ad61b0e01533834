"""The ground of the reference evaluator: what `[defaults]` say, read from the raw tables by plain loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from policyd.model import Action

File = tuple[int, bool, dict[str, Any]]
"""Layer (0 project, 1 user, 2 managed), trusted, the table as TOML gives it."""
Spoken = tuple[int, bool, bool]
"""Effect of a default, whether it delegates, whether it is `outside`."""
ALLOW, ASK = 0, 1
EFFECTS = {"allow": 0, "ask": 1, "deny": 2}


def counts(effect: str, layer: int, trusted: bool, refuse: set[str]) -> bool:
    """Say whether an allow of a file counts."""
    if effect != "allow" or layer == 2:
        return True
    if layer == 1:
        return "user.allow" not in refuse
    return trusted and not refuse & {"user.allow", "project.allow"}


def ground(files: list[dict[str, Any]], action: Action) -> Iterator[Spoken]:
    """Yield effect, delegate and "it is `outside`" of each entry of one layer's `[defaults]` that speaks."""
    entries: dict[str, tuple[int, bool]] = {}
    for table in files:
        own = dict(table.get("defaults", {}))
        delegate = own.pop("delegate", False)
        for key, word in own.items():
            new, old = (EFFECTS[word], delegate), entries.get(key)
            entries[key] = new if old is None else max(new, old, key=lambda e: (e[0], not e[1]))
    every = entries.get("*")
    strict = every if every and every[0] else None
    if action.mcp:
        chosen = entries.get("mcp") or strict
        yield from [(*chosen, False)] if chosen else []
        return
    out = action.path is not None and not action.path.inside
    own_entries: list[tuple[int, bool]] = []
    for kind in action.kinds or {"other"}:
        if kind in entries:
            own_entries.append(entries[kind])
            continue
        implied = {"search": ["read"], "move": ["delete", "edit"]}.get(kind, [])
        own_entries += [entries[k] for k in implied if k in entries and entries[k][0]]
        reach = not (out or action.opaque or kind == "switch_mode")
        own_entries += [e for e in [every if reach else strict] if e]
    outside = entries.get("outside") if out else None
    if outside:
        yield (*outside, True)
    yield from ((*e, False) for e in own_entries if not outside or e[0])


def voices(files: list[File]) -> Iterator[tuple[int, bool, list[dict[str, Any]]]]:
    """Yield the files whose defaults merge: a layer, or one untrusted file."""
    for layer, trusted, alone in {(at, sure, -1 if sure else n) for n, (at, sure, _) in enumerate(files)}:
        own = [t for n, (at, sure, t) in enumerate(files) if (at, sure) == (layer, trusted) and alone in {-1, n}]
        yield layer, trusted, own


def entries(action: Action, own: list[dict[str, Any]], layer: int, trusted: bool, refuse: set[str]) -> Iterator[Spoken]:
    """Yield the `[defaults]` of one voice that speak and count."""
    words = {effect: counts(effect, layer, trusted, refuse) for effect in EFFECTS}
    kept = [{**t, "defaults": {k: v for k, v in t.get("defaults", {}).items() if words.get(v, True)}} for t in own]
    yield from ground(kept, action)


def opened(action: Action, files: list[File], refuse: set[str]) -> bool:
    """Say whether `outside` allows and no default is stricter."""
    found = [e for layer, trusted, own in voices(files) for e in entries(action, own, layer, trusted, refuse)]
    return any(outside for _, _, outside in found) and all(effect == ALLOW for effect, _, _ in found)


def every_kind_named(action: Action, files: list[File], refuse: set[str]) -> bool:
    """Say whether some table has a word that counts for each kind of an action; an MCP call has no kind to name."""
    said = [
        key
        for layer, trusted, table in files
        for key, word in table.get("defaults", {}).items()
        if key != "delegate" and counts(word, layer, trusted, refuse)
    ]
    kinds = action.kinds or {"other"}
    return action.mcp or all(kind in said or ("*" in said and kind != "switch_mode") for kind in kinds)
