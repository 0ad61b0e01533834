"""After "always" for a captured command: the same call again is settled, and five that are nearly it ask.

The near misses are made on the wire, not of actions: every text of the transcript that holds the command is respelled,
its session works in another directory of the project, or another agent says it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policyd.authorizer import Authorizer
from policyd.grants import Offer
from policyd.model import Context, Decision, Effect, Request
from tests.asking import NOW
from tests.grantcaptures import POLICY, decided, exact, root
from tests.recorded import results_of
from tests.told import CAPTURES, MACHINE

HERE = "/home/dev/project"
PLAIN = re.compile(r"[a-z]+( [a-z0-9./_-]+)+")
"""A command that is spelt alike in shell text, in JSON inside a text, and in a title."""
NEAR = {
    "an assignment": "LD_PRELOAD=./x.so {}",
    "another option": "{} --force",
    "a compound": "{} && rm -rf src",
    "a compound on a line of its own": "{}\nrm -rf src",
    "one behind it in the background": "{} & rm -rf src",
}

WITHOUT = {"pi", "cursor", "deepagents", "hermes", "vibe-2.19"}
"""Captures without one plain command that is asked about."""
Found = tuple[Request, Decision, Context]


def played(lines: list[Any]) -> Iterator[Found]:
    """Yield every request of a transcript that can be decided."""
    point = Authorizer(POLICY, machine=MACHINE)
    for found in results_of(point, lines):
        if not found.error and not found.request.side_door:
            yield found.request, found.decision, point.context(found.request.session_id, NOW)


def settled(path: Path) -> Iterator[tuple[list[Any], int, str, Offer]]:
    """Yield lines, place, command and offer of every request that is one plain command and can be granted."""
    for row in path.read_text("utf-8").splitlines():
        lines = json.loads(row)["lines"]
        for at, (request, decision, context) in enumerate(played(lines)):
            commands = [action.command for action in request.actions if action.command is not None]
            offer = exact(request, decision, context) if decision.effect is Effect.ASK else None
            if offer is None or len(commands) != 1 or not PLAIN.fullmatch(commands[0].text):
                continue
            if commands[0].text in json.dumps(lines):
                yield lines, at, commands[0].text, offer


def respelled(value: Any, old: str, new: str) -> Any:
    """Return `value` with `new` in the place of `old` in every text of it, in JSON inside a text too."""
    if isinstance(value, str):
        inside = json.dumps(new)[1:-1] if value.lstrip().startswith("{") else new
        return value.replace(old, inside)
    if isinstance(value, list):
        return [respelled(item, old, new) for item in value]
    return {key: respelled(item, old, new) for key, item in value.items()} if isinstance(value, dict) else value


SAYS_WHO = r'"agentInfo": \{[^}]*\}|"authMethods": \[[^]]*\]'


def by_another(lines: list[Any]) -> list[Any]:
    """Return the transcript with another agent's name in the answer to `initialize`."""
    text = json.dumps(lines)
    return list(json.loads(re.sub(SAYS_WHO, '"agentInfo": {"name": "somebody", "version": "1"}', text)))


def near(lines: list[Any], command: str, place: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield what is nearly the same call; `place` is where the command runs, as a grant says it."""
    for how, form in NEAR.items():
        yield how, respelled(lines, command, form.format(command))
    old = place if place.startswith("/") else HERE
    yield "another directory", respelled(lines, old, f"{old}/sub")
    yield "another agent", by_another(lines)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_near_misses_of_a_granted_command_ask(path: Path) -> None:
    for lines, at, command, offer in list(settled(path))[:2]:
        request, _, context = list(played(lines))[at]
        assert decided(offer, request, context, root(context)) is Effect.ALLOW
        for how, other in near(lines, command, offer.members[0].cwd[0]):
            found = list(played(other))
            assert found, how
            for asked, _, where in found[at : at + 1]:
                assert decided(offer, asked, where, HERE) is Effect.ASK, (command, how)


@pytest.mark.parametrize("path", [path for path in CAPTURES if path.stem not in WITHOUT], ids=lambda path: path.stem)
def test_of_every_agent_some_command_can_be_granted(path: Path) -> None:
    assert next(settled(path), None) is not None
