"""Real agents under `policyd proxy`: what is denied does not happen, what is allowed does, unasked.

Each agent runs as released, with its own settings at their defaults (opencode's are told to ask, as the README says),
against a scripted model on loopback. Nobody is at the client: a question that reached it would be refused and counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.agents.client import LineClient, choose
from tests.agents.launch import AGENTS, RealAgent
from tests.agents.model_server import Call, ModelServer

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]

POLICY = """
version = 1
[defaults]
"*"    = "ask"
read   = "allow"
search = "allow"
edit   = "allow"
[[rule]]
id     = "no-env"
effect = "deny"
path   = [".env"]
reason = "Secrets stay out of reach."
[[rule]]
id     = "no-rm"
effect = "deny"
command = "rm -rf"
reason = "Nothing is removed."
[[rule]]
id      = "tests"
effect  = "allow"
command = "make test"
"""


@dataclass
class Bench:
    """A scratch home and project, and where the policy lies."""

    home: Path
    project: Path
    policy: Path

    def run(self, agent: RealAgent, turns: list[list[Call]]) -> tuple[LineClient, str]:
        """Play one prompt under the proxy; return the client that saw everything and the stop reason."""
        with ModelServer(turns) as model:
            command, env = agent.prepare(self.home, self.project, model.url)
            proxy = [sys.executable, "-m", "policyd", "proxy", "--policy", str(self.policy), "--prompt", "none", "--"]
            env["PYTHONPATH"] = str(Path(__file__).parents[2])
            with LineClient([*proxy, *command], env, self.project, choose("allow_once")) as client:
                session = client.open(self.project)
                self.opened = session
                reason = client.prompt(session["sessionId"], "Please do it.")
        return client, reason

    def records(self) -> list[dict[str, object]]:
        """Return the audit log."""
        lines: list[str] = []
        for path in (self.home / ".local/state/policyd/audit").glob("*.jsonl"):
            lines += path.read_text().splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    project, home = tmp_path / "project", tmp_path / "home"
    (project / "build").mkdir(parents=True)
    home.mkdir()
    (project / "README.md").write_text("hello\n")
    (project / ".env").write_text("TOKEN=do-not-read-me\n")
    (project / "Makefile").write_text("test:\n\ttouch tested.txt\n")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    (tmp_path / "policy.toml").write_text(POLICY)
    return Bench(home, project, tmp_path / "policy.toml")


def there(agent: RealAgent) -> RealAgent:
    """Skip where the agent is missing, saying why."""
    why = agent.found()
    if why:
        pytest.skip(why)
    return agent


@pytest.fixture(params=AGENTS, ids=lambda agent: agent.name)
def agent(request: pytest.FixtureRequest) -> RealAgent:
    return there(request.param)


def test_a_denied_command_does_not_run(agent: RealAgent, bench: Bench) -> None:
    client, _ = bench.run(agent, [[agent.run("rm -rf build")]])
    assert (bench.project / "build").is_dir()
    assert client.asked == []
    assert any("no-rm" in json.dumps(record) for record in bench.records())


def test_an_allowed_command_runs_without_a_prompt(agent: RealAgent, bench: Bench) -> None:
    client, reason = bench.run(agent, [[agent.run("make test")]])
    assert (bench.project / "tested.txt").exists(), client.errors[-10:]
    assert client.asked == []
    assert reason == "end_turn"


def test_a_secret_is_not_read_where_the_agent_asks_for_reads(agent: RealAgent, bench: Bench) -> None:
    if agent.read is None or not agent.asks_reads:
        pytest.skip(f"{agent.name} does not ask before it reads inside the workspace")
    client, _ = bench.run(agent, [[agent.read(str(bench.project / ".env"))]])
    assert "do-not-read-me" not in json.dumps(client.received)
    assert client.asked == []


def test_the_session_is_in_a_mode_that_asks(agent: RealAgent, bench: Bench) -> None:
    """Claude starts in `auto`, Codex in `agent`, Vibe in `accept-edits`: all act unasked."""
    asking = {"claude": "default", "codex": "read-only", "vibe": "ask"}
    if agent.name not in asking:
        pytest.skip(f"{agent.name} starts in a mode that asks")
    bench.run(agent, [])
    stated = [option["currentValue"] for option in bench.opened.get("configOptions", []) if option["id"] == "mode"]
    current = bench.opened.get("modes", {}).get("currentModeId")
    assert asking[agent.name] in {current, *stated}


def test_an_unsafe_mode_is_refused_to_the_client(bench: Bench) -> None:
    claude = there(AGENTS[0])
    with ModelServer([[claude.run("rm -rf build")]]) as model:
        command, env = claude.prepare(bench.home, bench.project, model.url)
        env["PYTHONPATH"] = str(Path(__file__).parents[2])
        proxy = [sys.executable, "-m", "policyd", "proxy", "--policy", str(bench.policy), "--prompt", "none", "--"]
        with LineClient([*proxy, *command], env, bench.project, choose("allow_once")) as client:
            session = client.open(bench.project)["sessionId"]
            with pytest.raises(RuntimeError, match="does not ask for permission"):
                client.call("session/set_mode", {"sessionId": session, "modeId": "auto"})
            client.prompt(session, "Please do it.")
    assert (bench.project / "build").is_dir()
