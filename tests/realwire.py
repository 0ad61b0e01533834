"""One connection with a real policy and a real profile, spoken to in short sentences."""

from __future__ import annotations

import json

from policyd.actions import Machine
from policyd.authorizer import Authorizer
from policyd.model import Layer
from policyd.policy import PolicySource, load
from policyd.session import Command, Connection, Frame, Send, Settings, Side
from policyd.session.judge import Judge
from tests.fakes import FakeFilesystem
from tests.playbook import moment

ASK_ALL = '[defaults]\n"*" = "ask"\n'
HOME = "/home/dev"
CLAUDE, CODEX, VIBE = (
    "@agentclientprotocol/claude-agent-acp",
    "@agentclientprotocol/codex-acp",
    "@mistralai/mistral-vibe",
)
ONCE = (
    {"optionId": "y", "name": "Allow", "kind": "allow_once"},
    {"optionId": "n", "name": "No", "kind": "reject_once"},
)


def judge(policy: str = ASK_ALL, agent: str = "", version: str = "1", files: FakeFilesystem | None = None) -> Judge:
    """A decider under one user policy, its agent already named."""
    source = PolicySource("policy.toml", f"version = 1\n{policy}".encode(), Layer.USER)
    rules = load([source], home=HOME, tmpdir="/tmp", fs=None, version="0.1.0")
    found = Judge(Authorizer(rules, machine=Machine(home=HOME, fs=files or FakeFilesystem())))
    if agent:
        found.observe(Side.CLIENT, {"id": 0, "method": "initialize", "params": {"protocolVersion": 1}})
        found.observe(Side.AGENT, {"id": 0, "result": {"agentInfo": {"name": agent, "version": version}}})
    return found


class Wire:
    """A client and an agent with policyd between them; what policyd says is kept."""

    def __init__(
        self, policy: str = ASK_ALL, agent: str = "", settings: Settings | None = None, version: str = "1"
    ) -> None:
        self.files = FakeFilesystem()
        self.connection = Connection(judge(policy, agent, version, self.files), settings or Settings(), nonce="n")
        self.time = 0.0
        self.commands: list[Command] = []

    def say(self, side: Side, **fields: object) -> list[dict[str, object]]:
        """Say one message; return what left for either side because of it."""
        return self.line(side, json.dumps({"jsonrpc": "2.0", **fields}).encode())

    def line(self, side: Side, line: bytes) -> list[dict[str, object]]:
        """Say one line as it is."""
        self.time += 0.01
        found = self.connection.handle(Frame(side, line), moment(self.time))
        self.commands += found
        sent = [one for one in found if isinstance(one, Send)]
        return [{"to": one.side.value, **json.loads(data)} for one in sent for data in one.data.splitlines()]

    def client(self, **fields: object) -> list[dict[str, object]]:
        return self.say(Side.CLIENT, **fields)

    def agent(self, **fields: object) -> list[dict[str, object]]:
        return self.say(Side.AGENT, **fields)

    def open(self, session: str = "s", **result: object) -> list[dict[str, object]]:
        self.client(id=100, method="session/new", params={"cwd": "/home/dev/app", "mcpServers": []})
        return self.agent(id=100, result={"sessionId": session, **result})

    def update(self, kind: str, session: str = "s", **fields: object) -> list[dict[str, object]]:
        update = {"sessionUpdate": kind, **fields}
        return self.agent(method="session/update", params={"sessionId": session, "update": update})

    def prompt(self, ident: int = 200, session: str = "s") -> list[dict[str, object]]:
        return self.client(id=ident, method="session/prompt", params={"sessionId": session, "prompt": []})

    def request(self, ident: object = 5, **call: object) -> list[dict[str, object]]:
        params = {"sessionId": "s", "toolCall": {"toolCallId": "t", **call}, "options": list(ONCE)}
        return self.agent(id=ident, method="session/request_permission", params=params)

    def door(self, method: str, ident: object = 9, **params: object) -> list[dict[str, object]]:
        return self.agent(id=ident, method=method, params={"sessionId": "s", **params})

    def allow(self, sent: list[dict[str, object]]) -> list[dict[str, object]]:
        """Answer the question that was sent to the client with its plain allow."""
        asked = next(one for one in sent if one.get("method") == "session/request_permission")
        return self.client(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": "y"}})


def called(sent: list[dict[str, object]], to: str = "agent") -> list[dict[str, object]]:
    """Return the requests of policyd's own to one side."""
    return [one for one in sent if one["to"] == to and str(one.get("id", "")).startswith("policyd:")]


def methods(sent: list[dict[str, object]], to: str) -> list[str]:
    """Return the methods of what was sent to one side."""
    return [str(one["method"]) for one in sent if one["to"] == to and "method" in one]
