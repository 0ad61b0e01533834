"""Law: no prompt passes while the agent last told of a mode that does not ask, or a session is being opened.

A model agent loads, refuses, and switches by itself at random; what policyd could know when it let a prompt through is
what the agent had said by then.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.realwire import Wire

CLAUDE = "@agentclientprotocol/claude-agent-acp"
UNSAFE = frozenset({"auto", "acceptEdits"})
REOPENING = frozenset({"session/load", "session/resume"})
SETUP = {"cwd": "/w", "mcpServers": []}


class Model:
    """An agent with modes, its client, and what each has said."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self.wire = Wire(agent=CLAUDE)
        self.inbox: list[dict[str, Any]] = []
        self.outbox: list[dict[str, Any]] = []
        self.told: dict[str, str] = {}
        self.asked: dict[object, dict[str, Any]] = {}
        self.opening: dict[str, int] = {}
        self.sessions = 0
        self.passed: list[tuple[str, str, int]] = []

    def client(self, ident: int) -> None:
        pick, session = self.random.random(), f"n{self.random.randrange(3)}"
        if pick < 0.12:
            self._take(self.wire.client(id=ident, method="session/new", params=SETUP))
        elif pick < 0.3:
            method = self.random.choice(sorted(REOPENING))
            self._take(self.wire.client(id=ident, method=method, params={"sessionId": session, **SETUP}))
        elif pick < 0.33:
            self._take(self.wire.client(id=ident, method="session/close", params={"sessionId": session}))
        elif pick < 0.45:
            mode = self.random.choice(["auto", "default", "plan"])
            self._take(
                self.wire.client(id=ident, method="session/set_mode", params={"sessionId": session, "modeId": mode})
            )
        elif pick < 0.7:
            self._take(self.wire.prompt(ident, session))

    def _take(self, sent: list[dict[str, Any]]) -> None:
        for message in sent:
            if message["to"] != "agent" or "method" not in message:
                continue
            self.inbox.append(message)
            self.asked[message["id"]] = message
            session = str(message["params"].get("sessionId"))
            if message["method"] in REOPENING:
                self.opening[session] = self.opening.get(session, 0) + 1
            if message["method"] == "session/prompt" and session not in self.wire.connection.unwatched:
                self.passed.append((session, self.told.get(session, "unknown"), self.opening.get(session, 0)))

    def agent(self) -> None:
        if self.inbox and self.random.random() < 0.7:
            self._answer(self.inbox.pop(0))
        elif self.sessions and self.random.random() < 0.2:
            self._switch(f"n{self.random.randrange(self.sessions)}")

    def _answer(self, message: dict[str, Any]) -> None:
        method, session = message["method"], message["params"].get("sessionId")
        if method != "session/prompt" and self.random.random() < 0.1:
            self.outbox.append({"id": message["id"], "error": {"code": -1, "message": "no"}})
        elif method == "session/new" or method in REOPENING:
            if method == "session/new":
                session, self.sessions = f"n{self.sessions}", self.sessions + 1
            modes = [{"id": one} for one in ("auto", "default", "plan", "acceptEdits")]
            current = {"currentModeId": self.random.choice(["auto", "default", "plan"]), "availableModes": modes}
            self.outbox.append({"id": message["id"], "result": {"sessionId": session, "modes": current}})
        else:
            self.outbox.append({"id": message["id"], "result": {}})

    def _switch(self, session: str) -> None:
        mode = self.random.choice(["auto", "default", "acceptEdits"])
        update = {"sessionUpdate": "current_mode_update", "currentModeId": mode}
        self.outbox.append({"method": "session/update", "params": {"sessionId": session, "update": update}})

    def deliver(self) -> None:
        while self.outbox and self.random.random() < 0.8:
            message = self.outbox.pop(0)
            self._learn(message)
            self._take(self.wire.agent(**message))

    def _learn(self, message: dict[str, Any]) -> None:
        if "method" in message:
            self.told[message["params"]["sessionId"]] = message["params"]["update"]["currentModeId"]
            return
        asked, result = self.asked.pop(message["id"]), message.get("result") or {}
        session = str(result.get("sessionId") or asked["params"].get("sessionId"))
        if asked["method"] in REOPENING:
            self.opening[session] -= 1
        if "modes" in result:
            self.told[session] = result["modes"]["currentModeId"]
        elif "result" in message and asked["method"] == "session/set_mode":
            self.told[session] = asked["params"]["modeId"]


@pytest.mark.parametrize("seed", range(40))
def test_no_prompt_passes_while_the_agent_is_known_not_to_ask(seed: int) -> None:
    model = Model(seed)
    for ident in range(60):
        model.client(1000 + ident)
        for _ in range(model.random.randrange(4)):
            model.agent()
        model.deliver()
    assert [one for one in model.passed if one[1] in UNSAFE | {"unknown"} or one[2]] == []


def test_prompts_do_pass_in_the_model() -> None:
    model = Model(0)
    for ident in range(200):
        model.client(1000 + ident)
        model.agent()
        model.deliver()
    assert model.passed
