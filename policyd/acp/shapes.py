"""The usual shape of permission requests and tool call updates, checked in C.

Rules of this module:

1. A value of this shape has only keys of the protocol, correctly spelled, except inside `rawInput`, which holds no
   nested table, and `_meta`, which holds no table inside of one.
2. A value of another shape is checked key by key (`policyd.acp.json`): nothing is refused for its shape.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, ValidationError, convert, field

Text = str | None
Scalar = str | int | float | bool | None


class _Shape(Struct, forbid_unknown_fields=True, gc=False):
    """A table without keys beside the fields."""


class _Option(_Shape):
    optionId: Text = None  # noqa: N815
    name: Text = None
    kind: Text = None


class _Location(_Shape):
    path: Text = None
    line: int | None = None


class _Shown(_Shape):
    type: Text = None
    text: Text = None


class _Block(_Shape):
    type: Text = None
    path: Text = None
    oldText: Text = None  # noqa: N815
    newText: Text = None  # noqa: N815
    content: _Shown | None = None
    terminalId: Text = None  # noqa: N815


class _Call(_Shape):
    sessionUpdate: Text = None  # noqa: N815
    toolCallId: Text = None  # noqa: N815
    title: Text = None
    kind: Text = None
    status: Text = None
    name: Text = None
    rawInput: dict[str, Scalar | list[Scalar]] | None = None  # noqa: N815
    locations: list[_Location] | None = None
    content: list[_Block] | None = None
    rawOutput: Text = None  # noqa: N815
    meta: dict[str, Scalar | dict[str, Scalar | list[Scalar]]] | None = field(default=None, name="_meta")


class _Params(_Shape):
    sessionId: Text = None  # noqa: N815
    toolCall: _Call | None = None  # noqa: N815
    update: _Call | None = None
    options: list[_Option] | None = None


def free_tables(params: object) -> tuple[list[dict[str, Any]], list[dict[str, Any]]] | None:
    """Return each `rawInput`, and each table of a `_meta`, of params of the usual shape; None for another shape."""
    try:
        found = convert(params, _Params)
    except ValidationError:
        return None
    calls = [call for call in (found.toolCall, found.update) if call is not None]
    metas = [meta for call in calls if (meta := call.meta)]
    inner = [table for meta in metas for table in meta.values() if isinstance(table, dict)]
    return [call.rawInput for call in calls if call.rawInput], metas + inner
