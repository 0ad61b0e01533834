"""Programs as judges of the sets: what `@read-only` and `@git-read` allow reads what it may, and does nothing else.

Slow: lines are made of all options a program has, decided, and those that are allowed are run under a tracer. A fault
is a file opened to be written, one changed, made or removed, a program started that is none of the command's own, the
protected file opened, a host asked for. Whoever changes a set or the table of programs runs it:
`pytest -m slow tests/test_commands_traced.py`.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator, Sequence

import pytest

from tests.traced import DATA, Ground, reason_not_to
from tests.traced_lines import heads, lines, written_out

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PARTS = 8
SEED = 1
MOST = 26
"""Lines of one program that are run."""
FEW = 5
"""The same of one that takes long."""
NOTICED = re.compile(r"\.env|CANARY|secret|deep/|x\.sh").search
"""What of a line would be read, written or run where it is misjudged."""
INSTALLED = re.compile(r'execve\("/(?!tmp/)').match
"""What starts a program of the machine, of which what prints a version may start several."""
COMBINED = 40
"""Lines of several options that are made for one program."""


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    """A workspace, and who decides in it."""
    reason = reason_not_to()
    if reason:
        pytest.skip(reason)
    made = Ground()
    yield made
    shutil.rmtree(made.base)


def allowed(ground: Ground, made: Iterator[str], chance: random.Random, most: int) -> list[str]:
    """Return some of the lines that are allowed, most of them such as would be noticed."""
    found = [line for line in dict.fromkeys(made) if ground.allows(line)]
    keen = [line for line in found if NOTICED(line)]
    keen = chance.sample(keen, min(len(keen), most * 3 // 4))
    rest = [line for line in found if line not in keen]
    return [*keen, *chance.sample(rest, min(len(rest), most - len(keen)))]


def shown(faults: Sequence[tuple[str, str]]) -> str:
    """Return what is wrong, a line each."""
    return "\n".join(["allowed, and yet:", *(f"{line}: {what}" for line, what in faults)])


@pytest.mark.parametrize("part", range(PARTS))
def test_what_the_reading_sets_allow_reads_what_it_may_and_does_nothing_else(ground: Ground, part: int) -> None:
    chosen = []
    for head in heads()[part::PARTS]:
        chance = random.Random(f"{SEED} {head}")  # noqa: S311
        few = head.split()[0] in DATA["slow"]
        chosen += allowed(ground, lines(head, chance, COMBINED), chance, FEW if few else MOST)
    assert len(chosen) > PARTS
    assert not (faults := ground.faults(chosen)), shown(faults)


def test_what_the_sets_spell_out_reads_and_does_nothing_else(ground: Ground) -> None:
    chance = random.Random(SEED)  # noqa: S311
    chosen = allowed(ground, iter(written_out(chance, 300)), chance, 150)
    faults = [(line, what) for line, what in ground.faults(chosen) if not INSTALLED(what)]
    assert not faults, shown(faults)


@pytest.mark.parametrize(
    ("line", "does"),
    [
        ("cat .env", "openat"),
        ("cat deep/out", "openat"),
        ("sort f -o CANARY", "changed"),
        ("rm f", "unlinkat"),
        ("sh -c ./x.sh", "execve"),
        ("bash -c 'exec 3<>/dev/tcp/127.0.0.1/9'", "connect"),
    ],
)
def test_the_tracer_tells_what_a_line_does(ground: Ground, line: str, does: str) -> None:
    assert does in {what.split("(")[0].split()[0] for _, what in ground.faults([line, "cat f"])}
