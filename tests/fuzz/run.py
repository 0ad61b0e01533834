"""Run one target for some seconds: `atheris` (coverage-guided) where it is installed, else mutation of the seeds.

Every input that breaks a law is written to a directory, one a place it breaks at; with any the exit status is 1.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.law import LONGEST, Target, broken

ENGINES = ("atheris", "mutate")
SLACK = {"atheris": 4.0, "mutate": 1.5}
"""How much slower the engine makes the code, at most."""

FEW = 50
"""Seeds of the shortest run: atheris looks at the clock only after it has tried them all."""


def main() -> int:
    """Fuzz as the command line says; return 1 if a law was broken, 2 if nothing ran."""
    args = _arguments().parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        crashes = Path(args.crashes or scratch) / args.target
        crashes.mkdir(parents=True, exist_ok=True)
        if args.engine == "atheris" and not args.child:
            ran = _supervised(args, crashes, Path(scratch))
        else:
            _, ran = _engine(args, crashes, Path(scratch))
        found = sorted(crashes.glob("*.txt"))
        for text in found:
            print(text.read_text("utf-8"))
        print(f"{args.target}: {args.engine}, {ran}, {len(found)} places where a law is broken")
        return 1 if found else 0 if ran else 2


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run")
    parser.add_argument("target")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[importlib.util.find_spec("atheris") is None])
    parser.add_argument("--crashes", default="", help="directory in which inputs that break a law are kept")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser


def _supervised(args: argparse.Namespace, crashes: Path, scratch: Path) -> str:
    """Run atheris in a process of its own, which it ends as it likes; return what it says of itself."""
    command = [sys.executable, "-m", "tests.fuzz.run", args.target, "--engine", "atheris", "--child"]
    options = ["--seconds", str(args.seconds), "--seed", str(args.seed), "--crashes", str(crashes.parent)]
    done = subprocess.run([*command, *options], capture_output=True, check=False)
    said = done.stderr.decode("utf-8", "replace").splitlines()
    if done.returncode:
        name = crashes / "ended.txt"
        name.write_text("\n".join([f"the engine ended with {done.returncode}", *said[-30:]]), "utf-8")
    return next((line for line in reversed(said) if line.startswith("Done ")), "")


def _engine(args: argparse.Namespace, crashes: Path, scratch: Path) -> tuple[None, str]:
    if args.engine == "atheris":
        importlib.import_module("atheris")
        _coverage_guided(args, crashes, scratch)
    from tests.fuzz.targets import TARGETS

    runs = mutate(TARGETS[args.target], keeper(TARGETS[args.target], crashes, "mutate"), args.seconds, args.seed)
    return None, f"{runs} inputs" if runs else ""


def _coverage_guided(args: argparse.Namespace, crashes: Path, scratch: Path) -> None:
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["policyd"]):
        from tests.fuzz.targets import TARGETS
    target = TARGETS[args.target]
    corpus, words = scratch / "corpus", scratch / "words"
    corpus.mkdir()
    seeds = target.seeds()
    few = random.Random(args.seed).sample(seeds, min(len(seeds), FEW + int(10 * args.seconds)))  # noqa: S311
    for at, seed in enumerate(few):
        (corpus / str(at)).write_bytes(seed[:LONGEST])
    quoted = ("".join(f"\\x{byte:02x}" for byte in word) for word in target.words if word)
    words.write_text("".join(f'"{word}"\n' for word in quoted), "ascii")
    limits = [f"-max_total_time={args.seconds:.0f}", f"-max_len={LONGEST}", f"-dict={words}", "-timeout=60"]
    limits += [f"-seed={args.seed}", f"-artifact_prefix={crashes}/"]
    atheris.Setup(["fuzz", str(corpus), *limits], keeper(target, crashes, "atheris"), **_mutator(target))
    atheris.Fuzz()


def _mutator(target: Target) -> dict[str, Callable[[bytes, int, int], bytes]]:
    """Return the mutator of a target that has one of its own."""
    twist = target.twist
    if twist is None:
        return {}

    def mutator(data: bytes, longest: int, seed: int) -> bytes:
        dice = random.Random(seed)  # noqa: S311
        new = twist(dice, data) if seed % 2 else changed(dice, [data], target.words)
        return new[:longest]

    return {"custom_mutator": mutator}


def keeper(target: Target, crashes: Path, engine: str) -> Callable[[bytes], None]:
    """Return what tries one input and keeps it, shortened, if it is the first that breaks a law at its place."""
    seen: set[str] = set()

    def try_one(data: bytes) -> None:
        wrong = broken(target, data, SLACK[engine])
        if wrong is None or wrong[0] in seen:
            return
        seen.add(wrong[0])
        if wrong[0] == "TooSlow" and broken(target, data, SLACK[engine]) is None:
            seen.discard(wrong[0])
            return
        data = shortened(target, data, wrong[0], SLACK[engine])
        name = hashlib.sha256(wrong[0].encode()).hexdigest()[:12]
        (crashes / name).write_bytes(data)
        (crashes / f"{name}.txt").write_text(f"{wrong[0]}\n{data!r}\n{wrong[1]}", "utf-8")

    return try_one


def shortened(target: Target, data: bytes, place: str, slack: float, seconds: float = 20.0) -> bytes:
    """Return the shortest input found that breaks the same law at the same place."""
    end, step = time.monotonic() + seconds, max(1, len(data) // 2)
    while step:
        at = 0
        while at < len(data) and time.monotonic() < end:
            shorter = data[:at] + data[at + step :]
            wrong = broken(target, shorter, slack)
            if wrong is not None and wrong[0] == place:
                data = shorter
            else:
                at += step
        step //= 2
    return data


def mutate(target: Target, try_one: Callable[[bytes], None], seconds: float, seed: int) -> int:
    """Try the seeds, then changed seeds, until the time is over; return how many inputs were tried."""
    dice, seeds = random.Random(seed), target.seeds()  # noqa: S311 - no secret
    end, count = time.monotonic() + seconds, 0
    for data in dice.sample(seeds, len(seeds)):
        if time.monotonic() > end:
            break
        try_one(data[:LONGEST])
        count += 1
    while time.monotonic() < end:
        twist = target.twist if dice.randrange(2) else None
        try_one(twist(dice, dice.choice(seeds))[:LONGEST] if twist else changed(dice, seeds, target.words))
        count += 1
    return count


def changed(dice: random.Random, seeds: list[bytes], words: tuple[bytes, ...]) -> bytes:
    """Return a seed with some changes."""
    data = dice.choice(seeds)
    for _ in range(dice.choice((1, 1, 2, 3, 5, 9))):
        start, end = sorted((dice.randint(0, len(data)), dice.randint(0, len(data))))
        end = min(end, start + dice.choice((0, 1, 4, 64, 4096)))
        match dice.randrange(6):
            case 0:
                data = data[:start] + data[end:]
            case 1:
                data = data[:end] + data[start:end] * dice.choice((1, 2, 30)) + data[end:]
            case 2:
                data = data[:start] + bytes([dice.randrange(256)]) + data[start + 1 :]
            case 3:
                other = dice.choice(seeds)
                at = dice.randint(0, len(other))
                data = data[:start] + other[at : at + dice.choice((8, 64, 4096))] + data[end:]
            case _:
                data = data[:start] + dice.choice(words) + data[dice.choice((start, end)) :]
        data = data[:LONGEST]
    return data


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)
