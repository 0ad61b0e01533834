"""Hazards: arguments with which an allowed program does more than it seems to, to be tried against a policy.

`hazards.toml` lists words that make a program run or write something else, and what that is. Options that do so come
from the table of programs (`policyd/sets/programs*.toml`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from policyd.commands.argv.options import Option
from policyd.commands.argv.programs import Program, find

MOST_OPTIONS = 8
ORDER = {"run": 0, "code": 0, "delete": 1, "edit": 1}
"""The most obvious harm comes first."""


def endings(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield words to append to `words` (a program and its subcommands), and what the command then does."""
    yield from listed_hazards(words)
    program = known(words)
    if program is not None:
        yield from harmful(program)


@cache
def shipped() -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the hazards of each program: words behind it, and what it then does."""
    tables = tomllib.loads((files("policyd.cli.trials") / "hazards.toml").read_text("utf-8"))
    return {name: tuple(table.items()) for names, table in tables.items() for name in names.split(" ")}


def listed_hazards(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the hazards of the table that begin with the words already written."""
    name, *written = words
    for text, what in shipped().get(name.rsplit("/", 1)[-1], ()):
        parts = text.split(" ")
        if parts[: len(written)] == written:
            yield " ".join(parts[len(written) :]), what


def known(words: tuple[str, ...]) -> Program | None:
    """Return the program or subcommand that `words` name, None if it is not in the table."""
    program = find(words[0].rsplit("/", 1)[-1])
    for word in words[1:]:
        program = program.subs.get(word) if program is not None else None
    return program


def harmful(program: Program) -> Iterator[tuple[str, str]]:
    """Yield the options of a program that make it run or write something else."""
    options = {option.names: option for option in program.syntax.options.values() if option.harms}
    plainest = sorted(options.values(), key=lambda option: ORDER.get(option.value, len(ORDER)))
    for option in plainest[:MOST_OPTIONS]:
        yield spelled(option), f"`{option.names[-1]}` makes it {deed(option)}"


def deed(option: Option) -> str:
    """Say what an option makes its program do."""
    if option.value in {"run", "code"}:
        return "run a program"
    return {"edit": "write a file", "delete": "delete files"}.get(option.value, "write or run something else")


def spelled(option: Option) -> str:
    """Return an option as written, with a value if it takes one."""
    name = option.names[-1]
    if not option.value:
        return name
    return f"{name}=x" if name.startswith("--") or option.glued else f"{name} x"
