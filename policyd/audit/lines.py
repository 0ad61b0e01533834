"""The line a record becomes, and the chain of lines.

1. A line is one JSON object of at most 16 KiB, free of raw control and format characters. A record that is too long is
   shortened, and its digest added.
2. Secrets are masked on the way: the usual record, without secrets and long texts, is encoded once, and one search of
   the result shows that it is one.
3. Each line carries its sequence number and the SHA-256 of the line before it; `broken` says what does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from policyd.audit import masks
from policyd.audit.cleaning import TEXT_LIMIT, cut, tidy
from policyd.digest import sha256

LINE_LIMIT = 16 * 1024
"""Bytes of one line, newline included."""
LONGEST = LINE_LIMIT - len(',"seq":,"prev":""') - 64 - 20 - 1
"""Bytes of a body: what ties the line to the one before it has room behind it."""
FIRST = "0" * 64
"""`prev` of the first line of a chain."""


def body(record: Mapping[str, object]) -> bytes:
    """Return what `line` takes: `record` as one JSON object, masked, cut to size."""
    data = plain(record)
    if data is not None and len(data) <= TEXT_LIMIT * 2 and not masks.suspicious_json(data):
        return data
    row = tidy(record)
    data = encoded(row)
    return data if len(data) <= LONGEST else encoded(shortened(row, sha256(data).hexdigest()))


def line(body: bytes, seq: int, prev: str) -> bytes:
    """Return the line of a record's `body`, newline included, at most `LINE_LIMIT` bytes.

    Args:
        body: not empty.
        seq: its number in the chain, from 1.
        prev: `digest` of the line before, `FIRST` for the first.
    """
    return b'%b,"seq":%d,"prev":"%b"}\n' % (body[:-1], seq, prev.encode())


def digest(data: bytes) -> str:
    """Return the hash of a line, its newline not counted."""
    return sha256(data.rstrip(b"\n")).hexdigest()


def plain(row: Mapping[str, object]) -> bytes | None:
    """Return `row` as JSON of printable ASCII, None where it is not that simple."""
    try:
        data = msgspec.json.encode(row)
    except (UnicodeEncodeError, TypeError):
        return None
    return data if data.isascii() and b"\x7f" not in data else None


def encoded(row: Mapping[str, object]) -> bytes:
    """Return `row` as JSON without raw control, format or line separator characters."""
    text = msgspec.json.encode(row).decode()
    return unsafe().sub(lambda match: escape(match.group()), text).encode()


@cache
def unsafe() -> re.Pattern[str]:
    """Characters that end a line for some readers, or move, hide or colour text on a terminal."""
    return re.compile(
        "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
    )


def escape(character: str) -> str:
    """Return one character as JSON's escape."""
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def shortened(row: Mapping[str, object], whole: str) -> dict[str, object]:
    """Return a row that fits a line: its actions fewer, its texts shorter, the digest of the whole added."""
    short: dict[str, object] = {}
    for actions, limit in ((20, 200), (4, 100), (0, 60)):
        short = {key: value for key, value in row.items() if key not in {"actions", "matched"}}
        listed = row.get("actions")
        if isinstance(listed, Sequence):
            before = row.get("actions_cut")
            short["actions"] = listed[:actions]
            short["actions_cut"] = len(listed) - len(listed[:actions]) + (before if isinstance(before, int) else 0)
        short = {key: trimmed(value, limit) for key, value in short.items()}
        short["whole"] = f"sha256:{whole}"
        if len(encoded(short)) <= LONGEST:
            return short
    kept = {"schema", "event", "id", "time", "effect", "source", "by", "option", "outcome", "revision"}
    return {key: value for key, value in short.items() if key in kept} | {"whole": f"sha256:{whole}"}


def trimmed(value: object, limit: int, depth: int = 0) -> object:
    """Return `value` with texts cut to `limit`, lists to 20 entries, and nothing deeper than six levels."""
    if isinstance(value, str):
        return value if len(value) <= max(limit, 64) else cut(value, max(limit, 64))
    if depth > 6 and isinstance(value, Mapping | Sequence):
        return "[cut]"
    if isinstance(value, Mapping):
        return {cut(str(key), 64): trimmed(item, limit, depth + 1) for key, item in list(value.items())[:20]}
    if isinstance(value, Sequence):
        return [trimmed(item, limit, depth + 1) for item in value[:20]]
    return value


def broken(data: bytes, seq: int, prev: str) -> str:
    """Say in words why a line is not the one that follows `prev` with number `seq`; empty if it is."""
    try:
        head = link(data)
    except ValueError:
        return "no JSON record"
    if head.prev != prev:
        return "does not follow the line before it: something was edited, removed, added or moved"
    return "" if head.seq == seq else f"has number {head.seq}, expected {seq}"


class Link(msgspec.Struct):
    """What ties a line to the one before it."""

    seq: int
    prev: str


_link = msgspec.json.Decoder(Link)


def link(data: bytes) -> Link:
    """Return number and predecessor of a line.

    Raises:
        ValueError: the line is no record.
    """
    try:
        return _link.decode(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
