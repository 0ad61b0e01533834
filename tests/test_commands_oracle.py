"""What policyd reads against two judges that know better: shfmt's grammar, and bash itself with stub programs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from policyd.commands import read
from policyd.model import Reading, SimpleCommand
from tests.commands_frames import framed, nested
from tests.commands_generator import Generator
from tests.commands_states import States
from tests.stubground import contradicted, levels, outcome, reading, stubs

__all__ = ["stubs"]

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
    found = read(text, cwd=("/w",), home="/h")
    calls = shfmt_calls(text)
    if found.opaque or calls is None:
        return ""
    written = _written(found)
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


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("chunk", range(10))
def test_bash_runs_no_program_that_policyd_has_not_seen(chunk: int, stubs: Path, tmp_path: Path) -> None:
    for seed in range(1_000_000 + chunk * 200, 1_000_000 + (chunk + 1) * 200):
        text = Generator(seed).text()
        assert not contradicted(text, stubs, tmp_path), text


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("chunk", range(15))
def test_bash_hands_no_program_a_word_a_directory_or_a_file_that_was_read_otherwise(
    chunk: int, stubs: Path, tmp_path: Path
) -> None:
    known = 0
    for seed in range(chunk * 200, (chunk + 1) * 200):
        text = States(seed).text()
        assert not contradicted(text, stubs, tmp_path), text
        known += not reading(text, tmp_path).opaque
    assert known > 60


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("chunk", range(10))
def test_bash_runs_nothing_otherwise_than_texts_in_texts_are_read(chunk: int, stubs: Path, tmp_path: Path) -> None:
    for seed in range(chunk * 200, (chunk + 1) * 200):
        text = nested(seed)
        assert not contradicted(text, stubs, tmp_path), text


AROUND = (
    "true; @",
    "\n@",
    "# c'(\n@",
    "@\ntrue",
    "{ @\n}",
    "( @\n)",
    'p1 "$(@\n)"',
    "p1 <(@\n)",
    "bash -c @Q",
    "eval @Q",
)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("frame", AROUND)
def test_no_command_is_lost_in_a_text_around_it(frame: str) -> None:
    for text in (*map(nested, range(500)), *(Generator(seed).text() for seed in range(200))):
        found, around = (read(whole, cwd=("/w",), home="/h") for whole in (text, framed(frame, text)))
        if not found.opaque and not around.opaque:
            assert _argvs(found) <= _argvs(around), text


def _argvs(found: Reading) -> set[tuple[str, ...]]:
    return {tuple(word.text for word in level.argv) for command in found.commands for level in levels(command)}


HIDDEN = tomllib.loads((Path(__file__).parent / "data" / "commands" / "reading_hidden.toml").read_text())["case"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", HIDDEN, ids=lambda case: case["kind"])
def test_every_hidden_program_of_the_table_really_runs(case: dict[str, list[str]], stubs: Path, tmp_path: Path) -> None:
    if not (stubs / "tee").exists():
        (stubs / "tee").symlink_to("/usr/bin/tee")
    idle = [text for text in case["texts"] if "rm" not in [run[1] for run in outcome(text, stubs, tmp_path).runs]]
    assert not idle
