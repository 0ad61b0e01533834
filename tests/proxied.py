"""A client for tests of the proxy: starts `policyd proxy` in a home of its own and talks to it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

AGENT = str(Path(__file__).parent / "agents_scripted.py")
POLICYD = [sys.executable, "-m", "policyd"]
POLICY = """
version = 1
[[rule]]
id = "ls"
effect = "allow"
command = ["ls", "ls **"]
[[rule]]
id = "no-rm"
effect = "deny"
command = "rm"
reason = "no removing here"
"""


@dataclass
class Scene:
    """A home, a workspace and a policy, all below one directory."""

    root: Path
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the directories and the policy."""
        for name in ("home", "work"):
            (self.root / name).mkdir()
        self.policy = self.root / "policy.toml"
        self.policy.write_text(POLICY)
        self.work = self.root / "work"
        self.audit = self.root / "home/.local/state/policyd/audit/audit.jsonl"
        self.environ = {"HOME": str(self.root / "home"), "PATH": os.environ["PATH"], **self.environ}

    def command(self, *agent: str, options: Sequence[str] = ()) -> list[str]:
        """Return the command line of a proxy for a scripted agent (or any, if its first word is a path)."""
        words = list(agent) if agent and agent[0].startswith("/") else [sys.executable, "-I", AGENT, *agent]
        return [*POLICYD, "proxy", "--policy", str(self.policy), *options, "--", *words]

    def start(self, *agent: str, options: Sequence[str] = (), **more: Any) -> subprocess.Popen[bytes]:
        """Start a proxy with pipes on all three sides."""
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        return subprocess.Popen(self.command(*agent, options=options), env=self.environ, bufsize=0, **streams)

    def run(self, *agent: str, data: bytes = b"", options: Sequence[str] = ()) -> subprocess.CompletedProcess[bytes]:
        """Run a proxy with `data` as the client's whole input."""
        command = self.command(*agent, options=options)
        return subprocess.run(command, env=self.environ, input=data, capture_output=True, timeout=60, check=False)

    def records(self) -> list[dict[str, Any]]:
        """Return the audit log."""
        return [json.loads(line) for line in self.audit.read_bytes().splitlines()]


@dataclass
class Listener:
    """Reads messages from what a descriptor leads to, one a line."""

    fd: int
    seen: list[dict[str, Any]] = field(default_factory=list)
    rest: bytes = b""

    def receive(self, seconds: float = 60.0) -> dict[str, Any]:
        """Return the next message; fails at the end."""
        while b"\n" not in self.rest:
            assert select.select([self.fd], [], [], seconds)[0], f"nothing came; before: {self.seen[-3:]}"
            data = os.read(self.fd, 1 << 16)
            assert data, f"it ended; before: {self.seen[-3:]}"
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        self.seen.append(message)
        return message

    def until(self, **wanted: object) -> dict[str, Any]:
        """Return the next message that has these top-level members; None: it has not."""
        while True:
            message = self.receive()
            if all(message.get(name) == value for name, value in wanted.items()):
                return message


class Client(Listener):
    """Speaks ACP with a started proxy, one message at a time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Read what the proxy prints."""
        assert process.stdout
        super().__init__(process.stdout.fileno())
        self.process = process

    def send(self, message: Mapping[str, object]) -> None:
        """Send one message."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def open(self, cwd: Path) -> None:
        """Do `initialize` and `session/new`."""
        client = {"name": "tests", "version": "1"}
        self.send({"id": 0, "method": "initialize", "params": {"protocolVersion": 1, "clientInfo": client}})
        self.until(id=0)
        self.send({"id": 1, "method": "session/new", "params": {"cwd": str(cwd), "mcpServers": []}})
        self.until(id=1)

    def prompt(self, text: str, ident: int = 2) -> None:
        """Prompt; the scripted agent asks for permission to run `text`."""
        prompt = [{"type": "text", "text": text}]
        self.send({"id": ident, "method": "session/prompt", "params": {"sessionId": "s1", "prompt": prompt}})

    def asked(self, text: str, ident: int = 2) -> dict[str, Any]:
        """Prompt and return how the agent's request was answered."""
        self.prompt(text, ident)
        answer: dict[str, Any] = self.until(method="answered")["params"]["result"]["outcome"]
        self.until(id=ident)
        return answer

    def close(self) -> int:
        """Close the input, return the exit status."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        status = self.process.wait(20)
        self.process.stdout.close()
        if self.process.stderr:
            self.process.stderr.close()
        return status


def gone(pid: int) -> bool:
    """Say whether a process ends within a few seconds."""
    for _ in range(500):
        try:
            os.kill(pid, 0)
            with open(f"/proc/{pid}/stat") as state:
                if state.read().rpartition(") ")[2][0] == "Z":
                    return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False
