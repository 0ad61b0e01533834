"""Faults that users of comparable systems reported, as policies and requests with the right answer."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from policyd.actions import Machine
from policyd.authorizer import Authorizer
from policyd.cli.replay import Replay
from policyd.model import Layer
from policyd.policy import PolicySource, load
from tests.fakes import FakeFilesystem

ROWS = tomllib.loads((Path(__file__).parent / "data" / "reports" / "rows.toml").read_text())["row"]


def files(row: dict[str, Any]) -> FakeFilesystem:
    known: dict[str, str | None] = {"/home/dev": None, row["cwd"]: None}
    links = {}
    for line in row.get("setup", []):
        sort, rest = line.split(" ", 1)
        if sort == "link":
            name, target = rest.split(" -> ")
            links[name] = target
        else:
            known[rest] = ""
    return FakeFilesystem(known, links)


def decided(row: dict[str, Any]) -> tuple[str, object]:
    fs = files(row)
    sources = [PolicySource("policy.toml", b"version = 1\n" + row["policy"].encode(), Layer.USER)]
    if "project" in row:
        text = b"version = 1\n" + row["project"].encode()
        sources.append(PolicySource("project.toml", text, Layer.PROJECT, root=row["cwd"]))
    policy = load(sources, home="/home/dev", tmpdir="/tmp", fs=fs, version="0.1.0")
    point = Authorizer(policy, machine=Machine("/home/dev", fs), cwd=row["cwd"])
    updates = [json.loads(line) for line in row.get("updates", "").splitlines()]
    lines = [{"method": "session/update", "params": update} for update in updates] + [json.loads(row["request"])]
    replay = Replay(point, unattended=row.get("unattended", False))
    (result,) = replay.run(json.dumps(line).encode() for line in lines)
    return "error" if result.error else result.answer.effect.word, result.outcome


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_reported_fault_is_answered_rightly(row: dict[str, Any]) -> None:
    effect, outcome = decided(row)
    assert effect in {row["expected"], *row.get("accept", [])}, row["about"]
    if "outcome" in row and effect == row["expected"]:
        assert outcome == row["outcome"]
