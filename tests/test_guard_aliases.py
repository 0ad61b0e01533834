"""policyd's own files, by 500 made-up names and through 30 kinds of command: nothing is allowed by anybody's rule."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from policyd.actions import Machine, examples
from policyd.authorizer import Authorizer
from policyd.cli.replay import PLAIN
from policyd.cli.trials.tree import Tree
from policyd.model import Effect, Layer, Request
from policyd.policy import PolicySource, load

HOME, APP = "/home/dev", "/home/dev/app"
OWN = [
    f"{HOME}/.config/policyd/policies.d/mine.toml",
    f"{HOME}/.config/policyd/policyd.toml",
    f"{HOME}/.local/state/policyd/grants/abc.toml",
    f"{HOME}/.local/state/policyd/trust/abc.toml",
    f"{HOME}/.local/state/policyd/audit/audit.jsonl",
    "/etc/policyd/policies.d/10-company.toml",
    f"{APP}/.policyd/team.toml",
]
LINKS = {
    f"{APP}/conf": f"{HOME}/.config",
    f"{APP}/deep/er": "../../.local/state",
    f"{APP}/etc": "/etc",
    f"{APP}/self": APP,
    f"{HOME}/again": HOME,
}
ROADS = {f"{HOME}/.config": f"{APP}/conf", f"{HOME}/.local/state": f"{APP}/deep/er", "/etc": f"{APP}/etc"}
EVERYTHING = """
version = 1
[[rule]]
effect = "allow"
kind   = "*"
path   = ["/**"]
[[rule]]
effect  = "allow"
command = "**"
cwd     = ["/**"]
within  = ["/**"]
env     = ["*"]
[[rule]]
effect = "allow"
kind   = "*"
opaque = true
"""
COMMANDS = [
    "cat {}",
    "tee {}",
    "cp x {}",
    "mv x {}",
    "rm {}",
    "echo x > {}",
    "echo x >> {}",
    "sed -i s/a/b/ {}",
    "cat < {}",
    "ln x {}",
    "ln -s {} y",
    "truncate -s 0 {}",
    "unknown-tool {}",
    "unknown-tool --out={}",
    "sudo tee {}",
    "bash -c 'tee {}'",
    "env A=1 rm {}",
    "timeout 5 rm {}",
    "find {} -delete",
    "dd of={}",
    "install x {}",
    "touch {}",
    "chmod 644 {}",
    "git diff {}",
    "vim {}",
    "python x.py {}",
    "nohup rm {}",
    "xargs rm {}",
    "( rm {} )",
    "true && rm {}",
]


def alias(path: str, chance: random.Random) -> str:
    """Return another name of `path`."""
    for real, road in ROADS.items():
        if path.startswith(real + "/") and chance.random() < 0.4:
            path = road + path[len(real) :]
    parts = path.strip("/").split("/")
    out: list[str] = []
    for part in parts:
        if out and chance.random() < 0.3:
            out.append(chance.choice([".", "", "x/..", "self/.." if out[-1] == "app" else "."]))
        out.append(part)
    text = "/" + "/".join(out)
    if text.startswith(f"{HOME}/") and chance.random() < 0.2:
        return "~" + text[len(HOME) :]
    return f"../../..{text}" if chance.random() < 0.2 else text


@pytest.fixture(scope="module")
def point() -> Authorizer:
    files = dict.fromkeys([*OWN, f"{APP}/x", f"{APP}/x.py"], "")
    tree = Tree(files, LINKS, HOME)
    own = (f"{HOME}/.config/policyd", f"{HOME}/.local/state/policyd", "/etc/policyd")
    source = PolicySource("all.toml", EVERYTHING.encode(), Layer.USER)
    policy = load([source], home=HOME, tmpdir="/tmp", fs=tree, version="0.1.0")
    return Authorizer(policy, machine=Machine(HOME, tree, reserved=own), cwd=APP)


def decided(point: Authorizer, text: str) -> Effect:
    talk = point.conversation
    point.in_force("")
    actions = examples.example_actions(text, {}, "", talk.around(""), talk.profile)
    return point.settle(Request("", "", text, PLAIN, actions), now=datetime(2026, 1, 1, tzinfo=UTC)).effect


def test_the_policy_of_this_test_allows_everything_else(point: Authorizer) -> None:
    assert decided(point, "edit /home/dev/other") is Effect.ALLOW
    assert decided(point, "execute tee /home/dev/other") is Effect.ALLOW


def test_no_alias_of_a_guarded_path_is_allowed(point: Authorizer) -> None:
    chance = random.Random(7)  # noqa: S311
    names = [alias(path, chance) for path in OWN for _ in range(500 // len(OWN) + 1)]
    assert len(set(names)) > 200
    let_through = [
        f"{kind} {name}"
        for name in names
        for kind in ("edit", "delete")
        if decided(point, f"{kind} {name}") is Effect.ALLOW
    ]
    assert let_through == []


def test_no_command_that_names_a_guarded_path_is_allowed(point: Authorizer) -> None:
    chance = random.Random(11)  # noqa: S311
    rows = [command.format(alias(chance.choice(OWN), chance)) for command in COMMANDS for _ in range(6)]
    assert [row for row in rows if decided(point, f"execute {row}") is Effect.ALLOW] == []
