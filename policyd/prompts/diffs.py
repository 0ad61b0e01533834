"""Diffs and texts of a request, made safe to show; what exceeds the limits is replaced by a note.

A diff is shown in time linear in its size: common lines at both ends are left out and counted, then the old lines,
then the new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from policyd.display import safe

LONGEST = 64 * 1024
MOST = 50


class Detail(Struct, frozen=True):
    """One diff or text, safe to display."""

    kind: str
    """`diff` or `text`."""
    name: str
    """The path of a diff; empty for a text."""
    text: str


def details(tool_call: Mapping[str, object]) -> tuple[Detail, ...]:
    """Return the diffs and texts of an ACP tool call's `content`, at most 50, the last one saying how many are left."""
    content = tool_call.get("content")
    items = [item for item in content if isinstance(item, Mapping)] if isinstance(content, list) else []
    shown = [detail for detail in map(_detail, items[:MOST]) if detail is not None]
    if len(items) > MOST:
        shown.append(Detail("text", "", f"… {len(items) - MOST} more parts are not shown"))
    return tuple(shown)


def difference(old: str, new: str) -> str:
    """Return the changed lines of a text, `-` before old ones, `+` before new ones."""
    before, after = old.splitlines(), new.splitlines()
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    removed = [f"-{line}" for line in before[head : len(before) - tail]]
    added = [f"+{line}" for line in after[head : len(after) - tail]]
    if not removed and not added and old != new:
        return "the line endings change"
    return "\n".join([f"@@ line {head + 1}: {len(removed)} lines out, {len(added)} in @@", *removed, *added])


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _detail(item: Mapping[str, object]) -> Detail | None:
    if item.get("type") == "diff":
        path, old, new = item.get("path"), item.get("oldText"), item.get("newText")
        changed = difference(old if isinstance(old, str) else "", new if isinstance(new, str) else "")
        return Detail("diff", safe(str(path), limit=1000), _lines(changed))
    content = item.get("content")
    text = content.get("text") if isinstance(content, Mapping) else None
    return Detail("text", "", _lines(text)) if isinstance(text, str) and text else None


def _lines(text: str) -> str:
    """Make each line safe by itself, which keeps line breaks; the middle of a long text is replaced by a note."""
    half = LONGEST // 2
    if len(text) <= LONGEST:
        return _cut(text, LONGEST)
    return f"{_cut(text[:half], half)}\n… {len(text) - 2 * half} characters are not shown …\n{_cut(text[-half:], half)}"


def _cut(text: str, most: int) -> str:
    shown = "\n".join(safe(line) for line in text.split("\n"))
    if len(shown) <= most:
        return shown
    return f"{shown[: most // 2]}\n… {len(shown) - most} characters are not shown …\n{shown[-(most - most // 2) :]}"
