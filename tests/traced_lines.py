"""Command lines for the programs of the reading sets: every option, in every form, with values that would be noticed.

Options are what the table of programs knows and what the program itself tells of. Which lines are made depends on the
seed alone, and on the release of the program.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources

from policyd.commands.argv import programs
from policyd.commands.argv.options import Option
from policyd.model import Word
from tests.traced import DATA

SETS = ("read-only.toml", "git-read.toml")
BUILTINS = frozenset(DATA["builtins"])
HOT, PLAIN = DATA["words"]["hot"], DATA["words"]["plain"]
_BRACES = re.compile(r"\{([^{}]*)\}")
_TOLD = re.compile(r"(?<![\w/-])(--[A-Za-z][\w-]*|-[A-Za-z0-9])(?!\w)")
_ONE_WORD = re.compile(r"(?<!\*)\*(?!\*)")


def expanded(pattern: str) -> Iterator[str]:
    """Yield what a pattern says without its braces."""
    found = _BRACES.search(pattern)
    if found is None:
        yield pattern
        return
    for choice in found[1].split(","):
        yield from expanded(pattern[: found.start()] + choice + pattern[found.end() :])


def _patterns() -> Iterator[tuple[str, bool]]:
    """Yield the patterns of the sets for programs that are here, each with whether any known option may follow."""
    for name in SETS:
        for key, entry in tomllib.loads((resources.files("policyd") / "sets" / name).read_text("utf-8"))[
            "entry"
        ].items():
            given = entry.get("command", f"{key} **")
            for pattern in [given] if isinstance(given, str) else given:
                for text in expanded(pattern):
                    if text.split()[0] in BUILTINS or shutil.which(text.split()[0]):
                        yield text, entry.get("closed", True)


def heads() -> list[str]:
    """Return what the closed entries of the sets begin with, `git log` and `cat`."""
    return sorted({text.removesuffix(" **") for text, closed in _patterns() if closed})


def written_out(chance: random.Random, count: int) -> list[str]:
    """Return some of what the other entries allow, with values for their stars."""
    left_out = set(DATA["leave_traces"])
    texts = sorted({text for text, closed in _patterns() if not closed and text.split()[0] not in left_out})
    chosen = chance.sample(texts, min(count, len(texts)))
    return [_ONE_WORD.sub(lambda _: chance.choice([*HOT, *PLAIN]), text).replace("**", "") for text in chosen]


def _options(head: str) -> tuple[Mapping[str, Option], list[str]]:
    """Return the options the table knows, and all that the program tells of beside them."""
    name, *words = head.split()
    call = programs.called(name, tuple(map(Word, words)))
    known = dict(call.program.syntax.options) if call is not None else {}
    known.pop("-#", None)
    if name in BUILTINS or name in {"npm", "pip", "javap"}:
        return known, []
    ask = [name, *words, "-h" if name == "git" else "--help"]
    said = subprocess.run(ask, capture_output=True, stdin=subprocess.DEVNULL, timeout=20, check=False)
    told = _TOLD.findall((said.stdout + said.stderr).decode("latin-1").replace("[no-]", ""))
    return known, sorted(set(told) - known.keys())


def _with(option: str, value: str, chance: random.Random) -> str:
    forms = [f"{option} {value}", f"{option}={value}", f"{option}{value}"]
    return chance.choice(forms if not option.startswith("--") else forms[:2])


def lines(head: str, chance: random.Random, more: int) -> Iterator[str]:
    """Yield lines of one program: each option with the protected file, another value, none; `more` with several."""
    known, told = _options(head)
    operands = DATA["operands"].get(head) or DATA["operands"].get(head.split()[0]) or DATA["operands"][""]
    plain = sorted(name for name, option in known.items() if not option.unsafe) or ["--help"]
    every = [*sorted(known), *told]
    for option in every:
        value = chance.choice(HOT if chance.random() < 0.8 else PLAIN)
        yield f"{head} {_with(option, '.env', chance)} {chance.choice(operands)}"
        yield f"{head} {_with(option, value, chance)} {chance.choice(operands)}"
        yield f"{head} {option} {chance.choice(operands)}"
        if option.startswith("--") and len(option) > 4:
            yield f"{head} {option[: chance.randint(4, len(option) - 1)]}={value} {chance.choice(operands)}"
    letters = [option[1] for option in plain if len(option) == 2]
    for _ in range(more):
        words = [_some(plain, every, letters, known, chance) for _ in range(chance.randint(1, 4))]
        words.insert(chance.randint(0, 1) * len(words), chance.choice(operands))
        yield " ".join([head, *words, *([chance.choice(HOT)] if chance.random() < 0.3 else [])])


def _some(
    plain: list[str], every: list[str], letters: list[str], known: Mapping[str, Option], chance: random.Random
) -> str:
    if letters and chance.random() < 0.15:
        return "-" + "".join(chance.choices(letters, k=chance.randint(2, 4)))
    option = chance.choice(plain if chance.random() < 0.8 else every or plain)
    takes = option in known and known[option].takes_next
    return _with(option, chance.choice([*HOT, *PLAIN]), chance) if takes or chance.random() < 0.2 else option
