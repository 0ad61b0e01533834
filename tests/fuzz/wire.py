"""Laws of the wire: whatever policyd accepts, every other parser reads the same."""

from __future__ import annotations

import json
from typing import Any

from policyd.acp import (
    UPDATE,
    Lines,
    NotJsonError,
    ProtocolError,
    claims,
    envelope,
    has_method,
    readable_id,
    runs,
    session_of,
    skim,
    strict,
    update_call,
    update_kind,
)
from tests.fuzz.law import hold

WATCHED = frozenset({"tool_call", "tool_call_update", "current_mode_update", "?"})
MEMBERS = ("id", "params", "result", "error")


def check(data: bytes) -> None:
    """Frames, envelopes and values of any bytes."""
    _frames(data)
    _passing(data + b"\n")
    for line in data.split(b"\n")[:20]:
        _envelope(line)
        _value(line)
        for method in ("session/request_permission", "x"):
            claims(line, method)
        has_method(line), readable_id(line), update_call(line), update_kind(line), session_of(line)


def _frames(data: bytes) -> None:
    lines, got, step = Lines(limit=8192), b"", 1 + len(data) % 7
    for at in range(0, len(data), step):
        got += lines.feed(data[at : at + step])
    hold(got + lines.finish() == data, "chunks change what is read", data)


def _passing(block: bytes) -> None:
    cut = list(runs(block, WATCHED))
    whole = b"".join(piece if plain else piece + b"\n" for piece, plain in cut)
    hold(whole == block, "a block loses bytes", block, whole)
    for piece, plain in cut:
        for line in piece[:-1].split(b"\n") if plain else ():
            for message in _readings(line):
                kind = message["params"]["update"].get("sessionUpdate", "")
                hold(message["method"] == UPDATE and "id" not in message and kind not in WATCHED, "passes", line)
    for line, method, params in skim(block):
        if method is None or params is None:
            continue
        for message, said in zip(_readings(line), _readings(params), strict=True):
            same = message["method"] == method and "id" not in message and repr(message["params"]) == repr(said)
            hold(same, "skimmed otherwise", line)


def _readings(line: bytes) -> list[Any]:
    """Return what a parser reads that keeps the last of repeated keys, and one that keeps the first; of JSON only."""
    try:
        return [json.loads(line), json.loads(line, object_pairs_hook=lambda pairs: dict(reversed(pairs)))]
    except (ValueError, RecursionError):
        return []


def _envelope(line: bytes) -> None:
    try:
        found = envelope(line)
    except (ProtocolError, NotJsonError):
        return
    for message in _readings(line):
        hold(message.get("method") == found.method, "another method", line)
        for name in MEMBERS:
            raw = getattr(found, name)
            hold((raw is None) == (name not in message), f"another {name}", line)
            hold(raw is None or _same(message[name], raw), f"another {name}", line)


def _same(value: object, raw: bytes) -> bool:
    return repr(value) in {repr(one) for one in _readings(raw)}


def _value(line: bytes) -> None:
    try:
        value = strict(line)
    except ProtocolError:
        return
    hold(repr(value) == repr(json.loads(line, object_pairs_hook=_once)), "another value", line)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    hold(len(dict(pairs)) == len(pairs), "a key twice", pairs)
    return dict(pairs)
