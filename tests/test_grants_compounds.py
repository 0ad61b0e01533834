"""A remembered compound is the text that was shown: no other way to join the same commands is covered by it."""

from __future__ import annotations

import re

import pytest

from policyd import engine
from policyd.actions import Machine
from policyd.authorizer import Authorizer
from policyd.grants import GrantBook, Offer, Project, dump, load, offers
from policyd.model import Context, Decision, Effect, Layer, Request
from policyd.policy import PolicySource
from policyd.policy import load as load_policy
from tests.asking import CLOCK, NOW
from tests.fakes import FakeFilesystem
from tests.recorded import results_of

FILES = FakeFilesystem()
POLICY = load_policy(
    [PolicySource("user.toml", b'version = 1\n[defaults]\n"*" = "ask"\n', Layer.USER)],
    home="/home/dev",
    tmpdir="/tmp",
    version="0.1.0",
)
WAYS = {
    "and": "make lint && make test",
    "or": "make lint || make test",
    "then": "make lint; make test",
    "a line each": "make lint\nmake test",
    "beside": "make lint & make test",
    "not and": "! make lint && make test",
    "apart": "(make lint; make test)",
    "if": "if make lint; then make test; fi",
    "while": "while make lint; do make test; done",
    "until": "until make lint; do make test; done",
    "piped": "make lint | make test",
    "in one more shell": "sh -c 'make lint && make test'",
    "twice": "make lint && make test && make test",
    "the other way round": "make test && make lint",
    "with output thrown away": "make lint >/dev/null && make test",
}


def judged(command: str | list[str]) -> tuple[Request, Decision, Context]:
    """What a command of an agent is understood as."""
    lines = [
        {"method": "initialize", "id": 0, "params": {"protocolVersion": 1}},
        {"id": 0, "result": {"protocolVersion": 1, "agentInfo": {"name": "made-up", "version": "1"}}},
        {"method": "session/new", "id": 1, "params": {"cwd": "/home/dev/app", "mcpServers": []}},
        {"id": 1, "result": {"sessionId": "s"}},
        {
            "method": "session/request_permission",
            "id": 2,
            "params": {
                "sessionId": "s",
                "toolCall": {"toolCallId": "c", "kind": "execute", "rawInput": {"command": command}},
                "options": [
                    {"optionId": "y", "name": "Yes", "kind": "allow_once"},
                    {"optionId": "n", "name": "No", "kind": "reject_once"},
                ],
            },
        },
    ]
    point = Authorizer(POLICY, machine=Machine(home="/home/dev", fs=FILES))
    sides = ["c2a", "a2c", "c2a", "a2c", "a2c"]
    rows = [{"dir": side, "msg": {"jsonrpc": "2.0", **line}} for side, line in zip(sides, lines, strict=True)]
    (found,) = results_of(point, rows)
    assert not found.error
    return found.request, found.decision, point.context("s", NOW)


def offered(command: str | list[str], effect: Effect = Effect.ALLOW) -> Offer | None:
    """The exact "always" or "never" of the project for a command."""
    request, decision, context = judged(command)
    found = offers(request, decision, context, root="/home/dev/app")
    return next(
        (one for one in found if (one.effect, one.scope, one.general) == (effect, "project", False)),
        None,
    )


def settles(offer: Offer, command: str | list[str]) -> Effect:
    """What is decided of a command once the offer was taken, the grant having been to disk and back."""
    request, _, context = judged(command)
    grants = load(dump([offer.grant(clock=CLOCK)], Project("/home/dev/app"), CLOCK.wall)).grants
    assert len(grants) == 1
    book = GrantBook("/home/dev/app", grants, "run")
    return engine.decide(request, POLICY, context, FILES, book.bind(request, context, CLOCK)).effect


@pytest.mark.parametrize("way", WAYS)
def test_a_compound_covers_its_own_operators_only(way: str) -> None:
    offer = offered(WAYS[way])
    if offer is None:
        return  # nothing is remembered of it
    assert settles(offer, WAYS[way]) is Effect.ALLOW
    for other, text in WAYS.items():
        assert (settles(offer, text) is Effect.ALLOW) is (other == way), other


def test_most_compounds_can_be_remembered() -> None:
    assert {way for way in WAYS if offered(WAYS[way])} >= {"and", "or", "then", "piped", "not and", "apart", "if"}


@pytest.mark.parametrize("way", ["and", "or", "piped"])
def test_what_is_offered_shows_how_the_commands_are_joined(way: str) -> None:
    offer = offered(WAYS[way])
    assert offer is not None
    assert offer.covers == f"exactly `{WAYS[way]}`"


def test_a_directory_entered_first_or_given_is_the_same_single_command() -> None:
    offer = offered("cd sub && make test")
    assert offer is not None
    assert offer.covers == "`make test` (run in sub)"
    assert settles(offer, "cd sub && make test") is Effect.ALLOW
    assert settles(offer, "make test") is Effect.ASK
    assert settles(offer, "cd sub || make test") is Effect.ASK


def test_a_list_of_words_is_not_the_text_they_make() -> None:
    offer = offered(["sh", "-c", "make lint && make test"])
    assert offer is not None
    assert offer.covers == "exactly `sh -c 'make lint && make test'`"
    assert settles(offer, "make lint && make test") is Effect.ASK


@pytest.mark.parametrize("way", ["and", "or", "then", "the other way round", "twice"])
def test_a_denied_compound_is_denied_however_it_is_joined(way: str) -> None:
    offer = offered(WAYS["and"], Effect.DENY)
    assert offer is not None
    assert settles(offer, WAYS[way]) is Effect.DENY


def test_the_file_of_a_compound_reads_back_and_nothing_else_does() -> None:
    offer = offered(WAYS["and"])
    assert offer is not None
    text = dump([offer.grant(clock=CLOCK)], Project("/home/dev/app"), CLOCK.wall)
    assert load(text).grants
    assert not load(text.replace(offer.members[0].whole, "0" * 64)).grants, "the id is that of what it covers"
    assert not load(re.sub(r"whole = .*\n", "", text)).grants
