"""Grants on what real agents sent: after an "always" the same call is settled, and what is nearly the same asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from policyd.actions import Machine
from policyd.authorizer import Authorizer
from policyd.grants.keys import significant
from policyd.model import Action, Agent, Assignment, Context, Decision, Effect, PathRef, Request, Word
from tests.asking import NOW
from tests.grantcaptures import FILES, POLICY, decided, exact, root
from tests.recorded import results_of
from tests.told import CAPTURES

NOTHING_OFFERED = {"deepagents", "pi"}
"""An agent that gives no name, and one that asks in words only: for neither is anything remembered."""


def asked(path: Path) -> Iterator[tuple[str, Request, Decision, Context]]:
    """Every request of an agent's captures that is asked about."""
    for row in path.read_text("utf-8").splitlines():
        case = json.loads(row)
        point = Authorizer(POLICY, machine=Machine(home="/home/dev", fs=FILES))
        for found in results_of(point, case["lines"]):
            if not found.error and found.decision.effect is Effect.ASK:
                yield case["case"], found.request, found.decision, point.context(found.request.session_id, NOW)


def elsewhere(action: Action) -> Action:
    """The same in another directory, or on a neighbouring path."""
    if action.command is not None:
        place = tuple(f"{place}/elsewhere" for place in action.cwd)
        return replace(action, cwd=place, command=replace(action.command, cwd=place))
    if action.path is not None:
        return replace(action, path=PathRef(action.path.text + "~", tuple(f"{form}~" for form in action.path.forms)))
    if action.url is not None:
        return replace(action, url=replace(action.url, host=f"not-{action.url.host}"))
    return replace(action, args={**(action.args or {}), "more": 1})


def near(request: Request, context: Context) -> Iterator[tuple[str, Request, Context]]:
    """Five requests that are nearly this one."""
    at = next(at for at, action in enumerate(request.actions) if significant(action))
    first = request.actions[at]

    def instead(action: Action) -> Request:
        return replace(request, actions=(*request.actions[:at], action, *request.actions[at + 1 :]))

    yield "another directory", instead(elsewhere(first)), context
    yield "another agent", request, replace(context, agent=Agent("another agent", "1", "another"))
    if not first.mcp:
        yield "another kind", instead(replace(first, kinds=first.kinds | {"_odd"})), context
    yield "a compound", replace(request, actions=(*request.actions, first)), context
    if first.command is not None:
        assigned = replace(first.command, env=(*first.command.env, Assignment("LD_PRELOAD", Word("./x.so"))))
        yield "an assignment", instead(replace(first, command=assigned)), context
        option = replace(first.command, argv=(*first.command.argv, Word("--force")))
        yield "another option", instead(replace(first, command=option)), context


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_after_an_always_the_same_call_is_settled_and_near_misses_ask(path: Path) -> None:
    settled = 0
    for name, request, decision, context in asked(path):
        offer = exact(request, decision, context)
        if offer is None:
            continue
        settled += 1
        assert decided(offer, replace(request, call_id="again"), context, root(context)) is Effect.ALLOW, name
        for how, other, where in near(request, context):
            assert decided(offer, other, where, root(context)) is Effect.ASK, (name, how)
        assert all("\x1b" not in word for word in (offer.name, offer.covers))
    assert settled >= 5 or (path.stem in NOTHING_OFFERED and not settled)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_what_was_not_understood_is_never_offered(path: Path) -> None:
    for name, request, decision, context in asked(path):
        if any(one.action.opaque or one.floors for one in decision.actions) or request.menu:
            assert exact(request, decision, context) is None, name
