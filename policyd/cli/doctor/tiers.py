"""The tier of this installation, by which of policyd's own files the user who runs agents could change.

An agent runs as this user, so an approved program can change whatever this user can. Only the kernel's view counts:
owner, mode and access of every directory on the way, both of the path and of its target. Nothing is written.
"""

from __future__ import annotations

import importlib.util
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

import policyd
from policyd.cli.inforce import InForce
from policyd.storage import sockets
from policyd.storage.places import DAEMON_AUDIT

PACKAGES = ("msgspec", "re2", "tree_sitter", "tree_sitter_bash", "pydantic", "pydantic_core", "watchfiles")
ADDS = {
    "mediated": "`policyd proxy` keeps the agent's mode asking, judges fs and terminal calls, notices unasked ones",
    "isolated": "the daemon runs as another user: policies, grants and audit are out of the agent's reach",
    "managed": "isolated, under root-owned policies that no user, project, grant or prompt lifts",
}
UNPROVEN = {
    "mediated": "agent and policyd share a user: a program that was approved can change what is listed here; "
    "nothing is said about agents that are started without the proxy",
    "isolated": "agents that are started without the proxy, or through `policyd proxy` without `--connect`",
    "managed": "root; what an approved command does next; whether the audit is copied off this machine",
}


class Part(Struct, frozen=True):
    """One of policyd's own files or directories."""

    what: str
    path: str
    why: str
    """Why this user could change it; empty if not."""


class Tier(Struct, frozen=True):
    """The tier, what it adds, what it does not prove, and the parts it depends on."""

    word: str
    adds: str
    unproven: str
    parts: tuple[Part, ...]


def tier(state: InForce, socket: str = sockets.SYSTEM) -> Tier:
    """Return the tier of an agent started here, with every part of policyd and whether this user could change it."""
    checked = tuple(Part(what, path, changeable(path)) for what, path in own_files(state))
    word = "mediated"
    if foreign(socket):
        managed = any(source.layer.word == "managed" for source in state.found.sources)
        word = "managed" if managed and not any(part.why for part in checked if part.what == "managed") else "isolated"
    return Tier(word, ADDS[word], UNPROVEN[word], checked)


def foreign(socket: str) -> bool:
    """Say whether `socket` is the socket of another user's daemon."""
    try:
        status = os.stat(socket)
    except OSError:
        return False
    return stat.S_ISSOCK(status.st_mode) and status.st_uid in sockets.daemon_uids() - {os.getuid()}


def own_files(state: InForce) -> Iterator[tuple[str, str]]:
    """Yield the existing files that policyd consists of, reads or writes."""
    yield "interpreter", sys.executable
    yield "program", policyd.__path__[0]
    yield from packages()
    yield from (("policy", source.name) for source in state.found.sources if source.layer.word != "managed")
    yield from (("managed", source.name) for source in state.found.sources if source.layer.word == "managed")
    places = state.places
    named = (
        ("managed", places.managed),
        ("settings", (places.user_settings,)),
        ("policies", (places.user_policies,)),
        ("cache", (places.cache,)),
        ("grants", (places.grants,)),
        ("trust", (places.trust,)),
        ("inbox", (places.inbox,)),
        ("prompt", programs(state)),
        ("audit", (state.audit.rstrip("/"), DAEMON_AUDIT)),
    )
    yield from ((what, path) for what, paths in named for path in paths if os.path.lexists(path))


def programs(state: InForce) -> tuple[str, ...]:
    """Return the prompt hooks."""
    steps = state.loaded.settings.prompt if state.loaded else ()
    return tuple(step.partition(":")[2] for step in steps if step.startswith("command:"))


def packages() -> Iterator[tuple[str, str]]:
    """Yield the directories of the packages policyd uses, and a package that is writable within its directory."""
    specs = [importlib.util.find_spec(name) for name in PACKAGES]
    paths = [
        spec.submodule_search_locations[0] if spec.submodule_search_locations else spec.origin
        for spec in specs
        if spec is not None and spec.origin is not None
    ]
    folders = dict.fromkeys(os.path.dirname(path) for path in paths if path)
    yield from (("packages", folder) for folder in folders)
    yield from (
        ("package", path) for path in paths if path and changeable(path) and not changeable(os.path.dirname(path))
    )


def changeable(path: str) -> str:
    """Return why this user could change `path` or its target, empty if not."""
    if os.getuid() == 0:
        return "you are root"
    names = dict.fromkeys((os.path.abspath(path), os.path.realpath(path)))
    return next((why for name in names for why in (reached(name),) if why), "")


def reached(path: str) -> str:
    """Return why this user could change or replace the entry at `path`, checking each directory on the way."""
    below: os.stat_result | None = None
    for place in (path, *map(str, Path(path).parents)):
        try:
            status = os.lstat(place)
        except OSError:  # missing or not visible: the directory above decides
            continue
        if why := own(status, place, below):
            return why
        below = status
    return ""


def own(status: os.stat_result, place: str, below: os.stat_result | None) -> str:
    """Return why this user could change one entry, or replace the one below it."""
    if stat.S_ISLNK(status.st_mode):
        return f"{place} is your link" if status.st_uid == os.getuid() else ""
    if status.st_uid == os.getuid():
        return f"{place} is yours"
    if not os.access(place, os.W_OK):
        return ""
    sticky = below is not None and status.st_mode & stat.S_ISVTX and below.st_uid != os.getuid()
    return "" if sticky else f"you may write {place}"
