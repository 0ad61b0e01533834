"""What a proxy remembers of the traffic for a daemon that takes over."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from policyd.proxy import ledger as ledgers
from policyd.proxy.ledger import Ledger
from policyd.session import Side

CWD = {"cwd": "/w"}
BYPASS = {"sessionUpdate": "current_mode_update", "currentModeId": "bypass"}
PLAN = {**BYPASS, "currentModeId": "plan"}


def line(**told: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **told}).encode() + b"\n"


def told(update: dict[str, str], **more: object) -> bytes:
    return line(method="session/update", params={"sessionId": "s", "update": update}, **more)


def exchange(ledger: Ledger, number: int, method: str, params: object, result: object) -> list[tuple[Side, bytes]]:
    """Pass a request of the client and its answer; return the lines as `past` yields them."""
    request, answer = line(id=number, method=method, params=params), line(id=number, result=result)
    ledger.fed(Side.CLIENT, request, number)
    ledger.sent(Side.AGENT, request)
    ledger.fed(Side.AGENT, answer, number)
    assert ledger.sent(Side.CLIENT, answer) == answer
    return [(Side.CLIENT, request[:-1]), (Side.AGENT, answer[:-1])]


@pytest.mark.parametrize("more", [{}, {"more": "x" * 5000}], ids=["plain", "odd"])
def test_the_past_is_how_each_session_was_opened_and_its_last_mode(more: dict[str, object]) -> None:
    ledger = Ledger()
    past = exchange(ledger, 1, "initialize", {}, {})
    past += exchange(ledger, 2, "session/new", CWD, {"sessionId": "s"})
    for update in (PLAN, BYPASS):
        assert ledger.sent(Side.CLIENT, told(update, **more))
    assert list(ledger.past()) == [*past, (Side.AGENT, told(BYPASS, **more)[:-1])]
    past += exchange(ledger, 3, "session/set_mode", {"sessionId": "s", "modeId": "plan"}, {})
    assert {one for _, one in past} < {one for _, one in ledger.past()}


def test_a_session_that_is_opened_anew_has_no_mode() -> None:
    ledger = Ledger()
    exchange(ledger, 1, "session/new", CWD, {"sessionId": "s"})
    ledger.sent(Side.CLIENT, told(BYPASS))
    again = exchange(ledger, 2, "session/load", {**CWD, "sessionId": "s"}, {})
    assert list(ledger.past()) == again


def test_an_update_to_the_agent_or_of_another_kind_is_no_mode() -> None:
    ledger = Ledger()
    opened = exchange(ledger, 1, "session/new", CWD, {"sessionId": "s"})
    ledger.sent(Side.AGENT, told(BYPASS))
    ledger.sent(Side.CLIENT, told({"sessionUpdate": "plan"}))
    assert list(ledger.past()) == opened


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        ({"code": -32001, "message": "Denied by policyd: no"}, True),
        ({"code": -32603, "message": "no"}, False),
        ([], False),
    ],
)
def test_a_call_that_policy_refuses_beside_permissions_counts_as_refused(error: object, refused: bool) -> None:
    ledger, request = Ledger(), line(id=1, method="fs/write_text_file", params={"sessionId": "s", "path": "/x"})
    ledger.fed(Side.AGENT, request, 1)
    answer = line(id=1, error=error)
    assert ledger.sent(Side.AGENT, answer) == answer and ledger.refused is refused


def test_an_answer_that_nobody_waits_for_does_not_leave() -> None:
    ledger, notice = Ledger(), told(PLAN)
    assert ledger.sent(Side.CLIENT, notice + line(id=7, result={})) == notice


def test_of_two_answers_that_are_alike_the_one_leaves_that_was_waited_for() -> None:
    ledger, request, answer = Ledger(), line(id=1, method="session/new", params=CWD), line(id=1, result={})
    ledger.fed(Side.CLIENT, request, 1)
    ledger.sent(Side.AGENT, request)
    assert ledger.sent(Side.CLIENT, answer + told(PLAN) + answer) == answer + told(PLAN)


@pytest.mark.parametrize(("ids", "size"), [(range(20), 1000), (range(200), 10), ([1] * 200, 10)])
def test_open_requests_are_bounded_by_number_and_by_bytes_whatever_their_ids(
    monkeypatch: pytest.MonkeyPatch, ids: Sequence[int], size: int
) -> None:
    monkeypatch.setattr(ledgers, "MOST_HELD", 10_000)
    monkeypatch.setattr(ledgers, "MOST_OPEN", 100)
    ledger, most = Ledger(), 0
    for number in ids:
        ledger.fed(Side.AGENT, line(id=number, method="terminal/output", params={"x": "y" * size}), 1)
        open_ = [one.line for one in ledger._all()]
        assert sum(map(len, open_)) <= 10_000 and len(open_) <= 100
        most = max(most, len(open_))
    assert most in (9, 100) and ledger._held == sum(one.cost for one in ledger._all())


def test_the_past_is_bounded_by_bytes_and_of_a_session_nothing_or_all_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "MOST_PAST", 3_000)
    ledger, past = Ledger(), list[list[tuple[Side, bytes]]]()
    exchange(ledger, 0, "initialize", {"pad": "x" * 5_000}, {})
    for number in range(10):
        past.append(exchange(ledger, number, "session/new", CWD, {"sessionId": f"s{number}", "pad": "x" * 500}))
    assert list(ledger.past())[2:] == [line for pair in past[-4:] for line in pair]
    params = {"sessionId": "s9", "update": {**BYPASS, "pad": "x" * 5_000}}
    ledger.sent(Side.CLIENT, line(method="session/update", params=params))
    assert len(list(ledger.past())) == 2, "of a session whose mode is not known nothing is"


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize(
    "refused",
    [
        b'{"jsonrpc":"2.0","id":7,"method":"session/request_permission","method":"x"}',
        b'{"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":' + b"[" * 3_000 + b"]" * 3_000 + b"}",
        b'{"jsonrpc":"2.0","id":7,"Method":"fs/read_text_file"}',
    ],
    ids=["twice", "deep", "case"],
)
def test_the_refusal_of_a_request_that_cannot_be_read_leaves_once(side: Side, refused: bytes) -> None:
    ledger, answer = Ledger(), line(id=7, error={"code": -32600, "message": "refused"})
    ledger.fed(side, refused + b"\n", 1)
    assert list(ledger.stranded(())) == [(side, refused)]
    assert ledger.sent(side, answer) == answer
    assert ledger.sent(side, answer) == b"" and ledger._held == 0


def test_an_error_that_says_some_line_cannot_be_read_leaves() -> None:
    unread = line(id=None, error={"code": -32600, "message": "no batches"})
    assert Ledger().sent(Side.AGENT, unread) == unread
    assert Ledger().sent(Side.AGENT, line(id=None, result={})) == b""
