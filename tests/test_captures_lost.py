"""Recorded agents whose messages lost something on the way: what is left of a call never allows what the whole did not.

Each transcript is played whole and with one kind of field taken away everywhere, under a policy that allows much inside
the project.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from policyd.authorizer import Authorizer
from policyd.model import Effect
from tests.recorded import permissive, results_of
from tests.told import CAPTURES, MACHINE, calls

RULES = """
[[rule]]
effect = "allow"
command = ["@read-only", "@git-read", "@test-runners"]
"""
POLICY = permissive(RULES)
LOST = ("rawInput", "kind", "_meta", "title")
SHOWN_IN_TITLE = {"gemini", "qwen-0.15", "kimi-cli", "vibe-2", "vibe-2.19"}
"""Agents whose title is the command, or the only word of what a call is: without it they are others."""


def without(lines: Iterable[dict[str, Any]], field: str) -> list[dict[str, Any]]:
    """Return a transcript in which no tool call has this field."""
    rows: list[dict[str, Any]] = json.loads(json.dumps(list(lines)))
    for row in rows:
        for call in calls(row["msg"]):
            call.pop(field, None)
    return rows


def effects(lines: Iterable[dict[str, Any]]) -> list[Effect]:
    """Return what is decided of every permission request of a transcript."""
    found = results_of(Authorizer(POLICY, machine=MACHINE), lines)
    return [one.decision.effect for one in found if not one.error and not one.request.side_door]


@pytest.mark.slow
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
@pytest.mark.parametrize("field", LOST)
def test_what_is_left_of_a_call_never_allows_more_than_the_whole(path: Path, field: str) -> None:
    if field == "title" and path.stem in SHOWN_IN_TITLE:
        pytest.skip("the title is what it does")
    for row in path.read_text("utf-8").splitlines():
        lines = json.loads(row)["lines"]
        before, after = effects(lines), effects(without(lines, field))
        loosened = [at for at, pair in enumerate(zip(before, after, strict=False)) if Effect.ALLOW == pair[1] < pair[0]]
        assert loosened == [], (json.loads(row).get("name"), field)
