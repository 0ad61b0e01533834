"""What stands in words of an agent's own: directories in explanations, tools under other names, arguments as titles."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyd.actions import Conversation, profiles
from policyd.actions.evidence import Evidence
from policyd.actions.fields import each
from policyd.actions.readers import Fault, Template, prompt_urls
from tests.told import asked, opened, update

HERE = "/home/dev/project"


def explained(text: str, title: str = "touch a") -> list[str]:
    """Return what a Gemini command with this explanation stands for."""
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    fields: dict[str, Any] = {"toolCallId": "run_shell_command__run_shell_command_1_0", "title": title}
    return asked(opened("gemini-cli"), content=content, kind="execute", **fields)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[in sub]", f"{HERE}/sub"),
        ("[in sub] (Make it)", f"{HERE}/sub"),
        ("[in sub] (Make it) [background]", f"{HERE}/sub"),
        ("[in /tmp] [background]", "/tmp"),
    ],
)
def test_gemini_says_where_a_command_runs(text: str, place: str) -> None:
    assert explained(text) == [f"execute $ touch a (in {place})", f"edit {place}/a (operand, carried by 0)"]


@pytest.mark.parametrize("behind", ["", " [background]", " (Make [all] of (it)) [background]", " (x)"])
def test_what_gemini_calls_the_current_directory_is_not_where_a_command_runs(behind: str) -> None:
    found = explained(f"[current working directory /srv]{behind}")
    assert found == ["execute $ touch a", f"edit {HERE}/a (operand, carried by 0)"]


STARTED = " [current working directory /srv]"


@pytest.mark.parametrize(
    ("title", "command"),
    [
        (f"touch a{STARTED}", "touch a"),
        (f"touch a{STARTED} (Make it)", "touch a"),
        (f"touch a{STARTED} (Make it) [background]", "touch a"),
        (f"touch a{STARTED} [background]", "touch a"),
        ("touch a [in sub] (Make it)", f"touch a (in {HERE}/sub)"),
        ("touch a (Make it)", ""),
        ("touch a", ""),
        (f"touch a{STARTED} (x); rm b{STARTED}", ""),
        (f"touch a{STARTED} (x); rm b{STARTED} (Make it)", ""),
        (f"touch a{STARTED}{STARTED}", ""),
        (f"touch a{STARTED} (Make (it))", "touch a"),
        ("touch a [in su]b] (Make it)", ""),
    ],
)
def test_the_title_of_an_older_gemini_ends_a_command_where_nobody_can_doubt_it(title: str, command: str) -> None:
    fields: dict[str, Any] = {"toolCallId": "run_shell_command-1", "title": title, "kind": "execute"}
    (first, *_) = asked(opened("gemini-cli", "0.33.2"), **fields)
    assert first == f"execute $ {command}" if command else first.startswith("execute opaque")
    (first, *_) = asked(unnamed(["gemini-api-key", "vertex-ai"]), **fields)
    assert first == "execute opaque: the command cannot be told from its description"


def unnamed(methods: list[str]) -> Conversation:
    """Open a session of an agent that gives no name and offers these ways to log in."""
    talk = opened("")
    talk.observe("c2a", {"id": 7, "method": "initialize", "params": {}})
    told = {"protocolVersion": 1, "authMethods": [{"id": method} for method in methods]}
    talk.observe("a2c", {"id": 7, "result": told})
    return talk


def test_an_agent_without_a_name_is_known_by_the_ways_to_log_in() -> None:
    assert unnamed(["gemini-api-key", "vertex-ai", "x"]).agent.family == "gemini"
    assert unnamed(["gemini-api-key"]).agent.profile == "generic"
    assert unnamed([]).agent.profile == "generic"


def test_an_older_gemini_names_what_it_calls_by_id_and_title() -> None:
    talk = opened("gemini-cli", "0.33.2", servers=("notes",))
    call: dict[str, Any] = {
        "toolCallId": "mcp_notes_delete_note-1",
        "title": '{"id":"a","path":"/etc/x"}',
        "kind": "other",
    }
    assert asked(talk, **call) == ['other tool notes/delete_note {"id": "a", "path": "/etc/x"}', "any /etc/x (mention)"]
    doubtful = asked(talk, toolCallId="mcp_notes_run-query-1", title="{}", kind="other")
    assert "other opaque: the MCP server and tool are not named on the wire" in doubtful


WIDER = [
    {"optionId": "proceed_always_server", "name": "Always Allow notes", "kind": "allow_always"},
    {"optionId": "proceed_always_tool", "name": "Always Allow delete_note", "kind": "allow_always"},
    {"optionId": "proceed_once", "name": "Allow", "kind": "allow_once"},
]


@pytest.mark.parametrize(
    ("options", "tool"), [(WIDER, "notes/delete_note"), (WIDER[1:], "/delete_note"), (WIDER[::2], ""), (WIDER[2:], "")]
)
def test_an_older_qwen_names_server_and_tool_in_what_it_offers_for_always(
    options: list[dict[str, str]], tool: str
) -> None:
    (found, *_) = asked(opened("qwen-code", "0.12.0"), options, title='{"id":"a"}', kind="other", rawInput={"id": "a"})
    named = f'other tool {tool} {{"id": "a"}}' if tool else "other opaque: the MCP server and tool are not named"
    assert found.startswith(named)


def test_a_diff_of_an_older_gemini_names_its_file_and_no_directory() -> None:
    talk = opened("gemini-cli", "0.12.0")
    diff = {"type": "diff", "path": "a.py", "oldText": "x", "newText": "y"}
    edit: dict[str, Any] = {"toolCallId": "replace-1", "title": "sub/a.py: x => y", "kind": "edit", "content": [diff]}
    assert asked(talk, locations=[{"path": f"{HERE}/sub/a.py"}], **edit) == [f"edit {HERE}/sub/a.py"]
    both = asked(talk, locations=[{"path": f"{HERE}/sub/a.py"}, {"path": f"{HERE}/src/a.py"}], **edit)
    assert both == [f"edit {HERE}/sub/a.py", f"edit {HERE}/src/a.py", f"edit {HERE}/a.py"]


@pytest.mark.parametrize(
    "text",
    ["[in sub] (x] (y)", "[in su]b] (y)", "[in sub] (x] (y) [background]", "[in sub] and more", "in sub", "[in ]"],
)
def test_a_directory_that_can_be_read_in_two_ways_is_not_known(text: str) -> None:
    assert explained(text)[0] == "execute $ touch a (in ?)"


@pytest.mark.parametrize(
    ("template", "text", "expected"),
    [
        ("[{a!}] ({b})", "[x] (y)", {"a": "x", "b": "y"}),
        ("[{a!}] ({b})", "[x] (y] (z)", None),
        ("[{a!}] ({b})", "[x]z] (y)", None),
        ("[{a!}]", "[x] [y]", None),
        ("{a} [in {b!}]", "x [in y]", {"a": "x", "b": "y"}),
        ("{a} [in {b!}]", "x [in z; q [in y]", None),
        ("{a} [in {b!}]", "x [in [in y]", None),
        ("{a} [in {b!}] ({c})", "x] (z [in y] (w)", None),
        ("{a!}", "x", {"a": "x"}),
        ("{a}__{a}_{b}", "x__x_1", {"a": "x", "b": "1"}),
        ("{a}__{a}_{b}", "x__y__x__y_1_0", {"a": "x__y", "b": "1_0"}),
        ("{a}__{a}_{b}", "x__y__x__y", None),
        ("{a}__{a}_{b}", "x__x_", None),
        ("{a}__{a}_{b}", f"{'a' * 600}__{'a' * 600}_1", None),
    ],
)
def test_a_hole_that_must_stand_beyond_doubt(template: str, text: str, expected: dict[str, str] | None) -> None:
    assert Template.compile(template).match(text) == expected


WORDS = st.lists(
    st.sampled_from([" [in ", " [current working directory ", "]", "] (", ")", "ls", "/w", " [background]", "; rm x"]),
    max_size=8,
).map("".join)


@given(command=WORDS, described=WORDS, way=st.sampled_from(["in", "current working directory"]), back=st.booleans())
def test_a_title_with_more_than_its_command_hides_none(command: str, described: str, way: str, back: bool) -> None:
    text = f" ({described})" if described else ""
    title = f"ls{command} [{way} /w]{text}{' [background]' if back else ''}"
    refs = profiles.find("gemini-cli", "0.30.0").tools["run_shell_command"].refs["command"]
    read = [found.value for found in each(refs, Evidence("", titles=(title,)))]
    assert not read or f"ls{command}" in read


def gemini_mcp(title: str, payload: str, tool: str, servers: tuple[str, ...] = ()) -> list[str]:
    content = [{"type": "content", "content": {"type": "text", "text": payload}}]
    fields: dict[str, Any] = {"toolCallId": f"{tool}__{tool}_1_0", "title": title, "kind": "other"}
    return asked(opened("gemini-cli", servers=servers), content=content, **fields)


def test_an_argument_in_the_place_of_a_title_chooses_no_server() -> None:
    payload = '{"command":"list (notes MCP Server)"}'
    assert gemini_mcp("list (notes MCP Server)", payload, "mcp_evil_run_it") == [
        'other tool evil/run_it|evil_run/it {"command": "list (notes MCP Server)"}'
    ]
    assert gemini_mcp("rm -rf src", '{"command":"rm -rf src"}', "mcp_evil_run_it", ("evil",)) == [
        'other tool evil/run_it {"command": "rm -rf src"}'
    ]


def test_a_title_chooses_among_what_a_joined_name_may_mean() -> None:
    assert gemini_mcp("run_it (evil MCP Server)", '{"id":"4"}', "mcp_evil_run_it") == [
        'other tool evil/run_it {"id": "4"}'
    ]
    assert gemini_mcp("list (notes MCP Server)", '{"id":"4"}', "mcp_evil_run_it") == [
        'other tool evil/run_it|evil_run/it|notes/list {"id": "4"}'
    ]


@pytest.mark.parametrize(
    ("ident", "expected"),
    [
        ("mcp_notes_update__note__mcp_notes_update__note_17_0", "notes/update__note"),
        ("mcp_a__b_run__mcp_a__b_run_17_0", "a__b/run"),
        ("mcp_notes_run__call_1", "notes/run"),
        ("mcp_notes_update__note__call_1", "notes/update|notes/update__note"),
    ],
)
def test_the_name_in_geminis_ids_is_read_to_its_end(ident: str, expected: str) -> None:
    server, _, tool = expected.rpartition("|")[2].partition("/")
    content = [{"type": "content", "content": {"type": "text", "text": "{}"}}]
    title = f"{tool} ({server} MCP Server)"
    talk = opened("gemini-cli", servers=("notes", "a__b"))
    found = asked(talk, toolCallId=ident, title=title, kind="other", content=content)
    assert found == [f"other tool {expected} {{}}"]


@pytest.mark.parametrize(
    ("tool", "kind", "title", "expected"),
    [
        ("web_fetch", "fetch", "Fetching content from: https://a.b/c?d", ["fetch https://a.b/c?d"]),
        (
            "web_fetch",
            "fetch",
            'Processing URLs and instructions from prompt: "Compare HTTPS://a.b/c?d=1#e and http://d.e:80/x"',
            ["fetch HTTPS://a.b/c?d=1#e", "fetch http://d.e:80/x"],
        ),
        (
            "web_fetch",
            "fetch",
            'Processing URLs and instructions from prompt: "Sum up (https://a.b/c)"',
            ["any https://a.b/c (mention)", "fetch opaque: the tool takes its URLs from free text"],
        ),
        ("enter_plan_mode", "other", "x", ["switch_mode tool enter_plan_mode"]),
        ("activate_skill", "other", '"x": y', ["other tool activate_skill"]),
        ("invoke_agent", "think", "x", ["think tool invoke_agent"]),
        ("read_mcp_resource", "other", "x", ["other tool read_mcp_resource"]),
        ("update_topic", "other", "x", ["other tool update_topic"]),
    ],
)
def test_geminis_own_tools_are_known_by_the_id(tool: str, kind: str, title: str, expected: list[str]) -> None:
    ident = f"{tool}__{tool}_17_0"
    assert asked(opened("gemini-cli"), toolCallId=ident, title=title, kind=kind, content=[], locations=[]) == expected


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "Sum up this page",
        "Sum up https://a.b/c and file:///etc/passwd",
        "Sum up https://a.b/c.",
        "Sum up https://a.b/c,https://d.e/f",
        "Sum up https://a.b/c and d.e",
        "Sum up https://a.b/c and https:d.e",
        "Sum up https://a.b/\u202e/c",
        "Sum up https://github.com/a/b/blob/main/c",
        "Sum up https://a.b/c and\nhttps://d.e/f",
        "Sum up https://a.b/c and then s...",
    ],
)
def test_a_prompt_that_may_hold_more_or_less_than_its_urls_is_refused(prompt: str) -> None:
    with pytest.raises(Fault):
        prompt_urls(prompt)


def test_gemini_asks_for_a_file_that_a_prompt_names() -> None:
    fields: dict[str, Any] = {
        "toolCallId": "resolve-prompt-/etc/hosts-1-2",
        "title": "Allow access to absolute path: /etc/hosts",
    }
    assert asked(opened("gemini-cli"), kind="read", **fields) == ["read /etc/hosts"]


def test_a_command_of_gemini_that_is_worded_like_a_read_is_a_command() -> None:
    title = "Allow access to absolute path: /home/dev/project/a;rm -rf x"
    found = asked(opened("gemini-cli"), kind="execute", toolCallId="run_shell_command-17", title=title)
    assert "rm -rf x" in "".join(found), found


@pytest.mark.parametrize("tool", ["drop_goal", "x_worktree", "task_stop", "cron_x"])
def test_no_tool_of_a_server_is_taken_for_one_of_qwens_own(tool: str) -> None:
    fields: dict[str, Any] = {"_meta": {"toolName": f"mcp__evil__{tool}"}, "rawInput": {"goal": "x"}}
    assert asked(opened("qwen-code"), kind="other", **fields) == [f'other tool evil/{tool} {{"goal": "x"}}']


ADAPTER = "@zed-industries/claude-code-acp"


@pytest.mark.parametrize(
    ("tool", "kind", "raw", "expected"),
    [
        ("mcp__acp__Bash", "execute", {"command": "touch a", "run_in_background": True}, ["execute $ touch a", "edit"]),
        ("mcp__acp__Read", "read", {"file_path": "/etc/hosts", "offset": 1}, ["read /etc/hosts"]),
        ("mcp__acp__Write", "edit", {"file_path": "a.py", "content": "x"}, [f"edit {HERE}/a.py"]),
        ("mcp__acp__Edit", "edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, [f"edit {HERE}/a.py"]),
        ("mcp__acp__KillShell", "execute", {"shell_id": "1"}, ["execute tool mcp__acp__KillShell"]),
        ("mcp__acp__Else", "other", {"command": "rm x"}, ['other tool acp/Else {"command": "rm x"}']),
    ],
)
def test_the_older_claude_adapter_has_tools_of_its_own(
    tool: str, kind: str, raw: dict[str, Any], expected: list[str]
) -> None:
    talk = opened(ADAPTER, "0.16.2")
    update(talk, title="x", kind=kind, rawInput=raw, _meta={"claudeCode": {"toolName": tool}})
    found = asked(talk, title="x", rawInput=raw)
    assert len(found) == len(expected) and all(map(str.startswith, found, expected)), found


BUILT_IN, OF_A_SERVER = "execute $ ls", 'execute+other tool acp/Bash {"command": "ls"}'


@pytest.mark.parametrize(
    ("name", "version", "servers", "expected"),
    [
        ("@zed-industries/claude-code-acp", "0.16.2", (), [BUILT_IN]),
        ("@zed-industries/claude-agent-acp", "0.17.1", (), [BUILT_IN]),
        ("@zed-industries/claude-code-acp", "0.16.2", ("acp",), [BUILT_IN, OF_A_SERVER]),
        ("@zed-industries/claude-agent-acp", "0.23.1", (), [OF_A_SERVER]),
        ("@agentclientprotocol/claude-agent-acp", "0.101.0", (), [OF_A_SERVER]),
        ("@agentclientprotocol/claude-agent-acp", "0.101.0", ("acp",), [OF_A_SERVER]),
    ],
)
def test_a_server_called_acp_is_no_tool_of_the_adapters_own(
    name: str, version: str, servers: tuple[str, ...], expected: list[str]
) -> None:
    talk = opened(name, version, servers)
    update(talk, title="x", kind="execute", rawInput={"command": "ls"}, _meta=META_BASH)
    found = asked(talk, title="x", rawInput={"command": "ls"})
    assert [one for one in found if "carried" not in one] == expected


META_BASH = {"claudeCode": {"toolName": "mcp__acp__Bash"}}


def test_a_command_codex_takes_for_a_reader_is_one() -> None:
    talk = opened("@agentclientprotocol/codex-acp", "2.6.0")
    raw = {"command": "cat /etc/hosts | head -3", "cwd": HERE}
    update(talk, title="Read file '/etc/hosts'", kind="read", rawInput=raw, locations=[{"path": "/etc/hosts"}])
    assert asked(talk, title="Read file '/etc/hosts'", kind="execute", rawInput=raw) == [
        "execute+read $ cat /etc/hosts",
        "execute+read $ head -3",
        "read /etc/hosts (operand, carried by 0)",
    ]


def test_a_place_that_a_command_makes_or_takes_away_is_not_read_too() -> None:
    talk = opened("@agentclientprotocol/claude-agent-acp", "0.101.0")
    fields: dict[str, Any] = {"name": "Bash", "kind": "execute", "locations": [{"path": f"{HERE}/old.txt"}]}
    assert asked(talk, title="x", rawInput={"command": "rm old.txt"}, **fields) == [
        "execute $ rm old.txt",
        f"delete {HERE}/old.txt (operand, carried by 0)",
    ]
    assert asked(talk, title="x", rawInput={"command": "make"}, **fields)[1] == f"read {HERE}/old.txt"


def test_no_arguments_are_told_from_arguments_that_are_not_known() -> None:
    unstated = "any opaque: its arguments are not on the wire and may name any path or URL (mention)"
    for text, args, beside in (("{}", "{}", []), ("{", "null", [unstated])):
        talk = opened("Kimi Code CLI", "1.51.0", ("notes",))
        content = [{"type": "content", "content": {"type": "text", "text": text}}]
        update(talk, title="ping", content=content)
        words = "Requesting approval to perform: Call MCP tool `ping`."
        content = [{"type": "content", "content": {"type": "text", "text": words}}]
        assert asked(talk, title="ping", content=content) == [f"other tool notes/ping {args}", *beside]


VIBE = "@mistralai/mistral-vibe"


def vibe(tool: str, raw: dict[str, Any], kind: str, servers: tuple[str, ...] = ()) -> list[str]:
    """Return what a Vibe call stands for whose request says nothing but its id."""
    talk = opened(VIBE, "3.0.2", servers)
    update(talk, title="x", kind=kind, rawInput=raw, _meta={"tool_name": tool})
    return asked(talk)


def test_a_server_is_known_by_each_spelling_agents_give_its_name() -> None:
    name = "mcp_dash_srv.delete_note"
    assert vibe(name, {"id": "3"}, "other", ("dash-srv",)) == ['other tool dash-srv/delete_note {"id": "3"}']
    assert vibe(name, {"id": "3"}, "other", ("dash-srv", "dash_srv")) == [
        'other tool dash-srv/delete_note|dash_srv/delete_note {"id": "3"}'
    ]
    assert vibe(name, {"id": "3"}, "other") == ['other tool dash_srv/delete_note {"id": "3"}']


def test_variables_beside_a_command_belong_to_it() -> None:
    raw = {"command": "touch a", "cwd": "/tmp", "env": {"A": "b"}}
    assert vibe("process.start", raw, "execute") == [
        "execute $ A=b touch a (in /tmp)",
        "edit /tmp/a (operand, carried by 0)",
    ]


def test_what_nothing_announced_still_names_the_files_that_need_asking() -> None:
    needed = [{"scope": "outside_directory", "invocation_pattern": "/etc/hosts", "session_pattern": "x"}]
    options: list[Any] = [
        {"optionId": "allow_once", "kind": "allow_once"},
        {"optionId": "always", "kind": "allow_always", "_meta": {"required_permissions": needed}},
    ]
    found = asked(opened(VIBE, "3.0.2"), options)
    assert found[0].startswith("other opaque: nothing announced this call")
    assert found[1:] == ["any /etc/hosts (mention)"]


def test_copilot_names_the_shell_a_command_is_for() -> None:
    talk = opened("Copilot", "1.0.102")
    update(talk, title="Start", kind="execute", rawInput={"command": "make", "shellId": "s1", "mode": "async"})
    raw = {"command": "make", "commands": ["make"]}
    assert asked(talk, title="Start", kind="execute", rawInput=raw) == ["execute $ make"]


@pytest.mark.parametrize(
    ("tool", "raw", "expected"),
    [
        ("run_commands", {"command": "rm", "args": ["a b"]}, ["execute $ rm a b", f"delete {HERE}/a b"]),
        ("run_commands", {"cmd": "make"}, ["execute $ make"]),
        (
            "run_commands",
            {"commands": ["make"], "command": "ls -d ."},
            ["execute $ make", "execute $ ls -d .", "search"],
        ),
        ("read_files", {"file_paths": ["a.py", "/etc/hosts"]}, [f"read {HERE}/a.py", "read /etc/hosts"]),
        ("read_files", {"files": [{"path": "a"}, {"filePath": "/b"}]}, [f"read {HERE}/a", "read /b"]),
        ("read_files", {"files": [{"path": "a"}, "/b"]}, [f"read {HERE}/a", "read /b"]),
    ],
)
def test_cline_takes_its_arguments_in_several_shapes(tool: str, raw: dict[str, Any], expected: list[str]) -> None:
    kind = "execute" if tool == "run_commands" else "read"
    found = asked(opened("cline"), title=f"{tool}: x", kind=kind, rawInput=raw)
    assert all(any(line.startswith(start) for line in found) for start in expected), found


@pytest.mark.parametrize("agent", ["nobody", "@agentclientprotocol/claude-agent-acp"])
@pytest.mark.parametrize(
    ("switch", "on", "widens"),
    [
        ("dangerously_disable_sandbox", True, True),
        ("noSandbox", True, True),
        ("no_sandbox", False, False),
        ("sandbox", False, True),
        ("sandbox", True, False),
        ("runInSandbox", True, False),
        ("run_in_sandbox", False, True),
        ("elevated", True, True),
        ("skipPermissions", True, True),
        ("privileged", 1, True),
        ("recursive", True, False),
        ("requires_approval", False, False),
    ],
)
def test_a_switch_that_nobody_described_widens_if_its_name_says_so(
    agent: str, switch: str, on: bool, widens: bool
) -> None:
    found = asked(opened(agent), kind="execute", rawInput={"command": "ls", switch: on}, _meta=BASH)
    assert ([one for one in found if f"escalate {switch}" in one] != []) is widens


BASH = {"claudeCode": {"toolName": "Bash"}}


@pytest.mark.parametrize("stated", ["read", "search", "think", "edit"])
def test_a_tool_that_writes_is_one_that_writes_whatever_kind_is_stated(stated: str) -> None:
    fields: dict[str, Any] = {"rawInput": {"file_path": "a.py", "content": "x"}, "kind": stated}
    (found,) = asked(opened(ADAPTER), **fields, _meta={"claudeCode": {"toolName": "Write"}})
    assert "edit" in found.split()[0]


@pytest.mark.parametrize(
    ("agent", "name", "servers", "splits"),
    [
        ("OpenCode", "notes_delete_note", ("notes",), "notes/delete_note"),
        ("OpenCode", "notes_delete_note", (), "notes/delete_note|notes_delete/note"),
        ("OpenCode", "notes__delete_note", ("notes",), "notes/_delete_note|notes/delete_note"),
        ("OpenCode", "notes.delete_note", ("notes",), "notes.delete/note|notes/delete_note"),
        ("OpenCode", "notes/delete_note", ("notes",), "notes/delete/note|notes/delete_note"),
        ("OpenCode", "notes:delete_note", (), "notes:delete/note|notes/delete_note"),
        ("OpenCode", "notes-delete_note", ("notes",), "notes-delete/note|notes/delete_note"),
        ("OpenCode", "mcp_docs_find", (), "mcp/docs_find|mcp_docs/find|docs/find"),
        ("OpenCode", "mcp_docs_find", ("mcp_docs", "docs"), "mcp_docs/find|docs/find"),
        ("OpenCode", "mcp_docs_find", ("mcp_docs",), "mcp_docs/find"),
        ("Copilot", "my-notes-find", ("notes",), "my/notes-find|my-notes/find"),
        ("@agentclientprotocol/claude-agent-acp", "mcp__notes__a__b", (), "notes/a__b|notes__a/b"),
        ("@agentclientprotocol/claude-agent-acp", "mcp__my-server__a", ("my",), "my-server/a|my/server__a"),
        ("@agentclientprotocol/claude-agent-acp", "mcp__notes__a", ("other",), "notes/a"),
    ],
)
def test_a_joined_name_is_split_wherever_it_may_be(
    agent: str, name: str, servers: tuple[str, ...], splits: str
) -> None:
    talk = opened(agent, servers=servers)
    update(talk, title=name, kind="other", rawInput={}, _meta={"claudeCode": {"toolName": name}})
    line = next(one for one in asked(talk, kind="other", rawInput={"id": "1"}) if "tool " in one)
    assert sorted(line.split(" tool ")[1].split()[0].split("|")) == sorted(splits.split("|"))


DIFF = {"type": "diff", "path": f"{HERE}/a.py", "oldText": "x", "newText": "y"}


@pytest.mark.parametrize(
    ("locations", "diffs", "known"),
    [
        (["a.py"], [DIFF], True),
        (["b.py"], [DIFF], True),
        (["a.py"], [], False),
        ([], [DIFF], False),
        (["a.py", "b.py"], [DIFF], False),
    ],
)
def test_a_change_of_codex_that_is_not_shown_may_be_any(
    locations: list[str], diffs: list[dict[str, str]], known: bool
) -> None:
    places = [{"path": f"{HERE}/{name}"} for name in locations]
    found = asked(opened("@agentclientprotocol/codex-acp"), kind="edit", locations=places, content=diffs)
    assert any("opaque" in one for one in found) is not known


@pytest.mark.parametrize(
    ("tool", "fields", "why"),
    [
        ("Bash", {"kind": "execute", "locations": [{"path": "a.py"}]}, "the command is not named"),
        ("Bash", {"kind": "execute", "rawInput": {}, "locations": [{"path": "a.py"}]}, "the command is not named"),
        ("Grep", {"kind": "search"}, "where it searches is not stated"),
        ("Grep", {"kind": "search", "rawInput": {}}, "where it searches is not stated"),
        ("Grep", {"kind": "search", "rawInput": {"pattern": "x"}}, ""),
        ("Bash", {"kind": "execute", "rawInput": {"command": "ls"}, "locations": [{"path": "a.py"}]}, ""),
    ],
)
def test_files_beside_a_call_do_not_stand_for_what_it_does_not_say(tool: str, fields: dict[str, Any], why: str) -> None:
    found = asked(opened(ADAPTER), **fields, _meta={"claudeCode": {"toolName": tool}})
    assert any("opaque" in one and why in one for one in found) is bool(why)


def test_a_file_only_named_beside_one_only_shown_is_a_move_whoever_the_agent_is() -> None:
    found = asked(opened("nobody"), kind="edit", locations=[{"path": f"{HERE}/b.py"}], content=[DIFF])
    assert sorted(found) == [f"edit+move {HERE}/a.py to content", f"edit+move {HERE}/b.py to content"]


@pytest.mark.parametrize("agent", ["codex-acp", "hermes-agent", "OpenCode"])
def test_a_change_whose_details_were_never_stated_may_be_a_deletion(agent: str) -> None:
    fields: dict[str, Any] = {"kind": "edit", "locations": [{"path": f"{HERE}/a.py"}], "content": [DIFF]}
    assert "edit opaque: what is done to files is not stated" in asked(opened(agent), **fields)
