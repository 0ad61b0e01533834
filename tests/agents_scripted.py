"""A small agent for tests of the proxy: a process that does what its first argument says.

python agents_scripted.py echo                # writes back every line
python agents_scripted.py ask N [once]        # N permission requests, prints what was answered to stderr
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable


def echo() -> None:
    """Write back what comes, as it comes."""
    while data := os.read(0, 65536):
        while data:
            data = data[os.write(1, data) :]


def file(path: str) -> None:
    """Write a file to standard output, then wait for the end of input."""
    with open(path, "rb") as source:
        while data := source.read(65536):
            while data:
                data = data[os.write(1, data) :]
    while os.read(0, 65536):
        pass


def exit_with(code: str) -> None:
    """Read to the end, say so on standard error, exit."""
    while os.read(0, 65536):
        pass
    os.write(2, b"agent's own words\n")
    sys.exit(int(code))


def die_by(number: str) -> None:
    """End by a signal."""
    os.kill(os.getpid(), int(number))
    time.sleep(10)


def stubborn(told: str = "") -> None:
    """Ignore the end of input and SIGTERM; say the pid; who is not ended says so to a descriptor."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(1, json.dumps({"jsonrpc": "2.0", "method": "pid", "params": {"pid": os.getpid()}}).encode() + b"\n")
    time.sleep(60)
    if told:
        os.write(int(told), b"nobody ended me\n")


def signals() -> None:
    """Say which signals come; end with SIGTERM."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, lambda n, frame: told(n))
    os.write(1, b'{"jsonrpc":"2.0","method":"ready"}\n')
    while True:
        time.sleep(10)


def told(number: int) -> None:
    """Report one signal."""
    os.write(1, json.dumps({"jsonrpc": "2.0", "method": "signal", "params": {"n": number}}).encode() + b"\n")
    if number == signal.SIGTERM:
        sys.exit(7)


def deaf(count: str) -> None:
    """Write without ever reading."""
    line = json.dumps({"jsonrpc": "2.0", "method": "x", "params": "y" * 1000}).encode() + b"\n"
    for _ in range(int(count)):
        data = line
        while data:
            data = data[os.write(1, data) :]
    while os.read(0, 65536):
        pass


def flood(count: str) -> None:
    """Ask for permission many times without reading an answer, then tell how many came."""
    for number in range(int(count)):
        say({"id": number, "method": "session/request_permission", "params": request("rm x", number)})
    say({"method": "asked"})
    answers = 0
    for line in sys.stdin.buffer:
        answers += b'"result"' in line
        if answers == int(count):
            say({"method": "answers", "params": {"n": answers}})


def ask(count: str, *once: str) -> None:
    """Answer `initialize` and `session/new`, ask for permission at every prompt, tell the answers in a message each.

    Requests have the same ids at every prompt; `once`: they offer no "always".
    """
    for line in filter(bytes.strip, sys.stdin.buffer):
        message = json.loads(line)
        method, ident = message.get("method"), message.get("id")
        if method == "initialize":
            say({"id": ident, "result": {"protocolVersion": 1, "agentInfo": {"name": "scripted", "version": "1"}}})
        elif method == "session/new":
            say({"id": ident, "result": {"sessionId": "s1"}})
        elif method == "session/prompt":
            text = message["params"]["prompt"][0]["text"]
            for number in range(int(count)):
                params = request(text, number)
                params["options"] = [one for one in OPTIONS if not (once and one["kind"] == "allow_always")]
                say({"id": number, "method": "session/request_permission", "params": params})
            asked = ident
        elif method is None:
            say({"method": "answered", "params": {"id": ident, "result": message.get("result")}})
            if ident == int(count) - 1:
                say({"id": asked, "result": {"stopReason": "end_turn"}})


KINDS = (("yes", "allow_once"), ("always", "allow_always"), ("no", "reject_once"))
OPTIONS = [{"optionId": ident, "name": ident, "kind": kind} for ident, kind in KINDS]


def request(text: str, number: int) -> dict[str, object]:
    """Return the parameters of a permission request for a command."""
    call = {"toolCallId": f"c{number}", "kind": "execute", "title": text, "rawInput": {"command": text}}
    return {"sessionId": "s1", "toolCall": call, "options": OPTIONS}


def say(message: dict[str, object]) -> None:
    """Write one message."""
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n")
    sys.stdout.buffer.flush()


DOES: dict[str, Callable[..., None]] = {
    "echo": echo,
    "file": file,
    "exit": exit_with,
    "die": die_by,
    "stubborn": stubborn,
    "signals": signals,
    "deaf": deaf,
    "flood": flood,
    "ask": ask,
}

if __name__ == "__main__":
    DOES[sys.argv[1]](*sys.argv[2:])
