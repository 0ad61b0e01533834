"""`policyd doctor`: names what is not under policy, what an agent does unasked, and who could change policyd itself."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from policyd.actions import profiles
from policyd.cli import advice, inforce, jsonc
from policyd.cli.doctor import agentfacts, tiers, wrapped
from policyd.cli.doctor.wrapped import Entry
from policyd.prompts import clients
from tests.commandline import policyd

ROOT = Path(__file__).parent.parent
DATA = Path(__file__).parent / "data/clients"
CASES: list[dict[str, Any]] = tomllib.loads((DATA / "cases.toml").read_text())["case"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    for name in ("policyd", "claude-agent-acp", "python3"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path / "home"


def put(case: dict[str, Any], home: Path) -> Path:
    """Write a case's settings file where its client reads it."""
    where = {"zed": home / ".config/zed/settings.json", "jetbrains": home / ".jetbrains/acp.json"}
    where |= {"acpx": home / ".acpx/config.json", "project": home.parent / "work/.acpxrc.json"}
    path = where[case["place"]]
    path.parent.mkdir(parents=True, exist_ok=True)
    text = (DATA / case["file"]).read_text()
    path.write_text(text.replace("@BIN@", str(home.parent)))
    return path


def entries(home: Path) -> list[Entry]:
    found = (
        wrapped.look(place) for place in wrapped.places(str(home), str(home.parent / "work"), str(home / ".config"))
    )
    return [entry for each in found if each for entry in each]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_each_agent_that_is_not_wrapped_is_named(case: dict[str, Any], home: Path) -> None:
    path = put(case, home)
    found = {entry.name: entry.problem for entry in entries(home)}
    assert found.keys() == case["agents"].keys()
    for name, words in case["agents"].items():
        assert bool(found[name]) == bool(words), f"{name}: {found[name]}"
        assert words in found[name]
    said = policyd("doctor", "--json", cwd=home.parent / "work", home=home)
    told = json.loads(said.stdout)
    assert told["clients"]["files"] == [str(path)]
    assert said.returncode == (1 if any(case["agents"].values()) else 0)
    assert len(told["problems"]) == sum(bool(words) for words in case["agents"].values())


def test_nothing_wrong_is_all_well(home: Path) -> None:
    said = policyd("doctor", cwd=home.parent / "work", home=home)
    assert said.returncode == 0
    unwrapped, last = said.stdout.splitlines()[-2:]
    assert "no settings found: `policyd init --client NAME`" in unwrapped, "that no agent is wrapped is told"
    assert last == "all well"


def test_a_settings_file_of_the_project_that_is_no_plain_one_keeps_nobody_waiting(home: Path) -> None:
    os.mkfifo(home.parent / "work/.acpxrc.json")
    (found,) = entries(home)
    assert "it is a FIFO, not a plain file" in found.problem


def test_a_broken_policy_is_to_mend(home: Path) -> None:
    path = home / ".config/policyd/policies.d/mine.toml"
    path.parent.mkdir(parents=True)
    path.write_text('version = 1\n[[rule]]\nefect = "allow"\n')
    said = policyd("doctor", cwd=home.parent / "work", home=home)
    assert said.returncode == 1
    assert f"mend  {path}:2" in said.stdout


def test_a_prompt_program_that_cannot_be_run_is_to_mend(home: Path) -> None:
    path = home / ".config/policyd/policyd.toml"
    path.parent.mkdir(parents=True)
    path.write_text('prompt = ["client", "command:/nowhere/hook"]\n')
    said = policyd("doctor", cwd=home.parent / "work", home=home)
    assert said.returncode == 1
    assert "mend  the prompt step `command:/nowhere/hook` cannot be run: it cannot be opened" in said.stdout


@pytest.mark.parametrize("command", ["doctor", "status"])
def test_a_rule_whose_example_does_not_come_out_is_to_mend(command: str, home: Path) -> None:
    path = home / ".config/policyd/policies.d/mine.toml"
    path.parent.mkdir(parents=True)
    path.write_text('version = 1\n[[rule]]\neffect = "allow"\ncommand = "git status"\nmatch = "execute git push"\n')
    said = policyd(command, cwd=home.parent / "work", home=home)
    assert said.returncode == 1
    assert f"{path}:5" in said.stdout and "does not match" in said.stdout


def test_an_unknown_client_is_a_usage_error(home: Path) -> None:
    said = policyd("doctor", "--client", "zedd", cwd=home.parent / "work", home=home)
    assert said.returncode == 2
    assert "zed" in said.stderr


@pytest.mark.parametrize("name", sorted(clients.shipped()))
def test_each_client_is_told_of(name: str, home: Path) -> None:
    said = policyd("doctor", "--client", name, cwd=home.parent / "work", home=home)
    assert said.returncode == 0
    assert f"client {name}" in said.stdout and "learns the session's mode from: response" in said.stdout


# ---- agents ----------------------------------------------------------------------------------------


@pytest.fixture
def state(home: Path) -> inforce.InForce:
    return inforce.gather(str(home.parent / "work"), str(home), [])


def test_each_profile_has_advice_and_no_advice_is_without_a_profile() -> None:
    assert advice.shipped().keys() == profiles.shipped().keys()


@pytest.mark.parametrize("name", sorted(profiles.shipped()))
def test_each_agent_says_what_it_asks_and_what_it_does_unasked(name: str, state: inforce.InForce) -> None:
    facts = agentfacts.facts(name, state)
    data = profiles.shipped()[name].data
    assert facts.asked and facts.never_asked == data.mode.never_asked
    assert all(file.wanted for file in advice.of(name).file)
    if data.mode.door != "none":
        assert f"`{data.mode.asking}`" in facts.mode
    assert set(data.mode.unsafe) <= set(facts.unsafe)
    assert json.dumps(to_builtins(facts))


def test_an_agent_is_known_by_its_wire_name_too(state: inforce.InForce) -> None:
    facts = agentfacts.facts("gemini-cli", state)
    assert facts.name == "gemini"
    assert facts.problems == []


def test_an_agent_that_never_asks_is_to_mend(state: inforce.InForce) -> None:
    assert "cannot hold it back" in agentfacts.facts("gptme", state).problems[0]


def test_nothing_is_claimed_of_an_agent_nobody_described(home: Path) -> None:
    said = policyd("doctor", "--agent", "strange", "--json", cwd=home.parent / "work", home=home)
    assert said.returncode == 1
    told = json.loads(said.stdout)["agent"]
    assert {told[key] for key in ("fs_write", "statuses")} == {"unknown"}
    assert told["refusal"].startswith("unknown; where it offers no way to reject")


def test_opencode_is_to_mend_until_its_own_settings_make_it_ask(home: Path) -> None:
    work = home.parent / "work"
    assert policyd("doctor", "--agent", "opencode", cwd=work, home=home).returncode == 1
    assert policyd("init", "--agent", "opencode", "--write", cwd=work, home=home).returncode == 0
    said = policyd("doctor", "--agent", "opencode", cwd=work, home=home)
    assert said.returncode == 0
    assert "opencode.json (set)" in said.stdout


def test_an_agents_settings_may_have_comments(home: Path) -> None:
    path = home / ".config/opencode/opencode.jsonc"
    path.parent.mkdir(parents=True)
    path.write_text('{ "permission": { "*": "ask", }, } // everything')
    work = home.parent / "work"
    assert policyd("doctor", "--agent", "opencode", cwd=work, home=home).returncode == 0
    said = policyd("init", "--agent", "opencode", "--write", cwd=work, home=home)
    assert said.returncode == 2 and "opencode.jsonc exists" in said.stderr
    path.write_text("{")
    said = policyd("doctor", "--agent", "opencode", cwd=work, home=home)
    assert said.returncode == 1 and f"{path} cannot be read" in said.stdout


def test_an_agent_whose_mode_is_left_alone_is_to_mend(home: Path) -> None:
    (home / ".config/policyd").mkdir(parents=True)
    (home / ".config/policyd/policyd.toml").write_text('agent_mode = "off"\n')
    said = policyd("doctor", "--agent", "claude", cwd=home.parent / "work", home=home)
    assert said.returncode == 1
    assert "leaves its mode alone" in said.stdout


# ---- tiers -----------------------------------------------------------------------------------------


def test_what_the_user_could_change_is_named(state: inforce.InForce) -> None:
    os.makedirs(state.places.cache)
    parts = {part.what: part for part in tiers.tier(state).parts}
    assert parts["program"].path == str(ROOT / "policyd")
    assert parts["interpreter"].path == sys.executable
    assert parts["cache"].why, "what was read of a user's policies counts as they do"
    assert parts["program"].why == tiers.changeable(str(ROOT / "policyd"))


def test_who_could_answer_for_a_person_is_named(state: inforce.InForce, tmp_path: Path) -> None:
    assert state.loaded is not None
    hook = tmp_path / "hook"
    hook.touch()
    os.makedirs(state.places.inbox)
    settings = replace(state.loaded.settings, prompt=("client", f"command:{hook}", "inbox"))
    state.loaded = replace(state.loaded, settings=settings)
    parts = {part.what: part.path for part in tiers.tier(state).parts}
    assert (parts["prompt"], parts["inbox"]) == (str(hook), state.places.inbox)


def test_a_file_of_ones_own_could_be_changed(home: Path) -> None:
    assert tiers.changeable(str(home))


def fake(uid: int, mode: int) -> os.stat_result:
    return os.stat_result((mode, 0, 0, 1, uid, 0, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("mode", "writable", "below", "expected"),
    [
        (0o040755, False, None, ""),
        (0o040777, True, None, "you may write /x"),
        (0o041777, True, 4243, ""),
        (0o040777, True, 4243, "you may write /x"),
        (0o120777, True, None, ""),
    ],
    ids=["closed", "open", "sticky", "open-above", "link"],
)
def test_what_stands_open_is_told_by_owner_mode_and_access(
    mode: int, writable: bool, below: int | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    monkeypatch.setattr(os, "access", lambda path, how: writable)
    under = fake(below, 0o100644) if below is not None else None
    assert tiers.own(fake(4243, mode), "/x", under) == expected
    assert tiers.own(fake(4242, mode), "/x", under) != ""


def test_without_a_daemon_of_another_user_it_is_the_mediated_tier(state: inforce.InForce, tmp_path: Path) -> None:
    assert tiers.tier(state, str(tmp_path / "none.sock")).word == "mediated"


def test_a_socket_of_ones_own_isolates_nothing(state: inforce.InForce, tmp_path: Path) -> None:
    import socket

    path = str(tmp_path / "own.sock")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(path)
        assert tiers.tier(state, path).word == "mediated"


def test_a_daemon_of_another_user_isolates(
    state: inforce.InForce, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "foreign", lambda socket: True)
    assert tiers.tier(state, str(tmp_path)).word == "isolated"


# ---- JSON with comments ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1} // end', {"a": 1}),
        ('/* x */ {"a": "// no"}', {"a": "// no"}),
        ('{"a": [1, 2,], "b": {},}', {"a": [1, 2], "b": {}}),
        ('{"a": "\\"/*", "b": ",]"}', {"a": '"/*', "b": ",]"}),
        ('{"a": 1, // one\n}', {"a": 1}),
        ("[]", []),
    ],
)
def test_comments_and_trailing_commas_are_read_over(text: str, value: object) -> None:
    assert jsonc.loads(text) == value


@pytest.mark.parametrize("text", ["", "{", '"', "/*", "[,]", "{,}", "[1,,2]", "// only", "[" * 100_000])
def test_what_is_no_json_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        jsonc.loads(text)
