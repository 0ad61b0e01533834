"""What is known of a call, where an agent uses one id more than once."""

from __future__ import annotations

from typing import Any

import pytest

from policyd.actions import Conversation
from tests.told import ONCE, asked, opened, update

KIMI_ASKS = "Requesting approval to perform:"
HERE = "/home/dev/project"
READ: dict[str, Any] = {"kind": "read", "rawInput": {"path": f"{HERE}/src/main.py"}}


def answered(talk: Conversation, **fields: Any) -> None:
    """Let a request of call `c` be made and allowed."""
    params = {"sessionId": "s", "toolCall": {"toolCallId": "c", **fields}, "options": ONCE}
    talk.observe("a2c", {"id": 9, "method": "session/request_permission", "params": params})
    talk.observe("c2a", {"id": 9, "result": {"outcome": {"outcome": "selected", "optionId": "yes"}}})


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_call_that_has_finished_is_asked_about_no_more(status: str) -> None:
    talk = opened("nobody")
    update(talk, title="x", **READ)
    update(talk, sessionUpdate="tool_call_update", status=status)
    assert "read opaque: the call it names has finished" in asked(talk, **READ)


@pytest.mark.parametrize("again", [{"sessionUpdate": "tool_call"}, {"status": "in_progress"}])
def test_a_call_that_starts_anew_is_asked_about_anew(again: dict[str, str]) -> None:
    talk = opened("nobody")
    update(talk, title="x", **READ)
    update(talk, sessionUpdate="tool_call_update", status="completed")
    update(talk, **{"sessionUpdate": "tool_call_update", **READ, **again})
    assert asked(talk, **READ) == [f"read {HERE}/src/main.py"]


def test_the_second_question_of_a_call_that_runs_is_judged_by_its_own_words() -> None:
    talk = opened("nobody")
    update(talk, title="x", **READ)
    answered(talk, **READ)
    assert asked(talk, kind="edit", rawInput={"path": f"{HERE}/a.py"}) == [
        f"edit+read {HERE}/a.py",
        f"any {HERE}/src/main.py (mention)",
    ]


def test_a_request_that_shows_one_file_takes_none_away_that_was_told_of_before() -> None:
    talk = opened("nobody")
    shown = [{"type": "diff", "path": f"{HERE}/{name}", "newText": "x"} for name in ("a", "b")]
    update(talk, title="x", kind="edit", content=shown)
    assert asked(talk, kind="edit", content=shown[:1]) == [f"edit {HERE}/a", f"edit {HERE}/b"]


CLAUDE = "@agentclientprotocol/claude-agent-acp"
BASH: dict[str, Any] = {"kind": "execute", "rawInput": {"command": "npm test"}}


def claude(name: str) -> dict[str, Any]:
    return {"_meta": {"claudeCode": {"toolName": name}}}


@pytest.mark.parametrize(
    ("agent", "told", "stated"),
    [
        (CLAUDE, {"title": "t", **claude("Bash"), **BASH}, {"name": "mcp__notes__ping", "rawInput": {}}),
        (CLAUDE, {"title": "t", **claude("Bash"), **BASH}, claude("TodoWrite")),
        (CLAUDE, {"title": "t", "name": "Bash", **BASH}, {"name": "TodoWrite"}),
        (CLAUDE, {"title": "t", "name": "Bash", **BASH}, {"name": "Bash", **claude("TodoWrite")}),
        (
            "@mistralai/mistral-vibe",
            {"title": "t", "_meta": {"tool_name": "bash"}, **BASH},
            {"_meta": {"tool_name": "vibe.todo"}},
        ),
        ("OpenHands CLI ACP Agent", {"title": "t", "rawInput": {"kind": "TerminalAction", "command": "make"}},
         {"rawInput": {"kind": "FileEditorAction", "path": "a.py"}}),
        ("Kimi Code CLI", {"title": "Shell: make"}, {"title": "WriteFile: a.py"}),
    ],
)  # fmt: skip
def test_a_request_that_names_another_tool_than_its_call_cannot_be_told(
    agent: str, told: dict[str, Any], stated: dict[str, Any]
) -> None:
    talk = opened(agent)
    update(talk, status="pending", **told)
    assert any("two tools are named" in line for line in asked(talk, **stated))
    assert not any("two tools are named" in line for line in asked(talk, **told))


def test_a_change_of_mode_that_is_called_an_edit_too_is_both() -> None:
    talk = opened(CLAUDE)
    update(talk, title="t", name="ExitPlanMode", kind="switch_mode", rawInput={})
    assert asked(talk, kind="edit")[0].startswith("edit+switch_mode ")


def test_a_call_whose_updates_name_two_tools_cannot_be_told() -> None:
    talk = opened(CLAUDE)
    update(talk, title="t", name="Bash", **BASH)
    assert asked(talk, title="t") == ["execute $ npm test"]
    update(talk, sessionUpdate="tool_call_update", name="Write")
    assert "execute opaque: its updates name two tools" in asked(talk, title="t")


def test_a_tool_that_calls_another_may_be_asked_about_under_the_others_name() -> None:
    talk = opened("qwen-code", servers=("notes",))
    update(talk, title="t", kind="other", rawInput={}, _meta={"toolName": "tool_call"})
    named: dict[str, Any] = {"_meta": {"toolName": "mcp__notes__add"}, "kind": "other", "rawInput": {"id": 9}}
    assert asked(talk, title="t", **named) == ['other tool notes/add {"id": 9}']


def test_a_shown_text_of_another_tool_makes_a_call_opaque() -> None:
    shown = {"type": "content", "content": {"type": "text", "text": f"{KIMI_ASKS} Run command `rm x`"}}
    diff = {"type": "diff", "path": f"{HERE}/a.py", "newText": "x"}
    talk = opened("Kimi Code CLI", "1.51.0")
    update(talk, title="WriteFile: a.py", content=[diff])
    assert any("text that is of tool.Shell" in line for line in asked(talk, title="WriteFile: a.py", content=[shown]))
    assert asked(talk, title="WriteFile: a.py", content=[diff]) == [f"edit {HERE}/a.py"]


OTHERWISE = [
    ("nanocoder", "string_replace: x", {"kind": "edit", "rawInput": {"path": "a"}}, {"path": "/etc/x"}),
    ("OpenCode", "read", {"kind": "read", "rawInput": {"filePath": "a"}}, {"filepath": "/etc/x"}),
    ("OpenCode", "edit", {"kind": "edit", "rawInput": {"filepath": "a"}}, {"filePath": "/etc/x"}),
    ("Copilot", "Edit", {"kind": "edit", "rawInput": {"fileName": "a", "new_str": "y"}}, {"path": "/etc/x"}),
    ("auggie", "Run", {"kind": "execute", "rawInput": {"command": "ls", "cwd": "src"}}, {"cwd": "/etc/x"}),
    (
        "Kiro CLI Agent",
        "Run",
        {"kind": "execute", "rawInput": {"command": "ls", "working_dir": "a"}},
        {"cwd": "/etc/x"},
    ),
    ("OpenCode", "bash", {"kind": "execute", "rawInput": {"command": "ls", "workdir": "a"}}, {"cwd": "/etc/x"}),
]


@pytest.mark.parametrize(("name", "title", "told_before", "raw"), OTHERWISE, ids=str)
def test_what_a_request_states_counts_under_whatever_name_an_update_stated_it(
    name: str, title: str, told_before: dict[str, Any], raw: dict[str, Any]
) -> None:
    talk = opened(name)
    update(talk, title=title, **told_before)
    found = asked(talk, kind=told_before["kind"], rawInput=raw)
    assert any("/etc/x" in line and "(mention)" not in line for line in found), found


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"rawInput": {"command": "rm -rf x"}}, {"rawInput": {"command": "ls"}}),
        ({"rawInput": {"command": "ls", "cwd": "/etc"}}, {"rawInput": {"command": "ls", "cwd": "/tmp"}}),
        ({"locations": [{"path": "/etc/passwd"}]}, {"locations": [{"path": "src/a"}]}),
        (
            {"content": [{"type": "diff", "path": "/etc/passwd", "newText": "x"}]},
            {"content": [{"type": "diff", "path": "src/a", "newText": "x"}]},
        ),
    ],
)
def test_two_calls_under_one_id_cannot_be_told_apart(first: dict[str, Any], second: dict[str, Any]) -> None:
    talk = opened("nobody")
    update(talk, title="x", kind="execute", **first)
    update(talk, title="x", kind="execute", **second)
    assert any("two calls were announced under one id" in one for one in asked(talk))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"rawInput": {"command": "ls"}}),
        ({"rawInput": {}}, {"rawInput": {"command": "ls"}}),
        ({"rawInput": {"command": "l"}}, {"rawInput": {"command": "ls"}}),
        ({"rawInput": {"command": "ls"}}, {"rawInput": {"command": "ls"}}),
        ({"rawInput": {"command": "ls"}}, {}),
    ],
)
def test_a_call_announced_with_more_is_still_one(first: dict[str, Any], second: dict[str, Any]) -> None:
    talk = opened("nobody")
    update(talk, title="x", kind="execute", **first)
    update(talk, title="x", kind="execute", **second)
    assert [one for one in asked(talk) if "opaque" in one] == []


# ---- what is forgotten ---------------------------------------------------------------------------------

FORGOTTEN = "what was said of the call before is not all known any more"


def filled(talk: Conversation, count: int, size: int = 10) -> Conversation:
    for at in range(count):
        update(talk, toolCallId=f"x{at}", kind="execute", rawInput={"command": "x" * size})
    return talk


@pytest.mark.parametrize("by", ["number", "bytes", "sessions"])
@pytest.mark.parametrize("own", [{}, READ])
def test_a_call_that_was_forgotten_is_never_judged_by_what_is_left(
    monkeypatch: pytest.MonkeyPatch, by: str, own: dict[str, Any]
) -> None:
    monkeypatch.setattr("policyd.actions.sessions.MOST_CALLS", 3 if by == "number" else 10_000)
    monkeypatch.setattr("policyd.actions.conversation.MOST_BYTES", 50_000 if by == "bytes" else 1 << 30)
    monkeypatch.setattr("policyd.actions.conversation.MOST_SESSIONS", 2)
    talk = opened("nobody")
    update(talk, kind="execute", rawInput={"command": "rm -rf x"})
    if by == "sessions":
        for ident in "tu":
            talk.open(ident, {})
    else:
        filled(talk, 5, size=20_000)
    assert any(FORGOTTEN in one for one in asked(talk, **own))


def test_a_call_announced_after_others_were_forgotten_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyd.actions.sessions.MOST_CALLS", 3)
    talk = filled(opened("nobody"), 5)
    update(talk, **READ)
    assert asked(talk, **READ) == [f"read {HERE}/src/main.py"]


def test_a_call_of_which_only_its_own_request_told_is_forgotten_without_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyd.actions.sessions.MOST_CALLS", 3)
    talk = opened("nobody")
    for at in range(9):
        talk.request({"sessionId": "s", "toolCall": {"toolCallId": f"x{at}", **READ}, "options": ONCE})
    assert asked(talk, **READ) == [f"read {HERE}/src/main.py"]


def test_a_request_for_every_open_call_tells_that_one_was_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyd.actions.sessions.MOST_CALLS", 3)
    talk = filled(opened("OpenHands CLI ACP Agent"), 5)
    params = {"sessionId": "s", "toolCall": {"toolCallId": "all"}, "options": ONCE}
    assert any(FORGOTTEN in action.opaque for action in talk.request(params).actions)


@pytest.mark.parametrize("part", ["rawInput", "content", "title", "kind", "_meta"])
def test_what_is_kept_of_calls_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    monkeypatch.setattr("policyd.actions.conversation.MOST_BYTES", 200_000)
    talk = opened("nobody")
    text = "x" * 1000
    values: dict[str, Any] = {
        "rawInput": {"command": text},
        "content": [{"type": "diff", "path": "a", "oldText": text, "newText": text}],
    }
    for at in range(1000):
        own = {"_meta": {f"{at}": text}, "title": f"{at}{text}", "kind": f"_{at}{text}"}
        update(talk, toolCallId=f"{at % 300}", **{part: {**own, **values}[part]})
        if at % 3 == 0:
            answered(talk, toolCallId=f"{at % 300}")
    assert len(repr([*talk.sessions["s"].calls.values()])) < 400_000
