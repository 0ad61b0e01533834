"""A block as written, and which blocks are plain: so simple that they cannot hold a mistake.

Most rules of a long policy are plain: an effect, perhaps a kind, and one list of simple patterns. They pass the checks
of `combinations` and `compile` by their spelling alone, so they are compiled only when needed. `plain_resource` may
return None for any block; for a block it accepts no check may find a mistake, as a test verifies.

A plain path is relative: the start of an absolute one has to be resolved when the policy is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from policyd.model import KINDS

Table = Mapping[str, Any]
DEFAULT_KEYS = (*KINDS, "*", "outside", "mcp")
"""What `[defaults]` may give an effect, beside custom kinds."""
TEXTS = frozenset(("kind", "path", "command", "cwd", "within", "env", "url", "tool", "agent", "mode", "user", "group"))
"""Keys whose value may be one text instead of a list."""
PLAIN_KEYS = {
    frozenset({"kind"}): "",
    frozenset({"path"}): "path",
    frozenset({"kind", "path"}): "path",
    frozenset({"command"}): "command",
    frozenset({"url"}): "url",
    frozenset({"kind", "url"}): "url",
    frozenset({"tool"}): "tool",
}
"""The conditions a plain block may have -> its resource."""
NOT_CONDITIONS = frozenset({"effect", "id", "reason", "match", "not_match"})
"""Keys that are not conditions."""
PLAIN: Mapping[str, Callable[[str], object]] = {
    "kind": frozenset((*KINDS, "@read", "@write", "*")).__contains__,
    "path": re.compile(r"(?!.*(?:\.\.|\.\*|\*\*[^/]|[^/]\*\*))[A-Za-z0-9_.*-][A-Za-z0-9_.*/-]{0,199}").fullmatch,
    "command": re.compile(
        r"(?!mcp__|[A-Za-z0-9_]+=|/[^/]*\.\*[^/]*/$)[A-Za-z0-9_./*=,-][A-Za-z0-9_./*=, -]*"
    ).fullmatch,
    "url": re.compile(
        r"(?:https?://)?(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?\.){1,6}[a-z]{2,20}(?:/[A-Za-z0-9_/*-]*)?"
    ).fullmatch,
    "tool": re.compile(r"(?!mcp__)[A-Za-z0-9_-]+(?:/[A-Za-z0-9_*-]+)?").fullmatch,
}
"""Matches only valid patterns of its type, and none in another tool's spelling."""


def as_list(value: Any) -> Any:  # noqa: ANN401 - of a TOML file
    """Return one text as a list of one."""
    return [value] if isinstance(value, str) else value


def is_kind(word: str) -> bool:
    """Say whether a word is a kind, standard or custom."""
    return word in KINDS or (word.startswith("_") and len(word) > 1)


def normal(table: Table) -> dict[str, Any]:
    """Return a block with a list wherever one is possible."""
    found = {key: as_list(value) if key in TEXTS else value for key, value in table.items()}
    if "label" in found:
        found["label"] = {key: as_list(value) for key, value in table["label"].items()}
    if "unless" in found:
        unless = table["unless"]
        found["unless"] = [normal(one) for one in ([unless] if isinstance(unless, dict) else unless)]
    return found


def examples_of(table: Table, key: str) -> list[Any]:
    """Return the examples of a rule under `match` or `not_match`."""
    value = table.get(key, [])
    return value if isinstance(value, list) else [value]


def plain_resource(table: Table) -> str | None:
    """Return the resource of a well-formed block if it is plain, else None."""
    about = frozenset(table.keys() - NOT_CONDITIONS)
    resource = PLAIN_KEYS.get(about)
    if resource is None or (len(about) == 1 and resource == "path" and table["effect"] == "allow"):
        return None
    for key in about:
        value = table[key]
        if not (PLAIN[key](value) if isinstance(value, str) else all(map(PLAIN[key], value))):
            return None
    return resource


def heads(table: Table) -> Iterator[str]:
    """Yield the literal heads of a plain block's paths: their names in front of the first wildcard."""
    for text in as_list(table.get("path", ())):
        front = text.partition("*")[0]
        whole = front if front == text else front.rpartition("/")[0]
        names = "/".join([name for name in whole.split("/") if name not in ("", ".")])
        if names:
            yield names
