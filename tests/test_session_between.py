"""What comes between a question and its answer: updates, links that move, other policies, other requests."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from typing import Any

import pytest

from policyd.grants import Grant
from policyd.model import Decision, Effect, Layer
from policyd.policy import Policy, PolicySource, load
from policyd.session import Reloaded, Remember, Settings, Side
from policyd.session.judge import Judge
from tests.playbook import MACROS, Play, ScriptedDecider, moment, sent
from tests.realwire import CLAUDE, CODEX, HOME, ONCE, Wire

ROOT = "/home/dev/app"
PATHS = tuple(f"{ROOT}/{name}" for name in ("a/x", "b/y", "link", "secrets/key"))
COMMANDS = ("make", "rm a", "make x > b/y", "cat link")
AGENTS = ("", CLAUDE, CODEX, "OpenCode", "gemini-cli")
RULES = (
    'effect = "deny"\npath = "secrets/**"',
    'effect = "deny"\ncommand = "rm"',
    'effect = "deny"\nkind = "edit"\npath = "b/**"',
    'effect = "deny"\nkind = "edit"\nunless = { path = "a/**" }',
    'effect = "allow"\nkind = "read"\npath = "**"',
    'effect = "allow"\ncommand = "make **"',
    'effect = "ask"\ncommand = "make"',
)


class Scene:
    """One conversation in which anything may happen next, and what each open request comes to at every moment."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311
        self.wire = Wire(agent=self.chance.choice(AGENTS), settings=Settings(prompts_a_minute=1_000))
        judge = self.wire.connection._core.decider
        assert isinstance(judge, Judge)
        self.authorizer = judge.authorizer
        self.asked: dict[object, dict[str, object]] = {}
        self.questions: list[tuple[object, list[str]]] = []
        self.wire.files.files = dict.fromkeys((PATHS[0], PATHS[1], PATHS[3]), "")
        self.wire.open()
        self.authorizer.reload(self.policy())

    def policy(self) -> Policy:
        """Return a policy of some of the rules."""
        rules = [f"[[rule]]\n{rule}\n" for rule in RULES if self.chance.random() < 0.5]
        text = f'version = 1\n[defaults]\n"*" = "ask"\n{"".join(rules)}'
        return load([PolicySource("p.toml", text.encode(), Layer.USER)], home=HOME, tmpdir="/tmp", version="0.1.0")

    def details(self, *, often: float) -> dict[str, object]:
        """Return some of what a tool call may state."""
        pick, found = self.chance.choice, dict[str, object]()
        values: dict[str, object] = {
            "kind": pick(("edit", "read", "execute", "delete", "move")),
            "rawInput": pick(({"command": pick(COMMANDS)}, {"path": pick(PATHS)}, {"file_path": pick(PATHS)})),
            "locations": [{"path": pick(PATHS)}],
            "status": pick(("in_progress", "completed", "failed")),
        }
        for name, value in values.items():
            if self.chance.random() < (often if name != "status" else often / 3):
                found[name] = value
        return found

    def next(self, step: int) -> None:
        """Let something happen, or a person answer: with a yes leaves nothing that was denied just before."""
        if self.chance.random() < 0.3 and self.questions:
            before = {ident: self.now(params) for ident, params in self.asked.items()}
            for one in self.answered():
                if one["to"] == "agent" and "'optionId': 'y'" in str(one):
                    assert before[one["id"]].effect is not Effect.DENY, before[one["id"]].reason
            return
        for one in self.happens(step):
            if one.get("method") == "session/request_permission":
                options = [str(option["optionId"]) for option in one["params"]["options"]]  # type: ignore[index]
                self.questions.append((one["id"], options))

    def now(self, params: dict[str, object]) -> Decision:
        """Return what a request comes to at this moment."""
        return self.authorizer.decide(params, now=moment(self.wire.time).wall)

    def answered(self) -> list[dict[str, object]]:
        """Return what left because the person answered one of the open questions."""
        self.wire.time += 1
        ident, options = self.questions.pop(self.chance.randrange(len(self.questions)))
        outcome = {"outcome": "selected", "optionId": self.chance.choice(("y", *options))}
        return self.wire.client(id=ident, result={"outcome": outcome})

    def happens(self, step: int) -> list[dict[str, object]]:
        """Return what left because of what happened."""
        event, call = self.chance.random(), self.chance.choice("tuv")
        if event < 0.4:
            told = {"toolCallId": call, "title": "x", **self.details(often=0.6)}
            self.asked[step] = {"sessionId": "s", "toolCall": told, "options": list(ONCE)}
            return self.wire.agent(id=step, method="session/request_permission", params=self.asked[step])
        if event < 0.7:
            sort = self.chance.choice(("tool_call", "tool_call_update"))
            update = {"sessionUpdate": sort, "toolCallId": call, **self.details(often=0.5)}
            return self.wire.agent(method="session/update", params={"sessionId": "s", "update": update})
        if event < 0.85:
            self.wire.files.links = {PATHS[2]: self.chance.choice((*PATHS[:2], PATHS[3], "/etc/hosts"))}
        else:
            self.authorizer.reload(self.policy())
        return []


@pytest.mark.parametrize(
    "seeds", [range(60), pytest.param(range(60, 3_000), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_no_yes_allows_what_is_denied_by_all_that_is_known_when_it_comes(seeds: range) -> None:
    for seed in seeds:
        scene = Scene(seed)
        for step in range(scene.chance.randrange(5, 30)):
            scene.next(step)


def test_a_yes_counts_only_if_what_was_asked_is_not_denied_by_then(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play()
    play.event("agent", "permission 5 a make")
    strict = ScriptedDecider({"make": "deny"})
    monkeypatch.setattr(play.decider, "again", strict.again)
    question = sent(play.commands, Side.CLIENT)[-1]
    answer, *_ = sent(play.message("client", **MACROS["chose"]("0", "yes") | {"id": question["id"]}), Side.AGENT)
    assert '"optionId": "no"' in json.dumps(answer)


def test_what_a_reload_announces_is_said_in_open_sessions_but_not_each_time() -> None:
    play = Play()
    play.event("client", "new 1")
    for _ in range(3):
        play._keep(play.connection.handle(Reloaded("the policy is broken"), moment(play.time)))
    assert [line for line in sent(play.commands, Side.CLIENT) if "the policy is broken" in str(line)] == []
    play.event("agent", "opened 1 default")
    play.tick(60)
    for _ in range(3):
        play._keep(play.connection.handle(Reloaded("the policy is broken"), moment(play.time)))
    assert len([line for line in sent(play.commands, Side.CLIENT) if "the policy is broken" in str(line)]) == 1


@pytest.mark.parametrize(
    ("run", "kept"),
    [
        ("run", [("session", "run", timedelta(hours=12), "zed"), ("project", "", timedelta(days=2), "zed")]),
        ("", [("project", "", timedelta(days=2), "zed")]),
    ],
)
def test_an_answer_is_remembered_for_this_run_or_as_long_as_settings_say(run: str, kept: list[object]) -> None:
    wire = Wire(agent=CLAUDE, settings=Settings(run=run, grants_max_age=timedelta(days=2)))
    wire.client(id=0, method="initialize", params={"protocolVersion": 1, "clientInfo": {"name": "zed"}})
    wire.agent(id=0, result={"agentInfo": {"name": CLAUDE, "version": "1"}})
    wire.open("s", modes={"currentModeId": "default"})
    call: dict[str, Any] = {
        "title": "make",
        "rawInput": {"command": "make"},
        "_meta": {"claudeCode": {"toolName": "Bash"}},
    }
    wire.update("tool_call", toolCallId="t", **call)
    for ident, option in enumerate(("policyd-always-1", "policyd-always-2")):
        asked = wire.request(ident, **call)[0]
        wire.time += 1
        wire.client(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": option}})
    told = [grant for one in wire.commands if isinstance(one, Remember) for grant in one.grants]
    grants = [one for one in told if isinstance(one, Grant)]
    assert [(one.scope, one.run, one.until - one.created, one.client) for one in grants] == kept
