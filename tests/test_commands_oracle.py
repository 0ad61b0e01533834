"""What policyd reads against two judges that know better: shfmt's grammar, and bash itself with stub programs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from policyd.commands import read
from policyd.model import Reading, SimpleCommand, WordKind
from tests.commands_generator import PROGRAMS, TOOLS, Generator

SHFMT = Path(sys.executable).parent / "shfmt"
SEEDS = 20_000
CHUNK = 500

Tree = dict[str, object]


def _nodes(tree: object) -> Iterator[Tree]:
    stack = [tree]
    while stack:
        here = stack.pop()
        if isinstance(here, dict):
            yield here
            stack += here.values()
        elif isinstance(here, list):
            stack += here


def _literal(word: Tree) -> str | None:
    """Return the constant a shfmt word stands for, None if it is not plainly constant."""
    text = ""
    for part in word.get("Parts", []):  # type: ignore[attr-defined]
        kind, value = part.get("Type"), part.get("Value", "")
        if kind == "SglQuoted" and not part.get("Dollar"):
            text += value
        elif kind == "Lit" and not re.search(r"[*?\[~{]", re.sub(r"\\.", "", value, flags=re.DOTALL)):
            text += re.sub(r"\\(.)", lambda pair: pair[1].strip("\n"), value, flags=re.DOTALL)
        elif kind == "DblQuoted" and not part.get("Dollar") and all(p["Type"] == "Lit" for p in part.get("Parts", [])):
            inner = "".join(p["Value"] for p in part.get("Parts", []))
            text += re.sub(r'\\([$`"\\\n])', lambda pair: pair[1].strip("\n"), inner)
        else:
            return None
    return text


def shfmt_calls(text: str) -> list[list[str | None]] | None:
    """Return the simple commands shfmt sees (None in place of a word that is not constant); None: no shell text."""
    done = subprocess.run([SHFMT, "--to-json", "-ln", "bash"], input=text.encode(), capture_output=True, check=False)
    if done.returncode:
        return None
    return [
        [_literal(word) for word in node["Args"]]  # type: ignore[attr-defined]
        for node in _nodes(json.loads(done.stdout))
        if node.get("Type") == "CallExpr" and node.get("Args")
    ]


def levels(command: SimpleCommand) -> Iterator[SimpleCommand]:
    here: SimpleCommand | None = command
    while here is not None:
        yield here
        here = here.inner


def _written(reading: Reading) -> list[SimpleCommand]:
    """Return the commands that stand in the text itself, behind `time` where that is a keyword."""
    found = []
    for command in reading.commands:
        if not command.via:
            timed = command.argv[0].text == "time" and command.inner is not None
            found.append(command.inner if timed and command.inner is not None else command)
    return found


DECLARATIONS = frozenset({"export", "declare", "local", "readonly", "typeset", "let"})


def disagreement(text: str) -> str:
    """Return in what policyd and shfmt differ over a text, empty where they agree or policyd says opaque."""
    reading = read(text, cwd=("/w",), home="/h")
    calls = shfmt_calls(text)
    if reading.opaque or calls is None:
        return ""
    written = _written(reading)
    names = Counter(command.argv[0].text for command in written)
    argvs = {tuple(word.text for word in command.argv) for command in written}
    wanted = Counter(call[0] for call in calls if call[0] is not None)
    lost = [name for name, count in wanted.items() if names[name] < count]
    lost += [str(call) for call in calls if None not in call and tuple(call) not in argvs]
    more = set(names) - set(wanted) - DECLARATIONS
    if any(call[0] is None for call in calls):
        more = set()
    return f"lost {lost} invented {sorted(more)}" if lost or more else ""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("chunk", range(SEEDS // CHUNK))
def test_policyd_and_shfmt_agree_on_the_simple_commands_or_policyd_says_opaque(chunk: int) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        text = Generator(seed).text()
        assert not disagreement(text), text


# ---- bash ------------------------------------------------------------------------------------------

STUB = """#!/bin/sh
printf '%s\\037' "$(pwd)" "${0##*/}" "$@" '\x1e' >> "$LOG"
case "${0##*/}" in p2|p4|git) exit 1;; esac
"""


BASH = ("/bin/bash", "--noprofile", "--norc")


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with nothing but stub programs and a few links to harmless tools: the only one on PATH."""
    place = tmp_path_factory.mktemp("stubs")
    for name in PROGRAMS:
        (place / name).write_text(STUB)
        (place / name).chmod(0o755)
    for name in TOOLS:
        (place / name).symlink_to(Path("/usr/bin") / name)
    return place


def ran(text: str, stubs: Path, scratch: Path, shell: Sequence[str] = BASH) -> list[list[str]]:
    """Run a generated text in bash, in `scratch/w`; return the stubs that ran: where, and with which words."""
    work = scratch / "w"
    subprocess.run(["/bin/rm", "-rf", work], check=True)
    (work / "d").mkdir(parents=True)
    for name in ("f.txt", "1.q", "2.q"):
        (work / name).touch()
    # A log of its own for each text: a stub in the background of one may be late.
    descriptor, name = tempfile.mkstemp(dir=scratch)
    os.close(descriptor)
    log = Path(name)
    env = {"PATH": str(stubs), "LOG": str(log), "HOME": "/h"}
    try:
        subprocess.run(
            [*shell, "-c", text],
            cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return []
    records = log.read_bytes().decode(errors="replace").split("\x1e")
    return [record.removeprefix("\x1f").split("\x1f")[:-1] for record in records if record.strip("\x1f")]


def unseen(text: str, runs: list[list[str]], scratch: Path, shell: str = "bash") -> list[list[str]]:
    """Return the programs that ran and that policyd neither saw (there, with these words) nor called opaque."""
    reading = read(text, cwd=(str(scratch / "w"),), home="/h", shell=shell)
    if reading.opaque:
        return []
    seen: dict[str, list[SimpleCommand]] = {}
    for command in reading.commands:
        for level in levels(command):
            seen.setdefault(level.argv[0].text, []).append(level)
    return [run for run in runs if not any(_may_be(command, run) for command in seen.get(run[1], []))]


def _may_be(command: SimpleCommand, run: list[str]) -> bool:
    """Say whether a command may be the one that ran: there, its words the same up to one that is not constant."""
    if command.cwd and run[0] not in command.cwd:
        return False
    for place, word in enumerate(command.argv, 1):
        if word.kind is not WordKind.CONST or word.text == "/dev/fd/63":
            return True
        if place >= len(run) or word.text != run[place]:
            return False
    return len(run) == len(command.argv) + 1


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("chunk", range(10))
def test_bash_runs_no_program_that_policyd_has_not_seen(chunk: int, stubs: Path, tmp_path: Path) -> None:
    for seed in range(1_000_000 + chunk * 200, 1_000_000 + (chunk + 1) * 200):
        text = Generator(seed).text()
        assert not unseen(text, ran(text, stubs, tmp_path), tmp_path), text


HIDDEN = tomllib.loads((Path(__file__).parent / "data" / "commands" / "reading_hidden.toml").read_text())["case"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", HIDDEN, ids=lambda case: case["kind"])
def test_every_hidden_program_of_the_table_really_runs(case: dict[str, list[str]], stubs: Path, tmp_path: Path) -> None:
    (stubs / "cat").unlink()
    (stubs / "cat").symlink_to("/usr/bin/cat")
    if not (stubs / "tee").exists():
        (stubs / "tee").symlink_to("/usr/bin/tee")
    idle = [text for text in case["texts"] if "rm" not in [run[1] for run in ran(text, stubs, tmp_path)]]
    assert not idle
