"""The parts of ACP messages that a conversation looks at, each read without trusting its shape."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from msgspec import Struct, ValidationError, convert

from policyd.model import EMPTY, TABLE, Option

LONGEST_PATH = 4096
"""The most characters of a path; longer than any file system allows."""


def absolute(value: object) -> TypeGuard[str]:
    """Say whether `value` is an absolute path: a directory relative to something unknown is not usable."""
    return isinstance(value, str) and value.startswith("/") and len(value) <= LONGEST_PATH


def listed(value: object) -> list[object]:
    """Return `value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


BESIDE = frozenset({"type", "toolCallId", "terminalId", "_meta"})
"""Fields of a command in version 2 that are neither the command nor how it runs."""


def tool_call(params: Mapping[str, object]) -> tuple[Mapping[str, object], str]:
    """Return the `toolCall` of a request, of protocol version 2 inside `subject`, and why there is none.

    A command that version 2 asks about is the call that runs it, which it need not name.
    """
    asked, subject = params.get("toolCall"), params.get("subject")
    if asked is None and isinstance(subject, TABLE) and subject.get("type") == "tool_call":
        asked = subject.get("toolCall")
    if isinstance(asked, TABLE) and isinstance(asked.get("toolCallId"), str):
        return asked, ""
    if is_command(params) and isinstance(subject, TABLE):
        named = {"toolCallId": subject["toolCallId"]} if subject.get("toolCallId") else {}
        said = {key: value for key, value in subject.items() if key not in BESIDE}
        return {**named, "kind": "execute", "rawInput": said}, ""
    return {}, "the request has a shape that is not known"


def is_command(params: Mapping[str, object]) -> bool:
    """Say whether a request is about a command in a directory, as version 2 spells one out."""
    subject = params.get("subject")
    if not isinstance(subject, TABLE) or subject.get("type") != "command" or params.get("toolCall") is not None:
        return False
    named = isinstance(subject.get("toolCallId"), str | None)
    return named and isinstance(subject.get("command"), str) and absolute(subject.get("cwd"))


def allows(params: Mapping[str, object], message: Mapping[str, object]) -> bool:
    """Say whether an answer may let the call run: anything may but a refusal or an outcome that selects nothing."""
    if "error" in message:
        return False
    result = message.get("result")
    outcome = result.get("outcome") if isinstance(result, TABLE) else None
    if not isinstance(outcome, TABLE) or outcome.get("outcome") == "cancelled":
        return False
    options, chosen = params.get("options"), outcome.get("optionId")
    kinds = [
        str(option.get("kind"))
        for option in (options if isinstance(options, list) else [])
        if isinstance(option, TABLE) and option.get("optionId") == chosen
    ]
    return not kinds or not all(kind.startswith("reject") for kind in kinds)


class _Offered(Struct, gc=False):
    options: tuple[Option, ...]


def options_of(items: Sequence[object]) -> tuple[Option, ...]:
    """Return the options of a request; a field of another type is empty, and all are of an option that is no table."""
    try:
        return convert({"options": items}, _Offered).options
    except ValidationError:
        return tuple(map(_option, items))


def _option(item: object) -> Option:
    table = item if isinstance(item, TABLE) else EMPTY
    fields = [table.get(key) for key in ("optionId", "name", "kind")]
    return Option(*[value if isinstance(value, str) else "" for value in fields])


def id_key(ident: object) -> tuple[str, object]:
    """Return a request's id as a key: `1`, `"1"` and `true` are three; an invalid id is its JSON."""
    if isinstance(ident, str | int | float) or ident is None:
        return type(ident).__name__, ident
    return "json", json.dumps(ident)


def name_version(info: object) -> tuple[str, str]:
    """Return name and version of an `agentInfo` or `clientInfo`, empty if it has none."""
    fields = info if isinstance(info, TABLE) else {}
    return str(fields.get("name") or ""), str(fields.get("version") or "")


def current_mode(fields: Mapping[str, object], option: str) -> str:
    """Return the mode a session response or a config update names; version 2 has another name for an option's id."""
    modes = fields.get("modes")
    if isinstance(modes, TABLE) and isinstance(modes.get("currentModeId"), str):
        return str(modes["currentModeId"])
    options = fields.get("configOptions")
    for item in options if isinstance(options, list) else []:
        if isinstance(item, TABLE) and option in (item.get("id"), item.get("configId")):
            return str(item.get("currentValue", ""))
    return ""
