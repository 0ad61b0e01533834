"""Actions told in one line each, so that tables of them can be read, and transcripts replayed without a policy."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from policyd.actions import ASKING, SIDE_DOORS, Conversation, Machine
from policyd.model import Action, Request
from tests.fakes import FakeFilesystem

PROJECT = FakeFilesystem(
    files={
        "/home/dev/project": None,
        "/home/dev/project/sub": None,
        "/home/dev/project/sub/build": None,
        "/home/dev/project/sub/build/x.o": "",
        "/home/dev/project/src/main.py": "",
        "/home/dev/project/README.md": "",
        "/home/dev/project/old.txt": "",
        "/home/dev/project/notes.txt": "",
        "/home/dev/project/.env": "",
        "/etc/hostname": "",
        "/home/dev/.config/policyd": None,
        "/home/dev/.config/policyd/policyd.toml": "",
    },
    links={"/home/dev/project/link.txt": "/etc/hostname", "/home/dev/project/tmplink": "/tmp"},
)
CAPTURES = sorted((Path(__file__).parent / "data" / "captures").glob("*.jsonl"))
"""Recorded conversations of real agents."""
MACHINE = Machine("/home/dev", PROJECT, reserved=("/home/dev/.config/policyd", "/etc/policyd"))


def told(action: Action) -> str:
    """Return an action as `KINDS RESOURCE`, with what sets it apart behind."""
    kinds = "+".join(sorted(action.kinds)) or "any"
    notes = [action.role.value] if action.role.value != "primary" else []
    notes += [f"carried by {action.carrier}"] if action.carrier is not None else []
    notes += ["idle"] if action.idle else []
    notes += [f"escalate {action.escalate}"] if action.escalate else []
    notes += [f"guarded {action.guarded}"] if action.guarded else []
    notes += [f"mode {action.mode.name}"] if action.mode else []
    notes += [f"in {'|'.join(action.cwd) or '?'}"] if action.command and action.cwd != ("/home/dev/project",) else []
    notes += ["one reading"] if action.command and action.command.strict_only else []
    return f"{kinds} {resource(action)}" + (f" ({', '.join(notes)})" if notes else "")


def resource(action: Action) -> str:
    """Return what an action is about."""
    if action.opaque:
        return f"opaque: {action.opaque}"
    if action.path is not None:
        return "|".join(action.path.forms) + ("" if action.path.reach == "entry" else f" to {action.path.reach}")
    if action.command is not None:
        env = [f"{one.name}={one.value.text}" for one in action.command.env]
        return "$ " + " ".join([*env, *(word.text for word in action.command.argv)])
    if action.url is not None:
        return action.url.text
    if action.tool is not None:
        pairs = "|".join("/".join(pair) for pair in action.tool.splits)
        return f"tool {pairs or action.tool.name}" + (f" {json.dumps(action.args)}" if action.mcp else "")
    return "-"


def replay(lines: Iterable[Mapping[str, Any]], conversation: Conversation | None = None) -> Iterator[Request]:
    """Yield every request and side-door call of a transcript, waiting for late details as the wire does."""
    talk = conversation or Conversation(MACHINE)
    rows = [(line["dir"], line["msg"]) for line in lines]
    while rows:
        direction, message = rows.pop(0)
        talk.observe(direction, message)
        method, params = message.get("method"), message.get("params", {})
        if method == ASKING:
            session = params.get("sessionId")
            while talk.waits(params) and rows and is_update(rows[0][1], session):
                talk.observe(*rows.pop(0))
            yield talk.request(params)
        elif method in SIDE_DOORS and direction == "a2c":
            yield talk.side_door(method, params)


def is_update(message: Mapping[str, Any], session: object) -> bool:
    return message.get("method") == "session/update" and message["params"].get("sessionId") == session


ONCE = [{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]


def opened(name: str, version: str = "1.0", servers: tuple[str, ...] = (), machine: Machine = MACHINE) -> Conversation:
    talk = Conversation(machine)
    info = {"agentInfo": {"name": name, "version": version}} if name else {}
    talk.observe("c2a", {"id": 0, "method": "initialize", "params": {}})
    talk.observe("a2c", {"id": 0, "result": {"protocolVersion": 1, **info}})
    named = [{"name": server} for server in servers]
    talk.observe("c2a", {"id": 1, "method": "session/new", "params": {"cwd": "/home/dev/project", "mcpServers": named}})
    talk.observe("a2c", {"id": 1, "result": {"sessionId": "s"}})
    return talk


def update(talk: Conversation, **fields: Any) -> None:
    fields = {"sessionUpdate": "tool_call", "toolCallId": "c", **fields}
    talk.observe("a2c", {"method": "session/update", "params": {"sessionId": "s", "update": fields}})


def asked(talk: Conversation, options: list[dict[str, str]] = ONCE, **fields: Any) -> list[str]:
    params = {"sessionId": "s", "toolCall": {"toolCallId": "c", **fields}, "options": options}
    return [told(action) for action in talk.request(params).actions]


def calls(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the tool call that a message of the agent tells of."""
    params = message.get("params")
    for key in ("update", "toolCall"):
        call = params.get(key) if isinstance(params, dict) else None
        if isinstance(call, dict) and "toolCallId" in call:
            yield call
