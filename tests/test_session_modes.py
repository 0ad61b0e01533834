"""Interleavings in which an agent would be left in a mode that does not ask."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from policyd.session import Connection, Note, Settings, Side
from tests.playbook import Play, sent
from tests.realwire import ONCE, Wire, called, judge, methods

CLAUDE = "@agentclientprotocol/claude-agent-acp"
MODES = "https://agentclientprotocol.com/protocol/session-modes#"
ASKING, AUTOPILOT = f"{MODES}agent", f"{MODES}autopilot"


def modes(current: str, *others: str) -> dict[str, object]:
    return {"currentModeId": current, "availableModes": [{"id": one} for one in (current, *others)]}


def allow_all(value: str) -> list[dict[str, object]]:
    return [{"id": "allow_all", "currentValue": value, "options": [{"value": "on"}, {"value": "off"}]}]


def mode_option(value: str) -> list[dict[str, object]]:
    return [{"id": "mode", "currentValue": value, "options": [{"value": "auto"}, {"value": "default"}]}]


def set_mode(sent: list[dict[str, object]]) -> object:
    """Return the mode policyd sets, None if it sets none."""
    found = [one["params"] for one in called(sent) if one["method"] == "session/set_mode"]
    return found[0]["modeId"] if found and isinstance(found[0], dict) else None


def load(wire: Wire, ident: int = 50, session: str = "s") -> None:
    wire.client(id=ident, method="session/load", params={"sessionId": session, "cwd": "/w", "mcpServers": []})


@pytest.mark.parametrize("beside", [False, True])
def test_a_mode_told_before_the_session_opens_counts_though_its_response_says_otherwise(*, beside: bool) -> None:
    wire = Wire(agent=CLAUDE)
    wire.client(id=1, method="session/new", params={"cwd": "/w", "mcpServers": []})
    wire.update("current_mode_update", currentModeId="auto")
    if beside:
        wire.update("config_option_update", configOptions=[{"id": "model", "currentValue": "big"}])
    sent = wire.agent(id=1, result={"sessionId": "s", "modes": modes("default", "auto")})
    assert set_mode(sent) == "default"
    assert not wire.prompt()


@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume", "session/fork"])
def test_no_prompt_passes_on_the_word_of_an_agent_whose_stated_mode_is_no_evidence(method: str) -> None:
    wire = Wire(agent="Kimi Code CLI", version="2.1.0")
    wire.client(id=1, method=method, params={"sessionId": "s", "cwd": "/w", "mcpServers": []})
    sent = wire.agent(id=1, result={"sessionId": "s", "modes": modes("default", "plan", "auto", "yolo")})
    assert set_mode(sent) == "default"
    assert not methods(wire.prompt(), "agent")
    assert methods(wire.agent(id=called(sent)[0]["id"], result={}), "agent") == ["session/prompt"]


def test_such_an_agent_that_refuses_to_set_its_mode_gets_no_prompt_under_strict() -> None:
    wire = Wire(agent="Kimi Code CLI", version="2.1.0", settings=Settings(strict=True))
    sent = wire.open(modes=modes("default", "yolo"))
    wire.agent(id=called(sent)[0]["id"], error={"code": -1, "message": "no"})
    assert wire.connection.unwatched == ("s",)
    assert not methods(wire.prompt(), "agent")


def test_only_a_mode_that_was_set_lets_a_rule_for_asking_modes_hold_for_such_an_agent() -> None:
    decider = judge(agent="Kimi Code CLI", version="2.1.0")
    talk = decider.authorizer.conversation

    def mode(side: Side, **message: object) -> str:
        decider.observe(side, message)
        found = talk.mode("s")
        return found.name if found else ""

    def update(kind: str, **fields: object) -> str:
        params = {"sessionId": "s", "update": {"sessionUpdate": kind, **fields}}
        return mode(Side.AGENT, method="session/update", params=params)

    def put(method: str, result: object, **params: object) -> str:
        mode(Side.CLIENT, id=1, method=method, params={"sessionId": "s", **params})
        return mode(Side.AGENT, id=1, result=result)

    assert put("session/new", {"sessionId": "s", "modes": modes("default")}, cwd="/w") == ""
    assert update("current_mode_update", currentModeId="default") == ""
    assert put("session/set_mode", {}, modeId="default") == "default"
    assert update("config_option_update", configOptions=mode_option("auto")) == "auto"
    assert update("current_mode_update", currentModeId="default") == "auto"
    assert put("session/set_mode", {}, modeId="plan") == "plan"
    assert put("session/load", {"modes": modes("plan")}, cwd="/w") == ""


@pytest.mark.parametrize("mode_first", [True, False])
def test_a_second_switch_while_the_first_is_being_undone_is_undone_too(mode_first: bool) -> None:
    wire = Wire(agent="Copilot")
    wire.open(modes=modes(ASKING, AUTOPILOT), configOptions=allow_all("off"))
    switches: list[Callable[[], list[dict[str, object]]]] = [
        lambda: wire.update("current_mode_update", currentModeId=AUTOPILOT),
        lambda: wire.update("config_option_update", configOptions=allow_all("on")),
    ]
    first, second = switches if mode_first else switches[::-1]
    one = called(first())
    assert not called(second())
    assert not wire.prompt()
    other = called(wire.agent(id=one[0]["id"], result={}))
    assert {str(asked["method"]) for asked in (*one, *other)} == {"session/set_mode", "session/set_config_option"}
    assert methods(wire.agent(id=other[0]["id"], result={}), "agent") == ["session/prompt"]


def test_the_same_switch_told_twice_is_undone_once() -> None:
    wire = Wire(agent=CLAUDE)
    wire.open(modes=modes("default", "auto"))
    asked = called(wire.update("current_mode_update", currentModeId="auto"))
    assert not called(wire.update("config_option_update", configOptions=mode_option("auto")))
    wire.prompt()
    assert methods(wire.agent(id=asked[0]["id"], result={}), "agent") == ["session/prompt"]


def test_a_switch_behind_the_step_that_was_confirmed_is_undone_when_the_session_opens() -> None:
    wire = Wire(agent="Copilot")
    sent = wire.open(modes=modes(AUTOPILOT, ASKING), configOptions=allow_all("on"))
    second = called(wire.agent(id=called(sent)[0]["id"], result={}))
    wire.update("current_mode_update", currentModeId=AUTOPILOT)
    assert set_mode(wire.agent(id=second[0]["id"], result={})) == ASKING
    assert not wire.prompt()


def test_an_option_the_agent_accepts_but_lists_as_it_was_is_not_in_force() -> None:
    on = [{"id": "auto_approve", "type": "boolean", "currentValue": True}]
    wire = Wire(agent="cline", settings=Settings(strict=True))
    sent = wire.open(modes=modes("act", "plan"), configOptions=on)
    wire.agent(id=called(sent)[0]["id"], result={"configOptions": on})
    assert wire.connection.unwatched == ("s",)
    assert methods(wire.prompt(), "agent") == []


def test_a_switch_that_only_the_answer_to_a_change_tells_of_is_undone_and_the_client_told() -> None:
    wire = Wire(agent=CLAUDE)
    wire.open(modes=modes("default", "auto"), configOptions=mode_option("default"))
    wire.client(
        id=50, method="session/set_config_option", params={"sessionId": "s", "configId": "model", "value": "big"}
    )
    sent = wire.agent(id=50, result={"configOptions": mode_option("auto")})
    assert [one["id"] for one in sent if one["to"] == "client" and "id" in one] == [50]
    assert set_mode(sent) == "default"
    assert not wire.prompt()
    after = wire.agent(id=called(sent)[0]["id"], result={})
    assert methods(after, "client") == ["session/update"]
    assert methods(after, "agent") == ["session/prompt"]


def test_a_loaded_session_is_answered_once_though_undoing_its_switch_fails() -> None:
    wire = Wire(agent=CLAUDE)
    wire.open(modes=modes("default", "auto"), configOptions=mode_option("default"))
    wire.client(
        id=50, method="session/set_config_option", params={"sessionId": "s", "configId": "model", "value": "big"}
    )
    sent = wire.agent(id=50, result={"configOptions": mode_option("auto")})
    after = wire.agent(id=called(sent)[0]["id"], error={"code": -1, "message": "no"})
    assert not [one for one in after if one["to"] == "client" and one.get("id") == 50]
    assert wire.connection.unwatched == ("s",)


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_a_response_about_another_session_than_the_one_to_be_loaded_opens_none(method: str) -> None:
    wire = Wire(agent=CLAUDE)
    wire.open(modes=modes("default", "auto"))
    wire.client(id=50, method=method, params={"sessionId": "s", "cwd": "/w", "mcpServers": []})
    sent = wire.agent(id=50, result={"sessionId": "other", "modes": modes("auto", "default")})
    assert [(one["to"], one["id"], "error" in one) for one in sent] == [("client", 50, True)]
    assert not methods(wire.prompt(1, "s"), "agent")
    assert not methods(wire.prompt(2, "other"), "agent")


def test_a_session_loaded_with_an_empty_result_is_put_into_its_asking_mode_and_answered() -> None:
    wire = Wire(agent=CLAUDE)
    load(wire)
    sent = wire.agent(id=50, result=None)
    assert set_mode(sent) == "default"
    wire.prompt()
    after = wire.agent(id=called(sent)[0]["id"], result={})
    assert [one.get("id") for one in after if one["to"] == "client"] == [50]
    assert methods(after, "agent") == ["session/prompt"]


def test_a_response_that_opens_no_session_is_still_passed_on() -> None:
    wire = Wire(agent=CLAUDE)
    wire.client(id=1, method="session/new", params={"cwd": "/w", "mcpServers": []})
    assert [one["id"] for one in wire.agent(id=1, result=None)] == [1]


def test_no_prompt_passes_while_one_of_two_loads_is_under_way() -> None:
    wire = Wire(agent=CLAUDE)
    wire.open(modes=modes("default", "auto"))
    load(wire, 50)
    load(wire, 51)
    wire.agent(id=50, error={"code": -1, "message": "busy"})
    assert not wire.prompt()
    sent = wire.agent(id=51, error={"code": -1, "message": "busy"})
    assert methods(sent, "agent") == ["session/prompt"]


def test_a_session_opened_again_in_order_is_watched_again() -> None:
    wire = Wire(agent=CLAUDE)
    wire.open(modes=modes("auto", "plan"))
    assert wire.connection.unwatched == ("s",)
    load(wire)
    wire.agent(id=50, result={"modes": modes("default", "auto")})
    assert not wire.connection.unwatched
    assert set_mode(wire.update("current_mode_update", currentModeId="auto")) == "default"


def test_a_session_loaded_while_a_switch_is_being_undone_starts_from_its_response() -> None:
    wire = Wire(agent=CLAUDE)
    wire.open(modes=modes("default", "auto"))
    old = called(wire.update("current_mode_update", currentModeId="auto"))
    load(wire)
    sent = wire.agent(id=50, result={"modes": modes("auto", "default")})
    assert set_mode(sent) == "default"
    assert not wire.agent(id=old[0]["id"], result={})
    wire.prompt()
    assert methods(wire.agent(id=called(sent)[0]["id"], result={}), "agent") == ["session/prompt"]


def test_initialize_may_be_tried_again_after_the_agent_refused_it() -> None:
    wire = Wire()
    ask = {"method": "initialize", "params": {"protocolVersion": 1}}
    assert wire.client(id=1, **ask)[0]["to"] == "agent"
    wire.agent(id=1, error={"code": -1, "message": "not yet"})
    assert wire.client(id=2, **ask)[0]["to"] == "agent"
    wire.agent(id=2, result={"protocolVersion": 1})
    assert wire.client(id=3, **ask)[0]["to"] == "client"


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
def test_a_session_that_was_closed_is_forgotten_and_what_it_asks_is_cancelled(method: str) -> None:
    wire = Wire(agent=CLAUDE)
    wire.open(modes=modes("default", "auto"))
    wire.request(5, kind="execute", rawInput={"command": "rm x"})
    assert methods(wire.client(id=60, method=method, params={"sessionId": "s"}), "agent") == [method]
    sent = wire.agent(id=60, result={})
    assert [one["id"] for one in sent if one["to"] == "agent" and "result" in one] == [5]
    assert methods(wire.prompt(), "agent") == []
    wire.open(modes=modes("default", "auto"))
    assert methods(wire.prompt(), "agent") == ["session/prompt"]


@pytest.mark.parametrize(("answer", "ended"), [({"result": {}}, ["s"]), ({"error": {"code": -1}}, [])])
@pytest.mark.parametrize("loads", [False, True])
def test_what_was_remembered_for_a_session_ends_when_it_is_closed_also_while_it_is_loaded_again(
    answer: dict[str, object], ended: list[str], loads: bool
) -> None:
    decider, told = judge(agent=CLAUDE), list[str]()
    decider.authorizer.end_grants = told.append
    wire = Wire(agent=CLAUDE)
    wire.connection = Connection(decider, Settings(), nonce="n")
    wire.open(modes=modes("default", "auto"))
    wire.client(id=60, method="session/close", params={"sessionId": "s"})
    if loads:
        load(wire, 61)
    assert not told
    wire.agent(id=60, **answer)
    assert told == ended


def test_a_session_the_agent_refuses_to_close_stays_open() -> None:
    wire = Wire(agent=CLAUDE)
    wire.open(modes=modes("default", "auto"))
    wire.client(id=60, method="session/close", params={"sessionId": "s"})
    wire.agent(id=60, error={"code": -1, "message": "no"})
    assert methods(wire.prompt(), "agent") == ["session/prompt"]


def test_requests_of_sessions_that_were_only_named_are_cancelled_with_them_however_many_came_after() -> None:
    wire = Wire()
    wire.agent(
        id=5,
        method="session/request_permission",
        params={
            "sessionId": "first",
            "toolCall": {"toolCallId": "t", "rawInput": {"command": "rm x"}},
            "options": ONCE,
        },
    )
    for number in range(2_100):
        wire.update("tool_call", session=f"other-{number}", toolCallId="t")
    sent = wire.client(method="session/cancel", params={"sessionId": "first"})
    assert [one["id"] for one in sent if one["to"] == "agent" and "result" in one] == [5]


@pytest.mark.parametrize(
    ("method", "fields"),
    [("session/prompt", {"prompt": []}), ("session/set_mode", {"modeId": "auto"}), ("session/Set_mode ", {})],
)
def test_no_prompt_or_change_passes_without_an_id_or_under_another_spelling(
    method: str, fields: dict[str, object]
) -> None:
    wire = Wire(agent=CLAUDE)
    wire.open(modes=modes("auto", "default"))
    ident = {"id": 9} if method.endswith(" ") else {}
    sent = wire.client(**ident, method=method, params={"sessionId": "s", **fields})
    assert methods(sent, "agent") == []


def test_an_agent_that_keeps_leaving_its_asking_mode_gets_no_prompt_under_strict() -> None:
    play = Play(settings=Settings(strict=True))
    play.event("client", "new 1")
    play.event("agent", "opened 1 default")
    for _ in range(8):
        (step,) = sent(play.event("agent", "in-mode auto")[0], Side.AGENT)
        play.message("agent", id=step["id"], result={})
    assert sent(play.event("agent", "in-mode auto")[0], Side.AGENT) == []
    assert any("keeps leaving" in one.text for one in play.commands if isinstance(one, Note))
    assert [one["id"] for one in sent(play.event("client", "prompt 9")[0], Side.CLIENT) if "error" in one] == [9]


def test_a_switch_that_no_step_undoes_leaves_a_session_without_prompts_under_strict() -> None:
    wire = Wire(settings=Settings(strict=True))
    wire.open()
    wire.update("config_option_update", configOptions=[{"id": 7, "currentValue": "x"}])
    assert wire.connection.unwatched == ("s",)
    assert methods(wire.prompt(), "agent") == []


def test_an_answer_to_a_change_of_mode_that_cannot_be_read_confirms_nothing() -> None:
    play = Play(settings=Settings(strict=True))
    play.event("client", "new 1")
    play.event("agent", "opened 1 default")
    (step,) = sent(play.event("agent", "in-mode auto")[0], Side.AGENT)
    play.event("agent", f'raw {{"jsonrpc":"2.0","id":"{step["id"]}","result":{{"a":1,"a":2}}}}')
    assert [one["id"] for one in sent(play.event("client", "prompt 9")[0], Side.CLIENT) if "error" in one] == [9]


def test_a_prompt_that_waits_is_withdrawn_alone() -> None:
    play = Play()
    play.event("client", "new 1")
    play.event("agent", "opened 1 auto")
    for at in (2, 3, 4):
        play.event("client", f"prompt {at}")
    assert [one["id"] for one in sent(play.event("client", "cancel-request 3")[0], Side.CLIENT)] == [3]
    waiting = play.connection._core.sessions["s"].prompts
    assert [json.loads(line)["id"] for line in waiting] == [2, 4]
    play.event("client", "cancel-request 7")
    assert len(waiting) == 2


@pytest.mark.parametrize("method", ["proxy/initialize", "_proxy/initialize", "session/request_permission"])
def test_what_only_a_proxy_or_an_agent_asks_never_passes_from_the_client(method: str) -> None:
    wire = Wire()
    answered = wire.client(id=1, method=method, params={})
    assert methods(answered, "agent") == [] and [one["to"] for one in answered if "error" in one] == ["client"]
