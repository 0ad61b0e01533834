"""The core's speed as ratios within one run, in CPU time: `python -m tests.bench.core [--json OUT]`.

1  decide        a day of requests, a quarter never met, 1 000 rules / a dictionary of the answers   <= 12; p99 <= 15
                 also a known action and one never met, each alone
2  growth        the same with 10 000 rules / with 10; also with rules of globbed tools of one server    <= 3
9  shell         a plain command, the shapes of a day, 100 KiB of several shapes, in µs and ms
18 load          1 000 rules from TOML, and as kept from before / `tomllib` alone                        <= 1.6; <= 0.3
-- grants list   10 000 remembered answers read, ms                                                      <= 200
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import tempfile
import time
import tomllib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from policyd import engine
from policyd.commands import read
from policyd.model import Action, Agent, Context, Effect, Layer, PathRef, Request, Tool, Workspace
from policyd.policy import Policy, PolicySource, load
from policyd.storage.filecache import FileCache
from tests.bench.rules import policy, requests

SPACE = Workspace("/w", ("/w",), ("/w",), "/home/u")
CONTEXT = Context(SPACE, datetime(2026, 1, 1, tzinfo=UTC), agent=Agent("bench", "1"))
SHAPES = (
    "git status && git diff --stat | head -20",
    "cd src && npm run test -- --watch=false",
    'for f in *.py; do echo "$f"; done',
    "find . -name '*.py' -exec grep -l todo {} +",
    "cat <<'EOF' > out.txt\nhello\nEOF",
    'FOO=1 python -m pytest -k "a or b" 2>&1 | tee log',
    "if [ -f a ]; then rm a; else touch a; fi",
    'x=$(git rev-parse HEAD); echo "$x"',
)
ROUNDS = 4
LONG = {
    "words": "echo " + "word " * 20_000,
    "parts": "true; " * 17_000,
    "quotes": "echo '" + "x" * 100_000 + "'",
    "blanks": "echo" + " " * 100_000 + "x",
    "opens": "$(" * 50_000,
    "ticks": "`" * 100_000,
    "braces": "{a,b}" * 20_000,
    "heredoc": "cat <<E\n" + "line $x\n" * 12_000 + "E\n",
}


def loaded(text: str, cache: FileCache | None = None) -> Policy:
    """Load a policy of the user layer."""
    source = PolicySource("/p.toml", text.encode(), Layer.USER)
    return load([source], home="/home/u", tmpdir="/tmp", version="0", cache=cache)


def used(work: Callable[[], object], rounds: int = 5) -> float:
    """Return the least CPU seconds `work` took."""
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def asked(kind: str, what: str) -> Request:
    """Return a request, its command read."""
    if kind == "execute":
        commands = read(what, cwd=("/w",), home="/home/u").commands
        actions = [Action(frozenset({kind}), command=one, cwd=("/w",), cwd_inside=True) for one in commands]
    else:
        actions = [Action(frozenset({kind}), path=PathRef(what, (f"/w/{what}",), inside=True))]
    return Request("s", "c", what, (), tuple(actions))


def globbed(number: int) -> Request:
    """Return a call of one server's tool."""
    tool = Tool(f"srv/t{number}x", (("srv", f"t{number}x"),))
    return Request("s", "c", tool.name, (), (Action(frozenset({"other"}), tool=tool, name=tool, mcp=True),))


def spread(begin: Callable[[], Callable[[Request], object]], some: Sequence[Request]) -> tuple[float, float]:
    """Return p50 and p99 in µs of one call, each of the best of several rounds."""
    rounds = [sorted(times(begin(), some)) for _ in range(ROUNDS)]
    own = min(sorted(times(lambda request: None, some))[len(some) // 2] for _ in range(ROUNDS))
    middle, late = (min(taken[int(len(some) * part)] for taken in rounds) for part in (0.5, 0.99))
    return max(1, middle - own) / 1e3, max(1, late - own) / 1e3


def times(work: Callable[[Request], object], some: Sequence[Request]) -> list[int]:
    """Return the ns of each call."""
    taken = []
    for request in some:
        start = time.thread_time_ns()
        work(request)
        taken.append(time.thread_time_ns() - start)
    return taken


def decisions(text: str, some: Sequence[Request]) -> dict[str, tuple[float, float]]:
    """Return p50 and p99 of requests never met, of the same met again, and of both in a day."""
    fresh = list({request.title: request for request in some}.values())[:1500]
    return {
        "new": spread(lambda: deciding_by(text), fresh),
        "known": spread(lambda: deciding_by(text, fresh), fresh),
        "mixed": spread(lambda: deciding_by(text), day(fresh)),
    }


def deciding_by(text: str, met: Sequence[Request] = ()) -> Callable[[Request], object]:
    """Return what decides by a policy of its own, as a process does that has begun and met some requests."""
    found = loaded(text)
    found.ready()
    gc.collect()
    gc.freeze()

    def decide(request: Request) -> None:
        engine.decide(request, found, CONTEXT)

    for request in (asked("edit", "begin"), asked("execute", "git log begin"), *met):
        decide(request)
    return decide


def day(some: Sequence[Request]) -> list[Request]:
    """Return each request four times, the first time somewhere among repeats of those before."""
    rng = random.Random(5)  # noqa: S311 - a workload
    found: list[Request] = []
    for number, request in enumerate(some):
        found.append(request)
        found += [some[rng.randrange(number + 1)] for _ in range(3)]
    return found


def deciding() -> dict[str, float]:
    """Measure decisions."""
    rows: dict[int, dict[str, tuple[float, float]]] = {}
    for count in (10, 1_000, 10_000):
        some = [asked(kind, what) for kind, what in requests(3_000, count)]
        rows[count] = decisions(policy(count), some)
    answers = {(one.session_id, one.title): Effect.ALLOW for one in some}

    def known(request: Request) -> str:
        return answers[request.session_id, request.title].word

    floor = spread(lambda: known, some)
    names = {}
    for count in (10, 10_000):
        rules = "".join(f'[[rule]]\neffect = "allow"\ntool = "srv/t{n}*"\n' for n in range(count))
        calls = [globbed(n * 37 % count) for n in range(500)]
        names[count] = decisions(rules, calls)["new"]
    found = {"floor p50 us": floor[0], "floor p99 us": floor[1]}
    for sort in ("mixed", "known", "new"):
        p50, p99 = rows[1_000][sort]
        found |= {f"1 {sort} p50 us": p50, f"1 {sort} p50 / floor": p50 / floor[0]}
        found |= {f"1 {sort} p99 us": p99, f"1 {sort} p99 / floor p99": p99 / floor[1]}
        found[f"2 {sort} p50 growth"] = rows[10_000][sort][0] / rows[10][sort][0]
        found[f"2 {sort} p99 growth"] = rows[10_000][sort][1] / rows[10][sort][1]
    found["2 globbed tools p50 growth"] = names[10_000][0] / names[10][0]
    return found


def loading() -> dict[str, float]:
    """Measure loading."""
    text = policy(1_000)
    plain = used(lambda: tomllib.loads(text))
    with tempfile.TemporaryDirectory() as folder:
        cache = FileCache(f"{folder}/kept")
        cold, _ = used(lambda: loaded(text)), loaded(text, cache)
        warm = used(lambda: loaded(text, cache))
    return {"18 load / tomllib": cold / plain, "18 load as kept / tomllib": warm / plain, "18 load ms": cold * 1e3}


def shells() -> dict[str, float]:
    """Measure the reading of commands; each text once a place, so that nothing is remembered."""

    plain = used(partial(many, "git status", 0, 200), 1) / 200
    compound = sorted(min(used(partial(once, text, 1_000 + number), 1) for number in range(5)) for text in SHAPES)
    found = {"9 plain us": plain * 1e6, "9 compound p50 us": compound[len(compound) // 2] * 1e6}
    return found | {f"9 100 KiB of {name} ms": used(partial(once, text, 1), 2) * 1e3 for name, text in LONG.items()}


def once(text: str, number: int) -> object:
    """Read a text in a place of its own."""
    return read(text, cwd=(f"/w{number}",), home="/home/u")


def many(text: str, first: int, count: int) -> None:
    """Read a text in many places."""
    for number in range(first, first + count):
        once(text, number)


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    args = parser.parse_args()
    found = {**deciding(), **loading(), **shells()}
    for name, value in found.items():
        print(f"{name:40s} {value:12.2f}")
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
