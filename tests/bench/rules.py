"""Policies and requests for the benchmarks: 40 % paths, 40 % commands, 20 % tools and hosts; the same every time."""

from __future__ import annotations

import random

DIRS = "src lib app core api web docs tests tools infra auth billing users orders search worker".split()  # noqa: SIM905
PROGRAMS = ("git log", "npm run", "cargo test", "docker run", "make", "go test", "pip show", "pytest")


def policy(count: int, *, grounds: bool = True) -> str:
    """Return a policy of `count` rules."""
    rng = random.Random(count)  # noqa: S311 - a workload
    head = ["version = 1", '[defaults]\nread = "allow"\nsearch = "allow"'] if grounds else ["version = 1"]
    return "\n".join([*head, *(rule(rng, number) for number in range(count))]) + "\n"


def rule(rng: random.Random, number: int) -> str:
    """Return one rule."""
    effect = rng.choices(["allow", "ask", "deny"], [55, 25, 20])[0]
    head = f'[[rule]]\nid = "r{number}"\neffect = "{effect}"\n'
    kind = rng.random()
    if kind < 0.4:
        ending = rng.choice(["py", "ts", "go"])
        return f'{head}kind = ["edit"]\npath = ["{rng.choice(DIRS)}/{rng.choice(DIRS)}{number}/**/*.{ending}"]'
    if kind < 0.8:
        return f'{head}command = ["{rng.choice(PROGRAMS)} {rng.choice(DIRS)}{number} **"]'
    if kind < 0.9:
        return f'{head}tool = "srv{number % 50}/get_{rng.choice(DIRS)}{number}"'
    return f'{head}url = "https://h{number}.example.com/**"'


def requests(count: int, rules: int) -> list[tuple[str, str]]:
    """Return `count` requests as (kind, what): half commands, half edits, two thirds of them met by a rule."""
    rng = random.Random(7)  # noqa: S311 - a workload
    found = []
    for _ in range(count):
        number = rng.randrange(int(rules * 1.5))
        if rng.random() < 0.5:
            found.append(("execute", f"{rng.choice(PROGRAMS)} {rng.choice(DIRS)}{number} --flag x{number}"))
        else:
            found.append(("edit", f"{rng.choice(DIRS)}/{rng.choice(DIRS)}{number}/a/b/file.py"))
    return found
