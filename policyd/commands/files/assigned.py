"""What the variables that are set for a command name: files and URLs its program may take from its environment.

Rules of this module:

1. Only strict rules look at it, and it is no word of the command: whoever tolerates the variable tolerates where it
   leads. A harmless variable (`variables.harmless`) names nothing, nor does `PATH`: what it finds runs, and is no file
   that is read.
2. Most values are no paths (`NODE_ENV=production`): one counts as such only with a `.`, a `/` or a `~` in it. Behind
   a scheme that names no other machine it is a path as it stands: `sqlite:///a.db`, `sqlite:////tmp/a.db`.
3. `…_proxy` is a host, with or without a scheme: curl(1), ENVIRONMENT.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from policyd.commands.files import mentions
from policyd.commands.state.variables import harmless
from policyd.model import FileUse, Role, SimpleCommand, UrlUse, Word, WordKind

_LOCAL = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+:///?").match
NOBODY = -1
"""The command of such a use: no allow of a command carries it or answers for where it lies."""


def named(command: SimpleCommand) -> tuple[list[FileUse], list[UrlUse], list[str]]:
    """Return the files and URLs in the values that `command` and what it wraps are given, and why there may be more."""
    files: list[FileUse] = []
    urls: list[UrlUse] = []
    env = command.env
    while command.inner is not None:
        command = command.inner
        env += command.env
    for each in dict.fromkeys(replace(each, exported=True) for each in env):
        if each.name == "PATH" or harmless(each.name, each.value):
            continue
        for part in mentions.parts(_path(each.value)):
            text = part.text
            if part.kind is WordKind.UNKNOWN:
                return files, urls, [f"`{each.name}=` names more than is looked at"]
            if mentions.is_remote(part):
                urls.append(UrlUse(text, Role.MENTION, NOBODY))
            elif any(mark in text for mark in "./~"):
                files.append(FileUse("read", part, Role.MENTION, NOBODY, cwd=command.cwd))
        host = each.value.text if each.value.kind is WordKind.CONST else ""
        if host and "://" not in host and each.name.lower().endswith("_proxy"):
            urls.append(UrlUse(f"http://{host}", Role.MENTION, NOBODY))
    return files, urls, []


def _path(value: Word) -> Word:
    scheme = _LOCAL(value.text)
    if scheme is None or value.kind is not WordKind.CONST or mentions.is_remote(value):
        return value
    return Word(value.text[scheme.end() :])
