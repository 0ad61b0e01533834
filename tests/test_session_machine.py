"""Random interleavings of both sides, prompts, failures and the clock against what must hold in every one of them.

One answer a request; no id of policyd's own twice, none forwarded; no prompt before the mode is confirmed; what is not
ours passes once with its bytes; nothing allowed that policy denies or that failed; no allow without its record.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from policyd.acp import id_key
from policyd.session import (
    Ask,
    Closed,
    Command,
    Connection,
    Event,
    Failed,
    Frame,
    Record,
    Reloaded,
    Reply,
    Send,
    Settings,
    Side,
    Tick,
)
from tests.playbook import UNSAFE, ScriptedDecider, moment, permission

IDS = st.sampled_from(["0", "1", "2", "3", '"0"', '"x"', "null", "1.5", "2.0", "12345678901234567890123"])
TITLES = st.sampled_from(["allowed", "denied", "asked", "asked too", "late allowed", "late asked", "boom"])
CHOICES = st.sampled_from(["yes", "no", "nowhere", "cancelled", "error", "empty", "policyd-always-1", "policyd-allow"])
MODES = st.sampled_from(["", "default", "plan", "auto", "yolo", "stuck"])
STRICT = Settings(strict=True, prompt=("client",), run="r", open_prompts=4, prompts_a_minute=1000)


class Interleavings(RuleBasedStateMachine):
    """The two sides and the rim, at random."""

    def __init__(self) -> None:
        super().__init__()
        table = {"allowed": "allow", "denied": "deny", "late allowed": "allow", "boom": "raise"}
        self.decider = ScriptedDecider(table)
        self.connection = Connection(self.decider, self.settings(), nonce="n")
        self.time = 0.0
        self.fail_next_record = False
        self.requests: Counter[bytes] = Counter()
        self.answered: Counter[bytes] = Counter()
        self.allowed: list[str] = []
        self.titles: dict[object, list[str]] = {}
        self.to_client: dict[object, bytes] = {}
        """Requests the client has not answered: id -> raw id."""
        self.own_to_agent: list[dict[str, object]] = []
        self.client_requests: dict[object, str] = {}
        self.asks: list[Ask] = []
        self.own_ids: Counter[tuple[str, str]] = Counter()
        self.expected: Counter[tuple[str, bytes]] = Counter()
        self.passed: Counter[tuple[str, bytes]] = Counter()
        self.mode = ""
        self.marker = 0
        self.gone = False

    def settings(self) -> Settings:
        return STRICT

    # ---- the rim ------------------------------------------------------------------------------------

    def happens(self, event: Event) -> None:
        self.perform(self.connection.handle(event, moment(self.time)))

    def perform(self, commands: list[Command]) -> None:
        written: set[int] = set()
        failed: list[int] = []
        for command in commands:
            if isinstance(command, Record):
                (failed if self.fail_next_record else [*written]).append(command.key)
                written |= set() if self.fail_next_record else {command.key}
                self.fail_next_record = False
            elif isinstance(command, Ask):
                self.asks.append(command)
            elif isinstance(command, Send):
                assert command.data.endswith(b"\n")
                assert command.record is None or command.record in written or command.record in failed
                if command.record is None or command.record in written:
                    for line in command.data.splitlines():
                        self.arrives(command.side, line, recorded=command.record is not None)
        for key in failed:
            self.happens(Failed(key, "disk full"))

    def arrives(self, side: Side, line: bytes, *, recorded: bool) -> None:
        if (side.value, line) in self.expected:
            self.passed[side.value, line] += 1
            return
        message = json.loads(line)
        if side is Side.AGENT:
            self.agent_gets(message, line, recorded=recorded)
        elif "method" in message and "id" in message:
            raw = raw_id(line)
            assert id_key(raw) not in self.to_client, "an id is open at the client already"
            self.to_client[id_key(raw)] = raw
            self.note_own("client", message["id"])
        elif message.get("method") == "$/cancel_request":
            self.to_client.pop(id_key(json.dumps(message["params"]["requestId"]).encode()), None)

    def agent_gets(self, message: dict[str, object], line: bytes, *, recorded: bool) -> None:
        method = message.get("method")
        if method == "session/prompt":
            assert self.mode not in UNSAFE, f"a prompt reached an agent in mode {self.mode}"
            return
        if method in ("session/set_mode", "session/set_config_option"):
            self.own_to_agent.append(message)
            self.note_own("agent", message["id"])
            return
        if "result" not in message and "error" not in message:
            return
        raw = raw_id(line)
        if raw == b"null" and not self.requests[raw] and "error" in message:
            return
        self.answered[raw] += 1
        assert self.answered[raw] <= self.requests[raw], f"answered twice: {raw!r}"
        result = message.get("result")
        outcome = result.get("outcome") if isinstance(result, dict) else None
        if isinstance(outcome, dict) and outcome.get("optionId") == "yes":
            assert recorded, "an allow left without its record"
            self.allowed.append("yes")
            titles = self.titles[raw]
            assert set(titles) - {"denied", "boom"}, f"allowed although nothing open under {raw!r} may be: {titles}"

    def note_own(self, side: str, ident: object) -> None:
        if isinstance(ident, str) and ident.startswith("policyd:"):
            self.own_ids[side, ident] += 1
            assert self.own_ids[side, ident] == 1, "an own id was used twice"

    @initialize(mode=MODES)
    def begins(self, mode: str) -> None:
        self.opens("session/new")
        self.opens_the_session(mode, fails=False)

    # ---- the agent ----------------------------------------------------------------------------------

    def agent(self, **fields: object) -> None:
        self.happens(Frame(Side.AGENT, json.dumps({"jsonrpc": "2.0", **fields}).encode()))

    @rule(ident=IDS, title=TITLES, call=st.sampled_from("abc"))
    def asks_permission(self, ident: str, title: str, call: str) -> None:
        raw = ident.encode()
        self.requests[raw] += 1
        self.titles.setdefault(raw, []).append(title)
        request = permission("0", call, title)
        body = json.dumps({"jsonrpc": "2.0", **request}).replace('"id": 0', f'"id": {ident}').encode()
        self.happens(Frame(Side.AGENT, body))

    @rule(call=st.sampled_from("abc"), status=st.sampled_from(["pending", "completed"]), details=st.booleans())
    def updates(self, call: str, status: str, details: bool) -> None:
        update = {"sessionUpdate": "tool_call_update", "toolCallId": call, "status": status}
        if details:
            update["rawInput"] = {"command": "x"}  # type: ignore[assignment]
        self.passes(Side.AGENT, {"method": "session/update", "params": {"sessionId": "s", "update": update}})

    @rule()
    def talks(self) -> None:
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": str(self.next())}}
        self.passes(Side.AGENT, {"method": "session/update", "params": {"sessionId": "s", "update": update}})

    @rule(side=st.sampled_from([Side.AGENT, Side.CLIENT]))
    def says_something_foreign(self, side: Side) -> None:
        self.passes(side, {"method": "_other/thing", "params": {"n": self.next(), "text": "\u00e9\u2028"}})

    @rule(call=st.sampled_from("abc"), bad=st.sampled_from(['"a":1,"a":2', '"Title":1', '"a":NaN']))
    def sends_a_line_that_is_refused(self, call: str, bad: str) -> None:
        update = f'{{"sessionUpdate":"tool_call","toolCallId":"{call}",{bad}}}'
        params = f'{{"sessionId":"s","update":{update}}}'
        line = f'{{"jsonrpc":"2.0","method":"session/update","params":{params}}}'
        self.happens(Frame(Side.AGENT, line.encode()))

    @rule(ident=IDS)
    def withdraws(self, ident: str) -> None:
        self.agent(method="$/cancel_request", params={"requestId": json.loads(ident)})

    @rule(mode=st.sampled_from(["default", "auto", "yolo", "plan"]))
    def switches_by_itself(self, mode: str) -> None:
        if self.mode:
            self.mode = mode
            update = {"sessionUpdate": "current_mode_update", "currentModeId": mode}
            self.agent(method="session/update", params={"sessionId": "s", "update": update})

    @precondition(lambda self: self.own_to_agent)
    @rule(ok=st.booleans())
    def answers_policyd(self, ok: bool) -> None:
        request = self.own_to_agent.pop(0)
        if ok:
            params = request["params"]
            assert isinstance(params, dict)
            self.mode = str(params.get("modeId", self.mode))
            self.agent(id=request["id"], result={})
        else:
            self.agent(id=request["id"], error={"code": 1, "message": "no"})

    @precondition(lambda self: self.client_requests)
    @rule(mode=MODES, fails=st.booleans())
    def opens_the_session(self, mode: str, fails: bool) -> None:
        ident = next(iter(self.client_requests))
        del self.client_requests[ident]
        if fails:
            self.agent(id=ident, error={"code": 1, "message": "no"})
            return
        self.mode = mode
        result = {"sessionId": "s", **({"modes": {"currentModeId": mode}} if mode else {})}
        self.agent(id=ident, result=result)

    # ---- the client ---------------------------------------------------------------------------------

    def client(self, **fields: object) -> None:
        self.happens(Frame(Side.CLIENT, json.dumps({"jsonrpc": "2.0", **fields}).encode()))

    @precondition(lambda self: len(self.client_requests) < 2)
    @rule(method=st.sampled_from(["session/new", "session/load"]))
    def opens(self, method: str) -> None:
        ident = 1000 + self.next()
        self.client_requests[ident] = method
        more = {"sessionId": "s"} if method == "session/load" else {}
        self.client(id=ident, method=method, params={"cwd": "/w", "mcpServers": [], **more})

    @rule()
    def prompts(self) -> None:
        self.client(id=1000 + self.next(), method="session/prompt", params={"sessionId": "s", "prompt": []})

    @rule(mode=st.sampled_from(["default", "auto", "yolo"]))
    def sets_a_mode(self, mode: str) -> None:
        before = len(self.own_to_agent)
        ident = 1000 + self.next()
        self.client(id=ident, method="session/set_mode", params={"sessionId": "s", "modeId": mode})
        mine = [one for one in self.own_to_agent[before:] if one["id"] == ident]
        assert not (mine and mode in UNSAFE), "an unsafe mode of the client's reached the agent"

    @precondition(lambda self: self.to_client)
    @rule(data=st.data(), choice=CHOICES)
    def answers(self, data: st.DataObject, choice: str) -> None:
        key = data.draw(st.sampled_from(sorted(self.to_client, key=repr)))
        self.reply(self.to_client.pop(key), choice)

    @rule(ident=IDS, choice=CHOICES)
    def answers_what_nobody_asked(self, ident: str, choice: str) -> None:
        if id_key(ident.encode()) not in self.to_client:
            self.reply(ident.encode(), choice)

    def reply(self, raw: bytes, choice: str) -> None:
        body = {
            "cancelled": '"result":{"outcome":{"outcome":"cancelled"}}',
            "error": '"error":{"code":1,"message":"no"}',
            "empty": '"result":{}',
        }.get(choice, f'"result":{{"outcome":{{"outcome":"selected","optionId":"{choice}"}}}}')
        self.happens(Frame(Side.CLIENT, b'{"jsonrpc":"2.0","id":' + raw + b"," + body.encode() + b"}"))

    @rule()
    def cancels(self) -> None:
        self.passes(Side.CLIENT, {"method": "session/cancel", "params": {"sessionId": "s"}})

    # ---- everything else ----------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([0.1, 0.3, 11.0, 700.0]))
    def time_passes(self, seconds: float) -> None:
        self.time += seconds
        self.happens(Tick())

    @precondition(lambda self: self.asks)
    @rule(decision=st.sampled_from(["allow", "reject", "abstain", "forged", "failed"]))
    def a_step_answers(self, decision: str) -> None:
        ask = self.asks.pop(0)
        if decision == "failed":
            self.happens(Failed(ask.id, "gone"))
            return
        nonce = "forged" if decision == "forged" else ask.payload["nonce"]
        said = "allow" if decision == "forged" else decision
        self.happens(Reply(ask.id, {"nonce": nonce, "digest": ask.payload["digest"], "decision": said}))

    @rule()
    def the_disk_is_full(self) -> None:
        self.fail_next_record = True

    @rule(title=st.sampled_from(["asked", "asked too"]), word=st.sampled_from(["ask", "allow"]))
    def the_policy_changes(self, title: str, word: str) -> None:
        self.decider.table[title] = word
        self.happens(Reloaded())

    # ---- what passes --------------------------------------------------------------------------------

    def next(self) -> int:
        self.marker += 1
        return self.marker

    def passes(self, side: Side, message: dict[str, object]) -> None:
        """Send what is not ours: it must come out with its bytes."""
        line = json.dumps({"jsonrpc": "2.0", "_n": self.next(), **message}, ensure_ascii=False).encode()
        self.expected[side.other.value, line] += 1
        self.happens(Frame(side, line))

    @invariant()
    def nothing_passes_twice(self) -> None:
        assert not self.passed - self.expected

    def teardown(self) -> None:
        self.time += 1000.0
        self.happens(Tick())
        self.happens(Tick())
        self.happens(Closed(Side.CLIENT))
        missing = self.requests - self.answered
        assert not missing, f"never answered: {missing}"
        lost = {line for (side, line), count in (self.expected - self.passed).items() if side == "agent"}
        assert not lost, f"lost on the way to the agent: {lost}"


class InterleavingsWithSteps(Interleavings):
    """The same with a prompt chain beside the client."""

    def settings(self) -> Settings:
        return Settings(strict=True, prompt=("command:/usr/bin/ask", "client"), run="r")


def raw_id(line: bytes) -> bytes:
    """The id of a line as its bytes."""
    from policyd.acp import envelope

    return envelope(line).id or b""


FEW = settings(max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=1500, stateful_step_count=80, deadline=None, suppress_health_check=list(HealthCheck))
TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = FEW
TestInterleavingsWithSteps = InterleavingsWithSteps.TestCase
TestInterleavingsWithSteps.settings = FEW


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("machine", [Interleavings, InterleavingsWithSteps])
def test_many_interleavings(machine: type[RuleBasedStateMachine]) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(machine, settings=MANY)
