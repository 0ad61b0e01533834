"""The small commands: init, status, trust, schema, and the front door."""

from __future__ import annotations

import itertools
import json
import os
import pty
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest

from policyd.cli import COMMANDS, inforce, overview, status, trust
from policyd.cli.init import presets
from policyd.model import Layer
from policyd.policy import PolicySource
from policyd.storage import places, policies
from policyd.storage.policies import Found
from policyd.storage.trust import read_project
from tests.commandline import policyd
from tests.rowwise import try_each

ROOT = Path(__file__).parent.parent
PROJECT = 'version = 1\n[[rule]]\nid = "make"\neffect = "allow"\ncommand = "make **"\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".policyd").mkdir(parents=True)
    (tmp_path / "project" / ".policyd" / "team.toml").write_text(PROJECT)
    return tmp_path / "project"


def test_help_lists_every_command(home: Path) -> None:
    said = policyd("help", cwd=home, home=home)
    assert said.returncode == 0
    assert said.stdout == overview() + "\n"
    assert all(f"  {name} " in said.stdout for name in COMMANDS)


def test_an_empty_home_is_told_where_to_begin(home: Path) -> None:
    assert "policyd init default --write" in policyd("status", cwd=home, home=home).stdout
    missing = policyd("status", "--policy", "gone.toml", cwd=home, home=home)
    assert missing.returncode == 1
    assert "gone.toml" in missing.stdout
    assert "no policy file" not in missing.stdout


def test_an_audit_log_that_cannot_be_written_is_told(home: Path) -> None:
    (home / ".config/policyd").mkdir(parents=True)
    (home / "file").write_text("")
    (home / ".config/policyd/policyd.toml").write_text(f'[audit]\npath = "{home}/file/below"\n')
    for command in ("status", "doctor"):
        said = policyd(command, cwd=home, home=home)
        assert said.returncode == 1
        assert f"{home}/file is no directory; every decision is refused" in said.stdout


def test_a_managed_directory_without_a_policy_is_a_mistake(home: Path) -> None:
    (home / "etc/policies.d").mkdir(parents=True)
    said = policyd("explain", "--example", "execute ls", "--managed", "etc", cwd=home, home=home)
    assert said.returncode == 2
    assert "name the directory that holds the *.toml files itself" in said.stderr


def test_a_managed_rule_is_said_to_be_the_administrators(home: Path) -> None:
    folder = ROOT / "policies/enterprise/managed"
    said = policyd("explain", "--example", "read .env", "--managed", str(folder), cwd=home, home=home)
    assert "managed:no-secrets, which is your administrator's" in said.stdout


def test_a_suite_with_unknown_keys_says_which_are_known(home: Path) -> None:
    (home / "a_test.toml").write_text('policies = ["a.toml"]\n[[case]]\nrequest = "execute ls"\nexpect = "ask"\n')
    said = policyd("test", cwd=home, home=home)
    assert said.returncode == 2
    assert "a_test.toml:2: no `effect`; write `effect = " in said.stderr
    assert "a_test.toml:4: unknown key `expect`; write `effect`" in said.stderr


def test_an_interrupted_command_says_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("policyd.cli.dispatch", interrupted)
    said = policyd("explain", cwd=home, home=home)
    assert (said.returncode, said.stdout, said.stderr) == (130, "", "")


def test_an_unknown_command_is_a_usage_error(home: Path) -> None:
    assert policyd("decid", cwd=home, home=home).returncode == 2
    assert policyd(cwd=home, home=home).returncode == 2


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"proxy"}))
def test_every_command_has_help(name: str, home: Path) -> None:
    said = policyd(name, "--help", cwd=home, home=home)
    assert said.returncode == 0
    assert f"policyd {name}" in said.stdout


@pytest.mark.parametrize("name", sorted(presets.PRESETS))
def test_init_writes_a_policy_that_is_then_in_force(name: str, home: Path) -> None:
    assert policyd("init", name, "--write", cwd=home, home=home).returncode == 0
    state = json.loads(policyd("status", "--json", cwd=home.parent / "elsewhere", home=home).stdout)
    assert state["holds"] is True
    assert [row["file"] for row in state["files"]] == [str(home / f".config/policyd/policies.d/{name}.toml")]
    assert state["names"][0]["name"] == name
    said = policyd("status", cwd=home.parent / "elsewhere", home=home).stdout
    assert f"named    {name}, its revision {state['names'][0]['revision']}\n" in said


def test_init_never_overwrites(home: Path) -> None:
    path = home / ".config/policyd/policies.d/ci.toml"
    path.parent.mkdir(parents=True)
    path.write_text("version = 1\n")
    assert policyd("init", "ci", "--write", cwd=home, home=home).returncode == 2
    assert path.read_text() == "version = 1\n"


def test_status_says_that_a_broken_policy_keeps_a_proxy_from_starting(home: Path, project: Path) -> None:
    path = home / ".config/policyd/policies.d/mine.toml"
    path.parent.mkdir(parents=True)
    path.write_text('version = 1\n[[rule]]\nefect = "allow"\n')
    said = policyd("status", cwd=project, home=home)
    assert said.returncode == 1
    assert "mine.toml:2" in said.stdout
    assert "would not start" in said.stdout


def test_status_says_of_a_project_that_cannot_be_read_that_everything_in_it_asks(home: Path, tmp_path: Path) -> None:
    (tmp_path / ".policyd").touch()
    said = policyd("status", cwd=tmp_path, home=home)
    assert said.returncode == 1
    assert said.stdout.count("it is no directory") == 1
    assert said.stdout.endswith("in force; in this project everything is at least ask\n")


def test_a_program_cannot_trust_a_project(home: Path, project: Path) -> None:
    said = policyd("trust", cwd=project, home=home)
    assert said.returncode == 2
    assert "terminal" in said.stderr
    assert policyd("trust", "--show", cwd=project, home=home).returncode == 1


def trust_on_a_terminal(project: Path, home: Path, answer: bytes) -> int:
    """Run `policyd trust` on a pseudo-terminal of its own and type `answer`."""
    pid, terminal = pty.fork()
    if pid == 0:
        env = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        os.chdir(project)
        os.execve(  # noqa: S606
            sys.executable, [sys.executable, "-m", "policyd", "trust"], env
        )
    os.write(terminal, answer)
    while True:
        try:
            if not os.read(terminal, 4096):
                break
        except OSError:
            break
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status)


def test_a_person_trusts_exactly_these_bytes(home: Path, project: Path) -> None:
    assert trust_on_a_terminal(project, home, b"n\n") == 1
    assert trust_on_a_terminal(project, home, b"\x04") == 1
    assert policyd("trust", "--show", cwd=project, home=home).returncode == 1
    assert trust_on_a_terminal(project, home, b"y\n") == 0
    assert policyd("trust", "--show", cwd=project, home=home).returncode == 0
    (project / ".policyd" / "team.toml").write_text(PROJECT + "\n")
    said = policyd("trust", "--show", cwd=project, home=home)
    assert said.returncode == 1
    assert "changed since" in said.stdout


def test_trust_is_taken_back_by_any_program(home: Path, project: Path) -> None:
    assert trust_on_a_terminal(project, home, b"y\n") == 0
    (project / ".policyd").chmod(0o777)  # and from what is not safe to read
    assert policyd("trust", "--remove", cwd=project, home=home).returncode == 0
    (project / ".policyd").chmod(0o755)
    assert policyd("trust", "--show", cwd=project, home=home).returncode == 1


@pytest.mark.parametrize(
    "text",
    ["nonsense = 1\n", 'version = 1\n[[rule]]\neffect = "deny"\ncommand = "rm"\nmatch = ["execute ls"]\n'],
    ids=["a mistake", "an example that does not come out"],
)
def test_a_project_with_a_mistake_is_not_trusted(home: Path, project: Path, text: str) -> None:
    (project / ".policyd" / "team.toml").write_text(text)
    assert trust_on_a_terminal(project, home, b"y\n") == 2


def test_a_home_directory_is_said_to_be_no_workspace(home: Path) -> None:
    assert policyd("init", "default", "--write", cwd=home, home=home).returncode == 0
    said = policyd("status", cwd=home, home=home).stdout
    assert f"`{home}` is the home directory: no workspace" in said and "here it only tightens" in said
    assert "policyd trust" not in said
    said = policyd("explain", "--example", "execute git status", cwd=home, home=home).stdout
    assert f"way out  work in a directory of its own: `{home}` is the home directory" in said
    assert "no workspace" not in policyd("status", cwd=home.parent / "elsewhere", home=home).stdout


LOCKED = PolicySource("company.toml", b'version = 1\n[lock]\nrefuse = ["project.allow"]\n', Layer.MANAGED)


@pytest.mark.parametrize("locked", [False, True])
def test_trust_and_status_promise_nothing_a_lock_takes_away(
    locked: bool, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "managed", lambda *_: Found((LOCKED,) if locked else ()))
    state = inforce.gather(str(project), str(home), [])
    (row,) = [row for row in inforce.layer_facts(state) if row["layer"] == "project"]
    lines, broken = trust.summary(state.places, read_project(str(project)))
    assert not broken
    assert ("these rules and defaults begin to allow: none" in "\n".join(lines)) is locked
    assert ("refuses allow rules of projects" in "\n".join(lines)) is locked
    assert ("`policyd trust` lets it allow" in status.trust_words(row, state)) is not locked


ALLOWING = {
    '[[rule]]\nid = "ls"\neffect = "allow"\ncommand = "ls"\n': "project:ls",
    '[defaults]\n"*" = "allow"\nread = "ask"\n': "project:defaults.*",
    '[defaults]\noutside = "allow"\n': "project:defaults.outside",
    '[[default]]\ntool = "jira/*"\neffect = "allow"\n': "project:team.toml:2",
    '[defaults]\nread = "deny"\n[[rule]]\neffect = "ask"\ncommand = "ls"\n': "none",
}


@pytest.mark.parametrize("text", ALLOWING)
@pytest.mark.parametrize("locked", [False, True])
def test_whoever_trusts_is_told_all_that_begins_to_allow(
    text: str, locked: bool, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "managed", lambda *_: Found((LOCKED,) if locked else ()))
    (project / ".policyd" / "team.toml").write_text(f"version = 1\n{text}")
    lines, _ = trust.summary(places.find(home=str(home)), read_project(str(project)))
    (said,) = (line for line in lines if "begin to allow" in line)
    assert said.endswith(f" allow: {'none' if locked else ALLOWING[text]}")


def test_the_schema_accepts_every_shipped_policy(home: Path) -> None:
    schema = json.loads(policyd("schema", cwd=home, home=home).stdout)
    paths = [path for path in (ROOT / "policies").rglob("*.toml") if not path.stem.endswith("_test")]
    try_each(lambda path: jsonschema.validate(tomllib.loads(path.read_text()), schema), [(path,) for path in paths])
    assert paths


def test_the_shipped_schema_is_the_one_that_is_printed(home: Path) -> None:
    shipped = json.loads((ROOT / "policies" / "policy.schema.json").read_text())
    assert shipped == json.loads(policyd("schema", cwd=home, home=home).stdout)


def test_a_written_policy_points_editors_at_a_schema_that_is_there(home: Path) -> None:
    assert policyd("init", "default", "--write", cwd=home, home=home).returncode == 0
    folder = home / ".config/policyd/policies.d"
    line = (folder / "default.toml").read_text().splitlines()[0]
    assert json.loads((folder / line.removeprefix("#:schema ")).read_text())["title"] == "PolicyFile"


def test_the_schema_refuses_a_misspelt_key(home: Path) -> None:
    schema = json.loads(policyd("schema", "policy", cwd=home, home=home).stdout)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"rule": [{"efect": "allow"}]}, schema)


def test_a_reader_that_has_enough_is_no_error_and_gets_no_answer(home: Path) -> None:
    for words, buffered in itertools.product((["schema"], ["status"], ["init", "default"], ["help"]), ("", "1")):
        reader, writer = os.pipe()
        os.close(reader)
        env = {**os.environ, "HOME": str(home), "PYTHONUNBUFFERED": buffered}
        command = [sys.executable, "-m", "policyd", *words]
        said = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=env)
        os.close(writer)
        assert (said.returncode, said.stderr) == (2, ""), words


def test_nothing_of_the_directory_it_runs_in_is_imported(home: Path, tmp_path: Path) -> None:
    """A repository, or an agent, puts what it likes there."""
    for name in ("msgspec", "secrets", "json", "argparse"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')\n")
    command = [sys.executable, "-m", "policyd", "status"]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={"HOME": str(home)})
    assert found.returncode == 0 and "in force" in found.stdout, found.stderr


@pytest.mark.parametrize(("closed", "said"), [("<", "must be open"), (">", "must be open"), ("2>", "")])
@pytest.mark.parametrize("command", ["--version", "proxy -- touch started"])
def test_with_a_standard_stream_closed_nothing_is_done(home: Path, command: str, closed: str, said: str) -> None:
    words = ["/bin/sh", "-c", f"{sys.executable} -m policyd {command} {closed}&-"]
    found = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env={"HOME": str(home)})
    assert found.returncode == 2 and said in found.stderr and "Traceback" not in found.stderr
    assert not (ROOT / "started").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a disk that is always full")
def test_what_could_not_be_written_was_not_told(home: Path) -> None:
    full = "No space left on device\n"
    for words, buffered, why in (
        (["status"], "", f"policyd: standard output: {full}"),
        ([], "", f"policyd: standard output: {full}"),
        ([], "1", f"policyd help: [Errno 28] {full}"),
    ):
        env = {**os.environ, "HOME": str(home), "PYTHONUNBUFFERED": buffered}
        with open("/dev/full", "w", encoding="utf-8") as out:
            command = [sys.executable, "-m", "policyd", *words]
            said = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=env)
        assert (said.returncode, said.stderr) == (2, why), words


def test_a_directory_that_is_gone_is_told_in_words(home: Path) -> None:
    gone = home / "gone"
    gone.mkdir()
    command = ["bash", "-c", f'rmdir {gone}; exec {sys.executable} -P -m policyd "$@"', "bash", "grants", "list"]
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT)}
    said = subprocess.run(command, capture_output=True, text=True, cwd=gone, env=env)
    assert (said.returncode, said.stderr) == (2, "policyd grants: the directory it runs in is gone\n")


def test_a_log_that_cannot_be_listed_is_told_in_words(home: Path) -> None:
    (home / ".local").mkdir()
    (home / ".local/state").write_text("in the way")
    said = policyd("audit", "stats", cwd=home, home=home)
    assert (said.returncode, said.stderr) == (
        2,
        f"policyd audit: {home}/.local/state/policyd/audit: Not a directory\n",
    )


def test_a_starter_that_cannot_be_written_is_told_in_words(home: Path) -> None:
    (home / ".config").write_text("in the way")
    said = policyd("init", "default", "--write", cwd=home, home=home)
    assert (said.returncode, said.stderr) == (2, f"policyd init: {home}/.config/policyd: Not a directory\n")


def test_the_manual_page_names_every_command_and_renders(home: Path) -> None:
    said = policyd("man", cwd=home, home=home)
    assert said.returncode == 0
    assert [name for name in COMMANDS if f"policyd {name}\n" not in said.stdout] == []
    assert "\\-\\-fail\\-on\\-reject" in said.stdout
    assert not [line for line in said.stdout.splitlines() if line.startswith("'")]
    assert said.stdout.isascii() and ".SH EXIT STATUS" in said.stdout
    assert ".B \\-\\-shell {bash,sh,zsh,powershell,cmd}" in said.stdout and ".B revoke\nforget grants" in said.stdout
