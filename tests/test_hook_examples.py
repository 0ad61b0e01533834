"""The three example hooks, run for real: on a terminal, with a stand-in for the desktop, against a local service."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import pty
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from policyd.model import Effect
from policyd.prompts import Outcome
from policyd.service.hooks import Hooks
from tests.hookscripts import put_to, write

EXAMPLES = Path(__file__).parent.parent / "examples" / "hooks"
SECRET = "s" * 40
DRIVER = """
import fcntl, queue, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from policyd.service.hooks import Hooks
from tests.hookscripts import put_to
answers = queue.Queue()
hooks = Hooks(replied=lambda n, a: answers.put((n, a)), failed=lambda n, a: answers.put((n, a)))
outcome = put_to((hooks, answers), sys.argv[1], float(sys.argv[3]))
hooks.close()
open(sys.argv[2], "w").write(f"{outcome.effect.word} {outcome.by} {outcome.option}")
"""


def example(name: str, tmp_path: Path) -> str:
    """A copy of an example, as its text says: in a place only its user can write."""
    return write(tmp_path / name, (EXAMPLES / name).read_text("utf-8"))


def at_terminal(tmp_path: Path, typed: str | None, seconds: float = 20.0) -> tuple[str, str]:
    """Ask on a terminal, type, and return what was shown and how it ended."""
    ours, theirs = pty.openpty()
    out = tmp_path / "out"
    words = [sys.executable, "-c", DRIVER, example("terminal.py", tmp_path), str(out), str(seconds)]
    with subprocess.Popen(words, stdin=theirs, start_new_session=True, cwd=EXAMPLES.parent.parent) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):
            while b"Enter to reject" not in shown:
                shown += os.read(ours, 4096)
            if typed is not None:
                os.write(ours, typed.encode())
        assert process.wait(30) == 0
    os.close(ours)
    return shown.decode(), out.read_text("utf-8")


@pytest.mark.parametrize(
    ("typed", "ended"),
    [
        ("1\n", "allow command proceed_once"),
        ("2\n", "deny command cancel"),
        ("\n", "deny command "),
        ("0\n", "deny command "),
        ("99\n", "deny command "),
        ("yes\n", "deny command "),
        ("1 \n", "allow command proceed_once"),
        ("-1\n", "deny command "),
        ("١\n", "deny command "),
    ],
)
def test_the_terminal_hook_takes_a_number(tmp_path: Path, typed: str, ended: str) -> None:
    shown, outcome = at_terminal(tmp_path, typed)
    assert outcome == ended
    for text in ("claude-code 1.0 asks", "run npm test", "1) Allow once", "because user:asks asks"):
        assert text in shown


def test_an_unanswered_terminal_is_a_rejection(tmp_path: Path) -> None:
    assert at_terminal(tmp_path, None, 1.0)[1] == "deny policyd "


def test_the_terminal_hook_abstains_without_a_terminal(tmp_path: Path) -> None:
    said = subprocess.run(
        [example("terminal.py", tmp_path)],
        input=json.dumps({"nonce": "n", "digest": "d"}),
        capture_output=True,
        text=True,
        start_new_session=True,
        check=True,
    )
    assert json.loads(said.stdout)["decision"] == "abstain"


# ---- desktop ----------------------------------------------------------------------------------------

QUESTION = {
    "agent": "claude",
    "project": "/p",
    "title": "Run <b>npm</b>",
    "actions": ["run npm test"],
    "details": [],
    "reason": "rule",
    "options": [
        {"id": "yes", "name": "Allow once", "kind": "allow_once"},
        {"id": "no", "name": "Reject", "kind": "reject_once"},
    ],
    "seconds": 5,
    "nonce": "n",
    "digest": "d",
}


def on_desktop(tmp_path: Path, service: str, question: dict[str, object] | None = None) -> dict[str, object]:
    """Ask with a stand-in for `notify-send` whose script is `service`."""
    place = tmp_path / "bin"
    place.mkdir()
    write(place / "notify-send", f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/words\n{service}\n')
    said = subprocess.run(
        [sys.executable, example("desktop.py", tmp_path)],
        input=json.dumps(question or QUESTION),
        capture_output=True,
        text=True,
        env={"PATH": f"{place}:/usr/bin:/bin"},
        check=True,
    )
    found: dict[str, object] = json.loads(said.stdout)
    return found


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS shows a dialog")
@pytest.mark.parametrize(
    ("service", "decision", "option"),
    [
        ("echo 0", "allow", "yes"),
        ("echo 1", "reject", "no"),
        ("echo 2", "reject", None),
        ("true", "reject", None),
        ("echo x", "reject", None),
        ("exit 1", "abstain", None),
        ("echo 0; exit 1", "abstain", None),
    ],
)
def test_the_desktop_hook_takes_a_button(tmp_path: Path, service: str, decision: str, option: str | None) -> None:
    found = on_desktop(tmp_path, service)
    assert (found["decision"], found.get("option")) == (decision, option)
    words = (tmp_path / "words").read_text("utf-8")
    assert "--action=0=Allow once" in words
    assert "&lt;b&gt;" in words


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS shows a dialog")
def test_what_does_not_fit_into_a_notification_is_not_allowed_there(tmp_path: Path) -> None:
    long = {**QUESTION, "actions": ["run " + "x" * 5000 + " THE END"]}
    found = on_desktop(tmp_path, "echo 1", long)
    assert found["decision"] == "abstain"
    words = (tmp_path / "words").read_text("utf-8")
    assert "characters more" in words
    assert "THE END" in words
    assert "Allow once" not in words


# ---- webhook ----------------------------------------------------------------------------------------


def sign(prefix: str, body: bytes) -> str:
    return "sha256=" + hmac.new(SECRET.encode(), prefix.encode() + b"." + body, hashlib.sha256).hexdigest()


Respond = Callable[[BaseHTTPRequestHandler, dict[str, object]], None]


@contextlib.contextmanager
def service(respond: Respond) -> Iterator[int]:
    """A service on this machine that checks the signature and answers by `respond`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.headers["X-Policyd-Signature"] == sign(self.headers["X-Policyd-Time"], body)
            assert abs(int(self.headers["X-Policyd-Time"]) - time.time()) < 60
            respond(self, json.loads(body))

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def say(handler: BaseHTTPRequestHandler, answer: object, signature: str | None, status: int = 200) -> None:
    body = json.dumps(answer).encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    if signature is not None:
        handler.send_header("X-Policyd-Signature", signature)
    handler.end_headers()
    handler.wfile.write(body)


def signed(answer: object, status: int = 200, nonce: str | None = None) -> Respond:
    def respond(handler: BaseHTTPRequestHandler, question: dict[str, object]) -> None:
        prefix = str(question["nonce"]) if nonce is None else nonce
        say(handler, answer, sign(prefix, json.dumps(answer).encode()), status)

    return respond


def unsigned(handler: BaseHTTPRequestHandler, _: dict[str, object]) -> None:
    say(handler, {"decision": "allow"}, None)


ANSWERS: dict[str, tuple[Respond, Effect, str]] = {
    "allow": (signed({"decision": "allow"}), Effect.ALLOW, "command"),
    "allow by option": (signed({"decision": "allow", "option": "proceed_once"}), Effect.ALLOW, "command"),
    "reject": (signed({"decision": "reject", "message": "no"}), Effect.DENY, "command"),
    "abstain": (signed({"decision": "abstain"}), Effect.DENY, "policyd"),
    "no signature": (unsigned, Effect.DENY, "policyd"),
    "signed for another question": (signed({"decision": "allow"}, nonce="old"), Effect.DENY, "policyd"),
    "an error": (signed({"decision": "allow"}, status=500), Effect.DENY, "policyd"),
    "a redirect": (signed({"decision": "allow"}, status=302), Effect.DENY, "policyd"),
    "accepted for later": (signed({"decision": "allow"}, status=202), Effect.DENY, "policyd"),
    "no decision": (signed({"ok": True}), Effect.DENY, "policyd"),
    "a list": (signed(["allow"]), Effect.DENY, "policyd"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_webhook_hears_signed_answers_only(name: str, tmp_path: Path) -> None:
    respond, effect, by = ANSWERS[name]
    with service(respond) as port:
        outcome = ask_service(tmp_path, f"http://127.0.0.1:{port}/x?y=1")
    assert (outcome.effect, outcome.by) == (effect, by)


@pytest.mark.parametrize("url", ["http://approvals.example.org/", "ftp://127.0.0.1/", "", "http://127.0.0.1:1/"])
def test_a_service_that_is_not_safe_or_not_there_is_no_yes(url: str, tmp_path: Path) -> None:
    assert ask_service(tmp_path, url).effect is Effect.DENY


@pytest.mark.parametrize(("mode", "secret"), [(0o644, SECRET), (0o600, "short")])
def test_a_secret_that_is_none_is_refused(mode: int, secret: str, tmp_path: Path) -> None:
    with service(signed({"decision": "allow"})) as port:
        assert ask_service(tmp_path, f"http://127.0.0.1:{port}/", mode, secret).effect is Effect.DENY


def ask_service(tmp_path: Path, url: str, mode: int = 0o600, secret: str = SECRET) -> Outcome:
    settings = tmp_path / "webhook.json"
    settings.write_text(json.dumps({"url": url, "secret": secret}), "utf-8")
    settings.chmod(mode)
    answers: queue.Queue[tuple[int, object]] = queue.Queue()
    hooks = Hooks(replied=lambda n, a: answers.put((n, a)), failed=lambda n, a: answers.put((n, a)))
    try:
        return put_to((hooks, answers), example("webhook.py", tmp_path))
    finally:
        hooks.close()
