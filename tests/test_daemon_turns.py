"""Whose turn it is: no user waits for another's flood, no peer for another's of the same user."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

from policyd.daemon.line import Line
from policyd.daemon.turns import FULL, MOST, SHARE, SLICE, Turns


class Bench:
    """Turns over peers whose messages take a given time; the clock only moves by that."""

    def __init__(self) -> None:
        self.now = 0.0
        self.served: list[str] = []
        self.turns = Turns(lambda line: self.turns.add(line), clock=lambda: self.now)

    def peer(self, name: str, uid: int, messages: int, seconds: float) -> Line:
        """Add a peer with messages that wait."""

        def take(message: bytes) -> None:
            self.now += seconds
            self.served.append(name)

        made: Line = object.__new__(Line)
        made.who, made.peer = SimpleNamespace(uid=uid), SimpleNamespace(line=take)  # type: ignore[assignment]
        made.todo, made.out, made.ended = deque([b"x"] * messages), bytearray(), False
        made.unread = 2 * messages
        self.turns.add(made)
        return made


def test_a_user_with_many_busy_peers_delays_another_by_one_turn() -> None:
    bench = Bench()
    for number in range(200):
        bench.peer(f"g{number}", 1, 50, 0.0007)
    bench.turns.take()
    bench.peer("other", 2, 1, 0.0007)
    began = bench.now
    bench.turns.take()
    assert bench.served[-1] == "other" and bench.now - began <= SLICE + 2 * 0.0007


def test_a_users_other_peers_come_before_a_greedy_ones_second_message() -> None:
    bench = Bench()
    bench.peer("greedy", 1, 100, SHARE)
    bench.peer("modest", 1, 1, SHARE)
    bench.turns.take()
    assert bench.served[:3] == ["greedy", "modest", "greedy"]


def test_cheap_messages_are_taken_several_at_once_but_not_for_ever() -> None:
    bench = Bench()
    bench.peer("greedy", 1, 10 * MOST, 0.0)
    bench.peer("modest", 1, 1, SLICE)
    bench.turns.take()
    assert bench.served == ["greedy"] * MOST + ["modest"]


def test_who_does_not_read_and_who_is_gone_has_no_turn() -> None:
    bench = Bench()
    full, gone = bench.peer("full", 1, 1, 0.0), bench.peer("gone", 2, 1, 0.0)
    bench.turns.drop(full)
    bench.turns.drop(gone)
    full.out, gone.ended = bytearray(FULL + 1), True
    for line in (full, gone):
        bench.turns.add(line)
    assert not bench.turns
    bench.turns.take()
    assert bench.served == []


def test_everything_that_waits_is_taken_in_the_end_and_in_order() -> None:
    bench = Bench()
    for name, uid, count in (("a", 1, 3), ("b", 1, 40), ("c", 2, 7)):
        bench.peer(name, uid, count, 0.0003)
    while bench.turns:
        bench.turns.take()
    assert {name: bench.served.count(name) for name in "abc"} == {"a": 3, "b": 40, "c": 7}
