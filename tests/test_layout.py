"""The layout of the repository: layers, tests for each package, everything documented."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tests
from policyd import cli
from policyd.cli import COMMANDS
from tests.rowwise import in_groups

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "policyd"
TOP = {
    ".ci",
    ".git",
    ".gitignore",
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "examples",
    "policies",
    "policyd",
    "pyproject.toml",
    "systemd",
    "tests",
}
ROOMS = sorted(
    path.stem
    for path in PACKAGE.iterdir()
    if (path.suffix == ".py" or (path / "__init__.py").exists()) and not path.stem.startswith("__")
)
SOURCES = sorted(PACKAGE.rglob("*.py"))
HEAVY = ["asyncio", "pydantic", "pydantic_settings", "typer", "rich", "acp", "argparse", "logging", "subprocess"]


def tracked() -> list[str]:
    said = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    return said.stdout.splitlines()


def test_nothing_else_lies_at_the_top() -> None:
    assert {name.split("/")[0] for name in tracked()} <= TOP


def test_each_room_has_tests_of_its_own() -> None:
    names = [path.stem for path in Path(__file__).parent.glob("test_*.py")]
    bare = [
        room
        for room in ROOMS
        if room != "model" and not any(name.startswith(f"test_{room.rstrip('s')}") for name in names)
    ]
    assert bare == []


def test_no_test_module_is_imported() -> None:
    imports = re.compile(r"^\s*(?:from|import) tests\.test_", re.MULTILINE)
    python = [ROOT / name for name in tracked() if name.startswith("tests/") and name.endswith(".py")]
    assert [path.name for path in python if path.exists() and imports.search(path.read_text())] == []


def test_the_map_of_the_tests_names_everything_they_share() -> None:
    here = Path(__file__).parent
    shared = {path.stem for path in here.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    told = set(re.findall(r"\w+", tests.__doc__ or ""))
    assert {name for name in shared if not name.startswith(("test_", "__"))} - told == set()


def test_the_map_of_the_commands_names_every_module() -> None:
    here, text = PACKAGE / "cli", cli.__doc__ or ""
    found = {str(path.relative_to(here).with_suffix("")) for path in here.rglob("*.py") if path.stem != "__init__"}
    told = set(re.findall(r"\w+", text))
    for folder, names in re.findall(r"^    (\w+/) ([\w, ]+?)   ", text, re.MULTILINE):
        told |= {folder + name for name in names.split(", ")}
    assert found - COMMANDS.keys() - told == set()


@in_groups((path,) for path in SOURCES)
def test_each_module_says_why_it_exists_and_nothing_in_it_outgrows_its_reader(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "no module docstring"
    assert len(text.splitlines()) <= 450
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 60, f"{node.name} is too long"


def test_no_module_is_a_drawer() -> None:
    names = {path.stem for path in SOURCES}
    assert not names & {"utils", "helpers", "common", "misc"}
    classes = re.findall(r"^class (\w+)", "\n".join(path.read_text() for path in SOURCES), re.MULTILINE)
    assert [name for name in classes if name.startswith("Base") or name.endswith("Manager")] == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_command_is_in_the_readme(name: str) -> None:
    assert f"policyd {name}" in (ROOT / "README.md").read_text()


def test_the_readme_says_of_every_room_what_belongs_there() -> None:
    said = set(re.findall(r"`(\w+)`", (ROOT / "README.md").read_text().split("## Developing")[1]))
    stairs = {path.stem for path in (PACKAGE / "commands").iterdir() if not path.stem.startswith("__")}
    assert {*ROOMS, *stairs} - said == set()


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = f"import sys, policyd; print([m for m in {[*HEAVY, 'msgspec', 'tomllib']} if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert said.stdout.strip() == "[]"
