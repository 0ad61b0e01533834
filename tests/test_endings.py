"""However a proxy or a daemon ends, nothing of it is left: no process, no socket, no half written file."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemons import Daemon, params, scene, until
from tests.proxied import Scene

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc, and Linux alone kills an orphan"),
]
STUBBORN = f"""#!{sys.executable} -IS
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if not sys.stdin.readline():  # nobody asks
    sys.exit(1)
subprocess.Popen(["/bin/sleep", "60"])
time.sleep(60)
"""
LASTING = (".toml", ".lock", ".head", ".jsonl", ".log", "hook")
KEPT = (".cache", "inbox")
"""What is kept on purpose: readings of policies, and for a day the questions of a policyd that was killed."""
SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGKILL")


def hook(here: Scene) -> str:
    """Return a prompt program that has to be killed, and so has what it starts."""
    path = here.root / "hook"
    path.write_text(STUBBORN)
    path.chmod(0o755)
    return f"--prompt=command:{path}"


def living(here: Scene) -> list[str]:
    """Return the processes that have the home of a scene."""
    found, mark = [], f"HOME={here.environ['HOME']}\0".encode()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            dead = place.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "Z"
            if not dead and mark in place.joinpath("environ").read_bytes() + b"\0":
                found.append(place.joinpath("cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def left(here: Scene, *expected: str) -> list[str]:
    """Return the files that should not be there."""
    files = [path.relative_to(here.root) for path in here.root.rglob("*") if not path.is_dir()]
    odd = [path for path in files if not path.name.endswith((*LASTING, *expected))]
    return [str(path) for path in odd if not set(KEPT) & set(path.parts)]


def converse(process: subprocess.Popen[bytes], work: Path) -> None:
    """Open a session with the scripted agent and have it ask, without reading an answer."""
    assert process.stdin
    for ident, (method, given) in enumerate(
        [
            ("initialize", {"protocolVersion": 1}),
            ("session/new", {"cwd": str(work), "mcpServers": []}),
            ("session/prompt", {"sessionId": "s1", "prompt": [{"type": "text", "text": "make"}]}),
        ]
    ):
        message = {"jsonrpc": "2.0", "id": ident, "method": method, "params": given}
        process.stdin.write(json.dumps(message).encode() + b"\n")


@pytest.fixture(autouse=True)
def hearing() -> Iterator[None]:
    """Ignore no signal, whatever started the tests: what is started here would ignore it too."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL), signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGHUP, before[0])
    signal.signal(signal.SIGINT, before[1])


@pytest.mark.parametrize("way", [*SIGNALS, "agent", "input", "output", "full"])
def test_of_a_proxy_nothing_is_left(tmp_path: Path, way: str) -> None:
    dice = random.Random(way)  # noqa: S311 - the same each time
    for number in range(6):
        (tmp_path / str(number)).mkdir()
        here = Scene(tmp_path / str(number))
        step = [hook(here), "--prompt=inbox", "--prompt=client"][number % 3]
        process = here.start("ask", "3", options=[step, *(["--audit=/dev/full"] if way == "full" else [])])
        assert process.stdin and process.stdout and process.stderr
        converse(process, here.work)
        time.sleep(dice.choice([0.1, 0.5, 1.0]))
        if way == "agent":
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            until(lambda children=children: bool(children.read_text()), "the agent has started")  # type: ignore[misc]
            os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
        if way in SIGNALS:
            process.send_signal(signal.Signals[way])
        elif way == "output":
            process.stdout.close()
        if way not in SIGNALS:
            process.stdin.close()
        status = process.wait(20)
        assert b"Traceback" not in process.stderr.read() or way in ("SIGINT", "output")  # the agent's own
        if way in ("SIGTERM", "SIGHUP", "SIGKILL"):
            assert status == -signal.Signals[way]
        until(lambda here=here: not living(here), f"{way}: everything has ended", 5)  # type: ignore[misc]
        assert left(here) == []
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


@pytest.mark.parametrize("way", ["SIGTERM", "SIGINT", "SIGKILL"])
def test_of_a_daemon_nothing_is_left(tmp_path: Path, way: str) -> None:
    dice = random.Random(way)  # noqa: S311
    for number in range(4):
        (tmp_path / str(number)).mkdir()
        here = scene(tmp_path / str(number))
        daemon = Daemon(here, options=[[hook(here), "--prompt=inbox", "--prompt=client"][number % 3]]).start()
        peers = [daemon.peer(person=True) for _ in range(5)]
        for peer in peers:
            peer.request("session/request_permission", params("make"))
        time.sleep(dice.choice([0.3, 1.0]))
        peers.pop().close()
        assert daemon.stop(signal.Signals[way]) == (-signal.SIGKILL if way == "SIGKILL" else 0)
        until(lambda here=here: not living(here), f"{way}: everything has ended", 5)  # type: ignore[misc]
        assert left(here, *([".sock"] if way == "SIGKILL" else [])) == []
        for peer in peers:
            peer.close()
