"""What was read of a policy file, kept so that the same bytes need not be read and checked again.

Rules of this module:

1. Only the reading is kept: blocks in plain data, lines, and the fact that their shape was found right. Patterns are
   compiled each time, so nothing that is kept says what a rule means beyond its words.
2. A file is kept under the hash of its bytes, its layer and policyd's version, and only if it held no mistake. What
   does not fit, is damaged or cannot be told apart from damage is read anew.
3. Nothing of the managed layer is kept or recalled: no user could be trusted with it.
4. The shelf says whether what it hands out is the user's own; here it is only decoded, as `marshal` of plain values.
"""

from __future__ import annotations

import marshal
from hashlib import sha256
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, cast

from policyd.model import Layer
from policyd.policy.parsed import Parsed, plain_file
from policyd.policy.source import PolicySource
from policyd.policy.together import CONDITIONS

if TYPE_CHECKING:
    from policyd.policy.file import DefaultBlock, RuleBlock

UNLESS = dict.fromkeys(CONDITIONS)
NAMED = {**UNLESS, **dict.fromkeys(("id", "reason", "until", "unless"))}
RULE = {**NAMED, **dict.fromkeys(("opaque", "escalate", "remember", "match", "not_match"))}
DEFAULT = {**NAMED, "delegate": False}
DIGEST = 32
FORMAT = b"policyd policy 1"


class Shelf(Protocol):
    """Where readings are kept: the user's own, or nothing comes from it."""

    def get(self, key: str) -> bytes | None:
        """Return what is kept under `key`, None where there is nothing or nobody can vouch for it."""

    def put(self, key: str, data: bytes) -> None:
        """Keep `data`; never raises."""


def recalled(source: PolicySource, version: str, shelf: Shelf | None) -> Parsed:
    """Return a file as it was read before, or read it, and keep what was read if it holds no mistake."""
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
    digest = sha256(FORMAT)
    for part in (version, source.layer.word, marshal.version):
        digest.update(f"{part}\0".encode())
    digest.update(source.data)
    return digest.digest()


def packed(parsed: Parsed) -> bytes | None:
    """Return a file without a mistake as plain data; None for one with a mistake, or with a moment in it."""
    from policyd.policy.together import mistakes

    blocks = [block for _, block in (*parsed.rules, *parsed.defaults)]
    if parsed.diagnostics or parsed.partial or any(True for block in blocks for _ in mistakes(block)):
        return None
    file = parsed.file
    said = {"name": file.name, "revision": file.revision, "defaults": file.defaults, "sets": file.sets}
    rules = [block.model_dump(exclude_none=True) for _, block in parsed.rules]
    defaults = [block.model_dump(exclude_none=True) for _, block in parsed.defaults]
    try:
        return marshal.dumps((said, rules, defaults, parsed.raw, parsed.headers, parsed.default_keys))
    except ValueError:
        return None


def restored(source: PolicySource, data: bytes | None, key: bytes) -> Parsed | None:
    """Return the file that `data` was packed from, None where it does not fit."""
    if data is None or sha256(key + data[DIGEST:]).digest() != data[:DIGEST]:
        return None
    try:
        said, rules, defaults, raw, headers, keys = marshal.loads(memoryview(data)[DIGEST:])  # noqa: S302 - the user's own
        parsed = Parsed(source, source.data.decode(), raw, plain_file(said), checked=True)
        parsed.rules = [(number, cast("RuleBlock", block(RULE, each))) for number, each in enumerate(rules)]
        parsed.defaults = [(number, cast("DefaultBlock", block(DEFAULT, each))) for number, each in enumerate(defaults)]
    except (ValueError, TypeError, EOFError, AttributeError):
        return None
    parsed.__dict__["headers"], parsed.__dict__["default_keys"] = headers, keys  # what the properties would find
    return parsed


def block(keys: dict[str, Any], values: dict[str, Any]) -> SimpleNamespace:
    """Return a block as the compiler asks for it."""
    if "unless" in values:
        values["unless"] = [SimpleNamespace(**{**UNLESS, **one}) for one in values["unless"]]
    return SimpleNamespace(**{**keys, **values})
