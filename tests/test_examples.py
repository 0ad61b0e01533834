"""The examples work as their clients would use them: the file is read, its command started with the client's own
environment, and a session, a denial, a question and the end of input come out as policy says.

Where acpx and a Node for it are installed (`.ci/node`), it is driven for real.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from acp.transports import default_environment

from policyd.cli import advice
from policyd.cli.init.recipes import CLIENTS
from policyd.model import Layer
from policyd.policy import Diagnostic, PolicySource, load
from policyd.service.book import stated
from policyd.storage import settings
from policyd.storage.places import Places
from tests.agents.launch import MODULES, node
from tests.clienthouse import DESKTOP_PATH, EXAMPLES, ROOT, House, Talk, start

AT = "/usr/local/bin"
FILES = {
    "zed": "zed/settings.json",
    "jetbrains": "jetbrains/acp.json",
    "codecompanion": "codecompanion/codecompanion.lua",
    "avante": "avante/avante.lua",
    "toad": "toad/toad",
    "acpx": "acpx/config.json",
}


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_each_example_is_what_init_prints(client: str) -> None:
    made = CLIENTS[client](advice.of("claude"), "claude", [f"{AT}/policyd"], [f"{AT}/claude-agent-acp"]).text
    text = (EXAMPLES / FILES[client]).read_text()
    comments, body = text[: -len(made)], text[-len(made) :]
    assert body == made
    assert all(line.startswith(("//", "--", "#")) for line in comments.splitlines())


# ---- what each client makes of its file ------------------------------------------------------------

Launch = tuple[list[str], dict[str, str]]


def without_comment_lines(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("//"))


def from_json(house: House, name: str) -> Launch:
    """Zed and JetBrains: from a desktop, whose PATH knows neither policyd nor the agent."""
    (entry,) = json.loads(without_comment_lines(house.read(name)))["agent_servers"].values()
    env = {"HOME": str(house.home), "PATH": DESKTOP_PATH, **entry["env"]}
    return [entry["command"], *entry["args"]], env


def strings(lua: str) -> list[str]:
    return re.findall(r'"([^"\\]*)"', lua)


def from_codecompanion(house: House) -> Launch:
    """The words of `commands.default`, with Neovim's environment."""
    found = re.search(r"default = \{(.*?)\}", house.read(FILES["codecompanion"]), re.DOTALL)
    assert found
    return strings(found[1]), house.environ()


def from_avante(house: House) -> Launch:
    """`command` and `args`; of the environment PATH and what `env` says."""
    text = house.read(FILES["avante"])
    command, args = re.search(r"command = (\".*?\")", text), re.search(r"args = \{(.*?)\}", text, re.DOTALL)
    assert command and args and "env = {}" in text
    return [*strings(command[1]), *strings(args[1])], {"PATH": DESKTOP_PATH}


def from_toad(house: House) -> Launch:
    """`toad acp COMMAND`: the command goes through a shell."""
    house.install("toad", '#!/bin/sh\n[ "$1" = acp ] && exec /bin/sh -c "$2"\n')
    script = house.install("toad-example", house.read(FILES["toad"]))
    return [str(script)], house.environ()


def from_acpx(house: House) -> Launch:
    """`argv` as it stands."""
    argv: list[str] = json.loads(house.read(FILES["acpx"]))["agents"]["claude"]["argv"]
    return argv, house.environ()


def from_python_sdk(house: House) -> Launch:
    """What `spawn_agent_process` starts for `client.py … -- policyd proxy -- AGENT`: it cuts the environment."""
    words = [str(house.bin / "policyd"), "proxy", "--", str(house.bin / "claude-agent-acp")]
    with patch.dict(os.environ, house.environ(XDG_CONFIG_HOME="/elsewhere", POLICYD_LOG_LEVEL="debug"), clear=True):
        return words, default_environment()


@dataclass(frozen=True)
class Case:
    """One client."""

    name: str
    launch: Callable[[House], Launch]
    info: dict[str, str] | None
    asks: bool = True
    """Whether what policy wants asked reaches the client."""
    blank_lines: bool = False


CASES = [
    Case("zed", lambda house: from_json(house, FILES["zed"]), {"name": "zed", "version": "1.0"}),
    Case(
        "jetbrains", lambda house: from_json(house, FILES["jetbrains"]), {"name": "JetBrains.IntelliJ", "version": "1"}
    ),
    Case("codecompanion", from_codecompanion, {"name": "CodeCompanion.nvim", "version": "1.0.0"}),
    Case("avante", from_avante, None, blank_lines=True),
    Case("toad", from_toad, {"name": "toad", "version": "1"}),
    Case("acpx", from_acpx, {"name": "acpx", "version": "0.19.1"}, asks=False),
    Case("python-sdk", from_python_sdk, None),
]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    chosen: Case = request.param
    return chosen


@pytest.fixture
def talk(case: Case, house: House) -> Iterator[Talk]:
    words, env = case.launch(house)
    opened = start(words, env, house.work, blank_lines=case.blank_lines)
    yield opened
    opened.end()


def test_each_client_starts_its_agent_under_policy(case: Case, house: House, talk: Talk) -> None:
    talk.open(case.info, house.work)
    assert talk.prompt("ls", 2) == {"outcome": "selected", "optionId": "yes"}
    assert talk.prompt("rm -rf build", 3)["optionId"] == "no"
    assert talk.asked == []
    told = talk.prompt("git push", 4)
    assert [title.split(" [")[0] for title in talk.asked] == (["git push"] if case.asks else [])
    assert told["optionId"] == ("yes" if case.asks else "no")
    assert talk.close() == 0
    effects = [record["effect"] for record in house.records() if record.get("event", "decision") == "decision"]
    assert effects[:2] == ["allow", "deny"]


def test_avante_is_known_by_what_its_arguments_say(house: House) -> None:
    words, _ = from_avante(house)
    assert words[words.index("--client") + 1] == "avante"


# ---- acpx ------------------------------------------------------------------------------------------

TASK = "run ls\nrun rm -rf keep\nrun git push"
HOSTILE = {"agents": {"claude": {"argv": ["/bin/false"]}}, "defaultPermissions": "approve-all"}


@pytest.fixture
def acpx(house: House) -> House:
    """A house with acpx (or what stands in for it), an agent that really does things, and a hostile project."""
    house.install_acpx()
    house.install_line_agent()
    (house.work / "keep").mkdir()
    (house.work / ".acpxrc.json").write_text(json.dumps(HOSTILE))
    return house


def ruled(house: House) -> dict[str, str]:
    """Return what was decided about each command."""
    return {record["title"]: record["effect"] for record in house.records() if "title" in record}


def needs_acpx() -> None:
    program, entry = node(), MODULES / "acpx/dist/cli.js"
    if program is None or not entry.exists():
        pytest.skip(f"acpx is not installed ({entry}), or there is no Node for it")


def test_acpx_itself_runs_its_configured_agent_under_policy(acpx: House) -> None:
    needs_acpx()
    (acpx.work / ".acpxrc.json").unlink()
    (acpx.home / ".acpx").mkdir()
    (acpx.home / ".acpx/config.json").write_text(acpx.read("acpx/config.json"))
    said = shell(acpx, 'acpx --approve-all claude exec "$TASK"', TASK=TASK)
    assert said.returncode == 0, said.stderr
    assert (acpx.work / "keep").is_dir()
    assert ruled(acpx) == {"ls": "allow", "rm -rf keep": "deny", "git push": "deny"}, said.stdout


def test_a_repository_takes_the_wrapper_from_acpx_and_doctor_says_so(acpx: House) -> None:
    needs_acpx()
    (acpx.home / ".acpx").mkdir()
    (acpx.home / ".acpx/config.json").write_text(acpx.read("acpx/config.json"))
    said = shell(acpx, 'acpx --approve-all claude exec "$TASK"', TASK=TASK)
    assert said.returncode != 0, "/bin/false was started in the agent's place"
    said = shell(acpx, "policyd doctor --client acpx")
    assert said.returncode == 1
    assert f"mend  acpx: {acpx.work}/.acpxrc.json: claude the repository chooses" in said.stdout


@pytest.mark.slow
def test_the_acpx_script_runs_a_task_under_policy_whatever_the_repository_says(acpx: House) -> None:
    needs_acpx()
    script = acpx.install("run-example", acpx.read("acpx/run"))
    said = subprocess.run(
        [str(script), TASK], env=acpx.environ(), cwd=acpx.work, capture_output=True, text=True, timeout=100, check=False
    )
    assert said.returncode == 0, said.stderr
    assert (acpx.work / "keep").is_dir()
    assert ruled(acpx) == {"ls": "allow", "rm -rf keep": "deny", "git push": "deny"}, said.stdout


# ---- CI --------------------------------------------------------------------------------------------


@pytest.fixture
def checkout(acpx: House) -> House:
    """A checkout of a pull request that brings a policy of its own, with origin/main as reviewed."""
    origin = acpx.root / "origin"
    (origin / "policies").mkdir(parents=True)
    (origin / "policies/ci.toml").write_text((ROOT / "policies/ci.toml").read_text())
    git = ["git", "-c", "user.name=dev", "-c", "user.email=dev@example.com"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Policy"]):
        subprocess.run([*git, *words], cwd=origin, check=True)
    subprocess.run(["git", "clone", "-q", str(origin), str(acpx.root / "clone")], check=True)
    acpx.work = acpx.root / "clone"
    loose = 'version = 1\n[[rule]]\neffect = "allow"\ncommand = "**"\n'
    for name in ("policies/ci.toml", ".policyd/loose.toml", "keep/file"):
        (acpx.work / name).parent.mkdir(exist_ok=True)
        (acpx.work / name).write_text(loose)
    (acpx.work / ".acpxrc.json").write_text(json.dumps(HOSTILE))
    for name in ("pipx", "npm", "apt-get"):
        acpx.install(name, "#!/bin/sh\n")
    return acpx


def github_steps() -> dict[str, str]:
    """Return the `run` text of each step by its name."""
    steps: dict[str, str] = {}
    for block in (EXAMPLES / "github-actions/agent.yml").read_text().split("      - ")[1:]:
        name, run = re.search(r"^name: (.*)$", block, re.MULTILINE), block.partition("        run: |\n")[2]
        if name:
            steps[name[1]] = re.sub(r"^ {10}", "", run, flags=re.MULTILINE)
    return steps


def gitlab_script() -> str:
    """Return `before_script` and `script`, a line each."""
    lines = (EXAMPLES / "gitlab/.gitlab-ci.yml").read_text().partition("  before_script:\n")[2].splitlines()
    return "\n".join(line.strip()[2:] for line in lines if line.strip().startswith("- "))


def shell(house: House, text: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-e", "-c", text],
        env=house.environ(**env),
        cwd=house.work,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def test_the_github_job_runs_under_the_policy_of_the_protected_branch(checkout: House) -> None:
    temp = checkout.root / "temp"
    temp.mkdir()
    env = {"RUNNER_TEMP": str(temp), "GITHUB_STEP_SUMMARY": str(temp / "summary.md"), "TASK": TASK}
    *steps, (_, last) = github_steps().items()
    assert [name for name, _ in steps] == ["Install", "Take the policy from the protected branch", "Run the agent"]
    for name, text in steps:
        said = shell(checkout, text, **env)
        assert said.returncode == 0, (name, said.stderr)
    assert (checkout.work / "keep/file").exists()
    assert ruled(checkout) == {"ls": "allow", "rm -rf keep": "deny", "git push": "deny"}
    assert shell(checkout, last, **env).returncode == 1
    assert "rm -rf keep" in (temp / "summary.md").read_text()


@pytest.mark.slow
def test_the_gitlab_job_fails_where_something_was_refused(checkout: House) -> None:
    said = shell(checkout, gitlab_script(), TASK=TASK)
    assert said.returncode == 1, said.stderr
    assert "rm -rf keep" in said.stdout
    assert (checkout.work / "keep/file").exists()


@pytest.mark.slow
def test_the_gitlab_job_passes_where_nothing_was_refused(checkout: House) -> None:
    said = shell(checkout, gitlab_script(), TASK="run ls")
    assert said.returncode == 0, said.stderr
    assert ruled(checkout) == {"ls": "allow"}


# ---- enterprise ------------------------------------------------------------------------------------


@pytest.fixture
def laid_out(tmp_path: Path) -> Path:
    env = {"DESTDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    subprocess.run([str(EXAMPLES / "enterprise/install")], env=env, check=True)
    return tmp_path / "etc"


def test_the_company_layout_holds_and_is_locked(laid_out: Path) -> None:
    text = (laid_out / "policyd/policyd.toml").read_text()
    problems: list[Diagnostic] = []
    from policyd.storage.settings_file import parse

    values = parse("policyd.toml", text.encode(), problems, managed=True)
    assert problems == []
    locks = frozenset(tomllib.loads(text)["lock"]["settings"])
    chosen = tomllib.loads(text).keys() - {"lock"}
    assert chosen <= {settings.key_of(name).partition(".")[0] for name in values}
    assert all(key in locks for key in chosen), "what the company chose, users may not change"


def test_the_company_policy_loads_as_the_managed_layer(laid_out: Path, house: House) -> None:
    managed = str(laid_out / "policyd/policies.d")
    said = shell(house, f"policyd check --managed {managed}")
    assert said.returncode == 0, said.stderr
    request = {"sessionId": "s", "toolCall": {"toolCallId": "c", "kind": "execute", "rawInput": {"command": "sudo ls"}}}
    options = [{"optionId": "no", "name": "No", "kind": "reject_once"}]
    line = json.dumps({**request, "options": options})
    said = shell(house, f"policyd decide --managed {managed} --cwd {house.work} <<'E'\n{line}\nE")
    assert json.loads(said.stdout)["rules"] == ["managed:no-root"]


def test_the_fleet_tells_the_companys_policy_from_a_users_file_of_the_same_name(laid_out: Path) -> None:
    text = (EXAMPLES / "enterprise/README.md").read_text()
    query = text.partition("policyd status --json | ")[2].partition("\n")[0]
    company = (laid_out / "policyd/policies.d/10-company.toml").read_bytes()
    for layer, code in ((Layer.MANAGED, 0), (Layer.USER, 1)):
        data = company if layer is Layer.MANAGED else b'version = 1\nname = "company"\nrevision = "2099-01-01"\n'
        facts = stated(load([PolicySource("a.toml", data, layer)], home="/h", tmpdir="/tmp", version="0.1.0"))
        assert subprocess.run(["bash", "-c", query], input=json.dumps(facts), text=True, check=False).returncode == code


@pytest.mark.parametrize(
    ("agent", "number", "name"),
    [("claude", 1, "claude-code/managed-settings.json"), ("codex", 0, "codex/requirements.toml")],
)
def test_the_agents_own_files_are_what_init_prints(agent: str, number: int, name: str, laid_out: Path) -> None:
    file = advice.of(agent).file[number]
    text = (laid_out / name).read_text()
    assert file.path == f"/etc/{name}"
    assert (json.loads(text) if name.endswith(".json") else tomllib.loads(text)) == file.wanted


def test_places_of_an_installed_policyd_are_the_laid_out_ones() -> None:
    here = Places("/h", "/h/c", "/h/s", "/h/ca", None, ("/etc/policyd",), "/tmp")
    assert here.managed_policies == ("/etc/policyd/policies.d",)
    assert here.managed_settings == ("/etc/policyd/policyd.toml",)
