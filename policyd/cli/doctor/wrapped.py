"""Clients' own settings: which of the agents named there are not started through `policyd proxy`.

Rules of this module:

1. Files are parsed as their client does, and only data files: Lua is code and is not read.
2. Wrapped means: the command starts policyd by an absolute path, and `proxy` accepts its arguments.
3. A repository's `.acpxrc.json` that names agents overrides the user's; this is reported even if it wraps them.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from policyd.cli import jsonc
from policyd.proxy.options import Options, UsageError, parse
from policyd.storage.policies import read_plain

NOTES = {
    "zed": "agents of Zed's own that are not named in its settings are started without policyd",
    "jetbrains": "agents the IDE installed itself are started without policyd",
    "acpx": "agents that are not named in its settings are started without policyd: `acpx codex` with no entry `codex`",
    "codecompanion": "its configuration is Lua: look there for `commands` that do not begin with policyd",
    "avante": "its configuration is Lua: look there for `acp_providers` whose command is not policyd",
    "toad": "it keeps no configuration of agents: those of its menu are never wrapped",
}


class Entry(Struct, frozen=True):
    """One agent in a client's settings."""

    client: str
    file: str
    name: str
    command: tuple[str, ...]
    problem: str = ""
    """Why it is not, or not correctly, under policy; empty if it is."""
    note: str = ""


class Place(Struct, frozen=True):
    """A settings file of a client."""

    client: str
    path: str
    read: Callable[[str], object]
    entries: Callable[[str, Mapping[str, object]], Iterator[Entry]]


def places(home: str, cwd: str, config: str) -> tuple[Place, ...]:
    """Return the settings files to check.

    Args:
        home: the user's home directory.
        cwd: the project.
        config: `$XDG_CONFIG_HOME`.
    """
    flatpak = f"{home}/.var/app/dev.zed.Zed/config/zed/settings.json"
    zed = dict.fromkeys((f"{config}/zed/settings.json", f"{home}/.config/zed/settings.json", flatpak))
    return (
        *(Place("zed", path, jsonc.loads, zed_entries) for path in zed),
        Place("jetbrains", f"{home}/.jetbrains/acp.json", jsonc.loads, jetbrains_entries),
        Place("acpx", f"{home}/.acpx/config.json", json.loads, acpx_entries),
        Place("acpx", f"{cwd}/.acpxrc.json", json.loads, acpx_project_entries),
    )


def look(place: Place) -> list[Entry] | None:
    """Return the agents in a settings file, None if there is no such file."""
    try:
        value = place.read(read_plain(place.path).decode("utf-8-sig"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        return [Entry(place.client, place.path, "", (), f"cannot be read: {error}")]
    if not isinstance(value, dict):
        return [Entry(place.client, place.path, "", (), "cannot be read: it holds no table")]
    return list(place.entries(place.path, value))


def tables(value: Mapping[str, object], key: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the named tables below `key`; anything else counts as an empty table."""
    table = value.get(key)
    if isinstance(table, dict):
        yield from ((str(name), entry if isinstance(entry, dict) else {}) for name, entry in table.items())


def zed_entries(path: str, value: Mapping[str, object]) -> Iterator[Entry]:
    """`agent_servers` of Zed: custom ones have a command, registry ones and built-in ones have none."""
    for name, table in tables(value, "agent_servers"):
        words = spelled(table)
        if not words:
            kind = "from Zed's registry" if table.get("type") == "registry" else "built into Zed"
            why = f"is {kind} and cannot be wrapped: replace it by `policyd init --client zed --agent NAME`"
            yield Entry("zed", path, name, (), why)
            continue
        mode = table.get("default_mode")
        note = f"sets `default_mode` {json.dumps(mode)} after opening a session: policyd refuses unsafe ones"
        yield Entry("zed", path, name, words, unwrapped(words), note if mode else "")


def jetbrains_entries(path: str, value: Mapping[str, object]) -> Iterator[Entry]:
    """`agent_servers` of the JetBrains IDEs."""
    for name, table in tables(value, "agent_servers"):
        words = spelled(table)
        why = unwrapped(words) if words else "has no command: the IDE starts it itself"
        yield Entry("jetbrains", path, name, words, why)


def acpx_entries(path: str, value: Mapping[str, object]) -> Iterator[Entry]:
    """`agents` of acpx."""
    for name, table in tables(value, "agents"):
        words = spelled(table)
        found = policed(words) if words else "has no command"
        yield Entry("acpx", path, name, words, found if isinstance(found, str) else answered_by_flags(found))


def acpx_project_entries(path: str, value: Mapping[str, object]) -> Iterator[Entry]:
    """`agents` of a repository, which override the user's."""
    for entry in acpx_entries(path, value):
        said = f"; {entry.problem}" if entry.problem else ""
        why = f"the repository chooses how this agent is started, over ~/.acpx/config.json{said}"
        yield Entry(entry.client, entry.file, entry.name, entry.command, why)


def spelled(table: Mapping[str, object]) -> tuple[str, ...]:
    """Return the words of an entry: `argv`, or `command` with `args`, or a command line in `command` alone."""
    argv, command, args = table.get("argv"), table.get("command"), table.get("args")
    if isinstance(argv, list):
        return tuple(map(str, argv))
    if isinstance(command, dict):  # an older Zed: {"command": {"path": …, "args": …}}
        return spelled({"command": command.get("path"), "args": command.get("args")})
    if not isinstance(command, str) or not command:
        return ()
    if isinstance(args, list):
        return (command, *map(str, args))
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return (command,)


def unwrapped(words: tuple[str, ...]) -> str:
    """Return why a command does not run its agent under policy, empty if it does."""
    found = policed(words)
    return found if isinstance(found, str) else ""


def policed(words: tuple[str, ...]) -> Options | str:
    """Return policyd's options in a command that runs its agent under policy, or why it does not."""
    rest = past_env(words)
    behind = behind_policyd(rest)
    if behind is None:
        return f"is not wrapped: it starts {shlex.join(words[:3])}"
    if not behind or behind[0] != "proxy":
        return "starts policyd, but not `policyd proxy`"
    try:
        options = parse(list(behind[1:]))
    except UsageError as error:
        return f"does not start: {error}"
    if not options.command:
        return "names no agent behind `policyd proxy --`"
    return wrong(rest[0]) or wrong(options.command[0]) or options


def past_env(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words behind a plain `env NAME=VALUE …`."""
    if not words or os.path.basename(words[0]) != "env":
        return words
    rest = list(words[1:])
    while rest and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*=.*", rest[0], re.DOTALL):
        rest.pop(0)
    return tuple(rest)


def behind_policyd(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the arguments to policyd, None if something else is started."""
    if not words:
        return None
    if os.path.basename(words[0]) == "policyd":
        return words[1:]
    behind = words[2:] if words[1:2] in {("-P",), ("-I",)} else words[1:]
    if os.path.basename(words[0]).startswith("python") and behind[:2] == ("-m", "policyd"):
        return behind[2:]
    return None


def wrong(program: str) -> str:
    """Return what is wrong with a program's name, empty if it is absolute and executable."""
    if not os.path.isabs(program):
        return f"does not name `{program}` by an absolute path: it may not be found, or another one may be"
    return "" if os.access(program, os.X_OK) else f"names {program}, which is not there or not executable"


def answered_by_flags(options: Options) -> str:
    """Return what is wrong with an entry of acpx, whose flags may answer in place of a person."""
    if options.prompt and "client" not in options.prompt:
        return ""
    return "would let acpx's flags answer questions if it gave another name: write `policyd proxy --prompt none -- …`"
