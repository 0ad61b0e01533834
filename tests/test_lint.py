"""The warnings of `policyd check`: each mistake in a policy that loads is found, in its line, and no other."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from policyd.cli.findings import Finding
from policyd.cli.lint import lint
from policyd.model import Layer
from policyd.policy import PolicySource, load

HERE = Path(__file__).parent
CASES = tomllib.loads((HERE / "data/mistakes/warnings.toml").read_text())["case"]
NOW = datetime(2026, 11, 29, tzinfo=UTC)
HOME = "/home/dev"
LAYERS = {"managed": Layer.MANAGED, "text": Layer.USER, "project": Layer.PROJECT}


def findings(texts: dict[str, str], cwd: str = "") -> list[Finding]:
    """Lint files given by layer: `managed`, `text` (the user's), `project`."""
    sources = [
        PolicySource(f"{'user' if key == 'text' else key}.toml", text.encode(), LAYERS[key], root="/w")
        for key, text in texts.items()
    ]
    policy = load(sources, home=HOME, tmpdir="/tmp", version="0.1.0")
    return lint(policy, sources, home=HOME, tmpdir="/tmp", now=NOW, cwd=cwd)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_mistake_is_found_in_its_line(case: dict[str, Any], tmp_path: Path) -> None:
    for name in case.get("files", ()):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    texts = {key: "\n" + case[key].removeprefix("\n") for key in LAYERS if key in case}
    said = [f"{f.at.line}: {f.name}: {f.at.found}; {f.at.write}" for f in findings(texts, str(tmp_path))]
    assert len(said) == len(case["said"]), said
    for got, wanted in zip(said, case["said"], strict=True):
        line, name, part = wanted.split(": ", 2)
        assert got.startswith(f"{line}: {name}: "), said
        assert part in got, said
