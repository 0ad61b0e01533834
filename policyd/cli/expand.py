"""`policyd check --expand`: the sets that policies use, with their entries and the purpose of each.

If the files name no set, or cannot be read, all shipped sets are shown, to look up a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import policyd
from policyd.cli.lint.gaps import references
from policyd.commands.sets import SetEntry, ShippedSet, shipped
from policyd.policy import PolicySource
from policyd.policy.read import parse

Row = dict[str, object]


def rows(sources: Iterable[PolicySource]) -> Iterator[Row]:
    """Yield every set, each followed by its entries: sets that files define, then shipped ones they use."""
    files = [parse(source, policyd.__version__) for source in sources]
    for parsed in files:
        for name, texts in parsed.file.sets.items():
            where = f"{parsed.source.layer.word} {parsed.source.name}:{parsed.lines.top(f'sets.{name}')}"
            yield {"set": name, "from": where, "for": ""}
            for text in texts:
                yield {"set": name, "entry": text, "for": ""}
    used = {name for parsed in files for name in references(parsed)} & set(shipped())
    for name in sorted(used or shipped()):
        yield from shipped_rows(shipped()[name])


def shipped_rows(found: ShippedSet) -> Iterator[Row]:
    """Yield a shipped set and its entries."""
    yield {"set": found.name, "from": "policyd", "kind": found.kind, "for": found.reason}
    for name, entry in found.entries.items():
        if isinstance(entry, SetEntry):
            patterns = [pattern.source for pattern in entry.patterns]
            checked = {"checked": "every word is checked"} if entry.closed else {}
            yield {"set": found.name, "entry": name, "patterns": patterns, "for": entry.reason, **checked}
        else:
            yield {"set": found.name, "entry": entry, "for": ""}


def line_of(row: Row) -> str:
    """Return a row as a line for people."""
    if "entry" not in row:
        kind = f", for `{row['kind']}`" if "kind" in row else ""
        return f"@{row['set']} (from {row['from']}{kind}) {row['for']}".rstrip()
    patterns = row.get("patterns")
    if not isinstance(patterns, list):
        return f"    {row['entry']}"
    shown = ", ".join(f"`{each}`" for each in patterns)
    return f"    @{row['set']}.{row['entry']}: {shown}: {row['for']}" + ("; every word is checked" * ("checked" in row))
