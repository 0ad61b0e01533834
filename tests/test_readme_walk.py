"""The README's "Five minutes" go as they are shown: one home, one project, a person who types three numbers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.clienthouse import ROOT

README = (ROOT / "README.md").read_text()
SECTION = README[README.index("## Five minutes") : README.index("A suite beside a policy")]
SHOWN = re.findall(r"^```text\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
STEP = re.compile(r"^\$ (.*?(?:'[^']*'.*?)?)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
STEPS = [step for text in SHOWN for step in STEP.findall(text)]
TYPED = ("1", "1", "3")
"""Allow once, allow once, always."""
PERSON = 0.6
"""Seconds before an answer: what comes faster did not come from a person."""
ID = re.compile(r"g-[0-9a-f]{12}")
VARIES = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z?|\d{4}-\d{2}-\d{2}|g-[0-9a-f]{12}|\b1[12]h\b")
"""Times, and the ids of remembered answers."""


def home(tmp_path: Path) -> dict[str, str]:
    """Make a project, a home with the starter policy, and `policyd` and `python` on the path."""
    tools, project = tmp_path / "bin", tmp_path / "project"
    for folder in (tools, project / "src", tmp_path / "home"):
        folder.mkdir(parents=True)
    (tools / "policyd").write_text(f'#!/bin/sh\nexec {sys.executable} -m policyd "$@"\n')
    (tools / "npm").write_text("#!/bin/sh\necho built\n")
    for tool in ("policyd", "npm"):
        (tools / tool).chmod(0o755)
    (project / "examples").symlink_to(ROOT / "examples")
    (project / ".env").write_text("TOKEN=secret\n")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    path = f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"HOME": str(tmp_path / "home"), "PATH": path, "PYTHONPATH": str(ROOT)}
    subprocess.run([str(tools / "policyd"), "init", "default", "--write"], env=env, check=True, capture_output=True)
    return env


def terminal(command: str, folder: Path, env: dict[str, str]) -> str:
    """Run a command; return what a terminal shows, with what the person types at each question."""
    shown, typed = "", iter(TYPED)
    with subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env=env,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as run:
        assert run.stdin and run.stdout
        while data := run.stdout.read(65_536):
            shown += data.decode()
            if shown.endswith("         number: "):
                time.sleep(PERSON)
                line = f"{next(typed)}\n"
                run.stdin.write(line.encode())
                shown += line
    return shown


def pattern(expected: str) -> str:
    """Return what `…` and everything that varies leaves of the text shown; `…` on its own line is any lines."""
    text = VARIES.sub("…", f"\n{expected.strip()}")
    text = re.escape(text).replace(re.escape("…"), "…").replace("\\ …", "\\ +…")
    text = re.sub(r"\\?\n(?:\\ )*\+?…(?=\n|\\\n|$)", r"(?:\n.*)*?", text)
    return text.replace("…", ".*")


def test_the_first_session_goes_as_it_is_shown(tmp_path: Path) -> None:
    env = home(tmp_path)
    assert len(STEPS) >= 6
    known: dict[str, str] = {}
    for command, expected in STEPS:
        for shown, real in known.items():
            command = command.replace(shown, real)
        printed = terminal(command, tmp_path / "project", env).strip()
        assert re.fullmatch(pattern(expected), f"\n{printed}"), f"$ {command}\n{printed}\n--- is not\n{expected}"
        known |= dict(zip(ID.findall(expected), ID.findall(printed), strict=False))


@pytest.mark.parametrize("text", SHOWN, ids=["session", "afterwards"])
def test_every_line_shown_belongs_to_a_step(text: str) -> None:
    """What the test above does not read, it does not run."""
    assert "".join(f"$ {command}\n{expected}" for command, expected in STEP.findall(text)) == text
