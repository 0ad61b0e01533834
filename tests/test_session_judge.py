"""The enforcement with a real policy, real profiles and recorded agents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from policyd.model import Effect
from policyd.session import Closed, Command, Connection, Frame, Note, Record, Send, Settings, Side, Tick
from policyd.session.judge import Judge, means_no_asking
from policyd.session.ports import Asking
from tests.fakes import FakeFilesystem
from tests.playbook import moment
from tests.realwire import ASK_ALL, CLAUDE, CODEX, HOME, VIBE, judge

DATA = Path(__file__).parent / "data"


# ---- the asking mode of each agent ---------------------------------------------------------------------

COPILOT_MODE = "https://agentclientprotocol.com/protocol/session-modes#"


def modes(current: str, *others: str) -> dict[str, object]:
    return {"modes": {"currentModeId": current, "availableModes": [{"id": one} for one in (current, *others)]}}


def set_mode(mode: str) -> tuple[str, dict[str, object]]:
    return "session/set_mode", {"sessionId": "s", "modeId": mode}


def set_option(option: str, value: object) -> tuple[str, dict[str, object]]:
    return "session/set_config_option", {"sessionId": "s", "configId": option, "value": value}


ALLOW_ALL = [{"id": "allow_all", "currentValue": "on", "options": [{"value": "on"}, {"value": "off"}]}]
AUTO_APPROVE = [{"id": "auto_approve", "type": "boolean", "currentValue": True}]
STARTS: list[tuple[str, dict[str, object], tuple[tuple[str, dict[str, object]], ...]]] = [
    (CLAUDE, modes("auto", "default", "plan"), (set_mode("default"),)),
    (CLAUDE, modes("acceptEdits", "default"), (set_mode("default"),)),
    (CLAUDE, modes("default", "auto"), ()),
    (CLAUDE, modes("plan", "default"), ()),
    (CLAUDE, modes("brand-new", "default"), (set_mode("default"),)),
    (CODEX, modes("agent", "read-only", "agent-full-access"), (set_mode("read-only"),)),
    (CODEX, modes("read-only", "agent"), ()),
    (VIBE, modes("accept-edits", "ask", "auto-approve"), (set_mode("ask"),)),
    ("gemini-cli", modes("yolo", "default"), (set_mode("default"),)),
    ("gemini-cli", modes("default", "yolo"), ()),
    ("Copilot", {**modes(f"{COPILOT_MODE}autopilot", f"{COPILOT_MODE}agent")}, (set_mode(f"{COPILOT_MODE}agent"),)),
    ("Copilot", {**modes(f"{COPILOT_MODE}agent"), "configOptions": ALLOW_ALL}, (set_option("allow_all", "off"),)),
    ("cline", {**modes("act", "plan"), "configOptions": AUTO_APPROVE}, (set_option("auto_approve", False),)),
    ("cline", {"configOptions": [{"id": "mode", "currentValue": "yolo"}]}, (set_option("mode", "act"),)),
    ("OpenCode", {"configOptions": [{"id": "mode", "currentValue": "build", "options": []}]}, ()),
    ("Kimi Code CLI", modes("default"), ()),
    ("nobody-knows", modes("architect", "code"), ()),
    ("nobody-knows", modes("YOLO", "Default"), (set_mode("Default"),)),
    ("nobody-knows", modes("full-access", "Always Ask"), (set_mode("Always Ask"),)),
    ("nobody-knows", {}, ()),
]


@pytest.mark.parametrize(("agent", "opened", "steps"), STARTS)
def test_a_session_is_put_into_the_mode_that_asks(
    agent: str, opened: Mapping[str, object], steps: tuple[tuple[str, dict[str, object]], ...]
) -> None:
    found = judge(agent=agent).asking("s", opened)
    assert found.steps == steps
    assert not found.missing
    if steps and steps[0][0] == "session/set_mode":
        assert found.mode == steps[0][1]["modeId"]


@pytest.mark.parametrize(
    ("opened", "mode"),
    [
        (modes("default", "plan", "auto", "yolo"), "default"),
        (modes("plan", "default"), "plan"),
        (modes("yolo", "default"), "default"),
        (modes("brand-new", "default"), "default"),
        ({"configOptions": [{"id": "mode", "currentValue": "plan", "options": []}]}, "plan"),
        ({}, "default"),
    ],
)
def test_where_the_stated_mode_is_no_evidence_a_mode_that_asks_is_always_set(
    opened: Mapping[str, object], mode: str
) -> None:
    found = judge(agent="Kimi Code CLI", version="2.1.0").asking("s", opened)
    assert found.steps == (set_mode(mode),)


@pytest.mark.parametrize(
    ("agent", "opened"),
    [
        (CLAUDE, modes("auto", "bypassPermissions")),
        ("nobody-knows", modes("bypass-permissions", "yolo")),
        (
            "Copilot",
            {
                **modes(f"{COPILOT_MODE}agent"),
                "configOptions": [{"id": "allow_all", "currentValue": "on", "options": [{"value": "on"}]}],
            },
        ),
    ],
)
def test_an_agent_without_a_mode_that_asks_is_said_to_have_none(agent: str, opened: Mapping[str, object]) -> None:
    found = judge(agent=agent).asking("s", opened)
    assert found == Asking(missing=found.missing)
    assert found.missing


SWITCHES: list[tuple[str, str, dict[str, object], bool]] = [
    (CLAUDE, "session/set_mode", {"modeId": "auto"}, True),
    (CLAUDE, "session/set_mode", {"modeId": "default"}, False),
    (CLAUDE, "session/set_mode", {"modeId": "plan"}, False),
    (CLAUDE, "session/set_mode", {"modeId": "never-heard-of"}, True),
    (CLAUDE, "session/set_mode", {"modeId": 7}, True),
    (CLAUDE, "session/set_mode", {}, True),
    (CLAUDE, "session/set_config_option", {"configId": "mode", "value": "bypassPermissions"}, True),
    (CLAUDE, "session/set_config_option", {"configId": "mode", "value": "default"}, False),
    (CLAUDE, "session/set_config_option", {"configId": "model", "value": "opus"}, False),
    (CLAUDE, "session/set_config_option", {"value": "x"}, True),
    (CLAUDE, "session/new", {"_meta": {"claudeCode": {"options": {"allowedTools": ["Bash"]}}}}, True),
    (CLAUDE, "session/new", {"_meta": {"claudeCode": {"options": {"permissionMode": "bypassPermissions"}}}}, True),
    (CLAUDE, "session/new", {"_meta": {"claudeCode": {"options": {"permissionMode": "default"}}}}, False),
    (CLAUDE, "session/new", {"_meta": {"other": 1}}, False),
    (CODEX, "session/set_mode", {"modeId": "agent-full-access"}, True),
    (CODEX, "session/set_config_option", {"configId": "mode", "value": "agent"}, True),
    ("Copilot", "session/set_config_option", {"configId": "allow_all", "value": "on"}, True),
    ("Copilot", "session/set_config_option", {"configId": "allow_all", "value": "off"}, False),
    ("cline", "session/set_config_option", {"configId": "auto_approve", "value": True}, True),
    ("cline", "session/set_config_option", {"configId": "auto_approve", "value": False}, False),
    ("nobody-knows", "session/set_mode", {"modeId": "architect"}, False),
    ("nobody-knows", "session/set_mode", {"modeId": "Bypass Permissions"}, True),
    ("nobody-knows", "session/set_mode", {"modeId": "auto"}, True),
    ("nobody-knows", "session/set_config_option", {"configId": "yolo_mode", "value": True}, True),
    ("nobody-knows", "session/set_config_option", {"configId": "yolo_mode", "value": False}, False),
    ("nobody-knows", "session/set_config_option", {"configId": "theme", "value": "auto"}, False),
    ("nobody-knows", "session/set_config_option", {"configId": "approval", "value": "bypassPermissions"}, True),
    (CLAUDE, "session/set_config_option", {"configId": "approval", "value": "dont-ask"}, True),
    ("gptme", "session/set_mode", {"modeId": "default"}, True),
]


@pytest.mark.parametrize(("agent", "method", "params", "unsafe"), SWITCHES)
def test_what_switches_asking_off_is_known_at_every_door(
    agent: str, method: str, params: dict[str, object], unsafe: bool
) -> None:
    found = judge(agent=agent).switch(method, {"sessionId": "s", **params}, moment(0.0))
    assert (found is not None) is unsafe
    assert found is None or found.decision.effect is not Effect.ALLOW


@pytest.mark.parametrize(
    "name",
    [
        *("YOLO", "yolo", "Accept Edits", "acceptEdits", "auto-approve", "AUTO", "full_access"),
        *("dangerously-skip-permissions", "bypassPermissions", "x/session-modes#autopilot"),
    ],
)
def test_names_that_mean_no_asking_are_known_in_any_spelling(name: str) -> None:
    assert means_no_asking(name)


@pytest.mark.parametrize(
    "name", ["default", "plan", "ask", "code", "architect", "build", "manual", "automation-review"]
)
def test_other_names_are_not(name: str) -> None:
    assert not means_no_asking(name)


@pytest.mark.parametrize(
    ("kind", "option", "leads"),
    [
        ("switch_mode", "exit-plan-default", []),
        ("switch_mode", "exit-plan-auto", ["auto"]),
        ("switch_mode", "acceptEdits", ["acceptEdits"]),
        ("switch_mode", "nobody-knows-once", []),
        ("switch_mode", "nobody-knows-always", ["nobody-knows-always"]),
        ("execute", "exit-plan-auto", []),
    ],
)
def test_the_mode_that_an_answer_leads_to_is_judged_by_its_name(kind: str, option: str, leads: list[str]) -> None:
    decider = judge(ASK_ALL, CLAUDE)
    kinds = {option: "allow_always" if option.endswith("always") else "allow_once", "n": "reject_once"}
    options = [{"optionId": ident, "name": ident, "kind": kind} for ident, kind in kinds.items()]
    call = {"toolCallId": "t", "kind": kind, "title": "Ready to code?"}
    asked = decider.permission({"sessionId": "s", "toolCall": call, "options": options}, moment(0.0))
    found = decider.chosen(asked, option, moment(0.0))
    assert [action.mode.name for action in (found.request.actions if found else ()) if action.mode] == leads


@pytest.mark.parametrize(("agent", "own"), [(CLAUDE, "allowedPrompts"), (CODEX, "serverName"), ("nobody", "cmd")])
def test_the_names_that_must_be_spelled_as_they_are_read_are_those_of_the_agent(agent: str, own: str) -> None:
    names = judge(agent=agent).names()
    assert own in names and "command" in names
    assert ("allowedPrompts" in names) is (agent == CLAUDE)


def test_a_rule_allows_a_mode_by_name_and_no_other() -> None:
    policy = ASK_ALL + '[[rule]]\nid = "m"\neffect = "allow"\nkind = "switch_mode"\nmode = "acceptEdits"\n'
    decider = judge(policy, CLAUDE)
    named = decider.switch("session/set_mode", {"sessionId": "s", "modeId": "acceptEdits"}, moment(0.0))
    other = decider.switch("session/set_mode", {"sessionId": "s", "modeId": "auto"}, moment(0.0))
    assert named is not None
    assert other is not None
    assert named.decision.effect is Effect.ALLOW
    assert other.decision.effect is not Effect.ALLOW


MCP_ALLOWED = '[defaults]\n"*" = "ask"\nmcp = "allow"\n[[rule]]\neffect = "allow"\ntool = "notes/*"\n'


@pytest.mark.parametrize(
    ("rule", "effect"),
    [
        ("", Effect.ALLOW),
        *(
            (f'effect = "deny"\npath = "{path}"', Effect.ASK)
            for path in (".env", "secrets/**", "**/*.pem", "/etc/passwd")
        ),
        *((f'effect = "deny"\npath = "{path}"', Effect.ASK) for path in ("@secrets", "@outside", "~/.ssh/**", "**")),
        ('effect = "deny"\nkind = "read"\npath = ".env"', Effect.ASK),
        ('effect = "ask"\nkind = "@write"\npath = "docs/**"', Effect.ASK),
        ('effect = "deny"\npath = "**"\nunless = { path = "docs/**" }', Effect.ASK),
        ('effect = "deny"\nurl = "evil.example"', Effect.ASK),
        ('effect = "deny"\ncommand = "rm"', Effect.ALLOW),
        ('effect = "deny"\ntool = "jira/*"', Effect.ALLOW),
        ('effect = "deny"\ntool = "notes/write_file"', Effect.DENY),
        ('effect = "allow"\nkind = "read"\npath = "docs/**"', Effect.ALLOW),
    ],
)
@pytest.mark.parametrize("stated", [False, True])
def test_arguments_of_an_mcp_call_that_nobody_stated_may_name_what_a_strict_rule_names(
    rule: str, effect: Effect, stated: bool
) -> None:
    decider = judge(MCP_ALLOWED + (f"[[rule]]\n{rule}\n" if rule else ""), CLAUDE)
    params = {"cwd": "/home/dev/p", "mcpServers": [{"name": "notes", "command": "x", "args": [], "env": []}]}
    decider.observe(Side.CLIENT, {"id": 1, "method": "session/new", "params": params})
    decider.observe(Side.AGENT, {"id": 1, "result": {"sessionId": "s"}})
    call: dict[str, object] = {"toolCallId": "t", "title": "mcp__notes__write_file", "kind": "other"}
    call |= {"_meta": {"claudeCode": {"toolName": "mcp__notes__write_file"}}, **({"rawInput": {}} if stated else {})}
    options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
    asked = {"sessionId": "s", "toolCall": call, "options": options}
    found = decider.permission(asked, moment(0.0)).decision.effect
    assert found is (Effect.ALLOW if stated and effect is Effect.ASK else effect)


# ---- recorded agents -----------------------------------------------------------------------------------


class Replay:
    """Plays a recording of an agent; the client's part is played by a person who says yes, once."""

    def __init__(self, policy: str, settings: Settings | None = None) -> None:
        self.connection = Connection(judge(policy), settings or Settings(), nonce="n")
        self.asked: list[str] = []
        self.doors: list[str] = []
        self.answers: dict[str, list[dict[str, object]]] = {}
        self.records: list[Mapping[str, object]] = []
        self.notes: list[str] = []
        self._time = 0.0

    def play(self, path: Path, *, own_answers: bool = True) -> Replay:
        for row in path.read_text("utf-8").splitlines():
            line = json.loads(row)
            message = line["msg"]
            answers_a_question = line["dir"] == "c2a" and "outcome" in json.dumps(message.get("result"))
            if answers_a_question and own_answers:
                continue
            self.frame(Side.AGENT if line["dir"] == "a2c" else Side.CLIENT, message)
        self._take(self.connection.handle(Tick(), moment(self._time + 5000)))
        return self

    def frame(self, side: Side, message: Mapping[str, object]) -> None:
        self._time += 1.0
        data = json.dumps(message, ensure_ascii=False).encode()
        self._take(self.connection.handle(Frame(side, data), moment(self._time)))

    def _take(self, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, Record):
                self.records.append(command.record)
            elif isinstance(command, Note):
                self.notes.append(command.text)
            elif isinstance(command, Send):
                for line in command.data.splitlines():
                    self._sent(command.side, json.loads(line))

    def _sent(self, side: Side, message: dict[str, object]) -> None:
        method, ident, params = str(message.get("method", "")), message.get("id"), message.get("params")
        if side is Side.AGENT:
            if not method:
                self.answers.setdefault(json.dumps(ident), []).append(message)
            elif str(ident).startswith("policyd:"):
                self.frame(Side.AGENT, {"jsonrpc": "2.0", "id": ident, "result": {}})
        elif method == "session/request_permission" and isinstance(params, dict):
            self.asked.append(params["toolCall"].get("title", ""))
            once = next(one["optionId"] for one in params["options"] if one["kind"] == "allow_once")
            outcome = {"outcome": {"outcome": "selected", "optionId": once}}
            self.frame(Side.CLIENT, {"jsonrpc": "2.0", "id": ident, "result": outcome})
        elif method.startswith(("fs/", "terminal/create")):
            self.doors.append(method)


@pytest.mark.parametrize(
    ("name", "questions", "doors"),
    [
        ("kimi-command", 1, 1),
        ("kimi-parallel", 2, 2),
        ("kimi-edit", 1, 3),
        ("kimi-append", 1, 3),
        ("kimi-read-outside", 1, 1),
        ("fast-agent-args-env", 1, 1),
        ("fast-agent-shell", 1, 1),
        ("fast-agent-overwrite", 1, 2),
        ("fast-agent-relative", 1, 1),
        ("gemini-create", 1, 3),
    ],
)
def test_a_person_is_asked_once_for_a_call_that_goes_through_a_side_door(name: str, questions: int, doors: int) -> None:
    replay = Replay(ASK_ALL).play(DATA / "wire" / "doors" / f"{name}.jsonl")
    assert len(replay.asked) == questions, replay.asked
    assert len(replay.doors) == doors
    assert not any("failed" in note for note in replay.notes)


@pytest.mark.parametrize("path", sorted((DATA / "loads").glob("*.jsonl")), ids=lambda path: path.stem)
def test_history_that_a_session_replays_raises_no_alarm(path: Path) -> None:
    deny = ASK_ALL + '[[rule]]\neffect = "deny"\nkind = "*"\n'
    replay = Replay(deny, Settings(agent_mode="off")).play(path)
    rows = [json.loads(row) for row in path.read_text("utf-8").splitlines()]
    answer = next(at for at, row in enumerate(rows) if "session/" in json.dumps(row.get("msg", {}).get("method", "")))
    opened = rows[answer]["msg"]["id"]
    done = next(at for at, row in enumerate(rows) if row["dir"] == "a2c" and row["msg"].get("id") == opened)
    before = {
        row["msg"]["params"]["update"].get("toolCallId")
        for row in rows[:done]
        if row["msg"].get("method") == "session/update"
    }
    unasked = {row["call"] for row in replay.records if row.get("outcome") == "unasked"}
    assert not unasked & before


# ---- the same rules at every door ----------------------------------------------------------------------

DENIED = [
    *(
        "rm -rf build",
        "rm -fr /",
        "git push",
        "git push --force origin main",
        "git -C sub push",
        "curl http://x.example",
    ),
    *("wget http://x.example/a", "cat .env", "cp .env /tmp/x", "sudo ls", "npm publish", "head -3 .env", "tail .env"),
    *(
        "git commit -m x",
        "docker run x",
        "dd if=/dev/zero of=x",
        "mkfs /dev/sda",
        "chmod 777 x",
        "kill -9 1",
        "ssh host ls",
    ),
]
PROGRAMS = ["rm", "git", "curl", "wget", "sudo", "npm", "docker", "dd", "mkfs", "chmod", "kill", "ssh"]
RULES = "".join(f'[[rule]]\neffect = "deny"\ncommand = "{name}"\n' for name in PROGRAMS)
RULES += '[[rule]]\neffect = "deny"\npath = [".env"]\n'
LEADS = ["", "timeout 5 ", "env A=1 ", "nice ", "time ", "nohup ", "command ", "env ", "stdbuf -oL ", "timeout -k 1 9 "]


@pytest.mark.parametrize("lead", LEADS)
def test_a_command_that_is_denied_is_denied_through_the_terminal_too(lead: str) -> None:
    decider = judge(ASK_ALL + RULES, "nobody-knows")
    decider.observe(Side.CLIENT, {"id": 1, "method": "session/new", "params": {"cwd": "/home/dev/p", "mcpServers": []}})
    decider.observe(Side.AGENT, {"id": 1, "result": {"sessionId": "s"}})
    for command in DENIED:
        text = lead + command
        call = {"toolCallId": "c", "kind": "execute", "rawInput": {"command": text}}
        asked = decider.permission({"sessionId": "s", "toolCall": call, "options": []}, moment(0.0))
        assert asked.decision.effect is Effect.DENY, text
        words = text.split()
        for params in (
            {"command": text},
            {"command": words[0], "args": words[1:]},
            {"command": "sh", "args": ["-c", text]},
        ):
            through = decider.door("terminal/create", {"sessionId": "s", **params}, moment(0.0))
            assert through.decision.effect is Effect.DENY, params


def test_there_are_two_hundred_denied_commands() -> None:
    assert len(DENIED) * len(LEADS) >= 200


@pytest.mark.parametrize("path", [".env", "./.env", "/home/dev/p/.env", "sub/../.env", "/home/dev/p/sub/.env"])
def test_a_path_that_is_denied_is_denied_through_the_files_too(path: str) -> None:
    decider = judge(ASK_ALL + RULES, "nobody-knows")
    decider.observe(Side.CLIENT, {"id": 1, "method": "session/new", "params": {"cwd": "/home/dev/p", "mcpServers": []}})
    decider.observe(Side.AGENT, {"id": 1, "result": {"sessionId": "s"}})
    for method in ("fs/read_text_file", "fs/write_text_file"):
        found = decider.door(method, {"sessionId": "s", "path": path, "content": ""}, moment(0.0))
        assert found.decision.effect is Effect.DENY


def test_every_recorded_request_gets_exactly_one_answer() -> None:
    for path in sorted((DATA / "wire" / "doors").glob("*.jsonl")) + sorted((DATA / "loads").glob("*.jsonl")):
        replay = Replay(ASK_ALL, Settings(prompt=())).play(path)
        replay._take(replay.connection.handle(Closed(Side.CLIENT), moment(99999.0)))
        rows = [json.loads(row)["msg"] for row in path.read_text("utf-8").splitlines()]
        asked = [json.dumps(row["id"]) for row in rows if row.get("method") == "session/request_permission"]
        for ident in asked:
            outcomes = [one for one in replay.answers.get(ident, []) if "outcome" in json.dumps(one.get("result"))]
            assert len(outcomes) == asked.count(ident), path.name


def spoken(decider: Judge, *lines: tuple[Side, bytes]) -> list[Command]:
    """Return what follows on lines of both sides, a session `s` being open."""
    connection = Connection(decider, Settings(), nonce="n")
    opening = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": f"{HOME}/app", "mcpServers": []}}
    opened = (
        (Side.CLIENT, json.dumps(opening).encode()),
        (Side.AGENT, b'{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}'),
    )
    return [one for side, line in (*opened, *lines) for one in connection.handle(Frame(side, line), moment(0.0))]


ASKS = (
    b'{"jsonrpc":"2.0","id":5,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":'
    b'"t","kind":"execute","rawInput":{"command":"make"}},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}'
)
TELLS = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update",'
    b'"toolCallId":"t","rawInput":{"command":"make","command":"rm"}}}}'
)
MAKE = ASK_ALL + '[[rule]]\neffect = "allow"\ncommand = "make"\n'


def test_a_call_of_which_an_update_was_refused_is_not_allowed_by_what_its_request_says() -> None:
    def effects(*lines: tuple[Side, bytes]) -> list[object]:
        said = [one.record for one in spoken(judge(MAKE), *lines) if isinstance(one, Record)]
        return [row["effect"] for row in said if row["event"] == "decision"]

    assert effects((Side.AGENT, ASKS)) == ["allow"]
    assert effects((Side.AGENT, TELLS), (Side.AGENT, ASKS)) == []


def test_a_request_that_fails_is_recorded_where_its_session_works(monkeypatch: pytest.MonkeyPatch) -> None:
    decider = judge(MAKE)

    def fails(*_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(decider, "permission", fails)
    (row,) = [one.record for one in spoken(decider, (Side.AGENT, ASKS)) if isinstance(one, Record)]
    assert (row["effect"], row["source"], row["cwd"]) == ("deny", "error", f"{HOME}/app")


def test_a_project_that_no_link_leads_to_is_known_as_it_is_written() -> None:
    assert judge().project("s") == ""
    for links, known in (({}, "/p"), ({"/q": "/p"}, "/p"), ({"/q": "q"}, "/q")):
        decider = judge(files=FakeFilesystem({}, links))
        params: dict[str, object] = {"cwd": "/q" if links else "/p", "mcpServers": []}
        decider.observe(Side.CLIENT, {"id": 1, "method": "session/new", "params": params})
        decider.observe(Side.AGENT, {"id": 1, "result": {"sessionId": "s"}})
        assert decider.project("s") == known
