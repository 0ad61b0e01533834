"""Kinds of faults that users of comparable systems reported: groups of requests under one policy each."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from policyd.actions import Machine
from policyd.authorizer import Authorizer
from policyd.cli.replay import Replay
from policyd.model import EFFECTS, Layer
from policyd.policy import PolicySource, load
from tests.fakes import FakeFilesystem

GROUPS: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "data" / "reports" / "kinds.toml").read_text(encoding="utf-8")
)["group"]


@pytest.mark.parametrize("group", GROUPS, ids=[group["about"].partition(":")[0] for group in GROUPS])
def test_requests_of_a_reported_kind_are_answered_rightly(group: dict[str, Any]) -> None:
    files = {name.rstrip("/"): None if name.endswith("/") else "" for name in group.get("files", [])}
    fs = FakeFilesystem({"/home/dev": None, "/home/dev/app": None, **files}, group.get("links", {}))
    source = PolicySource("policy.toml", b"version = 1\n" + group["policy"].encode(), Layer.USER)
    policy = load([source], home="/home/dev", tmpdir="/tmp", fs=fs, version="0.1.0")
    replay = Replay(Authorizer(policy, machine=Machine("/home/dev", fs), cwd="/home/dev/app"))
    wrong = [
        f"{asked!r} is {result.answer.effect.word}, not {word}: {result.decision.reason}"
        for word in EFFECTS
        for asked in group.get(word, [])
        if (result := replay.written(asked)).answer.effect.word != word
    ]
    assert not wrong, "\n".join(wrong)
