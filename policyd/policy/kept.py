"""What was read of a policy file, kept so that the same bytes need not be read and checked again.

Rules of this module:

1. Only the reading is kept: the tables of the file, lines, which blocks are plain, and the fact that their shape was
   found right. Patterns are compiled each time, so nothing that is kept says what a rule means beyond its words.
2. A file is kept under the hash of its bytes, its layer and policyd's version, and only if nothing is wrong with its
   shape or with keys that stand together; all else is looked at each time. What does not fit, is damaged or cannot be
   told apart from damage is read anew.
3. Nothing of the managed layer is kept or recalled: no user could be trusted with it.
4. The shelf says whether what it hands out is the user's own; here it is only decoded, as `marshal` of plain values.
"""

from __future__ import annotations

import marshal
from typing import Any, Protocol

from policyd.digest import sha256
from policyd.model import Layer
from policyd.policy.blocks import normal
from policyd.policy.parsed import Parsed, plain_file
from policyd.policy.source import PolicySource

DIGEST = 32
FORMAT = b"policyd policy 2"
PIECE = 500
"""Blocks that are packed at once: other threads wait that long."""
FOUND = ("headers", "default_keys", "resources", "starts")
"""Properties of a reading that are kept beside its tables."""


class Shelf(Protocol):
    """Where readings are kept: the user's own, or nothing comes from it."""

    def get(self, key: str) -> bytes | None:
        """Return what is kept under `key`, None where there is nothing or nobody can vouch for it."""

    def put(self, key: str, data: bytes) -> None:
        """Keep `data`; never raises."""


def recalled(source: PolicySource, version: str, shelf: Shelf | None) -> Parsed:
    """Return a file as it was read before, or read it, and keep what was read if its shape is right."""
    if shelf is None or source.layer is Layer.MANAGED:
        return read(source, version)
    key = key_of(source, version)
    parsed = restored(source, shelf.get(key.hex()), key)
    if parsed is None:
        parsed = read(source, version)
        data = packed(parsed)
        if data is not None:
            shelf.put(key.hex(), sha256(key + data).digest() + data)
    return parsed


def read(source: PolicySource, version: str) -> Parsed:
    """Read a file."""
    from policyd.policy.read import parse

    return parse(source, version)


def key_of(source: PolicySource, version: str) -> bytes:
    """Return the name of exactly these bytes, read by exactly this version."""
    about = f"{version}\0{source.layer.word}\0{marshal.version}\0"
    return sha256(FORMAT + about.encode() + source.data).digest()


def packed(parsed: Parsed) -> bytes | None:
    """Return a file without a mistake as plain data; None for one with a mistake, or with a moment in it."""
    from policyd.policy.together import mistakes

    if parsed.diagnostics or parsed.partial:
        return None
    found = zip((*parsed.rules, *parsed.defaults), (*parsed.resources[0], *parsed.resources[1]), strict=True)
    if any(True for (_, block), resource in found if resource is None for _ in mistakes(normal(block))):
        return None
    try:
        return marshal.dumps((parts(parsed.raw), {name: getattr(parsed, name) for name in FOUND}))
    except ValueError:
        return None


def parts(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the tables of a file with its blocks in pieces: no piece takes long to pack or unpack."""
    return {key: pieces(value) if key in ("rule", "default") else value for key, value in raw.items()}


def pieces(blocks: list[Any]) -> list[bytes]:
    """Pack a list of blocks, some at a time."""
    return [marshal.dumps(blocks[at : at + PIECE]) for at in range(0, len(blocks), PIECE)]


def whole(packed: dict[str, Any]) -> dict[str, Any]:
    """Return the tables of a file that was packed in parts."""
    raw = dict(packed)
    for key in ("rule", "default"):
        if key in raw:
            raw[key] = [block for piece in raw[key] for block in marshal.loads(piece)]  # noqa: S302 - see `restored`
    return raw


def restored(source: PolicySource, data: bytes | None, key: bytes) -> Parsed | None:
    """Return the file that `data` was packed from, None where it does not fit."""
    if data is None or sha256(key + data[DIGEST:]).digest() != data[:DIGEST]:
        return None
    try:
        packed, found = marshal.loads(memoryview(data)[DIGEST:])  # noqa: S302 - the user's own
        raw = whole(packed)
        parsed = Parsed(source, source.data.decode(), raw, plain_file(raw), checked=True)
        parsed.rules = list(enumerate(raw.get("rule", ())))
        parsed.defaults = list(enumerate(raw.get("default", ())))
    except (ValueError, TypeError, EOFError, AttributeError):
        return None
    parsed.__dict__.update(found)
    return parsed
