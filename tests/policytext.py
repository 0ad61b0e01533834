"""Policies loaded from text."""

from __future__ import annotations

from policyd import policy
from policyd.model import Layer
from policyd.policy import Policy, PolicySource


def source(text: str, layer: Layer = Layer.USER, name: str = "mistakes.toml", *, trusted: bool = False) -> PolicySource:
    return PolicySource(name, text.encode(), layer, trusted)


def load(*sources: PolicySource) -> Policy:
    return policy.load(sources, home="/home/dev", tmpdir="/tmp", version="0.1.0")
