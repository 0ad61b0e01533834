"""`policyd decide`: lines in, one JSON object a decision out."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from itertools import islice, permutations
from pathlib import Path
from typing import Any

import pytest

from policyd.cli import main

POLICY = """version = 1
[defaults]
"*" = "ask"
read = "allow"

[[rule]]
id = "no-env"
effect = "deny"
path = ["**/.env"]
reason = "Secrets stay out of reach."

[[rule]]
id = "touch"
effect = "allow"
command = "touch **"
"""
OPTIONS = [
    {"optionId": "yes", "kind": "allow_once", "name": "Allow"},
    {"optionId": "always", "kind": "allow_always", "name": "Always"},
    {"optionId": "no", "kind": "reject_once", "name": "Reject"},
]


@pytest.fixture
def house(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "app").mkdir()
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path


def params(kind: str = "read", **raw: Any) -> dict[str, Any]:
    call = {"toolCallId": "c", "title": "t", "kind": kind, "rawInput": raw}
    return {"sessionId": "s", "toolCall": call, "options": OPTIONS}


def decide(house: Path, lines: list[Any], *more: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[Any], str]:
    file = house / "lines.jsonl"
    file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    given = ["--policy", str(house / "policy.toml"), "--home", str(house / "home"), "--cwd", str(house / "app")]
    code = main(["decide", "--no-managed", *given, *more, str(file)])
    said = capsys.readouterr()
    return code, [json.loads(line) for line in said.out.splitlines()], said.err


@pytest.mark.parametrize(("path", "chosen"), [(".env", "never"), ("a.md", None)])
def test_only_a_rule_refuses_for_always(
    path: str, chosen: str | None, house: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (house / "policy.toml").write_text(POLICY.replace('read = "allow"', 'read = "deny"'))
    options = [*OPTIONS[:1], {"optionId": "never", "kind": "reject_always", "name": "Never"}]
    _, said, _ = decide(house, [{**params(path=path), "options": options}], capsys=capsys)
    assert said[0]["effect"] == "deny" and said[0]["outcome"].get("optionId") == chosen


@pytest.mark.parametrize(
    ("call", "tool"),
    [
        ({"name": "WebSearch", "kind": "fetch", "rawInput": {"query": "x"}}, "WebSearch"),
        ({"name": "mcp__notes__get", "kind": "other", "rawInput": {"query": "x"}}, "notes/get"),
    ],
)
def test_the_input_of_a_tool_is_shown_beside_it(
    call: dict[str, Any], tool: str, house: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"sessionId": "s", "toolCall": {"toolCallId": "c", **call}, "options": OPTIONS}
    _, (said,), _ = decide(house, [asked], "--agent", "claude", capsys=capsys)
    assert [(one["tool"], one["input"]) for one in said["actions"]] == [(tool, {"query": "x"})]


def test_why_nothing_can_be_chosen_is_said_before_what_rules_say(
    house: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    twice = [*OPTIONS, OPTIONS[2]]
    _, (said,), _ = decide(house, [{**params(path="a.md"), "options": twice}], capsys=capsys)
    assert said["effect"] == "deny" and said["reason"].startswith("two options have the same id; allowed by")


def test_an_answer_that_nobody_reads_is_no_allow(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object, **__: object) -> None:
        raise BrokenPipeError

    file = house / "lines.jsonl"
    file.write_text(json.dumps(params(path="a")) + "\n")
    words = ["decide", str(file), "--policy", str(house / "policy.toml"), "--home", str(house / "home")]
    monkeypatch.setattr("builtins.print", closed)
    assert main([*words, "--exit-code"]) == main(words) == 2


def test_bare_parameters_are_decided(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        params(path="a.py"),
        params(path=".env"),
        params("edit", path="a.py"),
        params("execute", command="touch x"),
    ]
    code, out, _ = decide(house, lines, capsys=capsys)
    assert code == 0
    assert [line["effect"] for line in out] == ["allow", "deny", "ask", "allow"]
    assert [line["outcome"] for line in out] == [
        {"outcome": "selected", "optionId": "yes"},
        {"outcome": "selected", "optionId": "no"},
        None,
        {"outcome": "selected", "optionId": "yes"},
    ]


def test_a_line_says_everything_the_decision_rests_on(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "session/request_permission",
        "params": params("execute", command="touch x"),
    }
    _, (line,), _ = decide(house, [message], capsys=capsys)
    assert line == {
        "id": 0,
        "sessionId": "s",
        "toolCallId": "c",
        "effect": "allow",
        "source": "rule",
        "rules": ["user:touch"],
        "reason": "allowed by `user:touch`",
        "actions": [
            {"kind": "execute", "command": ["touch", "x"], "text": "touch x", "role": "primary", "effect": "allow"},
            {"kind": "edit", "path": str(house / "app/x"), "role": "operand", "effect": "allow"},
        ],
        "outcome": {"outcome": "selected", "optionId": "yes"},
    }


def transcript(house: Path, *middle: Any) -> list[Any]:
    new = {"id": 1, "method": "session/new", "params": {"cwd": str(house / "app"), "mcpServers": []}}
    return [
        {"dir": "c2a", "msg": {"id": 0, "method": "initialize", "params": {"protocolVersion": 1}}},
        {"dir": "a2c", "msg": {"id": 0, "result": {"agentInfo": {"name": "OpenCode", "version": "1"}}}},
        {"dir": "c2a", "msg": new},
        {"dir": "a2c", "msg": {"id": 1, "result": {"sessionId": "s"}}},
        *middle,
    ]


def update(**fields: Any) -> dict[str, Any]:
    fields = {"toolCallId": "c", **fields}
    return {"dir": "a2c", "msg": {"method": "session/update", "params": {"sessionId": "s", "update": fields}}}


def request(**call: Any) -> dict[str, Any]:
    asked = {"sessionId": "s", "toolCall": {"toolCallId": "c", **call}, "options": OPTIONS}
    return {"dir": "a2c", "msg": {"id": 0, "method": "session/request_permission", "params": asked}}


ANSWER = {"dir": "c2a", "msg": {"id": 0, "result": {"outcome": {"outcome": "selected", "optionId": "yes"}}}}
EARLY = update(sessionUpdate="tool_call", title="read", kind="read", rawInput={}, locations=[])
EMPTY = request(title="read", kind="read", rawInput={}, locations=[])


def test_a_request_waits_for_its_details_until_the_answer(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = update(sessionUpdate="tool_call_update", title="read", rawInput={"filePath": str(house / "app/.env")})
    _, before, _ = decide(house, transcript(house, EARLY, EMPTY, late, ANSWER), capsys=capsys)
    _, after, _ = decide(house, transcript(house, EARLY, EMPTY, ANSWER, late), capsys=capsys)
    assert before[0]["effect"] == "deny"
    assert after[0]["effect"] == "ask"
    assert "have not come" in after[0]["actions"][0]["opaque"]


def test_side_doors_have_lines_of_their_own(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write = {"sessionId": "s", "path": str(house / "app/.env"), "content": "x"}
    door = {"dir": "a2c", "msg": {"id": 5, "method": "fs/write_text_file", "params": write}}
    run = {
        "dir": "a2c",
        "msg": {"id": 6, "method": "terminal/create", "params": {"sessionId": "s", "command": "touch x"}},
    }
    _, out, _ = decide(house, transcript(house, door, run), capsys=capsys)
    assert [(line["id"], line["method"], line["effect"], line["outcome"]) for line in out] == [
        (5, "fs/write_text_file", "deny", None),
        (6, "terminal/create", "allow", None),
    ]


@pytest.mark.parametrize(
    "line",
    [
        '{"sessionId": "s", "sessionId": "t", "toolCall": {"toolCallId": "c"}, "options": []}',
        '{"sessionId": "s", "toolCall": {"toolCallId": "c", "kind": "read", "Kind": "edit"}, "options": []}',
        '{"id": 3, "method": "session/request_permission", "params": {"sessionId": "s", "options": []}}',
        '{"id": 3, "method": "session/request_permission", "params": []}',
        '{"id": 3, "method": "session/request_permission"}',
        '{"sessionId": 1, "toolCall": {"toolCallId": "c"}, "options": []}',
        '{"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": {}}',
    ],
)
def test_a_malformed_request_is_told_and_denied(line: str, house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, (out,), _ = decide(house, [line], "--exit-code", capsys=capsys)
    assert (out["effect"], code) == ("deny", 1)
    assert out["error"]
    assert out["outcome"] == {"outcome": "cancelled"}


def test_a_refused_update_makes_its_call_opaque(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twice = (
        '{"method":"session/update","params":{"sessionId":"s","update":{"toolCallId":"c","kind":"read","kind":"x"}}}'
    )
    _, (out,), _ = decide(house, [twice, params(path="a.py")], capsys=capsys)
    assert out["effect"] == "ask"


def test_a_line_that_is_no_message_is_left_out_with_a_note(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = decide(house, ["not json", "", params(path="a.py")], capsys=capsys)
    assert [line["effect"] for line in out] == ["allow"]
    assert "line 1 is left out" in err


@pytest.mark.parametrize("command", ["decide", "explain"])
def test_of_many_lines_that_are_no_messages_a_few_are_told_and_a_policy_is_told_its_place(
    command: str, house: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (house / "many.toml").write_text("[x]\n" * 90)
    assert main([command, "--no-managed", "--home", str(house / "home"), str(house / "many.toml")]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 8, lines
    assert "85 more notes" in lines[5] and "no request" in lines[6] and "`--policy`" in lines[7]


@pytest.mark.parametrize(("more", "told"), [((), True), (("--cwd", "/"), False)], ids=["nowhere", "somewhere"])
def test_without_a_working_directory_the_option_that_names_one_is_told(
    more: tuple[str, ...], told: bool, house: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (house / "lines.jsonl").write_text(json.dumps(params(path="a.py")))
    given = ["--no-managed", "--policy", str(house / "policy.toml"), "--home", str(house / "home"), *more]
    assert main(["decide", *given, str(house / "lines.jsonl")]) == 0
    assert ("`--cwd DIR`" in capsys.readouterr().err) is told


@pytest.mark.parametrize(("paths", "code"), [(["a"], 0), (["a", ".env"], 1)])
def test_the_exit_code_is_the_strictest(
    paths: list[str], code: int, house: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert decide(house, [params(path=path) for path in paths], "--exit-code", capsys=capsys)[0] == code
    assert decide(house, [params(path=path) for path in paths], capsys=capsys)[0] == 0


def test_an_ask_exits_with_three(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert decide(house, [params("edit", path="a")], "--exit-code", capsys=capsys)[0] == 3


def test_unattended_what_would_be_asked_is_denied(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, (out,), _ = decide(house, [params("edit", path="a")], "--unattended", capsys=capsys)
    assert (out["effect"], out["outcome"]) == ("deny", {"outcome": "selected", "optionId": "no"})


def test_every_mistake_of_every_file_is_told(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (house / "policy.toml").write_text('version = 1\n[[rule]]\neffect = "alow"\ncomand = "x"\n')
    code, out, err = decide(house, [params()], capsys=capsys)
    assert (code, out) == (2, [])
    assert "alow" in err
    assert "comand" in err


def test_an_example_that_does_not_come_out_stops_everything(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (house / "policy.toml").write_text(POLICY + 'match = "execute rm x"\n')
    code, _, err = decide(house, [params()], capsys=capsys)
    assert code == 2
    assert "`execute rm x` does not match" in err


@pytest.mark.parametrize("option", [["--prompt", "perhaps"], ["--label", "novalue"], ["--shell", "fish"]])
def test_a_wrong_option_is_a_usage_error(option: list[str], house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        decide(house, [params()], *option, capsys=capsys)
    assert stop.value.code == 2


def test_a_missing_file_is_an_error(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--policy", str(house / "policy.toml"), "--home", str(house / "home"), "--no-managed"]
    assert main(["decide", *given, str(house / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_a_project_only_tightens(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (house / "app/.policyd").mkdir()
    rules = 'version = 1\n[[rule]]\neffect = "{}"\ncommand = "{}"\n'
    (house / "app/.policyd/a.toml").write_text(rules.format("allow", "make"))
    (house / "app/.policyd/b.toml").write_text(rules.format("deny", "touch"))
    lines = [params("execute", command="make"), params("execute", command="touch x")]
    _, out, _ = decide(house, lines, capsys=capsys)
    assert [line["effect"] for line in out] == ["ask", "deny"]
    _, out, _ = decide(house, lines, "--no-project", capsys=capsys)
    assert [line["effect"] for line in out] == ["ask", "allow"]


def test_a_policy_inside_the_workspace_is_the_projects(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inside = house / "app/ci.toml"
    inside.write_text(POLICY)
    _, (out,), _ = decide(house, [params("execute", command="touch x")], "--policy", str(inside), capsys=capsys)
    assert out["effect"] == "allow"
    (house / "policy.toml").write_text("version = 1\n")
    _, (out,), _ = decide(house, [params("execute", command="touch x")], "--policy", str(inside), capsys=capsys)
    assert out["effect"] == "ask"
    given = ["--policy", str(inside), "--policy-digest", f"sha256:{hashlib.sha256(POLICY.encode()).hexdigest()}"]
    _, (out,), _ = decide(house, [params("execute", command="touch x")], *given, capsys=capsys)
    assert out["effect"] == "allow"
    inside.write_text(POLICY + "\n")
    _, (out,), said = decide(house, [params("execute", command="touch x")], *given, capsys=capsys)
    assert out["effect"] == "ask" and f"`--policy-digest {given[3]}` is no policy file's" in said


def test_the_settings_that_rules_see_count_as_in_a_proxy(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rule = '[[rule]]\neffect = "allow"\ncommand = "{} **"\n'
    (house / "policy.toml").write_text(rule.format("make") + 'label = { team = "core" }\n' + rule.format("w"))
    settings = house / "home/.config/policyd/policyd.toml"
    settings.parent.mkdir(parents=True)
    lines = [params("execute", command=command) for command in ("make x", "w =x")]

    def effects(*more: str) -> list[str]:
        return [line["effect"] for line in decide(house, lines, *more, capsys=capsys)[1]]

    assert effects() == ["ask", "allow"]
    settings.write_text('shell = "zsh"\n[labels]\nteam = "core"\n')
    assert effects() == ["allow", "ask"]
    assert effects("--shell", "bash", "--label", "team=web") == ["ask", "allow"]
    settings.write_text("shel = 1\n")
    code, out, said = decide(house, lines, capsys=capsys)
    assert (code, out) == (2, []) and "policyd.toml:1: unknown setting `shel`" in said


def test_managed_policies_are_read_from_the_directory_given(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (house / "managed").mkdir()
    (house / "managed/a.toml").write_text('version = 1\n[[rule]]\neffect = "deny"\ncommand = "touch"\n')
    file = house / "lines.jsonl"
    file.write_text(json.dumps(params("execute", command="touch x")) + "\n")
    given = ["--policy", str(house / "policy.toml"), "--home", str(house / "home"), "--cwd", str(house / "app")]
    main(["decide", "--managed", str(house / "managed"), *given, str(file)])
    line = json.loads(capsys.readouterr().out)
    assert (line["effect"], line["rules"]) == ("deny", ["managed:a.toml:2"])
    (house / "managed/a.toml").write_text('[lock]\nsettings = ["labels"]\n')
    for command in (["decide", str(file)], ["explain", "--example", "execute x"]):
        main([*command, "--managed", str(house / "managed"), "--label", "a=b", *given])
        assert "option: `labels` is locked by the managed settings and not used" in capsys.readouterr().err


def test_an_agent_may_be_named_and_is_not_contradicted(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {
        "sessionId": "s",
        "toolCall": {"toolCallId": "x", "title": "touch x", "kind": "execute"},
        "options": OPTIONS,
    }
    _, (out,), _ = decide(house, [asked], "--agent", "gemini", capsys=capsys)
    assert out["actions"][0]["command"] == ["touch", "x"]
    _, _, err = decide(house, transcript(house), "--agent", "gemini", capsys=capsys)
    assert "calls itself `OpenCode`" in err


NOTHING_DECIDED = [
    b"garbage",
    b"",
    b'{"command": "rm -rf /"}',
    b'{\n "sessionId": "s",\n "toolCall": {"toolCallId": "1"}\n}',
    b'{"sessionId": "s", "toolcall": {"toolCallId": "1"}, "options": []}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "session/requestPermission", "params": {}}',
    b"\xff\xfe",
]


@pytest.mark.parametrize("text", NOTHING_DECIDED)
def test_an_exit_code_of_zero_means_that_something_was_allowed(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(text)
    (tmp_path / "p.toml").write_text('version = 1\n[defaults]\n"*" = "allow"\n')
    words = ["decide", str(tmp_path / "in.jsonl"), "--policy", str(tmp_path / "p.toml"), "--exit-code"]
    assert main([*words, "--home", str(tmp_path), "--no-managed"]) in {1, 2}


RULES = (
    'effect = "allow"\ncommand = "ls **"',
    'effect = "ask"\ncommand = "ls"',
    'effect = "ask"\nkind = "execute"',
    'effect = "allow"\ncommand = "@read-only"',
    'effect = "deny"\npath = ["secrets", "b"]',
)
ASKED = ("ls docs; cat x; rm y", "cat secrets/a | tee b c", "ls $(pwd) > d")


@pytest.mark.slow
def test_the_same_is_said_whatever_the_order_the_hash_seed_the_zone_and_the_locale(house: Path) -> None:
    given = [sys.executable, "-m", "policyd", "decide", "--no-managed", "--home", str(house / "home")]
    lines = "".join(json.dumps(params("execute", command=text)) + "\n" for text in ASKED).encode()
    files = [house / f"{number}.toml" for number in range(len(RULES))]
    for number, file in enumerate(files):
        file.write_text(f'[[rule]]\nid = "r{number}"\n{RULES[number]}\n')
    said = set()
    for seed, order in enumerate(islice(permutations(files), 0, None, 17)):
        words = [word for file in order for word in ("--policy", str(file))]
        environ = {
            "PYTHONHASHSEED": str(seed),
            "TZ": ("UTC", "Asia/Tokyo")[seed % 2],
            "LC_ALL": ("C", "C.UTF-8")[seed % 2],
        }
        environ |= {"PYTHONPATH": str(Path(__file__).parent.parent), "PATH": "/usr/bin:/bin"}
        found = subprocess.run(
            [*given, *words, "--cwd", str(house / "app")], input=lines, env=environ, capture_output=True, check=True
        )
        said.add(found.stdout)
    assert len(said) == 1
