"""`policyd grants`: what a person sees of grants and does to them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import tomllib
from datetime import timedelta
from pathlib import Path

import pytest

from policyd.cli import main, presence
from policyd.cli.grants import elsewhere
from policyd.grants import Grant, Key, dump
from policyd.grants import Project as About
from policyd.grants.grant import grant_id
from policyd.grants.rules import policy_text, unwritable
from policyd.model import Effect, Layer
from policyd.policy import PolicySource
from policyd.policy import load as load_policy
from policyd.storage import clock as clocks
from policyd.storage import places, policies, processes, sockets
from policyd.storage.grants import Remembered, files
from tests.asking import ASKED, fetch, grant, request
from tests.daemons import Daemon, scene


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory, and a project in which the command runs."""
    project = tmp_path / "home" / "project"
    project.mkdir(parents=True)
    monkeypatch.chdir(project)
    monkeypatch.setattr(presence, "refusal", lambda: "")
    return tmp_path / "home"


def policyd(home: Path, *words: str) -> int:
    """Run `policyd grants`."""
    return main(["grants", "--home", str(home), *words])


def listed(home: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    """The grants as JSON shows them."""
    capsys.readouterr()
    assert policyd(home, "list", "--json", *words) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def add(home: Path, *words: str) -> int:
    return policyd(home, "add", "--for", "30m", "--agent", "claude", *words)


def test_no_answer_is_added_or_shown_as_longer_than_the_setting(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert policyd(home, "add", "--for", "30d", "--agent", "claude", "--", "ls") == 0
    place = home / ".config/policyd"
    place.mkdir(parents=True)
    (place / "policyd.toml").write_text("grants = { max_age = 7 }\n")
    assert policyd(home, "add", "--for", "8d", "--agent", "claude", "--", "ls") == 2
    assert "`grants.max_age` lets an answer last 7d at most" in capsys.readouterr().err
    (fact,) = listed(home, capsys)
    assert str(fact["until"])[:10] == (clocks.now().wall + timedelta(days=7)).isoformat()[:10]


def test_a_grant_is_added_listed_shown_and_revoked(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert add(home, "--", "npm", "run", "a b") == 0
    (fact,) = listed(home, capsys)
    assert fact["covers"] == "`npm run 'a b'` in this project"
    assert (fact["effect"], fact["agent"], fact["by"], fact["holds"]) == ("allow", "claude", "cli", True)
    assert fact["rules"] == [{"kind": ["execute"], "command": "npm run 'a b'", "cwd": ["."]}]
    assert policyd(home, "show", str(fact["id"])) == 0
    assert "npm run 'a b'" in capsys.readouterr().out
    assert policyd(home, "revoke", str(fact["id"])[:6]) == 0
    assert "revoked" in capsys.readouterr().out
    assert listed(home, capsys) == []
    assert policyd(home, "revoke", str(fact["id"])) == 1


def test_the_table_shows_answer_reach_and_end(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert policyd(home, "list") == 0
    assert "nothing is remembered for this project" in capsys.readouterr().out
    add(home, "--", "npm", "test")
    add(home, "--deny", "--", "git", "push")
    capsys.readouterr()
    assert policyd(home, "list", "--all") == 0
    out = capsys.readouterr().out
    for text in ("allow", "deny", "`npm test` in this project", "29m", "claude", str(home / "project")):
        assert text in out
    assert "\x1b" not in out, "no colours where nobody sees them"


def test_colour_changes_no_column(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add(home, "--", "npm", "test")
    add(home, "--deny", "--", "make")
    said = []
    for wanted in ("never", "always"):
        monkeypatch.setenv("POLICYD_COLOR", wanted)
        capsys.readouterr()
        policyd(home, "list")
        said.append(capsys.readouterr().out)
    assert "\x1b[32mallow" in said[1] and "\x1b[31mdeny" in said[1]
    assert re.sub(r"\x1b\[\d+m", "", said[1]) == said[0]


def test_all_things_that_can_be_named_can_be_added(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert add(home, "--path", "src/a.py", "--kind", "edit") == 0
    assert add(home, "--tool", "jira/get") == 0
    assert add(home, "--in", "sub", "--", "make") == 0
    rules = [fact["rules"] for fact in listed(home, capsys)]
    assert rules == [
        [{"kind": ["edit"], "path": ["src/a.py"]}],
        [{"kind": ["other"], "tool": ["jira/get"]}],
        [{"kind": ["execute"], "command": "make", "cwd": ["sub"]}],
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["--for", "30m", "--agent", "a"],
        ["--for", "30m", "--agent", "a", "--tool", "jira"],
        ["--for", "30m", "--agent", "a", "--tool", "a/b/c"],
        ["--for", "30m", "--agent", "a", "--tool", "a/b", "--", "ls"],
    ],
)
def test_what_names_nothing_or_two_things_is_refused(home: Path, words: list[str]) -> None:
    assert policyd(home, "add", *words) == 2


@pytest.mark.parametrize("life", ["", "30", "0m", "31d", "-5m", "1y", "9999999d", "m"])
def test_a_life_is_at_most_thirty_days(home: Path, life: str) -> None:
    with pytest.raises(SystemExit):
        policyd(home, "add", "--for", life, "--agent", "a", "--", "ls")


def test_an_agent_cannot_add_or_promote_for_itself(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(presence, "refusal", lambda: "no person")
    assert add(home, "--", "npm", "test") == 2
    assert add(home, "--deny", "--", "npm", "test") == 0, "a denial only tightens"
    assert policyd(home, "promote", "g-1234") == 2
    assert listed(home, capsys)[0]["effect"] == "deny"


def test_without_a_terminal_nobody_is_there() -> None:
    words = [sys.executable, "-c", "from policyd.cli.presence import refusal; print(refusal())"]
    said = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, start_new_session=True, check=True
    )
    assert "terminal" in said.stdout


def test_below_more_processes_than_are_looked_at_nobody_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = {pid: (pid - 1, ["sh"]) for pid in range(3, 1000)} | {2: (1, ["policyd", "proxy", "--", "a"])}
    monkeypatch.setattr(presence, "has_terminal", lambda: True)
    monkeypatch.setattr(presence, "process", lambda pid: chain[pid])
    for depth, why in ((3, "an agent"), (50, "an agent"), (200, "too many"), (900, "too many")):
        monkeypatch.setattr(os, "getpid", lambda depth=depth: depth)
        assert why in presence.refusal(), depth


def test_a_descendant_of_a_proxy_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "has_terminal", lambda: True)
    assert os.getppid() <= 1 or presence._ancestors(os.getppid())
    monkeypatch.setattr(presence, "_ancestors", lambda pid: [["bash"], ["policyd", "proxy", "--", "a"]])
    assert "an agent under policyd" in presence.refusal()
    monkeypatch.setattr(processes, "PROC", "/nowhere")
    monkeypatch.setattr(sys, "platform", "linux")
    assert "cannot be determined" in presence.refusal()


def test_grants_of_an_agent_or_of_all_projects_are_revoked(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(home, "--", "a")
    policyd(home, "add", "--for", "1h", "--agent", "codex", "--", "b")
    other = home / "other"
    other.mkdir()
    add(home, "--cwd", str(other), "--", "c")
    assert len(listed(home, capsys)) == 2
    assert len(listed(home, capsys, "--all")) == 3
    assert policyd(home, "revoke") == 2
    assert policyd(home, "revoke", "--agent", "codex") == 0
    assert [fact["agent"] for fact in listed(home, capsys, "--all")] == ["claude", "claude"]
    assert policyd(home, "revoke", "--all", "--everywhere") == 0
    assert listed(home, capsys, "--all") == []


def test_a_remembered_no_is_taken_back_by_a_person_only(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add(home, "--", "npm", "test")
    add(home, "--deny", "--", "git", "push")
    monkeypatch.setattr(presence, "refusal", lambda: "no person")
    capsys.readouterr()
    assert policyd(home, "revoke", "--all") == 2
    said = capsys.readouterr()
    assert "npm test" in said.out and "git push" not in said.out
    (stays,) = listed(home, capsys)
    assert stays["effect"] == "deny" and str(stays["id"]) in said.err
    assert policyd(home, "revoke", str(stays["id"])) == 2
    monkeypatch.setattr(presence, "refusal", lambda: "")
    assert policyd(home, "revoke", str(stays["id"])) == 0
    assert listed(home, capsys) == []


def test_what_does_not_count_at_the_moment_is_revoked_all_the_same(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project, aside = home / "project", home / "aside"
    add(home, "--", "npm", "test")
    project.rename(aside)
    project.mkdir()
    assert listed(home, capsys, "--cwd", str(project)) == [], "another directory lies there"
    assert policyd(home, "revoke", "--all", "--cwd", str(project)) == 0
    project.rmdir()
    aside.rename(project)
    assert listed(home, capsys, "--cwd", str(project)) == []


def test_prune_leaves_out_what_is_over_and_projects_that_are_gone(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(home, "--", "a")
    other = home / "other"
    other.mkdir()
    add(home, "--cwd", str(other), "--", "b")
    other.rmdir()
    assert policyd(home, "prune") == 0
    assert "1 grant left out" in capsys.readouterr().out
    assert len(listed(home, capsys, "--all")) == 1
    assert len(files(str(home / ".local/state/policyd/grants"))) == 1, "nothing stays of the project that is gone"


def test_prune_takes_no_remembered_no_back(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project, aside = home / "other", home / "aside"
    project.mkdir()
    add(home, "--cwd", str(project), "--deny", "--", "b")
    add(home, "--cwd", str(project), "--", "c")
    project.rename(aside)
    assert policyd(home, "prune") == 0
    aside.rename(project)
    assert [one["effect"] for one in listed(home, capsys, "--cwd", str(project))] == ["deny"]


def test_a_damaged_file_is_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(home, "--", "a")
    (file,) = files(str(home / ".local/state/policyd/grants"))
    path = Path(file.path)
    path.write_text(path.read_text("utf-8").replace('command = "a"', 'command = "a **"'), "utf-8")
    assert policyd(home, "list") == 0
    said = capsys.readouterr()
    assert "nothing is remembered" in said.out
    assert "damaged" in said.err


def test_text_in_a_grant_is_safe_on_a_terminal(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(home, "--", "echo", "\x1b[2J\u202e", "[red]x[/red]")
    assert policyd(home, "list") == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "[red]" in out


def test_promoted_grants_are_project_rules_that_need_trust(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(home, "--", "npm", "test")
    add(home, "--", "npm", "run", "*")
    ids = [str(fact["id"]) for fact in listed(home, capsys)]
    assert policyd(home, "promote", *ids) == 0
    assert "policyd trust" in capsys.readouterr().out
    data = (home / "project/.policyd/promoted.toml").read_bytes()
    source = PolicySource("promoted.toml", data, Layer.PROJECT, trusted=True, root=str(home / "project"))
    policy = load_policy([source], home=str(home), tmpdir="/tmp", version="0.1.0")
    assert [rule.ref.id for rule in policy.rules] == ids
    add(home, "--", "make")
    new = str(listed(home, capsys)[-1]["id"])
    assert policyd(home, "promote", new) == 0
    assert len(tomllib.loads((home / "project/.policyd/promoted.toml").read_text("utf-8"))["rule"]) == 3
    assert policyd(home, "promote", "g-nothing") == 1


@pytest.mark.parametrize("linked", [".policyd", ".policyd/promoted.toml"])
@pytest.mark.parametrize("how", ["symbolic", "hard"])
def test_nothing_is_promoted_through_a_link(
    home: Path, linked: str, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = home / ".config/policyd/policies.d/promoted.toml"
    mine.parent.mkdir(parents=True)
    mine.write_text("version = 1\n")
    link = home / "project" / linked
    link.parent.mkdir(exist_ok=True)
    if how == "symbolic":
        link.symlink_to(mine if linked.endswith(".toml") else mine.parent)
    elif linked.endswith(".toml"):
        os.link(mine, link)
    else:
        pytest.skip("directories have no hard links")
    add(home, "--", "npm", "test")
    (fact,) = listed(home, capsys)
    assert policyd(home, "promote", str(fact["id"])) == 2
    assert "promoted.toml" in capsys.readouterr().err
    assert mine.read_text() == "version = 1\n"


def test_export_leaves_out_what_a_rule_would_widen(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(home, "--", "npm", "test")
    capsys.readouterr()
    assert policyd(home, "export") == 0
    table = tomllib.loads(capsys.readouterr().out)
    assert table["rule"][0]["command"] == "npm test"
    assert unwritable(grant(ASKED["a compound"]))
    assert unwritable(grant(ASKED["a tool"]))
    assert policy_text([grant(ASKED["a compound"])]) == "version = 1\n"


def test_an_exported_rule_acts_on_no_terminal(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(home, "--", "npm", "run", "a\x9b2J\u202eb")
    capsys.readouterr()
    assert policyd(home, "export") == 0
    text = capsys.readouterr().out
    assert text.isascii()
    assert tomllib.loads(text)["rule"][0]["command"] == "npm run 'a\x9b2J\u202eb'"


def test_an_exported_rule_loads_and_says_the_same_url() -> None:
    plain = request(fetch("docs.example", "/search?q=1"))
    text = policy_text([grant(plain, scope="project")])
    policy = load_policy(
        [PolicySource("x.toml", text.encode(), Layer.USER)], home="/home/dev", tmpdir="/tmp", version="0.1.0"
    )
    assert len(policy.rules) == 1
    assert tomllib.loads(text)["rule"][0]["url"][0].endswith("docs.example:443/search?q=1")
    assert "`*`" in unwritable(grant(request(fetch("docs.example", "/a*b")), scope="project"))


def test_the_command_is_understood_by_a_running_process_at_once(home: Path) -> None:
    kept = str(home / ".local/state/policyd/grants")
    process = Remembered(kept, "run")
    asking = ASKED["a command"]
    root = str(home / "project")
    assert process.book(root, clocks.now()).grants == ()
    add(home, "--", *(word.text for word in asking.actions[0].command.argv))  # type: ignore[union-attr]
    assert [one.effect for one in process.book(root, clocks.now()).grants] == [Effect.ALLOW]
    policyd(home, "revoke", "--all")
    assert process.book(root, clocks.now()).grants == ()


def test_a_list_in_plain_columns_imports_nothing_that_costs_more_than_it(tmp_path: Path) -> None:
    code = (
        "import sys; from policyd.cli import main; status = main(['grants', '--home', sys.argv[1], 'list']); "
        "print(status, *sys.modules.keys() & {'inspect', 'rich', 'typing_extensions', 'asyncio', 'pydantic'}); "
        "import typing_extensions"
    )
    said = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines()[-1] == "0"


def test_no_yes_is_remembered_where_a_lock_lets_none_count(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = PolicySource("company.toml", b'version = 1\n[lock]\nrefuse = ["grants"]\n', Layer.MANAGED)
    monkeypatch.setattr(policies, "managed", lambda _: policies.Found((lock,)))
    assert add(home, "--", "make") == 2
    assert "the managed policy refuses remembered answers" in capsys.readouterr().err
    assert add(home, "--deny", "--", "make") == 0, "a no only tightens"


@pytest.mark.slow
def test_ten_thousand_grants_are_listed_in_a_moment(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = clocks.now()
    members = [(Key(("execute",), "command", ("npm", str(number)), cwd=(".",)),) for number in range(10_000)]
    many = [
        Grant(
            id=grant_id(Effect.ALLOW, "project", "claude", one, ""),
            effect=Effect.ALLOW,
            scope="project",
            agent="claude",
            members=one,
            covers=f"`npm {number}` in this project",
            created=now.wall,
            until=now.wall + timedelta(days=1),
        )
        for number, one in enumerate(members)
    ]
    add(home, "--", "a")
    (file,) = files(str(home / ".local/state/policyd/grants"))
    file.change(lambda old: many)
    assert dump(many, About("/"), now.wall)
    begun = time.monotonic()
    assert len(listed(home, capsys)) == 10_000
    print(f"10 000 grants listed in {time.monotonic() - begun:.3f} s")


def refused(where: places.Places, ids: object) -> tuple[str, ...]:
    """A daemon that takes nothing back."""
    raise sockets.SocketError("a remembered no stays")


def test_what_another_users_daemon_remembers_is_seen_and_taken_back(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "daemon").mkdir()
    with Daemon(scene(tmp_path / "daemon")) as daemon:
        monkeypatch.setattr(elsewhere, "daemon", lambda where: daemon.path)
        theirs = daemon.scene.root / "home"
        for command in ("ls", "make", "rm"):
            assert add(theirs, "--", command) == 0
        capsys.readouterr()
        assert policyd(home, "list") == 0
        out = capsys.readouterr().out
        assert out.startswith("at the daemon:\n") and "`make` in this project" in out and "nothing" not in out
        first, second, third = listed(home, capsys)
        assert listed(home, capsys, "--cwd", str(tmp_path)) == []
        assert policyd(home, "revoke", str(first["id"])) == 0
        assert f"revoked {first['id']} at the daemon" in capsys.readouterr().out
        assert policyd(home, "revoke", str(first["id"])) == 1
        assert policyd(home, "revoke", "--agent", "codex") == 0 and len(listed(home, capsys)) == 2
        assert policyd(home, "revoke", str(second["id"])[:8], "g-0000") == 1
        assert [row["id"] for row in listed(home, capsys)] == [third["id"]]
        assert policyd(home, "revoke", "--all") == 0
        assert listed(theirs, capsys) == []
        assert add(theirs, "--deny", "--", "rm") == add(home, "--", "ls") == 0
        monkeypatch.setattr(elsewhere, "revoke", refused)
        assert policyd(home, "revoke", "--all") == 2
        assert [row["effect"] for row in listed(home, capsys)] == ["deny"]


@pytest.mark.parametrize(("more", "found"), [(0, ""), (1, "/run/p.sock")])
def test_ones_own_daemon_keeps_its_grants_where_one_looks_anyway(
    home: Path, monkeypatch: pytest.MonkeyPatch, more: int, found: str
) -> None:
    monkeypatch.setattr(sockets, "find", lambda where, given=None: "/run/p.sock")
    monkeypatch.setattr(sockets, "owner", lambda path: os.getuid() + more)
    assert elsewhere.daemon(places.find(home=str(home))) == found
