"""What an agent that nobody described may mean, and requests of described ones of which no traffic is kept."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.told import MACHINE, asked, opened, update

HERE = "/home/dev/project"
AWAY = "opaque: the path may be one of another machine"
ROWS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("nobody", {"kind": "edit", "rawInput": {"path": "dev@host:/etc/x"}}, [f"edit {HERE}/dev@", f"edit {AWAY}"]),
    ("nobody", {"kind": "delete", "rawInput": {"path": "dev@host#22:x"}}, [f"delete {HERE}/dev@", f"delete {AWAY}"]),
    ("nobody", {"kind": "read", "locations": [{"path": "host:/etc/x"}]}, [f"read {HERE}/host:/etc", f"read {AWAY}"]),
    ("nobody", {"kind": "read", "rawInput": {"path": "host:~/x"}}, [f"read {HERE}/host:~", f"read {AWAY}"]),
    ("nobody", {"kind": "read", "rawInput": {"path": "ssh://host/x"}}, ["read opaque: `ssh://`"]),
    ("nobody", {"kind": "read", "rawInput": {"path": "src/a@b:/c"}}, [f"read {HERE}/src/a@b:/c"]),
    ("nobody", {"kind": "read", "rawInput": {"path": "main.py:10"}}, [f"read {HERE}/main.py:10"]),
    ("nobody", {"kind": "read", "rawInput": {"path": "file:/etc/x"}}, ["read /etc/x|"]),
    ("nobody", {"kind": "read", "rawInput": {"path": " /etc/x\n"}}, [f"read {HERE}/ /etc/x\n|/etc/x"]),
    ("nobody", {"kind": "read", "rawInput": {"path": "@/etc/x"}}, [f"read {HERE}/@/etc/x|/etc/x"]),
    (
        "nobody",
        {"kind": "read", "rawInput": {"path": " @~/x"}},
        [f"read {HERE}/ @~/x|{HERE}/@~/x|{HERE}/~/x|/home/dev/x"],
    ),
    (
        "nobody",
        {"kind": "move", "rawInput": {"oldPath": "a", "newPath": "/etc/b"}},
        [f"move {HERE}/a", "move /etc/b"],
    ),
    (
        "nobody",
        {"kind": "edit", "rawInput": {"path": "a", "edits": [{"old_text": "x", "new_text": "y"}], "reason": "z"}},
        [f"edit {HERE}/a"],
    ),
    (
        "nobody",
        {"kind": "edit", "rawInput": {"path": "a", "edits": [{"path": "/etc/b", "newText": "y"}]}},
        [f"edit {HERE}/a", "edit /etc/b"],
    ),
    (
        "nobody",
        {"kind": "edit", "rawInput": {"path": "a", "edits": [{"where": "/etc/b", "newText": "y"}]}},
        [f"edit {HERE}/a", "edit opaque: no profile says what `rawInput.edits`", "any /etc/b"],
    ),
    (
        "nobody",
        {"kind": "execute", "rawInput": {"command": "make", "edits": [{"args": ["x"], "env": {"A": "b"}}]}},
        ["execute $ make", "execute opaque: no profile says what `rawInput.edits`"],
    ),
    ("nobody", {"kind": "edit", "rawInput": {"command": "create", "path": "a", "file_text": "x"}}, [f"edit {HERE}/a"]),
    ("nobody", {"kind": "read", "rawInput": {"command": "view", "path": "/etc/x"}}, ["read /etc/x"]),
    (
        "nobody",
        {"kind": "execute", "rawInput": {"command": "view", "path": "a"}},
        ["execute $ view", f"other {HERE}/a", "other opaque: the kind"],
    ),
    ("nobody", {"kind": "edit", "rawInput": {"command": "create"}}, ["edit+execute $ create"]),
    (
        "nobody",
        {"kind": "edit", "rawInput": {"command": "rm x", "path": "a"}},
        ["edit+execute $ rm x", f"delete {HERE}/x", f"edit {HERE}/a"],
    ),
    (
        "nobody",
        {
            "kind": "edit",
            "locations": [{"path": "src/a"}],
            "content": [{"type": "diff", "path": f"{HERE}/src/a", "oldText": "x", "newText": "y"}],
        },
        [f"edit {HERE}/src/a"],
    ),
    (
        "nobody",
        {
            "kind": "edit",
            "locations": [{"path": "a"}, {"path": "same"}],
            "content": [
                {"type": "diff", "path": f"{HERE}/b", "oldText": "x", "newText": "y"},
                {"type": "diff", "path": f"{HERE}/same", "oldText": "x", "newText": "y"},
            ],
        },
        [f"edit+move {HERE}/a", f"edit {HERE}/same", f"edit+move {HERE}/b"],
    ),
    (
        "nobody",
        {"kind": "move", "rawInput": {"source_path": "a", "destination_path": "/b"}},
        [f"move {HERE}/a", "move /b"],
    ),
    ("nobody", {"kind": "read", "rawInput": {"target_file": "/etc/x"}}, ["read /etc/x"]),
    ("nobody", {"kind": "read", "rawInput": {"uri": "file:///etc/x"}}, ["read /etc/x"]),
    ("nobody", {"kind": "fetch", "rawInput": {"url": "FILE:///etc/x"}}, ["fetch+read /etc/x"]),
    ("nobody", {"kind": "fetch", "rawInput": {"url": "file://host/etc/x"}}, ["fetch+read opaque: "]),
    (
        "nobody",
        {"kind": "execute", "rawInput": {"command": "make", "workingDirectory": "/srv"}},
        ["execute $ make (in /srv)"],
    ),
    (
        "docker agent",
        {"title": "Shell", "kind": "execute", "rawInput": {"cmd": "make", "cwd": "/srv", "timeout": 5}},
        ["execute $ make (in /srv)"],
    ),
    (
        "docker agent",
        {"title": "Shell", "kind": "execute", "rawInput": {"cmd": "rm x"}},
        ["execute $ rm x (in ?)", f"delete {HERE}/x"],
    ),
    (
        "docker agent",
        {"title": "Shell", "kind": "execute", "rawInput": {"cmd": "make", "cwd": "src"}},
        ["execute $ make (in ?)", "execute opaque: no profile says what `rawInput.cwd`", f"any {HERE}/src (mention)"],
    ),
    (
        "docker agent",
        {"title": "Write", "kind": "execute", "rawInput": {"path": "/srv/a", "content": "x"}},
        ["edit /srv/a"],
    ),
    (
        "docker agent",
        {"title": "notes_run", "kind": "execute", "rawInput": {"command": "ls", "path": "/etc/x"}},
        ["execute+other tool /notes_run", "execute+other opaque: the MCP server is not named", "any /etc/x (mention)"],
    ),
    (
        "docker agent",
        {"title": "Get a note", "kind": "read", "rawInput": {"path": "README.md"}},
        ["other+read opaque: the MCP server and tool are not named", f"any {HERE}/README.md (mention)"],
    ),
    ("cagent", {"title": "Read", "kind": "read", "rawInput": {"path": "/srv/a"}}, ["read /srv/a"]),
]


@pytest.mark.parametrize(("name", "fields", "expected"), ROWS, ids=[f"{row[0]}-{at}" for at, row in enumerate(ROWS)])
def test_a_request_stands_for_no_less_than_it_may_mean(name: str, fields: dict[str, Any], expected: list[str]) -> None:
    found = asked(opened(name), **fields)
    assert len(found) == len(expected), found
    assert all(line.startswith(start) for line, start in zip(found, expected, strict=True)), found


@pytest.mark.parametrize("name", ["nobody", "nanocoder"])
def test_relative_paths_may_start_where_the_shell_stands(name: str) -> None:
    talk = opened(name)
    update(talk, title="execute_bash: cd sub", toolCallId="a", kind="execute", rawInput={"command": "cd sub"})
    update(talk, sessionUpdate="tool_call_update", toolCallId="a", status="completed")
    edit: dict[str, Any] = {"toolCallId": "b", "kind": "edit", "rawInput": {"path": "x", "content": "y"}}
    update(talk, title="write_file: x", **edit)
    assert asked(talk, **edit) == [f"edit {HERE}/x|{HERE}/sub/x"]
    command: dict[str, Any] = {"toolCallId": "c", "kind": "execute", "rawInput": {"command": "make"}}
    update(talk, title="execute_bash: make", **command)
    assert asked(talk, **command) == [f"execute $ make (in {HERE}|{HERE}/sub)"]


@pytest.mark.parametrize(
    ("name", "launched", "places"),
    [
        ("nanocoder", "/srv", f"{HERE}|/srv"),
        ("nanocoder", HERE, HERE),
        ("nanocoder", None, "?"),
        ("nobody", None, HERE),
    ],
)
def test_an_agent_may_work_in_the_directory_it_was_started_in(name: str, launched: str | None, places: str) -> None:
    talk = opened(name, machine=replace(MACHINE, launched=launched))
    command: dict[str, Any] = {"toolCallId": "c", "kind": "execute", "rawInput": {"command": "make"}}
    update(talk, title="execute_bash: make", **command)
    assert asked(talk, **command) == ["execute $ make" + (f" (in {places})" if places != HERE else "")]


@pytest.mark.parametrize(
    ("name", "title", "places"),
    [
        ("nanocoder", "execute_bash: make", f"{HERE}|/home/dev/other|/home/dev/other/sub"),
        ("Kimi Code CLI", "Shell: make", f"{HERE}|/home/dev/other"),
        ("nobody", "make", ""),
    ],
)
def test_one_directory_may_serve_all_sessions(name: str, title: str, places: str) -> None:
    talk = opened(name)
    talk.observe("c2a", {"id": 9, "method": "session/new", "params": {"cwd": "/home/dev/other", "mcpServers": []}})
    talk.observe("a2c", {"id": 9, "result": {"sessionId": "t"}})
    moved = {"sessionUpdate": "tool_call", "toolCallId": "m", "kind": "execute", "rawInput": {"command": "cd sub"}}
    talk.observe("a2c", {"method": "session/update", "params": {"sessionId": "t", "update": moved}})
    done = {"sessionUpdate": "tool_call_update", "toolCallId": "m", "status": "completed"}
    talk.observe("a2c", {"method": "session/update", "params": {"sessionId": "t", "update": done}})
    text = {"type": "text", "text": "Requesting approval to perform: Run command `make`"}
    kimi = {"content": [{"type": "content", "content": text}]}
    fields: dict[str, Any] = {"rawInput": {"command": "make"}, "kind": "execute"} if name != "Kimi Code CLI" else kimi
    update(talk, toolCallId="c", title=title, **fields)
    found = asked(talk, toolCallId="c", title=title, **fields)
    assert found[0] == "execute $ make" + (f" (in {places})" if places else "")


def test_a_directory_stated_of_a_command_may_start_where_the_shell_stands() -> None:
    talk = opened("nobody")
    update(talk, toolCallId="a", kind="execute", rawInput={"command": "cd sub"}, status="completed")
    found = asked(talk, toolCallId="b", kind="execute", rawInput={"command": "make", "cwd": "build"})
    assert found == [f"execute $ make (in {HERE}/build|{HERE}/sub/build)"]


def test_nothing_is_known_of_relative_paths_where_nobody_knows_where_the_shell_stands() -> None:
    talk = opened("nobody")
    update(talk, toolCallId="a", kind="execute", rawInput={"command": "cd $X"}, status="completed")
    (found,) = asked(talk, toolCallId="b", kind="edit", rawInput={"path": "x", "content": "y"})
    assert found.startswith("edit opaque: the path is relative")
    assert asked(talk, toolCallId="c", kind="edit", rawInput={"path": f"{HERE}/x", "content": "y"}) == [
        f"edit {HERE}/x"
    ]


@pytest.mark.parametrize("path", ["x", "/srv/x", "~/x"])
@pytest.mark.parametrize("ran", [True, False])
def test_where_relative_paths_of_hermes_start_is_not_known_once_it_has_run_a_command(path: str, ran: bool) -> None:
    talk = opened("hermes-agent")
    kind = "execute" if ran else "read"
    update(talk, toolCallId="a", title="terminal: ls", kind=kind, status="completed")
    raw = {"tool": "write_file", "arguments": {"path": path, "content": "y"}}
    patch = {"tool": "patch", "arguments": {"patch": f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch"}}
    for fields in (raw, patch):
        found = asked(talk, toolCallId="edit-1", kind="edit", rawInput=fields)
        adrift = [line for line in found if "relative, and nobody says to what" in line]
        assert bool(adrift) is (ran and path == "x")
        assert any(line.split()[0] in ("edit", "delete", "delete+edit") and "opaque" not in line for line in found)
