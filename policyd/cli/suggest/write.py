"""Writing answered questions in the policy language: exact conditions, and examples.

Rules of this module:

1. Everything literal is escaped; a path is written in all its forms.
2. What the language cannot express is `Unwritable`, never written more broadly.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from urllib.parse import quote

from msgspec import Struct

from policyd.cli.audit.filters import agent
from policyd.cli.suggest.log import Question
from policyd.grants import keys, literal
from policyd.model import READ_KINDS, WRITE_KINDS, Action, Effect, Reach, Url

DEEP = frozenset({"search", "delete", "read"})
Table = dict[str, object]


class Unwritable(ValueError):  # noqa: N818 - a fact about the language
    """The policy language cannot express something."""


class Ask(Struct, frozen=True, eq=False):
    """The one thing of a question that needed an answer."""

    question: Question
    action: Action
    key: keys.Key

    @property
    def agent(self) -> str:
        """The agent as policies name it."""
        return agent(self.question.case.record)


def named(one: Ask, effect: Effect, table: Table) -> Table:
    """Add the agent to an allow."""
    return {"agent": [one.agent], **table} if one.agent and effect is Effect.ALLOW else table


def command_table(one: Ask, effect: Effect) -> Table:
    """Return the conditions for one command."""
    table: Table = {"command": [literal.join(one.key.words)]}
    if effect is Effect.ALLOW:
        table.update(places(one))
    return table


def places(one: Ask) -> Table:
    """Return the directories a command was approved in, its variables, and the outside files it named."""
    table: Table = {"cwd": [literal.escape(place) for place in one.action.cwd]}
    if one.key.env:
        table["env"] = [f"{name}={literal.escape(value)}" for name, value in one.key.env]
    refs = [ref for ref in one.action.within if ref is not None]
    if any(not ref.inside for ref in refs):
        table["within"] = sorted({literal.escape(form) for ref in refs for form in ref.forms})
    return table


def path_table(one: Ask, effect: Effect) -> Table:
    """Return the conditions for one path, in all its forms."""
    path = one.action.path
    assert path is not None  # noqa: S101 - the key says so
    kinds = sorted(one.action.kinds) if effect is Effect.ALLOW else denied_kinds(one.action)
    deep = path.reach is not Reach.ENTRY and effect is Effect.ALLOW and set(kinds) <= DEEP
    return {"kind": kinds, "path": [literal.escape(form) + ("/**" if deep else "") for form in path.forms]}


def denied_kinds(action: Action) -> list[str]:
    """Return the kinds a denial of a path names: a refused edit stands for every change."""
    named_ = ["@write" if kind in WRITE_KINDS else "@read" if kind in READ_KINDS else kind for kind in action.kinds]
    return sorted(set(named_))


def url_table(one: Ask, effect: Effect) -> Table:
    """Return the conditions for one URL."""
    url, origin = origin_of(one)
    query = f"?{literal.escape(url.query)}" if url.query else ""
    paths = [literal.escape(quote(path, safe="/%:@!$&'()*+,;=~")) for path in url.paths[:1]]
    return {"kind": sorted(one.action.kinds), "url": [f"{origin}{path}{query}" for path in paths]}


def tool_table(one: Ask, effect: Effect) -> Table:
    """Return the conditions for one tool with one input."""
    table = any_input(one)
    if given := plain_input(one.action.args or {}):
        table["input"] = given
    return table


def any_input(one: Ask) -> Table:
    """Return the conditions for one tool; Unwritable if its name would be a pattern."""
    if any(literal.SPECIAL & set(word) for word in one.key.words):
        raise Unwritable
    tool: Table = {"tool": list(one.key.words)}
    return tool if one.action.mcp else {"kind": sorted(one.action.kinds), **tool}


def plain_input(args: object, lead: str = "") -> Table:
    """Return arguments as an `input` condition, which also matches calls with further arguments.

    Raises:
        Unwritable: one of them cannot be expressed.
    """
    found: Table = {}
    for name, value in args.items() if isinstance(args, dict) else ():
        if not isinstance(name, str) or not name or "." in name:
            raise Unwritable
        if isinstance(value, dict):
            found.update(plain_input(value, f"{lead}{name}."))
        elif isinstance(value, str):
            found[f"{lead}{name}"] = {"regex": re.escape(value)} if "*" in value else value
        elif isinstance(value, bool | int | float):
            found[f"{lead}{name}"] = value
        else:
            raise Unwritable
    return found


def host(one: Ask, effect: Effect) -> Table:
    """Return the conditions for all pages of one host."""
    _, origin = origin_of(one)
    return named(one, effect, {"kind": sorted(one.action.kinds), "url": [f"{origin}/**"]})


def origin_of(one: Ask) -> tuple[Url, str]:
    """Return a URL, and its scheme, host and port as a pattern begins."""
    url = one.action.url
    assert url is not None  # noqa: S101 - the key says so
    port = f":{url.port}" if url.port not in {0, 80, 443} else ""
    return url, f"{url.scheme}://{url.host}{port}"


# ---- examples --------------------------------------------------------------------------------------


def example(one: Ask) -> object:
    """Return a request as an example for a policy."""
    action, key = one.action, one.key
    kind = sorted(action.kinds)[0]
    if action.command is not None:
        env = "".join(f"{name}={shlex.quote(value)} " for name, value in key.env)
        return {"command": env + shlex.join(key.words), "cwd": action.cwd[0]}
    if action.path is not None:
        return f"{kind} {action.path.forms[0]}"
    if action.url is not None:
        return f"{kind} {action.url.text}"
    table: Table = {"kind": "other" if action.mcp else kind, "tool": key.words[0]}
    return {**table, "input": without_nulls(dict(action.args))} if action.args else table


def without_nulls(value: object) -> object:
    """Return a value without nulls, which TOML lacks."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value if each is not None] if isinstance(value, list) else value


def near(one: Ask) -> object:
    """Return an example that is nearly this request."""
    action = one.action
    kind = sorted(action.kinds)[0]
    if action.command is not None:
        return {"command": shlex.join((*one.key.words, "--zqx0")), "cwd": action.cwd[0]}
    if action.path is not None:
        return f"{kind} {posixpath.dirname(action.path.forms[0])}/zqx0/x"
    if action.url is not None:
        return f"{kind} https://not-{action.url.host}/"
    return {"kind": "other" if action.mcp else kind, "tool": f"{one.key.words[0]}-zqx0"}


def likeness(one: Ask, other: Ask) -> int:
    """Return how similar two requests are: 0 = not at all."""
    if one.key.resource != other.key.resource:
        return 0
    mine, theirs = one.key.words[0].split("/"), other.key.words[0].split("/")
    if one.key.resource == "command":
        mine, theirs = list(one.key.words), list(other.key.words)
    alike = next((at for at, pair in enumerate(zip(mine, theirs, strict=False)) if pair[0] != pair[1]), 99)
    return min(alike, len(mine), len(theirs))
