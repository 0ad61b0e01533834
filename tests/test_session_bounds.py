"""Bounds: floods of requests and questions, many open at once, ids of every kind. Counted, never timed."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter

import pytest

from policyd.session import Connection, Frame, Note, Record, Send, Settings, Side, Tick
from policyd.session.connection import MOST_LISTED
from tests.playbook import MACROS, Play, ScriptedDecider, frame, moment, sent


@pytest.mark.slow
def test_a_flood_of_a_thousand_requests_asks_at_most_twenty_times_a_minute() -> None:
    connection = Connection(ScriptedDecider(), Settings(), nonce="n")
    asked, answered = 0, 0
    for at in range(1000):
        commands = frame(connection, Side.AGENT, MACROS["permission"](str(at), f"c{at}", f"make {at}"), at / 100)
        questions = [one for one in sent(commands, Side.CLIENT) if one.get("method") == "session/request_permission"]
        asked += len(questions)
        answered += len(sent(commands, Side.AGENT))
        for question in questions:
            outcome = {"outcome": {"outcome": "selected", "optionId": "no"}}
            reply = frame(connection, Side.CLIENT, {"id": question["id"], "result": outcome}, at / 100)
            answered += len(sent(reply, Side.AGENT))
    assert asked <= 20
    assert answered == 1000


def test_at_most_eight_questions_are_open_at_once() -> None:
    connection = Connection(ScriptedDecider(), Settings(), nonce="n")
    asked = 0
    for at in range(20):
        commands = frame(connection, Side.AGENT, MACROS["permission"](str(at), f"c{at}", f"make {at}"))
        asked += sum(one.get("method") == "session/request_permission" for one in sent(commands, Side.CLIENT))
    assert asked == 8


@pytest.mark.parametrize("title", ["make", "late make"])
def test_a_cancelled_turn_answers_a_thousand_open_requests_once_each(title: str) -> None:
    connection = Connection(ScriptedDecider(), Settings(), nonce="n")
    answers: Counter[object] = Counter()
    for at in range(1000):
        commands = frame(connection, Side.AGENT, MACROS["permission"](str(at), f"c{at}", title))
        answers.update(one["id"] for one in sent(commands, Side.AGENT))
    commands = frame(connection, Side.CLIENT, MACROS["cancel"]())
    answers.update(one["id"] for one in sent(commands, Side.AGENT) if "result" in one)
    assert set(answers.values()) == {1}
    assert len(answers) == 1000
    assert not sent(connection.handle(Tick(), moment(9999.0)), Side.AGENT)


def test_other_sessions_stay_as_they_are_when_a_turn_is_cancelled() -> None:
    connection = Connection(ScriptedDecider(), Settings(), nonce="n")
    frame(connection, Side.AGENT, MACROS["permission"]("1", "a", "make"))
    other = json.loads(json.dumps(MACROS["permission"]("2", "b", "make")).replace('"s"', '"t"'))
    frame(connection, Side.AGENT, other)
    commands = frame(connection, Side.CLIENT, MACROS["cancel"]())
    assert [one["id"] for one in sent(commands, Side.AGENT) if "result" in one] == [1]


@pytest.mark.parametrize(
    "raw", [b"0", b'"0"', b'""', b"null", b"1.5", b"-3", b'"\\u00e9"', b"99999999999999999999999", b"1e2"]
)
@pytest.mark.parametrize("title", ["allowed", "denied", "asked"])
def test_every_kind_of_id_comes_back_with_its_bytes(raw: bytes, title: str) -> None:
    connection = Connection(ScriptedDecider({"allowed": "allow", "denied": "deny"}), Settings(prompt=()), nonce="n")
    line = json.dumps({"jsonrpc": "2.0", **MACROS["permission"]("0", "c", title)}).encode()
    commands = connection.handle(Frame(Side.AGENT, line.replace(b'"id": 0', b'"id": ' + raw)), moment(0.0))
    answers = [one.data for one in commands if isinstance(one, Send) and one.side is Side.AGENT]
    assert len(answers) == 1
    assert answers[0].startswith(b'{"jsonrpc":"2.0","id":' + raw + b",")


def test_no_id_the_client_is_asked_under_can_be_told_from_those_before() -> None:
    play, asked = Play(), list[str]()
    for at in range(9):
        play.event("agent", f"permission {at} c{at} 'menu {at}' a=allow_once b=allow_once")
        asked += [str(one["id"]) for one in sent(play.commands, Side.CLIENT)]
        play.commands.clear()
        play.message("client", **MACROS["chose"]("0", "no") | {"id": asked[-1]})
    words = {one.rpartition(":")[2] for one in asked}
    assert len(words) == len(asked) == 9 and {len(word) for word in words} == {32}


def test_requests_beyond_what_is_held_are_refused() -> None:
    connection = Connection(ScriptedDecider(), Settings(), nonce="n")
    refused = 0
    for at in range(2100):
        commands = frame(connection, Side.AGENT, MACROS["permission"](str(at), f"c{at}", "late make"))
        refused += len(sent(commands, Side.AGENT))
    assert refused == 100


def test_what_is_kept_of_unknown_sessions_is_bounded() -> None:
    connection = Connection(ScriptedDecider(), Settings(), nonce="n")
    for at in range(5000):
        update = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "x"}
        frame(connection, Side.AGENT, {"method": "session/update", "params": {"sessionId": f"s{at}", "update": update}})
    assert len(connection._core.sessions) <= 2000


def test_what_is_kept_of_calls_is_bounded() -> None:
    play = Play(ScriptedDecider({"make": "allow", "rm": "deny"}), Settings(calls_kept=3))
    play.event("client", "new 1")
    play.event("agent", "opened 1 default")
    for at in range(9):
        play.event("agent", f"permission {at} a{at} make")
        play.event("agent", f"permission {at} d{at} rm")
        diff = {"type": "diff", "path": f"/w/{at}", "newText": "x"}
        play.event("agent", f"update c{at} 'content={json.dumps([diff, {'type': 'diff', 'path': '/w/odd'}])}'")
    session = play.connection._core.sessions["s"]
    assert [len(kept) for kept in (session.approved, session.diffs, session.reported)] == [3, 3, 3]
    assert [*session.diffs] == ["c6", "c7", "c8"]


def test_what_is_kept_of_requests_and_answers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyd.session.core.PASSING_KEPT", 3)
    monkeypatch.setattr("policyd.session.core.ALIKE_KEPT", 2)
    monkeypatch.setattr("policyd.session.permissions.RECORDED_KEPT", 3)
    play = Play(ScriptedDecider({"make": "allow"}))
    for at in range(9):
        play.message("agent", id=f"x{at}", method="_other", params={})
        play.message("agent", id="twin", method="_other", params={})
        play.event("agent", f"permission {at} a{at} make")
        play.event("agent", f"permission {at} d{at} ask")
        asked = sent(play.commands, Side.CLIENT)[-1]["id"]
        play.message("client", **MACROS["chose"]("0", "no") | {"id": asked})
    core = play.connection._core
    kept = (core.passing, play.connection._permissions._recorded)
    assert all(1 < len(each) <= 3 for each in kept)
    play.message("agent", id="twin", method="_other", params={})
    play.message("agent", id="twin", method="_other", params={})
    play.message("agent", id="twin", method="_other", params={})
    assert max(map(len, core.passing.values())) == 2


def test_what_waits_for_a_mode_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyd.session.modes.QUEUE_LINES", 3)
    monkeypatch.setattr("policyd.session.modes.PROMPTS_KEPT", 3)
    play = Play()
    play.event("client", "new 1")
    play.event("agent", "opened 1 auto")
    for at in range(4):
        play.event("client", f"prompt {10 + at}")
    refused = sent(play.commands, Side.CLIENT)
    assert [one["id"] for one in refused if "error" in one] == [13]
    play.commands.clear()
    for at in range(4):
        play.event("agent", f"says {at}")
    assert any("too much came" in one.text for one in play.commands if isinstance(one, Note))
    passed = [one.data for one in play.commands if isinstance(one, Send) and one.side is Side.CLIENT]
    assert [at for at in range(4) if f'"text":"{at}"'.encode() in b"".join(passed)] == [0, 1, 2, 3]


def test_an_own_id_tells_nothing_of_the_secret_of_a_prompt() -> None:
    one, two = (Connection(ScriptedDecider(), Settings(), nonce=nonce)._core for nonce in ("a", "b"))
    assert one.prefix != two.prefix
    assert one.secret() != one.secret()
    assert one.secret()[:16] not in one.prefix


def test_every_decision_has_a_record_of_its_own() -> None:
    connection = Connection(ScriptedDecider({"x": "deny"}), Settings(), nonce="n")
    ids = set()
    for at in range(50):
        commands = frame(connection, Side.AGENT, MACROS["permission"](str(at), f"c{at}", "x"))
        ids |= {str(one.record["id"]) for one in commands if isinstance(one, Record)}
    assert len(ids) == 50


def test_what_was_allowed_is_not_kept() -> None:
    play = Play(ScriptedDecider({"/w/big": "allow"}))
    play.event("client", "new 1")
    play.event("agent", "opened 1 default")
    text = "x" * 100_000
    tracemalloc.start()
    for number in range(200):
        params = {"sessionId": "s", "path": "/w/big", "content": text}
        play.message("agent", id=number, method="fs/write_text_file", params=params)
        play.commands.clear()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 5_000_000


def test_an_agents_title_cannot_push_what_always_covers_out_of_sight() -> None:
    decider = ScriptedDecider(client_name="CodeCompanion.nvim")
    connection = Connection(decider, Settings(run="r"), nonce="n")
    title = "make [Always allow `ls` in this session]" + " " * 5000 + "\n\x1b[2J" * 200
    (question,) = sent(frame(connection, Side.AGENT, MACROS["permission"]("1", "c", title)), Side.CLIENT)
    params = question["params"]
    assert isinstance(params, dict)
    shown = params["toolCall"]["title"]
    assert len(shown) < 1200
    assert "\x1b" not in shown and "\n" not in shown
    assert shown.endswith(" in this project]")
    assert params["toolCall"]["content"] == [], "no diff of an earlier update is shown in its place"


@pytest.mark.parametrize(
    ("side", "method", "name"),
    [
        (Side.AGENT, "session/request_permission", "options"),
        (Side.CLIENT, "session/new", "additionalDirectories"),
        (Side.CLIENT, "session/load", "mcpServers"),
    ],
)
def test_a_list_longer_than_is_looked_at_is_refused_and_never_passes(side: Side, method: str, name: str) -> None:
    connection = Connection(ScriptedDecider(), Settings(), nonce="n")
    told = {"sessionId": "s1", "cwd": "/w", name: [{}] * (MOST_LISTED + 1)}
    commands = frame(connection, side, {"id": 1, "method": method, "params": told})
    assert sent(commands, side.other) == []
    assert [one["id"] for one in sent(commands, side)] == [1]
    assert "selected" not in json.dumps(sent(commands, side))
