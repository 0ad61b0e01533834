"""A policy file is read as a whole: every mistake at its line, with what to write; nothing loads by half."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from policyd import policy
from policyd.model import Layer
from policyd.policy import Policy, PolicyError, PolicySource

CASES = tomllib.loads((Path(__file__).parent / "data/policies/mistakes.toml").read_text())["case"]


def source(text: str, layer: Layer = Layer.USER, name: str = "mistakes.toml", *, trusted: bool = False) -> PolicySource:
    return PolicySource(name, text.encode(), layer, trusted)


def load(*sources: PolicySource) -> Policy:
    return policy.load(sources, home="/home/dev", tmpdir="/tmp", version="0.1.0")


def mistakes(*sources: PolicySource) -> list[str]:
    with pytest.raises(PolicyError) as raised:
        load(*sources)
    return [str(one) for one in raised.value.diagnostics]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_each_mistake_is_told_at_its_line(case: dict[str, Any]) -> None:
    layer = Layer[case.get("layer", "user").upper()]
    said = mistakes(source("\n" + case["text"], layer))
    lines = [one.removeprefix("mistakes.toml:") for one in said]
    for wanted in case["said"]:
        line, words = wanted.split(": ", 1)
        assert any(one.startswith(line + ":") and words in one for one in lines), (wanted, said)
    assert len(said) == len(case["said"]), said
