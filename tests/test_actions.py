"""What agents sent, and what it would do: captured traffic, trimmed, with the actions each request stands for."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from policyd.actions import Conversation, Machine, guard
from policyd.actions.profiles import shipped
from policyd.actions.sessions import FORGOTTEN
from policyd.model import Action, Role
from tests.fakes import FakeFilesystem
from tests.rowwise import in_groups
from tests.told import MACHINE, replay, told

CAPTURES = Path(__file__).parent / "data" / "captures"
OPTIONS = [{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]


def cases() -> list[tuple[str, list[Any], list[list[str]]]]:
    found = []
    for path in sorted(CAPTURES.glob("*.jsonl")):
        expected = json.loads(path.with_suffix(".expected.json").read_text())
        for row in path.read_text().splitlines():
            case = json.loads(row)
            found.append((f"{path.stem}/{case['case']}", case["lines"], expected[case["case"]]))
    return found


@in_groups(cases())
def test_captured_requests_stand_for_what_they_would_do(name: str, lines: list[Any], expected: list[list[str]]) -> None:
    assert [[told(action) for action in request.actions] for request in replay(lines)] == expected


def talk(agent: str = "", **machine: Any) -> Conversation:
    conversation = Conversation(Machine("/home/dev", MACHINE.fs, **machine), agent=agent)
    conversation.observe(
        "c2a", {"id": 1, "method": "session/new", "params": {"cwd": "/home/dev/project", "mcpServers": []}}
    )
    conversation.observe("a2c", {"id": 1, "result": {"sessionId": "s"}})
    return conversation


def update(conversation: Conversation, **fields: Any) -> None:
    fields = {"sessionUpdate": "tool_call", "toolCallId": "c", **fields}
    conversation.observe("a2c", {"method": "session/update", "params": {"sessionId": "s", "update": fields}})


def ask(conversation: Conversation, *, number: int = 7, **fields: Any) -> list[str]:
    params = {"sessionId": "s", "toolCall": {"toolCallId": "c", **fields}, "options": OPTIONS}
    conversation.observe("a2c", {"id": number, "method": "session/request_permission", "params": params})
    return [told(action) for action in conversation.request(params).actions]


def answer(conversation: Conversation, option: str = "yes", number: int = 7) -> None:
    result = {"outcome": {"outcome": "selected", "optionId": option}}
    conversation.observe("c2a", {"id": number, "result": result})


# ---- evidence --------------------------------------------------------------------------------------


def test_an_empty_request_is_filled_from_the_updates() -> None:
    conversation = talk()
    update(conversation, kind="edit", locations=[{"path": "/home/dev/project/a.py"}])
    assert ask(conversation) == ["edit /home/dev/project/a.py"]


def test_the_latest_update_counts_for_a_collection() -> None:
    conversation = talk()
    update(conversation, kind="edit", locations=[{"path": "README.md"}])
    update(conversation, sessionUpdate="tool_call_update", locations=[{"path": "src/a.py"}])
    assert ask(conversation) == ["edit /home/dev/project/src/a.py"]


def test_what_a_request_says_and_what_an_update_said_are_both_judged() -> None:
    conversation = talk()
    update(conversation, kind="edit", locations=[{"path": "/home/dev/project/a.py"}])
    told_now = ask(conversation, locations=[{"path": "/etc/passwd"}])
    assert told_now == ["edit /etc/passwd", "edit /home/dev/project/a.py"]


@pytest.mark.parametrize("stated", ["app", "./app", "~", 7, ["/home/dev/project"]])
def test_a_directory_that_is_not_absolute_is_no_workspace(stated: Any) -> None:
    conversation = Conversation(Machine("/home/dev", MACHINE.fs), cwd=stated)
    params = {"cwd": stated, "additionalDirectories": [stated, "/home/dev/project"]}
    conversation.observe("c2a", {"id": 1, "method": "session/new", "params": params})
    conversation.observe("a2c", {"id": 1, "result": {"sessionId": "s"}})
    assert [conversation.workspace(ident).cwd for ident in ("s", "unseen")] == [None, None]
    assert conversation.workspace("s").roots == ("/home/dev/project",)
    assert all("opaque" in line or "?" in line for line in ask(conversation, kind="read", rawInput={"path": "a.py"}))


def test_old_evidence_never_satisfies_a_later_request_with_the_same_id() -> None:
    conversation = talk()
    update(conversation, kind="execute", rawInput={"command": "ls src"})
    assert ask(conversation)[0] == "execute $ ls src"
    answer(conversation)
    assert ask(conversation, number=8) == ["execute opaque: the request does not say what it would do"]


def test_evidence_ends_with_the_call() -> None:
    conversation = talk()
    update(conversation, kind="execute", rawInput={"command": "ls"}, status="completed")
    assert ask(conversation)[0].startswith("execute opaque")


def test_old_paths_are_mentions_of_a_later_request() -> None:
    conversation = talk()
    update(conversation, kind="read", locations=[{"path": "/etc/shadow"}])
    ask(conversation)
    answer(conversation)
    assert "any /etc/shadow (mention)" in ask(conversation, number=8, rawInput={"command": "true"})


@pytest.mark.parametrize("name", ["id", "configId"])
def test_a_session_is_in_the_mode_that_its_config_options_say(name: str) -> None:
    conversation = talk("claude")
    for value in ("auto", "default"):
        said = {"sessionUpdate": "config_option_update", "configOptions": [{name: "mode", "currentValue": value}]}
        conversation.observe("a2c", {"method": "session/update", "params": {"sessionId": "s", "update": said}})
        mode = conversation.mode("s")
        assert mode is not None and (mode.name, mode.unsafe) == (value, value == "auto")


@pytest.mark.parametrize(
    ("agent", "method", "params", "mode"),
    [
        ("claude", "session/set_mode", {"modeId": "plan"}, "plan"),
        ("cline", "session/set_config_option", {"configId": "mode", "value": "plan"}, "plan"),
        ("cline", "session/set_config_option", {"configId": "model", "value": "plan"}, None),
    ],
)
def test_a_mode_that_is_set_counts_once_the_agent_accepts_it(
    agent: str, method: str, params: dict[str, Any], mode: str | None
) -> None:
    conversation = talk(agent)
    for answer, expected in (({"error": {"code": -1, "message": "no"}}, None), ({"result": {}}, mode)):
        conversation.observe("c2a", {"id": 5, "method": method, "params": {"sessionId": "s", **params}})
        assert conversation.mode("s") is None
        conversation.observe("a2c", {"id": 5, **answer})
        found = conversation.mode("s")
        assert (found and found.name) == expected


PLACES: list[tuple[list[dict[str, Any]], str]] = [
    ([{}], ""),
    ([{"cwd": None}, {"title": "x"}], ""),
    ([{"cwd": "/home/dev/project"}], ""),
    ([{"cwd": "/"}], " (in ?)"),
    ([{"cwd": ["/"]}], " (in ?)"),
    ([{}, {"cwd": "/home/dev/project/sub"}, {}], " (in ?)"),
]


@pytest.mark.parametrize(("told_of_it", "where"), PLACES)
def test_a_subagents_session_works_where_its_parent_does(told_of_it: list[dict[str, Any]], where: str) -> None:
    conversation = talk()
    for fields in told_of_it:
        made = {"sessionUpdate": "subagent_update", "sessionId": "child", "additionalDirectories": ["/"], **fields}
        conversation.observe("a2c", {"method": "session/update", "params": {"sessionId": "s", "update": made}})
    call = {"toolCallId": "c", "kind": "execute", "rawInput": {"command": "make"}}
    actions = conversation.request({"sessionId": "child", "toolCall": call, "options": OPTIONS}).actions
    assert [told(action) for action in actions] == [f"execute $ make{where}"]
    assert conversation.workspace("child").roots == conversation.workspace("s").roots


def test_who_is_no_subagent_is_moved_by_no_announcement() -> None:
    conversation = talk()
    conversation.observe("c2a", {"id": 2, "method": "session/new", "params": {"cwd": "/srv/other", "mcpServers": []}})
    conversation.observe("a2c", {"id": 2, "result": {"sessionId": "other"}})
    for parent, named in (("s", "other"), ("s", "s"), ("other", "unknown"), ("s", "unknown"), ("s", ["x"])):
        made = {"sessionUpdate": "subagent_update", "sessionId": named, "cwd": "/"}
        conversation.observe("a2c", {"method": "session/update", "params": {"sessionId": parent, "update": made}})
    assert [conversation.workspace(ident).cwd for ident in ("s", "other")] == ["/home/dev/project", "/srv/other"]
    assert conversation.workspace("unknown").roots == ("/srv/other",)


TWICE: list[tuple[list[tuple[str, dict[str, Any]]], str]] = [
    ([("s", {})], ""),
    ([("child", {})], " (in ?)"),
    ([("child", {}), ("s", {})], ""),
    ([("s", {}), ("child", {})], ""),
    ([("child", {"status": "completed"})], ""),
    ([("child", {"toolCallId": "another"})], ""),
]


@pytest.mark.parametrize(("told_of_it", "where"), TWICE)
def test_nobody_says_where_a_call_works_that_is_open_in_another_session(
    told_of_it: list[tuple[str, dict[str, Any]]], where: str
) -> None:
    conversation = talk()
    for ident, fields in told_of_it:
        made = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "x", **fields}
        conversation.observe("a2c", {"method": "session/update", "params": {"sessionId": ident, "update": made}})
    assert ask(conversation, kind="execute", rawInput={"command": "make"})[0] == f"execute $ make{where}"
    assert ask(conversation, kind="execute", rawInput={"command": "make", "cwd": "/srv"})[0].startswith(
        "execute $ make (in /srv)"
    )


def test_a_relative_path_of_a_subagents_call_may_be_anywhere() -> None:
    conversation = talk()
    made = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "x"}
    conversation.observe("a2c", {"method": "session/update", "params": {"sessionId": "child", "update": made}})
    assert ask(conversation, kind="read", rawInput={"path": "/srv/a"}) == ["read /srv/a"]
    found = ask(conversation, kind="read", rawInput={"path": "a"})
    assert found[-1] == "read opaque: the path is relative, and nobody says to what"
    assert ask(conversation, toolCallId="d", kind="read", rawInput={"path": "a"}) == ["read /home/dev/project/a"]


def test_replayed_history_supports_no_request() -> None:
    conversation = talk()
    load = {"sessionId": "s", "cwd": "/home/dev/project", "mcpServers": []}
    conversation.observe("c2a", {"id": 2, "method": "session/load", "params": load})
    update(conversation, kind="execute", rawInput={"command": "ls"})
    conversation.observe("a2c", {"id": 2, "result": {}})
    assert ask(conversation) == ["other opaque: nothing announced this tool call"]
    update(conversation, kind="read", locations=[{"path": "/home/dev/project/a.py"}], toolCallId="d")
    assert ask(conversation, toolCallId="d") == ["read /home/dev/project/a.py"]


@pytest.mark.parametrize("loads", [1, 2])
def test_a_session_whose_load_failed_works_where_it_did(loads: int) -> None:
    conversation = talk()
    more = {"sessionId": "s", "cwd": "/home/dev", "additionalDirectories": ["/srv/x"], "mcpServers": [{"name": "m"}]}
    before = conversation.session("s").place[:3]
    for number in range(loads):
        conversation.observe("c2a", {"id": number, "method": "session/load", "params": more})
    for number in range(loads):
        conversation.observe("a2c", {"id": number, "error": {"code": 1, "message": "no"}})
    assert conversation.session("s").place[:3] == before
    assert "/srv/x" not in conversation.workspace("s").roots
    conversation.observe("c2a", {"id": 9, "method": "session/load", "params": more})
    conversation.observe("a2c", {"id": 9, "result": {}})
    assert conversation.session("s").place[:3] == ("/home/dev", ("/srv/x",), ("m",))


@pytest.mark.parametrize("told", ["before", "beside"])
@pytest.mark.parametrize("ended", [True, False])
def test_what_was_told_before_or_beside_a_load_that_failed_is_missing_and_not_nothing(told: str, ended: bool) -> None:
    conversation = talk("claude")
    load = {"sessionId": "s", "cwd": "/home/dev/project", "mcpServers": []}
    if told == "beside":
        conversation.observe("c2a", {"id": 2, "method": "session/load", "params": load})
    update(conversation, kind="edit", locations=[{"path": "/etc/passwd"}])
    if told == "before":
        conversation.observe("c2a", {"id": 2, "method": "session/load", "params": load})
    if ended:
        conversation.observe("a2c", {"id": 2, "error": {"code": 1, "message": "no"}})
        assert conversation.session("s").stands() == ()
    asked = ask(conversation, kind="edit", locations=[{"path": "/home/dev/project/a.py"}])
    assert f"edit opaque: {FORGOTTEN}" in asked


@pytest.mark.parametrize(
    ("ends", "where"),
    [("2 fails, 3 opens", "/3"), ("3 opens, 2 fails", "/3"), ("2 opens, 3 fails", "/2"), ("3 fails, 2 opens", "/2")],
)
def test_of_loads_under_way_at_once_the_last_that_opened_says_where_a_session_works(ends: str, where: str) -> None:
    conversation = talk()
    for number in (2, 3):
        load = {"sessionId": "s", "cwd": f"/{number}", "mcpServers": []}
        conversation.observe("c2a", {"id": number, "method": "session/load", "params": load})
    for ident, end in (each.split() for each in ends.split(", ")):
        said = {"result": {}} if end == "opens" else {"error": {"code": 1, "message": "no"}}
        conversation.observe("a2c", {"id": int(ident), **said})
    assert conversation.workspace("s").roots == (where,)


@pytest.mark.parametrize(
    ("text", "path"), [("cat ${PWD}x", "unknown"), ("cd .. && cat a", "/data/a"), ("cat a", "/data/app/a")]
)
def test_a_shell_may_know_where_it_starts_by_either_name_of_it(text: str, path: str) -> None:
    conversation = Conversation(Machine("/home/dev", FakeFilesystem(links={"/srv/app": "/data/app"})))
    conversation.observe("c2a", {"id": 1, "method": "session/new", "params": {"cwd": "/srv/app", "mcpServers": []}})
    conversation.observe("a2c", {"id": 1, "result": {"sessionId": "s"}})
    call = {"toolCallId": "c", "kind": "execute", "title": text, "rawInput": {"command": text}}
    actions = conversation.request({"sessionId": "s", "toolCall": call, "options": OPTIONS}).actions
    met = [form for action in actions if action.path for form in action.path.forms]
    assert path in met if path != "unknown" else any(action.opaque for action in actions)


@pytest.mark.parametrize("how", ["reload", "policy of the session", "failed load", "reload beside a failed load"])
def test_a_session_works_where_it_was_opened_whatever_a_link_leads_to_later(how: str) -> None:
    fs = FakeFilesystem(links={"/srv/app": "/srv/one"})
    conversation = Conversation(Machine("/home/dev", fs))
    conversation.observe("c2a", {"id": 1, "method": "session/new", "params": {"cwd": "/srv/app", "mcpServers": []}})
    conversation.observe("a2c", {"id": 1, "result": {"sessionId": "s"}})
    fs.links = {"/srv/app": "/etc"}
    if how == "reload":
        conversation.reopen(replace(conversation.machine, heads=("docs",)))
    elif how == "policy of the session":
        conversation.use_heads("s", ("docs",))
    else:
        load = {"sessionId": "s", "cwd": "/srv/app", "mcpServers": []}
        conversation.observe("c2a", {"id": 2, "method": "session/load", "params": load})
        if how == "reload beside a failed load":
            conversation.reopen(replace(conversation.machine, heads=("docs",)))
            conversation.workspace("s")
        conversation.observe("a2c", {"id": 2, "error": {"code": 1, "message": "no"}})
    workspace = conversation.workspace("s")
    assert workspace.roots == workspace.sound == ("/srv/app", "/srv/one")
    assert how == "failed load" or "/srv/one/docs" in workspace.heads["docs"]


def test_a_refused_update_makes_its_call_opaque() -> None:
    conversation = talk()
    update(conversation, kind="read", locations=[{"path": "/home/dev/project/a.py"}])
    conversation.refuse("s", "c", "two keys are the same")
    assert "read opaque: two keys are the same" in ask(conversation)


def test_calls_of_which_something_was_forgotten_are_opaque_and_may_have_moved_the_shell() -> None:
    conversation = talk("claude")
    update(conversation, kind="execute", name="Bash", rawInput={"command": "make"})
    conversation.forgot("s", ["c"], "not all is known")
    assert "execute opaque: not all is known" in ask(conversation)
    line = ask(conversation, toolCallId="d", kind="execute", name="Bash", rawInput={"command": "rm x"})[0]
    assert line == "execute $ rm x (in ?)"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"command": "ls src"}', "execute $ ls src"),
        ('{"command": "ls', "execute opaque: rawInput is text: not one complete JSON value"),
        ('{"command": "ls", "command": "rm -rf ~"}', "execute opaque: rawInput is text: a key stands twice"),
        ('{"a": {"b": 1, "b": 2}}', "execute opaque: rawInput is text: a key stands twice"),
        ('{"n": NaN}', "execute opaque: rawInput is text: `NaN`"),
        ("[" * 100_000, "execute opaque: rawInput is text: not one complete JSON value"),
        (["ls"], "execute opaque: rawInput is a list, not a table"),
    ],
)
def test_raw_input_in_a_text_counts_only_as_one_json_table(raw: object, expected: str) -> None:
    assert ask(talk(), kind="execute", rawInput=raw)[0].startswith(expected)


@pytest.mark.parametrize(
    "field",
    [{"title": 7}, {"locations": "src/a.py"}, {"content": {}}, {"kind": ["edit"]}, {"name": 7}, {"_meta": ["x"]}],
)
def test_a_field_of_the_wrong_type_is_opaque(field: dict[str, Any]) -> None:
    wrong = f"`{next(iter(field))}` of the request has the wrong type"
    assert any(wrong in line for line in ask(talk(), **{"kind": "edit", "rawInput": {"path": "a.py"}, **field}))


STRANGE: list[dict[str, Any]] = [
    {"locations": [{"uri": "file:///etc/passwd"}]},
    {"locations": ["/etc/passwd"]},
    {"locations": [{"path": 5}]},
    {"locations": [{"path": "a.py"}, {"Path": "/etc/passwd"}]},
    {"content": ["x"]},
    {"content": [{"type": "diff", "newText": "x"}]},
    {"content": [{"type": "diff", "path": "", "newText": "x"}]},
    {"content": [{"type": "diff", "path": "a.py", "changes": ["/etc/x"]}]},
    {"content": [{"type": "diff", "changes": []}]},
    {"content": [{"type": "diff", "changes": {"path": "/etc/x"}}]},
    {"content": [{"type": "Diff", "path": "/etc/x"}]},
    {"content": [{"type": "patch", "text": "x"}]},
]


@pytest.mark.parametrize("fields", STRANGE, ids=str)
def test_an_item_of_a_shape_nobody_knows_is_opaque(fields: dict[str, Any]) -> None:
    wrong = f"opaque: `{next(iter(fields))}` holds something whose shape is not known"
    raw = {"path": "a.py"}
    assert any(wrong in line for line in ask(talk(), kind="read", rawInput=raw, **fields))
    conversation = talk()
    update(conversation, kind="read", rawInput=raw, **fields)
    assert any(wrong in line for line in ask(conversation))
    update(conversation, **{key: [] for key in fields})
    assert not any("opaque" in line for line in ask(conversation))


@pytest.mark.parametrize(
    "fields",
    [
        {"locations": [{"path": "a.py", "line": None}, {"path": ""}], "content": None},
        {"content": [{"type": "content", "content": {"type": "text", "text": "x"}}, {"type": "terminal"}]},
        {"content": [{"type": "diff", "path": "a.py", "newText": "x", "changes": None}]},
        {"content": [{"type": "diff", "patch": {}, "changes": [{"operation": "update", "path": "a.py"}]}]},
    ],
    ids=str,
)
def test_an_item_of_a_known_shape_is_not_opaque(fields: dict[str, Any]) -> None:
    assert not any("opaque" in line for line in ask(talk(), kind="edit", rawInput={"path": "a.py"}, **fields))


@pytest.mark.parametrize(
    ("raw", "known"), [({"rawInput": {}}, {}), ({"rawInput": None}, None), ({}, None), ({"rawInput": "["}, None)]
)
def test_arguments_that_nobody_stated_are_missing_and_none_are_not(raw: dict[str, Any], known: object) -> None:
    call = {"toolCallId": "c", "title": "mcp__db__rm", "kind": "other", **raw}
    actions = talk().request({"sessionId": "s", "toolCall": call, "options": OPTIONS}).actions
    assert [action.args for action in actions if action.mcp] == [known]


def test_a_request_about_two_things_is_opaque_beside_what_is_understood() -> None:
    call = {"toolCallId": "c", "kind": "read", "rawInput": {"path": "a.py"}}
    params = {"sessionId": "s", "subject": {"type": "command", "command": "ls"}, "toolCall": call, "options": OPTIONS}
    lines = [told(action) for action in talk().request(params).actions]
    assert lines == ["read /home/dev/project/a.py", "other opaque: it speaks of two things at once"]


@pytest.mark.parametrize(
    "subject",
    [
        {"type": "command", "command": "ls"},
        {"type": "command", "command": "ls", "cwd": "sub"},
        {"type": "command", "command": ["ls"], "cwd": "/srv"},
        {"type": "command", "command": "ls", "cwd": "/srv", "toolCallId": 5},
        {"type": "script", "command": "ls", "cwd": "/srv"},
    ],
)
def test_an_unknown_shape_is_one_opaque_action(subject: dict[str, Any]) -> None:
    (action,) = talk().request({"sessionId": "s", "subject": subject, "options": OPTIONS}).actions
    assert action.opaque
    assert action.role is Role.PRIMARY


@pytest.mark.parametrize(
    ("named", "more"),
    [
        ({}, []),
        ({"toolCallId": None, "terminalId": "t", "_meta": {}}, []),
        ({"toolCallId": "c"}, ["edit /etc/x"]),
        ({"as": "root"}, ["execute opaque: no profile says what `rawInput.as` means"]),
    ],
)
def test_a_command_of_version_2_runs_where_it_says(named: dict[str, Any], more: list[str]) -> None:
    conversation = talk("claude")
    update(conversation, sessionUpdate="tool_call_update", content=[{"type": "diff", "path": "/etc/x"}])
    subject = {"type": "command", "command": "make", "cwd": "/srv", **named}
    params = {"sessionId": "s", "title": "Run?", "subject": subject, "options": OPTIONS}
    conversation.observe("a2c", {"id": 5, "method": "session/request_permission", "params": params})
    lines = [told(action) for action in conversation.request(params).actions]
    assert lines == ["execute $ make (in /srv)", *more]


def test_what_a_block_of_content_shows_that_comes_alone_counts_like_the_others() -> None:
    conversation = talk()
    update(conversation, kind="edit", content=[{"type": "diff", "path": "a", "oldText": "x", "newText": "y"}])
    blocks: list[Any] = [
        {"type": "content", "content": {"type": "text", "text": "/etc/z"}},
        {"type": "diff", "changes": [{"operation": "delete", "path": "/etc/x"}]},
    ]
    for block in blocks:
        update(conversation, sessionUpdate="tool_call_content_chunk", content=block)
    assert ask(conversation) == ["edit /home/dev/project/a", "delete+edit /etc/x to content"]
    update(conversation, sessionUpdate="tool_call_content_chunk", content={"type": "patch"})
    assert ask(conversation)[0].startswith("edit opaque: `content` holds something")


# ---- an agent that nobody described ----------------------------------------------------------------

LIARS = [
    ({"kind": "read", "rawInput": {"path": "README.md", "command": "rm -rf src"}}, "execute+read $ rm -rf src"),
    ({"kind": "read", "rawInput": {"path": "README.md", "shell": "rm -rf ~"}}, "read opaque: no profile says what"),
    ({"kind": "read", "rawInput": {"path": "a", "file_path": "/etc/passwd"}}, "read /etc/passwd"),
    ({"kind": "read", "rawInput": {"path": "a"}, "locations": [{"path": "/etc/passwd"}]}, "read /etc/passwd"),
    ({"kind": "read", "title": "/etc/passwd"}, "read opaque: nothing announced"),
    ({"kind": "execute", "title": "ls"}, "execute opaque: nothing announced"),
    ({"kind": "read", "content": [{"type": "diff", "path": "b.py", "newText": ""}]}, "edit /home/dev/project/b.py"),
    ({"kind": "fetch", "rawInput": {"url": "https://a.example\\@b.example/"}}, "fetch opaque: the URL holds"),
    ({"kind": "other", "rawInput": {"path": "a.py"}}, "other opaque: the kind of the request does not say"),
    ({"kind": "other", "rawInput": {"command": "ls"}}, "other opaque: the kind of the request does not say"),
    ({"title": "restart: ls", "rawInput": {"command": "ls"}}, "other opaque: the kind of the request does not say"),
    ({"kind": "other", "rawInput": {"command": "rm -rf src"}}, "execute $ rm -rf src"),
    ({"kind": "execute", "rawInput": {"command": ["rm", "-rf", "x"]}}, "execute $ rm -rf x"),
    ({"kind": "execute", "rawInput": {"command": "bash", "args": ["-c", "rm -rf x"]}}, "execute $ rm -rf x"),
    ({"kind": "execute", "rawInput": {"command": "ls", "env": {"PATH": "/x"}}}, "execute $ PATH=/x ls"),
    ({"kind": "execute", "rawInput": {"command": "ls", "cwd": "/etc"}}, "execute $ ls (in /etc)"),
    ({"kind": "execute", "rawInput": {"command": 7}}, "execute opaque: the command is no text"),
    ({"kind": "search", "rawInput": {"pattern": "/etc/**"}}, "search /etc/**"),
    ({"kind": "read", "rawInput": {"path": "a\0b"}}, "read opaque"),
    ({"kind": "execute", "rawInput": {"command": "ls", "commands": "rm -rf x"}}, "execute $ rm -rf x"),
    (
        {"kind": "execute", "rawInput": {"command": "ls", "commands": {"run": "rm -rf x", "as": 7}}},
        "execute opaque: no profile says",
    ),
    ({"kind": "read", "rawInput": {"path": "a", "paths": "/etc/passwd"}}, "read opaque: no profile says"),
    ({"kind": "read", "rawInput": {"path": "a", "files": "/etc/passwd"}}, "any /etc/passwd (mention)"),
    ({"kind": "read", "rawInput": {"path": "a", "files": ["/etc/passwd"]}}, "read opaque: no profile says"),
    ({"kind": "read", "rawInput": {"path": "a", "files": [".env"]}}, "any /home/dev/project/.env (mention)"),
    ({"kind": "read", "rawInput": {"files": [{"path": "a"}, "/etc/passwd"]}}, "any /etc/passwd (mention)"),
    ({"kind": "read", "rawInput": {"files": [{"path": "a"}, {"name": "b"}]}}, "read opaque: no profile says"),
    ({"kind": "read", "rawInput": {"files": [{"path": "a", "then": "rm -rf x"}]}}, "read opaque: no profile says"),
    ({"kind": "read", "rawInput": {"files": {"path": "a"}}}, "read opaque: no profile says"),
    ({"kind": "read", "rawInput": {"paths": ["a", ["/etc/passwd"]]}}, "any /etc/passwd (mention)"),
    ({"kind": "read", "rawInput": {"path": "a", "args": ["rm"], "env": {"A": "b"}}}, "read opaque: no profile says"),
    ({"kind": "read", "rawInput": {"path": "passwd", "cwd": "/etc"}}, "read /home/dev/project/passwd|/etc/passwd"),
    ({"kind": "search", "rawInput": {"directory": "/etc"}}, "any /etc (mention)"),
    (
        {"kind": "fetch", "rawInput": {"url": "https://a.b/", "urls": "https://evil.example"}},
        "fetch opaque: no profile",
    ),
    (
        {"kind": "fetch", "rawInput": {"requests": [{"u": "https://evil.example/"}]}},
        "any https://evil.example/ (mention",
    ),
    ({"kind": "execute", "rawInput": {"command": "ls", "cwd": ["/etc"]}}, "execute opaque: the working directory"),
    ({"kind": "execute", "rawInput": {"command": "ls", "cwd": {"a": "/etc"}}}, "execute $ ls (in ?)"),
    (
        {"kind": "execute", "rawInput": {"command": "ls", "cwd": "sub", "workdir": "/etc"}},
        "execute $ ls (in /home/dev/project/sub|/etc)",
    ),
    ({"kind": "execute", "rawInput": {"command": ["ls"], "args": ["-la"]}}, "execute opaque: arguments or variables"),
    ({"kind": "search", "rawInput": {"path": "a", "pattern": ["/etc/**"]}}, "search opaque: a glob pattern is no text"),
    (
        {"kind": "other", "title": "a.b", "rawInput": {"server": "a", "tool": "b", "command": "rm -rf x"}},
        "other opaque: no profile says",
    ),
]


@pytest.mark.parametrize(("fields", "expected"), LIARS, ids=lambda value: str(value)[:60])
def test_a_lie_is_seen_beside_the_label(fields: dict[str, Any], expected: str) -> None:
    assert any(line.startswith(expected) for line in ask(talk(), **fields)), ask(talk(), **fields)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"kind": "read", "rawInput": {"files": [{"path": "a"}, {"path": "b"}]}}, ["a", "b"]),
        ({"kind": "read", "rawInput": {"paths": ["a", "b"], "files": [], "path": "", "urls": None}}, ["a", "b"]),
        ({"kind": "read", "rawInput": {"path": "a", "limit": 5, "offset": 1, "raw": True}}, ["a"]),
    ],
)
def test_what_is_read_whole_is_not_opaque(fields: dict[str, Any], expected: list[str]) -> None:
    assert ask(talk(), **fields) == [f"read /home/dev/project/{name}" for name in expected]


def test_mcp_arguments_are_mentions_and_the_stated_kind_stays() -> None:
    lines = ask(
        talk(), title="mcp__files__read_file", kind="read", rawInput={"path": "/etc/passwd", "u": "https://a.b/x"}
    )
    assert lines[0].startswith("other+read tool files/read_file")
    assert {"any /etc/passwd (mention)", "any https://a.b/x (mention)"} <= set(lines)


@pytest.mark.parametrize("title", ["mcp__a__b", "a.py", "deploy.sh", "files.read"])
def test_a_title_that_looks_like_a_tool_hides_no_command(title: str) -> None:
    assert ask(talk(), title=title, kind="execute", rawInput={"command": title})[0] == f"execute $ {title}"
    if not title.startswith("mcp"):
        assert ask(talk(), title=title, kind="edit", rawInput={"path": "x"}) == ["edit /home/dev/project/x"]


def test_every_split_of_a_joined_name_is_kept() -> None:
    assert ask(talk(), title="mcp__a__b__run", kind="other")[0].startswith("other tool a/b__run|a__b/run")


def test_a_known_server_decides_the_split() -> None:
    conversation = talk()
    conversation.session("s").servers = ("a__b",)
    assert ask(conversation, title="mcp__a__b__run", kind="other")[0].startswith("other tool a__b/run ")


# ---- policyd's own things --------------------------------------------------------------------------

OWN = ("/home/dev/.config/policyd",)


def guarded(**fields: Any) -> bool:
    conversation = talk(reserved=OWN)
    ask(conversation, **fields)
    params = {"sessionId": "s", "toolCall": {"toolCallId": "c", **fields}, "options": OPTIONS}
    return any(action.guarded for action in conversation.request(params).actions)


@pytest.mark.parametrize(
    "path",
    [
        "/home/dev/.config/policyd/policies.d/a.toml",
        "~/.config/policyd/policyd.toml",
        ".policyd/x.toml",
        "sub/../.policyd",
    ],
)
def test_policyds_own_files_are_guarded_under_any_name(path: str) -> None:
    assert guarded(kind="edit", rawInput={"path": path})
    assert guarded(kind="execute", rawInput={"command": f"some-tool {path}"})


@pytest.mark.parametrize(
    "command",
    [
        "policyd trust",
        "/usr/bin/policyd grants add x",
        "timeout 5 policyd prompts answer 1 allow",
        "python3 -m policyd trust",
        "pkill -f policyd",
        "kill $(pidof policyd)",
        "kill -9 -1",
        "rm -rf ~/.config",
        "sh -c 'policyd trust'",
        "python -Im policyd trust",
        "python -m policyd.cli trust",
        "python3 -X dev -W error -mpolicyd trust",
        "python venv/bin/policyd trust",
        "python -I src/policyd/__main__.py trust",
        "python -c 'import policyd.cli as c; c.main()'",
        "python3.12 -m policyd.__main__",
        "uvx policyd@latest trust",
        "uv tool run policyd trust",
        "uv run --with policyd policyd trust",
        "pipx run policyd trust",
        "poetry run policyd trust",
        "nix run nixpkgs#policyd -- trust",
        "pip uninstall -y policyd",
        "pip install 'policyd[cli]==0.1'",
        "pip install --force-reinstall policyd==0.1",
        "pkill -f 'poli[c]yd'",
        "pkill -f polic",
        "pkill -9 python",
        "pkill -f '('",
        "pkill $NAME",
        "killall -9 'policyd'",
        "systemctl --user stop 'polic*'",
        "kill $PPID",
        "kill -9 ${PPID}",
    ],
)
def test_commands_that_touch_policyd_are_guarded(command: str) -> None:
    assert guarded(kind="execute", rawInput={"command": command})


@pytest.mark.parametrize(
    "command",
    [
        "kill 1234",
        "git commit -m policyd",
        "ls",
        "python3 -m pytest",
        "kill -0 77",
        "kill %1",
        "kill $SERVER",
        "python -m pytest -m policyd",
        "python manage.py policyd",
        "python /home/dev/policyd/scripts/bench.py",
        "python -c 'print(1)'",
        "pkill -f 'node server.js'",
        "pkill node",
        "killall node",
        "systemctl status nginx",
        "uv run pytest",
        "python",
        "echo x | python3 -",
        "pip install policyd-plugin requests",
    ],
)
def test_other_commands_are_not_guarded(command: str) -> None:
    assert not guarded(kind="execute", rawInput={"command": command})


class Linked(FakeFilesystem):
    """A file system whose `innocent.txt` is another name of the file that holds `policy`."""

    def identity(self, path: str) -> tuple[int, int] | None:
        return (1, 999) if self.files.get(path) == "policy" else super().identity(path)


def linked_edit(own: str, names: int = 0) -> str:
    """Edit a file in a project that is a hard link to `own`; say what it touches."""
    project = {"/home/dev/project": None, "/home/dev/project/innocent.txt": "policy"}
    more = {f"{OWN[0]}/audit/{number}.jsonl": "" for number in range(names)}
    machine = Machine("/home/dev", Linked({**project, **more, own: "policy"}), reserved=OWN)
    call = {"toolCallId": "c", "kind": "edit", "rawInput": {"path": "innocent.txt"}}
    request = Conversation(machine, cwd="/home/dev/project").request(
        {"sessionId": "s", "toolCall": call, "options": OPTIONS}
    )
    (action,) = request.actions
    return action.guarded


@pytest.mark.parametrize(
    ("own", "guarded"),
    [
        (f"{OWN[0]}/a.toml", "files"),
        (f"{OWN[0]}/policies.d/a.toml", "files"),
        (f"{OWN[0]}/audit/2026/11/a.jsonl", "files"),
        ("/home/dev/other/a.toml", ""),
    ],
)
def test_a_hard_link_to_a_file_of_policyd_is_guarded(own: str, guarded: str) -> None:
    assert linked_edit(own) == guarded


def test_where_policyds_files_cannot_all_be_told_a_change_is_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MOST_FILES", 4)
    assert linked_edit("/home/dev/other/a.toml", names=5) == "files"
    monkeypatch.setattr(guard, "MOST_FILES", 2_048)
    assert linked_edit("/home/dev/other/a.toml", names=5) == ""
    monkeypatch.setattr(Linked, "listing", lambda self, directory: None)
    assert linked_edit("/home/dev/other/a.toml", names=5) == "files"


# ---- laws ------------------------------------------------------------------------------------------


INPUTS: list[object] = [{}, {"x": "y"}, {"command": "rm -rf ~"}, {"path": "/etc/passwd"}, "{", ["x"], None]
KINDS = ("read", "edit", "execute", "other", "fetch", "_own", "")


@in_groups(itertools.product(sorted(shipped()), INPUTS, KINDS))
def test_no_request_stands_for_nothing(short: str, raw: object, kind: str) -> None:
    fields: dict[str, Any] = {"kind": kind} if kind else {}
    assert any(not line.endswith("(mention)") for line in ask(talk(short), rawInput=raw, title="x: y", **fields))


@pytest.mark.parametrize("short", sorted(shipped()))
def test_a_field_that_no_profile_knows_is_never_harmless(short: str) -> None:
    conversation = talk(short)
    options = [{"optionId": "yes", "kind": "allow_once"}]
    for kind in ("read", "edit", "execute", "fetch"):
        raw = {"path": "a.py", "command": "true", "url": "https://a.b/", "also_run": "rm -rf ~"}
        params = {"sessionId": "s", "toolCall": {"toolCallId": "c", "kind": kind, "rawInput": raw}, "options": options}
        actions = conversation.request(params).actions
        assert any(needs_asking(action) for action in actions), [told(action) for action in actions]


def needs_asking(action: Action) -> bool:
    return bool(action.opaque) or bool(action.escalate)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = sorted({name for profile in shipped().values() for name in profile.names})
RAW = st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4) | JSON
CALL = st.fixed_dictionaries(
    {},
    optional={
        "title": JSON | st.sampled_from(["Shell: ls", "mcp__a__b", "x/y", "a_b", "read", "bash"]),
        "kind": JSON | st.sampled_from(["read", "edit", "execute", "fetch", "search", "other", "switch_mode", "_own"]),
        "name": JSON,
        "status": st.sampled_from(["pending", "in_progress", "completed", "failed"]),
        "rawInput": RAW,
        "locations": JSON | st.lists(st.fixed_dictionaries({"path": JSON}), max_size=2),
        "content": JSON | st.lists(st.fixed_dictionaries({"type": st.just("diff"), "path": JSON}), max_size=2),
        "_meta": JSON | st.fixed_dictionaries({"tool_name": JSON, "toolName": JSON, "claudeCode": JSON}),
    },
)


@given(st.sampled_from(sorted(shipped())), st.lists(CALL, max_size=3), CALL, JSON)
def test_no_json_breaks_the_reading(short: str, updates: list[Any], call: Any, options: Any) -> None:
    conversation = talk(short)
    for fields in updates:
        update(conversation, **{**fields, "sessionUpdate": "tool_call_update"})
    params = {"sessionId": "s", "toolCall": {**call, "toolCallId": "c"}, "options": options}
    conversation.observe("a2c", {"id": 7, "method": "session/request_permission", "params": params})
    conversation.waits(params)
    request = conversation.request(params)
    assert any(action.role is not Role.MENTION for action in request.actions)
    assert all(action.carrier is None or request.actions[action.carrier].command for action in request.actions)
    answer(conversation)


@given(JSON, JSON)
def test_no_message_breaks_the_observing(params: Any, result: Any) -> None:
    conversation = talk()
    for direction in ("a2c", "c2a", "x"):
        for method in ("initialize", "session/new", "session/load", "session/update", "session/set_mode", "other"):
            conversation.observe(direction, {"id": 3, "method": method, "params": params})
            conversation.observe("c2a" if direction == "a2c" else "a2c", {"id": 3, "result": result})
            conversation.observe(direction, {"method": method, "params": params})
    for method in ("fs/read_text_file", "fs/write_text_file", "terminal/create", "odd"):
        fields = (
            params if isinstance(params, dict) else {"command": params, "path": params, "args": result, "env": result}
        )
        assert conversation.side_door(method, {**fields, "sessionId": "s"}).actions
