"""`policyd init`: what it prints can be pasted, and what it writes takes nothing from anybody."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyd.cli import advice, jsonc, main
from policyd.cli.doctor import wrapped
from policyd.cli.init import merging, programs, recipes
from policyd.cli.init.merging import MergeError
from policyd.cli.init.recipes import CLIENTS
from policyd.storage import places
from tests.commandline import policyd

WRITTEN = {"zed": ".config/zed/settings.json", "jetbrains": ".jetbrains/acp.json", "acpx": ".acpx/config.json"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """An agent that is a program of its own."""
    path = tmp_path / "some agent"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def init(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return policyd("init", *words, cwd=home, home=home)


# ---- clients ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_every_client_gets_absolute_programs_and_all_arguments(client: str, home: Path, agent: Path) -> None:
    said = init(home, "--client", client, "--agent", "claude", "--", str(agent), "--acp", "--model=x y")
    assert said.returncode == 0, said.stderr
    for word in (*programs.policyd(), str(agent), "--acp", "--model=x y"):
        assert word in said.stdout or shlex.quote(word) in said.stdout
    assert said.stderr.count("policyd init: ") >= 1


@pytest.mark.parametrize("client", sorted(WRITTEN))
def test_what_is_written_is_what_doctor_calls_wrapped(client: str, home: Path, agent: Path) -> None:
    said = init(home, "--client", client, "--agent", "codex", "--write", "--", str(agent))
    assert said.returncode == 0, said.stderr
    assert (home / WRITTEN[client]).exists()
    told = json.loads(policyd("doctor", "--client", client, "--json", cwd=home, home=home).stdout)
    assert [entry["problem"] for entry in told["clients"]["agents"]] == [""]


@pytest.mark.parametrize("client", sorted(CLIENTS.keys() - WRITTEN.keys()))
def test_what_is_a_program_is_not_written(client: str, home: Path, agent: Path) -> None:
    before = sorted(home.rglob("*"))
    said = init(home, "--client", client, "--write", "--", str(agent))
    assert said.returncode == 2
    assert "not written" in said.stderr
    assert str(agent) in said.stdout
    assert sorted(home.rglob("*")) == before


def test_an_agent_that_is_not_there_is_named_and_nothing_is_written(home: Path) -> None:
    said = init(home, "--client", "acpx", "--write", "--", "no-such-agent")
    assert said.returncode == 2
    assert said.stderr.count("`no-such-agent` was not found on PATH: install it, or write its absolute path") == 1
    assert not (home / ".acpx").exists()
    said = init(home, "--client", "acpx", "--", "/no/such/agent")
    assert "`/no/such/agent` is no program that can be run" in said.stderr


def test_acpx_is_told_of_the_only_right_pair(home: Path, agent: Path) -> None:
    said = init(home, "--client", "acpx", "--", str(agent))
    assert json.loads(said.stdout)["agents"]["some agent"]["argv"][-4:] == ["--prompt", "none", "--", str(agent)]
    assert "--approve-all" in said.stderr and "Any other pair is wrong" in said.stderr


def test_avante_is_named_to_policyd(home: Path, agent: Path) -> None:
    assert '"--client",\n        "avante",' in init(home, "--client", "avante", "--", str(agent)).stdout


def test_zed_keeps_its_own_key_for_gemini(home: Path, agent: Path) -> None:
    said = init(home, "--client", "zed", "--agent", "gemini", "--", str(agent), "--acp")
    assert list(json.loads(said.stdout)["agent_servers"]) == ["gemini"]


@pytest.mark.parametrize(
    "words", [["--client", "zed"], ["--client", "emacs", "--agent", "claude"], ["--agent", "claud"]]
)
def test_what_is_not_known_is_a_usage_error(words: list[str], home: Path) -> None:
    assert init(home, *words).returncode == 2


@pytest.mark.parametrize("client", ["zed", "jetbrains", "acpx"])
@pytest.mark.parametrize("agent_name", sorted(advice.shipped()))
def test_each_recipe_is_wrapped_whatever_the_agent(client: str, agent_name: str) -> None:
    made = CLIENTS[client](advice.of(agent_name), agent_name, ["/bin/policyd"], ["/bin/sh", "--acp"])
    (servers,) = json.loads(made.text).values()
    (entry,) = servers.values()
    words = wrapped.spelled(entry)
    assert wrapped.behind_policyd(words) is not None
    assert words[-3:] == ("--", "/bin/sh", "--acp")


LUA_TEXT = st.text(st.characters(min_codepoint=0, max_codepoint=0x2FF))


def lua_value(quoted: str) -> str:
    """Read a Lua string as Lua does."""
    text, at = "", 1
    while at < len(quoted) - 1:
        if quoted[at] != "\\":
            text, at = text + quoted[at], at + 1
        elif quoted[at + 1].isdigit():
            text, at = text + chr(int(quoted[at + 1 : at + 4])), at + 4
        else:
            text, at = text + quoted[at + 1], at + 2
    return text


@given(LUA_TEXT)
def test_any_word_survives_lua(text: str) -> None:
    quoted = recipes.lua(text)
    assert quoted[0] == quoted[-1] == '"' and "\n" not in quoted
    assert lua_value(quoted) == text


def test_a_script_is_started_by_its_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("node", "#!/bin/sh\n"), ("agent", "#!/usr/bin/env node\n"), ("plain", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert programs.absolute(["agent", "--acp"]) == ([f"{tmp_path}/node", f"{tmp_path}/agent", "--acp"], "")
    assert programs.absolute(["plain"]) == ([f"{tmp_path}/plain"], "")
    (tmp_path / "node").unlink()
    assert "needs `node`" in programs.absolute(["agent"])[1]


# ---- agents ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(advice.shipped()))
def test_each_agent_is_told_of(name: str, home: Path) -> None:
    said = init(home, "--agent", name)
    assert said.returncode == 0
    assert all(file.text.strip() in said.stdout for file in advice.of(name).file)


def test_claude_asks_for_everything_and_loses_the_modes_that_do_not(home: Path) -> None:
    path = home / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text('{"model": "opus", "permissions": {"ask": ["WebFetch"], "deny": ["Read(./.env)"]}}')
    assert init(home, "--agent", "claude", "--write").returncode == 0
    settings = json.loads(path.read_text())
    assert settings["model"] == "opus"
    assert settings["permissions"]["ask"] == ["WebFetch", "Read", "Bash", "Edit", "Write"]
    assert settings["permissions"]["deny"] == ["Read(./.env)"]
    assert settings["permissions"]["disableBypassPermissionsMode"] == "disable"
    assert json.loads((home / ".claude/settings.json.before-policyd").read_text())["permissions"]["ask"] == ["WebFetch"]


def test_what_is_roots_is_printed(home: Path) -> None:
    said = init(home, "--agent", "codex", "--write")
    assert said.returncode == 2
    assert tomllib.loads(said.stdout)["allowed_approvals_reviewers"] == ["user"]
    assert "/etc/codex/requirements.toml" in said.stderr


def test_an_agent_that_is_not_there_is_told_how_it_is_installed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    said = init(home, "--client", "zed", "--agent", "claude", "--write")
    assert said.returncode == 2
    assert "install it (`npm install -g @agentclientprotocol/claude-agent-acp`)" in said.stderr


def test_a_misspelt_agent_is_told_which_is_meant(home: Path) -> None:
    assert "did you mean `claude`? write one of agentao, " in init(home, "--agent", "Claud").stderr


# ---- writing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"agents": {"claude": {"argv": ["/opt/mine"]}}}',
        '{"agents": {"claude": {"command": "/opt/mine"}}}',
        '{"agents": ["claude"]}',
        '{"agents": {}} // a comment',
        '{"agents": {}, "agents": {}}',
        "[]",
        "",
        "nonsense",
    ],
)
def test_what_is_there_is_never_changed(text: str, home: Path, agent: Path) -> None:
    path = home / ".acpx/config.json"
    path.parent.mkdir()
    path.write_text(text)
    said = init(home, "--client", "acpx", "--agent", "claude", "--write", "--", str(agent))
    assert said.returncode == 2
    assert "not written" in said.stderr
    assert ("add the text above yourself" in said.stderr) is (text in {"", "nonsense"} or "}," in text or "//" in text)
    assert path.read_text() == text
    assert sorted(each.name for each in path.parent.iterdir()) == ["config.json"]


ZED = """// Zed settings, as it writes them
{
  "theme": "One", // no "agent_servers": {
  "lsp": [{"agent_servers": {}}, "//"],
  /* { */ "agent_servers": {
    // mine
    "mine": { "command": "/opt/mine", },
  },
}
"""


@pytest.mark.parametrize(
    "text",
    [ZED, "{} // empty", '{"agent_servers": {/* none */}, }', '// x\n{"a": 1}', '\ufeff{ // x\r\n "a": "\\"{",\r\n}'],
)
def test_an_entry_is_added_to_settings_with_comments_and_nothing_else_changes(
    text: str, home: Path, agent: Path
) -> None:
    path = home / ".config/zed/settings.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode())
    for name in ("claude", "codex"):
        assert init(home, "--client", "zed", "--agent", name, "--write", "--", str(agent)).returncode == 0
    said = init(home, "--client", "zed", "--agent", "codex", "--write", "--", str(agent))
    assert "has these settings already" in said.stdout
    new = path.read_bytes().decode()
    added = iter(new)
    assert all(char in added for char in text)
    table: Any = jsonc.loads(new.removeprefix("\ufeff"))
    assert {"Claude (policyd)", "Codex (policyd)"} <= table["agent_servers"].keys()
    for name in ("Claude (policyd)", "Codex (policyd)"):
        del table["agent_servers"][name]
    before: Any = jsonc.loads(text.removeprefix("\ufeff"))
    assert {"agent_servers": {}} | before == table
    assert (home / ".config/zed/settings.json.before-policyd").read_bytes() == text.encode()


@pytest.mark.parametrize(
    "text",
    [
        '{"agent_servers": {"Claude (policyd)": {"command": "/opt/mine"}}} // mine',
        '{"agent_servers": []} // none',
        '{"agent_servers": {}, "agent_servers": {}} // twice',
        '{"a": 1 // open',
        "[] // none",
    ],
)
def test_settings_with_comments_that_would_have_to_change_stay(text: str, home: Path, agent: Path) -> None:
    path = home / ".config/zed/settings.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    said = init(home, "--client", "zed", "--agent", "claude", "--write", "--", str(agent))
    assert said.returncode == 2 and "not written" in said.stderr
    assert path.read_text() == text


def test_other_entries_stay_and_the_old_file_is_kept(home: Path, agent: Path) -> None:
    path = home / ".acpx/config.json"
    path.parent.mkdir()
    old = '{"agents": {"mine": {"argv": ["/opt/mine"]}}, "ttl": 5}'
    path.write_text(old)
    path.chmod(0o640)
    assert init(home, "--client", "acpx", "--agent", "claude", "--write", "--", str(agent)).returncode == 0
    written = json.loads(path.read_text())
    assert written["ttl"] == 5 and written["agents"].keys() == {"mine", "claude"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert (home / ".acpx/config.json.before-policyd").read_text() == old


def test_writing_twice_changes_nothing(home: Path, agent: Path) -> None:
    words = ("--client", "jetbrains", "--agent", "claude", "--write", "--", str(agent))
    assert init(home, *words).returncode == 0
    before = (home / ".jetbrains/acp.json").read_bytes()
    said = init(home, *words)
    assert "has these settings already" in said.stdout
    assert (home / ".jetbrains/acp.json").read_bytes() == before
    assert len(list((home / ".jetbrains").iterdir())) == 1


def test_a_link_stays_a_link(home: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles/a.json").write_text("{}")
    (home / "a.json").symlink_to(tmp_path / "dotfiles/a.json")
    merging.merge_file(str(home / "a.json"), {"x": 1})
    assert (home / "a.json").is_symlink()
    assert json.loads((tmp_path / "dotfiles/a.json").read_text()) == {"x": 1}


def test_a_failed_write_leaves_the_file_as_it_was(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home / "a.json"
    path.write_text("{}")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="No space"):
        merging.merge_file(str(path), {"x": 1})
    assert path.read_text() == "{}"
    assert not list(home.glob(".policyd-*"))


def test_of_a_policy_that_cannot_be_written_whole_nothing_stays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: int) -> None:
        raise OSError(28, "No space left on device")

    folder, fsync = home / ".config/policyd/policies.d", os.fsync
    monkeypatch.setattr(os, "fsync", fails)
    assert main(["init", "default", "--write", "--home", str(home)]) == 2
    assert [*folder.iterdir()] == []
    monkeypatch.setattr(os, "fsync", fsync)
    assert main(["init", "default", "--write", "--home", str(home)]) == 0
    assert [one.name for one in folder.iterdir()] == ["default.toml"]
    before = (folder / "default.toml").read_bytes()
    assert main(["init", "default", "--write", "--home", str(home)]) == 2
    assert (folder / "default.toml").read_bytes() == before and len([*folder.iterdir()]) == 1


KEYS = st.sampled_from(["a", "b", "command", "args"])
VALUES = st.recursive(
    st.integers(0, 3) | st.sampled_from(["x", "y"]) | st.lists(st.sampled_from(["p", "q"]), max_size=2),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
TABLES = st.dictionaries(KEYS, VALUES, max_size=3)


def kept(old: Any, new: Any) -> bool:
    """Say whether nothing of `old` is lost in `new`."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(key in new and kept(value, new[key]) for key, value in old.items())
    return new[: len(old)] == old if isinstance(old, list) and isinstance(new, list) else bool(old == new)


@given(TABLES, TABLES)
def test_merging_loses_nothing_of_either_or_does_nothing(current: dict[str, object], wanted: dict[str, object]) -> None:
    try:
        merged = merging.merge(current, wanted)
    except MergeError:
        return
    assert kept(current, merged)
    assert advice.absent(wanted, merged) == []
    assert merging.merge(merged, wanted) == merged


def test_a_starter_policy_is_printed_where_there_is_no_home(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none(**_: object) -> places.Places:
        raise places.PlaceError("no home directory is known")

    monkeypatch.setattr(places, "find", none)
    assert main(["init", "ci"]) == 0 and 'name     = "ci"' in capsys.readouterr().out
    assert main(["init", "ci", "--write"]) == 2
