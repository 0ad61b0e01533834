"""A greedy peer does not slow another: big messages of every kind, real processes. Counted, never timed."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from tests.daemons import OPTIONS, Daemon, Peer, chosen, params, scene

pytestmark = pytest.mark.slow
PERMISSION = "session/request_permission"
MILLION = 1_000_000


def request(number: int, method: str = PERMISSION, **call: Any) -> bytes:
    """Return a request about a call."""
    told = {"toolCallId": f"{'g' if method == PERMISSION else 'd'}{number}", "kind": "execute", **call}
    given = {"sessionId": "s1", "toolCall": told, "options": OPTIONS}
    return json.dumps({"jsonrpc": "2.0", "id": f"g{number}", "method": method, "params": given}).encode() + b"\n"


def command(number: int, text: str) -> bytes:
    """Return a request to run a command."""
    return request(number, rawInput={"command": text})


def nested(depth: int) -> bytes:
    """Return a request whose arguments are nested so deep."""
    return request(0, rawInput="@").replace(b'"@"', b"[" * depth + b"]" * depth)


GREEDY: dict[str, Callable[[], bytes]] = {
    "words of a command": lambda: command(1, "a " * 3 * MILLION),
    "parts of a command": lambda: command(2, "y;" * 250_000),
    "paths of a command": lambda: command(3, "cat " + " ".join(f"w{at}" for at in range(40_000))),
    "globs": lambda: command(4, "ls " + "* " * 5_000),
    "wrappers": lambda: command(5, "sudo xargs " * 20_000 + "ls"),
    "words of a vector": lambda: request(6, rawInput={"command": ["ls", *["w;"] * 200_000]}),
    "places": lambda: request(7, kind="read", locations=[{"path": f"a{at}"} for at in range(100_000)]),
    "directories": lambda: request(8, kind="search", locations=[{"path": f"a{at}"} for at in range(2_000)]),
    "diffs": lambda: request(
        9, kind="edit", content=[{"type": "diff", "path": f"a{at}", "newText": ""} for at in range(60_000)]
    ),
    "nesting": lambda: nested(2 * MILLION),
    "empty lists": lambda: request(11, rawInput={"a": [[]] * MILLION}),
    "numbers": lambda: request(12, rawInput={"a": [1.5e300] * 400_000}),
    "keys": lambda: request(13, rawInput={f"k{at}": at for at in range(100_000)}),
    "secrets": lambda: request(14, kind="other", title="password=hunter22 " * 200_000),
    "a title": lambda: request(15, title="t" * 7 * MILLION, rawInput={"command": "ls"}),
    "addresses": lambda: request(16, rawInput={"x": " ".join(f"http://a{at}.example" for at in range(200_000))}),
    "options": lambda: request(17, rawInput={"command": "ls"}).replace(
        b'"options": [', b'"options": [' + b"{}," * 500_000
    ),
    "decisions": lambda: b"".join(
        request(at, "_policyd/decide", rawInput={"command": "cat * ?"}) for at in range(3_000)
    ),
}
"""What makes what a greedy peer says, by what there is much of: megabytes that a run without them does not pay for."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A running daemon."""
    with Daemon(scene(tmp_path_factory.mktemp("greedy"))) as running:
        yield running


class Flood:
    """Greedy peers that say their messages over and over, and read what comes."""

    def __init__(self, daemon: Daemon, said: list[bytes]) -> None:
        """Connect a peer for each."""
        self.over = threading.Event()
        self.peers = [daemon.peer() for _ in said]
        self.threads = [
            threading.Thread(target=run, args=given, daemon=True)
            for peer, data in zip(self.peers, said, strict=True)
            for run, given in ((self._say, (peer, data)), (self._read, (peer,)))
        ]

    def _say(self, peer: Peer, data: bytes) -> None:
        with contextlib.suppress(OSError):
            while not self.over.is_set():
                peer.write(data)

    def _read(self, peer: Peer) -> None:
        with contextlib.suppress(OSError, AssertionError):
            while not self.over.is_set():
                peer.receive()
                peer.seen.clear()

    def __enter__(self) -> Flood:
        """Begin."""
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        """Hang up."""
        self.over.set()
        for peer in self.peers:  # shut down, not closed: a thread may be writing
            with socket.socket(fileno=peer.fd) as one, contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def test_every_request_is_answered_beside_peers_that_say_big_things_and_after_few_of_theirs(daemon: Daemon) -> None:
    modest = daemon.peer()
    with Flood(daemon, [make() for make in GREEDY.values()]):
        answers = [chosen(modest.ask("ls" if at % 2 else "rm x", call=f"m{at}")) for at in range(40)]
    assert answers == ["no", "yes"] * 20
    calls = [str(row.get("call", "")) for row in daemon.scene.records()]
    mine = [at for at, call in enumerate(calls) if call.startswith("m")]
    between = [sum(call.startswith("g") for call in calls[sooner:later]) for sooner, later in pairwise(mine)]
    print(f"\n{sum(between)} big messages of {len(GREEDY)} peers beside 40 requests, at most {max(between)} in a row")
    assert len(mine) == 40 and sum(between) <= 40 and max(between) < len(GREEDY) / 2
    modest.close()


@pytest.mark.parametrize("name", [name for name in GREEDY if name != "decisions"])
def test_no_big_message_is_allowed_or_ends_the_connection(daemon: Daemon, name: str) -> None:
    peer = daemon.peer()
    peer.write(GREEDY[name]())
    assert peer.call("_policyd/status", {})
    allowed = [one for one in peer.seen if '"yes"' in json.dumps(one)]
    assert allowed == [] or name == "a title"
    peer.close()


def test_a_peer_that_was_greedy_is_answered_in_the_end(daemon: Daemon) -> None:
    greedy, modest = daemon.peer(), daemon.peer()
    greedy.write(b"".join(command(number, "y;" * 3_000) for number in range(3)))
    asked = greedy.request(PERMISSION, params("ls"))
    assert [chosen(modest.ask("ls", call=f"a{at}")) for at in range(5)] == ["yes"] * 5
    assert chosen(greedy.result(asked)) == "yes"
    assert [chosen(one["result"]) for one in greedy.seen if str(one.get("id", "")).startswith("g")] == ["no"] * 3
    for peer in (greedy, modest):
        peer.close()
