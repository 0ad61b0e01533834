"""Grants through the real proxy: the example client and agent on the official SDK, and `acpx` where it is installed.

And what several proxies, or a proxy and the command, do to one file.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from policyd.storage.grants import files
from tests.agents.launch import MODULES, node
from tests.proxied import Client, Scene

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


@pytest.mark.slow
def test_acpx_is_never_asked(place: Place) -> None:
    program, acpx = node(), MODULES / "acpx/dist/cli.js"
    if program is None or not acpx.exists():
        pytest.skip("acpx is not installed")
    agent = " ".join(place.proxy())
    said = subprocess.run(
        [str(program), str(acpx), "--approve-all", "--agent", agent, "exec", "run echo hi"],
        env={**os.environ, "HOME": str(place.home)},
        capture_output=True,
        text=True,
        cwd=place.project,
        timeout=120,
        check=False,
    )
    assert "nobody is behind the answers of acpx" in said.stdout
    assert "nothing is remembered" in place.grants("list")


# ---- one file, several processes --------------------------------------------------------------------


def answered(scene: Scene, name: str, count: int) -> None:
    """Be a client of one proxy whose user answers `count` questions with "always, in this project"."""
    client = Client(scene.start("ask", "1", options=["--client=zed"]))
    client.open(scene.work)
    for number in range(count):
        client.prompt(f"make {name}-{number}", ident=100 + number)
        question = client.until(method="session/request_permission")
        (always,) = [
            one["optionId"]
            for one in question["params"]["options"]
            if one["kind"] == "allow_always" and "in this project" in one["name"]
        ]
        outcome = {"outcome": {"outcome": "selected", "optionId": always}}
        client.send({"id": question["id"], "result": outcome})
        assert client.until(method="answered")["params"]["result"]["outcome"]["optionId"] == "yes"
        client.until(id=100 + number)
    assert client.close() == 0


def check_shared(scene: Scene, proxies: int, count: int) -> None:
    settings = scene.root / "home/.config/policyd/policyd.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("human_ms = 0\n")
    with ThreadPoolExecutor(proxies) as pool:
        list(pool.map(lambda number: answered(scene, f"p{number}", count), range(proxies)))
    kept = files(str(scene.root / "home/.local/state/policyd/grants"))
    found = {one.members[0].words[1] for file in kept for one in file.current().grants}
    assert found == {f"p{number}-{at}" for number in range(proxies) for at in range(count)}


def test_no_answer_given_to_one_of_several_proxies_is_lost(tmp_path: Path) -> None:
    check_shared(Scene(tmp_path), 2, 3)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_answer_given_to_one_of_16_proxies_is_lost(tmp_path: Path) -> None:
    check_shared(Scene(tmp_path), 16, 20)


def test_a_denial_added_while_a_question_is_open_answers_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    client = Client(scene.start("ask", "1", options=["--client=zed"]))
    client.open(scene.work)
    client.prompt("make it")
    question = client.until(method="session/request_permission")
    words = [sys.executable, "-m", "policyd", "grants", "add", "--deny", "--for", "1h", "--agent", "scripted"]
    subprocess.run([*words, "--", "make", "it"], env=scene.environ, cwd=scene.work, check=True, capture_output=True)
    told = client.until(method="$/cancel_request")
    assert told["params"]["requestId"] == question["id"], "the client need not ask any more"
    assert client.until(method="answered")["params"]["result"]["outcome"]["optionId"] == "no"
    client.until(id=2)
    assert client.asked("make it", 3)["optionId"] == "no"
    assert [one for one in client.seen if one.get("method") == "session/request_permission"] == [question]
    assert client.close() == 0
