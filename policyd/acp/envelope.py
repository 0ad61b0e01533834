"""The JSON-RPC envelope of every line: method, id and the raw bytes of the rest.

1. Every line is decoded, never searched for a word (`"session\\/request_permission"` is a valid spelling).
2. A line that two parsers could route differently is refused, whatever its method: an envelope key that occurs twice
   or in another case (`Method`, `paramſ`), a request that is also an answer, a batch, text after the object.
3. The usual line is decoded once: if a message is no longer than its parts and the JSON syntax around them, no key fits
   in twice. For any other line the skeleton (without its structured values) is parsed too.
4. A carriage return is permitted only before the newline: other parsers may end lines there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import islice
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from policyd.acp.json import ProtocolError, strict

_NAMED = len(',"method":""')
_ID, _LONG, _ERROR = len(',"id":'), len(',"params":'), len(',"error":')
_BARE = len('{"jsonrpc":"2.0"}') + len(',"id":1') - 1
"""A message shorter than this plus its parts cannot hold even the shortest member twice."""
_ENVELOPE = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
_FOLDED = {name.casefold(): name for name in _ENVELOPE}


class Fast(msgspec.Struct, forbid_unknown_fields=True):
    """A message with no key beside those of an envelope."""

    jsonrpc: Literal["2.0"]
    method: str | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Loose(msgspec.Struct):
    method: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Session(msgspec.Struct):
    sessionId: str = ""  # noqa: N815


class _CallUpdate(msgspec.Struct):
    toolCallId: str = ""  # noqa: N815


class _CallParams(msgspec.Struct):
    update: _CallUpdate
    sessionId: str = ""  # noqa: N815


class _CallLine(msgspec.Struct):
    params: _CallParams


_session = msgspec.json.Decoder(_Session)
_update_call = msgspec.json.Decoder(_CallLine)
FAST = msgspec.json.Decoder(Fast)
_text = msgspec.json.Decoder(str)
_loose = msgspec.json.Decoder(_Loose)


class _Members(list[tuple[str, Any]]):
    """The members of an object, in order, repetitions kept."""


_MARKS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[{\[]+|[}\]]+', re.DOTALL)
"""A whole string, or brackets outside strings that open or close."""
_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_MOST_MARKS = 20_000
"""Marks scanned in a refused line to find its id, and values permitted beside those of an envelope."""
_PAIRS = json.JSONDecoder(object_pairs_hook=_Members)


class NotJsonError(ValueError):
    """A line that is not a JSON object (other output of a program, a torn line): no side can act on it."""


class Envelope(Struct, frozen=True, gc=False):
    """One message, its values still the bytes they arrived as."""

    method: str | None = None
    """None = a response."""
    id: bytes | None = None
    """None = a notification. `null` is an id."""
    params: bytes | None = None
    result: bytes | None = None
    error: bytes | None = None
    key: tuple[str, object] | None = None
    """The id as a dictionary key: equal for every spelling of one id, distinct for different types."""


def id_key(raw: bytes) -> tuple[str, object]:
    """Return the value of an id with its type: `1`, `1.0` and `1e0` are one id, `"1"` another, `null` a third.

    Raises:
        ProtocolError: an id that is no scalar.
    """
    if raw.isdigit() and len(raw) < 20:
        return ("number", int(raw))
    value = strict(raw)
    if isinstance(value, (dict, list, bool)):
        raise ProtocolError("an id that is neither string, number nor null")
    kind = "text" if isinstance(value, str) else "null" if value is None else "number"
    return (kind, value)


def envelope(line: bytes) -> Envelope:
    """Return the envelope of one line, strictly read.

    Raises:
        NotJsonError: no JSON object and no batch.
        ProtocolError: a batch, or an envelope that two parsers could read differently.
    """
    if (sure := _glance(line)) is not None:
        return sure
    try:
        found = _loose.decode(line)
    except msgspec.ValidationError:
        if line.lstrip(b" \t\r\n").startswith(b"["):
            raise ProtocolError("a batch") from None
        raise NotJsonError("no JSON object") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        if any(_FOLDED.get(name.casefold()) in ("id", "method") for name, _ in _outline(line)):
            raise ProtocolError("JSON that is not strict, or nested too deep") from None
        raise NotJsonError("no JSON object") from None
    if returns(line):
        raise ProtocolError("a carriage return inside of a message")
    _check_keys(_members(_skeleton(line, found)))
    method: str | None = None
    if found.method is not UNSET:
        try:
            method = _text.decode(found.method)
        except (msgspec.MsgspecError, UnicodeError):
            raise ProtocolError("a method that is no string") from None
    return _checked(method, found)


def _glance(line: bytes) -> Envelope | None:
    """Return the envelope of a line that is too short to hold a key twice, None if it has to be checked."""
    try:
        found = FAST.decode(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    method = None if found.method is UNSET else found.method
    most = _BARE if method is None else _BARE + _NAMED + len(method)
    if found.id is not UNSET:
        most += _ID + len(found.id)
    if found.params is not UNSET:
        most += _LONG + len(found.params)
    if found.result is not UNSET:
        most += _LONG + len(found.result)
    if found.error is not UNSET:
        most += _ERROR + len(found.error)
    return _checked(method, found) if len(line.rstrip()) <= most and not returns(line) else None


def returns(line: bytes) -> bool:
    """Say whether a carriage return stands in a line anywhere but at its end."""
    return b"\r" in line and b"\r" in line.rstrip(b"\r\n")


def _checked(method: str | None, found: Fast | _Loose) -> Envelope:
    told = (method is not None) + (found.result is not UNSET) + (found.error is not UNSET)
    if told != 1 or (method is None and found.id is UNSET):
        raise ProtocolError("neither a request nor a response, or both")
    ident = None if found.id is UNSET else bytes(found.id)
    params = None if found.params is UNSET else bytes(found.params)
    result = None if found.result is UNSET else bytes(found.result)
    error = None if found.error is UNSET else bytes(found.error)
    return Envelope(method, ident, params, result, error, None if ident is None else id_key(ident))


def readable_id(line: bytes) -> bytes | None:
    """Return the id of a refused line if every parser reads the same one, else None."""
    found = [(name, value) for name, value in _outline(line) if name.casefold() == "id"]
    if len(found) != 1 or found[0][0] != "id":
        return None
    try:
        raw = _bytes(_loose.decode(line).id) or b""
    except (ValueError, RecursionError):
        raw = json.dumps(found[0][1]).encode() if type(found[0][1]) in (int, str) else b""
    try:
        id_key(raw)
    except (ValueError, RecursionError):
        return None
    return raw


def claims(line: bytes, method: str) -> bool:
    """Say whether any interpretation of a refused line calls `method`, with any spelling or repetition of the key."""
    return any(name.casefold() == "method" and value == method for name, value in _outline(line))


def has_method(line: bytes) -> bool:
    """Say whether any interpretation of a refused line has a method."""
    return any(name.casefold() == "method" for name, _ in _outline(line))


def _outline(line: bytes) -> list[tuple[str, Any]]:
    """Return the members of a refused line as any parser may see them, perhaps without structured values."""
    readings: tuple[Callable[[bytes], bytes], ...] = (_loosely, bytes, _shallow)
    for reading in readings:
        try:
            if found := _members(reading(line)):
                return found
        except (ValueError, RecursionError):  # not to be read so: the next reading leaves more out
            continue
    return []


def _loosely(line: bytes) -> bytes:
    return _skeleton(line, _loose.decode(line))


def _shallow(line: bytes) -> bytes:
    """Return an object, nested however deep, with `0` for each of its structured values; `b""` for anything else."""
    kept, depth, start = [], 0, 0
    for found in islice(_MARKS.finditer(line), _MOST_MARKS):
        first, count = line[found.start()], found.end() - found.start()
        if first in b"{[":
            if depth < 2 <= depth + count:
                kept.append(line[start : found.start() + 1 - depth])
            depth += count
        elif first in b"}]":
            depth -= count
            if depth <= 1 < depth + count:
                kept.append(b"0")
                start = found.end() - (1 - depth)
    return b"".join((*kept, line[start:])) if kept and depth == 0 else b""


def update_call(line: bytes) -> tuple[str, str]:
    """Return session id and tool call id of a refused `session/update`, parsed leniently; `""` if unknown."""
    try:
        found = _update_call.decode(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return "", ""
    return found.params.sessionId, found.params.update.toolCallId


def session_of(params: bytes) -> str:
    """Return the session that the params of any message name, `""` if none."""
    try:
        return _session.decode(params).sessionId
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""


def _skeleton(line: bytes, found: _Loose) -> bytes:
    """Return the line with each structured value replaced by `0`.

    A value's bytes occur first either where the value stands or in a value of an earlier duplicate key; in both cases
    every envelope key stays: no text between the keys of a JSON value spells one.
    """
    for value in (found.params, found.result, found.error):
        raw = _bytes(value)
        if raw is not None and raw[:1] in (b"{", b"["):
            line = line.replace(raw, b"0", 1)
    return line


def _members(line: bytes) -> list[tuple[str, Any]]:
    if _parts(line) > _MOST_MARKS and _parts(_STRINGS.sub(b"", line)) > _MOST_MARKS:
        raise ProtocolError("an envelope that holds too much to be read")
    try:
        pairs = _PAIRS.decode(line.decode("utf-8").strip(" \t\r\n"))
    except UnicodeError:
        raise ProtocolError("bytes that are not UTF-8") from None
    except (ValueError, RecursionError):
        raise ProtocolError("an envelope that cannot be read") from None
    return pairs if isinstance(pairs, _Members) else []


def _parts(line: bytes) -> int:
    return line.count(b",") + line.count(b"[") + line.count(b"{")


def _check_keys(members: list[tuple[str, Any]]) -> None:
    seen = set()
    for key, _ in members:
        name = _FOLDED.get(key.casefold())
        if name is None:
            continue
        if name != key:
            raise ProtocolError(f"the key {key!r} is a case variant of {name!r}")
        if name in seen:
            raise ProtocolError(f"the key {name!r} occurs twice")
        seen.add(name)


def _bytes(value: Raw | UnsetType) -> bytes | None:
    return None if value is UNSET else bytes(value)
