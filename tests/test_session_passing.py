"""What is not policyd's leaves with the bytes it came with, under every chunking, in order; and cheaply."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyd.acp import Lines
from policyd.session import Command, Connection, Frame, Send, Settings, Side
from tests.playbook import MACROS, Play, ScriptedDecider, moment, sent

SPELLINGS: list[Callable[[object], str]] = [
    lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False),
    lambda value: json.dumps(value),
    lambda value: json.dumps(value, indent=None, separators=(" , ", " : ")),
    lambda value: "  " + json.dumps(value, sort_keys=True) + "\t",
    lambda value: json.dumps(value) + "\r",
    lambda value: json.dumps(value).replace("session/", "session\\/").replace("\\u2028", "\u2028"),
]
UPDATES = ["agent_message_chunk", "agent_thought_chunk", "plan", "usage_update", "_something_new", "user_message_chunk"]
TEXTS = [
    "plain",
    "\u2028 \u0085 \x0b",
    "session/request_permission",
    '{"method":"session/request_permission"}',
    "\U0001f600",
]


def message(rng: random.Random, side: Side, number: int) -> dict[str, object]:
    """A message that is not policyd's to judge."""
    text = {"type": "text", "text": rng.choice(TEXTS) * rng.randint(1, 5)}
    choices: list[dict[str, object]] = [
        {"method": "_ext/thing", "params": {"n": number, "nested": [{"Name": 1}, {"name": 2}], "big": 10**25}},
        {"method": "_ext/ask", "id": number, "params": [1, 2.50, None]},
        {"method": "_ext/ask", "id": f"x{number}"},
        {"method": "_ext/none"},
    ]
    if side is Side.AGENT:
        update = {"sessionUpdate": rng.choice(UPDATES), "content": text, "Extra": number}
        choices += [{"method": "session/update", "params": {"sessionId": "s", "update": update}}] * 6
        choices += [{"method": "terminal/output", "id": number, "params": {"sessionId": "s", "terminalId": "t"}}]
    return {"jsonrpc": "2.0", **rng.choice(choices)}


def stream(rng: random.Random, side: Side, count: int) -> bytes:
    rows = []
    for number in range(count):
        rows.append(rng.choice(SPELLINGS)(message(rng, side, number)).encode())
        if rng.random() < 0.1:
            rows.append(rng.choice([b"", b"  ", b"\r"]))
    return b"".join(row + b"\n" for row in rows)


def pushed(connection: Connection, side: Side, data: bytes, rng: random.Random, most: int) -> list[Command]:
    lines, at, out = Lines(), 0, []
    while at < len(data):
        step = rng.randint(1, most)
        block = lines.feed(data[at : at + step])
        at += step
        if block:
            out += connection.feed(side, block, moment(0.0))
    return out


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(list(Side)), st.sampled_from([1, 7, 100, 5000, 10**6]))
def test_what_is_not_ours_passes_byte_for_byte(seed: int, side: Side, most: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    data = stream(rng, side, 40)
    commands = pushed(Connection(ScriptedDecider(), Settings(), nonce="n"), side, data, rng, most)
    assert all(isinstance(one, Send) and one.side is side.other for one in commands)
    assert b"".join(one.data for one in commands if isinstance(one, Send)) == data


def test_answers_pass_byte_for_byte_to_whoever_asked() -> None:
    connection = Connection(ScriptedDecider(), Settings(), nonce="n")
    for side in Side:
        ask = b'{"jsonrpc":"2.0", "id": 1.0, "method":"_ext/ask"}'
        answer = b'{"result" : {"a":1,"A":2} , "id":1,"jsonrpc":"2.0"}'
        connection.handle(Frame(side, ask), moment(0.0))
        assert connection.handle(Frame(side.other, answer), moment(0.0)) == [Send(side, answer + b"\n")]


def test_what_passes_in_a_row_leaves_as_one_write() -> None:
    data = stream(random.Random(1), Side.AGENT, 100)  # noqa: S311
    commands = Connection(ScriptedDecider(), Settings(), nonce="n").feed(Side.AGENT, data, moment(0.0))
    assert commands == [Send(Side.CLIENT, data)]


def test_order_is_kept_between_what_passes_and_what_is_written() -> None:
    connection = Connection(ScriptedDecider({"rm": "deny"}), Settings(), nonce="n")
    talk = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan"}}}\n'
    ask = b'{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","toolCall":'
    ask += b'{"toolCallId":"c","title":"rm"},"options":[{"optionId":"no","name":"No","kind":"reject_once"}]}}\n'
    commands = connection.feed(Side.AGENT, talk + ask + talk, moment(0.0))
    sides = [one.side.value for one in commands if isinstance(one, Send)]
    assert sides == ["client", "agent", "client"]


def test_a_frame_and_a_block_lead_to_the_same() -> None:
    rng = random.Random(3)  # noqa: S311
    data = stream(rng, Side.AGENT, 200)
    whole = Connection(ScriptedDecider(), Settings(), nonce="n").feed(Side.AGENT, data, moment(0.0))
    single = Connection(ScriptedDecider(), Settings(), nonce="n")
    one_by_one = [
        command for line in data[:-1].split(b"\n") for command in single.handle(Frame(Side.AGENT, line), moment(0.0))
    ]
    assert b"".join(one.data for one in whole if isinstance(one, Send)) == b"".join(
        one.data for one in one_by_one if isinstance(one, Send)
    )


def test_a_line_of_64_mib_passes() -> None:
    body = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":'
    body += b'"agent_message_chunk","content":{"type":"text","text":"' + b"x" * (64 * 1024 * 1024 - 300) + b'"}}}}'
    lines = Lines()
    block = b"".join(lines.feed(part) for part in (body[: 1 << 20], body[1 << 20 :], b"\n"))
    commands = Connection(ScriptedDecider(), Settings(), nonce="n").feed(Side.AGENT, block, moment(0.0))
    assert [len(one.data) for one in commands if isinstance(one, Send)] == [len(body) + 1]


@pytest.mark.parametrize("side", list(Side))
def test_ids_of_both_sides_do_not_mix(side: Side) -> None:
    connection = Connection(ScriptedDecider(), Settings(), nonce="n")
    ask = b'{"jsonrpc":"2.0","id":1,"method":"_ext/ask"}'
    connection.handle(Frame(side, ask), moment(0.0))
    own = connection.handle(Frame(side, b'{"jsonrpc":"2.0","id":1,"result":{}}'), moment(0.0))
    assert not [one for one in own if isinstance(one, Send)]


# ---- what came before, and what waits -------------------------------------------------------------------


def test_a_request_of_before_is_known_by_its_answer() -> None:
    play = Play()
    for side, macro in ((Side.CLIENT, MACROS["new"]("1")), (Side.AGENT, MACROS["read"]("7", "/w/a"))):
        play.connection.adopt(side, json.dumps({"jsonrpc": "2.0", **macro}).encode(), moment(0.0))
    assert [one["method"] for one in sent(play.event("agent", "opened 1 auto")[0], Side.AGENT)] == ["session/set_mode"]
    assert sent(play.event("client", "ok 7")[0], Side.AGENT)


def test_no_prompt_passes_in_a_session_whose_opening_of_before_cannot_be_read() -> None:
    play = Play(ScriptedDecider(fail=frozenset({"observe"})))
    play.connection.adopt(Side.CLIENT, json.dumps({"jsonrpc": "2.0", **MACROS["new"]("1")}).encode(), moment(0.0))
    assert sent(play.event("agent", "opened 1 default")[0], Side.CLIENT)
    assert [one["id"] for one in sent(play.event("client", "prompt 2")[0], Side.CLIENT) if "error" in one] == [2]


def test_what_is_held_says_until_when() -> None:
    play = Play(settings=Settings(hold_s=7.0))
    assert play.connection.deadline() is None
    play.event("agent", "permission 5 a make")
    assert (play.connection.holds(b"5"), play.connection.holds(b"6"), play.connection.waiting) == (True, False, 1)
    play.event("client", "new 1")
    play.event("agent", "opened 1 auto")
    assert play.connection.deadline() == 7.0
    play.tick(7.0)
    assert play.connection.deadline() == 600.0
    play.tick(600.0)
    assert (play.connection.deadline(), play.connection.waiting) == (None, 0)
