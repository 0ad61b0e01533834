"""A machine as the examples assume it: policyd and an agent installed below one directory, a home, a project.

The examples name `/usr/local/bin/…`; a test reads them with that directory replaced by the house's own, as a reader
puts in theirs. policyd there is the installed one, but for the password database, which says that the house's home is
the user's: clients that pass no HOME leave nothing else to go by.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.agents.launch import MODULES, node
from tests.proxied import Listener

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
POLICY = """
version = 1
[[rule]]
id      = "look"
effect  = "allow"
command = "ls"
[[rule]]
id      = "no-rm"
effect  = "deny"
command = "rm"
reason  = "Nothing is removed."
[[rule]]
id      = "push"
effect  = "ask"
command = "git push"
"""
POLICYD = """#!{python}
import pwd, sys
entry = pwd.struct_passwd(("dev", "x", 0, 0, "", "{home}", "/bin/sh"))
pwd.getpwuid = lambda uid: entry
sys.path.insert(0, "{root}")
from policyd.cli import main
sys.exit(main())
"""
DESKTOP_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


@dataclass
class House:
    """Directories of one test, and what is installed there."""

    root: Path
    bin: Path = field(init=False)
    home: Path = field(init=False)
    work: Path = field(init=False)

    def __post_init__(self) -> None:
        """Install policyd, an agent and the user's policy."""
        self.bin, self.home, self.work = (self.root / name for name in ("bin", "home", "work"))
        policies = self.home / ".config/policyd/policies.d"
        for folder in (self.bin, policies, self.work):
            folder.mkdir(parents=True)
        (policies / "mine.toml").write_text(POLICY)
        self.install("policyd", POLICYD.format(python=sys.executable, home=self.home, root=ROOT))
        scripted = shlex.join([sys.executable, "-I", str(ROOT / "tests/agents_scripted.py"), "ask", "1"])
        self.install("claude-agent-acp", f"#!/bin/sh\nexec {scripted}\n")

    def install(self, name: str, text: str) -> Path:
        """Install a program."""
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def install_line_agent(self) -> None:
        """Install the agent of `examples/python`, which really does what it is allowed to, as claude-agent-acp."""
        agent = shlex.join([sys.executable, str(EXAMPLES / "python/agent.py")])
        self.install("claude-agent-acp", f"#!/bin/sh\nexec {agent}\n")

    def install_acpx(self) -> bool:
        """Install acpx, the real one where it is; say whether it is."""
        program, entry = node(), MODULES / "acpx/dist/cli.js"
        real = program is not None and entry.exists()
        words = [str(program), str(entry)] if real else [sys.executable, str(ROOT / "tests/acpx_standin.py")]
        self.install("acpx", f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        return real

    def read(self, name: str) -> str:
        """Return an example with this house's directory in the place of `/usr/local/bin`."""
        return (EXAMPLES / name).read_text().replace("/usr/local/bin/", f"{self.bin}/")

    def environ(self, **more: str) -> dict[str, str]:
        """Return a terminal's environment."""
        path = f"{self.bin}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {"HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8", **more}

    def records(self) -> list[dict[str, Any]]:
        """Return the audit log."""
        path = self.home / ".local/state/policyd/audit/audit.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]


class Talk(Listener):
    """One client's conversation with what it started."""

    def __init__(self, process: subprocess.Popen[bytes], *, blank_lines: bool) -> None:
        """Listen to what was started."""
        assert process.stdout
        super().__init__(process.stdout.fileno())
        self.process, self.blank_lines = process, blank_lines
        self.asked: list[str] = []
        """Titles of what reached the client as a question."""

    def say(self, **message: object) -> None:
        """Send one message."""
        assert self.process.stdin
        end = b"\n\n" if self.blank_lines else b"\n"
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + end)

    def answer(self, ident: int) -> dict[str, Any]:
        """Return the result of request `ident`; say yes once to whatever is asked meanwhile."""
        told: dict[str, Any] = {}
        while True:
            message = self.receive()
            if message.get("method") == "session/request_permission":
                self.asked.append(message["params"]["toolCall"]["title"])
                once = next(one["optionId"] for one in message["params"]["options"] if one["kind"] == "allow_once")
                self.say(id=message["id"], result={"outcome": {"outcome": "selected", "optionId": once}})
            elif message.get("method") == "answered":
                told = message["params"]["result"]["outcome"]
            elif message.get("id") == ident and "method" not in message:
                return {**message["result"], "told": told}

    def open(self, info: Mapping[str, str] | None, cwd: Path) -> None:
        """Do `initialize` and `session/new`."""
        named = {"clientInfo": info} if info else {}
        self.say(id=0, method="initialize", params={"protocolVersion": 1, **named})
        self.answer(0)
        self.say(id=1, method="session/new", params={"cwd": str(cwd), "mcpServers": []})
        self.answer(1)

    def prompt(self, text: str, ident: int) -> dict[str, str]:
        """Have the scripted agent ask to run `text`; return what it was told."""
        prompt = [{"type": "text", "text": text}]
        self.say(id=ident, method="session/prompt", params={"sessionId": "s1", "prompt": prompt})
        told: dict[str, str] = self.answer(ident)["told"]
        return told

    def close(self) -> int:
        """Close the input; return the exit status."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(20)

    def end(self) -> None:
        """End it, however it stands, and close everything."""
        self.process.kill()
        self.process.wait(20)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()


def start(words: Sequence[str], env: Mapping[str, str], cwd: Path, *, blank_lines: bool = False) -> Talk:
    """Start what a client would."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(list(words), env=dict(env), cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
    return Talk(process, blank_lines=blank_lines)
