"""What passes the proxy leaves with the bytes it came with, however it is cut, and nothing fills up or hangs."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.proxied import Client, Scene
from tests.secret_samples import seeded

MIB = 1024 * 1024
TEXTS = ("plain", "tab\there", "\u2028 \u0085 \x0b \x0c", 'quote " \\ /', "🙂 \u202e", "\\u0000", "x" * 700, "")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A fresh home, workspace and policy."""
    return Scene(tmp_path)


def message(rng: random.Random, number: int) -> bytes:
    """Return one message that is none of policyd's business, in some spelling."""
    text = rng.choice(TEXTS) * rng.randint(1, 3)
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    value = rng.choice(
        [
            {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}},
            {"jsonrpc": "2.0", "method": "_x/" + str(number), "params": {"deep": [[{"a": [1, 2.50, None, text]}]]}},
            {"jsonrpc": "2.0", "method": "$/progress", "params": [text, number]},
            {"method": "note", "jsonrpc": "2.0", "params": {"é": text, "n": 10**30}},
        ]
    )
    separators = rng.choice([(",", ":"), (", ", ": "), (" ,", " : ")])
    line = json.dumps(value, separators=separators, ensure_ascii=rng.random() < 0.5).encode()
    return rng.choice([b"", b"", b"", b" ", b"\t"]) + line + rng.choice([b"", b"", b"\r", b"  "]) + b"\n"


def chunks(rng: random.Random, data: bytes) -> Iterator[bytes]:
    """Cut data in random places."""
    at = 0
    while at < len(data):
        size = rng.choice([1, 7, 100, 4096, 65536, 200_000])
        yield data[at : at + size]
        at += size


def written(process: subprocess.Popen[bytes], parts: Iterator[bytes]) -> threading.Thread:
    """Write parts in a thread, then close."""

    def write() -> None:
        assert process.stdin
        for part in parts:
            process.stdin.write(part)
        process.stdin.close()

    thread = threading.Thread(target=write)
    thread.start()
    return thread


def read_all(process: subprocess.Popen[bytes]) -> bytes:
    """Read the output to its end, close everything."""
    assert process.stdout and process.stderr
    parts = []
    while data := os.read(process.stdout.fileno(), 1 << 20):
        parts.append(data)
    assert process.wait(30) == 0
    process.stdout.close()
    process.stderr.close()
    return b"".join(parts)


def test_ten_thousand_random_messages_in_random_chunks_arrive_byte_identical_both_ways(scene: Scene) -> None:
    rng = seeded(1)
    data = b"".join(message(rng, number) for number in range(10_000))
    process = scene.start("echo")
    writer = written(process, chunks(rng, data))
    found = read_all(process)
    writer.join()
    assert found == data


def test_a_line_of_64_mib_passes(scene: Scene) -> None:
    head, tail = b'{"jsonrpc":"2.0","method":"_big","params":"', b'"}'
    line = head + b"x" * (64 * MIB - len(head) - len(tail)) + tail + b"\n"
    process = scene.start("echo")
    writer = written(process, iter([line]))
    found = read_all(process)
    writer.join()
    assert found == line


def test_a_longer_line_ends_the_session_with_a_named_error(scene: Scene) -> None:
    process = scene.start("echo")
    assert process.stdin and process.stdout and process.stderr
    with suppress(BrokenPipeError):
        for _ in range(66):
            process.stdin.write(b"x" * MIB)
    assert process.wait(30) == 70
    assert b"too long" in process.stderr.read()
    for stream in (process.stdin, process.stdout, process.stderr):
        with suppress(BrokenPipeError):
            stream.close()


def memory(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads memory from /proc")
def test_when_both_sides_stop_reading_nothing_hangs_and_memory_stays_bounded(scene: Scene) -> None:
    process = scene.start("deaf", "60000")
    assert process.stdin and process.stdout
    line = b'{"jsonrpc":"2.0","method":"_x","params":"' + b"y" * 1000 + b'"}\n'
    os.set_blocking(process.stdin.fileno(), False)
    os.set_blocking(process.stdout.fileno(), False)
    sent, quiet = bytearray(), 0
    while quiet < 10 and len(sent) < 30 * MIB:  # until policyd takes no more from us
        ready = select.select([], [process.stdin], [], 0.1)[1]
        quiet = 0 if ready else quiet + 1
        if ready:
            with suppress(BlockingIOError):
                sent += (line * 50)[: os.write(process.stdin.fileno(), line * 50)]
    assert len(sent) < 30 * MIB and memory(process.pid) < 100 * MIB
    got = 0
    while got < 60_000 * 1040:  # what the agent wrote is all there
        if select.select([process.stdout], [], [], 5)[0]:
            data = os.read(process.stdout.fileno(), MIB)
            assert data
            got += len(data)
    process.stdin.close()
    os.set_blocking(process.stdout.fileno(), True)
    read_all(process)


def test_an_agent_that_asks_without_reading_is_answered_when_it_reads(scene: Scene) -> None:
    client = Client(scene.start("flood", "1500", options=["--prompt=none"]))
    client.until(method="asked")
    assert client.until(method="answers")["params"]["n"] == 1500
    assert client.close() == 0


def test_blank_lines_pass_and_lines_that_are_no_messages_are_dropped(scene: Scene) -> None:
    found = scene.run("file", str(scripted(scene, b'\n{"jsonrpc":"2.0","method":"_a"}\nnot json\n \r\n')))
    assert found.stdout == b'\n{"jsonrpc":"2.0","method":"_a"}\n \r\n'
    assert b"not json" in found.stderr


def scripted(scene: Scene, data: bytes) -> Path:
    """Write what an agent says into a file."""
    path = scene.root / "said"
    path.write_bytes(data)
    return path


def kill_one(scene: Scene, rng: random.Random, held: int) -> None:
    """Start a proxy whose agent holds a descriptor, kill policyd or its agent after a random time, wait."""
    process = scene.start("stubborn", str(held), pass_fds=[held])
    time.sleep(rng.choice([0.0, 0.01, 0.05, 0.2, 0.35]))
    process.send_signal(rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
    if process.poll() is None:
        time.sleep(0.02)
        process.kill()
    process.wait(20)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()


def kill_many(scene: Scene, count: int) -> None:
    """Kill proxies at random moments: nobody is left who holds their descriptor, and no agent ended by itself."""
    (reading, held), rng = os.pipe(), seeded(count)
    for _ in range(count):
        kill_one(scene, rng, held)
    os.close(held)
    with os.fdopen(reading, "rb") as said:
        assert said.read() == b""


ON_A_LEASH = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere an agent outlives a policyd that was killed")


@ON_A_LEASH
def test_kills_at_any_moment_leave_no_orphan(scene: Scene) -> None:
    kill_many(scene, 20)


@pytest.mark.slow
@pytest.mark.timeout(900)
@ON_A_LEASH
def test_500_kills_at_any_moment_leave_no_orphan(scene: Scene) -> None:
    kill_many(scene, 500)
