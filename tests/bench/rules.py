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


def names(number: int) -> tuple[str, str, str]:
    """Return two directories and a program that belong to a number, so that rules and requests meet."""
    rng = random.Random(number)  # noqa: S311 - a workload
    return rng.choice(DIRS), f"{rng.choice(DIRS)}{number}", rng.choice(PROGRAMS)


def rule(rng: random.Random, number: int) -> str:
    """Return one rule: even numbers are of paths, odd ones of commands, a fifth of tools and hosts instead."""
    effect = rng.choices(["allow", "ask", "deny"], [55, 25, 20])[0]
    head = f'[[rule]]\nid = "r{number}"\neffect = "{effect}"\n'
    top, own, program = names(number)
    kind = number % 5
    if kind < 2:
        ending = rng.choice(["py", "ts", "go"])
        return f'{head}kind = ["edit"]\npath = ["{top}/{own}/**/*.{ending}"]'
    if kind < 4:
        return f'{head}command = ["{program} {own} **"]'
    if number % 2:
        return f'{head}tool = "srv{number % 50}/get_{own}"'
    return f'{head}url = "https://h{number}.example.com/**"'


def requests(count: int, rules: int) -> list[tuple[str, str]]:
    """Return `count` requests as (kind, what): half commands, half edits, most of them of a number that has a rule."""
    rng = random.Random(7)  # noqa: S311 - a workload
    found = []
    for _ in range(count):
        number = rng.randrange(int(rules * 1.2)) // 5 * 5
        if rng.random() < 0.5:
            number += rng.randrange(2, 4)
            _, own, program = names(number)
            found.append(("execute", f"{program} {own} --flag x{number}"))
        else:
            number += rng.randrange(2)
            top, own, _ = names(number)
            found.append(("edit", f"{top}/{own}/a/b/file.{rng.choice(['py', 'ts', 'go'])}"))
    return found
