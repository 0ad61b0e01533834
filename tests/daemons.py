"""A daemon for tests: `policyd serve` in a home of its own, and an embedder that talks to it."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.proxied import POLICYD, Listener, Scene

OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


def params(command: str, *, session: str = "s1", call: str = "c1") -> dict[str, Any]:
    """Return the params of a permission request to run `command`."""
    tool_call = {"toolCallId": call, "kind": "execute", "title": command, "rawInput": {"command": command}}
    return {"sessionId": session, "toolCall": tool_call, "options": OPTIONS}


@dataclass
class Daemon:
    """A running daemon and where it listens."""

    scene: Scene
    options: Sequence[str] = ()
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def path(self) -> str:
        """Its socket."""
        return str(self.scene.root / "run" / "policyd.sock")

    def command(self, *more: str) -> list[str]:
        """Return the command line of a daemon of this scene."""
        return [*POLICYD, "serve", "--policy", str(self.scene.policy), *self.options, *more]

    def start(self) -> Daemon:
        """Start it; return when it takes connections."""
        log = (self.scene.root / "daemon.log").open("ab")
        self.process = subprocess.Popen(
            self.command("--socket", self.path),
            env=self.scene.environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        log.close()
        until(lambda: answers(self.path), f"the daemon listens at {self.path}")
        return self

    def stop(self, number: int = 15) -> int:
        """Send a signal; return how it ended."""
        self.process.send_signal(number)
        return self.process.wait(20)

    def peer(self, *, person: bool = False, cwd: str | None = None, **hello: object) -> Peer:
        """Return a connected embedder, its session opened."""
        return self.stranger().greet(person=person, cwd=cwd or str(self.scene.work), **hello)

    def stranger(self) -> Peer:
        """Return a connected peer that has said nothing."""
        one = socket.socket(socket.AF_UNIX)
        one.connect(self.path)
        return Peer(one.detach())

    def __enter__(self) -> Daemon:
        """Start it."""
        return self.start()

    def __exit__(self, *ignored: object) -> None:
        """End it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@dataclass
class Peer(Listener):
    """An embedder on a connected descriptor."""

    count: int = 0

    def greet(self, *, person: bool = False, cwd: str = "/work", **hello: object) -> Peer:
        """Say hello and open the session `s1`."""
        given = {"protocol": 1, "client": {"name": "tests", "version": "1"}, "person": person, **hello}
        self.call("_policyd/hello", given)
        self.call("_policyd/session", {"sessionId": "s1", "cwd": cwd})
        return self

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        while data:
            data = data[os.write(self.fd, data) :]

    def send(self, message: Mapping[str, object]) -> None:
        """Send one message."""
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def request(self, method: str, given: Mapping[str, object]) -> int:
        """Send a request; return its id."""
        self.count += 1
        self.send({"id": self.count, "method": method, "params": given})
        return self.count

    def call(self, method: str, given: Mapping[str, object]) -> Any:
        """Return the result of a request."""
        return self.result(self.request(method, given))

    def result(self, ident: object) -> Any:
        """Return the result that answers a request."""
        message = self.until(id=ident, method=None)
        assert "result" in message, message
        return message["result"]

    def ask(self, command: str, **more: str) -> Any:
        """Ask for permission to run a command; return the result."""
        return self.call("session/request_permission", params(command, **more))

    def ended(self) -> bool:
        """Say whether the daemon closed the connection, reading what is left."""
        while True:
            assert select.select([self.fd], [], [], 20)[0], "the connection stays open"
            try:
                if not os.read(self.fd, 1 << 16):
                    return True
            except ConnectionResetError:
                return True

    def close(self) -> None:
        """Hang up."""
        os.close(self.fd)


def chosen(result: Mapping[str, Any]) -> str:
    """Return the option a result selects, `cancelled` if none."""
    outcome = result["outcome"]
    return str(outcome.get("optionId", outcome["outcome"]))


def answers(path: str) -> bool:
    """Say whether somebody listens at a socket."""
    with socket.socket(socket.AF_UNIX) as one:
        try:
            one.connect(path)
        except OSError:
            return False
        return True


def until(done: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.01)


def scene(root: Path) -> Scene:
    """Return a scene with a directory for the socket."""
    made = Scene(root)
    (root / "run").mkdir(mode=0o700)
    return made


ACTIVATE = """
import os, socket, sys
os.environ["LISTEN_PID"], os.environ["LISTEN_FDS"] = str(os.getpid()), "1"
os.execvp(sys.argv[1], sys.argv[1:])
"""


@contextmanager
def activated(daemon: Daemon, listener: socket.socket) -> Iterator[subprocess.Popen[bytes]]:
    """Run a daemon as systemd would, with a listening socket as descriptor 3; end it in order."""
    words = [sys.executable, "-c", ACTIVATE, *daemon.command()]

    def hand() -> None:
        os.dup2(listener.fileno(), 3)

    with (daemon.scene.root / "daemon.log").open("ab") as log:
        process = subprocess.Popen(
            words, env=daemon.scene.environ, pass_fds=(3,), preexec_fn=hand, stdout=log, stderr=log
        )
    try:
        yield process
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


def started(daemon: Daemon, *agent: str) -> subprocess.Popen[bytes]:
    """Start a proxy whose daemon this is."""
    words = daemon.scene.command(*agent)
    at = words.index("--policy")
    words[at : at + 2] = [f"--connect={daemon.path}"]
    with (daemon.scene.root / "proxy.log").open("ab") as log:
        pipe = subprocess.PIPE
        return subprocess.Popen(words, env=daemon.scene.environ, bufsize=0, stdin=pipe, stdout=pipe, stderr=log)


def said(daemon: Daemon) -> str:
    """Return what the proxy wrote to standard error."""
    return (daemon.scene.root / "proxy.log").read_text()


class Manager:
    """A service manager that listens to notifications."""

    def __init__(self, place: Path) -> None:
        self.path = str(place / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(20)

    def told(self) -> dict[str, str]:
        """Return the next notification."""
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())

    def until(self, name: str) -> dict[str, str]:
        """Return the next notification that has this member."""
        while name not in (said := self.told()):
            pass
        return said
