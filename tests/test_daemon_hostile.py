"""Peers that mean ill: they get nothing allowed, and keep nobody else waiting."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from policyd.daemon import descent, memory, steps
from policyd.daemon.descent import UNSEEN
from policyd.daemon.line import Line
from policyd.daemon.lookout import Lookout
from policyd.daemon.memory import Pressure
from policyd.daemon.peer import Peer as DaemonPeer
from policyd.daemon.relay import Relay
from policyd.daemon.server import Server
from policyd.daemon.shared import Shared, Who
from policyd.daemon.steps import Steps
from policyd.service import steady
from policyd.session import Ask
from policyd.storage import processes
from policyd.storage.inbox import Inbox
from policyd.storage.processes import born
from tests.daemons import Daemon, Peer, answers, chosen, params, scene, until

PERMISSION = "session/request_permission"
ASK = {"jsonrpc": "2.0", "method": PERMISSION, "params": params("rm x")}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A running daemon that all of them attack."""
    with Daemon(scene(tmp_path_factory.mktemp("hostile"))) as running:
        yield running


@pytest.fixture
def peer(daemon: Daemon) -> Iterator[Peer]:
    """A hostile peer; at the end an honest one is answered."""
    one = daemon.peer(person=True)
    yield one
    one.close()
    honest = daemon.peer()
    assert chosen(honest.ask("ls")) == "yes" and chosen(honest.ask("rm x", call="c2")) == "no"
    honest.close()


def threads(daemon: Daemon) -> int:
    """Return how many threads a daemon has."""
    return len(os.listdir(f"/proc/{daemon.process.pid}/task"))


# ---- messages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ident",
    ["x" * 1_000_000, 10**300, -(10**18), 1.5, "\x00\u202e\ud7ff", [1], {"a": 1}, True, None],
    ids=lambda one: str(type(one).__name__),
)
def test_whatever_an_id_is_its_request_is_answered_once_or_not_at_all(peer: Peer, ident: object) -> None:
    peer.write(json.dumps({**ASK, "id": ident}).encode() + b"\n")
    assert peer.call("_policyd/status", {})
    answers = [one for one in peer.seen if "outcome" in str(one.get("result"))]
    assert len(answers) <= 1 and all(chosen(one["result"]) != "yes" for one in answers)


FRAMES = {
    "deep": b'{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":' + b"[" * 100_000,
    "many values": b'{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"a":['
    + b"1," * 600_000
    + b"1]}}",
    "two methods": b'{"jsonrpc":"2.0","id":9,"method":"_policyd/status","method":"session/request_permission"}',
    "escaped method": b'{"jsonrpc":"2.0","id":9,"method":"session\\/request\\u005fpermission","params":{}}',
    "carriage returns": b'\r{"jsonrpc":"2.0","id":9,"method":"_policyd/decide","params":{}}\r',
    "surrogates": b'{"jsonrpc":"2.0","id":9,"method":"_policyd/decide","params":{"sessionId":"\\ud800"}}',
    "a mark before": b"\xef\xbb\xbf" + json.dumps({**ASK, "id": 9}).encode(),
    "utf-16": json.dumps({**ASK, "id": 9}).encode("utf-16-le").replace(b"\n", b""),
    "long number": b'{"jsonrpc":"2.0","id":9,"method":"_policyd/prompts","params":{"answer":' + b"9" * 100_000 + b"}}",
    "a relay's": b'{"jsonrpc":"2.0","id":9,"method":"_policyd/relay","params":{"n":1,"side":"client","text":"x"}}',
    "forgot": b'{"jsonrpc":"2.0","method":"_policyd/relay","params":{"forgot":"s1","calls":["c1"]}}',
}


@pytest.mark.parametrize("name", FRAMES)
def test_no_frame_allows_anything_or_ends_the_connection(peer: Peer, name: str) -> None:
    peer.write(FRAMES[name] + b"\n")
    assert peer.call("_policyd/status", {})
    assert '"yes"' not in json.dumps(peer.seen)


def test_who_sends_a_batch_is_told_that_none_is_taken(peer: Peer) -> None:
    peer.write(json.dumps([{**ASK, "id": 9}]).encode() + b"\n")
    peer.call("_policyd/status", {})
    (told,) = [one for one in peer.seen if "error" in one]
    assert told["id"] is None and "batches" in told["error"]["message"]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"side": "agent", "n": 1, "text": "x"},
        {"side": "nobody", "n": 1, "text": "x\n"},
        {"side": "agent", "n": {}, "text": "x\n"},
        {"side": "agent", "text": json.dumps(ASK) + "\n", "replay": "call"},
        {"side": "agent", "text": json.dumps(ASK) + "\n", "replay": "open"},
        {"side": "client", "text": "[]\n", "replay": "open"},
        {"side": "agent", "base64": "!", "n": 1},
        {"forgot": 3},
        {"forgot": "s1", "calls": [1, None]},
        {"closed": "both"},
    ],
)
def test_no_relay_message_allows_anything_or_ends_the_daemon(daemon: Daemon, given: dict[str, object]) -> None:
    one = daemon.stranger()
    one.call("_policyd/hello", {"protocol": 1, "relay": True})
    one.send({"method": "_policyd/relay", "params": given})
    assert one.call("_policyd/status", {})
    assert '"yes"' not in json.dumps(one.seen)
    one.close()


def test_a_proxy_whose_block_could_not_be_taken_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for what became of it, while answers of people for it went nowhere."""

    def broken(self: Relay, params: object) -> str:
        raise ZeroDivisionError("defect")

    monkeypatch.setattr(Relay, "take", broken)
    shared: Any = SimpleNamespace(say_of=lambda who, text, **_: None)
    peer = DaemonPeer(shared, Who(0, 0, 1, "x"), lambda data: None)
    peer._role = Relay.__new__(Relay)
    peer.line(b'{"jsonrpc":"2.0","method":"_policyd/relay","params":{}}')
    assert peer.trouble


# ---- claims -------------------------------------------------------------------------------------------


def test_a_claimed_label_never_stands_for_one_of_the_settings(tmp_path: Path) -> None:
    here = scene(tmp_path)
    rule = '[[rule]]\neffect = "allow"\ncommand = "make"\nlabel = { team = "core" }\n'
    here.policy.write_text(f"version = 1\n{rule}")
    with Daemon(here, options=["--label", "team=docs"]) as daemon:
        one = daemon.peer(labels={"team": "core"})
        assert chosen(one.ask("make")) == "no"
        ident = one.request("_policyd/session", {"sessionId": "s2", "cwd": str(here.work), "labels": {"team": "core"}})
        one.until(id=ident)
        assert chosen(one.ask("make", session="s2")) == "no"
        one.close()


@pytest.mark.parametrize("locks", [set(), {"labels"}])
def test_labels_that_are_locked_are_no_peers_to_add_to(locks: set[str]) -> None:
    settings, loaded = SimpleNamespace(labels={"team": "docs"}), SimpleNamespace(locked=frozenset(locks))
    shared: Any = SimpleNamespace(settings=settings, ground=SimpleNamespace(loaded=loaded))
    claimed = {} if locks else {"job": "7"}
    assert Shared.labels(shared, {"team": "core", "job": "7"}) == {"team": "docs", **claimed}


def test_sessions_beyond_what_is_kept_lose_their_workspace_and_nothing_is_allowed_there(peer: Peer) -> None:
    for number in range(1_100):
        given = {"sessionId": f"n{number}", "cwd": "/work"}
        peer.send({"method": "_policyd/observe", "params": {"dir": "c2a", "msg": opening(number, given)}})
        answer = {"jsonrpc": "2.0", "id": number, "result": {"sessionId": f"n{number}"}}
        peer.send({"method": "_policyd/observe", "params": {"dir": "a2c", "msg": answer}})
    read = {"toolCallId": "r", "kind": "read", "locations": [{"path": "/work/a.md"}]}
    decided = peer.call("_policyd/decide", {"sessionId": "n0", "toolCall": read, "options": params("x")["options"]})
    assert decided["effect"] != "allow"


def opening(number: int, given: dict[str, str]) -> dict[str, object]:
    """Return the request that opens a session."""
    return {"jsonrpc": "2.0", "id": number, "method": "session/new", "params": {**given, "mcpServers": []}}


# ---- half a connection ---------------------------------------------------------------------------------


def test_who_sends_no_more_still_gets_its_answers(daemon: Daemon) -> None:
    one = socket.socket(socket.AF_UNIX)
    one.connect(daemon.path)
    half = Peer(os.dup(one.fileno())).greet(cwd=str(daemon.scene.work))
    idents = [half.request(PERMISSION, params("ls", call=f"c{number}")) for number in range(40)]
    one.shutdown(socket.SHUT_WR)
    assert [chosen(half.result(ident)) for ident in idents] == ["yes"] * 40
    assert half.ended()
    half.close()
    one.close()


def test_who_reads_no_more_is_let_go_and_its_questions_are_withdrawn(daemon: Daemon, peer: Peer) -> None:
    one = socket.socket(socket.AF_UNIX)
    one.connect(daemon.path)
    half = Peer(os.dup(one.fileno())).greet(person=True, cwd=str(daemon.scene.work))
    half.request(PERMISSION, params("npm test"))
    half.until(method="_policyd/ask")
    one.shutdown(socket.SHUT_RD)
    half.close()
    one.close()
    until(lambda: peer.call("_policyd/status", {})["pending"] == 0, "nothing is open any more")


# ---- floods -------------------------------------------------------------------------------------------


def test_a_flood_of_reloads_is_a_few_looks_and_no_crowd_of_threads(daemon: Daemon, peer: Peer) -> None:
    before, most = threads(daemon), 0
    for number in range(300):
        peer.request("_policyd/reload", {})
        most = max(most, threads(daemon)) if number % 30 == 0 else most
    assert peer.call("_policyd/status", {}) and most <= before + 2


def test_looks_that_are_wanted_meanwhile_are_one_more() -> None:
    looks: list[int] = []
    done: list[int] = []
    lookout = Lookout(lambda: looks.append(1), lambda: done.append(1), lambda text: None)
    lookout._running = True
    for _ in range(100):
        lookout.begin()
    assert looks == []
    lookout._run()
    assert len(looks) == len(done) == 1
    lookout.begin()
    until(lambda: len(done) == 2, "it looks again")


def test_a_look_at_what_is_being_written_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steady, "QUIET", 0.0)
    looks, done = iter([True, True, False]), list[int]()
    Lookout(lambda: next(looks), lambda: done.append(1), print).begin()
    until(lambda: len(done) == 3 and not next(looks, False), "it looks until all is whole")


def test_a_look_that_fails_is_told_and_is_over() -> None:
    said: list[str] = []
    done: list[int] = []
    lookout = Lookout(lambda: [][0], lambda: done.append(1), said.append)
    lookout.begin()
    until(lambda: done == [1], "it is over")
    assert "IndexError" in said[0]


def line(uid: int, *, taken: int = 0, unread: int = 0, out: int = 0) -> Line:
    """Return a connection with so much waiting."""
    made: Line = object.__new__(Line)
    made.who, made.taken, made.unread, made.held, made.ended = Who(uid, 0, 1, "x"), taken, unread, 0, False
    made.out = bytearray(out)
    return made


def test_what_waits_for_one_users_peers_is_counted_together() -> None:
    server: Any = SimpleNamespace(_held=Counter())
    one, other, stranger = line(1, unread=5), line(1, out=7), line(2, unread=3)
    assert [Server._holds(server, each) for each in (one, other, stranger)] == [5, 12, 3]
    one.unread, other.ended = 1, True
    assert [Server._holds(server, each) for each in (one, other, stranger)] == [8, 1, 3]


def test_where_memory_is_short_who_said_most_goes_once_for_each_growth() -> None:
    pressure, lines = Pressure(100), [line(1, taken=5), line(2, taken=9)]
    assert pressure.victim(lines, 100) is None
    assert pressure.victim(lines, 101) is lines[1]
    assert pressure.victim(lines, 101 + memory.STEP) is None
    assert pressure.victim(lines, 102 + memory.STEP) is lines[1]
    assert pressure.victim(lines, 90) is None and pressure.victim(lines, 101) is lines[1]
    assert pressure.victim([], 10**12) is None and pressure.victim(lines, 0) is None


@pytest.mark.parametrize(
    ("group", "files", "wanted"),
    [
        ("0::/a\n", {"memory.high": "1000", "memory.max": "2000"}, 800),
        ("0::/a\n", {"memory.high": "max", "memory.max": "2000"}, 1600),
        ("0::/a\n", {}, memory.MOST),
        ("1:memory:/a\n", {"memory.high": "10"}, memory.MOST),
        ("", {}, memory.MOST),
    ],
)
def test_the_room_is_what_the_control_group_leaves(
    tmp_path: Path, group: str, files: dict[str, str], wanted: int
) -> None:
    (tmp_path / "cgroup").write_text(group)
    (tmp_path / "a").mkdir()
    for name, text in files.items():
        (tmp_path / "a" / name).write_text(text + "\n")
    assert memory.room(str(tmp_path), str(tmp_path / "cgroup")) == wanted
    assert memory.used() > 0 or sys.platform != "linux"


@pytest.mark.slow
def test_what_a_peer_tells_without_end_takes_bounded_memory(tmp_path: Path) -> None:
    """A peer tells of calls without end; the oldest are forgotten, the daemon stays small, and others are served."""
    with Daemon(scene(tmp_path)) as daemon:
        honest, greedy = daemon.peer(), daemon.peer()
        text = "x" * 4_000_000
        for number in range(1, 101):
            call = {"sessionUpdate": "tool_call", "toolCallId": f"c{number}", "rawInput": {"text": f"{number}{text}"}}
            greedy.send({"method": "session/update", "params": {"sessionId": "s1", "update": call}})
            if number % 20 == 0:
                assert chosen(honest.ask("ls", call=f"h{number}")) == "yes"
        most = int(Path(f"/proc/{daemon.process.pid}/status").read_text().split("VmHWM:")[1].split()[0]) // 1024
        assert most < 350, "of 400 MB"
        assert chosen(honest.ask("ls")) == "yes"


def test_one_users_questions_leave_room_for_anothers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MOST_OF_ONE", 3)
    told: list[object] = []
    performer: Any = SimpleNamespace(post=told.append)
    here = Steps(Inbox(str(tmp_path / "inbox")))
    flooding, other, own = (Who(uid, 0, 1, "x") for uid in (os.getuid() + 1, os.getuid() + 2, os.getuid()))

    def ask(who: Who, number: int) -> int:
        question = {"nonce": "n", "digest": "d"}
        return here.begin(performer, who, Ask(number, "inbox", question, time.monotonic() + 60))

    numbers = [ask(flooding, number) for number in range(3)]
    with pytest.raises(ValueError, match="open already"):
        ask(flooding, 4)
    ask(other, 1)
    assert [ask(own, number) for number in range(5)]
    here.end(numbers[0])
    assert ask(flooding, 5)
    here.close()


# ---- what is said -------------------------------------------------------------------------------------


@pytest.mark.parametrize("gone", [True, False], ids=["nobody has it open", "nobody takes anything out"])
def test_a_log_that_nobody_reads_any_more_keeps_nobody_from_being_served(tmp_path: Path, *, gone: bool) -> None:
    here, (reading, writing) = Daemon(scene(tmp_path)), os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while os.write(writing, b"x" * 4096):
            pass
    os.set_blocking(writing, True)
    if gone:
        os.close(reading)
    here.process = subprocess.Popen(here.command("--socket", here.path), env=here.scene.environ, stderr=writing)
    os.close(writing)
    until(lambda: answers(here.path), "it serves")
    peer = here.peer()
    peer.send({"method": "_policyd/nonsense"})
    assert chosen(peer.ask("ls")) == "yes"
    peer.close()
    assert here.stop() == 0
    if not gone:
        os.close(reading)


def test_a_peer_fills_no_log(tmp_path: Path) -> None:
    with Daemon(scene(tmp_path)) as here:
        one = here.peer()
        for number in range(500):
            one.send({"method": "_policyd/nonsense" if number % 2 else 5})
        assert chosen(one.ask("ls")) == "yes"
        one.close()
    said = (tmp_path / "daemon.log").read_text().splitlines()
    assert len(said) < 70 and any("is not told for a minute" in line for line in said)


def test_lines_that_nobody_wants_leave_room_for_those_that_are_always_told() -> None:
    said: list[str] = []
    shared: Any = Shared.__new__(Shared)
    shared.settings, shared._told, shared._note = SimpleNamespace(log_level="error"), {}, said.append
    who = Who(0, 0, 1, "x")
    for loud in [False] * 500 + [True] * 100:
        shared.say_of(who, "a line", loud=loud)
    assert len(said) == 61 and said[-1] == "what else connections of x do is not told for a minute"


def test_a_peer_puts_no_line_of_its_own_into_the_log(peer: Peer, daemon: Daemon) -> None:
    peer.send({"jsonrpc": "2.0", "method": "x\npolicyd: all is well \x1b[2J"})
    peer.call("_policyd/status", {})
    said = (daemon.scene.root / "daemon.log").read_text()
    assert "x⏎policyd: all is well ⟨U+001B⟩[2J means nothing here" in said and "\x1b" not in said


# ---- who answers --------------------------------------------------------------------------------------


def test_a_process_id_that_is_anothers_by_now_does_not_speak_for_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = scene(tmp_path)
    me = Who(4242, 0, os.getpid(), "x", born=born(os.getpid()))
    monkeypatch.setattr(descent, "above", lambda pid, peers: "")
    assert descent.refusal(me, ()) == ""
    for other in (Who(4242, 0, os.getpid(), "x", born=me.born - 1), Who(4242, 0, os.getpid(), "x")):
        assert descent.refusal(other, ()) == UNSEEN
    monkeypatch.setattr(processes, "PROC", str(here.root))
    assert born(os.getpid()) == 0
