"""The key of a grant: identifies an action exactly, so that the same action, and no other, is recognised later.

1. A key holds what the action would do and where: kinds, resource, and for a command its words, assignments, working
   directory and wrappers. A path is known by every spelling it resolved to: a link that moves makes another key.
2. What cannot be named exactly has no key, and so no grant: opaque, guarded, escalating and mode-changing actions,
   commands with words that are globs or unknown or run in an unknown directory, tools whose arguments are incomplete.
3. A command that runs beside others is identified by the whole text too: `a && b` is not `a || b`, `a; b` or `b && a`.
4. Directories and paths inside the project are relative to its root, so that both spellings of a root are one.
5. The agent is no part of an action; it is a field of the grant.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

from policyd.digest import sha256
from policyd.model import Action, Agent, Reach, Role, SimpleCommand, Url, WordKind

RESOURCES = ("command", "path", "url", "tool")
UNNAMED = Agent().profile
"""The profile of an unknown agent."""


class Key(Struct, frozen=True, gc=False):
    """The identity of one action."""

    kinds: tuple[str, ...]
    """Sorted; empty for a mention."""
    resource: str
    """`command`, `path`, `url` or `tool`."""
    words: tuple[str, ...]
    """A command's words; every spelling of a path or URL; every reading of a tool's name. Never empty."""
    cwd: tuple[str, ...] = ()
    """Of a command: every directory it may run in, relative to the project (`.`) or absolute."""
    env: tuple[tuple[str, str], ...] = ()
    """Of a command: what is assigned for it or before it, in order."""
    via: tuple[str, ...] = ()
    """Of a command: the wrappers it was reached through."""
    fed: str = ""
    """Of a command: what it reads as input: `|`, or a digest of its here-documents."""
    reach: str = "entry"
    """Of a path: how far below it the operation goes."""
    arguments: str = ""
    """Of a tool: digest of its arguments."""
    whole: str = ""
    """Of a command beside others: digest of the text they stand in, so that what joins them counts."""
    more: bool = False
    """Covers further words of the command, or any arguments of the tool: never the key of an action."""

    @property
    def parts(self) -> tuple[object, ...]:
        """All of it, as plain values."""
        return (
            self.kinds,
            self.resource,
            self.words,
            self.cwd,
            self.env,
            self.via,
            self.fed,
            self.reach,
            self.arguments,
            self.more,
            *([self.whole] if self.whole else []),
        )

    @property
    def mention(self) -> bool:
        """Whether it is the key of a mention."""
        return not self.kinds


def agent_name(agent: Agent) -> str:
    """Return how grants name `agent`: its exact wire name, else its profile."""
    return agent.name or agent.profile


def known(agent: Agent) -> bool:
    """Say whether `agent` can be identified in a later session."""
    return bool(agent.name) or agent.profile != UNNAMED


def key(action: Action, roots: Iterable[str]) -> Key | None:
    """Return the key of `action` in the project whose root has the spellings `roots`, None if it has none."""
    if action.opaque or action.guarded or action.escalate or action.mode or "switch_mode" in action.kinds:
        return None
    if not action.kinds and action.role is not Role.MENTION:
        return None
    kinds = () if action.role is Role.MENTION else tuple(sorted(action.kinds))
    places = tuple(dict.fromkeys(root.rstrip("/") for root in roots if root))
    if action.command is not None:
        return _command(action, action.command, kinds, places)
    if action.path is not None:
        return None if action.path.glob else _path(action, kinds, places)
    if action.url is not None:
        return Key(kinds, "url", _spellings(action.url))
    return _tool(action, kinds)


def significant(action: Action) -> bool:
    """Say whether a person's answer is about `action`: it is no mention and needs an allow."""
    return action.role is not Role.MENTION and not action.idle


def relative(path: str, roots: tuple[str, ...]) -> str:
    """Return absolute `path` relative to the first root it lies in (`.` for the root itself), else as it is."""
    for root in roots:
        if path == root:
            return "."
        if path.startswith(f"{root}/"):
            return path[len(root) + 1 :] or "."
    return path


def digest(value: object) -> str:
    """Return the digest of a JSON value, the same for every order of its keys."""
    return sha256(json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()


@lru_cache(4)
def _digest_of(text: str) -> str:
    """Return the digest of a text, cached because its commands share it."""
    return digest(text)


def _command(action: Action, command: SimpleCommand, kinds: tuple[str, ...], roots: tuple[str, ...]) -> Key | None:
    assigned = (*command.taint, *command.env)
    words = (*command.argv, *(one.value for one in assigned))
    if command.tainted or command.strict_only or not action.cwd or not command.argv:
        return None
    if any(word.kind is not WordKind.CONST for word in words):
        return None
    return Key(
        kinds,
        "command",
        tuple(word.text for word in command.argv),
        cwd=_set(relative(place, roots) for place in action.cwd),
        env=tuple((one.name, one.value.text) for one in assigned),
        via=command.via,
        fed=command.fed if command.fed in {"", "|"} else _digest_of(command.fed),
        whole=_digest_of(action.whole) if action.whole else "",
    )


def _path(action: Action, kinds: tuple[str, ...], roots: tuple[str, ...]) -> Key:
    assert action.path is not None  # noqa: S101 - the caller looked
    forms = _set(relative(form, roots) for form in action.path.forms)
    reach = "any" if action.role is Role.MENTION else Reach(action.path.reach).value
    return Key(kinds, "path", forms, reach=reach)


def _tool(action: Action, kinds: tuple[str, ...]) -> Key | None:
    if action.tool is None or action.args is None:
        return None
    parts = [part for split in action.tool.splits for part in split] or [action.tool.name]
    if any("/" in part or not part for part in parts):
        return None  # `a/b` of `c` and `b/c` of `a` would be one
    names = _set(f"{server}/{tool}" for server, tool in action.tool.splits) or (action.tool.name,)
    kinds = ("other",) if action.mcp and kinds else kinds  # what the agent says of it counts for strict rules only
    try:
        return Key(kinds, "tool", names, arguments=digest(dict(action.args)))
    except (TypeError, ValueError, RecursionError):
        return None


def _spellings(url: Url) -> tuple[str, ...]:
    port = f":{url.port}" if url.port else ""
    query = f"?{url.query}" if url.query else ""
    return _set(f"{url.scheme}://{url.host}{port}{path}{query}" for path in url.paths or ("/",))


def _set(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(items)))
