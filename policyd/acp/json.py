"""Strict JSON: text that two parsers could interpret differently is refused.

Refused are: duplicate keys at any depth (compared after unescaping), keys that differ only in case, case variants of
names the protocol defines, NaN and infinities (also by overflow), lone surrogates, bytes that are not UTF-8, a byte
order mark, raw control characters, trailing bytes, integers over 4 300 digits, nesting over 128, more than 500 000
values or 100 000 tables and lists (counted before one object is built).

A value that equals its own compact re-encoding has no duplicate keys, and one of the usual shape (`shapes`) has no keys
that need a check: the usual frame needs no Python call per object.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from policyd.acp.shapes import free_tables

DEPTH = 128
VALUES = 500_000
CONTAINERS = 100_000
"""Tables and lists: each is looked at."""
FREE = frozenset({"rawInput", "rawOutput", "_meta", "env", "headers"})
"""Fields with free-form content: below them only colliding keys are refused."""
HOLDING = frozenset({dict, list})
"""Types of what holds other values, as JSON is decoded."""
NAMES = frozenset(
    {
        "additionalDirectories",
        "agentCapabilities",
        "agentInfo",
        "args",
        "availableModes",
        "clientCapabilities",
        "clientInfo",
        "code",
        "command",
        "configId",
        "configOptions",
        "content",
        "currentModeId",
        "currentValue",
        "cwd",
        "data",
        "description",
        "env",
        "error",
        "id",
        "invocation",
        "jsonrpc",
        "kind",
        "limit",
        "line",
        "locations",
        "mcpServers",
        "message",
        "method",
        "modeId",
        "modes",
        "name",
        "newText",
        "oldText",
        "optionId",
        "options",
        "outcome",
        "outputByteLimit",
        "params",
        "path",
        "prompt",
        "protocolVersion",
        "rawInput",
        "rawOutput",
        "requestId",
        "resource",
        "result",
        "sessionId",
        "sessionUpdate",
        "status",
        "subject",
        "terminalId",
        "text",
        "title",
        "toolCall",
        "toolCallId",
        "type",
        "update",
        "uri",
        "value",
        "version",
    }
)
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_PLAIN: msgspec.json.Decoder[Any] = msgspec.json.Decoder(float_hook=float)  # its own takes 10 µs for a large exponent
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class ProtocolError(ValueError):
    """A frame that is refused; the message says why, for people and logs."""


def strict(raw: bytes, names: Iterable[str] = ()) -> object:
    """Return the one JSON value `raw` holds.

    `names` are further field names, those an agent profile reads at the top level of `rawInput`.

    Raises:
        ProtocolError: anything two parsers could read differently, or too deep, or too large.
    """
    if len(raw) > CONTAINERS:
        _count(raw)
    value = _decode(raw)
    _check(value, frozenset(names))
    return value


def strict_object(raw: bytes, names: Iterable[str] = ()) -> dict[str, Any]:
    """Return `strict(raw)` if it is an object.

    Raises:
        ProtocolError: as `strict`, or another type.
    """
    value = strict(raw, names)
    if not isinstance(value, dict):
        raise ProtocolError("not a JSON object")
    return value


def _count(raw: bytes) -> None:
    """Refuse too many values; brackets and commas inside strings do not count."""
    if _crowded(raw):
        why = _crowded(_STRING.sub(b"", raw))
        if why:
            raise ProtocolError(why)


def _crowded(raw: bytes) -> str:
    containers = raw.count(b"[") + raw.count(b"{")
    if containers > CONTAINERS:
        return f"more than {CONTAINERS} tables and lists in one frame"
    return f"more than {VALUES} values in one frame" if 1 + raw.count(b",") + containers > VALUES else ""


def _decode(raw: bytes) -> object:
    try:
        value: object = _PLAIN.decode(raw)
        if msgspec.json.encode(value) == raw:
            return value
    except (msgspec.MsgspecError, RecursionError, ValueError):  # what is wrong, the slower reading says
        pass
    return _decode_slowly(raw)


def _decode_slowly(raw: bytes) -> object:
    try:
        text = raw.decode("utf-8")
        value = _DECODER.decode(text)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        raise ProtocolError("bytes that are not UTF-8, or a lone surrogate") from None
    except RecursionError:
        raise ProtocolError(f"nested deeper than {DEPTH}") from None
    except ProtocolError:
        raise
    except ValueError as error:
        raise ProtocolError(f"not JSON: {error}"[:200]) from None
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ProtocolError(f"the key {twice[:80]!r} occurs twice")
    return members


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ProtocolError("a number too large for any parser")
    return value


def _constant(text: str) -> object:
    raise ProtocolError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=_number, parse_constant=_constant)


def _check(value: object, profile: frozenset[str]) -> None:
    """Check depth and keys: of what has the usual shape only the names that are the agent's own."""
    tables = free_tables(value)
    if tables is None:
        _walk(value, profile)
        return
    inputs, metas = tables
    for table in metas:
        _keys(table)
    for table in inputs:
        _keys(table)
        _variants(table, profile)


def _walk(value: object, profile: frozenset[str]) -> None:
    """Check the same without recursion: level by level, what is free of the protocol's names apart."""
    bound, free = [value], list[Any]()
    depth = 0
    while bound or free:
        inner: list[Any] = []
        loose: list[Any] = []
        for item in bound:
            if isinstance(item, dict):
                if not item.keys() <= NAMES:
                    _keys(item)
                    _variants(item, NAMES)
                if not HOLDING.isdisjoint(map(type, item.values())):
                    _sort(item, profile, inner, loose)
            elif isinstance(item, list):
                inner += [member for member in item if isinstance(member, (dict, list))]
        for item in free:
            if isinstance(item, dict):
                _keys(item)
                item = item.values()
            loose += [member for member in item if isinstance(member, (dict, list))]
        bound, free = inner, loose
        depth += 1
        if depth > DEPTH:
            raise ProtocolError(f"nested deeper than {DEPTH}")


def _sort(item: dict[str, Any], profile: frozenset[str], inner: list[Any], loose: list[Any]) -> None:
    """Sort what an object of the protocol's holds: what is of the protocol too, and what is free."""
    for key, member in item.items():
        if isinstance(member, (dict, list)):
            if key not in FREE:
                inner.append(member)
                continue
            loose.append(member)
            if key == "rawInput" and isinstance(member, dict):
                _variants(member, profile)


def _keys(item: dict[str, Any]) -> None:
    if len(item) > 1 and len({key.casefold() for key in item}) != len(item):
        raise ProtocolError("two keys of one object differ only in case")


def _variants(item: dict[str, Any], names: frozenset[str]) -> None:
    if item.keys() <= names or not names:
        return
    folded = _folded(names)
    for key in item:
        if key not in names and key.casefold() in folded:
            raise ProtocolError(f"the key {key[:80]!r} is a case variant of {folded[key.casefold()]!r}")


@lru_cache(maxsize=64)
def _folded(names: frozenset[str]) -> dict[str, str]:
    return {name.casefold(): name for name in sorted(names)}
