"""A daemon that takes over knows what the agent said of its calls, or takes nothing about them for the whole."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policyd import policy
from policyd.authorizer import Authorizer
from policyd.proxy import journal
from policyd.proxy.journal import Journal
from policyd.session import Side
from policyd.session.judge import Judge
from tests.daemons import Daemon, said, scene, started, until
from tests.proxied import Client

TELLING = """
import json, sys
def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + chr(10)); sys.stdout.flush()
asked = 0
for line in sys.stdin:
    message = json.loads(line)
    method, ident = message.get("method"), message.get("id")
    if method == "initialize":
        say(id=ident, result={"protocolVersion": 1, "agentInfo": {"name": "telling", "version": "1"}})
    elif method == "session/new":
        say(id=ident, result={"sessionId": "s1"})
    elif method == "session/prompt":
        for one in json.loads(message["params"]["prompt"][0]["text"]):
            if "toolCall" in one:
                asked += 1
                say(id=f"a{asked}", method="session/request_permission", params={"sessionId": "s1", **one})
            else:
                say(method="session/update", params={"sessionId": "s1", "update": one})
        say(id=ident, result={"stopReason": "end_turn"})
    elif method is None:
        say(method="answered", params=message)
"""
"""An agent that says what its prompt holds, and reports how it was answered."""
OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


READ = """
[[rule]]
effect = "allow"
kind = "read"
path = "*.md"
"""


def update(call: str, command: str = "", **more: object) -> dict[str, object]:
    """Return an update about a call; it may tell of a command."""
    told = {"kind": "execute", "rawInput": {"command": command}} if command else {"kind": "read"}
    return {"sessionUpdate": "tool_call", "toolCallId": call, "title": "Look", **told, **more}


def request(call: str, path: str = "a.md") -> dict[str, object]:
    """Return a permission request that says nothing but harmless things of a call."""
    told = {"kind": "read", "title": "Look", "rawInput": {"path": path}}
    return {"toolCall": {"toolCallId": call, **told}, "options": OPTIONS}


class Agent:
    """A client of a connected proxy, and the agent behind it."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon, self.client, self.turn = daemon, Client(started(daemon, sys.executable, "-c", TELLING)), 10
        self.client.open(daemon.scene.work)

    def say(self, *what: dict[str, object]) -> list[str]:
        """Let the agent say something; return the options its requests were answered with."""
        self.turn += 1
        self.client.seen.clear()
        self.client.prompt(json.dumps(what), self.turn)
        wanted = sum("toolCall" in one for one in what)
        self.client.until(id=self.turn)
        while len(found := [one for one in self.client.seen if one.get("method") == "answered"]) < wanted:
            self.client.receive()
        return [outcome(one) for one in sorted(found, key=lambda one: str(one["params"]["id"]))]

    def lose_daemon(self) -> None:
        """Kill the daemon."""
        self.daemon.stop(signal.SIGKILL)

    def find_daemon(self) -> None:
        """Start another and wait until the proxy has it."""
        before = said(self.daemon).count("the daemon is back")
        self.daemon.start()
        until(lambda: said(self.daemon).count("the daemon is back") > before, "the proxy finds the daemon")

    def another_daemon(self) -> None:
        """One daemon dies, another takes over."""
        self.lose_daemon()
        self.find_daemon()


def outcome(answered: dict[str, Any]) -> str:
    """Return the option that was chosen."""
    return str(answered["params"]["result"]["outcome"].get("optionId"))


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    """An agent under a connected proxy; nobody is asked."""
    here = scene(tmp_path)
    here.policy.write_text(here.policy.read_text() + READ)
    with Daemon(here, options=["--prompt=none"]) as daemon:
        one = Agent(daemon)
        yield one
        one.client.close()


def test_nothing_is_allowed_on_less_than_was_said_of_a_call(agent: Agent) -> None:
    assert agent.say(update("c0", "rm x"), request("c0"), update("c1"), request("c1")) == ["no", "yes"]
    agent.say(update("before", "rm x"), update("finished"))
    agent.lose_daemon()
    assert agent.say(update("meanwhile", "rm x"), request("c9")) == ["no"]
    agent.find_daemon()
    asked = ("before", "meanwhile", "new", "finished")
    assert agent.say(*(request(call) for call in asked)) == ["no", "no", "yes", "yes"]
    rows = [row for row in agent.daemon.scene.records() if row.get("event") == "decision"][-4:]
    assert [row["effect"] for row in rows] == ["deny", "deny", "allow", "allow"]


@pytest.mark.slow
def test_a_call_that_was_asked_about_before_is_no_unasked_one_after(agent: Agent) -> None:
    assert agent.say(update("c1", "rm x"), request("c1")) == ["no"]
    agent.another_daemon()
    again = {"kind": "execute", "rawInput": {"command": "rm x"}}
    agent.say({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed", **again})
    assert agent.say(request("c2")) == ["yes"]
    assert [row for row in agent.daemon.scene.records() if row["event"] == "unasked"] == []


@pytest.mark.slow
def test_what_was_kept_no_longer_is_asked_about(agent: Agent) -> None:
    pad = {"content": [{"type": "content", "content": {"type": "text", "text": "x" * 900_000}}]}
    agent.say(update("old"))
    agent.say(*({**update(f"pad{number}"), **pad} for number in range(10)))
    agent.another_daemon()
    full = str(agent.daemon.scene.work / "a.md")
    assert agent.say(request("pad8"), request("new0")) == ["no", "no"], "what is forgotten may have been a cd"
    assert agent.say(request("old", full), request("pad9", full), request("new", full)) == ["no", "yes", "yes"]
    row = [row for row in agent.daemon.scene.records() if row.get("event") == "decision"][-3]
    assert "not all known" in json.dumps(row)


# ---- the journal --------------------------------------------------------------------------------------


def line(call: str, size: int = 0, session: str = "s1") -> bytes:
    """Return an update about a call."""
    params = {"sessionId": session, "update": update(call, "x" * size)}
    return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode()


def test_the_journal_keeps_order_and_names_what_went() -> None:
    one = Journal(kept=3 * len(line("a")))
    for call in "abcd":
        one.told(line(call))
    assert [json.loads(data)["params"]["update"]["toolCallId"] for _, data in one.entries()] == ["b", "c", "d"]
    assert one.lost() == {"s1": ["a"]}
    one.told(line("long", 10_000))
    assert list(one.entries()) == [] and sorted(one.lost()["s1"]) == ["a", "b", "c", "d", "long"]
    one.reopened("s1")
    assert one.lost() == {}
    one.told(line("a"))
    assert len(list(one.entries())) == 1


def test_a_session_that_is_opened_anew_begins_anew_and_others_stay() -> None:
    one = Journal()
    for session in ("s1", "s2"):
        one.told(line("a", session=session))
        one.settled(session, "a", b"{}", b"{}")
    one.reopened("s1")
    assert [side for side, _ in one.entries()] == [Side.AGENT, Side.AGENT, Side.CLIENT]


@pytest.mark.parametrize(
    "data",
    [
        b"noise toolCallId",
        b'{"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk"}}}',
        b'{"method":"x","params":[{"toolCallId":"c"}]}',
    ],
)
def test_what_is_about_no_call_is_not_kept(data: bytes) -> None:
    one = Journal()
    one.told(data)
    assert list(one.entries()) == []


def test_a_call_is_found_whatever_way_its_name_is_written_and_if_the_line_is_refused() -> None:
    one = Journal()
    one.told(line("c").replace(b"toolCallId", b"tool\\u0043allId"))
    one.told(line("c").replace(b'"kind"', b'"kind": "read", "kind"'))
    assert len(list(one.entries())) == 2


def test_the_number_of_calls_whose_loss_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MOST_CALLS", 3)
    one = Journal(kept=0)
    for number in range(9):
        one.told(line(str(number)))
    assert one.lost() == {"s1": ["6", "7", "8"]}


@pytest.mark.parametrize(("agent", "known"), [("claude", False), ("generic", False), ("codex", True)])
def test_where_a_shell_stands_is_not_known_where_a_command_was_forgotten(agent: str, known: bool) -> None:
    judge = Judge(
        Authorizer(policy.load([], home="/home/dev", tmpdir="/tmp", version="1"), home="/home/dev", agent=agent)
    )
    opening = {"id": 1, "method": "session/new", "params": {"cwd": "/work", "mcpServers": []}}
    judge.observe(Side.CLIENT, opening)
    judge.observe(Side.AGENT, {"id": 1, "result": {"sessionId": "s1"}})
    talk = judge.authorizer.conversation
    assert talk.session("s1").stands() == ("/work",)
    judge.forgot("s1", ["c1"])
    assert bool(talk.session("s1").stands()) is known
    asked = {"sessionId": "s1", "toolCall": {"toolCallId": "c1", "kind": "read", "rawInput": {"path": "a"}}}
    assert any(
        "not all known" in str(action.opaque)
        for action in judge.authorizer.request({**asked, "options": OPTIONS}).actions
    )
