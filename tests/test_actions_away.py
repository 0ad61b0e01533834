"""Where a call works that is not its session's own: behind a worktree entered, or for an agent that was started."""

from __future__ import annotations

from typing import Any

import pytest

from policyd.actions import Conversation, Machine
from policyd.actions.sessions import MOST_PENDING
from tests.told import MACHINE, told

OPTIONS = [{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]
TREE = "/home/dev/project/.claude/worktrees/w"
EITHER = f" (in /home/dev/project|{TREE})"
NOWHERE = " (in ?)"


def talk(agent: str) -> Conversation:
    conversation = Conversation(Machine("/home/dev", MACHINE.fs), agent=agent)
    new = {"id": 1, "method": "session/new", "params": {"cwd": "/home/dev/project", "mcpServers": []}}
    conversation.observe("c2a", new)
    conversation.observe("a2c", {"id": 1, "result": {"sessionId": "s"}})
    return conversation


def update(conversation: Conversation, ident: str, *, session: str = "s", **fields: Any) -> None:
    fields = {"sessionUpdate": "tool_call_update", "toolCallId": ident, **fields}
    conversation.observe("a2c", {"method": "session/update", "params": {"sessionId": session, "update": fields}})


def where(conversation: Conversation, *, session: str = "s", ident: str = "c", **fields: Any) -> str:
    call = {"toolCallId": ident, "kind": "execute", "rawInput": {"command": "make"}, **fields}
    params = {"sessionId": session, "toolCall": call, "options": OPTIONS}
    conversation.observe("a2c", {"id": 7, "method": "session/request_permission", "params": params})
    first = told(conversation.request(params).actions[0])
    assert first.startswith("execute $ make")
    return first.removeprefix("execute $ make")


def code(tool: str, **fields: Any) -> dict[str, Any]:
    return {"claudeCode": {"toolName": tool, **fields}}


def enter(**fields: Any) -> dict[str, Any]:
    return {"_meta": code("EnterWorktree", **fields)}


DONE = {"status": "completed"}
THERE = enter(toolResponse={"worktreePath": TREE})
ENTRIES: list[tuple[str, list[tuple[str, dict[str, Any]]], str]] = [
    ("it is about to", [("e", enter())], NOWHERE),
    ("it says where", [("e", enter()), ("e", THERE)], EITHER),
    ("it says where, then that it is done", [("e", enter()), ("e", THERE), ("e", enter() | DONE)], EITHER),
    ("it is done and says nothing", [("e", enter()), ("e", enter() | DONE)], NOWHERE),
    ("what it says is no place", [("e", enter(toolResponse={"worktreePath": "w"}) | DONE)], NOWHERE),
    ("it failed", [("e", enter()), ("e", enter() | {"status": "failed"})], ""),
    ("another is about to", [("e", enter()), ("e", THERE), ("f", enter())], NOWHERE),
    ("many said where", [(f"e{n}", THERE) for n in range(MOST_PENDING)], EITHER),
    ("too many said where", [(f"e{n}", THERE) for n in range(MOST_PENDING + 1)], NOWHERE),
    (
        "it came back",
        [("e", THERE), ("x", {"_meta": code("ExitWorktree", toolResponse={"restoredCwd": "/home/dev/project"})})],
        EITHER,
    ),
    (
        "it came back, an older one",
        [("e", THERE), ("x", {"_meta": code("ExitWorktree", toolResponse={"originalCwd": "/home/dev/project"})})],
        EITHER,
    ),
    (
        "it came back to another place than it left",
        [
            ("e", THERE),
            ("x", {"_meta": code("ExitWorktree", toolResponse={"restoredCwd": TREE, "originalCwd": "/home/gone"})}),
        ],
        EITHER,
    ),
    (
        "it came back and says nothing",
        [("e", THERE), ("x", {"_meta": code("ExitWorktree", toolResponse={"action": "keep"}), "status": "completed"})],
        NOWHERE,
    ),
    ("another tool", [("e", {"_meta": code("TodoWrite", toolResponse={"worktreePath": TREE})})], ""),
]


@pytest.mark.parametrize(("name", "updates", "place"), ENTRIES, ids=[row[0] for row in ENTRIES])
def test_an_agent_may_stand_where_it_entered(name: str, updates: list[tuple[str, dict[str, Any]]], place: str) -> None:
    conversation = talk("claude")
    for ident, fields in updates:
        update(conversation, ident, **fields)
    assert where(conversation) == place, name


def test_who_has_no_such_tool_enters_nothing() -> None:
    conversation = talk("qwen")
    update(conversation, "e", _meta={"toolName": "enter_worktree", **THERE["_meta"]}, status="completed")
    assert where(conversation) == ""


APART: list[tuple[str, dict[str, Any], str]] = [
    ("claude", {"isolation": "worktree"}, NOWHERE),
    ("claude", {"isolation": "remote"}, NOWHERE),
    ("claude", {"isolation": "none"}, ""),
    ("claude", {"isolation": None}, ""),
    ("claude", {"prompt": "isolation"}, ""),
    ("qwen", {"isolation": "worktree"}, NOWHERE),
    ("qwen", {"working_dir": "/srv"}, NOWHERE),
    ("qwen", {"name": "worktree"}, ""),
]


def child(agent: str, parent: str, tool: str = "Bash") -> dict[str, Any]:
    return code(tool, parentToolUseId=parent) if agent == "claude" else {"toolName": tool, "parentToolCallId": parent}


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize(("agent", "raw", "place"), APART)
def test_an_agent_on_a_copy_of_its_own_works_nobody_says_where(
    agent: str, raw: dict[str, Any], place: str, *, over: bool
) -> None:
    conversation = talk(agent)
    update(conversation, "a", rawInput=raw, kind="think", _meta=code("Agent"))
    if over:  # in the background it goes on
        update(conversation, "a", status="completed")
    update(conversation, "c", kind="execute", _meta=child(agent, "a"))
    assert where(conversation) == place
    assert where(conversation, _meta={"claudeCode": {"toolName": "Bash"}}) == place
    assert where(conversation, ident="own") == ""


def test_what_such_an_agent_starts_works_there_too() -> None:
    conversation = talk("claude")
    update(conversation, "a", rawInput={"isolation": "worktree"}, _meta=code("Agent"))
    update(conversation, "b", rawInput={"prompt": "go"}, _meta=child("claude", "a", "Agent"))
    update(conversation, "d", rawInput={"prompt": "go"}, _meta=code("Agent"))
    assert where(conversation, _meta=child("claude", "b")) == NOWHERE
    assert where(conversation, ident="e", _meta=child("claude", "d")) == ""


@pytest.mark.parametrize("parent", ["unheard", "round"])
def test_an_agent_whose_start_was_not_seen_works_nobody_says_where(parent: str) -> None:
    conversation = talk("claude")
    update(conversation, "round", rawInput={"prompt": "go"}, _meta=child("claude", "round", "Agent"))
    assert where(conversation, _meta=child("claude", parent)) == NOWHERE


def test_where_a_session_works_that_an_agent_made_is_said_as_it_is_made() -> None:
    conversation = talk("claude")
    made = {"sessionUpdate": "subagent_update", "sessionId": "child"}
    conversation.observe("a2c", {"method": "session/update", "params": {"sessionId": "s", "update": made}})
    update(conversation, "c", session="child", _meta=child("claude", "unheard"))
    assert where(conversation, session="child") == ""


OPENINGS: list[tuple[str, str, dict[str, Any] | None, str]] = [
    ("session/load", "s", None, ""),
    ("session/load", "s", enter(), NOWHERE),
    ("session/load", "s", {"_meta": code("Bash"), "title": "EnterWorktree"}, ""),
    ("session/load", "new", enter(), NOWHERE),
    ("session/load", "new", None, ""),
    ("session/resume", "new", enter(), ""),
]


@pytest.mark.parametrize(("method", "ident", "history", "place"), OPENINGS)
def test_the_history_of_a_session_says_that_its_agent_went(
    method: str, ident: str, history: dict[str, Any] | None, place: str
) -> None:
    conversation = talk("claude")
    load = {"sessionId": ident, "cwd": "/home/dev/project", "mcpServers": []}
    conversation.observe("c2a", {"id": 2, "method": method, "params": load})
    if history and method == "session/load":
        update(conversation, "e", session=ident, sessionUpdate="tool_call", **history)
    conversation.observe("a2c", {"id": 2, "result": {}})
    assert where(conversation, session=ident) == place
    conversation.observe("c2a", {"id": 3, "method": method, "params": load})
    conversation.observe("a2c", {"id": 3, "result": {}})
    assert where(conversation, session=ident) == place


@pytest.mark.parametrize(("entered", "place"), [(THERE, NOWHERE), (enter() | {"status": "failed"}, "")])
@pytest.mark.parametrize(("method", "ident"), [("session/load", "s"), ("session/resume", "s"), ("session/fork", "t")])
def test_a_session_that_goes_on_may_stand_where_it_stood(
    method: str, ident: str, entered: dict[str, Any], place: str
) -> None:
    conversation = talk("claude")
    update(conversation, "e", **entered)
    more = {"cwd": "/home/dev/project", "mcpServers": []}
    for number in (2, 3):
        conversation.observe("c2a", {"id": number, "method": method, "params": {**more, "sessionId": "s"}})
        conversation.observe("a2c", {"id": number, "result": {"sessionId": ident}})
        assert where(conversation, session=ident) == place
