"""`policyd explain`: the evidence, the actions, what spoke and what nearly did, and the way out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policyd.cli import main

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
        ["nearly user:docs says allow", "`path` does not hold", "a person is asked", 'kind = "edit" path ='],
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
