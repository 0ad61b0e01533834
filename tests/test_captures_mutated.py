"""Recorded agents that say the same in other shapes, or less of it: the same actions, or never a looser decision.

Each transcript is changed everywhere in one way and played again, under a policy that allows much inside the project.
What is only said in other words (ids, order of options, spellings of a place, protocol version 2, arguments that grow)
must stand for the same actions and get the same option; what says less, or something else, must not be allowed where
the whole was not.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import cache, partial
from typing import Any

import pytest

from policyd.authorizer import Authorizer
from policyd.model import Effect
from tests.recorded import permissive, results_of
from tests.told import CAPTURES, MACHINE, calls, told

RULES = """
[[rule]]
effect = "allow"
command = ["@read-only", "@git-read", "@test-runners", "touch **", "make **", "rm **"]
[[rule]]
effect = "allow"
tool = ["demo/list_records", "notes/*"]
[[rule]]
effect = "deny"
path = "**/.env"
"""
POLICY = permissive(RULES)
HOME = "/home/dev/project"
STRIDE = 30
"""Of so many transcripts the fast test plays one for each change; the slow one plays them all."""
Lines = list[dict[str, Any]]
Change = Callable[[Lines], Lines]
Asked = tuple[Effect, list[str], str | None]


def played(lines: Lines) -> list[Asked]:
    """Return what is decided of each permission request, its actions, and the option that is chosen."""
    found = results_of(Authorizer(POLICY, machine=MACHINE), lines)
    return [
        (one.decision.effect, [one.error] if one.error else list(map(told, one.request.actions)), one.answer.option)
        for one in found
        if not one.request.side_door
    ]


# ---- changes ---------------------------------------------------------------------------------------


def each_call(change: Callable[[dict[str, Any]], object], lines: Lines) -> Lines:
    """Change every tool call that is told of or asked about."""
    for line in lines:
        for call in calls(line["msg"]):
            change(call)
    return lines


def deep(value: Any, change: Callable[[str], str]) -> Any:
    """Change every text in a value."""
    if isinstance(value, dict):
        return {key: deep(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [deep(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def reordered(lines: Lines, order: Callable[[list[Any]], list[Any]]) -> Lines:
    for line in lines:
        if "options" in (params := line["msg"].get("params") or {}):
            params["options"] = order(params["options"])
    return lines


def request_ids(lines: Lines, name: Callable[[str, int], object]) -> Lines:
    known: dict[tuple[str, str], int] = {}
    for line in lines:
        message = line["msg"]
        if "id" in message:
            side = line["dir"] if "method" in message else {"a2c": "c2a", "c2a": "a2c"}[line["dir"]]
            message["id"] = name(side, known.setdefault((side, repr(message["id"])), len(known)))
    return lines


def as_uri(call: dict[str, Any], host: str = "", escape: str = "") -> None:
    for place in call.get("locations") or []:
        if isinstance(path := place.get("path"), str) and path.startswith("/"):
            place["path"] = f"file://{host}{path.replace(escape, f'%{ord(escape):x}') if escape else path}"


def inputs_as_uris(call: dict[str, Any]) -> None:
    if isinstance(raw := call.get("rawInput"), dict):
        call["rawInput"] = deep(
            raw, lambda text: f"file://{text}" if text.startswith("/") and " " not in text else text
        )


def on_windows(call: dict[str, Any]) -> None:
    for key in ("rawInput", "locations", "content"):
        if key in call:
            call[key] = deep(call[key], lambda text: text.replace(HOME, r"C:\Users\dev\project"))


def input_as_text(call: dict[str, Any]) -> None:
    if isinstance(raw := call.get("rawInput"), dict) and raw:
        call["rawInput"] = json.dumps(raw)


def first_inputs(lines: Lines, steps: Callable[[dict[str, Any]], Iterator[dict[str, Any]]]) -> Lines:
    """Put updates with parts of the input in front of the first that tells it whole."""
    changed: Lines = []
    seen = set()
    for line in lines:
        update = (line["msg"].get("params") or {}).get("update") or {}
        raw, ident = update.get("rawInput"), update.get("toolCallId")
        if isinstance(raw, dict) and raw and ident not in seen:
            seen.add(ident)
            for part in steps(raw):
                step = deepcopy(line)
                step["msg"]["params"]["update"]["rawInput"] = part
                changed.append(step)
                update["sessionUpdate"] = "tool_call_update"
        changed.append(line)
    return changed


def growing(raw: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for count in range(1, len(raw) + 1):
        part = dict(list(raw.items())[:count])
        key = list(part)[-1]
        yield {**part, key: part[key][: len(part[key]) // 2] if isinstance(part[key], str) else part[key]}


def unannounced(lines: Lines) -> Lines:
    return [line for line in lines if "update" not in (line["msg"].get("params") or {}) or not [*calls(line["msg"])]]


def announced_after(lines: Lines) -> Lines:
    """Put what is told of a call before it is asked about behind that request."""
    asking = {id(line) for line in lines if line["msg"].get("method") == "session/request_permission"}
    waiting = {call["toolCallId"] for line in lines if id(line) in asking for call in calls(line["msg"])}
    changed: Lines = []
    held: dict[str, Lines] = defaultdict(list)
    for line in lines:
        told_of = [call["toolCallId"] for call in calls(line["msg"])]
        if id(line) not in asking and told_of and told_of[0] in waiting:
            held[told_of[0]].append(line)
            continue
        changed.append(line)
        for ident in told_of if id(line) in asking else ():
            waiting.discard(ident)
            changed += held.pop(ident, [])
    return changed


def twice(lines: Lines) -> Lines:
    return [
        one
        for line in lines
        for one in ([line, deepcopy(line)] if "update" in str(line["msg"].get("method")) else [line])
    ]


OPERATIONS = {"add": "add", "delete": "delete", "move": "move"}


def second_version(lines: Lines, *, diffs: bool = False) -> Lines:
    """Say all in the shapes of protocol version 2."""
    for line in lines:
        params, result = line["msg"].get("params") or {}, line["msg"].get("result")
        if isinstance(result, dict) and "agentInfo" in result:
            line["msg"]["result"] = {"protocolVersion": 2, "info": result["agentInfo"], "authMethods": []}
        elif isinstance(result, dict) and isinstance(modes := result.pop("modes", None), dict):
            mode = {"configId": "mode", "name": "Mode", "type": "select", "currentValue": modes.get("currentModeId")}
            result["configOptions"] = [mode]
        for call in calls(line["msg"]) if diffs else ():
            call["content"] = list(map(_changes, call.get("content") or []))
        if (params.get("update") or {}).get("sessionUpdate") == "tool_call":
            params["update"]["sessionUpdate"] = "tool_call_update"
        if "toolCall" in params:
            call = params.pop("toolCall")
            params |= {"title": call.get("title") or "x", "subject": {"type": "tool_call", "toolCall": call}}
    return lines


def _changes(block: dict[str, Any]) -> dict[str, Any]:
    if block.get("type") != "diff" or "path" not in block:
        return block
    stated = (block.get("_meta") or {}).get("kind", "")
    operation = OPERATIONS.get(stated, "add" if block.get("oldText") is None else "modify")
    change = {"operation": operation, "path": block["path"]}
    return {"type": "diff", "changes": [change], "patch": {"format": "git_patch", "text": "x"}}


SERVERS = {"demo": ("list_records", "delete_records"), "notes": ("ping", "delete_note", "add_note", "list_notes")}
JOINTS = ("___", "__", "/", ".", ":", "-", "_")
NAMED = {
    f"{prefix}{server}{joint}{tool}": (server, tool)
    for prefix in ("mcp__", "mcp_", "")
    for joint in JOINTS
    for server, tools in SERVERS.items()
    for tool in tools
}


def joined_as(call: dict[str, Any], template: str) -> None:
    """Join server and tool of an MCP call in another way, wherever it is named."""

    def spelled(text: str) -> str:
        server, tool = NAMED.get(text, ("", ""))
        return template.format(server, tool) if tool else text

    for key in ("title", "name", "_meta", "rawInput"):
        if key in call:
            call[key] = deep(call[key], spelled)


def without(call: dict[str, Any], key: str) -> None:
    call.pop(key, None)


# ---- laws ------------------------------------------------------------------------------------------

SAME: dict[str, Change] = {
    "options backwards": partial(reordered, order=lambda options: options[::-1]),
    "options in turn": partial(reordered, order=lambda options: options[1:] + options[:1]),
    "ids from zero": partial(request_ids, name=lambda _, at: at),
    "ids of text": partial(request_ids, name=lambda side, at: f"{side} é {at}"),
    "large ids": partial(request_ids, name=lambda _, at: 2**53 - 1 - at),
    "ids below zero": partial(request_ids, name=lambda _, at: -at),
    "other ids of calls": partial(each_call, lambda call: call.update(toolCallId=f"☃/{call['toolCallId']}\n x")),
    "places as URIs": partial(each_call, as_uri),
    "updates twice": twice,
    "announced with nothing": partial(first_inputs, steps=lambda _: iter([{}])),
    "arguments that grow": partial(first_inputs, steps=growing),
    "arguments as text": partial(each_call, input_as_text),
    "version 2": second_version,
    "version 2 with its diffs": partial(second_version, diffs=True),
}
NEVER_LOOSER: dict[str, Change] = {
    "places as URIs of a host, escaped": partial(each_call, partial(as_uri, host="localhost", escape="n")),
    "arguments with URIs": partial(each_call, inputs_as_uris),
    "paths of Windows": partial(each_call, on_windows),
    "all of it on Windows": lambda lines: deep(lines, lambda text: text.replace(HOME, r"C:\Users\dev\project")),
    "nothing announced": unannounced,
    "announced after the request": announced_after,
    **{
        f"no {key}": partial(each_call, partial(without, key=key)) for key in ("locations", "content", "name", "status")
    },
    **{
        f"joined {template}": partial(each_call, partial(joined_as, template=template))
        for template in ("mcp__{}__{}", "{}__{}", "{}.{}", "{}/{}", "{}:{}", "{}_{}", "{}-{}", "mcp__{}__x__{}")
    },
}
CHANGES = SAME | NEVER_LOOSER
WHERE = "where the agent works, or what else it asks for, is said nowhere else"
FIRST = "the first arguments that come after a request are the whole"
EXEMPT = {
    "other ids of calls": dict.fromkeys(("gemini", "gemini-0"), "the tool is named in them"),
    "arguments as text": {"copilot-cli": "a text is a patch"},
    "announced with nothing": {"opencode": FIRST},
    "arguments that grow": {"opencode": FIRST},
    "nothing announced": dict.fromkeys(("droid", "grok", "qwen"), WHERE),
    "announced after the request": dict.fromkeys(("droid", "grok", "qwen"), WHERE),
    "no locations": {"claude-agent-acp": "what a command reads is shown there alone"},
}


@cache
def cases() -> tuple[tuple[str, str, str], ...]:
    """Return agent, name and lines, as JSON, of every transcript."""
    rows = [(path.stem, json.loads(row)) for path in CAPTURES for row in path.read_text("utf-8").splitlines()]
    return tuple((stem, row["case"], json.dumps(row["lines"])) for stem, row in rows)


@cache
def whole(lines: str) -> list[Asked]:
    """Return what a transcript as recorded gets."""
    return played(json.loads(lines))


def broken(change: str, chosen: Iterable[tuple[str, str, str]]) -> Iterator[object]:
    """Yield where a change breaks its law."""
    for stem, name, lines in chosen:
        if stem in EXEMPT.get(change, {}):
            continue
        before, after = whole(lines), played(CHANGES[change](json.loads(lines)))
        if change in SAME and before != after:
            yield stem, name, [pair for pair in zip(before, after, strict=False) if pair[0] != pair[1]]
        for at, pair in enumerate(zip(before, after, strict=False)):
            if Effect.ALLOW == pair[1][0] < pair[0][0]:
                yield stem, name, at, pair


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_said_otherwise_is_the_same_and_what_is_not_said_allows_nothing(change: str) -> None:
    first = list(CHANGES).index(change) % STRIDE
    assert list(broken(change, cases()[first::STRIDE])) == []


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_said_otherwise_is_the_same_in_every_transcript(change: str) -> None:
    assert list(broken(change, cases())) == []


def test_each_change_changes_something() -> None:
    for change, made in CHANGES.items():
        assert any(made(json.loads(lines)) != json.loads(lines) for _, _, lines in cases()[::5]), change
