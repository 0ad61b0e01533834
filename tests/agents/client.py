"""A client as plain as can be: JSON lines on pipes, every message kept, every request answered by one function."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

Json = dict[str, Any]
Answer = Callable[[Json], Json]
CAPABILITIES = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": False}


def choose(kind: str) -> Answer:
    """Return an answer that takes the first option of `kind`, else cancels."""

    def answer(params: Json) -> Json:
        ids = [option["optionId"] for option in params["options"] if option.get("kind") == kind]
        return {"outcome": {"outcome": "selected", "optionId": ids[0]} if ids else {"outcome": "cancelled"}}

    return answer


class LineClient:
    """One agent process and everything said to and by it."""

    def __init__(self, command: list[str], env: Mapping[str, str], cwd: Path, answer: Answer) -> None:
        self.answer = answer
        self.sent: list[Json] = []
        self.received: list[Json] = []
        self.asked: list[Json] = []
        self.replies: queue.Queue[Json | None] = queue.Queue()
        self.errors: list[str] = []
        self.number = 100
        self.process = subprocess.Popen(
            command,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.threads = [threading.Thread(target=target, daemon=True) for target in (self.read, self.read_errors)]
        for thread in self.threads:
            thread.start()

    def __enter__(self) -> LineClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self, patience: float = 5.0) -> int:
        """Close the agent's input, wait, then kill its group; return its status."""
        if self.process.stdin:
            self.process.stdin.close()
        try:
            status = self.process.wait(patience)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            status = self.process.wait(patience)
        for thread in self.threads:
            thread.join(patience)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()
        return status

    def read(self) -> None:
        """Sort what the agent says: requests are answered, replies queued."""
        assert self.process.stdout
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            self.received.append(message)
            if "method" in message and "id" in message:
                self.serve(message)
            elif "id" in message:
                self.replies.put(message)
        self.replies.put(None)

    def read_errors(self) -> None:
        """Keep stderr."""
        assert self.process.stderr
        for line in self.process.stderr:
            self.errors.append(line.decode(errors="replace").rstrip())

    def serve(self, message: Json) -> None:
        """Answer one request of the agent."""
        method, params = message["method"], message.get("params") or {}
        reply: Json = {"jsonrpc": "2.0", "id": message["id"]}
        if method == "session/request_permission":
            self.asked.append(params)
            reply["result"] = self.answer(params)
        elif method == "fs/read_text_file":
            path = Path(params["path"])
            if path.is_file():
                reply["result"] = {"content": path.read_text()}
            else:
                reply["error"] = {"code": -32002, "message": "not found"}
        elif method == "fs/write_text_file":
            Path(params["path"]).parent.mkdir(parents=True, exist_ok=True)
            Path(params["path"]).write_text(params["content"])
            reply["result"] = None
        else:
            reply["error"] = {"code": -32601, "message": f"{method} is not offered"}
        self.write(reply)

    def write(self, message: Json) -> None:
        """Send one message."""
        assert self.process.stdin
        self.sent.append(message)
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, method: str, params: Json, patience: float = 90.0) -> Json:
        """Send a request and return its result.

        Raises:
            RuntimeError: an error reply, the end of the agent, or no reply in `patience` seconds.
        """
        self.number += 1
        self.write({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        end = time.monotonic() + patience
        while (left := end - time.monotonic()) > 0:
            try:
                message = self.replies.get(timeout=left)
            except queue.Empty:
                break
            if message is None:
                raise RuntimeError(f"{method}: the agent ended\n" + "\n".join(self.errors[-20:]))
            if message["id"] != self.number:
                continue
            if "error" in message:
                raise RuntimeError(f"{method}: {message['error']}\n" + "\n".join(self.errors[-20:]))
            return dict(message["result"] or {})
        raise RuntimeError(f"{method}: no reply in {patience} s\n" + "\n".join(self.errors[-20:]))

    def open(self, cwd: Path, name: str = "line-client") -> Json:
        """Shake hands and open a session; return the result of `session/new`."""
        info = {"name": name, "version": "1.0.0"}
        params = {"protocolVersion": 1, "clientCapabilities": CAPABILITIES, "clientInfo": info}
        hello = self.call("initialize", params)
        for method in hello.get("authMethods") or []:
            if method.get("id") == "gemini-api-key":
                self.call("authenticate", {"methodId": "gemini-api-key"})
        return self.call("session/new", {"cwd": str(cwd), "mcpServers": []})

    def prompt(self, session: str, text: str) -> str:
        """Send a prompt and return the reason the turn stopped."""
        block = {"type": "text", "text": text}
        return str(self.call("session/prompt", {"sessionId": session, "prompt": [block]})["stopReason"])
