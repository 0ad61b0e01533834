"""The library inside a client of the official SDK: policy answers, a person is asked for the rest."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import acp
import pytest
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    Implementation,
    RequestPermissionRequest,
    RequestPermissionResponse,
)

from policyd import Authorizer, load
from policyd.sdk import Guard, settled
from policyd.storage.filesystem import RealFilesystem

AGENT = Path(__file__).parent.parent / "examples" / "python" / "agent.py"
POLICY = """
version = 1
[defaults]
read = "allow"
[[rule]]
id = "no-env"
effect = "deny"
path = [".env"]
reason = "Secrets stay out of reach."
[[rule]]
id = "list"
effect = "allow"
command = "ls **"
[[rule]]
id = "push"
effect = "ask"
command = "git push"
"""


class Person:
    """A client whose person answers by kind and remembers what was asked."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.asked: list[str] = []
        self.finished: dict[str, str] = {}

    def on_connect(self, conn: Any) -> None: ...

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        self.asked.append(tool_call.title)
        chosen = [option.option_id for option in options if option.kind == self.kind]
        outcome: Any = DeniedOutcome(outcome="cancelled")
        if chosen or self.kind == "forged":
            outcome = AllowedOutcome(outcome="selected", option_id=chosen[0] if chosen else "not-offered")
        return RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if getattr(update, "status", None) in {"completed", "failed"}:
            self.finished[update.tool_call_id] = update.status


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "README.md").write_text("hello\n")
    (project / ".env").write_text("TOKEN=1\n")
    (tmp_path / "policy.toml").write_text(POLICY)
    return project


def run(workspace: Path, person: Person, lines: list[str], *, observed: bool = True) -> list[str]:
    """Play `lines` against the example agent under a guard; return the status of each call."""

    async def play() -> None:
        guard = Guard(load(workspace.parent / "policy.toml"), home=str(workspace.parent / "home"))
        watchers = [guard.observe] if observed else []
        program = (sys.executable, str(AGENT))
        async with acp.spawn_agent_process(guard.wrap(person), *program, observers=watchers) as (agent, _):
            await agent.initialize(protocol_version=1, client_info=Implementation(name="test", version="1"))
            session = await agent.new_session(cwd=str(workspace), mcp_servers=[])
            await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("\n".join(lines))])

    asyncio.run(asyncio.wait_for(play(), 60))
    return list(person.finished.values())


def test_a_model_of_the_sdk_is_told_to_be_dumped_and_what_that_gives_is_decided(workspace: Path) -> None:
    point = Authorizer(load(workspace.parent / "policy.toml"), resolve=RealFilesystem(), home="/h", cwd=str(workspace))
    call = {"toolCallId": "c", "title": "t", "kind": "read", "rawInput": {"path": "a.py"}}
    wire = {"sessionId": "s", "toolCall": call, "options": OPTIONS}
    model = RequestPermissionRequest.model_validate(wire)
    said: Any = settled(point, model)  # type: ignore[arg-type]
    reason = said["_meta"]["policyd"]["reason"]
    assert said["outcome"] == {"outcome": "cancelled"} and "`model_dump(" in reason
    dumped = eval("model." + reason.split("`")[1], {"model": model})  # noqa: S307 - the text a developer pastes
    assert point.decide(dumped) == point.decide(wire)


def test_policy_answers_and_only_an_ask_reaches_the_person(workspace: Path) -> None:
    person = Person("reject_once")
    lines = ["run ls -la", "read .env", "run cat .env", "read README.md", "run git push"]
    assert run(workspace, person, lines) == ["completed", "failed", "failed", "completed", "failed"]
    assert person.asked == ["git push"]


def test_a_persons_yes_counts(workspace: Path) -> None:
    person = Person("allow_once")
    assert run(workspace, person, ["run git push"]) == ["completed"]


def test_always_is_told_the_agent_as_once(workspace: Path) -> None:
    person = Person("allow_always")
    assert run(workspace, person, ["run git push", "run git push"]) == ["completed", "completed"]
    assert person.asked == ["git push", "git push"]


@pytest.mark.parametrize("kind", ["forged", "none"])
def test_an_answer_that_was_not_offered_is_no_yes(workspace: Path, kind: str) -> None:
    assert run(workspace, Person(kind), ["run git push"]) == ["failed"]


def test_without_an_observer_no_path_is_allowed(workspace: Path) -> None:
    person = Person("reject_once")
    assert run(workspace, person, ["read README.md", "read .env"], observed=False) == ["failed", "failed"]
    assert person.asked == ["read README.md"]


def test_a_message_that_could_not_be_taken_in_denies_what_follows(workspace: Path) -> None:
    guard = Guard(load(workspace.parent / "policy.toml"), home=str(workspace.parent))
    call = acp.schema.ToolCallUpdate(tool_call_id="c", title="ls", kind="execute", raw_input={"command": "ls -la"})
    options = [acp.schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once")]
    person = Person("allow_once")
    answers = []
    for heard in (seen({"status": "pending"}), object()):
        guard.observe(heard)
        answers.append(asyncio.run(guard.wrap(person).request_permission("s", call, options)).outcome.outcome)
    assert (answers, person.asked) == (["selected", "cancelled"], ["ls"])


def test_of_two_requests_for_one_call_that_say_something_else_neither_is_allowed_and_the_answer_says_why(
    workspace: Path,
) -> None:
    guard = Guard(load(workspace.parent / "policy.toml"), home=str(workspace.parent))
    direction = acp.connection.StreamDirection.INCOMING
    for ident, command in ((1, "ls"), (2, "git push")):
        call = {"toolCallId": "c", "rawInput": {"command": command}}
        params = {"sessionId": "s", "toolCall": call, "options": []}
        message = {"id": ident, "method": "session/request_permission", "params": params}
        guard.observe(SimpleNamespace(direction=direction, message=message))
    read = acp.schema.ToolCallUpdate(tool_call_id="c")
    answer = asyncio.run(guard.wrap(Person("allow_once")).request_permission("s", read, []))
    assert answer.outcome.outcome == "cancelled"
    assert "which of the requests" in answer.field_meta["policyd"]["reason"]


def seen(update: Any) -> Any:
    """Return what an observer is given of an update of the call `c`."""
    params = {"sessionId": "s", "update": {"sessionUpdate": "tool_call_update", "toolCallId": "c", **update}}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    return SimpleNamespace(direction=acp.connection.StreamDirection.INCOMING, message=message)


@pytest.mark.parametrize(
    ("meanwhile", "allowed"),
    [
        (seen({"status": "pending"}), True),
        (seen({"locations": [{"path": "/work/.env"}]}), False),
        (object(), False),
    ],
)
def test_a_yes_is_judged_by_what_is_known_when_it_comes(workspace: Path, meanwhile: Any, allowed: bool) -> None:
    guard = Guard(load(workspace.parent / "policy.toml"), home=str(workspace.parent / "home"))

    class Reading(Person):
        async def request_permission(self, session_id: str, tool_call: Any, options: Any, **more: Any) -> Any:
            guard.observe(meanwhile)
            return await super().request_permission(session_id, tool_call, options, **more)

    call = acp.schema.ToolCallUpdate(tool_call_id="c", title="git push", raw_input={"command": "git push"})
    kinds: tuple[Any, Any] = ("allow_once", "reject_once")
    options = [acp.schema.PermissionOption(option_id=kind, name=kind, kind=kind) for kind in kinds]
    answer = asyncio.run(guard.wrap(Reading("allow_once")).request_permission("s", call, options))
    assert answer.outcome.option_id == ("allow_once" if allowed else "reject_once")


def test_a_cancelled_question_leaves_nothing_behind(workspace: Path) -> None:
    """Cancelling at the only await of the guard: no task survives, nothing is answered."""

    class Slow(Person):
        async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
            await asyncio.sleep(60)

    async def play() -> int:
        guard = Guard(load(workspace.parent / "policy.toml"), home=str(workspace.parent / "home"))
        client = guard.wrap(Slow("allow_once"))
        call = acp.schema.ToolCallUpdate(
            tool_call_id="c", title="git push", kind="execute", raw_input={"command": "git push"}
        )
        option = acp.schema.PermissionOption(option_id="once", name="Allow", kind="allow_once")
        task = asyncio.create_task(client.request_permission("s", call, [option]))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(asyncio.all_tasks())

    assert asyncio.run(play()) == 1


OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


@pytest.mark.parametrize(
    ("command", "options", "outcome"),
    [
        ("ls", OPTIONS, {"outcome": "selected", "optionId": "yes"}),
        ("cat .env", OPTIONS, {"outcome": "selected", "optionId": "no"}),
        ("cat .env", OPTIONS[:1], {"outcome": "cancelled"}),
        ("ls", [OPTIONS[0], OPTIONS[0]], {"outcome": "cancelled"}),
        ("git push", OPTIONS, None),
        ("make", OPTIONS, None),
        ("ls", OPTIONS[1:], None),
    ],
)
def test_without_any_sdk_one_call_gives_the_result_to_send(
    workspace: Path, command: str, options: list[dict[str, str]], outcome: dict[str, str] | None
) -> None:
    point = Authorizer(
        load(workspace.parent / "policy.toml"), home="/home/dev", cwd=str(workspace), resolve=RealFilesystem()
    )
    call = {"toolCallId": "1", "kind": "execute", "rawInput": {"command": command}}
    said = settled(point, {"sessionId": "s", "toolCall": call, "options": options})
    assert (said and said["outcome"]) == outcome


@pytest.mark.parametrize("params", [None, [], {}, {"sessionId": "s", "toolCall": 3, "options": [OPTIONS[0]]}])
def test_a_request_that_is_none_is_never_allowed(workspace: Path, params: Any) -> None:
    said = settled(Authorizer(load(workspace.parent / "policy.toml")), params)
    assert said is None or said["outcome"] == {"outcome": "cancelled"}


@pytest.mark.parametrize(("launched", "outcome"), [(None, None), ("/srv", None), ("{work}", "yes")])
def test_an_agent_that_works_where_it_was_started_is_allowed_what_is_allowed_there(
    workspace: Path, launched: str | None, outcome: str | None
) -> None:
    guard = Guard(
        load(workspace.parent / "policy.toml"),
        home=str(workspace.parent / "home"),
        launched=launched and launched.format(work=workspace),
    )
    new = {"id": 1, "method": "session/new", "params": {"cwd": str(workspace), "mcpServers": []}}
    for direction, message in (
        ("c2a", {"id": 0, "method": "initialize", "params": {}}),
        ("a2c", {"id": 0, "result": {"agentInfo": {"name": "nanocoder", "version": "1"}}}),
        ("c2a", new),
        ("a2c", {"id": 1, "result": {"sessionId": "s"}}),
    ):
        guard.authorizer.observe(direction, message)
    call = {"toolCallId": "1", "kind": "execute", "title": "execute_bash: ls", "rawInput": {"command": "ls"}}
    update = {"sessionId": "s", "update": {"sessionUpdate": "tool_call", **call}}
    guard.authorizer.observe("a2c", {"method": "session/update", "params": update})
    said: Any = settled(guard.authorizer, {"sessionId": "s", "toolCall": call, "options": OPTIONS})
    assert (said and said["outcome"].get("optionId")) == outcome
