"""Decide a command as a request for permission would be decided: policy text in, decision out."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib import resources
from itertools import count
from typing import Any

from policyd.actions import Machine
from policyd.authorizer import Authorizer
from policyd.model import Decision, Layer
from policyd.policy import Policy, PolicySource, load
from tests.fakes import FakeFilesystem

HOME = "/home/dev"
CWD = "/home/dev/app"


class Tree(FakeFilesystem):
    """A project that is nearly empty."""

    def is_dir(self, path: str) -> bool | None:
        """Look at what the path leads to, as the kernel does."""
        return super().is_dir(self.resolve(path))


KEPT = "/home/dev/kept"
"""A project that has a `.env`, with others below, one of them in a hidden directory of `docs` only."""
FILES = Tree(
    {
        CWD: None,
        f"{CWD}/src": None,
        f"{KEPT}/.git/HEAD": "",
        f"{KEPT}/.env": "",
        f"{KEPT}/.ci/.env": "",
        f"{KEPT}/src/.env": "",
        f"{KEPT}/lib/a": "",
        f"{KEPT}/docs/.d/.env": "",
    }
)
OPTIONS = [
    {"optionId": "once", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


def data(name: str) -> str:
    """Return the text of a file of `tests/data/commands`."""
    return (resources.files("tests") / "data" / "commands" / name).read_text("utf-8")


def table(name: str) -> dict[str, Any]:
    """Return a TOML file of `tests/data/commands`."""
    return tomllib.loads(data(name))


def rows(name: str) -> list[dict[str, Any]]:
    """Return a JSON Lines file of `tests/data/commands`."""
    return [json.loads(line) for line in data(name).splitlines()]


@cache
def policy(text: str) -> Policy:
    """Load one user policy."""
    return load([PolicySource("t.toml", text.encode(), Layer.USER)], home=HOME, tmpdir="/tmp", fs=FILES, version="1.0")


@lru_cache(64)
def _session(text: str, cwd: str, shell: str) -> tuple[Authorizer, Iterator[int]]:
    """Open one session for every command that is decided alike; each is a call of its own."""
    authorizer = Authorizer(policy(text), machine=Machine(home=HOME, fs=FILES, shell=shell), cwd=cwd)
    new = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": cwd, "mcpServers": []}}
    authorizer.observe("c2a", new)
    authorizer.observe("a2c", {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}})
    return authorizer, count()


def decide(
    text: str, command: str, *, cwd: str = CWD, shell: str = "bash", given: Mapping[str, object] | None = None
) -> Decision:
    """Decide `command` (or the raw input `given`) under the policy `text`."""
    authorizer, numbers = _session(text, cwd, shell)
    call = {"toolCallId": f"c{next(numbers)}", "kind": "execute", "title": command.split("\n")[0]}
    raw = {"command": command} if given is None else given
    return authorizer.decide({"sessionId": "s", "toolCall": {**call, "rawInput": raw}, "options": OPTIONS})
