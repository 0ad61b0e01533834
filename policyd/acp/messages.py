"""The messages policyd writes itself. Ids are inserted byte for byte as received; every message ends with a newline.

Clients show either `message` or `data.details` of an error, so both hold the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

REFUSED = -32001
"""A side door or a setting refused by policy."""
INVALID = -32600
UNKNOWN_METHOD = -32601
INVALID_PARAMS = -32602
CANCELLED = -32800
META = "policyd"

_encode = msgspec.json.Encoder().encode


def result(ident: bytes, value: object) -> bytes:
    """Return a response with this result."""
    return b'{"jsonrpc":"2.0","id":' + ident + b',"result":' + _encode(value) + b"}\n"


def error(ident: bytes, code: int, message: str) -> bytes:
    """Return an error response; `message` is also its `data.details`."""
    body = _encode({"code": code, "message": message, "data": {"details": message}})
    return b'{"jsonrpc":"2.0","id":' + ident + b',"error":' + body + b"}\n"


def permission(ident: bytes, option: str | None, meta: Mapping[str, Any] | None = None) -> bytes:
    """Return the answer to a permission request: an option's id, or None for the outcome `cancelled`."""
    outcome: dict[str, Any] = (
        {"outcome": "cancelled"} if option is None else {"outcome": "selected", "optionId": option}
    )
    value: dict[str, Any] = {"outcome": outcome}
    if meta:
        value["_meta"] = {META: dict(meta)}
    return result(ident, value)


def request(ident: str, method: str, params: Mapping[str, Any]) -> bytes:
    """Return a request of policyd's own."""
    return _encode({"jsonrpc": "2.0", "id": ident, "method": method, "params": dict(params)}) + b"\n"


def spliced_request(ident: bytes, method: str, params: bytes) -> bytes:
    """Return a request with params kept byte for byte."""
    return b'{"jsonrpc":"2.0","id":' + ident + b',"method":' + _encode(method) + b',"params":' + params + b"}\n"


def notification(method: str, params: Mapping[str, Any]) -> bytes:
    """Return a notification."""
    return _encode({"jsonrpc": "2.0", "method": method, "params": dict(params)}) + b"\n"


def cancel_request(ident: bytes) -> bytes:
    """Return `$/cancel_request` for a request by its id."""
    return b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":' + ident + b"}}\n"


def cancel_session(session_id: str) -> bytes:
    """Return `session/cancel`."""
    return notification("session/cancel", {"sessionId": session_id})


def refused_call(session_id: str, call_id: str, title: str, text: str) -> bytes:
    """Return the synthetic tool call that shows a refusal to the person."""
    update = {
        "sessionUpdate": "tool_call",
        "toolCallId": call_id,
        "title": title,
        "kind": "other",
        "status": "failed",
        "content": [{"type": "content", "content": {"type": "text", "text": text}}],
    }
    return notification("session/update", {"sessionId": session_id, "update": update})


def mode_update(session_id: str, mode: str) -> bytes:
    """Return the update that tells a client which mode is in force."""
    update = {"sessionUpdate": "current_mode_update", "currentModeId": mode}
    return notification("session/update", {"sessionId": session_id, "update": update})
