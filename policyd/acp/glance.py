"""A glance at whole blocks of lines, nearly all in C: what may pass unseen, and what `envelope` has to look at.

1. What is told of a line is certain, whoever reads it: each envelope key stands there once, each newline ends a
   message, no carriage return stands inside.
2. A block of nothing but what an agent streams is told in one go (`streams`): every key in it is known, and every
   occurrence of a key is checked, so no reading of it is anything else.
3. What cannot be told is never passed: it is looked at, line by line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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


class _Streamed(Struct, forbid_unknown_fields=True):
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


class _StreamedParams(Struct, forbid_unknown_fields=True):
    update: _Streamed
    sessionId: Raw | UnsetType = UNSET  # noqa: N815
    meta: Raw | UnsetType = msgspec.field(default=UNSET, name="_meta")


class _StreamedLine(Struct, forbid_unknown_fields=True):
    """A notification that no reading of can be anything but text, a plan or a list that the agent streams.

    Every key is known, so that none stands there in another case; every occurrence of a repeated key is checked.
    """

    jsonrpc: Literal["2.0"]
    method: Literal["session/update"]
    params: _StreamedParams


_streamed = msgspec.json.Decoder(_StreamedLine)
_update = msgspec.json.Decoder(_UpdateParams)


def skim(block: bytes) -> Iterator[tuple[bytes, str | None, bytes | None]]:
    """Yield each line of a block of whole lines, newline included, with what a glance tells of it.

    `(line, method, params)`: certainly the one notification it seems to be.
    `(line, None, None)`: `envelope` has to look.
    """
    for line, one in _decoded(block):
        method, raw = one.method, one.params
        if one.id is UNSET and method is not UNSET and raw is not UNSET:
            params = bytes(raw)
            if len(line) - len(params) - len(method) <= _MOST and not returns(line):
                yield line, method, params
                continue
        yield line, None, None


def _decoded(block: bytes) -> Iterable[tuple[bytes, Fast]]:
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    found: list[Fast] = []
    if _messages(block):
        try:
            found = FAST.decode_lines(block)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            found = []
    if len(found) != len(lines):
        found = [_try(line) for line in lines]
    return zip(lines, found, strict=True)


def _try(line: bytes) -> Fast:
    try:
        return FAST.decode(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _UNREAD


def _messages(block: bytes) -> int:
    """Return how many lines a block has, 0 if an end of one, as anybody reads it, may stand inside an object.

    `decode_lines` cuts where a value ends, not at newlines: a line inside of another message would be seen by none but
    whoever reads line by line. Inside a value no `}` is followed by `{`. An object for each newline is one a line.
    """
    if RETURN in block or block[:1] != b"{" or block[-2:] != b"}\n":
        return 0
    newlines = block.count(b"\n")
    return newlines if block.count(b"}\n{") == newlines - 1 else 0


def streams(block: bytes) -> bool:
    """Say whether every line of a block is certainly a `session/update` that streams text, a plan or a list."""
    count = _messages(block)
    if not count:
        return False
    try:
        return len(_streamed.decode_lines(block)) == count
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False


def runs(block: bytes, watched: frozenset[str]) -> Iterator[tuple[bytes, bool]]:
    """Cut a block of whole lines into what may pass unseen and what has to be looked at.

    Yield `(bytes, True)`: one or several whole lines, each certainly a `session/update` of a kind not in `watched`;
    `(line, False)`: any other line, without its newline.
    """
    start = at = 0
    for line, one in _decoded(block):
        end = at + len(line) + 1
        if not _plain(line, one, watched):
            if start < at:
                yield block[start:at], True
            yield line, False
            start = end
        at = end
    if start < len(block):
        yield block[start:], True


def _plain(line: bytes, one: Fast, watched: frozenset[str]) -> bool:
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

    `("", "?")` if they cannot be told, or might be told differently: the key stands there twice, or ASCII is escaped.
    """
    if params.count(b"essionUpdate") != 1 or (BACKSLASH in params and b"\\u00" in params):
        return "", "?"
    try:
        found = _update.decode(params)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return "", "?"
    return found.sessionId, found.update.sessionUpdate
