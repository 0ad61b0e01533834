"""`policyd test`: suites pass and fail for the right reason, and the shipped policies hold theirs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from policyd.cli import main
from policyd.cli.suite import SuiteError, read
from policyd.cli.test import found, unused
from policyd.cli.trials.tree import Tree

POLICIES = Path(__file__).parent.parent / "policies"
POLICY = """
version = 1
[defaults]
read = "allow"
[[rule]]
id = "no-env"
effect = "deny"
path = [".env"]
[[rule]]
id = "push"
effect = "ask"
command = "git push"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.toml").write_text(POLICY)
    return tmp_path


def write(folder: Path, cases: str, head: str = "") -> str:
    path = folder / "p_test.toml"
    path.write_text(f'policies = ["p.toml"]\n{head}\n[files]\n".env" = ""\n"a.txt" = ""\n{cases}')
    return str(path)


@pytest.mark.parametrize("path", list(found([str(POLICIES)])), ids=lambda path: Path(path).stem)
def test_the_shipped_policies_hold_what_their_suites_say(path: str) -> None:
    suite = read(path)
    assert [outcome for outcome in suite.run() if outcome.failure] == []
    assert unused(suite) == []


def test_every_shipped_policy_has_a_suite() -> None:
    suites = {Path(path).stem.removesuffix("_test") for path in found([str(POLICIES)])}
    assert suites == {"default", "read-only", "ci", "docs-only", "infra", "enterprise"}


FAILING = [
    ("another effect", '[[case]]\nrequest = "read .env"\neffect = "allow"\n', "decided deny, not allow"),
    ("another rule", '[[case]]\nrequest = "read .env"\neffect = "deny"\nrule = "user:push"\n', "not user:push"),
    ("one of several", '[[case]]\nrequest = ["read a.txt", "read .env"]\neffect = "allow"\n', "decided deny"),
]


@pytest.mark.parametrize(("name", "cases", "words"), FAILING, ids=[row[0] for row in FAILING])
def test_a_case_that_decides_otherwise_fails_with_its_explanation(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, cases: str, words: str
) -> None:
    assert main(["test", write(folder, cases)]) == 1
    said = capsys.readouterr().out
    assert words in said
    assert "user:no-env" in said
    assert "1 failed" in said


def test_cases_that_hold_pass(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = (
        '[[case]]\nrequest = ["read .env", { kind = "read", path = ".env" }]\neffect = "deny"\nrule = "user:no-env"\n'
    )
    assert main(["test", write(folder, cases)]) == 0
    said = capsys.readouterr().out
    assert "no case made these rules decide: user:push" in said
    assert said.endswith("2 passed, 0 failed\n")
    assert main(["test", write(folder, cases), "--json"]) == 0
    *told, whole = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["rules"], one["failure"]) for one in told] == [(["user:no-env"], None)] * 2
    assert whole["unused"] == ["user:push"]


def test_a_transcript_is_decided_request_by_request(folder: Path) -> None:
    call = {"toolCallId": "c", "title": "git push", "kind": "execute", "rawInput": {"command": "git push"}}
    options = [{"optionId": "y", "name": "Allow", "kind": "allow_once"}]
    params = {"sessionId": "s", "toolCall": call, "options": options}
    (folder / "t.jsonl").write_text(json.dumps(params) + "\n")
    suite = read(write(folder, '[[case]]\ntranscript = "t.jsonl"\neffect = "ask"\nrule = "user:push"\n'))
    assert [outcome.failure for outcome in suite.run()] == [""]


def test_a_transcript_without_a_request_cannot_pass(folder: Path) -> None:
    (folder / "t.jsonl").write_text("")
    suite = read(write(folder, '[[case]]\ntranscript = "t.jsonl"\neffect = "allow"\n'))
    assert suite.run()[0].failure


def test_a_suite_does_not_see_the_users_own_policies(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = tmp_path / ".config/policyd/policies.d"
    own.mkdir(parents=True)
    (own / "deny.toml").write_text('version = 1\n[[rule]]\neffect = "deny"\nkind = "*"\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["test", write(folder, '[[case]]\nrequest = "read a.txt"\neffect = "allow"\n')]) == 0


MISTAKES = [
    (
        "a misspelt key",
        '[[case]]\nreqest = "read a"\neffect = "deny"\n',
        "p_test.toml:7: unknown key `reqest`; write `req",
    ),
    (
        "a wrong type",
        '[[case]]\nrequest = 3\neffect = "deny"\n',
        "p_test.toml:7: `request` is the number 3; write a text",
    ),
    (
        "in a table",
        '[session]\ncwdd = "/x"\n[[case]]\nrequest = "read a"\neffect = "deny"',
        ":7: unknown key `cwdd`; write `c",
    ),
    (
        "no such kind",
        '[[case]]\nrequest = ["read a", "reed a"]\neffect = "ask"\n',
        '"reed a" does not begin with a kind',
    ),
    (
        "no such field",
        '[[case]]\nrequest = { comand = "x" }\neffect = "ask"\n',
        "unknown key `comand`; write `command`",
    ),
    ("no request", '[[case]]\neffect = "deny"\n', "`request` or `transcript`"),
    ("no such effect", '[[case]]\nrequest = "read a"\neffect = "block"\n', "effect"),
    ("no case", "", "case"),
    ("too deep", f"case = {'[' * 5000}", "recursion"),
    ("too large a number", f"case = {'9' * 5000}", "digits"),
    ("no such transcript", '[[case]]\ntranscript = "gone.jsonl"\neffect = "deny"\n', "gone.jsonl"),
]


@pytest.mark.parametrize(("name", "cases", "words"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_a_mistake_in_a_suite_is_an_error_not_a_failure(folder: Path, name: str, cases: str, words: str) -> None:
    with pytest.raises(SuiteError, match=words):
        read(write(folder, cases))
    assert main(["test", str(folder)]) == 2


def test_a_mistake_in_a_policy_is_an_error(folder: Path) -> None:
    (folder / "p.toml").write_text('[[rule]]\nefect = "deny"\n')
    assert main(["test", write(folder, '[[case]]\nrequest = "read a"\neffect = "deny"\n')]) == 2


def test_what_is_no_plain_file_keeps_nobody_waiting(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(folder / "pipe_test.toml")
    (folder / "zero.toml").symlink_to("/dev/zero")
    case = '[[case]]\nrequest = "read a"\neffect = "deny"\n'
    (folder / "zero_test.toml").write_text(f'policies = ["zero.toml"]\n{case}')
    assert main(["test", str(folder)]) == 2
    said = capsys.readouterr().err
    assert "it is a FIFO, not a plain file" in said and "zero.toml: it is a device, not a plain file" in said


def test_no_suite_at_all_is_an_error(tmp_path: Path) -> None:
    assert main(["test", str(tmp_path)]) == 2


def test_junit_counts_and_names_failures(folder: Path) -> None:
    write(folder, '[[case]]\nname = "env"\nrequest = ["read .env", "read a.txt"]\neffect = "deny"\n')
    assert main(["test", str(folder), "--junit", str(folder / "out.xml")]) == 1
    suite = ElementTree.parse(folder / "out.xml").getroot()[0]  # noqa: S314
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [case.get("name") for case in suite if len(case)] == ["env: read a.txt"]


def test_the_report_of_an_earlier_run_does_not_outlive_a_run_that_ended_in_a_mistake(folder: Path) -> None:
    report = folder / "out.xml"
    report.write_text("<testsuites><testsuite failures='0'/></testsuites>")
    assert main(["test", str(folder), "--junit", str(report)]) == 2
    assert [suite.get("errors") for suite in ElementTree.parse(report).getroot()] == ["1"]  # noqa: S314
    write(folder, '[[case]]\nrequest = "read .env"\nefect = "deny"\n')
    assert main(["test", str(folder), "--junit", str(report)]) == 2
    root = ElementTree.parse(report).getroot()  # noqa: S314
    assert [error.get("message") for error in root.iter("error") if "efect" in str(error.get("message"))]


def test_a_described_disk_is_walked_as_a_kernel_would() -> None:
    tree = Tree({"/w/a/f": ""}, {"/w/l": "/w/a", "/w/loop": "loop"}, "/home")
    assert tree.resolve("/w/l/../x") == "/w/x"
    assert tree.resolve("/w/l/f") == "/w/a/f"
    assert tree.contains("/w", ("f",)) is True
    assert tree.contains("/w", ("g",)) is False
    with pytest.raises(OSError, match="too many links"):
        tree.resolve("/w/loop/x")
