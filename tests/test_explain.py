"""`policyd explain`: the evidence, the actions, what spoke and what nearly did, and the way out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policyd.authorizer import Authorizer
from policyd.cli import main
from policyd.cli.replay import Replay, Result
from policyd.cli.waysout import ways_out
from policyd.model import Effect, Layer
from policyd.policy import PolicySource, load
from tests.told import MACHINE

POLICY = """version = 1
[defaults]
"*" = "ask"

[[rule]]
id = "docs"
effect = "allow"
kind = "edit"
path = "docs/**"

[[rule]]
id = "no-env"
effect = "deny"
path = ["**/.env"]
reason = "Secrets stay out of reach."

[[rule]]
id = "push"
effect = "ask"
command = "git push"

[[rule]]
id = "git"
effect = "allow"
command = "git status **"
"""


@pytest.fixture
def house(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "app").mkdir()
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path


def explain(house: Path, *more: str, capsys: pytest.CaptureFixture[str]) -> str:
    given = ["--policy", str(house / "policy.toml"), "--home", str(house / "home"), "--cwd", str(house / "app")]
    assert main(["explain", "--no-managed", *given, *more]) == 0
    return capsys.readouterr().out


SAID = [
    ("edit docs/a.md", ["1. allow edit", "docs/a.md", "rule user:docs says allow", "option `allow`"]),
    (
        "edit src/a.py",
        ["nearly user:docs says allow", "`path` does not hold", "a person is asked", 'path = "src/a.py"'],
    ),
    ("delete docs/a.md", ["nearly user:docs", "`kind` does not hold"]),
    ("execute cat .env", ["operand", "decision deny", "Secrets stay out of reach.", "option `reject`", "`unless`"]),
    ("execute git push origin", ["rule user:push says ask", "an ask rule spoke", "nearly user:git"]),
    ("execute git status", ["rule user:git says allow", "runs in"]),
    ("execute (( x ))", ["not understood", "at least ask", "opaque = true"]),
    ("execute policyd trust", ["touches policyd's own program", "only a managed rule"]),
    ("fetch https://example.com/", ["https://example.com/", 'url = "https://example.com/"']),
    ("other jira/get", ["jira/get", 'tool = "jira/get"']),
]


@pytest.mark.parametrize(("text", "expected"), SAID, ids=[text for text, _ in SAID])
def test_an_example_is_explained(
    text: str, expected: list[str], house: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = explain(house, "--example", text, capsys=capsys)
    assert [part for part in expected if part not in said] == [], said


def request(**call: Any) -> dict[str, Any]:
    options = [{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]
    return {"sessionId": "s", "toolCall": {"toolCallId": "c", **call}, "options": options}


def transcript(house: Path, *lines: Any) -> str:
    file = house / "lines.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(file)


def test_the_evidence_is_shown_with_its_place(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = request(title="Edit", kind="edit", rawInput={"path": "src/a.py"}, locations=[{"path": "src/b.py"}])
    said = explain(house, transcript(house, asked), capsys=capsys)
    for part in ("rawInput.path =", "location src/b.py", "found in rawInput.path", "found in locations[0].path"):
        assert part in said


def test_what_an_agent_wrote_cannot_rewrite_the_screen(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = request(
        title="\x1b[2Jok\u202e", kind="execute", rawInput={"command": "echo \x1b[8m hidden", "\x1b[1m": "x"}
    )
    said = explain(house, transcript(house, asked), capsys=capsys)
    assert not {"\x1b", "\u202e"} & set(said)


def test_a_malformed_request_is_explained(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "malformed, denied" in explain(house, transcript(house, {"sessionId": "s", "toolCall": 1}), capsys=capsys)


def test_a_side_door_is_explained(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    door = {"id": 1, "method": "fs/write_text_file", "params": {"sessionId": "s", "path": str(house / "app/.env")}}
    said = explain(house, transcript(house, door), capsys=capsys)
    assert "fs/write_text_file" in said
    assert "an error with the reason" in said


def test_json_holds_everything_that_spoke(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(explain(house, "--json", "--example", "edit src/a.py", capsys=capsys))
    (action,) = facts["actions"]
    assert action["nearly"] == [{"rule": "user:docs", "but": "path"}]
    assert action["defaults"] == ["user:defaults.*"]
    assert facts["outcome"] is None


ASK = 'version = 1\n[defaults]\n"*" = "ask"\n'
CAPTURES = sorted((Path(__file__).parent / "data/captures").glob("*.jsonl"))


def played(policy: str, lines: list[Any]) -> list[Result]:
    source = PolicySource("policy.toml", policy.encode(), Layer.USER)
    loaded = load([source], home="/home/dev", tmpdir="/tmp", fs=MACHINE.fs, version="0.1.0")
    replay = Replay(Authorizer(loaded, machine=MACHINE))
    return list(replay.run(json.dumps(line).encode() for line in lines))


@pytest.mark.parametrize("file", CAPTURES, ids=[file.stem for file in CAPTURES])
def test_the_rules_given_as_a_way_out_are_one(file: Path) -> None:
    for text in file.read_text().splitlines():
        case = json.loads(text)
        for at, asked in enumerate(played(ASK, case["lines"])):
            ways = list(ways_out(asked.decision, asked.decision.effect, roots(case["lines"])))
            assert ways, (case["case"], at)
            if all(way.startswith("[[rule]]") for way in ways):
                then = played("\n".join([ASK, *ways]), case["lines"])[at]
                assert then.decision.effect is Effect.ALLOW, (case["case"], at, ways, then.decision)


def roots(lines: list[Any]) -> tuple[str, ...]:
    opened = [
        line["msg"]["params"].get("cwd") for line in lines if line["msg"].get("method", "").startswith("session/")
    ]
    return tuple(cwd for cwd in opened if cwd)
