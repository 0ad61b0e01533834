"""No failure comes out as allow: every call of the decision path is made to fail, as the syntax tree lists them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def thrown(step: int, offset: int) -> dict[str, Any]:
    """Run the faults in a process of their own: it rewrites the modules it loads."""
    said = subprocess.run(
        [sys.executable, "-m", "tests.faults", str(step), str(offset)],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr[-2000:]
    found: dict[str, Any] = json.loads(said.stdout)
    return found


def test_a_fault_in_every_thirtieth_call_allows_nothing() -> None:
    found = thrown(30, 7)
    assert found["allowed"] == []
    assert found["thrown"] >= 50


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_fault_in_any_call_allows_nothing() -> None:
    found = thrown(1, 0)
    assert found["allowed"] == []
    assert found["sites"] >= 1000
    assert found["thrown"] >= 2000
