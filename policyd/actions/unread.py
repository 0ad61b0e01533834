"""The parts of `rawInput` that no reference of the profile reads.

A key that the profile claims may hold another shape than the one it describes: `paths` with one text, `files` with
names instead of tables. What no reference leads to is as unknown as an unclaimed key, and makes an opaque action.

Rules:

1. A value that a reference ends at is read: its reader reports what it cannot read.
2. Of a list, or of the values of a table behind `[]`, every item needs a reference that leads into it.
3. Of a table behind a named step, one named key is enough if a profile describes the agent; if none does (`every`),
   each key needs a reference or an inert name; a table of inert keys only states nothing.
4. Null, `false` and empty values state nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from policyd.actions.evidence import Evidence
from policyd.actions.fields import Ref
from policyd.actions.profiles import ToolSpec
from policyd.model import TABLE

Trail = tuple[str, ...]
TEXT = ("$",)
"""The end of a reference that reads a text and nothing else."""


def unread(evidence: Evidence, spec: ToolSpec, *, ran: bool) -> Iterator[tuple[str, object]]:
    """Yield key and value of what no reference reads, except text that is shown and inert keys.

    `ran`: a command was found, so that `args` and `env` beside it are read.
    """
    shown = {text for diff in evidence.diffs for text in diff.texts}
    apart = spec.apart | {"args", "env"} if spec.table.argv and ran else spec.apart
    for key, value in evidence.raw.items():
        if key in apart or (isinstance(value, str) and value in shown):
            continue
        trails = list(_trails(evidence, spec, key))
        if not trails and not isinstance(value, str | list | Mapping):
            continue
        loose = spec.apart if spec.table.every else None
        yield from ((key, part) for part in _left(value, trails, loose))


def _trails(evidence: Evidence, spec: ToolSpec, key: str) -> Iterator[Trail]:
    """Yield the steps of every reference into `rawInput.KEY` that covers whole values."""
    for _, _, ref in spec.readers.get(key, ()):
        if not _picks(ref):
            yield ref.steps[1:]
        elif ref.template and ref.find(evidence):
            yield ()


def _picks(ref: Ref) -> bool:
    return bool(ref.template or ref.json or ref.where[0])


def _left(value: object, trails: list[Trail], inert: frozenset[str] | None) -> Iterator[object]:
    """Yield the parts of `value` that no trail leads to; `inert`: other keys that are allowed, None for any."""
    if value in ("", None, [], {}) or value is False or any(not trail for trail in trails):
        return
    if isinstance(value, str) and TEXT in trails:
        return
    trails = [trail for trail in trails if trail != TEXT]
    behind = [trail[1:] for trail in trails if trail[0] == "[]"]
    if isinstance(value, TABLE):
        yield from _left_of_table(value, trails, behind, inert)
    elif isinstance(value, list) and behind:
        for item in value:
            yield from _left(item, behind, inert)
    else:
        yield value


def _left_of_table(
    value: Mapping[str, object], trails: list[Trail], behind: list[Trail], inert: frozenset[str] | None
) -> Iterator[object]:
    if any(trail[0] == "{}" for trail in trails):
        return
    if behind:
        for item in value.values():
            yield from _left(item, behind, inert)
        return
    if inert is not None and inert >= value.keys():
        return
    named = {trail[0] for trail in trails} & {key for key, item in value.items() if item not in ("", None, [], {})}
    if not named:
        yield value
        return
    for key in named:
        yield from _left(value[key], [trail[1:] for trail in trails if trail[0] == key], inert)
    for key, item in value.items():
        if inert is not None and key not in named and key not in inert and isinstance(item, str | list | Mapping):
            yield from _left(item, [], inert)
