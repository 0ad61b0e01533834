"""Requests that name more than anybody looks at: bounded work, never an allow. Counted, never timed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from policyd import commands
from policyd.actions import Conversation, Machine, Session, sessions
from policyd.actions.builder import DEEP, GLOB, MOST, MOST_TEXTS, TOO_MANY
from policyd.actions.derive import MOST_FIELDS
from policyd.commands.lexing.run import LENGTH
from policyd.model import Action, Reach
from tests.fakes import FakeFilesystem

Calls = Callable[[int], dict[str, Any]]
OPTIONS = [{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]


def places(kind: str, path: str = "a{}") -> Calls:
    return lambda many: {"kind": kind, "locations": [{"path": path.format(at)} for at in range(many)]}


def run(before: str, word: str, after: str = "") -> Calls:
    return lambda many: {
        "kind": "execute",
        "rawInput": {"command": before + " ".join(word.format(at) for at in range(many)) + after},
    }


def field(name: str, make: Callable[[int], object], kind: str = "other") -> Calls:
    return lambda many: {"kind": kind, "rawInput": {name: [make(at) for at in range(many)]}}


def diffs(many: int) -> dict[str, Any]:
    return {"kind": "edit", "content": [{"type": "diff", "path": f"a{at}", "newText": "x"} for at in range(many)]}


CASES: dict[str, tuple[Calls, int]] = {
    "places": (places("read"), MOST + 1),
    "whole directories": (places("search"), MOST // DEEP + 1),
    "spellings of one place": (places("read", "./{}/../a"), MOST + 1),
    "long paths": (places("read", "a/" * 1_600 + "{}"), MOST // 100 + 1),
    "diffs": (diffs, MOST + 1),
    "globs": (run("cat ", "*{}*"), MOST // GLOB + 1),
    "the same glob": (run("cat ", "*"), MOST // GLOB + 1),
    "words that may be files": (run("foo ", "a/{}"), MOST + 1),
    "paths in a field": (field("paths", "a/{}".format), MOST + 1),
    "addresses in a field": (field("urls", "https://a{}.example/".format), MOST + 1),
    "addresses in a text": (
        lambda many: {"rawInput": {"x": " ".join(f"http://a{at}.example" for at in range(many))}},
        MOST + 1,
    ),
    "fields": (lambda many: {"rawInput": {f"k{at}": "a/b" for at in range(many)}}, MOST_FIELDS + 1),
    "texts in a field": (field("words", str), MOST_TEXTS + 1),
    "words of a vector": (lambda many: {"kind": "execute", "rawInput": {"command": ["rm", *["a"] * many]}}, LENGTH),
}


def actions(call: dict[str, Any]) -> tuple[Action, ...]:
    talk = Conversation(Machine("/home/dev", FakeFilesystem()), cwd="/home/dev/project")
    params = {"sessionId": "s", "toolCall": {"toolCallId": "c", **call}, "options": OPTIONS}
    return talk.request(params).actions


def weight(found: tuple[Action, ...]) -> int:
    """Return how much there is to be judged."""
    paths = [action.path for action in found if action.path]
    globs = sum(GLOB for path in paths if path.glob)
    return len(found) + globs + sum(DEEP for path in paths if path.reach is not Reach.ENTRY)


@pytest.mark.parametrize("name", CASES)
def test_what_is_named_beyond_the_cap_is_not_looked_at_and_is_opaque(name: str) -> None:
    make, enough = CASES[name]
    found = actions(make(enough))
    assert weight(found) <= 2 * MOST
    assert any(action.opaque and ("looked at" in action.opaque or "not read" in action.opaque) for action in found)
    assert len(found) >= 0.9 * min(len(actions(make(4 * enough))), MOST)


@pytest.mark.parametrize("name", CASES)
def test_what_is_named_below_the_cap_is_looked_at(name: str) -> None:
    make, enough = CASES[name]
    if "words of" not in name:
        assert TOO_MANY not in [action.opaque for action in actions(make(enough // 4))]


def test_a_field_that_is_not_looked_at_may_widen_and_one_that_a_profile_knows_is_looked_at() -> None:
    many = {f"k{at}": at for at in range(MOST_FIELDS)}
    found = actions({"kind": "execute", "rawInput": {**many, "command": "rm x", "no_sandbox": True}})
    assert any(action.escalate for action in found) and any(action.opaque for action in found)
    assert [action.command.argv[0].text for action in found if action.command] == ["rm"]
    few = actions({"kind": "execute", "rawInput": {**dict([*many.items()][:-1]), "command": "rm x"}})
    assert not any(action.escalate for action in few)


def test_each_kind_of_what_is_not_looked_at_is_told() -> None:
    many = 3 * MOST
    call = {
        "kind": "edit",
        "locations": [{"path": f"a{at}"} for at in range(many)],
        "content": [
            {"type": "diff", "path": f"a{at}", "newText": "", "_meta": {"kind": "delete"}} for at in range(many)
        ],
    }
    kinds = [action.kinds for action in actions(call) if action.opaque == TOO_MANY]
    assert any("delete" in each for each in kinds)


def test_a_directory_longer_than_any_path_is_no_workspace() -> None:
    talk = Conversation(Machine("/home/dev", FakeFilesystem()))
    for at, cwd in enumerate(("/" + "a/" * 3_000, "/home/dev/project")):
        talk.observe("c2a", {"id": at, "method": "session/new", "params": {"cwd": cwd, "mcpServers": []}})
        talk.observe("a2c", {"id": at, "result": {"sessionId": f"s{at}"}})
    assert talk.workspace("s0").cwd is None and talk.workspace("s1").cwd == "/home/dev/project"


def test_a_shell_that_may_stand_in_many_places_is_lost_where_too_much_would_have_to_be_read_for_each() -> None:
    session = Session("s", "/w", places=tuple(f"/w/{at}" for at in range(16)))
    session.follow("c", {"rawInput": {"command": "cd x; " * 2_000}, "status": "completed"}, Machine("/home/dev"))
    assert session.lost


def test_a_text_that_is_not_read_for_where_it_leads_leads_nowhere() -> None:
    dice, skipped = random.Random(7), 0  # noqa: S311
    words: tuple[str, ...] = (
        *("cd", "./x", ".", "..", "source", "make", "CI=1", "CDPATH=/x", "command", "builtin", "-P", "a/b"),
        "",
    )
    words += ("eval", "env", "then", "do", "time", "in", "bash", "-c", "exec", "popd", "x:y", "@", "+x", "=ls", "~")
    for _ in range(800):
        text = " ".join(dice.choice(words) for _ in range(dice.randint(1, 5)))
        if sessions._stays(text):
            skipped += 1
            reading = commands.read(text, cwd=("/w",), home="/home/dev", shell=dice.choice(("bash", "zsh")))
            assert not any(map(sessions._astray, reading.commands)), text
            assert [one.chdir for one in reading.commands if one.chdir] == [], text
    assert skipped > 100
