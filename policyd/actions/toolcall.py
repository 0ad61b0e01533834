"""The fields of a tool call, in an update or a request, each read without trusting its shape.

A shape that the protocol does not know is reported in words (`misshapen`, `strange`), never guessed. Text in place of a
table counts only if it is one complete JSON value without duplicate keys.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, ValidationError, convert

from policyd.actions.readers import Fault, json_text
from policyd.model import EMPTY, TABLE

SHOWN = ("content", "terminal")
"""Blocks of `content` that only show something."""
CHANGED = ("path", "oldPath", "newPath", "from", "to")
"""Keys of a diff's `changes` that name a file."""
SHAPES = (("title", str), ("kind", str), ("name", str), ("locations", list), ("content", list), ("_meta", Mapping))
"""Fields of a `toolCall` and their types."""


class Diff(Struct, frozen=True, gc=False):
    """A change of a file as shown to the user."""

    path: str
    kind: str = ""
    """What its `_meta.kind` or operation states: add, update, delete, modify, move, or nothing."""
    texts: tuple[str, ...] = ()
    """The old and new text it shows."""


class _Place(Struct, gc=False):
    path: str


class _Usual(Struct, gc=False, rename={"meta": "_meta"}):
    """`SHAPES` and `locations` once more, checked quickly in C: whatever does not fit is then examined in Python."""

    title: str | None = None
    kind: str | None = None
    name: str | None = None
    locations: list[_Place] | None = None
    content: list[object] | None = None
    meta: dict[str, object] | None = None


def misshapen(asked: Mapping[str, object]) -> str:
    """Say which field of a `toolCall` has a type the protocol does not know, `""` if none."""
    try:
        convert(asked, _Usual)
    except ValidationError:
        for key, shape in SHAPES:
            value = asked.get(key)
            if value is not None and not isinstance(value, shape):
                return f"`{key}` of the request has the wrong type"
        if fault := strange("locations", asked.get("locations")):
            return fault
    return strange("content", asked.get("content"))


def strange(key: str, value: object) -> str:
    """Say which item of `locations` or `content` has a shape that is not known, `""` if none."""
    if value is None:
        return ""
    known = _is_location if key == "locations" else _is_block
    wrong = not isinstance(value, list) or not all(isinstance(item, TABLE) and known(item) for item in value)
    return f"`{key}` holds something whose shape is not known" if wrong else ""


def _is_location(item: Mapping[str, object]) -> bool:
    return isinstance(item.get("path"), str)


def _is_block(item: Mapping[str, object]) -> bool:
    """Say whether a block of `content` is one the protocol knows; a diff names files by `path` or by `changes`."""
    if item.get("type") != "diff":
        return item.get("type") in SHOWN
    changes, path = item.get("changes"), item.get("path")
    listed = changes if isinstance(changes, list) else []
    named = all(isinstance(one, TABLE) and any(isinstance(one.get(key), str) for key in CHANGED) for one in listed)
    return (
        named
        and (bool(listed) if path in (None, "") else isinstance(path, str))
        and (changes is None or isinstance(changes, list))
    )


def named_paths(update: Mapping[str, object]) -> set[str]:
    """Return the paths that an update names outside of `rawInput`."""
    return {*location_paths(update.get("locations")), *(diff.path for diff in content_diffs(update.get("content")))}


def table(value: object) -> tuple[Mapping[str, object], str]:
    """Return `rawInput` as a table, and why it is none; text counts if it is a JSON table."""
    if isinstance(value, str) and value.strip():
        try:
            value = json_text(value)
        except Fault as fault:
            return EMPTY, f"rawInput is text: {fault}"
    if value in (None, "", [], {}) or isinstance(value, str):
        return EMPTY, ""
    if isinstance(value, TABLE):
        return value, ""
    return EMPTY, f"rawInput is a {type(value).__name__}, not a table"


def location_paths(value: object) -> tuple[str, ...]:
    """Return the paths of a `locations` list."""
    if not value or not isinstance(value, list):
        return ()
    paths = [item.get("path") for item in value if isinstance(item, TABLE)]
    return tuple([plain(path) for path in paths if isinstance(path, str) and path])


def plain(path: str) -> str:
    """Return the path of a `file:` URI that can mean nothing else, any other text unchanged."""
    if path[:8].lower() != "file:///" or any(sign in path for sign in "%?#"):
        return path
    return path[7:]


def content_texts(value: object) -> tuple[str, ...]:
    """Return the texts of a `content` list's text blocks."""
    if not value or not isinstance(value, list):
        return ()
    inner = [block.get("content") for block in value if isinstance(block, TABLE) and block.get("type") == "content"]
    texts = [block.get("text") for block in inner if isinstance(block, TABLE) and block.get("type") == "text"]
    return tuple([text for text in texts if isinstance(text, str) and text])


def content_diffs(value: object) -> tuple[Diff, ...]:
    """Return the diffs of a `content` list, those of protocol version 2 with their `changes` too."""
    if not value or not isinstance(value, list):
        return ()
    found: list[Diff] = []
    for block in value:
        if isinstance(block, TABLE) and block.get("type") == "diff":
            found += _diff(block)
    return tuple(found)


def _diff(block: Mapping[str, object]) -> list[Diff]:
    path, meta = block.get("path"), block.get("_meta")
    kind = meta.get("kind") if isinstance(meta, TABLE) else ""
    texts = tuple(text for text in (block.get("oldText"), block.get("newText")) if isinstance(text, str))
    found = []
    if isinstance(path, str) and path:
        found.append(Diff(plain(path), kind if isinstance(kind, str) else "", texts))
    changes = block.get("changes")
    for change in changes if isinstance(changes, list) else []:
        found += [
            Diff(plain(change[key]), str(change.get("operation", "")))
            for key in CHANGED
            if isinstance(change, TABLE) and isinstance(change.get(key), str) and change[key]
        ]
    return found


def keyed(update: Mapping[str, object], key: str) -> Mapping[str, object]:
    """Return an update whose `rawInput`, if that is a text, is put under `key`; `""`: unchanged."""
    text = update.get("rawInput")
    return {**update, "rawInput": {key: text}} if key and isinstance(text, str) else update
