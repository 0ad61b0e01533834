"""Laws of the enforcement: under a policy that denies all, nothing that is said on the wire brings an allow."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from policyd.actions import Machine
from policyd.authorizer import Authorizer
from policyd.model import Layer
from policyd.policy import Policy, PolicySource, load
from policyd.session import Closed, Command, Connection, Note, Record, Send, Settings, Side, Tick
from policyd.session.judge import Judge
from tests.fakes import FakeFilesystem
from tests.fuzz.law import hold
from tests.playbook import moment

HOME = "/home/dev"
FS = FakeFilesystem({"/home/dev/project": None, "/home/dev/project/a.py": ""})
PERMISSION = "session/request_permission"
GUARDED = frozenset({PERMISSION, "fs/write_text_file", "fs/read_text_file", "terminal/create"})
SIDES = {b"a": Side.AGENT, b"c": Side.CLIENT}
KEY = tuple[str, object]
TWINS = "two requests are open under one id"
"""Why a request may be refused before it was judged."""


@cache
def policy(effect: str = "deny") -> Policy:
    """Return a policy of one default."""
    source = PolicySource("policy.toml", f'version = 1\n[defaults]\n"*" = "{effect}"\n'.encode(), Layer.USER)
    return load([source], home=HOME, tmpdir="/tmp", fs=None, version="0.1.0")


def check(data: bytes) -> None:
    """Say each line under a policy that denies all, let time pass, close both sides."""
    say(data, policy())


def say(data: bytes, rules: Policy) -> None:
    """Say each line under these rules, let time pass, close both sides.

    Raises:
        LawBroken: something failed, waits for ever, or was allowed.
    """
    judge = Judge(Authorizer(rules, machine=Machine(home=HOME, fs=FS)))
    connection = Connection(judge, Settings(fs_read="policy"), nonce="n0nce")
    commands: list[Command] = []
    said: list[tuple[Side, bytes]] = []
    time = 0.0
    for row in data.split(b"\n")[:60]:
        side = SIDES.get(row[:1])
        if side is None:
            time += 1.0
            commands += connection.handle(Tick(), moment(time))
            continue
        said.append((side, row[1:]))
        commands += connection.feed(side, row[1:] + b"\n", moment(time))
    for late in (1.0, 11.0, 1000.0):
        commands += connection.handle(Tick(), moment(time + late))
    hold(connection.deadline() is None, "something waits for ever", data)
    for side in Side:
        commands += connection.handle(Closed(side), moment(time + 1001))
    _never_fails(commands)
    _never_allows(commands, said)


def _never_fails(commands: list[Command]) -> None:
    for command in commands:
        if isinstance(command, Note):
            hold("policyd failed" not in command.text, "it failed", command.text)
        if isinstance(command, Record):
            hold(command.record.get("event") != "error", "its record failed", dict(command.record))
            failed = command.record.get("source") == "error" and command.record.get("reason") != TWINS
            hold(not failed, "its decision failed", dict(command.record))


def _never_allows(commands: list[Command], said: list[tuple[Side, bytes]]) -> None:
    asked = [message for side, line in said if side is Side.AGENT for message in _objects(line)]
    rejects = {option for message in asked for option in _stated(message, "reject")}
    allows = {option for message in asked for option in _stated(message, "allow")} - rejects
    others = {_key(message.get("id")) for message in asked if message.get("method") != PERMISSION}
    for command in commands:
        if not isinstance(command, Send):
            continue
        for line in command.data.split(b"\n"):
            for message in _objects(line):
                if command.side is Side.CLIENT:
                    hold(message.get("method") not in GUARDED, "a denied request is passed on", line)
                elif _key(message.get("id")) not in others:
                    hold(_chosen(message) not in allows, "an allow is answered", line)


def _objects(line: bytes) -> Iterable[dict[str, Any]]:
    text = line.decode("utf-8", "replace")
    try:
        found = json.loads(text), json.loads(text, object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    except (ValueError, RecursionError):
        return
    yield from (one for one in found if isinstance(one, dict))


def _stated(message: dict[str, Any], kind: str) -> Iterable[str]:
    params = message.get("params")
    options = params.get("options") if isinstance(params, dict) else None
    for option in options if isinstance(options, list) else ():
        if isinstance(option, dict) and str(option.get("kind")).startswith(kind):
            yield str(option.get("optionId"))


def _chosen(message: dict[str, Any]) -> str | None:
    result = message.get("result")
    outcome = result.get("outcome") if isinstance(result, dict) else None
    return str(outcome.get("optionId")) if isinstance(outcome, dict) and "optionId" in outcome else None


def _key(value: object) -> KEY:
    return ("number", value) if type(value) in (int, float) else (type(value).__name__, repr(value))
