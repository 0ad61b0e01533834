"""A glob in a command is judged by what it expands to, where that can be known before the command runs."""

from __future__ import annotations

import pytest

from policyd.actions import Machine
from policyd.authorizer import Authorizer
from policyd.model import Layer
from policyd.policy import PolicySource, load
from tests.commandrows import CWD, HOME, OPTIONS, Tree

FILES = Tree({f"{CWD}/{name}": "" for name in ("src/a.py", "src/b.py", "docs/x.md", "mix/a.txt", "mix/k.pem", ".env")})
POLICY = """
version = 1
[defaults]
"*" = "ask"
read = "allow"
search = "allow"
[[rule]]
effect = "deny"
path = "@secrets"
[[rule]]
effect = "allow"
command = "**"
env = "*"
"""


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("ls *", "allow"),
        ("wc -l src/*", "allow"),
        ("head docs/*", "allow"),
        ("cd src && cat *", "allow"),
        ("timeout 5 cat src/*", "allow"),
        ("for f in src/*; do wc -l $f; done", "allow"),
        ("git diff -- src/*", "allow"),
        ("grep -r foo src/*", "allow"),
        ("rm -r src/*", "allow"),
        ("cat mix/*", "deny"),
        ("grep -r foo m*", "ask"),
        ("cat mix/[a-j]*", "ask"),
        ("cat .[[=e=]]nv", "deny"),
        ("cat src/[[=a=]].py", "allow"),
        ("cat nodir/*", "ask"),
        ("cat new*", "ask"),
        ("cat src/**", "allow"),
        ("cat $D/*", "ask"),
        ("cp src/a.py src/*", "ask"),
        ("git show HEAD:src/*", "ask"),
        ("git show HEAD:*", "ask"),
        ("ssh h 'cat src/*'", "ask"),
        ("sudo cat src/*", "ask"),
        ("shopt -s dotglob; cat src/*", "ask"),
        ("GLOBIGNORE=x; cat src/*", "ask"),
        ("mytool --file=src/*", "ask"),
        ("for f in src/*; do mytool $f.*; done", "ask"),
    ],
)
def test_a_glob_is_judged_by_what_is_there(command: str, effect: str) -> None:
    policy = load([PolicySource("t", POLICY.encode(), Layer.USER)], home=HOME, tmpdir="/tmp", fs=FILES, version="1.0")
    point = Authorizer(policy, machine=Machine(home=HOME, fs=FILES), cwd=CWD)
    point.observe("c2a", {"id": 1, "method": "session/new", "params": {"cwd": CWD, "mcpServers": []}})
    point.observe("a2c", {"id": 1, "result": {"sessionId": "s"}})
    call = {"toolCallId": "c", "kind": "execute", "rawInput": {"command": command}}
    assert point.decide({"sessionId": "s", "toolCall": call, "options": OPTIONS}).effect.word == effect
