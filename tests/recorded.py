"""Recorded agents, played again with a policy that decides."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime

from policyd.authorizer import Authorizer
from policyd.cli.replay import Replay, Result
from policyd.model import Layer
from policyd.policy import Policy, PolicySource, load
from tests.asking import NOW
from tests.told import PROJECT

DEFAULTS = """
version = 1
[defaults]
"*" = "ask"
read = "allow"
search = "allow"
edit = "allow"
fetch = "allow"
"""
"""Much is allowed inside the project."""


def permissive(rules: str) -> Policy:
    """Return a policy of these defaults and `rules`, for the recorded project."""
    source = PolicySource("p.toml", (DEFAULTS + rules).encode(), Layer.USER)
    return load([source], home="/home/dev", tmpdir="/tmp", fs=PROJECT, version="0.1.0")


def results_of(point: Authorizer, lines: Iterable[object], now: datetime = NOW) -> Iterator[Result]:
    """Yield what `point` decides of each request in a transcript, as it is read."""
    return Replay(point, now=now).run(json.dumps(line).encode() + b"\n" for line in lines)
