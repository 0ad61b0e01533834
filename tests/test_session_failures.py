"""Whatever fails, at whichever point: nothing is allowed, every request gets its one answer, nothing hangs."""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
from collections.abc import Callable, Mapping

import pytest

from policyd.session import Closed, Connection, Failed, Frame, Note, Record, Send, Settings, Side, Tick
from policyd.session.core import Core
from tests.playbook import MACROS, Play, ScriptedDecider, moment, sent

METHODS = [
    *("observe", "refused", "names", "client", "context", "project", "remembers", "person", "late"),
    *("permission", "again", "door", "switch", "chosen", "asking", "unasked", "stands_for"),
]
FAILURES: dict[str, Callable[[], BaseException]] = {
    "error": lambda: RuntimeError("no"),
    "type": lambda: TypeError("no"),
    "recursion": RecursionError,
    "memory": MemoryError,
    "key": lambda: KeyError("x"),
}


class Breaking(ScriptedDecider):
    """A decider of which one method raises, or answers with nonsense."""

    def broken(self, method: str, how: str) -> Breaking:
        def fail(*args: object, **kwargs: object) -> object:
            if how == "nonsense":
                return object()
            if how == "none":
                return None
            raise FAILURES[how]()

        setattr(self, method, fail)
        return self


def conversation() -> list[tuple[str, dict[str, object]]]:
    """A conversation through every part of the enforcement, every request of the agent to be refused but one kind."""
    return [
        ("client", MACROS["new"]("1")),
        ("agent", MACROS["opened"]("1", "default")),
        ("client", MACROS["prompt"]("2")),
        ("agent", MACROS["update"]("a", "title=npm test")),
        ("agent", MACROS["permission"]("10", "a", "npm test")),
        ("agent", MACROS["permission"]("11", "b", "late npm test")),
        ("agent", MACROS["update"]("b", 'rawInput={"command":"x"}')),
        ("agent", MACROS["permission"]("12", "c", "asked")),
        ("agent", MACROS["write"]("13", "/w/a", "text")),
        ("agent", MACROS["terminal"]("14", "npm", "test")),
        ("agent", MACROS["update"]("z", "title=rm", "status=completed")),
        ("client", MACROS["mode"]("3", "auto")),
        ("agent", MACROS["in-mode"]("auto")),
    ]


def run(decider: ScriptedDecider, settings: Settings) -> tuple[dict[object, list[dict[str, object]]], list[str]]:
    """Play the conversation, the client saying yes to everything; return the agent's answers and what it was let do."""
    connection = Connection(decider, settings, nonce="n")
    answers: dict[object, list[dict[str, object]]] = {}
    let: list[str] = []
    todo: list[tuple[str, bytes]] = [
        (side, json.dumps({"jsonrpc": "2.0", **message}).encode()) for side, message in conversation()
    ]
    time = 0.0
    while todo:
        side, line = todo.pop(0)
        time += 1.0
        for command in connection.handle(Frame(Side(side), line), moment(time)):
            for data in command.data.splitlines() if isinstance(command, Send) else []:
                message = json.loads(data)
                assert isinstance(command, Send)
                if command.side is Side.AGENT and "method" not in message:
                    answers.setdefault(message["id"], []).append(message)
                elif command.side is Side.CLIENT and "options" in message.get("params", {}):
                    option = next(one for one in message["params"]["options"] if one["kind"] == "allow_once")
                    reply = MACROS["chose"](json.dumps(message["id"]), option["optionId"])
                    reply["id"] = message["id"]
                    todo.insert(0, ("client", json.dumps({"jsonrpc": "2.0", **reply}).encode()))
                elif command.side is Side.CLIENT and message.get("method", "").startswith(("fs/", "terminal/")):
                    let.append(message["method"])
    for event in (Tick(), Closed(Side.CLIENT)):
        for command in connection.handle(event, moment(time + 2000)):
            for data in command.data.splitlines() if isinstance(command, Send) and command.side is Side.AGENT else []:
                message = json.loads(data)
                if "method" not in message:
                    answers.setdefault(message["id"], []).append(message)
    return answers, let


def allowed(answers: dict[object, list[dict[str, object]]]) -> list[object]:
    return [ident for ident, found in answers.items() for one in found if "yes" in json.dumps(one)]


def test_the_conversation_is_allowed_where_nothing_fails() -> None:
    table = {"npm test": "allow", "late npm test": "allow", "/w/a": "allow", "asked": "ask"}
    answers, let = run(ScriptedDecider(table), Settings())
    assert allowed(answers) == [10, 11, 12]
    assert let == ["fs/write_text_file", "terminal/create"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("how", [*FAILURES, "nonsense", "none"])
def test_a_decider_that_fails_allows_nothing_it_was_needed_for(method: str, how: str) -> None:
    table = {"npm test": "allow", "late npm test": "allow", "/w/a": "allow", "asked": "ask"}
    answers, let = run(Breaking(table).broken(method, how), Settings())
    for ident in (10, 11, 12):
        assert len(answers.get(ident, [])) == 1, (ident, answers.get(ident))
    if method == "permission":
        assert not allowed(answers)
    if method == "door":
        assert not let
    asked = ("remembers", "person") if how in FAILURES else ()
    if method in ("again", "client", "project", *asked):
        assert 12 not in allowed(answers)
    if method == "names":
        assert not allowed(answers)
        assert not let


@pytest.mark.parametrize("how", [*FAILURES, "nonsense", "none"])
def test_asking_that_cannot_be_told_leaves_a_session_without_prompts(how: str) -> None:
    decider = Breaking().broken("asking", how)
    connection = Connection(decider, Settings(strict=True), nonce="n")
    sent: list[str] = []
    for side, message in conversation()[:3]:
        line = json.dumps({"jsonrpc": "2.0", **message}).encode()
        commands = connection.handle(Frame(Side(side), line), moment(0.0))
        sent += [one.data.decode() for one in commands if isinstance(one, Send) and one.side is Side.AGENT]
    assert not any("session/prompt" in line for line in sent)


@pytest.mark.parametrize("how", [*FAILURES, "nonsense"])
def test_a_mode_that_cannot_be_judged_is_not_set(how: str) -> None:
    connection = Connection(Breaking().broken("switch", how), Settings(), nonce="n")
    line = json.dumps({"jsonrpc": "2.0", **MACROS["mode"]("3", "auto")}).encode()
    commands = connection.handle(Frame(Side.CLIENT, line), moment(0.0))
    assert not [one for one in commands if isinstance(one, Send) and one.side is Side.AGENT]


PUTS: tuple[Callable[[Core], object], ...] = (
    lambda core: core.forward(Side.CLIENT, b"a"),
    lambda core: core.forward(Side.AGENT, b"b"),
    lambda core: core.send(Side.AGENT, b"c\n"),
    lambda core: core.note("d"),
)


@pytest.mark.parametrize("before", range(3))
def test_what_a_line_put_before_it_failed_leaves_no_trace(before: int) -> None:
    for first in itertools.product(PUTS, repeat=before):
        for second in itertools.product(PUTS, repeat=2):
            failed, whole = (Core(ScriptedDecider(), Settings(), "n") for _ in range(2))
            for put in first:
                put(failed)
                put(whole)
            mark = failed.mark()
            for put in second:
                put(failed)
            failed.rewind(mark)
            PUTS[0](failed)
            PUTS[0](whole)
            assert lines(failed) == lines(whole)


def lines(core: Core) -> list[object]:
    """Return what a core has put, in order, however the lines to one side were gathered."""
    found: list[object] = []
    for one in core.taken():
        found += [(one.side, line) for line in one.data.splitlines()] if isinstance(one, Send) else [one]
    return found


def test_a_record_that_cannot_be_built_is_a_rejection() -> None:
    decider = Breaking({"npm test": "allow"}).broken("client", "error")
    answers, let = run(decider, Settings())
    assert not allowed(answers)
    assert not let


def test_every_failed_record_turns_its_allow_into_one_rejection() -> None:
    connection = Connection(ScriptedDecider({"npm test": "allow"}), Settings(), nonce="n")
    for at in range(50):
        line = json.dumps({"jsonrpc": "2.0", **MACROS["permission"](str(at), f"c{at}", "npm test")}).encode()
        commands = connection.handle(Frame(Side.AGENT, line), moment(0.0))
        key = next(one.key for one in commands if isinstance(one, Record))
        held = [one for one in commands if isinstance(one, Send) and one.side is Side.AGENT]
        assert [one.record for one in held] == [key]
        after = connection.handle(Failed(key, "disk full"), moment(0.0))
        sent = [json.loads(one.data) for one in after if isinstance(one, Send)]
        assert [one["result"]["outcome"] for one in sent] == [{"outcome": "selected", "optionId": "no"}]
        assert connection.handle(Failed(key, "disk full"), moment(0.0)) == []


class Blind(ScriptedDecider):
    """A decider that cannot take in what policyd says itself."""

    def observe(self, side: Side, message: Mapping[str, object]) -> None:
        if str(message.get("id")).startswith("policyd:") or (side is Side.CLIENT and "outcome" in str(message)):
            raise RuntimeError("no")
        super().observe(side, message)


def test_what_policyd_says_itself_is_said_though_it_cannot_be_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(Blind({"make": "allow"}))
    play.event("client", "new 1")
    (step,) = sent(play.event("agent", "opened 1 auto")[0], Side.AGENT)

    def fails(*_: object) -> bytes:
        raise RuntimeError("no")

    monkeypatch.setattr("policyd.session.modes.patched", fails)
    assert sent(play.message("agent", id=step["id"], result={}), Side.CLIENT)[0]["id"] == 1
    assert sent(play.event("agent", "permission 5 a make")[0], Side.AGENT)[0]["result"]
    said = " ".join(one.text for one in play.commands if isinstance(one, Note))
    assert all(part in said for part in ("a mode could not", "could not be rewritten", "an answer could not"))


@pytest.mark.parametrize("broken", ["records.Records.decision", "report.Report.show", "asking.Asker.leave"])
def test_a_rejection_leaves_though_it_is_neither_recorded_nor_shown(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = Play()
    play.event("agent", "permission 5 a make")

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(f"policyd.session.{broken}", fails)
    monkeypatch.setattr(play.decider, "again", fails)
    question = sent(play.commands, Side.CLIENT)[-1]
    answers = sent(play.message("client", **MACROS["chose"]("0", "yes") | {"id": question["id"]}), Side.AGENT)
    answers += sent(play.event("client", "cancel")[0], Side.AGENT)
    assert [one["id"] for one in answers if "result" in one] == [5]
    assert "yes" not in json.dumps(answers)


# ---- a failure at every function -----------------------------------------------------------------------

ROOMS = ["acp.answer", "acp.envelope", "acp.json", "acp.messages", "acp.shapes"]
ROOMS += [f"session.{name}" for name in ("asking", "connection", "core", "doors", "modes", "permissions")]
ROOMS += ["session.records", "session.report", "session.tripwire", "prompts.prompt", "prompts.desk", "prompts.question"]


def _functions() -> list[tuple[str, str, str]]:
    """Every function and method of the rooms on the way of a decision, private ones included."""
    found = []
    for room in ROOMS:
        module = importlib.import_module(f"policyd.{room}")
        for name, thing in vars(module).items():
            if getattr(thing, "__module__", "") != module.__name__:
                continue
            if inspect.isfunction(thing):
                found.append((module.__name__, "", name))
            elif inspect.isclass(thing) and not hasattr(thing, "__struct_fields__"):
                names = [key for key, value in vars(thing).items() if inspect.isfunction(value) and key[:2] != "__"]
                found += [(module.__name__, name, key) for key in names]
    return found


FUNCTIONS = _functions()


def test_there_are_many_points_of_failure() -> None:
    assert len(FUNCTIONS) > 150


@pytest.mark.parametrize("nth", [1, 2, 5])
def test_no_failure_anywhere_allows_what_is_denied(nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    denied = {"npm test": "deny", "late npm test": "deny", "/w/a": "deny", "asked": "deny"}
    for module, owner, name in FUNCTIONS:
        home = importlib.import_module(module)
        with monkeypatch.context() as patch:
            _fail_at(patch, getattr(home, owner) if owner else home, name, nth)
            try:
                answers, let = run(ScriptedDecider(denied), Settings(prompt=()))
            except Exception:  # noqa: S112 - the proxy ends, and with it the agent
                continue
        assert not allowed(answers), (module, owner, name)
        assert not let, (module, owner, name)
        assert all(len(found) == 1 for found in answers.values()), (module, owner, name)


@pytest.mark.parametrize("nth", [1, *(pytest.param(more, marks=pytest.mark.slow) for more in (2, 3, 5))])
def test_no_failure_anywhere_leaves_a_request_without_its_one_answer(nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"npm test": "allow", "late npm test": "deny", "/w/a": "deny", "asked": "ask"}
    for module, owner, name in FUNCTIONS:
        home = importlib.import_module(module)
        with monkeypatch.context() as patch:
            _fail_at(patch, getattr(home, owner) if owner else home, name, nth)
            try:
                answers, _ = run(ScriptedDecider(table), Settings())
            except Exception:  # noqa: S112 - the proxy ends, and with it the agent
                continue
        assert [len(answers.get(ident, ())) for ident in (10, 11, 12, 13)] == [1] * 4, (module, owner, name)


def _fail_at(patch: pytest.MonkeyPatch, owner: object, name: str, nth: int) -> None:
    original, count = getattr(owner, name), 0

    def failing(*args: object, **kwargs: object) -> object:
        nonlocal count
        count += 1
        if count == nth:
            raise RuntimeError("injected")
        return original(*args, **kwargs)

    patch.setattr(owner, name, failing)
