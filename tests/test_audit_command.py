"""`policyd audit`: what people see of the log, and what a pipe gets."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from policyd.cli import main
from policyd.cli.audit import show
from policyd.storage.auditlog import AuditLog

NOW = datetime.now(UTC)


def record(number: int, **fields: object) -> dict[str, object]:
    """Return a decision's record."""
    return {
        "schema": 1,
        "event": "decision",
        "time": (NOW - timedelta(hours=10 - number)).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "agent": {"name": "@x/claude", "profile": "claude"},
        "session": f"s{number % 2}",
        "title": f"run {number}",
        "effect": "deny" if number % 3 == 0 else "allow",
        "rules": [{"rule": "user:push", "file": "a.toml", "line": 3}],
        "reason": "ask first",
        "actions": [{"kind": "execute", "command": ["git", "push", "\x1b[2J"], "effect": "deny"}],
        "by": "policy",
        **fields,
    }


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of ten decisions and a reload."""
    path = tmp_path / "audit.jsonl"
    hand = AuditLog(str(path))
    for number in range(10):
        hand.append(record(number), NOW)
    hand.append({"event": "reload", "time": NOW.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "reason": "changed"}, NOW)
    return path


def run(*words: str) -> int:
    """Run the command as `policyd audit` would."""
    return main(["audit", *words])


def test_show_tells_what_was_decided_by_which_rule_without_touching_the_terminal(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("show", "--log", str(log), "-n", "2") == 0
    out = capsys.readouterr().out
    assert "DENY  claude  run 9" in out and "user:push (a.toml:3): ask first" in out and "RELOAD" in out
    assert "\x1b" not in out and "⟨U+001B⟩" in out


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"problems": ["the changed policy is not used: a.toml:2: wrong"]},
            "    the changed policy is not used: a.toml:2: wrong",
        ),
        ({"revision": "sha256:1", "loosens": False}, "    revision sha256:1\n"),
        ({"revision": "sha256:1", "loosens": True}, "    revision sha256:1, it may allow more than before\n"),
    ],
)
def test_show_tells_what_came_of_a_changed_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fields: dict[str, object], said: str
) -> None:
    path = tmp_path / "audit.jsonl"
    AuditLog(str(path)).append({"event": "reload", "time": "2026-11-30T01:02:03Z", **fields}, NOW)
    assert run("show", "--log", str(path)) == 0
    assert said in capsys.readouterr().out


def test_each_action_says_what_it_is_about() -> None:
    about = {"path": "/w/a.py", "url": "https://x.org/", "tool": "jira/get", "opaque": "`$X`", "command": ["make", "x"]}
    rows = [{"kind": "other", "effect": "ask", key: value} for key, value in about.items()]
    *_, path, url, tool, opaque, words = show.in_words(record(1, actions=rows))
    assert (path.split()[-1], url.split()[-1], tool.split()[-1]) == ("/w/a.py", "https://x.org/", "jira/get")
    assert opaque.endswith("not understood: `$X`") and words.endswith("make x")


FILTERS: tuple[tuple[tuple[str, ...], list[int | None]], ...] = (
    (("--effect", "deny"), [0, 3, 6, 9]),
    (("--session", "s1"), [1, 3, 5, 7, 9]),
    (("--rule", "push", "--effect", "deny", "-n", "1"), [9]),
    (("--rule", "user:other"), []),
    (("--kind", "execute", "-n", "2"), [8, 9]),
    (("--agent", "claude", "-n", "1"), [9]),
    (("--since", "90m"), [9, None]),
    (("--event", "reload"), [None]),
)


@pytest.mark.parametrize(("words", "numbers"), FILTERS)
def test_filters_narrow_what_is_shown(
    log: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], numbers: list[int | None]
) -> None:
    assert run("show", "--json", "--log", str(log.parent), *words) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [int(str(one["title"])[4:]) if "title" in one else None for one in shown] == numbers


def test_follow_prints_what_is_written_from_then_on(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = show.lines_as_they_come(str(log), 0.01)
    assert isinstance(lines, Generator)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.extend(next(lines) for _ in range(3)), daemon=True)
    reader.start()
    time.sleep(0.1)
    hand = AuditLog(str(log), rotate=log.stat().st_size + 10)
    for number in range(20, 23):
        hand.append(record(number), NOW)
    reader.join(5)
    lines.close()
    assert [json.loads(line)["title"] for line in found] == ["run 20", "run 21", "run 22"]


def test_verify_is_quiet_about_a_whole_log_and_names_the_line_of_a_changed_one(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("verify", "--log", str(log)) == 0
    log.write_bytes(log.read_bytes().replace(b"run 4", b"run 5"))
    assert run("verify", "--json", "--log", str(log)) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["line"] == 6


@pytest.mark.parametrize("what", ["show", "follow", "stats", "suggest", "verify"])
def test_a_log_in_force_that_is_no_file_keeps_nobody_waiting(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / ".local/state/policyd/audit"
    directory.mkdir(parents=True)
    os.mkfifo(directory / "audit.jsonl")
    assert run(what, "--home", str(tmp_path)) == 2
    assert "audit.jsonl is no plain file: what is recorded there cannot be read again" in capsys.readouterr().err


def test_without_a_log_the_command_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "--home", str(tmp_path)) == 2
    assert f"{tmp_path}/.local/state/policyd/audit/audit.jsonl" in capsys.readouterr().err
