"""The cache of parsed policy files, so that the same bytes need not be parsed and checked again.

Rules of this module:

1. Only the parsed form is cached: the tables of the file, line numbers, which blocks are plain, and the fact that the
   file is well formed. Patterns are compiled each time, so no cached data decides what a pattern means.
2. The key is the hash of the file's bytes, its layer and policyd's version. Only a file without mistakes in its shape
   or in its combinations of keys is cached. An entry that does not fit or is damaged is ignored.
3. The managed layer is never cached: no user can be trusted with it.
4. The cache vouches that its entries are the user's own; here they are only decoded, as `marshal` of plain values.
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
"""Blocks packed in one call, during which other threads wait."""
FOUND = ("headers", "default_keys", "resources", "starts")
"""Properties of `Parsed` that are cached beside its tables."""


class Cache(Protocol):
    """Storage for parsed files that returns only the user's own data."""

    def get(self, key: str) -> bytes | None:
        """Return the data under `key`, None if there is none or its owner is not surely the user."""

    def put(self, key: str, data: bytes) -> None:
        """Store `data`; never raises."""


def parse_cached(source: PolicySource, version: str, cache: Cache | None) -> Parsed:
    """Return a parsed file from the cache, or parse it and cache it if it is well formed."""
    if cache is None or source.layer is Layer.MANAGED:
        return read(source, version)
    key = key_of(source, version)
    parsed = restored(source, cache.get(key.hex()), key)
    if parsed is None:
        parsed = read(source, version)
        data = packed(parsed)
        if data is not None:
            cache.put(key.hex(), sha256(key + data).digest() + data)
    return parsed


def read(source: PolicySource, version: str) -> Parsed:
    """Parse a file."""
    from policyd.policy.read import parse

    return parse(source, version)


def key_of(source: PolicySource, version: str) -> bytes:
    """Return the key for exactly these bytes, parsed by exactly this version."""
    about = f"{version}\0{source.layer.word}\0{marshal.version}\0"
    return sha256(FORMAT + about.encode() + source.data).digest()


def packed(parsed: Parsed) -> bytes | None:
    """Return a parsed file as plain data; None for one with a mistake, or with a date in it."""
    from policyd.policy.combinations import mistakes

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
    """Return the tables of a file with its blocks packed in pieces, so that no call takes long."""
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
    """Return the parsed file that `data` holds, None if it does not fit."""
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
