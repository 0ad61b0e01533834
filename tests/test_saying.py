"""What others wrote (policies, file names, transcripts, logs, other programs' settings) acts on no terminal."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from policyd.cli import daemonstate, main
from policyd.cli.daemonstate import Running

ESC = "\x1b]0;x\x07\u202e"
"""Sets the title of a terminal, and turns the direction of what follows."""
KEY = ESC.replace("\x1b", "\\u001b").replace("\x07", "\\u0007")
GOOD = 'version = 1\n[[rule]]\neffect = "ask"\ncommand = ["make **", "make x"]\nreason = "KEY"\n'
BAD = (
    'version = 1\n"KEY" = 1\n[sets]\n"KEY" = ["x/**"]\n[[rule]]\nid = "KEY"\neffect = "KEY"\n'
    '[[rule]]\neffect = "deny"\nkind = "read"\npath = "KEY"\n'
)
SUITE = 'policies = []\n[[case]]\nname = "KEY"\nrequest = "read KEY"\neffect = "deny"\n'
OPTION = {"optionId": ESC, "name": ESC, "kind": "allow_once"}
CALL = {"toolCallId": ESC, "kind": f"_{ESC}", "title": ESC, "rawInput": {ESC: "x", "command": f"ls {ESC}"}}
TRANSCRIPT = [
    {"id": 0, "method": "session/new", "params": {"cwd": f"/w/{ESC}", "mcpServers": []}},
    {"id": 0, "result": {"sessionId": "s"}},
    {
        "id": 1,
        "method": "session/request_permission",
        "params": {"sessionId": "s", "toolCall": CALL, "options": [OPTION]},
    },
    {"dir": ESC, "msg": {"method": ESC}},
]
ACTION = {"role": "primary", "kind": "execute", "command": ["ls", ESC], "effect": "ask"}
RECORD = {
    **{"event": "decision", "schema": 1, "id": "i", "time": "2026-11-02T00:00:00.000000Z", "cwd": f"/w/{ESC}"},
    **{"agent": {"name": ESC, "profile": ESC}, "effect": "allow", "source": "prompt", "by": "client", "title": ESC},
    **{"rules": [{"rule": ESC, "file": ESC, "line": 1}], "reason": ESC, "user": ESC, "actions": [ACTION]},
}
LOG = [
    {**RECORD, "seq": 1},
    {**RECORD, "seq": 2},
    {**RECORD, "seq": 3, "event": ESC},
    {**RECORD, "seq": 4, "time": ESC},
]
COMMANDS = """
status
doctor
check
check --expand
check --strict
trust --show
trust
test .
diff .policyd .policyd
explain --example "execute make x"
explain talk.jsonl
decide talk.jsonl
explain --log log --record 1
explain --log log --record 3
audit show --log log
audit stats --log log
audit replay --log log
audit suggest --log log --min 1
audit suggest --unused --log log
audit verify --log log
""".strip().splitlines()


@pytest.fixture(params=[GOOD, BAD], ids=["good", "bad"])
def house(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / f"project{ESC}"
    (project / ".policyd").mkdir(parents=True)
    (project / ".policyd" / f"{ESC}.toml").write_text(request.param.replace("KEY", KEY))
    (project / "a_test.toml").write_text(SUITE.replace("KEY", KEY))
    (project / ".acpxrc.json").write_text(json.dumps({"agents": {ESC: {"argv": [f"/x/{ESC}", ESC]}}}))
    (project / "talk.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in TRANSCRIPT) + f"no JSON {ESC}\n")
    (project / "log").mkdir()
    (project / "log/audit.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in LOG))
    monkeypatch.chdir(project)
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return project


def test_no_command_lets_it_through(
    house: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {"problems": [ESC], "files": [{"layer": ESC, "file": ESC}], "tier": ESC, "prompt": [ESC], "mute": ESC}
    monkeypatch.setattr(daemonstate, "find", lambda places, socket: Running("/s", told))
    for line in COMMANDS:
        main(shlex.split(line))
        said = "".join(capsys.readouterr())
        assert said, line
        assert not {"\x1b", "\x07", "\u202e", "⏎"} & set(said), f"{line}\n{said!r}"


def test_a_line_cannot_be_forged(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (house / ".policyd/x\nok: 9 rules.toml").write_text("version = 2")
    main(["check"])
    said = "".join(capsys.readouterr())
    assert "x⏎ok: 9 rules.toml" in said and "\nok:" not in said
