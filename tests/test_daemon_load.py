"""The daemon under load, on loopback and bounded. Figures are printed; run with `-s` to see them."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import selectors
import signal
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemons import Daemon, Peer, activated, chosen, params, scene, until

pytestmark = pytest.mark.slow
PERMISSION = "session/request_permission"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A running daemon, and descriptors enough for a thousand connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    with Daemon(scene(tmp_path)) as running:
        yield running
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def burst(cwd: str, command: str, ident: int) -> bytes:
    """Return everything a peer says to ask one thing."""
    hello = {"id": "h", "method": "_policyd/hello", "params": {"protocol": 1, "client": {"name": "load"}}}
    opened = {"id": "s", "method": "_policyd/session", "params": {"sessionId": "s1", "cwd": cwd}}
    asked = {"id": ident, "method": PERMISSION, "params": params(command)}
    return b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in (hello, opened, asked))


def test_a_thousand_simultaneous_connections_are_answered_once_each(daemon: Daemon) -> None:
    count, cwd = 1_000, str(daemon.scene.work)
    sockets = [socket.socket(socket.AF_UNIX) for _ in range(count)]
    selector, began = selectors.DefaultSelector(), time.monotonic()
    for number, one in enumerate(sockets):
        one.connect(daemon.path)
        one.sendall(burst(cwd, "ls" if number % 2 else "rm x", number))
        selector.register(one, selectors.EVENT_READ, [number, b""])
    answers: dict[int, list[str]] = {}
    while len(answers) < count and time.monotonic() - began < 60:
        for key, _ in selector.select(1):
            take(key, answers)
    took = time.monotonic() - began
    print(f"\n1000 connections answered in {took:.2f} s")
    time.sleep(0.2)
    for key, _ in selector.select(0):
        take(key, answers)
    assert {number: found for number, found in answers.items() if len(found) != 1} == {}
    assert all(answers[number] == ["yes" if number % 2 else "no"] for number in range(count))
    for one in sockets:
        one.close()
    selector.close()


def take(key: selectors.SelectorKey, answers: dict[int, list[str]]) -> None:
    """Read what came on one connection."""
    number, rest = key.data
    assert isinstance(key.fileobj, socket.socket)
    rest += key.fileobj.recv(1 << 16)
    *lines, key.data[1] = rest.split(b"\n")
    for message in map(json.loads, lines):
        if message.get("id") == number:
            answers.setdefault(number, []).append(chosen(message["result"]))


def pace(peer: Peer, rate: float, seconds: float, prefix: str = "c") -> list[float]:
    """Ask at a rate; return how long each answer took, in milliseconds."""
    sent: dict[int, float] = {}
    took: list[float] = []
    begin = time.monotonic()
    total = int(rate * seconds)
    while len(took) < total:
        now = time.monotonic()
        while len(sent) + len(took) < min(total, int((now - begin) * rate) + 1):
            ident = peer.request(PERMISSION, params("ls", call=f"{prefix}{len(sent) + len(took)}"))
            sent[ident] = time.monotonic()
        wait = begin + (len(sent) + len(took)) / rate - time.monotonic()
        if not peer.rest and sent:
            if not select.select([peer.fd], [], [], max(0.0, wait))[0]:
                continue
        elif not sent:
            time.sleep(max(0.0, wait))
            continue
        while b"\n" in peer.rest or ready(peer):
            message = peer.receive()
            peer.seen.clear()
            took.append((time.monotonic() - sent.pop(message["id"])) * 1000)
            assert chosen(message["result"]) == "yes"
    return took


def ready(peer: Peer) -> bool:
    """Say whether something can be read."""
    return bool(select.select([peer.fd], [], [], 0)[0])


def p99(took: list[float]) -> float:
    """Return the 99th percentile."""
    return statistics.quantiles(took, n=100)[98]


@pytest.mark.parametrize("durability", ["write", "fsync"])
def test_five_hundred_requests_a_second(tmp_path: Path, durability: str) -> None:
    here = scene(tmp_path)
    config = here.root / "home/.config/policyd"
    config.mkdir(parents=True)
    (config / "policyd.toml").write_text(f'[audit]\ndurability = "{durability}"\n')
    with Daemon(here) as daemon:
        peer = daemon.peer()
        took = pace(peer, 500, float(os.environ.get("POLICYD_LOAD_SECONDS", "6")))
        print(f"\n{len(took)} requests, {durability}: median {statistics.median(took):.2f} ms, p99 {p99(took):.2f} ms")
        assert len([row for row in here.records() if row.get("effect") == "allow"]) == len(took)
        peer.close()


def test_a_greedy_peer_does_not_slow_another(daemon: Daemon) -> None:
    peer = daemon.peer()
    pace(peer, 50, 0.5, "warm")
    idle = pace(peer, 50, 3, "a")
    greedy, stop = daemon.peer(), threading.Event()

    def flood() -> None:
        data = b"".join(
            json.dumps(
                {"jsonrpc": "2.0", "id": f"g{n}", "method": PERMISSION, "params": params("ls", call=f"g{n}")}
            ).encode()
            + b"\n"
            for n in range(200)
        )
        os.set_blocking(greedy.fd, False)
        rest = b""
        while not stop.is_set():
            try:
                rest = rest or data
                rest = rest[os.write(greedy.fd, rest) :]
            except BlockingIOError:
                pass
            try:
                while os.read(greedy.fd, 1 << 16):
                    pass
            except BlockingIOError:
                time.sleep(0.001)

    thread = threading.Thread(target=flood)
    thread.start()
    time.sleep(0.5)
    busy = pace(peer, 50, 3, "b")
    stop.set()
    thread.join()
    print(f"\np99 beside nobody {p99(idle):.2f} ms, beside a greedy peer {p99(busy):.2f} ms")
    assert len(busy) == len(idle) == 150
    peer.close()
    greedy.close()


def test_every_allow_a_client_saw_before_a_kill_is_on_record(daemon: Daemon) -> None:
    peers = [daemon.peer() for _ in range(8)]
    seen: set[str] = set()
    calls: dict[tuple[int, int], str] = {}
    alive, number = True, 0
    while alive:
        for at, peer in enumerate(peers):
            try:
                number += 1
                calls[at, peer.request(PERMISSION, params("ls", call=f"k{number}"))] = f"k{number}"
                while ready(peer) or b"\n" in peer.rest:
                    message = peer.receive()
                    if chosen(message["result"]) == "yes":
                        seen.add(calls[at, message["id"]])
                if len(seen) > 100:
                    daemon.process.send_signal(signal.SIGKILL)
            except (OSError, AssertionError):
                alive = False
    daemon.process.wait()
    lines = daemon.scene.audit.read_bytes().splitlines()
    kept = {row["call"] for row in map(json.loads, lines[: len(lines) - 1]) if row.get("effect") == "allow"}
    with contextlib.suppress(ValueError):  # the kill may have cut the last line
        kept.add(json.loads(lines[-1])["call"])
    print(f"\n{len(seen)} allows were seen before the kill, {len(kept)} are on record")
    assert len(seen) > 100 and seen <= kept
    for peer in peers:
        peer.close()


def test_a_hundred_open_prompts_end_without_an_allow_when_the_daemon_is_told_to(daemon: Daemon) -> None:
    peers = [daemon.peer(person=True) for _ in range(20)]
    idents = [[peer.request(PERMISSION, params(f"npm run {n}", call=f"c{n}")) for n in range(5)] for peer in peers]
    for peer in peers:
        for _ in range(5):
            peer.until(method="_policyd/ask")
    began = time.monotonic()
    assert daemon.stop() == 0
    print(f"\nended in {time.monotonic() - began:.2f} s")
    assert time.monotonic() - began < 5
    for peer, mine in zip(peers, idents, strict=True):
        assert [chosen(peer.result(ident)) for ident in mine] == ["cancelled"] * 5
        peer.close()
    outcomes = [row["outcome"] for row in daemon.scene.records() if row["event"] == "decision"]
    assert outcomes == ["abandoned"] * 100


def test_restarts_under_load_refuse_no_connection(tmp_path: Path) -> None:
    """The socket is the service manager's; peers go on connecting while one daemon after another serves it."""
    daemon, stop = Daemon(scene(tmp_path)), threading.Event()
    counts: dict[str, int] = {"answered": 0, "hung up": 0, "refused": 0}

    def load() -> None:
        while not stop.is_set():
            try:
                peer = daemon.stranger()
            except OSError:
                counts["refused"] += 1
                continue
            try:
                answer = chosen(peer.greet(cwd=str(daemon.scene.work)).ask("ls"))
                counts["answered" if answer == "yes" else "refused"] += 1
            except (OSError, AssertionError):
                counts["hung up"] += 1  # a daemon that ends closes what it serves; an embedder rejects then
            finally:
                peer.close()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(daemon.path)
        listener.listen(1024)
        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(int(os.environ.get("POLICYD_RESTARTS", "10"))):
            before = counts["answered"]
            with activated(daemon, listener):
                until(lambda before=before: counts["answered"] > before + 20, "peers are answered")  # type: ignore[misc]
        stop.set()
        with activated(daemon, listener):
            for thread in threads:
                thread.join()
    print(f"\n{counts}")
    assert counts["refused"] == 0 and counts["answered"] > 200 and counts["hung up"] < counts["answered"]


def test_signals_in_a_storm_lose_no_answer(daemon: Daemon) -> None:
    peer = daemon.peer()
    for number in range(200):
        daemon.process.send_signal(signal.SIGHUP)
        assert chosen(peer.ask("ls", call=f"s{number}")) == "yes"
    peer.close()


def test_with_no_descriptor_left_others_go_on_and_it_recovers(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        daemon = Daemon(scene(tmp_path)).start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1024), hard))
    with daemon_ends(daemon):
        peer = daemon.peer()
        many = [socket.socket(socket.AF_UNIX) for _ in range(200)]
        for one in many:
            one.connect(daemon.path)
        before = cpu(daemon.process.pid)
        time.sleep(1.0)
        spent = cpu(daemon.process.pid) - before
        print(f"\n{spent * 100:.0f} % of a core while nobody can be accepted")
        assert chosen(peer.ask("ls")) == "yes" and spent < 0.3
        for one in many:
            one.close()
        began = time.monotonic()
        until(lambda: chosen(daemon.peer().ask("ls")) == "yes", "new connections are served again")
        assert time.monotonic() - began < 1.0
        assert "who connects waits" in (tmp_path / "daemon.log").read_text()
        peer.close()


class daemon_ends:  # noqa: N801
    """Ends a daemon that was started elsewhere."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon

    def __enter__(self) -> None:
        """Nothing."""

    def __exit__(self, *ignored: object) -> None:
        """End it."""
        self.daemon.__exit__()


def cpu(pid: int) -> float:
    """Return the seconds of processor time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_slow_peers_are_dropped_and_greeted_ones_are_not(daemon: Daemon) -> None:
    good, silent, slow = daemon.peer(), daemon.stranger(), daemon.stranger()
    slow.greet()
    slow.write(b'{"jsonrpc":')
    began = time.monotonic()
    while time.monotonic() - began < 40 and not (gone(silent) and gone(slow)):
        try:
            slow.write(b" ")
        except OSError:
            break
        time.sleep(1)
    print(f"\nslow peers were dropped after {time.monotonic() - began:.0f} s")
    assert 25 < time.monotonic() - began < 40
    assert silent.ended() and chosen(good.ask("ls")) == "yes"
    for peer in (good, silent, slow):
        peer.close()


def gone(peer: Peer) -> bool:
    """Say whether the daemon has hung up."""
    if not select.select([peer.fd], [], [], 0)[0]:
        return False
    try:
        return not os.read(peer.fd, 1 << 16)
    except OSError:
        return True
