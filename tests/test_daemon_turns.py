"""Whose turn it is: no user waits for another's flood, no peer for another's of the same user."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from types import SimpleNamespace

import pytest

from policyd.daemon.line import Line
from policyd.daemon.turns import BIG, CREDIT, FULL, LATELY, LONG, MOST, REST, SHARE, SLICE, Turns


class Bench:
    """Turns over peers whose messages take a given time; the clock only moves by that."""

    def __init__(self) -> None:
        self.now = 0.0
        self.served: list[str] = []
        self.turns = Turns(lambda line: self.turns.add(line), clock=lambda: self.now, work=lambda: self.now)

    def run(self, count: int) -> list[str]:
        """Let so many messages be taken, waiting where all rest; return whose they were."""
        del self.served[:]
        while len(self.served) < count and self.turns:
            self.now += self.turns.due() or 0.0
            self.turns.take()
        return self.served

    def peer(self, name: str, uid: int, messages: int, seconds: float, size: int = 1) -> Line:
        """Add a peer with messages that wait."""

        def take(message: bytes) -> None:
            self.now += seconds
            self.served.append(name)

        made: Line = object.__new__(Line)
        made.who, made.peer = SimpleNamespace(uid=uid), SimpleNamespace(line=take)  # type: ignore[assignment]
        made.todo, made.out, made.ended = deque([b"x" * size] * messages), bytearray(), False
        made.unread = (size + 1) * messages
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


# ---- messages that take long ------------------------------------------------------------------------


def test_after_one_message_that_takes_long_all_others_are_served_again() -> None:
    bench = Bench()
    for number in range(50):
        bench.peer(f"g{number}", 1, 5, 0.1, size=BIG + 1)
    for name, uid in (("same", 1), ("other", 2)):
        bench.peer(name, uid, 30, SLICE / 3)
    served = bench.run(66)
    places = [at for at, name in enumerate(served) if name[0] == "g"]
    assert {"same", "other"} == set(served[:6]) and len(places) == 6
    assert all({"same", "other"} <= set(served[sooner:later]) for sooner, later in pairwise(places[:5]))


def test_a_peer_whose_small_messages_take_long_comes_behind_the_others() -> None:
    bench = Bench()
    bench.peer("greedy", 1, 10, 2 * LONG)
    bench.peer("modest", 1, 10, SHARE)
    served = bench.run(20)
    first = served.index("modest")
    assert first <= 2 and "greedy" in served[first:]
    assert all(served[at : at + 2] != ["greedy", "greedy"] for at in range(first, served.index("modest", 12)))


def test_what_takes_long_rests_while_others_are_served_and_only_then() -> None:
    bench = Bench()
    greedy = bench.peer("greedy", 1, 100, 0.1, size=BIG + 1)
    bench.run(int(CREDIT / 0.1) + 2)
    assert bench.turns.due() == 0.0
    bench.peer("modest", 2, 1, SHARE)
    bench.run(1)
    assert REST * 0.1 < (bench.turns.due() or 0.0) < REST * 0.2
    bench.run(1)
    assert bench.turns.due() == pytest.approx(REST * 0.1, rel=0.1)
    bench.now += LATELY
    assert bench.turns.due() == 0.0
    bench.turns.forget(greedy)
    assert bench.turns.due() is None and not bench.turns


def test_one_users_rest_is_not_anothers_and_users_whose_messages_take_long_take_turns() -> None:
    bench = Bench()
    bench.peer("modest", 3, 1, SHARE)
    for number in range(30):
        bench.peer(f"a{number}", 1, 3, 0.1, size=BIG + 1)
    bench.peer("b", 2, 3, 0.1, size=BIG + 1)
    assert [name[0] for name in bench.run(7)] == ["m", *["a", "b"] * 3]
    bench.run(10)
    bench.peer("b", 2, 1, 0.1, size=BIG + 1)
    assert bench.run(1) == ["b"]


def test_what_takes_long_is_taken_in_the_end_and_in_order() -> None:
    bench = Bench()
    for name, uid, count, seconds, size in (("a", 1, 3, 0.1, BIG + 1), ("b", 1, 4, 2 * LONG, 1), ("c", 2, 50, 0.0, 1)):
        bench.peer(name, uid, count, seconds, size)
    served = bench.run(57)
    assert not bench.turns and {name: served.count(name) for name in "abc"} == {"a": 3, "b": 4, "c": 50}
