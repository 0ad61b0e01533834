"""The TypeScript example: a client on the official SDK lets the daemon answer, and rejects without one."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents.launch import MODULES, needs, node
from tests.daemons import Daemon, scene
from tests.proxied import AGENT, Scene

EXAMPLE = Path(__file__).parent.parent / "examples/typescript"
missing = needs("@agentclientprotocol/sdk")()
needs_node = pytest.mark.skipif(missing is not None, reason=f"the TypeScript example cannot run: {missing}")


@pytest.fixture
def client(tmp_path: Path) -> list[str]:
    """The example beside its modules; the command that runs it."""
    place = tmp_path / "typescript"
    shutil.copytree(EXAMPLE, place, ignore=shutil.ignore_patterns("node_modules"))
    (place / "node_modules").symlink_to(MODULES)
    return [str(node()), "--disable-warning=ExperimentalWarning", str(place / "client.ts")]


def run(client: list[str], here: Scene, socket: str, prompt: str) -> tuple[dict[str, str], str]:
    """Run the client with the scripted agent; return how its request was answered, and what was complained."""
    words = [*client, socket, str(here.work), prompt, sys.executable, "-I", AGENT, "ask", "1"]
    done = subprocess.run(words, env=here.environ, capture_output=True, timeout=60, check=False, text=True, input="")
    assert done.returncode == 0, done.stderr
    answer: dict[str, str] = json.loads(done.stdout.splitlines()[-1])["answer"]
    return answer, done.stderr


@needs_node
def test_the_daemon_answers_for_the_example(tmp_path: Path, client: list[str]) -> None:
    with Daemon(scene(tmp_path)) as daemon:
        assert run(client, daemon.scene, daemon.path, "ls")[0] == {"outcome": "selected", "optionId": "yes"}
        assert run(client, daemon.scene, daemon.path, "rm x")[0]["optionId"] == "no"
        rows = [row for row in daemon.scene.records() if row["event"] == "decision"]
    assert [(row["effect"], row["client"]["name"], row["cwd"]) for row in rows] == [
        ("allow", "example", str(daemon.scene.work)),
        ("deny", "example", str(daemon.scene.work)),
    ]


@needs_node
def test_without_a_daemon_the_example_rejects(tmp_path: Path, client: list[str]) -> None:
    answer, complaint = run(client, scene(tmp_path), str(tmp_path / "nothing.sock"), "ls")
    assert answer["optionId"] == "no" and "no policyd" in complaint


@needs_node
def test_what_policy_asks_is_asked_at_the_terminal(tmp_path: Path, client: list[str]) -> None:
    keyboard, terminal = pty.openpty()
    with Daemon(scene(tmp_path)) as daemon:
        words = [*client, daemon.path, str(daemon.scene.work), "npm test", sys.executable, "-I", AGENT, "ask", "1"]
        process = subprocess.Popen(words, env=daemon.scene.environ, stdin=terminal, stdout=subprocess.PIPE, text=True)
        assert process.stdout
        with process, process.stdout as said:
            assert said.readline().startswith("ASK npm test")
            os.write(keyboard, b"1\n")
            answer = next(json.loads(line) for line in said if line.startswith("{"))["answer"]
    os.close(keyboard)
    os.close(terminal)
    assert answer == {"outcome": "selected", "optionId": "yes"}


def test_the_example_stays_short() -> None:
    lines = (EXAMPLE / "client.ts").read_text().splitlines()
    own = [line for line in lines if line.strip() and not line.startswith(("//", "import "))]
    assert len(own) < 30 and os.path.exists(EXAMPLE / "package.json")
