"""Setup advice for each agent: its command, what it asks about, and which of its own settings help.

The data is in `advice.toml`, a table for each profile. A setting is a part of one of the agent's own files; `state`
compares it with the actual file. Nothing here writes.
"""

from __future__ import annotations

import json
import os
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec
from msgspec import Struct

from policyd.cli import jsonc
from policyd.storage.places import Places


class File(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`[[NAME.file]]`: settings in one of the agent's own files."""

    path: str
    """The file's path; `~/` is home."""
    why: str
    text: str
    """The settings: JSON or TOML, as the path's ending says."""
    needed: bool = False
    """Without them the agent hardly asks at all."""

    @property
    def wanted(self) -> dict[str, object]:
        """The settings as a table."""
        return dict(json.loads(self.text) if self.path.endswith(".json") else tomllib.loads(self.text))


class Advice(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`[NAME]`: one agent."""

    title: str
    verified: str
    """How its behaviour is known, with the version."""
    asked: list[str]
    """What it asks about in its asking mode."""
    command: list[str] = []
    """The command a client starts it with."""
    install: str = ""
    """The command that installs it."""
    codecompanion: str = ""
    """The adapter of codecompanion.nvim that is extended."""
    zed: str = ""
    """The key Zed treats specially and that must be kept."""
    gated: bool = True
    """Whether it asks at all."""
    set: list[str] = []
    """What else to do or know, in words."""
    file: list[File] = []


class State(Struct, frozen=True):
    """Whether one of an agent's files has the settings."""

    path: str
    word: str
    """`set`, `not set`, `not there`, or `unreadable`."""
    missing: tuple[str, ...] = ()
    """Dotted keys with another value or none."""


@cache
def shipped() -> dict[str, Advice]:
    """Return the advice of every profile, by short name."""
    text = (files("policyd") / "cli" / "advice.toml").read_text("utf-8")
    return {name: msgspec.convert(table, Advice) for name, table in tomllib.loads(text).items()}


def of(short: str) -> Advice:
    """Return the advice for a profile, that of `generic` where there is none."""
    return shipped().get(short, shipped()["generic"])


def place(path: str, where: Places) -> str:
    """Return the absolute path of another program's file; `~/.config` is what `XDG_CONFIG_HOME` says."""
    if path.startswith("~/.config/"):
        return os.path.join(os.path.dirname(where.config), path[len("~/.config/") :])
    return os.path.join(where.home, path[2:]) if path.startswith("~/") else path


def state(file: File, where: Places) -> State:
    """Compare the settings an agent's file should have with the file."""
    path = place(file.path, where)
    if path.endswith(".json") and not os.path.exists(path) and os.path.exists(f"{path}c"):
        path += "c"
    try:
        text = Path(path).read_text("utf-8-sig")
        current = tomllib.loads(text) if path.endswith(".toml") else jsonc.loads(text)
    except FileNotFoundError:
        return State(path, "not there")
    except (OSError, ValueError, RecursionError):
        return State(path, "unreadable")
    missing = tuple(absent(file.wanted, current))
    return State(path, "not set" if missing else "set", missing)


def absent(wanted: object, current: object, key: str = "") -> list[str]:
    """Return the dotted keys of `wanted` that `current` lacks; further items in its lists do not matter."""
    if isinstance(wanted, dict):
        table = current if isinstance(current, dict) else {}
        return [each for name in wanted for each in absent(wanted[name], table.get(name), f"{key}.{name}".lstrip("."))]
    if isinstance(wanted, list) and isinstance(current, list):
        return [] if all(item in current for item in wanted) else [key]
    return [] if wanted == current else [key]
