"""`policyd proxy --connect`: the daemon decides, the proxy moves bytes; a lost daemon means rejection."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from policyd.proxy.denying import Local
from policyd.proxy.link import Link, LostError, check_hello
from policyd.proxy.options import UsageError, parse
from policyd.session import Side
from policyd.storage import places
from tests.daemons import Daemon, answers, said, scene, started, until
from tests.proxied import POLICYD, Client


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A running daemon."""
    with Daemon(scene(tmp_path)) as running:
        yield running


def connected(daemon: Daemon, *agent: str) -> Client:
    """Return a client of a proxy whose daemon this is, its session open; default: of an agent that asks once."""
    client = Client(started(daemon, *(agent or ("ask", "1"))))
    client.open(daemon.scene.work)
    return client


def decisions(daemon: Daemon) -> list[tuple[str, str]]:
    """Return effect and transport of every decision on record."""
    rows = [row for row in daemon.scene.records() if row.get("event") == "decision"]
    return [(row["effect"], row["transport"]) for row in rows]


def test_the_daemon_decides_for_a_proxy_that_has_no_policy(daemon: Daemon) -> None:
    client = connected(daemon)
    assert client.asked("ls") == {"outcome": "selected", "optionId": "yes"}
    assert client.asked("rm x", 3)["optionId"] == "no"
    assert client.close() == 0
    assert decisions(daemon) == [("allow", "connect"), ("deny", "connect")]


def test_a_question_reaches_the_client_through_the_daemon(daemon: Daemon) -> None:
    client = connected(daemon)
    client.prompt("npm test")
    question = client.until(method="session/request_permission")
    client.send({"id": question["id"], "result": {"outcome": {"outcome": "selected", "optionId": "yes"}}})
    assert client.until(method="answered")["params"]["result"]["outcome"]["optionId"] == "yes"
    client.close()


def test_the_daemon_is_told_where_the_agent_was_started(tmp_path: Path) -> None:
    here = Daemon(scene(tmp_path))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(here.path)
        listener.listen()
        words = [*POLICYD, "proxy", f"--connect={here.path}", f"--cwd={here.scene.work}", "--", "cat"]
        process = subprocess.Popen(words, env=here.scene.environ, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        one, _ = listener.accept()
        with one, one.makefile("rb") as lines:
            hello = json.loads(lines.readline())
    assert hello["params"]["cwd"] == str(here.scene.work)
    process.kill()
    process.communicate()


def lines_of(size: int, seed: int) -> bytes:
    """Return lines of every kind: updates, noise, long ones, bytes that are no UTF-8, the last without a newline."""
    rng = random.Random(seed)  # noqa: S311
    lines = [b"", b"noise \xff\xfe", b'{"jsonrpc":"2.0","method":"x","params":"\xe2\x80\xa8\xc2\x85"}\r', b"[" * 40]
    while sum(map(len, lines)) < size:
        text = "".join(
            rng.choice(["a", "é", "\U0001f600", "\\u0000", "\\n"]) for _ in range(rng.choice([3, 300, 70_000]))
        )
        lines.append(f'{{"jsonrpc":"2.0","method":"session/update","params":{{"t":"{text}"}}}}'.encode())
    return b"\n".join(lines) + b'\n{"jsonrpc":"2.0","method":"last"}'


def passing(data: bytes) -> bytes:
    """Return what of the lines is a message, or blank: noise is dropped."""
    kept = [line for line in data.split(b"\n") if line.startswith(b"{") or not line]
    return b"\n".join(kept)


def test_what_passes_leaves_with_the_bytes_it_came_with(daemon: Daemon) -> None:
    data = lines_of(3_000_000, 1)
    source = daemon.scene.root / "lines"
    source.write_bytes(data)
    process = started(daemon, "file", str(source))
    assert process.stdin and process.stdout
    closer = threading.Timer(0.5, process.stdin.close)
    closer.start()
    with process.stdout as output:
        got = output.read()
    closer.join()
    assert process.wait(20) == 0
    assert got == passing(data)


def test_a_line_longer_than_a_message_is_relayed_in_pieces(daemon: Daemon) -> None:
    line = b'{"jsonrpc":"2.0","method":"_x/long","params":"' + b"\xc3\xa9x\\u0001" * 1_600_000 + b'"}\n'
    source = daemon.scene.root / "lines"
    source.write_bytes(line)
    process = started(daemon, "file", str(source))
    assert process.stdin and process.stdout
    got = b""
    while len(got) < len(line):
        got += os.read(process.stdout.fileno(), 1 << 20)
    process.stdin.close()
    assert process.wait(20) == 0 and got == line
    process.stdout.close()


# ---- a daemon that is gone ----------------------------------------------------------------------------


def test_without_a_daemon_everything_judged_is_rejected_and_the_rest_passes(tmp_path: Path) -> None:
    daemon = Daemon(scene(tmp_path))
    client = connected(daemon)
    client.prompt("ls")
    answer = client.until(method="answered")["params"]["result"]
    assert answer["outcome"] == {"outcome": "selected", "optionId": "no"}
    assert "cannot be reached" in answer["_meta"]["policyd"]["reason"]
    client.until(id=2)
    assert client.close() == 0 and "no daemon" in said(daemon)


@pytest.mark.parametrize("bytes_", [b"no json\n", b"[" * 50_000 + b"\n", b'{"a":' * 10_000 + b"\n", b"\xff\n"])
def test_a_daemon_that_says_what_cannot_be_read_is_lost(bytes_: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(bytes_)
        link = Link(ours)
        with pytest.raises(LostError, match="cannot be read"):
            for _ in iter(link.read, [{}]):
                pass


@pytest.mark.parametrize("answer", [{}, {"result": {}}, {"result": {"protocol": 2}}, {"error": {"message": "no"}}])
def test_a_daemon_that_speaks_another_protocol_is_none(answer: dict[str, object]) -> None:
    assert check_hello({"result": {"protocol": 1, "revision": "r"}}) == "r"
    with pytest.raises(LostError):
        check_hello(answer)


SERVERS = {"mcpServers": [{"name": "notes", "command": "npx", "args": ["notes"], "env": []}]}
PROMPT = {"id": 3, "method": "session/prompt", "params": {"sessionId": "s1", "prompt": []}}


def alone() -> Local:
    """Return what stands in for a lost daemon."""
    return Local(places.find(home="/home/dev", environ={}), "it ended", agent="", client="", note=print)


def opening(more: Mapping[str, object]) -> bytes:
    """Return a client's request for a session, as a line."""
    return line({"id": 1, "method": "session/new", "params": {"cwd": "/work", "mcpServers": [], **more}})


def opened(mode: str) -> bytes:
    """Return an agent's answer to it that says which mode it is in; it has no other."""
    modes = {"currentModeId": mode, "availableModes": [{"id": mode, "name": mode}]}
    return line({"id": 1, "result": {"sessionId": "s1", "modes": modes}})


def line(message: Mapping[str, object]) -> bytes:
    """Return a message as it stands on the wire, without its newline."""
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def sent(local: Local, side: Side, *lines: bytes) -> list[tuple[Side, dict[str, Any]]]:
    """Return what leaves, and to whom, when a side says something to it."""
    found = local.feed(side, b"\n".join(lines) + b"\n")
    return [(to, json.loads(one)) for to, data in found for one in data.splitlines()]


def test_without_a_daemon_no_server_is_started_that_it_might_deny() -> None:
    local = alone()
    ((to, answer),) = sent(local, Side.CLIENT, opening(SERVERS))
    assert to is Side.CLIENT and "cannot be reached" in answer["error"]["message"] and local.rejected == 1
    assert [to for to, _ in sent(local, Side.CLIENT, opening({}))] == [Side.AGENT]


def test_without_a_daemon_an_agent_that_may_not_ask_gets_no_prompt() -> None:
    local = alone()
    sent(local, Side.CLIENT, opening({}))
    sent(local, Side.AGENT, opened("yolo"))
    ((to, answer),) = sent(local, Side.CLIENT, line(PROMPT))
    assert to is Side.CLIENT and "could not make this agent ask" in answer["error"]["message"]


@pytest.mark.parametrize("answered", [True, False])
def test_what_passed_before_the_daemon_was_lost_is_not_judged_again(answered: bool) -> None:
    local = alone()
    if answered:
        assert [*local.learn(Side.CLIENT, opening(SERVERS)), *local.learn(Side.AGENT, opened("default"))] == []
    else:
        local.adopt(Side.CLIENT, opening(SERVERS))
        assert [to for to, _ in sent(local, Side.AGENT, opened("default"))] == [Side.CLIENT]
    assert [to for to, _ in sent(local, Side.CLIENT, line(PROMPT))] == [Side.AGENT]


def test_a_killed_daemon_means_rejection_until_another_is_there(daemon: Daemon) -> None:
    client = connected(daemon)
    assert client.asked("ls")["optionId"] == "yes"
    daemon.stop(signal.SIGKILL)
    assert client.asked("ls", 3)["optionId"] == "no"
    daemon.start()
    until(lambda: "the daemon is back" in said(daemon), "the proxy finds the daemon again")
    assert client.asked("ls", 4)["optionId"] == "yes"
    assert client.close() == 0
    assert [row["rejected"] for row in daemon.scene.records() if row["event"] == "unreachable"] == [1]


def test_a_question_that_was_open_when_the_daemon_went_is_rejected_and_withdrawn(daemon: Daemon) -> None:
    client = connected(daemon)
    client.prompt("npm test")
    question = client.until(method="session/request_permission")
    daemon.stop(signal.SIGKILL)
    assert client.until(method="$/cancel_request")["params"] == {"requestId": question["id"]}
    assert client.until(method="answered")["params"]["result"]["outcome"]["optionId"] == "no"
    client.send({"id": question["id"], "result": {"outcome": {"outcome": "selected", "optionId": "yes"}}})
    client.until(id=2)
    assert client.asked("ls", 3)["optionId"] == "no"
    assert len([one for one in client.seen if one.get("method") == "answered"]) == 2
    client.close()


@pytest.mark.slow
def test_an_answer_to_a_question_of_a_lost_daemon_is_none_to_one_of_the_next_under_its_id(daemon: Daemon) -> None:
    client = connected(daemon, "ask", "1", "once")
    client.prompt("npm test $(")  # not understood: nothing is offered, so the question goes out as it came
    lost = client.until(method="session/request_permission")
    daemon.stop(signal.SIGKILL)
    client.until(id=2)
    daemon.start()
    until(lambda: "the daemon is back" in said(daemon), "the proxy finds the daemon again")
    client.prompt("git push $(", 3)
    question = client.until(method="session/request_permission")
    for ident, option in ((0, "yes"), (lost["id"], "yes"), (question["id"], "no")):
        client.send({"id": ident, "result": {"outcome": {"outcome": "selected", "optionId": option}}})
    assert client.until(method="answered")["params"]["result"]["outcome"]["optionId"] == "no"
    client.close()


def test_requests_that_passed_before_are_answered_across_two_daemons(daemon: Daemon) -> None:
    client = connected(daemon)
    client.prompt("npm test", 9)
    client.until(method="session/request_permission")
    daemon.stop(signal.SIGKILL)
    assert client.until(id=9)["result"] == {"stopReason": "end_turn"}
    client.close()


@pytest.mark.slow
def test_a_stopped_daemon_counts_as_gone(daemon: Daemon) -> None:
    client = connected(daemon)
    daemon.process.send_signal(signal.SIGSTOP)
    assert client.asked("ls")["optionId"] == "no"
    daemon.process.send_signal(signal.SIGCONT)
    client.close()


def test_a_daemon_told_to_end_hangs_up_and_the_proxy_rejects(daemon: Daemon) -> None:
    client = connected(daemon)
    client.prompt("npm test")
    client.until(method="session/request_permission")
    assert daemon.stop() == 0 and not answers(daemon.path)
    assert client.until(method="answered")["params"]["result"]["outcome"]["optionId"] == "no"
    client.close()


@pytest.mark.slow
def test_every_request_is_answered_once_while_daemons_come_and_go(daemon: Daemon) -> None:
    """Daemons are killed at random under a running agent: nothing is lost, nothing answered twice, nothing allowed."""
    rng, client = random.Random(7), connected(daemon, "ask", "5")  # noqa: S311
    stop = threading.Event()

    def churn() -> None:
        for _ in range(8):
            time.sleep(rng.uniform(0.0, 1.0))
            daemon.stop(signal.SIGKILL)
            time.sleep(rng.uniform(0.0, 0.3))
            daemon.start()
        stop.set()

    thread = threading.Thread(target=churn)
    thread.start()
    allowed = turn = 0
    while not stop.is_set():
        turn += 1
        client.seen.clear()
        client.prompt(("ls", "rm x")[turn % 2], 10 + turn)
        client.until(id=10 + turn)
        answered = [one["params"] for one in client.seen if one.get("method") == "answered"]
        assert sorted(one["id"] for one in answered) == [0, 1, 2, 3, 4]
        chosen = {one["result"]["outcome"].get("optionId") for one in answered}
        assert turn % 2 == 0 or "yes" not in chosen
        allowed += "yes" in chosen
    thread.join()
    assert client.close() == 0
    print(f"\n{allowed} of {turn} turns had an allow; the daemon came back {said(daemon).count('is back')} times")


# ---- the command line ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "socket", "command"),
    [
        (["--connect", "--", "agent"], "", ["agent"]),
        (["--connect", "/run/p.sock", "--", "agent"], "/run/p.sock", ["agent"]),
        (["--connect=/run/p.sock", "agent", "x"], "/run/p.sock", ["agent", "x"]),
        (["--connect", "agent", "--acp"], "", ["agent", "--acp"]),
        (["--connect", "--agent", "claude", "--", "a"], "", ["a"]),
    ],
)
def test_connect_takes_a_socket_where_it_is_clear_that_it_is_one(
    words: list[str], socket: str, command: list[str]
) -> None:
    found = parse(words)
    assert (found.connect, found.command) == (socket, command)


@pytest.mark.parametrize("word", ["--policy=x", "--prompt=client", "--no-grants", "--audit=x", "--shell=zsh"])
def test_what_the_daemon_decides_cannot_be_given_to_a_connected_proxy(word: str) -> None:
    with pytest.raises(UsageError, match="policyd serve"):
        parse(["--connect", word, "--", "agent"])
