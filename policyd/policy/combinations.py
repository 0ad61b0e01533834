"""Combinations of keys that a block may not have. Only the presence of keys and simple values are looked at.

Each check exists because the combination would load and mean less, or more, than its author thinks.
"""

from __future__ import annotations

from collections.abc import Iterator

from policyd.policy.blocks import Table
from policyd.policy.errors import Mistake, listed

RESOURCES = ("path", "command", "url", "tool")
NARROW = ("cwd", "within", "env")


def resource_of(block: Table) -> str:
    """Return the resource a block is about: path, command or URL, else the tool, else nothing."""
    return next((key for key in RESOURCES if key in block), "")


def mistakes(block: Table) -> Iterator[Mistake]:
    """Yield every combination of a rule or default that must not load."""
    yield from about_resources(block)
    yield from about_kinds(block)
    yield from about_narrowing(block)
    yield from about_effect(block)
    yield from about_people(block)
    if block["effect"] == "allow" and "interactive" in block:
        yield Mistake(
            "`interactive` in an allow rule would allow exactly when nobody can be asked",
            "put it in a `[[default]]` or a deny or ask rule",
            key="interactive",
        )
    for exception in block.get("unless", ()):
        yield from about_exception(block, exception)
        yield from about_people(exception, "unless.")


def about_resources(block: Table) -> Iterator[Mistake]:
    """A rule has one resource, or `kind`."""
    given = [key for key in ("path", "command", "url") if key in block]
    if len(given) > 1:
        yield Mistake(
            f"`{given[0]}` and `{given[1]}` in one rule: an action has one resource",
            "write two rules" + (", or `within` for the files of a command" if "command" in given else ""),
            key=given[1],
        )
    if not resource_of(block) and "kind" not in block:
        yield Mistake(
            "a rule needs `kind` or one of `path`, `command`, `url`, `tool`" + only(block),
            'write what it is about; `kind = "*"` says every kind',
        )
    if block["effect"] == "allow" and "path" in block and "kind" not in block:
        yield Mistake(
            "an allow rule with `path` does not say what may be done there",
            'name `kind`, such as `kind = "@read"` or `kind = ["read", "edit"]`',
            key="path",
        )


def about_kinds(block: Table) -> Iterator[Mistake]:
    """A kind that the resource never has would make a rule that never holds."""
    kinds = set(block.get("kind", ("*",)))
    if "*" in kinds:
        return
    if "command" in block and "execute" not in kinds:
        yield Mistake(
            f"`command` with {listed(sorted(kinds))}: a command is of kind `execute`",
            "remove `kind`; what a command does to files is for rules with `path`",
            key="kind",
        )
    mcp = "tool" in block and all("/" in tool for tool in block["tool"])
    if block["effect"] == "allow" and mcp and "other" not in kinds:
        yield Mistake(
            f"`tool` of a server with {listed(sorted(kinds))}: an allow sees every MCP call as `other`",
            "remove `kind`",
            key="kind",
        )


def only(block: Table) -> str:
    """Say what a rule without a condition has instead."""
    if block.get("match") or block.get("not_match"):
        return "; `match` and `not_match` are examples, not conditions"
    return ""


def about_narrowing(block: Table) -> Iterator[Mistake]:
    """`cwd`, `within` and `env` narrow the command of an allow; `input` needs a call."""
    for key in NARROW:
        if key not in block:
            continue
        if "command" not in block:
            yield Mistake(f"`{key}` without `command`", f"write `command` beside it, or remove `{key}`", key=key)
        elif block["effect"] != "allow":
            yield Mistake(
                f"`{key}` only narrows an allow",
                "remove it, or write the exception as `unless = { command = …, " + key + " = … }`",
                key=key,
            )
    if "input" in block and not resource_of(block):
        yield Mistake("`input` without a resource", "write `tool` (or `path`, `command`, `url`) beside it", key="input")


def about_effect(block: Table) -> Iterator[Mistake]:
    """`opaque` and `escalate` go with an allow on kinds, `remember` with an ask."""
    effect = block["effect"]
    for key in ("opaque", "escalate"):
        if not block.get(key):
            continue
        if block["effect"] != "allow":
            yield Mistake(
                f"`{key}` on a rule that does not allow",
                "remove it: a deny or ask rule without a resource already reads so",
                key=key,
            )
        elif resource_of(block) or "kind" not in block:
            yield Mistake(
                f"`{key}` goes with `kind`, not with a resource: what is not understood has none",
                f'write a rule of its own, `kind = "execute", {key} = true`',
                key=key,
            )
    if "remember" in block and block["effect"] != "ask":
        found = f"`remember` on a rule that does not ask (`{effect}`)"
        yield Mistake(found, "remove it", key="remember")


def about_people(table: Table, place: str = "") -> Iterator[Mistake]:
    """Nobody is called `@name`: where a set cannot stand, it would be a condition that never holds."""
    for key in ("user", "group"):
        for text in table.get(key, ()):
            if text.startswith("@"):
                found = f"`{text}`: a set does not stand in `{key}`"
                yield Mistake(found, "write the names", key=place + key, text=text)


def about_exception(block: Table, exception: Table) -> Iterator[Mistake]:
    """An exception names the rule's own resource type, or attributes."""
    own, theirs = resource_of(block), resource_of(exception)
    if not exception:
        yield Mistake("an empty `unless`", "write its conditions, or remove it", key="unless")
    if own and theirs not in {"", "tool", own}:
        yield Mistake(
            f"`unless` names `{theirs}` in a rule on `{own}`: one action has one resource, so it would never hold",
            f"write the exception with `{own}`",
            key=f"unless.{theirs}",
        )
    elif not own and theirs in {"path", "url"} and block.get("kind") == ["execute"]:
        yield Mistake(
            f'`unless` names `{theirs}` in a rule on `kind = "execute"`: a command has neither path nor URL',
            "write the exception with `command`, or a rule of its own",
            key=f"unless.{theirs}",
        )
    given = [key for key in ("path", "command", "url") if key in exception]
    if len(given) > 1:
        found = f"`{given[0]}` and `{given[1]}` in one `unless`"
        yield Mistake(found, "write a list of tables", key=f"unless.{given[1]}")
    for key in NARROW:
        if key not in exception:
            continue
        if "command" not in exception:
            yield Mistake(f"`{key}` without `command` in `unless`", "write `command` beside it", key=f"unless.{key}")
        elif block["effect"] == "allow":
            found = f"`{key}` in the exception of an allow rule"
            yield Mistake(found, "write it beside `command` of the rule", key=f"unless.{key}")
    if "input" in exception and not (own or theirs):
        yield Mistake("`input` without a resource in `unless`", "write `tool` beside it", key="unless.input")
    if "interactive" in exception and block["effect"] != "allow":
        yield Mistake(
            "`interactive` in the exception of a deny or ask rule would loosen it when nobody can be asked",
            "remove it",
            key="unless.interactive",
        )
