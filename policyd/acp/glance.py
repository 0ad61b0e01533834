"""A fast scan of whole blocks of lines, nearly all in C: which may be forwarded unparsed, and which `envelope` parses.

1. The result is certain for every parser: each envelope key occurs once, and no carriage return occurs inside. Each
   line is decoded by itself, so that no newline is inside a message and no two messages share a line.
2. A block of only streamed updates is recognised in one pass (`streams`): every key in it is known, and every
   occurrence of a key is checked, so that no parser can see anything else in it.
3. What is not recognised is never forwarded unseen: it is parsed, line by line.

`BytesIO` splits at byte 0x0A only, and is the fastest to do so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from io import BytesIO
from typing import Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from policyd.acp.envelope import FAST, Fast, returns

UPDATE = "session/update"
_FRAME = len('{"jsonrpc":"2.0","method":"","params":}')
_MOST = _FRAME + len(',"params":1') - 1
_MOST_UPDATE = _MOST + len(UPDATE)
BACKSLASH, RETURN = b"\\\r"
_UNREAD = Fast("2.0")


class _Update(msgspec.Struct):
    sessionUpdate: str = ""  # noqa: N815


class _UpdateParams(msgspec.Struct):
    update: _Update
    sessionId: str = ""  # noqa: N815


class _Streamed(Struct, forbid_unknown_fields=True, gc=False):
    sessionUpdate: Literal[  # noqa: N815
        "agent_message_chunk",
        "agent_thought_chunk",
        "user_message_chunk",
        "plan",
        "usage_update",
        "available_commands_update",
    ]
    content: Raw | UnsetType = UNSET
    messageId: Raw | UnsetType = UNSET  # noqa: N815
    entries: Raw | UnsetType = UNSET
    used: Raw | UnsetType = UNSET
    size: Raw | UnsetType = UNSET
    cost: Raw | UnsetType = UNSET
    availableCommands: Raw | UnsetType = UNSET  # noqa: N815
    meta: Raw | UnsetType = msgspec.field(default=UNSET, name="_meta")


class _StreamedParams(Struct, forbid_unknown_fields=True, gc=False):
    update: _Streamed
    sessionId: Raw | UnsetType = UNSET  # noqa: N815
    meta: Raw | UnsetType = msgspec.field(default=UNSET, name="_meta")


class _StreamedLine(Struct, forbid_unknown_fields=True, gc=False):
    """A notification that every parser sees as text, a plan or a list that the agent streams.

    Every key is known, so that none occurs in another case; every occurrence of a repeated key is checked.
    """

    jsonrpc: Literal["2.0"]
    method: Literal["session/update"]
    params: _StreamedParams


_streamed = msgspec.json.Decoder(_StreamedLine)
_update = msgspec.json.Decoder(_UpdateParams)


def streams(block: bytes) -> bool:
    """Say whether every line of a block is certainly a `session/update` that streams text, a plan or a list."""
    if RETURN in block:
        return False
    try:
        deque(map(_streamed.decode, BytesIO(block)), 0)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return True


def skim(block: bytes) -> Iterator[tuple[bytes, str | None, bytes | None]]:
    """Yield each line of a block of whole lines, without its newline, with the result of a scan.

    `(line, method, params)`: certainly the one notification it seems to be.
    `(line, None, None)`: `envelope` has to parse it.
    """
    for whole in BytesIO(block):
        line = whole[:-1]
        one = _try(line)
        method, raw = one.method, one.params
        if one.id is UNSET and method is not UNSET and raw is not UNSET:
            params = bytes(raw)
            if len(line) - len(params) - len(method) <= _MOST and not returns(line):
                yield line, method, params
                continue
        yield line, None, None


def runs(block: bytes, watched: frozenset[str]) -> Iterator[tuple[bytes, bool]]:
    """Split a block of whole lines into runs to forward unparsed and lines to parse.

    Yield `(bytes, True)`: one or several whole lines, each certainly a `session/update` of a kind not in `watched`;
    `(line, False)`: any other line, without its newline.
    """
    start = at = 0
    for whole in BytesIO(block):
        line, end = whole[:-1], at + len(whole)
        if not _plain(line, watched):
            if start < at:
                yield block[start:at], True
            yield line, False
            start = end
        at = end
    if start < at:
        yield block[start:], True


def _try(line: bytes) -> Fast:
    try:
        return FAST.decode(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _UNREAD


def _plain(line: bytes, watched: frozenset[str]) -> bool:
    one = _try(line)
    params = one.params
    if one.method != UPDATE or params is UNSET or one.id is not UNSET or len(line) - len(params) > _MOST_UPDATE:
        return False
    if returns(line) or line.count(b"essionUpdate") != 1 or (BACKSLASH in line and b"\\u00" in line):
        return False
    try:
        return _update.decode(params).update.sessionUpdate not in watched
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False


def update_kind(params: bytes) -> tuple[str, str]:
    """Return session id and `sessionUpdate` of the params of a `session/update`.

    `("", "?")` if unknown or ambiguous: the key occurs twice, or ASCII is escaped.
    """
    if params.count(b"essionUpdate") != 1 or (BACKSLASH in params and b"\\u00" in params):
        return "", "?"
    try:
        found = _update.decode(params)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return "", "?"
    return found.sessionId, found.update.sessionUpdate
