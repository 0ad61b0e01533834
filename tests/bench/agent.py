"""The agent of the benchmarks: measures from where an agent stands, in its own process.

agent.py asks FILE       # at the first prompt: each line of FILE to the client, one at a time; reports to stderr
agent.py echo-asks FILE  # the same without any client: for `cat`
"""

from __future__ import annotations

import json
import os
import sys
import time


def trips(lines: list[bytes]) -> list[int]:
    """Send each line, wait for one line back; return the times in ns."""
    taken = []
    for line in lines:
        start = time.perf_counter_ns()
        os.write(1, line)
        got = b""
        while not got.endswith(b"\n"):
            got += os.read(0, 65536)
        taken.append(time.perf_counter_ns() - start)
    return taken


def report(taken: list[int]) -> None:
    """Say p50 and p99 in µs, the first tenth left out."""
    kept = sorted(taken[len(taken) // 10 :])
    p50, p99 = kept[len(kept) // 2] / 1e3, kept[int(len(kept) * 0.99)] / 1e3
    os.write(2, json.dumps({"bench": True, "p50": p50, "p99": p99}).encode() + b"\n")


def say(message: dict[str, object]) -> None:
    """Write one message."""
    os.write(1, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def serve(lines: list[bytes]) -> None:
    """Answer the client until it prompts, then measure."""
    rest = b""
    while True:
        data = os.read(0, 65536)
        if not data:
            return
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            message = json.loads(line)
            if message.get("method") == "initialize":
                info = {"name": "bench", "version": "1"}
                say({"id": message["id"], "result": {"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": info}})
            elif message.get("method") == "session/new":
                say({"id": message["id"], "result": {"sessionId": "s1"}})
            elif message.get("method") == "session/prompt":
                report(trips(lines))
                say({"id": message["id"], "result": {"stopReason": "end_turn"}})


if __name__ == "__main__":
    with open(sys.argv[2], "rb") as file:
        LINES = file.read().splitlines(keepends=True)
    if sys.argv[1] == "asks":
        serve(LINES)
    else:
        report(trips(LINES))
