"""Mutation of messages as values: bytes changed at random seldom stay JSON, and types are where readers err."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

ODD: tuple[object, ...] = (
    *(None, True, False, 0, 1, -1, 1.5, 10**30, "", "s", "c", "yes", "allow_once", "reject_once", "tool_call", "\x00"),
    *("session/request_permission", "session/update", "initialize", "session/new", "session/load", "session/set_mode"),
    *("execute", "edit", "switch_mode", "completed", "failed", "~", "../..", "file:///etc/passwd", "\ud800", "é" * 300),
    *([], {}, [None], [[]], [{}], {"": None}, {"command": ["rm", None]}, {"path": {}}, {"type": "diff", "path": 1}),
)


def twisted(dice: random.Random, data: bytes) -> bytes:
    """Return `data` with a few nodes of its JSON lines replaced, removed, renamed, moved, or a line repeated."""
    rows = data.split(b"\n")
    for _ in range(dice.choice((1, 1, 2, 4))):
        at = dice.randrange(len(rows))
        lead = rows[at][:1] if rows[at][:1] in (b"a", b"c") else b""
        try:
            value = json.loads(rows[at][len(lead) :])
        except (ValueError, RecursionError):
            rows.insert(at, dice.choice(rows))
            continue
        if dice.randrange(8) == 0:
            rows.insert(dice.randint(0, len(rows)), rows[at])
        elif isinstance(value, dict) and value:
            _change(dice, value)
            rows[at] = lead + json.dumps(value, separators=(",", ":")).encode()
    return b"\n".join(rows)


def _change(dice: random.Random, value: dict[str, object]) -> None:
    places = list(_places(value))
    holder, key = dice.choice(places)
    other, name = dice.choice(places)
    match dice.randrange(6):
        case 0:
            del holder[key]
        case 1:
            holder[key] = json.loads(json.dumps(other[name]))
        case 2 if isinstance(key, str):
            holder[dice.choice([str(name), key.upper(), key + " "])] = holder[key]
        case 3:
            holder[key] = [holder[key]] if dice.randrange(2) else {"value": holder[key]}
        case _:
            holder[key] = dice.choice(ODD)


def _places(value: object) -> Iterator[tuple[Any, Any]]:
    """Yield every container with each of its keys or positions."""
    if isinstance(value, (dict, list)):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])
