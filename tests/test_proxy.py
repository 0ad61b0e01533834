"""`policyd proxy` with real processes: what is decided, and that everything else is as if policyd were not there."""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from policyd.proxy import origin
from policyd.proxy.pump import FORWARDED
from tests.proxied import POLICYD, Client, Scene

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A fresh home, workspace and policy."""
    return Scene(tmp_path)


# ---- deciding --------------------------------------------------------------------------------------


def test_allow_and_deny_are_answered_and_recorded(scene: Scene) -> None:
    client = Client(scene.start("ask", "1", options=["--prompt", "none", "--label", "job=7"]))
    client.open(scene.work)
    assert client.asked("ls -la") == {"outcome": "selected", "optionId": "yes"}
    assert client.asked("rm -rf build", 3) == {"outcome": "selected", "optionId": "no"}
    assert client.asked("make", 4) == {"outcome": "selected", "optionId": "no"}
    assert client.close() == 0
    start, *records = scene.records()
    assert start["event"] == "start" and start["seq"] == 1 and start["policies"] == [str(scene.policy)]
    assert start["cwd"] == os.getcwd() and start["command"][-2:] == ["ask", "1"]
    told = {"layer": "user", "file": str(scene.policy), "name": "policy.toml", "revision": ""}
    assert start["names"] == [told]
    assert [row["effect"] for row in records] == ["allow", "deny", "deny"]
    first = records[0]
    assert first["revision"] == start["revision"] and first["seq"] == 2
    assert first["rules"][0]["rule"] == "user:ls" and first["labels"] == {"job": "7"} and first["transport"] == "proxy"
    assert first["agent"]["name"] == "scripted" and first["client"]["name"] == "tests"


def test_an_ask_goes_to_the_client_and_its_answer_counts(scene: Scene) -> None:
    client = Client(scene.start("ask", "1"))
    client.open(scene.work)
    client.prompt("make")
    request = client.until(method="session/request_permission")
    yes = next(option["optionId"] for option in request["params"]["options"] if option["kind"] == "allow_once")
    client.send({"id": request["id"], "result": {"outcome": {"outcome": "selected", "optionId": yes}}})
    assert client.until(method="answered")["params"]["result"]["outcome"]["optionId"] == "yes"
    client.close()
    assert scene.records()[-1]["effect"] == "allow"


def test_what_cannot_be_recorded_is_refused(scene: Scene) -> None:
    options = ["--prompt", "none", "--fail-on-reject", "--audit", "/dev/full"]
    client = Client(scene.start("ask", "1", options=options))
    client.open(scene.work)
    assert client.asked("ls").get("optionId") != "yes"
    assert client.close() == 5


def test_a_prompt_program_that_cannot_be_run_is_told_at_the_start(scene: Scene) -> None:
    done = scene.run("exit", options=["--prompt", "command:/nowhere/hook"])
    assert b"the prompt step `command:/nowhere/hook` cannot be run: it cannot be opened" in done.stderr


def test_a_policy_of_the_workspace_is_told_at_the_start(scene: Scene) -> None:
    inside = scene.work / "ci.toml"
    inside.write_text(scene.policy.read_text())
    digest = f"sha256:{hashlib.sha256(inside.read_bytes()).hexdigest()}"
    words = [*POLICYD, "proxy", "--policy", str(inside)]
    for more, told in (([], True), (["--policy-digest", digest], False)):
        command = [*words, *more, "--", "/bin/true"]
        done = subprocess.run(command, env=scene.environ, cwd=scene.work, capture_output=True, timeout=60, check=False)
        assert (b"takes it as the project's" in done.stderr) is told, done.stderr


def test_durable_records_come_before_the_answer(scene: Scene) -> None:
    config = scene.root / "home/.config/policyd"
    config.mkdir(parents=True)
    (config / "policyd.toml").write_text('[audit]\ndurability = "fsync"\n')
    client = Client(scene.start("ask", "1"))
    client.open(scene.work)
    assert client.asked("ls")["optionId"] == "yes"
    assert scene.records()[-1]["effect"] == "allow"
    client.close()


def test_the_headless_summary_tells_what_was_decided_and_fail_on_reject_makes_it_a_status(scene: Scene) -> None:
    client = Client(scene.start("ask", "1", options=["--prompt=none", "--fail-on-reject"]))
    client.open(scene.work)
    client.asked("ls")
    client.asked("rm x", 3)
    assert client.process.stdin and client.process.stderr
    client.process.stdin.close()
    said = client.process.stderr.read().decode()
    assert client.process.wait(20) == 5
    assert "1 allowed, 1 rejected, 0 unasked" in said and "deny user:no-rm" in said
    client.close()


@pytest.mark.slow
def test_a_changed_policy_counts_in_a_running_session(scene: Scene) -> None:
    client = Client(scene.start("ask", "1", options=["--prompt=none"]))
    client.open(scene.work)
    assert client.asked("make")["optionId"] == "no"
    scene.policy.write_text(scene.policy.read_text() + '[[rule]]\nid = "make"\neffect = "allow"\ncommand = "make"\n')
    end = time.monotonic() + 20
    while client.asked("make", 5)["optionId"] == "no":
        assert time.monotonic() < end
        time.sleep(0.1)
    client.close()
    assert [row["loosens"] for row in scene.records() if row["event"] == "reload"][-1] is True


# ---- starting --------------------------------------------------------------------------------------


def test_a_broken_policy_ends_the_agent_and_nothing_has_passed(scene: Scene) -> None:
    scene.policy.write_text('version = 1\n[[rule]]\nefect = "allow"\n[[rule]]\nkid = "read"\n')
    found = scene.run("stubborn", data=b'{"jsonrpc":"2.0","method":"x"}\n')
    assert found.returncode == 2 and found.stdout == b""
    assert found.stderr.count(b"policy.toml:") >= 2


@pytest.mark.parametrize(
    ("agent", "status", "said"),
    [
        ("/nowhere/agent", 127, b"was not found"),
        ("/etc/hostname", 126, b"cannot be run"),
        ("/tmp", 126, b"cannot be run"),
    ],
)
def test_an_agent_that_cannot_start_is_said_as_shells_do(scene: Scene, agent: str, status: int, said: bytes) -> None:
    found = scene.run(agent)
    assert found.returncode == status and said in found.stderr


def test_a_script_whose_interpreter_is_missing_is_told_apart(scene: Scene) -> None:
    script = scene.root / "agent"
    script.write_text("#!/nowhere/python\n")
    script.chmod(0o755)
    found = scene.run(str(script))
    assert found.returncode == 126 and b"interpreter" in found.stderr


USAGE = (
    (["--nonsense"], b"unknown option `--nonsense`"),
    (["--no-managed", "--", "x"], b"offline commands"),
    (["--policy"], b"needs a value"),
    (["--policy", "", "--", "cat"], b"needs a value"),
    (["--home=", "--", "cat"], b"needs a value"),
    (["--shell", "fish", "--", "cat"], b"write one of bash, sh, zsh, powershell, cmd"),
    (["--label", "x", "--", "y"], b"KEY=VALUE"),
    (["--label", "=x", "--", "y"], b"KEY=VALUE"),
    (["--policy-digest", "sha256:12", "--", "y"], b"64 hex digits"),
    (["--policy-digest", "0" * 71, "--", "y"], b"64 hex digits"),
    (["--prompt", "web", "--", "cat"], b"write none, client"),
    (["--cwd", "/nowhere", "--", "cat"], b"--cwd /nowhere"),
    (["--policy", "/nowhere.toml", "--", "cat"], b"/nowhere.toml"),
)


@pytest.mark.parametrize(("words", "said"), USAGE)
def test_wrong_options_are_said(scene: Scene, words: list[str], said: bytes) -> None:
    command = [*scene.command()[:3], "proxy", *words]
    found = subprocess.run(command, env=scene.environ, input=b"", capture_output=True, timeout=60, check=False)
    assert found.returncode == 2 and said in found.stderr, found.stderr


def test_without_an_agent_a_conductor_is_told_to_put_policyd_last(scene: Scene) -> None:
    data = b'{"jsonrpc":"2.0","id":"a","method":"_proxy/initialize","params":{}}\n\nnonsense\n'
    command = [*scene.command()[:3], "proxy"]
    found = subprocess.run(command, env=scene.environ, input=data, capture_output=True, timeout=60, check=False)
    assert b'"id":"a"' in found.stdout and b"-32601" in found.stdout and b"put policyd last" in found.stdout


def test_a_client_that_passes_neither_home_nor_xdg_gets_an_answer(scene: Scene, tmp_path: Path) -> None:
    del scene.environ["HOME"]
    client = Client(scene.start("ask", "1", options=["--prompt=none", "--audit", str(tmp_path / "log")]))
    client.open(scene.work)
    assert client.asked("ls")["optionId"] == "yes"
    client.close()


def test_the_agent_starts_in_the_directory_of_cwd_and_policies_are_found_from_where_policyd_was_called(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scene.root)
    options = ["--policy", "policy.toml", "--cwd", "work", "--audit", "log.jsonl", "--home", "home"]
    words = [*scene.command()[:3], "proxy", *options, "/bin/sh", "-c", "pwd >&2; cat"]
    found = subprocess.run(words, env=scene.environ, input=b"", capture_output=True, timeout=60, check=False)
    assert found.returncode == 0 and str(scene.work).encode() in found.stderr


# ---- ends, statuses, signals -----------------------------------------------------------------------


def test_the_agents_status_and_standard_error_are_passed_on(scene: Scene) -> None:
    found = scene.run("exit", "9")
    assert found.returncode == 9 and b"agent's own words\n" in found.stderr


@pytest.mark.parametrize(
    ("number", "name"),
    [(9, b"SIGKILL"), (11, b"SIGSEGV"), (15, b"SIGTERM"), pytest.param(40, b"signal 40", marks=LINUX)],
)
def test_a_signal_that_ended_the_agent_ends_policyd(scene: Scene, number: int, name: bytes) -> None:
    found = scene.run("die", str(number))
    assert found.returncode == -number and name in found.stderr


def blocked() -> None:
    """Start policyd as a thread does that takes no signals."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def unwaited() -> None:
    """Start policyd as a program does that waits for no child."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


@pytest.mark.parametrize("before", [blocked, unwaited])
def test_the_agents_end_is_seen_whatever_signals_meant_to_who_started_policyd(
    scene: Scene, before: Callable[[], None]
) -> None:
    for agent in (("exit", "3"), ("/bin/sh", "-c", "exit 3")):
        process = scene.start(*agent, preexec_fn=before)
        process.communicate(b"", timeout=20)
        assert process.returncode == 3


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal."""
    ends = os.openpty()
    yield ends
    for end in ends:
        os.close(end)


@LINUX
def test_the_agent_gets_a_signal_once_whether_policyd_got_it_alone_or_both_did(
    scene: Scene, terminal: tuple[int, int]
) -> None:
    keyboard, screen = terminal

    def at_it() -> None:
        os.setsid()
        fcntl.ioctl(screen, termios.TIOCSCTTY, 0)

    client = Client(scene.start("signals", preexec_fn=at_it, pass_fds=[screen]))
    client.until(method="ready")
    for interrupt in (lambda: os.write(keyboard, b"\x03"), lambda: client.process.send_signal(signal.SIGINT)):
        interrupt()
        assert client.until(method="signal")["params"]["n"] == signal.SIGINT
        client.process.send_signal(signal.SIGHUP)
        assert client.until(method="signal")["params"]["n"] == signal.SIGHUP
    client.process.send_signal(signal.SIGTERM)
    assert client.until(method="signal")["params"]["n"] == signal.SIGTERM
    assert client.close() == 7


@pytest.mark.parametrize("leads", [False, True])
def test_only_what_the_kernel_sends_to_a_group_has_reached_the_agent(
    leads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getsid", lambda pid: os.getpid() if leads else 1)
    shared = {number for number in FORWARDED if origin.to_all(number, origin.BY_KERNEL)}
    assert shared == (FORWARDED - {signal.SIGHUP} if leads else FORWARDED)
    assert not any(origin.to_all(number, code) for number in FORWARDED for code in (0, -1, -6))


def test_an_agent_that_was_killed_leaves_no_zombie_and_ends_policyd(scene: Scene) -> None:
    client = Client(scene.start("stubborn"))
    pid = client.until(method="pid")["params"]["pid"]
    os.kill(pid, signal.SIGKILL)
    assert client.process.wait(20) == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    client.close()


def test_a_client_that_reads_no_more_ends_the_agent_as_a_closed_pipe_would(scene: Scene) -> None:
    process = scene.start("deaf", "1000000")
    assert process.stdout and process.stdin and process.stderr
    os.read(process.stdout.fileno(), 1000)
    process.stdout.close()
    assert process.wait(20) != 0
    process.stdin.close()
    process.stderr.close()


def test_the_end_of_the_input_reaches_the_agent_and_its_last_words_the_client(scene: Scene) -> None:
    line = b'{"jsonrpc":"2.0","method":"x","params":{"a":1}}'
    found = scene.run("echo", data=line + b"\n" + line)
    assert found.stdout == line + b"\n" + line and found.returncode == 0


def test_the_whole_run_ends_within_the_patience_of_a_headless_client(scene: Scene) -> None:
    client = Client(scene.start("ask", "1"))
    client.open(scene.work)
    assert client.process.stdin
    client.process.stdin.close()
    assert client.process.wait(20) == 0
    client.close()
