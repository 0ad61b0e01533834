"""The shell and Python examples let the daemon decide, and reject without one."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.daemons import Daemon, scene
from tests.proxied import AGENT, POLICYD

EXAMPLES = Path(__file__).parent.parent / "examples"
needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")


@needs_jq
@pytest.mark.parametrize(("command", "status", "said"), [("ls", 0, "allow: "), ("rm x", 1, "deny: no removing here")])
def test_a_shell_script_lets_policyd_decide(tmp_path: Path, command: str, status: int, said: str) -> None:
    here = scene(tmp_path)
    program = " ".join([*POLICYD, "serve", "--stdio", "--policy", str(here.policy)])
    words = [str(EXAMPLES / "shell/decide.sh"), str(here.work), command]
    env = {**here.environ, "POLICYD": program}
    done = subprocess.run(words, env=env, capture_output=True, timeout=30, check=False, text=True)
    assert (done.returncode, done.stderr.startswith(said)) == (status, True), done.stderr


@needs_jq
@pytest.mark.parametrize("program", ["false", "true", "echo {}", "/nowhere/policyd"])
def test_a_shell_script_without_an_answer_allows_nothing(tmp_path: Path, program: str) -> None:
    env = {"PATH": os.environ["PATH"], "POLICYD": program}
    words = [str(EXAMPLES / "shell/decide.sh"), str(tmp_path), "ls"]
    assert subprocess.run(words, env=env, capture_output=True, timeout=30, check=False).returncode != 0


def python_client(here_work: Path, environ: dict[str, str], socket: str, prompt: str) -> dict[str, str]:
    """Run the Python client with the scripted agent; return how its request was answered."""
    client = str(EXAMPLES / "python/daemon_client.py")
    words = [sys.executable, client, socket, str(here_work), prompt, "--", sys.executable, "-I", AGENT, "ask", "1"]
    done = subprocess.run(words, env=environ, capture_output=True, timeout=60, check=False, text=True)
    assert done.returncode == 0, done.stderr
    answer: dict[str, str] = json.loads(done.stdout.splitlines()[-1])["answer"]
    return answer


def test_a_python_client_lets_the_daemon_answer(tmp_path: Path) -> None:
    with Daemon(scene(tmp_path)) as daemon:
        here = daemon.scene
        assert python_client(here.work, here.environ, daemon.path, "ls") == {"outcome": "selected", "optionId": "yes"}
        assert python_client(here.work, here.environ, daemon.path, "rm x")["optionId"] == "no"
        rows = [row for row in here.records() if row["event"] == "decision"]
    assert [(row["agent"]["name"], row["cwd"]) for row in rows] == [("scripted", str(here.work))] * 2


def test_a_python_client_without_a_daemon_rejects(tmp_path: Path) -> None:
    here = scene(tmp_path)
    assert python_client(here.work, here.environ, str(tmp_path / "no.sock"), "ls")["optionId"] == "no"


def test_a_python_client_whose_daemon_has_gone_rejects(tmp_path: Path) -> None:
    here, path = scene(tmp_path), str(tmp_path / "brief.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        brief = threading.Thread(target=greet_and_go, args=(listener,))
        brief.start()
        assert python_client(here.work, here.environ, path, "ls")["optionId"] == "no"
        brief.join(10)


def greet_and_go(listener: socket.socket) -> None:
    """Answer one hello and end."""
    one, _ = listener.accept()
    with one, one.makefile("rwb") as stream:
        hello = json.loads(stream.readline())
        stream.write(json.dumps({"jsonrpc": "2.0", "id": hello["id"], "result": {}}).encode() + b"\n")
