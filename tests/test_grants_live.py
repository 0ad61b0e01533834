"""Grants through the real proxy: the example client and agent on the official SDK, and `acpx` where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
AGENT = str(ROOT / "examples" / "python" / "agent.py")
CLIENT = str(ROOT / "examples" / "python" / "client.py")
POLICY = 'version = 1\n[defaults]\n"*" = "ask"\n'


class Place:
    """A home, a project and a policy that asks about everything."""

    def __init__(self, tmp_path: Path) -> None:
        """Make them."""
        self.home, self.project, self.policy = (
            tmp_path / "home",
            tmp_path / "home" / "project",
            tmp_path / "policy.toml",
        )
        (self.project / "sub").mkdir(parents=True)
        self.policy.write_text(POLICY, "utf-8")

    def proxy(self, *options: str) -> list[str]:
        """The command of an agent behind policyd."""
        words = [sys.executable, "-m", "policyd", "proxy", "--policy", str(self.policy), "--home", str(self.home)]
        return [*words, *options, "--", sys.executable, AGENT]

    def told(self, prompt: str, typed: str, *options: str, client: str = "zed") -> str:
        """Let the example client's user see what the agent asks for `prompt`, and type numbers."""
        words = [sys.executable, CLIENT, "--answer", "ask", str(self.project), prompt, "--"]
        said = subprocess.run(
            [*words, *self.proxy("--client", client, *options)],
            input=typed,
            capture_output=True,
            text=True,
            cwd=self.project,
            timeout=60,
            check=False,
        )
        assert said.returncode == 0, said.stderr
        return said.stdout

    def grants(self, *words: str) -> str:
        """Run `policyd grants`."""
        said = subprocess.run(
            [sys.executable, "-m", "policyd", "grants", "--home", str(self.home), *words],
            capture_output=True,
            text=True,
            cwd=self.project,
            check=False,
        )
        return said.stdout


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def always(place: Place) -> str:
    """A person answers "Always allow `echo hi` in this project", later than a machine would."""
    words = [sys.executable, CLIENT, "--answer", "ask", str(place.project), "run echo hi", "--"]
    with subprocess.Popen(
        [*words, *place.proxy("--client", "zed")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        shown = b""
        while b"number:" not in shown:
            shown += os.read(client.stdout.fileno(), 4096)
        time.sleep(0.8)
        client.stdin.write(b"4\n")
        client.stdin.close()
        shown += client.stdout.read()
        assert client.wait(60) == 0
    return shown.decode()


@pytest.mark.slow
def test_an_always_holds_for_exactly_what_was_shown_until_it_is_revoked(place: Place) -> None:
    shown = always(place)
    assert "4. Always allow `echo hi` in this project" in shown
    assert "`echo hi` in this project" in place.grants("list")
    misses = ["run echo hi there", "run A=1 echo hi", "run echo hi && echo hi", "run cd sub && echo hi", "edit hi"]
    out = place.told("\n".join(["run echo hi", *misses]), "2\n" * 5)
    assert out.count("ASK ") == 5
    assert "a remembered answer allows it" in out
    assert "run echo hi" not in [line.removeprefix("ASK    ") for line in out.splitlines() if line.startswith("ASK")]
    assert "revoked" in place.grants("revoke", "--all")
    assert place.told("run echo hi", "2\n").count("ASK ") == 1


def test_an_always_of_a_client_that_answers_at_once_counts_once(place: Place) -> None:
    out = place.told("run echo hi", "4\n", client="zed")
    assert "ALLOW  echo hi" in out
    assert "nothing is remembered" in place.grants("list")


@pytest.mark.slow
def test_with_no_grants_nothing_remembered_counts(place: Place) -> None:
    always(place)
    assert place.told("run echo hi", "2\n", "--no-grants").count("ASK ") == 1


@pytest.mark.slow
def test_an_unknown_client_is_offered_the_session_only(place: Place) -> None:
    out = place.told("run echo hi", "2\n", client="nobody")
    assert "Always allow `echo hi` in this session" in out
    assert "in this project" not in out


@pytest.mark.agents
def test_acpx_is_never_asked(place: Place) -> None:
    acpx = shutil.which("acpx")
    if acpx is None:
        pytest.skip("acpx is not installed")
    agent = " ".join(place.proxy())
    said = subprocess.run(
        [acpx, "--approve-all", "--agent", agent, "exec", "run echo hi"],
        env={**os.environ, "HOME": str(place.home)},
        capture_output=True,
        text=True,
        cwd=place.project,
        timeout=120,
        check=False,
    )
    assert "nobody is behind the answers of acpx" in said.stdout
    assert "nothing is remembered" in place.grants("list")
