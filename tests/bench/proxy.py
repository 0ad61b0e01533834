"""The proxy's speed as ratios within one run: `python -m tests.bench.proxy [--rounds 3] [--json OUT]`.

What is compared with what (the numbers are the targets of the project's performance plan):

    11 bulk          updates a second through policyd / through a loop that only copies            >= 0.4
    12 cpu           µs of policyd's CPU an update of 430 bytes                                    <= 1.2
    13 ping          there and back through an echoing agent, policyd / two `cat`                  <= 1.3 p50, <= 2 p99
    14 answer        a permission answered, 100 rules, policyd / `cat` echoing; the SDK / policyd  <= 8; >= 4
    15 answer p99    policyd with 10 000 rules / the SDK                                           <= 1.5
    16 agent start   when the agent runs, behind policyd / a bare interpreter                      <= 1.5
    17 ready         the first line passes, 100 rules / a bare interpreter; / `import acp`         <= 7; <= 1/8
    19 memory        MiB resident with 1 000 rules                                                 <= 40
    20 reload        longest pause of a ping while 10 000 rules are loaded anew, ms                <= 20
    -- end           ms from the end of the client's input to the end of policyd                   <= 100
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.bench.rules import policy, requests

HERE = Path(__file__).parent
PYTHON = sys.executable
UPDATE = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x" * 300}}
LINE = (
    json.dumps(
        {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s1", "update": UPDATE}},
        separators=(",", ":"),
    ).encode()
    + b"\n"
)
MESSAGES = 200_000
SETTLED = 1.5
"""Seconds after which policyd has done what it does once, beside the traffic, after its start."""
PINGS = 3_000
ASKS = 2_000
CLOCK = "import time, sys; sys.stderr.write(str(time.clock_gettime_ns(time.CLOCK_MONOTONIC)))"


class Place:
    """A home, a workspace and the files of one run."""

    def __init__(self, root: Path) -> None:
        """Write policies and workloads."""
        self.root = root
        (root / "home").mkdir()
        (root / "work").mkdir()
        self.environ = {"HOME": str(root / "home"), "PATH": os.environ["PATH"]}
        for count in (100, 1_000, 10_000):
            (root / f"p{count}.toml").write_text(policy(count))
            (root / f"asks{count}.jsonl").write_bytes(b"".join(asked(count)))
        (root / "bulk.jsonl").write_bytes(LINE * MESSAGES)

    def policyd(self, *agent: str, rules: int = 100) -> list[str]:
        """Return the command line of a proxy."""
        options = ["--policy", str(self.root / f"p{rules}.toml"), "--prompt", "none"]
        return [str(Path(PYTHON).with_name("policyd")), "proxy", *options, "--", *agent]

    def start(self, command: list[str], stderr: int | None = None) -> subprocess.Popen[bytes]:
        """Start a command with pipes."""
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=self.environ, stdin=pipe, stdout=pipe, stderr=stderr, bufsize=0)


def asked(rules: int) -> list[bytes]:
    """Return permission requests as lines."""
    kinds = (("yes", "allow_once"), ("always", "allow_always"), ("no", "reject_once"))
    options = [{"optionId": ident, "name": ident, "kind": kind} for ident, kind in kinds]
    lines = []
    for number, (kind, what) in enumerate(requests(ASKS, rules)):
        raw = {"command": what} if kind == "execute" else {"file_path": what}
        call: dict[str, object] = {"toolCallId": f"c{number}", "kind": kind, "title": what, "rawInput": raw}
        if kind == "edit":
            call["locations"] = [{"path": what}]
        params = {"sessionId": "s1", "toolCall": call, "options": options}
        message = {"jsonrpc": "2.0", "id": number, "method": "session/request_permission", "params": params}
        lines.append(json.dumps(message, separators=(",", ":")).encode() + b"\n")
    return lines


# ---- passing ---------------------------------------------------------------------------------------


def ended(process: subprocess.Popen[bytes]) -> None:
    """Close both pipes and wait."""
    assert process.stdin and process.stdout
    process.stdin.close()
    process.wait()
    process.stdout.close()


def cpu(pid: int) -> float:
    """Return the CPU seconds a process has used, all threads."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def bulk(place: Place, command: list[str]) -> tuple[float, float]:
    """Return messages a second and CPU µs a message for an agent that writes a file at once after a line came."""
    process = place.start([*command, "sh", "-c", f"read line; cat {place.root}/bulk.jsonl; cat"])
    assert process.stdin and process.stdout
    time.sleep(SETTLED)
    process.stdin.write(b'{"jsonrpc":"2.0","method":"go"}\n')
    size, got, start, before = MESSAGES * len(LINE), 0, 0.0, 0.0
    while got < size:
        data = os.read(process.stdout.fileno(), 1 << 20)
        assert data
        if not got:
            start, before = time.perf_counter(), cpu(process.pid)
        got += len(data)
    taken, used = time.perf_counter() - start, cpu(process.pid) - before
    ended(process)
    return MESSAGES / taken, used / MESSAGES * 1e6


def ping(place: Place, command: list[str], count: int = PINGS) -> tuple[float, float]:
    """Return p50 and p99 in µs of a line there and back."""
    process = place.start(command)
    assert process.stdin and process.stdout
    taken = []
    for number in range(count + 300):
        start = time.perf_counter_ns()
        process.stdin.write(LINE)
        need = len(LINE)
        while need:
            need -= len(os.read(process.stdout.fileno(), 65536))
        if number >= 300:
            taken.append(time.perf_counter_ns() - start)
    ended(process)
    taken.sort()
    return taken[count // 2] / 1e3, taken[int(count * 0.99)] / 1e3


# ---- answering -------------------------------------------------------------------------------------


def answer(place: Place, command: list[str]) -> tuple[float, float]:
    """Return p50 and p99 in µs that the measuring agent reports, with policyd as its client's side."""
    process = place.start(command, stderr=subprocess.PIPE)
    assert process.stdin and process.stdout and process.stderr
    params = [
        (0, "initialize", {"protocolVersion": 1, "clientInfo": {"name": "bench", "version": "1"}}),
        (1, "session/new", {"cwd": str(place.root / "work"), "mcpServers": []}),
        (2, "session/prompt", {"sessionId": "s1", "prompt": [{"type": "text", "text": "go"}]}),
    ]
    rest = b""
    for ident, method, value in params:
        message = {"jsonrpc": "2.0", "id": ident, "method": method, "params": value}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        while f'"id": {ident},'.encode() not in rest:
            data = os.read(process.stdout.fileno(), 1 << 16)
            assert data, "policyd is gone"
            rest = rest[-16:] + data  # what is kept costs time that policyd would be blamed for
    process.stdin.close()
    said = process.stderr.read()
    process.wait()
    process.stdout.close()
    process.stderr.close()
    return reported(said)


def answer_rules(place: Place, count: int) -> tuple[float, float]:
    """Return the same with `count` rules."""
    agent = [PYTHON, "-I", str(HERE / "agent.py"), "asks", str(place.root / f"asks{count}.jsonl")]
    return answer(place, place.policyd(*agent, rules=count))


def reported(said: bytes) -> tuple[float, float]:
    """Return what the measuring agent wrote to standard error."""
    line = next(line for line in said.splitlines() if line.startswith(b'{"bench"'))
    found = json.loads(line)
    return found["p50"], found["p99"]


def answer_cat(place: Place) -> tuple[float, float]:
    """Return the same with `cat` sending every request back."""
    down, up = os.pipe(), os.pipe()
    echo = subprocess.Popen(["cat"], stdin=down[0], stdout=up[1])
    agent = [PYTHON, "-I", str(HERE / "agent.py"), "echo-asks", str(place.root / "asks100.jsonl")]
    process = subprocess.Popen(agent, stdin=up[0], stdout=down[1], stderr=subprocess.PIPE)
    for fd in (*down, *up):
        os.close(fd)
    said = process.communicate()[1]
    echo.wait()
    return reported(said)


def answer_sdk(place: Place) -> tuple[float, float]:
    """Return the same with a client on the official SDK and a fixed answer."""
    agent = [PYTHON, "-I", str(HERE / "agent.py"), "asks", str(place.root / "asks100.jsonl")]
    command = [PYTHON, str(HERE / "sdk_client.py"), *agent]
    return reported(subprocess.run(command, capture_output=True, check=True, env=place.environ).stderr)


# ---- starting, ending, memory ----------------------------------------------------------------------


def took(work: Callable[[], object]) -> float:
    """Return the ms something takes."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def interpreter(place: Place, code: str) -> float:
    """Return the ms an interpreter takes to run `code`."""
    return took(lambda: subprocess.run([PYTHON, "-I", "-c", code], env=place.environ, check=True))


def agent_start(place: Place, rounds: int) -> float:
    """Return the ms until the agent's first instruction, less what starting that agent costs without policyd."""
    agent = [PYTHON, "-I", "-S", "-c", CLOCK]

    def until(command: list[str]) -> float:
        start = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        found = subprocess.run(command, env=place.environ, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        return (int(found.stderr.split(b"\n")[0].split(b"policyd")[0]) - start) / 1e6

    return min(until(place.policyd(*agent)) for _ in range(rounds)) - min(until(agent) for _ in range(rounds))


def ready(place: Place) -> tuple[float, float]:
    """Return the ms until the first line has passed, and from the end of the input to the end of policyd."""
    start = time.perf_counter()
    process = place.start(place.policyd("cat"))
    assert process.stdin and process.stdout
    process.stdin.write(LINE)
    os.read(process.stdout.fileno(), 65536)
    first = time.perf_counter() - start
    time.sleep(0.1)
    end = took(lambda: ended(process))
    return first * 1e3, end


def memory(place: Place) -> float:
    """Return the MiB resident with 1 000 rules, after the watcher has begun."""
    process = place.start(place.policyd("cat", rules=1_000))
    assert process.stdin and process.stdout
    process.stdin.write(LINE)
    os.read(process.stdout.fileno(), 65536)
    time.sleep(2.5)
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    ended(process)
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024


def reload_pause(place: Place) -> float:
    """Return the longest ms of a ping while 10 000 rules are loaded anew."""
    path = place.root / "p10000.toml"
    path.write_text(policy(10_000))
    process = place.start(place.policyd("cat", rules=10_000))
    assert process.stdin and process.stdout
    process.stdin.write(LINE)
    os.read(process.stdout.fileno(), 65536)
    time.sleep(3)
    path.write_text(policy(10_000) + '[[rule]]\nid = "last"\neffect = "deny"\ncommand = "shutdown"\n')
    longest, end = 0.0, time.monotonic() + 8
    while time.monotonic() < end:
        start = time.perf_counter()
        process.stdin.write(LINE)
        os.read(process.stdout.fileno(), 65536)
        longest = max(longest, time.perf_counter() - start)
        time.sleep(0.001)
    ended(process)
    return longest * 1e3


# ---- the run ---------------------------------------------------------------------------------------


def best(rounds: int, measure: Callable[[], tuple[float, float]]) -> tuple[float, float]:
    """Return the round with the smallest first number."""
    return min(measure() for _ in range(rounds))


def run(place: Place, rounds: int) -> dict[str, float]:
    """Measure everything."""
    floor, mine = [PYTHON, "-I", str(HERE / "copy_loop.py")], place.policyd()
    rates = [(bulk(place, mine), bulk(place, floor)) for _ in range(rounds)]
    pings = [(ping(place, [*mine, "cat"]), ping(place, ["sh", "-c", "cat | cat | cat"])) for _ in range(rounds)]
    answers = {count: best(rounds, partial(answer_rules, place, count)) for count in (100, 10_000)}
    echo, sdk = best(rounds, lambda: answer_cat(place)), best(rounds, lambda: answer_sdk(place))
    bare = min(interpreter(place, "pass") for _ in range(rounds * 3))
    starts = [ready(place) for _ in range(rounds * 2)]
    first = min(start for start, _ in starts)
    return {
        "11 bulk / copy loop": max(a[0] for a, _ in rates) / max(b[0] for _, b in rates),
        "11 bulk, messages a second": max(a[0] for a, _ in rates),
        "12 cpu us an update": min(a[1] for a, _ in rates),
        "13 ping p50 / cat": min(a[0] for a, _ in pings) / min(b[0] for _, b in pings),
        "13 ping p99 / cat": min(a[1] for a, _ in pings) / min(b[1] for _, b in pings),
        "13 ping p50 us": min(a[0] for a, _ in pings),
        "14 answer p50 / cat": answers[100][0] / echo[0],
        "14 SDK p50 / answer": sdk[0] / answers[100][0],
        "14 answer p50 us": answers[100][0],
        "15 answer p99 at 10 000 / SDK p99": answers[10_000][1] / sdk[1],
        "15 answer p99 us at 10 000": answers[10_000][1],
        "16 agent start / interpreter": agent_start(place, rounds * 4) / bare,
        "17 ready / interpreter": first / bare,
        "17 ready / import acp": first / min(interpreter(place, "import acp") for _ in range(rounds)),
        "17 ready ms": first,
        "19 MiB with 1 000 rules": memory(place),
        "20 longest pause ms": reload_pause(place),
        "-- end ms": min(end for _, end in starts),
    }


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(Place(Path(folder)), args.rounds)
    for name, value in found.items():
        print(f"{name:40s} {value:12.2f}")
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
