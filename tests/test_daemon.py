"""The daemon's connection: hello first, every request answered once, nothing allowed that was not decided so."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from policyd.daemon import wire
from policyd.daemon.wire import WireError
from policyd.service.relayed import PieceError, piece_of, pieces
from tests.daemons import OPTIONS, Daemon, Peer, chosen, params, scene, until

PERMISSION = "session/request_permission"
YES = {"outcome": {"outcome": "selected", "optionId": "yes"}}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A running daemon that many tests share: none of them changes it."""
    with Daemon(scene(tmp_path_factory.mktemp("daemon"))) as running:
        yield running


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon of a test's own."""
    with Daemon(scene(tmp_path)) as running:
        yield running


@pytest.fixture
def peer(daemon: Daemon) -> Iterator[Peer]:
    """An embedder with a person."""
    one = daemon.peer(person=True)
    yield one
    one.close()


def before(daemon: Daemon) -> int:
    """Return how many records there are."""
    return len(daemon.scene.records()) if daemon.scene.audit.exists() else 0


def rows(daemon: Daemon, since: int) -> list[dict[str, Any]]:
    """Return the decisions recorded since."""
    return [row for row in daemon.scene.records()[since:] if row["event"] == "decision"]


# ---- hello --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cwd", "option"), [("", "no"), ("{work}", "yes"), ("/srv", "no")])
def test_an_agent_that_stays_where_it_was_started_is_allowed_nothing_where_nobody_says_where(
    daemon: Daemon, cwd: str, option: str
) -> None:
    one = daemon.stranger()
    one.call("_policyd/hello", {"protocol": 1, "agent": "nanocoder", "cwd": cwd.format(work=daemon.scene.work)})
    one.call("_policyd/session", {"sessionId": "s1", "cwd": str(daemon.scene.work)})
    shown = {"toolCallId": "c1", "kind": "execute", "title": "execute_bash: ls", "rawInput": {"command": "ls"}}
    update = {"sessionUpdate": "tool_call", **shown}
    one.send({"method": "session/update", "params": {"sessionId": "s1", "update": update}})
    assert chosen(one.call(PERMISSION, {**params("ls"), "toolCall": shown})) == option
    one.close()


def test_nothing_is_decided_before_the_hello(daemon: Daemon) -> None:
    early = daemon.stranger()
    assert chosen(early.ask("ls")) == "cancelled"
    early.request("_policyd/status", {})
    assert "hello" in early.until(id=2)["error"]["message"]
    early.close()


def test_a_hello_tells_what_is_in_force(daemon: Daemon) -> None:
    peer = daemon.stranger()
    said = peer.call("_policyd/hello", {"protocol": 1})
    peer.close()
    assert said["protocol"] == 1 and said["tier"] == "mediated" and said["required"] is False
    assert said["revision"].startswith("sha256:") and "claude" in said["agents"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, "protocol 1"),
        ({"protocol": 2}, "protocol 1"),
        ({"protocol": 1, "person": "yes"}, "`person`"),
        ({"protocol": 1, "client": 3}, "`client`"),
        ({"protocol": 1, "labels": {"a": 1}}, "`labels`"),
    ],
)
def test_a_hello_that_cannot_be_read_is_refused_in_words(given: dict[str, object], found: str) -> None:
    with pytest.raises(WireError, match=found):
        wire.read_hello(given)


def test_one_hello_is_enough(peer: Peer) -> None:
    ident = peer.request("_policyd/hello", {"protocol": 1})
    assert "second hello" in peer.until(id=ident)["error"]["message"]


# ---- requests -----------------------------------------------------------------------------------------


def test_policy_answers_with_the_option_it_means(daemon: Daemon, peer: Peer) -> None:
    since = before(daemon)
    allowed, denied = peer.ask("ls"), peer.ask("rm -rf x", call="c2")
    assert (chosen(allowed), chosen(denied)) == ("yes", "no")
    assert denied["_meta"]["policyd"] == {"effect": "deny", "rules": ["user:no-rm"], "reason": "no removing here"}
    assert [(row["effect"], row["client"]["name"], row["uid"]) for row in rows(daemon, since)] == [
        ("allow", "tests", os.getuid()),
        ("deny", "tests", os.getuid()),
    ]


def test_what_policy_asks_is_asked_of_the_embedders_user(peer: Peer) -> None:
    ident = peer.request(PERMISSION, params("npm test"))
    question = peer.until(method="_policyd/ask")
    assert "options" in question["params"] and question["id"] != ident
    peer.send({"id": question["id"], "result": YES})
    assert chosen(peer.result(ident)) == "yes"


def test_an_embedder_without_a_person_is_not_asked(daemon: Daemon) -> None:
    peer = daemon.peer(person=False)
    answer = peer.ask("npm test")
    assert chosen(answer) == "no" and "nobody is there to ask" in answer["_meta"]["policyd"]["reason"]
    peer.close()


@pytest.mark.parametrize(
    "reply",
    [
        {"result": {}},
        {"result": {"outcome": {"outcome": "cancelled"}}},
        {"result": {"outcome": {"outcome": "selected", "optionId": "other"}}},
        {"result": {"outcome": {"outcome": "selected"}}},
        {"error": {"code": -1, "message": "no"}},
        {"result": None},
    ],
)
def test_an_answer_that_chooses_nothing_offered_is_a_rejection(peer: Peer, reply: dict[str, object]) -> None:
    ident = peer.request(PERMISSION, params("npm test"))
    question = peer.until(method="_policyd/ask")
    peer.send({"id": question["id"], **reply})
    assert chosen(peer.result(ident)) != "yes"


def test_an_answer_nobody_asked_for_changes_nothing(peer: Peer) -> None:
    first = peer.request(PERMISSION, params("npm run build"))
    before = peer.until(method="_policyd/ask")["id"]
    peer.send({"id": before, "result": {"outcome": {"outcome": "cancelled"}}})
    assert chosen(peer.result(first)) == "cancelled"
    ident = peer.request(PERMISSION, params("npm test"))
    question = peer.until(method="_policyd/ask")
    assert len(question["id"].rpartition(":")[2]) == len(before.rpartition(":")[2]) == 32
    for guess in (before, f"{before}0", "policyd-ask-2", f"{question['id'].rpartition(':')[0]}:{'0' * 32}"):
        peer.send({"id": guess, "result": YES})
    peer.send({"id": ident, "result": YES})
    peer.send({"id": question["id"], "result": {"outcome": {"outcome": "cancelled"}}})
    assert chosen(peer.result(ident)) == "cancelled"


def always_allowed(peer: Peer, command: str) -> None:
    """Ask for a command, and answer as a person who always allows it."""
    ident = peer.request(PERMISSION, params(command))
    question = peer.until(method="_policyd/ask")
    always = next(one["optionId"] for one in question["params"]["options"] if one["kind"] == "allow_always")
    time.sleep(0.45)  # faster than a person is not remembered
    peer.send({"id": question["id"], "result": {"outcome": {"outcome": "selected", "optionId": always}}})
    assert chosen(peer.result(ident)) == "yes"


def test_an_always_is_remembered_for_the_session_of_that_connection_only(daemon: Daemon) -> None:
    peer = daemon.peer(person=True)
    always_allowed(peer, "npm test")
    assert chosen(peer.ask("npm test", call="c2")) == "yes"
    other = daemon.peer(person=False)
    assert chosen(other.ask("npm test")) == "no"
    listed = [one["covers"] for one in other.call("_policyd/grants", {})["grants"]]
    assert any("npm test" in covers for covers in listed)
    peer.close()
    until(lambda: not other.call("_policyd/grants", {})["grants"], "what was remembered for a session ends with it")
    other.close()


def test_an_always_that_cannot_be_written_is_remembered_for_the_session(alone: Daemon) -> None:
    place = alone.scene.root / "home/.local/state/policyd/grants"
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o777)  # others may write there: nothing is kept in it
    peer = alone.peer(person=True)
    always_allowed(peer, "npm test")
    again = peer.request(PERMISSION, params("npm test", call="c2"))
    assert peer.receive()["id"] == again, "nobody is asked"


def test_a_cancelled_turn_answers_everything_open_once(peer: Peer) -> None:
    idents = [peer.request(PERMISSION, params(f"npm run {n}", call=f"c{n}")) for n in range(3)]
    questions = [peer.until(method="_policyd/ask")["id"] for _ in idents]
    peer.send({"method": "session/cancel", "params": {"sessionId": "s1"}})
    answers = [peer.until(id=ident, method=None) for ident in idents]
    assert [chosen(answer["result"]) for answer in answers] == ["cancelled"] * 3
    for question in questions:
        peer.send({"id": question, "result": YES})
    assert peer.call("_policyd/status", {})["pending"] == 0  # and nothing came twice


def test_a_request_that_is_withdrawn_withdraws_its_question(peer: Peer) -> None:
    ident = peer.request(PERMISSION, params("npm test"))
    question = peer.until(method="_policyd/ask")
    peer.send({"method": "$/cancel_request", "params": {"requestId": ident}})
    assert peer.until(method="$/cancel_request")["params"] == {"requestId": question["id"]}
    assert chosen(peer.result(ident)) == "cancelled"


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":7,"id":8,"method":"session/request_permission","params":{}}',
        b'{"jsonrpc":"2.0","id":7,"method":"session/request_permission"}',
        b'{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":[]}',
        b'{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"toolCall":{},"toolCall":{}}}',
        b'{"jsonrpc":"2.0","id":7,"method":"_policyd/decide","params":{"sessionId":1}}',
        b'{"jsonrpc":"2.0","id":7,"method":"_policyd/decide"}',
        b'{"jsonrpc":"2.0","id":7,"method":"_policyd/nothing","params":{}}',
        b'[{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{}}]',
        b"noise",
        b"\xff\xfe",
        b"",
    ],
)
def test_no_line_that_cannot_be_read_allows_or_ends_anything(peer: Peer, line: bytes) -> None:
    peer.write(line + b"\n")
    assert peer.call("_policyd/status", {})["connections"] >= 1
    for message in peer.seen:
        assert '"yes"' not in json.dumps(message)
    assert chosen(peer.ask("ls")) == "yes"


# ---- evidence -----------------------------------------------------------------------------------------


def test_what_was_observed_is_evidence(peer: Peer) -> None:
    call = {"sessionUpdate": "tool_call", "toolCallId": "c9", "kind": "execute", "rawInput": {"command": "rm x"}}
    peer.send({"method": "session/update", "params": {"sessionId": "s1", "update": {"title": "tidy", **call}}})
    request = {"sessionId": "s1", "toolCall": {"toolCallId": "c9"}, "options": OPTIONS}
    assert peer.call(PERMISSION, request)["_meta"]["policyd"]["rules"] == ["user:no-rm"]


def observed(peer: Peer, side: str, message: dict[str, object]) -> None:
    """Observe one message."""
    peer.send({"method": "_policyd/observe", "params": {"dir": side, "msg": {"jsonrpc": "2.0", **message}}})


def test_a_transcript_can_be_observed_line_by_line(daemon: Daemon) -> None:
    since, peer = before(daemon), daemon.stranger()
    agent = {"name": "@agentclientprotocol/claude-agent-acp", "version": "0.101.0"}
    peer.call("_policyd/hello", {"protocol": 1})
    observed(peer, "c2a", {"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "Zed"}}})
    observed(peer, "a2c", {"id": 0, "result": {"agentInfo": agent}})
    observed(peer, "c2a", {"id": 1, "method": "session/new", "params": {"cwd": str(daemon.scene.work)}})
    observed(peer, "a2c", {"id": 1, "result": {"sessionId": "s1"}})
    assert chosen(peer.ask("ls")) == "yes"
    peer.close()
    row = rows(daemon, since)[0]
    assert row["agent"]["profile"] == "claude" and row["client"]["name"] == "Zed"
    assert row["cwd"] == str(daemon.scene.work)


def test_ids_of_observed_messages_are_not_those_of_the_peers_requests(peer: Peer) -> None:
    """An observed answer with the id of an open request is not taken for its answer, nor the other way round."""
    observed(peer, "a2c", {"id": 3, "method": PERMISSION, "params": params("npm test", call="x")})
    ident = peer.request(PERMISSION, params("npm test"))
    assert ident == 3
    peer.until(method="_policyd/ask")
    observed(peer, "c2a", {"id": 3, "result": YES})
    assert peer.call("_policyd/status", {})["pending"] == 1
    assert not [one for one in peer.seen if one.get("id") == 3 and "result" in one]


def test_a_connection_has_one_agent_and_one_set_of_labels(peer: Peer) -> None:
    peer.call("_policyd/session", {"sessionId": "s2", "agent": {"name": "a"}, "labels": {"team": "x"}})
    for given in ({"agent": {"name": "b"}}, {"labels": {"team": "y"}}, {"cwd": "relative"}, {"sessionId": ""}):
        ident = peer.request("_policyd/session", {"sessionId": "s3", **given})
        assert "error" in peer.until(id=ident)


def test_an_agent_of_the_hello_is_assumed_until_a_session_names_it(daemon: Daemon) -> None:
    peer, name = daemon.peer(agent="claude"), "@agentclientprotocol/claude-agent-acp"
    for given in ({}, {"agent": {"name": name}}, {"agent": {"name": name}}):
        peer.call("_policyd/session", {"sessionId": "s2", **given})
    ident = peer.request("_policyd/session", {"sessionId": "s3", "agent": {"name": "claude"}})
    assert "error" in peer.until(id=ident)
    peer.close()


def test_a_connection_has_so_many_labels_and_no_more(peer: Peer) -> None:
    for at in range(2):
        labels = {f"{at}.{number}": "x" for number in range(50)}
        peer.call("_policyd/session", {"sessionId": f"m{at}", "labels": labels})
    ident = peer.request("_policyd/session", {"sessionId": "m2", "labels": {"one": "more"}})
    assert "more than 100 labels" in peer.until(id=ident)["error"]["message"]


def test_labels_are_claims(tmp_path: Path) -> None:
    here = scene(tmp_path)
    rule = '[[rule]]\neffect = "allow"\ncommand = "make"\nlabel = { team = "core" }\n'
    here.policy.write_text(f"version = 1\n{rule}")
    with Daemon(here) as daemon:
        mine, other = daemon.peer(labels={"team": "core"}), daemon.peer(labels={"team": "docs"})
        assert (chosen(mine.ask("make")), chosen(other.ask("make"))) == ("yes", "no")
        mine.close()
        other.close()


# ---- decide and answer --------------------------------------------------------------------------------


def test_decide_settles_what_policy_settles(peer: Peer) -> None:
    allowed = peer.call("_policyd/decide", params("ls"))
    assert allowed["effect"] == "allow" and chosen(allowed["response"]) == "yes" and allowed["ask"] is None
    denied = peer.call("_policyd/decide", params("rm x", call="c2"))
    assert denied["effect"] == "deny" and denied["rules"] == ["user:no-rm"] and denied["revision"]


def test_decide_hands_a_question_back_and_an_answer_closes_it(daemon: Daemon, peer: Peer) -> None:
    since = before(daemon)
    found = peer.call("_policyd/decide", params("npm test"))
    ask = found["ask"]
    assert found["effect"] == "ask" and found["response"] is None
    assert datetime.fromisoformat(ask["expires"]) and ask["options"][0]["optionId"] == "yes"
    closed = peer.call("_policyd/answer", {"id": ask["id"], "optionId": "yes"})
    assert closed["effect"] == "allow" and chosen(closed["response"]) == "yes"
    again = peer.call("_policyd/answer", {"id": ask["id"], "optionId": "yes"})
    assert again["effect"] == "deny" and chosen(again["response"]) == "cancelled"
    assert [(row["effect"], row["by"]) for row in rows(daemon, since)] == [("allow", "machine")], "at once"


@pytest.mark.parametrize("given", [{"id": "ask-1", "optionId": "yes"}, {"optionId": "yes"}, {"id": ...}, {}])
def test_an_answer_to_nothing_or_without_a_choice_is_a_denial(peer: Peer, given: dict[str, object]) -> None:
    ask = peer.call("_policyd/decide", params("npm test"))["ask"]
    said = {**given, "id": ask["id"]} if given.get("id") is ... else given
    assert peer.call("_policyd/answer", said)["effect"] == "deny"


def test_the_same_question_is_not_open_twice(peer: Peer) -> None:
    peer.call("_policyd/decide", params("npm test"))
    twin = peer.call("_policyd/decide", params("npm test"))
    assert twin["effect"] == "deny" and "open already" in twin["reason"]


def test_without_a_person_decide_denies_what_must_be_asked(daemon: Daemon) -> None:
    peer = daemon.peer(person=False)
    assert peer.call("_policyd/decide", params("npm test"))["effect"] == "deny"
    peer.close()


# ---- the daemon itself --------------------------------------------------------------------------------


def test_a_changed_policy_is_told_and_counts_at_once(alone: Daemon) -> None:
    peer = alone.peer(person=True)
    alone.scene.policy.write_text('version = 1\n[[rule]]\neffect = "deny"\ncommand = "ls"\n')
    peer.request("_policyd/reload", {})  # its answer may come behind the news: the files are watched besides
    assert peer.until(method="_policyd/changed")["params"]["revision"] != ""
    assert chosen(peer.ask("ls")) == "no"
    peer.close()


def test_a_bad_edit_changes_nothing_and_is_told_by_status(alone: Daemon) -> None:
    peer = alone.peer(person=True)
    alone.scene.policy.write_text("version = 1\n[[rules]]\n")
    alone.process.send_signal(1)
    until(lambda: bool(peer.call("_policyd/status", {})["problems"]), "the mistake is told")
    assert chosen(peer.ask("ls")) == "yes"
    peer.close()


def test_an_open_question_is_rejected_when_the_policy_comes_to_deny_it(alone: Daemon) -> None:
    peer = alone.peer(person=True)
    ident = peer.request(PERMISSION, params("npm test"))
    peer.until(method="_policyd/ask")
    alone.scene.policy.write_text('version = 1\n[[rule]]\neffect = "deny"\ncommand = "npm"\n')
    alone.process.send_signal(1)
    assert chosen(peer.result(ident)) == "no"
    peer.close()


def test_a_daemon_over_stdio_answers_and_ends_with_its_input(tmp_path: Path) -> None:
    here = scene(tmp_path)
    hello = {"jsonrpc": "2.0", "id": 0, "method": "_policyd/hello", "params": {"protocol": 1}}
    opened = {"jsonrpc": "2.0", "id": 1, "method": "_policyd/session", "params": {"sessionId": "s1", "cwd": "/"}}
    asked = {"jsonrpc": "2.0", "id": 2, "method": "_policyd/decide", "params": params("rm x")}
    data = b"".join(json.dumps(message).encode() + b"\n" for message in (hello, opened, asked))
    command = Daemon(here).command("--stdio")
    done = subprocess.run(command, input=data, env=here.environ, capture_output=True, timeout=30, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and [answer["id"] for answer in answers] == [0, 1, 2]
    assert answers[2]["result"]["effect"] == "deny"


def test_a_daemon_with_a_wrong_policy_does_not_start(tmp_path: Path) -> None:
    here = scene(tmp_path)
    here.policy.write_text("version = 1\n[[rules]]\n")
    command = Daemon(here).command("--stdio")
    done = subprocess.run(command, input=b"", env=here.environ, capture_output=True, timeout=30, check=False)
    assert done.returncode == 2 and b"rules" in done.stderr and done.stdout == b""


def test_an_audit_log_that_cannot_be_written_turns_every_allow_into_a_rejection(tmp_path: Path) -> None:
    with Daemon(scene(tmp_path), options=["--audit", "/dev/full"]) as daemon:
        peer = daemon.peer()
        answer = peer.ask("ls")
        assert chosen(answer) != "yes" and "recorded" in answer["_meta"]["policyd"]["reason"]
        assert peer.call("_policyd/decide", params("ls", call="c2"))["effect"] == "deny"
        peer.close()


# ---- relayed pieces -----------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"x\n", b"\xff\n", "é".encode() * 900_000 + b"\n", b"", b"\r\n\x00\n"])
def test_pieces_give_back_the_bytes(data: bytes) -> None:
    found = [json.loads(json.dumps(piece)) for piece in pieces(data)]
    assert b"".join(map(piece_of, found)) == data
    assert [bool(piece.get("more")) for piece in found] == [True] * (len(found) - 1) + [False]


@pytest.mark.parametrize("piece", [{}, {"text": 1}, {"base64": "%"}, {"base64": None}])
def test_a_piece_without_bytes_is_refused(piece: dict[str, object]) -> None:
    with pytest.raises(PieceError):
        piece_of(piece)
