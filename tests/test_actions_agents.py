"""Requests in the shapes of agents that are described but of which no traffic is kept here, and a few rare ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policyd.actions import Conversation
from tests.told import ONCE, asked, opened, told, update

DEEP = [
    {"optionId": "approve", "kind": "allow_once"},
    {"optionId": "reject", "kind": "reject_once"},
    {"optionId": "approve_always", "kind": "allow_always"},
]


ANTIGRAVITY: list[tuple[str, str, dict[str, Any], list[str]]] = [
    (
        "Trust the authors?",
        "other",
        {"toolCallId": "interaction_1"},
        ["other opaque: it asks the person a question: nobody else can answer it"],
    ),
    (
        "ls",
        "execute",
        {"toolCallId": "interaction_1", "rawInput": {"CommandLine": "ls"}},
        [
            "execute opaque: it asks the person a question: nobody else can answer it",
            "execute opaque: no profile says what `rawInput.CommandLine` means",
        ],
    ),
    (
        "List",
        "execute",
        {"rawInput": {"CommandLine": "ls", "Cwd": "src"}},
        ["execute $ ls (in /home/dev/project/src)", "search /home/dev/project/src to names"],
    ),
    *(
        (title, "execute", {"rawInput": {"CommandLine": "make"}, **meta}, ["execute $ make"])
        for title, meta in (
            ("Run search_web?", {}),
            ("notes_ping", {"_meta": {"mcp": {"server": "notes", "tool": "ping"}}}),
        )
    ),
    ("make", "execute", {}, ["execute opaque: nothing announced this tool call"]),
    (
        "x",
        "execute",
        {"rawInput": {"CommandLine": "make", "BypassSandbox": True}},
        ["execute $ make", "execute - (escalate BypassSandbox)"],
    ),
    (
        "Run client_create_file?",
        "edit",
        {"rawInput": {"target_file": "a", "code_content": "x"}},
        ["edit /home/dev/project/a"],
    ),
    ("Run search_web?", "search", {"rawInput": {"query": "x"}}, ["fetch tool search_web"]),
    ("Run read_url_content?", "fetch", {"rawInput": {"Url": "https://x.org/"}}, ["fetch https://x.org/"]),
    *(
        (
            "notes_ping",
            "other",
            {"rawInput": raw, "_meta": {"mcp": {"server": "notes", "tool": "ping"}}},
            ['other tool notes/ping {"a": 1}'],
        )
        for raw in ({"arguments": {"a": 1}}, {"a": 1})
    ),
    (
        "notes_ping",
        "other",
        {"rawInput": {"a": 1}},
        ["other opaque: the MCP server and tool are not named on the wire"],
    ),
]
DIRAC: list[tuple[str, str, dict[str, Any], list[str]]] = [
    (
        "Execute: make",
        "other",
        {"rawInput": {"commands": [{"command": "make", "displayName": "rm x", "language": "bash"}]}},
        ["execute $ make"],
    ),
    (
        "Execute 2 commands?",
        "other",
        {"rawInput": {"commands": [{"command": "make"}, {"command": "rm a"}]}},
        ["execute $ make", "execute $ rm a", "delete /home/dev/project/a"],
    ),
    ("Permission Request", "other", {"rawInput": {"path": "a", "content": "x"}}, ["edit /home/dev/project/a"]),
    (
        "Apply 1 edit(s) to file a?",
        "other",
        {"rawInput": {"body": "-x"}},
        ["other opaque: no profile says what `rawInput.body` means"],
    ),
]
ROWS: list[tuple[str, dict[str, Any], list[str]]] = [
    *(("antigravity-acp", {"title": title, "kind": kind, **rest}, lines) for title, kind, rest, lines in ANTIGRAVITY),
    *(
        ("stakpak", {"title": "x", "kind": kind, "rawInput": {"abs_path": "a", **raw}}, lines)
        for kind, raw, lines in (
            ("execute", {"command": "make"}, ["execute $ make"]),
            (
                "execute",
                {"command": "make", "remote": "u@h"},
                ["execute opaque: it runs on another machine", "execute $ make"],
            ),
            ("edit", {"path": "a", "old_string": "x", "new_string": "y"}, ["edit /home/dev/project/a"]),
            (
                "edit",
                {"path": "u@h:/a", "abs_path": "u@h:/a", "file_text": "x"},
                ["edit /home/dev/project/u@h:/a", "edit opaque: the path may be one of another machine"],
            ),
        )
    ),
    *(("dirac", {"title": title, "kind": kind, **rest}, lines) for title, kind, rest, lines in DIRAC),
    *(
        ("nobody", {"title": "x", "kind": "execute", "rawInput": {"commands": commands}}, lines)
        for commands, lines in (
            ("make", ["execute $ make"]),
            ([{"command": "make"}, "rm a"], ["execute $ rm a", "delete /home/dev/project/a", "execute $ make"]),
            (
                [{"command": "make", "language": "python"}],
                ["execute $ make", "execute opaque: no profile says what `rawInput.commands` means"],
            ),
        )
    ),
    *(
        ("@factory/cli", {"title": title, "kind": kind, "rawInput": raw}, lines)
        for title, kind, raw, lines in (
            (
                "`make` (low)",
                "execute",
                {"command": "make", "summary": "s", "riskLevel": "low", "riskLevelReason": "r"},
                ["execute $ make"],
            ),
            ("`make`", "execute", {"command": "make", "summary": "s"}, ["execute $ make"]),
            ("Create a", "edit", {"file_path": "a", "content": "x"}, ["edit /home/dev/project/a"]),
            (
                "Edit `a`",
                "edit",
                {"file_path": "a", "old_str": "x", "new_str": "y", "change_all": True},
                ["edit /home/dev/project/a"],
            ),
            ("Read /etc/x", "read", {"file_path": "/etc/x", "limit": 5}, ["read /etc/x"]),
            ("List src", "read", {"directory_path": "src"}, ["read /home/dev/project/src to names"]),
            ("Grep x in src", "search", {"pattern": "x", "path": "src"}, ["search /home/dev/project/src to content"]),
            (
                "Glob *.py, /etc/*",
                "other",
                {"patterns": ["*.py", "/etc/*"], "folder": "src"},
                ["search /home/dev/project/src to names", "search /etc/*|/etc/hostname to names"],
            ),
            ("Glob *.py", "other", {"patterns": "*.py"}, ["search /home/dev/project to names"]),
            (
                "ApplyPatch",
                "edit",
                {"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch"},
                ["delete+edit /home/dev/project/a"],
            ),
            ("notes___ping", "other", {"a": "b"}, ['other tool notes/ping {"a": "b"}']),
            (
                "Read a",
                "read",
                {"file_path": "a", "command": "rm a"},
                ["read /home/dev/project/a", "read opaque: no profile says what `rawInput.command` means"],
            ),
        )
    ),
    *(
        (
            name,
            {"title": "E", "kind": "edit", "rawInput": {"command": command, "path": "a"}},
            [*run, "edit /home/dev/project/a"],
        )
        for name in ("auggie", "Kiro CLI Agent")
        for command, run in (("str_replace", []), ("make", ["edit+execute $ make"]))
    ),
    (
        "@agentclientprotocol/claude-agent-acp",
        {"title": "EnterWorktree", "name": "EnterWorktree", "kind": "other", "rawInput": {"path": "/srv/w"}},
        ["other tool EnterWorktree", "any /srv/w (mention)"],
    ),
    (
        "@agentclientprotocol/claude-agent-acp",
        {"title": "Workflow", "name": "Workflow", "kind": "other", "rawInput": {"script": "x", "args": {"a": "/etc"}}},
        ["other opaque: it runs a script of its own", "other tool Workflow"],
    ),
    (
        "@agentclientprotocol/claude-agent-acp",
        {"title": "x", "name": "ReadMcpResourceDirTool", "kind": "other", "rawInput": {"server": "s", "uri": "u"}},
        ["other tool ReadMcpResourceDirTool"],
    ),
    (
        "goose",
        {
            "title": "shell · ls",
            "kind": "other",
            "rawInput": {"command": "make", "timeout_secs": 5},
            "_meta": {"goose": {"toolCall": {"toolName": "shell", "extensionName": "developer"}}},
        },
        ["execute $ make"],
    ),
    (
        "goose",
        {
            "title": "edit · src/main.py",
            "kind": "other",
            "rawInput": {"path": "src/main.py", "before": "a", "after": "b"},
            "_meta": {"goose": {"toolCall": {"toolName": "edit", "extensionName": "developer"}}},
        },
        ["edit /home/dev/project/src/main.py"],
    ),
    (
        "goose",
        {
            "title": "ssh: run · ls",
            "kind": "other",
            "rawInput": {"command": "ls"},
            "_meta": {"goose": {"toolCall": {"toolName": "ssh__run", "extensionName": "ssh"}}},
        },
        ["other tool ssh/run"],
    ),
    (
        "auggie",
        {"title": "Edit a.py", "kind": "edit", "rawInput": {"path": "a.py", "command": "str_replace"}},
        ["edit /home/dev/project/a.py"],
    ),
    (
        "auggie",
        {"title": "Delete a, x", "kind": "delete", "rawInput": {"file_paths": ["a", "/etc/x"]}},
        ["delete /home/dev/project/a to content", "delete /etc/x to content"],
    ),
    (
        "auggie",
        {"title": "Write to terminal 1", "kind": "execute", "rawInput": {"terminal_id": 1, "input_text": "rm x"}},
        ["execute opaque: no profile says what `rawInput.input_text` means"],
    ),
    (
        "qwen-code",
        {
            "title": "Shell: rm notes.txt (Delete)",
            "kind": "execute",
            "rawInput": {"command": "rm notes.txt", "description": "Delete", "is_background": False},
            "_meta": {"toolName": "run_shell_command"},
        },
        ["execute $ rm notes.txt", "delete /home/dev/project/notes.txt (operand, carried by 0)"],
    ),
    (
        "qwen-code",
        {
            "title": "Shell: ls [in /etc]",
            "kind": "execute",
            "rawInput": {"command": "ls", "directory": "/etc", "is_background": True},
        },
        ["execute $ ls (in /etc)", "search /etc to names (operand, carried by 0)"],
    ),
    (
        "qwen-code",
        {
            "title": "Edit: a.py",
            "kind": "edit",
            "rawInput": {"file_path": "/home/dev/project/a.py", "old_string": "a", "new_string": "b"},
            "locations": [{"path": "/home/dev/project/a.py", "line": None}],
            "content": [{"type": "diff", "path": "/home/dev/project/a.py", "oldText": "a", "newText": "b"}],
            "_meta": {"toolName": "edit"},
        },
        ["edit /home/dev/project/a.py"],
    ),
    (
        "qwen-code",
        {
            "title": 'delete_note (notes MCP Server): {"id":"42"}',
            "kind": "other",
            "rawInput": {"id": "42"},
        },
        ['other tool notes/delete_note {"id": "42"}'],
    ),
    (
        "qwen-code",
        {
            "title": "delete_note",
            "kind": "other",
            "rawInput": {"name": "mcp__notes__delete_note", "arguments": {"id": "9"}},
            "_meta": {"toolName": "tool_call"},
        },
        ['other tool notes/delete_note {"id": "9"}'],
    ),
    (
        "qwen-code",
        {"title": "WebSearch", "kind": "search", "rawInput": {"query": "x"}, "_meta": {"toolName": "web_search"}},
        ["fetch tool web_search"],
    ),
    ("qwen-code", {"title": "delete", "kind": "other", "rawInput": {"id": "42"}}, ["other opaque: the MCP server"]),
    (
        "qwen-code",
        {
            "title": "mcp__notes__list;rm${IFS}-rf${IFS}src (notes MCP Server)",
            "kind": "execute",
            "rawInput": {"command": "mcp__notes__list;rm${IFS}-rf${IFS}src", "description": "notes MCP Server"},
        },
        [
            "execute $ mcp__notes__list",
            "execute $ rm -rf src",
            "delete /home/dev/project/src to content (operand, carried by 1)",
            "execute opaque: words are split with `$IFS`",
        ],
    ),
    (
        "agentao",
        {
            "title": "run_shell_command",
            "kind": "execute",
            "rawInput": {"command": "rm -rf build", "description": "Clean", "working_directory": "sub"},
        },
        [
            "execute $ rm -rf build (in /home/dev/project/sub)",
            "delete /home/dev/project/sub/build to content (operand, carried by 0)",
        ],
    ),
    (
        "agentao",
        {"title": "write_file", "kind": "edit", "rawInput": {"file_path": "n.txt", "content": "x", "append": True}},
        ["edit /home/dev/project/n.txt"],
    ),
    (
        "agentao",
        {"title": "mcp_demo_delete_records", "kind": "other", "rawInput": {"table": "users"}},
        ['other tool demo/delete_records|demo_delete/records {"table": "users"}'],
    ),
    (
        "codex-acp",
        {
            "title": "touch a.txt",
            "kind": "execute",
            "rawInput": {
                "call_id": "c",
                "turn_id": "t",
                "command": ["/bin/bash", "-lc", "touch a.txt && ls"],
                "cwd": "/home/dev/project/sub",
                "reason": "because",
                "parsed_cmd": [{"type": "unknown", "cmd": "touch a.txt"}],
            },
        },
        [
            "execute $ touch a.txt (in /home/dev/project/sub)",
            "execute $ ls (in /home/dev/project/sub)",
            "edit /home/dev/project/sub/a.txt (operand, carried by 0)",
            "search /home/dev/project/sub to names (operand, carried by 1)",
        ],
    ),
    (
        "codex-acp",
        {
            "title": "Edit 2 files",
            "kind": "edit",
            "rawInput": {
                "call_id": "c",
                "changes": {
                    "/home/dev/project/old.txt": {"type": "delete", "content": "x"},
                    "/home/dev/project/a.py": {"type": "update", "unified_diff": "@@", "move_path": "/tmp/b.py"},
                },
            },
        },
        ["delete+edit /home/dev/project/old.txt", "edit+move /home/dev/project/a.py", "edit+move /tmp/b.py"],
    ),
    (
        "Kilo",
        {
            "title": "2 files",
            "kind": "edit",
            "rawInput": {
                "filepath": "a.py, b.py",
                "diff": "…",
                "files": [
                    {"filePath": "/home/dev/project/a.py", "type": "delete"},
                    {"filePath": "/home/dev/project/b.py", "movePath": "/tmp/c.py", "type": "move"},
                ],
            },
        },
        [
            "delete+edit /home/dev/project/a.py",
            "edit+move /home/dev/project/b.py",
            "edit+move /tmp/c.py",
            "any /home/dev/project/a.py, b.py (mention)",
        ],
    ),
    (
        "pi-acp",
        {
            "title": "Allow write?",
            "kind": "other",
            "rawInput": {"method": "confirm", "title": "Allow write?", "message": "/home/dev/outside.txt"},
        },
        ["other opaque: an extension asks in words", "any /home/dev/outside.txt (mention)"],
    ),
    (
        "pi-acp",
        {
            "title": "⚠️ Dangerous command:\n\n  rm -rf src\n\nAllow?",
            "kind": "other",
            "rawInput": {"method": "select", "title": "Dangerous", "options": ["Yes", "No"]},
        },
        [
            "other opaque: an extension asks in words",
            "execute $ rm -rf src",
            "delete /home/dev/project/src to content (operand, carried by 1)",
        ],
    ),
    (
        "@agentclientprotocol/codex-acp",
        {
            "title": "write_stdin --session-id 4 'rm -rf src\n'",
            "kind": "execute",
            "rawInput": {"command": "write_stdin --session-id 4 'rm -rf src\n'", "cwd": "/home/dev/project"},
        },
        ["execute $ write_stdin", "execute $ rm -rf src (in ?)", "delete /home/dev/project/src"],
    ),
    (
        "@agentclientprotocol/codex-acp",
        {"title": "Run command", "kind": "execute", "rawInput": {"command": "'ls -la $HOME '\"'x'\""}},
        [
            "execute $ ls -la /home/dev x",
            "search /home/dev",
            "search /home/dev/project/x",
            "execute $ ls -la $HOME 'x'",
        ],
    ),
    (
        "@agentclientprotocol/codex-acp",
        {"title": "ls 'a b'", "kind": "execute", "rawInput": {"command": "\"ls 'a b'\""}},
        ["execute $ ls a b", "search /home/dev/project/a b to names (operand, carried by 0)"],
    ),
    (
        "@agentclientprotocol/codex-acp",
        {"title": "\"ls 'a b'\"", "kind": "execute", "rawInput": {"command": "\"ls 'a b'\""}},
        ["execute $ ls a b", "search /home/dev/project/a b to names", "execute $ ls 'a b'"],
    ),
    (
        "@agentclientprotocol/codex-acp",
        {"title": "rm \"it's\" '$x'", "kind": "execute", "rawInput": {"command": "rm \"it'\"'\"'s\" '\"'\"'$x'\"'\"'"}},
        ["execute $ rm it's $x", "delete /home/dev/project/it's", "delete /home/dev/project/$x"],
    ),
    (
        "@agentclientprotocol/codex-acp",
        {"title": "'make' 'all'", "kind": "execute", "rawInput": {"command": "'make' 'all'"}},
        ["execute $ make all"],
    ),
    (
        "nobody",
        {"title": "ls 'a b'", "kind": "execute", "rawInput": {"command": "\"ls 'a b'\""}},
        ["execute $ ls 'a b'"],
    ),
    (
        "@agentclientprotocol/codex-acp",
        {
            "title": "Edit files",
            "kind": "edit",
            "locations": [{"path": "/home/dev/project/a.py"}],
            "content": [
                {
                    "type": "diff",
                    "changes": [
                        {"operation": "move", "oldPath": "/home/dev/project/a.py", "path": "/home/dev/project/b.py"}
                    ],
                }
            ],
        },
        ["edit+move /home/dev/project/a.py", "edit+move /home/dev/project/b.py"],
    ),
    (
        "@agentclientprotocol/codex-acp",
        {
            "title": "Edit files",
            "kind": "edit",
            "locations": [{"path": "/home/dev/project/a.py"}, {"path": "/home/dev/project/c.py"}],
            "content": [
                {
                    "type": "diff",
                    "changes": [
                        {"operation": "move", "oldPath": "/home/dev/project/a.py", "path": "/home/dev/project/b.py"}
                    ],
                }
            ],
        },
        [
            "edit opaque: the change of a file it names is not shown",
            "edit+move /home/dev/project/a.py",
            "edit+move /home/dev/project/c.py",
            "edit+move /home/dev/project/b.py",
        ],
    ),
    (
        "@agentclientprotocol/codex-acp",
        {
            "title": "https network access to example.com",
            "kind": "execute",
            "rawInput": {"command": "make", "cwd": "/home/dev/project", "url": "https://example.com"},
            "content": [{"type": "content", "content": {"type": "text", "text": "https access to example.com"}}],
        },
        ["execute $ make", "fetch https://example.com"],
    ),
    (
        "@agentclientprotocol/codex-acp",
        {
            "title": "socks5Tcp network access to example.com",
            "kind": "execute",
            "rawInput": {"command": "make", "cwd": "/home/dev/project"},
        },
        ["execute $ make", "fetch opaque: the text is no absolute URL"],
    ),
    (
        "@agentclientprotocol/codex-acp",
        {
            "title": "touch x",
            "kind": "execute",
            "rawInput": {
                "command": "touch x",
                "cwd": "/home/dev/project",
                "additionalPermissions": {"network": None, "fileSystem": {"write": ["/home/dev-outside"]}},
            },
        },
        [
            "execute $ touch x",
            "edit /home/dev/project/x",
            "execute - (escalate additionalPermissions)",
            "any /home/dev-outside (mention)",
        ],
    ),
    (
        "cline",
        {
            "title": 'apply_patch: {"input":"*** Begin Patch…',
            "kind": "other",
            "rawInput": {
                "input": "*** Begin Patch\n*** Delete File: notes.txt\n*** Update File: README.md\n"
                "*** Move to: ../outside.txt\n@@\n-# Demo\n+# Moved\n*** End Patch"
            },
        },
        [
            "delete /home/dev/project/notes.txt",
            "edit+move /home/dev/project/README.md",
            "edit+move /home/dev/outside.txt",
        ],
    ),
    (
        "cline",
        {"title": "apply_patch: x", "kind": "other", "rawInput": {"input": "*** Begin Patch\n*** Frobnicate: a"}},
        ["edit opaque: not a whole patch"],
    ),
    (
        "cline",
        {
            "title": "read_files: x",
            "kind": "read",
            "rawInput": {"files": [{"path": "README.md"}, {"path": "/etc/hostname"}]},
        },
        ["read /home/dev/project/README.md", "read /etc/hostname"],
    ),
    (
        "gemini-cli",
        {
            "toolCallId": "run_shell_command__run_shell_command_1_0",
            "title": "ls",
            "kind": "execute",
            "content": [
                {"type": "content", "content": {"type": "text", "text": "[current working directory /etc] (List)"}}
            ],
        },
        ["execute $ ls", "search /home/dev/project to names (operand, carried by 0)"],
    ),
    (
        "gemini-cli",
        {"toolCallId": "run_shell_command__run_shell_command_1_0", "title": "ls", "kind": "execute"},
        ["execute $ ls (in ?)", "search /home/dev/project to names (operand, carried by 0)"],
    ),
    (
        "@agentclientprotocol/claude-agent-acp",
        {"name": "WebSearch", "kind": "fetch", "rawInput": {"query": "acp"}},
        ["fetch tool WebSearch"],
    ),
    (
        "@agentclientprotocol/claude-agent-acp",
        {"name": "Glob", "kind": "search", "rawInput": {"pattern": "/etc/*.conf"}},
        ["search /etc/*.conf to names"],
    ),
    (
        "@zed-industries/claude-agent-acp",
        {"title": "touch y", "kind": "execute", "rawInput": {"command": "make", "dangerouslyDisableSandbox": True}},
        ["execute $ make", "execute - (escalate dangerouslyDisableSandbox)"],
    ),
    (
        "@zed-industries/claude-agent-acp",
        {"title": "Fetch https://a.b/c", "kind": "fetch", "rawInput": {"url": "https://a.b/c", "prompt": "Sum up"}},
        ["fetch https://a.b/c"],
    ),
    (
        "@zed-industries/claude-agent-acp",
        {"title": "Edit n.ipynb", "kind": "edit", "rawInput": {"notebook_path": "n.ipynb", "new_source": "1"}},
        ["edit /home/dev/project/n.ipynb"],
    ),
    (
        "cline",
        {"title": "run_commands: x", "kind": "execute", "rawInput": {"commands": "make"}},
        ["execute $ make"],
    ),
    (
        "cline",
        {"title": "read_files: x", "kind": "read", "rawInput": {"files": ["a", {"filePath": "/etc/x"}]}},
        ["read /etc/x", "read /home/dev/project/a"],
    ),
    (
        "cline",
        {"title": "read_files: x", "kind": "read", "rawInput": {"files": ["a", {"where": "/etc/x"}, ["b"], 5]}},
        [
            "read /home/dev/project/a",
            "read opaque: no profile says what `rawInput.files` means",
            "any /etc/x (mention)",
            "read opaque: no profile says what `rawInput.files` means",
            "any /home/dev/project/b (mention)",
            "read opaque: no profile says what `rawInput.files` means",
        ],
    ),
    (
        "cline",
        {"title": "run_commands: x", "kind": "execute", "rawInput": {"commands": [{"command": "a", "args": ["b"]}]}},
        ["execute $ a b", "any /home/dev/project/b (mention)"],
    ),
    (
        "cline",
        {"title": "run_commands: x", "kind": "execute", "rawInput": {"commands": [{"command": "a", "cwd": "/etc"}]}},
        ["execute opaque: the command is no text"],
    ),
    (
        "nobody",
        {"kind": "execute", "rawInput": {"commands": [{"command": "a", "args": ["b"]}]}},
        ["execute $ a", "execute opaque: no profile says what `rawInput.commands` means"],
    ),
    (
        "cline",
        {"title": "read_files: x", "kind": "read", "rawInput": {"paths": "a"}},
        ["read /home/dev/project/a"],
    ),
    (
        "cline",
        {"title": "search_codebase: x", "kind": "search", "rawInput": {"queries": "main"}},
        ["search /home/dev/project to content"],
    ),
    (
        "cline",
        {
            "title": "apply_patch: x",
            "kind": "other",
            "rawInput": {
                "input": "apply_patch <<'EOF'\r\n*** Begin Patch\r\n*** Delete File: a\r\n*** End Patch\r\nEOF\r\n"
            },
        },
        ["delete /home/dev/project/a"],
    ),
    (
        "cline",
        {
            "title": "apply_patch: x",
            "kind": "other",
            "rawInput": {"input": "cat x\n*** Begin Patch\n*** Delete File: a\n*** End Patch"},
        },
        ["edit opaque: not a whole patch"],
    ),
    (
        "OpenCode",
        {"title": "doom_loop", "kind": "other", "rawInput": {"tool": "bash", "input": {"command": "make", "x": "y"}}},
        ["execute $ make", "other opaque: the kind of the request does not say that its command is run"],
    ),
    (
        "OpenCode",
        {"title": "doom_loop", "kind": "other", "rawInput": {"tool": "read", "input": {"filePath": "/etc/x"}}},
        ["other /etc/x", "other opaque: the kind of the request does not say what is done to the path"],
    ),
]


@pytest.mark.parametrize(("name", "fields", "expected"), ROWS, ids=[f"{row[0]}-{at}" for at, row in enumerate(ROWS)])
def test_a_request_stands_for_what_its_agent_means(name: str, fields: dict[str, Any], expected: list[str]) -> None:
    found = asked(opened(name), **fields)
    assert len(found) == len(expected), found
    assert all(line.startswith(start) for line, start in zip(found, expected, strict=True)), found


def test_a_web_address_among_the_locations_of_its_own_fetch_is_no_path() -> None:
    def fetch(place: str) -> list[str]:
        raw = {"url": "https://a.example/x"}
        return asked(opened("nobody"), kind="fetch", rawInput=raw, locations=[{"path": place}])

    assert fetch("https://a.example/x") == ["fetch https://a.example/x"]
    assert fetch("https://b.example/x")[0].startswith("fetch opaque: `https://` names no file")


DIFFS = [
    ("a/home/dev/project/x b/home/dev/project/x", "a/home/dev/project/x", "b/home/dev/project/x", ["edit X"]),
    ("a/home/dev/project/x b/home/dev/project/x", "a/dev/null", "b/home/dev/project/x", ["edit X"]),
    ("a/home/dev/project/x b/dev/null", "a/home/dev/project/x", "b/dev/null", ["delete+edit X"]),
    ("a/etc/y b/home/dev/project/x", "a/etc/y", "b/home/dev/project/x", ["edit+move X", "edit+move /etc/y"]),
    ("a/home/dev/project/x b/etc/y", "a/home/dev/project/x", "b/etc/y", ["edit+move X", "edit+move /etc/y"]),
    ("a/home/dev/project/x b/etc/y", "a/home/dev/project/x", "b/home/dev/project/x", ["edit opaque", "edit X"]),
    ("a/etc/y b/home/dev/project/x", "a/dev/null", "b/home/dev/project/x", ["edit opaque", "edit X"]),
    ("a/dev/null b/dev/null", "a/dev/null", "b/dev/null", ["edit opaque", "edit X"]),
    ("ax bx", "ax", "bx", ["edit opaque", "edit X"]),
    ("a/x b/x", "a/x\n+++ b/y", "b/x", ["edit opaque", "edit X"]),
    ("a/x b/x\ndiff --git a/y b/y", "a/x", "b/x", ["edit opaque", "edit X"]),
]


@pytest.mark.parametrize(("named", "old", "new", "expected"), DIFFS)
@pytest.mark.parametrize("hunk", ["", "@@ -1,1 +1,1 @@\n--- a/etc/z\n+++ b/etc/z\n"])
def test_the_heads_of_a_diff_say_what_is_done_to_a_file(
    named: str, old: str, new: str, expected: list[str], hunk: str
) -> None:
    diff = f"\ndiff --git {named}\nindex 0..0\n--- {old}\n+++ {new}\n{hunk}"
    raw = {"fileName": "/home/dev/project/x", "diff": diff}
    found = asked(opened("Copilot"), title="Edit file", kind="edit", rawInput=raw)
    shown = [line.replace("/home/dev/project/x", "X").partition(":")[0] for line in found]
    assert shown == expected


def test_a_command_that_looks_like_an_mcp_name_is_none() -> None:
    assert asked(opened("nobody"), title="mcp__notes__list;rm${IFS}-rf${IFS}src", kind="execute") == [
        "execute opaque: nothing announced this tool call"
    ]


def test_an_agent_without_a_name_is_known_by_what_it_offers() -> None:
    raw = {"file_path": "src/app.py", "old_string": "a", "new_string": "b"}
    assert asked(opened(""), DEEP, title="Edit `src/app.py`", rawInput=raw) == ["edit /src/app.py"]
    assert asked(opened("else"), DEEP, title="Edit `src/app.py`", rawInput=raw) == ["edit /home/dev/project/src/app.py"]


def test_one_id_may_be_asked_twice_for_different_things() -> None:
    talk = opened("")
    assert asked(talk, DEEP, title="Execute: `touch a`", rawInput={"command": "touch a"})[0] == "execute $ touch a"
    assert asked(talk, DEEP, title="Execute: `touch b`", rawInput={"command": "touch b"})[0] == "execute $ touch b"


def test_older_vibe_sends_its_arguments_as_json_text() -> None:
    talk = opened("@mistralai/mistral-vibe", "2.0.2")
    assert talk.agent.profile == "vibe-2"
    update(talk, title="bash", kind="execute", rawInput=json.dumps({"command": "rm -rf src", "timeout": None}))
    assert asked(talk)[0] == "execute $ rm -rf src"
    update(talk, toolCallId="d", kind="edit", rawInput=json.dumps({"path": "n.txt", "content": "x", "overwrite": True}))
    assert asked(talk, toolCallId="d") == ["edit /home/dev/project/n.txt"]
    assert opened("@mistralai/mistral-vibe", "3.0.2").agent.profile == "vibe"


def test_what_an_update_adds_to_a_table_of_meta_leaves_what_stands_there() -> None:
    talk = opened("goose")
    told_of = {"toolCall": {"toolName": "shell", "extensionName": "developer"}}
    update(talk, title="shell", kind="other", rawInput={"command": "make"}, _meta={"goose": told_of, "other": 1})
    summary = {"goose": {"toolChainSummary": {"summary": "x", "count": 4}}, "other": 2}
    update(talk, sessionUpdate="tool_call_update", _meta=summary)
    assert asked(talk) == ["execute $ make"]


AWAY = "search opaque: a part of a glob pattern may lead elsewhere"
HERE = "search /home/dev/project to names"
GLOBS = [
    ("src/{a,b}/*.{ts,tsx}", [HERE]),
    ("foo|\\bbar", [HERE]),
    ("{/etc/*,src}/*.conf", ["search /etc/*/*.conf to names", "search /home/dev/project/src/*.conf to names"]),
    ("{a,../../b}", ["search /home/dev/project/a to names", "search /home/b to names"]),
    ("{~/x}", [AWAY, HERE]),
    ("@(/etc|src)/*", [AWAY, HERE]),
    ("(src|/etc)/**", [AWAY, HERE]),
    ("+(../a)", [AWAY, HERE]),
    ("a,/etc/*", [AWAY, HERE]),
    ("file:///etc/*", ["search /etc/*|/etc/hostname to names"]),
]


@pytest.mark.parametrize(("pattern", "expected"), GLOBS, ids=lambda value: str(value)[:40])
def test_a_part_of_a_glob_that_leads_away_is_a_place_of_its_own(pattern: str, expected: list[str]) -> None:
    found = asked(opened("@factory/cli"), title="Glob", kind="other", rawInput={"patterns": [pattern]})
    assert found == expected


@pytest.mark.parametrize("spelled", ["file:///etc/hostname", "FILE:///etc/hostname", "/etc/hostname"])
def test_a_place_spelled_as_a_uri_is_the_file_it_names(spelled: str) -> None:
    place, diff = [{"path": spelled}], [{"type": "diff", "path": spelled, "oldText": "a", "newText": "b"}]
    assert asked(opened("nobody"), kind="edit", locations=place, content=diff) == ["edit /etc/hostname"]
    changed = [{"type": "diff", "changes": [{"operation": "modify", "path": spelled}]}]
    assert asked(opened("nobody"), kind="edit", locations=place, content=changed) == ["edit /etc/hostname"]


def test_a_place_whose_uri_may_mean_two_files_is_both() -> None:
    place = [{"path": "file:///etc/a%20b#c"}]
    found = asked(opened("nobody"), kind="read", locations=place)
    assert found == ["read /etc/a%20b#c|/etc/a b#c|/etc/a%20b|/etc/a b"]


def test_newer_vibe_edits_one_text_of_a_file() -> None:
    talk = opened("@mistralai/mistral-vibe", "3.0.3")
    raw = {"filePath": "a", "oldString": "x", "newString": "y", "replaceAll": True}
    update(talk, title="Editing a", kind="edit", rawInput=raw, _meta={"tool_name": "edit"})
    assert asked(talk) == ["edit /home/dev/project/a"]


@pytest.mark.parametrize("command", ["todo", "task", "read_file", "Running explore agent: x"])
def test_a_command_that_older_vibe_shows_as_title_is_no_tool_of_that_name(command: str) -> None:
    talk = opened("@mistralai/mistral-vibe", "2.0.2")
    update(talk, title=command, kind="execute", rawInput=json.dumps({"command": command, "timeout": None}))
    lines = asked(talk)
    assert lines[0] == f"execute $ {command}"
    assert not any("opaque" in line for line in lines)


def test_a_request_before_its_call_waits_for_the_details() -> None:
    talk = opened("Kilo")
    params = {
        "sessionId": "s",
        "toolCall": {"toolCallId": "c", "title": "read", "kind": "read", "locations": [], "rawInput": {}},
        "options": ONCE,
    }
    assert talk.waits(params)
    assert [told(action) for action in talk.request(params).actions] == [
        "read opaque: its details have not come: rawInput.filePath"
    ]
    update(talk, title="read", kind="read", rawInput={})
    assert talk.waits(params)
    update(talk, sessionUpdate="tool_call_update", title="read", rawInput={"filePath": "/home/dev/project/.env"})
    assert not talk.waits(params)
    assert [told(action) for action in talk.request(params).actions] == ["read /home/dev/project/.env"]


def test_without_its_late_details_a_command_runs_nobody_knows_where() -> None:
    talk = opened("OpenCode")
    update(talk, title="bash", kind="execute", rawInput={"cwd": "/home/dev/project"})
    lines = asked(talk, title="ls", kind="execute", rawInput={"command": "ls"})
    assert lines[0] == "execute $ ls (in ?)"


def test_a_tool_name_never_comes_out_of_a_requests_prose() -> None:
    talk = opened("OpenCode")
    lines = asked(talk, title="todowrite", kind="execute", rawInput={"command": "todowrite"})
    assert lines[0].startswith("execute $ todowrite")


def test_a_shell_that_keeps_its_directory_may_stand_where_it_went() -> None:
    talk = opened("@agentclientprotocol/claude-agent-acp")
    update(talk, name="Bash", kind="execute", rawInput={"command": "cd sub && ls"}, toolCallId="a")
    assert asked(talk, toolCallId="b", name="Bash", kind="execute", rawInput={"command": "pwd"})[0] == (
        "execute $ pwd (idle)"
    )
    update(talk, sessionUpdate="tool_call_update", toolCallId="a", status="completed")
    line = asked(talk, toolCallId="b", name="Bash", kind="execute", rawInput={"command": "rm x"})[0]
    assert line == "execute $ rm x (in /home/dev/project|/home/dev/project/sub)"
    update(talk, name="Bash", kind="execute", rawInput={"command": "cd $X"}, toolCallId="e", status="completed")
    line = asked(talk, toolCallId="f", name="Bash", kind="execute", rawInput={"command": "rm x"})[0]
    assert line == "execute $ rm x (in ?)"


IN_SUB, ANYWHERE = "/home/dev/project|/home/dev/project/sub", "?"


@pytest.mark.parametrize(
    ("command", "stands"),
    [
        ("c''d sub", IN_SUB),
        ("\\cd sub", IN_SUB),
        ('"cd" sub', IN_SUB),
        ("$'cd' sub", IN_SUB),
        ("{cd,sub}", IN_SUB),
        ("chdir sub", IN_SUB),
        ("eval 'cd sub'", IN_SUB),
        ("builtin cd sub", IN_SUB),
        ("source ./go.sh", ANYWHERE),
        (". ./go.sh", ANYWHERE),
        ("$X sub", ANYWHERE),
        ("c$X'd' sub", ANYWHERE),
        ("eval $X", ANYWHERE),
        ("CDPATH=/etc; cd sub", ANYWHERE),
        ("pushd sub", IN_SUB),
        ("popd", ANYWHERE),
        ("pushd", ANYWHERE),
        ("cd -", ANYWHERE),
        ("f() { cd sub; }; f", ANYWHERE),
        ("c\\d sub 'open", ANYWHERE),
        ("source .venv/bin/activate && pytest", ""),
        ("python - <<'X'\nprint(1)\nX", ""),
        ('$HOME/bin/tool && "$VENV/bin/python" x.py', ""),
        ("grep -rn 'cd' src", ""),
        ("echo 'open", ""),
    ],
)
@pytest.mark.parametrize("told_by", ["update", "request"])
def test_a_shell_is_followed_however_it_is_moved(command: str, stands: str, told_by: str) -> None:
    talk = opened("@agentclientprotocol/claude-agent-acp")
    raw = {"rawInput": {"command": command}}
    call = {"toolCallId": "a", "name": "Bash", "kind": "execute", **(raw if told_by == "request" else {})}
    update(talk, **{**call, **(raw if told_by == "update" else {"rawInput": {}})})
    params = {"sessionId": "s", "toolCall": call, "options": ONCE}
    talk.observe("a2c", {"id": 5, "method": "session/request_permission", "params": params})
    talk.observe("c2a", {"id": 5, "result": {"outcome": {"outcome": "selected", "optionId": "yes"}}})
    update(talk, sessionUpdate="tool_call_update", toolCallId="a", status="completed")
    line = asked(talk, toolCallId="b", name="Bash", kind="execute", rawInput={"command": "rm x"})[0]
    assert line == "execute $ rm x" + (f" (in {stands})" if stands else "")


IN_BUILD = f"{IN_SUB}|/home/dev/project/sub/build|/home/dev/project/build"


@pytest.mark.parametrize(
    ("raw", "stands"),
    [
        ({"command": "cd sub && ls"}, IN_SUB),
        ({"cmd": "cd sub"}, IN_SUB),
        ({"commands": ["ls", "cd sub"]}, IN_SUB),
        ({"command": "cd", "args": ["sub"]}, IN_SUB),
        ({"command": "ls", "cwd": "sub"}, IN_SUB),
        ({"command": "ls", "workdir": "/home/dev/project/sub"}, IN_SUB),
        ({"command": "cd build", "cwd": "sub"}, IN_BUILD),
        ({"command": "ls", "cwd": "it's"}, "/home/dev/project|/home/dev/project/it's"),
        ({"command": "ls", "cwd": "~/x"}, ANYWHERE),
        ({"command": "ls", "cwd": ["sub"]}, ANYWHERE),
        ({"command": {"cd": "sub"}}, ANYWHERE),
        ({"command": "cd $X"}, ANYWHERE),
        ({"command": "ls sub"}, ""),
        ({"path": "sub", "cwd": "sub"}, ""),
    ],
)
def test_the_shell_of_an_agent_nobody_described_may_keep_its_directory(raw: dict[str, Any], stands: str) -> None:
    talk = opened("nobody")
    update(talk, toolCallId="a", kind="execute", rawInput=raw, status="completed")
    line = asked(talk, toolCallId="b", kind="execute", rawInput={"command": "rm x"})[0]
    assert line == "execute $ rm x" + (f" (in {stands})" if stands else "")


@pytest.mark.parametrize(
    ("outcome", "moved"),
    [
        ({"outcome": {"outcome": "selected", "optionId": "yes"}}, True),
        ({"outcome": {"outcome": "selected", "optionId": "unknown"}}, True),
        ({"outcome": {"outcome": "selected", "optionId": "no"}}, False),
        ({"outcome": {"outcome": "cancelled"}}, False),
    ],
)
def test_a_shell_may_stand_where_a_command_leads_that_may_run_now(outcome: dict[str, Any], moved: bool) -> None:
    talk = opened("@agentclientprotocol/claude-agent-acp")
    fields: dict[str, Any] = {"name": "Bash", "kind": "execute", "rawInput": {"command": "cd sub && ls"}}
    update(talk, toolCallId="a", **fields)
    params = {"sessionId": "s", "toolCall": {"toolCallId": "a", **fields}, "options": ONCE}
    talk.observe("a2c", {"id": 5, "method": "session/request_permission", "params": params})
    talk.observe("c2a", {"id": 5, "result": outcome})
    update(talk, name="Bash", kind="execute", rawInput={"command": "make"}, toolCallId="c")
    assert ("/home/dev/project/sub" in asked(talk, toolCallId="c")[0]) is moved


def test_a_refused_command_moved_no_shell() -> None:
    talk = opened("@agentclientprotocol/claude-agent-acp")
    params = {
        "sessionId": "s",
        "toolCall": {"toolCallId": "a", "name": "Bash", "kind": "execute", "rawInput": {"command": "cd /etc && ls"}},
        "options": ONCE,
    }
    update(talk, name="Bash", kind="execute", rawInput={"command": "cd /etc && ls"}, toolCallId="a")
    talk.observe("a2c", {"id": 5, "method": "session/request_permission", "params": params})
    talk.observe("c2a", {"id": 5, "result": {"outcome": {"outcome": "selected", "optionId": "no"}}})
    update(talk, sessionUpdate="tool_call_update", toolCallId="a", status="failed")
    assert asked(talk, toolCallId="b", name="Bash", kind="execute", rawInput={"command": "rm x"})[0] == "execute $ rm x"


STEPS: list[tuple[list[str], list[str]]] = [
    (["rm x", "cd sub"], ["rm x", "cd sub"]),
    (["cd sub", "rm x"], ["cd sub", "rm x (in /home/dev/project|/home/dev/project/sub)"]),
    (
        ["cd sub", "cd build && ls", "rm x"],
        [
            "cd sub",
            "cd build (in /home/dev/project|/home/dev/project/sub)",
            "ls (in /home/dev/project/build|/home/dev/project/sub/build)",
            "rm x (in /home/dev/project|/home/dev/project/sub|/home/dev/project/build|/home/dev/project/sub/build)",
        ],
    ),
    (["cd $X", "rm x"], ["cd $X", "rm x (in ?)"]),
]


@pytest.mark.parametrize(("commands", "expected"), STEPS)
@pytest.mark.parametrize("step_by_step", [False, True])
def test_a_shell_goes_on_where_the_commands_before_left_it(
    commands: list[str], expected: list[str], step_by_step: bool
) -> None:
    talk, found = opened("OpenHands CLI ACP Agent"), []
    for at, command in enumerate(commands):
        raw = {"kind": "TerminalAction", "command": command}
        update(talk, toolCallId=f"c{at}", kind="execute", rawInput=raw, status="in_progress")
        if step_by_step:
            found += asked(talk, toolCallId="confirmation", kind="other")
            answer(talk, toolCallId="confirmation", kind="other")
            update(talk, sessionUpdate="tool_call_update", toolCallId=f"c{at}", status="completed")
    found = found or asked(talk, toolCallId="confirmation", kind="other")
    commands_of_it = [line.removeprefix("execute $ ") for line in found if line.startswith("execute $")]
    ran = dict.fromkeys(line.replace("(idle, ", "(").removesuffix(" (idle)") for line in commands_of_it)
    assert list(ran) == expected


def test_a_request_that_names_no_call_stands_for_every_open_one() -> None:
    talk = opened("OpenHands CLI ACP Agent")
    for ident, command in (("a", "touch a"), ("b", "rm -rf src")):
        update(
            talk,
            toolCallId=ident,
            kind="execute",
            rawInput={"kind": "TerminalAction", "command": command},
            status="pending",
        )
    assert [line for line in asked(talk, toolCallId="confirmation-1", kind="other") if line.startswith("execute")] == [
        "execute $ touch a",
        "execute $ rm -rf src",
    ]
    assert "carried by 2" in asked(talk, toolCallId="confirmation-1", kind="other")[-1]
    update(talk, sessionUpdate="tool_call_update", toolCallId="a", status="completed")
    update(talk, sessionUpdate="tool_call_update", toolCallId="b", status="failed")
    assert asked(talk, toolCallId="confirmation-1", kind="other") == [
        "other opaque: it names no tool call that is known to be open"
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"kind": "execute", "rawInput": {"command": "rm x"}}, "execute $ rm x"),
        ({"rawInput": {"kind": "TerminalAction", "command": "rm x"}}, "execute $ rm x"),
        ({"kind": "read", "locations": [{"path": "/etc/passwd"}]}, "read /etc/passwd"),
        ({"content": [{"type": "diff", "path": "/etc/x", "newText": ""}]}, "edit /etc/x"),
        ({"kind": "delete"}, "delete opaque: nothing announced"),
        ({"content": [{"type": "patch"}]}, "other opaque: `content` holds something"),
    ],
)
@pytest.mark.parametrize("pending", [True, False])
def test_a_request_that_covers_calls_speaks_for_itself_too(
    fields: dict[str, Any], expected: str, pending: bool
) -> None:
    talk = opened("OpenHands CLI ACP Agent")
    raw = {"kind": "FileEditorAction", "command": "view", "path": "a.py"}
    if pending:
        update(talk, kind="read", rawInput=raw, status="pending")
    lines = asked(talk, toolCallId="confirmation-1", **fields)
    assert any(line.startswith(expected) for line in lines), lines
    assert not pending or lines[0] == "read /home/dev/project/a.py"


def test_a_request_may_stand_for_open_calls_beside_the_one_it_names() -> None:
    talk = opened("@factory/cli")
    for ident in ("a", "b", "c"):
        update(talk, toolCallId=ident, title="Execute", kind="execute", status="pending", rawInput={})
    unsaid = "execute opaque: the request does not say what it would do"
    assert asked(talk, toolCallId="a", rawInput={"command": "make"}) == ["execute $ make", unsaid, unsaid]

    answer(talk, toolCallId="a", rawInput={"command": "make"})
    update(talk, sessionUpdate="tool_call_update", toolCallId="a", status="completed")
    assert asked(talk, toolCallId="c", rawInput={"command": "make"}) == [unsaid, "execute $ make"]
    update(talk, sessionUpdate="tool_call_update", toolCallId="b", status="failed")
    assert asked(talk, toolCallId="c", rawInput={"command": "make"}) == ["execute $ make"]


def answer(talk: Conversation, **call: Any) -> None:
    talk.observe(
        "a2c", {"id": 7, "method": "session/request_permission", "params": {"sessionId": "s", "toolCall": call}}
    )
    talk.observe("c2a", {"id": 7, "result": {"outcome": {"outcome": "selected", "optionId": "yes"}}})


def test_text_typed_into_a_running_program_is_opaque() -> None:
    talk = opened("OpenHands CLI ACP Agent")
    raw = {"kind": "TerminalAction", "command": "yes", "is_input": True}
    update(talk, kind="execute", rawInput=raw, status="pending")
    lines = asked(talk, toolCallId="confirmation-1", kind="other")
    assert lines[0] == "execute opaque: the text is typed into a running program"


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"command": "ls", "args": ["-la"]}, ["execute $ ls -la"]),
        ({"command": "cd sub && rm -rf build"}, ["execute $ cd sub (idle)", "execute $ rm -rf build"]),
        ({"command": "/bin/sh", "args": ["-lc", "rm -rf src"]}, ["execute $ rm -rf src"]),
        ({"command": "git", "args": ["log", "$(rm x)"]}, ["execute $ git log $(rm x)", "execute $ rm x"]),
        ({"command": "ls", "cwd": "/etc"}, ["execute $ ls (in /etc)"]),
        ({"command": "ls", "env": [{"name": "PATH", "value": "/x y"}]}, ["execute $ PATH=/x y ls"]),
        ({"command": "ls", "env": ["PATH"]}, ["execute opaque: the arguments or the environment"]),
        ({}, ["execute opaque: the command is no text"]),
    ],
)
def test_a_terminal_is_read_as_words_and_as_text(params: dict[str, Any], expected: list[str]) -> None:
    found = [told(action) for action in opened("x").side_door("terminal/create", {"sessionId": "s", **params}).actions]
    commands = [line for line in found if line.startswith("execute")]
    assert all(any(line.startswith(start) for line in commands) for start in expected), commands


def test_the_joined_reading_of_a_terminal_is_never_allowed() -> None:
    door = opened("x").side_door("terminal/create", {"sessionId": "s", "command": "git", "args": ["log", "$(rm x)"]})
    joined = [action for action in door.actions if "joined" in action.origin and action.command]
    assert joined
    assert all(action.command and action.command.strict_only and not action.doubtful for action in joined)


def test_that_an_agent_joins_the_words_it_states_is_only_suspected() -> None:
    call = {"toolCallId": "c", "kind": "execute", "rawInput": {"command": "git", "args": ["log", "; rm x"]}}
    found = opened("x").request({"sessionId": "s", "toolCall": call, "options": ONCE}).actions
    for joined in (False, True):
        read = [action for action in found if action.origin.endswith("joined") is joined]
        assert read and all(action.doubtful is joined for action in read)


@pytest.mark.parametrize(
    ("words", "joined"),
    [
        ("pytest --tb=short", False),
        ("git diff HEAD~1 --format=%h", False),
        ("env A=b rm x", False),
        ("git log|a b", True),
        ("git log|--format=%h %s", True),
        ("cat|*.py", True),
        ("cat|~/x", True),
        ("ls|{a,b}", True),
        ("ls|#x", True),
        ("A=b ls", True),
        ("git log|$(rm x)", True),
        ("git log|a;b", True),
        ("git log|x\nrm", True),
        ("ls|a\\b", True),
        ("{a b}", True),
    ],
)
def test_words_that_mean_the_same_when_they_are_joined_are_read_once(words: str, joined: bool) -> None:
    plain, _, odd = words.partition("|")
    argv = [*plain.split(), *([odd] if odd else [])]
    call = {"toolCallId": "c", "kind": "execute", "rawInput": {"command": argv}}
    found = opened("x").request({"sessionId": "s", "toolCall": call, "options": ONCE}).actions
    assert any(action.origin.endswith("joined") for action in found) is joined


@pytest.mark.parametrize(("method", "kind"), [("fs/read_text_file", "read"), ("fs/write_text_file", "edit")])
def test_files_through_the_client_are_paths(method: str, kind: str) -> None:
    door = opened("x").side_door(method, {"sessionId": "s", "path": "/home/dev/project/.env", "content": "x"})
    assert [told(action) for action in door.actions] == [f"{kind} /home/dev/project/.env"]
    assert door.side_door == method
